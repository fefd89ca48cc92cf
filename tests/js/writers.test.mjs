// Files that the browser writes itself: PDF, GIF, WebM and MP4, read again by what the tests know of each format.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inflateSync } from "node:zlib";

import { served } from "./golden.mjs";

const { pieces, winAnsi } = await served("kit/browser/writers/fonts.js");
const { Page, num, said } = await served("kit/browser/writers/pdf.js");
const { areas, arc, partsOf } = await served("kit/browser/writers/paths.js");
const { Gif, packed, paletteOf } = await served("kit/browser/writers/gif.js");
const { mp4, webm } = await served("kit/browser/writers/video.js");

const ABOUT = {
  title: "A title (with brackets) & 你好",
  alt: "What it shows: −1 ≤ x",
  caption: "model · seed 0",
  snippet: "print('<x>')\n",
  name: "x",
};
const LATIN = { decode: (bytes) => Buffer.from(bytes).toString("latin1") }; // a letter for each byte

// ------------------------------------------------------------------ PDF

test("a text is cut where another font has the sign, and what none has stays by itself", () => {
  const found = pieces("a − b → 你 ✓", {});
  assert.deepEqual(
    found.map(({ text, font }) => [text, font]),
    [
      ["a ", "Helvetica"],
      ["−", "Symbol"],
      [" b ", "Helvetica"],
      ["→", "Symbol"],
      [" ", "Helvetica"],
      ["你", null],
      [" ", "Helvetica"],
      ["✓", "ZapfDingbats"],
    ],
  );
  assert.equal(Math.round(1000 * found[0].width), 556 + 278);
  assert.equal(pieces("ii", { mono: true })[0].width, 1.2);
  assert.equal(pieces("ab", { bold: true, italic: true })[0].font, "Helvetica-BoldOblique");
  for (const text of ["سلام abc", "שלום", "नमस्ते"])
    assert.deepEqual(
      pieces(text, {}).map(({ text, font }) => [text, font]),
      [[text, null]],
    );
  assert.deepEqual(
    pieces("é\u0301x", {}).map(({ font }) => font),
    [null, "Helvetica"],
  ); // a letter with a mark of its own
});

test("every letter of Windows-1252 has its own code", () => {
  const all = new TextDecoder("windows-1252");
  const missing = [0x81, 0x8d, 0x8f, 0x90, 0x9d, 0x7f];
  for (let code = 32; code < 256; code++)
    if (!missing.includes(code)) assert.equal(winAnsi(all.decode(Uint8Array.of(code))), code);
  assert.deepEqual(["\u0100", "\u2212", "\n", "\u0081"].map(winAnsi), [-1, -1, -1, -1]);
});

test("paths are absolute lines and curves, and an arc ends where it says", () => {
  assert.deepEqual(partsOf("m1 2l3 4h-1v2z m1 1"), [
    { op: "M", to: [1, 2] },
    { op: "L", to: [4, 6] },
    { op: "L", to: [3, 6] },
    { op: "L", to: [3, 8] },
    { op: "Z", to: [] },
    { op: "M", to: [2, 3] },
  ]);
  const quarter = arc([1, 0], [0, 1], [1, 1], 0, false, true);
  assert.equal(quarter.length, 1);
  const [x, y] = [0, 1].map(
    (k) => ([1, 0][k] + 3 * quarter[0][k] + 3 * quarter[0][2 + k] + quarter[0][4 + k]) / 8, // its middle
  );
  assert(Math.abs(Math.hypot(x, y) - 1) < 3e-4);
  const joined = partsOf("M0 0a5 5 0 1110 0"); // flags without a space between them
  assert(Math.hypot(joined.at(-1).to.at(-2) - 10, joined.at(-1).to.at(-1)) < 1e-9);
  assert.equal(partsOf("M0 0A0 5 0 0 1 3 4").at(-1).op, "L");
});

