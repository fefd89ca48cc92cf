// How to read the picture, in two lines, one hover, one focus or one tap away.

import { WORDS as words } from "./constants.js";
import { add, button, el, fill } from "../../kit/browser/dom.js";

export class Guide {
  isKept = false; // it stays without a pointer on its button
  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.card = add(parent, "div", "card");
    this.card.id = "guide-card";
    this.card.setAttribute("role", "tooltip");
    this.card.hidden = true;
    this.button = button(words.guide, "quiet", () => this.keep(!this.isKept));
    this.button.setAttribute("aria-describedby", this.card.id);
    this.button.setAttribute("aria-expanded", "false");
    for (const [enter, shown] of /** @type {[string, boolean][]} */ ([
      ["pointerenter", true],
      ["focus", true],
      ["pointerleave", false],
      ["blur", false],
    ])) {
      this.button.addEventListener(enter, () => this.show(shown || this.isKept));
    }
    this.button.addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || !this.isKept) return;
      e.preventDefault();
      this.keep(false);
    });
  }

  // In the words of what is on the screen: the map, the lines or the table, on a page where more is darker or brighter
  build() {
    const { options } = this.view;
    const { scheme } = this.view.palette;
    const { narrow } = this.view.room;
    const lines = [
      fill(words.guide_of[options.show], { more: words.guide_more[scheme] }),
      narrow ? words.guide_heads_touch : words.guide_heads,
    ];
    this.card.replaceChildren(...lines.map((line) => el("span", "", line)));
  }

  /** @param {boolean} kept */
  keep(kept) {
    this.isKept = kept;
    this.button.setAttribute("aria-expanded", String(kept));
    this.show(kept);
  }

  /** @param {boolean} shown */
  show(shown) {
    this.card.hidden = !shown;
    if (!shown) return;
    const at = this.button.getBoundingClientRect();
    const box = /** @type {HTMLElement} */ (this.card.parentElement).getBoundingClientRect();
    const left = Math.max(0, Math.min(at.left - box.left, box.width - this.card.offsetWidth));
    this.card.style.transform = `translate(${left}px, ${at.top - box.top - this.card.offsetHeight - 8}px)`;
  }
}
