// The small pictures of heads, drawn side by side once and copied from there.

import { copyOne, multiples } from "../../kit/browser/picture/multiples.js";
import { levelsOfRoots } from "../../kit/browser/picture/scale.js";
import { across, isMirrored } from "../../kit/browser/direction.js";

/** @typedef {import("./types.js").Site} Site */
/** @typedef {import("../../kit/browser/picture/multiples.js").Multiples & {from: number}} Atlas */

// The colour of each cell of one of them
/** @param {{values: ArrayLike<number>, columns: number}} small @param {ArrayLike<number>} packed @param {ArrayLike<number>} levels @param {boolean} isBack @returns {(row: number, column: number) => number} */
const coloured =
  ({ values, columns }, packed, levels, isBack) =>
  (row, column) =>
    packed[levels[values[row * columns + across(column, columns, isBack)]]];

// The small pictures of some layers, a row each. gap: of the size of one, between two of a picture that is shown as it is
/** @param {Site} site @param {ArrayLike<number>} packed the colour of each level @param {ArrayLike<number>} levels of each byte @param {boolean} isBack @returns {Atlas} */
export function smallMaps(site, packed, levels, isBack, from = 0, to = site.layers, gap = 0) {
  const { rows, columns } = site.thumbnail(from, 0);
  const [down, wide] = [rows, columns].map((n) => (gap ? Math.max(1, Math.round(n * gap)) : 0));
  const all = multiples({
    down: to - from,
    across: site.heads,
    rows,
    columns,
    gap: [down, wide],
    of: (layer, head) => coloured(site.thumbnail(from + layer, head), packed, levels, isBack),
  });
  return { ...all, from };
}

/** @param {import("./types.js").View} view @param {Site} site @returns {Atlas} */
export const atlasOf = (view, site, from = 0, to = site.layers) =>
  smallMaps(
    site,
    view.palette.tones.packed,
    levelsOfRoots(view.shading.whole, view.shading.smallEnds()),
    isMirrored(view.picture, site),
    from,
    to,
  );

// The map of one head, as a picture of its own with a pixel for each of its cells
/** @param {import("./types.js").View} view @param {Site} site @param {{layer: number, head: number}} at @returns {HTMLCanvasElement} */
export function smallMap(view, site, { layer, head }) {
  const small = site.thumbnail(layer, head);
  const levels = levelsOfRoots(view.shading.whole, view.shading.smallEnds());
  const of = coloured(small, view.palette.tones.packed, levels, isMirrored(view.picture, site));
  return multiples({ ...small, down: 1, across: 1, of: () => of }).canvas;
}

// Copy one of them to a place on the screen.
/** @param {CanvasRenderingContext2D} context @param {Atlas} atlas @param {{layer: number, head: number}} at @param {number} x @param {number} y @param {number} size */
export const drawSmall = (context, atlas, { layer, head }, x, y, size) =>
  copyOne(context, atlas, layer - atlas.from, head, x, y, size);
