// Projector mode of a view that has sliders or rows: large type, controls folded away. The page's style does the rest.
//
// P enters and leaves, anywhere but in a text field; Escape leaves; Page keys turn, where the view has something to turn.

import { el } from "./dom.js";
import { WORDS as words } from "./words.js";

const LETTERLESS = ["button", "checkbox", "radio", "range"]; // inputs that take no letters

export class Projector {
  constructor(tell, turn) {
    this.tell = tell;
    this.turn = turn;
    this.on = false;
    this.button = el("button", "quiet");
    this.button.type = "button";
    this.button.title = words.project_keys;
    this.button.addEventListener("click", () => this.toggle());
    this.pressed = (e) => this.key(e);
    document.addEventListener("keydown", this.pressed, true);
    this.apply(false);
  }

  destroy() {
    document.removeEventListener("keydown", this.pressed, true);
    delete document.documentElement.dataset.projector;
  }

  apply(on) {
    this.on = on;
    if (on) document.documentElement.dataset.projector = "true";
    else delete document.documentElement.dataset.projector;
    this.button.textContent = on ? words.leave : words.project;
    this.button.setAttribute("aria-pressed", String(on));
  }

  toggle() {
    this.apply(!this.on);
    this.tell(this.on);
  }

  key(e) {
    const at = e.composedPath()[0];
    const writes = at.tagName === "INPUT" ? !LETTERLESS.includes(at.type) : ["TEXTAREA", "SELECT"].includes(at.tagName) || at.isContentEditable;
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || e.repeat || writes || !this.button.isConnected) return;
    if (e.key.toLowerCase() === "p" || (this.on && e.key === "Escape")) this.toggle();
    else if (this.on && (e.key === "PageDown" || e.key === "PageUp") && this.turn) this.turn(e.key === "PageDown" ? 1 : -1);
    else return;
    e.preventDefault();
    e.stopImmediatePropagation();
  }
}
