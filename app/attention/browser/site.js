// The maps of a run as they arrive, by layer and head.

import { unpack } from "../../kit/browser/messages.js";

// One kind of attention of the run: its maps by layer and head.
export class Site {
  /** @type {import("./types.js").SiteHeader["id"]} */
  id;
  /** @type {number[]} by layer */
  records;
  /** @type {number} */
  heads;
  /** @type {number} */
  kv_heads;
  /** @type {import("./types.js").Side} */
  query;
  /** @type {import("./types.js").Side} */
  key;
  /** @type {number} */
  n_query;
  /** @type {number} */
  n_key;
  /** @type {string | undefined} how the small pictures were made */
  how;
  // Of a picture with small pictures: their sizes, and where they start
  /** @type {number} */
  rows;
  /** @type {number} */
  columns;
  /** @type {number | undefined} */
  thumbnails_at;
  // Of one with weights
  /** @type {number} */
  weights_at;
  /** @type {number} */
  entropy_at;
  /** @type {number[]} */
  masks_at;
  /** @type {number[][]} */
  mask_of;
  /** @type {number | undefined} */
  norms_at;
  /** @type {Set<number> | null | undefined} Of a run that still goes on: the layers that the pass has left */
  left;
  /** @type {Float32Array | null | undefined} What norms() has */
  written;
  /** @type {Partial<Record<import("./types.js").Metric, number[]>> | undefined} */
  measured;
  /** @type {Float32Array[] | undefined} By layer */
  rollouts;
  /** @type {number[]} Queries whose rows a lesson covers */
  covered = [];

  /** @param {import("./types.js").SiteHeader} header @param {ArrayBuffer} body */
  constructor(header, body) {
    Object.assign(this, header);
    this.body = body; // of the weights,
    this.small = header.has_small ? body : new ArrayBuffer(0); // and of the small pictures of a larger run
    this.layers = header.records.length;
    /** @type {Set<number>} The layers whose small pictures have come */
    this.pictured = new Set(header.has_small ? header.records.keys() : []);
  }

  // The small pictures of a layer have come.
  /** @param {number} layer @param {ArrayBuffer} bytes @param {string} how */
  take(layer, bytes, how, at = 0) {
    if (this.thumbnails_at === undefined) return;
    const size = this.heads * this.rows * this.columns;
    if (!this.small.byteLength) this.small = new ArrayBuffer(this.thumbnails_at + this.layers * size);
    new Uint8Array(this.small, this.thumbnails_at + layer * size, size).set(new Uint8Array(bytes, at, size));
    this.pictured.add(layer);
    this.how = how;
  }

  // The small pictures that came with another picture of the same run
  /** @param {Site} other */
  borrow({ small, pictured, how }) {
    Object.assign(this, { small, pictured, how });
  }

  // Whether there is a small picture of the heads of this layer, or the weights that it is made of
  /** @param {number} layer */
  isPictured(layer) {
    return this.pictured.has(layer) || this.weights_at !== undefined;
  }

  // Whether the pass has left this layer: always, but in a run that still goes on
  /** @param {number} layer */
  has(layer) {
    return !this.left || this.left.has(layer);
  }

  // The weights have come.
  /** @param {Partial<import("./types.js").SiteHeader>} header @param {ArrayBuffer} body */
  fill(header, body) {
    Object.assign(this, header);
    this.body = body;
  }

  // uint16 [query, key]
  /** @param {number} layer @param {number} head */
  weights(layer, head) {
    const cells = this.n_query * this.n_key;
    return new Uint16Array(this.body, nth(this.weights_at, layer * this.heads + head, cells, 2), cells);
  }

