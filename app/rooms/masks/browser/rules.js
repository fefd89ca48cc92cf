// Who may look at whom, and what the softmax makes of it: the same as core/model/rules.py, for the head on the screen.

export const MAY = 0;
export const FUTURE = 1;
export const WINDOW = 3;
export const EDITED = 4;
export const WHOLE_ROW = 0.9995; // a row of weights with a smaller sum has lost something
export const LONGEST = 3900; // characters of painted cells that a link holds, forbidden and allowed together

// "11-3,5-0..4" as the numbers of cells, query * n_key + key
/** @param {string} text @param {number} n_query @param {number} n_key @returns {Set<number>} */
export function decode(text, n_query, n_key) {
  /** @type {Set<number>} */
  const cells = new Set();
  for (const part of text.split(",")) {
    const found = /^(\d{1,4})-(\d{1,4})(?:\.\.(\d{1,4}))?$/.exec(part);
    if (!found || Number(found[1]) >= n_query) continue;
    for (let key = Number(found[2]); key <= Math.min(n_key - 1, Number(found[3] ?? found[2])); key++)
      cells.add(Number(found[1]) * n_key + key);
  }
  return cells;
}

/** @param {Set<number>} cells @param {number} n_key */
export function encode(cells, n_key) {
  /** @type {[query: number, first: number, last: number][]} */
  const runs = [];
  for (const cell of [...cells].sort((a, b) => a - b)) {
    const [query, key] = [Math.floor(cell / n_key), cell % n_key];
    const last = runs.at(-1);
    if (last && last[0] === query && last[2] === key - 1) last[2] = key;
    else runs.push([query, key, key]);
  }
  return runs.map(([query, first, last]) => `${query}-${first}${last > first ? `..${last}` : ""}`).join(",");
}

/**
 * Why each query may not look at each key: core.model.rules.REASONS by number, 0 where it may. `own` is the model's mask, null where it
 * hides nothing.
 * @param {Uint8Array | null} own
 * @param {{mask: string, window: number}} preset
 * @param {number} n_query @param {number} n_key @param {number} [first] the row that these begin with
 * @returns {Uint8Array}
 */
export function presetMask(own, preset, n_query, n_key, first = 0) {
  if (preset.mask === "model") return own ? own.slice() : new Uint8Array(n_query * n_key);
  const found = new Uint8Array(n_query * n_key);
  if (preset.mask === "none") return found;
  const causal = preset.mask === "causal" || isCausal(own, n_key, first);
  for (let q = 0; q < n_query; q++) {
    for (let k = 0; k < n_key; k++) {
      if (causal && k > q + first) found[q * n_key + k] = FUTURE;
      else if (preset.mask === "window" && Math.abs(q + first - k) >= preset.window) found[q * n_key + k] = WINDOW;
    }
  }
  return found;
}

// Whether a mask hides the future
/** @param {Uint8Array | null} own @param {number} n_key @param {number} [first] the row that it begins with, which is not the last */
export const isCausal = (own, n_key, first = 0) => n_key > 1 && own?.[first + 1] === FUTURE;

/**
 * The preset with what was painted over it.
 * @param {Uint8Array} preset @param {Set<number>} forbid @param {Set<number>} allow @param {number} [before] cells of the text before it
 */
export function paintedMask(preset, forbid, allow, before = 0) {
  const found = preset.slice();
  for (const [cells, reason] of /** @type {[Set<number>, number][]} */ ([
    [forbid, EDITED],
    [allow, MAY],
  ]))
    for (const cell of cells) if (cell >= before && cell - before < found.length) found[cell - before] = reason;
  return found;
}

/**
 * Let one cell look, or forbid it: in the set that it then needs to be in, if any.
 * @param {Uint8Array} preset @param {Set<number>} forbid @param {Set<number>} allow @param {number} cell @param {boolean} may
 * @param {number} [before] cells of the text before the preset's
 */
export function paint(preset, forbid, allow, cell, may, before = 0) {
  forbid.delete(cell);
  allow.delete(cell);
  if ((preset[cell - before] === MAY) !== may) (may ? allow : forbid).add(cell);
}

/**
 * Weights of a head from its scores: a row that may look at nothing is zeros, or with a finite fill alike. `softmax` is before the
 * mask, where that comes after.
 * @param {Float32Array} scores @param {Uint8Array} mask @param {number} n_key @param {{after?: boolean, fill?: number}} [how]
 * @returns {{weights: Float64Array, sums: Float64Array, softmax: Float64Array}}
 */
export function weigh(scores, mask, n_key, { after = false, fill = -Infinity } = {}) {
  const weights = new Float64Array(scores.length);
  const softmax = after ? new Float64Array(scores.length) : weights;
  const sums = new Float64Array(scores.length / n_key);
  for (let at = 0, q = 0; at < scores.length; at += n_key, q++) {
    let top = -Infinity;
    for (let k = at; k < at + n_key; k++) top = Math.max(top, !after && mask[k] ? fill : scores[k]);
    if (top === -Infinity) continue;
    let total = 0;
    for (let k = at; k < at + n_key; k++) total += softmax[k] = Math.exp((!after && mask[k] ? fill : scores[k]) - top);
    for (let k = at; k < at + n_key; k++) {
      softmax[k] /= total;
      if (after) weights[k] = mask[k] ? 0 : softmax[k];
      sums[q] += weights[k];
    }
  }
  return { weights, sums, softmax };
}

/** @param {ArrayLike<number>} shares of one whole @returns {number} bits */
export function entropy(shares) {
  let bits = 0;
  for (let i = 0; i < shares.length; i++) if (shares[i] > 0) bits -= shares[i] * Math.log2(shares[i]);
  return bits;
}

/** The cells that a line from one cell to another passes. @param {[number, number]} from @param {[number, number]} to */
export function between([q0, k0], [q1, k1]) {
  const steps = Math.max(Math.abs(q1 - q0), Math.abs(k1 - k0));
  /** @type {[number, number][]} */
  const cells = [];
  for (let i = 1; i <= steps; i++)
    cells.push([Math.round(q0 + ((q1 - q0) * i) / steps), Math.round(k0 + ((k1 - k0) * i) / steps)]);
  return cells;
}
