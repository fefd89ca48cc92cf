// Parts taken from another sentence: estimates, exact runs as they come, and what follows from both. Nothing here draws.

import { unpack } from "../../../kit/browser/messages.js";

/** @typedef {"z" | "m" | "r"} Kind A head, an MLP, the stream at a word */
/** @typedef {"ld" | "lp" | "p"} Measure The lead of the answer, its log p, its probability */
/** @typedef {{logP: Float32Array, top: number, topP: number}} Run of one changed part */
/**
 * @typedef {{position: number, watched: number[], tokens: number[], of: number, each: number, heads: Float32Array,
 *   mlps: Float32Array, before: Float32Array, there: Float32Array | null}} Known watched: the answer, the rival, and other words;
 *   each: heads of a layer
 */

export const FIRST = 10; // of the strongest estimates, whose runs come first: the strongest of them is shown
const EVEN = 0.01; // of the whole difference: what carries less carries almost nothing

/** @param {Kind} kind @param {number} layer @param {number} at */
export const idOf = (kind, layer, at) => (kind === "m" ? `m${layer}` : `${kind}${layer}.${at}`);

/** @param {string} id @returns {[kind: Kind, layer: number, at: number]} */
export function placeOf(id) {
  const [layer, at = 0] = id.slice(1).split(".").map(Number);
  return [/** @type {Kind} */ (id[0]), layer, at];
}

// Of an answer and what stands against it, in nats
/** @param {Float32Array} logP */
const lead = (logP) => logP[0] - logP[1];

export class PartsFound {
  /** @type {Known | null} */
  known = null;
  /** @type {Map<string, Run>} By part, in the order in which they came */
  exact = new Map();
  /** @type {Record<string, string>} */
  labels = {};
  /** @type {{caption: string, snippet: string, name: string, table: [label: string, name: string, text: string]} | null} For the files, at the end */
  about = null;
  refused = "";
  isTaken = true; // from the other sentence; else a part is silent, or set to its mean
  /** @type {string | null} */
  #strongest = null;

  /** @param {Uint8Array} message */
  take(message) {
    const [header, body] = unpack(message);
    if (header.refused) this.refused = header.refused;
    else if (header.snippet !== undefined) this.about = header;
    else if (header.watched) {
      const { position, watched, tokens, of, heads_each: each } = header;
      const layers = (header.before_at - header.mlps_at) / 4;
      /** @type {(at: number, n: number) => Float32Array} */
      const read = (at, n) => new Float32Array(body, at, n);
      this.known = {
        position,
        watched,
        tokens,
        of,
        each,
        heads: read(header.heads_at, layers * each),
        mlps: read(header.mlps_at, layers),
        before: read(header.before_at, watched.length),
        there: header.there_at === undefined ? null : read(header.there_at, watched.length),
      };
      Object.assign(this.labels, header.labels);
    } else this.#takeRows(header, body);
  }