  // ‖value · W_O‖ of each key as this head would write it, float32 [key]; null until a visitor has asked for them and they came
  /** @param {number} layer @param {number} head @param {import("../../kit/browser/fetcher.js").Fetcher} remote */
  norms(layer, head, remote) {
    if (this.norms_at !== undefined)
      this.written ??= new Float32Array(this.body, this.norms_at, this.layers * this.heads * this.n_key);
    if (!this.written) {
      const found = remote.get("norms", { site: this.id }, (bytes) => new Float32Array(unpack(bytes)[1]));
      if (!found || found.refused) return null;
      this.written = found;
    }
    return this.written?.subarray((layer * this.heads + head) * this.n_key).subarray(0, this.n_key);
  }

  // bits [query]
  /** @param {number} layer @param {number} head */
  entropies(layer, head) {
    const at = nth(this.entropy_at, layer * this.heads + head, this.n_query, 4);
    return new Float32Array(this.body, at, this.n_query);
  }

  // uint8 [query, key], 0 where it may look; null where nothing is masked
  /** @param {number} layer @param {number} head */
  masked(layer, head) {
    const of = this.mask_of[layer];
    const which = of.length > 1 ? of[head] : of[0];
    return which < 0 ? null : new Uint8Array(this.body, this.masks_at[which], this.n_query * this.n_key);
  }

  // uint8 [row, column] on a square-root scale, at most 32 × 32
  /** @param {number} layer @param {number} head */
  thumbnail(layer, head, size = 32) {
    if (this.pictured.has(layer) || !this.isPictured(layer)) {
      const cells = this.rows * this.columns;
      if (!this.pictured.has(layer)) return { rows: this.rows, columns: this.columns, values: new Uint8Array(cells) }; // it comes later
      const values = new Uint8Array(
        this.small,
        /** @type {number} */ (this.thumbnails_at) + (layer * this.heads + head) * cells,
        cells,
      );
      return { rows: this.rows, columns: this.columns, values: this.blank(values, this.rows, this.columns) };
    }
    const all = this.weights(layer, head);
    const rows = Math.min(size, this.n_query);
    const columns = Math.min(size, this.n_key);
    const largest = new Uint16Array(rows * columns);
    for (let q = 0; q < this.n_query; q++) {
      const row = Math.floor((q * rows) / this.n_query) * columns;
      for (let k = 0; k < this.n_key; k++) {
        const at = row + Math.floor((k * columns) / this.n_key);
        const value = all[q * this.n_key + k];
        if (value > largest[at]) largest[at] = value;
      }
    }
    const values = new Uint8Array(largest.length);
    for (let at = 0; at < values.length; at++) values[at] = Math.round(255 * Math.sqrt(largest[at] / 65535));
    return { rows, columns, values: this.blank(values, rows, columns) };
  }

  // The same without the rows that are covered
  /** @param {Uint8Array} values @param {number} rows @param {number} columns */
  blank(values, rows, columns) {
    if (!this.covered.length) return values;
    const out = values.slice();
    for (const q of this.covered) {
      const row = Math.floor((q * rows) / this.n_query) * columns;
      out.fill(0, row, row + columns);
    }
    return out;
  }

  // query heads that share the key head of this one
  /** @param {number} head */
  group(head) {
    const size = this.heads / this.kv_heads;
    const first = Math.floor(head / size) * size;
    return Array.from({ length: size }, (_, i) => first + i);
  }
}

// The small pictures of the layers that have none yet are fetched, all in one answer. Returns whether they have come now.
/** @param {import("./types.js").View} view */
export function takeSmall({ sites, remote }) {
  const missing = sites.flatMap((site) => site.records.filter((_, layer) => !site.isPictured(layer)));
  if (!missing.length) return false;
  const found = remote.get("small", { from: Math.min(...missing) }, unpack);
  if (!found || found.refused) return false;
  const [{ parts }, body] = /** @type {[any, ArrayBuffer]} */ (found);
  for (const [id, layer, at, , how] of parts) sites.find((site) => site.id === id)?.take(layer, body, how, at);
  return true;
}

// where item `index` starts, of items of `cells` numbers of `width` bytes
/** @param {number} start @param {number} index @param {number} cells @param {number} width */
const nth = (start, index, cells, width) => start + index * cells * width;
