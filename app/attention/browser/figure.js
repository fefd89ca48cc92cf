// Figures for taking away: what is on the screen as a scene that stands on its own, with title, fact, scale and caption.

import { WORDS as words } from "./constants.js";
import { clamp, fill, short } from "../../kit/browser/dom.js";
import { cells, tiled } from "./cells.js";
import { across, isMirrored } from "../../kit/browser/direction.js";
import { everyLine, linesOf } from "./edges.js";
import { finish, heading, legend, MARGIN, SMALL } from "./figureparts.js";
import { shapesOf } from "../../kit/browser/picture/heatmap.js";
import { levelsOfRoots, signed } from "../../kit/browser/picture/scale.js";
import { smallMaps } from "./smallmaps.js";
import { text, widthOf } from "../../kit/browser/scene.js";
import { pointed } from "../../kit/browser/language.js";

/** @typedef {import("./figureparts.js").Still} View */
/** @typedef {import("./types.js").Site} Site */
/** @typedef {import("../../kit/browser/types.js").Shape} Shape */
/** @typedef {import("../../kit/browser/types.js").TextPart} TextPart */
/** @typedef {import("./figureparts.js").Style} Style */
/** @typedef {import("./figureparts.js").About} About */
const RECTS = 10000; // cells; above, they are one image among the shapes
const MOST_LINES = 3000;
const SIDE = 720; // of a large map
const LEAN = -60; // degrees by which the labels of keys are turned

// {width, height, background, hatch, font, shapes} of the map, with the part of it that is on the screen
/** @param {View} view @param {Style} style @param {About} about */
export function mapFigure(view, style, about) {
  const lens = view.lens();
  const tile = view.map.tile();
  if (!tile) return null;
  const [q0, q1, k0, k1] = tile.area;
  const [rows, columns] = [q1 - q0, k1 - k0];
  const isBack = isMirrored(view.picture, view.site);
  const most = Math.max(rows, columns);
  const cell = most > 40 ? SIDE / most : clamp(560 / most, 14, 34);
  const size = clamp(cell * 0.6, 9, 15);
  const { palette, font } = style;
  /** @type {Shape[]} */
  const shapes = [];
  /** @param {string[]} list @param {number} from @param {number} to */
  const labels = (list, from, to) => list.slice(from, to).map(short);
  const [queries, keys] = [labels(lens.queries, q0, q1), labels(lens.keys, k0, k1)];
  /** @param {string[]} list */
  const longest = (list) => list.reduce((most, label) => Math.max(most, widthOf(label, size, font, 700)), 0);
  const left = MARGIN + Math.max(longest(queries) + 10, 76);
  const rise = longest(keys) * 0.87 + size * 0.8 + 8;
  const lean = longest(keys) * 0.5 + size;
  const width = Math.max(left + cell * columns + Math.max(MARGIN, lean), 560);
  const y = heading(shapes, width, style, about);
  const top = y + rise;
  shapes.push(text(MARGIN, top - 12, [[words.axis_query, palette.query, 600]], SMALL));
  shapes.push(
    text(MARGIN, top - 12 - SMALL * 1.35, [[isBack ? words.axis_key_back : words.axis_key, palette.key, 600]], SMALL),
  );

  const wide = (cell * columns) / tile.columns;
  const gap = wide > 12 ? 1 : wide > 5 ? 0.5 : 0;
  const isApart = tile.exact && tile.columns === columns; // a column is of one token
  const sink = isApart ? view.shading.sink : null;
  shapes.push(
    ...cells(
      {
        rows: tile.rows,
        columns: tile.columns,
        at: tiled(view, tile),
        column: (c) => [left + across(c, tile.columns, isBack) * wide, wide],
        y: top,
        down: (cell * rows) / tile.rows,
        gap,
        apart: sink === null ? null : sink - k0,
        inset: 0,
        isImage: tile.rows * tile.columns > RECTS,
      },
      style,
    ),
  );
  const { query } = view.place;
  const chosen = query === null ? null : lens.queryOf(query);
  const row = chosen === null ? null : lens.row(chosen);
  const key = row && strongest(row);
  const every = Math.max(1, Math.ceil((size * 1.1) / cell));
  /** @param {number} i @param {number | null} of @param {number} from */
  const shown = (i, of, from) =>
    i + from === of || (i % every === 0 && (of === null || Math.abs(i + from - of) >= every));
  queries.forEach((label, i) => {
    const is = q0 + i === chosen;
    if (!shown(i, chosen, q0)) return;
    shapes.push(
      text(left - 8, top + (i + 0.5) * cell, [[label, is ? palette.query : palette.ink, is ? 700 : 0]], size, {
        anchor: "end",
      }),
    );
  });
  keys.forEach((label, i) => {
    const is = k0 + i === key;
    if (!shown(i, key, k0)) return;
    shapes.push(
      text(
        left + (across(i, columns, isBack) + 0.5) * cell,
        top - 8,
        [[label, is ? palette.key : palette.ink, is ? 700 : 0]],
        size,
        { angle: LEAN },
      ),
    );
  });
  if (chosen !== null && chosen >= q0 && chosen < q1) {
    const line = cell < 6 ? 1.5 : 2.5;
    shapes.push({
      shape: "frame",
      x: left - line / 2,
      y: top + (chosen - q0) * cell - line / 2,
      w: cell * columns + line - 1,
      h: cell + line - 1,
      stroke: palette.query,
      width: line,
    });
  }
  const bottom = legend(shapes, top + cell * rows + 24, width, view, lens, tile, style);
  const notes = tile.exact ? [] : [fill(words.sampled, { how: tile.how })];
  return finish(shapes, width, bottom, style, [...notes, about.caption, ...about.said]);
}

