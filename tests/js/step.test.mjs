// Step through: sums whose shown numbers add up, one row of attention with what was changed, and the rows of the ledger.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

import { near, served } from "./golden.mjs";

const { fixed, percent } = await served("kit/browser/dom.js");
const { long } = await served("kit/browser/model_strip.js");
const { addUp, largest, limit, ofUnits, spread } = await served("rooms/step/browser/sums.js");
const { ACTIVATIONS, attended, erf, followed, oneHead, softmax } = await served("rooms/step/browser/compute.js");

const { eased, mix, Motion, part } = await served("rooms/step/browser/motion.js");
const { angleOf } = await served("rooms/step/browser/triangle.js");

// The same numbers every time
function random(seed) {
  let state = seed;
  return () => ((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648) * 4 - 2;
}

test("shown numbers add up to the shown sum, each within one step of its own", () => {
  const next = random(1);
  for (let i = 0; i < 500; i++) {
    const parts = Array.from({ length: 2 + (i % 7) }, next);
    const sum = parts.reduce((a, b) => a + b, 0);
    for (const digits of [2, 3]) {
      const alone = addUp(sum, parts, { digits });
      assert.equal(
        alone.parts.reduce((a, b) => a + b, 0),
        alone.total,
      );
      for (const [k, units] of alone.parts.entries())
        assert(Math.abs(units - parts[k] * 10 ** digits) <= 1, `${units} for ${parts[k]}`);
      const rest = next();
      const others = addUp(sum + rest, parts, { others: true, digits });
      assert.equal(others.parts.reduce((a, b) => a + b, 0) + others.others, others.total);
      assert.deepEqual(
        others.parts,
        parts.map((part) => Math.round(part * 10 ** digits) + 0),
      );
    }
  }
});

test("a share has whole percents from 10 to 98, else one decimal, and is never rounded to nothing or to all", () => {
  for (const [p, said] of [
    [0, "0 %"],
    [1e-5, "<0.1 %"],
    [0.0023, "0.2 %"],
    [0.0949, "9.5 %"],
    [0.0996, "10 %"],
    [0.67684, "68 %"],
    [0.98, "98 %"],
    [0.988, "98.8 %"],
    [0.99941, ">99.9 %"],
    [1, "100 %"],
  ])
    assert.equal(percent(p), said);
});

// All modules that a room brings, by their paths
function modulesOf(name, found = new Map()) {
  if (found.has(name)) return found;
  const source = readFileSync(join(process.env.GOLDEN, "browser", name), "utf-8");
  found.set(name, source);
  for (const [, path] of source.matchAll(/^(?:import|export)[^;]*? from "(\.[^"]+)";/gm))
    modulesOf(normalize(join(dirname(name), path)), found);
  return found;
}

test("one number has one rounding on the screen: no part of the room rounds a share or a length by another rule", () => {
  const modules = modulesOf("rooms/step/browser/step.js");
  assert(modules.has("kit/browser/model_strip.js") && modules.has("rooms/step/browser/ledger.js"));
  for (const [name, source] of modules) {
    if (name === "kit/browser/dom.js") continue; // where the rule is
    for (const [, names] of source.matchAll(/import \{([^}]*)\} from "[^"]*dom\.js"/g))
      for (const other of ["share", "finely"])
        assert(!names.split(",").some((one) => one.trim().split(" ")[0] === other), `${name} imports ${other}`);
    assert(
      !/toFixed\([^`]*`?\s*%|\* 100\).*%`|function (share|percent|long)\b/.test(source.replace(/\/\/.*/g, "")) ||
        name === "kit/browser/model_strip.js",
      `${name} rounds by itself`,
    );
    assert(!/fixed\(length\([^/]*$/m.test(source), `${name} rounds a length by itself`);
  }
  assert.deepEqual([337.35, 11.508, 0.8452, 99.96].map(long), ["337", "11.5", "0.85", "100"]);
});

test("numbers as they are read", () => {
  assert.equal(fixed(-1.4773, 3), "−1.477");
  assert.equal(fixed(-0.0004), "0.00");
  assert.equal(fixed(-Infinity), "−∞");
  assert.equal(ofUnits(-8, 3), "−0.008");
  assert.equal(largest([0.5, -3, 2]), 1);
  assert.equal(limit([0, 0]), 1);
  near(spread([1, 3]), [2, 1], 1e-12, "spread");
});

test("activations are torch's", () => {
  near([erf(0), erf(0.5), erf(-1), erf(3)], [0, 0.5204998778, -0.8427007929, 0.9999779095], 2e-7, "erf");
  near([-2, -0.5, 0.7, 3].map(ACTIVATIONS.gelu), [-0.0455003, -0.1542688, 0.5306254, 2.9959502], 1e-6, "gelu");
  near([-2, 0.7].map(ACTIVATIONS.silu), [-0.2384058, 0.4677313], 1e-6, "silu");
});

test("a row of attention, its divisor and hidden keys", () => {
  const next = random(3);
  const [n, d] = [5, 4];
  const q = Float32Array.from({ length: d }, next);
  const raw = Array.from({ length: n }, next);
  const values = Array.from({ length: n }, () => Float32Array.from({ length: d }, next));
  const head = { q, raw, v: (k) => values[k], reason: [0, 0, 0, 0, 1], bias: null, scale: 0.5, temperature: 1 };
  const own = attended(head, { divide: null, hide: [] });
  near(
    own.scaled,
    raw.map((s) => s / 2),
    1e-12,
    "scaled",
  );
  assert.equal(own.weights[4], 0);
  assert.equal(own.masked[4], -Infinity);
  near([own.weights.reduce((a, b) => a + b, 0)], [1], 1e-12, "rows sum to 1");
  near(
    own.z,
    Array.from({ length: d }, (_, j) => own.weights.reduce((sum, w, k) => sum + w * values[k][j], 0)),
    1e-12,
    "z",
  );
  const changed = attended(head, { divide: 4, hide: [1] });
  near(
    changed.weights,
    softmax(
      raw.map((s) => s / 4),
      [true, false, true, true, false],
    ).weights,
    1e-12,
    "changed",
  );
  // what distance adds is divided with the score, as a temperature does
  const biased = attended({ ...head, bias: [1, 2, 3, 4, 5] }, { divide: 4, hide: [] });
  near(
    biased.scaled,
    raw.map((s, k) => (s * 0.5 + (k + 1)) / 2),
    1e-12,
    "biased",
  );
  assert.deepEqual(softmax([1, 2], [false, false]).weights, [0, 0]);
});

test("3 × 4 and the reshape", () => {
  const eye = [0, 1, 2, 3].map((i) => [0, 1, 2, 3].map((j) => Number(i === j)));
  const all = oneHead(
    [
      [1, 0, 0, 0],
      [0, 2, 0, 0],
      [0, 0, 0, 4],
    ],
    { w_q: eye, w_k: eye, w_v: eye },
  );
  assert.deepEqual(all.scores, [
    [1, 0, 0],
    [0, 4, 0],
    [0, 0, 16],
  ]);
  assert.deepEqual(all.scaled[1], [0, 2, 0]);
  const found = followed([0, 2, 5], [2, 4, 24], 2);
  assert.deepEqual([found.part, found.head, found.j], [0, 1, 1]);
  assert.deepEqual(found.steps, [
    [[0, 2, 5], 53],
    [[0, 2, 5], 53],
    [[0, 2, 1, 1], 53],
    [[0, 1, 2, 1], 53],
    [[0, 2, 5], 21],
  ]);
});

test("of a long text the ledger keeps the heaviest keys, the followed token and the one that is looked at", async () => {
  const { HEAVIEST, ledgerRows } = await served("rooms/step/browser/ledger.js");
  const short = ledgerRows(
    Array.from({ length: 16 }, () => 1 / 16),
    3,
    0,
  );
  assert.deepEqual([short.rows.length, short.others], [16, []]);
  const weights = Array.from({ length: 100 }, (_, k) => (k === 40 ? 0.5 : (100 - k) / 9000));
  const long = ledgerRows(weights, 90, 80);
  assert(
    long.rows.includes(40) && long.rows.includes(90) && long.rows.includes(80) && long.rows.length === HEAVIEST + 2,
  );
  assert.equal(long.rows.length + long.others.length, 100);
  assert.equal(ledgerRows(weights, 90, 80, 8).rows.length, 7);
});

test("a motion runs through its moments, ends when another begins, and jumps where none is wanted", () => {
  const frames = [];
  const clock = { now: 0 };
  const kept = [
    globalThis.requestAnimationFrame,
    globalThis.cancelAnimationFrame,
    globalThis.matchMedia,
    performance.now,
  ];
  let still = false;
  globalThis.requestAnimationFrame = (frame) => frames.push(frame);
  globalThis.cancelAnimationFrame = () => {
    frames.length = 0;
  };
  globalThis.matchMedia = () => ({ matches: still });
  performance.now = () => clock.now;
  const tick = (ms) => {
    clock.now += ms;
    frames.shift()?.();
  };
  try {
    const motion = new Motion();
    const [seen, done] = [[], []];
    motion.play(
      0,
      1,
      500,
      (moment) => seen.push(moment),
      () => done.push("first"),
    );
    tick(125);
    tick(125);
    assert.deepEqual(seen, [0, 0.25, 0.5]);
    assert(motion.isRunning && !motion.isBack && !done.length);
    motion.end();
    assert.deepEqual([seen.at(-1), done, motion.isRunning], [1, ["first"], false]);
    motion.play(
      1,
      0,
      200,
      (moment) => seen.push(moment),
      () => done.push("back"),
    );
    assert(motion.isBack);
    tick(100);
    assert.equal(motion.moment, 0.5);
    tick(100);
    assert.deepEqual([seen.at(-1), done], [0, ["first", "back"]]);
    motion.play(
      0,
      1,
      500,
      (moment) => seen.push(moment),
      () => done.push("stopped"),
    );
    motion.stop();
    tick(600);
    assert.deepEqual([motion.moment, done.length], [0, 2]);
    still = true;
    seen.length = 0;
    motion.play(
      0,
      1,
      500,
      (moment) => seen.push(moment),
      () => done.push("still"),
    );
    assert.deepEqual([seen, done.at(-1), frames.length], [[1], "still", 0]);
  } finally {
    [globalThis.requestAnimationFrame, globalThis.cancelAnimationFrame, globalThis.matchMedia, performance.now] = kept;
  }
  assert.deepEqual([eased(0), eased(0.5), eased(1)], [0, 0.5, 1]);
  assert.deepEqual(
    [part(0.1, 0.2, 0.4), part(0.3, 0.2, 0.4), part(0.9, 0.2, 0.4)].map((x) => Math.round(x * 1e6) / 1e6),
    [0, 0.5, 1],
  );
  assert.equal(mix(2, 4, 0.25), 2.5);
});

test("the angle between two vectors", () => {
  near(
    [angleOf([1, 0], [0, 2]), angleOf([1, 1], [2, 2]), angleOf([1, 0], [-3, 0])],
    [Math.PI / 2, 0, Math.PI],
    1e-7,
    "angle",
  );
});
