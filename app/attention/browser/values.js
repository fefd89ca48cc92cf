// What is chosen in a picture, between the texts of a link and what its parts work with: the place, and how it is shown.

import { OPTIONS } from "./constants.js";

/** @typedef {import("./types.js").Place} Place */
/** @typedef {import("./types.js").Options} Options */

/** @type {Record<string, string>} What a part calls an option that a link calls otherwise */
const NAMES = { heads: "members", key: "pin", zoom: "area", columns: "widths" };
const NONE = "none"; // a query that is not locked

const whole = (/** @type {string} */ text) => (/^\d{1,9}$/.test(text) ? Number(text) : null);
const numbers = (/** @type {string} */ text) => text.split(",").filter(Boolean).map(Number);

/** @type {Record<string, (text: string) => unknown>} How the text of an option is read, where it is not what it says */
const READ = {
  heads: (text) =>
    text
      .split(",")
      .filter(Boolean)
      .map((pair) => pair.split(".").map(Number)),
  hide: numbers,
  key: whole,
  keep: Number,
  zoom: (text) => (text ? numbers(text) : null),
  bounds: (text) => (text ? text.split(",").map(Number) : null),
  ...Object.fromEntries(["words", "whole", "sort", "predict"].map((name) => [name, (t) => t === "true"])),
};

/** Every option by the name of a part, as a link says them, or else as they open. @param {Record<string, string>} values @returns {Options} */
export function optionsOf(values) {
  const read = Object.entries(OPTIONS).map(([name, opens]) => {
    const text = values[name] ?? opens;
    return [NAMES[name] ?? name, READ[name] ? READ[name](text) : text];
  });
  return /** @type {any} */ (Object.fromEntries(read));
}

/** @param {unknown} value */
export const written = (value) =>
  value === null || value === undefined
    ? ""
    : Array.isArray(value)
      ? value.map((part) => (Array.isArray(part) ? part.join(".") : String(part))).join()
      : String(value);

/** The same as texts of a link. @param {Partial<Options>} options @returns {Record<string, string>} */
export function textsOf(options) {
  /** @type {Record<string, string>} */
  const texts = {};
  for (const name of Object.keys(OPTIONS)) {
    const own = NAMES[name] ?? name;
    if (own in options) texts[name] = written(/** @type {any} */ (options)[own]);
  }
  return texts;
}

/** @param {Record<string, string>} values @returns {Place} */
export const placeOf = ({ site, layer, head, query }) => ({
  site,
  layer: Number(layer),
  head: Number(head),
  query: query === NONE ? null : whole(query ?? ""),
});

/** @param {Partial<Place>} place @returns {Record<string, string>} */
export function placeTexts(place) {
  /** @type {Record<string, string>} */
  const texts = {};
  for (const [name, value] of Object.entries(place)) texts[name] = value === null ? NONE : String(value);
  return texts;
}

/** What is not as it opens. @param {Record<string, string>} values @returns {Record<string, string>} */
export const unlikeOpening = (values) =>
  Object.fromEntries(
    Object.entries(OPTIONS).flatMap(([name, opens]) => (values[name] === opens ? [] : [[name, values[name]]])),
  );

/** Whether a picture of this kind has a map, or lines, for each head alone. @param {import("./types.js").Kind} kind */
export const isPerHead = (kind) => kind === "head" || kind === "value";

/** Whether it is of more heads than one: put together, or each with lines of its own colour. @param {Options} options */
export const areSeveral = ({ kind, members, show }) =>
  kind === "mean" || kind === "max" || ((kind === "head" || show === "lines") && members.length > 0);
