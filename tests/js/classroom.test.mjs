// A class's votes as one more row of weights: fractions, agreement, columns, and the sentences, ties among them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { near, served } from "./golden.mjs";

const votes = await served("classroom/browser/votes.js");
const { differing, nearest, swapped } = await served("classroom/browser/again.js");
const { codeOf, impossible, lengthOf } = await served("classroom/browser/place.js");
const { widest } = await served("classroom/browser/parts.js");
const { events } = await served("classroom/browser/wire.js");
const { Question } = await served("classroom/browser/question.js");
const { fill } = await served("kit/browser/dom.js");
const GUARD = (await served("kit/browser/words.js")).WORDS.csv_guard;

// fill() makes nodes, of which Node has none: what is put into the braces is a text, or the first of a pair.
const text = ([template, parts]) =>
  template.replace(/\{(\w+)\}/g, (_, name) => (Array.isArray(parts[name]) ? parts[name][0] : parts[name]));
globalThis.document = {
  createTextNode: (textContent) => ({ textContent }),
  createElement: () => ({ textContent: "" }),
};
assert.equal(fill("{a} b", { a: ["x", "q"] }), "x b");

const LABELS = ["[CLS]", "The", "animal", "street", "it", "tired"];
const HEAD = [0.102, 0.044, 0.677, 0.05, 0.064, 0.063];

test("votes are shares of those who have said, and nothing where nobody has", () => {
  assert.deepEqual(votes.tally({ 2: 3, 5: 1, 99: 7 }, 6), [0, 0, 3, 0, 0, 1]);
  assert.deepEqual(votes.shares([0, 0, 3, 0, 0, 1]), [0, 0, 0.75, 0, 0, 0.25]);
  assert.deepEqual(votes.shares([0, 0, 0]), [0, 0, 0]);
});

test("the small map of a text read from the right has its first key there", () => {
  const site = { key: "source", n_query: 2, thumbnail: () => ({ rows: 2, columns: 2, values: [255, 0, 0, 0] }) };
  for (const [tokens, first] of [
    [["of", "it"], 0],
    [["של", "זה"], 1],
  ]) {
    const dark = [];
    const pen = { fillStyle: "", fillRect: (x, y) => pen.fillStyle === 255 && dark.push([x, y]) };
    const question = Object.assign(Object.create(Question.prototype), {
      site,
      asked: { query: 1, layer: 0, head: 0 },
      picture: { tokens: { source: tokens } },
    });
    question.draw({ getContext: () => pen }, { css: [...Array(256).keys()] });
    assert.deepEqual(dark, [[first, 0]]);
  }
});

test("agreement is what two rows share", () => {
  near(
    [
      votes.overlap([0.5, 0.5, 0], [0.25, 0, 0.75]),
      votes.overlap([1, 0], [0, 1]),
      votes.overlap([0.3, 0.7], [0.3, 0.7]),
    ],
    [0.25, 0, 1],
    1e-12,
    "overlap",
  );
  const likes = votes.agreements(
    [
      [
        [1, 0],
        [0, 1],
      ],
      [
        [0.5, 0.5],
        [0.9, 0.1],
      ],
    ],
    [1, 0],
  );
  assert.deepEqual(
    likes.map(({ layer, head, agreement }) => [layer, head, agreement]),
    [
      [0, 0, 1],
      [0, 1, 0],
      [1, 0, 0.5],
      [1, 1, 0.9],
    ],
  );
  assert.equal(
    text(votes.mostLike(likes, { layer: 1, head: 0 })),
    "L0 H0 is most like it: 100 %. This one is 3rd of 4.",
  );
});

test("places are counted as people count them", () => {
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 19, 21, 72, 101, 111].map(votes.ordinal), [
    "1st",
    "2nd",
    "3rd",
    "4th",
    "11th",
    "12th",
    "13th",
    "19th",
    "21st",
    "72nd",
    "101st",
    "111th",
  ]);
});

