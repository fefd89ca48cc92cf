// Questions of Memory as Python would send them: SmolLM2 on this machine, Llama 3 8B on a card of 24 GB, GPT-2 medium in training.

/** @typedef {import("../../../app/rooms/memory/browser/types.js").Question} Question */
/** @typedef {import("../../../app/rooms/memory/browser/types.js").Item} Item */
/** @typedef {import("../../../app/rooms/memory/browser/types.js").Block} Block */
/** @typedef {import("../../../app/rooms/memory/browser/types.js").Part} Part */
/** @typedef {import("../../../app/rooms/memory/browser/types.js").Piece} Piece */
/** @typedef {import("../../../app/rooms/memory/browser/types.js").Verdict} Verdict */

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const whole = (/** @type {number} */ n) => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
const size = (/** @type {number} */ bytes) =>
  bytes < GIB ? `${Math.round(bytes / MIB)} MiB` : `${(bytes / GIB).toFixed(bytes < 100 * GIB ? 1 : 0)} GiB`;

/** @type {Record<string, Part>} */
const PARTS = {
  weights: { id: "weights", title: "weights", help: "The parameters." },
  gradients: { id: "gradients", title: "gradients", help: "One for each parameter." },
  optimizer: { id: "optimizer", title: "optimizer", help: "What it remembers of earlier gradients." },
  activations: { id: "activations", title: "activations", help: "What autograd keeps for the backward pass." },
  kv_cache: { id: "kv_cache", title: "cache", help: "Keys and values of earlier tokens." },
  transient: { id: "transient", title: "at work", help: "The widest moment of the pass." },
};

/**
 * @typedef {object} Of
 * @property {Part[]} parts
 * @property {(n: number) => number[]} bytes of the parts
 * @property {number} n
 * @property {number} ends of the axis
 * @property {Question["budget"]} budget
 * @property {number} top of the axis
 * @property {number} step of its ticks
 * @property {number} steps of the axis of tokens
 * @property {string} [more]
 * @property {number} [last] where a table of positions ends
 */

/** @param {Of} of @param {(all: number, n: number) => Verdict} verdict */
function figure(of, verdict) {
  const lengths = new Set(Array.from({ length: 161 }, (_, i) => Math.max(1, Math.round((of.ends * i) / 160))));
  lengths.add(of.n);
  const places = [...lengths]
    .filter((n) => n <= (of.last ?? Infinity))
    .sort((a, b) => a - b)
    .map((n) => {
      const bytes = of.bytes(n);
      const all = bytes.reduce((a, b) => a + b);
      const over = all > of.budget.bytes;
      return { n, tokens: whole(n), bytes, sizes: bytes.map(size), all, total: size(all), verdict: verdict(all, n), over };
    });
  const unit = of.top < 1.6 * GIB ? MIB : GIB;
  const ticks = [];
  for (let bytes = 0; bytes <= of.top; bytes += of.step)
    ticks.push({ bytes, text: `${whole(bytes / unit)}${bytes === of.step ? (unit === GIB ? " GiB" : " MiB") : ""}` });
  const nticks = [];
  for (let n = of.steps; n <= of.ends; n += of.steps) nticks.push({ n, text: whole(n) });
  return {
    parts: of.parts,
    places,
    at: places.findIndex(({ n }) => n === of.n),
    budget: of.budget,
    axis: { top: of.top, ticks, more: of.more ?? "", ends: of.ends, nticks, name: "tokens" },
  };
}

/** @param {number} have @param {Piece[]} more @returns {(all: number) => Verdict} */
const judged = (have, more) => (all) => {
  const fits = all <= have;
  const lead = fits ? "Fits:" : `${size(all - have)} too much:`;
  /** @type {Piece[]} */
  const rest = [{ text: size(all).replace(" GiB", ""), strong: true }, { text: ` of ${size(have)}.` }, ...(fits ? more : [])];
  return { fits, lead, rest, plain: `${lead} ${rest.map(({ text }) => text).join("")}` };
};