/** @param {import("./types.js").Row} row */
const strongest = ({ weights, masked }) => {
  /** @type {number | null} */
  let best = null;
  for (let k = 0; k < weights.length; k++) if (!masked?.[k] && (best === null || weights[k] > weights[best])) best = k;
  return best;
};

// All heads of the kind of attention on the screen, a small picture each; rows are layers, columns are heads
/** @param {View} view @param {Style} style @param {About} about */
export function headsFigure(view, style, about) {
  const { site, place } = view;
  const { palette } = style;
  /** @type {Shape[]} */
  const shapes = [];
  const pitch = clamp(840 / Math.max(site.heads, site.layers * 1.4), 18, 84);
  const left = MARGIN + 26;
  const width = Math.max(left + pitch * site.heads + MARGIN, 560);
  const top = heading(shapes, width, style, about) + 22;
  const every = Math.ceil(20 / pitch);
  for (let h = 0; h < site.heads; h += every) {
    shapes.push(text(left + (h + 0.47) * pitch, top - 12, [[String(h), palette.mute, 0]], SMALL, { anchor: "middle" }));
  }
  for (let l = 0; l < site.layers; l += every) {
    shapes.push(text(left - 8, top + (l + 0.47) * pitch, [[String(l), palette.mute, 0]], SMALL, { anchor: "end" }));
  }
  const found = view.overview.metric === "maps" ? null : view.overview.numbers.get(site);
  if (view.overview.metric !== "maps" && !found) return null;
  const [wide, tall] = found
    ? numbersGrid(shapes, site, found, style, left, top, pitch)
    : mapsGrid(
        shapes,
        site,
        style,
        view.shading.whole,
        view.shading.smallEnds(),
        isMirrored(view.picture, site),
        left,
        top,
        pitch,
      );
  if (site.kv_heads < site.heads) {
    const group = site.heads / site.kv_heads;
    for (let first = 0; first < site.heads; first += group) {
      shapes.push({
        shape: "rect",
        x: left + first * pitch,
        y: top - 5,
        w: (group - 1) * pitch + wide,
        h: 2.5,
        fill: palette.key,
      });
    }
  }
  shapes.push({
    shape: "frame",
    x: left + place.head * pitch - 1.25,
    y: top + place.layer * pitch - 1.25,
    w: wide + 2.5,
    h: tall + 2.5,
    stroke: palette.query,
    width: 2.5,
  });
  const bottom = top + pitch * site.layers + 12;
  const notes = [];
  if (found?.rows !== undefined && found.of !== undefined && found.rows < found.of)
    notes.push(fill(words.metric_sampled, { rows: found.rows }));
  if (site.kv_heads < site.heads) notes.push(fill(words.shared_all, { n: site.heads / site.kv_heads }));
  return finish(shapes, width, bottom - 12, style, [...notes, about.caption, ...about.said]);
}

