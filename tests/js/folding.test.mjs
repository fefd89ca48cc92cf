// Of a long row the columns that somebody looks at stay, and what is folded away is counted.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { unfolded, withGaps } = await served("attention/browser/folding.js");
const { Fold } = await served("attention/browser/fold.js");

globalThis.document = { createElement: () => ({ style: {} }) }; // for the arcs above it, which nothing here draws

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
  assert.equal(
    columns.reduce((sum, k) => sum + (k < 0 ? -k : 1), 0),
    n,
  );
  assert.deepEqual(withGaps([0, 1], 2), [0, 1]);
  assert.deepEqual(withGaps([], 5), [-5]);
});

// A folded map of forty keys, of which twelve have room; a band of three rows around the one chosen
const measured = (letter, { weighed = true, query = 20, narrow = false } = {}) => {
  const keys = Array.from({ length: n }, (_, k) => `${letter}${k}`);
  const row = { weights, order };
  const lens = {
    keys,
    n_key: n,
    n_query: n,
    queryOf: (i) => i,
    keyOf: (i) => i,
    firstQuery: (i) => i,
    row: () => (weighed ? row : null),
  };
  const site = { id: "self", query: "source", key: "source" };
  const picture = { key: "run", tokens: { source: keys, target: null } };
  const ranking = () => (weighed ? row : null);
  const map = { widthsOf: (all) => all.map(() => 3) };
  const chosen = { query, pin: null };
  const view = { lens: () => lens, place: { query }, chosen, picture, site, room: { narrow }, numbers: { ranking } };
  const fold = new Fold(view, map);
  map.geometry = fold.measure(narrow ? 358 : 800, narrow ? 390 : 200, 16, narrow ? 70 : 100);
  return Object.assign(map.geometry, { isWaiting: fold.isWaiting });
};

test("a text that is read from the right has its first column there", () => {
  const [left, right] = [measured("a"), measured("\u05d0")];
  assert.deepEqual([left.isMirrored, right.isMirrored], [false, true]);
  assert(!left.isWaiting);
  assert.deepEqual(right.columns, left.columns, "the same keys, in the order of the text");
  const last = left.xs.length - 1;
  assert(left.columns.length > 8 && left.xs[0] === 100);
  for (let c = 0; c <= last; c++) assert(Math.abs(left.xs[0] + left.xs[last] - left.xs[c] - right.xs[c]) < 1e-9);
});

test("while nobody knows who looks where, the columns are those beside the rows", () => {
  for (const query of [20, null]) {
    const { columns, isWaiting } = measured("a", { weighed: false, query });
    const shown = columns.filter((k) => k >= 0);
    assert(shown.length > 5 && shown.includes(query ?? n - 1));
    assert(isWaiting);
  }
});

test("on a phone the words stand upright, each over a column as wide as its type", () => {
  const { columns, xs, header, cell } = measured("a", { narrow: true });
  assert(columns.filter((k) => k >= 0).length >= 6);
  for (let c = 0; c < columns.length; c++) assert(xs[c + 1] - xs[c] >= 1.05 * header);
  assert(cell >= 1.05 * header);
});
