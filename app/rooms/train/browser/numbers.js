// Numbers of Train: what of a run stands at a step, means over steps, who leads since when.

import { fixed } from "../../../kit/browser/dom.js";

/** @typedef {import("./types.js").Point} Point */

const OVER = 5; // steps whose mean a loss is

/** @type {WeakMap<Point[], (number | null)[]>} */
const SMOOTH = new WeakMap(); // of each run: points only ever come after those that there are

// The mean loss of the last five steps up to each; null where one of them is no number.
/** @param {Point[]} points @returns {(number | null)[]} */
export function smooth(points) {
  const found = SMOOTH.get(points) ?? [];
  SMOOTH.set(points, found);
  for (let i = found.length; i < points.length; i++) {
    const some = points.slice(Math.max(0, i - OVER + 1), i + 1).map(([, loss]) => loss);
    found.push(
      some.includes(null) ? null : some.reduce((/** @type {number} */ all, x) => all + Number(x), 0) / some.length,
    );
  }
  return found;
}

// The last of what has a step that is not after `step`; undefined where there is none.
/** @template {{step: number}} T @param {T[]} of @param {number} step @returns {T | undefined} */
export const upTo = (of, step) => of.findLast((one) => one.step <= step);

/** @param {Point[]} points @param {number} step The index of the last point up to a step; -1 where there is none */
export const indexAt = (points, step) => points.findLastIndex(([at]) => at <= step);

const LEVEL = 0.01; // of the larger loss: what lies so near is noise

// The step from which on one of two curves has been clearly below the other up to `step`, and which: 0, 1; null where they are level.
/** @param {(number | null)[]} one @param {(number | null)[]} other @param {number} last index @returns {{leader: 0 | 1, since: number} | null} */
export function lead(one, other, last) {
  /** @param {number} i */
  const ahead = (i) => Math.sign((other[i] ?? Infinity) - (one[i] ?? Infinity)) || 0;
  const now = ahead(last);
  /** @param {number} i */
  const isClear = (i) => {
    const [a, b] = [one[i] ?? Infinity, other[i] ?? Infinity];
    return Math.abs(a - b) > LEVEL * Math.max(a, b);
  };
  if (!now || Number.isNaN(now) || !isClear(last)) return null;
  let since = last;
  while (since > 0 && ahead(since - 1) === now) since--;
  while (!isClear(since)) since++; // the first steps of a lead may be one by chance
  return { leader: now > 0 ? 0 : 1, since };
}

/** @param {number[]} of @returns {number} */
export const mean = (of) => (of.length ? of.reduce((all, x) => all + x, 0) / of.length : 0);

// Loss in words: three digits, "below 0.001" where it is.
/** @param {number | null} loss @param {string} below */
export const lossText = (loss, below = "below 0.001") =>
  loss === null ? "∞" : loss < 0.001 ? below : fixed(loss, loss >= 10 ? 1 : loss >= 1 ? 2 : loss >= 0.01 ? 3 : 4);

// The head with the largest number: [layer, head, number]
/** @param {number[][]} of @returns {[layer: number, head: number, value: number]} */
export function largest(of) {
  /** @type {[number, number, number]} */
  let best = [0, 0, -1];
  of.forEach((row, layer) => row.forEach((value, head) => value > best[2] && (best = [layer, head, value])));
  return best;
}
