// What the large map shows, as numbers: one head, several, rollout or norms; with tokens hidden and sub-words merged.
//
// Everything on the screen and in the exports reads its numbers here. A small run is computed in the browser, a large
// one asked for by route. The order is always the same: heads put together, then hidden keys taken out and rows
// renormalised, then pieces merged to words: keys added up, queries averaged.

import { topWithout } from "../../kit/browser/sink.js";
import { WORDS as words } from "./constants.js";
import { fill } from "../../kit/browser/dom.js";
import { unpack } from "../../kit/browser/messages.js";
import { form } from "../../kit/browser/language.js";

export const HIDDEN = 255; // the code of a key that the visitor took out; the others are the model's own reasons
const COVERED = 254; // and of a row that a lesson covers
const NAMED = 3; // heads or tokens that a title names
const LEFT = 0.01; // of a row; below, uint16 weights are too coarse for what is left, and exact ones are fetched
/** @typedef {import("./types.js").Site} Site */
/** @typedef {import("./types.js").Member} Member */
/** @typedef {import("./types.js").AxisOf} AxisOf */
/** @typedef {import("./types.js").Whole} Whole */
/** @typedef {import("./types.js").Numbers} Numbers */
const LARGEST_TILE = 512;

export class Lens {
  /** @type {string | undefined} A sentence of the server */
  refusal;
  /** @type {number | undefined} The key of a large run that gets the most */
  most;
  withoutKey = -1; // that withoutTop leaves out
  /** @type {number | undefined} */
  withoutTop;
  /** @type {number | undefined} The largest norm */
  topOf;
  /** @type {Float64Array | null | undefined} */
  means;
  /** @type {number | undefined} */
  sinkOf;
  /** @type {Whole | undefined} What numbers() has */
  made;
  coarse = false; // whether exact numbers are still to come
  /** @type {{values: Float32Array, masked: Uint8Array | null} | undefined} What together() has */
  base;

  /** @param {import("./types.js").Shown} view */
  constructor(view) {
    const { picture, site, place, options, remote } = view;
    this.picture = picture;
    this.site = site;
    this.remote = remote;
    this.key = keyOf(view);
    this.layer = place.layer;
    this.head = place.head;
    this.kind = options.kind;
    this.unit = this.kind === "value" ? "norm" : "weight";
    this.hide = options.hide.filter((k) => k < site.n_key);
    this.merged = options.words;
    this.plain = this.kind === "head" && !this.hide.length && !this.merged;
    this.given = options.members.filter(([layer, head]) => layer < site.layers && head < site.heads);
    this.queryAxis = axis(picture, site.query, this.merged);
    this.keyAxis = axis(picture, site.key, this.merged);
    this.queries = this.queryAxis.labels;
    this.keys = this.keyAxis.labels;
    this.queryTokens = this.queryAxis.tokens;
    this.keyTokens = this.keyAxis.tokens;
    this.n_query = this.queries.length;
    this.n_key = this.keys.length;
    this.largest = 0; // norm seen so far, of a large run
  }

  // ------------------------------------------------------------------ names

  // [layer, head] of every head that a mean or a maximum is of
  /** @returns {Member[]} */
  get members() {
    if (this.given.length) return this.given;
    return Array.from({ length: this.site.heads }, (_, head) => [this.layer, head]);
  }

  get title() {
    return this.titled(NAMED);
  }

  get fullTitle() {
    return this.titled(Infinity);
  }

  /** @param {number} named */
  titled(named) {
    const { layer, head, site } = this;
    if (this.kind === "rollout") return fill(words.title_rollout, { layer });
    if (this.kind === "value") return fill(words.title_value, { layer, head });
    if (this.kind === "head") return fill(words.place, { layer, head });
    const name = this.kind === "mean" ? words.title_mean : words.title_max;
    if (!this.given.length) return fill(words.title_layer, { what: name, n: site.heads, layer });
    const heads = this.given.slice(0, named).map((pair) => fill(words.head_short, { layer: pair[0], head: pair[1] }));
    if (this.given.length > named) heads.push("…");
    return fill(form(words.title_members, this.given.length), {
      what: name,
      n: this.given.length,
      heads: heads.join(", "),
    });
  }

