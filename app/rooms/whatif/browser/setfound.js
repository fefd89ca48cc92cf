// A set of pairs: the share of every part in each pair that has run, its mean and its spread. Nothing here draws.

import { unpack } from "../../../kit/browser/messages.js";
import { idOf, placeOf } from "./found.js";

/** @typedef {{words: [string, string], leads: [number, number], heads: Float32Array, mlps: Float32Array}} PairFound */
/** @typedef {{mean: number, spread: number, same: number}} Summed over the pairs that are counted: in how many the sign is that of the mean */

const LEAST = 0.1; // nats between the leads of a pair: a share of less says nothing
const EVEN = 0.01; // of the difference: what carries less carries almost nothing

export class SetFound {
  /** @type {[text: string, other: string][]} */
  pairs = [];
  /** @type {PairFound[]} Those that have run, in order */
  found = [];
  /** @type {{tokens: number[], each: number} | null} */
  known = null;
  layers = 0;
  refused = "";
  /** @type {{caption: string, snippet: string, name: string, table: [string, string, string]} | null} For the files, at the end */
  about = null;
  /** @type {Map<string, Summed>} */
  #summed = new Map();

  /** @param {Uint8Array} message */
  take(message) {
    const [header, body] = unpack(message);
    if (header.refused) this.refused = header.refused;
    else if (header.pairs) this.pairs = header.pairs;
    else if (header.snippet !== undefined) this.about = header;
    else {
      const { each, layers } = header;
      this.known = { tokens: [], each };
      this.layers = layers;
      const heads = new Float32Array(body, header.heads_at, layers * each);
      this.found.push({ ...header, heads, mlps: new Float32Array(body, header.mlps_at, layers) });
      this.#summed.clear();
    }
  }

  get done() {
    return this.about !== null;
  }

  /** Pairs whose two leads differ. @returns {number[]} */
  get counted() {
    return this.found.flatMap(({ leads: [own, there] }, i) => (Math.abs(there - own) >= LEAST ? [i] : []));
  }

  /** The share of a part in a pair; null in one that is not counted. @param {number} pair @param {string} id */
  share(pair, id) {
    const [kind, layer, at] = placeOf(id);
    const { leads, heads, mlps } = this.found[pair];
    const whole = leads[1] - leads[0];
    if (Math.abs(whole) < LEAST) return null;
    return (kind === "m" ? mlps[layer] : heads[layer * (this.known?.each ?? 0) + at]) / whole;
  }

  /** @param {string} id @returns {Summed | null} */
  summed(id) {
    const known = this.#summed.get(id);
    if (known) return known;
    const shares = this.counted.map((pair) => this.share(pair, id) ?? 0);
    if (!shares.length || id[0] === "r") return null;
    const mean = shares.reduce((sum, x) => sum + x, 0) / shares.length;
    const spread = Math.sqrt(shares.reduce((sum, x) => sum + (x - mean) ** 2, 0) / Math.max(1, shares.length - 1));
    const found = { mean, spread, same: shares.filter((x) => Math.sign(x) === Math.sign(mean)).length };
    this.#summed.set(id, found);
    return found;
  }

  // Asked for by the map of all parts
  /** @param {string} id */
  change(id) {
    return this.summed(id)?.mean;
  }

  estimate() {
    return undefined;
  }

  top() {
    return 1;
  }

  /** All heads, or all MLPs, those with the largest mean share first. @param {string} kind @returns {string[]} */
  ranked(kind) {
    const each = kind === "z" ? (this.known?.each ?? 0) : 1;
    const all = Array.from({ length: this.layers * each }, (_, i) =>
      idOf(kind === "z" ? "z" : "m", Math.floor(i / each), i % each),
    );
    const size = (/** @type {string} */ id) => Math.abs(this.change(id) ?? 0);
    return all.sort((a, b) => size(b) - size(a));
  }

  /** How a mean is told: "carries", "other" way, or "nothing". @param {number} mean */
  static way(mean) {
    if (Math.abs(mean) < EVEN) return "nothing";
    return mean > 0 ? "carries" : "other";
  }
}
