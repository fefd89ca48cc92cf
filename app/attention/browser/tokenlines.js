// Lines from every query to the keys it looks at, large: two columns of tokens, or two rows where a sentence is short.
//
// One head at a time, or several with a hue and a dash each. A token under the pointer stands alone with its lines: from
// the query side where it looks, from the key side who looks at it. Only the part that is scrolled to is drawn.

import { fit } from "../../kit/browser/colours.js";
import { WORDS as words } from "./constants.js";
import {
  add,
  apart,
  choice,
  clamp,
  described,
  digits,
  el,
  fill,
  number,
  percent,
  short,
} from "../../kit/browser/dom.js";
import { isPerHead } from "./values.js";
import { everyLine, linesOf } from "./edges.js";
import { HIDDEN, keyOf, Lens } from "./lens.js";
import { pointed } from "../../kit/browser/language.js";

const MOST = 3000; // lines at once; with more, a picture takes longer than anybody waits
const QUICK = 800; // lines while heads are being stepped through or the text is being scrolled
const FEW = 12; // tokens a side that may stand in rows instead of columns
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]]; // the second code of a head, after its hue
const NEAR = 6; // px between the pointer and a line that it means
const NAMED = 3; // tokens that the margin names
const KEPT_LENSES = 64;
const SETTLED = 80; // ms after the last scroll
const DASHED = 60; // lines; with more, those of a weight under FAINT_LINE are drawn without dashes
const FAINT_LINE = 0.05;
const FAINT = 0.001; // of a row: below, a cell of a strip would be invisible

/** @typedef {import("./types.js").Member} Member */
/** @typedef {import("./edges.js").Line} Line */
/** @typedef {{query: number | null, key: number | null}} Alone */
/** @typedef {{side: number, i: number}} Cursor */
/** @typedef {{hue: string, dash: number[], name: string}} Code */
/** @typedef {{lenses: Lens[], several: boolean, codes: Code[] | null}} Now */
/**
 * Sizes and places in CSS pixels; pairs are [query side, key side]. `at` and `y` are of rows alone, `pitch`, `labels` and `x` of
 * columns.
 * @typedef {{
 *   width: number, height: number, em: number, n: [number, number], id: string, rows: boolean, font: number, small: number,
 *   strip: number, strips: number, value: number, pitch: number, head: number, tall: number, labels: number[], x: number[],
 *   near: number[], far: number[], at: number[][], y: number[],
 * }} Geometry
 */
/** @typedef {CanvasRenderingContext2D} Context */
/** What stands at a label of a row. @typedef {{x: number, text: string, weight: number, ink: string | CanvasGradient | CanvasPattern}} Value */

export class TokenLines {
  /** @type {Now} What the last draw() was of */
  now;
  /** @type {Geometry} Where it put things */
  geometry;
  /** @type {{lines: Line[], total: number, from: string, numbers: object[]} | null} What find() found */
  found = null;
  /** @type {{id: string, n: number} | null} What is on the base */
  drawn = null;
  /** @type {(Alone & {lines: Line[], total: number, waiting: boolean}) | null} The token that stands alone, with its lines */
  isolated = null;
  /** @type {number | null} The side that its lines go to, where they make room for strips */
  farSide = null;
  /** @type {Cursor | null} Where the keyboard is */
  cursor = null;
  isUnderPointer = false;
  scrolling = false;
  /** @type {number | undefined} A timer, while it is scrolled */
  settling;
  /** @type {number | undefined} The token that was scrolled to last */
  revealed;
  // What is there already, by all that it depends on
  /** @type {string | undefined} */
  built;
  /** @type {string | undefined} */
  measured;
  /** @type {string | undefined} */
  toldPlaces;

