// Temperature, top-k, top-p and min-p in the browser are core's; paths and branches as links write them; how a text comes as a stream.

import assert from "node:assert/strict";
import { test } from "node:test";

import { expected, near, served } from "./golden.mjs";

globalThis.document = { createTextNode: (text) => ({ textContent: text }) };
const { OWN, bits, chances, known, look, most } = await served("rooms/generate/browser/chances.js");
const paths = await served("rooms/generate/browser/paths.js");
const { Writing } = await served("rooms/generate/browser/writing.js");
const { treeJson } = await served("rooms/generate/browser/tree.js");
const { percent } = await served("kit/browser/dom.js");
const { size } = await served("rooms/generate/browser/shapes.js");
const { someLayers } = await served("rooms/generate/browser/panel.js");
const { lossOf, saidFact } = await served("rooms/generate/browser/fact.js");
const { lastWords, plan } = await served("rooms/generate/browser/plan.js");
const { repeats } = await served("rooms/generate/browser/loop.js");
const { WORDS } = await served("rooms/generate/browser/constants.js");
const { columns } = expected("generate");

const node = ({ ids, logits, rest }) => ({
  ids: Int32Array.from(ids),
  logits: Float32Array.from(logits),
  rest: Float32Array.from(rest),
  told: new Map(),
});

test("chances are those that core draws from", () => {
  for (const column of columns) {
    for (const { settings, probs, rest, left, within } of column.expected) {
      const found = chances(node(column), settings, column.vocab);
      const what = JSON.stringify(settings);
      assert(Math.abs(found.probs.reduce((a, b) => a + b, found.rest) - 1) < 1e-9, `${what} adds up to 1`);
      if (within) {
        near(found.probs, probs, 1e-5, what);
        assert(Math.abs(found.rest - rest) < 1e-5, what);
        assert.equal(found.left, left, what);
      } else {
        assert.equal(found.left, null, `${what}: more words are left than have a name`);
        near(found.probs, probs, 0.01, what); // the last word of the nucleus has no name
      }
    }
  }
});

test("a word's own chance, rank and surprise", () => {
  const column = node(columns[0]);
  const first = known(column, column.ids[0], columns[0].vocab);
  assert.equal(first.rank, 1);
  assert(Math.abs(first.prob - 0.11026) < 1e-4);
  assert(Math.abs(bits(first.prob) - 3.1811) < 1e-3);
  assert.equal(known(column, 10 ** 8, columns[0].vocab), null);
  column.told.set(7, { prob: 0.25, rank: 300 });
  assert.deepEqual(known(column, 7, columns[0].vocab), { prob: 0.25, rank: 300 });
  assert.equal(OWN.temperature, 1);
});

test("where a column looks, by one head, by all, and where only some were sent", () => {
  const rows = Uint16Array.from([65535, 0, 0, 0, 65535, 0]);
  const whole = { rows, keys: 3, whole: true, head: null };
  assert.deepEqual([...look(whole, { layer: 0, head: 1 }, 2)], [0, 1, 0]);
  near(look(whole, null, 2), [0.5, 0.5, 0], 1e-6, "mean");
  const some = { rows, keys: 3, whole: false, head: [2, 1] };
  assert.deepEqual([...look(some, { layer: 2, head: 1 }, 2)], [0, 1, 0]);
  assert.deepEqual([...look(some, null, 2)], [1, 0, 0]);
  assert.equal(look(some, { layer: 0, head: 0 }, 2), null);
  assert.equal(most([0.9, 0.06, 0.04], 0), 1, "heads rest on the first token");
  assert.equal(most([0.9, 0.06, 0.04], null), 0);
  assert.equal(most([0.2, 0.7, 0.1], 1), 0);
  assert.equal(most([1], 0), 0, "where there is nothing else");
});

