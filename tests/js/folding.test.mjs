// Of a long row the columns that somebody looks at stay, and what is folded away is counted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { unfolded, withGaps } = await served("attention/browser/folding.js");
const { Fold } = await served("attention/browser/fold.js");

const n = 40;
const weights = Float32Array.from({ length: n }, (_, k) => ({ 3: 0.6, 20: 0.3, 21: 0.05 })[k] ?? 0.05 / 37);
const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b);
const beside = new Float32Array(n);
beside[9] = 0.8;
const of = { n, must: [30, 3], order, weights, band: [beside] };

test("what must be there comes first, then the row's own keys, then those of the rows beside it", () => {
  const only = (room) => unfolded({ ...of, fits: (keys) => keys.length <= room });
  assert.deepEqual(only(1), [30]);
  assert.deepEqual(only(2), [3, 30]);
  assert.deepEqual(only(3), [3, 20, 30]);
  assert.deepEqual(only(5), [3, 9, 20, 21, 30]);
});

test("what is left of the room is for neighbours, to read them", () => {
  const keys = unfolded({ ...of, fits: (some) => some.length <= 8 });
  assert.equal(keys.length, 8);
  assert([2, 4, 8, 10, 19, 22, 29, 31].some((k) => keys.includes(k)));
});

test("a text that fits is not folded", () => {
  assert.deepEqual(unfolded({ ...of, fits: () => true }), [...weights.keys()]);
});

test("keys and gaps are the whole text", () => {
  const columns = withGaps([3, 20, 21, 39], n);
  assert.deepEqual(columns, [-3, 3, -16, 20, 21, -17, 39]);
  assert.equal(columns.reduce((sum, k) => sum + (k < 0 ? -k : 1), 0), n);
  assert.deepEqual(withGaps([0, 1], 2), [0, 1]);
  assert.deepEqual(withGaps([], 5), [-5]);
});

// A folded map of forty keys, of which twelve have room; a band of three rows around the one chosen
const measured = (letter) => {
  const keys = Array.from({ length: n }, (_, k) => `${letter}${k}`);
  const row = { weights, order };
  const lens = { keys, n_key: n, n_query: n, queryOf: (i) => i, keyOf: (i) => i, firstQuery: (i) => i, row: () => row };
  const site = { id: "self", query: "source", key: "source" };
  const view = { lens: () => lens, place: { query: 20 }, pin: null, picture: { key: "run" }, site, map: { widthsOf: (all) => all.map(() => 3) }, ranking: () => row };
  return new Fold(view).measure(800, 200, 16, 100);
};

test("a text that is read from the right has its first column there", () => {
  const [left, right] = [measured("a"), measured("\u05d0")];
  assert.deepEqual([left.isMirrored, right.isMirrored], [false, true]);
  assert.deepEqual(right.columns, left.columns, "the same keys, in the order of the text");
  const last = left.xs.length - 1;
  assert(left.columns.length > 8 && left.xs[0] === 100);
  for (let c = 0; c <= last; c++) assert(Math.abs(left.xs[0] + left.xs[last] - left.xs[c] - right.xs[c]) < 1e-9);
});
