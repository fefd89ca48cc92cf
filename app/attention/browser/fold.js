// A text that is too long for a map of all of it: some rows around the chosen one, and the columns that anybody looks at there.

import { Arcs } from "./arcs.js";
import { cells, rowed } from "./cells.js";
import { WORDS as words } from "./constants.js";
import { cover } from "../../kit/browser/cover.js";
import { clamp, fill, finely, number, short } from "../../kit/browser/dom.js";
import { isMirrored as isMirroredOf, mirrored } from "../../kit/browser/direction.js";
import { unfolded, withGaps } from "./folding.js";
import { greyScale } from "../../kit/browser/sink.js";
import { form } from "../../kit/browser/language.js";

const ASKED = 40; // keys
const ROWS = 9; // as many as there is room for, up to this; more where rows as high as they may be leave room
const TALLEST = 2.4; // em of a row
const HEADER = 2.2; // em, of the words above the columns
const UPRIGHT = 1.6; // em of a column or gap on a phone, where the words above it stand upright,
const TALL = 6; // as high as this in em
const ARCS = 2.2; // em, above them
const GAP = 1.9; // em, for keys that are folded away,
const DIGITS = 0.44; // and for each sign of their number, of more than four
const OPENED = 4; // keys that a click on a gap shows at each of its ends

export class Fold {
  /** @type {number[]} Keys that a visitor unfolded, or reached by the keyboard */
  extra = [];
  /** @type {number | null} The row that the band is around, where that is not the locked one */
  centre = null;
  isWaiting = false; // for the weights that the columns are chosen by
  of = ""; // which picture these are of
  basis = ""; // and what was locked in it

  /** @param {import("./types.js").View} view @param {import("./map.js").HeadMap} map that it is */
  constructor(view, map) {
    this.view = view;
    this.map = map;
    this.arcs = new Arcs(view);
  }

  // Whether a lesson asks about all that a row may look at, of a text that is short enough to be seen whole
  get isAsked() {
    return cover.now !== null && !this.view.options.projector && this.view.lens().n_key <= ASKED;
  }

  // Whether a map whose words do not fit above it is shown so
  get isWanted() {
    const { options } = this.view;
    return options.show === "map" && !options.whole && !this.map.zoomed() && !this.isAsked;
  }

  // What of it has room: rows of the band, columns with gaps (−n for n keys), where they are
  /** @param {number} width @param {number} height @param {number} em @param {number} left @returns {import("./types.js").Geometry} */
  measure(width, height, em, left) {
    const { view } = this;
    const lens = view.lens();
    const of = `${view.picture.key},${view.site.id}`;
    if (this.of !== of) [this.of, this.extra] = [of, []];
    const basis = `${of},${view.place.query},${view.chosen.pin}`;
    if (this.basis !== basis) [this.basis, this.centre] = [basis, null];
    const size = em; // of the type above the columns
    const widths = this.map.widthsOf(lens.keys);
    const isUpright = view.room.narrow;
    const header = isUpright ? Math.min(TALL, widths.reduce((a, b) => Math.max(a, b), 0) + 1) * size : HEADER * em;
    const top = ARCS * em + header + 2;
    const most = Math.max(ROWS, Math.floor((height - top - 2) / (TALLEST * em)));
    const fit = clamp(Math.floor((height - top - 2) / (1.5 * em)), 3, most);
    const rows = Math.min(fit, lens.n_query);
    const query = view.place.query === null ? null : lens.queryOf(view.place.query);
    const centre = this.centre ?? query ?? lens.n_query - 1;
    const q0 = clamp(centre - Math.floor(rows / 2), 0, lens.n_query - rows);
    const cell = Math.min((height - top - 2) / rows, TALLEST * em);
    const font = clamp(0.6 * cell, 0.72 * em, em);
    /** @param {number} k */
    const wide = (k) => (isUpright ? UPRIGHT * em : Math.max(1.6 * em, Math.min(10, widths[k] + 0.8) * size));
    const room = width - left - 2;
    /** @param {number} n */
    const gap = (n) => (isUpright ? UPRIGHT : GAP + DIGITS * Math.max(0, number(n).length - 4)) * em;
    /** @param {number[]} keys */
    const taken = (keys) => withGaps(keys, lens.n_key).reduce((sum, k) => sum + (k < 0 ? gap(-k) : wide(k)), 0);
    const ranking = query === null ? null : view.numbers.ranking(lens.firstQuery(query));
    const band = Array.from({ length: rows }, (_, r) => lens.row(q0 + r)?.weights).filter((row) => row !== undefined);
    const pinned = view.chosen.pin === null ? [] : [lens.keyOf(view.chosen.pin)];
    const own = query === null || view.site.query !== view.site.key ? [] : [query];
    const strongest = ranking?.order.slice(0, 1) ?? [];
    this.isWaiting = !ranking && !band.length; // who looks where is not known yet: the columns are those beside the rows
    const beside = this.isWaiting ? [Math.min(centre, lens.n_key - 1)] : [];
    const keys = unfolded({
      n: lens.n_key,
      must: [...pinned, ...strongest, ...own, ...this.extra, ...beside],
      order: ranking?.order ?? [],
      weights: ranking?.weights ?? [],
      band,
      fits: (some) => taken(some) <= room,
    });
    const columns = withGaps(keys, lens.n_key);
    const spare = Math.max(0, room - taken(keys)) / Math.max(1, keys.length);
    const places = new Float64Array(columns.length + 1);
    places[0] = left;
    columns.forEach((k, c) => (places[c + 1] = places[c] + (k < 0 ? gap(-k) : wide(k) + Math.min(spare, 2 * em))));
    const isMirrored = isMirroredOf(view.picture, view.site);
    const xs = isMirrored ? mirrored(places) : places;
    return {
      left,
      top,
      cell,
      font,
      xs,
      columns,
      rows: [q0, q0 + rows],
      isHeader: false,
      isFold: true,
      isMirrored,
      header: size,
      width,
    };
  }

