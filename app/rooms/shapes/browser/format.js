// Sizes in words, and axes in their colours.

import { WORDS as words } from "./constants.js";
import { el, fixed, number, phrase } from "../../../kit/browser/dom.js";
import { form } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Row} Row */

const STEPS = [words.bytes, "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const TENS = [words.bytes, "kB", "MB", "GB", "TB", "PB", "EB"];

/** @param {number} n @param {number} base @param {string[]} names */
function scaled(n, base, names) {
  let i = 0;
  while (n >= base && i < names.length - 1) [n, i] = [n / base, i + 1];
  return `${i && n < 99.95 ? fixed(n, n < 9.995 ? 2 : 1) : number(n)} ${names[i]}`;
}

/** @param {number} n */
export const binary = (n) => scaled(n, 1024, STEPS); // 24.0 KiB
/** @param {number} n */
export const decimal = (n) => scaled(n, 1000, TENS); // 24.6 kB
/** @param {number} n */
export const flops = (n) => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"]);
/** @param {number} n */
export const short = (n) => (n ? scaled(n, 1000, ["", "k", "M", "G", "T", "P", "E", "Z"]).trim() : "");

// "12 heads"
/** @param {string} name @param {number} n */
export const count = (name, n) => {
  const forms = /** @type {Record<string, string[]>} */ (words.counts)[name];
  return `${number(n)} ${form(forms, n)}`;
};

// The class that colours an axis; one that is made of two ("head × d_head") or has no name has none
const KNOWN = new Set(["batch", "pos", "head", "kv_head", "query", "key", "d_model", "d_head", "d_ff", "vocab"]);
/** @param {string} name */
export const axis = (name) => (KNOWN.has(name) ? `ax-${name}` : "");

// [1 batch] [16 query] …
/** @param {Row} row */
export function shape(row) {
  const box = el("span", "shape");
  box.title = shapeText(row); // on a phone it may be cut off
  row.shape.forEach((n, i) => {
    const name = row.axes[i];
    box.append(el("b", axis(name), number(n)), " ");
    const label = el("small");
    label.append(
      ...name
        .split(/( × )/)
        .map((part) => (KNOWN.has(part) ? el("span", name.includes("×") ? axis(part) : "", part) : part)),
    );
    box.append(label, " ");
  });
  return box;
}

// The same for a screen reader, a tip, a test: "1 batch × 16 query"
/** @param {Row} row */
export const shapeText = (row) => row.shape.map((n, i) => `${number(n)} ${row.axes[i]}`.trim()).join(" × ");

// "{head} × {query}" with each axis counted, in its colour
/** @param {Row} row @param {Record<string, number>} sizes */
export function meaning(row, sizes) {
  /** @type {Record<string, string | string[]>} */
  const parts = {};
  for (const name of KNOWN) {
    const at = row.axes.indexOf(name);
    const n = at >= 0 ? row.shape[at] : sizes[name];
    parts[name] = n === undefined ? name : [count(name, n), axis(name)];
  }
  const nodes = phrase(row.means, parts);
  if (sizes.batch > 1 && row.axes[0] === "batch")
    nodes.unshift(...phrase(words.batch_prefix, { batch: [count("batch", sizes.batch), "ax-batch"] }));
  return nodes;
}

/** @param {Row} row @param {Record<string, number>} sizes */
export const meaningText = (row, sizes) =>
  meaning(row, sizes)
    .map((node) => node.textContent)
    .join("");
