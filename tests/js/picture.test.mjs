// Places, colours and maps of cells: what the picture layer says before anything is drawn.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { level, linear, logarithmic, rising, rooted, signed, signs, ticks } =
  await served("kit/browser/picture/scale.js");
const { cellAt, shapesOf } = await served("kit/browser/picture/heatmap.js");
const { upright } = await served("kit/browser/picture/bars.js");

const PALETTE = {
  ramp: ["#f4f5f7", "#cfe0f2", "#7fb0dc", "#2f74b5", "#0b2f5c"],
  ahead: ["#f4f5f7", "#e6d6ee", "#bf94d1", "#86479c", "#42145a"],
};
const channels = (fill) => fill.match(/\d+/g).map(Number);

test("what is positive is blue, what is negative purple, and both begin alike", () => {
  const scale = signed(PALETTE);
  for (const t of [0.2, 0.5, 1]) {
    const [r, , b] = channels(scale(t).fill);
    const [red, green, blue] = channels(scale(-t).fill);
    assert(b > r, `${t} is blue`);
    assert(red > green && blue > green, `${-t} is purple`);
  }
  assert.equal(scale(0).fill, scale(-0).fill);
  assert.equal(scale(0).fill, rising(PALETTE)(0).fill);
  assert.equal(scale(1).fill, rising(PALETTE)(1).fill);
  assert.equal(scale(7).fill, scale(1).fill, "beyond its ends a scale goes on as it ends");
  assert.deepEqual(signs(PALETTE), { more: PALETTE.ramp[3], less: PALETTE.ahead[3] });
});

test("black or white is read on a colour, and what is no number has the first", () => {
  const scale = rising(PALETTE);
  assert.deepEqual([scale(0).ink, scale(1).ink], ["#000000", "#ffffff"]);
  assert.equal(scale(NaN).fill, scale(0).fill);
  assert.deepEqual([-1, 0, 0.5, 1, 2, NaN].map(level), [0, 0, 128, 255, 255, 0]);
  assert.deepEqual([0.25, -0.25, 0].map(rooted), [0.5, -0.5, 0]);
});

test("places are linear or logarithmic, and steps of an axis are round", () => {
  assert.equal(linear(0, 10, 100, 200)(5), 150);
  const place = logarithmic(0.01, 100, 0, 40);
  assert.deepEqual(
    [0.001, 0.01, 1, 100].map((x) => Math.round(place(x))),
    [0, 0, 20, 40],
  );
  assert.deepEqual(ticks(0, 1), [0, 0.5, 1]);
  assert.deepEqual(ticks(-10, 10), [-10, -5, 0, 5, 10]);
});

/** Two rows of three cells; the last is not known, and one is masked. */
const map = (more = {}) => ({
  rows: 2,
  columns: 3,
  x: 10,
  y: 20,
  w: 8,
  h: 4,
  tone: (row, column) => (row && column === 2 ? null : rising(PALETTE)((3 * row + column) / 5)),
  ...more,
});

test("a point is in a cell, or beside the map", () => {
  assert.deepEqual(cellAt(map(), 10, 20), [0, 0]);
  assert.deepEqual(cellAt(map(), 33.9, 27.9), [1, 2]);
  for (const [x, y] of [
    [9.9, 21],
    [34, 21],
    [11, 28],
    [11, 19.9],
  ])
    assert.equal(cellAt(map(), x, y), null);
});

test("a text that is written to the left has its first column at the right", () => {
  const back = map({ mirrored: true, masked: (row, column) => row === 0 && column > 0 });
  assert.deepEqual(
    [cellAt(back, 10, 20), cellAt(back, 33, 27)],
    [
      [0, 2],
      [1, 0],
    ],
  );
  const shapes = shapesOf({ ...back, frames: [{ row: 0, column: 0, colour: "orange" }] });
  assert.deepEqual(
    shapes.map(({ shape, x, w }) => [shape, x, w]),
    [
      ["rect", 26, 8],
      ["hatch", 10, 16],
      ["rect", 26, 8],
      ["rect", 18, 8],
      ["frame", 26, 8],
    ],
  );
});

test("a map is its cells, what is written in them, its names and its frames, in this order", () => {
  const shapes = shapesOf(
    map({
      gap: 2,
      size: 9,
      empty: "grey",
      label: (row, column) => (row + column ? [`${row}.${column}`] : null),
      masked: (row, column) => row === 0 && column > 0,
      rowNames: { list: ["a", null], colour: "ink", size: 9 },
      columnNames: { list: ["x", "y", "z"], colour: "ink", size: 9, lean: -50 },
      frames: [{ row: 1, colour: "orange", out: 1 }],
    }),
  );
  assert.deepEqual(
    shapes.map(({ shape, parts }) => (parts ? parts[0][0] : shape)),
    ["a", "x", "y", "z", "rect", "hatch", "rect", "1.0", "rect", "1.1", "frame", "frame"],
  );
  const [cell] = shapes.filter(({ shape }) => shape === "rect");
  assert.deepEqual([cell.x, cell.y, cell.w, cell.h], [11, 21, 6, 2]);
  const hatched = shapes.find(({ shape }) => shape === "hatch");
  assert.deepEqual([hatched.x, hatched.w], [18, 14], "masked cells side by side are one shape");
  const frame = shapes.at(-1);
  assert.deepEqual([frame.x, frame.y, frame.w, frame.h, frame.stroke], [9, 23, 26, 6, "orange"]);
});

test("bars stand on their line, hang from it below 0, and none is too short to be seen", () => {
  const bars = upright({
    values: [2, -1, 0, NaN],
    x: (i) => 10 * i,
    wide: 4,
    base: 50,
    high: (v) => 10 * v,
    fill: (i) => `c${i}`,
  });
  assert.deepEqual(
    bars.map(({ x, y, h, fill }) => [x, y, h, fill]),
    [
      [-2, 30, 20, "c0"],
      [8, 50, 10, "c1"],
      [18, 49, 1, "c2"],
    ],
  );
});
