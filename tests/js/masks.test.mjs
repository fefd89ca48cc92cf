// Masks in the browser: cells of a link, who may look at whom, what the softmax makes of it, and the sentence that says so.

import assert from "node:assert/strict";
import { test } from "node:test";

import { near, served } from "./golden.mjs";

globalThis.document = /** @type {any} */ ({ createTextNode: (/** @type {string} */ text) => ({ textContent: text }) });

const { between, decode, encode, entropy, paint, paintedMask, presetMask, weigh } =
  await served("rooms/masks/browser/rules.js");
const { factOf, pieces } = await served("rooms/masks/browser/facts.js");
const { toldOf } = await served("rooms/masks/browser/told.js");
const { windowSays } = await served("rooms/masks/browser/cards.js");
const { order } = await served("rooms/masks/browser/pairs.js");
const { both, losses, share, shares, way } = await served("rooms/masks/browser/numbers.js");
const { named, rowOf } = await served("rooms/masks/browser/sheet.js");
const { folds } = await served("rooms/masks/browser/bars.js");
const { WORDS } = await served("rooms/masks/browser/constants.js");

const N = 4;
const CAUSAL = Uint8Array.from({ length: N * N }, (_, at) => (at % N > Math.floor(at / N) ? 1 : 0));
const SCORES = Float32Array.from([1, 9, 9, 9, 0, 1, 9, 9, 2, 1, 0, 9, 0, Math.log(2), Math.log(4), Math.log(8)]);
const said = (found) =>
  found
    .map(([text]) => text)
    .join("")
    .replaceAll("\u00a0", " ");

test("painted cells are written as runs and read again", () => {
  const cells = new Set([45, 44, 46, 3, 140]);
  assert.equal(encode(cells, 12), "0-3,3-8..10,11-8");
  assert.deepEqual(decode(encode(cells, 12), 12, 12), cells);
  assert.equal(encode(new Set(), 12), "");
});

test("cells beyond the text, and what is none, are left out", () => {
  assert.deepEqual(decode("11-3,12-0,5-11..40,x,3-,-1", 12, 12), new Set([135, 71]));
  assert.deepEqual(decode("", 12, 12), new Set());
});

test("presets hide the future, what is far, or nothing; a window keeps to the past where the model does", () => {
  assert.deepEqual(presetMask(CAUSAL, { mask: "model", window: 3 }, N, N), CAUSAL);
  assert.deepEqual(presetMask(null, { mask: "causal", window: 3 }, N, N), CAUSAL);
  assert.equal(presetMask(CAUSAL, { mask: "none", window: 3 }, N, N).some(Boolean), false);
  assert.deepEqual(
    [...presetMask(CAUSAL, { mask: "window", window: 2 }, N, N)],
    [0, 1, 1, 1, 0, 0, 1, 1, 3, 0, 0, 1, 3, 3, 0, 0],
  );
  assert.deepEqual(
    [...presetMask(null, { mask: "window", window: 2 }, N, N)],
    [0, 0, 3, 3, 0, 0, 0, 3, 3, 0, 0, 0, 3, 3, 0, 0],
  );
});

test("rows from the middle of a text are masked as they are in the whole of it", () => {
  const n = 11;
  const whole = Uint8Array.from({ length: n * n }, (_, at) => (at % n > Math.floor(at / n) ? 1 : 0));
  for (const own of [whole, null])
    for (const mask of ["model", "none", "causal", "window"]) {
      const all = paintedMask(presetMask(own, { mask, window: 3 }, n, n), new Set([5, 47, 99]), new Set([48, 50]));
      for (const [first, count] of [
        [0, 6],
        [4, 5],
        [5, 5],
      ]) {
        const cut = (/** @type {Uint8Array} */ of) => of.slice(first * n, (first + count) * n);
        const part = presetMask(own && cut(own), { mask, window: 3 }, count, n, first);
        assert.deepEqual(paintedMask(part, new Set([5, 47, 99]), new Set([48, 50]), first * n), cut(all), mask);
      }
    }
  const [forbid, allow] = [new Set(), new Set()];
  paint(whole.slice(4 * n), forbid, allow, 4 * n + 9, true, 4 * n); // the future of the fifth row
  paint(whole.slice(4 * n), forbid, allow, 4 * n + 1, false, 4 * n);
  assert.deepEqual([[...forbid], [...allow]], [[45], [53]]);
});

