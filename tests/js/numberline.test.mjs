// Numbers that a class has typed, on a line.

import assert from "node:assert/strict";
import { test } from "node:test";
import { numberLine } from "../../app/classroom/browser/numberline.js";

const VOTES = [
  [512, 8],
  [768, 2],
  [1024, 7],
  [2048, 3],
];

test("far numbers lie on a line of powers, where twice as much is as far everywhere", () => {
  const { isLog, at, piles, ticks } = numberLine(VOTES, 1024);
  assert.equal(isLog, true);
  assert.ok(Math.abs(at(1024) - at(512) - (at(2048) - at(1024))) < 1e-9);
  assert.deepEqual(
    piles.map(({ value, count }) => [value, count]),
    VOTES,
  );
  assert.deepEqual(ticks, [512, 1024, 2048]);
  assert.ok(piles.every(({ at }) => at >= 0 && at <= 1));
});

test("the truth is on the line, also where no one has said it", () => {
  const { at } = numberLine([[512, 3]], 4096);
  assert.ok(at(4096) > at(512) && at(4096) <= 1);
});

test("near numbers, zero and what is less lie on a plain line", () => {
  for (const votes of [
    [
      [0.66, 2],
      [0.7, 1],
    ],
    [
      [-1, 1],
      [0, 4],
      [100, 1],
    ],
  ]) {
    const { isLog, at, ticks } = numberLine(votes, null);
    assert.equal(isLog, false);
    assert.ok(ticks.length >= 2 && ticks.length <= 12);
    assert.ok(at(votes[0][0]) < at(votes[1][0]));
  }
});

test("a number far beyond all others is named and does not press them together", () => {
  const { beyond, piles } = numberLine([...VOTES, [1e12, 1], [0.001, 2]], null);
  assert.deepEqual(beyond, { below: [[0.001, 2]], above: [[1e12, 1]] });
  assert.equal(piles.length, VOTES.length);
});

test("numbers too close for places of their own are one pile, and no vote is lost", () => {
  const votes = Array.from({ length: 500 }, (_, i) => [1 + i / 50, 1]);
  const { piles, beyond } = numberLine(votes, null);
  assert.ok(piles.length <= 40);
  const counted = [
    ...piles.map(({ count }) => count),
    ...beyond.above.map(([, n]) => n),
    ...beyond.below.map(([, n]) => n),
  ];
  assert.equal(
    counted.reduce((a, b) => a + b, 0),
    500,
  );
});

test("no answers, one answer and one alone beside the truth have a place", () => {
  assert.deepEqual(numberLine([], null).piles, []);
  for (const truth of [null, 5]) {
    const { piles } = numberLine([[5, 1]], truth);
    assert.ok(Math.abs(piles[0].at - 0.5) < 0.01);
  }
  assert.ok(Number.isFinite(numberLine([[0, 3]], 0).at(0)));
});
