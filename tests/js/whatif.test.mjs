// What if in the browser: changes in words, their order, cells that moved, edits as the text of a link, and rows put together.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

globalThis.document = { createTextNode: (text) => ({ textContent: text }) };
const {
  added,
  answered,
  edited,
  finer,
  movedMost,
  percent,
  placed,
  points,
  ranked,
  sorts,
  stepped,
  swapped,
  Swept,
  temperature,
  upTo,
  withEdit,
  without,
} = await served("rooms/whatif/browser/numbers.js");
const { beneath } = await served("rooms/whatif/browser/answer.js");
const { beside, rowName } = await served("rooms/whatif/browser/lead.js");
const { messages } = await served("kit/browser/messages.js");

test("a change is whole points with its sign, and nothing is no sign", () => {
  assert.deepEqual([-0.8703, 0.021, 0.004, -0.004, 0].map(points), ["−87", "+2", "0", "0", "0"]);
  assert.deepEqual([-0.0094, -0.0001, 0.0123].map(finer), ["−0.9", "0.0", "1.2"]);
});

test("a probability is never rounded to nothing", () => {
  assert.deepEqual(
    [0.899, 0.0289, 0.0534, 0.0003, 0, null].map((p) => percent(p).replace("\u00a0", " ")),
    ["90 %", "2.9 %", "5.3 %", "<0.1 %", "0 %", "·"],
  );
});

test("a class has a probability, and a regression a number", () => {
  const of = (kind) => ({ classes: kind && { n: 3, kind, at: 0 } });
  assert.deepEqual(["one", "several", "numbers", null].map(of).map(sorts), [true, true, false, false]);
  assert.deepEqual(
    ["one", "numbers", null].map((kind) => answered(of(kind), 0.5).replace("\u00a0", " ")),
    ["50 %", "0.500", "50 %"],
  );
  assert.equal(answered(of("numbers"), -1.25), "−1.250");
  assert.equal(answered(of("numbers"), null), "·");
});

test("tokens that read alike are told apart by their place", () => {
  const labels = ["The", "daughter", "of", "a", "daughter", "constitutionally", "constitutionally"];
  const names = labels.map((_, i) => placed(labels, i, (label) => label.slice(0, 5)));
  assert.deepEqual(names, ["The", "daugh 1", "of", "a", "daugh 4", "const 5", "const 6"]);
  assert.equal(new Set(labels.map((_, i) => placed(labels, i))).size, labels.length);
});

test("a word that is not among the likeliest has at most what the last of them has", () => {
  assert.deepEqual(
    [upTo(0.899, 0.0171), upTo(null, 0.0171), upTo(null, 0.0004), upTo(null, null), upTo(undefined, undefined)],
    ["89.9", "≤ 1.8", "≤ 0.1", "·", "·"],
  );
});

test("rows of classes are a change of probability, though they are after no token", () => {
  const swept = new Swept();
  swept.take({
    first: 0,
    of: 1,
    rows: [["encoder", 0, 0]],
    position: null,
    watched: [1],
    labels: { 1: "sad" },
    probability: [[0.25]],
    probability_before: [0.75],
    ids: [[0]],
    likeliest: [[0.75]],
    kl: [0.1],
  });
  assert.deepEqual([swept.turns, swept.changes], [false, [-0.5]]);
});

test("the strongest come first, and rows that are not here are left out", () => {
  assert.deepEqual(ranked([0.1, undefined, -0.5, 0.5]), [2, 3, 0]);
});

test("what moved most is found in rows and columns", () => {
  assert.deepEqual(movedMost([0, 0.5, 1, 0.2], [0.25, 0.5, 0.5, 0.201], 2, 3), [
    [1, 0, -0.5],
    [0, 0, 0.25],
  ]);
});

test("edits are put in, taken out and read", () => {
  assert.equal(withEdit("nocausal~temperature_2", "temperature", "temperature_4"), "nocausal~temperature_4");
  assert.equal(withEdit("nocausal", "nocausal", ""), "");
  assert.equal(added("", "ablate_decoder_L0_H5"), "ablate_decoder_L0_H5");
  assert.equal(added("noscale", "noscale"), "noscale");
  assert.equal(without("noscale~nocausal", "noscale"), "nocausal");
  assert.equal(edited("noscale~temperature_0.5", "temperature"), "temperature_0.5");
  assert.deepEqual(["temperature_0.5", "", "temperature_x"].map(temperature), [0.5, 1, 1]);
});

test("sides are swapped by a link that says both", () => {
  const values = {
    sweep: "heads",
    by: "mean",
    where: "all",
    pick: "on",
    layer: "0",
    head: "5",
    edits: "noscale",
    against: "",
    other: "",
  };
  const there = { model: "Storyteller", text: "A cat", with: "noscale~ablate_decoder_L0_H5" };
  const here = "https://school.test/?view=whatif&text=A+cat";
  assert.deepEqual(swapped(values, there, here), {
    view: "whatif",
    ...there,
    sweep: "heads",
    by: "mean",
    where: "all",
    against: here,
    pick: "off",
  });
  assert.equal(swapped({ ...values, sweep: "patch" }, there, here).pick, "on");
});

const SIDE = { kl: null, elsewhere: 0, entropy: null, losses: null, edits: [], linked: false };
const DATA = {
  places: [{ id: "decoder", title: "decoder", query: "source", key: "source" }],
  source: ["a", "b"],
  target: null,
  models: [["copy", "Copy"]],
  steps: [["storyteller@00122", "122"]],
};

