// Bars from a line: upright ones as shapes, what is below 0 hanging from it; lying ones as rows with a name and a number.

import { add, el } from "../dom.js";

/** @typedef {import("../types.js").Shape} Shape */
/**
 * @typedef {object} Upright
 * @property {ArrayLike<number>} values NaN has no bar
 * @property {(i: number) => number} x the middle of a bar
 * @property {number} wide
 * @property {number} base y of the line
 * @property {(value: number) => number} high how far above the line a bar ends, below it if negative
 * @property {(i: number) => string} [fill] without it a bar is an outline
 * @property {string} [stroke] of an outline
 * @property {number} [line] how thick that is
 * @property {number} [radius]
 * @property {number} [least] pixels that even the shortest is long
 */

/** @param {Upright} bars @returns {Shape[]} */
export function upright({ values, x, wide, base, high, fill, stroke = "", line = 1.3, radius, least = 1 }) {
  return Array.from(values).flatMap((value, i) => {
    if (Number.isNaN(value)) return [];
    const to = high(value);
    const h = Math.max(least, Math.abs(to));
    const box = { x: x(i) - wide / 2, y: to >= 0 ? base - h : base, w: wide, h, rx: radius };
    return /** @type {Shape[]} */ ([
      fill ? { shape: "rect", ...box, fill: fill(i) } : { shape: "frame", ...box, stroke, width: line },
    ]);
  });
}

/** @typedef {{label: string, title?: string, className?: string, at: number, value: string}} Bar */

// Bars on one fixed track from 0 to 100 %, so that two of them can be compared: across rows, heads and texts
export class Bars {
  /** @param {HTMLElement} parent @param {string} className @param {(i: number, event: Event) => void} [press] of bars that are buttons: one is pressed */
  constructor(parent, className, press) {
    this.press = press;
    this.box = add(parent, "div", `bars ${className}`);
    this.head = add(this.box, "div", "bar scale");
    this.name = add(this.head, "b");
    const ticks = add(this.head, "div");
    this.ticks = ["0", "50", "100 %"].map((tick) => ticks.appendChild(el("small", "", tick)));
    this.head.append(el("u"));
    this.rows = add(this.box, "div", "rows");
  }

  // isShare: whether the track is 0 to 100 %; else it ends at the largest value, which its own number says
  /** @param {string} name @param {Bar[]} bars @param {boolean} [isShare] @param {number} [pressed] */
  draw(name, bars, isShare = true, pressed = 0) {
    this.name.textContent = name;
    for (const tick of this.ticks) tick.hidden = !isShare;
    while (this.rows.children.length > bars.length) this.rows.lastChild?.remove();
    while (this.rows.children.length < bars.length) {
      const bar = this.rows.appendChild(el(this.press ? "button" : "div", "bar"));
      const i = this.rows.children.length - 1;
      if (this.press) bar.addEventListener("click", (event) => this.press?.(i, event));
      bar.append(el("span"), el("div", "track"), el("u"));
      bar.children[1].append(el("i"));
    }
    bars.forEach(({ label, title, className, at, value }, i) => {
      const [name_, track, number] = /** @type {HTMLElement[]} */ ([...this.rows.children[i].children]);
      this.rows.children[i].className = `bar ${className ?? ""}`;
      if (this.press) this.rows.children[i].setAttribute("aria-pressed", String(i === pressed));
      name_.textContent = label;
      name_.title = title ?? label;
      /** @type {HTMLElement} */ (track.firstChild).style.width =
        `${at > 0 ? Math.max(0.4, 100 * Math.min(1, at)) : 0}%`;
      number.textContent = value;
    });
  }
}
