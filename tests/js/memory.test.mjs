// Memory's first part: which length a place is, where labels go, and what Python is asked.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { served } from "./golden.mjs";

const { free, nearest, spread } = await served("rooms/memory/browser/places.js");
const { Asks } = await served("rooms/memory/browser/asks.js");

test("the length that is nearest, before the first and after the last too", () => {
  const places = [1, 10, 100, 1000].map((n) => ({ n }));
  const found = [-5, 1, 4, 6, 54, 56, 999, 1e9].map((n) => places[nearest(places, n)].n);
  assert.deepEqual(found, [1, 1, 1, 10, 10, 100, 1000, 1000]);
  assert.equal(nearest([{ n: 7 }], 100), 0);
});

test("labels keep their order and their distance, and none leaves the picture", () => {
  const cases = [[90, 50, 10], [99, 98, 97], [3, 2, 1], [60, 59, 58, 20], [50], []];
  for (const middles of cases) {
    const found = spread(middles, 20, 0, 100);
    assert.equal(found.length, middles.length);
    for (let i = 1; i < found.length; i++) assert(found[i - 1] - found[i] >= 20, `${middles} → ${found}`);
    for (const y of found) assert(y >= 10 && y <= 90, `${middles} → ${found}`);
  }
  assert.deepEqual(spread([90, 50, 10], 20, 0, 100), [90, 50, 10], "where there is room, each is beside its part");
});

test("a number of an axis is left out where another thing is said", () => {
  const tick = (x) => ({ x, width: 10 });
  assert.deepEqual(free([0, 12, 24, 100].map(tick), [{ x: 30, width: 20 }], 1), [true, true, false, true]);
});

test("quick presses are one question: the later of a name wins, and the number rises", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const told = [];
  const asks = new Asks((question) => told.push(structuredClone(question)));
  asks.ask({ bits: "4" });
  asks.ask({ batch: "2" });
  asks.ask({ bits: "8" });
  assert.deepEqual(told.at(-1), { id: 3, set: { bits: "8", batch: "2" } });
  assert.equal(asks.answered(2), false, "one is still on its way");
  assert.equal(asks.answered(3), true);
  asks.ask({ tab: "cards" });
  assert.deepEqual(told.at(-1), { id: 4, set: { tab: "cards" } }, "what was answered is not asked again");
  asks.end();
  mock.timers.reset();
});

test("a question without an answer is told again, and given up in the end", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  let told = 0;
  let lost = 0;
  const asks = new Asks(
    () => (told += 1),
    () => (lost += 1),
  );
  asks.ask({ bits: "4" });
  for (let i = 0; i < 20; i++) mock.timers.tick(1000);
  assert.deepEqual([told, lost, asks.isWaiting], [3, 1, false]);
  assert.equal(asks.answered(9), true, "a page that was here before had asked more");
  asks.ask({ bits: "4" });
  assert.equal(asks.last, 10);
  asks.end();
  mock.timers.reset();
});
