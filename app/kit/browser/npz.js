// Numbers as an NPZ file, which numpy.load reads without pickles: arrays of float64 and of text, each a .npy in a zip.

/** @typedef {{shape: number[], values: ArrayLike<number> | string[]}} NumpyArray */
const DAY = 0x21; // 1 January 1980, the first that a zip can say: the same numbers give the same file

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let i = 0; i < 8; i++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

/** @param {Uint8Array} bytes */
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

// One array as .npy 1.0: text as UCS-4 of one width, as numpy has it
/** @param {NumpyArray} array @returns {Uint8Array<ArrayBuffer>} */
export function npy({ shape, values }) {
  const isText = typeof values[0] === "string";
  const letters = isText ? Array.from(/** @type {string[]} */ (values), (text) => Array.from(text)) : [];
  const width = letters.reduce((most, one) => Math.max(most, one.length), 1);
  const each = isText ? 4 * width : 8;
  const kind = isText ? `<U${width}` : "<f8";
  const said = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${shape.join(", ")}${shape.length === 1 ? "," : ""}), }`;
  const length = Math.ceil((said.length + 11) / 64) * 64 - 10;
  const out = new Uint8Array(10 + length + values.length * each);
  out.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, length & 255, length >> 8]);
  out.set(new TextEncoder().encode(`${said.padEnd(length - 1)}\n`), 10);
  const view = new DataView(out.buffer, 10 + length);
  if (isText)
    letters.forEach((one, i) =>
      one.forEach((letter, j) => view.setUint32(i * each + 4 * j, letter.codePointAt(0) ?? 0, true)),
    );
  else for (let i = 0; i < values.length; i++) view.setFloat64(i * each, Number(values[i]), true);
  return out;
}

/** @param {Record<string, NumpyArray>} arrays by the name that numpy.load gives them @returns {Blob} */
export function npz(arrays) {
  /** @type {BlobPart[]} */
  const parts = [];
  /** @type {BlobPart[]} */
  const central = [];
  let [at, listed] = [0, 0];
  for (const [name, array] of Object.entries(arrays)) {
    const file = new TextEncoder().encode(`${name}.npy`);
    const bytes = npy(array);
    const crc = crc32(bytes);
    /** @param {number} signature @param {number[]} [more] of 16 bits each, after the lengths */
    const header = (signature, more = []) => {
      const isLocal = !more.length;
      const head = new DataView(new ArrayBuffer((isLocal ? 30 : 46) + file.length));
      head.setUint32(0, signature, true);
      const from = isLocal ? 4 : 6;
      if (!isLocal) head.setUint16(4, 20, true);
      [20, 0x800, 0, 0, DAY].forEach((value, i) => head.setUint16(from + 2 * i, value, true));
      [crc, bytes.length, bytes.length].forEach((value, i) => head.setUint32(from + 10 + 4 * i, value, true));
      head.setUint16(from + 22, file.length, true);
      if (!isLocal) head.setUint32(42, at, true);
      new Uint8Array(head.buffer).set(file, isLocal ? 30 : 46);
      return head.buffer;
    };
    const local = header(0x04034b50);
    const entry = header(0x02014b50, [0]);
    parts.push(local, bytes);
    central.push(entry);
    at += local.byteLength + bytes.length;
    listed += entry.byteLength;
  }
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  [central.length, central.length].forEach((n, i) => end.setUint16(8 + 2 * i, n, true));
  end.setUint32(12, listed, true);
  end.setUint32(16, at, true);
  return new Blob([...parts, ...central, end.buffer], { type: "application/zip" });
}

// The columns of a table as arrays; what is no number in a column of numbers is nan
/** @param {string[]} columns @param {(string | number)[][]} rows @param {string} [of] before their names @returns {Record<string, NumpyArray>} */
export function columnsOf(columns, rows, of = "") {
  /** @type {Record<string, NumpyArray>} */
  const found = {};
  columns.forEach((name, j) => {
    const values = rows.map((row) => row[j]);
    const isText = values.some((value) => typeof value === "string" && value !== "");
    const kept = isText ? values.map(String) : values.map((value) => (value === "" ? NaN : Number(value)));
    found[of + name.replaceAll("/", "∕")] = { shape: [rows.length], values: /** @type {number[] | string[]} */ (kept) };
  });
  return found;
}
