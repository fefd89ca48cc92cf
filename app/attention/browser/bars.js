// Bars on one fixed track from 0 to 100 %, so that two of them can be compared: across rows, heads and texts.

import { add, el } from "../../kit/browser/dom.js";

/** @typedef {{label: string, title?: string, className?: string, at: number, value: string}} Bar */

export class Bars {
  /** @param {HTMLElement} parent @param {string} className */
  constructor(parent, className) {
    this.box = add(parent, "div", `bars ${className}`);
    this.head = add(this.box, "div", "bar scale");
    this.name = add(this.head, "b");
    const ticks = add(this.head, "div");
    this.ticks = ["0", "50", "100 %"].map((tick) => ticks.appendChild(el("small", "", tick)));
    this.head.append(el("u"));
    this.rows = add(this.box, "div", "rows");
  }

  // isShare: whether the track is 0 to 100 %; else it ends at the largest value, which its own number says
  /** @param {string} name @param {Bar[]} bars @param {boolean} [isShare] */
  draw(name, bars, isShare = true) {
    this.name.textContent = name;
    for (const tick of this.ticks) tick.hidden = !isShare;
    while (this.rows.children.length > bars.length) this.rows.lastChild?.remove();
    while (this.rows.children.length < bars.length) {
      const bar = this.rows.appendChild(el("div", "bar"));
      bar.append(el("span"), el("div", "track"), el("u"));
      bar.children[1].append(el("i"));
    }
    bars.forEach(({ label, title, className, at, value }, i) => {
      const [name_, track, number] = /** @type {HTMLElement[]} */ ([...this.rows.children[i].children]);
      this.rows.children[i].className = `bar ${className ?? ""}`;
      name_.textContent = label;
      name_.title = title ?? label;
      /** @type {HTMLElement} */ (track.firstChild).style.width =
        `${at > 0 ? Math.max(0.4, 100 * Math.min(1, at)) : 0}%`;
      number.textContent = value;
    });
  }
}