  // Whether something else is locked than what the columns were chosen for
  get isStale() {
    const { view } = this;
    return (
      Boolean(this.map.geometry?.isFold) &&
      this.basis !== `${view.picture.key},${view.site.id},${view.place.query},${view.chosen.pin}`
    );
  }

  // The row that all is about: the one chosen, or the middle of the band
  row() {
    const { query } = this.view.chosen;
    return query === null ? null : this.view.numbers.ranking(query);
  }

  // All cells of the band; whether every row was there
  /** @param {CanvasRenderingContext2D} context @param {import("./types.js").Geometry} g */
  draw(context, g) {
    const { view } = this;
    const lens = view.lens();
    const [q0, q1] = g.rows ?? [0, 0];
    const rows = Array.from({ length: q1 - q0 }, (_, r) => lens.row(q0 + r));
    const keys = g.columns ?? [];
    const shapes = cells(
      {
        rows: rows.length,
        columns: keys.length,
        at: rowed(view, rows, keys),
        column: (c) => (keys[c] < 0 ? null : columnOf(g, c)),
        y: g.top,
        down: g.cell,
        gap: 2,
        apart: keys.indexOf(view.shading.sink ?? -1),
        inset: null,
      },
      this.map.style,
    );
    this.map.paint(context, shapes);
    return !rows.includes(null);
  }

  // The words above the columns, shaded like their cells of the chosen row, and how many are folded away between them
  /** @param {CanvasRenderingContext2D} context @param {import("./types.js").Geometry} g */
  drawHeader(context, g) {
    const { view } = this;
    const { em } = view.room;
    const { palette } = view;
    const { query } = view.chosen;
    const lens = view.lens();
    const ranking = this.row();
    const family = view.room.family;
    const isSelf = view.site.query === view.site.key;
    const here = query === null ? null : lens.queryOf(query);
    const { column, key } = view.numbers.at();
    const head = rowed(view, [ranking], g.columns ?? []);
    const y = ARCS * em;
    const h = g.top - y - 4;
    context.textAlign = "center";
    context.textBaseline = "middle";
    g.columns?.forEach((k, c) => {
      const [x, w] = columnOf(g, c);
      if (k < 0) {
        context.fillStyle = palette.mute;
        context.font = `${0.82 * em}px ${family}`;
        if (view.room.narrow) upright(context, `⋯ ${number(-k)}`, x + w / 2, y + h - 0.3 * em, h);
        else context.fillText("⋯", x + w / 2, y + 0.3 * h);
        if (!view.room.narrow) context.fillText(number(-k), x + w / 2, y + 0.72 * h);
        return;
      }
      const cell = head(0, c);
      const rests = k === view.shading.sink && cell && !cell.code ? greyScale(palette)(cell.weight) : null;
      const fill = rests?.fill ?? palette.tones.css[cell?.level ?? 0];
      const box = { x, y, w: w - 2, h };
      this.map.paint(context, [cell?.code ? { shape: "hatch", ...box } : { shape: "rect", ...box, fill }]);
      const isQuery = isSelf && k === here;
      const isKey = k === column || k === key;
      context.fillStyle = cell?.code ? palette.mute : (rests?.ink ?? palette.tones.ink[cell?.level ?? 0]);
      context.font = `${isQuery || isKey ? 650 : 400} ${g.header}px ${family}`;
      if (view.room.narrow && lens.keys[k].length > 2)
        upright(context, short(lens.keys[k]), x + (w - 2) / 2, y + h - 0.3 * em, h - 0.6 * em);
      else context.fillText(short(lens.keys[k]), x + (w - 2) / 2, view.room.narrow ? y + h - em : y + h / 2, w - 6);
      if (!isQuery && !isKey) return;
      context.strokeStyle = isQuery ? palette.query : palette.key;
      context.lineWidth = 2.5;
      context.strokeRect(x + 1, y + 1, w - 4, h - 2);
    });
    this.drawArcs(g);
  }

