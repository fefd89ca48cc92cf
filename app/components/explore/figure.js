// Figures for taking away: what is on the screen as a scene that stands on its own, with title, fact, scale and caption.

import { WORDS as words } from "./constants.js";
import { clamp, said, short } from "./dom.js";
import { HIDDEN } from "./lens.js";
import { text, widthOf, wrapped } from "./scene.js";

const MARGIN = 28;
const RECTS = 10000; // cells; above, they are one image among the shapes
const SIDE = 720; // of a large map
const LEAN = -60; // degrees by which the labels of keys are turned
const TITLE = 20;
const FACT = 16;
const SMALL = 12;

// {width, height, background, hatch, font, shapes} of the map, with the part of it that is on the screen
export function mapFigure(view, style, about) {
  const lens = view.lens();
  const tile = view.map.tile();
  if (!tile) return null;
  const [q0, q1, k0, k1] = tile.area;
  const [rows, columns] = [q1 - q0, k1 - k0];
  const most = Math.max(rows, columns);
  const cell = most > 40 ? SIDE / most : clamp(560 / most, 14, 34);
  const size = clamp(cell * 0.6, 9, 15);
  const { palette, font } = style;
  const shapes = [];
  const labels = (list, from, to) => list.slice(from, to).map(short);
  const [queries, keys] = [labels(lens.queries, q0, q1), labels(lens.keys, k0, k1)];
  const longest = (list) => list.reduce((most, label) => Math.max(most, widthOf(label, size, font, 700)), 0);
  const left = MARGIN + Math.max(longest(queries) + 10, 76);
  const rise = longest(keys) * 0.87 + size * 0.8 + 8;
  const lean = longest(keys) * 0.5 + size;
  const width = Math.max(left + cell * columns + Math.max(MARGIN, lean), 560);
  const y = heading(shapes, width, style, about, view);
  const top = y + rise;
  shapes.push(text(MARGIN, top - 12, [[words.axis_query, palette.query, 600]], SMALL));
  shapes.push(text(MARGIN, top - 12 - SMALL * 1.35, [[words.axis_key, palette.key, 600]], SMALL));

  cells(shapes, view, tile, style, left, top, cell);
  const { query } = view.place;
  const chosen = query === null ? null : lens.queryOf(query);
  const key = chosen === null ? null : (lens.row(chosen) && strongest(lens.row(chosen)));
  const every = Math.max(1, Math.ceil((size * 1.1) / cell));
  const shown = (i, of, from) => i + from === of || (i % every === 0 && (of === null || Math.abs(i + from - of) >= every));
  queries.forEach((label, i) => {
    const is = q0 + i === chosen;
    if (!shown(i, chosen, q0)) return;
    shapes.push(text(left - 8, top + (i + 0.5) * cell, [[label, is ? palette.query : palette.ink, is ? 700 : 0]], size, { anchor: "end" }));
  });
  keys.forEach((label, i) => {
    const is = k0 + i === key;
    if (!shown(i, key, k0)) return;
    shapes.push(text(left + (i + 0.5) * cell, top - 8, [[label, is ? palette.key : palette.ink, is ? 700 : 0]], size, { angle: LEAN }));
  });
  if (chosen !== null && chosen >= q0 && chosen < q1) {
    const line = cell < 6 ? 1.5 : 2.5;
    shapes.push({ shape: "frame", x: left - line / 2, y: top + (chosen - q0) * cell - line / 2, w: cell * columns + line - 1, h: cell + line - 1, stroke: palette.query, width: line });
  }
  const bottom = legend(shapes, top + cell * rows + 24, width, view, lens, tile, style);
  const notes = tile.exact ? [] : [said(words.sampled, { how: tile.how })];
  return finish(shapes, width, bottom, style, [...notes, about.caption]);
}

const strongest = ({ weights, masked }) => {
  let best = null;
  for (let k = 0; k < weights.length; k++) if (!masked?.[k] && (best === null || weights[k] > weights[best])) best = k;
  return best;
};

function cells(shapes, view, tile, { colour }, left, top, cell) {
  const levels = view.map.levels(tile);
  const [q0, q1, k0, k1] = tile.area;
  const across = (cell * (k1 - k0)) / tile.columns;
  const down = (cell * (q1 - q0)) / tile.rows;
  const gap = across > 12 ? 1 : across > 5 ? 0.5 : 0;
  const x = (c) => left + c * across;
  const y = (r) => top + r * down;
  if (tile.rows * tile.columns > RECTS) {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: tile.columns, height: tile.rows });
    const context = canvas.getContext("2d");
    const image = context.createImageData(tile.columns, tile.rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < levels.length; i++) pixels[i] = tile.masked?.[i] ? 0 : colour.packed[levels[i]];
    context.putImageData(image, 0, 0);
    shapes.push({ shape: "image", canvas, x: left, y: top, w: across * tile.columns, h: down * tile.rows });
  }
  for (let r = 0; r < tile.rows; r++) {
    for (let c = 0; c < tile.columns; c++) {
      const from = c;
      while (c < tile.columns && tile.masked?.[r * tile.columns + c]) c++;
      if (c > from) shapes.push({ shape: "hatch", x: x(from), y: y(r), w: (c - from) * across, h: down });
      if (c === tile.columns || tile.rows * tile.columns > RECTS) continue;
      shapes.push({ shape: "rect", x: x(c), y: y(r), w: across - gap, h: down - gap, fill: colour.css[levels[r * tile.columns + c]] });
    }
  }
}