  /** @param {{parts: string[], top: number[], log_p_at: number, top_p_at: number, labels: Record<string, string>}} header @param {ArrayBuffer} body */
  #takeRows(header, body) {
    const { known } = this;
    if (!known) return;
    const n = known.watched.length;
    Object.assign(this.labels, header.labels);
    const topP = new Float32Array(body, header.top_p_at, header.parts.length);
    header.parts.forEach((id, i) => {
      const logP = new Float32Array(body, header.log_p_at + 4 * n * i, n);
      this.exact.set(id, { logP, top: header.top[i], topP: topP[i] });
    });
  }

  // Runs that came by themselves
  /** @param {PartsFound} alone */
  add(alone) {
    this.refused ||= alone.refused;
    Object.assign(this.labels, alone.labels);
    for (const [id, run] of alone.exact) if (!this.exact.has(id)) this.exact.set(id, run);
  }

  get layers() {
    return this.known?.mlps.length ?? 0;
  }

  get done() {
    return this.known !== null && this.exact.size >= this.known.of;
  }

  /** The lead in the run itself, and by how much it is different in the other sentence. @returns {[lead: number, difference: number]} */
  get whole() {
    if (!this.known) return [0, 0];
    const own = lead(this.known.before);
    return [own, this.known.there ? lead(this.known.there) - own : 0];
  }

  // Whether the other sentence has the same answer
  get staysThere() {
    return this.whole[0] + this.whole[1] > 0;
  }

  // By how much a part changes what is measured; undefined before its run
  /** @param {string} id @param {Measure} measure */
  change(id, measure) {
    const [run, before] = [this.exact.get(id), this.known?.before];
    if (!run || !before) return undefined;
    if (measure === "lp") return run.logP[0] - before[0];
    if (measure === "p") return Math.exp(run.logP[0]) - Math.exp(before[0]);
    return lead(run.logP) - lead(before);
  }

  // The estimate of the lead that stands where no run is yet; undefined where there is none
  /** @param {string} id @param {Measure} measure */
  estimate(id, measure) {
    const [kind, layer, at] = placeOf(id);
    if (!this.known || measure !== "ld" || kind === "r") return undefined;
    return kind === "m" ? this.known.mlps[layer] : this.known.heads[layer * this.known.each + at];
  }

  // The share of the difference between both sentences that a part carries; null where there is no difference worth a share
  /** @param {string} id */
  share(id) {
    const [change, [, difference]] = [this.change(id, "ld"), this.whole];
    return change === undefined || Math.abs(difference) < 0.1 ? null : change / difference;
  }

  // How a share is told: "carries", "other" way, or "nothing"
  /** @param {number} share */
  static way(share) {
    if (Math.abs(share) < EVEN) return "nothing";
    return share > 0 ? "carries" : "other";
  }

  // How many runs are here, how many estimates stand for one that is not, and how many parts have neither
  /** @param {Measure} measure @returns {[exact: number, estimates: number, left: number]} */
  counts(measure) {
    const { known } = this;
    if (!known) return [0, 0, 0];
    const exact = this.exact.size;
    if (measure !== "ld") return [exact, 0, known.of - exact];
    const words = [...this.exact.keys()].filter((id) => id[0] === "r").length;
    const estimates = known.heads.length + known.mlps.length - (exact - words);
    return [exact, estimates, known.of - exact - estimates];
  }

  /** All parts of a kind. @param {Kind} kind @returns {string[]} */
  all(kind) {
    const { known, layers } = this;
    if (!known) return [];
    const ats = kind === "z" ? [...Array(known.each).keys()] : kind === "m" ? [0] : known.tokens;
    return Array.from({ length: layers }, (_, layer) => ats.map((at) => idOf(kind, layer, at))).flat();
  }

  // Those that change most, runs and estimates together; parts that have neither are left out
  /** @param {Kind} kind @param {Measure} measure */
  ranked(kind, measure) {
    const size = (/** @type {string} */ id) =>
      Math.abs(this.change(id, measure) ?? this.estimate(id, measure) ?? Number.NaN);
    return this.all(kind)
      .filter((id) => !Number.isNaN(size(id)))
      .sort((a, b) => size(b) - size(a));
  }

  // The head that opens: of the first runs the one that moves the lead furthest toward the other sentence, or, silent, lowers it most;
  // null before they are here
  get strongest() {
    if (this.#strongest === null && (this.done || this.exact.size >= FIRST)) {
      const sign = this.isTaken ? Math.sign(this.whole[1]) || 1 : -1;
      const heads = [...this.exact.keys()].filter((id) => id[0] === "z").slice(0, FIRST);
      const toward = (/** @type {string} */ id) => sign * (this.change(id, "ld") ?? 0);
      this.#strongest = heads.reduce((best, id) => (toward(id) > toward(best) ? id : best), heads[0] ?? null);
    }
    return this.#strongest;
  }

  // The change that has the full colour: of the lead the difference between both sentences, or half of the lead itself
  /** @param {Measure} measure */
  top(measure) {
    if (measure === "p") return 1;
    const { known } = this;
    if (!known) return 1;
    const { there, before } = known;
    if (!this.isTaken || !there) return measure === "ld" ? Math.max(Math.abs(this.whole[0]) / 2, 0.5) : 2;
    return Math.max(Math.abs(measure === "ld" ? this.whole[1] : there[0] - before[0]), 0.5);
  }
}

// All numbers as arrays for numpy: estimates and exact changes of the lead, nan where no run is here; log p of the words, part by part
/** @param {PartsFound} found @param {string[]} tokens of the text */
export function arraysOf(found, tokens) {
  const { known, layers, labels } = found;
  /** @type {Record<string, import("../../../kit/browser/npz.js").NumpyArray>} */
  const arrays = {};
  if (!known) return arrays;
  const { each, watched } = known;
  const words = watched.map((token) => labels[token]);
  /** @type {(ids: string[]) => number[]} */
  const exact = (ids) => ids.map((id) => found.change(id, "ld") ?? Number.NaN);
  /** @type {(ids: string[]) => number[]} */
  const logP = (ids) => ids.flatMap((id) => [...(found.exact.get(id)?.logP ?? watched.map(() => Number.NaN))]);
  for (const [kind, name, shape] of /** @type {[Kind, string, number[]][]} */ ([
    ["z", "heads", [layers, each]],
    ["m", "mlps", [layers]],
    ["r", "words", [layers, known.tokens.length]],
  ])) {
    const ids = found.all(kind);
    if (!ids.length) continue;
    if (kind !== "r")
      arrays[`${name}_estimate`] = { shape, values: ids.map((id) => found.estimate(id, "ld") ?? Number.NaN) };
    arrays[`${name}_exact`] = { shape, values: exact(ids) };
    arrays[`${name}_log_p`] = { shape: [...shape, watched.length], values: logP(ids) };
  }
  arrays.log_p_before = { shape: [watched.length], values: known.before };
  if (known.there) arrays.log_p_other = { shape: [watched.length], values: known.there };
  arrays.watched = { shape: [watched.length], values: words };
  arrays.tokens = { shape: [tokens.length], values: tokens };
  if (known.tokens.length) arrays.word_tokens = { shape: [known.tokens.length], values: known.tokens };
  return arrays;
}
