// Projector mode of a view that has sliders or rows: a button for it, and Page keys that turn, where the view has something to turn.
//
// Whether the page is projected is the page's own (history.js), and so are P and Escape; its style does the rest.

import { el } from "./dom.js";
import { isFree } from "./shortcuts.js";
import { WORDS as words } from "./words.js";

export class Projector {
  /** @param {() => void} changed @param {(by: number) => void} [turn] */
  constructor(changed, turn) {
    this.turn = turn;
    this.button = el("button", "quiet");
    this.button.type = "button";
    this.button.title = words.project_keys;
    this.button.addEventListener("click", () => window.headlight.settings.set("projector", this.on ? null : "true"));
    this.pressed = (/** @type {KeyboardEvent} */ e) => this.key(e);
    document.addEventListener("keydown", this.pressed, true);
    this.unwatch = window.headlight.settings.watch(() => {
      this.draw();
      changed();
    });
    this.draw();
  }

  destroy() {
    this.unwatch();
    document.removeEventListener("keydown", this.pressed, true);
  }

  get on() {
    return window.headlight.settings.get("projector") !== null;
  }

  draw() {
    this.button.textContent = this.on ? words.leave : words.project;
    this.button.setAttribute("aria-pressed", String(this.on));
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (!isFree(e) || e.repeat || !this.button.isConnected) return;
    if (!this.on || !this.turn || !["PageDown", "PageUp"].includes(e.key)) return;
    this.turn(e.key === "PageDown" ? 1 : -1);
    e.preventDefault();
    e.stopImmediatePropagation();
  }
}
