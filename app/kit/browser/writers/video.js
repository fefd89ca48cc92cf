// The files of a video whose frames a browser has encoded: WebM (Matroska) and MP4, with title, description and code as their tags.

/** @typedef {{data: Uint8Array, at: number, isKey: boolean}} Chunk at: ms from the beginning */
/** @typedef {{codec: string, width: number, height: number, ms: number, chunks: Chunk[], description?: Uint8Array}} Track description: what a decoder must know before (avcC) */

const utf8 = (/** @type {string} */ text) => new TextEncoder().encode(text);

/** @param {(Uint8Array | number[])[]} parts */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A whole number in so many bytes, the largest first. @param {number} n @param {number} bytes */
const big = (n, bytes) => Array.from({ length: bytes }, (_, i) => Math.floor(n / 256 ** (bytes - 1 - i)) % 256);

// ------------------------------------------------------------------ WebM

const CLUSTER = 5000; // ms that one of them has at most: times in it have 16 bits

/** An element of EBML: its id, how long it is, and what it holds. @param {number} id @param {...(Uint8Array | number[])} parts */
function element(id, ...parts) {
  const idBytes = big(id, id > 0xffffff ? 4 : id > 0xffff ? 3 : id > 0xff ? 2 : 1);
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  const length = big(size, 8);
  length[0] = 1; // eight bytes, always: what stands before it can say where it is
  return joined([idBytes, length, ...parts]);
}
/** @param {number} id @param {number} n */
const whole = (id, n) => element(id, big(n, 8));
/** @param {number} id @param {string} text */
const text = (id, text) => element(id, utf8(text));

/** @param {Track} track @param {import("../types.js").About} about */
export function webm(track, about) {
  const duration = new Uint8Array(8);
  new DataView(duration.buffer).setFloat64(0, track.ms);
  const info = element(
    0x1549a966,
    whole(0x2ad7b1, 1_000_000),
    element(0x4489, duration),
    text(0x7ba9, about.title),
    text(0x4d80, "Headlight"),
    text(0x5741, "Headlight"),
  );
  const tracks = element(
    0x1654ae6b,
    element(
      0xae,
      whole(0xd7, 1),
      whole(0x73c5, 1),
      whole(0x9c, 0),
      text(0x22b59c, "und"),
      text(0x86, track.codec),
      whole(0x83, 1),
      element(0xe0, whole(0xb0, track.width), whole(0xba, track.height)),
    ),
  );
  const said = { TITLE: about.title, DESCRIPTION: about.alt, COMMENT: about.caption, SOURCE_CODE: about.snippet };
  const tags = element(
    0x1254c367,
    element(
      0x7373,
      element(0x63c0),
      ...Object.entries(said).map(([name, value]) => element(0x67c8, text(0x45a3, name), text(0x4487, value))),
    ),
  );
  /** @type {{at: number, blocks: Uint8Array[]}[]} */
  const clusters = [];
  for (const { data, at, isKey } of track.chunks) {
    let now = clusters.at(-1);
    if (!now || isKey || at - now.at > CLUSTER) clusters.push((now = { at, blocks: [] }));
    now.blocks.push(element(0xa3, [0x81, ...big(Math.round(at - now.at), 2), isKey ? 0x80 : 0], data));
  }
  const made = clusters.map(({ at, blocks }) => element(0x1f43b675, whole(0xe7, Math.round(at)), ...blocks));
  /** @param {number} from where the first cluster begins */
  const cuesAt = (from) => {
    let next = from;
    const points = clusters.map(({ at }, i) => {
      const place = element(0xb7, whole(0xf7, 1), whole(0xf1, next));
      next += made[i].length;
      return element(0xbb, whole(0xb3, Math.round(at)), place);
    });
    return element(0x1c53bb6b, ...points);
  };
  const before = info.length + tracks.length + tags.length;
  const cues = cuesAt(before + cuesAt(0).length);
  const head = element(
    0x1a45dfa3,
    whole(0x4286, 1),
    whole(0x42f7, 1),
    whole(0x42f2, 4),
    whole(0x42f3, 8),
    text(0x4282, "webm"),
    whole(0x4287, 4),
    whole(0x4285, 2),
  );
  return joined([head, element(0x18538067, info, tracks, tags, cues, ...made)]);
}

