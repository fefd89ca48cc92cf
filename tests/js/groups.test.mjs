// Heads by what they do: the order of the groups, their places, and where arrow keys lead.

import assert from "node:assert/strict";
import test from "node:test";

import { beside, corner, groupsOf, opensInGroups, placed } from "../../app/attention/browser/groups.js";

const NAMES = ["mixed", "rests on [CLS]", "one back", "mixed", "rests on [CLS]", "rests on [CLS]"];
const ROOM = { width: 100, height: 200, left: 20, between: 5, least: 24, most: 40 };

test("what tells most stands first, and what rests stands last", () => {
  const groups = groupsOf(NAMES);
  assert.deepEqual(groups, [
    { name: "one back", heads: [2] },
    { name: "mixed", heads: [0, 3] },
    { name: "rests on [CLS]", heads: [1, 4, 5] },
  ]);
});

test("heads open in groups unless the text is folded, their keys are shared or they are many", () => {
  const short = { isLong: false, heads: 72, isShared: false };
  assert.equal(opensInGroups(short), true);
  assert.equal(opensInGroups({ ...short, heads: 160 }), true);
  for (const other of [{ isLong: true }, { isShared: true }, { heads: 161 }])
    assert.equal(opensInGroups({ ...short, ...other }), false);
});

test("every head has one place, and groups do not share a row", () => {
  const { pitch, places, titles, height } = placed(groupsOf(NAMES), ROOM);
  assert.equal(pitch, 40);
  assert.deepEqual(places[2], [20, 0]);
  assert.deepEqual(
    [places[0], places[3]],
    [
      [20, 45],
      [60, 45],
    ],
  );
  assert.deepEqual(
    [places[1], places[4], places[5]],
    [
      [20, 90],
      [60, 90],
      [20, 130],
    ],
  );
  assert.deepEqual(
    titles.map(({ n, y }) => [n, y]),
    [
      [1, 0],
      [2, 45],
      [3, 90],
    ],
  );
  assert.equal(height, 170);
});

test("small maps shrink until all fit, but never below the least pitch", () => {
  assert.equal(placed(groupsOf(NAMES), { ...ROOM, height: 110 }).pitch, 26);
  const many = placed(groupsOf(NAMES), { ...ROOM, height: 40 });
  assert.equal(many.pitch, 24);
  assert.ok(many.height > 40); // the rest is scrolled to
});

test("an arrow key leads to the neighbour on that side, or nowhere", () => {
  const { places } = placed(groupsOf(NAMES), ROOM);
  assert.equal(beside(places, 0, [0, 1]), 3);
  assert.equal(beside(places, 3, [0, 1]), 3);
  assert.equal(beside(places, 3, [1, 0]), 4);
  assert.equal(beside(places, 4, [1, 0]), 5);
  assert.equal(beside(places, 5, [-1, 0]), 1);
  assert.equal(beside(places, 2, [-1, 0]), 2);
});

test("a corner is free beside small groups, and none beside full rows", () => {
  const row = (y, n) => Array.from({ length: n }, (_, i) => [100 + 24 * i, y]);
  const small = [...row(0, 1), ...row(30, 2), ...row(60, 10)];
  assert.deepEqual(corner(small, 24, { width: 360, wide: 170, tall: 50 }), { y: 0, height: 54 });
  assert.equal(corner(small, 24, { width: 360, wide: 170, tall: 60 }), null); // not so tall
  assert.equal(corner(small, 24, { width: 360, wide: 250, tall: 50 }), null); // not so wide
  assert.deepEqual(
    corner([...row(0, 10), ...small.map(([x, y]) => [x, y + 30])], 24, { width: 360, wide: 170, tall: 50 }),
    { y: 30, height: 54 },
  );
});