/** @param {{model: string, bits: string, n: string, chats: number, mode: string, card: string}} of @returns {Item[]} */
function sentence({ model, bits, n, chats, mode, card }) {
  const option = (/** @type {string} */ text) => ({ value: text, text });
  return [
    { kind: "select", name: "model", label: "Model", value: model, options: [...new Set([model, "SmolLM2", "GPT-2 medium"])].map(option) },
    { kind: "text", text: "in" },
    { kind: "row", name: "bits", label: "Bits", value: bits, options: ["32", "16", "8", "4"].map(option) },
    { kind: "text", text: "bit," },
    { kind: "number", name: "source", label: "Tokens", value: n, help: "A number, or 32k, or 1M" },
    { kind: "text", text: "tokens ×" },
    { kind: "stepper", name: "batch", label: "Chats", value: String(chats), less: chats > 1 ? String(chats - 1) : null, more: String(chats + 1), n: chats },
    { kind: "text", text: chats > 1 ? "chats," : "chat," },
    { kind: "row", name: "mode", label: "What for", value: mode, options: ["writing", "training", "LoRA"].map(option) },
    { kind: "text", text: "on" },
    { kind: "select", name: "card", label: "Card", value: card, options: [card, "A100 80 GB", "L40S 48 GB"].map(option) },
  ];
}

/** @param {string} on */
const examples = (on) =>
  ["this model, here", "your sentence", "Llama 3, 32k", "4 chats", "train GPT-2", "LoRA", "textbook way"].map((title) => ({
    title,
    beside: "",
    set: { example: title },
    on: title === on,
  }));

/** @param {string} sentence @param {string} beside @param {string} name @param {string[]} options @param {number} [at] @returns {Block} */
const assumed = (sentence, beside, name, options, at = 0) => ({
  kind: "switch",
  sentence,
  beside,
  name,
  label: sentence,
  value: options[at],
  options: options.map((text) => ({ value: text, text })),
});

/** @type {Block[]} */
const ASSUMED = [
  assumed("As in", "", "as", ["a server", "transformers", "the textbook"]),
  assumed("One fused kernel: the n × n scores never exist.", "eager: +8.4 GiB", "kernel", ["fused", "eager"]),
  assumed("Only the last position is asked for its next word.", "all: +315 MiB", "logits", ["last", "all"]),
  assumed("The text is read in pieces of 2,048.", "whole: +3.2 GiB", "piece", ["512", "2,048", "whole"], 1),
  assumed("Keys and values in 16 bit.", "8: −1.9 GiB", "kv", ["16", "8", "4"]),
  assumed("32 heads share 8 sets of keys (GQA).", "32: +12.0 GiB", "sets", ["32", "8", "1"], 1),
  assumed("Of 24.0 GiB the driver keeps 0.35, the program 0.30.", "", "reserve", ["kept", "not"]),
  assumed("Fragments are not counted.", "5 %: +982 MiB", "lost", ["0", "5 %", "10 %"]),
  { kind: "lines", rows: [[{ text: "A weight takes ", quiet: true }, { text: "16.00 bit", strong: true }, { text: " on average: 8,030,261,248 weights, all alike.", quiet: true }]] },
  {
    kind: "table",
    label: "Checked here, MiB",
    columns: ["Checked here, MiB: SmolLM2, 32 bit", "said", "allocated", "resident"],
    rows: [["128 tokens", "521.9", "521.6", "523.8"], ["1,024", "583.4", "580.9", "581.0"], ["4,096", "794.2", "784.2", "786.3"]],
    numeric: [false, true, true, true],
  },
];

