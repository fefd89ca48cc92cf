// The choices in Explore, between the texts of a link and the values that its parts work with.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { optionsOf, placeOf, placeTexts, textsOf, unlikeOpening } = await served("attention/browser/values.js");

const CHOSEN = {
  show: "lines",
  scale: "log",
  bounds: "0.01,0.3",
  kind: "max",
  heads: "0.1,2.3",
  hide: "0,5",
  key: "3",
  words: "true",
  columns: "equal",
  whole: "true",
  zoom: "0,3,1,4",
  keep: "40",
  metric: "sink",
  sort: "true",
  by: "far",
  candidate: "2",
  low: "maps",
  predict: "true",
};

test("every option comes back as the text that it was", () => {
  assert.deepEqual(textsOf(optionsOf(CHOSEN)), CHOSEN);
  assert.deepEqual(unlikeOpening(CHOSEN), CHOSEN);
  assert.deepEqual(unlikeOpening(textsOf(optionsOf({}))), {});
});

test("parts work with numbers", () => {
  const { members, hide, pin, area, keep, bounds } = optionsOf(CHOSEN);
  assert.deepEqual(members, [
    [0, 1],
    [2, 3],
  ]);
  assert.deepEqual([hide, pin, area, keep, bounds], [[0, 5], 3, [0, 3, 1, 4], 40, [0.01, 0.3]]);
  const plain = optionsOf({});
  assert.deepEqual([plain.members, plain.hide, plain.pin, plain.area, plain.bounds], [[], [], null, null, null]);
});

test("a query that is not locked is a word of its own", () => {
  assert.deepEqual(placeOf({ site: "cross", layer: "2", head: "0", query: "none" }), {
    site: "cross",
    layer: 2,
    head: 0,
    query: null,
  });
  assert.deepEqual(placeTexts({ layer: 1, query: null }), { layer: "1", query: "none" });
});