test("of many layers few have a row, the first and the last among them, until all are asked for", () => {
  const rows = (n) => Array.from({ length: n }, (_, i) => i);
  assert.deepEqual(someLayers(rows(31), false), [0, 5, 10, 15, 20, 25, 30]);
  assert.deepEqual(someLayers(rows(10), false), [0, 2, 3, 5, 6, 8, 9]);
  assert.deepEqual(someLayers(rows(9), false), rows(9));
  assert.deepEqual(someLayers(rows(31), true), rows(31));
});

const SETTINGS = { temperature: 1, topK: 0, topP: 1, minP: 0 };
const COLUMN = {
  node: { ids: [5, 7], position: 9 },
  at: 0,
  read: "a",
  take: 5,
  own: { probs: [0.5, 0.2] },
  shown: { probs: [0.8, 0], left: 3 },
  known: { prob: 0.5, rank: 1 },
  given: false,
};
const NAMES = Array.from({ length: 12 }, (_, i) => (i === 9 ? "a" : `t${i}`));
const said = (column, more = {}) =>
  saidFact({
    page: "columns",
    columns: [column],
    focus: 0,
    how: "greedy",
    header: { vocab: 6144, layers: 6 },
    settings: SETTINGS,
    wrote: null,
    looks: [],
    path: [5, 8],
    others: [[7, 9]],
    prompt: [1, 2],
    bytes: { token: 12288 },
    label: (id) => `w${id}`,
    named: (_, id) => `w${id}`,
    flush: (ids) => ids.map((id) => `w${id}`).join(" "),
    names: NAMES,
    counted: NAMES,
    marks: new Map(),
    copy: null,
    beams: null,
    scoreOf: (path) => `${path.length}.0 bits a token`,
    ...more,
  });

test("the fact says what came and what was likelier, what wrote it, and what the settings make of it", () => {
  assert.equal(said(COLUMN), "After a the likeliest word came, w5: 50 %, 1.0 bits of surprise.");
  const bold = { ...COLUMN, take: 7, known: { prob: 0.023, rank: 6 } };
  assert.equal(
    said(bold, { how: "sample" }),
    "After a the model would most likely write w5, 50 %. The draw took w7: 2.3 %, rank 6, 5.4 bits of surprise. Click w5 to see where that would have led.",
  );
  assert.match(said(bold, { how: "beam" }), /^After a the likeliest word alone is w5/);
  assert.equal(
    said({ ...COLUMN, given: true, known: { prob: 1 / 256, rank: 1234 } }),
    "w5 follows. The model gave it 0.4 %, rank 1,234: 8.0 bits of surprise.",
  );
  const look = { layer: 23, head: 1, key: 3, weight: 0.82, adds: 2.6 };
  const sure = { ...COLUMN, known: { prob: 0.93, rank: 1 } };
  const wrote = { position: 9, token: 5, heads: [], looks: [look] };
  assert.equal(
    said(sure, { wrote, looks: [look] }),
    "After a, w5 is all but certain: 93 %. Head 1 of layer 23 looks at t3: 82 %; that look adds +2.60 to its logit.",
  );
  for (const nothing of [
    { ...look, adds: 0.3 },
    { ...look, key: 8 },
  ])
    assert.match(said(sure, { wrote, looks: [nothing] }), /No single look decides it\.$/);
  assert.equal(
    said(bold, { how: "sample", hand: true }),
    "What if it had said w7? The model gave that 2.3 %, rank 6. It continues: “w8…” 2.0 bits a token on this line, 2.0 bits a token on the other.",
  );
  const set = { how: "sample", settings: { ...SETTINGS, temperature: 0.6, topP: 0.9 } };
  assert.match(said(COLUMN, set), /With these settings: 80 %, of 3 words\.$/);
  assert.match(
    said({ ...COLUMN, shown: { probs: [0, 0.2], left: 3 } }, set),
    /With these settings: no chance, of 3 words\.$/,
  );
  assert.match(said({ ...COLUMN, shown: { probs: [0.8, 0.1], left: null } }, set), /of more than 2 words\.$/);
  assert.equal(said(COLUMN, { hides: true }), "How does it go on after a? Decide first.");
  assert.match(said({ ...COLUMN, take: null }), /^Next after a: most likely w5, 50 %\./);
});