/** @type {[card: string, gib: number][]} */
const CARDS = [["RTX 3060 12 GB", 11.5], ["T4 16 GB", 14.4], ["Mac, 32 GB", 21.3], ["L4 24 GB", 21.7], ["RTX 4090 24 GB", 23.3], ["RTX 3090 24 GB", 23.4], ["RTX 5090 32 GB", 31.1], ["L40S 48 GB", 44.1], ["H100 80 GB", 78.8], ["A100 80 GB", 78.9], ["H200 141 GB", 140]];
/** @type {Block[]} */
const ON_CARDS = [
  { kind: "heading", text: "On one of these", beside: "the line is what it needs, 31.2 GiB" },
  {
    kind: "bars",
    label: "Cards",
    line: 31.2 / 81,
    line_text: "31.2 GiB",
    rows: CARDS.map(([title, gib]) => ({ title, share: Math.min(1, gib / 81), text: `${gib} GiB`, fits: gib > 31.2, on: title === "RTX 4090 24 GB", set: { card: title } })),
  },
  { kind: "heading", text: "On several RTX 4090", beside: "on paper, the fullest card" },
  {
    kind: "table",
    label: "On several cards",
    columns: ["cards", "every layer cut across all", "some layers to each"],
    rows: [["1", 31.2, 31.2], ["2", 15.6, 15.7], ["4", 7.9, 8.4], ["8", 4, 4.8]].map(([k, ...gib]) => [String(k), ...gib.map((x) => ({ text: `${Number(x).toFixed(1)} GiB`, good: Number(x) < 23.3, bad: Number(x) > 23.3 }))]),
    numeric: [false, true, true],
  },
  { kind: "lines", rows: [[{ text: "Cut across: weights and heads in parts; with 8 sets of keys the cache has 8 parts at most. Buffers for talking are not counted.", quiet: true }]] },
];
/** @type {Block[]} */
const TRAINED = [
  { kind: "heading", text: "1,024 tokens × 1", beside: "text, AdamW" },
  {
    kind: "stack",
    label: "By part",
    rows: [
      { title: "weights", text: "1.3 GiB", share: 1.3 / 8, id: "weights" },
      { title: "gradients", text: "1.3 GiB", share: 1.3 / 8, id: "gradients" },
      { title: "optimizer", text: "2.6 GiB", share: 2.6 / 8, id: "optimizer" },
      { title: "activations", text: "1.5 GiB", share: 1.5 / 8, id: "activations" },
      { title: "at work", text: "597 MiB", share: 0.58 / 8, id: "transient" },
    ],
  },
  { kind: "lines", rows: [[{ text: "Mixed 16 bit: 2 (weight) + 4 (float32 copy) + 2 (gradient) + 8 (AdamW) = " }, { text: "16 bytes a weight", strong: true }, { text: ", 5.3 GiB before any text." }]] },
];

/** @param {string} tab @param {Block[]} blocks */
const tabs = (tab, blocks) => {
  const titles = { assumptions: "Assumptions", layer: "One layer", training: "Training", cache: "Cache", cards: "Cards", compute: "Compute" };
  return { tab, tabs: Object.entries(titles).map(([id, title]) => ({ id, title, blocks: id === tab ? blocks : [] })) };
};

/** @param {string} label @param {number} at @returns {Item[]} */
const row = (label, at) => [
  { kind: "slider", name: "batch", label, values: ["1", "2", "3", "4", "6", "8", "12", "16", "24", "32"], at },
  { kind: "button", name: "predict", label: "predict first", value: "first", pressed: false },
  { kind: "button", name: "model_dialog", label: "change the model", value: "open", pressed: false },
];

/** @type {Question["predict"]} */
const UNASKED = { on: false, ask: "", see: "See", again: "Predict again", starts: 1, answer: null, guess: null, button: "" };

const RESERVED = { bytes: 23.345 * GIB, label: "RTX 4090: 23.3 GiB", kept: { bytes: 0.648 * GIB, label: "driver and CUDA 664 MiB" } };

/** @param {number} weights @param {number} chats */
const llama = (weights, chats) => (/** @type {number} */ n) => [weights, 131072 * n * chats, Math.min(n * chats, 2048) * 70000 + 84e6 * Math.min(1, n / 2048) + 3000 * n];

const SHARED = {
  view: "memory",
  scale: 1,
  answered: 0,
  words: {},
  about: { title: "Memory", alt: "", caption: "", snippet: "", name: "headlight-memory", tables: [] },
};

/** @param {Of} of */
const rowsOf = (of) => ({
  columns: ["tokens", ...of.parts.map(({ title }) => title)],
  rows: [1, 1024, 8192, 32768].filter((n) => n <= of.ends).map((n) => [whole(n), ...of.bytes(n).map(size)]),
});

