// Up to four heads side by side: the same words, one scale of colours, and one cell pointed at in all of them.

import { add, clamp, el, fill, percent, setAll, setText, short } from "../../kit/browser/dom.js";
import { HeatmapView, shapesOf } from "../../kit/browser/picture/heatmap.js";
import { endsOf, levelOf } from "../../kit/browser/picture/scale.js";
import { text, widthOf } from "../../kit/browser/scene.js";
import { greyScale, LEAST_TOP } from "../../kit/browser/sink.js";
import { WORDS as words } from "./constants.js";
import { isMirrored } from "../../kit/browser/direction.js";
import { finish, heading, legend, MARGIN } from "./figureparts.js";
import { findingsOf } from "./findings.js";
import { HIDDEN, keyOf, Lens } from "./lens.js";

/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").Member} Member */
/** @typedef {import("../../kit/browser/picture/heatmap.js").Heatmap} Heatmap */
/** @typedef {{member: Member, lens: Lens, tile: import("./types.js").Tile | null}} Shown */
/** @typedef {{x: number, y: number, size: number, style: import("./cells.js").Style, top: number}} Place */
export const MOST = 4; // heads that can be compared at a glance
const NAMED = 40; // tokens, up to which each has its name beside a map
const WORD = [11, 14]; // px of the smallest and the largest type of these names
const PAPER = 380; // px of one map in a file
const GAP = 22; // px between two maps
const TITLE = 24; // px, for the name of a head
const TITLED = 15; // em: width of a title with the key that the head attends to

// The heads that are shown: those that were chosen, or else the ones of the findings, the head on the screen first
/** @param {View} view @returns {Member[]} */
export function headsBeside(view) {
  const { options, place, site } = view;
  /** @type {Member[]} */
  const chosen = options.members.length
    ? options.members
    : [
        [place.layer, place.head],
        ...findingsOf(view).flatMap((one) =>
          one.site === site.id ? [/** @type {Member} */ ([one.layer, one.head])] : [],
        ),
      ];
  const once = chosen.filter((pair, i) => chosen.findIndex((other) => String(other) === String(pair)) === i);
  return once.filter(([layer, head]) => layer < site.layers && head < site.heads).slice(0, MOST);
}

// One more, or one less; what is chosen in the map of all heads. From two on they are side by side. Returns the sentence of a refusal.
/** @param {View} view @param {Member} member @param {Event} [event] */
export function toggleBeside(view, member, event) {
  const { chosen, options } = view;
  const { layer, head } = chosen.place;
  const isBeside = options.show === "beside";
  /** @type {Member[]} */
  const before = isBeside ? headsBeside(view) : [[layer, head]];
  const others = before.filter((pair) => String(pair) !== String(member));
  if (others.length === before.length && before.length === MOST) return view.announce(words.beside_full);
  const next = others.length < before.length && isBeside ? others : [...others, member];
  next.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (next.length < 2) {
    const [[l, h] = [layer, head]] = next;
    chosen.change({ layer: l, head: h }, { members: [], show: "map" });
  } else chosen.change({}, { members: next, show: "beside", kind: "head" });
  chosen.since = event?.timeStamp;
  view.invalidate("layout", "tools");
  chosen.say();
}

// The maps and the numbers of the heads, on one scale; null while one is on its way
/** @param {View} view @param {(of: Parameters<typeof keyOf>[0] & import("./types.js").Shown) => Lens} lensOf @returns {Shown[]} */
function shownOf(view, lensOf) {
  const { picture, site, remote, place } = view;
  return headsBeside(view).map((member) => {
    const options = /** @type {import("./types.js").Options} */ ({ ...view.options, members: [], kind: "head" });
    const lens = lensOf({ picture, site, remote, place: { ...place, layer: member[0], head: member[1] }, options });
    return { member, lens, tile: lens.tile([0, lens.n_query, 0, lens.n_key]) };
  });
}

// The largest weight that the colours of all of them go to; without the column that is set apart
/** @param {View} view @param {Shown[]} shown */
function topOf(view, shown) {
  const { sink } = view.shading;
  if (sink === null) return Math.max(...shown.map(({ lens }) => lens.top));
  return Math.max(LEAST_TOP, ...shown.map(({ lens }) => lens.topWithout(sink)));
}

