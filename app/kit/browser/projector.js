// Projector mode of a room: a button for it, and Page keys that turn while it is on.
//
// Whether the page is projected is the page's own (history.js), and so are P and Escape; its style does the rest.

import { button } from "./dom.js";
import { turnsPages } from "./page_keys.js";
import { WORDS as words } from "./words.js";

export class Projector {
  /** @param {(by: number) => void} turn @param {AbortSignal} leaving */
  constructor(turn, leaving) {
    const toggle = () => window.headlight.settings.set("projector", this.on ? null : "true");
    this.button = button("", "quiet", toggle, words.project_keys);
    turnsPages((by) => (this.on && this.button.isConnected ? turn(by) : false), leaving);
    const unwatch = window.headlight.settings.watch(() => this.draw());
    leaving.addEventListener("abort", unwatch);
    this.draw();
  }

  get on() {
    return window.headlight.settings.get("projector") !== null;
  }

  draw() {
    this.button.textContent = this.on ? words.leave : words.project;
    this.button.setAttribute("aria-pressed", String(this.on));
  }
}
