// One way to say a number for the whole room: shares, and what they were before.

import { fixed, quoted } from "../../../kit/browser/dom.js";
import { pointed } from "../../../kit/browser/language.js";

const SPACE = "\u00a0"; // percent and number never break

/** A share: whole percents from 10 to 98, one decimal elsewhere; 0 and 100 % only where exact. @param {number} p */
export function share(p) {
  const x = 100 * p;
  if (p === 0) return "0";
  if (x >= 100 - 1e-5) return `100${SPACE}%`; // of a sum of floats
  if (x < 0.1) return pointed(`<0.1${SPACE}%`);
  if (x > 99.9) return pointed(`>99.9${SPACE}%`);
  return `${x >= 9.95 && x <= 98 ? Math.round(x) : fixed(x, 1)}${SPACE}%`;
}

/** Before and after: one number where both read alike. @param {string} a @param {string} b */
export function both(a, b) {
  if (a === b) return b;
  const percent = `${SPACE}%`;
  return `${b.endsWith(percent) && !a.startsWith("<") && !a.startsWith(">") ? a.replace(percent, "") : a}${SPACE}→${SPACE}${b}`;
}

/** @param {number} a @param {number | null | undefined} b of a run, or null while it is on its way */
export const shares = (a, b) =>
  b === null || b === undefined ? `${share(a)}${SPACE}→${SPACE}…` : both(share(a), share(b));
/** @param {number} a @param {number} b */
export const losses = (a, b) => both(fixed(a), fixed(b));

/** The class of a change: more, less or the same. @param {number} a @param {number} b */
export const way = (a, b) => (b > a * 1.005 + 0.0005 ? "more" : b < a * 0.995 - 0.0005 ? "less" : "same");

/** @type {WeakMap<string[], Map<string, number[]>>} */
const places = new WeakMap();

/** Where each word stands: of a long text, counted once. @param {string[]} labels */
function placesOf(labels) {
  const known = places.get(labels);
  if (known) return known;
  /** @type {Map<string, number[]>} */
  const found = new Map();
  labels.forEach((label, i) => found.set(label, [...(found.get(label) ?? []), i]));
  places.set(labels, found);
  return found;
}

/** A word of the text, with its number among those that are alike. @param {string[]} labels @param {number} at @param {string} tone @returns {import("./types.js").Piece[]} */
export function word(labels, at, tone) {
  const label = labels[at] ?? "";
  const said = quoted(label);
  const alike = placesOf(labels).get(label) ?? [];
  if (alike.length < 2) return [[said, tone]];
  return [
    [said, tone],
    [String(alike.indexOf(at) + 1), "sub"],
  ];
}
