// The numbers and sentences of a question: the class's votes as one more row of weights, beside the head's own.
//
// Pure: counts and weights in; shares, columns and sentences out. A row is a list of numbers, one for each word that can be looked at.

import { WORDS as words } from "./constants.js";
import { csv as file } from "../../kit/browser/csv.js";
import { apart, counted, fill, finely, fixed, percent } from "../../kit/browser/dom.js";

/** @typedef {ArrayLike<number>} Row */
/** @typedef {[template: string, parts: Record<string, unknown>]} Sentence what phrase() and fill() take */
/** @typedef {{layer: number, head: number, agreement: number}} Like */

const MOST_WORDS = 24; // columns that all stand side by side; of a longer text, those that matter
export const MOST_COLUMNS = 30; // of a longer text
const FAINT = 0.02; // of the weight: below it a word of a long text has no column of its own
const OWN = 0.3; // of a row: from here on a word may be said to have a head of its own
const MOST_TIES = 3; // words that are named where several have as much
const WHOLE = "b whole"; // the look of a number, whose sign stays in its line

/** @param {Row} row */
const sum = (row) => Array.from(row).reduce((all, x) => all + x, 0);

/** {token: votes} as they travel -> votes by token. @param {Record<string, number>} counts @param {number} n */
export function tally(counts, n) {
  const votes = Array(n).fill(0);
  for (const [token, count] of Object.entries(counts)) if (Number(token) < n) votes[Number(token)] = count;
  return votes;
}

/** Votes as a row that sums to 1; zeros where no one has said. @param {Row} votes */
export function shares(votes) {
  const n = sum(votes);
  return Array.from(votes, (count) => (n ? count / n : 0));
}

/** What two rows share: the sum of the smaller of each two. @param {Row} a @param {Row} b */
export function overlap(a, b) {
  let both = 0;
  for (let i = 0; i < a.length; i++) both += Math.min(a[i], b[i]);
  return both;
}

/** How far two rows agree, or differ, in words: with the decimal that its sum has, wherever it is said. @param {number} p */
export const agreed = (p) => finely(Math.round(p * 1e9) / 1e9); // sums of shares are a little off 0 and 1

/** The places with the largest number, first to last; none where all are 0. @param {Row} row */
export function largest(row) {
  const most = Math.max(...Array.from(row));
  return most > 0 ? Array.from(row).flatMap((x, i) => (x === most ? [i] : [])) : [];
}

/** 1 and how many are larger. @param {Row} row @param {number} at */
export const rank = (row, at) => 1 + Array.from(row).filter((x) => x > row[at]).length;

/** Of every head the part of its row that the class shares, by layer and head. @param {Row[][]} rows @param {Row} votes @returns {Like[]} */
export const agreements = (rows, votes) =>
  rows.flatMap((heads, layer) => heads.map((row, head) => ({ layer, head, agreement: overlap(row, votes) })));

/** 1st, 2nd, 3rd, 4th, 11th. @param {number} k */
export function ordinal(k) {
  const teen = k % 100 > 10 && k % 100 < 14;
  return `${k}${teen ? "th" : (["th", "st", "nd", "rd"][k % 10] ?? "th")}`;
}

/**
 * Which columns to draw: a token, or −n for n tokens that are left out. Of a text of more than MOST_WORDS, those with votes or with more
 * than 2 % of the weight, and the word that looks; if those are too many, the ones with most.
 * @param {Row} votes shares @param {Row | null} weights null as long as they are covered
 * @param {number | null} query where it stands among the words that can be looked at
 */
export function columns(votes, weights, query) {
  const n = votes.length;
  if (n <= MOST_WORDS) return Array.from({ length: n }, (_, i) => i);
  const worth = (/** @type {number} */ i) => Math.max(votes[i], weights?.[i] ?? 0);
  const chosen = Array.from({ length: n }, (_, i) => i).filter(
    (i) => i === query || votes[i] > 0 || (weights?.[i] ?? 0) > FAINT,
  );
  const kept = new Set(
    chosen.sort((a, b) => Number(b === query) - Number(a === query) || worth(b) - worth(a)).slice(0, MOST_COLUMNS),
  );
  /** @type {number[]} */
  const found = [];
  for (let i = 0; i < n; i++) {
    const last = found.at(-1);
    if (kept.has(i)) found.push(i);
    else if (last !== undefined && last < 0) found[found.length - 1] = last - 1;
    else found.push(-1);
  }
  return found;
}

/** @param {string[]} labels @param {number[]} at */
const named = (labels, at) =>
  at.length > MOST_TIES ? fill(words.several, { n: at.length }) : at.map((i) => labels[i]).join(", ");

