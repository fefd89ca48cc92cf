// Numbers of Train: what of a run stands at a step, means over steps.

import { fixed } from "../../../kit/browser/dom.js";
import { pointed } from "../../../kit/browser/language.js";

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

/** @param {number[]} of @returns {number} */
export const mean = (of) => (of.length ? of.reduce((all, x) => all + x, 0) / of.length : 0);

// Loss in words: three digits, or that it is less than 0.001.
/** @param {number | null} loss */
export const lossText = (loss) =>
  loss === null
    ? "∞"
    : loss < 0.001
      ? pointed("<0.001")
      : fixed(loss, loss >= 10 ? 1 : loss >= 1 ? 2 : loss >= 0.01 ? 3 : 4);

// The head with the largest number: [layer, head, number]
/** @param {number[][]} of @returns {[layer: number, head: number, value: number]} */
export function largest(of) {
  /** @type {[number, number, number]} */
  let best = [0, 0, -1];
  of.forEach((row, layer) => row.forEach((value, head) => value > best[2] && (best = [layer, head, value])));
  return best;
}

// Lowest and highest of some seeds at each step that all have
/** @param {[step: number, value: number | null][][]} seeds */
export function band(seeds) {
  const low = /** @type {[number, number][]} */ ([]);
  const high = /** @type {[number, number][]} */ ([]);
  const others = seeds.slice(1).map((values) => new Map(values));
  for (const [step, value] of seeds[0] ?? []) {
    const all = [value, ...others.map((values) => values.get(step) ?? null)];
    if (all.includes(null)) continue;
    const numbers = /** @type {number[]} */ (all);
    low.push([step, Math.min(...numbers)]);
    high.push([step, Math.max(...numbers)]);
  }
  return { low, high };
}
