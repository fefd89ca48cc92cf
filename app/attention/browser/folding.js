// Which columns of a long map are shown, and which are folded away: those that a visitor looks at here stay.

const LEAST = 0.002; // of a row; who gets less may be folded away
const BAND = 0.05; // of another row of the band
const TRIES = 12; // keys that do not fit in a row, before no more are tried

/**
 * The keys to show, in the order of the text.
 *
 * must: keys that are there whatever they get, first the most wanted; order: of the chosen row, most first; band: the other
 * rows' weights. `fits` says whether a set of keys, in order, has room.
 * @param {{n: number, must: number[], order: number[], weights: ArrayLike<number>, band: ArrayLike<number>[], fits: (keys: number[]) => boolean}} of
 * @returns {number[]}
 */
export function unfolded({ n, must, order, weights, band, fits }) {
  const most = new Float64Array(n);
  for (const row of band) for (let k = 0; k < n; k++) most[k] = Math.max(most[k], row[k]);
  const looked = order.filter((k) => weights[k] >= LEAST);
  const beside = [...most.keys()].filter((k) => most[k] >= BAND).sort((a, b) => most[b] - most[a] || a - b);
  const chosen = new Set();
  let failed = 0;
  /** @param {Iterable<number>} keys */
  const add = (keys) => {
    for (const k of keys) {
      if (k < 0 || k >= n || chosen.has(k)) continue;
      chosen.add(k);
      if (fits(sorted(chosen))) continue;
      chosen.delete(k);
      failed += 1;
      if (failed > TRIES) return;
    }
  };
  add(must);
  add(looked);
  add(beside);
  for (let reach = 1; failed <= TRIES && chosen.size < n && reach < n; reach++) {
    const near = [...chosen].flatMap((k) => [k - reach, k + reach]); // neighbours, to read them
    add(near);
  }
  return sorted(chosen);
}

/** @param {Set<number>} keys */
const sorted = (keys) => [...keys].sort((a, b) => a - b);

// The same with −(how many) for each run of keys that are folded away
/** @param {number[]} keys @param {number} n @returns {number[]} */
export function withGaps(keys, n) {
  const columns = [];
  let at = 0;
  for (const k of [...keys, n]) {
    if (k > at) columns.push(at - k);
    if (k < n) columns.push(k);
    at = k + 1;
  }
  return columns;
}
