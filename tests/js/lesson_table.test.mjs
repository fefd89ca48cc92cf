// One table of steps for the rail: the course's, and those of lessons that teachers wrote, with what the browser keeps of each.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

globalThis.dispatchEvent ??= () => true;
const stored = new Map();
globalThis.localStorage = { getItem: (key) => stored.get(key) ?? null, setItem: (key, text) => stored.set(key, text) };
const table = await served("rooms/lessons/browser/table.js");
const { recapOf } = await served("rooms/lessons/browser/recap.js");
const { around, COURSE, done, keep, lessonOf, NAMES, STEPS, stepsOf, takeIn, titleOf, ways, writtenOf } = table;
const OURS = "headlight.lessons";
const THEIRS = "headlight.lessons.written";

const step = (title) => ({ title, values: {}, varied: {}, model: "", sentence: "", target: "" });
const lesson = (name, n) => ({
  title: name.toUpperCase(),
  language: "en",
  steps: Object.fromEntries(Array.from({ length: n }, (_, i) => [`${name}.${i + 1}`, step(`${name} ${i + 1}`)])),
});
const two = { "file-a": lesson("file-a", 3), "file-for": lesson("file-for", 1) };

test("a written lesson stands after the course, and leads into no other lesson", () => {
  takeIn(two);
  assert.equal(NAMES.length, COURSE + 4);
  assert.deepEqual(stepsOf("file-a"), ["file-a.1", "file-a.2", "file-a.3"]);
  assert.deepEqual(around("file-a.2"), stepsOf("file-a"));
  assert.deepEqual(around("1.2"), NAMES.slice(0, COURSE));
  assert.deepEqual(around("1.2r"), NAMES.slice(0, COURSE));
  assert.deepEqual(["1.2r", "1.10", "file-a.2"].map(lessonOf), ["1", "1", "file-a"]);
  assert.equal(titleOf("file-for"), "FILE-FOR");
  assert.equal(titleOf("1"), "1 Attention");
  assert.equal(writtenOf("file-a.1"), two["file-a"]);
  assert.equal(writtenOf("1.2"), undefined);
});

test("a recap asks three steps of each lesson of the course and none of a written one", () => {
  takeIn(two);
  for (const at of ["1", "2", "3", "4", "5", "6", "7"]) {
    const three = recapOf(at, () => false);
    assert.equal(three.length, 3);
    for (const name of three) assert.equal(STEPS[name].title, STEPS[name.slice(0, -1)].title);
  }
  for (const at of Object.keys(two))
    assert.deepEqual(
      recapOf(at, () => false),
      [],
    );
});

test("what was looked at and how it was answered is kept by name, apart from the course's bits", () => {
  stored.clear();
  takeIn(two);
  keep(
    new Set([0, 2, COURSE, COURSE + 1, COURSE + 3]),
    new Map([
      [2, "known"],
      [COURSE, "second"],
      [COURSE + 3, "known"],
    ]),
  );
  assert.equal(stored.get(OURS), "5.4");
  assert.deepEqual(JSON.parse(stored.get(THEIRS)), { "file-a.1": "second", "file-a.2": "", "file-for.1": "known" });
  takeIn({ "file-for": two["file-for"] }); // a file is away for a while
  assert.deepEqual([...done()], [0, 2, COURSE]);
  assert.deepEqual(
    [...ways()],
    [
      [2, "known"],
      [COURSE, "known"],
    ],
  );
  keep(new Set([0]), new Map());
  assert.equal(stored.get(OURS), "1");
  assert.deepEqual(JSON.parse(stored.get(THEIRS)), { "file-a.1": "second", "file-a.2": "" });
  takeIn(two);
  assert.deepEqual([...done()], [0, COURSE, COURSE + 1]);
  assert.deepEqual([...ways()], [[COURSE, "second"]]);
});

test("whatever else is kept under the name is nothing, or no way of answering", () => {
  takeIn(two);
  stored.set(OURS, "0");
  for (const text of ["nonsense", "null", "5", '["file-a.1"]', '{"file-b.1": "known"}', ""]) {
    stored.set(THEIRS, text);
    assert.deepEqual([...done()], [], text);
  }
  stored.set(THEIRS, '{"file-a.1": "shouted", "file-a.2": 3, "__proto__": "known", "file-a.3": "known"}');
  assert.deepEqual([...done()], [COURSE, COURSE + 1, COURSE + 2]);
  assert.deepEqual([...ways()], [[COURSE + 2, "known"]]);
});
