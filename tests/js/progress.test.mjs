// Progress is kept as text: the steps that were looked at, those that were known, and those of the second try.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

globalThis.dispatchEvent ??= () => true;
const { done, keep, read, readWays, ways, write } = await served("kit/browser/progress.js");

test("progress of before is read as before, and says nothing of what was known", () => {
  assert.deepEqual([...read("2f")], [0, 1, 2, 3, 5]);
  assert.deepEqual([...readWays("2f")], []);
  assert.equal(write([0, 1, 2, 3, 5]), "2f");
  for (const unreadable of ["zz", "-1", "f".repeat(17), "1.2.3.4", "1.zz"]) {
    assert.equal(read(unreadable), null);
    assert.equal(readWays(unreadable).size, 0);
  }
});

test("what was known, and what came at the second try, comes back as it was written", () => {
  const known = new Map([
    [0, "known"],
    [3, "second"],
    [51, "known"],
  ]);
  for (const some of [known, new Map([[3, "second"]]), new Map([[0, "known"]]), new Map()]) {
    const text = write([0, 1, 3, 51], some);
    assert.deepEqual([...read(text)], [0, 1, 3, 51]);
    assert.deepEqual(readWays(text), new Map([...some].sort(([, a], [, b]) => (a < b ? 1 : -1))));
  }
});

test("a step that is kept later leaves what is known of the others", () => {
  keep(new Set([4]), new Map([[4, "second"]]));
  keep(done(9).add(5));
  assert.deepEqual([...done(9)], [4, 5]);
  assert.deepEqual([...ways()], [[4, "second"]]);
});
