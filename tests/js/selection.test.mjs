// What is chosen in a room: the browser's newest word stands until Python knows it, and a link decides over both.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const page = new EventTarget(); // in place of the browser's window
for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"])
  globalThis[name] = page[name].bind(page);
const { RoomSelection, whole } = await served("kit/browser/selection.js");
const { classroom } = await served("kit/browser/classroom.js");

/** @returns {[chosen: any, told: any[]]} */
function begun() {
  const told = [];
  const chosen = new RoomSelection();
  chosen.host = { choose: (report) => told.push(report), tell() {}, trigger() {} };
  assert.equal(chosen.take({ values: { layer: "0", head: "0" }, stamp: 1, reported: 0 }), true);
  return [chosen, told];
}

test("a picture that arrives late takes back nothing that was chosen meanwhile", () => {
  const [chosen, told] = begun();
  chosen.choose({ layer: "2" });
  assert.equal(chosen.take({ values: { layer: "0", head: "0" }, stamp: 1, reported: 0 }), false);
  assert.deepEqual(chosen.values, { layer: "2", head: "0" });
  chosen.tell();
  assert.deepEqual(told, [{ number: 1, said: { layer: "2", head: "0" }, of: "" }]);
});

test("what Python made of the newest report is taken", () => {
  const [chosen] = begun();
  chosen.choose({ layer: "9" });
  chosen.tell();
  chosen.take({ values: { layer: "0", head: "1" }, stamp: 1, reported: 1 });
  assert.deepEqual(chosen.values, { layer: "0", head: "1" });
});

test("a link decides, and a change before it is not told any more", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [chosen, told] = begun();
  chosen.choose({ layer: "2" });
  assert.equal(chosen.take({ values: { layer: "5", head: "0" }, stamp: 2, reported: 0 }), true);
  assert.deepEqual(chosen.values, { layer: "5", head: "0" });
  t.mock.timers.tick(10_000);
  assert.deepEqual(told, []);
});

test("changes close together are told once, and numbered on from what Python knows", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [chosen, told] = begun();
  chosen.take({ values: { layer: "0" }, stamp: 7, reported: 41 });
  for (const layer of "123") chosen.choose({ layer });
  t.mock.timers.tick(10_000);
  assert.deepEqual(told, [{ number: 44, said: { layer: "3" }, of: "" }]);
});

test("what is chosen is told before the visitor goes elsewhere, once, and not by a room that has gone", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [chosen, told] = begun();
  dispatchEvent(new Event("popstate"));
  assert.deepEqual(told, []);
  chosen.choose({ layer: "2" });
  dispatchEvent(new Event("popstate"));
  assert.deepEqual(told, [{ number: 1, said: { layer: "2", head: "0" }, of: "" }]);
  t.mock.timers.tick(10_000);
  assert.equal(told.length, 1);
  chosen.choose({ layer: "3" });
  chosen.destroy();
  dispatchEvent(new Event("popstate"));
  assert.equal(told.length, 1);
});

test("what was chosen on one run is told before another is there, and as chosen on the first", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [chosen, told] = begun();
  chosen.take({ values: { query: "2" }, stamp: 2, reported: 0, of: "first" });
  chosen.choose({ query: "4" });
  assert.equal(chosen.take({ values: { query: "1" }, stamp: 2, reported: 0, of: "second" }), false);
  assert.deepEqual(told, [{ number: 1, said: { query: "4" }, of: "first" }]);
  assert.deepEqual(chosen.values, { query: "1" }); // until Python has found the word in the second
  chosen.take({ values: { query: "3" }, stamp: 2, reported: 1, of: "second" });
  assert.deepEqual(chosen.values, { query: "3" });
});

test("a text that is no whole number gives way", () => {
  assert.deepEqual(
    ["3", "", undefined, "x", "-1"].map((text) => whole(text, 7)),
    [3, 7, 7, 7, 7],
  );
});

test("a class is told what is chosen otherwise than in the room that it has, at once, and nothing of a room that has gone", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const shown = () => classroom.shown && [classroom.shown.view, classroom.shown.run, classroom.shown.with];
  const chosen = new RoomSelection();
  const follow = { room: "masks", drawn: "d1", base: { layer: "0", forbid: "" }, most: 700 };
  chosen.take({ values: { layer: "0", forbid: "" }, stamp: 1, reported: 0, follow });
  assert.deepEqual(shown(), ["masks", "d1", {}]);
  chosen.choose({ layer: "2" });
  assert.deepEqual(shown(), ["masks", "d1", { layer: "2" }]);
  chosen.choose({ forbid: "1-2,".repeat(300) });
  assert.deepEqual(shown(), ["masks", "d1", { layer: "2" }], "too much for a message: it comes with the room");
  chosen.take({
    values: { ...chosen.values },
    stamp: 1,
    reported: chosen.number,
    follow: { ...follow, drawn: "d2", base: { ...chosen.values } },
  });
  assert.deepEqual(shown(), ["masks", "d2", {}]);
  let heard = 0;
  classroom.chose = () => (heard += 1);
  chosen.choose({ layer: "3" });
  assert.equal(heard, 1, "at once, and not when Python is told");
  const other = new RoomSelection();
  other.take({ values: {}, stamp: 1, reported: 0, follow: { room: "step", drawn: "d3", base: {}, most: 700 } });
  chosen.destroy();
  assert.deepEqual(shown(), ["step", "d3", {}]);
  const again = new RoomSelection();
  again.take({ values: {}, stamp: 1, reported: 0, follow: { room: "step", drawn: "d3", base: {}, most: 700 } });
  other.destroy();
  assert.deepEqual(shown(), ["step", "d3", {}], "the same room drawn anew, before the first hears that it has gone");
  const next = new RoomSelection();
  next.take({ values: {}, stamp: 1, reported: 0, follow: { room: "masks", drawn: "d4", base: {}, most: 700 } });
  again.choose({ layer: "4" });
  assert.deepEqual(shown(), ["masks", "d4", {}], "a room that is drawn once more while the next one is there");
  next.destroy();
  assert.deepEqual(shown(), ["step", "d3", { layer: "4" }]);
  again.destroy();
  assert.equal(shown(), null);
});
