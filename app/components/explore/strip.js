// The sentence itself, each token shaded by how much the chosen query looks at it.

import { WORDS as words } from "./constants.js";
import { add, clamp, el } from "./dom.js";

const MOST = 600; // tokens in the strip at once

export class Strip {
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "strips");
    this.box.addEventListener("pointerover", (e) => this.point(e));
    this.box.addEventListener("pointerenter", () => (this.isUnderPointer = true));
    this.box.addEventListener("pointerleave", () => {
      this.isUnderPointer = false;
      view.point(null);
    });
    this.box.addEventListener("click", (e) => this.click(e));
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("focusin", (e) => this.point(e));
    this.box.addEventListener("focusout", () => view.point(null));
  }

  build() {
    const { site, picture } = this.view;
    const two = site.query !== site.key;
    const axes = two ? ["query", "key"] : ["query"];
    const centre = this.view.place.query ?? 0;
    const strips = axes.map((axis) => {
      const labels = this.view.labels(axis);
      const from = clamp(Math.round(centre - MOST / 2), 0, Math.max(0, labels.length - MOST));
      const to = Math.min(labels.length, from + MOST);
      const strip = el("div", `strip ${axis}`);
      strip.classList.toggle("long", labels.length > 48);
      strip.setAttribute("role", axis === "query" ? "listbox" : "list");
      strip.setAttribute("aria-label", axis === "query" ? words.strip_label : words.strip_keys_label);
      if (axis === "key") strip.tabIndex = 0; // it may scroll, and holds nothing else that the keyboard reaches
      if (picture.tokens.target) strip.append(el("small", "", words[site[axis]]));
      if (from) strip.append(el("small", "", "…"));
      for (let i = from; i < to; i++) {
        const token = el("span", "", labels[i]);
        token.dataset.i = i;
        token.dataset.axis = axis;
        token.setAttribute("role", axis === "query" ? "option" : "listitem");
        if (axis === "query") token.tabIndex = i === (this.view.place.query ?? 0) ? 0 : -1;
        strip.append(token);
      }
      if (to < labels.length) strip.append(el("small", "", "…"));
      return strip;
    });
    const focused = this.view.root.getRootNode().activeElement?.dataset?.i;
    this.box.replaceChildren(...strips);
    // The tokens of a query strip take the focus and scroll with it; keys have none, so their strip does.
    if (two && strips[1].scrollHeight > strips[1].clientHeight) strips[1].tabIndex = 0;
    if (focused !== undefined) strips[0].querySelector(`[data-i="${focused}"]`)?.focus();
  }

  shade() {
    const { query, site } = this.view;
    if (!this.isUnderPointer) for (const strip of this.box.children) this.bringIntoView(strip);
    const row = query === null ? null : this.view.row(query);
    const mean = query === null ? this.view.averages() : null;
    const lens = this.view.lens();
    const weight = (k) => (row ? row.weights[k] : (mean?.[k] ?? 0)) / lens.top;
    const shaded = this.box.lastElementChild;
    for (const token of this.box.querySelectorAll("[data-i]")) {
      const i = Number(token.dataset.i);
      if (token.parentElement === shaded) {
        const k = lens.keyOf(i);
        const hidden = Boolean(row?.masked?.[k]);
        const level = Math.round(255 * Math.sqrt(Math.min(1, weight(k))));
        token.style.backgroundColor = hidden ? "" : this.view.colour.css[level];
        token.style.color = hidden ? "" : this.view.colour.ink[level];
        token.classList.toggle("masked", hidden);
      }
      if (token.dataset.axis === "query") {
        token.classList.toggle("q", i === query);
        token.setAttribute("aria-selected", i === this.view.place.query);
      }
      if (token.dataset.axis === "key" || site.query === site.key) token.classList.toggle("k", i === this.view.hover?.key && i !== query);
    }
  }

  // A long sentence scrolls inside its strip, never the page.
  bringIntoView(strip) {
    const i = strip.classList.contains("query") ? this.view.query : this.view.hover?.key;
    const token = i == null || strip.scrollHeight <= strip.clientHeight ? null : strip.querySelector(`[data-i="${i}"]`);
    if (!token) return;
    const [top, bottom] = [token.offsetTop, token.offsetTop + token.offsetHeight];
    if (top < strip.scrollTop || bottom > strip.scrollTop + strip.clientHeight) {
      strip.scrollTop = (top + bottom - strip.clientHeight) / 2;
    }
  }

  point(e) {
    const token = e.composedPath()[0];
    if (token.dataset?.axis === "query") this.view.point({ query: Number(token.dataset.i), key: null }, e);
  }

  click(e) {
    const token = e.composedPath()[0];
    if (token.dataset?.axis === "query") this.view.lock(Number(token.dataset.i));
  }

  key(e) {
    const token = e.composedPath()[0];
    if (token.dataset?.axis !== "query") return;
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[e.key];
    if (step) {
      e.preventDefault();
      const all = [...token.parentElement.querySelectorAll("[data-axis=query]")];
      const next = all[clamp(all.indexOf(token) + step, 0, all.length - 1)];
      token.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      this.view.say();
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      this.view.lock(Number(token.dataset.i));
    } else if (e.key === "Escape") {
      this.view.release();
    }
  }
}
