// For the last row of a classroom: large type, nothing but the sentence, the map and what it says, and keys that a clicker has.
//
// P enters and leaves, anywhere but in a text field. Inside, Page Down and Page Up go through all heads of all layers,
// left and right through heads, up and down through queries; F freezes the picture under a moving pointer, S puts a
// spotlight on the chosen row. All of it is in the options, and so in the URL.

import { WORDS as words } from "./constants.js";
import { cover } from "../../kit/browser/cover.js";
import { add, arrow, clamp, el, fill } from "../../kit/browser/dom.js";
import { isFree, takesArrows } from "../../kit/browser/shortcuts.js";

/** @typedef {"frozen" | "spotlight" | "projector"} Name */
export class Projector {
  /** @type {HTMLElement | undefined} Made again at every layout */
  entrance;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "clicker");
    this.keys = add(this.box, "span", "mute");
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    for (const name of /** @type {Name[]} */ (["frozen", "spotlight", "projector"])) {
      const button = (this.buttons[name] = add(this.box, "button", "quiet"));
      button.type = "button";
      button.addEventListener("click", (e) => this.toggle(name, e));
    }
    this.pressed = (/** @type {KeyboardEvent} */ e) => this.key(e);
    document.addEventListener("keydown", this.pressed, true); // before the map and the strip, which know arrow keys too
  }

  destroy() {
    document.removeEventListener("keydown", this.pressed, true);
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

  // The component as the options say
  apply() {
    const { root, options } = this.view;
    root.classList.toggle("projector", this.on);
    root.classList.toggle("spotlight", options.spotlight);
    this.box.hidden = !this.on;
    this.keys.textContent = cover.isLed ? words.projector_keys_led : words.projector_keys; // of a lesson, Page keys turn the steps
    /** @type {Record<string, string>} */
    const texts = { frozen: words.freeze, spotlight: words.spotlight, projector: words.leave };
    for (const [name, button] of Object.entries(this.buttons)) {
      button.textContent = texts[name];
      if (name !== "projector") button.setAttribute("aria-pressed", String(options[/** @type {Name} */ (name)]));
    }
  }

  /** @param {Name} name @param {Event} e */
  toggle(name, e) {
    this.view.setOption(name, !this.view.options[name], e);
    if (name !== "projector") return;
    this.view.announce(this.on ? fill(words.projector_on, {}) : words.projector_off);
    if (this.on) this.view.tools.toggle(false);
    else requestAnimationFrame(() => requestAnimationFrame(() => this.entrance?.focus({ preventScroll: true })));
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (!isFree(e) || !this.view.root.isConnected) return;
    const letter = e.key.toLowerCase();
    const steps = arrow(e);
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
    } else if (steps && !takesArrows(e.composedPath()[0])) {
      const [down, right] = steps;
      if (right) this.turn(right, e);
      else this.step(down, e);
    } else {
      return;
    }
    e.preventDefault();
    e.stopImmediatePropagation();
  }

  // To the next head, and from the last of a layer to the first of the next
  /** @param {number} by @param {Event} e */
  turn(by, e) {
    const { site, place } = this.view;
    const at = clamp(place.layer * site.heads + place.head + by, 0, site.layers * site.heads - 1);
    this.view.choose({ layer: Math.floor(at / site.heads), head: at % site.heads }, e);
  }

  /** @param {number} by @param {Event} e */
  step(by, e) {
    const { query } = this.view.place;
    const lens = this.view.lens(); // its rows are words, where sub-words are merged
    const last = lens.n_query - 1;
    const row = query === null ? (by > 0 ? 0 : last) : clamp(lens.queryOf(query) + by, 0, last);
    this.view.hover = null;
    this.view.choose({ query: lens.firstQuery(row) }, e);
  }
}