/** @returns {Question} */
function here() {
  const budget = { bytes: 21.914 * GIB, label: "this machine: 21.9 GiB free", kept: null };
  const of = {
    parts: [PARTS.weights, PARTS.kv_cache, PARTS.transient],
    bytes: (/** @type {number} */ n) => [538060032, 46080 * n, (Math.min(n, 2048) / 2048) * 50331648 + 330 * n],
    n: 8192,
    ends: 12000,
    budget,
    top: 1500 * MIB,
    step: 500 * MIB,
    steps: 2000,
    more: "this machine: 21.9 GiB free, 15 × as high ↑",
  };
  const judge = judged(budget.bytes, [{ text: " Up to " }, { text: "497,000 tokens", strong: true }, { text: ", taught 8,192.", quiet: true }]);
  const found = figure(of, judge);
  return {
    ...SHARED,
    ...found,
    ...tabs("assumptions", ASSUMED),
    sentence: sentence({ model: "SmolLM2", bits: "32", n: "8,192", chats: 1, mode: "writing", card: "this machine" }),
    verdict: found.places[found.at].verdict,
    offers: { label: "Room for", list: [{ title: "497,000 tokens", beside: "21.9 GiB", set: { source: "497000" } }, { title: "60 chats", beside: "21.6 GiB", set: { batch: "60" } }] },
    note: "Memory would last for 497,725 tokens, not one more; SmolLM2 was taught texts of up to 8,192.",
    examples: examples("this model, here"),
    crossing: null,
    taught: { n: 8192, text: "taught to 8,192" },
    table: null,
    row: [row("chats", 0)[0], { kind: "row", name: "zoom", label: "Scale", value: "takes", options: [{ value: "takes", text: "what it takes" }, { value: "card", text: "whole card" }] }, ...row("chats", 0).slice(1)],
    predict: UNASKED,
    foot: ["✓ core’s forms; beyond them: pieces", "134,515,008 weights", "1 GiB = 2³⁰ bytes"],
    table_of: rowsOf(of),
  };
}

/** @returns {Question} */
function fits() {
  const of = {
    parts: [PARTS.weights, PARTS.kv_cache, PARTS.transient],
    bytes: llama(16061054976, 1),
    n: 32768,
    ends: 100000,
    budget: RESERVED,
    top: 27.8 * GIB,
    step: 10 * GIB,
    steps: 20000,
  };
  const found = figure(of, judged(RESERVED.bytes, [{ text: " Up to " }, { text: "66,900 tokens", strong: true }, { text: ", taught 8,192.", quiet: true }]));
  return {
    ...SHARED,
    ...found,
    ...tabs("assumptions", ASSUMED),
    sentence: sentence({ model: "Llama 3 8B", bits: "16", n: "32,768", chats: 1, mode: "writing", card: "RTX 4090 24 GB" }),
    verdict: found.places[found.at].verdict,
    offers: { label: "Room for", list: [{ title: "66,900 tokens", beside: "23.3 GiB", set: { source: "66900" } }, { title: "2 chats", beside: "23.2 GiB", set: { batch: "2" } }] },
    note: "Llama 3 8B was taught texts of up to 8,192 tokens. It runs at 32,768; memory says nothing about whether it answers well.",
    examples: examples("Llama 3, 32k"),
    crossing: { n: 66920, text: "66,900" },
    taught: { n: 8192, text: "taught to 8,192" },
    table: null,
    row: row("chats", 0),
    predict: UNASKED,
    foot: ["✓ core’s forms; beyond them: pieces", "8,030,261,248 weights", "1 GiB = 2³⁰ bytes"],
    table_of: rowsOf(of),
  };
}

/** @returns {Question} */
function much() {
  const of = {
    parts: [PARTS.weights, PARTS.kv_cache, PARTS.transient],
    bytes: llama(16061054976, 4),
    n: 32768,
    ends: 40000,
    budget: RESERVED,
    top: 33.1 * GIB,
    step: 10 * GIB,
    steps: 10000,
  };
  const found = figure(of, judged(RESERVED.bytes, [{ text: " Up to " }, { text: "16,700 tokens", strong: true }, { text: "." }]));
  return {
    ...fits(),
    ...found,
    ...tabs("cards", ON_CARDS),
    sentence: sentence({ model: "Llama 3.1 8B", bits: "16", n: "32,768", chats: 4, mode: "writing", card: "RTX 4090 24 GB" }),
    verdict: found.places[found.at].verdict,
    offers: {
      label: "Fits with",
      list: [
        { title: "4 bit", beside: "21.9 GiB", set: { bits: "4" }, first: true },
        { title: "16,700 tokens", beside: "23.3 GiB", set: { source: "16700" } },
        { title: "2 chats instead of 4", beside: "23.2 GiB", set: { batch: "2" } },
      ],
    },
    note: "16,730 tokens fit, 16,731 do not. Widest moment: MLP.",
    examples: examples("4 chats"),
    crossing: { n: 16730, text: "16,700" },
    taught: null,
    row: row("chats", 3),
    table_of: rowsOf(of),
  };
}

