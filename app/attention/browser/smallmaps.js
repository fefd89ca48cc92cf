// The small pictures of heads, drawn side by side once and copied from there.

import { across, isMirrored } from "./direction.js";
import { levelsOfRoots } from "../../kit/browser/picture/scale.js";

/** @typedef {import("./types.js").Site} Site */
/** @typedef {{canvas: HTMLCanvasElement, rows: number, columns: number, from: number}} Atlas */

// The small pictures of some layers, a row each
/** @param {import("./types.js").View} view @param {Site} site @returns {Atlas} */
export function atlasOf(view, site, from = 0, to = site.layers) {
  const { rows, columns } = site.thumbnail(from, 0);
  const canvas = document.createElement("canvas");
  canvas.width = columns * site.heads;
  canvas.height = rows * (to - from);
  const { packed } = view.colour;
  const isBack = isMirrored(view.picture, site);
  const levels = levelsOfRoots(view.map.wholeScale, view.map.smallEnds());
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let l = from; l < to; l++) {
    for (let h = 0; h < site.heads; h++) {
      const { values } = site.thumbnail(l, h);
      for (let r = 0; r < rows; r++) {
        const at = ((l - from) * rows + r) * canvas.width + h * columns;
        for (let c = 0; c < columns; c++)
          pixels[at + across(c, columns, isBack)] = packed[levels[values[r * columns + c]]];
      }
    }
  }
  context.putImageData(image, 0, 0);
  return { canvas, rows, columns, from };
}

// Copy one of them to a place on the screen.
/** @param {CanvasRenderingContext2D} context @param {Atlas} atlas @param {{layer: number, head: number}} at @param {number} x @param {number} y @param {number} size */
export function drawSmall(context, { canvas, rows, columns, from }, { layer, head }, x, y, size) {
  context.imageSmoothingEnabled = size < columns;
  context.drawImage(canvas, head * columns, (layer - from) * rows, columns, rows, x, y, size, size);
}
