// Files, the clipboard and links, for all rooms alike.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { csv, field } = await served("kit/browser/csv.js");
const GUARD = (await served("kit/browser/words.js")).WORDS.csv_guard;
const { copy, sizeOf } = await served("kit/browser/save.js");

test("a table as a file runs nothing in a spreadsheet, and loses no number", () => {
  assert.deepEqual(["=1+1", "-12.5", "@x", "＝1", "＋", "'-", 'say "a"', "word"].map(field), [
    '"\'=1+1"',
    '"\'-12.5"',
    '"\'@x"',
    '"\'＝1"',
    '"\'＋"',
    `"''-"`,
    '"say ""a"""',
    '"word"',
  ]);
  assert.deepEqual([3, 0.1, Math.fround(0.1), -1e-7, NaN].map(field), ["3", "0.1", "0.100000001", "-1e-7", ""]);
  const text = csv(
    ["a", 'b, "c"'],
    [
      ["x", 1],
      ["=y", 0.5],
    ],
    ["caption", "import core\n\nprint(1,-2)"],
  );
  const about = ["# caption", "# import core", "#", "# print(1, -2)", `# ${GUARD}`].join("\r\n");
  assert.equal(text, `${about}\r\na,"b, ""c"""\r\n"x",1\r\n"'=y",0.5\r\n`);
  assert(!csv(["a"], [["x"], ["a-b"]], []).includes(GUARD));
});

test("a size is in the unit that keeps it short", () => {
  for (const [bytes, text] of [
    [0, "0 bytes"],
    [999, "999 bytes"],
    [1000, "1.0 kB"],
    [12_345, "12.3 kB"],
    [2_500_000, "2.5 MB"],
    [3e9, "3000.0 MB"],
  ])
    assert.equal(sizeOf(bytes), text);
});

test("a text is on the clipboard only where the browser lets it", async (t) => {
  const texts = [];
  const asked = { clipboard: { writeText: async (text) => void texts.push(text) } };
  t.mock.getter(globalThis, "navigator", () => asked);
  assert.equal(await copy("a link"), true);
  assert.deepEqual(texts, ["a link"]);
  asked.clipboard.writeText = async () => Promise.reject(new Error("no permission"));
  assert.equal(await copy("a link"), false);
  delete asked.clipboard; // a page without a secure connection has none
  assert.equal(await copy("a link"), false);
});

const { linkTo, spoken } = await served("kit/browser/share.js");

test("a link says what it is told to, the page's light or dark and its projector, and nothing of the address before", () => {
  const page = { theme: "dark", projector: null };
  globalThis.window = { headlight: { settings: { get: (name) => page[name] } } };
  globalThis.document = { baseURI: "https://school.test/base/?view=memory&batch=8#below" };
  assert.equal(
    linkTo({ view: "masks", text: "Ä & b", forbid: "" }),
    "https://school.test/base/?view=masks&text=%C3%84+%26+b&forbid=&theme=dark",
  );
  Object.assign(page, { theme: null, projector: "true" });
  assert.equal(linkTo({ view: "train" }), "https://school.test/base/?view=train&projector=true");
  assert.deepEqual(spoken({ layer: "0", head: "" }), { layer: "0" });
});
