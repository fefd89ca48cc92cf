// A map whose words stand over its columns, for taking away as it is on the screen: all of a short text, or of a long one the rows
// and columns that are unfolded, and what is said of those that are not.

import { clamp, number, short } from "../../kit/browser/dom.js";
import { text, widthOf } from "../../kit/browser/scene.js";
import { WORDS as words } from "./constants.js";
import { arcOf, strongest } from "./arcs.js";
import { beside, cells, rowed, shares, stair } from "./cells.js";
import { finish, heading, legend, MARGIN, SMALL } from "./figureparts.js";
import { rowName } from "../../kit/browser/labels.js";
import { isNextThere } from "./next.js";

/** @typedef {import("../../kit/browser/types.js").Shape} Shape */
const ROW = 32; // px,
const LOW = 22; // and of many
const MANY = 24; // rows
const ARCS = 52; // px, above the words
const NEXT = 190; // px, for what a row is about to write, where that is beside its name
const GAP = 40; // px, for columns that are folded away
const TYPE = 14; // px
const WORD = [36, 150]; // px: the narrowest and the widest column

// null while some of it is on its way
/** @param {import("./figureparts.js").Still} view @param {import("./figureparts.js").Style} style @param {import("./figureparts.js").About} about */
export function foldFigure(view, style, about) {
  const lens = view.lens();
  const { isHeader, isStair = false, isMirrored, ...fold } = view.map.geometry;
  const { columns: read = [...lens.keys.keys()], rows: [q0, q1] = [0, lens.n_query] } = fold;
  const columns = isMirrored ? [...read].reverse() : read; // from the left to the right
  const rows = Array.from({ length: q1 - q0 }, (_, r) => lens.row(q0 + r));
  const { hasNext } = view.map;
  if (rows.includes(null) || (hasNext && !isNextThere(view, q0, q1))) return null;
  const { palette, font } = style;
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
  const names = rows.map((_, r) => rowName(lens.queries, q0 + r));
  /** @param {number} k */
  const headed = (k) => (isHeader ? rowName(lens.keys, k) : short(lens.keys[k]));
  const isBeside = hasNext && !isStair;
  const ends = MARGIN + Math.max(76, ...names.map((label) => wide(label) + 12)); // of the names of the rows
  const left = ends + (isBeside ? NEXT : 0);
  const high = rows.length > MANY ? LOW : ROW;
  const widths = columns.map((k) => (k < 0 ? GAP : clamp(wide(headed(k)) + 14, WORD[0], WORD[1])));
  const edges = [left]; // of the columns
  for (const w of widths) edges.push(edges[edges.length - 1] + w);
  const type = { size: TYPE, small: SMALL };
  /** @param {number} q @param {number} y */
  const said = (q, y) => stair(view, q, style, { ...type, x: edges[q + 1] + 6, y, gap: 5, isChosen: q === query });
  const rights = [...edges.slice(-1), ...(isStair ? rows.map((_, q) => said(q, 0).end) : [])];
  const width = Math.max(560, ...rights.map((x) => x + MARGIN));
  /** @type {Shape[]} */
  const shapes = [];
  const hasArcs = chosen !== null && view.site.query === view.site.key;
  const top = heading(shapes, width, style, about) + ROW + (hasArcs ? ARCS : 0);
  if (isBeside) {
    shapes.push(text(ends - 8, top - 10, [[words.reads, palette.query, 600]], SMALL, { anchor: "end" }));
    shapes.push(text(ends + 22, top - 10, [[words.about_to_write, palette.proof, 600]], SMALL));
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
  const later = isStair ? view.picture.reasons.indexOf("future") : -1; // there stands what the model would write
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
    shapes.push(text(x + w / 2, top - ROW / 2, [[headed(k), tone, tone === palette.ink ? 0 : 700]], TYPE, middle));
    x += widths[c];
  });
  const column = (/** @type {number} */ c) => /** @type {[number, number]} */ ([edges[c], widths[c]]);
  shapes.push(
    ...cells(
      {
        rows: rows.length,
        columns: columns.length,
        at: rowed(view, rows, columns),
        column: (c) => (columns[c] < 0 ? null : column(c)),
        y: top,
        down: high,
        gap: 2,
        apart: columns.indexOf(view.shading.sink ?? -1),
        inset: isHeader ? 0.15 : null,
        later,
      },
      style,
    ),
  );
  if (isHeader && chosen && query !== null && lens.unit === "weight") {
    const how = { y: top + (query - q0 + 0.5) * high - 1, size: SMALL, long: 50 };
    shapes.push(...shares(view, chosen, style, { ...how, column: (k) => column(columns.indexOf(k)) }));
  }
  names.forEach((label, r) => {
    const is = q0 + r === query;
    const y = top + (r + 0.5) * high - 1;
    shapes.push(text(ends - 8, y, [[label, is ? palette.query : palette.ink, is ? 700 : 0]], TYPE, { anchor: "end" }));
    if (isStair) shapes.push(...said(r, y).shapes);
    const how = { ...type, x: ends, right: left - 8, y, indent: 18, isChosen: is };
    if (isBeside) shapes.push(...beside(view, q0 + r, style, how));
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
  const masked = Uint8Array.from(
    rows.flatMap((row) => columns.map((k) => (k < 0 ? 0 : (row?.masked?.[k] ?? 0)))).filter((code) => code !== later),
  );
  const bottom = legend(shapes, top + rows.length * high + 24, width, view, lens, { masked }, style);
  return finish(
    shapes,
    width,
    bottom,
    style,
    [isStair ? words.export_stair : "", view.map.fold.said(), about.caption, ...about.said].filter(Boolean),
  );
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
    shapes.push({ shape: "curve", points, ...arcOf(weight, rank === 0, palette) });
    if (!rank) shapes.push({ shape: "dot", x: to, y: low, r: 3.5, fill: palette.key, opacity: 1 });
  }
}
