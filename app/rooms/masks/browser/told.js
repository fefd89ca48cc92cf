// The fact and the reason of Paint a mask, as pieces of text: every number in them is computed from what is on the screen.

import { fixed } from "../../../kit/browser/dom.js";
import { factOf, numberSaid, pieces } from "./facts.js";
import { losses, share, shares, word } from "./numbers.js";
import { WHOLE_ROW } from "./rules.js";
import { angle, meant } from "../../../kit/browser/turns.js";

/** @typedef {import("./types.js").Piece} Piece */

/**
 * @param {any} shown what factOf() gets, and: stop, onlyCell ([query, key] or null), before (shares of the row), ownScores, scores,
 *   first, from (the row that the numbers begin with), heads, added (to the next word by this head, or null), hardest, marks (of the ruler), degrees, rest
 * @param {any} words
 * @returns {{fact: Piece[], reason: Piece[]}}
 */
export function toldOf(shown, words) {
  const { labels, row, n_key, from = 0, ownWeights, scores, ownScores, outcome, ownOutcome, preset } = shown;
  const q = word(labels.queries, row, "q");
  const key = (/** @type {number} */ k) => word(labels.keys, k, "k");
  const bold = (/** @type {string} */ text) => /** @type {Piece} */ ([text, "b"]);
  const [top] = ownOutcome.words;
  const w = top ? bold(top[1].trim() || "␣") : null;
  const now = outcome ? outcome.asked[0] : null;
  const next = () =>
    w && outcome
      ? pieces(shown.classes ? words.say_class : words.say_next, { w, ab: bold(shares(top[2], now)) })
      : shown.degrees === null
        ? numberSaid(shown, words)
        : pieces(words.say_turn, { d: bold(angle(shown.degrees)) });
  const turn = () => (w || shown.degrees === null ? [] : turned(shown.degrees, shown.marks));
  const leads = () => {
    const leader = outcome?.words[0];
    if (!leader || !top || leader[0] === top[0]) return [];
    return pieces(words.say_leads, { w: bold(leader[1].trim() || "␣"), p: bold(share(leader[2])) });
  };
  const loss = (/** @type {string} */ template) =>
    outcome && outcome.loss !== null && ownOutcome.loss !== null
      ? pieces(template, { ab: bold(losses(ownOutcome.loss, outcome.loss)) })
      : [];
  if (labels.keys.length < 2) return { fact: pieces(words.say_little), reason: [] };
  if (!shown.changed) {
    let best = 0;
    const begin = (row - from) * n_key;
    for (let k = 1; k < n_key; k++) if (ownWeights[begin + k] > ownWeights[begin + best]) best = k;
    const hides = shown.own?.some((/** @type {number} */ reason) => reason > 0);
    const template = shown.isCausal
      ? words.say_plain
      : shown.site === "cross"
        ? words.say_plain_cross
        : hides
          ? words.say_plain_window
          : words.say_plain_free;
    const said = pieces(template, { q, p: bold(share(ownWeights[begin + best])), k: key(best) });
    const end = w ? pieces(shown.classes ? words.say_class : words.say_next, { w, ab: bold(share(top[2])) }) : [];
    return { fact: [...said, ...end], reason: pieces(words.say_how) };
  }
  const cell = shown.onlyCell;
  const at = cell ? (cell[0] - from) * n_key + cell[1] : -1;
  if (shown.after && !shown.early && cell && cell[0] === row) {
    const sum = bold(fixed(shown.sums[row - from]));
    const fact = pieces(words.say_after, { q, sum, p: share(shown.softmax[at]), k: key(cell[1]) });
    return { fact: [...fact, ...next()], reason: pieces(words.say_after_reason) };
  }
  if (shown.after && !cell) {
    const sum = shown.sums[row - from];
    const fact =
      sum < WHOLE_ROW ? pieces(words.say_after_row, { q, sum: bold(fixed(sum)) }) : pieces(words.say_after_rows, { q });
    return { fact: [...fact, ...next()], reason: pieces(words.say_after_reason) };
  }
  if (cell && cell[0] === row && preset === "model" && !shown.after) {
    const weight = ownWeights[at];
    const hard = shown.hardest;
    const isHardest = hard && hard.layer === shown.layer && hard.head === shown.head && hard.of > 1;
    if (shown.one) {
      if (shown.stop === "3" && isHardest && w) {
        const parts = { k: key(cell[1]), p: bold(share(weight)), n: hard.of, w, ab: bold(shares(top[2], now)) };
        const change = now === null ? 0 : now - top[2];
        const template = now !== null && share(top[2]) === share(now) ? words.say_hardest_plain : words.say_hardest;
        const fact = pieces(template, { ...parts, rises: bold(change >= 0 ? words.rises : words.falls) });
        const x = shown.added === null ? null : Math.abs(shown.added);
        const reason =
          x === null ? [] : pieces(shown.added < 0 ? words.say_against : words.say_adds, { x: fixed(x, 1), w });
        return { fact, reason };
      }
      const grows = weight < 1 ? `×\u00a0${fixed(1 / (1 - weight), 1 / (1 - weight) < 1.1 ? 2 : 1)}` : "";
      const fact = pieces(words.say_one, { q, k: key(cell[1]), p: bold(share(weight)), f: bold(grows) });
      const falls = now !== null && now < top?.[2] && share(now) !== share(top[2]);
      const reason =
        falls && w && shown.heads > 1
          ? pieces(words.say_one_falls, { w: top[1].trim(), n: shown.heads - 1, k: key(cell[1]) })
          : w || shown.degrees === null
            ? pieces(words.say_one_reason)
            : turn();
      return { fact: [...fact, ...next()], reason };
    }
    const fact = pieces(words.say_all, { q, k: key(cell[1]) });
    const lower = shown.early
      ? []
      : pieces(words.say_all_reason, { k: labels.keys[cell[1]], a: fixed(ownScores[at]), b: fixed(scores[at]) });
    const space = /** @type {Piece[]} */ (turn().length ? [[" ", ""]] : []);
    return { fact: [...fact, ...next(), ...leads()], reason: [...turn(), ...space, ...lower] };
  }
  if (!shown.painted && !shown.after && preset === "none" && shown.isCausal) {
    if (shown.one)
      return {
        fact: [...pieces(words.say_none_one), ...next()],
        reason: pieces(words.say_others, { n: shown.heads - 1 }),
      };
    const better = outcome && outcome.loss < ownOutcome.loss;
    const fact = [
      ...loss(better ? words.say_none : words.say_none_more),
      ...(w && outcome ? pieces(words.say_none_next, { w, ab: bold(shares(top[2], now)) }) : []),
    ];
    let ahead = 0;
    const rows = Math.min(shown.weights.length / n_key, labels.queries.length - 1 - from);
    for (let i = 0; i < rows; i++) ahead += shown.weights[i * n_key + from + i + 1];
    const p = share(ahead / Math.max(1, rows));
    return {
      fact: fact.length ? fact : pieces(words.fact_none),
      reason: shown.early ? [] : pieces(shown.isByRow ? words.say_none_rows : words.say_none_reason, { p, n: rows }),
    };
  }
  if (!shown.painted && !shown.after && (preset === "window" || preset === "causal")) {
    const n = bold(String(shown.window - 1));
    const template =
      preset === "causal"
        ? words.say_causal
        : shown.first
          ? words.say_first
          : shown.window === 1
            ? words.say_window_one
            : shown.isCausal
              ? words.say_window
              : words.say_window_both;
    const fact = [...pieces(template, { n }), ...next(), ...(shown.first ? leads() : []), ...loss(words.say_loss)];
    const leader = outcome?.words[0];
    const rest = shown.rest === null ? "" : share(shown.rest);
    const reason = shown.one
      ? pieces(words.say_others, { n: shown.heads - 1 })
      : !shown.isCausal
        ? turn()
        : preset === "causal" || !leader
          ? []
          : shown.first
            ? pieces(words.say_first_reason)
            : pieces(shown.isByRow ? words.say_window_rows : words.say_window_reason, {
                n: shown.rows,
                w: leader[1].trim(),
                p: share(leader[2]),
                rest,
              });
    return { fact, reason };
  }
  return { fact: factOf(shown, words), reason: turn() };
}

/** The meaning of a turn of the vector, by words that are left out. @param {number} degrees @param {[string, number][] | null} marks @returns {Piece[]} */
export function turned(degrees, marks) {
  const found = meant(degrees, marks);
  return found ? pieces(...found) : [];
}
