// Numbers that are typed, as the page's language writes them and as others do.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { numberOf } = await served("kit/browser/language.js");

test("a typed number is read with its unit, its thousands and either sign before its decimals", () => {
  const read = {
    512: 512,
    " 1,024 ": 1024,
    "1,024.5": 1024.5,
    0.16: 0.16,
    "0,16": 0.16,
    "12,5": 12.5,
    ".5": 0.5,
    "−3": -3,
    "–2.5": -2.5,
    "+4": 4,
    "1e3": 1000,
    "30.5 MiB": 30.5,
    "30.5mib": 30.5,
    "1 024": 1024,
  };
  for (const [typed, value] of Object.entries(read)) assert.equal(numberOf(typed, "MiB"), value, typed);
  assert.equal(numberOf("12 %", "%"), 12);
});

test("what is no number, or not yet one, is null", () => {
  for (const typed of [
    "",
    " ",
    "-",
    ".",
    "1e",
    "abc",
    "12x",
    "1,2,3",
    "1.2.3",
    "0x10",
    "Infinity",
    "NaN",
    "1e999",
    "<b>1</b>",
    "5 GiB",
  ])
    assert.equal(numberOf(typed, "MiB"), null, typed);
});