test("many losses share bars, and none is in two or in none", () => {
  for (const [n, most] of [
    [9, 20],
    [999, 46],
    [40, 40],
    [41, 40],
    [0, 5],
  ]) {
    const found = folds(n, most);
    assert.ok(found.length <= most);
    assert.deepEqual(
      found.flatMap(([i, end]) => Array.from({ length: end - i }, (_, k) => i + k)),
      Array.from({ length: n }, (_, i) => i),
    );
  }
  assert.equal(folds(9, 20).length, 9);
});

test("a row is found by its number, or by the next word that has these letters", () => {
  const labels = [" The", " king", " the", " kingdom", " the", " 12"];
  assert.equal(rowOf(labels, "3", 0), 3);
  assert.equal(rowOf(labels, "the", 0), 2);
  assert.equal(rowOf(labels, "The", 4), 0, "from the beginning again");
  assert.equal(rowOf(labels, "kingd", 0), 3);
  assert.equal(rowOf(labels, "12", 0), 5, "no row has this number");
  assert.equal(rowOf(labels, "bird", 0), null);
  assert.equal(rowOf(labels, " ", 0), null);
});

test("a window says how far it reaches, and where it reaches so far", () => {
  const n = 11;
  for (const causal of [true, false])
    for (const size of [1, 2, 3, 5]) {
      const own = causal ? Uint8Array.from({ length: n * n }, (_, at) => (at % n > Math.floor(at / n) ? 1 : 0)) : null;
      const mask = presetMask(own, { mask: "window", window: size }, n, n);
      const open = [...mask.slice(5 * n, 6 * n).keys()].filter((k) => !mask[5 * n + k]);
      const [, line] = windowSays(size, causal);
      if (size === 1) {
        assert.doesNotMatch(line, /\d/, line);
        assert.deepEqual([open[0], open.length], [5, 1]);
        continue;
      }
      const number = Number(/\d+/.exec(line)?.[0] ?? 0);
      assert.equal(5 - open[0], number, `${size}: before`);
      assert.equal(open.at(-1) - 5, causal ? 0 : number, `${size}: after`);
      assert.equal(/side/.test(line), !causal, line);
    }
});

test("a cell that is painted back to what the preset says is in neither set", () => {
  const [forbid, allow] = [new Set(), new Set()];
  paint(CAUSAL, forbid, allow, 12, false);
  paint(CAUSAL, forbid, allow, 1, true);
  assert.deepEqual([[...forbid], [...allow]], [[12], [1]]);
  const mask = paintedMask(CAUSAL, forbid, allow);
  assert.deepEqual([mask[12], mask[1], mask[2]], [4, 0, 1]);
  paint(CAUSAL, forbid, allow, 12, true);
  paint(CAUSAL, forbid, allow, 1, false);
  assert.deepEqual([forbid.size, allow.size], [0, 0]);
});

test("rows sum to 1 and hidden cells are exactly 0", () => {
  const { weights, sums } = weigh(SCORES, CAUSAL, N);
  near(sums, [1, 1, 1, 1], 1e-12, "sums");
  near(weights.subarray(12), [1 / 15, 2 / 15, 4 / 15, 8 / 15], 1e-7, "the last row");
  assert.ok(CAUSAL.every((reason, at) => !reason || weights[at] === 0));
});

test("a row that may look at nothing is zeros, and with a finite fill all alike", () => {
  const mask = paintedMask(CAUSAL, new Set([12, 13, 14, 15]), new Set());
  assert.deepEqual([...weigh(SCORES, mask, N).weights.subarray(12)], [0, 0, 0, 0]);
  near(weigh(SCORES, mask, N, { fill: -1e9 }).weights.subarray(12), [0.25, 0.25, 0.25, 0.25], 1e-12, "−1e9");
  near(
    weigh(SCORES, CAUSAL, N, { fill: -1e9 }).weights,
    weigh(SCORES, CAUSAL, N).weights,
    1e-12,
    "elsewhere no difference",
  );
});

