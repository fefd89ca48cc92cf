// Paths, estimates against runs, what heads read, and arrays of all parts: what is counted and where it stands, without drawing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

globalThis.document = { createTextNode: (text) => ({ textContent: text }) };
const { checkOf, correlation, ranksOf } = await served("rooms/whatif/browser/check.js");
const { PartsFound, arraysOf } = await served("rooms/whatif/browser/found.js");
const { noteOf, reads } = await served("rooms/whatif/browser/notes.js");
const map = await served("rooms/whatif/browser/pathsmap.js");

test("equal numbers share a rank, and agreement is of ranks alone", () => {
  assert.deepEqual(ranksOf([3, -1, 3, 0]), [2.5, 0, 2.5, 1]);
  assert.equal(correlation(ranksOf([1, 2, 3, 40]), ranksOf([-9, 0, 1, 2])), 1);
  assert.equal(correlation(ranksOf([1, 2, 3]), ranksOf([3, 2, 1])), -1);
  assert.equal(correlation([1, 1, 1], [1, 2, 3]), 0);
});

/** Layers of four heads with these estimates, and runs that change the lead by these numbers. */
function partsOf(estimates, exact) {
  const found = new PartsFound();
  const watched = [7, 8];
  found.known = {
    position: 3,
    watched,
    tokens: [],
    of: estimates.length + estimates.length / 4,
    each: 4,
    heads: Float32Array.from(estimates),
    mlps: new Float32Array(estimates.length / 4),
    before: Float32Array.from([-1, -2]),
    there: null,
  };
  found.labels = { 7: "a", 8: "b" };
  exact.forEach((change, i) => {
    if (change === undefined) return;
    const id = `z${Math.floor(i / 4)}.${i % 4}`;
    found.exact.set(id, { logP: Float32Array.from([-1 + change, -2]), top: 7, topP: 0.5 });
  });
  return found;
}

test("estimates are held against the runs that are here", () => {
  const estimates = Array.from({ length: 16 }, (_, i) => 16 - i);
  const exact = estimates.map((x) => x);
  exact[0] = -20; // the strongest, with the wrong sign
  exact[15] = 15.5; // strong, and estimated as the weakest
  const whole = checkOf(partsOf(estimates, exact));
  assert.equal(whole.all, 16);
  assert.equal(whole.both, 9);
  assert.equal(whole.wrong, 1);
  assert.deepEqual(whole.off.slice(0, 2), [0, 15]);
  assert.ok(whole.rho < 0.6 && whole.rho > -0.6);
  const some = exact.map((x, i) => (i < 12 ? x : undefined));
  assert.equal(checkOf(partsOf(estimates, some)).ids.length, 12);
  assert.equal(
    checkOf(
      partsOf(
        estimates,
        some.map((x, i) => (i < 11 ? x : undefined)),
      ),
    ),
    null,
  );
  assert.equal(checkOf(new PartsFound()), null);
});

test("all numbers leave as arrays, and a run that is not here is nan", () => {
  const found = partsOf([1, 2, 3, 4], [0.5, undefined, -1, 0]);
  const arrays = arraysOf(found, ["x", "y"]);
  assert.deepEqual(arrays.heads_estimate, { shape: [1, 4], values: [1, 2, 3, 4] });
  assert.deepEqual(arrays.heads_exact.values, [0.5, Number.NaN, -1, 0]);
  assert.deepEqual(arrays.heads_log_p.shape, [1, 4, 2]);
  assert.deepEqual(arrays.heads_log_p.values.slice(0, 4), [-0.5, -2, Number.NaN, Number.NaN]);
  assert.deepEqual(arrays.watched.values, ["a", "b"]);
  assert.deepEqual(arrays.tokens.values, ["x", "y"]);
  assert.equal(arrays.words_exact, undefined);
  assert.deepEqual(arraysOf(new PartsFound(), []), {});
});

