// The address as it is meant on this model: the map of all parts, or what one change does to the whole run. As changes.has_map().

/** @param {Record<string, string>} said @param {{parts: boolean, pair: string}} header @returns {Record<string, string>} */
export function meant(said, { parts, pair }) {
  if (!parts) return said.sweep === "parts" ? { ...said, sweep: "heads" } : said;
  const against = said.against === pair ? "" : said.against; // an example's own pair is for the map alone
  const isBeside = said.pick === "off" && (said.edits || against);
  if (said.sweep !== "looks" && said.group === "off" && !said.other && !isBeside)
    return { ...said, sweep: "parts", how: said.how === "patch" && !said.against ? "zero" : said.how };
  return { ...said, against, sweep: said.sweep === "looks" ? "looks" : "heads" };
}
