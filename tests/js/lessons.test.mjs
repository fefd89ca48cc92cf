// The browser checks an answer as Python does, to the word.

import assert from "node:assert/strict";
import { test } from "node:test";

import { expected, served } from "./golden.mjs";

const { check, numberWords } = await served("rooms/lessons/browser/check.js");
const { reply } = await served("rooms/lessons/browser/reply.js");

test("every answer to every kind of question gets the words that Python has for it", () => {
  const cases = expected("lessons");
  assert(cases.length > 1000);
  for (const { truth, answer, checked } of cases)
    assert.deepEqual(check(truth, answer), checked, `${truth.kind}: ${JSON.stringify(answer)}`);
});

test("a wrong answer gets the reply that Python has for it, and a right one none", () => {
  const cases = expected("lessons");
  for (const { truth, answer, reply: wanted } of cases)
    assert.deepEqual(reply(truth, answer), wanted, `${truth.kind}: ${JSON.stringify(answer)}`);
  const names = new Set(cases.flatMap(({ reply: wanted }) => (wanted ? [wanted.name] : [])));
  for (const name of [
    "The word that looks.",
    "The other way round.",
    "Another head.",
    "Twice.",
    "The head in front.",
    "Never say it.",
    "X is a text.",
  ])
    assert(names.has(name), name);
  assert(cases.some(({ checked, reply: wanted }) => checked.right && wanted === null));
});

test("numbers are said as people read them", () => {
  assert.deepEqual(
    [
      numberWords(30.56640625, "MiB", 3),
      numberWords(623, "tokens", 0),
      numberWords(-0.25, "", 1),
      numberWords(1234567.5, "", 0),
    ],
    ["30.566 MiB", "623 tokens", "−0.2", "1,234,568"],
  );
});

test("what is no answer at all is refused in a sentence", () => {
  const truth = expected("lessons").find(({ truth: { kind } }) => kind === "drag").truth;
  for (const answer of [NaN, Infinity, undefined, () => 1, Symbol("x"), new Map()])
    assert.equal(check(truth, answer).words.length, 1);
});
