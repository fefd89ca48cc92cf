// The heads in the order of a number, as a list to step through.

import { WORDS as words } from "./constants.js";
import { add, button, clamp, el, fill, number } from "../../kit/browser/dom.js";
import { pointed } from "../../kit/browser/language.js";

/** @typedef {NonNullable<ReturnType<typeof import("./metrics.js").measured>>} Measured */
const MOST = 100; // heads in the list

export class Ranked {
  /** @param {import("./types.js").View} view @param {HTMLElement} parent @param {Record<string, unknown>} said */
  constructor(view, parent, said) {
    this.view = view;
    this.said = said;
    this.box = add(parent, "div", "ranked");
    this.box.setAttribute("role", "group");
    this.box.addEventListener("keydown", (e) => this.step(e));
  }

  /** @param {Measured | undefined} found @param {boolean} isLowestFirst */
  draw(found, isLowestFirst) {
    const { site, place } = this.view;
    const values = found?.values ?? [];
    const sign = isLowestFirst ? 1 : -1;
    const order = [...values.keys()]
      .filter((i) => !Number.isNaN(values[i]))
      .sort((a, b) => sign * (values[a] - values[b]) || a - b);
    this.box.setAttribute("aria-label", isLowestFirst ? words.sorted_low : words.sorted);
    const lines = order.slice(0, MOST).map((i, rank) => {
      const [layer, head] = [Math.floor(i / site.heads), i % site.heads];
      const value = values[i];
      const line = button("", "", (e) => this.view.chosen.go({ layer, head }, e));
      const bar = el("i", value < 0 ? "ahead" : "");
      bar.style.width = `${(100 * Math.abs(value)) / (found?.high || 1)}%`;
      const track = el("span", "track");
      track.append(bar);
      line.append(
        el("span", "mute", `${rank + 1}`),
        el("b", "", fill(words.head_short, { layer, head })),
        track,
        el("u", "", pointed(value.toFixed(2))),
      );
      line.dataset.at = `${layer}.${head}`;
      line.setAttribute("aria-pressed", String(layer === place.layer && head === place.head));
      return line;
    });
    this.box.replaceChildren(...lines);
    if (order.length > MOST)
      this.box.append(el("p", "note", fill(words.sorted_more, { shown: MOST, n: number(order.length) })));
    this.said.sorted = order
      .slice(0, MOST)
      .map((i) => `${Math.floor(i / site.heads)}.${i % site.heads}`)
      .join(" ");
  }

  // Another head is chosen.
  mark() {
    const { layer, head } = this.view.place;
    for (const button of this.box.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.at === `${layer}.${head}`));
  }

  /** @param {KeyboardEvent} e */
  step(e) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    const all = [...this.box.querySelectorAll("button")];
    const at = all.indexOf(/** @type {HTMLButtonElement} */ (e.target));
    if (!by || at < 0) return;
    e.preventDefault();
    const next = all[clamp(at + by, 0, all.length - 1)];
    next.focus();
    next.click();
  }
}