/** The fact of a question. @param {string[]} labels @param {Row} votes shares @param {Row} weights @returns {Sentence} */
export function verdict(labels, votes, weights) {
  const [mine, its] = [largest(votes), largest(weights)];
  const head = { head: [words.head, "h"], its: [`${percent(weights[its[0]])} ${labels[its[0]]}`, WHOLE] };
  if (!mine.length) return [words.nobody_said, head];
  const parts = {
    ...head,
    room: [words.room, "r"],
    both: [agreed(overlap(votes, weights)), WHOLE],
    p: [percent(votes[mine[0]]), WHOLE],
  };
  if (mine.length > 1) return [words.fact_tie, { ...parts, w: [named(labels, mine), "b"] }];
  if (mine[0] !== its[0])
    return [words.fact, { ...parts, mine: [`${percent(votes[mine[0]])} ${labels[mine[0]]}`, WHOLE] }];
  return [
    words.fact_same,
    {
      ...parts,
      w: [labels[mine[0]], "b"],
      head: [words.head_small, "h"],
      room: [words.room_small, "r"],
      p2: [percent(weights[its[0]]), WHOLE],
    },
  ];
}

/** How far both moved from the round before, whose words stand at the same places. @param {{old: string, now: string, votes: [before: Row, after: Row], weights: [before: Row, after: Row]}} of @returns {Sentence} */
export function moved({ old, now, votes, weights }) {
  return [
    words.moved,
    { old, now, x: [agreed(1 - overlap(...votes)), WHOLE], y: [agreed(1 - overlap(...weights)), WHOLE] },
  ];
}

/** Which head is most like the class, and which place this one has. @param {Like[]} all @param {{layer: number, head: number}} at @returns {Sentence} */
export function mostLike(all, at) {
  const best = all.reduce((a, b) => (b.agreement > a.agreement ? b : a));
  const own = all.find(({ layer, head }) => layer === at.layer && head === at.head) ?? best;
  const k = 1 + all.filter(({ agreement }) => agreement > own.agreement).length;
  return [
    words.like,
    {
      best: [fill(words.head_short, best), "b"],
      a: [agreed(best.agreement), WHOLE],
      k: [ordinal(k), "b"],
      n: all.length,
    },
  ];
}

/** What both gave to the same word, as a sum. @param {string[]} labels @param {Row} votes shares @param {Row} weights @returns {Sentence} */
export function sumOf(labels, votes, weights) {
  const both = Array.from(votes, (p, i) => Math.min(p, weights[i]));
  const first = both
    .map((_, i) => i)
    .filter((i) => both[i] >= 0.004)
    .sort((a, b) => both[b] - both[a] || a - b)
    .slice(0, 3);
  if (!first.length) return [words.sum_none, {}];
  const all = sum(both);
  const rest = all - first.reduce((x, i) => x + both[i], 0);
  const terms = first.map((i) => `${apart(labels[i])} ${fixed(100 * both[i], 1)}`);
  if (rest >= 0.0005) terms.push(fill(words.sum_others, { p: fixed(100 * rest, 1) }));
  return [words.sum, { terms: terms.join(" + "), all: [agreed(all), WHOLE] }];
}

/** What a phone says of its own word. `of` is how many words could be looked at. @param {string[]} labels @param {number} mine @param {Row} weights @param {number} of @returns {Sentence} */
export function said(labels, mine, weights, of) {
  const k = rank(weights, mine);
  return [
    k === 1 ? words.you_said_first : words.you_said,
    { w: [labels[mine], "k"], p: [finely(weights[mine]), WHOLE], k, of },
  ];
}

/** @param {number} others */
export const others = (others) => (others ? counted(words.others, others) : words.others_none);

/** The head that gives a word most, and whether the word is the most of its row. @param {Row[][]} rows @param {number} word @returns {{layer: number, head: number, p: number, isOwn: boolean}} */
export function headOf(rows, word) {
  let best = { layer: 0, head: 0, p: -1, isOwn: false };
  rows.forEach((heads, layer) =>
    heads.forEach((row, head) => {
      if (row[word] > best.p) best = { layer, head, p: row[word], isOwn: row[word] > OWN && rank(row, word) === 1 };
    }),
  );
  return best;
}

/** @param {Row[][]} rows @param {number} word @returns {Sentence} */
export function ownHead(rows, word) {
  const { layer, head, p, isOwn } = headOf(rows, word);
  return [
    isOwn ? words.own_head : words.no_head,
    { layer, h: head, p: [percent(p), WHOLE], n: rows.reduce((all, heads) => all + heads.length, 0) },
  ];
}

/** The rows of the result as a table, most weight first: [word, votes, share of them, weight]. @param {string[]} labels @param {Row} counts @param {Row} weights @returns {[string, number, number, number][]} */
export function table(labels, counts, weights) {
  const votes = shares(counts);
  const order = labels.map((_, i) => i).sort((a, b) => weights[b] - weights[a] || counts[b] - counts[a] || a - b);
  return order.map((i) => [labels[i], counts[i], votes[i], weights[i]]);
}

/** The vote as CSV: word, votes, weight, in the order of the text, below lines that say what it is. @param {string[]} notes @param {string[]} labels @param {Row} counts @param {Row} weights */
export function csv(notes, labels, counts, weights) {
  const rows = labels.map((label, i) => [i, label, counts[i], Number(weights[i].toFixed(6))]);
  return file(["position", "word", "votes", "weight"], rows, notes);
}