test("an image of cells is boxes of one colour, and a photograph is none", () => {
  const [red, blue, none] = [
    [255, 0, 0, 255],
    [0, 0, 255, 255],
    [0, 0, 0, 0],
  ];
  const cells = { width: 3, height: 2, data: [red, red, none, red, red, blue].flat() };
  assert.deepEqual(areas(cells, 10), [
    { x: 0, y: 0, w: 2, h: 2, colour: red },
    { x: 2, y: 1, w: 1, h: 1, colour: blue },
  ]);
  assert.equal(areas(cells, 1), null);
});

test("numbers and texts are as PDF reads them", () => {
  assert.deepEqual([0.5, -0.25, 10, 1 / 3, -0.0001].map(num), [".5", "-.25", "10", ".333", "0"]);
  assert.equal(said("A你"), "<FEFF00414f60>");
});

test("a page says where each of its objects is, what it shows and how it was made", async () => {
  const page = new Page(200, 100);
  page.put(`${page.alpha(0.5, 1)} 1 0 0 rg 0 0 10 10 re f`);
  assert.equal(page.font("Symbol"), page.font("Symbol"));
  const sign = () => ({ text: "你", wide: 200, boxes: [[0, 0, 10, 200]] });
  const [font, code, wide] = page.sign("你", sign);
  assert.deepEqual(
    page.sign("你", () => assert.fail("it is there")),
    [font, code, wide],
  );
  assert.equal(wide, 1);
  page.put(`BT /${font} 12 Tf <00> Tj ET`);
  const text = LATIN.decode(await page.bytes(ABOUT, "en"));
  const start = Number(/startxref\n(\d+)/.exec(text)[1]);
  const table = text.slice(start).split("\n");
  assert.equal(table[0], "xref");
  const n = Number(table[1].split(" ")[1]);
  for (let i = 1; i < n; i++) {
    const at = Number(table[2 + i].slice(0, 10));
    assert(text.startsWith(`${i} 0 obj\n`, at), `object ${i}`);
  }
  for (const [, number] of text.matchAll(/(\d+) 0 R/g)) assert(Number(number) < n);
  assert(text.includes(`/Title ${said(ABOUT.title)}/Subject ${said(ABOUT.alt)}`));
  assert(text.includes(`/Alt ${said(`${ABOUT.alt} ${ABOUT.caption}`)}`));
  assert(text.includes(`/SourceCode ${said(ABOUT.snippet)}`));
  const xmp = new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0)));
  assert(xmp.includes("print('&lt;x&gt;')") && xmp.includes("&amp; 你好"));
  const streams = [...text.matchAll(/\/FlateDecode>>\nstream\n(.*?)\nendstream/gs)].map(([, body]) =>
    LATIN.decode(inflateSync(Uint8Array.from(body, (c) => c.charCodeAt(0)))),
  );
  assert(streams.some((body) => body.startsWith("/Figure <</MCID 0>> BDC") && body.endsWith("EMC")));
  assert(streams.some((body) => body.includes("<00> <4f60>"))); // the drawn sign can be copied
});

// ------------------------------------------------------------------ GIF

/** LZW with 8 bits, as a reader of GIF has it. */
function unpacked(data) {
  let [at, bits, held] = [0, 0, 0];
  const read = (size) => {
    while (bits < size) {
      held |= (data[at++] ?? 0) << bits;
      bits += 8;
    }
    const code = held & ((1 << size) - 1);
    held >>>= size;
    bits -= size;
    return code;
  };
  const out = [];
  let [size, table, before] = [9, [], null];
  for (;;) {
    const code = read(size);
    if (code === 257) return out;
    if (code === 256) {
      table = Array.from({ length: 258 }, (_, i) => [i]);
      [size, before] = [9, null];
      continue;
    }
    const now = code < table.length ? table[code] : [...before, before[0]];
    out.push(...now);
    if (before && table.length < 4096) table.push([...before, now[0]]);
    if (table.length === 1 << size && size < 12) size++;
    before = now;
  }
}