test("a head is told by what it reads, where it acts, and what it pushes", () => {
  const labels = ["When", "Mary", "and", "Mary", "to"];
  const notes = {
    each: 5,
    acts: Float32Array.from([4, 4, 4, 2, 4]),
    keys: Float32Array.from([3, 4, 1, 2, 1]),
    weights: Float32Array.from([0.74, 0.6, 0.1, 0.71, 0.5]),
    firsts: Float32Array.from([0.1, 0.1, 0.8, 0.1, 0.4]),
    pushes: Float32Array.from([-0.1, -2.9, 1.8, 0.1, 3, 3, 3, 3, 0.4, -0.49]),
  };
  const said = (id) => noteOf(notes, id, labels, 4, ["Mary", "John"]).replaceAll("\u00a0", " ");
  assert.equal(said("z0.0"), "reads Mary₂ (74 %) · pushes John down");
  assert.equal(said("z0.1"), "reads itself (60 %) · pushes Mary up");
  assert.equal(said("z0.2"), "rests on the first word (80 %)");
  assert.equal(said("z0.3"), "at “and” reads itself (71 %)");
  assert.equal(said("z0.4"), "reads Mary₁ (50 %) · tells later heads");
  assert.equal(reads(notes, "z0.2", labels, true), "rests");
  assert.equal(reads(notes, "z0.0", labels, true), "reads Mary₂");
  assert.ok(!noteOf({ ...notes, pushes: null }, "z0.0", labels, 4, ["a", "b"]).includes("pushes"));
});

const edge = (from, to, input, change) => ({ from, to, input, change });
const { ALL, ANSWER } = map;
const EDGES = [
  edge("z1.0", ANSWER, "out", -6),
  edge("z2.1", ANSWER, "out", 0.3),
  edge("z3.0", ANSWER, "out", 0.01),
  edge("z1.0", "z3.0", "v", 1.5),
  edge("z1.0", "z3.0", "q", 0.1),
  edge("z2.1", "z3.0", "v", -0.15),
  edge(ALL, "z1.0", "v", -7),
  edge(ALL, "z1.0", "q", 0.2),
];

test("small lines are drawn only as the largest of a head", () => {
  const lines = map.drawn(EDGES, ({ input }) => input === "v");
  assert.deepEqual(
    lines.map(({ change }) => change),
    [-6, 0.3, 0.01, 1.5, -7],
  );
  assert.deepEqual(
    map.strongestInto(
      EDGES.filter(({ to }) => to === "z3.0"),
      1,
    ),
    ["z1.0"],
  );
});

for (const turned of [false, true])
  test(`cards stand by layers and cover no other, ${turned ? "downwards" : "across"}`, () => {
    const heads = ["z1.0", "z2.1", "z3.0", "z3.1", "z3.2", "z9.0"];
    const room = { width: turned ? 358 : 760, height: 300, unit: 1, turned, hasAnswer: true };
    const edges = [...EDGES, edge("z2.1", "z9.0", "k", 2), edge("z9.0", ANSWER, "out", -3)];
    const plan = map.planOf(heads, edges, room);
    assert.equal(plan.cards.length, 8);
    const along = (id) => plan.cards.find((card) => card.id === id)[turned ? "y" : "x"];
    assert.ok(along(ALL) < along("z1.0") && along("z2.1") < along("z3.0") && along("z3.1") < along("z9.0"));
    assert.ok(along("z9.0") < along(ANSWER));
    for (const a of plan.cards) {
      assert.ok(a.x >= 0 && a.x + a.w <= room.width + 1, a.id);
      for (const b of plan.cards)
        assert.ok(
          a === b ||
            a.x + a.w <= b.x + 0.1 ||
            b.x + b.w <= a.x + 0.1 ||
            a.y + a.h <= b.y + 0.1 ||
            b.y + b.h <= a.y + 0.1,
          `${a.id} ${b.id}`,
        );
    }
    const z3 = plan.cards.find(({ id }) => id === "z3.0");
    assert.equal(map.cardAt(plan, z3.x + 5, z3.y + 5), "z3.0");
    assert.equal(map.cardAt(plan, -5, -5), null);
    const widths = plan.lines.map(({ width }) => width);
    assert.equal(Math.max(...widths), plan.lines.find(({ edge }) => edge.change === -7).width);
    const line = plan.lines.find(({ edge }) => edge.change === 2);
    assert.equal(map.lineAt(plan, ...map.pointAt(line.points, 0.5)).change, 2);
    const [down, right] = turned ? [1, 0] : [0, 1];
    assert.equal(map.headBeside(plan, "z9.0", down, right), null);
    assert.ok(["z3.0", "z3.1", "z3.2"].includes(map.headBeside(plan, "z2.1", down, right)));
    assert.ok(map.isDashed(line.edge) && !map.isDashed(EDGES[0]));
  });

test("twelve heads of one layer have several columns", () => {
  const heads = Array.from({ length: 12 }, (_, i) => `z0.${i}`);
  const plan = map.planOf(heads, [edge("z0.0", ANSWER, "out", 1)], {
    width: 760,
    height: 300,
    unit: 1,
    turned: false,
    hasAnswer: true,
  });
  assert.ok(new Set(plan.cards.map(({ x }) => x)).size > 3);
  assert.ok(plan.cards.every(({ y, h }) => y >= 0 && y + h <= 301));
});
