// Animated GIF (89a): one palette for all frames, of each frame what is other than before, and a comment with what the picture says.

const MOST_COLOURS = 255; // one of the 256 is what stays as it was
const SAME = 255;
const LONGEST = 4096; // codes of LZW before it begins again

/** @param {number} r @param {number} g @param {number} b */
const binOf = (r, g, b) => ((r >> 3) << 10) | ((g >> 3) << 5) | (b >> 3);

/**
 * A palette of these pictures: their most frequent colours exactly, and near ones by one of them.
 * @param {ArrayLike<number>[]} pictures four numbers for each pixel @returns {number[][]}
 */
export function paletteOf(pictures) {
  /** @type {Map<number, number>} How many pixels have each colour */
  const counts = new Map();
  for (const data of pictures)
    for (let at = 0; at < data.length; at += 4) {
      const colour = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
  const colours = [...counts].map(([c, n]) => ({ rgb: [c >> 16, (c >> 8) & 255, c & 255], n }));
  let boxes = [colours];
  while (boxes.length < MOST_COLOURS) {
    // The box with the most to tell apart is cut in the middle of its pixels, along its longest side.
    const open = boxes
      .map(spread)
      .map(({ side, range, weight }, i) => ({ i, side, range, worth: range * Math.sqrt(weight) }));
    const widest = open.reduce((a, b) => (b.worth > a.worth ? b : a));
    if (!widest.range) break;
    const box = boxes[widest.i].sort((a, b) => a.rgb[widest.side] - b.rgb[widest.side]);
    const half = box.reduce((sum, { n }) => sum + n, 0) / 2;
    let [at, sum] = [0, 0];
    while (at < box.length - 1 && sum + box[at].n <= half) sum += box[at++].n;
    at = Math.max(1, at);
    boxes = [...boxes.slice(0, widest.i), box.slice(0, at), box.slice(at), ...boxes.slice(widest.i + 1)];
  }
  return boxes.map((box) => box.reduce((a, b) => (b.n > a.n ? b : a)).rgb);
}

/** @param {{rgb: number[], n: number}[]} box */
function spread(box) {
  const ranges = [0, 1, 2].map((side) => {
    let [low, high] = [255, 0];
    for (const { rgb } of box) [low, high] = [Math.min(low, rgb[side]), Math.max(high, rgb[side])];
    return high - low;
  });
  const range = Math.max(...ranges);
  return { side: ranges.indexOf(range), range, weight: box.reduce((sum, { n }) => sum + n, 0) };
}

export class Gif {
  /** @type {Uint8Array[]} */
  parts = [];
  size = 0;
  /** @type {Uint8Array | null} The frame before, by the numbers of its colours */
  before = null;
  /** @type {Map<number, number>} Colours, by their numbers in the palette */
  exact = new Map();
  near = new Int16Array(1 << 15).fill(-1);

  /** @param {number} width @param {number} height @param {number[][]} palette @param {string} comment */
  constructor(width, height, palette, comment) {
    this.width = width;
    this.height = height;
    this.palette = palette;
    palette.forEach(([r, g, b], i) => this.exact.set((r << 16) | (g << 8) | b, i));
    const table = new Uint8Array(3 * 256);
    palette.forEach((colour, i) => table.set(colour, 3 * i));
    const two = (/** @type {number} */ n) => [n & 255, n >> 8];
    this.put([...ascii("GIF89a"), ...two(width), ...two(height), 0xf7, 0, 0]);
    this.put(table);
    this.put([0x21, 0xff, 11, ...ascii("NETSCAPE2.0"), 3, 1, 0, 0, 0]); // again and again
    this.put([0x21, 0xfe]);
    this.blocks(new TextEncoder().encode(comment));
  }

  /** @param {ArrayLike<number>} bytes */
  put(bytes) {
    this.parts.push(Uint8Array.from(bytes));
    this.size += bytes.length;
  }

  /** @param {Uint8Array} bytes in pieces of at most 255 */
  blocks(bytes) {
    const out = new Uint8Array(bytes.length + Math.ceil(bytes.length / 255) + 1);
    let to = 0;
    for (let at = 0; at < bytes.length; at += 255) {
      const piece = bytes.subarray(at, at + 255);
      out[to++] = piece.length;
      out.set(piece, to);
      to += piece.length;
    }
    this.put(out.subarray(0, to + 1));
  }

  /** The number of the colour that is nearest. @param {number} r @param {number} g @param {number} b */
  numberOf(r, g, b) {
    const exact = this.exact.get((r << 16) | (g << 8) | b);
    if (exact !== undefined) return exact;
    const bin = binOf(r, g, b);
    if (this.near[bin] >= 0) return this.near[bin];
    let [best, least] = [0, Infinity];
    this.palette.forEach(([pr, pg, pb], i) => {
      const far = 2 * (pr - r) ** 2 + 4 * (pg - g) ** 2 + (pb - b) ** 2;
      if (far < least) [best, least] = [i, far];
    });
    return (this.near[bin] = best);
  }

  /** @param {ArrayLike<number>} data four numbers for each pixel @param {number} seconds */
  add(data, seconds) {
    const { width, height, before } = this;
    const now = new Uint8Array(width * height);
    for (let i = 0; i < now.length; i++) now[i] = this.numberOf(data[4 * i], data[4 * i + 1], data[4 * i + 2]);
    let [left, top, right, bottom] = before ? [width, height, 0, 0] : [0, 0, width, height];
    if (before)
      for (let i = 0; i < now.length; i++) {
        if (now[i] === before[i]) continue;
        const [x, y] = [i % width, Math.floor(i / width)];
        [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
        [top, bottom] = [Math.min(top, y), Math.max(bottom, y + 1)];
      }
    if (right <= left) [left, top, right, bottom] = [0, 0, 1, 1]; // nothing is other than before
    const pixels = new Uint8Array((right - left) * (bottom - top));
    let to = 0;
    for (let y = top; y < bottom; y++)
      for (let i = y * width + left; i < y * width + right; i++)
        pixels[to++] = before && now[i] === before[i] ? SAME : now[i];
    const two = (/** @type {number} */ n) => [n & 255, n >> 8];
    const delay = Math.max(2, Math.round(100 * seconds)); // less is taken for a mistake by browsers
    this.put([0x21, 0xf9, 4, before ? 5 : 4, ...two(delay), SAME, 0]);
    this.put([0x2c, ...two(left), ...two(top), ...two(right - left), ...two(bottom - top), 0, 8]);
    this.blocks(packed(pixels));
    this.before = now;
  }

  get bytes() {
    const file = new Uint8Array(this.size + 1);
    let at = 0;
    for (const part of this.parts) {
      file.set(part, at);
      at += part.length;
    }
    file[at] = 0x3b;
    return file;
  }
}

/** @param {string} text */
const ascii = (text) => Array.from(text, (letter) => letter.charCodeAt(0));

/** Numbers below 256 by LZW, as GIF has it. @param {Uint8Array} pixels */
export function packed(pixels) {
  const out = new Uint8Array(pixels.length * 2 + 16);
  let [to, bits, held] = [0, 0, 0];
  const put = (/** @type {number} */ code, /** @type {number} */ size) => {
    held |= code << bits;
    for (bits += size; bits >= 8; bits -= 8, held >>>= 8) out[to++] = held & 255;
  };
  const [clear, end] = [256, 257];
  const table = new Int16Array(LONGEST << 8); // what a code and the next number become; 0 for nothing
  let [size, next] = [9, 258];
  put(clear, size);
  let code = pixels[0] ?? 0;
  for (let i = 1; i < pixels.length; i++) {
    const at = (code << 8) | pixels[i];
    if (table[at]) {
      code = table[at];
      continue;
    }
    put(code, size);
    code = pixels[i];
    if (next === LONGEST) {
      put(clear, size);
      table.fill(0);
      [size, next] = [9, 258];
      continue;
    }
    if (next === 1 << size) size++;
    table[at] = next++;
  }
  put(code, size);
  if (next === 1 << size && size < 12) size++;
  put(end, size);
  if (bits) out[to++] = held & 255;
  return out.subarray(0, to);
}