test("what LZW packs is there again, however long and however mixed", () => {
  let seed = 1;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (const [n, kinds] of [
    [1, 1],
    [2, 2],
    [255, 1],
    [70_000, 1],
    [40_000, 3],
    [30_000, 256],
    ...Array.from({ length: 40 }, (_, i) => [200 + i * 7, 256]),
  ]) {
    const pixels = Uint8Array.from({ length: n }, () => Math.floor(random() * kinds));
    assert.deepEqual(Uint8Array.from(unpacked(packed(pixels))), pixels, `${n} of ${kinds}`);
  }
});

test("a palette has the frequent colours exactly, and never more than a frame may name", () => {
  const few = [
    [250, 250, 248],
    [251, 250, 248],
    [20, 40, 60],
  ];
  const pixels = few.flatMap((rgb, i) => Array(100 - i).fill([...rgb, 255])).flat();
  assert.deepEqual(new Set(paletteOf([pixels]).map(String)), new Set(few.map(String)));
  const ground = Array(5000).fill([252, 252, 250, 255]).flat();
  const many = Array.from({ length: 4096 }, (_, i) => [(i & 15) * 16, ((i >> 4) & 15) * 16, (i >> 8) * 16, 255]).flat();
  const found = paletteOf([ground, many]);
  assert.equal(found.length, 255);
  assert(found.some((rgb) => String(rgb) === "252,252,250"));
});

test("a frame holds what is other than before, for as long as it says", () => {
  const picture = (at) => Array.from({ length: 16 }, (_, i) => (i === at ? [255, 0, 0, 255] : [0, 0, 0, 255])).flat();
  const gif = new Gif(4, 4, paletteOf([picture(0)]), "x".repeat(300));
  for (const [at, seconds] of [
    [0, 0.7],
    [5, 0.12],
    [5, 2.5],
  ])
    gif.add(picture(at), seconds);
  const bytes = gif.bytes;
  const text = LATIN.decode(bytes);
  assert(text.startsWith("GIF89a") && bytes.at(-1) === 0x3b);
  assert(text.includes(`\x21\xfe\xff${"x".repeat(255)}\x2d${"x".repeat(45)}\x00`));
  const two = (at) => bytes[at] + 256 * bytes[at + 1];
  const begins = [...bytes.keys()].filter(
    (at) => bytes[at] === 0x21 && bytes[at + 1] === 0xf9 && bytes[at + 8] === 0x2c,
  );
  const frames = begins.map((at) => [two(at + 4), ...[9, 11, 13, 15].map((k) => two(at + k))]);
  assert.deepEqual(frames, [
    [70, 0, 0, 4, 4],
    [12, 0, 0, 2, 2], // from pixel 0 to pixel 5
    [250, 0, 0, 1, 1],
  ]);
});

// ------------------------------------------------------------------ video

const CHUNKS = [
  { data: Uint8Array.of(1, 2, 3), at: 0, isKey: true },
  { data: Uint8Array.of(4), at: 500, isKey: false },
  { data: Uint8Array.of(5, 6), at: 4000, isKey: true },
];
const TRACK = { codec: "V_VP9", width: 1280, height: 720, ms: 4500, chunks: CHUNKS, description: Uint8Array.of(1, 77) };

/** Elements of EBML, by their ids. */
function elements(bytes, from = 0, to = bytes.length) {
  const found = [];
  for (let at = from; at < to; ) {
    const begins = at;
    const idLength = Math.clz32(bytes[at]) - 23;
    const id = Buffer.from(bytes.slice(at, at + idLength)).toString("hex");
    at += idLength;
    const length = Math.clz32(bytes[at]) - 23;
    let size = bytes[at] & (0xff >> length);
    for (let i = 1; i < length; i++) size = size * 256 + bytes[at + i];
    at += length;
    found.push({ id, begins, at, end: at + size, body: bytes.slice(at, at + size) });
    at += size;
    assert(at <= to, `${id} ends within what holds it`);
  }
  return found;
}
const whole = (body) => body.reduce((sum, byte) => sum * 256 + byte, 0);
const utf8 = (body) => new TextDecoder().decode(body);

