// Numbers in words, and words that are cut to a width.

import { fixed, number } from "../../../kit/browser/dom.js";
// As many letters as fit into a width, at about this size of type
/** @param {string} text @param {number} width @param {number} [size] */
export function cut(text, width, size = 12.5) {
  const letters = Array.from(text);
  const most = Math.max(1, Math.floor(width / (size * 0.5)));
  return letters.length > most ? letters.slice(0, Math.max(1, most - 1)).join("") + "…" : text;
}

/** @param {number} n */
export function size(n) {
  if (n < 1024) return `${n} bytes`;
  const [amount, unit] = n < 1 << 20 ? [n / 1024, "KiB"] : [n / (1 << 20), "MiB"];
  return `${amount >= 100 || Number.isInteger(amount) ? number(amount) : fixed(amount, 1)} ${unit}`;
}

/** @param {number} ms */
export const time = (ms) => (ms < 100 ? `${fixed(ms, 1)} ms` : `${Math.round(ms)} ms`);

/** @param {number} n */
export const short = (n) => (n > 999 ? `${fixed(n / 1000, 1)}k` : String(n));
