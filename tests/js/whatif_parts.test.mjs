// Parts in the browser: estimates and runs as they come, measures, shares, the order, and where each part stands on the map.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

globalThis.document = { createTextNode: (text) => ({ textContent: text }) };
const { PartsFound, idOf, placeOf } = await served("rooms/whatif/browser/found.js");
const { partAt, partBeside, planOf } = await served("rooms/whatif/browser/partsmap.js");
const { pack } = await served("kit/browser/messages.js");

const LOG = (...p) => p.map(Math.log);

/** A message with arrays. */
function message(header, arrays) {
  const all = Object.entries(arrays);
  const body = new Float32Array(all.flatMap(([, numbers]) => numbers));
  let at = 0;
  const places = {};
  for (const [name, numbers] of all) {
    places[`${name}_at`] = 4 * at;
    at += numbers.length;
  }
  return new Uint8Array(pack({ ...header, ...places }, body.buffer));
}

/** Two layers of two heads; the words are “a”, “b” and “c”, and the other sentence has “b”. */
function begun() {
  const found = new PartsFound();
  const known = {
    position: 3,
    watched: [7, 8, 9],
    labels: { 7: "a", 8: "b", 9: "c" },
    tokens: [2, 3],
    of: 10,
    heads_each: 2,
  };
  const arrays = {
    heads: [0.1, -2, 0.3, 1.5],
    mlps: [-0.5, 0.2],
    before: LOG(0.8, 0.1, 0.05),
    there: LOG(0.1, 0.8, 0.05),
  };
  found.take(message(known, arrays));
  return found;
}

function ran(found, rows) {
  const ids = Object.keys(rows);
  const header = { parts: ids, top: ids.map(() => 8), labels: { 8: "b" } };
  found.take(message(header, { log_p: ids.flatMap((id) => LOG(...rows[id])), top_p: ids.map(() => 0.5) }));
}

test("an estimate stands until its run is here, of the lead alone", () => {
  const found = begun();
  assert.deepEqual(found.counts("ld"), [0, 6, 4]);
  assert.deepEqual(found.counts("p"), [0, 0, 10]);
  assert.equal(found.estimate("z0.1", "ld"), -2);
  assert.ok(Math.abs(found.estimate("m1", "ld") - 0.2) < 1e-6);
  assert.equal(found.estimate("z0.1", "lp"), undefined);
  assert.equal(found.estimate("r0.2", "ld"), undefined);
  assert.equal(found.change("z0.1", "ld"), undefined);
  ran(found, { "z0.1": [0.4, 0.4, 0.05], "r1.3": [0.1, 0.8, 0.05] });
  assert.deepEqual(found.counts("ld"), [2, 5, 3]);
  assert.ok(Math.abs(found.change("z0.1", "ld") + Math.log(8)) < 1e-5);
  assert.ok(Math.abs(found.change("z0.1", "lp") - Math.log(0.5)) < 1e-5);
  assert.ok(Math.abs(found.change("z0.1", "p") + 0.4) < 1e-6);
  assert.equal(found.done, false);
});

test("a share is of the whole difference, and a small one is almost nothing", () => {
  const found = begun();
  ran(found, {
    "z0.1": [0.4, 0.4, 0.05],
    "z0.0": [0.9, 0.05, 0.05],
    "z1.0": [0.8, 0.1, 0.05],
    "r1.3": [0.1, 0.8, 0.05],
  });
  assert.ok(Math.abs(found.share("z0.1") - 0.5) < 1e-5);
  assert.ok(Math.abs(found.share("r1.3") - 1) < 1e-5);
  assert.deepEqual(
    ["z0.1", "z0.0", "z1.0"].map((id) => PartsFound.way(found.share(id))),
    ["carries", "other", "nothing"],
  );
  assert.equal(found.share("m0"), null);
  assert.equal(found.staysThere, false);
});

test("the head that opens moves the lead toward the other sentence, is one of those that ran first, and stays", () => {
  const found = begun();
  ran(found, { "z1.1": [0.99, 0.001, 0.001] });
  assert.equal(found.strongest, null);
  const early = { "z0.1": [0.6, 0.2, 0.05] };
  for (const id of ["m0", "m1", "r0.2", "r0.3", "r1.2", "r1.3", "z0.0", "z1.0"]) early[id] = [0.1, 0.8, 0.05];
  early["z0.0"] = early["z1.0"] = [0.8, 0.1, 0.05];
  ran(found, early);
  assert.equal(found.done, true);
  assert.equal(found.strongest, "z0.1");
  assert.deepEqual(found.ranked("z", "ld").slice(0, 2), ["z1.1", "z0.1"]);
});

test("silent, the head that opens is the one that lowers the lead most, and there is no difference to have a share of", () => {
  const found = new PartsFound();
  found.isTaken = false;
  const known = { position: 3, watched: [7, 8], labels: {}, tokens: [], of: 3, heads_each: 1 };
  found.take(message(known, { heads: [0.1, -2], mlps: [0, 0], before: LOG(0.8, 0.1) }));
  ran(found, { "z0.0": [0.9, 0.05], "z1.0": [0.6, 0.2], m0: [0.1, 0.8] });
  assert.equal(found.strongest, "z1.0");
  assert.equal(found.share("z1.0"), null);
  assert.ok(Math.abs(found.top("ld") - Math.log(8) / 2) < 1e-5);
});

test("runs that came by themselves replace no other", () => {
  const [found, alone] = [begun(), begun()];
  ran(found, { "z0.1": [0.4, 0.4, 0.05] });
  ran(alone, { "z0.1": [0.8, 0.1, 0.05], m0: [0.4, 0.4, 0.05] });
  found.add(alone);
  assert.ok(Math.abs(found.change("z0.1", "ld") + Math.log(8)) < 1e-5);
  assert.ok(Math.abs(found.change("m0", "ld") + Math.log(8)) < 1e-5);
});

test("every part has its own place on the map, upright and on a phone, and arrows go to the next", () => {
  const found = begun();
  for (const turned of [false, true]) {
    const plan = planOf(found, ["c", "d"], { width: 300, height: 300, unit: 1, turned });
    const seen = new Set();
    for (let x = 0; x < plan.width; x += 2) for (let y = 0; y < plan.height; y += 2) seen.add(partAt(plan, x, y));
    seen.delete(null);
    assert.deepEqual([...seen].sort(), ["z", "m", "r"].flatMap((kind) => found.all(kind)).sort());
    const [down, right] = turned
      ? [
          [0, 1],
          [1, 0],
        ]
      : [
          [1, 0],
          [0, 1],
        ];
    assert.equal(partBeside(plan, "z0.1", ...down), "m0");
    assert.equal(partBeside(plan, "m0", ...down), "r0.2");
    assert.equal(partBeside(plan, "r0.3", ...down), null);
    assert.equal(partBeside(plan, "z0.1", ...right), "z1.1");
    assert.equal(partBeside(plan, "z1.1", ...right), null);
  }
  assert.deepEqual(placeOf(idOf("r", 3, 14)), ["r", 3, 14]);
  assert.deepEqual(placeOf(idOf("m", 3, 0)), ["m", 3, 0]);
});
