// The cells of a map, the shares in its chosen row and the words beside its rows, told once: the screen paints these shapes, and a
// picture for taking away holds them.

import { finely, percent, short } from "../../kit/browser/dom.js";
import { tokenName } from "../../kit/browser/labels.js";
import { pixels } from "../../kit/browser/picture/canvas.js";
import { text, widthOf } from "../../kit/browser/scene.js";
import { greyScale } from "../../kit/browser/sink.js";
import { HIDDEN } from "./lens.js";
import { nextOf } from "./next.js";

/** @typedef {import("../../kit/browser/types.js").Shape} Shape */
/** @typedef {import("./types.js").View} View */
/** @typedef {{palette: import("./types.js").Palette, colour: import("./types.js").Colours, font: string}} Style */
/** @typedef {{code: number, weight: number, level: number}} Cell code: why it is masked, 0 where it is not */
/** @typedef {(column: number) => [x: number, width: number] | null} Column null where keys are folded away */
/**
 * @typedef {object} Grid
 * @property {number} rows
 * @property {number} columns
 * @property {(row: number, column: number) => Cell | null} at null while it is fetched
 * @property {Column} column
 * @property {number} y of the first row
 * @property {number} down from one row to the next
 * @property {number} gap between two cells
 * @property {number | null} apart the column of the token that is set apart
 * @property {number | null} inset of its bars, as a share of a cell; null: greys, where a row is not all there
 * @property {number} [later] the code of cells where something else stands
 * @property {boolean} [isImage] one image, for cells too many to be shapes
 */

const SAID_FROM = 0.03; // of the chosen row: a smaller weight has no number in its cell
const WAITING = 0.4; // opacity of what is still to come

/** @param {Grid} grid @param {Style} style @returns {Shape[]} */
export function cells(grid, { palette, colour }) {
  const { rows, columns, at, column, y, down, gap, apart, inset, later = -1 } = grid;
  const grey = greyScale(palette);
  /** @type {Shape[]} */
  const shapes = [];
  if (grid.isImage) shapes.push(imageOf(grid, colour.packed, grey));
  const h = down - gap;
  const isHatched = (/** @type {Cell | null} */ cell) =>
    Boolean(cell?.code) && cell?.code !== HIDDEN && cell?.code !== later;
  for (let r = 0; r < rows; r++) {
    const top = y + r * down;
    for (let c = 0; c < columns; c++) {
      const place = column(c);
      if (!place) continue;
      const cell = at(r, c);
      let [x, w] = place;
      if (cell?.code) {
        if (!isHatched(cell)) continue;
        while (c + 1 < columns && isHatched(at(r, c + 1))) {
          const next = column(c + 1);
          if (!next) break;
          [x, w] = [Math.min(x, next[0]), w + next[1]];
          c++;
        }
        shapes.push({ shape: "hatch", x, y: top, w: w - gap, h });
      } else if (!grid.isImage) {
        const box = { shape: /** @type {"rect"} */ ("rect"), x, y: top, w: w - gap, h };
        if (!cell) shapes.push({ ...box, fill: palette.line, opacity: WAITING });
        else if (c !== apart) shapes.push({ ...box, fill: colour.css[cell.level] });
        else if (inset === null) shapes.push({ ...box, fill: grey(cell.weight).fill });
        else {
          const bar = { ...box, y: top + inset * h, h: h - 2 * inset * h };
          shapes.push({ ...bar, fill: palette.line });
          shapes.push({ ...bar, w: box.w * Math.min(1, cell.weight), fill: grey(0.75).fill });
        }
      }
    }
  }
  return shapes;
}

/** @param {Grid} grid @param {Uint32Array} packed @param {import("../../kit/browser/picture/scale.js").Scale} grey @returns {Shape} */
function imageOf({ rows, columns, at, column, y, down, apart }, packed, grey) {
  const [[first, wide], [last]] = /** @type {[number, number][]} */ ([column(0), column(columns - 1)]);
  const canvas = pixels(rows, columns, (i) => {
    const c = last < first ? columns - 1 - (i % columns) : i % columns;
    const cell = at(Math.floor(i / columns), c);
    return !cell || cell.code ? 0 : c === apart ? grey(cell.weight).packed : packed[cell.level];
  });
  return { shape: "image", canvas, x: Math.min(first, last), y, w: wide * columns, h: down * rows };
}

