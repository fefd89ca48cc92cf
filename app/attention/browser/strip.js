// The sentence itself, each token shaded by how much the chosen query looks at it, or by how much it looks at the chosen key.
//
// It reads as the text was typed: pieces of a word touch, punctuation stays at its word, spaces are spaces.

import { cover } from "../../kit/browser/cover.js";
import { Arcs } from "./arcs.js";
import { WORDS as words } from "./constants.js";
import { add, clamp, described, el, focusedIn, percent } from "../../kit/browser/dom.js";
import { areLetters, isRightToLeft } from "../../kit/browser/direction.js";
import { tokenName, whichOf } from "../../kit/browser/labels.js";
import { HIDDEN } from "./lens.js";
import { named, Slide, SLIDES } from "./motion.js";
import { isGuess, nextOf, writes } from "./next.js";
import { endsOf, levelOf } from "../../kit/browser/picture/scale.js";

const MOST = 600; // tokens up to which the strip holds all of them
/** @type {Record<string, number | undefined>} */
const STEPS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }; // tokens to go, by key
const WINDOW = 300; // of a longer text, so many around the one that matters

const PART = / \d+\/\d+$/; // of a character that is several tokens, as "é 1/2"

/** @typedef {import("./types.js").Axis} Axis */
/** @typedef {{node: HTMLElement, axis: Axis, i: number, shade?: number, colour?: import("./types.js").Colours}} Item */
export class Strip {
  isUnderPointer = false;
  /** @type {HTMLElement | undefined} What rows and columns are, beside it */
  corner;
  /** @type {HTMLElement | undefined} The likeliest next word */
  after;
  /** @type {HTMLElement | null} The line whose words stand over the columns of the map */
  over = null;
  /** @type {import("./types.js").Geometry | null} The map that they stand over */
  below = null;
  /** @type {Axis[]} */
  axes = [];
  /** @type {{query: number | null, pin: number | null}} What was locked before a double click */
  before;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    /** @type {Item[]} */
    this.items = []; // {node, axis, i}: the token or word that each node shows, by the lens
    /** @type {Record<Axis, number>} */
    this.middles = { query: 0, key: 0 }; // by axis: what the window of a long text is around
    /** @type {{node: HTMLElement, axis: Axis, i: number}[]} Names of the turns of a conversation, each above the first token of its turn */
    this.turns = [];
    this.held = ""; // what the tokens that are there were made of
    this.box = add(parent, "div", "strips");
    this.arcs = new Arcs(view);
    this.slide = new Slide();
    this.box.addEventListener("pointerover", (e) => this.point(e));
    this.box.addEventListener("pointerenter", () => (this.isUnderPointer = true));
    this.box.addEventListener("pointerleave", () => {
      this.isUnderPointer = false;
      view.chosen.point(null);
    });
    this.box.addEventListener("click", (e) => this.click(e));
    this.box.addEventListener("dblclick", (e) => {
      view.chosen.relock(this.before);
      this.hide(e);
    });
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("focusin", (e) => this.point(e));
    this.box.addEventListener("focusout", () => view.chosen.point(null));
  }

  // Tokens that would be the same stay: nothing is made again under a finger that is on it, nor scrolled back.
  build() {
    const { site, place } = this.view;
    const { i: focused, axis } = focusedIn(this.box)?.dataset ?? {};
    const lens = this.view.lens();
    this.middles = { query: lens.queryOf(place.query ?? 0), key: lens.keyOf(this.view.chosen.pin ?? 0) };
    this.axes = site.query === site.key ? ["query"] : ["query", "key"];
    const held = JSON.stringify(this.axes.map((axis) => this.holds(axis)));
    if (held === this.held) {
      for (const { node, axis, i } of this.items) node.tabIndex = i === this.middles[axis] ? 0 : -1;
      return;
    }
    this.held = held;
    this.items = [];
    this.turns = [];
    this.box.replaceChildren(...this.axes.map((axis) => this.strip(axis)));
    const again = focused === undefined ? null : this.box.querySelector(`[data-axis="${axis}"][data-i="${focused}"]`);
    /** @type {HTMLElement | null} */ (again)?.focus();
  }

  /** @param {Axis} axis */
  labels(axis) {
    const { queries, keys } = this.view.lens();
    return axis === "query" ? queries : keys;
  }

  // From which of its tokens or words to which; all of them, unless there are very many
  /** @param {Axis} axis */
  range(axis) {
    const { length } = this.labels(axis);
    const held = length > MOST ? WINDOW : length;
    const from = clamp(Math.round(this.middles[axis] - held / 2), 0, length - held);
    return { from, to: from + held };
  }

  // All that its tokens are made of
  /** @param {Axis} axis */
  holds(axis) {
    const { site, picture } = this.view;
    const lens = this.view.lens();
    const { from, to } = this.range(axis);
    const ends = [from, to - 1].map((i) => (axis === "query" ? lens.firstQuery(i) : lens.firstKey(i)));
    return [
      picture.key,
      axis,
      this.labels(axis).slice(from, to),
      ends,
      to < this.labels(axis).length,
      picture.joins[site[axis]],
      picture.tokens.target && site[axis],
    ];
  }

  /** @param {Axis} axis */
  strip(axis) {
    const { site, picture } = this.view;
    const lens = this.view.lens();
    const isQuery = axis === "query";
    const labels = this.labels(axis);
    const middle = this.middles[axis];
    const { from, to } = this.range(axis);
    /** @param {number} at */
    const more = (at) => {
      const dots = Object.assign(el("small", "more", "…"), { title: words.strip_more });
      Object.assign(dots.dataset, { of: axis, at });
      return dots;
    };
    const letters = areLetters(labels);
    const joined = new Set(letters ? [] : picture.joins[site[axis]]); // letters that are tokens of their own do not touch
    const strip = el("div", `strip ${axis}`);
    strip.classList.toggle("long", labels.length > 48);
    strip.classList.toggle("letters", letters);
    if (isRightToLeft(labels)) strip.dir = "rtl";
    strip.addEventListener("scroll", () => hintAtMore(strip), { passive: true });
    described(strip, "listbox", isQuery ? words.strip_label : words.strip_keys_label);
    if (picture.tokens.target) strip.append(el("small", "", words[site[axis]]));
    if (from) strip.append(more(from - 1));
    const begins = new Map(picture.turns?.[site[axis]] ?? []);
    strip.classList.toggle("chat", begins.size > 0);
    for (let i = from; i < to; i++) {
      const first = isQuery ? lens.firstQuery(i) : lens.firstKey(i);
      const node = el("span", "", labels[i]);
      node.dataset.i = String(first);
      node.dataset.axis = axis;
      const which = whichOf(labels, i);
      if (which) node.dataset.which = which;
      node.setAttribute("role", "option");
      node.tabIndex = i === middle ? 0 : -1;
      if (PART.test(labels[i])) node.classList.add("part");
      if (i > from && joined.has(first)) {
        node.classList.add("joined");
        this.items.at(-1)?.node.classList.add("continued");
      } else if (i > from) strip.append(" ");
      const upTo = i + 1 < labels.length ? (isQuery ? lens.firstQuery(i + 1) : lens.firstKey(i + 1)) : Infinity;
      for (const [token, role] of begins) {
        if (token < first || token >= upTo) continue;
        strip.append(this.turn(axis, i, role));
        node.title = role ? words.turn_begins.replace("{role}", role) : "";
      }
      strip.append(node);
      this.items.push({ node, axis, i });
    }
    if (to < labels.length) strip.append(more(to));
    return strip;
  }

  // The name of a turn, above its first token
  /** @param {Axis} axis @param {number} i @param {string} role */
  turn(axis, i, role) {
    const node = el("small", "turn");
    node.setAttribute("aria-hidden", "true"); // the token says it
    node.append(el("b", "", role));
    this.turns.push({ node, axis, i });
    return node;
  }

  /** @param {Axis} axis @param {number} i */
  item(axis, i) {
    return this.items.find((item) => item.axis === axis && item.i === i);
  }

  // Of a long text, the part around another token or word
  /** @param {Axis} axis @param {number} i */
  show(axis, i) {
    this.middles[axis] = i;
    this.held = "";
    this.items = this.items.filter((item) => item.axis !== axis);
    this.turns = this.turns.filter((turn) => turn.axis !== axis);
    this.box.querySelector(`.strip.${axis}`)?.replaceWith(this.strip(axis));
  }

  shade() {
    if (this.over) this.tellNext(this.below);
    const { site, place } = this.view;
    const { query, hover } = this.view.chosen;
    const lens = this.view.lens();
    const self = site.query === site.key;
    // Over the map, what the row looks at most is outlined where nothing else is pointed at.
    const key = hover?.key == null ? (this.over ? this.view.numbers.at().key : null) : lens.keyOf(hover.key);
    const row = query === null ? null : this.view.numbers.row(query);
    const wait = query !== null && !row && !site.covered.includes(query); // what is there stays until the row is here, unless it is covered
    if (!wait && !this.isUnderPointer) for (const axis of this.axes) this.hold(axis);
    const column = query === null && key !== null ? this.view.numbers.column(key) : null; // a key stands alone: who looks at it
    const looked = column?.weights ? column : null;
    const mean = query === null && !looked ? this.view.numbers.averages() : null;
    const shaded = self || looked ? "query" : "key";
    const [row_, chosen] = [
      query === null ? null : lens.queryOf(query),
      place.query === null ? null : lens.queryOf(place.query),
    ];
    const pinned = this.view.chosen.pin === null ? null : lens.keyOf(this.view.chosen.pin);
    const ofRow = this.view.shading.scale === "row" ? row : null;
    const scale = this.view.shading.whole;
    const ends = ofRow
      ? endsOf(scale, ofRow.weights.reduce((a, b) => Math.max(a, b), 0) || 1)
      : this.view.shading.ends();
    const coming = this.coming(row_);
    const apart = row ? this.view.shading.sink : null;
    for (const item of this.items) {
      const { node, axis, i } = item;
      node.classList.toggle("coming", axis === "query" && i === coming);
      const is = i === (axis === "query" && !(self && pinned !== null) ? chosen : pinned);
      if (node.ariaSelected !== String(is)) node.ariaSelected = String(is); // writing what is there already has a price too
      if (axis === "query") node.classList.toggle("q", i === row_);
      if (axis === "key" || self) node.classList.toggle("k", i === key && !(self && i === row_)); // two texts have places of their own
      if (wait) continue;
      const [weight, code] = looked
        ? [looked.weights[i], looked.masked?.[i]]
        : [row ? row.weights[i] : (mean?.[i] ?? 0), row?.masked?.[i]];
      const isShaded = axis === shaded && !code && !lens.refused;
      const isApart = i === apart && !looked;
      const level = isApart ? 0 : levelOf(scale, weight, ends);
      const shade = isShaded ? level : -1;
      if (item.shade !== shade || item.colour !== this.view.palette.tones) {
        Object.assign(item, { shade, colour: this.view.palette.tones });
        node.style.backgroundColor = isShaded ? this.view.palette.tones.css[level] : "";
        node.style.color = isShaded ? this.view.palette.tones.ink[level] : "";
      }
      node.classList.toggle("masked", axis === shaded && Boolean(code) && code !== HIDDEN);
      node.classList.toggle("gone", axis === shaded && code === HIDDEN);
    }
  }

  // The word of a target of its own line that the chosen row is about to write, where that is the next one
  /** @param {number | null} row */
  coming(row) {
    const { site } = this.view;
    const next = row === null || site.query === site.key ? null : nextOf(this.view, row);
    return next && row !== null && next.words[0][0] === this.view.lens().queries[row + 1] ? row + 1 : null;
  }

  // ------------------------------------------------------------------ the words as the header of the map

  // Every word over its column, where the map has them so; else as the text was typed
  /** @param {import("./types.js").Geometry | null} g */
  lay(g) {
    const { room, site } = this.view;
    const axis = site.query === site.key ? "query" : "key";
    const strip = /** @type {HTMLElement} */ (this.box.querySelector(`.strip.${axis}`));
    this.over = g?.isHeader ? strip : null;
    this.below = g;
    this.corner?.remove();
    this.after?.remove();
    this.box.classList.toggle("header", Boolean(this.over));
    if (!g || !this.over) {
      this.putBack(strip, axis);
      return this.arcs.canvas.remove();
    }
    strip.classList.add("over");
    strip.dir = "ltr"; // columns have their places; each word keeps its own direction
    strip.style.fontSize = `${g.header}px`;
    this.arcs.put(this.box, strip, this.arcsHeight);
    for (const { node, axis: of, i } of this.items) {
      if (of !== axis) continue;
      const [x, w] = [Math.min(g.xs[i], g.xs[i + 1]), Math.abs(g.xs[i + 1] - g.xs[i])];
      node.style.left = `${x}px`;
      node.style.width = `${w - 2}px`;
    }
    const turns = this.turns.filter((turn) => turn.axis === axis);
    for (const [n, { node, i }] of turns.entries()) {
      const last = (turns[n + 1]?.i ?? this.labels(axis).length) - 1;
      const ends = [g.xs[i], g.xs[i + 1], g.xs[last], g.xs[last + 1]];
      node.style.left = `${Math.min(...ends)}px`;
      node.style.width = `${Math.max(...ends) - Math.min(...ends) - 2}px`;
    }
    this.slideIn(axis, g);
    this.tellNext(g);
    const corner = el("small", "corner");
    const across = g.isMirrored ? words.axis_key_back : words.axis_key;
    corner.style.width = `${g.left - 0.5 * room.em}px`;
    corner.style.fontSize = `${0.82 * room.em}px`;
    if (writes(this.view) && !g.isStair) corner.append(el("em", "q", words.reads), el("em", "w", words.about_to_write));
    else corner.append(el("em", "k", across), el("em", "q", words.axis_query));
    this.box.append((this.corner = corner));
  }

  // The likeliest word after the last one, in the place where it would stand
  /** @param {import("./types.js").Geometry | null} g */
  tellNext(g) {
    this.after?.remove();
    const last = this.items.length - 1;
    const next = g?.isStair && last >= 0 && !isGuess(this.view) ? nextOf(this.view, last) : null;
    if (!next || !g) return;
    const [word, p] = next.words[0];
    this.after = el("small", "after");
    this.after.append(el("b", "", tokenName(word)), ` ${percent(Math.min(1 - 1e-5, p))}`);
    this.after.style.left = `${g.xs[g.xs.length - 1] + 4}px`;
    this.box.append(this.after);
  }

  // Words that the text before had too come from where they stood.
  /** @param {Axis} axis @param {import("./types.js").Geometry} g */
  slideIn(axis, g) {
    const names = named(this.labels(axis));
    const places = new Map(names.map((name, i) => [name, Math.min(g.xs[i], g.xs[i + 1])]));
    if (!this.slide.put(`${this.view.picture.key},${axis},${names.length}`, places)) return;
    for (const { node, axis: of, i } of this.items) {
      const by = of === axis ? this.slide.offset(names[i]) : 0;
      if (Math.abs(by) > 1)
        node.animate([{ transform: `translateX(${by}px)` }, { transform: "none" }], {
          duration: SLIDES,
          easing: "ease-out",
        });
    }
  }

  // As the text was typed, also where the words stood over their columns before
  /** @param {HTMLElement | null} strip @param {Axis} axis */
  putBack(strip, axis) {
    if (!strip?.classList.contains("over")) return;
    strip.classList.remove("over");
    strip.dir = isRightToLeft(this.labels(axis)) ? "rtl" : "";
    strip.style.fontSize = "";
    for (const { node, axis: of } of [...this.items, ...this.turns])
      if (of === axis) node.style.left = node.style.width = "";
  }

  // Between two lines of words arcs need less room than above one.
  get arcsHeight() {
    const { site, room } = this.view;
    return (site.query === site.key ? 2.4 : 1.6) * room.em;
  }

  // Arcs of the chosen row: measured last, when all else is in its place
  drawArcs() {
    const { view, over, below: g } = this;
    if (!over || !g) return;
    const lens = view.lens();
    const isAcross = view.site.query !== view.site.key;
    const { query } = view.chosen;
    /** @param {number} k */
    const middle = (k) => (g.xs[k] + g.xs[k + 1]) / 2;
    let from = null;
    if (query !== null) {
      const row = lens.queryOf(query);
      if (!isAcross) from = middle(row);
      else {
        const node = this.item("query", row)?.node;
        from = node ? node.offsetLeft + node.offsetWidth / 2 : null;
      }
    }
    this.arcs.draw(view.room.mapWidth, this.arcsHeight, from === null ? null : { from, to: middle, isAcross });
  }

  // The token that the chosen one looks at most
  strongest() {
    const { query } = this.view.chosen;
    const key = query === null ? undefined : this.view.numbers.ranking(query)?.order[0];
    return key === undefined ? null : (this.item("query", key)?.node ?? null);
  }

  // What matters now on one axis: the query, or the key
  /** @param {Axis} axis */
  at(axis) {
    const { query, hover } = this.view.chosen;
    const { site } = this.view;
    const lens = this.view.lens();
    if (axis === "query" && query !== null) return lens.queryOf(query);
    return hover?.key != null && (axis === "key" || site.query === site.key) ? lens.keyOf(hover.key) : null;
  }

  // In a long text, scroll the relevant tokens into view.
  /** @param {Axis} axis */
  hold(axis) {
    const at = this.at(axis);
    if (at !== null && !this.item(axis, at)) this.show(axis, at);
  }

  // A long sentence scrolls inside its strip, never the page.
  bringIntoView() {
    if (this.isUnderPointer) return;
    for (const axis of this.axes) {
      const at = this.at(axis);
      const strip = /** @type {HTMLElement} */ (this.box.querySelector(`.strip.${axis}`));
      if (strip === this.over) continue;
      const item = at === null ? null : this.item(axis, at);
      if (!item || strip.scrollHeight <= strip.clientHeight) continue;
      const { node } = item;
      const strongest = axis === "query" && this.axes.length === 1 ? this.strongest() : null;
      let [top, bottom] = [node.offsetTop, node.offsetTop + node.offsetHeight];
      if (strongest) {
        // both, if they fit: what is chosen, and what it looks at most
        const [first, last] = [
          Math.min(top, strongest.offsetTop),
          Math.max(bottom, strongest.offsetTop + strongest.offsetHeight),
        ];
        if (last - first <= strip.clientHeight) [top, bottom] = [first, last];
      }
      if (top < strip.scrollTop || bottom > strip.scrollTop + strip.clientHeight) {
        strip.scrollTop = (top + bottom - strip.clientHeight) / 2;
      }
    }
    for (const strip of this.box.querySelectorAll(".strip:not(.over)")) hintAtMore(/** @type {HTMLElement} */ (strip));
  }

  /** @param {Event} e */
  point(e) {
    const { axis, i } = dataOf(e);
    if (axis === "query") this.view.chosen.point({ query: Number(i), key: null }, e);
    else if (axis === "key") this.view.chosen.point({ query: null, key: Number(i) }, e);
  }

  /** @param {MouseEvent | KeyboardEvent} e */
  click(e) {
    const { axis, i, of, at } = dataOf(e);
    if (of) {
      this.show(of, Number(at));
      this.view.invalidate("strip");
    }
    const { site } = this.view;
    const pointed = cover.now?.values.query === "all" ? "query" : "key"; // whose row a class is asked about, or an answer to a lesson
    if (axis && site.covered.length && (axis === pointed || site.query === site.key) && cover.point(Number(i))) return;
    if (e.detail === 1) this.before = this.view.chosen.locked;
    if (axis === "query") this.view.chosen.lock(Number(i));
    else if (axis === "key") this.view.chosen.pinKey(Number(i));
  }

  // Take a token out of the keys; in a pair of texts, the keys are those of the second strip.
  /** @param {Event} e */
  hide(e) {
    const { axis, i } = dataOf(e);
    if (axis === "key" || (axis === "query" && this.view.site.query === this.view.site.key))
      this.view.chosen.hideAt({ query: null, key: Number(i) }, e);
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const token = /** @type {HTMLElement} */ (e.composedPath()[0]);
    const { axis, i } = dataOf(e);
    if (!axis) return;
    const isKey = axis === "key" || this.view.site.query === this.view.site.key;
    const step = STEPS[e.key];
    if (step) {
      e.preventDefault();
      const here = this.items.find((item) => item.node === token)?.i ?? 0;
      const there = clamp(here + step, 0, this.labels(axis).length - 1);
      if (!this.item(axis, there)) this.show(axis, there);
      const next = /** @type {Item} */ (this.item(axis, there)).node;
      token.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      this.view.chosen.say();
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      this.click(e);
    } else if (isKey && e.key.toLowerCase() === "h") {
      this.hide(e);
    } else if (isKey && e.key.toLowerCase() === "k") {
      this.view.chosen.pinKey(Number(i));
    } else if (e.key === "Escape" && this.view.chosen.release()) {
      e.preventDefault();
    }
  }
}

// Lines that are out of sight fade at the edge behind which they are.
/** @param {HTMLElement} strip */
function hintAtMore(strip) {
  strip.classList.toggle("scrolls", strip.scrollTop + strip.clientHeight < strip.scrollHeight - 3);
  strip.classList.toggle("scrolled", strip.scrollTop > 3);
}

// What the node says of itself that the event is of
/** @param {Event} e @returns {{axis?: Axis, i?: string, of?: Axis, at?: string}} */
const dataOf = (e) => /** @type {HTMLElement} */ (e.composedPath()[0]).dataset ?? {};
