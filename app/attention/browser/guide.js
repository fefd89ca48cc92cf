// How to read the picture, in two lines: there until a visitor puts it away, and afterwards one hover away.

import { WORDS as words } from "./constants.js";
import { add, el, fill } from "../../kit/browser/dom.js";

const SEEN = "headlight-guide-seen"; // kept for the visit, by the tab

export class Guide {
  /** @type {HTMLButtonElement} Made anew at every layout */
  button;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "guide note"); // above the line of its button; the layout leaves room for it
    this.card = add(parent, "div", "card");
    this.card.id = "guide-card";
    this.card.setAttribute("role", "tooltip");
    this.card.hidden = true;
    this.text = el("p", "");
    const away = el("button", "quiet", words.guide_away);
    away.type = "button";
    away.addEventListener("click", () => this.put(true));
    this.box.append(this.text, away);
    this.box.hidden = this.seen = remembered();
  }

  // In the words of what is on the screen: the map, the lines or the table, on a page where more is darker or brighter
  build() {
    const { options, themeName } = this.view;
    const lines = [fill(words.guide_of[options.show], { more: words.guide_more[themeName] }), words.guide_heads];
    if (lines[0] === this.text.firstChild?.textContent) return;
    for (const place of [this.text, this.card]) place.replaceChildren(...lines.map((line) => el("span", "", line)));
  }

  /** @param {boolean} seen */
  put(seen) {
    this.box.hidden = this.seen = seen;
    remember(seen);
    this.view.redraw("layout");
    if (seen) this.button.focus();
  }

  actions() {
    const button = (this.button = el("button", "quiet", words.guide));
    button.type = "button";
    button.setAttribute("aria-describedby", this.card.id);
    button.setAttribute("aria-pressed", String(!this.seen));
    button.addEventListener("click", () => this.put(!this.seen));
    for (const [enter, shown] of /** @type {[string, boolean][]} */ ([["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]])) {
      button.addEventListener(enter, () => this.show(shown && this.seen));
    }
    button.addEventListener("keydown", (e) => e.key === "Escape" && this.show(false));
    return [button];
  }

  /** @param {boolean} shown */
  show(shown) {
    this.card.hidden = !shown;
    if (!shown) return;
    const at = this.button.getBoundingClientRect();
    const box = this.view.root.getBoundingClientRect();
    const left = Math.max(0, Math.min(at.left - box.left, box.width - this.card.offsetWidth));
    this.card.style.transform = `translate(${left}px, ${at.top - box.top - this.card.offsetHeight - 8}px)`;
  }
}

// A browser may forbid storage altogether; the guide then comes back, which is no harm.
function remembered() {
  try {
    return sessionStorage.getItem(SEEN) === "true";
  } catch {
    return false;
  }
}

/** @param {boolean} seen */
function remember(seen) {
  try {
    sessionStorage.setItem(SEEN, String(seen));
  } catch {
    // see above
  }
}
