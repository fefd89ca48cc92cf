// The map of all heads: where each stands, which is under the pointer, and which have the most.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { cellsOf, drawLens, groupsOf, strongest } = await served("kit/browser/chooser.js");
const { headMeasures } = await served("kit/browser/head_measures.js");
const { pack } = await served("kit/browser/messages.js");

const MODELS = [
  { layers: 6, heads: 12 },
  { layers: 30, heads: 9, kv_heads: 3 },
  { layers: 32, heads: 32, kv_heads: 8 },
  { layers: 80, heads: 64, kv_heads: 8 },
  { layers: 1, heads: 1 },
];

test("every head of 1 to 5,120 is found where it is drawn, in its room, and in no other's place", () => {
  for (const turned of [false, true])
    for (const model of MODELS) {
      const [wide, tall] = turned ? [320, 560] : [590, 470];
      const cells = cellsOf(model, wide, tall, turned, 1);
      assert.ok(cells.width <= wide + 1e-6, `${JSON.stringify(model)} is ${cells.width} wide`);
      if (!turned) assert.ok(cells.height <= tall + 1e-6, `${JSON.stringify(model)} is ${cells.height} high`);
      for (let layer = 0; layer < model.layers; layer++)
        for (let head = 0; head < model.heads; head++) {
          const [x, y] = cells.at({ layer, head });
          assert.deepEqual(cells.of(x + cells.w / 2, y + cells.h / 2), { layer, head });
        }
    }
});

test("beside the map and in the gap between heads that share no keys is none", () => {
  const cells = cellsOf({ layers: 30, heads: 9, kv_heads: 3 }, 590, 470, false, 1);
  const [x, y] = cells.at({ layer: 4, head: 3 });
  assert.equal(cells.of(x + 1, y - 1), null);
  for (const [left, top] of [
    [-1, 1],
    [1, -1],
    [cells.width + 1, 1],
    [1, cells.height + 1],
  ])
    assert.equal(cells.of(left, top), null);
});

test("the strongest are those with the largest numbers of either sign, and never those without one", () => {
  const values = Float32Array.of(0.1, -3, NaN, 2, 0, 0.5);
  const found = strongest(values, 2, 3);
  assert.deepEqual(
    found.map(({ layer, head }) => [layer, head]),
    [
      [0, 1],
      [1, 1],
      [2, 1],
    ],
  );
  assert.equal(strongest(values, 2, 9).length, 5);
});

test("heads that share keys and values are in groups of one size, which together are all heads", () => {
  assert.deepEqual(groupsOf({ heads: 9, kv_heads: 3 }), [
    [0, 2],
    [3, 5],
    [6, 8],
  ]);
  assert.deepEqual(groupsOf({ heads: 8, kv_heads: 1 }), [[0, 7]]);
  assert.equal(groupsOf({ heads: 64, kv_heads: 8 }).length, 8);
  assert.deepEqual(groupsOf({ heads: 12 }), []);
});

test("the heads are coloured by what they add to the likeliest word, where a model writes", () => {
  const values = Float32Array.of(0.5, -2); // to the first of two words, of one layer and two heads
  const bytes = pack(
    {
      words: [
        ["Mary", 0.92],
        ["the", 0.02],
      ],
      layers: 1,
      heads: 2,
    },
    values.buffer,
  );
  const asked = [];
  const answers = { additions: (read) => read(bytes) };
  const room = {
    ask(path, params, read) {
      asked.push([path, params]);
      return answers[path]?.(read) ?? null;
    },
  };
  const of = {
    site: "decoder",
    query: 1,
    labels: [
      ["John", "to"],
      ["John", "to"],
    ],
  };
  const adds = headMeasures(room, of).find(({ id }) => id === "adds");
  assert.ok(!asked.some(([path]) => path === "additions"), "asked for before the map is open");
  assert.deepEqual([...adds.values()], [0.5, -2]);
  assert.deepEqual(asked.at(-1), ["additions", { site: "decoder", query: 1, candidate: 0 }]);
  assert.deepEqual(adds.parts, { query: ["to", "q"], word: ["Mary", "a"] });
  assert.deepEqual([adds.say(0.5), adds.say(-2), adds.isSigned], ["+0.50", "−2.00", true]);
  answers.additions = () => ({ refused: "The logits of this model are no sum over heads." });
  assert.equal(
    headMeasures(room, of)
      .find(({ id }) => id === "adds")
      .values().length,
    0,
  );
  assert.equal(
    headMeasures(room, { ...of, site: "encoder" }).find(({ id }) => id === "adds"),
    undefined,
  );
  assert.equal(
    headMeasures(room, { ...of, query: undefined }).find(({ id }) => id === "adds"),
    undefined,
  );
});

test("the lens shows the heads around one of 5,120, each in its colour, and the one itself in the frame", () => {
  const heads = { layers: 80, heads: 64, kv_heads: 8 };
  const cells = cellsOf(heads, 370, 150, false, 1);
  assert.ok(Math.min(cells.w, cells.h) < 6); // hard to hit
  for (const at of [
    { layer: 40, head: 30 },
    { layer: 0, head: 63 },
    { layer: 79, head: 0 },
  ]) {
    const drawn = new Map();
    const framed = [];
    const context = {
      setTransform() {},
      clearRect() {},
      fillRect(...box) {
        if (this.fillStyle !== "panel") drawn.set(this.fillStyle, box);
      },
      strokeRect: (...box) => framed.push(box),
    };
    const classes = new Set();
    const lens = {
      style: {},
      classList: { toggle: (name, on) => (on ? classes.add(name) : classes.delete(name)) },
      getContext: () => context,
    };
    const map = { clientWidth: 400, clientHeight: 190 };
    globalThis.devicePixelRatio = 1;
    const of = {
      cells,
      origin: [50, 5],
      at,
      heads,
      turned: false,
      unit: 1,
      isSmall: true,
      palette: { panel: "panel", ink: "ink" },
    };
    drawLens(lens, map, of, ({ layer, head }) => `${layer}.${head}`);
    const around = (n, last) => Math.min(n, 4) + Math.min(last - n, 4) + 1;
    assert.equal(drawn.size, around(at.layer, 79) * around(at.head, 63));
    const [x, y] = drawn.get(`${at.layer}.${at.head}`);
    const [[left, top, w, h]] = framed;
    assert.ok(left <= x && top <= y && x + 13 <= left + w + 1 && y + 13 <= top + h + 1);
    const [from, down] = lens.style.translate.split(" ").map(Number.parseFloat);
    assert.ok(from >= 0 && from + 9 * 15 <= map.clientWidth + 6);
    const [, cell] = cells.at(at);
    assert.ok(down > 5 + cell || down + 9 * 15 < 5 + cell); // beside the cell, and not over it
    assert.ok(classes.has("raised"));
  }
});