test("layers: where the word that came leads first, and how many words lead late or never", () => {
  const column = (position, ranks) => [position, { position, token: 5, ids: Array(7).fill(4), ranks }];
  const more = {
    page: "layers",
    columns: [COLUMN, { ...COLUMN, node: { ...COLUMN.node, position: 10 } }],
    layers: new Map([column(9, [9, 4, 2, 1, 2, 1, 1]), column(10, [9, 9, 9, 9, 9, 9, 2])]),
  };
  assert.equal(
    said(COLUMN, more),
    "w5 first leads after layer 2 of 0 to 5. Words that lead only from layer 2 on: 1 of 2; that never lead: 1.",
  );
  assert.match(
    said(COLUMN, { ...more, focus: 1 }),
    /^w5 never leads: the last layer says w4, and w5 has rank 2 there\./,
  );
});

test("the fact of a copy, of a search beside greedy, and of a token that is there twice", () => {
  const look = { layer: 23, head: 5, key: 3, weight: 0.35, adds: 1.07 };
  const wrote = { position: 9, token: 5, heads: [], looks: [look] };
  assert.equal(
    said(COLUMN, { wrote, looks: [look], copy: { n: 10, before: 0.83 } }),
    "It repeats itself: 10 tokens come a second time, w5 with 50 %; it had 83 % the first time. Head 5 of layer 23 looks at t3: 35 %; that look adds +1.07 to its logit.",
  );
  const beams = { best: -16.533, n: 24, greedy: -20.04, same: false, shared: 19, lines: 4 };
  assert.equal(
    said(COLUMN, { how: "beam", beams }),
    "Beam search kept the 4 likeliest lines at every step. The best it found has log p −16.53; greedy’s 24 tokens have −20.04. Likely is not the same as good: all 4 begin with the same 19 tokens.",
  );
  assert.match(
    said(COLUMN, { how: "beam", beams: { ...beams, same: true, shared: 0 } }),
    /the same 24 tokens as greedy’s\.$/,
  );
  const twice = NAMES.with(2, "a");
  assert.match(said(COLUMN, { names: twice, counted: twice }), /^After a₂ the/);
  assert.match(said(COLUMN, { names: twice, counted: twice.with(9, "<>") }), /^After a the/, "a mark has no number");
});

test("pieces of words begin with a hyphen, and a line of text is flush", () => {
  const writing = new Writing("run");
  const labels = ["One", "bow", "l", ".", "end of it", "12", "語", "the"];
  const close = new Set([1, 2, 3, 5, 6]);
  writing.learn(Object.fromEntries(labels.map((label, id) => [id, close.has(id) ? label : ` ${label}`])));
  writing.ends = new Set([4]);
  assert.deepEqual(
    [1, 2, 3, 5, 6, 7].map((id) => writing.named(id, "rain")),
    ["-bow", "-l", ".", "-12", "語", "the"],
  );
  assert.equal(writing.named(1, null), "bow", "nothing is before it");
  assert.equal(writing.named(1, "↵"), "bow", "a word after a line break is none");
  assert.equal(writing.named(4, "rain"), "end");
  assert.equal(writing.flush([0, 1, 2, 3, 7, 3, 4]), "Onebowl. the.");
});