// One image of all small maps, with gaps of whole pixels: a thousand images would be a slow file. Returns the size of one.
/**
 * @param {Shape[]} shapes
 * @param {Site} site
 * @param {Style} style
 * @param {"linear" | "log"} scale
 * @param {import("../../kit/browser/picture/scale.js").Ends} ends
 * @param {boolean} isBack
 * @param {number} left
 * @param {number} top
 * @param {number} pitch
 */
function mapsGrid(shapes, site, { colour }, scale, ends, isBack, left, top, pitch) {
  const all = smallMaps(site, colour.packed, levelsOfRoots(scale, ends), isBack, 0, site.layers, 0.07);
  const { canvas, rows, columns, gap } = all;
  shapes.push({ shape: "image", canvas, x: left, y: top, w: pitch * site.heads, h: pitch * site.layers });
  return [(pitch * columns) / (columns + gap[1]), (pitch * rows) / (rows + gap[0])];
}

// One number a head, written on its colour where there is room. Returns the size of a cell.
/**
 * @param {Shape[]} shapes
 * @param {Site} site
 * @param {{values: number[], high: number}} found
 * @param {Style} style
 * @param {number} left
 * @param {number} top
 * @param {number} pitch
 */
function numbersGrid(shapes, site, { values, high }, { palette }, left, top, pitch) {
  const side = pitch * 0.94;
  const size = Math.min(13, side / 3.4);
  const scale = signed(palette);
  const of = (/** @type {number} */ row, /** @type {number} */ column) => values[row * site.heads + column];
  shapes.push(
    ...shapesOf({
      rows: site.layers,
      columns: site.heads,
      x: left - (pitch - side) / 2,
      y: top - (pitch - side) / 2,
      w: pitch,
      h: pitch,
      gap: pitch - side,
      most: Infinity,
      empty: palette.line,
      tone: (layer, head) => (Number.isNaN(of(layer, head)) ? null : scale(of(layer, head) / (high || 1))),
      size: size < 8 ? 0 : size,
      label: (layer, head) => [
        pointed(
          of(layer, head)
            .toFixed(2)
            .replace(/^-0\.00$/, "0.00"),
        ),
      ],
    }),
  );
  return [side, side];
}

