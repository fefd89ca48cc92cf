// The numbers of Train: means, bands of seeds, curves and their names, lines of a stream that come in pieces.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { smooth, band, upTo, indexAt, lossText, largest } = await served("rooms/train/browser/numbers.js");
const { apart, upTo: curveUpTo } = await served("rooms/train/browser/chart.js");
const { reached } = await served("rooms/train/browser/sentences.js");
const { Fetcher } = await served("kit/browser/fetcher.js");
const { Finished } = await served("rooms/train/browser/finished.js");
const { EXAMPLES } = await served("rooms/train/browser/constants.js");
const { Following, linesOf } = await served("rooms/train/browser/following.js");

test("a loss is the mean of the last five, and none where one of them is no number", () => {
  const points = [1, 2, 3, 4, 5, 11].map((loss, i) => [i + 1, loss, 0]);
  assert.deepEqual(smooth(points), [1, 1.5, 2, 2.5, 3, 5]);
  assert.deepEqual(
    smooth([
      [1, 1, 0],
      [2, null, 0],
      [3, 1, 0],
    ]),
    [1, null, null],
  );
});

test("a band is the lowest and the highest of its seeds, where all have a step", () => {
  const seeds = [
    [
      [1, 3],
      [2, 1],
      [3, 5],
    ],
    [
      [1, 2],
      [2, 4],
    ],
    [
      [1, 9],
      [2, 2],
      [3, 1],
    ],
  ];
  assert.deepEqual(band(seeds), {
    low: [
      [1, 2],
      [2, 1],
    ],
    high: [
      [1, 9],
      [2, 4],
    ],
  });
  assert.deepEqual(band([[[1, null]], [[1, 2]]]), { low: [], high: [] }, "a loss that is no number has no band");
});

test("names at the ends of curves are apart, in the order of the curves and within the chart", () => {
  const found = apart([50, 52, 51, 10], 12, 0, 60);
  const order = [...found].sort((a, b) => a - b);
  assert.deepEqual([found[3], found[0], found[2], found[1]], order);
  for (let i = 1; i < 4; i++) assert.ok(order[i] - order[i - 1] > 11.5, `${order}`);
  assert.ok(Math.max(...found) <= 60 && Math.min(...found) >= 0);
});

test("a curve ends at its step, also between two of its points", () => {
  const points = [0, 10, 20].map((step) => ({ x: step, y: 2 * step, step }));
  assert.deepEqual(curveUpTo(points, 15).at(-1), { x: 15, y: 30, step: 15 });
  assert.equal(curveUpTo(points, 20).length, 3);
  assert.equal(curveUpTo(points, 99).length, 3);
});

test("90 per cent are right from the step on from which they stay so", () => {
  const frames = [0.2, 0.95, 0.5, 0.9, 1].map((share, i) => [10 * i, share, 0]);
  assert.equal(reached(frames), 30);
  assert.equal(reached(frames.slice(0, 3)), null);
});

test("what stands at a step is the last that is not behind it", () => {
  const frames = [{ step: 0 }, { step: 5 }, { step: 9 }];
  assert.equal(upTo(frames, 8)?.step, 5);
  assert.equal(upTo(frames.slice(1), 2), undefined);
  assert.equal(indexAt([[1], [2], [5]], 4), 1);
  assert.equal(indexAt([[1]], 0), -1);
});

test("a loss has three digits, and none that are not there", () => {
  assert.deepEqual(
    [12.34, 2.345, 0.1234, 0.00345, 0.0002, null].map((x) => lossText(x)),
    ["12.3", "2.35", "0.123", "0.0034", "<0.001", "∞"].map((x, i) =>
      i === 1 ? (2.345).toFixed(2) : i === 3 ? (0.00345).toFixed(4) : x,
    ),
  );
  assert.deepEqual(
    largest([
      [0.1, 0.4],
      [0.3, 0.2],
    ]),
    [0, 1, 0.4],
  );
});

