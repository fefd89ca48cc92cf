// What is covered, and by whom: a lesson, a room's message, or a class that is asked, whose cover lies over the others.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { served } from "./golden.mjs";

globalThis.document = { documentElement: { dataset: {} } };
const { cover } = await served("kit/browser/cover.js");

const step = (part, more = {}) => ({ step: "3.5", part, asks: "point", values: { query: "10" }, seen: false, ...more });
const asked = { step: "classroom", part: "row", asks: "point", values: { query: "all" }, seen: false };

beforeEach(() => {
  cover.free();
  cover.leave();
});

test("a room's message covers, and the next one uncovers", () => {
  cover.take(step("number"));
  assert(cover.hides("number"));
  cover.take(null);
  assert(!cover.hides("number"));
});

test("what a class is asked stays covered whatever a room or a lesson says", () => {
  cover.hold(asked);
  cover.take(null);
  assert(cover.hides("row"));
  cover.open(
    step("number"),
    () => {},
    () => {},
  );
  assert(cover.hides("row") && !cover.hides("number"));
  cover.free();
  assert(!cover.hides("row") && cover.hides("number"), "then it is as the lesson has it");
  cover.hold(asked);
  cover.leave();
  cover.free();
  assert.equal(cover.now, null, "a lesson that has gone meanwhile covers nothing");
});

test("what was looked at before a class was asked is looked at behind it", () => {
  cover.open(
    step("row"),
    () => {},
    () => {},
  );
  cover.look();
  cover.hold(asked);
  assert(cover.hides("row"));
  cover.free();
  assert(!cover.hides("row"));
});

test("what is pointed at is told to whoever asks", () => {
  const heard = [];
  cover.open(
    step("row"),
    (place) => heard.push(["lesson", ...place]),
    () => {},
  );
  cover.point(3, 1);
  cover.hold(asked, (place) => heard.push(["class", ...place]));
  assert(cover.point(7, 2));
  cover.hold({ ...asked, asks: "" });
  assert(!cover.point(8, 2), "a class that has its question asks nothing more");
  cover.free();
  cover.point(4, 0);
  assert.deepEqual(heard, [
    ["lesson", 3, 1],
    ["class", 7, 2],
    ["lesson", 4, 0],
  ]);
});
