// Motion is over when it says so, begins where the text before had the word, and is off for those who want none.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.matchMedia = () => ({ matches: globalThis.wantsNoMotion ?? false });
const { named, Slide } = await import("../../app/attention/browser/motion.js");

test("equal words are told apart by which of that name they are", () => {
  assert.deepEqual(named(["the", "cat", "the"]), ["the 0", "cat 0", "the 1"]);
});

test("a word slides from where the text before had it, a new one does not", () => {
  const slide = new Slide();
  slide.put("a", new Map([["cat 0", 10]]));
  slide.put(
    "b",
    new Map([
      ["cat 0", 50],
      ["dog 0", 90],
    ]),
  );
  assert.ok(slide.isMoving);
  assert.ok(slide.offset("cat 0") < 0 && slide.offset("cat 0") >= -40);
  assert.equal(slide.offset("dog 0"), 0);
});

test("the same text laid out anew does not move", () => {
  const slide = new Slide();
  slide.put("a", new Map([["cat 0", 10]]));
  slide.since = -Infinity;
  slide.put("a", new Map([["cat 0", 50]]));
  assert.equal(slide.offset("cat 0"), 0);
});

test("who wants no motion sees none", () => {
  globalThis.wantsNoMotion = true;
  const slide = new Slide();
  slide.put("a", new Map([["cat 0", 10]]));
  slide.put("b", new Map([["cat 0", 50]]));
  assert.ok(!slide.isMoving);
  assert.equal(slide.offset("cat 0"), 0);
});
