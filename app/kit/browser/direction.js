// Which way a text is written.

import { isFromRight } from "./dom.js";

const LETTER = /\p{L}/u;

// Whether a text is letters and signs that are tokens of their own, such as {}[=]
/** @param {string[]} labels */
export const areLetters = (labels) =>
  labels.every((label) => label.length < 2 || /^[[<].*[\]>]$/.test(label)) && !isRightToLeft(labels);

// Edges of columns so that the first of them stands at the right
/** @param {Float64Array} xs */
export const mirrored = (xs) => xs.map((x) => xs[0] + xs[xs.length - 1] - x);

// Which column from the left the key of a number stands in, of so many
/** @param {number} k @param {number} columns @param {boolean} isMirrored */
export const across = (k, columns, isMirrored) => (isMirrored ? columns - 1 - k : k);

/** @type {WeakMap<string[], boolean>} */
const known = new WeakMap();

// Whether every map of these tokens as keys, large, small or saved, has the first of them at the right
/** @param {{tokens: {source: string[], target: string[] | null}}} picture @param {{key: "source" | "target"}} site */
export function isMirrored({ tokens }, { key }) {
  const labels = tokens[key] ?? [];
  const found = known.get(labels) ?? isRightToLeft(labels);
  known.set(labels, found);
  return found;
}

// Whether most of the tokens that have letters, special ones aside, have them from right to left
/** @param {string[]} labels */
export function isRightToLeft(labels) {
  let right = 0;
  let all = 0;
  for (const label of labels) {
    if (!LETTER.test(label) || /^[[<].*[\]>]$/.test(label)) continue;
    all += 1;
    if (isFromRight(label)) right += 1;
  }
  return 2 * right > all;
}