// ------------------------------------------------------------------ MP4

const TICKS = 1000; // of a second

/** @param {string} type @param {...(Uint8Array | number[])} parts */
function box(type, ...parts) {
  const size = 8 + parts.reduce((sum, part) => sum + part.length, 0);
  return joined([big(size, 4), utf8(type).length === 4 ? utf8(type) : latin(type), ...parts]);
}
/** @param {string} text */
const latin = (text) => Array.from(text, (letter) => letter.charCodeAt(0));
/** @param {string} type @param {number} flags @param {...(Uint8Array | number[])} parts */
const full = (type, flags, ...parts) => box(type, [0, ...big(flags, 3)], ...parts);
const n16 = (/** @type {number} */ n) => big(n, 2);
const n32 = (/** @type {number} */ n) => big(n, 4);
const zeros = (/** @type {number} */ n) => Array(n).fill(0);
const MATRIX = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000].flatMap(n32);

/** @param {Track} track H.264, with its description @param {import("../types.js").About} about */
export function mp4(track, about) {
  const { width, height, chunks, ms } = track;
  const lasts = chunks.map(({ at }, i) => Math.max(1, Math.round((chunks[i + 1]?.at ?? ms) - at)));
  const duration = lasts.reduce((a, b) => a + b, 0);
  const type = box("ftyp", latin("isom"), n32(0x200), latin("isomiso2avc1mp41"));
  const keys = chunks.flatMap(({ isKey }, i) => (isKey ? [i + 1] : []));
  /** @param {number} from where the first frame begins in the file */
  const moovAt = (from) => {
    const visual = box(
      "avc1",
      zeros(6),
      n16(1),
      zeros(16),
      n16(width),
      n16(height),
      n32(0x480000),
      n32(0x480000),
      zeros(4),
      n16(1),
      zeros(32),
      n16(24),
      n16(0xffff),
      box("avcC", track.description ?? []),
    );
    const table = box(
      "stbl",
      full("stsd", 0, n32(1), visual),
      full("stts", 0, n32(lasts.length), ...lasts.map((n) => [...n32(1), ...n32(n)])),
      full("stss", 0, n32(keys.length), ...keys.map(n32)),
      full("stsc", 0, n32(1), n32(1), n32(chunks.length), n32(1)),
      full("stsz", 0, n32(0), n32(chunks.length), ...chunks.map(({ data }) => n32(data.length))),
      full("stco", 0, n32(1), n32(from)),
    );
    const media = box(
      "mdia",
      full("mdhd", 0, n32(0), n32(0), n32(TICKS), n32(duration), n16(0x55c4), n16(0)),
      full("hdlr", 0, n32(0), latin("vide"), zeros(12), latin("Headlight\0")),
      box("minf", full("vmhd", 1, zeros(8)), box("dinf", full("dref", 0, n32(1), full("url ", 1))), table),
    );
    const track_ = box(
      "trak",
      full(
        "tkhd",
        3,
        n32(0),
        n32(0),
        n32(1),
        n32(0),
        n32(duration),
        zeros(16),
        MATRIX,
        n32(width * 65536),
        n32(height * 65536),
      ),
      media,
    );
    const tag = (/** @type {string} */ name, /** @type {string} */ value) =>
      box(name, full("data", 1, n32(0), utf8(value)));
    const list = box(
      "ilst",
      tag("\xa9nam", about.title),
      tag("desc", about.alt),
      tag("\xa9cmt", `${about.caption}\n\n${about.snippet}`),
      tag("\xa9too", "Headlight"),
    );
    const meta = full("meta", 0, full("hdlr", 0, n32(0), latin("mdirappl"), zeros(9)), list);
    return box(
      "moov",
      full(
        "mvhd",
        0,
        n32(0),
        n32(0),
        n32(TICKS),
        n32(duration),
        n32(0x10000),
        n16(0x100),
        zeros(10),
        MATRIX,
        zeros(24),
        n32(2),
      ),
      track_,
      box("udta", meta),
    );
  };
  const moov = moovAt(type.length + moovAt(0).length + 8);
  return joined([type, moov, box("mdat", ...chunks.map(({ data }) => data))]);
}
