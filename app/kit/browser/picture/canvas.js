// Canvases that can be painted again: sharp on the screen, and as sharp at the size of a file.

import { fit } from "../colours.js";

/** @typedef {(context: CanvasRenderingContext2D) => void} Paint In CSS pixels, onto nothing */
/** @type {WeakMap<HTMLCanvasElement, {width: number, height: number, paint: Paint}>} */
const PAINTED = new WeakMap();

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height @param {Paint} paint */
export function paintOn(canvas, width, height, paint) {
  PAINTED.set(canvas, { width, height, paint });
  paint(fit(canvas, width, height));
}

// A canvas as the address of a picture: painted once more if possible, with so many pixels for each of the screen
/** @param {HTMLCanvasElement} canvas @param {number} scale */
export function pictureOf(canvas, scale) {
  const known = PAINTED.get(canvas);
  if (!known) return canvas.toDataURL();
  const again = document.createElement("canvas");
  [again.width, again.height] = [Math.ceil(known.width * scale), Math.ceil(known.height * scale)];
  const context = /** @type {CanvasRenderingContext2D} */ (again.getContext("2d"));
  context.setTransform(again.width / known.width, 0, 0, again.height / known.height, 0, 0);
  known.paint(context);
  return again.toDataURL();
}

// The same canvas painted on something else; how large it is, and null where it cannot be painted again
/** @param {HTMLCanvasElement} canvas @param {CanvasRenderingContext2D} context */
export function paintedAgain(canvas, context) {
  const known = PAINTED.get(canvas);
  known?.paint(context);
  return known ?? null;
}

// A pixel for each cell, to be drawn as large as it is wanted: thousands of rectangles would take longer than a frame
/** @param {number} rows @param {number} columns @param {(at: number) => number} packed the colour of a cell, 0 for none @param {HTMLCanvasElement} [canvas] to use again */
export function pixels(rows, columns, packed, canvas = document.createElement("canvas")) {
  if (canvas.width !== columns || canvas.height !== rows) [canvas.width, canvas.height] = [columns, rows];
  const image = new ImageData(columns, rows);
  const all = new Uint32Array(image.data.buffer);
  for (let i = 0; i < all.length; i++) all[i] = packed(i);
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(image, 0, 0);
  return canvas;
}

// A part of a map of weights: a pixel for each, in the colour of its level; masked ones are see-through.
/** @param {{rows: number, columns: number, masked?: ArrayLike<unknown> | null}} tile @param {ArrayLike<number>} levels @param {ArrayLike<number>} packed colour of each level */
export const dots = ({ rows, columns, masked }, levels, packed) =>
  pixels(rows, columns, (at) => (masked?.[at] ? 0 : packed[levels[at]]));