test("below the answer stands what moved, and that other heads may stand in", () => {
  const honest =
    "This answer changes: other heads may make up for a silenced one, and zero is only one way to silence.";
  assert.equal(
    beneath({ ...SIDE, kl: Math.LN2, elsewhere: 1 }, true, false),
    `The whole distribution moved by 1.00 bits (KL). 1 head looks elsewhere by more than 2 % of its weight. ${honest}`,
  );
  const both = { ...SIDE, elsewhere: 38, entropy: [1.25, 0.21], losses: [4.557, 4.013] };
  assert.equal(
    beneath(both, false, true),
    "38 heads look elsewhere by more than 2 % of their weight. An average row of attention had 1.25 bits of entropy; now 0.21. The loss over the text itself goes from 4.557 to 4.013.",
  );
  assert.equal(
    beneath({ ...both, elsewhere: 0, entropy: [1.25, 1.27] }, false, false),
    "",
    "an entropy that hardly moved is not told, nor a loss without a mask that is gone",
  );
});

test("what is changed is told in words: edits, the other sentence or the linked run, the other model or step", () => {
  const values = { sweep: "heads", against: "", other: "" };
  assert.equal(beside(DATA, values, null), "");
  const side = {
    ...SIDE,
    edits: [
      ["noscale", "no 1/√d"],
      ["temperature_2", "an attention temperature of 2"],
    ],
  };
  assert.equal(beside(DATA, values, side), "no 1/√d and an attention temperature of 2");
  assert.equal(beside(DATA, { ...values, against: "A cat", other: "copy" }, SIDE), "the other sentence and Copy");
  assert.equal(
    beside(DATA, { ...values, against: "?text=A+cat", other: "storyteller@00122" }, { ...SIDE, linked: true }),
    "the linked run and step of training 122",
  );
  assert.equal(
    beside(DATA, { ...values, sweep: "patch", against: "A cat" }, SIDE),
    "",
    "a head that is taken over says so itself",
  );
  assert.equal(beside(DATA, { ...values, other: "storyteller" }, SIDE), "", "the model above is no other one");
  assert.deepEqual(
    [["decoder", 0, 5], [1, 0], undefined].map((row) => rowName(DATA, values, row)),
    ["L0 H5", "b → a", ""],
  );
});

test("arrows stop at the edges", () => {
  assert.deepEqual(stepped([0, 0], [-1, 0], [2, 3]), [0, 0]);
  assert.deepEqual(stepped([0, 1], [0, 1], [2, 3]), [0, 2]);
});

const PART = {
  of: 3,
  position: 4,
  watched: [7],
  labels: { 7: "Em" },
  single: [],
  only: null,
  probability_before: [0.5],
};

test("rows that come in parts are one sweep", () => {
  const swept = new Swept();
  swept.take({
    ...PART,
    first: 1,
    rows: [
      ["decoder", 0, 1],
      ["decoder", 0, 2],
    ],
    probability: [[0.25], [0.49]],
    written: [3, 1],
  });
  assert.deepEqual([swept.done, swept.few, swept.indexOf(["decoder", 0, 0])], [false, 1, -1]);
  swept.take({ ...PART, first: 0, rows: [["decoder", 0, 0]], probability: [[0.5]], written: [2] });
  assert.deepEqual([swept.done, swept.turns, swept.few, swept.loudest], [true, false, 2, 1]);
  assert.deepEqual(swept.changes, [0, -0.25, -0.010000000000000009]);
  assert.equal(swept.indexOf(["decoder", 0, 2]), 2);
  swept.take({ snippet: "import core", name: "x" });
  assert.equal(swept.about.snippet, "import core");
});

test("of vectors the change is how far they turn", () => {
  const swept = new Swept();
  swept.take({
    ...PART,
    of: 1,
    first: 0,
    position: null,
    watched: [],
    rows: [["encoder", 0, 0]],
    distance: [0.02],
    turned: [[0.1]],
  });
  assert.deepEqual([swept.turns, swept.few, swept.after[0].distance], [true, 0, 0.02]);
  assert.ok(Math.abs(/** @type {number} */ (swept.changes[0]) - 11.478) < 1e-3, "1 − cosine of 0.02 is 11.5°");
});

test("heads that share keys and values are named together", () => {
  const data = { ...DATA, places: [{ ...DATA.places[0], id: "decoder", heads: 8, kv_heads: 2 }] };
  /** @type {(values: object) => string} */
  const named = (values) => rowName(data, values, ["decoder", 0, 4]);
  assert.deepEqual(
    [
      named({ sweep: "heads", group: "on" }),
      named({ sweep: "heads", group: "off" }),
      named({ sweep: "patch", group: "on" }),
    ],
    ["L0 H4–7", "L0 H4", "L0 H4"],
  );
  assert.equal(
    added("noscale", "ablate_decoder_L0_H0~ablate_decoder_L0_H1"),
    "noscale~ablate_decoder_L0_H0~ablate_decoder_L0_H1",
  );
});

test("messages are cut where they end, however they arrive", async () => {
  const bytes = new Uint8Array([2, 0, 0, 0, 10, 11, 1, 0, 0, 0, 12]);
  const stream = new ReadableStream({
    start(control) {
      for (const at of [0, 3, 5, 9]) control.enqueue(bytes.slice(at, { 0: 3, 3: 5, 5: 9, 9: 11 }[at]));
      control.close();
    },
  });
  const found = [];
  for await (const message of messages(stream)) found.push([...message]);
  assert.deepEqual(found, [[10, 11], [12]]);
});
