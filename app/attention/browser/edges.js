// Which lines are drawn: of each query's row the fewest keys whose weights reach a share of it, and never a masked pair.

/** What one query looks at, or who looks at one key. @typedef {{weights: Float32Array, masked?: Uint8Array | null}} Row */
/** Keys that may be looked at and get anything, most first, and the sum of their weights. @typedef {{order: number[], sum: number}} Sorted */
/** From query q to key k with weight w; `of` is the number of the lens. @typedef {{q: number, k: number, w: number, of: number}} Line */
/**
 * The numbers of one picture (Lens in lens.js), as far as they are read here.
 * @typedef {{
 *   picture: {whole: boolean}, whole: boolean, refused: string | null, n_query: number,
 *   row: (query: number) => Row | null,
 *   numbers: () => object,
 * }} Lens
 */

const SLACK = 1e-7; // of a row: float32 sums of the same weights in another order differ by this much
/** @type {WeakMap<object, Sorted[]>} */
const ORDERS = new WeakMap(); // numbers of a lens -> for each query, what sorted() found

/**
 * @param {Row} row
 * @returns {Sorted}
 */
function sorted({ weights, masked }) {
  const order = [];
  let sum = 0;
  for (let k = 0; k < weights.length; k++) {
    if (masked?.[k] || !(weights[k] > 0)) continue;
    order.push(k);
    sum += weights[k];
  }
  order.sort((a, b) => weights[b] - weights[a] || a - b);
  return { order, sum };
}

/**
 * How many of a row's keys, most first, it takes to reach `keep` percent of it.
 * @param {Sorted} row
 * @param {Float32Array} weights
 * @param {number} keep
 */
function enough({ order, sum }, weights, keep) {
  const goal = sum * (keep / 100 - SLACK);
  let n = 0;
  for (let had = 0; n < order.length && had < goal; n++) had += weights[order[n]];
  return n;
}

/**
 * What is drawn for one query of a lens, most first; null while its row is fetched.
 * @param {Lens} lens
 * @param {number} query
 * @param {number} keep
 * @returns {[key: number, weight: number][] | null}
 */
export function kept(lens, query, keep) {
  const row = lens.row(query);
  if (!row) return null;
  const found = lens.picture.whole ? ordersOf(lens)[query] : sorted(row);
  return found.order.slice(0, enough(found, row.weights, keep)).map((k) => [k, row.weights[k]]);
}

/**
 * A row of a small run, which is here as a whole.
 * @param {Lens} lens
 * @param {number} query
 */
const rowOf = (lens, query) => /** @type {Row} */ (lens.row(query));

/**
 * Of a small run: sorting every row takes longer than drawing them, so it is done once.
 * @param {Lens} lens
 */
function ordersOf(lens) {
  const numbers = lens.numbers();
  const known = ORDERS.get(numbers);
  if (known) return known;
  const made = Array.from({ length: lens.n_query }, (_, q) => sorted(rowOf(lens, q)));
  ORDERS.set(numbers, made);
  return made;
}

/**
 * Every line of several lenses of a small run, faintest first, so that strong lines lie on top; at most `most` of them.
 * @param {Lens[]} lenses
 * @param {number} keep
 * @param {number} most
 */
export function everyLine(lenses, keep, most) {
  /** @type {Line[]} */
  const all = [];
  for (const [of, lens] of lenses.entries()) {
    if (lens.refused || !lens.whole) continue;
    for (const [q, found] of ordersOf(lens).entries()) {
      const { weights } = rowOf(lens, q);
      const n = enough(found, weights, keep);
      for (let i = 0; i < n; i++) all.push({ q, k: found.order[i], w: weights[found.order[i]], of });
    }
  }
  const total = all.length;
  if (total > most) {
    const least = Float32Array.from(all, (line) => line.w).sort()[total - most];
    const above = all.filter((line) => line.w > least);
    for (const line of all) if (line.w === least && above.length < most) above.push(line);
    return { lines: above.sort((a, b) => a.w - b.w), total };
  }
  return { lines: all.sort((a, b) => a.w - b.w), total };
}

/**
 * The same for one token: the lines of a query, or the lines into a key. null while a row is fetched. The rows of a large run
 * are not all here; into a key of it the lines are those that make up a share of what it gets, as far as columnOf(lens) knows.
 * @param {{query: number, key: null} | {query: null, key: number}} token
 * @param {Lens[]} lenses
 * @param {number} keep
 * @param {number} most
 * @param {(lens: Lens) => Row | {refused: string} | null} columnOf
 */
export function linesOf({ query, key }, lenses, keep, most, columnOf = () => null) {
  /** @type {Line[]} */
  const all = [];
  for (const [of, lens] of lenses.entries()) {
    if (lens.refused) continue;
    if (query !== null) {
      const found = kept(lens, query, keep);
      if (!found) return null;
      for (const [k, w] of found) all.push({ q: query, k, w, of });
    } else if (!lens.whole) {
      const column = columnOf(lens);
      if (!column || "refused" in column) return null;
      const found = sorted(column);
      for (const q of found.order.slice(0, enough(found, column.weights, keep)))
        all.push({ q, k: key, w: column.weights[q], of });
    } else {
      for (const [q, found] of ordersOf(lens).entries()) {
        const { weights } = rowOf(lens, q);
        const at = found.order.indexOf(key);
        if (at >= 0 && at < enough(found, weights, keep)) all.push({ q, k: key, w: weights[key], of });
      }
    }
  }
  all.sort((a, b) => a.w - b.w);
  return { lines: all.slice(-most), total: all.length };
}

/**
 * Those that may look at a key, most first, from what Lens.column found.
 * @param {Row} column
 */
export function lookers({ weights, masked }) {
  /** @type {[query: number, weight: number][]} */
  const found = [];
  for (let q = 0; q < weights.length; q++) if (!masked?.[q]) found.push([q, weights[q]]);
  return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}
