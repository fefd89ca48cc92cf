// From a number to its colour: the same for the map, the words above it, the small maps and the legend.

import { clamp } from "../../kit/browser/dom.js";

export const DECADES = 4; // of the logarithmic scale: from a ten-thousandth of the top

// 0 to 255 for a value from 0 to `top`
/** @param {"linear" | "log"} scale @param {number} value @param {number} top */
export function levelOf(scale, value, top) {
  if (scale === "linear") return clamp(Math.round((value * 255) / top), 0, 255);
  return value > 0 ? clamp(Math.round(255 * (1 + Math.log10(value / top) / DECADES)), 0, 255) : 0;
}

// The level of each byte of a small map, whose weights travel as square roots
/** @param {"linear" | "log"} scale */
export const levelsOfRoots = (scale) => Uint8Array.from({ length: 256 }, (_, root) => levelOf(scale, (root / 255) ** 2, 1));
