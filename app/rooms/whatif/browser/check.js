// How good the estimates were: over the heads whose runs are here. Nothing here draws.

import { idOf } from "./found.js";

export const TOP = 10; // heads
export const FEWEST = 12; // that can be said anything of
const OFF = 3; // heads that are named

/** @typedef {{ids: string[], estimates: number[], exact: number[], all: number, rho: number, both: number, wrong: number, off: number[]}} Check all: how many heads there are; both: of the strongest by run, those among the strongest by estimate; wrong: of the strongest by run, those with the wrong sign; off: which are furthest off */

// Ranks from 0; equal numbers have the mean of theirs
/** @param {number[]} numbers */
export function ranksOf(numbers) {
  const order = numbers.map((_, i) => i).sort((a, b) => numbers[a] - numbers[b]);
  /** @type {number[]} */
  const ranks = [];
  for (let from = 0; from < order.length; ) {
    let to = from;
    while (to < order.length && numbers[order[to]] === numbers[order[from]]) to++;
    for (let i = from; i < to; i++) ranks[order[i]] = (from + to - 1) / 2;
    from = to;
  }
  return ranks;
}

// Pearson's correlation; 0 where one of the two does not vary
/** @param {number[]} a @param {number[]} b */
export function correlation(a, b) {
  const mean = (/** @type {number[]} */ x) => x.reduce((sum, one) => sum + one, 0) / x.length;
  const [ma, mb] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((x, i) => {
    ab += (x - ma) * (b[i] - mb);
    aa += (x - ma) ** 2;
    bb += (b[i] - mb) ** 2;
  });
  return aa && bb ? ab / Math.sqrt(aa * bb) : 0;
}

// Of the largest numbers, sign aside, which they are
/** @param {number[]} numbers @param {number} n */
const largest = (numbers, n) =>
  numbers
    .map((_, i) => i)
    .sort((a, b) => Math.abs(numbers[b]) - Math.abs(numbers[a]))
    .slice(0, n);

// Estimates against runs of the lead; null while too few runs are here
/** @param {import("./found.js").PartsFound} found @returns {Check | null} */
export function checkOf(found) {
  const { known } = found;
  if (!known) return null;
  /** @type {string[]} */
  const ids = [];
  const [estimates, exact] = [/** @type {number[]} */ ([]), /** @type {number[]} */ ([])];
  for (let i = 0; i < known.heads.length; i++) {
    const id = idOf("z", Math.floor(i / known.each), i % known.each);
    const change = found.change(id, "ld");
    if (change === undefined) continue;
    ids.push(id);
    estimates.push(known.heads[i]);
    exact.push(change);
  }
  if (ids.length < FEWEST) return null;
  const strongest = largest(exact, TOP);
  const guessed = new Set(largest(estimates, TOP));
  const off = estimates.map((x, i) => x - exact[i]);
  return {
    ids,
    estimates,
    exact,
    all: known.heads.length,
    rho: correlation(ranksOf(estimates), ranksOf(exact)),
    both: strongest.filter((i) => guessed.has(i)).length,
    wrong: strongest.filter((i) => estimates[i] * exact[i] < 0).length,
    off: largest(off, OFF),
  };
}