test("after the softmax the mask leaves rows that sum to less", () => {
  const mask = paintedMask(new Uint8Array(16), new Set([15]), new Set());
  const { weights, sums, softmax } = weigh(SCORES, mask, N, { after: true });
  near([softmax[15], weights[15], sums[3]], [8 / 15, 0, 7 / 15], 1e-7, "the last row");
});

test("entropy in bits, lines of cells, shares in words", () => {
  near([entropy([0.5, 0.25, 0.25]), entropy([1, 0])], [1.5, 0], 1e-12, "bits");
  assert.deepEqual(between([0, 0], [3, 1]), [
    [1, 0],
    [2, 1],
    [3, 1],
  ]);
});

test("one way to say a share: whole percents from 10 to 98, 0 and 100 % only where exact, one number where both read alike", () => {
  const plain = (text) => said([[text]]);
  assert.deepEqual(
    [0.8149, 0.032, 0, 0.0001, 0.0995, 0.0994, 0.98, 0.984, 0.997, 0.9998, 1, 1 - 1e-8].map((p) => plain(share(p))),
    ["81 %", "3.2 %", "0", "<0.1 %", "10 %", "9.9 %", "98 %", "98.4 %", "99.7 %", ">99.9 %", "100 %", "100 %"],
  );
  assert.deepEqual(
    [
      plain(both(share(0.92), share(0.23))),
      plain(shares(0.5, 0.5004)),
      plain(shares(0.92, null)),
      plain(losses(4.218, 0.867)),
    ],
    ["92 → 23 %", "50 %", "92 % → …", "4.22 → 0.87"],
  );
  assert.equal(plain(shares(0.92, 0.0003)), "92 → <0.1 %");
  assert.deepEqual([way(0.2, 0.4), way(0.4, 0.2), way(0.4, 0.4004), way(0, 0)], ["more", "less", "same", "same"]);
});

const LABELS = { queries: ["<s>", "The", "old", "king"], keys: ["<s>", "The", "old", "king"] };
const OWN = weigh(SCORES, CAUSAL, N);
const OUTCOME = {
  words: [
    [5, " man", 0.476],
    [6, " woman", 0.24],
  ],
  asked: [],
  losses: [3.5],
  loss: 3.5,
};
const shown = (changes) => ({
  labels: LABELS,
  site: "decoder",
  n_key: N,
  row: 3,
  layer: 3,
  head: 6,
  own: CAUSAL,
  mask: CAUSAL,
  preset: "model",
  window: 3,
  one: false,
  after: false,
  finite: false,
  changed: true,
  early: false,
  weights: OWN.weights,
  ownWeights: OWN.weights,
  sums: OWN.sums,
  painted: 0,
  busiest: () => ({ layer: 2, head: 1, share: 1 }),
  outcome: null,
  ownOutcome: OUTCOME,
  cosine: null,
  ...changes,
});

const PLAIN = { isCausal: true, onlyCell: null, first: false, stop: "0", heads: 9, degrees: null, marks: null };
const told = (changes, part = "fact") =>
  said(toldOf(shown({ ...PLAIN, softmax: OWN.softmax, scores: SCORES, ownScores: SCORES, ...changes }), WORDS)[part]);

test("the model's own mask, in a sentence", () => {
  const own = { changed: false };
  assert.equal(told(own), "No word sees what comes later. king gives 53 % to king. Next word man: 48 %.");
  const open = { ...own, own: new Uint8Array(16), isCausal: false };
  assert.match(told(open), /^Every word sees every word\. king gives/);
  const far = Uint8Array.from({ length: 16 }, (_, at) => (Math.abs((at % 4) - Math.floor(at / 4)) > 1 ? 3 : 0));
  assert.match(told({ ...open, own: far }), /^The model hides what is too far away\./, "a window on both sides");
  assert.match(told({ ...open, site: "cross" }), /^Every word of the target may look at the whole source\./);
  assert.equal(told({ labels: { queries: ["a"], keys: ["a"] } }), "A mask needs two words. Write one more.");
});