test("all words of a short text have a column; of a long one those with votes or weight, and the word that looks", () => {
  assert.deepEqual(votes.columns(Array(24).fill(0), null, 3), [...Array(24).keys()]);
  const said = Array(40).fill(0);
  said[5] = 0.6;
  said[30] = 0.4;
  assert.deepEqual(votes.columns(said, null, 10), [-5, 5, -4, 10, -19, 30, -9]);
  const weights = Array(40).fill(0.01);
  weights[6] = 0.5;
  weights[39] = 0.021;
  assert.deepEqual(votes.columns(said, weights, null), [-5, 5, 6, -23, 30, -8, 39]);
  const all = votes.columns(
    Array.from({ length: 60 }, (_, i) => (i + 1) / 1830),
    null,
    0,
  );
  assert.equal(all.filter((column) => column >= 0).length, votes.MOST_COLUMNS);
  assert.equal(all[0], 0, "the word that looks is there, however few said it");
  assert.equal(
    all.reduce((sum, column) => sum + (column < 0 ? -column : 1), 0),
    60,
    "no word is lost",
  );
});

test("the fact says what both did, in each of its cases", () => {
  const fact = (counts) => text(votes.verdict(LABELS, votes.shares(counts), HEAD));
  assert.equal(
    fact([0, 0, 1, 3, 0, 0]),
    "The room: 75 % street. The head: 68 % animal. They agree on 30.0 % of the weight.",
  );
  assert.equal(
    fact([0, 0, 3, 1, 0, 0]),
    "Both say animal: the room 75 %, the head 68 %. They agree on 72.7 % of the weight.",
  );
  assert.equal(
    fact([0, 0, 2, 2, 0, 0]),
    "The room: animal, street, 50 % each. The head: 68 % animal. They agree on 55.0 % of the weight.",
  );
  assert.equal(
    fact([1, 1, 1, 1, 1, 0]),
    "The room: 5 words, 20 % each. The head: 68 % animal. They agree on 46.0 % of the weight.",
  );
  assert.equal(fact([0, 0, 0, 0, 0, 0]), "No answers. The head: 68 % animal.");
});

test("what both gave to the same word adds up to their agreement", () => {
  assert.equal(
    text(votes.sumOf(LABELS, votes.shares([0, 0, 1, 3, 0, 0]), HEAD)),
    "Both to the same word: animal 25.0 + street 5.0 = 30.0 %",
  );
  assert.equal(
    text(votes.sumOf(["של", "זה"], [1, 0], [0.5, 0.5])),
    "Both to the same word: \u2068של\u2069 50.0 = 50.0 %",
  );
  assert.equal(text(votes.sumOf(["a", "b"], [1, 0], [0, 1])), "No word has both votes and weight.");
});

test("a phone says how its own word did, and which head has it", () => {
  assert.equal(text(votes.said(LABELS, 3, HEAD, 6)), "You chose street: 5.0 %, rank 5 of 6.");
  assert.equal(
    text(votes.said(LABELS, 2, HEAD, 6)),
    "You chose animal: 67.7 %, rank 1 of 6. That is where it looks most.",
  );
  assert.deepEqual([0, 1, 8].map(votes.others), [
    "No one else chose it.",
    "1 other chose the same.",
    "8 others chose the same.",
  ]);
  const rows = [
    [
      [0.9, 0.1, 0],
      [0.2, 0.45, 0.35],
    ],
    [
      [0.3, 0.31, 0.39],
      [1, 0, 0],
    ],
  ];
  assert.equal(text(votes.ownHead(rows, 1)), "Your word has a head of its own: layer 0 head 1 gives it 45 %.");
  assert.equal(text(votes.ownHead(rows, 2)), "Your word has a head of its own: layer 1 head 0 gives it 39 %.");
  assert.equal(
    text(
      votes.ownHead(
        [
          [
            [0.9, 0.1, 0],
            [0.6, 0.35, 0.05],
          ],
        ],
        1,
      ),
    ),
    "No head of 2 gives it more than 35 %: layer 0 head 1.",
  );
});

test("another round says how far both moved", () => {
  const said = votes.moved({
    old: "tired",
    now: "wide",
    votes: [
      [1, 0],
      [0.5, 0.5],
    ],
    weights: [
      [0.5, 0.5],
      [0.4, 0.6],
    ],
  });
  assert.equal(text(said), "tired → wide: the room moved 50.0 % of its votes, the head 10.0 % of its weight.");
});

