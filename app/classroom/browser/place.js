// Where a follower's picture opens: what the teacher's screen says in the words of a link, as a view takes it.

import { OPTIONS } from "../../attention/browser/constants.js";

/** @typedef {import("../../attention/browser/types.js").Picture} Picture */

const whole = (/** @type {string} */ text) => (/^\d{1,9}$/.test(text) ? Number(text) : null);

/** The place that a screen names, where this picture has it; else where it opens. @param {Picture} header @param {Record<string, string>} said */
export function placeOf(header, said) {
  const site =
    header.sites.find(({ id }) => id === said.site) ??
    header.sites.find(({ id }) => id === header.opened?.site) ??
    header.sites[0];
  const within = (/** @type {string} */ name, /** @type {number} */ size, /** @type {number} */ otherwise) => {
    const asked = whole(said[name] ?? "");
    return asked !== null && asked < size ? asked : Math.min(otherwise, size - 1);
  };
  const opened = header.opened ?? { layer: 0, head: 0, query: 0 };
  const query = said.query === "none" ? null : within("query", site.n_query, opened.query ?? 0);
  return {
    site: site.id,
    layer: within("layer", site.records.length, opened.layer),
    head: within("head", site.heads, opened.head),
    query,
  };
}

/** The options that a screen names. Each has the kind of its default value. @param {Record<string, string>} said @returns {Record<string, any>} */
export function optionsOf(said) {
  /** @type {Record<string, any>} */
  const options = {};
  for (const [name, { url, value }] of Object.entries(OPTIONS)) {
    const text = said[url];
    options[name] = text === undefined || text === null ? value : read(name, text, value);
  }
  return options;
}

/** @param {string} name @param {string} text @param {any} value */
function read(name, text, value) {
  const parts = text.split(",").filter(Boolean);
  if (name === "members") return parts.map((pair) => pair.split(".").map(Number));
  if (name === "hide") return parts.map(Number);
  if (name === "area") return parts.length === 4 ? parts.map(Number) : null;
  if (name === "pin") return whole(text);
  if (typeof value === "boolean") return text === "true";
  if (typeof value === "number") return whole(text) ?? value;
  return text;
}

/** A code as people type it: without case, spaces and dashes. @param {string} text @param {string} alphabet */
export const codeOf = (text, alphabet) =>
  [...text.toUpperCase()]
    .filter((sign) => alphabet.includes(sign))
    .join("")
    .slice(0, 8);
