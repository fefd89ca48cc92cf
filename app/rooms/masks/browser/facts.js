// The sentence of a mask that is painted by hand, as pieces of text: every number in it is computed from what is on the screen.

import { fixed } from "../../../kit/browser/dom.js";
import { share } from "./numbers.js";
import { angle } from "../../../kit/browser/turns.js";
import { isCausal } from "./rules.js";
import { named } from "./sheet.js";
import { form } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Piece} Piece */
const LITTLE = 0.005; // of a row: next to nothing

/** @param {string} template @param {Record<string, string | number | Piece | Piece[]>} [parts] @returns {Piece[]} */
export function pieces(template, parts = {}) {
  return template
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .flatMap((text) => {
      if (text[0] !== "{") return [/** @type {Piece} */ ([text, ""])];
      const part = parts[text.slice(1, -1)];
      if (Array.isArray(part))
        return Array.isArray(part[0]) ? /** @type {Piece[]} */ (part) : [/** @type {Piece} */ (part)];
      return [/** @type {Piece} */ ([String(part), ""])];
    });
}

/** @param {Piece[][]} several @param {any} words @returns {Piece[]} */
export const listed = (several, words) =>
  several.flatMap((one, i) => (i === 0 ? one : [[i === several.length - 1 ? words.and : words.comma, ""], ...one]));

/**
 * @param {{
 *   labels: {queries: string[], keys: string[]}, site: string, n_key: number, row: number, from?: number, layer: number, head: number,
 *   own: Uint8Array | null, mask: Uint8Array, preset: string, window: number, one: boolean, after: boolean, finite: boolean, changed: boolean, early: boolean,
 *   weights: Float64Array, ownWeights: Float64Array, sums: Float64Array, painted: number,
 *   busiest: (keys: number[]) => {layer: number, head: number, share: number} | null,
 *   outcome: import("./types.js").Outcome | null, ownOutcome: import("./types.js").Outcome, degrees: number | null, classes?: string | null,
 * }} shown
 * @param {any} words
 * @returns {Piece[]}
 */
export function factOf(shown, words) {
  const { labels, row, n_key, from = 0, mask, own, weights, ownWeights, sums } = shown;
  const at = (row - from) * n_key;
  const last = labels.queries.length - 1;
  /** @type {Piece[]} */
  const q = row === last ? [[labels.queries[row], "q"]] : named(labels.queries, row, "q");
  const key = (/** @type {number} */ k) => named(labels.keys, k, "k");
  const next = nextWord(shown, words);
  const strongest = (/** @type {Float64Array} */ from, only = (/** @type {number} */ _) => true) => {
    let best = -1;
    for (let k = 0; k < n_key; k++) if (only(k) && (best < 0 || from[at + k] > from[at + best])) best = k;
    return best;
  };
  /** @type {Piece[]} */
  const begin = shown.one ? [[words.fact_one, ""]] : [];
  if (shown.after) {
    if (shown.early) return [...begin, ...pieces(words.fact_after_early, { q })];
    const sum = sums[row - from];
    const lost = sum < 0.9995 ? pieces(words.fact_lost, { p: [share(1 - sum), "b"] }) : pieces(words.fact_end);
    return [...begin, ...pieces(words.fact_after, { q, sum: [fixed(sum), "b"] }), ...lost, ...next];
  }
  const keys = Array.from({ length: n_key }, (_, k) => k);
  if (keys.every((k) => mask[at + k])) {
    if (shown.finite) return [...begin, ...pieces(words.fact_nothing_1e9, { q, p: [share(1 / n_key), "b"] }), ...next];
    return [...begin, ...pieces(words.fact_nothing, { q }), ...next];
  }
  if (!shown.painted && shown.preset === "model" && shown.finite) return [...begin, ...pieces(words.fact_fill)];
  if (!shown.painted && shown.preset !== "model") return [...begin, ...presetFact(shown, words), ...next];
  const gone = keys.filter((k) => mask[at + k] && !own?.[at + k]);
  if (gone.length) {
    const weight = gone.reduce((sum, k) => sum + ownWeights[at + k], 0);
    const said = pieces(words.fact_forbid, { q, keys: listed(gone.map(key), words) });
    if (weight > LITTLE) {
      if (shown.early) return [...begin, ...said, ...pieces(words.fact_shared_early, { p: [share(weight), "b"] })];
      const best = strongest(weights, (k) => !mask[at + k]);
      return [...begin, ...said, ...pieces(words.fact_shared, { p: [share(weight), "b"], k: key(best) }), ...next];
    }
    const busy = shown.busiest(gone);
    const template = form([words.fact_little, words.fact_little_many], gone.length);
    const little = busy ? pieces(template, { layer: busy.layer, head: busy.head, p: [share(busy.share), "b"] }) : [];
    return [...begin, ...said, ...little, ...next];
  }
  const more = keys.filter((k) => !mask[at + k] && own?.[at + k]);
  if (more.length && more.length <= 6) {
    if (shown.early) return [...begin, ...pieces(words.fact_allow_early, { q, keys: listed(more.map(key), words) })];
    const weight = more.reduce((sum, k) => sum + weights[at + k], 0);
    const template = form([words.fact_allow, words.fact_allow_many], more.length);
    return [...begin, ...pieces(template, { q, keys: listed(more.map(key), words), p: [share(weight), "b"] }), ...next];
  }
  return [
    ...begin,
    ...pieces(form([words.fact_changed_one, words.fact_changed], shown.painted), { n: [String(shown.painted), "b"] }),
    ...next,
  ];
}

/** @param {any} shown @param {any} words @returns {Piece[]} */
function presetFact({ preset, window, own, n_key, from = 0 }, words) {
  if (preset === "none") return pieces(words.fact_none);
  if (preset === "causal") return pieces(words.fact_causal_given);
  if (window === 1) return pieces(words.fact_window_one);
  return pieces(isCausal(own, n_key, from) ? words.fact_window : words.fact_window_both, {
    n: [String(window - 1), "b"],
  });
}

/** A number, before and after, that the model gives in place of words. @param {any} shown @param {any} words @returns {Piece[]} */
export function numberSaid({ outcome, ownOutcome }, words) {
  const [number] = ownOutcome.numbers ?? [];
  if (!number || !outcome) return [];
  const [a, b] = [number[1], outcome.numbers[0][1]];
  return pieces(words.fact_number, { w: [number[0], "b"], a: [fixed(a, 3), "b"], b: [fixed(b, 3), "b"] });
}

/** The next word before and after, once the run has said it. @param {any} shown @param {any} words @returns {Piece[]} */
function nextWord(shown, words) {
  const { outcome, ownOutcome, degrees, classes } = shown;
  if (!outcome) return [];
  const [own] = ownOutcome.words;
  if (ownOutcome.numbers?.length) return numberSaid(shown, words);
  if (!own) return degrees === null ? [] : pieces(words.say_turn, { d: [angle(degrees), "b"] });
  const [a, b] = [own[2], outcome.asked[0]];
  const [stays, falls, rises] = classes
    ? [words.fact_class_stays, words.fact_class_falls, words.fact_class_rises]
    : [words.fact_stays, words.fact_falls, words.fact_rises];
  const template = share(a) === share(b) ? stays : b < a ? falls : rises;
  const said = pieces(template, { w: [own[1].trim(), "b"], a: [share(a), "b"], b: [share(b), "b"] });
  const [leader] = outcome.words;
  const leads =
    leader[0] !== own[0] ? pieces(words.fact_leads, { w2: [leader[1].trim(), "b"], c: [share(leader[2]), "b"] }) : [];
  return [...said, ...leads, ...pieces(words.fact_end)];
}
