// A run as the room has it: for every kind of attention the scores of its heads before any mask, and the masks.

import { quoted } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";

export class Scores {
  /** @param {import("./types.js").SiteHeader} header @param {ArrayBuffer} body */
  constructor(header, body) {
    this.id = header.id;
    this.layers = header.layers;
    this.heads = header.heads;
    this.kv_heads = header.kv_heads;
    this.query = header.query;
    this.key = header.key;
    this.n_query = header.n_query;
    this.n_key = header.n_key;
    this.causal = header.causal;
    /** @type {Map<number, {scores: Float32Array, masks: (Uint8Array | null)[]}>} by layer */
    this.sent = new Map();
    this.take(header, body);
  }

  get cells() {
    return this.n_query * this.n_key;
  }

  // More layers
  /** @param {import("./types.js").SiteHeader} header @param {ArrayBuffer} body */
  take(header, body) {
    const masks = header.masks.map((offset) => new Uint8Array(body, offset, this.cells));
    header.sent.forEach((layer, i) => {
      const scores = new Float32Array(body, header.offset + i * this.heads * this.cells * 4, this.heads * this.cells);
      this.sent.set(layer, { scores, masks: header.mask_of[i].map((at) => (at < 0 ? null : masks[at])) });
    });
  }

  /** @param {number} layer */
  has(layer) {
    return this.sent.has(layer);
  }

  /** @param {number} layer @param {number} head @returns {Float32Array | null} */
  scores(layer, head) {
    return this.sent.get(layer)?.scores.subarray(head * this.cells, (head + 1) * this.cells) ?? null;
  }

  /** @param {number} layer @param {number} head @returns {Uint8Array | null} */
  mask(layer, head) {
    const masks = this.sent.get(layer)?.masks ?? [];
    return masks[masks.length > 1 ? head : 0] ?? null;
  }
}

// Head by head through all layers, and from the last to the first
/** @param {{layers: number, heads: number}} grid @param {{layer: number, head: number}} at @param {number} by @returns {[layer: number, head: number]} */
export function stepped({ layers, heads }, { layer, head }, by) {
  const to = (layer * heads + head + by + layers * heads) % (layers * heads);
  return [Math.floor(to / heads), to % heads];
}

/**
 * The row that a text means: its number, or the next word after `from` that has these letters; null where there is none.
 * @param {string[]} labels @param {string} text @param {number} from
 */
export function rowOf(labels, text, from) {
  const said = text.trim().toLowerCase();
  const n = labels.length;
  if (!said) return null;
  if (/^\d+$/.test(said) && Number(said) < n) return Number(said);
  const places = labels.map((_, i) => (from + 1 + i) % n);
  const has = (/** @type {(label: string) => boolean} */ test) =>
    places.find((i) => test(labels[i].trim().toLowerCase())) ?? null;
  return (
    has((label) => label === said) ?? has((label) => label.startsWith(said)) ?? has((label) => label.includes(said))
  );
}

// Labels; those that occur twice carry their position.
/** @param {string[]} labels @param {number} at @param {string} tone @returns {import("./types.js").Piece[]} */
export function named(labels, at, tone) {
  const twice = labels.indexOf(labels[at]) !== labels.lastIndexOf(labels[at]);
  const word = quoted(labels[at]);
  return twice
    ? [
        [word, tone],
        [String(at), "sub"],
      ]
    : [[word, tone]];
}

// The cells of a map as the lines of its table: query, key, score, whether it may look, why not, weight
/**
 * @param {{queries: string[], keys: string[], mask: ArrayLike<number>, scores: ArrayLike<number>, weights: ArrayLike<number>}} map
 * @param {number} [digits] of a number @param {number} [first] the number of the first of the queries
 */
export const lines = ({ queries, keys, mask, scores, weights }, digits = 6, first = 0) =>
  queries.flatMap((query, q) =>
    keys.map((key, k) => {
      const at = q * keys.length + k;
      const [score, weight] = [scores[at], weights[at]].map((x) => Number(x.toPrecision(digits)));
      const reason = mask[at];
      const said = reason ? [words.no, words.reasons[reason]] : [words.yes, ""];
      return [`${query} ${first + q}`, `${key} ${k}`, score, ...said, weight];
    }),
  );