  get note() {
    /** @type {string[]} */
    const said_ = [];
    if (this.hide.length) {
      const tokens = this.hide.slice(0, NAMED).map((k) => this.picture.tokens[this.site.key]?.[k]);
      if (this.hide.length > NAMED) tokens.push("…");
      said_.push(fill(this.unit === "norm" ? words.note_hidden_norm : words.note_hidden, { tokens: tokens.join(" ") }));
    }
    if (this.merged) said_.push(this.unit === "norm" ? words.note_merged_norm : words.note_merged);
    if (this.kind === "max") said_.push(words.note_max);
    if (this.unit === "norm") said_.push(words.note_norm);
    return said_.join(" ");
  }

  // A sentence where this picture cannot be made; null where it can
  get refused() {
    if (this.kind === "rollout" && this.site.id === "cross") return words.rollout_cross;
    return this.refusal ?? null;
  }

  /** @param {number} token */
  queryOf(token) {
    return this.queryAxis.of?.[token] ?? token;
  }

  /** @param {number} token */
  keyOf(token) {
    return this.keyAxis.of?.[token] ?? token;
  }

  /** @param {number} index @returns {number} */
  firstQuery(index) {
    return this.queryAxis.of ? /** @type {number[][]} */ (this.queryTokens)[index][0] : index;
  }

  /** @param {number} index @returns {number} */
  firstKey(index) {
    return this.keyAxis.of ? /** @type {number[][]} */ (this.keyTokens)[index][0] : index;
  }

  /** @param {number} token */
  isHidden(token) {
    return this.hide.includes(token);
  }

  // ------------------------------------------------------------------ numbers

  // Whether all of its numbers are in the browser; norms come when a visitor wants them first
  get whole() {
    return (
      this.picture.whole && (this.kind !== "value" || this.site.norms(this.layer, this.head, this.remote) !== null)
    );
  }

  // Whether a lesson covers this row until the visitor has said what is in it
  /** @param {number} query */
  isCovered(query) {
    return this.site.covered.some((token) => this.queryOf(token) === query);
  }

  // Numbers of rows from q0 on, each of so many cells, without those that are covered
  /** @template {{values: Float32Array, masked: Uint8Array | null}} Numbers @param {Numbers} numbers @param {number} cells @param {(query: number) => number} rowOf */
  covering(numbers, cells, rowOf) {
    if (!this.site.covered.length) return numbers;
    const [values, masked] = [numbers.values.slice(), numbers.masked?.slice() ?? new Uint8Array(numbers.values.length)];
    for (const token of this.site.covered) {
      const at = rowOf(this.queryOf(token)) * cells;
      if (at < 0 || at >= values.length) continue;
      values.fill(0, at, at + cells);
      masked.fill(COVERED, at, at + cells);
    }
    return { ...numbers, values, masked };
  }

  // {weights, masked, bits, left} of one query; null while it is fetched. left: the share of the row that is not hidden.
  /** @param {number} query @returns {import("./types.js").Row | null} */
  row(query) {
    if (this.refused || this.isCovered(query)) return null;
    if (!this.picture.whole) {
      return this.fetched("row", { query }, ({ weights, masked, header }) => ({
        weights,
        masked,
        bits: header.entropy,
        left: header.left,
      }));
    }
    if (!this.whole) return null;
    const { values, masked, left } = this.numbers();
    const n = this.n_key;
    const weights = values.subarray(query * n, query * n + n);
    return {
      weights,
      masked: masked?.subarray(query * n, query * n + n) ?? null,
      bits: this.plain ? this.site.entropies(this.layer, this.head)[query] : this.bitsOf(weights),
      left: left?.[query] ?? null,
    };
  }

  /** @param {Float32Array} weights */
  bitsOf(weights) {
    if (this.unit === "norm" || this.kind === "max") return null; // not shares of one whole
    let bits = 0;
    for (const p of weights) if (p > 0) bits -= p * Math.log2(p);
    return bits;
  }

  // {rows, columns, values, masked, exact, how, area} for queries q0..q1 and keys k0..k1 (ends excluded); null while fetched
  /** @param {import("./types.js").Area} area @returns {import("./types.js").Tile | null} */
  tile(area) {
    if (this.refused) return null;
    const [q0, q1, k0, k1] = area;
    if (!this.picture.whole) {
      const whole = q0 === 0 && k0 === 0 && q1 === this.n_query && k1 === this.n_key;
      return this.fetched("tile", { q0, q1, k0, k1 }, ({ weights, masked, header }) => {
        this.largest = Math.max(this.largest, header.top ?? 0);
        if (whole) this.most = header.most;
        const rowOf = (/** @type {number} */ query) => Math.floor(((query - q0) * header.rows) / (q1 - q0));
        return {
          rows: header.rows,
          columns: header.columns,
          exact: header.exact,
          how: header.how,
          area,
          ...this.covering({ values: weights, masked }, header.columns, rowOf),
        };
      });
    }
    if (!this.whole) return null;
    const { values: all, masked: why } = this.numbers();
    const [rows, columns] = [q1 - q0, k1 - k0];
    if (rows === this.n_query && columns === this.n_key)
      return { rows, columns, values: all, masked: why, exact: true, how: "", area };
    const values = new Float32Array(rows * columns);
    const masked = why && new Uint8Array(rows * columns);
    for (let r = 0; r < rows; r++) {
      const at = (q0 + r) * this.n_key + k0;
      values.set(all.subarray(at, at + columns), r * columns);
      masked?.set(/** @type {Uint8Array} */ (why).subarray(at, at + columns), r * columns);
    }
    return { rows, columns, values, masked, exact: true, how: "", area };
  }