// Title and fact on top; returns where they end.
function heading(shapes, width, style, about, view) {
  const { palette, font } = style;
  let y = MARGIN + TITLE / 2;
  for (const line of wrapped(about.title, width - 2 * MARGIN, TITLE, font)) {
    shapes.push(text(MARGIN, y, [[line, palette.ink, 650]], TITLE));
    y += TITLE * 1.3;
  }
  y += (FACT - TITLE) / 2 + 4;
  for (const parts of coloured(about.fact, width - 2 * MARGIN, style)) {
    shapes.push(text(MARGIN, y, parts, FACT));
    y += FACT * 1.4;
  }
  return y + 4;
}

// The fact [[text, class]], query and key in their colours, in lines of at most `width`
function coloured(fact, width, { palette, font }) {
  const lines = [[]];
  let used = 0;
  for (const [string, name] of fact) {
    const strong = name === "q" || name === "k" || name === "b";
    const fill = name === "q" ? palette.query : name === "k" ? palette.key : palette.ink;
    for (const piece of string.split(/(?<= )/)) {
      const room = widthOf(piece.trimEnd(), FACT, font, strong ? 650 : 400);
      if (used && used + room > width) {
        lines.push([]);
        used = 0;
      }
      used += widthOf(piece, FACT, font, strong ? 650 : 400);
      const line = lines.at(-1);
      const last = line.at(-1);
      if (last && last[1] === fill && last[2] === (strong ? 650 : 0)) last[0] += piece;
      else line.push([piece, fill, strong ? 650 : 0]);
    }
  }
  return lines;
}

// The scale of the colours, and what hatching means; returns where it ends.
function legend(shapes, y, width, view, lens, tile, { palette, font }) {
  const scale = view.map.scaleShown;
  const low = scale === "log" ? "0.0001" : "0";
  const high = scale === "row" ? words.per_row_top : String(Number((tile.top ?? lens.top).toPrecision(3)));
  let x = MARGIN;
  const put = (string, fill) => {
    shapes.push(text(x, y, [[string, fill, 0]], SMALL));
    x += widthOf(string, SMALL, font) + 8;
  };
  put(`${words.export_units[lens.unit]} (${words[{ linear: "linear", log: "log", row: "per_row" }[scale]]})`, palette.ink);
  put(low, palette.mute);
  shapes.push({ shape: "ramp", x, y: y - 6, w: 140, h: 12, stops: palette.ramp });
  shapes.push({ shape: "frame", x, y: y - 6, w: 140, h: 12, stroke: palette.line, width: 1 });
  x += 148;
  put(high, palette.mute);
  const codes = [...new Set(tile.masked ?? [])].filter(Boolean);
  if (!codes.length) return y;
  const why = codes.filter((code) => code !== HIDDEN).map((code) => view.reason(code)).join(", ");
  const string = [why && said(words.tip_masked, { reason: why }), codes.includes(HIDDEN) && words.export_hidden].filter(Boolean).join("; ");
  x += 16;
  if (x + 26 + widthOf(string, SMALL, font) > width - MARGIN) {
    x = MARGIN;
    y += SMALL * 1.8;
  }
  shapes.push({ shape: "hatch", x, y: y - 7, w: 20, h: 14 });
  shapes.push({ shape: "frame", x, y: y - 7, w: 20, h: 14, stroke: palette.line, width: 1 });
  x += 26;
  put(string, palette.ink);
  return y;
}

// Scale, caption and the height that all of it takes
function finish(shapes, width, bottom, { palette, font }, notes) {
  let y = bottom + 24;
  for (const note of notes) {
    for (const line of wrapped(note, width - 2 * MARGIN, SMALL, font)) {
      shapes.push(text(MARGIN, y, [[line, palette.mute, 0]], SMALL));
      y += SMALL * 1.4;
    }
  }
  return { width: Math.ceil(width), height: Math.ceil(y + MARGIN - SMALL), background: palette.background, hatch: palette.hatch, font, shapes };
}