/** @param {View} view @param {Shown} shown @param {Place} place @returns {Heatmap} */
function heatmapOf(view, { lens, tile }, { x, y, size, style, top }) {
  const [rows, columns] = [tile?.rows ?? lens.n_query, tile?.columns ?? lens.n_key];
  const { scale, sink, whole } = view.shading;
  const ends = endsOf(whole, top, view.options.bounds);
  const grey = greyScale(style.palette);
  const isApart = tile?.exact && columns === lens.n_key;
  const { css, ink, packed } = style.colour;
  const most = tile && scale === "row" ? rowTops(tile) : null;
  const type = clamp((0.8 * size) / Math.max(lens.n_query, lens.n_key), 0, WORD[1]);
  const isNamed = Math.max(lens.n_query, lens.n_key) <= NAMED && type >= WORD[0];
  const names = (/** @type {string[]} */ labels, /** @type {object} */ how) =>
    isNamed ? { list: labels.map((label) => short(label)), colour: style.palette.ink, size: type, ...how } : undefined;
  return {
    rows,
    columns,
    x,
    y,
    w: size / columns,
    h: size / rows,
    gap: size / columns > 8 ? 1 : 0,
    mirrored: isMirrored(view.picture, view.site),
    empty: style.palette.line,
    tone: (row, column) => {
      if (!tile) return null;
      const value = tile.values[row * columns + column];
      if (isApart && column === sink) return grey(value);
      const level = most ? Math.round((255 * value) / (most[row] || 1)) : levelOf(whole, value, ends);
      return { fill: css[level], ink: ink[level], packed: packed[level] };
    },
    masked: (row, column) => {
      const code = tile?.masked?.[row * columns + column] ?? 0;
      return code !== 0 && code !== HIDDEN;
    },
    rowNames: names(lens.queries, {}),
    columnNames: names(lens.keys, { lean: -55 }),
  };
}

/** @param {import("./types.js").Tile} tile */
const rowTops = ({ rows, columns, values }) =>
  Array.from({ length: rows }, (_, r) =>
    values.subarray(r * columns, (r + 1) * columns).reduce((a, b) => Math.max(a, b), 0),
  );

// Room for the names of the rows and above the columns
/** @param {Lens} lens @param {number} size @param {string} font */
function namesRoom(lens, size, font) {
  const type = clamp((0.8 * size) / Math.max(lens.n_query, lens.n_key), 0, WORD[1]);
  if (Math.max(lens.n_query, lens.n_key) > NAMED || type < WORD[0]) return { left: 4, top: 4 };
  const longest = (/** @type {string[]} */ labels) =>
    labels.reduce((most, label) => Math.max(most, widthOf(short(label), type, font)), 0);
  return { left: longest(lens.queries) + 10, top: 0.85 * longest(lens.keys) + type };
}

// How many maps are in a line, and how large each is, so that all of them fit
/** @param {number} n @param {number} width @param {number} height @param {number} least of the width of one, for its title @param {Lens} lens @param {string} font */
export function arranged(n, width, height, least, lens, font) {
  const most = clamp(Math.floor((width + GAP) / (least + GAP)), 1, Math.max(1, n));
  const ways = Array.from({ length: most }, (_, i) => i + 1);
  const tried = ways.map((across) => {
    const down = Math.ceil(n / across);
    const box = { w: (width - (across - 1) * GAP) / across, h: (height - (down - 1) * GAP) / down - TITLE };
    const room = namesRoom(lens, Math.min(box.w, box.h) * 0.8, font);
    return { across, room, size: Math.min(box.w - room.left - 8, box.h - room.top - 6) };
  });
  return tried.reduce((best, way) => (way.size > best.size ? way : best));
}

export class SideBySide {
  /** @type {Map<string, Lens>} */
  lenses = new Map();
  /** @type {{box: HTMLElement, name: HTMLButtonElement, said: HTMLElement, map: HeatmapView}[]} */
  parts = [];
  /** @type {Shown[]} */
  shown = [];

  /** @param {View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "beside");
    setAll(this.box, { role: "group", "aria-label": words.beside_label });
    this.grid = add(this.box, "div", "maps");
    this.note = add(this.box, "p", "note");
    this.box.hidden = true;
  }

  /** @param {Parameters<typeof keyOf>[0] & import("./types.js").Shown} of */
  lensOf = (of) => {
    const key = keyOf(of);
    let lens = this.lenses.get(key);
    if (!lens) {
      if (this.lenses.size >= 4 * MOST) this.lenses.delete(String(this.lenses.keys().next().value));
      this.lenses.set(key, (lens = new Lens(of)));
    }
    return lens;
  };

  forget() {
    this.lenses.clear();
  }

  draw() {
    const { view } = this;
    this.box.hidden = view.options.show !== "beside";
    if (this.box.hidden) return;
    this.shown = shownOf(view, this.lensOf);
    const { shown } = this;
    while (this.parts.length < shown.length) this.parts.push(this.made(this.parts.length));
    this.parts.forEach(({ box }, i) => (box.hidden = i >= shown.length));
    const { mapWidth, height, family, em } = view.room;
    const tall = Number.isFinite(height) ? view.room.mapHeight - 2.4 * em : shown.length * mapWidth;
    const { across, room, size } = arranged(shown.length, mapWidth, tall, TITLED * em, shown[0].lens, family);
    this.grid.style.gridTemplateColumns = `repeat(${across}, max-content)`;
    Object.assign(this.box.dataset, { left: room.left, top: room.top, size });
    const style = { palette: view.palette, colour: view.palette.tones, font: family };
    const top = topOf(view, shown);
    shown.forEach((one, i) => {
      const { name, map } = this.parts[i];
      const [layer, head] = one.member;
      setText(name, fill(words.place, { layer, head }));
      map.label = fill(words.beside_map, { layer, head });
      const drawn = heatmapOf(view, one, { x: room.left, y: room.top, size, style, top });
      map.draw(drawn, room.left + size + 8, room.top + size + 2, { hatch: view.palette.hatch, font: family });
    });
    const more = view.options.members.length - MOST;
    const { low, high } = view.shading.ticks(top, 2);
    const scale = view.shading.scale === "row" ? words.per_row : fill(words.beside_scale, { low, high });
    setText(this.note, [scale, more > 0 ? words.beside_full : "", words.beside_how].filter(Boolean).join(" "));
    this.mark();
  }