test("of the given text its last words are there; marks of a turn are one word, and those of an end none", () => {
  const ruler = (text, size) => text.length * size * 0.5;
  const given = ["<s>", "user", "of", "ra", "in", "?", "<e>", "<s>", "ass", "istant"];
  const names = given.with(4, "-in");
  const marks = new Map([
    [0, "user"],
    [1, "user"],
    [6, ""],
    [7, "assistant"],
    [8, "assistant"],
    [9, "assistant"],
  ]);
  const { found, rest } = lastWords({ prompt: given, given, names, marks }, 200, ruler);
  assert.deepEqual(
    found.map(({ first, position, text }) => [first, position, text]),
    [
      [7, 9, "assistant"],
      [5, 5, "?"],
      [4, 4, "in"],
      [3, 3, "ra"],
      [2, 2, "of"],
      [0, 1, "user"],
    ],
  );
  assert.equal(rest, false);
  const [, sign, end, start] = found;
  const apart = (left, right) => right.x - right.width / 2 - left.x - left.width / 2;
  assert(Math.abs(apart(end, sign)) < 1e-9, "a sign stands close to its word");
  assert(Math.abs(apart(start, end)) < 1e-9, "pieces of a word touch");
});

test("a text that repeats itself", () => {
  assert.equal(repeats([1, 2, 3, 4, 5, 1, 2, 3, 4, 5]), null, "five tokens are no loop");
  assert.deepEqual(repeats([9, 1, 2, 3, 4, 5, 6, 8, 1, 2, 3, 4, 5, 6, 7]), { first: 1, second: 8, length: 6 });
  assert.equal(repeats([1, 2, 3, 4, 5, 6, 7, 8]), null);
});

const names = (all) => ({ names: all, counted: all, given: all.slice(0, 3), marks: new Map() });

test("columns are as wide as their words; where not all fit, the farthest are folded, and the open one never is", () => {
  const ruler = (text, size) => text.length * size * 0.5;
  const scene = (n, focus) => ({
    columns: Array.from({ length: n }, (_, i) => ({
      node: { position: 2 + i },
      take: i === n - 1 ? null : i % 7,
      given: false,
      at: i,
    })),
    focus,
    unfolded: false,
    page: "columns",
    path: Array.from({ length: n - 1 }, (_, i) => i % 7),
    others: [],
    prompt: [1, 2, 3],
    header: {},
    ...names(["a", "b", "c", ...Array.from({ length: n }, (_, i) => "word".repeat(1 + ((i % 7) % 3)))]),
    label: (id) => "word".repeat(1 + (id % 3)),
    look: null,
    scoreOf: () => "",
    flush: () => "words",
  });
  const room = { width: 1234, height: 430, narrow: false };
  for (const [n, focus] of [
    [12, 3],
    [27, 0],
    [27, 26],
    [500, 250],
  ]) {
    const at = plan(scene(n, focus), room, ruler);
    assert(at.low <= focus && focus <= at.high);
    assert(at.places.get(focus).width >= 236, "the open column has room for its list");
    assert.equal(at.places.size, at.high - at.low + 1);
    assert((at.left?.n ?? 0) + at.places.size + (at.right?.n ?? 0) === n, "every column is there, or in a fold");
    assert(at.end + (at.right ? at.right.width : 0) <= room.width + 1, "none is beyond the edge");
    let x = at.strip;
    for (const { x: left, width } of at.places.values()) {
      assert(left >= x && width >= 23);
      x = left + width;
    }
    assert.equal(at.long, n > 61);
  }
  assert.equal(plan(scene(12, 3), room, ruler).left, null, "all of few words fit");
});

test("the loss is of the text that was given; a prompt's last word is no part of it", () => {
  const own = [
    { given: true, known: { prob: 0.5 } },
    { given: false, known: { prob: 0.25 } },
    { given: false, known: null },
  ];
  assert.equal(
    lossOf({ losses: [1, 2, 6], prompt: [4, 5, 6], columns: own }),
    "loss on the given text 1.50 nats = 2.16 bits a token",
  );
  assert.equal(lossOf({ losses: [], prompt: [4], columns: own }), "");
});

