// A run as it arrives: messages of [u32 length][JSON header][numbers], the maps in them, and what is fetched later.

export function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const at = bytes.byteOffset + 4 + length;
  return [header, bytes.buffer.slice(at, bytes.byteOffset + bytes.byteLength)]; // a copy, so that numbers are aligned
}

// One kind of attention of the run: its maps by layer and head.
export class Site {
  constructor(header, body) {
    Object.assign(this, header);
    this.body = body; // of the weights,
    this.small = body; // and of the small pictures, where the weights follow them
    this.layers = header.records.length;
  }

  // Whether the pass has left this layer: always, but in a run that still goes on
  has(layer) {
    return !this.left || this.left.has(layer);
  }

  // The weights have come.
  fill(header, body) {
    Object.assign(this, header);
    this.body = body;
  }

  // uint16 [query, key]
  weights(layer, head) {
    const cells = this.n_query * this.n_key;
    return new Uint16Array(this.body, nth(this.weights_at, layer * this.heads + head, cells, 2), cells);
  }

  // ‖value · W_O‖ of each key as this head would write it, float32 [key]; null until somebody has asked for them and they came
  norms(layer, head, remote) {
    if (this.norms_at !== undefined) this.written ??= new Float32Array(this.body, this.norms_at, this.layers * this.heads * this.n_key);
    this.written ??= remote.get("norms", { site: this.id }, (bytes) => new Float32Array(unpack(bytes)[1]));
    return this.written && this.written.subarray((layer * this.heads + head) * this.n_key).subarray(0, this.n_key);
  }

  // bits [query]
  entropies(layer, head) {
    const at = nth(this.entropy_at, layer * this.heads + head, this.n_query, 4);
    return new Float32Array(this.body, at, this.n_query);
  }

  // uint8 [query, key], 0 where it may look; null where nothing is masked
  masked(layer, head) {
    const of = this.mask_of[layer];
    const which = of.length > 1 ? of[head] : of[0];
    return which < 0 ? null : new Uint8Array(this.body, this.masks_at[which], this.n_query * this.n_key);
  }

  // uint8 [row, column] on a square-root scale, at most 32 × 32
  thumbnail(layer, head, size = 32) {
    if (this.thumbnails_at !== undefined) {
      const cells = this.rows * this.columns;
      const values = new Uint8Array(this.small, this.thumbnails_at + (layer * this.heads + head) * cells, cells);
      return { rows: this.rows, columns: this.columns, values };
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
    return { rows, columns, values };
  }

  // query heads that share the key head of this one
  group(head) {
    const size = this.heads / this.kv_heads;
    const first = Math.floor(head / size) * size;
    return Array.from({ length: size }, (_, i) => first + i);
  }
}

// where item `index` starts, of items of `cells` numbers of `width` bytes
const nth = (start, index, cells, width) => start + index * cells * width;

// Bytes of a large run, fetched once and kept for a while.
export class Remote {
  // receipts {record: receipt}: those of a page that works offline, which asks for nothing else
  constructor(key, arrived, receipts = null) {
    this.key = key;
    this.arrived = arrived;
    this.kept = new Map();
    this.underway = new Set(); // one request a path: a pointer that crosses a hundred rows asks for the last of them
    this.failed = false;
    this.offline = receipts !== null;
    this.held = false; // while the run goes on, whose end every answer would wait for
    for (const [record, receipt] of Object.entries(receipts ?? {})) this.keep("proof", { record }, receipt);
  }

  idOf(path, params) {
    return `${path}?${new URLSearchParams({ run: this.key, ...params })}`;
  }

  // An answer that came unasked
  keep(path, params, value) {
    this.kept.set(this.idOf(path, params), value);
  }

  // What the address gives, or null while it is on its way; arrived(path) is called when it is there.
  get(path, params, read) {
    const id = this.idOf(path, params);
    if (this.kept.has(id)) {
      const value = this.kept.get(id);
      this.kept.delete(id);
      this.kept.set(id, value); // newest last
      return value;
    }
    if (this.offline || this.held) return null;
    if (this.failed && performance.now() < this.again) return null; // no storm of requests at a server that is down
    if (this.underway.has(path)) return null; // arrived() makes the caller ask again, for what it wants by then
    this.underway.add(path);
    if (this.kept.size > 64) this.kept.delete(this.kept.keys().next().value);
    fetch(new URL(`headlight/${id}`, document.baseURI))
      .then(async (response) => {
        if (response.status === 400) return void this.kept.set(id, { refused: await response.text() }); // it will not do better
        if (!response.ok) throw new Error(await response.text());
        this.kept.set(id, read(new Uint8Array(await response.arrayBuffer())));
        this.failed = false;
      })
      .catch(() => {
        this.failed = true;
        this.again = performance.now() + 3000;
      })
      .finally(() => {
        this.underway.delete(path);
        this.arrived(path);
      });
    return null;
  }
}