/** @returns {Question} */
function training() {
  const budget = { bytes: 8 * GIB, label: "8 GB: 8.0 GiB", kept: null };
  const of = {
    parts: [PARTS.weights, PARTS.gradients, PARTS.optimizer, PARTS.activations, PARTS.transient],
    bytes: (/** @type {number} */ n) => [1.322 * GIB, 1.322 * GIB, 2.644 * GIB, (1.51 * GIB * n) / 1024, 0.583 * GIB],
    n: 1024,
    ends: 1086,
    budget,
    top: 9.28 * GIB,
    step: 2 * GIB,
    steps: 200,
    last: 1024,
  };
  const found = figure(of, judged(budget.bytes, [{ text: " All " }, { text: "1,024 tokens", strong: true }, { text: " of its table." }]));
  return {
    ...SHARED,
    ...found,
    ...tabs("training", TRAINED),
    sentence: sentence({ model: "GPT-2 medium", bits: "32", n: "1,024", chats: 1, mode: "training", card: "8 GB, an exercise" }),
    verdict: found.places[found.at].verdict,
    offers: { label: "A second text would need 9.5 GiB in all.", list: [] },
    note: "Its table of positions ends at 1,024, whatever the memory; by memory alone 1,330.",
    examples: examples("train GPT-2").slice(3, 6),
    crossing: null,
    taught: null,
    table: { n: 1024, text: "table ends: 1,024" },
    row: row("texts", 0),
    predict: UNASKED,
    foot: ["✓ equals core’s planner to the byte", "354,823,168 weights", "1 GiB = 2³⁰ bytes"],
    table_of: rowsOf(of),
  };
}

/** @param {number | null} guess @returns {Question} */
function predicted(guess) {
  const of = {
    parts: [PARTS.weights, PARTS.kv_cache, PARTS.transient],
    bytes: llama(6027747328, 1),
    n: 32768,
    ends: 400000,
    budget: RESERVED,
    top: 27.8 * GIB,
    step: 10 * GIB,
    steps: 100000,
  };
  const found = figure(of, judged(RESERVED.bytes, [{ text: " Up to " }, { text: "142,000 tokens", strong: true }, { text: ", taught 8,192.", quiet: true }]));
  const item = /** @type {import("../../../app/rooms/memory/browser/types.js").Kind<"button">} */ (row("chats", 0)[1]);
  return {
    ...fits(),
    ...found,
    ...tabs("assumptions", ASSUMED.slice(8, 9)),
    sentence: sentence({ model: "Llama 3 8B", bits: "4", n: "32,768", chats: 1, mode: "writing", card: "RTX 4090 24 GB" }),
    verdict: found.places[found.at].verdict,
    offers: { label: "Room for", list: [{ title: "142,000 tokens", beside: "23.3 GiB", set: { source: "142000" } }, { title: "4 chats", beside: "21.9 GiB", set: { batch: "4" } }, { title: "8 bit", beside: "12.7 GiB", set: { bits: "8" } }] },
    examples: examples("Llama 3, 32k").slice(0, 3),
    note: guess === null ? "Weights take 5.6 GiB, each token 128 KiB of cache. Every curve is hidden until you say." : fits().note,
    crossing: { n: 142568, text: "142,000" },
    row: [row("chats", 0)[0], { ...item, label: "stop predicting", value: "", pressed: true }, row("chats", 0)[2]],
    predict: {
      ...UNASKED,
      on: true,
      ask: "Where does it stop fitting? Drag the orange line, then see.",
      starts: 30000,
      answer: guess === null ? null : `It stops at 142,000 tokens. You said ${whole(guess)}.`,
      guess,
    },
  };
}

export const QUESTIONS = { here, fits, much, training, predicted };
