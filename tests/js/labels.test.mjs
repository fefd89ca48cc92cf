// Names of tokens that a text has more than once.

import assert from "node:assert/strict";
import test from "node:test";

import { served } from "./golden.mjs";

const { indexed, tokenName, whichOf } = await served("kit/browser/labels.js");

const LABELS = ["[CLS]", "to", "John", ",", "to", "John", ",", "once", "[CLS]"];

test("a word that comes again says which of them it is, and signs and special tokens do not", () => {
  assert.deepEqual(
    LABELS.map((_, i) => indexed(LABELS, i)),
    ["[CLS]", "to₁", "John₁", ",", "to₂", "John₂", ",", "once", "[CLS]"],
  );
  assert.equal(whichOf(LABELS, 4), "2");
  assert.equal(indexed(LABELS, 99), "");
});

test("a word that is everywhere has no number, which would be longer than the word", () => {
  const many = Array.from({ length: 100 }, () => "a");
  assert.equal(indexed(many, 50), "a");
  assert.equal(indexed(many.slice(1), 50), "a₅₁");
});

test("a token that stands for no letters has a name", () => {
  assert.equal(tokenName("<|im_end|>"), tokenName("<end_of_turn>"));
  assert.equal(tokenName("</s>"), tokenName("<|endoftext|>"));
  assert.notEqual(tokenName("</s>"), "</s>");
  assert.equal(tokenName("Mary"), "Mary");
  assert.equal(tokenName("<b>"), "<b>");
});