  // The chosen row and the cell that is pointed at, in every map
  mark() {
    if (this.box.hidden) return;
    const { view } = this;
    const { palette, chosen } = view;
    const { query, key } = view.numbers.at();
    this.shown.forEach(({ member, lens, tile }, i) => {
      const { map, name, said } = this.parts[i];
      const [layer, head] = member;
      const isChosen = layer === chosen.place.layer && head === chosen.place.head;
      name.setAttribute("aria-pressed", String(isChosen));
      const part = (/** @type {number} */ at, /** @type {number} */ n, /** @type {number} */ of) =>
        Math.floor((at * of) / n);
      const [rows, columns] = [tile?.rows ?? 1, tile?.columns ?? 1];
      const row = query === null ? undefined : part(query, lens.n_query, rows);
      const column = key === null || key === undefined ? undefined : part(key, lens.n_key, columns);
      map.frame([
        ...(row === undefined ? [] : [{ row, colour: palette.query }]),
        ...(row === undefined || column === undefined ? [] : [{ row, column, colour: palette.key, out: 1 }]),
      ]);
      const weights = query === null ? null : lens.row(query)?.weights;
      const best = weights?.indexOf(weights.reduce((a, b) => Math.max(a, b), 0));
      const at = key ?? best;
      setText(
        said,
        weights && at != null
          ? fill(words.beside_said, { key: short(lens.keys[at]), share: percent(weights[at]) })
          : "",
      );
    });
  }

  /** @param {number} i */
  made(i) {
    const { view } = this;
    const box = add(this.grid, "figure");
    const top = add(box, "figcaption");
    const name = /** @type {HTMLButtonElement} */ (top.appendChild(el("button", "quiet")));
    const said = add(top, "span", "mute");
    const host = add(box, "div", "host");
    const map = new HeatmapView(host, " ");
    const cell = (/** @type {MouseEvent} */ event) => {
      const [at, { lens, tile } = {}] = [map.at(event), this.shown[i]];
      if (!at || !lens || !tile) return null;
      const [query, key] = [
        Math.floor((at[0] * lens.n_query) / tile.rows),
        Math.floor((at[1] * lens.n_key) / tile.columns),
      ];
      return { query: lens.firstQuery(query), key: lens.firstKey(key) };
    };
    host.addEventListener("pointermove", (event) => view.chosen.point(cell(event), event));
    host.addEventListener("pointerleave", () => view.chosen.point(null));
    const choose = (/** @type {Event} */ event, /** @type {number | undefined} */ query) => {
      const [layer, head] = this.shown[i].member;
      view.chosen.go({ layer, head, ...(query === undefined ? {} : { query }) }, event);
    };
    name.addEventListener("click", (event) => choose(event, undefined));
    host.addEventListener("click", (event) => choose(event, cell(event)?.query));
    return { box, name, said, map };
  }
}

// The same for taking away
/** @param {import("./figureparts.js").Still} view @param {import("./figureparts.js").Style} style @param {import("./figureparts.js").About} about */
export function besideFigure(view, style, about) {
  const shown = shownOf(view, (of) => new Lens(of));
  if (shown.some(({ tile }) => !tile)) return null;
  const { palette, font } = style;
  const room = namesRoom(shown[0].lens, PAPER, font);
  const across = Math.min(2, shown.length);
  const [wide, high] = [room.left + PAPER + GAP, room.top + PAPER + TITLE + GAP];
  const width = Math.max(560, 2 * MARGIN + across * wide - GAP);
  /** @type {import("../../kit/browser/types.js").Shape[]} */
  const shapes = [];
  const y = heading(shapes, width, style, about);
  const top = topOf(view, shown);
  shown.forEach((one, i) => {
    const [x, from] = [MARGIN + (i % across) * wide, y + Math.floor(i / across) * high];
    const [layer, head] = one.member;
    shapes.push(text(x, from + TITLE / 2, [[fill(words.place, { layer, head }), palette.ink, 650]], WORD[1]));
    const map = heatmapOf(view, one, { x: x + room.left, y: from + TITLE + room.top, size: PAPER, style, top });
    const { query } = view.place;
    const row = query === null ? null : Math.floor((one.lens.queryOf(query) * map.rows) / one.lens.n_query);
    shapes.push(...shapesOf({ ...map, frames: row === null ? [] : [{ row, colour: palette.query }] }));
  });
  const masked = shown.map(({ tile }) => tile?.masked).find(Boolean) ?? null;
  const ends = y + Math.ceil(shown.length / across) * high;
  const bottom = legend(shapes, ends, width, view, shown[0].lens, { masked, top }, style);
  return finish(shapes, width, bottom, style, [about.caption, ...about.said]);
}
