// The locked row in numbers, below the maps.

import { el, fill, fixed, percent } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { plainTable } from "../../../kit/browser/table.js";

const FULL = 0.9995; // a row that sums to this says 1
// Keys of the row in numbers
/** @param {boolean} isProjected */
export const inRow = (isProjected) => (isProjected ? 8 : 12);

/**
 * The keys of a row that are in its numbers: those first that were hidden from it by hand, or else one that the model itself hides,
 * since they are what a mask is about and weigh nothing; then those with most weight, in the order of the text.
 * @param {{mask: ArrayLike<number>, ownMask: ArrayLike<number>, before: ArrayLike<number>, softmax: ArrayLike<number>}} of each of this row alone;
 *   before: weights under the model's own mask
 * @param {number} most
 * @returns {number[]}
 */
export function keysInRow({ mask, ownMask, before, softmax }, most) {
  const all = Array.from({ length: mask.length }, (_, k) => k);
  const byHand = all.filter((k) => mask[k] && !ownMask[k]).sort((a, b) => before[b] - before[a] || a - b);
  const hidden = byHand.length ? byHand.slice(0, Math.ceil(most / 2)) : all.filter((k) => mask[k]).slice(0, 1);
  const rest = all
    .filter((k) => !hidden.includes(k))
    .sort((a, b) => softmax[b] - softmax[a] || a - b)
    .slice(0, Math.max(0, most - hidden.length));
  if (mask.length <= most) return all;
  const inText = (/** @type {number} */ a, /** @type {number} */ b) => a - b;
  return [...hidden.sort(inText), ...rest.sort(inText)];
}

/**
 * The locked row: every number, or those of the keys that a mask is about and of those with most weight.
 * @param {import("./paint.js").Paint} paint @param {HTMLElement} place
 */
export function drawRow(paint, place) {
  const { view, now } = paint;
  const { query } = view.place;
  const { n_key } = paint.site;
  const at = query * n_key;
  const { mask, scores, weighed, after } = now;
  const own = (/** @type {any} */ values) => values.subarray(at, at + n_key);
  const chosen = keysInRow(
    { mask: own(mask), ownMask: own(now.ownMask), before: own(now.before), softmax: own(weighed.softmax) },
    inRow(view.isProjected),
  );
  const sign = now.fillWith > -Infinity ? "−1e9" : "−∞";
  const share = (/** @type {number} */ p) => (p === 0 ? "0" : percent(p, 1));
  const lines = chosen.map((k) => [
    paint.keys[k],
    fixed(scores[at + k]),
    after ? share(weighed.softmax[at + k]) : mask[at + k] ? sign : fixed(scores[at + k]),
    share(weighed.weights[at + k]),
  ]);
  const heads = [
    paint.queries[query],
    words.row_score,
    after ? words.row_softmax : words.row_masked,
    after ? words.row_after : words.row_weight,
  ];
  const sum = weighed.sums[query];
  const total = `Σ ${sum > FULL ? "1" : sum.toFixed(2)}`;
  const caption = fill(words.row_of, { query: paint.queries[query] });
  const hidden = (/** @type {number} */ i, /** @type {number} */ part) =>
    mask[at + chosen[i]] && part > 1 ? `not r${mask[at + chosen[i]]}` : part === 3 ? "b" : "";
  const node = view.narrow
    ? plainTable(caption, heads, lines, (i, j) => (j === 0 ? "k" : hidden(i, j)))
    : plainTable(
        caption,
        [heads[0], ...lines.map(([label]) => label), ""],
        heads.slice(1).map((name, i) => [name, ...lines.map((line) => line[i + 1]), i === 2 ? total : ""]),
        (i, j) => (j === 0 ? "" : j > lines.length ? "sum" : hidden(j - 1, i + 1)),
      );
  place.setAttribute("aria-label", caption);
  place.replaceChildren(node);
  if (view.narrow) place.append(el("p", "sum", total));
  Object.assign(place.dataset, {
    sum: sum.toFixed(6),
    weights: chosen.map((k) => weighed.weights[at + k].toPrecision(6)).join(" "),
    keys: chosen.join(" "),
  });
}