  // {weights, masked} of one key, by query: who looks at it; {refused} with a sentence. null while it is fetched
  /** @param {number} key @returns {import("./types.js").Column | null} */
  column(key) {
    if (this.refused) return null;
    if (!this.picture.whole) return this.remote.get("column", { ...this.params, key }, numbersOf);
    if (!this.whole) return null;
    const { values, masked } = this.numbers();
    const at = Array.from({ length: this.n_query }, (_, query) => query * this.n_key + key);
    return {
      weights: Float32Array.from(at, (i) => values[i]),
      masked: masked && Uint8Array.from(at, (i) => masked[i]),
    };
  }

  // The largest value that the scale of the map goes to
  get top() {
    if (this.unit === "weight") return 1;
    if (!this.whole) return this.largest || 1;
    this.topOf ??= this.numbers().values.reduce((most, x) => Math.max(most, x), 0) || 1;
    return this.topOf;
  }

  // The same but for one key, of the rows that are there; 1 while none is
  /** @param {number} key */
  topWithout(key) {
    if (this.withoutKey === key && this.withoutTop !== undefined) return this.withoutTop;
    const tile = this.tile([0, this.n_query, 0, this.n_key]);
    if (!tile || tile.columns !== this.n_key) return 1;
    this.withoutKey = key;
    return (this.withoutTop = topWithout(tile.values, tile.columns, key) || 1);
  }

  // What each key gets from the average query that sees anything; null for a large run
  averages() {
    if (!this.whole || this.refused) return null;
    if (!this.means) this.means = means(this.numbers().values, this.n_query, this.n_key);
    return this.means;
  }

  // The token that gets the most on average, hidden or not: the sink. null while a large run has not said.
  sink() {
    if (this.refused) return null;
    if (!this.picture.whole) return this.most ?? null;
    if (this.sinkOf === undefined) {
      const all = this.kind === "value" ? mean(this.site, [[this.layer, this.head]]) : this.together().values; // of attention
      const got = means(all, this.site.n_query, this.site.n_key);
      this.sinkOf = got.indexOf(got.reduce((most, x) => Math.max(most, x), 0));
    }
    return this.sinkOf;
  }

  get params() {
    const { site, layer, head, kind } = this;
    /** @type {Record<string, string | number>} */
    const params = { record: site.records[layer], head };
    if (kind !== "head") params.kind = kind;
    if ((kind === "mean" || kind === "max") && this.given.length) {
      params.members = this.given.map(([l, h]) => `${site.records[l]}.${h}`).join();
    }
    if (this.hide.length) params.hide = this.hide.join();
    if (this.merged) params.words = "true";
    return params;
  }

  /** @template Made @param {string} path @param {Record<string, number>} params @param {(numbers: Numbers) => Made} make */
  fetched(path, params, make) {
    const found = this.remote.get(path, { ...this.params, ...params }, numbersOf);
    if (found?.refused) {
      this.refusal = found.refused;
      return null;
    }
    return found && make(found);
  }

  // All of a small run: {values, masked, left}, [query, key] of tokens or words
  numbers() {
    if (this.made) {
      if (this.coarse) this.refine();
      return this.made;
    }
    const { values, masked } = this.together();
    /** @type {Whole} */
    let made = { values, masked, left: null };
    if (this.hide.length) made = hidden(values, masked, this.site, this.hide, this.unit);
    if (this.merged) made = merged(made, this.queryAxis, this.keyAxis, this.site.n_key);
    made = this.covering(made, this.n_key, (query) => query);
    this.made = made;
    this.coarse = this.unit === "weight" && Boolean(made.left?.some((left) => left < LEFT));
    if (this.coarse) this.refine();
    return this.made;
  }

