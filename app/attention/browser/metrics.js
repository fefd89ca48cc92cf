// One number for each head, by the definitions of core/read/measures.py: of a small run here, of a large one from the server. And how
// alike two heads' maps are.

import { json } from "../../kit/browser/messages.js";
/** @typedef {"entropy" | "distance" | "sink" | "previous" | "induction" | "diagonal"} Metric */
/**
 * The maps of one kind of attention (Site in site.js), as far as they are read here. weights is uint16 [query, key], and
 * entropies bits [query].
 * @typedef {{
 *   id: string, query: string, key: string, layers: number, heads: number, n_query: number, n_key: number,
 *   weights: (layer: number, head: number) => Uint16Array,
 *   entropies: (layer: number, head: number) => Float32Array,
 *   measured?: Partial<Record<Metric, number[]>>,
 * }} Site
 */
/**
 * What the server says of a large run: by metric [layer][head], null where a head has none; and how many rows it looked at.
 * @typedef {Record<Metric, (number | null)[][]> & {rows: number, of: number}} Answer
 */
/**
 * @typedef {{
 *   picture: {whole: boolean, ids: Record<string, number[]>, metrics?: Record<string, Answer>},
 *   remote: {get: (path: string, params: Record<string, string>, read: (bytes: Uint8Array) => Answer) => Answer | null},
 * }} View
 */

/** @type {Metric[]} */
export const METRICS = ["entropy", "distance", "sink", "previous", "induction", "diagonal"];
/** @type {Metric[]} */
const ACROSS = ["entropy", "sink"]; // what means something where queries and keys are of different texts
/** @type {Metric[]} */
export const LOWEST_FIRST = ["entropy"]; // the most focused heads are the ones to look at

/** @param {Site} site */
export const metricsOf = (site) => (site.query === site.key ? METRICS : ACROSS);

// {values: [layer * heads + head], low, high, rows, of} of a metric; NaN for a head that has none. null while it is fetched
/**
 * @param {View} view
 * @param {Site} site
 * @param {Metric} name
 */
export function measured(view, site, name) {
  const values = view.picture.whole ? own(view, site, name) : fetched(view, site, name);
  if (!values) return null;
  const known = values.filter((x) => !Number.isNaN(x));
  const range = { low: Math.min(0, ...known), high: Math.max(0, ...known) };
  if (name === "entropy") range.high = Math.log2(site.n_key);
  else if (name !== "distance") range.high = 1;
  else if (range.low < 0) range.high = Math.max(range.high, -range.low);
  if (range.low < 0) range.low = -range.high;
  return { values, ...range, ...view.picture.metrics?.[site.id] };
}

/**
 * @param {View} view
 * @param {Site} site
 * @param {Metric} name
 */
function fetched(view, site, name) {
  view.picture.metrics ??= {};
  const all = view.picture.metrics[site.id] ?? view.remote.get("metrics", { site: site.id }, json);
  if (!all || "refused" in all) return null;
  view.picture.metrics[site.id] = all;
  return all[name].flat().map((x) => x ?? NaN);
}

/**
 * @param {View} view
 * @param {Site} site
 * @param {Metric} name
 */
function own(view, site, name) {
  site.measured ??= {};
  if (site.measured[name]) return site.measured[name];
  const ids = view.picture.ids[site.query];
  const after = name === "induction" ? followers(ids) : [];
  const values = [];
  for (let layer = 0; layer < site.layers; layer++) {
    for (let head = 0; head < site.heads; head++) values.push(OF[name](site, layer, head, after));
  }
  return (site.measured[name] = values);
}

// For each query whose token came before: the keys that followed the earlier copies
/** @param {number[]} ids */
function followers(ids) {
  /** @type {[query: number, keys: number[]][]} */
  const found = [];
  /** @type {Map<number, number[]>} */
  const copies = new Map();
  for (const [i, id] of ids.entries()) {
    const before = copies.get(id);
    if (before) {
      found.push([i, before.map((j) => j + 1)]);
      before.push(i);
    } else copies.set(id, [i]);
  }
  return found;
}

// Queries that may see something count: work(weights, first cell, query) is called for each, and their mean returned.
/**
 * @param {Site} site
 * @param {number} layer
 * @param {number} head
 * @param {(weights: Uint16Array, first: number, query: number) => number} work
 */