test("lines are whole however the stream is cut", async () => {
  const text = '{"a":"é"}\n{"b":2}\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 3, 7, 100]) {
    const pieces = [];
    for (let i = 0; i < bytes.length; i += size) pieces.push(bytes.slice(i, i + size));
    const stream = new ReadableStream({
      start(c) {
        for (const one of pieces) c.enqueue(one);
        c.close();
      },
    });
    const found = [];
    for await (const line of linesOf(stream)) found.push(JSON.parse(line));
    assert.deepEqual(found, [{ a: "é" }, { b: 2 }]);
  }
});

// A run that has ended, whose looks are asked for; what the server says is said by the test.
function following(example) {
  globalThis.document = { baseURI: "http://here/" };
  const asked = [];
  globalThis.fetch = (address) =>
    new Promise((answer) => asked.push({ example: address.searchParams.get("example"), answer }));
  const one = new Following({ task: "copy", twin: "none", seed: "0", from: "0" }, example, () => {});
  one.take({ state: "ended", place: 0, seconds: 0, why: "", points: [[1, 2, 0]], frames: [{ step: 0 }] });
  return { one, asked };
}
// A message as the server packs it
const packed = (header, body) => {
  const head = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(4 + Math.ceil(head.length / 4) * 4 + body.length).fill(32);
  new DataView(bytes.buffer).setUint32(0, Math.ceil(head.length / 4) * 4, true);
  bytes.set(head, 4);
  bytes.set(body, bytes.length - body.length);
  return bytes;
};
const turn = () => new Promise((done) => setImmediate(done));

test("what is said of an example that was left behind is not said of the next one", async () => {
  const { one, asked } = following("12");
  let read = (_) => {};
  asked[0].answer({ ok: false, status: 400, text: () => new Promise((done) => (read = done)) });
  await turn();
  one.watch("bead"); // typed while the refusal is on its way
  read("Copy knows no '1'.");
  await turn();
  assert.equal(one.refused, "");
  assert.deepEqual(
    asked.map(({ example }) => example),
    ["12", "bead"],
  );
  asked[1].answer({ ok: false, status: 400, text: async () => "Copy knows no 'z'." });
  await turn();
  assert.equal(one.refused, "Copy knows no 'z'.");
  assert.equal(asked.length, 3, "what is refused is not asked again");
  assert.equal(asked[2].example, EXAMPLES.copy, "nothing was drawn yet: the task's own is");
});

test("what cannot be looked at leaves what is drawn, and new frames of that", async () => {
  const { one, asked } = following("bead");
  const seen = { tokens: ["<s>"], answer: "", first: 1, unseen: true, model: "", edits: "" };
  const says = (step) => ({
    ok: true,
    status: 200,
    arrayBuffer: async () =>
      packed(
        { ...seen, looks: [{ step, p: [1], best: ["a"], own: "a", finds: [[1]], ahead: [[0]], shape: [1, 1, 1, 1] }] },
        [255],
      ).buffer,
  });
  asked[0].answer(says(0));
  await turn();
  one.watch("zebra");
  await turn();
  assert.deepEqual([...one.looks.keys()], [0], "while the server is asked");
  asked[1].answer({ ok: false, status: 400, text: async () => "Copy knows no 'z'." });
  await turn();
  assert.deepEqual([one.refused, one.shown, [...one.looks.keys()]], ["Copy knows no 'z'.", "bead", [0]]);
  one.take({ state: "ended", place: 0, seconds: 0, why: "", points: [[2, 1, 0]], frames: [{ step: 2 }] });
  await turn();
  assert.equal(asked[2].example, "bead");
  asked[2].answer(says(2));
  await turn();
  assert.deepEqual([...one.looks.keys()], [0, 2]);
  assert.equal(one.refused, "Copy knows no 'z'.", "it is still in its field");
  one.watch("bead");
  assert.deepEqual([one.refused, one.looks.size], ["", 2]);
  one.watch("cafe");
  await turn();
  asked[3].answer(says(0));
  await turn();
  assert.deepEqual([one.shown, [...one.looks.keys()]], ["cafe", [0]]);
});

test("a server that is busy is asked again for looks of a run that has ended", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { asked } = following("bead");
  asked[0].answer({ ok: false, status: 503, text: async () => "All places are taken." });
  await turn();
  assert.equal(asked.length, 1);
  t.mock.timers.tick(1000);
  await turn();
  assert.equal(asked.length, 2);
});

