// The numbers of the room that the browser computes itself: cosines of rows, clocks and their score, digits and waves, orders of words.

/** @typedef {import("./types.js").Clock} Clock */

// ------------------------------------------------------------------ rows of a table

/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function cosine(a, b) {
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    dot += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return dot / Math.sqrt(aa * bb || 1);
}

// Of the rows between two others, the one that is least like the first though it is nearer; null where none is clearly less alike.
/** @param {(row: number) => number | null} alike the cosine of a row and the first @param {number} i @param {number} j */
export function lessAlike(alike, i, j) {
  const far = alike(j);
  let found = null;
  let least = far === null ? -Infinity : far - 0.03;
  for (let row = Math.min(i, j) + 1; row < Math.max(i, j); row++) {
    const cosine = alike(row);
    if (cosine !== null && cosine < least) [found, least] = [row, cosine];
  }
  return found;
}

// The size beyond which one number in `cut` lies: what a scale leaves out, so that a few large ones do not fade all others.
/** @param {ArrayLike<number>} values @param {number} cut */
export function bound(values, cut) {
  const sizes = Float32Array.from(values, Math.abs).sort();
  return sizes[Math.max(0, Math.ceil(sizes.length * (1 - cut)) - 1)] || 1;
}

// A row of numbers as fewer: of each stretch the one furthest from 0.
/** @param {ArrayLike<number>} values @param {number} n */
export function furthest(values, n) {
  const found = new Float32Array(n);
  for (let x = 0; x < n; x++) {
    const stop = Math.max(Math.floor(((x + 1) * values.length) / n), Math.floor((x * values.length) / n) + 1);
    for (let at = Math.floor((x * values.length) / n); at < stop; at++)
      if (Math.abs(values[at]) > Math.abs(found[x])) found[x] = values[at];
  }
  return found;
}

// ------------------------------------------------------------------ clocks

// Each pair of features as two hands: their lengths, their angles before they are turned, and how far one position turns both
/** @param {Clock} clock */
export function pairs({ q, k, frequencies }) {
  const half = frequencies.length;
  return Array.from(frequencies, (theta, j) => ({
    theta,
    q: Math.hypot(q[j], q[j + half]),
    k: Math.hypot(k[j], k[j + half]),
    angleQ: Math.atan2(q[j + half], q[j]),
    angleK: Math.atan2(k[j + half], k[j]),
  }));
}

// What each pair adds to the score of two words so far apart: the query's place less the key's
/** @param {Clock} clock @param {number} distance */
export function shares(clock, distance) {
  const size = clock.scale * clock.factor ** 2;
  return pairs(clock).map(
    (pair) => size * pair.q * pair.k * Math.cos(pair.angleQ - pair.angleK + distance * pair.theta),
  );
}

// A row of numbers for each pair, with the query and the key at these places: its two features, both lengths and angles, the tokens of
// a turn, and its addition to the score
/** @param {Clock} clock @param {number} m the query's place @param {number} n the key's @param {number[]} added */
export const handRows = (clock, m, n, added) =>
  pairs(clock).map(({ q, k, angleQ, angleK, theta }, i) => [
    i,
    i + clock.frequencies.length,
    q,
    k,
    angleQ + m * theta,
    angleK + n * theta,
    (2 * Math.PI) / theta,
    added[i],
  ]);

// What the features that are not turned add, wherever the words stand
/** @param {Clock} clock */
export function straight({ q, k, frequencies, scale }) {
  let sum = 0;
  for (let j = 2 * frequencies.length; j < q.length; j++) sum += q[j] * k[j];
  return sum * scale;
}

/** @param {Clock} clock @param {number} distance */
export const score = (clock, distance) => shares(clock, distance).reduce((sum, share) => sum + share, straight(clock));

// The distance from 0 to `most` at which the score is highest
/** @param {Clock} clock @param {number} most */
export function highest(clock, most) {
  let [best, at] = [-Infinity, 0];
  for (let distance = 0; distance <= most; distance++) {
    const found = score(clock, distance);
    if (found > best) [best, at] = [found, distance];
  }
  return at;
}

// ------------------------------------------------------------------ digits and waves

// How many binary digits flip from a number to the next
/** @param {number} p */
export function flips(p) {
  let changed = p ^ (p + 1);
  let count = 0;
  for (; changed; changed >>= 1) count += changed & 1;
  return count;
}

// The wave of the same period as a binary digit: above one half where the digit is 1
/** @param {number} digit @param {number} p */
export const wave = (digit, p) => 0.5 - 0.5 * Math.sin((2 * Math.PI * (p + 0.5)) / 2 ** (digit + 1));

// The length of the step from one row of sinusoids to the next: the same for all (Vaswani et al. 2017, §3.5)
/** @param {number} width */
export function stepLength(width) {
  let sum = 0;
  for (let i = 0; i < width / 2; i++) sum += 2 - 2 * Math.cos(10_000 ** ((-2 * i) / width));
  return Math.sqrt(sum);
}

// ------------------------------------------------------------------ words and places

// Which word stands at each place
/** @param {number[]} places of the words */
export function standing(places) {
  /** @type {number[]} */
  const at = [];
  places.forEach((place, word) => (at[place] = word));
  return at;
}

// The places of the words after two of them have swapped
/** @param {number[]} places @param {number} a @param {number} b */
export const swapped = (places, a, b) =>
  places.map((place, word) => (word === a ? places[b] : word === b ? places[a] : place));

// The two words that alone are not where they were, or null
/** @param {number[]} places @returns {[number, number] | null} */
export function swap(places) {
  const moved = places.flatMap((place, word) => (place === word ? [] : [word]));
  return moved.length === 2 ? [moved[0], moved[1]] : null;
}

// "0-3.5.4", as core writes places in a link
/** @param {number[]} places */
export function written(places) {
  /** @type {[from: number, to: number][]} */
  const runs = [];
  for (const place of places) {
    const last = runs.at(-1);
    if (last && place === last[1] + 1) last[1] = place;
    else runs.push([place, place]);
  }
  return runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(".");
}

// How a link asks for an order of words: as short as it can be said
/** @param {number[]} places @returns {{order: string, swap: string, seed: string, places: string}} */
export function asked(places) {
  const two = swap(places);
  if (two) return { order: "words", swap: two.join("-"), seed: "", places: "" };
  if (places.every((place, word) => place === word)) return { order: "trained", swap: "", seed: "", places: "" };
  return { order: "words", swap: "", seed: "", places: written(places) };
}

// ------------------------------------------------------------------ heads

// Numbers of heads [layer][head] as a list, the largest first
/** @param {Float32Array} values @param {number} heads */
export const ranked = (values, heads) =>
  Array.from(values, (value, i) => ({ value, layer: Math.floor(i / heads), head: i % heads })).sort(
    (a, b) => b.value - a.value,
  );

// The key that gets the most of a row
/** @param {ArrayLike<number>} row @param {number} [but] a key that is meant by none */
export function largest(row, but) {
  let at = -1;
  for (let key = 0; key < row.length; key++) if (key !== but && (at < 0 || row[key] > row[at])) at = key;
  return at;
}