function meanOver(site, layer, head, work) {
  const all = site.weights(layer, head);
  let sum = 0;
  let seeing = 0;
  for (let q = 0; q < site.n_query; q++) {
    const at = q * site.n_key;
    let sees = false;
    for (let k = 0; k < site.n_key && !sees; k++) sees = all[at + k] > 0;
    if (!sees) continue;
    seeing += 1;
    sum += work(all, at, q);
  }
  return seeing ? sum / seeing : 0;
}

// The mean weight on the key `ahead` of each query, over the queries that have such a key
/**
 * @param {Site} site
 * @param {number} layer
 * @param {number} head
 * @param {number} ahead
 */
function offset(site, layer, head, ahead) {
  const all = site.weights(layer, head);
  let sum = 0;
  let n = 0;
  for (let q = 0; q < site.n_query; q++) {
    const k = q + ahead;
    if (k < 0 || k >= site.n_key) continue;
    sum += all[q * site.n_key + k];
    n += 1;
  }
  return n ? sum / n / 65535 : 0;
}

/** @type {Record<Metric, (site: Site, layer: number, head: number, after: [query: number, keys: number[]][]) => number>} */
const OF = {
  entropy(site, layer, head) {
    const bits = site.entropies(layer, head);
    return meanOver(site, layer, head, (_all, _at, q) => bits[q]);
  },
  distance(site, layer, head) {
    return meanOver(site, layer, head, (all, at, q) => {
      let back = 0;
      for (let k = 0; k < site.n_key; k++) back += all[at + k] * (q - k);
      return back / 65535;
    });
  },
  sink: (site, layer, head) => meanOver(site, layer, head, (all, at) => all[at] / 65535),
  previous: (site, layer, head) => offset(site, layer, head, -1),
  diagonal: (site, layer, head) => offset(site, layer, head, 0),
  induction(site, layer, head, after) {
    if (!after.length) return NaN;
    const all = site.weights(layer, head);
    let sum = 0;
    for (const [q, keys] of after) for (const k of keys) sum += all[q * site.n_key + k];
    return sum / after.length / 65535;
  },
};

/** @typedef {Pick<Site, "layers" | "heads" | "n_query" | "n_key" | "weights"> & {masked: (layer: number, head: number) => ArrayLike<number> | null | undefined}} Maps */

// How like the map of one head that of every head is, NaN for flat maps, by the definition of core: Pearson's correlation over the cells
// that this one may see, without the column of a key that is set apart; each weight less the mean of its map, and not of its row
/** @param {Maps} site @param {{layer: number, head: number}} place @param {number | null} apart */
export function correlations(site, place, apart) {
  const masked = site.masked(place.layer, place.head);
  /** @type {number[]} */
  const cells = [];
  for (let at = 0; at < site.n_query * site.n_key; at++) if (!masked?.[at] && at % site.n_key !== apart) cells.push(at);
  /** @param {number} layer @param {number} head @returns {[weights: Uint16Array, mean: number]} */
  const centred = (layer, head) => {
    const all = site.weights(layer, head);
    let sum = 0;
    for (const at of cells) sum += all[at];
    return [all, sum / cells.length];
  };
  /** @param {[weights: Uint16Array, mean: number]} one @param {[weights: Uint16Array, mean: number]} other */
  const product = ([a, ma], [b, mb]) => {
    let sum = 0;
    for (const at of cells) sum += (a[at] - ma) * (b[at] - mb);
    return sum;
  };
  const mine = centred(place.layer, place.head);
  const length = Math.sqrt(product(mine, mine));
  return Float32Array.from({ length: site.layers * site.heads }, (_, i) => {
    const other = centred(Math.floor(i / site.heads), i % site.heads);
    const scale = length * Math.sqrt(product(other, other));
    return scale > 0 ? product(mine, other) / scale : NaN;
  });
}

// The heads whose maps are most like that of one, most alike first
/** @param {Maps} site @param {{layer: number, head: number}} place @param {number} count @param {number | null} apart */
export function likest(site, place, count, apart) {
  return [...correlations(site, place, apart)]
    .map((r, i) => ({ layer: Math.floor(i / site.heads), head: i % site.heads, r }))
    .filter(({ layer, head, r }) => !Number.isNaN(r) && !(layer === place.layer && head === place.head))
    .sort((a, b) => b.r - a.r)
    .slice(0, count);
}