test("paths and branches", () => {
  assert.deepEqual(paths.read(""), []);
  assert.deepEqual(paths.read(paths.written([5, 0, 12])), [5, 0, 12]);
  assert.deepEqual(paths.readAll(paths.writtenAll([[1], [2, 3]])), [[1], [2, 3]]);
  assert.equal(paths.common([1, 2, 3], [1, 2, 9]), 2);
  assert.deepEqual(
    paths.left([[7], [1, 2]], [1, 2, 3], [1, 9]),
    [[1, 2, 3], [7]],
    "what the newest branch begins with says nothing",
  );
  assert.deepEqual(paths.left([], [1, 2], [1, 2, 3]), [], "nothing is left by going on");
  assert.equal(paths.left([[2], [3], [4]], [5], [6]).length, 4);
});

test("beams: a row is a text that the step before kept", () => {
  const steps = [
    {
      index: 0,
      candidates: [
        [0, 5, -1, true, false],
        [0, 6, -2, true, false],
        [0, 7, -3, false, false],
      ],
      finished: [],
    },
    {
      index: 1,
      candidates: [
        [1, 8, -2.5, true, false],
        [0, 9, -2.6, true, false],
        [0, 2, -2.7, false, true],
      ],
      finished: [],
    },
  ];
  const [, second] = paths.grown(steps);
  assert.deepEqual(
    second.kept.map(({ path }) => path),
    [
      [6, 8],
      [5, 9],
    ],
  );
  assert.deepEqual(
    second.dropped.map(({ path, ends }) => [path, ends]),
    [[[5, 2], true]],
  );
});

test("a word in the beams is followed by the text that goes on from it", async () => {
  const { Asks } = await served("rooms/generate/browser/asks.js");
  const steps = [
    {
      index: 0,
      candidates: [
        [0, 5, -1, true, false],
        [0, 6, -2, true, false],
        [0, 7, -3, false, false],
      ],
      finished: [],
    },
    {
      index: 1,
      candidates: [
        [1, 8, -2.5, true, false],
        [0, 9, -2.6, true, false],
      ],
      finished: [[[6, 8], -2.5, -1.25, "max_tokens"]],
    },
  ];
  const asks = new Asks({ values: { beams: "2", path: "5" }, path: [5] });
  asks.writing = { searches: new Map([["2 8", steps]]) };
  assert.deepEqual(
    [[], [6], [5], [7], [4]].map((path) => asks.extended(path)),
    [[6, 8], [6, 8], [5, 9], [7], [6, 8]],
  );
});

// A message as Python frames it
function framed(header, body = new Uint8Array(0)) {
  let head = new TextEncoder().encode(JSON.stringify(header));
  head = Uint8Array.from([...head, ...Array((4 - (head.length % 4)) % 4).fill(32)]);
  const message = new Uint8Array(8 + head.length + body.length);
  new DataView(message.buffer).setUint32(0, 4 + head.length + body.length, true);
  new DataView(message.buffer).setUint32(4, head.length, true);
  message.set(head, 8);
  message.set(body, 8 + head.length);
  return message;
}