  // Arcs from the chosen token to its largest weights among unfolded keys
  /** @param {import("./types.js").Geometry} g */
  drawArcs(g) {
    const { view } = this;
    const { query } = view.chosen;
    const place = (/** @type {number} */ k) => {
      const c = g.columns?.indexOf(k) ?? -1;
      return c < 0 ? null : (g.xs[c] + g.xs[c + 1]) / 2;
    };
    const from = query === null || view.site.query !== view.site.key ? null : place(view.lens().queryOf(query));
    if (!this.arcs.canvas.isConnected) this.arcs.put(this.map.box, null, ARCS * view.room.em);
    this.arcs.draw(
      view.room.mapWidth,
      ARCS * view.room.em,
      from === null ? null : { from, to: place, isAcross: false },
    );
  }

  // The same with how to see it
  note() {
    return [this.said(), this.said() && !this.isWaiting && this.how].filter(Boolean).join(" ");
  }

  // No row has a longer one.
  longestNote() {
    const n = number(this.view.lens().n_key);
    return `${fill(words.folded_share, { folded: n, n, share: finely(0.9991) })} ${this.how}`;
  }

  get how() {
    return this.view.room.narrow ? words.unfold_touch : words.unfold;
  }

  // What is folded away, and how much of the row it holds
  said() {
    const { columns } = this.map.geometry ?? {};
    if (!columns) return "";
    const lens = this.view.lens();
    const shown = columns.filter((k) => k >= 0);
    const folded = lens.n_key - shown.length;
    if (!folded) return "";
    const parts = { folded: number(folded), shown: number(shown.length), n: number(lens.n_key) };
    if (this.isWaiting) return fill(words.folded_waiting, parts);
    const ranking = this.row();
    if (!ranking || lens.unit === "norm" || lens.kind === "max")
      return fill(form([words.folded_one, words.folded], folded), parts);
    const held = Math.max(
      0,
      ranking.weights.reduce((sum, p) => sum + p, 0) - shown.reduce((sum, k) => sum + ranking.weights[k], 0),
    );
    return fill(form([words.folded_share_one, words.folded_share], folded), { ...parts, share: finely(held) });
  }

  // A click on ⋯: some keys at each of its ends
  /** @param {number} c */
  open(c) {
    const columns = this.map.geometry.columns ?? [];
    const n = -columns[c];
    const from = (columns[c - 1] ?? -1) + 1;
    const ends = Array.from({ length: Math.min(n, 2 * OPENED) }, (_, i) =>
      i % 2 ? from + n - 1 - (i >> 1) : from + (i >> 1),
    );
    this.extra = [...ends, ...this.extra];
    this.view.invalidate("layout");
  }

  // The band and the columns so that a cell reached by the keyboard is among them
  /** @param {{query: number, key: number}} cell */
  reveal({ query, key }) {
    const g = this.map.geometry;
    const [q0, q1] = g.rows ?? [0, 0];
    const isOut = query < q0 || query >= q1;
    if (isOut) this.centre = query;
    const isHidden = !g.columns?.includes(key);
    if (isHidden) this.extra = [key, ...this.extra.filter((k) => k !== key)];
    if (isOut || isHidden) this.view.invalidate("map", "over");
  }
}

// A word that begins here and goes up
/** @param {CanvasRenderingContext2D} context @param {string} word @param {number} x @param {number} y @param {number} most px */
function upright(context, word, x, y, most) {
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.textAlign = "left";
  context.fillText(word, 0, 0, most);
  context.restore();
}

// Left edge and width of a column
/** @param {import("./types.js").Geometry} g @param {number} c @returns {[x: number, width: number]} */
const columnOf = ({ xs }, c) => [Math.min(xs[c], xs[c + 1]), Math.abs(xs[c + 1] - xs[c])];
