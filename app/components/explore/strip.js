// The sentence itself, each token shaded by how much the chosen query looks at it, or by how much it looks at the chosen key.
//
// It reads as the text was typed: pieces of a word touch, punctuation stays at its word, spaces are spaces.

import { WORDS as words } from "./constants.js";
import { add, clamp, el } from "./dom.js";
import { HIDDEN } from "./lens.js";

const MOST = 600; // tokens in the strip at once

export class Strip {
  constructor(view, parent) {
    this.view = view;
    this.items = []; // {node, axis, i}: the token or word that each node shows, by the lens
    this.box = add(parent, "div", "strips");
    this.box.addEventListener("pointerover", (e) => this.point(e));
    this.box.addEventListener("pointerenter", () => (this.isUnderPointer = true));
    this.box.addEventListener("pointerleave", () => {
      this.isUnderPointer = false;
      view.point(null);
    });
    this.box.addEventListener("click", (e) => this.click(e));
    this.box.addEventListener("dblclick", (e) => {
      view.relock(this.before);
      this.hide(e);
    });
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("focusin", (e) => this.point(e));
    this.box.addEventListener("focusout", () => view.point(null));
  }

  build() {
    const { site } = this.view;
    const { i: focused, axis } = this.view.root.getRootNode().activeElement?.dataset ?? {};
    this.items = [];
    const strips = (site.query === site.key ? ["query"] : ["query", "key"]).map((axis) => this.strip(axis));
    this.box.replaceChildren(...strips);
    if (focused !== undefined) this.box.querySelector(`[data-axis="${axis}"][data-i="${focused}"]`)?.focus();
  }

  strip(axis) {
    const { site, picture, place } = this.view;
    const lens = this.view.lens();
    const isQuery = axis === "query";
    const labels = isQuery ? lens.queries : lens.keys;
    const chosen = isQuery ? lens.queryOf(place.query ?? 0) : lens.keyOf(this.view.pin ?? 0);
    const from = clamp(Math.round(chosen - MOST / 2), 0, Math.max(0, labels.length - MOST));
    const to = Math.min(labels.length, from + MOST);
    const joined = new Set(picture.joins[site[axis]]);
    const strip = el("div", `strip ${axis}`);
    strip.classList.toggle("long", labels.length > 48);
    strip.setAttribute("role", "listbox");
    strip.setAttribute("aria-label", isQuery ? words.strip_label : words.strip_keys_label);
    if (picture.tokens.target) strip.append(el("small", "", words[site[axis]]));
    if (from) strip.append(el("small", "", "…"));
    for (let i = from; i < to; i++) {
      const first = isQuery ? lens.firstQuery(i) : lens.firstKey(i);
      const node = el("span", "", labels[i]);
      node.dataset.i = first;
      node.dataset.axis = axis;
      node.setAttribute("role", "option");
      node.tabIndex = i === chosen ? 0 : -1;
      if (i > from && joined.has(first)) {
        node.classList.add("joined");
        this.items.at(-1).node.classList.add("continued");
      } else if (i > from) strip.append(" ");
      strip.append(node);
      this.items.push({ node, axis, i });
    }
    if (to < labels.length) strip.append(el("small", "", "…"));
    return strip;
  }

