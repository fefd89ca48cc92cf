// A map whose words stand over its columns, for taking away as it is on the screen: all of a short text, or of a long one the rows
// and columns that are unfolded, and what is said of those that are not.

import { clamp, finely, number, short } from "../../kit/browser/dom.js";
import { text, widthOf } from "../../kit/browser/scene.js";
import { WORDS as words } from "./constants.js";
import { strongest } from "./arcs.js";
import { finish, heading, legend, MARGIN, SMALL } from "./figureparts.js";
import { HIDDEN } from "./lens.js";
import { greyScale } from "../../kit/browser/sink.js";
import { nextOf } from "./next.js";
import { endsOf, levelOf } from "../../kit/browser/picture/scale.js";

/** @typedef {import("../../kit/browser/types.js").Shape} Shape */
const ROW = 32; // px,
const LOW = 22; // and of many
const MANY = 24; // rows
const ARCS = 52; // px, above the words
const NEXT = 190; // px, for what a row is about to write
const GAP = 40; // px, for columns that are folded away
const TYPE = 14; // px
const WORD = [36, 150]; // px: the narrowest and the widest column

// null while some of its rows are on their way
/** @param {import("./figureparts.js").Still} view @param {import("./figureparts.js").Style} style @param {import("./figureparts.js").About} about */
export function foldFigure(view, style, about) {
  const lens = view.lens();
  const { columns: read = [...lens.keys.keys()], rows: [q0, q1] = [0, lens.n_query], isMirrored } = view.map.geometry;
  const columns = isMirrored ? [...read].reverse() : read; // from the left to the right
  const rows = Array.from({ length: q1 - q0 }, (_, r) => lens.row(q0 + r));
  if (rows.includes(null)) return null;
  const { palette, colour, font } = style;
  const { query, pin } =
    view.place.query === null
      ? { query: null, pin: view.chosen.pin }
      : { query: lens.queryOf(view.place.query), pin: null };
  const chosen = query === null ? null : rows[query - q0];
  const best = chosen
    ? chosen.weights.indexOf(chosen.weights.reduce((a, b) => Math.max(a, b), 0))
    : pin === null
      ? null
      : lens.keyOf(pin);
  /** @param {string} label */
  const wide = (label) => widthOf(label, TYPE, font, 700);
  const names = lens.queries.slice(q0, q1).map(short);
  const { hasNext } = view.map;
  const left = MARGIN + Math.max(76, ...names.map((label) => wide(label) + 12)) + (hasNext ? NEXT : 0);
  const called = left - (hasNext ? NEXT : 0); // where the names of the rows end
  const high = rows.length > MANY ? LOW : ROW;
  const widths = columns.map((k) => (k < 0 ? GAP : clamp(wide(short(lens.keys[k])) + 14, WORD[0], WORD[1])));
  const width = Math.max(560, left + widths.reduce((sum, w) => sum + w, 0) + MARGIN);
  /** @type {Shape[]} */
  const shapes = [];
  const hasArcs = chosen !== null && view.site.query === view.site.key;
  const top = heading(shapes, width, style, about) + ROW + (hasArcs ? ARCS : 0);
  if (hasNext) {
    shapes.push(text(called - 8, top - 10, [[words.reads, palette.query, 600]], SMALL, { anchor: "end" }));
    shapes.push(text(called + 22, top - 10, [[words.about_to_write, palette.proof, 600]], SMALL));
  } else {
    shapes.push(text(MARGIN, top - 10, [[words.axis_query, palette.query, 600]], SMALL));
    shapes.push(
      text(
        MARGIN,
        top - 10 - SMALL * 1.35,
        [[isMirrored ? words.axis_key_back : words.axis_key, palette.key, 600]],
        SMALL,
      ),
    );
  }
  const perRow = view.shading.scale === "row";
  const ends = view.shading.ends();
  const [apart, grey] = [view.shading.sink, greyScale(palette)];
  let x = left;
  /** @type {Map<number, number>} */
  const middles = new Map(); // of the columns, by their keys
  columns.forEach((k, c) => {
    const w = widths[c] - 2;
    const middle = { anchor: /** @type {"middle"} */ ("middle") };
    if (k < 0) {
      shapes.push(text(x + w / 2, top - ROW / 2, [[`… ${number(-k)}`, palette.mute, 0]], SMALL, middle));
      x += widths[c];
      return;
    }
    middles.set(k, x + w / 2);
    const tone =
      view.site.query === view.site.key && k === query ? palette.query : k === best ? palette.key : palette.ink;
    shapes.push(
      text(x + w / 2, top - ROW / 2, [[short(lens.keys[k]), tone, tone === palette.ink ? 0 : 700]], TYPE, middle),
    );
    rows.forEach((row, r) => {
      if (!row) return;
      const code = row.masked?.[k];
      const box = { x, y: top + r * high, w, h: high - 2 };
      if (code) return void (code !== HIDDEN && shapes.push({ shape: "hatch", ...box }));
      const of = perRow ? endsOf("linear", row.weights.reduce((a, b) => Math.max(a, b), 0) || 1) : ends;
      shapes.push({
        shape: "rect",
        ...box,
        fill:
          k === apart
            ? grey(row.weights[k]).fill
            : colour.css[levelOf(perRow ? "linear" : view.shading.whole, row.weights[k], of)],
      });
    });
    x += widths[c];
  });
  names.forEach((label, r) => {
    const is = q0 + r === query;
    const y = top + (r + 0.5) * high - 1;
    shapes.push(
      text(called - 8, y, [[label, is ? palette.query : palette.ink, is ? 700 : 0]], TYPE, { anchor: "end" }),
    );
    const next = hasNext ? nextOf(view, q0 + r) : null;
    if (next) {
      const [word, p] = next.words[0];
      shapes.push(
        text(
          called,
          y,
          [
            ["→ ", palette.mute, 0],
            [short(word), palette.proof, is ? 700 : 0],
          ],
          TYPE,
        ),
      );
      shapes.push(text(left - 8, y, [[finely(Math.min(1 - 1e-5, p)), palette.mute, 0]], SMALL, { anchor: "end" }));
    }
    if (is)
      shapes.push({
        shape: "frame",
        x: left - 2,
        y: top + r * high - 2,
        w: x - left + 2,
        h: high + 2,
        stroke: palette.query,
        width: 2.5,
      });
  });
  if (hasArcs && chosen) arcs(shapes, view, style, chosen, middles, top - ROW);
  const masked = Uint8Array.from(rows.flatMap((row) => columns.map((k) => (k < 0 ? 0 : (row?.masked?.[k] ?? 0)))));
  const bottom = legend(shapes, top + rows.length * high + 24, width, view, lens, { masked }, style);
  return finish(shapes, width, bottom, style, [view.map.fold.said(), about.caption, ...about.said].filter(Boolean));
}