test("one look forbidden in a head: the rest grows by 1 ÷ (1 − p), and only the run says what becomes of the next word", () => {
  const mask = paintedMask(CAUSAL, new Set([15]), new Set());
  const { weights, sums } = weigh(SCORES, mask, N);
  const changes = { mask, weights, sums, painted: 1, one: true, onlyCell: [3, 3] };
  const first = "In this head, king may not look at king. Its 53 % is shared out: every other weight grows × 2.1.";
  assert.equal(told(changes), first);
  const outcome = { ...OUTCOME, asked: [0.385, 0.3] };
  assert.equal(told({ ...changes, outcome }), `${first} Next word man: 48 → 39 %.`);
  assert.match(
    told({ ...changes, outcome }, "reason"),
    /^Exact: .* man falls a little, because 8 other heads still see/,
  );
  const same = { ...OUTCOME, asked: [0.4761, 0.3] };
  assert.equal(told({ ...changes, outcome: same }, "reason"), "Exact: only this row of this head has changed.");
  assert.equal(told({ ...changes, one: false }), "No head may look from king to king.");
});

test("the head that looks hardest is said with what it adds, and never as a cause", () => {
  const mask = paintedMask(CAUSAL, new Set([15]), new Set());
  const { weights, sums } = weigh(SCORES, mask, N);
  const hardest = { layer: 3, head: 6, weight: 0.53, of: 9 };
  const changes = { mask, weights, sums, painted: 1, one: true, onlyCell: [3, 3], stop: "3", hardest, added: -1.31 };
  const up = { ...changes, outcome: { ...OUTCOME, asked: [0.6] } };
  assert.equal(told(up), "The head that looks hardest at king: 53 %, first of 9. Forbid it, and man rises: 48 → 60 %.");
  assert.match(told(up, "reason"), /argues against what it sees: it takes 1\.3 from the score of man/);
  const down = { ...changes, added: 1.14, outcome: { ...OUTCOME, asked: [0.3] } };
  assert.match(told(down), /man falls: 48 → 30 %/);
  assert.match(told(down, "reason"), /^It adds 1\.1/);
  assert.match(told({ ...changes, outcome: { ...OUTCOME, asked: [0.4761] } }), /changes nothing that one can see/);
  for (const state of [up, down]) assert.doesNotMatch(told(state) + told(state, "reason"), /because it looks/);
});

test("an encoder's change is told by words left out, not by a cosine", () => {
  const nothing = { ...OUTCOME, words: [] };
  const mask = paintedMask(new Uint8Array(16), new Set([13]), new Set());
  const marks = [
    ["was", 4.8],
    ["animal", 33.7],
  ];
  const changes = {
    own: null,
    isCausal: false,
    ownOutcome: nothing,
    outcome: nothing,
    mask,
    painted: 1,
    one: true,
    onlyCell: [3, 1],
  };
  assert.match(told({ ...changes, degrees: 3.16, marks }), / The sentence vector turns by 3\.2°\.$/);
  assert.equal(
    told({ ...changes, degrees: 3.16, marks }, "reason"),
    "Leaving out “was”, the word that matters least, turns it by 4.8°.",
  );
  assert.match(told({ ...changes, degrees: 49, marks }, "reason"), /^No single word counts for as much.*33\.7°/);
  assert.match(told({ ...changes, degrees: 20, marks }, "reason"), /more than leaving out “was”/);
});

test("a forbidden cell: what went there is shared out, and the next word falls once the run says so", () => {
  const mask = paintedMask(CAUSAL, new Set([15]), new Set());
  const { weights, sums } = weigh(SCORES, mask, N);
  const changes = { mask, weights, sums, painted: 1 };
  const first = "king may not look at king. The 53 % that went there is shared out among the rest, most to old.";
  assert.equal(said(factOf(shown(changes), WORDS)), first);
  const outcome = { ...OUTCOME, asked: [0.385, 0.3] };
  assert.equal(
    said(factOf(shown({ ...changes, outcome }), WORDS)),
    `${first} The next word man falls from 48 % to 39 %.`,
  );
  const other = { words: [[6, " woman", 0.5]], asked: [0.385, 0.5], losses: [3.6], loss: 3.6 };
  assert.ok(
    said(factOf(shown({ ...changes, outcome: other }), WORDS)).endsWith(
      "falls from 48 % to 39 %, and woman leads with 50 %.",
    ),
  );
});

