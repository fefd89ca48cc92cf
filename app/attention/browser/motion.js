// Pictures that move to where they belong: only where the visitor's system has nothing against motion, and never a number.

import { isStill } from "../../kit/browser/dom.js";

const FLIES = 200; // ms
export const SLIDES = 180; // ms

// How far a motion is after a share of its time: fast at first
/** @param {number} share */
export const eased = (share) => 1 - (1 - share) ** 3;

/** @typedef {[x: number, y: number]} Point */

// Many small pictures, each from where it was to where it belongs
export class Flight {
  of = ""; // what they are pictures of
  /** @type {Point[]} Where they are now */
  now = [];
  frame = 0;

  // `draw` gets where each is at a moment, and whether that is where it belongs.
  /** @param {string} of @param {Point[]} to @param {(at: Point[], isThere: boolean) => void} draw */
  to(of, to, draw) {
    this.stop();
    const isKnown = this.of === of && this.now.length === to.length;
    const from = isKnown ? this.now : to;
    [this.of, this.now] = [of, to];
    const isMoved = from.some(([x, y], i) => Math.abs(x - to[i][0]) > 1 || Math.abs(y - to[i][1]) > 1);
    if (!isMoved || isStill()) return draw(to, true);
    const since = performance.now();
    const step = () => {
      const share = Math.min(1, (performance.now() - since) / FLIES);
      if (share === 1) return draw(to, true);
      const done = eased(share);
      draw(
        to.map(([x, y], i) => [from[i][0] + (x - from[i][0]) * done, from[i][1] + (y - from[i][1]) * done]),
        false,
      );
      this.frame = requestAnimationFrame(step);
    };
    step();
  }

  stop() {
    cancelAnimationFrame(this.frame);
  }
}

/** @type {WeakMap<string[], string[]>} */
const NAMES = new WeakMap();

// What the words of a text are known by in the next one: the word, and which of that name it is
/** @param {string[]} labels @returns {string[]} */
export function named(labels) {
  const known = NAMES.get(labels);
  if (known) return known;
  /** @type {Map<string, number>} */
  const seen = new Map();
  const found = labels.map((label) => {
    const n = seen.get(label) ?? 0;
    seen.set(label, n + 1);
    return `${label} ${n}`;
  });
  NAMES.set(labels, found);
  return found;
}

// Words in a row or a column, each from where it was in the text before
export class Slide {
  of = ""; // which text they are of
  /** @type {Map<string, number>} By name, px */
  places = new Map();
  /** @type {Map<string, number>} Of the text before */
  before = new Map();
  since = -SLIDES;

  // Where the words of a text belong now. Returns whether it is another text than before.
  /** @param {string} of @param {Map<string, number>} places */
  put(of, places) {
    const isOther = this.of !== of;
    if (isOther) [this.of, this.before, this.since] = [of, this.places, isStill() ? -SLIDES : performance.now()];
    this.places = places;
    return isOther;
  }

  get isMoving() {
    return performance.now() - this.since < SLIDES;
  }

  // How far a word still is from its place, px
  /** @param {string} name */
  offset(name) {
    const [from, to] = [this.before.get(name), this.places.get(name)];
    if (!this.isMoving || from === undefined || to === undefined) return 0;
    return (from - to) * (1 - eased((performance.now() - this.since) / SLIDES));
  }
}