test("a file of votes has a line for each word, whatever stands in it", () => {
  const file = votes.csv(["One\nnote,=1"], ['a "b"', "c,d", "=1+1"], [1, 0, 2], [0.5, 0.25, 0.25]);
  assert.deepEqual(file.split("\r\n"), [
    "# One",
    "# note, =1",
    `# ${GUARD}`,
    "position,word,votes,weight",
    '0,"a ""b""",1,0.5',
    '1,"c,d",0,0.25',
    `2,"'=1+1",2,0.25`,
    "",
  ]);
});

test("a word of the sentence is swapped for the one that turns its meaning, and the question finds its word again", () => {
  assert.deepEqual(swapped("It was too tired."), { text: "It was too wide.", word: "wide" });
  assert.equal(swapped("No such word, untired."), null);
  assert.equal(nearest(["a", "it", "b", "it"], "it", 2), 1);
  assert.equal(nearest(["a", "it", "b", "c", "it"], "it", 4), 4);
  assert.equal(nearest(["a", "b"], "it", 7), 1);
  assert.deepEqual(differing(["too", "tired", "."], ["too", "wide", "."]), ["tired", "wide"]);
  assert.equal(differing(["a"], ["a", "b"]), null);
});

test("no code is wider than the room that is kept for it", () => {
  // of Source Sans in bold, as a browser measures it, with 0.035 between the signs
  const WIDTHS = {
    3: 0.528,
    4: 0.528,
    7: 0.528,
    9: 0.528,
    B: 0.605,
    C: 0.582,
    D: 0.635,
    F: 0.524,
    G: 0.638,
    H: 0.674,
    J: 0.509,
    K: 0.614,
    L: 0.518,
    M: 0.762,
    N: 0.665,
    P: 0.596,
    Q: 0.684,
    R: 0.613,
    S: 0.556,
    T: 0.556,
    V: 0.556,
    W: 0.813,
    X: 0.567,
    Y: 0.525,
    Z: 0.541,
    " ": 0.2,
  };
  for (const [sign, width] of Object.entries(WIDTHS)) {
    const kept = widest(sign) - width - 0.035;
    assert.ok(kept > 0 && kept < 0.12, `${sign}: ${kept}`);
  }
  assert.ok(widest("closed") < 7.3);
});

test("a code is read as people type it", () => {
  assert.equal(codeOf(" kxrm-7tqd ", "BCDFGHJKLMNPQRSTVWXYZ3479"), "KXRM7TQD");
  assert.equal(codeOf("<script>0156AEIOU", "BCDFGHJKLMNPQRSTVWXYZ3479"), "SCRPT");
  assert.equal(codeOf("https://a.test/lab/r/kxrm%37?x=1", "BCDFGHJKLMNPQRSTVWXYZ3479"), "KXRM37");
  assert.equal(codeOf("ｋｘｒｍ\u2009７ｔｑｄ", "BCDFGHJKLMNPQRSTVWXYZ3479"), "KXRM7TQD");
});

test("signs that no code has are named once each, and nothing that stands between signs is one", () => {
  assert.deepEqual(impossible("o0 O-kx — é.", "BCDFGHJKLMNPQRSTVWXYZ3479"), ["O", "0", "É"]);
  assert.deepEqual(impossible("kxrm - 7tqd", "BCDFGHJKLMNPQRSTVWXYZ3479"), []);
  assert.deepEqual([lengthOf(""), lengthOf("kx rm"), lengthOf("KXRM-7TQD-3")], [0, 4, 9]);
});

test("a stream is read event by event, however its bytes come", async () => {
  const bytes = new TextEncoder().encode(
    ': here\n\nevent: class\ndata: {"of":3}\n\nevent: votes\r\ndata: {"q":1,\r\ndata: "said":2}\r\n\r\nevent: lost',
  );
  for (const size of [1, 7, 1000]) {
    const stream = new ReadableStream({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const found = [];
    for await (const event of events(stream, () => {})) found.push(event);
    assert.deepEqual(found, [
      ["class", { of: 3 }],
      ["votes", { q: 1, said: 2 }],
    ]);
  }
});
