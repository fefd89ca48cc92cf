// Numbers in words, and words that are measured, or cut to a width.

import { fixed, number } from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";

const SPARE = 1.03; // letters of the page's type may still be on their way

// How wide words are in a type
/** @param {string} family */
export function ruler(family) {
  const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  return (/** @type {string} */ text, /** @type {number} */ size, weight = 400) => {
    context.font = `${weight} ${size}px ${family}`;
    return context.measureText(text).width * SPARE;
  };
}

// As much of words as fits into a width
/** @param {string} text @param {number} width @param {(text: string) => number} wide */
export function fitted(text, width, wide) {
  if (wide(text) <= width) return text;
  const letters = Array.from(text);
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (wide(`${letters.slice(0, middle).join("")}…`) <= width) low = middle;
    else high = middle - 1;
  }
  return low ? `${letters.slice(0, low).join("").trimEnd()}…` : "";
}

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

// A token of the text, and which of those with the same name it is
/** @param {Pick<import("./types.js").Scene, "names" | "counted">} scene @param {number} position */
export const nameOf = ({ names, counted }, position) =>
  names[position] === counted[position] ? indexed(counted, position) : names[position];
