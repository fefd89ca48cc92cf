// Shares in words, the direction of a text, and the colours of a number.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { finely, percent } = await served("kit/browser/dom.js");
const whatif = await served("rooms/whatif/browser/numbers.js");
const { across, areLetters, isMirrored, isRightToLeft } = await served("kit/browser/direction.js");
const { endsOf, levelOf, levelsOfRoots } = await served("kit/browser/picture/scale.js");

test("a share in words is whole only where that says enough, and 0 % and 100 % are exact", () => {
  const said = [0, 1e-5, 0.0049, 0.13, 0.677, 0.98, 0.984, 0.987, 0.997, 0.9995, 1].map((p) => percent(p));
  assert.deepEqual(said, [
    "0 %",
    "<0.1 %",
    "0.5 %",
    "13 %",
    "68 %",
    "98 %",
    "98 %",
    "98.7 %",
    "99.7 %",
    ">99.9 %",
    "100 %",
  ]);
  assert.deepEqual([0.13, 0.677, 0.00004, 0.99996].map(finely), ["13.0 %", "67.7 %", "<0.1 %", ">99.9 %"]);
});

test("no room says nothing of a little, nor all of nearly all", () => {
  const ways = { finely, percent, one: (p) => percent(p, 1), tenth: whatif.tenth };
  Object.assign(ways, { whatif: whatif.percent });
  const small = Array.from({ length: 60 }, (_, i) => 10 ** (-1 - i / 8));
  for (const [name, way] of Object.entries(ways))
    for (const p of small.flatMap((p) => [p, 1 - p]))
      if (p > 0 && 1 - p > 1e-8)
        assert.doesNotMatch(way(p), /^(0|0\.0|100|100\.0)[ \u00a0]?%?$/, `${name} says ${way(p)} of ${p}`);
});

test("Hebrew and Arabic are read from right to left, whatever stands around them", () => {
  assert(isRightToLeft(["[CLS]", "ש", "ל", "ו", "ם", "[SEP]"]));
  assert(isRightToLeft(["<s>", "مرحبا", "123", ".", "</s>"]));
  assert(!isRightToLeft(["[CLS]", "The", "word", "שלום", "is", "Hebrew", "[SEP]"]));
  assert(!isRightToLeft(["{", "}", "="]));
});

test("letters that are tokens of their own are known", () => {
  assert(areLetters(["<s>", "{", "}", "[", "=", "</s>"]));
  assert(!areLetters(["a", "word"]) && !areLetters(["ש", "ל"]));
});

test("map, words and small maps have the same colour for the same weight", () => {
  const whole = endsOf("linear", 1);
  const roots = levelsOfRoots("linear", whole);
  for (const weight of [0, 0.04, 0.25, 0.5, 1])
    assert(Math.abs(roots[Math.round(255 * Math.sqrt(weight))] - levelOf("linear", weight, whole)) <= 1);
  assert.deepEqual(
    [1e-4, 1e-2, 1].map((weight) => levelOf("log", weight, endsOf("log", 1))),
    [0, 128, 255],
  );
});

test("colours end where somebody has set their ends", () => {
  const ends = endsOf("linear", 1, [0.1, 0.5]);
  assert.deepEqual(
    [0, 0.1, 0.3, 0.5, 0.9].map((weight) => levelOf("linear", weight, ends)),
    [0, 0, 127, 255, 255],
  );
  assert.deepEqual(
    [0, 0.001, 0.01, 0.1, 1].map((weight) => levelOf("log", weight, endsOf("log", 1, [0.001, 0.1]))),
    [0, 0, 128, 255, 255],
  );
  assert.deepEqual(endsOf("log", 1, [0, 0.2]), { low: 0.2 / 1e4, high: 0.2 }); // there is no logarithm of nothing
});

test("maps are mirrored by the text whose tokens are keys, whichever side that is", () => {
  const picture = { tokens: { source: ["[CLS]", "\u05e9", "\u05dc"], target: ["<s>", "peace"] } };
  assert.deepEqual(
    ["source", "target"].map((key) => isMirrored(picture, { key })),
    [true, false],
  );
  assert.deepEqual(
    [0, 1, 2].map((k) => across(k, 3, true)),
    [2, 1, 0],
  );
  assert.deepEqual(
    [0, 1, 2].map((k) => across(k, 3, false)),
    [0, 1, 2],
  );
});