  // Where little is left of a row, what is left of its 16 bits is not enough: the server has the rest.
  refine() {
    if (Math.max(this.n_query, this.n_key) > LARGEST_TILE) return;
    const area = { q0: 0, q1: this.n_query, k0: 0, k1: this.n_key };
    const found = this.remote.get("tile", { ...this.params, ...area }, numbersOf);
    if (!found?.weights) return;
    this.made = this.covering(
      { .../** @type {Whole} */ (this.made), values: found.weights, left: Float32Array.from(found.header.left) },
      this.n_key,
      (query) => query,
    );
    this.coarse = false;
    this.means = null;
  }

  // The heads put together, before anything is hidden or merged: {values, masked}, [query, key] of tokens
  together() {
    const { site, layer, head, kind } = this;
    if (this.base) return this.base;
    if (kind === "rollout") this.base = { values: rollout(site, layer), masked: blocked(site, every(site, layer)) };
    else if (kind === "mean" || kind === "max") {
      this.base = {
        values: kind === "mean" ? mean(site, this.members) : maximum(site, this.members),
        masked: blocked(site, this.members),
      };
    } else {
      const values = shares(site.weights(layer, head));
      if (kind === "value") {
        const norms = site.norms(layer, head, this.remote);
        for (let at = 0; at < values.length; at++) values[at] *= /** @type {Float32Array} */ (norms)[at % site.n_key];
      }
      this.base = { values, masked: site.masked(layer, head) };
    }
    return this.base;
  }
}

// Everything that a lens depends on
/** @param {Pick<import("./types.js").Shown, "picture" | "site" | "place" | "options">} view */
export function keyOf({ picture, site, place, options }) {
  const { kind, members, hide } = options;
  return [picture.key, site.id, place.layer, place.head, kind, members.join(";"), hide.join("."), options.words].join(
    "|",
  );
}

// {labels, tokens, of}: of[token] is its word; null where every token stands for itself
/**
 * @param {import("./types.js").Picture} picture
 * @param {import("./types.js").Side} side
 * @param {boolean} merge
 * @returns {AxisOf}
 */
function axis(picture, side, merge) {
  const labels = picture.tokens[side] ?? [];
  picture.axes ??= {};
  const name = `${side},${merge}`;
  if (picture.axes[name]) return picture.axes[name];
  if (!merge) return (picture.axes[name] = { labels, tokens: labels.map((_, i) => i), of: null });
  /** @type {{labels: string[], tokens: number[][], of: Int32Array}} */
  const joined = { labels: [], tokens: [], of: new Int32Array(labels.length) };
  /** @type {Map<number, [stop: number, label: string]>} */
  const parts = new Map((picture.words[side] ?? []).map(([start, stop, label]) => [start, [stop, label]]));
  for (let i = 0; i < labels.length; ) {
    const [stop, label] = parts.get(i) ?? [i + 1, labels[i]];
    joined.of.fill(joined.labels.length, i, stop);
    joined.labels.push(label);
    joined.tokens.push(Array.from({ length: stop - i }, (_, j) => i + j));
    i = stop;
  }
  return (picture.axes[name] = joined);
}

/** @param {Site} site @param {number} layer @returns {Member[]} */
const every = (site, layer) => Array.from({ length: site.heads }, (_, head) => [layer, head]);

/** @param {Site} site @param {Member[]} members */
export function mean(site, members) {
  const out = new Float32Array(site.n_query * site.n_key);
  for (const [layer, head] of members) {
    const all = site.weights(layer, head);
    for (let at = 0; at < all.length; at++) out[at] += all[at];
  }
  const scale = 65535 * members.length;
  return out.map((sum) => sum / scale);
}

/** @param {Site} site @param {Member[]} members */
function maximum(site, members) {
  const out = new Float32Array(site.n_query * site.n_key);
  for (const [layer, head] of members) {
    const all = site.weights(layer, head);
    for (let at = 0; at < all.length; at++) if (all[at] > out[at]) out[at] = all[at];
  }
  return out.map((w) => w / 65535);
}

// Abnar & Zuidema 2020, arXiv:2005.00928: each layer's mean head, half of it the residual stream, times the layers below
/** @param {Site} site @param {number} layer */
function rollout(site, layer) {
  site.rollouts ??= [];
  const n = site.n_query;
  for (let l = site.rollouts.length; l <= layer; l++) {
    const own = mean(site, every(site, l)).map((p) => p / 2);
    for (let i = 0; i < n; i++) own[i * n + i] += 0.5;
    site.rollouts.push(l ? product(own, site.rollouts[l - 1], n) : own);
  }
  return site.rollouts[layer];
}