// From the chosen token to the keys that it looks at most, as above the map on the screen
/**
 * @param {Shape[]} shapes
 * @param {import("./figureparts.js").Still} view
 * @param {import("./figureparts.js").Style} style
 * @param {import("./types.js").Row} row
 * @param {Map<number, number>} middles
 * @param {number} low
 */
function arcs(shapes, view, { palette }, row, middles, low) {
  const lens = view.lens();
  const from = middles.get(lens.queryOf(/** @type {number} */ (view.place.query)));
  if (from === undefined) return;
  for (const [rank, k] of strongest(row.weights, lens.top).entries()) {
    const to = middles.get(k);
    if (to === undefined || to === from) continue;
    const weight = row.weights[k] / lens.top;
    const high = low - Math.min(ARCS * 1.15, 18 + 0.18 * Math.abs(to - from));
    /** @type {import("../../kit/browser/types.js").Point[]} */
    const points = [
      [from, low],
      [from, high],
      [to, high],
      [to, low],
    ];
    shapes.push({
      shape: "curve",
      points,
      stroke: rank ? palette.mute : palette.query,
      opacity: rank ? 0.2 + 0.5 * weight : 1,
      width: 1 + 4.5 * weight,
    });
    if (!rank) shapes.push({ shape: "dot", x: to, y: low, r: 3.5, fill: palette.key, opacity: 1 });
  }
}
