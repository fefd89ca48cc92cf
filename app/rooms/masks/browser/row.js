// The locked row in numbers, below the maps.

import { el, fill } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { table } from "./tables.js";

const FULL = 0.9995; // a row that sums to this says 1
export const IN_ROW = 12; // keys of the row in numbers

/**
 * The locked row: every number, or those of the keys with most weight.
 * @param {import("./paint.js").Paint} paint @param {HTMLElement} place
 */
export function drawRow(paint, place) {
  const { view, now } = paint;
  const { query } = view.place;
  const { n_key } = paint.site;
  const at = query * n_key;
  const { mask, scores, weighed, after } = now;
  const order = Array.from({ length: n_key }, (_, k) => k).sort(
    (a, b) => weighed.softmax[at + b] - weighed.softmax[at + a],
  );
  const chosen = order.slice(0, IN_ROW).sort((a, b) => a - b);
  const sign = now.fillWith > -Infinity ? "−1e9" : "−∞";
  const number = (/** @type {number} */ x) => x.toFixed(2).replace("-", "−");
  const share = (/** @type {number} */ p) => (p === 0 ? "0" : `${(100 * p).toFixed(1)} %`);
  const lines = chosen.map((k) => [
    paint.keys[k],
    number(scores[at + k]),
    after ? share(weighed.softmax[at + k]) : mask[at + k] ? sign : number(scores[at + k]),
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
    ? table(caption, heads, lines, (i, j) => (j === 0 ? "k" : hidden(i, j)))
    : table(
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