/** @param {Float32Array} a @param {Float32Array} b @param {number} n */
function product(a, b, n) {
  const out = new Float32Array(n * n);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      const left = a[i * n + j];
      if (left === 0) continue;
      for (let k = 0; k < n; k++) out[i * n + k] += left * b[j * n + k];
    }
  }
  return out;
}

// Masked for all of the heads, with the reason of the first; null where no cell is
/** @param {Site} site @param {Member[]} members */
function blocked(site, members) {
  /** @type {Uint8Array | null} */
  let out = null;
  const seen = new Set();
  for (const [i, [layer, head]] of members.entries()) {
    const why = site.masked(layer, head);
    if (!why) return null;
    if (seen.has(why.byteOffset)) continue;
    seen.add(why.byteOffset);
    if (i === 0) out = why.slice();
    else if (out) for (let at = 0; at < out.length; at++) if (!why[at]) out[at] = 0;
  }
  return out;
}

/** @param {Float32Array} all @param {Uint8Array | null} why @param {Site} site @param {number[]} hide @param {string} unit */
function hidden(all, why, site, hide, unit) {
  const [n, m] = [site.n_query, site.n_key];
  const values = all.slice();
  const masked = why ? why.slice() : new Uint8Array(n * m);
  const left = new Float32Array(n);
  for (let q = 0; q < n; q++) {
    let sum = 0;
    for (let k = 0; k < m; k++) sum += all[q * m + k];
    for (const k of hide) {
      values[q * m + k] = 0;
      masked[q * m + k] = HIDDEN;
    }
    let rest = 0;
    for (let k = 0; k < m; k++) rest += values[q * m + k];
    left[q] = sum ? rest / sum : 0;
    if (unit === "weight" && rest) for (let k = 0; k < m; k++) values[q * m + k] /= rest;
  }
  return { values, masked, left };
}

/** @param {Whole} made @param {AxisOf} queries @param {AxisOf} keys @param {number} n_key @returns {Whole} */
function merged({ values, masked, left }, queries, keys, n_key) {
  const tokens = /** @type {number[][]} */ (queries.tokens);
  const wordOf = /** @type {Int32Array} */ (keys.of);
  const [n, m] = [queries.labels.length, keys.labels.length];
  const out = {
    values: new Float32Array(n * m),
    masked: masked && new Uint8Array(n * m).fill(HIDDEN),
    left: left && new Float32Array(n),
  };
  for (let word = 0; word < n; word++) {
    for (const q of tokens[word]) {
      const share = 1 / tokens[word].length;
      if (left && out.left) out.left[word] += left[q] * share;
      for (let k = 0; k < n_key; k++) {
        const at = word * m + wordOf[k];
        out.values[at] += values[q * n_key + k] * share;
        // 0, where a part has a number, is the smallest code, and HIDDEN the largest
        if (masked && out.masked) out.masked[at] = Math.min(out.masked[at], masked[q * n_key + k]);
      }
    }
  }
  return out;
}

// What each key gets on average over the queries that see anything
/** @param {Float32Array} values @param {number} n_query @param {number} n_key */
function means(values, n_query, n_key) {
  const sums = new Float64Array(n_key);
  let seeing = 0;
  for (let q = 0; q < n_query; q++) {
    let all = 0;
    for (let k = 0; k < n_key; k++) all += values[q * n_key + k];
    if (!all) continue;
    seeing += 1;
    for (let k = 0; k < n_key; k++) sums[k] += values[q * n_key + k];
  }
  return sums.map((sum) => sum / Math.max(1, seeing));
}

// Weights as they travel, 0..65535, as shares of a row. In a loop: Float32Array.from takes twenty times as long.
/** @param {Uint16Array} whole */
function shares(whole) {
  const out = new Float32Array(whole.length);
  for (let i = 0; i < whole.length; i++) out[i] = whole[i] / 65535;
  return out;
}

// A row or a tile as it arrives: weights as uint16 or float32, then reasons
/** @param {Uint8Array} bytes @returns {Numbers} */
export function numbersOf(bytes) {
  const [header, body] = unpack(bytes);
  const cells = header.rows * header.columns;
  const exact = header.numbers === "float32";
  const weights = exact ? new Float32Array(body, 0, cells) : shares(new Uint16Array(body, 0, cells));
  const codes = new Uint8Array(body, exact ? cells * 4 : Math.ceil((cells * 2) / 4) * 4, cells);
  return { header, weights, masked: codes.some(Boolean) ? codes : null };
}