// All heads of the kind of attention on the screen, a small picture each; rows are layers, columns are heads
export function headsFigure(view, style, about) {
  const { site, place } = view;
  const { palette, colour, font } = style;
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
  // One image of all of them, with gaps of whole pixels: a thousand images would be a slow file.
  const { rows, columns } = site.thumbnail(0, 0);
  const [gapRows, gapColumns] = [rows, columns].map((n) => Math.max(1, Math.round(n * 0.07)));
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: (columns + gapColumns) * site.heads, height: (rows + gapRows) * site.layers });
  const context = canvas.getContext("2d");
  for (let l = 0; l < site.layers; l++) {
    for (let h = 0; h < site.heads; h++) {
      const { values } = site.thumbnail(l, h);
      const image = context.createImageData(columns, rows);
      const pixels = new Uint32Array(image.data.buffer);
      for (let i = 0; i < pixels.length; i++) pixels[i] = colour.packed[values[i]];
      context.putImageData(image, h * (columns + gapColumns), l * (rows + gapRows));
    }
  }
  shapes.push({ shape: "image", canvas, x: left, y: top, w: pitch * site.heads, h: pitch * site.layers });
  const [wide, tall] = [(pitch * columns) / (columns + gapColumns), (pitch * rows) / (rows + gapRows)];
  if (site.kv_heads < site.heads) {
    const group = site.heads / site.kv_heads;
    for (let first = 0; first < site.heads; first += group) {
      shapes.push({ shape: "rect", x: left + first * pitch, y: top - 5, w: (group - 1) * pitch + wide, h: 2.5, fill: palette.key });
    }
  }
  shapes.push({ shape: "frame", x: left + place.head * pitch - 1.25, y: top + place.layer * pitch - 1.25, w: wide + 2.5, h: tall + 2.5, stroke: palette.query, width: 2.5 });
  const bottom = top + pitch * site.layers + 12;
  const notes = [];
  if (site.kv_heads < site.heads) notes.push(said(words.shared_all, { n: site.heads / site.kv_heads }));
  return finish(shapes, width, bottom - 12, style, [...notes, about.caption]);
}

// Queries above, keys below, a curve for each weight that the lines on the screen carry
export function linesFigure(view, style, about) {
  const lens = view.lens();
  const { palette, font } = style;
  const shapes = [];
  const n = Math.max(lens.n_query, lens.n_key);
  const size = 14;
  const pitch = clamp(1200 / n, 9, 64);
  const width = Math.max(2 * MARGIN + pitch * n + 20, 560);
  const chosen = view.place.query === null ? null : lens.queryOf(view.place.query);
  const longest = (list) => list.reduce((most, label) => Math.max(most, widthOf(short(label), size, font, 700)), 0);
  const above = heading(shapes, width, style, about) + 16;
  const top = above + longest(lens.queries) * 0.87 + size;
  const bottom = top + 220;
  const x = (i, of) => MARGIN + 10 + (i + 0.5) * ((width - 2 * MARGIN - 20) / of);
  const weight = new Float64Array(lens.n_key);
  const curve = (q, [k, p], stroke, opacity, thick) => {
    const [a, b] = [x(q, lens.n_query), x(k, lens.n_key)];
    const middle = (top + bottom) / 2;
    shapes.push({ shape: "curve", points: [[a, top + 6], [a, middle], [b, middle], [b, bottom - 6]], stroke, opacity, width: thick });
  };
  for (let q = 0; q < lens.n_query; q++) {
    for (const edge of view.lines.edges(q)) if (q !== chosen) curve(q, edge, palette.mute, 0.08 + 0.5 * edge[1], 0.6 + 4 * edge[1]);
  }
  if (chosen !== null) {
    for (const edge of view.lines.edges(chosen)) {
      weight[edge[0]] = edge[1];
      curve(chosen, edge, palette.query, 0.4 + 0.6 * edge[1], 1 + 6 * edge[1]);
    }
  }
  lens.queries.forEach((label, q) => {
    const is = q === chosen;
    shapes.push({ shape: "dot", x: x(q, lens.n_query), y: top, r: is ? 5 : 3, fill: is ? palette.query : palette.mute });
    shapes.push(text(x(q, lens.n_query), top - 12, [[short(label), is ? palette.query : palette.ink, is ? 700 : 0]], size, { angle: LEAN }));
  });
  lens.keys.forEach((label, k) => {
    const is = weight[k] > 0;
    shapes.push({ shape: "dot", x: x(k, lens.n_key), y: bottom, r: 3 + 4 * Math.sqrt(weight[k]), fill: palette.key });
    shapes.push(text(x(k, lens.n_key), bottom + 14, [[short(label), is ? palette.key : palette.ink, is ? 700 : 0]], size, { angle: LEAN, anchor: "end" }));
  });
  const end = bottom + 14 + longest(lens.keys) * 0.87 + size;
  return finish(shapes, width, end, style, [about.caption]);
}
