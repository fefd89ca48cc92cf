// One head, large: query down, key across, masked cells hatched, exact values on hover; or the same numbers as a table.

import { fit } from "../../kit/browser/colours.js";
import { WORDS as words } from "./constants.js";
import {
  add,
  arrow,
  button,
  choice,
  clamp,
  el,
  fill,
  isStill,
  focusable,
  hint,
  number,
  percent,
  quoted,
  short,
  worded,
} from "../../kit/browser/dom.js";
import { Atlas } from "./atlas.js";
import { Fold } from "./fold.js";
import { rowName, whichOf } from "../../kit/browser/labels.js";
import { unpack } from "../../kit/browser/messages.js";
import { isMirrored, mirrored } from "../../kit/browser/direction.js";
import { named, Slide } from "./motion.js";
import { isGuess, writes } from "./next.js";
import { roleName, roleOf } from "./roles.js";
import { cover } from "../../kit/browser/cover.js";
import { paintShapes, text } from "../../kit/browser/scene.js";
import { beside, cells, shares, stair, tiled } from "./cells.js";
import { Table } from "./table.js";
import { isPerHead } from "./values.js";
import { pointed } from "../../kit/browser/language.js";

const MANY_CELLS = 6000; // above, cells are drawn as one picture instead of one by one
const MOST_CHIPS = 12;
const LONGEST = 150; // labels that are measured to find the widest
/** @typedef {import("./types.js").At} At */
/** @typedef {import("./types.js").Area} Area */
/** @typedef {import("./types.js").DrawnTile} DrawnTile */
/** @typedef {import("../../kit/browser/types.js").TextPart} TextPart */
/** @typedef {import("../../kit/browser/types.js").Shape} Shape */
/** @typedef {import("../../kit/browser/types.js").Choice<any>} Choice */
const ZOOM_FROM = 24; // tokens; below, every cell is large enough as it is
const MOST_UPRIGHT = 80; // keys whose words may stand above their columns, where they fit
const MOST_ROWS = 48; // queries beside that: of more, rows would be lines
const PROJECTED = 1.3; // em, of the words above a map that the last row of a class must read
const FADES = 160; // ms
const SHORT = 24; // keys of a text whose rows have room to say more in large type
const APART = 1.05; // of their type, from a name to the next
const NEXT = 10; // em, for what a row is about to write
const LEGIBLE = 0.82; // em, of the words over a projected map: a window of any size is as large on the wall
const AFTER = 6.5; // em, for the same of the last row, right of the map
const DIGIT = 0.31; // of the type of a word, the width of a digit that says which of several it is

