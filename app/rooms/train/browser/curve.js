// The curve of the loss, on a log axis: it is also the slider of the step.

import { add, clamp, fill, fixed, focusable } from "../../../kit/browser/dom.js";
import { linear, logarithmic } from "../../../kit/browser/picture/scale.js";
import { draw, svg as element, write } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { across, curve } from "../../../kit/browser/picture/axes.js";

const LEFT = 2.9; // em, as wide as "0.001"
const BOTTOM = 1.4; // em
const RIGHT = 6;
const TOP = 8;
const LOWEST = 0.001;
const TICKS = [1, 0.1, 0.01, 0.001];

/** @typedef {{points: import("./types.js").Point[], smooth: (number | null)[], colour: string, dash: string, from: number}} Line */

export class Curve {
  steps = 600;
  top = 3;
  width = 0;
  height = 0;
  em = 16;
  made = ""; // what the drawing below is of
  svg = element("svg");

  // chosen(step) when the visitor drags the curve or moves it by keys
  /** @param {HTMLElement} parent @param {(step: number) => void} chosen */
  constructor(parent, chosen) {
    this.box = focusable(add(parent, "div", "curve"), "slider", words.step);
    this.box.addEventListener("pointerdown", (e) => {
      this.box.setPointerCapture(e.pointerId);
      this.box.focus();
      chosen(this.stepAt(e));
    });
    this.box.addEventListener("pointermove", (e) => e.buttons && chosen(this.stepAt(e)));
    this.box.addEventListener("keydown", (e) => {
      const by = e.shiftKey ? 10 : 1;
      /** @type {Record<string, number>} */
      const to = { ArrowLeft: this.now - by, ArrowRight: this.now + by, Home: 0, End: this.last };
      if (!(e.key in to)) return;
      e.preventDefault();
      chosen(clamp(to[e.key], 0, this.last));
    });
    this.now = 0;
    this.last = 0;
  }

  get left() {
    return LEFT * this.em;
  }

  get bottom() {
    return BOTTOM * this.em;
  }

  /** @param {PointerEvent} e */
  stepAt(e) {
    const at = e.clientX - this.box.getBoundingClientRect().left - this.left;
    return clamp(Math.round((at / (this.width - this.left - RIGHT)) * this.steps), 0, this.last);
  }

  /** @param {number} step */
  x(step) {
    return linear(0, this.steps, this.left, this.width - RIGHT)(step);
  }

  /** @param {number} loss */
  y(loss) {
    return logarithmic(LOWEST, this.top * 1.25, this.height - this.bottom, TOP)(loss);
  }

  // The room that there is, before anything is changed that it would have to be laid out for again
  measure() {
    const { clientWidth, clientHeight } = this.box;
    this.em = parseFloat(getComputedStyle(this.box).fontSize);
    this.width = clientWidth;
    this.height = clientHeight;
  }

  // steps: how many a run has; guess: the loss of one that knows nothing, of so many symbols; now: where the slider stands
  /** @param {Line[]} lines @param {number} steps @param {{n: number, loss: number}} guess @param {number} now @param {Record<string, any>} palette @param {string} text */
  draw(lines, steps, guess, now, palette, text) {
    this.steps = steps;
    this.top = Math.max(guess.loss, ...lines.flatMap((line) => line.smooth.map((x) => x ?? 0)));
    this.now = now;
    this.last = Math.max(0, ...lines.map((line) => line.points.at(-1)?.[0] ?? 0));
    const { width, height, em, top } = this;
    const made = JSON.stringify([
      width,
      height,
      em,
      top,
      steps,
      guess,
      palette.line,
      palette.mute,
      lines.map(({ points, colour, dash }) => [points.length, points.at(-1), colour, dash]),
    ]);
    if (made !== this.made) this.box.replaceChildren((this.svg = this.ground(lines, guess, palette)));
    this.made = made;
    for (const node of this.svg.querySelectorAll(".now")) node.remove();
    // The slider stands behind the lines, and its dots in front of them.
    const cursor = draw(this.svg, "line", {
      class: "now",
      x1: this.x(now),
      x2: this.x(now),
      y1: TOP,
      y2: this.height - this.bottom,
      stroke: palette.mute,
    });
    this.svg.insertBefore(cursor, this.svg.querySelector("path"));
    for (const line of lines) {
      const at = line.points.findLastIndex(([step]) => step <= now);
      const loss = at < 0 ? null : line.smooth[at];
      if (loss !== null)
        draw(this.svg, "circle", {
          class: "now",
          cx: this.x(line.points[at][0]),
          cy: this.y(loss),
          r: 4.5,
          fill: line.colour,
        });
    }
    Object.assign(this.box, {
      ariaValueMin: "0",
      ariaValueMax: String(this.last),
      ariaValueNow: String(now),
      ariaValueText: text,
    });
  }

  // The part that the slider leaves as it is: axes, the loss of a guess, and the lines
  /** @param {Line[]} lines @param {{n: number, loss: number}} guess @param {Record<string, any>} palette */
  ground(lines, guess, palette) {
    const { steps } = this;
    const svg = element("svg", { viewBox: `0 0 ${this.width} ${this.height}`, "aria-hidden": "true" });
    const size = 0.8 * this.em;
    const decades = TICKS.filter((one) => one <= this.top * 1.2);
    across(svg, decades, { y: (loss) => this.y(loss), from: this.left, to: this.width - RIGHT, size });
    for (let step = 0; step <= steps; step += steps / 6)
      write(svg, this.x(step), this.height - 6, String(Math.round(step)), {
        anchor: step ? (step === steps ? "end" : "middle") : "start",
        size,
        fill: palette.mute,
      });
    draw(svg, "line", {
      x1: this.left,
      x2: this.width - RIGHT,
      y1: this.y(guess.loss),
      y2: this.y(guess.loss),
      stroke: palette.mute,
      "stroke-dasharray": "2 4",
    });
    write(
      svg,
      this.width - RIGHT,
      this.y(guess.loss) + size * 1.2,
      fill(words.guess, { n: guess.n, x: fixed(guess.loss) }),
      { anchor: "end", size, fill: palette.mute },
    );
    for (const line of lines) {
      const points = line.points.flatMap(([step], i) => {
        const loss = line.smooth[i];
        return loss === null ? [] : [/** @type {[number, number]} */ ([this.x(step), this.y(loss)])];
      });
      if (points.length) curve(svg, points, line.colour, 2, line.dash || undefined);
    }
    return svg;
  }
}