  shade() {
    const { site, query, hover, place } = this.view;
    const lens = this.view.lens();
    if (!this.isUnderPointer) for (const strip of this.box.children) this.bringIntoView(strip);
    const self = site.query === site.key;
    const key = hover?.key == null ? null : lens.keyOf(hover.key);
    const row = query === null ? null : this.view.row(query);
    const wait = query !== null && !row; // the shades before stay until the row is here
    const column = query === null && key !== null ? this.view.column(key) : null; // a key stands alone: who looks at it
    const looked = Boolean(column?.weights);
    const mean = query === null && !looked ? this.view.averages() : null;
    const shaded = self || looked ? "query" : "key";
    const [row_, chosen] = [query === null ? null : lens.queryOf(query), place.query === null ? null : lens.queryOf(place.query)];
    const pinned = this.view.pin === null ? null : lens.keyOf(this.view.pin);
    for (const item of this.items) {
      const { node, axis, i } = item;
      const is = i === (axis === "query" && !(self && pinned !== null) ? chosen : pinned);
      if (node.ariaSelected !== String(is)) node.ariaSelected = String(is); // writing what is there already has a price too
      if (axis === "query") node.classList.toggle("q", i === row_);
      if (axis === "key" || self) node.classList.toggle("k", i === key && i !== row_);
      if (wait) continue;
      const [weight, code] = looked ? [column.weights[i], column.masked?.[i]] : [row ? row.weights[i] : (mean?.[i] ?? 0), row?.masked?.[i]];
      const isShaded = axis === shaded && !code && !lens.refused;
      const level = Math.round(255 * Math.sqrt(clamp(weight / lens.top, 0, 1)));
      const shade = isShaded ? level : -1;
      if (item.shade !== shade || item.colour !== this.view.colour) {
        Object.assign(item, { shade, colour: this.view.colour });
        node.style.backgroundColor = isShaded ? this.view.colour.css[level] : "";
        node.style.color = isShaded ? this.view.colour.ink[level] : "";
      }
      node.classList.toggle("masked", axis === shaded && Boolean(code) && code !== HIDDEN);
      node.classList.toggle("gone", axis === shaded && code === HIDDEN);
    }
  }

  // A long sentence scrolls inside its strip, never the page.
  bringIntoView(strip) {
    const lens = this.view.lens();
    const { query, hover } = this.view;
    const axis = strip.classList.contains("query") ? "query" : "key";
    const at = axis === "query" && query !== null ? lens.queryOf(query) : hover?.key == null ? null : lens.keyOf(hover.key);
    const item = at === null || strip.scrollHeight <= strip.clientHeight ? null : this.items.find((it) => it.axis === axis && it.i === at);
    if (!item) return;
    const [top, bottom] = [item.node.offsetTop, item.node.offsetTop + item.node.offsetHeight];
    if (top < strip.scrollTop || bottom > strip.scrollTop + strip.clientHeight) {
      strip.scrollTop = (top + bottom - strip.clientHeight) / 2;
    }
  }

  point(e) {
    const { axis, i } = e.composedPath()[0].dataset ?? {};
    if (axis === "query") this.view.point({ query: Number(i), key: null }, e);
    else if (axis === "key") this.view.point({ query: null, key: Number(i) }, e);
  }

  click(e) {
    const { axis, i } = e.composedPath()[0].dataset ?? {};
    if (e.detail === 1) this.before = this.view.locked;
    if (axis === "query") this.view.lock(Number(i));
    else if (axis === "key") this.view.pinKey(Number(i));
  }

  // Take a token out of the keys; in a pair of texts, the keys are those of the second strip.
  hide(e) {
    const { axis, i } = e.composedPath()[0].dataset ?? {};
    if (axis === "key" || (axis === "query" && this.view.site.query === this.view.site.key)) this.view.map.hideAt({ key: Number(i) }, e);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const token = e.composedPath()[0];
    const { axis, i } = token.dataset ?? {};
    if (!axis) return;
    const isKey = axis === "key" || this.view.site.query === this.view.site.key;
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[e.key];
    if (step) {
      e.preventDefault();
      const all = [...token.parentElement.querySelectorAll("[data-axis]")];
      const next = all[clamp(all.indexOf(token) + step, 0, all.length - 1)];
      token.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      this.view.say();
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      this.click(e);
    } else if (isKey && e.key.toLowerCase() === "h") {
      this.hide(e);
    } else if (isKey && e.key.toLowerCase() === "k") {
      this.view.pinKey(Number(i));
    } else if (e.key === "Escape") {
      this.view.release();
    }
  }
}