test("WebM says how long it is and what it shows, and its cues lead to its clusters", () => {
  const bytes = webm(TRACK, ABOUT);
  const [head, segment, ...more] = elements(bytes);
  assert.deepEqual([head.id, segment.id, more.length], ["1a45dfa3", "18538067", 0]);
  assert.equal(utf8(elements(head.body).find(({ id }) => id === "4282").body), "webm");
  const parts = elements(bytes, segment.at, segment.end);
  const of = (id) => parts.filter((part) => part.id === id);
  const [info] = of("1549a966");
  const facts = Object.fromEntries(elements(info.body).map(({ id, body }) => [id, body]));
  assert.equal(new DataView(facts["4489"].buffer, facts["4489"].byteOffset).getFloat64(0), 4500);
  assert.equal(utf8(facts["7ba9"]), ABOUT.title);
  const tags = elements(elements(of("1254c367")[0].body)[0].body)
    .filter(({ id }) => id === "67c8")
    .map(({ body }) => elements(body).map((part) => utf8(part.body)));
  assert.deepEqual(Object.fromEntries(tags), {
    TITLE: ABOUT.title,
    DESCRIPTION: ABOUT.alt,
    COMMENT: ABOUT.caption,
    SOURCE_CODE: ABOUT.snippet,
  });
  const clusters = of("1f43b675");
  assert.deepEqual(
    clusters.map(({ body }) => elements(body).map((part) => (part.id === "e7" ? whole(part.body) : [...part.body]))),
    [
      [0, [0x81, 0, 0, 0x80, 1, 2, 3], [0x81, 1, 244, 0, 4]],
      [4000, [0x81, 0, 0, 0x80, 5, 6]],
    ],
  );
  const cues = elements(of("1c53bb6b")[0].body).map(({ body }) => {
    const [time, place] = elements(body);
    return [whole(time.body), segment.at + whole(elements(place.body)[1].body)];
  });
  assert.deepEqual(
    cues,
    clusters.map(({ begins }, i) => [[0, 4000][i], begins]),
  );
});

/** Boxes of MP4, by their paths. */
function boxes(bytes, path = "", from = 0, to = bytes.length, found = {}) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (let at = from; at < to; ) {
    const size = view.getUint32(at);
    const name = `${path}${LATIN.decode(bytes.slice(at + 4, at + 8))}`;
    assert(size >= 8 && at + size <= to, name);
    found[name] = { at: at + 8, end: at + size };
    const skip = name.endsWith("meta") ? 4 : 0;
    if (/(moov|trak|mdia|minf|dinf|stbl|udta|meta|ilst|\/.nam|\/.cmt|desc)$/.test(name))
      boxes(bytes, `${name}/`, at + 8 + skip, at + size, found);
    at += size;
  }
  return found;
}

test("MP4 says how long each frame stays, where it is, and what it shows", () => {
  const bytes = mp4(TRACK, ABOUT);
  const view = new DataView(bytes.buffer);
  const found = boxes(bytes);
  const numbers = (path, from = 4) => {
    const { at, end } = found[path];
    return Array.from({ length: (end - at - from) / 4 }, (_, i) => view.getUint32(at + from + 4 * i));
  };
  const table = "moov/trak/mdia/minf/stbl";
  assert.deepEqual(numbers(`${table}/stts`), [3, 1, 500, 1, 3500, 1, 500]);
  assert.deepEqual(numbers(`${table}/stsz`), [0, 3, 3, 1, 2]);
  assert.deepEqual(numbers(`${table}/stss`), [2, 1, 3]);
  const [, at] = numbers(`${table}/stco`);
  assert.equal(at, found.mdat.at);
  assert.deepEqual([...bytes.slice(at, at + 6)], [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(numbers("moov/mvhd").slice(2, 4), [1000, 4500]);
  const said = (name) =>
    utf8(bytes.slice(found[`moov/udta/meta/ilst/${name}/data`].at + 8, found[`moov/udta/meta/ilst/${name}/data`].end));
  assert.equal(said("\xa9nam"), ABOUT.title);
  assert.equal(said("desc"), ABOUT.alt);
  assert.equal(said("\xa9cmt"), `${ABOUT.caption}\n\n${ABOUT.snippet}`);
});
