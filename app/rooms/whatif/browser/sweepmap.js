// The map of a sweep, heads by layers or queries by keys, and all changes in order.

import { fill, fixed, short } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { upright } from "../../../kit/browser/picture/bars.js";
import { rising, rooted, signed, signs } from "../../../kit/browser/picture/scale.js";
import { drawShapes, text, widthOf } from "../../../kit/browser/scene.js";
import { WORDS as words } from "./constants.js";
import { FEW_TURN, points } from "./numbers.js";

/** @typedef {import("../../../kit/browser/picture/heatmap.js").HeatmapView} HeatmapView */
/** @typedef {import("./types.js").Palette} Palette */
/** @typedef {import("./types.js").Type} Type */
/**
 * @typedef {{rows: string[], columns: string[], values: (number | undefined)[][], turns: boolean, tokens: boolean, most: number}} Grid
 *   values [row][column]; undefined is not known or never changed
 */

// Draw a grid, as wide as `width`, at most `height` high
/** @param {HeatmapView} view @param {Grid} grid @param {Palette} palette @param {number} width @param {number} height @param {Type} type */
export function drawGrid(view, grid, palette, width, height, { unit, family }) {
  const { tokens, turns } = grid;
  const [n, m] = [grid.rows.length, grid.columns.length];
  const small = 12 * unit;
  const letters = Math.max(words.map_layer.length, fill(words.map_head, { head: 0 }).length);
  const left = tokens ? (n <= 40 ? 62 * unit : 4) : Math.max(46 * unit, letters * 0.56 * small + 9);
  const isNamed = tokens ? n <= 24 && m <= 24 : true;
  const top = tokens ? (isNamed ? 46 * unit : 4) : 16 * unit;
  const strip = tokens && n === 1; // of a long text: one query's looks, which are narrow and need not be flat
  let w = (width - left - 2) / m;
  const h = Math.max(7, Math.min(34 * unit, (height - top) / n, tokens && !strip ? w : 34 * unit));
  if (tokens && !strip) w = Math.min(w, Math.max(h, 12));
  const size = Math.min(13 * unit, h * 0.62, w * 0.42);
  const scale = turns ? rising(palette) : signed(palette);
  const ends = strip && m > 24 ? [0, m - 1] : [];
  const every = tokens ? 1 : everyNth(w, 22 * unit); // numbers of layers that stand beside each other without touching
  const lines = tokens ? 1 : everyNth(h, 12 * unit);
  const named = tokens
    ? grid.rows.map(short)
    : grid.rows.map((name, i) => (i === 0 ? fill(words.map_head, { head: name }) : i % lines ? null : name));
  /** @type {import("../../../kit/browser/picture/heatmap.js").Heatmap} */
  const map = {
    rows: n,
    columns: m,
    x: left,
    y: top,
    w,
    h,
    gap: w > 12 && h > 10 ? 2 : w > 5 ? 1 : 0,
    radius: 2,
    tone: (row, column) => {
      const value = grid.values[row][column];
      return value === undefined ? null : scale(turns ? value / grid.most : rooted(value));
    },
    empty: tokens ? undefined : palette.line,
    size: size < 8 || w < 22 ? 0 : size,
    label: (row, column) => {
      const value = /** @type {number} */ (grid.values[row][column]);
      const isStrong = turns ? value >= FEW_TURN : Math.abs(value) >= 0.1;
      return [turns ? fixed(value, 1) : points(value), isStrong ? 650 : 400];
    },
    rowNames:
      tokens && n > 40
        ? undefined
        : {
            list: named,
            colour: tokens ? palette.query : palette.mute,
            size: tokens ? Math.min(small, Math.max(8, h)) : small,
            away: tokens ? 6 : 8,
          },
    columnNames: isNamed
      ? {
          list: tokens ? grid.columns.map(short) : grid.columns.map((name, i) => (i % every ? null : name)),
          colour: tokens ? palette.key : palette.mute,
          size: small,
          lean: tokens ? -50 : 0,
        }
      : undefined,
    more: [
      ...ends.map((j, i) =>
        text(left + (j + i) * w, top + h + small * 0.65, [[short(grid.columns[j]), palette.key]], small, {
          anchor: i ? "end" : "start",
        }),
      ),
      ...(tokens
        ? []
        : [text(left - 8, top - 5 - small * 0.35, [[words.map_layer, palette.mute]], small, { anchor: "end" })]),
    ],
  };
  view.draw(map, width, top + n * h + 2 + (ends.length ? small + 3 : 0), { hatch: palette.hatch, font: family });
}

// Of numbers so far apart every how manieth has this room
/** @param {number} apart @param {number} room */
const everyNth = (apart, room) => [1, 2, 5, 10].find((by) => by * apart >= room) ?? 20;

// All changes in order, bars from a line: what falls hangs below it, what rises stands above it
/** @param {SVGSVGElement} svg @param {{values: number[], names: string[], turns: boolean}} order @param {Palette} palette @param {number} width @param {Type} type */
export function drawOrder(svg, { values, names, turns }, palette, width, { unit, family }) {
  const [above, below] = turns ? [0, 46] : [10, 46];
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const step = width / Math.max(values.length, 12);
  const { more, less } = signs(palette);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(above + below + 22));
  /** @param {(i: number) => number} at @param {number[]} some @param {(i: number) => string} fill */
  const bars = (at, some, fill) =>
    upright({
      values: some,
      x: (i) => at(i) * step + 0.5 + Math.max(1, step - 1.5) / 2,
      wide: Math.max(1, step - 1.5),
      base: above,
      high: (value) => (turns ? -value * below : value * (value < 0 ? below : above)) / most,
      fill,
    });
  const pen = new Pen(svg);
  const [all, mark, said] = Array.from({ length: 3 }, () => pen.draw("g", {}));
  pen.end();
  drawShapes(
    new Pen(all),
    bars(
      (i) => i,
      values,
      (i) => (values[i] < 0 ? less : more),
    ),
  );
  let chosen = NaN;
  return {
    /** @param {number} at */
    choose: (at) => {
      if (at === chosen) return;
      chosen = at;
      drawShapes(
        new Pen(mark),
        at < 0
          ? []
          : bars(
              () => at,
              [values[at]],
              () => palette.query,
            ),
      );
      // A chosen name is bold, which moves those beside it.
      let last = -1;
      drawShapes(
        new Pen(said),
        names.slice(0, 3).map((name, i) => {
          const [x, weight] = [Math.max(i * step, last + 8), i === at ? 650 : 400];
          last = x + widthOf(name, 12 * unit, family, weight);
          const y = above + (Math.abs(values[i]) / most) * below + (i ? 9 : 10) * unit;
          return text(x, y, [[name, i === at ? palette.ink : palette.mute, weight]], 12 * unit);
        }),
      );
    },
    at: (/** @type {number} */ x) => (x >= 0 && x < step * values.length ? Math.floor(x / step) : -1),
  };
}
