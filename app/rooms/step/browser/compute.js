// What the browser computes itself when a visitor changes something: one row of attention, an activation, a norm.

/** @typedef {import("./types.js").Attended} Attended */

// erf to 1.2e-7 (Numerical Recipes §6.2.2)
/** @param {number} x */
export function erf(x) {
  const t = 1 / (1 + 0.5 * Math.abs(x));
  const series = [
    1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
  ];
  const power = series.reduceRight((sum, c) => sum * t + c, 0);
  const tail = t * Math.exp(-x * x - 1.26551223 + t * power);
  return x >= 0 ? 1 - tail : tail - 1;
}

/** @type {Record<string, (x: number) => number>} */
export const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
};
export const LOWEST = { gelu: -0.17, gelu_tanh: -0.17, silu: -0.28 }; // what no activation goes below

// e^(s − largest) over its sum, where seen; all 0 where nothing may be seen
/** @param {ArrayLike<number>} scores @param {boolean[]} [seen] */
export function softmax(scores, seen) {
  const masked = Array.from(scores, (s, i) => (seen && !seen[i] ? -Infinity : s));
  const largest = masked.reduce((a, b) => Math.max(a, b), -Infinity);
  const exp = masked.map((s) => (largest === -Infinity ? 0 : Math.exp(s - largest)));
  const total = exp.reduce((a, b) => a + b, 0);
  return { masked, largest, exp, total, weights: exp.map((e) => (total ? e / total : 0)) };
}

// One query of one head: from scores to z, with what the visitor changed. scores = (raw · scale + bias) / temperature.
/**
 * @param {{q: Float32Array, raw: ArrayLike<number>, v: (key: number) => ArrayLike<number>, reason: ArrayLike<number>, bias: ArrayLike<number> | null, terms?: [string, ArrayLike<number>][], scale: number, temperature: number}} head
 * @param {import("./types.js").Edit} edit
 * @returns {Attended}
 */
export function attended({ q, raw, v, reason, bias, terms = [], scale, temperature }, { divide, hide }) {
  const n = raw.length;
  const divisor = divide ?? temperature / scale;
  const scaled = Array.from(raw, (s, k) => s / divisor + (bias ? bias[k] / (scale * divisor) : 0));
  const seen = Array.from({ length: n }, (_, k) => !reason[k] && !hide.includes(k));
  const { masked, largest, exp, total, weights } = softmax(scaled, seen);
  const z = new Float64Array(q.length);
  for (let k = 0; k < n; k++) {
    if (!weights[k]) continue;
    const row = v(k);
    for (let j = 0; j < z.length; j++) z[j] += weights[k] * row[j];
  }
  return {
    q,
    raw: Array.from(raw),
    seen,
    reason: Array.from(reason),
    bias: bias && Array.from(bias),
    terms,
    divisor,
    scaled,
    masked,
    largest,
    exp,
    total,
    weights,
    z,
  };
}

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

// a [rows, inner] times the transpose of b [columns, inner], as nn.Linear does
/** @param {number[][]} a @param {number[][]} b */
const timesTransposed = (a, b) => a.map((row) => b.map((column) => dot(row, column)));
/** @param {number[][]} a */
export const transposed = (a) => a[0].map((_, j) => a.map((row) => row[j]));

// The lesson's program on x [3, 4]: every number of it
/** @param {number[][]} x @param {Record<string, number[][]>} w */
export function oneHead(x, { w_q, w_k, w_v }) {
  const [q, k, v] = [w_q, w_k, w_v].map((w) => timesTransposed(x, w));
  const scores = timesTransposed(q, k);
  const scaled = scores.map((row) => row.map((s) => s / Math.sqrt(q[0].length)));
  const weights = scaled.map((row) => softmax(row).weights);
  return { x, w_q, w_k, w_v, q, k, v, scores, scaled, weights, output: timesTransposed(weights, transposed(v)) };
}

// Where one number of a fused projection [batch, pos, 3 · width] goes: its index at each step, and its place in memory
/** @param {[number, number, number]} index @param {[number, number, number]} shape @param {number} heads */
export function followed([b, t, e], [, n, wide], heads) {
  const width = wide / 3;
  const size = width / heads;
  const inner = e % width;
  const head = Math.floor(inner / size);
  const j = inner % size;
  const memory = b * n * wide + t * wide + e;
  return {
    part: Math.floor(e / width),
    inner,
    head,
    j,
    steps: [
      [[b, t, e], memory],
      [[b, t, inner], memory],
      [[b, t, head, j], memory],
      [[b, head, t, j], memory],
      [[b, t, inner], b * n * width + t * width + inner],
    ],
  };
}