  /** @param {import("./types.js").View} view @param {HTMLElement} after */
  constructor(view, after) {
    this.view = view;
    this.box = el("div", "tokenlines");
    after.after(this.box);
    this.box.hidden = true;
    this.bar = add(this.box, "div", "linesbar");
    const label = add(this.bar, "label", "keep");
    label.append(words.keep);
    label.title = words.keep_help;
    this.slider = add(label, "input");
    Object.assign(this.slider, { type: "range", min: "50", max: "100", step: "1" });
    this.kept = add(label, "output");
    this.slider.addEventListener("input", (e) => view.chosen.set("keep", Number(this.slider.value), e));
    this.which = add(this.bar, "span", "which");
    this.legend = described(add(this.box, "div", "legendrow"), "group", words.lines_heads);
    this.scroller = add(this.box, "div", "scroller");
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "application");
    this.stage = add(this.scroller, "div", "stage");
    this.base = add(this.stage, "canvas");
    this.over = add(this.stage, "canvas", "over");
    this.space = add(this.scroller, "div");
    this.note = add(this.box, "p", "note");
    /** @type {Map<string, Lens>} */
    this.lenses = new Map();
    this.scroller.addEventListener("scroll", () => this.scrolled());
    this.scroller.addEventListener("pointermove", (e) => this.move(e));
    this.scroller.addEventListener("pointerenter", () => (this.isUnderPointer = true));
    this.scroller.addEventListener("pointerleave", () => {
      this.isUnderPointer = false;
      view.chosen.point(null);
    });
    this.scroller.addEventListener("click", (e) => this.click(e));
    this.scroller.addEventListener("dblclick", () => view.chosen.release());
    this.scroller.addEventListener("keydown", (e) => this.key(e));
    this.scroller.addEventListener("blur", () => {
      this.cursor = null;
      view.chosen.point(null);
    });
  }

  // Colours or numbers have changed.
  forget() {
    this.drawn = this.found = null;
    this.lenses.clear();
  }

  // ------------------------------------------------------------------ what is drawn

  get isPerHead() {
    return isPerHead(this.view.options.kind);
  }

  // [layer, head] of each head with lines of its own; null where heads are put together
  /** @returns {Member[] | null} */
  get heads() {
    const { options, place } = this.view;
    if (!this.isPerHead) return null;
    return options.members.length ? options.members : [[place.layer, place.head]];
  }

  /** @returns {Lens[]} */
  lensesNow() {
    const { view, heads } = this;
    if (!heads || !view.options.members.length) return [view.lens()];
    return heads.map(([layer, head]) => {
      const { picture, site, remote } = view;
      const of = {
        picture,
        site,
        remote,
        place: { ...view.place, layer, head },
        options: { ...view.options, members: [] },
      };
      const key = keyOf(of);
      if (!this.lenses.has(key)) {
        if (this.lenses.size >= KEPT_LENSES) this.lenses.delete(String(this.lenses.keys().next().value));
        this.lenses.set(key, new Lens(of));
      }
      return /** @type {Lens} */ (this.lenses.get(key));
    });
  }

  // {hue, dash, name} of each head. In one layer a head's number is its code, so that it stays when others come and go.
  /** @returns {Code[]} */
  codes() {
    const { view } = this;
    const heads = this.heads ?? [];
    const hues = view.palette.heads;
    const same = heads.every(([layer]) => layer === heads[0][0]);
    return heads.map(([layer, head], i) => {
      const at = same ? head : i;
      const name =
        same && layer === view.place.layer ? fill(words.head_only, { head }) : fill(words.head_short, { layer, head });
      return { hue: hues[at % hues.length], dash: DASHES[Math.floor(at / hues.length) % DASHES.length], name };
    });
  }

  // The token that stands alone, by the rows and columns of the lens; null where all lines are shown
  /** @returns {Alone | null} */
  alone() {
    const { hover, query } = this.view.chosen;
    const lens = this.view.lens();
    if (query !== null) return { query: lens.queryOf(query), key: hover?.key == null ? null : lens.keyOf(hover.key) };
    return hover?.key == null ? null : { query: null, key: lens.keyOf(hover.key) };
  }

  // A key of a large run, for which alone it is asked who looks at it
  /** @param {Alone | null} alone */
  isLockedKey(alone) {
    return (
      alone?.query === null &&
      !this.view.picture.whole &&
      this.view.numbers.isWorthAColumn(/** @type {number} */ (alone.key))
    );
  }

  /** @param {boolean} settled @param {string} fact that the facts say of it */
  draw(settled, fact) {
    this.box.hidden = this.view.options.show !== "lines";
    if (this.box.hidden) return;
    const lenses = this.lensesNow();
    const several = lenses.length > 1 || this.view.options.members.length > 0;
    this.now = { lenses, several: several && this.isPerHead, codes: several && this.isPerHead ? this.codes() : null };
    this.find();
    this.drawBar();
    this.measure();
    this.reveal();
    this.drawBase(settled && !this.scrolling);
    this.drawOver();
    this.tell(fact);
  }

  // ------------------------------------------------------------------ the bar above

  drawBar() {
    const { view } = this;
    const { options, place, site } = view;
    const least = Math.min(50, options.keep); // a link may keep less
    this.slider.min = String(least);
    this.slider.value = String(options.keep);
    this.kept.textContent = fill(words.keep_share, { keep: options.keep });
    this.slider.setAttribute("aria-valuetext", fill(words.keep_spoken, { keep: options.keep }));
    this.slider.style.setProperty("--at", `${(100 * (options.keep - least)) / (100 - least)}%`);
    const several = Boolean(this.now.several);
    const id = [
      site.id,
      site.heads,
      place.layer,
      place.head,
      this.isPerHead,
      options.members.join(";"),
      view.palette.scheme,
    ].join();
    if (id === this.built) return;
    this.built = id;
    this.which.hidden = !this.isPerHead || site.heads < 2;
    /** @type {Member[]} */
    const all = Array.from({ length: site.heads }, (_, head) => [place.layer, head]);
    const node = choice(
      words.lines_heads,
      [
        ["one", words.lines_one],
        ["all", words.lines_all],
      ],
      several ? "all" : "one",
      (chosen, e) => {
        view.chosen.set("members", chosen === "one" ? [] : all, e);
      },
    );
    this.which.replaceChildren(node);
    this.legend.hidden = !several;
    this.legend.replaceChildren();
    if (!several) return;
    const chosen = new Set(options.members.map(String));
    const codes = new Map(options.members.map((pair, i) => [String(pair), this.now.codes?.[i]]));
    const others = options.members.filter(([layer]) => layer !== place.layer);
    for (const pair of [...all, ...others])
      this.legend.append(this.chip(pair, chosen.has(String(pair)), codes.get(String(pair))));
  }

  // A head of the legend: its line and its name. A click adds it or takes it out, a double click leaves it alone.
  /** @param {Member} pair @param {boolean} pressed @param {Code | undefined} code */
  chip(pair, pressed, code) {
    const { view } = this;
    const [layer, head] = pair;
    const button = el("button", "chip");
    button.setAttribute("aria-pressed", String(pressed));
    button.setAttribute("aria-label", fill(words.place, { layer, head }));
    button.title = fill(words.chip_help, { layer, head });
    const swatch = button.appendChild(el("canvas", ""));
    const { em } = view.room;
    const context = fit(swatch, 1.5 * em, 0.6 * em);
    context.strokeStyle = code && pressed ? code.hue : view.palette.hatch;
    context.lineWidth = 0.22 * em;
    context.setLineDash(code && pressed ? code.dash : []);
    context.beginPath();
    context.moveTo(0, 0.3 * em);
    context.lineTo(1.5 * em, 0.3 * em);
    context.stroke();
    button.append(el("span", "", code?.name ?? fill(words.head_only, { head })));
    const others = view.options.members.filter((other) => String(other) !== String(pair));
    button.addEventListener("click", (e) => {
      const members = pressed ? others : [...others, pair].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      if (e.detail < 2 && members.length) view.chosen.set("members", members, e);
    });
    button.addEventListener("dblclick", (e) => view.chosen.set("members", [pair], e));
    button.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || !e.shiftKey) return;
      e.preventDefault();
      view.chosen.set("members", [pair], e);
    });
    return button;
  }

  // ------------------------------------------------------------------ sizes

  measure() {
    const { view } = this;
    const { em, mapWidth: width, mapHeight } = view.room;
    const lens = view.lens();
    const { several, lenses } = this.now;
    this.note.textContent = this.noteText();
    const what = [view.picture.key, view.site.id, lens.merged, lens.unit, several ? "" : lens.key]; // whose labels and values
    const id = [
      ...what,
      several,
      lenses.length,
      width,
      mapHeight,
      em,
      this.bar.offsetHeight,
      view.options.projector,
      this.note.textContent,
    ].join();
    if (this.measured === id) return;
    this.measured = id;
    const used =
      this.bar.offsetHeight +
      (this.legend.hidden ? 0 : this.legend.offsetHeight) +
      (this.note.textContent ? this.note.offsetHeight : 0);
    const height =
      view.room.height === Infinity ? Math.max(21 * em, mapHeight) : Math.max(12 * em, mapHeight - used - 0.4 * em);
    const g = /** @type {Geometry} */ ({
      width,
      height,
      em,
      n: [lens.n_query, lens.n_key],
      id: [...what, lenses.length, width, height, em, view.options.projector].join(),
    });
    const family = view.room.family;
    const context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext("2d"));
    /** @param {string[]} labels @param {number} size */
    const widest = (labels, size) => {
      context.font = `650 ${size}px ${family}`;
      const step = Math.max(1, Math.floor(labels.length / 600)); // enough of them to be sure of the room
      let most = 0;
      for (let i = 0; i < labels.length; i += step) most = Math.max(most, context.measureText(short(labels[i])).width);
      return most;
    };
    const most = Math.max(...g.n);
    const largest = (view.options.projector ? 1.7 : 1.3) * em;
    const pitch = (height - 1.9 * em) / most;
    const font = clamp(pitch * 0.68, 0.85 * em, largest);
    // Rows: every label beside the next, so their widths decide
    const along = Math.max(
      ...[lens.queries, lens.keys].map((labels) => {
        context.font = `650 100px ${family}`;
        return labels.reduce((sum, label) => sum + Math.max(60, context.measureText(short(label)).width) + 70, 0) / 100;
      }),
    );
    const inRows = most <= FEW ? Math.min(largest, (width - em) / along) : 0;
    g.rows = inRows >= Math.min(font, largest);
    g.font = g.rows ? inRows : font;
    g.small = Math.max(0.76 * em, g.font * 0.88);
    g.strip = several ? clamp((0.3 * (g.rows ? 6 * em : width)) / (2 * lenses.length), 3, 0.8 * em) : 0;
    g.strips = g.strip * lenses.length;
    context.font = `${g.small}px ${family}`;
    g.value = several ? 0 : context.measureText(lens.unit === "norm" ? "0.0000" : "100.0 %").width + 0.4 * em;
    if (g.rows) this.measureRows(g, lens, context, family);
    else {
      g.pitch = clamp(pitch, g.font * 1.28, 3 * em);
      g.head = 1.7 * em;
      g.tall = g.head + g.pitch * most + 0.2 * em;
      const scrollbar = g.tall > height ? 0.9 * em : 0;
      g.width -= scrollbar;
      const [wide, wider] = [widest(lens.queries, g.font), widest(lens.keys, g.font)];
      const room = (g.width - 2 * (g.strips + g.value + 1.6 * em)) * 0.5; // half of it for lines
      g.labels = [
        Math.min(wide, room / 2 + Math.max(0, room / 2 - wider)),
        Math.min(wider, room / 2 + Math.max(0, room / 2 - wide)),
      ];
      g.x = [g.value + g.labels[0] + 0.9 * em, g.width - g.value - g.labels[1] - 0.9 * em]; // where labels end
      g.near = g.x; // where lines do,
      g.far = [g.x[0] + g.strips, g.x[1] - g.strips]; // and where they leave room for strips
    }
    g.tall = Math.max(g.tall ?? height, 1);
    this.scroller.style.height = `${height}px`;
    this.stage.style.height = `${height}px`;
    this.space.style.height = `${Math.max(0, g.tall - height)}px`;
    this.geometry = g;
  }

  /** @param {Geometry} g @param {Lens} lens @param {Context} context @param {string} family */
  measureRows(g, lens, context, family) {
    const { em } = g;
    context.font = `650 ${g.font}px ${family}`;
    g.at = [lens.queries, lens.keys].map((labels) => {
      const widths = labels.map(
        (label) => Math.max(0.6 * g.font, context.measureText(short(label)).width) + 0.7 * g.font,
      );
      let x = (g.width - widths.reduce((a, b) => a + b, 0)) / 2;
      return widths.map((w) => (x += w) - w / 2);
    });
    g.y = [1.9 * em + g.small * 1.3 + g.font, g.height - 0.6 * em - g.small * 1.3 - g.font];
    const room = Math.min(16 * em, g.y[1] - g.y[0]);
    g.y[1] = g.y[0] + room; // not further apart than an eye follows
    g.near = [g.y[0] + 0.35 * g.font, g.y[1] - 0.75 * g.font];
    g.far = [g.near[0] + g.strips, g.near[1] - g.strips];
    g.tall = g.height;
  }

  // How far in lines begin on a side: behind the strips, on the side that the lone token's lines go to
  /** @param {number} side @param {number | null} far */
  from(side, far) {
    return this.geometry[side === far ? "far" : "near"][side];
  }

  // Where a line leaves its query (side 0) or meets its key (side 1), on the part that is scrolled to
  /** @param {number} side @param {number} i @param {number | null} [far] */
  end(side, i, far = null) {
    const g = this.geometry;
    return g.rows ? [g.at[side][i], this.from(side, far)] : [this.from(side, far), this.y(i)];
  }

  /** @param {number} i */
  y(i) {
    const g = this.geometry;
    return g.head + (i + 0.5) * g.pitch - this.scroller.scrollTop;
  }

  // [first, last) token of either side that is on the screen
  /** @param {number} side */
  seen(side) {
    const g = this.geometry;
    if (g.rows) return [0, g.n[side]];
    const top = this.scroller.scrollTop - g.head;
    return [clamp(Math.floor(top / g.pitch), 0, g.n[side]), clamp(Math.ceil((top + g.height) / g.pitch), 0, g.n[side])];
  }

  // Scroll to what is chosen, unless the pointer is here: nothing should move under it.
  reveal() {
    const g = this.geometry;
    const alone = this.alone();
    const i = this.cursor ? this.cursor.i : (alone?.query ?? alone?.key ?? null);
    if (g.rows || i === null || i === this.revealed || (this.isUnderPointer && !this.cursor)) return;
    this.revealed = i;
    const y = this.y(i);
    if (y < g.head + g.pitch || y > g.height - g.pitch) this.scroller.scrollTop += y - g.height / 2;
  }

  // ------------------------------------------------------------------ drawing

  /** @param {Context} context @param {Line} line @param {number | null} [far] */
  curve(context, line, far = null) {
    const g = this.geometry;
    let [x0, y0] = this.end(0, line.q, far);
    let [x1, y1] = this.end(1, line.k, far);
    const n = this.now.lenses.length;
    const aside = n < 2 ? 0 : (line.of / (n - 1) - 0.5) * 0.55 * (g.rows ? g.font : g.pitch); // heads run side by side
    if (g.rows) [x0, x1] = [x0 + aside, x1 + aside];
    else [y0, y1] = [y0 + aside, y1 + aside];
    if (Math.max(y0, y1) < 0 || Math.min(y0, y1) > g.height) return; // scrolled away
    context.beginPath();
    context.moveTo(x0, y0);
    if (g.rows) context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
    else context.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
    context.stroke(); // one by one: a path of them all is drawn five times slower
  }

  /** @param {number} w */
  level(w) {
    return Math.min(1, w / this.view.lens().top);
  }

  // All lines there are, when the numbers or the share of them have changed
  find() {
    const { view } = this;
    const { lenses } = this.now;
    const { keep } = view.options;
    const isHere = lenses.every((lens) => lens.whole && !lens.refused);
    const from = [isHere, ...lenses.map((lens) => lens.key), keep].join();
    const numbers = isHere ? lenses.map((lens) => lens.numbers()) : [];
    if (this.found?.from === from && this.found.numbers.every((made, i) => made === numbers[i])) return;
    this.found = { ...(isHere ? everyLine(lenses, keep, MOST) : { lines: [], total: 0 }), from, numbers };
    this.drawn = null;
  }

  /** @param {boolean} settled */
  drawBase(settled) {
    const { view } = this;
    const { lenses, codes } = this.now;
    const g = this.geometry;
    const { lines: all } = /** @type {{lines: Line[]}} */ (this.found);
    const lines = settled ? all : all.slice(-QUICK);
    const id = [this.geometry.id, this.scroller.scrollTop, view.palette.scheme].join();
    if (this.drawn?.id === id && this.drawn.n >= lines.length) return;
    this.drawn = { id, n: lines.length };
    const context = fit(this.base, g.width, g.height);
    const fewer = Math.max(0.45, 1 / Math.sqrt(lenses.length)); // opaque, where many heads lie over each other
    for (const line of lines) {
      const p = this.level(line.w);
      context.globalAlpha = codes ? (0.15 + 0.75 * p) * fewer : 0.12 + 0.7 * p;
      context.lineWidth = (0.05 + 0.24 * p) * g.em;
      context.strokeStyle = codes ? codes[line.of].hue : view.palette.mute;
      context.setLineDash(codes ? codes[line.of].dash : []);
      this.curve(context, line);
    }
  }

  // While it is scrolled the strongest lines are enough.
  scrolled() {
    this.scrolling = true;
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      this.scrolling = false;
      this.view.invalidate("lines");
    }, SETTLED);
    this.view.invalidate("lines");
  }

  drawOver() {
    const { view } = this;
    const { palette } = view;
    const { lenses, codes, several } = this.now;
    const g = this.geometry;
    const context = fit(this.over, g.width, g.height);
    const alone = this.alone();
    const found =
      alone &&
      linesOf(/** @type {{query: number, key: null}} */ (alone), lenses, view.options.keep, MOST, (lens) =>
        this.isLockedKey(alone) ? /** @type {Lens} */ (lens).column(/** @type {number} */ (alone.key)) : null,
      );
    this.isolated = alone && { ...alone, lines: found?.lines ?? [], total: found?.total ?? 0, waiting: !found };
    this.base.style.opacity = alone ? "0.13" : "1";
    const far = (this.farSide = alone && several ? (alone.query === null ? 0 : 1) : null);
    // A dash is drawn several times slower than a line. So where many heads are told apart by their hues and strips, faint
    // lines have none.
    const isMany = (this.isolated?.lines.length ?? 0) > DASHED;
    for (const line of this.isolated?.lines ?? []) {
      const p = this.level(line.w);
      const pointed = alone?.query != null && alone.key === line.k && view.chosen.hover?.key != null;
      context.globalAlpha = pointed ? 1 : 0.32 + 0.68 * p;
      context.lineWidth = (0.09 + 0.34 * p + (pointed ? 0.12 : 0)) * g.em;
      context.strokeStyle = codes ? codes[line.of].hue : alone?.query === null ? palette.key : palette.query;
      context.setLineDash(codes && !(isMany && p < FAINT_LINE) ? codes[line.of].dash : []);
      this.curve(context, line, far);
    }
    context.globalAlpha = 1;
    context.setLineDash([]);
    if (several && alone) this.drawStrips(context, alone);
    this.drawLabels(context, alone);
    if (!g.rows && alone) this.drawBeyond(context, alone);
    if (!g.rows) this.drawHeader(context);
  }

  // Who is who, above the columns; over what scrolls below it
  /** @param {Context} context */
  drawHeader(context) {
    const g = this.geometry;
    const { palette, site, picture } = this.view;
    context.fillStyle = palette.background;
    context.fillRect(0, 0, g.width, g.head - 0.3 * g.em);
    /** @param {import("./types.js").Axis} axis */
    const side = (axis) => (picture.tokens.target ? ` · ${words[site[axis]]}` : "");
    context.font = `650 ${0.82 * g.em}px ${this.view.room.family}`;
    context.textBaseline = "middle";
    context.fillStyle = palette.query;
    context.textAlign = "right";
    context.fillText(
      words.lines_query + side("query"),
      Math.max(g.x[0] - 0.5 * g.em, context.measureText(words.lines_query + side("query")).width),
      0.6 * g.em,
    );
    context.fillStyle = palette.key;
    context.textAlign = "left";
    const text = words.lines_key + side("key");
    context.fillText(text, Math.min(g.x[1] + 0.5 * g.em, g.width - context.measureText(text).width), 0.6 * g.em);
  }

  /** @param {Context} context @param {Alone | null} alone */
  drawLabels(context, alone) {
    const g = this.geometry;
    const lines = this.isolated?.lines ?? [];
    const { palette } = this.view;
    const lens = this.view.lens();
    const family = this.view.room.family;
    const weights = new Map(); // of the other side's tokens, where one token stands alone with one head
    if (alone && !this.now.several) {
      for (const { q, k, w } of lines) weights.set(alone.query === null ? q : k, w);
    }
    const strongest = (alone && lines.at(-1)?.[alone.query === null ? "q" : "k"]) ?? null;
    const linked = new Set(lines.map(({ q, k }) => (alone?.query === null ? q : k)));
    const masked = alone && alone.query !== null && !this.now.several ? lens.row(alone.query)?.masked : null;
    context.textBaseline = "middle";
    for (const side of [0, 1]) {
      const labels = side ? lens.keys : lens.queries;
      const colour = side ? palette.key : palette.query;
      const chosen = side ? (alone?.key ?? null) : (alone?.query ?? null);
      const far = alone && (alone.query === null) === (side === 0); // the side that the lone token's lines go to
      const [first, last] = this.seen(side);
      const values = [];
      for (let i = first; i < last; i++) {
        const is = i === chosen || (far && i === strongest);
        context.font = `${is ? 700 : 450} ${g.font}px ${family}`;
        context.fillStyle = is ? colour : alone && !(far && linked.has(i)) ? palette.mute : palette.ink;
        if (side && masked?.[i]) context.fillStyle = palette.mute;
        const text = short(labels[i]);
        const value =
          far && weights.has(i)
            ? this.amount(weights.get(i))
            : far && side && masked?.[i] && masked[i] !== HIDDEN
              ? words.lines_masked
              : "";
        if (g.rows) values.push({ x: g.at[side][i], text: value, weight: weights.get(i) ?? 0, ink: context.fillStyle });
        if (g.rows) this.labelInRow(context, side, i, text, colour);
        else this.labelInColumn(context, side, i, text, value, colour, family);
      }
      this.valuesInRow(context, side, values);
    }
    if (g.rows) this.headRows(context);
  }

  /** @param {number} w */
  amount(w) {
    if (this.view.lens().unit === "norm") return digits(w, 3);
    return percent(w);
  }

  /**
   * @param {Context} context
   * @param {number} side
   * @param {number} i
   * @param {string} text
   * @param {string} value
   * @param {string} colour
   * @param {string} family
   */
  labelInColumn(context, side, i, text, value, colour, family) {
    const g = this.geometry;
    const y = this.y(i);
    const way = side ? 1 : -1;
    context.textAlign = side ? "left" : "right";
    const x = g.x[side] + way * 0.5 * g.em;
    context.fillText(text, x, y, g.labels[side]);
    if (value) {
      const wide = Math.min(context.measureText(text).width, g.labels[side]);
      context.font = `${g.small}px ${family}`;
      context.fillText(value, x + way * (wide + 0.4 * g.em), y);
    }
    context.fillStyle = colour; // the mark of its side
    context.fillRect(g.x[side] + way * 0.12 * g.em - 0.08 * g.em, y - 0.36 * g.font, 0.16 * g.em, 0.72 * g.font);
  }

  /** @param {Context} context @param {number} side @param {number} i @param {string} text @param {string} colour */
  labelInRow(context, side, i, text, colour) {
    const g = this.geometry;
    const x = g.at[side][i];
    const y = g.y[side];
    context.textAlign = "center";
    context.fillText(text, x, y + (side ? 0 : -0.35 * g.font));
    context.fillStyle = colour;
    context.fillRect(x - 0.45 * g.font, side ? y - 0.68 * g.font : y + 0.2 * g.font, 0.9 * g.font, 0.14 * g.em);
  }

  // What stands at the labels of a row: the same word once for all neighbours, and of two that would touch the stronger
  /** @param {Context} context @param {number} side @param {Value[]} values */
  valuesInRow(context, side, values) {
    const g = this.geometry;
    /** @type {(Value & {x1: number})[]} */
    const found = [];
    for (const value of values) {
      const last = found.at(-1);
      if (last && last.text === value.text && value.text === words.lines_masked) last.x1 = value.x;
      else found.push({ ...value, x1: value.x });
    }
    context.font = `${g.small}px ${this.view.room.family}`;
    /** @type {[from: number, to: number][]} */
    const drawn = [];
    for (const { x, x1, text, ink } of found.filter(({ text }) => text).sort((a, b) => b.weight - a.weight)) {
      const middle = (x + x1) / 2;
      const half = context.measureText(text).width / 2 + 0.15 * g.em;
      if (drawn.some(([from, to]) => middle - half < to && middle + half > from)) continue;
      drawn.push([middle - half, middle + half]);
      context.fillStyle = ink;
      context.fillText(text, middle, g.y[side] + (side ? 1.15 : -1.15) * g.font);
    }
  }

  /** @param {Context} context */
  headRows(context) {
    const g = this.geometry;
    const { palette, site, picture } = this.view;
    /** @param {import("./types.js").Axis} axis */
    const side = (axis) => (picture.tokens.target ? ` · ${words[site[axis]]}` : "");
    context.font = `650 ${0.82 * g.em}px ${this.view.room.family}`;
    context.textAlign = "left";
    context.fillStyle = palette.query;
    context.fillText(words.lines_query + side("query"), 0, 0.6 * g.em);
    context.fillStyle = palette.key;
    context.fillText(words.lines_key + side("key"), 0, Math.min(g.height - 0.6 * g.em, g.y[1] + g.font * 2.2));
  }

  // Beside each token of the other side a cell for each head, as dark as its weight
  /** @param {Context} context @param {Alone} alone */
  drawStrips(context, alone) {
    const g = this.geometry;
    const { lenses, codes } = this.now;
    const side = alone.query === null ? 0 : 1;
    const [first, last] = this.seen(side);
    context.fillStyle = this.view.palette.background;
    const [low, high] = [g.near[side], g.far[side]].sort((a, b) => a - b);
    if (g.rows) context.fillRect(0, low, g.width, high - low);
    else context.fillRect(low, 0, high - low, g.height);
    for (const [h, lens] of lenses.entries()) {
      if (side === 0 && !lens.whole) continue;
      const row = alone.query === null ? null : lens.row(alone.query);
      if (side && !row) continue;
      if (codes) context.fillStyle = codes[h].hue;
      for (let i = first; i < last; i++) {
        const w = row ? row.weights[i] : (lens.row(i)?.weights[/** @type {number} */ (alone.key)] ?? 0);
        const p = this.level(w);
        if (p < FAINT) continue;
        context.globalAlpha = Math.max(0.04, p ** 0.7);
        if (g.rows) {
          const y = (side ? g.far[1] : g.near[0]) + h * g.strip;
          context.fillRect(g.at[side][i] - 0.6 * g.font, y, 1.2 * g.font, g.strip - 1);
        } else {
          const x = (side ? g.far[1] : g.near[0]) + h * g.strip;
          context.fillRect(x, this.y(i) - 0.42 * g.pitch, g.strip - 1, 0.84 * g.pitch);
        }
      }
    }
    context.globalAlpha = 1;
  }

  // The strongest of the lone token's partners that are scrolled away, named at the edge where their lines go
  /** @param {Context} context @param {Alone} alone */
  drawBeyond(context, alone) {
    const g = this.geometry;
    const { palette } = this.view;
    const lens = this.view.lens();
    const side = alone.query === null ? 0 : 1;
    const labels = side ? lens.keys : lens.queries;
    const best = new Map();
    for (const { q, k, w } of this.isolated?.lines ?? []) {
      const i = side ? k : q;
      best.set(i, Math.max(w, best.get(i) ?? 0));
    }
    const [top, bottom] = [g.head - 0.1 * g.em, g.height];
    /** @param {boolean} above */
    const away = (above) =>
      [...best]
        .filter(([i]) => (above ? this.y(i) < top : this.y(i) > bottom))
        .sort((a, b) => b[1] - a[1])
        .slice(0, NAMED);
    context.font = `650 ${g.small}px ${this.view.room.family}`;
    context.textBaseline = "middle";
    context.textAlign = side ? "left" : "right";
    const x = g.x[side] + (side ? 0.5 : -0.5) * g.em;
    const line = 1.45 * g.small;
    for (const above of [true, false]) {
      const list = away(above);
      if (!list.length) continue;
      const wide = g.labels[side] + g.value + 0.5 * g.em;
      const start = above ? top : bottom - list.length * line;
      const edge = above ? start + list.length * line : start; // whole rows make way
      const row = Math.floor((edge - g.head + this.scroller.scrollTop) / g.pitch + (above ? 1 : 0));
      const clear = row * g.pitch + g.head - this.scroller.scrollTop;
      context.fillStyle = palette.background;
      context.fillRect(side ? g.x[1] + 1 : g.x[0] - 1 - wide, above ? 0 : clear, wide, above ? clear : bottom - clear);
      list.forEach(([i, w], n) => {
        context.fillStyle = side ? palette.key : palette.query;
        context.fillText(
          `${above ? "↑" : "↓"} ${apart(short(labels[i]))} ${this.amount(w)}`,
          x,
          start + (n + 0.5) * line,
          wide,
        );
      });
    }
  }

  // ------------------------------------------------------------------ in words

  noteText() {
    const { view } = this;
    const lens = view.lens();
    const notes = [];
    if (lens.refused) return lens.refused;
    if (view.remote.failed) notes.push(words.offline);
    if (!view.picture.whole)
      notes.push(
        this.isLockedKey(this.alone()) ? fill(words.lines_large_key, { keep: view.options.keep }) : words.lines_large,
      );
    else if (this.found && this.found.total > this.found.lines.length) {
      notes.push(fill(words.lines_capped, { shown: number(this.found.lines.length), n: number(this.found.total) }));
    }
    if (lens.note) notes.push(lens.note);
    if (this.now.several) notes.push(fill(words.lines_facts, view.place));
    return notes.join(" ");
  }

  // For screen readers and tests: what is drawn, as text and as data
  /** @param {string} fact */
  tell(fact) {
    const { view, isolated } = this;
    const found = /** @type {{lines: Line[], total: number}} */ (this.found);
    const lens = view.lens();
    this.scroller.setAttribute("aria-label", `${lens.title}. ${words.lines_label} ${fact}`);
    const { dataset } = this.box;
    dataset.lines = String((isolated && !view.picture.whole ? isolated : found).lines.length);
    dataset.all = String(found.total);
    dataset.alone = isolated ? `${isolated.query ?? ""},${isolated.key ?? ""}` : "";
    /** @param {number} of */
    const code = (of) => (this.now.several ? (this.heads?.[of] ?? []).join(".") : "");
    dataset.edges = isolated
      ? JSON.stringify(isolated.lines.map(({ q, k, w, of }) => [q, k, Number(w.toFixed(6)), code(of)]))
      : "";
    dataset.heads = this.heads ? this.heads.map((pair) => pair.join(".")).join() : view.options.kind;
    const g = this.geometry;
    dataset.layout = g.rows ? "rows" : "columns";
    dataset.font = g.font.toFixed(1);
    /** @param {number} side */
    const places = (side) => {
      const [first, last] = this.seen(side);
      return Array.from({ length: last - first }, (_, i) => {
        const [x, y] = g.rows
          ? [g.at[side][first + i], g.y[side]]
          : [g.x[side] + (side ? 1 : -1) * g.em, this.y(first + i)];
        return [first + i, Math.round(x), Math.round(y)];
      });
    };
    const id = [g.width, g.height, g.font, this.scroller.scrollTop, lens.key].join();
    if (id !== this.toldPlaces) {
      this.toldPlaces = id;
      dataset.queries = JSON.stringify(places(0));
      dataset.keys = JSON.stringify(places(1));
    }
  }

  // ------------------------------------------------------------------ pointer

  // {query, key} of the token or the line under the pointer, by tokens; null where there is none
  /** @param {MouseEvent} e */
  at(e) {
    const g = this.geometry;
    if (!g) return null;
    const box = this.over.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    const lens = this.view.lens();
    /** @param {number} side @param {number} i */
    const token = (side, i) =>
      side ? { query: null, key: lens.firstKey(i) } : { query: lens.firstQuery(i), key: null };
    if (g.rows) {
      for (const side of [0, 1]) {
        const edge = this.from(side, this.farSide);
        if (side ? y < edge - 4 : y > edge + 4) continue;
        const i = g.at[side].reduce((best, at, j) => (Math.abs(at - x) < Math.abs(g.at[side][best] - x) ? j : best), 0);
        const half =
          0.5 * Math.max(g.font * 1.6, Math.abs((g.at[side][i + 1] ?? g.at[side][i - 1] ?? x) - g.at[side][i]));
        return Math.abs(g.at[side][i] - x) <= half ? token(side, i) : null;
      }
    } else {
      if (y < g.head - 0.3 * g.em) return null;
      const i = Math.floor((y - g.head + this.scroller.scrollTop) / g.pitch);
      for (const side of [0, 1]) {
        const edge = this.from(side, this.farSide);
        if (side ? x < edge - 4 : x > edge + 4) continue;
        return i >= 0 && i < g.n[side] ? token(side, i) : null;
      }
    }
    const line = this.lineAt(x, y);
    return line && { query: lens.firstQuery(line.q), key: lens.firstKey(line.k), line };
  }

  // The line that passes nearest: all have the same form, so how far along they are at the pointer is the same for all.
  /** @param {number} x @param {number} y */
  lineAt(x, y) {
    const g = this.geometry;
    const { place } = this.view;
    const lens = this.view.lens();
    const locked = place.query === null ? null : lens.queryOf(place.query);
    const pinned = this.view.chosen.pin === null ? null : lens.keyOf(this.view.chosen.pin);
    /** @param {Line} line */
    const mine = ({ q, k }) => (locked === null ? pinned === null || k === pinned : q === locked);
    const [start, stop] = [this.from(0, this.farSide), this.from(1, this.farSide)];
    const along = ((g.rows ? y : x) - start) / (stop - start);
    let [low, high] = [0, 1]; // of the parameter: along = 3(t−t²)/2 + t³ for handles half way
    for (let i = 0; i < 20; i++) {
      const t = (low + high) / 2;
      if (1.5 * t - 1.5 * t * t + t * t * t < along) low = t;
      else high = t;
    }
    const share = 3 * low * low - 2 * low * low * low;
    const lines = (this.view.picture.whole ? this.found : this.isolated)?.lines ?? [];
    /** @type {Line | null} */
    let best = null;
    let nearest = NEAR;
    for (const line of lines) {
      if (!mine(line)) continue;
      const across = g.rows ? 0 : 1;
      const from = this.end(0, line.q)[across];
      const to = this.end(1, line.k)[across];
      const off = Math.abs(from + (to - from) * share - (g.rows ? x : y));
      if (off < nearest || (off === nearest && best && line.w > best.w)) [best, nearest] = [line, off];
    }
    return best;
  }

  /** @param {PointerEvent} e */
  move(e) {
    const at = this.at(e);
    this.cursor = null;
    this.scroller.style.cursor = at ? "pointer" : "";
    this.view.chosen.point(at && { query: at.query, key: at.key }, e);
    if (!at) return;
    if ("line" in at) this.showTip(at.line, e.clientX, e.clientY);
    else this.view.tip.hide();
  }

  /** @param {MouseEvent} e */
  click(e) {
    const at = this.at(e);
    if (!at) return;
    if (at.query !== null) this.view.chosen.lock(at.query);
    else this.view.chosen.pinKey(at.key);
  }

  // The exact numbers of one pair: one line a head where several are drawn
  /** @param {Line} line @param {number} x @param {number} y */
  showTip({ q, k }, x, y) {
    const { view } = this;
    const lens = view.lens();
    /** @param {number | number[]} tokens */
    const where = (tokens) => fill(words.position, { i: [tokens].flat()[0] });
    const first = el("div", "");
    first.append(el("em", "q", lens.queries[q]), el("small", "", ` ${where(lens.queryTokens[q])}`), " → ");
    first.append(el("em", "k", lens.keys[k]), el("small", "", ` ${where(lens.keyTokens[k])}`));
    const lines = [first];
    if (!this.now.several) {
      const ranking = view.numbers.ranking(lens.firstQuery(q));
      lines.push(el("div", "", view.numbers.valueLine(ranking, k)));
    } else {
      const found = this.now.lenses
        .map((of, i) => ({ name: this.now.codes?.[i].name, w: of.row(q)?.weights[k] ?? 0 }))
        .sort((a, b) => b.w - a.w);
      for (const { name, w } of found.slice(0, 6))
        lines.push(
          el(
            "div",
            "",
            `${name}: ${pointed(w.toFixed(4))}${lens.unit === "norm" ? "" : pointed(` (${(w * 100).toFixed(2)} %)`)}`,
          ),
        );
    }
    view.tip.show(lines, x, y);
  }

  // ------------------------------------------------------------------ keyboard

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { view } = this;
    const lens = view.lens();
    const g = this.geometry;
    const alone = this.alone();
    /** @type {Cursor} */
    const from =
      this.cursor ??
      (alone && alone.query === null ? { side: 1, i: alone.key ?? 0 } : { side: 0, i: alone?.query ?? 0 });
    const [back, on, left, right] = g?.rows
      ? ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]
      : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
    /** @type {Record<string, number>} */
    const steps = { [back]: -1, [on]: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    if (e.key in steps) {
      e.preventDefault();
      const first = !this.cursor && !view.chosen.hover;
      const i = clamp(from.i + (first && Math.abs(steps[e.key]) === 1 ? 0 : steps[e.key]), 0, g.n[from.side] - 1);
      this.go({ side: from.side, i }, e);
    } else if (e.key === left || e.key === right) {
      e.preventDefault();
      const side = e.key === right ? 1 : 0;
      if (side === from.side) return;
      const { lines } = this.isolated ?? { lines: [] };
      const best = lines.at(-1); // faintest first
      const across = Math.min(from.i, g.n[side] - 1);
      this.go({ side, i: best ? (side ? best.k : best.q) : across }, e);
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      if (from.side) view.chosen.pinKey(lens.firstKey(from.i));
      else view.chosen.lock(lens.firstQuery(from.i));
    } else if (e.key === "Escape") {
      this.cursor = null;
      if (view.chosen.release()) e.preventDefault();
    }
  }

  /** @param {Cursor} cursor @param {Event} e */
  go(cursor, e) {
    const { view } = this;
    const lens = view.lens();
    this.cursor = cursor;
    view.chosen.point(
      cursor.side ? { query: null, key: lens.firstKey(cursor.i) } : { query: lens.firstQuery(cursor.i), key: null },
      e,
    );
    view.chosen.say();
  }
}