// Queries on the left, keys on the right, and the lines that are on the screen between them
/** @param {View} view @param {Style} style @param {About} about */
export function linesFigure(view, style, about) {
  const { lenses } = view.lines.now;
  /** @param {string} hue */
  const hues = (hue) => style.palette.heads[view.palette.heads.indexOf(hue)] ?? hue; // the same head, in these colours
  const codes = view.lines.now.codes?.map((code) => ({ ...code, hue: hues(code.hue) }));
  const lens = view.lens();
  const { palette, font } = style;
  const keep = view.options.keep;
  const chosen = view.place.query === null ? null : lens.queryOf(view.place.query);
  const isWhole = lenses.every((of) => of.whole);
  if (!isWhole && chosen === null) return null;
  const all = isWhole ? everyLine(lenses, keep, MOST_LINES).lines : [];
  const alone = chosen === null ? null : linesOf({ query: chosen, key: null }, lenses, keep, MOST_LINES);
  if (chosen !== null && !alone) return null;
  /** @type {Shape[]} */
  const shapes = [];
  const size = 15;
  const pitch = Math.max(lens.n_query, lens.n_key) > 64 ? 20 : 26;
  /** @param {string[]} list */
  const longest = (list) => list.reduce((most, label) => Math.max(most, widthOf(short(label), size, font, 700)), 0);
  const [wide, wider] = [longest(lens.queries), longest(lens.keys)];
  const width = Math.max(2 * MARGIN + wide + wider + 70 + 300, 600);
  let top = heading(shapes, width, style, about) + 10;
  if (codes) top = headKeys(shapes, top, width, codes, style);
  const [x0, x1] = [MARGIN + wide + 14, width - MARGIN - wider - 70];
  shapes.push(text(x0, top, [[words.lines_query, palette.query, 650]], SMALL + 1, { anchor: "end" }));
  shapes.push(text(x1, top, [[words.lines_key, palette.key, 650]], SMALL + 1));
  top += 12;
  /** @param {number} i */
  const y = (i) => top + (i + 0.5) * pitch;
  /** @param {number} w */
  const level = (w) => Math.min(1, w / lens.top);
  const fewer = Math.max(0.45, 1 / Math.sqrt(lenses.length));
  /** @param {import("./edges.js").Line} line @param {number} faint @param {boolean} strong */
  const curve = ({ q, k, w, of }, faint, strong) => {
    const p = level(w);
    const middle = (x0 + x1) / 2;
    const stroke = codes ? codes[of].hue : strong ? palette.query : palette.mute;
    const opacity = strong ? 0.32 + 0.68 * p : (codes ? (0.15 + 0.75 * p) * fewer : 0.12 + 0.7 * p) * faint;
    /** @type {import("../../kit/browser/types.js").Point[]} */
    const points = [
      [x0 + 8, y(q)],
      [middle, y(q)],
      [middle, y(k)],
      [x1 - 8, y(k)],
    ];
    shapes.push({
      shape: "curve",
      points,
      stroke,
      opacity,
      width: strong ? 1.4 + 5.2 * p : 0.8 + 3.8 * p,
      dash: codes?.[of].dash ?? [],
    });
  };
  for (const line of all) if (line.q !== chosen) curve(line, alone ? 0.18 : 1, false);
  for (const line of alone?.lines ?? []) curve(line, 1, true);
  const most = alone?.lines.at(-1)?.k ?? null;
  const share = new Map((alone?.lines ?? []).map(({ k, w }) => [k, w]));
  lens.queries.forEach((label, q) => {
    const is = q === chosen;
    shapes.push({ shape: "rect", x: x0, y: y(q) - size * 0.36, w: 2.5, h: size * 0.72, fill: palette.query });
    const tone = is ? palette.query : alone ? palette.mute : palette.ink;
    shapes.push(text(x0 - 7, y(q), [[short(label), tone, is ? 700 : 0]], size, { anchor: "end" }));
  });
  lens.keys.forEach((label, k) => {
    const is = k === most;
    shapes.push({ shape: "rect", x: x1, y: y(k) - size * 0.36, w: 2.5, h: size * 0.72, fill: palette.key });
    /** @type {TextPart[]} */
    const parts = [
      [short(label), is ? palette.key : alone && !share.has(k) ? palette.mute : palette.ink, is ? 700 : 0],
    ];
    if (share.has(k) && !codes)
      parts.push([`  ${view.lines.amount(/** @type {number} */ (share.get(k)))}`, palette.mute, 0]);
    shapes.push(text(x1 + 10, y(k), parts, size));
  });
  return finish(shapes, width, top + Math.max(lens.n_query, lens.n_key) * pitch, style, [about.caption, ...about.said]);
}

// Which head has which hue and dash; returns where it ends.
/**
 * @param {Shape[]} shapes
 * @param {number} y
 * @param {number} width
 * @param {import("./tokenlines.js").Code[]} codes
 * @param {Style} style
 */
function headKeys(shapes, y, width, codes, { palette, font }) {
  let x = MARGIN;
  for (const { hue, dash, name } of codes) {
    const wide = 34 + widthOf(name, SMALL, font) + 16;
    if (x > MARGIN && x + wide > width - MARGIN) {
      x = MARGIN;
      y += SMALL * 1.7;
    }
    /** @type {import("../../kit/browser/types.js").Point[]} */
    const points = [
      [x, y],
      [x + 9, y],
      [x + 18, y],
      [x + 27, y],
    ];
    shapes.push({ shape: "curve", points, stroke: hue, opacity: 1, width: 3, dash });
    shapes.push(text(x + 33, y, [[name, palette.ink, 0]], SMALL));
    x += wide;
  }
  return y + SMALL * 2.2;
}
