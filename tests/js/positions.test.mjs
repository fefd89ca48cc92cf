// The numbers of Positions that the browser works out: clocks, waves, orders of words, rows of a table.

import assert from "node:assert/strict";
import { test } from "node:test";

import { near, served } from "./golden.mjs";

const numbers = await served("rooms/positions/browser/numbers.js");
const { fixed, minus } = await served("kit/browser/dom.js");
const { ticks } = await served("kit/browser/picture/scale.js");

test("digits that flip from one number to the next", () => {
  assert.deepEqual(
    Array.from({ length: 15 }, (_, p) => numbers.flips(p)),
    [1, 2, 1, 3, 1, 2, 1, 4, 1, 2, 1, 3, 1, 2, 1],
  );
});

test("a wave is above one half where its digit is 1, and every step of sinusoids is as long", () => {
  for (let digit = 0; digit < 4; digit++) {
    for (let p = 0; p < 16; p++)
      assert.equal(numbers.wave(digit, p) > 0.5, Boolean((p >> digit) & 1), `digit ${digit} of ${p}`);
  }
  near([numbers.stepLength(256)], [2.671], 5e-4, "the step");
  const row = (p) =>
    Array.from({ length: 256 }, (_, c) =>
      (c % 2 ? Math.cos : Math.sin)(p * 10_000 ** ((-2 * Math.floor(c / 2)) / 256)),
    );
  for (const p of [0, 7, 200])
    near([Math.hypot(...row(p + 1).map((x, c) => x - row(p)[c]))], [numbers.stepLength(256)], 1e-9, `step ${p}`);
});

test("the hands of clocks add up to q·k of the turned vectors", () => {
  const clock = {
    q: [1, 0.5, -2, 0.3, 0.7],
    k: [0.2, -1, 1.5, 0.4, 2],
    frequencies: [1, 0.1],
    scale: 0.5,
    factor: 1.2,
    places: [0, 0],
    score: 0,
    masked: false,
  };
  const turned = (x, place) => {
    const found = [...x];
    clock.frequencies.forEach((theta, j) => {
      const [a, b, angle] = [x[j], x[j + 2], place * theta];
      found[j] = clock.factor * (a * Math.cos(angle) - b * Math.sin(angle));
      found[j + 2] = clock.factor * (b * Math.cos(angle) + a * Math.sin(angle));
    });
    return found;
  };
  for (const [m, n] of [
    [0, 0],
    [7, 3],
    [2, 11],
    [107, 103],
  ]) {
    const [q, k] = [turned(clock.q, m), turned(clock.k, n)];
    const by = clock.scale * q.reduce((sum, x, i) => sum + x * k[i], 0);
    near([numbers.score(clock, m - n)], [by], 1e-9, `${m} and ${n}`);
  }
  near([numbers.straight(clock)], [0.7], 1e-12, "what is not turned");
  const best = numbers.highest(clock, 30);
  for (let d = 0; d <= 30; d++) assert(numbers.score(clock, d) <= numbers.score(clock, best));
});

test("orders of words, as links say them", () => {
  const order = Array.from({ length: 16 }, (_, i) => i);
  const two = numbers.swapped(order, 2, 8);
  assert.deepEqual(numbers.swap(two), [2, 8]);
  assert.deepEqual(numbers.asked(two), { order: "words", swap: "2-8", seed: "", places: "" });
  assert.deepEqual(numbers.asked(numbers.swapped(two, 2, 8)), { order: "trained", swap: "", seed: "", places: "" });
  const three = numbers.swapped(two, 2, 3);
  assert.equal(numbers.swap(three), null);
  assert.equal(numbers.asked(three).places, "0-1.3.8.4-7.2.9-15");
  assert.deepEqual(numbers.standing([0, 2, 1]), [0, 2, 1]);
  assert.deepEqual(numbers.standing([1, 2, 0]), [2, 0, 1]);
});

test("rows of a table", () => {
  near(
    [numbers.cosine([1, 0], [1, 1]), numbers.cosine([2, 2], [1, 1]), numbers.cosine([0, 0], [1, 1])],
    [Math.SQRT1_2, 1, 0],
    1e-12,
    "cosines",
  );
  const alike = { 20: 1, 21: 0.9, 22: 0.6, 23: 0.47, 24: 0.5, 25: 0.62, 26: 0.67 };
  assert.equal(
    numbers.lessAlike((row) => alike[row], 20, 26),
    23,
  );
  assert.equal(
    numbers.lessAlike((row) => 1 - 0.1 * (row - 20), 20, 26),
    null,
    "it falls with distance",
  );
  assert.deepEqual(
    [...numbers.furthest([1, -3, 2, 0.5, -0.2, 0.1], 3)].map((x) => Math.round(10 * x) / 10),
    [-3, 2, -0.2],
  );
  assert.deepEqual([...numbers.furthest([1, 2], 4)], [1, 1, 2, 2]);
  assert.equal(
    numbers.bound(
      Array.from({ length: 200 }, (_, i) => i - 199),
      0.005,
    ),
    198,
  );
  assert.equal(numbers.bound([0, 0], 0.1), 1, "never 0");
});

test("heads, the one that moves most first", () => {
  assert.deepEqual(
    numbers.ranked(Float32Array.of(0.5, 0.25, 0.75, 0), 2).map(({ layer, head }) => [layer, head]),
    [
      [1, 0],
      [0, 0],
      [0, 1],
      [1, 1],
    ],
  );
  assert.equal(numbers.largest([0.1, 0.5, 0.4]), 1);
  assert.equal(numbers.largest([0.1, 0.5, 0.4], 1), 2);
});

test("numbers on an axis", () => {
  assert.deepEqual(ticks(-10, 7.3), [-10, -5, 0, 5]);
  assert.deepEqual(ticks(0, 63), [0, 20, 40, 60]);
  assert.equal(fixed(-0.5), "−0.50");
  assert.equal(minus(-10), "−10");
});