/** The cells of a part of a map. @param {View} view @param {import("./types.js").DrawnTile} tile @returns {Grid["at"]} */
export function tiled(view, tile) {
  const levels = view.shading.levels(tile);
  return (r, c) => {
    const i = r * tile.columns + c;
    return { code: tile.masked?.[i] ?? 0, weight: tile.values[i], level: levels[i] };
  };
}

/** The same of rows, and of the keys with a column. @param {View} view @param {(import("./types.js").Row | null)[]} rows @param {ArrayLike<number>} keys @returns {Grid["at"]} */
export function rowed(view, rows, keys) {
  const levels = rows.map((row) => row && view.shading.levelIn(row));
  return (r, c) => {
    const [row, level, k] = [rows[r], levels[r], keys[c]];
    return row && level && { code: row.masked?.[k] ?? 0, weight: row.weights[k], level: level(row.weights[k]) };
  };
}

/**
 * The numbers of the chosen row, in its cells, where these are large enough.
 * @param {View} view @param {import("./types.js").Row} row @param {Style} style
 * @param {{column: Column, y: number, size: number, long: number}} how `column` of a key; `long`: px from which a share has its sign
 */
export function shares(view, row, { palette, colour, font }, { column, y, size, long }) {
  const level = view.shading.levelIn(row);
  /** @type {Shape[]} */
  const shapes = [];
  const open = Array.from(row.weights.keys()).filter((k) => !row.masked?.[k]);
  const most = open.length === 1 ? 1 : 1 - 1e-5; // a single key gets all the weight
  const placed = open.flatMap((k) => {
    const place = row.weights[k] < SAID_FROM ? null : column(k);
    return place ? [{ k, place }] : [];
  });
  const isSigned = placed.every(({ place }) => place[1] > long); // in a row all, or none
  placed.forEach(({ k, place: [x, w] }) => {
    const weight = row.weights[k];
    const isBar = k === view.shading.sink;
    const share = percent(Math.min(most, weight));
    const said = isSigned ? share : share.replace(" %", "");
    if (widthOf(said, size, font, 600) > w - 4) return;
    const ink = isBar ? palette.ink : colour.ink[level(weight)];
    shapes.push(text(x + w / 2, y, [[said, ink, 600]], size, { anchor: "middle" }));
  });
  return shapes;
}

/**
 * The word that the model would write after a row, and its share: right of the last token that it sees; bold where the text continues so.
 * @param {View} view @param {number} q @param {Style} style
 * @param {{x: number, y: number, size: number, small: number, gap: number, isChosen: boolean, most?: number}} how `most` px of both
 * @returns {{end: number, shapes: Shape[]}}
 */
export function stair(view, q, { palette, font }, { x, y, size, small, gap, isChosen, most }) {
  const next = nextOf(view, q);
  if (!next) return { end: x, shapes: [] };
  const given = view.picture.tokens[view.site.query] ?? [];
  const [label, p] = next.words[0];
  const isSo = view.lens().queryTokens.length === given.length && given[q + 1] === label;
  const weight = isSo || isChosen ? 650 : 0;
  const share = percent(Math.min(1 - 1e-5, p));
  const name = short(tokenName(label));
  const wide = Math.min(widthOf(name, size, font, weight), most ?? Infinity);
  const after = x + wide + gap;
  return {
    end: after + widthOf(share, small, font),
    shapes: [
      text(x, y, [[name, palette.proof, weight]], size, { most }),
      text(after, y, [[share, palette.mute, 0]], small),
    ],
  };
}

/**
 * The same between the name of a row and its cells.
 * @param {View} view @param {number} q @param {Style} style
 * @param {{x: number, right: number, y: number, size: number, small: number, indent: number, isChosen: boolean, most?: number}} how
 * @returns {Shape[]}
 */
export function beside(view, q, { palette }, { x, right, y, size, small, indent, isChosen, most }) {
  const next = nextOf(view, q);
  if (!next) return [];
  const [label, p] = next.words[0];
  return [
    text(x, y, [["→", palette.mute, 0]], small),
    text(x + indent, y, [[short(tokenName(label)), palette.proof, isChosen ? 700 : 0]], size, { most }),
    text(right, y, [[finely(Math.min(1 - 1e-5, p)), palette.mute, 0]], small, { anchor: "end" }),
  ];
}
