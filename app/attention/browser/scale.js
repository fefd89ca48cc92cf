// From a number to its colour: the same for the map, the words above it, the small maps and the legend.

import { clamp } from "../../kit/browser/dom.js";

export const DECADES = 4; // of the logarithmic scale: from a ten-thousandth of the top

/** @typedef {{low: number, high: number}} Ends What the colours at both ends of a scale stand for */

// The default ends of a scale whose largest value is `top`
/** @param {"linear" | "log"} scale @param {number} top @param {number[] | null} bounds @returns {Ends} */
export function endsOf(scale, top, bounds = null) {
  const [low, high] = bounds ?? [0, top];
  return { low: scale === "log" && !low ? high / 10 ** DECADES : low, high };
}

// 0 to 255 for a value between both ends
/** @param {"linear" | "log"} scale @param {number} value @param {Ends} ends */
export function levelOf(scale, value, { low, high }) {
  if (scale === "linear") return clamp(Math.round(((value - low) * 255) / (high - low)), 0, 255);
  return value > 0 ? clamp(Math.round((255 * Math.log10(value / low)) / Math.log10(high / low)), 0, 255) : 0;
}

// The level of each byte of a small map, whose weights travel as square roots
/** @param {"linear" | "log"} scale @param {Ends} ends */
export const levelsOfRoots = (scale, ends) =>
  Uint8Array.from({ length: 256 }, (_, root) => levelOf(scale, (root / 255) ** 2, ends));

// A tile as a canvas of one pixel a value, which is then drawn as large as it is shown; masked ones are see-through.
/** @param {{rows: number, columns: number, masked?: ArrayLike<unknown> | null}} tile @param {ArrayLike<number>} levels @param {ArrayLike<number>} packed colour of each level */
export function dots(tile, levels, packed) {
  const canvas = document.createElement("canvas");
  canvas.width = tile.columns;
  canvas.height = tile.rows;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(tile.columns, tile.rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < levels.length; i++) pixels[i] = tile.masked?.[i] ? 0 : packed[levels[i]];
  context.putImageData(image, 0, 0);
  return canvas;
}