export class HeadMap {
  /** @type {Area | null} The part of the map on the screen */
  area = null;
  /** @type {Record<string, unknown>} What it drew, for the room's status */
  said = {};
  /** @type {string | undefined} How many rows and columns that is of */
  sizes;
  /** @type {import("./types.js").Geometry} Where the last draw() put things */
  geometry;
  /** @type {DrawnTile | undefined} */
  lastTile;
  /** @type {{x: number, y: number, area: Area, cell: number, moved: boolean} | null} */
  dragging = null;
  /** @type {[x?: number, y?: number]} What showTip() was last called with */
  tipAt = [];
  /** @type {HTMLCanvasElement | undefined} The head before, as it goes */
  ghost;
  /** @type {string | undefined} Which numbers were drawn last */
  faded;
  /** @type {{query: number | null, pin: number | null}} What was locked before a double click */
  before;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    /** @type {WeakMap<string[], Record<string, number>>} */
    this.widths = new WeakMap(); // of the longest of some labels, by these
    /** @type {WeakMap<string[], number[]>} */
    this.each = new WeakMap(); // and of each of them
    this.head = add(parent, "div", "head");
    this.title = add(this.head, "h2");
    this.atlas = new Atlas(view, this.head);
    this.row = add(this.head, "div", "tools");
    this.box = focusable(add(parent, "div", "matrix"), "application", words.map_label);
    this.base = add(this.box, "canvas");
    this.over = add(this.box, "canvas", "over");
    this.refusal = add(this.box, "p", "refusal");
    this.refusal.hidden = true;
    this.fold = new Fold(view, this);
    this.slide = new Slide();
    this.table = new Table(view, parent);
    this.note = add(parent, "p", "note");
    this.sinkButton = button("", "quiet", (e) => this.hideSink(e));
    this.box.addEventListener("pointermove", (e) => this.move(e));
    this.box.addEventListener("pointerleave", () => !this.dragging && view.chosen.point(null));
    this.box.addEventListener("pointerdown", (e) => this.down(e));
    this.box.addEventListener("pointerup", (e) => this.up(e));
    this.box.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("click", (e) => this.click(e));
    this.box.addEventListener("dblclick", (e) => {
      const at = this.labelAt(e);
      if (at) view.chosen.relock(this.before);
      view.chosen.hideAt(at, e);
    });
    this.box.addEventListener("blur", () => view.chosen.point(null));
  }

  // Colours or type have changed.
  forget() {
    this.widths = new WeakMap();
    this.each = new WeakMap();
  }

  // Ask for the numbers before the page is laid out for them: the server works while the browser does.
  ask() {
    this.keepArea();
    if (!this.view.lens().whole) this.view.lens().tile(/** @type {Area} */ (this.area));
  }

  // The same part of the map as long as that has as many rows and columns
  keepArea() {
    const { n_query, n_key } = this.view.lens();
    const [, q1, , k1] = this.area ?? [0, Infinity, 0, Infinity];
    const isOther = this.sizes !== undefined && this.sizes !== `${n_query},${n_key}`;
    if (isOther || !(q1 <= n_query && k1 <= n_key)) {
      this.area = null; // tokens became words
      this.view.chosen.set("area", null);
    }
    this.sizes = `${n_query},${n_key}`;
    this.area ??= [0, n_query, 0, n_key];
  }

  build() {
    this.keepArea();
    this.markSink();
    this.drawTitle(); // a long one takes two lines, which the layout must know
  }

  // What the picture is of, at full length where one points at it
  drawTitle() {
    const lens = this.view.lens();
    const lines = this.linesTitle;
    if (lines) return this.title.replaceChildren(el("b", "", lines));
    const titles = words.sites[this.view.site.id];
    this.title.replaceChildren(el("b", "", lens.title), lens.kind === "head" ? " " : "\u00a0");
    if (lens.kind !== "head")
      this.title.append(hint(words.kinds[lens.kind][1])); // what the name means, and whose it is
    else if (this.view.sites.length === 1) this.title.append(el("span", "", titles?.[2] ?? this.view.site.id)); // else its tab says so
    this.atlas.draw();
    const role = this.role();
    if (role) this.title.append(" ", el("span", "role", role));
    if (this.isOpenedByRule) {
      const rule = el("span", "rule", words.opened);
      rule.title = words.opened_help;
      this.title.append(" ", rule);
    }
    this.title.title = `${lens.kind === "head" ? "" : `${lens.fullTitle}. `}${titles?.[1] ?? ""} ${words.axes_help}`;
  }

  // Of lines of several heads: which they are, instead of the one head that the facts are of
  get linesTitle() {
    const { members, show, kind } = this.view.options;
    if (show !== "lines" || !members.length || !isPerHead(kind)) return "";
    const [[layer, head]] = members;
    if (members.length === 1) return fill(words.place, { layer, head });
    const same = members.every((pair) => pair[0] === layer);
    return fill(same ? words.lines_title : words.lines_title_layers, { n: members.length, layer });
  }

  // Where the largest part of the head's attention goes, if that says something of it; "" while it is fetched
  role() {
    if (this.view.lens().kind !== "head") return "";
    const [name, p] = roleOf(this.view);
    if (name === "mixed") return "";
    return fill(/** @type {Record<string, string>} */ (words.roles)[name] ?? words.roles_rest, {
      share: percent(p),
      name: roleName(name),
    });
  }

  // Whether this is where the picture opened by the rule of core.read.head_roles.opening_edges
  get isOpenedByRule() {
    const { picture, place, options } = this.view;
    const opening = picture.openings?.[place.site];
    return (
      options.kind === "head" &&
      Boolean(opening) &&
      opening?.[0] === place.layer &&
      opening[1] === place.head &&
      opening[2] === place.query
    );
  }

  // What it adds to the row of tools above it
  tools() {
    const { site, sites } = this.view;
    const tools = [];
    if (sites.length > 1) {
      /** @type {Choice[]} */
      const options = sites.map(({ id }) => [id, worded(words.tabs, id), words.sites[id]?.[1]]);
      tools.push(choice(words.kind, options, site.id, (id) => this.view.chosen.go({ site: id })));
    }
    if (this.canFold) {
      /** @type {Choice[]} */
      const parts = [
        [false, words.fold, words.fold_help],
        [true, words.whole, words.whole_help],
      ];
      tools.push(
        choice(words.fold_label, parts, this.view.options.whole, (whole, e) => this.view.chosen.set("whole", whole, e)),
      );
    }
    if (this.zooms()) tools.push(this.zoomButtons());
    const apart = this.apart();
    if (apart) tools.unshift(apart);
    return tools;
  }

  // Whether the colours leave out the token that most heads rest on
  apart() {
    const { chosen, picture, site, shading, room } = this.view;
    const { rests } = shading;
    const isMap = this.view.options.show === "map" && this.view.lens().unit === "weight";
    if (!rests || rests.key === null || !isMap || site.n_key < 3 || isGuess(this.view)) return null;
    const key = quoted(picture.tokens[site.key]?.[rests.key] ?? "");
    const [low, high] = rests.between.map((x) => Math.round(100 * x));
    const range = low === high ? `${low} %` : `${low}–${high} %`;
    const box = el("span", "apart");
    if (!room.narrow)
      box.append(el("span", "mute", rests.key === 0 && site.id === "decoder" ? words.set_apart : key), " ");
    /** @type {Choice[]} */
    const options = [
      ["out", words.set_apart_out, fill(words.set_apart_out_help, { key, range })],
      ["in", words.set_apart_in, words.set_apart_in_help],
    ];
    box.append(choice(words.set_apart_label, options, chosen.sink, (sink) => chosen.setSink(sink)));
    return box;
  }

  // Whether there is more than the screen shows at a size that can be read
  get canFold() {
    const { options } = this.view;
    const { narrow } = this.view.room;
    const isSmall = (narrow && !this.geometry?.isFold && !options.whole) || this.isEven; // and all there
    return options.show === "map" && !isSmall && !this.geometry?.isHeader && !this.fold.isAsked;
  }

  // Whether the words of a short text lean, as they do where equal columns are too narrow for them
  get isEven() {
    return this.isEqual && !this.view.room.isLong && !this.view.room.narrow;
  }

  zooms() {
    const { options, site } = this.view;
    const isLarge = Math.max(site.n_query, site.n_key) > ZOOM_FROM;
    return options.show === "map" && isLarge && !this.isEven && !this.geometry?.isHeader && !this.geometry?.isFold;
  }

  // What it adds to the options of the picture
  settings() {
    const { options, picture, site } = this.view;
    /** @type {[name: string, says: [text: string, help: string]][]} */
    const kinds = Object.entries(words.kinds).filter(
      ([name]) => !(name === "rollout" && site.id === "cross") && !(name === "value" && picture.brought),
    );
    const kind = choice(
      words.shows,
      kinds.map(([name, [text, help]]) => /** @type {Choice} */ ([name, text, help])),
      options.show === "lines" ? options.kind : this.view.lens().kind,
      (name, e) => {
        if (name === "head" && options.show !== "lines") this.view.chosen.set("members", [], e); // one of them, and not their mean
        this.view.chosen.set("kind", name, e);
      },
    );
    /** @type {Choice[]} */
    const merge = [
      [false, words.words_off],
      [true, words.words_on],
    ];
    const joined = choice(words.words_setting, merge, options.words, (on, e) => this.view.chosen.set("words", on, e));
    if (!picture.words[site.query].length && !picture.words[site.key].length)
      joined.append(el("span", "aside", words.words_whole));
    /** @type {Choice[]} */
    const wide = [
      ["words", words.columns_words],
      ["equal", words.columns_equal],
    ];
    const columns = choice(words.columns_setting, wide, options.widths, (of, e) =>
      this.view.chosen.set("widths", of, e),
    );
    return [
      { label: words.shows, node: kind, help: words.shows_help },
      { label: words.hidden_label, node: this.hiddenTokens(), help: words.hidden_help },
      { label: words.words_setting, node: joined, help: words.words_help },
      ...(this.hasColumns ? [{ label: words.columns_setting, node: columns, help: words.columns_help }] : []),
    ];
  }

  // Whether there are columns whose width a visitor may choose
  get hasColumns() {
    return this.view.options.show === "map" && !this.view.room.isLong && !this.view.room.narrow;
  }

  // The tokens that are hidden, each a button that shows it again
  hiddenTokens() {
    const { options, site, picture } = this.view;
    const box = el("span", "chips");
    for (const k of options.hide.slice(0, MOST_CHIPS)) {
      const label = picture.tokens[site.key]?.[k] ?? "";
      const title = fill(words.unhide, { token: label });
      const chip = button(`${short(label)} ×`, "quiet", (e) => this.view.chosen.hide([k], e), title);
      chip.ariaLabel = title;
      box.append(chip);
    }
    if (options.hide.length > 1)
      box.append(button(words.unhide_all, "quiet", (e) => this.view.chosen.set("hide", [], e)));
    if (!options.hide.length) box.append(el("span", "mute", words.hidden_none), " ");
    return box;
  }

  // The sink goes with one click, and comes back with another.
  /** @param {Event} e */
  hideSink(e) {
    const sink = this.view.lens().sink();
    if (this.view.options.hide.length) this.view.chosen.set("hide", [], e);
    else if (sink !== null) this.view.chosen.hide([sink], e);
  }

  markSink() {
    const { options, picture, site } = this.view;
    const sink = this.view.lens().sink();
    const isOn = options.hide.length > 0;
    const token = sink === null ? "" : (picture.tokens[site.key]?.[sink] ?? "");
    this.sinkButton.hidden = (sink === null && !isOn) || site.n_key < 2;
    const same = (picture.tokens[site.key] ?? []).filter((label) => label === token).length;
    const named = same > 1 ? fill(words.which, { token: short(token), i: sink }) : short(token); // of several, by its place
    this.sinkButton.textContent = isOn ? words.unhide_all_short : fill(words.hide_sink, { token: named });
    this.sinkButton.title = isOn ? words.hidden_help : fill(words.hide_sink_help, { token });
    this.sinkButton.setAttribute("aria-pressed", String(isOn));
  }

  zoomButtons() {
    const box = el("span", "seg");
    /** @type {[text: string, title: string, factor: number][]} */
    const buttons = [
      ["−", words.zoom_out, 2],
      ["+", words.zoom_in, 0.5],
      ["⤢", words.zoom_fit, Infinity],
    ];
    for (const [text, title, factor] of buttons) {
      const made = button(text, "", () => this.zoom(factor), title);
      made.ariaLabel = title;
      box.append(made);
    }
    return box;
  }

  // Where rows, columns and labels are, in a box of this size. As long as the words of the text fit above the map, each stands
  // upright over its own column (isHeader), which is as wide as the word; else columns are as wide as rows are high.
  /** @param {number} width @param {number} height @param {number} em @returns {import("./types.js").Geometry} */
  measure(width, height, em) {
    const header = this.header(width, height, em);
    if (header) return (this.isEqual ? this.header(width, height, em, true) : header) ?? this.even(width, height, em);
    const { queries, refused } = this.view.lens();
    const isFolded = this.fold.isWanted && !refused && (!this.view.room.narrow || this.isCrowded(width, height, em));
    if (isFolded) return this.fold.measure(width, height, em, this.leftOf(queries, 0, this.rows, em, em));
    return this.even(width, height, em);
  }

  // Whether the text is too long for all of its map to be read at this size, also where a visitor chose to see all of it
  /** @param {number} width @param {number} height @param {number} em */
  isLongIn(width, height, em) {
    if (this.view.room.narrow) return this.zoomed() || this.isCrowded(width, height, em);
    return !this.fold.isAsked && !this.header(width, height, em);
  }

  // Whether a visitor chose columns that are all equally wide
  get isEqual() {
    return this.view.options.widths === "equal";
  }

  // Whether names would be left out in one column of a phone
  /** @param {number} width @param {number} height @param {number} em */
  isCrowded(width, height, em) {
    const { cell, font } = this.even(width, height, em);
    return cell < font * APART;
  }

  // The same with columns as wide as rows are high
  /** @param {number} width @param {number} height @param {number} em @returns {import("./types.js").Geometry} */
  even(width, height, em) {
    const [q0, q1, k0, k1] = /** @type {Area} */ (this.area);
    const { queries, keys } = this.view.lens();
    const { narrow } = this.view.room;
    const rows = q1 - q0;
    const columns = k1 - k0;
    const guess = Math.min(width / (columns + 3), height / (rows + 3));
    const font = clamp(guess * (this.view.options.projector ? 0.8 : 0.68), (narrow ? 0.72 : 0.66) * em, em);
    const left = this.leftOf(queries, q0, q1, font, em);
    const tall = this.longest(keys, k0, k1, font);
    const isUpright = this.isUpright;
    const lean = isUpright || narrow ? 0 : tall * 0.5; // room for the last label, which leans to the right
    const top = narrow ? tall + font * 0.6 + 0.95 * em : isUpright ? 2 * em : tall * 0.87 + font * 0.6 + 0.6 * em;
    const across = Math.min((width - left - 2) / columns, (width - left - lean - 0.4 * em) / (columns - 0.5));
    const cell = Math.min(across, (height - top - 2) / rows, 4 * em);
    const places = Float64Array.from({ length: columns + 1 }, (_, k) => left + k * cell);
    const xs = this.isMirrored ? mirrored(places) : places;
    const all = left + Math.max(cell * columns + 2, cell * (columns - 0.5) + lean + 0.4 * em);
    return {
      left,
      top,
      cell,
      font,
      xs,
      isHeader: false,
      isFold: false,
      isMirrored: this.isMirrored,
      header: 0,
      width: all,
    };
  }

  // Whether the first key stands at the right
  get isMirrored() {
    return isMirrored(this.view.picture, this.view.site);
  }

  // How many rows are on the screen
  get rows() {
    const [q0, q1] = /** @type {Area} */ (this.area);
    return q1 - q0;
  }

  // Labels of a letter or two do not lean
  get isUpright() {
    return this.view.lens().keys.every((label) => label.length < 3 || /^[[<].*[\]>]$/.test(label));
  }

  // How far the labels of keys turn: on a phone they stand upright, where there is no room to lean
  get tilt() {
    return this.view.room.narrow ? Math.PI / 2 : Math.PI / 3;
  }

  // The same where the words stand above their columns; null where they do not fit, or only a part of the map is shown
  /** @param {number} width @param {number} height @param {number} em @param {boolean} [isEqual] @returns {import("./types.js").Geometry | null} */
  header(width, height, em, isEqual = false) {
    const lens = this.view.lens();
    const { queries, keys, n_key: n, n_query: rows } = lens;
    if (this.view.room.narrow || this.zoomed() || n > MOST_UPRIGHT || rows > MOST_ROWS) return null;
    const top = 2;
    const cell = Math.min((height - top - 2) / rows, 3.3 * em);
    const font = clamp(cell * 0.62, 0.66 * em, em);
    const isStair = this.hasNext && this.view.site.query === this.view.site.key && !this.isMirrored;
    const left = this.leftOf(queries, 0, rows, font, em, !isStair);
    const { projector } = this.view.options;
    const room = width - left - 2 - (isStair ? this.after * em : 0);
    const each = this.widthsOf(keys).map((w, k) => w + DIGIT * whichOf(keys, k).length); // of type of one pixel
    const widths = isEqual ? each.map(() => Math.max(...each)) : each;
    const sum = widths.reduce((all, w) => all + w, 0);
    const least = Math.min((projector ? 1.2 : 2.6) * em, (0.8 * room) / n); // one letter alone has a column that a finger can find
    const padding = projector ? 0.45 : 0.7; // of the type, on both sides of a word together
    // The largest type with which all of them fit
    let size = clamp(room / (sum + padding * n), 0.5 * em, PROJECTED * em);
    for (let again = 0; again < 4; again++) {
      const taken = widths.reduce((all, w) => all + Math.max(least, (w + padding) * size), 0);
      if (taken > room) size *= room / taken;
    }
    if (size < (projector ? LEGIBLE : 0.72) * em) return null;
    const own = widths.map((w) => Math.max(least, (w + padding) * size));
    const spare = Math.max(0, room - own.reduce((all, w) => all + w, 0)) / n;
    const places = new Float64Array(n + 1);
    places[0] = left;
    for (let k = 0; k < n; k++) places[k + 1] = places[k] + own[k] + Math.min(spare, 2.2 * em);
    const xs = this.isMirrored ? mirrored(places) : places;
    return {
      left,
      top,
      cell,
      font,
      xs,
      isHeader: true,
      isFold: false,
      isMirrored: this.isMirrored,
      isStair,
      header: size,
      width,
    };
  }

  // em, for what the last row is about to write, right of the map
  get after() {
    return this.view.options.projector ? 5 : AFTER;
  }

  // Room for the names of the rows, and for what they are about to write, where that is said beside them
  /** @param {string[]} queries @param {number} q0 @param {number} q1 @param {number} font @param {number} em */
  leftOf(queries, q0, q1, font, em, isBeside = this.hasNext) {
    const names = Math.max(
      (this.view.options.projector ? 3 : 4.4) * em,
      this.longest(queries, q0, q1, font) + 0.9 * em,
    );
    return names + (isBeside && this.hasNext ? NEXT * em : 0);
  }

  // Whether rows say what they are about to write: a projected long text leaves that to its headline
  get hasNext() {
    const { narrow } = this.view.room;
    const { options } = this.view;
    return writes(this.view) && !narrow && !(options.projector && this.view.lens().n_key > SHORT);
  }

  // The widest of some labels in bold type, in pixels
  /** @param {string[]} labels @param {number} from @param {number} to @param {number} font */
  longest(labels, from, to, font) {
    const context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    context.font = `600 ${font}px ${this.view.room.family}`;
    const known = this.widths.get(labels) ?? {};
    const name = [from, to, context.font].join();
    if (known[name] === undefined) {
      const tried = new Set(labels.slice(from, to).map(short));
      const some = [...tried].sort((a, b) => b.length - a.length).slice(0, LONGEST); // a few letters more are not always wider
      known[name] = some.reduce((most, label) => Math.max(most, context.measureText(label).width), 0);
      this.widths.set(labels, known);
    }
    return known[name];
  }

  // How wide each label is for each pixel of its type
  /** @param {string[]} labels */
  widthsOf(labels) {
    const known = this.each.get(labels);
    if (known) return known;
    const context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    context.font = `600 20px ${this.view.room.family}`;
    /** @type {Map<string, number>} */
    const widths = new Map(); // a text has far fewer words than tokens
    const found = labels.map((label) => {
      const width = widths.get(label) ?? context.measureText(short(label)).width / 20;
      widths.set(label, width);
      return width;
    });
    this.each.set(labels, found);
    return found;
  }

  // What to draw for the part on the screen, or null while it is fetched
  /** @returns {DrawnTile | null} */
  tile() {
    const lens = this.view.lens();
    const tile = lens.tile(/** @type {Area} */ (this.area));
    return tile && { ...tile, of: lens.key, top: lens.top };
  }

  // Until the tile is there: the one before, if it shows a part of this picture, or else the small picture of the head
  /** @returns {DrawnTile} */
  standIn() {
    const { site, place, picture } = this.view;
    const lens = this.view.lens();
    const last = this.lastTile;
    const [q0, q1, k0, k1] = /** @type {Area} */ (this.area);
    const [a0, a1, b0, b1] = last?.area ?? [0, 0, 0, 0];
    if (last?.of === lens.key && a0 < q1 && a1 > q0 && b0 < k1 && b1 > k0)
      return { ...last, exact: false, how: words.loading };
    /** @type {Area} */
    const area = [0, lens.n_query, 0, lens.n_key];
    const blank = {
      rows: 1,
      columns: 1,
      values: new Float32Array(1),
      masked: null,
      exact: false,
      how: words.loading,
      area,
      of: lens.key,
      top: 1,
    };
    if (!lens.plain || picture.whole || !site.isPictured(place.layer)) return blank; // the picture of one head would stand for several
    const small = site.thumbnail(place.layer, place.head);
    return { ...blank, ...small, values: Float32Array.from(small.values, (v) => (v / 255) ** 2) };
  }

  draw() {
    this.drawTitle();
    const { show } = this.view.options;
    this.box.hidden = show !== "map";
    this.table.box.hidden = show !== "table";
    this.note.hidden = show === "lines" || show === "beside"; // they have their own
    if (show !== "map") this.drawNote("");
    if (show !== "map") return;
    if (this.isRefused()) return; // the last picture stays
    if (!this.geometry?.isHeader)
      this.geometry = this.measure(this.view.room.mapWidth, this.view.room.mapHeight, this.view.room.em); // a part of it may be on the screen by now
    const g = this.geometry;
    this.fade();
    const context = fit(this.base, this.view.room.mapWidth, this.view.room.mapHeight);
    if (g.isFold) return this.drawFold(context);
    const own = this.tile();
    const tile = own ?? this.standIn();
    this.lastTile = tile;
    const how = tile.exact ? "" : tile.how === words.loading ? words.loading : fill(words.sampled, { how: tile.how });
    this.drawNote(how);
    const columns = g.isHeader || g.isMirrored ? Array.from(g.xs, (x) => x.toFixed(1)).join(" ") : "";
    this.said = { exact: tile.exact, fetching: !own, ...placed(g), columns, folded: "", row: "" };
    const [q0, q1, k0, k1] = /** @type {Area} */ (this.area);
    const [a0, a1, b0, b1] = tile.area;
    const down = (g.cell * (a1 - a0)) / tile.rows; // on the screen, one cell of the tile
    const y0 = g.top + (a0 - q0) * g.cell;
    const isExact = tile.columns === b1 - b0;
    const across = g.isHeader ? Infinity : (g.cell * (b1 - b0)) / tile.columns;
    const [start, end] = [Math.min(g.xs[0], g.xs[k1 - k0]), Math.max(g.xs[0], g.xs[k1 - k0])];
    const x0 = g.isMirrored ? end - (b0 - k0) * g.cell : start + (b0 - k0) * g.cell; // where the tile's first column begins
    // Left edge and width of a column of the tile
    /** @param {number} c @returns {[x: number, width: number]} */
    const column = (c) => {
      if (!g.isHeader) return [g.isMirrored ? x0 - (c + 1) * across : x0 + c * across, across];
      const [from, to] = isExact
        ? [c, c + 1]
        : [Math.floor((c * (k1 - k0)) / tile.columns), Math.floor(((c + 1) * (k1 - k0)) / tile.columns)];
      return [Math.min(g.xs[from], g.xs[to]), Math.abs(g.xs[to] - g.xs[from])];
    };
    const isImage = !g.isHeader && (tile.rows * tile.columns > MANY_CELLS || across < 5);
    const rests = isExact && tile.exact ? this.view.shading.sink : null;
    context.save();
    context.beginPath();
    context.rect(g.left, g.top, end - g.left, g.cell * (q1 - q0));
    context.clip();
    this.paint(
      context,
      cells(
        {
          rows: tile.rows,
          columns: tile.columns,
          at: tiled(this.view, tile),
          column,
          y: y0,
          down,
          gap: isImage ? 0 : g.isHeader ? (down > 16 ? 2 : 1) : across > 12 ? 1 : 0.5,
          apart: rests === null ? null : rests - b0,
          inset: g.isHeader ? 0.15 : 0,
          later: this.later,
          isImage,
        },
        this.style,
      ),
    );
    context.restore();
  }

  // The head before goes in a moment, over the new one, which is there at once: where the same cells only change their colours
  fade() {
    const { view, base } = this;
    const of = view.lens().key;
    const before = this.faded;
    this.faded = of;
    const isOther = before !== undefined && before !== of && before.split("|")[0] === of.split("|")[0];
    this.ghost?.remove();
    if (!isOther || isStill()) return;
    const isSame =
      base.clientWidth > 0 &&
      Math.abs(base.clientWidth - view.room.mapWidth) < 1 &&
      Math.abs(base.clientHeight - view.room.mapHeight) < 1;
    if (!isSame) return;
    const ghost = (this.ghost ??= Object.assign(document.createElement("canvas"), { className: "ghost" }));
    Object.assign(ghost, { width: base.width, height: base.height });
    Object.assign(ghost.style, { width: base.style.width, height: base.style.height });
    /** @type {CanvasRenderingContext2D} */ (ghost.getContext("2d")).drawImage(base, 0, 0);
    this.over.before(ghost);
    ghost.animate([{ opacity: 1 }, { opacity: 0 }], { duration: FADES, fill: "forwards" }).onfinish = () =>
      ghost.remove();
  }

  /** @param {CanvasRenderingContext2D} context */
  drawFold(context) {
    const g = this.geometry;
    const isThere = this.fold.draw(context, g);
    this.drawNote(this.fold.note());
    const shown = g.columns?.map((k, c) => [k, g.xs[c], g.xs[c + 1]].join(":")).join(" ");
    this.said = { exact: true, fetching: !isThere, ...placed(g), columns: "", folded: shown, row: g.rows?.[0] };
  }

  /** @param {string} how */
  drawNote(how) {
    this.markSink();
    const lens = this.view.lens();
    const declined = this.view.chosen.declined === lens.key ? words.hide_last : "";
    this.note.textContent = this.view.remote.failed
      ? words.offline
      : [declined, how, lens.note, this.beyond].filter(Boolean).join(" ");
  }

  // Said of a text that is longer than any that the model learnt on: what its heads do there, no one taught them
  get beyond() {
    const { picture } = this.view;
    const longest = Math.max(picture.tokens.source.length, picture.tokens.target?.length ?? 0);
    return picture.learnt && longest > picture.learnt ? fill(words.beyond, { n: number(picture.learnt) }) : "";
  }

  // How many lines the note of a folded map takes at most, whatever row is chosen
  /** @param {number} width @param {number} em */
  foldedLines(width, em) {
    const context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    context.font = `${(this.view.options.projector ? 0.7 : 0.82) * em}px ${this.view.room.family}`; // as attention.css has it
    const text = [this.fold.longestNote(), this.view.lens().note, this.beyond].filter(Boolean).join(" ");
    return Math.ceil((1.02 * context.measureText(text).width) / width); // a line ends with a word
  }

  // A picture that cannot be made: its sentence stands over the last one.
  isRefused() {
    const lens = this.view.lens();
    lens.tile(/** @type {Area} */ (this.area)); // the server may be the one to say so
    this.refusal.hidden = !lens.refused;
    this.refusal.textContent = lens.refused ?? "";
    this.box.classList.toggle("refused", Boolean(lens.refused));
    if (lens.refused) this.note.textContent = "";
    return Boolean(lens.refused);
  }

  // Colours and type of its shapes
  get style() {
    const { palette, room } = this.view;
    return { palette, colour: palette.tones, font: room.family };
  }

  /** @param {CanvasRenderingContext2D} context @param {Shape[]} shapes */
  paint(context, shapes) {
    paintShapes(context, shapes, { hatch: this.view.palette.hatch, font: this.view.room.family });
  }

  // Where the model would write stand no cells: the code of what is later.
  get later() {
    return this.geometry.isStair ? this.view.picture.reasons.indexOf("future") : -1;
  }

  drawOver() {
    if (this.view.options.show !== "map" || this.box.classList.contains("refused")) return;
    const g = this.geometry;
    const { em } = this.view.room;
    const context = fit(this.over, this.view.room.mapWidth, this.view.room.mapHeight);
    const [, , k0, k1] = /** @type {Area} */ (this.area);
    const [q0, q1] = this.band;
    const { query, column, key } = this.view.numbers.at();
    const family = this.view.room.family;
    const right = Math.max(g.xs[0], g.xs[g.xs.length - 1]);
    context.textBaseline = "middle";
    context.fillStyle = this.view.palette.mute;
    context.font = `${0.82 * em}px ${family}`;
    context.textAlign = "left";
    if (g.isFold) this.fold.drawHeader(context, g);
    else this.fold.arcs.canvas.remove();
    if (g.isFold) this.drawAxes(context);
    else if (!g.isHeader) context.fillText(g.isMirrored ? words.axes_back : words.axes, 0, 0.5 * em);
    const lit = this.view.options.spotlight && query !== null && query >= q0 && query < q1;
    if (lit) {
      context.globalAlpha = 0.85;
      context.fillStyle = this.view.palette.background;
      context.fillRect(g.left, g.top, right - g.left, g.cell * (query - q0));
      context.fillRect(g.left, g.top + g.cell * (query - q0 + 1), right - g.left, g.cell * (q1 - query - 1));
      context.globalAlpha = 1;
    }
    const every = Math.max(1, Math.ceil((g.font * APART) / g.cell));
    /** @param {number} i @param {number | null} chosen */
    const near = (i, chosen) => chosen !== null && i !== chosen && Math.abs(i - chosen) < every; // leave room for the chosen one
    const lens = this.view.lens();
    const rows = lens.queries;
    const { hasNext } = this;
    const names = g.left - (hasNext && !g.isStair ? NEXT * em : 0); // where the names of the rows end
    const called = named(rows);
    this.slide.put(
      `${this.view.picture.key},${rows.length}`,
      new Map(called.slice(q0, q1).map((name, r) => [name, g.top + (r + 0.5) * g.cell])),
    );
    if (this.slide.isMoving) requestAnimationFrame(() => this.view.invalidate("over"));
    const { style } = this;
    const { palette } = style;
    for (let q = q0; q < q1; q++) {
      const isChosen = q === query;
      if (!isChosen && ((q - q0) % every || near(q, query))) continue;
      const y = g.top + (q - q0 + 0.5) * g.cell;
      /** @type {TextPart} */
      const name = [rowName(rows, q), isChosen ? palette.query : palette.ink, isChosen ? 700 : 0];
      /** @type {Shape[]} */
      const shapes = [text(names - 0.5 * em, y + this.slide.offset(called[q]), [name], g.font, { anchor: "end" })];
      if (hasNext && g.isStair) {
        const x = g.xs[q + 1] + 0.5 * em;
        const most = Math.max(2 * em, g.xs[g.xs.length - 1] + (this.after - 3.4) * em - x);
        const small = (this.view.options.projector ? 0.94 : 0.82) * g.font;
        shapes.push(...stair(this.view, q, style, { x, y, size: g.font, small, gap: 0.3 * em, isChosen, most }).shapes);
      } else if (hasNext) {
        const [x, right, small] = [names - 0.3 * em, g.left - 0.5 * em, Math.min(g.font, 0.82 * em)];
        const how = { x, right, y, size: g.font, small, indent: 1.4 * em, isChosen, most: (NEXT - 5) * em };
        shapes.push(...beside(this.view, q, style, how));
      }
      this.paint(context, lit && !isChosen ? shapes.map((shape) => ({ ...shape, opacity: 0.3 })) : shapes);
    }
    if (query !== null && query >= q0 && query < q1) this.drawShares(context, g, query);
    const columns = lens.keys;
    context.globalAlpha = 1;
    context.textAlign = "left";
    for (let k = k0; k < k1 && !g.isHeader && !g.isFold; k++) {
      if (k !== key && ((k - k0) % every || near(k, key))) continue;
      context.save();
      const [x, w] = this.columnAt(k);
      context.translate(x + w / 2, g.top - 0.45 * em);
      if (this.isUpright && columns[k].length < 3) context.textAlign = "center";
      else context.rotate(-this.tilt);
      context.font = `${k === key ? "700 " : ""}${g.font}px ${family}`;
      context.fillStyle = k === key ? this.view.palette.key : this.view.palette.ink;
      const isOut = lens.hide.length && [lens.keyTokens[k]].flat().every((token) => lens.isHidden(token));
      context.globalAlpha = isOut ? 0.5 : 1;
      context.fillText(short(columns[k]), 0, 0);
      if (isOut) context.fillRect(-1, -0.5, context.measureText(short(columns[k])).width + 2, 1);
      context.restore();
    }
    // A band of the page's colour on either side, where there is room: some cells are as dark as the outline.
    /** @param {string} colour @param {[x: number, y: number, w: number, h: number]} box */
    const outline = (colour, ...box) => {
      const width = g.cell < 6 ? 1 : 2;
      /** @type {[style: string, thickness: number][]} */
      const bands = g.cell < 10 ? [] : [[this.view.palette.background, width + 2]];
      bands.push([colour, width]);
      for (const [style, thickness] of bands) {
        context.strokeStyle = style;
        context.lineWidth = thickness;
        context.strokeRect(...box);
      }
    };
    for (const said of cover.said) {
      const [row, key] = [
        said.length > 1 ? said[0] : (this.view.site.covered[0] ?? -1),
        /** @type {number} */ (said.at(-1)),
      ];
      const q = lens.queryOf(row);
      if (!lens.isCovered(q) || q < q0 || q >= q1 || this.placeOf(lens.keyOf(key)) < 0) continue;
      const [x, w] = this.columnAt(lens.keyOf(key));
      outline(this.view.palette.key, x, g.top + (q - q0) * g.cell, w - 1, g.cell - 1);
      context.textAlign = "center";
      context.font = `700 ${g.font}px ${family}`;
      context.fillStyle = this.view.palette.key;
      context.fillText("?", x + w / 2, g.top + (q - q0 + 0.5) * g.cell);
    }
    const [width, height] = [right - g.left + 2, (q1 - q0) * g.cell + 2];
    if (query !== null && query >= q0 && query < q1) {
      outline(this.view.palette.query, g.left - 1.5, g.top + (query - q0) * g.cell - 1.5, width, g.cell + 2);
    }
    if (column !== null && column >= k0 && column < k1 && this.placeOf(column) >= 0) {
      const [x, w] = this.columnAt(column);
      outline(this.view.palette.key, x - 1.5, g.top - 1.5, w + 2, height);
    }
  }

  // The numbers of the chosen row, in its cells, where these are large enough
  /** @param {CanvasRenderingContext2D} context @param {import("./types.js").Geometry} g @param {number} query */
  drawShares(context, g, query) {
    const { view } = this;
    const { em } = view.room;
    const lens = view.lens();
    const row = lens.unit === "weight" ? lens.row(query) : null;
    if (!g.isHeader || !row || g.cell < 1.05 * em) return;
    const y = g.top + (query - this.band[0] + 0.5) * g.cell;
    const size = (view.options.projector ? 0.96 : 0.88) * em;
    const column = (/** @type {number} */ k) => this.columnAt(k);
    this.paint(context, shares(view, row, this.style, { column, y, size, long: 3.4 * em }));
  }

  // The rows on the screen, end excluded
  /** @returns {[q0: number, q1: number]} */
  get band() {
    const [q0, q1] = /** @type {Area} */ (this.area);
    return this.geometry?.rows ?? [q0, q1];
  }

  // What rows and columns are, left of the words of a folded map
  /** @param {CanvasRenderingContext2D} context */
  drawAxes(context) {
    const { em } = this.view.room;
    const g = this.geometry;
    const { palette } = this.view;
    const { hasNext } = this;
    context.font = `${0.82 * em}px ${this.view.room.family}`;
    context.textAlign = "right";
    const names = g.left - (hasNext ? NEXT * em : 0) - 0.5 * em;
    context.fillStyle = palette.query;
    context.fillText(hasNext ? words.reads : words.axis_query, names, g.top - 0.75 * em);
    context.fillStyle = palette.key;
    if (!hasNext) context.fillText(g.isMirrored ? words.axis_key_back : words.axis_key, names, g.top - 1.9 * em);
    context.textAlign = "left";
    context.fillStyle = palette.proof;
    if (hasNext) context.fillText(words.about_to_write, names + 1.6 * em, g.top - 0.75 * em);
  }

  // Which column of the screen a key has; −1 for one that is folded away
  /** @param {number} key */
  placeOf(key) {
    const { columns } = this.geometry;
    return columns ? columns.indexOf(key) : key - /** @type {Area} */ (this.area)[2];
  }

  // Left edge and width of a key's column
  /** @param {number} key @returns {[x: number, width: number]} */
  columnAt(key) {
    const { xs, columns } = this.geometry;
    const at = Math.max(0, columns ? columns.indexOf(key) : key - /** @type {Area} */ (this.area)[2]);
    return [Math.min(xs[at], xs[at + 1]), Math.abs(xs[at + 1] - xs[at])];
  }

  // Where the columns of these keys are in the window, as long as all of the text is above the map and its words do not lean
  /** @param {number[]} tokens @param {HTMLElement | null} line of words over the columns, where there is one @returns {import("../../kit/browser/types.js").Above | null} */
  above(tokens, line) {
    const { geometry: g, view, box } = this;
    const isLeaning = !line && !view.room.narrow && !this.isUpright;
    if (!g || g.isFold || box.hidden || isLeaning || this.zoomed()) return null;
    const lens = view.lens();
    const { left, top, width } = box.getBoundingClientRect();
    const part = box.offsetWidth ? width / box.offsetWidth : 1;
    return {
      left: left + part * g.left,
      right: left + width,
      bottom: line ? line.getBoundingClientRect().top : top + part * view.room.em,
      columns: tokens.map((token) => {
        const [x, w] = this.columnAt(lens.keyOf(token));
        return [left + part * x, part * w];
      }),
    };
  }

  // The key whose column is at this place; -1 left of all, the number of keys right of them
  /** @param {number} x */
  keyAt(x) {
    const { xs, left, isMirrored } = this.geometry;
    const n = xs.length - 1;
    if (x < left) return -1;
    if (x >= Math.max(xs[0], xs[n])) return n;
    let k = 0;
    while (k < n - 1 && (isMirrored ? x < xs[k + 1] : x >= xs[k + 1])) k++;
    return k;
  }

  /** @param {MouseEvent} e */
  cellAt(e) {
    const g = this.geometry;
    if (!g) return null;
    const box = this.base.getBoundingClientRect();
    const [, , k0, k1] = /** @type {Area} */ (this.area);
    const [q0, q1] = this.band;
    const q = q0 + Math.floor((e.clientY - box.top - g.top) / g.cell);
    const c = this.keyAt(e.clientX - box.left);
    if (q < q0 || q >= q1) return null;
    const lens = this.view.lens();
    if (g.columns) {
      const key = g.columns[c] ?? -1;
      return c >= g.columns.length ? null : { query: lens.firstQuery(q), key: key < 0 ? null : lens.firstKey(key) };
    }
    const k = k0 + c;
    if (k >= k1) return null;
    return { query: lens.firstQuery(q), key: k < k0 ? null : lens.firstKey(k) }; // left of the map is the query's label
  }

  // The key whose label, above the map, is under the pointer
  /** @param {MouseEvent} e */
  labelAt(e) {
    const g = this.geometry;
    if (!g) return null;
    const box = this.base.getBoundingClientRect();
    const [, , k0, k1] = /** @type {Area} */ (this.area);
    const above = g.top - (e.clientY - box.top);
    if (above <= 0 || g.isHeader) return null;
    if (g.columns) {
      const key = g.columns[this.keyAt(e.clientX - box.left)] ?? -1;
      return key < 0 ? null : { query: null, key: this.view.lens().firstKey(key) };
    }
    const k = k0 + this.keyAt(e.clientX - box.left - above / Math.tan(this.tilt)); // labels lean
    return k >= k0 && k < k1 ? { query: null, key: this.view.lens().firstKey(k) } : null;
  }

  /** @param {{query: number, key: number}} at @param {number} [x] @param {number} [y] */
  showTip({ query, key }, x, y) {
    this.tipAt = [x, y];
    const lens = this.view.lens();
    const [row, column] = [lens.queryOf(query), lens.keyOf(key)];
    const ranking = this.view.numbers.ranking(query);
    /** @param {number | number[]} tokens */
    const where = (tokens) => {
      const all = [tokens].flat();
      return all.length > 1 ? fill(words.positions, { i: all[0], j: all.at(-1) }) : fill(words.position, { i: all[0] });
    };
    const first = el("div", "");
    first.append(el("em", "q", lens.queries[row]), el("small", "", ` ${where(lens.queryTokens[row])}`), " → ");
    first.append(el("em", "k", lens.keys[column]), el("small", "", ` ${where(lens.keyTokens[column])}`));
    const isCovered = lens.isCovered(row);
    const lines = [first, el("div", "", isCovered ? words.covered : this.view.numbers.valueLine(ranking, column))];
    const scores = isCovered ? "" : this.scoreLine(query, key);
    if (scores) lines.push(el("div", "mute", scores));
    if (x === undefined || y === undefined) {
      const g = this.geometry;
      const box = this.base.getBoundingClientRect();
      const [from, w] = this.columnAt(column);
      x = box.left + from + w / 2;
      y = box.top + g.top + (row - this.band[0] + 0.5) * g.cell;
    }
    this.view.tip.show(lines, x, y);
  }

  // q·k and what the softmax saw, of one head's one cell: fetched without making anybody wait
  /** @param {number} query @param {number} key */
  scoreLine(query, key) {
    const { site, place, remote } = this.view;
    const lens = this.view.lens();
    if (lens.merged || !["head", "value"].includes(lens.kind)) return "";
    const scores = remote.get("scores", { record: site.records[place.layer], head: place.head, query }, (bytes) => {
      const [header, body] = unpack(bytes);
      const n = header.columns;
      /** @type {[string, Float32Array][]} */
      const parts = ["raw", "scaled", ...(header.terms ?? [])].map((name, i) => [
        name,
        new Float32Array(body, i * n * 4, n),
      ]);
      return { ...header, ...Object.fromEntries(parts) };
    });
    if (!scores) return words.scores_loading;
    if (scores.refused) return "";
    const number = (/** @type {string} */ name) => pointed(scores[name][key].toFixed(3));
    const [raw, scaled] = ["raw", "scaled"].map(number);
    const { terms = [] } = scores;
    if (terms.length > 1) {
      const said = terms.map((/** @type {string} */ name) => `${worded(words.score_terms, name)} ${number(name)}`);
      return fill(words.scores_apart, { raw, terms: said.join(" + "), scaled });
    }
    return fill(scores.biased ? words.scores_biased : words.scores, { raw, scaled });
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const step = arrow(e);
    if (step) {
      e.preventDefault();
      const lens = this.view.lens();
      const { hover } = this.view.chosen;
      const { place } = this.view;
      const query = lens.queryOf(hover?.query ?? place.query ?? 0);
      const first = hover?.key == null;
      const key =
        hover?.key == null ? (this.view.numbers.ranking(lens.firstQuery(query))?.order[0] ?? 0) : lens.keyOf(hover.key);
      const row = clamp(query + (first ? 0 : step[0]), 0, lens.n_query - 1);
      const column = clamp(key + (first ? 0 : step[1]), 0, lens.n_key - 1);
      this.reveal({ query: row, key: column });
      const at = { query: lens.firstQuery(row), key: lens.firstKey(column) };
      this.view.chosen.point(at, e);
      this.showTip(at);
      this.view.chosen.say();
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      const { hover, query } = this.view.chosen;
      if (hover?.query != null && hover.key !== null && this.says(hover.query, hover.key)) return;
      if (query !== null) this.view.chosen.lock(query);
    } else if (e.key === "h" || e.key === "H") {
      const { key } = this.view.numbers.at();
      const at = this.view.chosen.hover ?? { query: null, key: key === null ? null : this.view.lens().firstKey(key) };
      this.view.chosen.hideAt(at, e);
    } else if (e.key === "k" || e.key === "K") {
      const { key } = this.view.chosen.hover ?? {};
      if (key != null) this.view.chosen.pinKey(key);
    } else if (e.key === "Escape") {
      if (this.view.chosen.release()) e.preventDefault(); // else it leaves the projector
    } else if (e.key === "+" || e.key === "=") {
      this.zoom(0.5);
    } else if (e.key === "-") {
      this.zoom(2);
    } else if (e.key === "0" && this.zoomed()) {
      e.preventDefault(); // here it is no room of the bar
      this.zoom(Infinity);
    }
  }

  /** @param {PointerEvent} e */
  move(e) {
    if (this.dragging) {
      const { x, y, area, cell } = this.dragging;
      const q = Math.round((y - e.clientY) / cell);
      const k = Math.round((x - e.clientX) / cell) * (this.geometry.isMirrored ? -1 : 1);
      if (q || k) this.dragging.moved = true;
      this.show([area[0] + q, area[1] + q, area[2] + k, area[3] + k]);
      return;
    }
    const at = this.cellAt(e) ?? this.labelAt(e);
    this.view.chosen.point(at, e);
    if (at?.query != null && at.key !== null) this.showTip({ query: at.query, key: at.key }, e.clientX, e.clientY);
  }

  /** @param {PointerEvent} e */
  down(e) {
    if (e.button === 0 && this.zoomed() && this.cellAt(e)) {
      this.dragging = {
        x: e.clientX,
        y: e.clientY,
        area: /** @type {Area} */ (this.area),
        cell: this.geometry.cell,
        moved: false,
      };
      this.box.setPointerCapture(e.pointerId);
    }
  }

  /** @param {PointerEvent} e */
  up(e) {
    const dragged = this.dragging?.moved;
    this.dragging = null;
    const at = dragged ? null : this.cellAt(e);
    if (at && at.key !== null && this.says(at.query, at.key)) return;
    if (
      at &&
      (at.key !== null ||
        !this.geometry.columns ||
        e.clientX - this.base.getBoundingClientRect().left < this.geometry.left)
    )
      this.view.chosen.lock(at.query);
  }

  // A cell of a row that a lesson asks about is an answer.
  /** @param {number} query @param {number} key */
  says(query, key) {
    return this.view.site.covered.includes(query) && cover.point(query, key);
  }

  // On the name of a key: lock it, to see who looks at it
  /** @param {MouseEvent} e */
  click(e) {
    const { columns, left } = this.geometry ?? {};
    const x = e.clientX - this.base.getBoundingClientRect().left;
    const c = columns && left !== undefined && x >= left ? this.keyAt(x) : -1;
    if (columns && (columns[c] ?? 0) < 0) return this.fold.open(c);
    const at = this.cellAt(e) ? null : this.labelAt(e);
    if (!at) return;
    if (e.detail === 1) this.before = this.view.chosen.locked;
    this.view.chosen.pinKey(at.key);
  }

  /** @param {WheelEvent} e */
  wheel(e) {
    if (!e.ctrlKey && !e.metaKey) return; // the plain wheel scrolls the page
    e.preventDefault();
    this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.cellAt(e));
  }

  zoomed() {
    const { n_query, n_key } = this.view.lens();
    const { area } = this;
    return area && (area[1] - area[0] < n_query || area[3] - area[2] < n_key);
  }

  // Keep the size, stay inside the map.
  /** @param {Area} area */
  show([q0, q1, k0, k1]) {
    const lens = this.view.lens();
    const rows = clamp(q1 - q0, 1, lens.n_query);
    const columns = clamp(k1 - k0, 1, lens.n_key);
    const top = clamp(q0, 0, lens.n_query - rows);
    const left = clamp(k0, 0, lens.n_key - columns);
    this.area = [top, top + rows, left, left + columns];
    this.view.chosen.set("area", this.zoomed() ? this.area : null);
  }

  // A picture opens, with a part of it that a link asks for, or all of it.
  /** @param {Area | null} area */
  open(area) {
    this.area = area && [...area];
    this.sizes = undefined;
  }

  /** @param {number} factor @param {At | null} [at] */
  zoom(factor, at) {
    if (this.geometry?.isHeader || this.geometry?.isFold) return; // every cell is large enough
    const lens = this.view.lens();
    const area = /** @type {Area} */ (this.area);
    const middle = { query: (area[0] + area[1]) / 2, key: (area[2] + area[3]) / 2 };
    const { query, key } = at
      ? { query: at.query === null ? null : lens.queryOf(at.query), key: at.key === null ? null : lens.keyOf(at.key) }
      : this.view.numbers.at();
    const inside = query === null ? middle : { query, key: key ?? middle.key };
    const centre = {
      query: clamp(inside.query, area[0], area[1]),
      key: clamp(inside.key ?? middle.key, area[2], area[3]),
    };
    /** @param {number} from @param {number} to @param {number} most */
    const size = (from, to, most) => clamp(Math.round((to - from) * factor), Math.min(8, most), most);
    const rows = size(area[0], area[1], lens.n_query);
    const columns = size(area[2], area[3], lens.n_key);
    const q0 = Math.round(centre.query - (rows * (centre.query - area[0])) / (area[1] - area[0]));
    const k0 = Math.round(centre.key - (columns * (centre.key - area[2])) / (area[3] - area[2]));
    this.show([q0, q0 + rows, k0, k0 + columns]);
  }

  // Move the part on the screen so that a cell reached by keyboard is in it.
  /** @param {{query: number, key: number}} cell */
  reveal({ query, key }) {
    if (this.geometry?.isFold) return this.fold.reveal({ query, key });
    const [q0, q1, k0, k1] = /** @type {Area} */ (this.area);
    const q = query < q0 ? query - q0 : query >= q1 ? query - q1 + 1 : 0;
    const k = key < k0 ? key - k0 : key >= k1 ? key - k1 + 1 : 0;
    if (q || k) this.show([q0 + q, q1 + q, k0 + k, k1 + k]);
  }
}

// Where its cells are, for the room's status
/** @param {import("./types.js").Geometry} g */
const placed = ({ cell, left, top }) => ({ size: cell, left, top });
