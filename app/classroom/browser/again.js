// The same question of a changed sentence: which word is worth changing, and where the word that looks stands then.

import { WORDS as words } from "./constants.js";

/** @type {Record<string, string>} */
const SWAPS = words.swaps;

/** A sentence with its last word of those that we know another one for. @param {string} text @returns {{text: string, word: string} | null} */
export function swapped(text) {
  const found = [...text.matchAll(/\p{L}+/gu)].findLast(([word]) => Object.hasOwn(SWAPS, word));
  if (!found) return null;
  const word = SWAPS[found[0]];
  return { text: text.slice(0, found.index) + word + text.slice(found.index + found[0].length), word };
}

/** Where a word stands in another text: the nearest place that reads the same, or as near as there is one. @param {string[]} labels @param {string} word @param {number} at */
export function nearest(labels, word, at) {
  const places = labels.flatMap((label, i) => (label === word ? [i] : []));
  if (!places.length) return Math.min(at, labels.length - 1);
  return places.reduce((a, b) => (Math.abs(b - at) < Math.abs(a - at) ? b : a));
}

/** The words in which two texts of as many tokens differ: of the one, of the other. Null where they are not comparable. @param {string[]} a @param {string[]} b @returns {[string, string] | null} */
export function differing(a, b) {
  if (a.length !== b.length) return null;
  const at = a.flatMap((label, i) => (label === b[i] ? [] : [i]));
  if (!at.length || at.length > 3) return null;
  return [at.map((i) => a[i]).join(" "), at.map((i) => b[i]).join(" ")];
}
