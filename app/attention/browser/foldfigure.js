// A folded map for taking away: the rows and columns that are on the screen, and what is said of those that are not.

import { clamp, number, short } from "../../kit/browser/dom.js";
import { text, widthOf } from "../../kit/browser/scene.js";
import { WORDS as words } from "./constants.js";
import { finish, heading, legend, MARGIN, SMALL } from "./figureparts.js";
import { HIDDEN } from "./lens.js";
import { endsOf, levelOf } from "./scale.js";

/** @typedef {import("../../kit/browser/types.js").Shape} Shape */
const ROW = 32; // px
const GAP = 40; // px, for columns that are folded away
const TYPE = 14; // px
const WORD = [36, 150]; // px: the narrowest and the widest column

// null while some of its rows are on their way
/** @param {import("./types.js").View} view @param {import("./figureparts.js").Style} style @param {import("./figureparts.js").About} about */
export function foldFigure(view, style, about) {
  const lens = view.lens();
  const { columns: read = [], rows: [q0, q1] = [0, 0], isMirrored } = view.map.geometry;
  const columns = isMirrored ? [...read].reverse() : read; // from the left to the right
  const rows = Array.from({ length: q1 - q0 }, (_, r) => lens.row(q0 + r));
  if (rows.includes(null)) return null;
  const { palette, colour, font } = style;
  const { query, pin } = view.place.query === null ? { query: null, pin: view.pin } : { query: lens.queryOf(view.place.query), pin: null };
  const chosen = query === null ? null : rows[query - q0];
  const best = chosen ? chosen.weights.indexOf(chosen.weights.reduce((a, b) => Math.max(a, b), 0)) : pin === null ? null : lens.keyOf(pin);
  /** @param {string} label */
  const wide = (label) => widthOf(label, TYPE, font, 700);
  const names = lens.queries.slice(q0, q1).map(short);
  const left = MARGIN + Math.max(76, ...names.map((label) => wide(label) + 12));
  const widths = columns.map((k) => (k < 0 ? GAP : clamp(wide(short(lens.keys[k])) + 14, WORD[0], WORD[1])));
  const width = Math.max(560, left + widths.reduce((sum, w) => sum + w, 0) + MARGIN);
  /** @type {Shape[]} */
  const shapes = [];
  const top = heading(shapes, width, style, about) + ROW;
  shapes.push(text(MARGIN, top - 10, [[words.axis_query, palette.query, 600]], SMALL));
  shapes.push(text(MARGIN, top - 10 - SMALL * 1.35, [[isMirrored ? words.axis_key_back : words.axis_key, palette.key, 600]], SMALL));
  const perRow = view.map.scaleShown === "row";
  const ends = view.map.ends();
  let x = left;
  columns.forEach((k, c) => {
    const w = widths[c] - 2;
    const middle = { anchor: /** @type {"middle"} */ ("middle") };
    if (k < 0) {
      shapes.push(text(x + w / 2, top - ROW / 2, [[`… ${number(-k)}`, palette.mute, 0]], SMALL, middle));
      x += widths[c];
      return;
    }
    const tone = k === query ? palette.query : k === best ? palette.key : palette.ink;
    shapes.push(text(x + w / 2, top - ROW / 2, [[short(lens.keys[k]), tone, tone === palette.ink ? 0 : 700]], TYPE, middle));
    rows.forEach((row, r) => {
      if (!row) return;
      const code = row.masked?.[k];
      const box = { x, y: top + r * ROW, w, h: ROW - 2 };
      if (code) return void (code !== HIDDEN && shapes.push({ shape: "hatch", ...box }));
      const of = perRow ? endsOf("linear", row.weights.reduce((a, b) => Math.max(a, b), 0) || 1) : ends;
      shapes.push({ shape: "rect", ...box, fill: colour.css[levelOf(perRow ? "linear" : view.map.wholeScale, row.weights[k], of)] });
    });
    x += widths[c];
  });
  names.forEach((label, r) => {
    const is = q0 + r === query;
    shapes.push(text(left - 8, top + (r + 0.5) * ROW - 1, [[label, is ? palette.query : palette.ink, is ? 700 : 0]], TYPE, { anchor: "end" }));
    if (is) shapes.push({ shape: "frame", x: left - 2, y: top + r * ROW - 2, w: x - left + 2, h: ROW + 2, stroke: palette.query, width: 2.5 });
  });
  const masked = Uint8Array.from(rows.flatMap((row) => columns.map((k) => (k < 0 ? 0 : (row?.masked?.[k] ?? 0)))));
  const bottom = legend(shapes, top + rows.length * ROW + 24, width, view, lens, { masked }, style);
  return finish(shapes, width, bottom, style, [view.map.fold.said(), about.caption, ...about.said].filter(Boolean));
}
