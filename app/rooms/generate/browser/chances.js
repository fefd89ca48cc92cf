// What temperature, top-k, top-p and min-p make of the chances of the next word: as core.write.generate.candidates does.

import { TEMPERATURES } from "./constants.js";

/** @typedef {import("./types.js").Node} Node */
/** @typedef {import("./types.js").Settings} Settings */
/** @typedef {import("./types.js").Chances} Chances */

/** @type {Settings} */
export const OWN = { temperature: 1, topK: 0, topP: 1, minP: 0 };

// The log-sum-exp of all words that a column does not name, divided by the temperature
/** @param {Node} node @param {number} temperature */
function restOf(node, temperature) {
  return node.rest[Math.min(TEMPERATURES.length, Math.max(1, Math.round(temperature * 10))) - 1];
}

// Of the words that are left those that have at least so much of the likeliest one's chance
/** @param {Chances} found @param {number} minP @param {Node} node @param {number} temperature @returns {Chances} */
function likely(found, minP, node, temperature) {
  if (!minP) return found;
  const { probs } = found;
  const least = minP * probs[0];
  let within = 0;
  let sum = 0;
  while (within < probs.length && probs[within] > 0 && probs[within] >= least) sum += probs[within++];
  // Likelier than every word without a name is the last that has one: where even that is left, some of those may be as well.
  if (within === probs.length && found.rest > 0) {
    const last = node.logits[node.logits.length - 1];
    if (Math.exp((last - node.logits[0]) / temperature) >= minP) return { ...found, left: null };
  }
  for (let i = 0; i < probs.length; i++) probs[i] = i < within ? probs[i] / sum : 0;
  return { probs, rest: 0, left: within };
}

// The chance of each word that a column names, and of all others together. `left` says how many words can still come; null where
// they are more than the column names, and how many is not known.
/** @param {Node} node @param {Settings} settings @param {number} vocab @returns {Chances} */
export const chances = (node, { minP, ...settings }, vocab) =>
  likely(cutOff(node, settings, vocab), minP, node, settings.temperature);

/** @param {Node} node @param {Omit<Settings, "minP">} settings @param {number} vocab @returns {Chances} */
function cutOff(node, { temperature, topK, topP }, vocab) {
  const n = node.logits.length;
  const kept = topK ? Math.min(topK, n) : n;
  const top = node.logits[0] / temperature;
  const probs = new Float64Array(n);
  let sum = 0;
  for (let i = 0; i < kept; i++) sum += probs[i] = Math.exp(node.logits[i] / temperature - top);
  let rest = topK || vocab <= n ? 0 : Math.exp(restOf(node, temperature) - top);
  const whole = sum + rest;
  for (let i = 0; i < kept; i++) probs[i] /= whole;
  rest /= whole;
  if (topP >= 1) return { probs, rest, left: rest ? vocab : kept };
  let before = 0;
  let within = 0; // words of the nucleus that have a name
  while (within < kept && before < topP) before += probs[within++];
  if (before < topP && rest > 0) {
    // The nucleus goes on among the words without a name: it ends as soon as it has reached top-p.
    for (let i = 0; i < kept; i++) probs[i] /= topP;
    return { probs, rest: (topP - before) / topP, left: null };
  }
  for (let i = 0; i < n; i++) probs[i] = i < within ? probs[i] / before : 0;
  return { probs, rest: 0, left: within };
}

// What is known of one word here: its own chance and rank. Words without a name have them where core told them. `own` are the
// column's own chances, where they are computed already.
/** @param {Node} node @param {number} id @param {number} vocab @param {Chances} [own] @returns {{prob: number, rank: number} | null} */
export function known(node, id, vocab, own) {
  const told = node.told.get(id);
  if (told) return told;
  const at = node.ids.indexOf(id);
  return at < 0 ? null : { prob: (own ?? chances(node, OWN, vocab)).probs[at], rank: at + 1 };
}

/** @param {number} prob */
export const bits = (prob) => Math.max(0, -Math.log2(prob)); // rounding may bring a certain word above 1

// Where a column looks: shares of what it may look at, by one head or by all on average; null where this head was not sent.
/** @param {Node} node @param {{layer: number, head: number} | null} by @param {number} heads @returns {Float32Array | null} */
export function look(node, by, heads) {
  const { rows, keys } = node;
  const found = new Float32Array(keys);
  /** @param {number} at @param {number} weight */
  const add = (at, weight) => {
    for (let i = 0; i < keys; i++) found[i] += (rows[at * keys + i] / 65535) * weight;
  };
  if (!node.whole) {
    if (!by) add(0, 1);
    else if (node.head && node.head[0] === by.layer && node.head[1] === by.head) add(1, 1);
    else return null;
  } else if (by) add(by.layer * heads + by.head, 1);
  else {
    const all = rows.length / keys;
    for (let at = 0; at < all; at++) add(at, 1 / all);
  }
  return found;
}

// The token that gets most, of all but the one that most heads rest on where there is one; that one where nothing else is there.
/** @param {ArrayLike<number>} row @param {number | null} sink */
export function most(row, sink) {
  let best = -1;
  for (let i = 0; i < row.length; i++) if (i !== sink && (best < 0 || row[i] > row[best])) best = i;
  return Math.max(0, best);
}