test("a run and its twin that are kept are asked for once each, and those that are not are not", async () => {
  globalThis.document = { baseURI: "http://here/" };
  const look = { step: 600, p: [1], best: ["a"], own: "a", finds: [[1]], ahead: [[0]], shape: [1, 1, 2, 2] };
  const message = packed(
    {
      points: [[1, 2, 0]],
      frames: [{ step: 600 }],
      looks: [look],
      tokens: ["<s>", "a"],
      answer: "a",
      first: 1,
      unseen: true,
      model: "",
      edits: "",
    },
    [255, 0, 128, 127],
  );
  const asked = [];
  globalThis.fetch = async (address) => {
    const { task, twin, example = "" } = Object.fromEntries(address.searchParams);
    asked.push(`${task} ${twin} ${example}`.trim());
    if (example === "12") return { ok: false, status: 400, text: async () => "It knows no '1'." };
    return { ok: true, status: 200, arrayBuffer: async () => message.buffer };
  };
  const there = { copy: ["none", "nomask"], sort: ["none"] };
  const finished = new Finished(new Fetcher("", () => {}));
  assert.deepEqual(finished.pair(there, "echo", "none", "feedback"), [null, null]);
  assert.deepEqual(finished.pair(there, "copy", "nomask", "feedback"), [null, null]);
  assert.ok(finished.isComing);
  for (let i = 0; i < 5; i++) await turn();
  assert.ok(!finished.isComing);
  finished.pair(there, "copy", "nomask", "feedback");
  for (let i = 0; i < 5; i++) await turn();
  const [run, twin] = finished.pair(there, "copy", "nomask", "feedback");
  assert.deepEqual([run.state, run.spec.twin, twin.spec.twin], ["ended", "none", "nomask"]);
  assert.deepEqual([...run.looks.get(600).maps], [255, 0, 128, 127]);
  finished.pair(there, "sort", "nomask", "feedback");
  for (let i = 0; i < 5; i++) await turn();
  assert.equal(finished.pair(there, "sort", "nomask", "feedback")[1], null);
  assert.deepEqual(asked, ["copy none", "copy nomask", "sort none"]);
  for (const [example, looks, refused] of [
    ["bead", 1, ""],
    ["12", 1, "It knows no '1'."],
  ]) {
    finished.pair(there, "copy", "none", example);
    for (let i = 0; i < 5; i++) await turn();
    const [other] = finished.pair(there, "copy", "none", example);
    assert.deepEqual([other.looks.size, other.refused, other.points.length], [looks, refused, 1]);
    assert.equal(other.shown, "bead", "the last that could be looked at");
  }
  assert.deepEqual(asked.slice(3), ["copy none bead", "copy none 12"]);
});

test("who comes while a race waits sees what there is of it, and lets it wait", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.document = { baseURI: "http://here/" };
  const news = {
    state: "running",
    place: 0,
    seconds: 0,
    why: "",
    points: [
      [1, 3, 0],
      [2, 2, 0],
    ],
    frames: [{ step: 0 }],
  };
  const asked = [];
  globalThis.fetch = async (address) => {
    asked.push(address.pathname.split("/").at(-1));
    return asked.at(-1) === "now"
      ? { ok: true, status: 200, text: async () => JSON.stringify(news) }
      : { ok: false, status: 404, text: async () => "" };
  };
  const one = new Following({ task: "copy", twin: "none", seed: "0", from: "0" }, "bead", () => {});
  one.glance();
  for (let i = 0; i < 5; i++) await turn();
  assert.deepEqual([one.state, one.points.length, one.frames.length], ["paused", 2, 1]);
  one.rest();
  Object.assign(news, { state: "paused", points: [...news.points, [3, 1, 0]] }); // what was on its way when it was paused
  t.mock.timers.tick(1000);
  for (let i = 0; i < 5; i++) await turn();
  assert.deepEqual([one.state, one.points.map(([step]) => step), one.frames.length], ["paused", [1, 2, 3], 1]);
  t.mock.timers.tick(1000);
  for (let i = 0; i < 5; i++) await turn();
  assert.deepEqual(asked, ["now", "looks", "now"], "nobody watches it, so it waits");
});
