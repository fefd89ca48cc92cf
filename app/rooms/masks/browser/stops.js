// The walk through Paint a mask, then through the labs: what each stop chooses. A stop that this run cannot show is not on the way.

import { unpack } from "../../../kit/browser/messages.js";

/** @typedef {{id: string, name: string, lab: string, values: Record<string, string>}} Stop */

const BESIDE = { stop: "0" };

/** @param {Uint8Array} bytes */
const numbers = (bytes) => ({ values: new Float32Array(unpack(bytes)[1]) });

/** @typedef {{site: string, query: number, key: number}} Look */

/** @param {import("./masks.js").Masks} view @param {Look} look */
const looksOf = (view, { site, query, key }) => view.ask("looks", { site, query, key }, numbers);

/**
 * The weight that every head gives to one look, and which gives most; null while that is on its way.
 * @param {import("./masks.js").Masks} view @param {Look} look
 */
export function hardest(view, look) {
  const values = looksOf(view, look)?.values;
  if (!values?.length) return null;
  const at = values.indexOf(Math.max(...values));
  const { heads } = /** @type {import("./sheet.js").Scores} */ (view.sites.get(look.site));
  return { layer: Math.floor(at / heads), head: at % heads, weight: values[at], of: values.length };
}

// Whether the run writes, and every word of it sees the words before it alone
/** @param {import("./masks.js").Masks} view @param {string} site */
const isWritten = (view, site) => view.header.writes && site === "decoder" && view.isCausal(site);

// Whether the head that looks there hardest may be a stop of this run
/** @param {import("./masks.js").Masks} view @param {Look} look */
const asksHardest = (view, look) => isWritten(view, look.site) && view.header.outcome.words.length > 0;

// Whether it is still on its way which head that is
/** @param {import("./masks.js").Masks} view */
export const isHardestComing = (view) =>
  view.look !== null && asksHardest(view, view.look) && looksOf(view, view.look) === null;

/** @param {import("./masks.js").Masks} view @returns {Stop[]} */
export function stopsOf(view) {
  const { look } = view;
  const site = look?.site ?? view.site.id;
  const plain = {
    lab: "paint",
    site,
    mask: "model",
    window: "3",
    first: "off",
    when: "before",
    fill: "inf",
    scope: "all",
    forbid: "",
    allow: "",
    whose: "yours",
  };
  /** @type {Record<string, string>} */
  const place = look
    ? { layer: String(look.layer), head: String(look.head), query: String(look.query), key: String(look.key) }
    : {};
  /** @type {Stop[]} */
  const found = [];
  const stop = (
    /** @type {string} */ id,
    /** @type {string} */ name,
    /** @type {Record<string, string>} */ more = {},
  ) => found.push({ id, name, lab: "paint", values: { ...plain, ...place, ...more, stop: id } });
  const isCausal = isWritten(view, site);
  if (look) {
    stop("1", "1", { scope: "one" });
    stop("2", "2");
    const most = asksHardest(view, look) ? hardest(view, look) : null;
    if (most && (most.layer !== look.layer || most.head !== look.head))
      stop("3", "3", { scope: "one", layer: String(most.layer), head: String(most.head) });
  }
  if (isCausal) {
    stop("4", "none", { mask: "none" });
    stop("5", "window", { mask: "window" });
    stop("6", "first", { mask: "window", first: "on" });
  } else if (site === "encoder") {
    stop("4", "sides", { mask: "window" });
    stop("5", "causal", { mask: "causal" });
  }
  if (look) stop("7", "after", { when: "after", scope: "one" });
  for (const lab of ["padding", "leak", "kinds", "scale"]) {
    const opens = view.opens(lab);
    if (opens) found.push({ id: "0", name: lab, lab, values: { lab, ...BESIDE, ...opens } });
  }
  return found;
}

/** Where the walk stands; −1 beside it. @param {import("./masks.js").Masks} view @param {Stop[]} stops */
export const standing = (view, stops) =>
  view.labName === "paint"
    ? stops.findIndex((stop) => stop.id === view.values.stop && stop.lab === "paint")
    : stops.findIndex((stop) => stop.lab === view.labName);

/** @param {Record<string, string>} values */
export const forbidsLook = ({ stop }) => ["1", "2", "3", "7"].includes(stop);
