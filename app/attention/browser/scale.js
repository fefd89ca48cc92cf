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
