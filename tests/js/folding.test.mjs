// Of a long row the columns that somebody looks at stay, and what is folded away is counted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { unfolded, withGaps } = await served("attention/browser/folding.js");

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