test("a key that this head never looked at names the head that did", () => {
  const mask = paintedMask(CAUSAL, new Set([12]), new Set());
  const little = OWN.weights.slice();
  little[12] = 0.001;
  const found = said(factOf(shown({ mask, painted: 1, ownWeights: little }), WORDS));
  assert.equal(found, "king may not look at <s>. This head gave it next to nothing, but layer 2, head 1 gave 100 %.");
});

test("nothing allowed, after the softmax, windows and no mask have sentences of their own", () => {
  const none = paintedMask(CAUSAL, new Set([12, 13, 14, 15]), new Set());
  assert.equal(
    said(factOf(shown({ mask: none, painted: 4 }), WORDS)),
    "king may look at nothing. A plain softmax of −∞ alone is NaN, 0 ÷ 0; here the row is all zeros.",
  );
  assert.match(said(factOf(shown({ mask: none, painted: 4, finite: true }), WORDS)), /gives 25 % to every key alike/);
  const sums = Float64Array.from([1, 1, 1, 0.198]);
  assert.equal(
    said(factOf(shown({ after: true, sums, painted: 1 }), WORDS)),
    "Masked after the softmax, the row of king sums to 0.20: the missing 80 % goes to no word.",
  );
  assert.match(said(factOf(shown({ preset: "none" }), WORDS)), /^Without a mask every word sees the future/);
  assert.match(said(factOf(shown({ preset: "window", window: 1 }), WORDS)), /sees only itself/);
  assert.match(said(factOf(shown({ one: true, mask: none, painted: 4 }), WORDS)), /^In this head alone, king/);
});

test("until the run is there no sentence gives a number that only the run can give", () => {
  const mask = paintedMask(CAUSAL, new Set([15]), new Set());
  const { weights, sums } = weigh(SCORES, mask, N);
  const early = { mask, weights, sums, painted: 1, early: true };
  assert.equal(
    said(factOf(shown(early), WORDS)),
    "king may not look at king. The 53 % that went there is shared out among the rest.",
  );
  assert.equal(
    said(factOf(shown({ ...early, after: true }), WORDS)),
    "Masked after the softmax, the attention of king to hidden words is lost.",
  );
  const open = paintedMask(CAUSAL, new Set(), new Set([3]));
  assert.equal(
    said(factOf(shown({ ...early, row: 0, mask: open }), WORDS)),
    "<s> may look at king, which it could not see.",
  );
});

test("a label that occurs twice carries its position", () => {
  assert.deepEqual(named(["the", "old", "the"], 2, "k"), [
    ["the", "k"],
    ["2", "sub"],
  ]);
  assert.deepEqual(named(["the", "old", ","], 2, "k"), [["“,”", "k"]]);
});

test("what a visitor typed is text in a sentence", () => {
  assert.deepEqual(pieces("{a} looks", { a: ["<b>{q}</b>", "q"] }), [
    ["<b>{q}</b>", "q"],
    [" looks", ""],
  ]);
});

test("the keys that a mask is about come first in a row, and every key is in it once", () => {
  const draw = (seed) => () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const random = draw(5);
  for (let round = 0; round < 400; round++) {
    const n = 1 + Math.floor(random() * 60);
    const ownMask = Array.from({ length: n }, (_, k) => (round % 3 === 0 && k > n / 2 ? 1 : 0));
    const mask = ownMask.map((own) => (random() < 0.08 ? (own ? 0 : 4) : own));
    const before = ownMask.map((own) => (own ? 0 : random()));
    const after = mask.map((hidden) => (hidden ? 0 : random()));
    const { gone, opened, rest } = order({ mask, ownMask, before, after });
    assert.deepEqual(
      [...gone, ...opened, ...rest, ...mask.flatMap((m, k) => (m && ownMask[k] ? [k] : []))].sort((a, b) => a - b),
      [...mask.keys()],
    );
    assert(gone.every((k) => mask[k] && !ownMask[k]) && opened.every((k) => !mask[k] && ownMask[k]));
    assert(
      gone.every((k, i) => !i || before[gone[i - 1]] >= before[k]),
      "the heaviest first",
    );
    const larger = rest.map((k) => Math.max(before[k], after[k]));
    assert(larger.every((x, i) => !i || larger[i - 1] >= x));
  }
});