test("words come as they are written, and a refusal in between keeps what is there", async (t) => {
  const bytes = new Uint8Array(64);
  new Int32Array(bytes.buffer, 0, 1)[0] = 3;
  const reading = (position, id) => ({
    position,
    id,
    listed: 1,
    keys: 2,
    rows: 1,
    whole: false,
    head: null,
    taken: null,
    entropy: 2,
    cache: 8,
    ms: 1,
    at: [0, 4, 8, 12],
  });
  const parts = [
    framed(
      {
        kind: "begun",
        prompt: [1, 2],
        names: ["a", "b"],
        labels: { 3: "c" },
        glued: [],
        ends: [],
        over: "",
        losses: [1],
        bytes: {},
        readings: [reading(0, 1), reading(1, 2)],
      },
      bytes,
    ),
    framed({ kind: "written", taken: [3, 0.5, 1], labels: { 4: "d" }, over: "", reading: reading(2, 3) }, bytes),
    framed({ kind: "refused", sentence: "Busy." }),
  ];
  const all = Uint8Array.from(parts.flatMap((part) => [...part]));
  const cuts = [0, 3, 60, 61, parts[0].length + 5, all.length]; // a network cuts where it likes
  t.mock.method(
    globalThis,
    "fetch",
    async () =>
      new Response(
        new ReadableStream({
          start(controller) {
            cuts.slice(1).forEach((end, i) => controller.enqueue(all.slice(cuts[i], end)));
            controller.close();
          },
        }),
      ),
  );
  globalThis.document.baseURI = "http://localhost/";
  const writing = new Writing("key");
  const seen = [];
  assert.equal(await writing.write([], {}, new AbortController().signal, (path) => seen.push(path)), "Busy.");
  assert.deepEqual(seen, [[], [3]]);
  assert.equal(writing.given.length, 2);
  assert.equal(writing.node([3]).position, 2);
  assert.deepEqual(writing.node([]).told.get(3), { prob: 0.5, rank: 1 });
  assert.deepEqual([writing.label(3), writing.label(4), writing.label(9)], ["c", "d", "9"]);
  assert(writing.knows([3], null) && !writing.knows([3, 4], null) && !writing.knows([3], { layer: 0, head: 0 }));
});

test("numbers in words", () => {
  assert.deepEqual(
    [0.549, 0.0995, 0.05, 0.0001, 0].map((p) => percent(p)),
    ["55 %", "10 %", "5.0 %", "<0.1 %", "0 %"],
  );
  assert.deepEqual([12_288, 98_304, 1_536, 512, 3 << 20].map(size), [
    "12 KiB",
    "96 KiB",
    "1.5 KiB",
    "512 bytes",
    "3 MiB",
  ]);
});

test("the tree of all that was written has each word once, with its chance, and beams with what they weigh", () => {
  const [first, second] = columns;
  const path = [first.ids[1], second.ids[0]];
  const writing = {
    names: ["Once"],
    node: (way) => (way.length === 0 ? node(first) : way.length === 1 && way[0] === path[0] ? node(second) : undefined),
  };
  const beam = (way, logProb) => ({ path: way, logProb, id: way.at(-1), row: 0, ends: false });
  const scene = {
    path,
    others: [[first.ids[0]], [path[0], second.ids[2]]],
    grown: [{ kept: [beam([first.ids[0]], -2.2)], dropped: [beam([first.ids[5]], -4)] }],
    prompt: [0],
    header: { vocab: first.vocab },
    label: (id) => `w${id}`,
  };
  const { text, next, about } = JSON.parse(treeJson(scene, writing, ["how"]));
  assert.deepEqual([text, about], [["Once"], ["how"]]);
  assert.deepEqual(
    next.map(({ id }) => id),
    [path[0], first.ids[0], first.ids[5]],
  );
  assert.deepEqual(
    next[0].next.map(({ id, taken }) => [id, taken]),
    [
      [path[1], true],
      [second.ids[2], undefined],
    ],
  );
  assert(
    Math.abs(next[1].probability - known(node(first), first.ids[0], first.vocab).prob) < 1e-6 && next[1].rank === 1,
  );
  assert.deepEqual([next[1].beam, next[1].log_probability, next[2].beam], ["kept", -2.2, "dropped"]);
});

test("the name of a button begins with what the button says", () => {
  for (const [name, help] of [
    [WORDS.play, WORDS.play_help],
    [WORDS.stop, WORDS.stop_help],
  ])
    assert.ok(help.startsWith(name), help);
});

test("what a beam search keeps are likely texts and not the likeliest; log-probabilities have a unit; tokens are no words", () => {
  assert.match(WORDS.beam_note, /^Likely texts .*log-probability.*nats/);
  for (const line of [WORDS.stopped, WORDS.stopped_one, WORDS.wrote]) assert.match(line, /\btokens?\b/);
});
