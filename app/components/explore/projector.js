// For the last row of a classroom: large type, nothing but the sentence, the map and what it says, and keys that a clicker has.
//
// P enters and leaves, anywhere but in a text field. Inside, Page Down and Page Up go through all heads of all layers,
// left and right through heads, up and down through queries; F freezes the picture under a moving pointer, S puts a
// spotlight on the chosen row. All of it is in the options, and so in the URL.

import { WORDS as words } from "./constants.js";
import { add, arrow, clamp, el, said } from "./dom.js";

const TEXTLESS = ["button", "checkbox", "radio", "range", "submit", "reset", "color", "file"]; // inputs that take no letters

export class Projector {
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "clicker");
    this.keys = add(this.box, "span", "mute");
    this.keys.textContent = words.projector_keys;
    this.buttons = {};
    for (const name of ["frozen", "spotlight", "projector"]) {
      const button = (this.buttons[name] = add(this.box, "button", "quiet"));
      button.type = "button";
      button.addEventListener("click", (e) => this.toggle(name, e));
    }
    this.pressed = (e) => this.key(e);
    document.addEventListener("keydown", this.pressed, true); // before the map and the strip, which know arrow keys too
  }

  destroy() {
    document.removeEventListener("keydown", this.pressed, true);
    delete document.documentElement.dataset.projector;
  }

  get on() {
    return this.view.options.projector;
  }

  // What it adds below the picture
  actions() {
    const button = el("button", "quiet", words.project);
    Object.assign(button, { type: "button", title: words.project_help });
    button.addEventListener("click", (e) => this.toggle("projector", e));
    this.entrance = button;
    return [button];
  }

  // The page and the component as the options say; true where the page changed, whose sizes are then others.
  apply() {
    const { root, options } = this.view;
    const page = document.documentElement;
    const changed = (page.dataset.projector === "true") !== this.on;
    if (changed && this.on) page.dataset.projector = "true";
    if (changed && !this.on) delete page.dataset.projector;
    root.classList.toggle("projector", this.on);
    root.classList.toggle("spotlight", options.spotlight);
    this.box.hidden = !this.on;
    const texts = { frozen: words.freeze, spotlight: words.spotlight, projector: words.leave };
    for (const [name, button] of Object.entries(this.buttons)) {
      button.textContent = texts[name];
      if (name !== "projector") button.setAttribute("aria-pressed", String(options[name]));
    }
    return changed;
  }

  toggle(name, e) {
    this.view.setOption(name, !this.view.options[name], e);
    if (name !== "projector") return;
    this.view.announce(this.on ? said(words.projector_on, {}) : words.projector_off);
    if (this.on) this.view.tools.toggle(false);
    else requestAnimationFrame(() => requestAnimationFrame(() => this.entrance?.focus({ preventScroll: true })));
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || !this.view.root.isConnected) return;
    const at = e.composedPath()[0];
    if (takesText(at)) return;
    const letter = e.key.toLowerCase();
    if (letter === "p") {
      if (!e.repeat) this.toggle("projector", e);
    } else if (!this.on) {
      return;
    } else if (letter === "f" || letter === "s") {
      if (!e.repeat) this.toggle(letter === "f" ? "frozen" : "spotlight", e);
    } else if (e.key === "Escape") {
      this.toggle("projector", e);
    } else if (e.key === "PageDown" || e.key === "PageUp") {
      this.turn(e.key === "PageDown" ? 1 : -1, e);
    } else if (arrow(e) && at?.type !== "range") {
      const [down, right] = arrow(e);
      if (right) this.turn(right, e);
      else this.step(down, e);
    } else {
      return;
    }
    e.preventDefault();
    e.stopImmediatePropagation();
  }

  // To the next head, and from the last of a layer to the first of the next
  turn(by, e) {
    const { site, place } = this.view;
    const at = clamp(place.layer * site.heads + place.head + by, 0, site.layers * site.heads - 1);
    this.view.choose({ layer: Math.floor(at / site.heads), head: at % site.heads }, e);
  }

  step(by, e) {
    const { query } = this.view.place;
    const lens = this.view.lens(); // its rows are words, where sub-words are merged
    const last = lens.n_query - 1;
    const row = query === null ? (by > 0 ? 0 : last) : clamp(lens.queryOf(query) + by, 0, last);
    this.view.hover = null;
    this.view.choose({ query: lens.firstQuery(row) }, e);
  }
}

function takesText(node) {
  if (!node?.tagName) return false;
  if (node.tagName === "INPUT") return !TEXTLESS.includes(node.type);
  return ["TEXTAREA", "SELECT"].includes(node.tagName) || node.isContentEditable;
}
