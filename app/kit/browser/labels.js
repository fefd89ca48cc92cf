// Names of tokens in a sentence: of a word that the text has more than once, which of them it is.

import { short } from "./dom.js";
import { WORDS as words } from "./words.js";

const LONG = 12; // letters
const DIGITS = [..."₀₁₂₃₄₅₆₇₈₉"];
const MOST = 99; // of one word: above, its number would be longer than the word

/** @type {WeakMap<string[], string[]>} */
const known = new WeakMap();

// Of each word that is there more than once, which of them it is, from 1 on; "" of others, of signs, and of very common words
/** @param {string[]} labels */
function counts(labels) {
  const before = known.get(labels);
  if (before) return before;
  /** @type {Map<string, number[]>} */
  const places = new Map();
  labels.forEach((label, i) => {
    if (!/[\p{L}\p{N}]/u.test(label) || /^[[<].*[\]>]$/.test(label)) return;
    const at = places.get(label);
    if (at) at.push(i);
    else places.set(label, [i]);
  });
  const found = labels.map(() => "");
  for (const at of places.values())
    if (at.length > 1 && at.length <= MOST)
      at.forEach((i, n) => {
        found[i] = String(n + 1);
      });
  known.set(labels, found);
  return found;
}

/** @type {[name: "begin" | "end" | "turn" | "turn_end" | "padding" | "unknown", labels: RegExp][]} */
const SPECIAL = [
  ["turn_end", /^(<\|(im_end|eot_id|eot|end|end_of_turn)\|>|<end_of_turn>)$/],
  ["turn", /^(<\|(im_start|start_header_id|start_of_turn)\|>|<start_of_turn>)$/],
  ["end", /^(<\|(endoftext|end_of_text|eos)\|>|<\/s>|<eos>|\[SEP\]|\[EOS\])$/],
  ["begin", /^(<\|(begin_of_text|startoftext|bos)\|>|<s>|<bos>|\[CLS\]|\[BOS\])$/],
  ["padding", /^(<\|?(pad|finetune_right_pad_id)\|?>|\[PAD\])$/],
  ["unknown", /^(<unk>|\[UNK\])$/],
];

/** The readable name of a predicted token. Special tokens are named by their meaning. @param {string} label */
export function tokenName(label) {
  const found = SPECIAL.find(([, labels]) => labels.test(label));
  return found ? words.special_tokens[found[0]] : label;
}

/** @param {string[]} labels @param {number} at @returns {string} */
export const whichOf = (labels, at) => counts(labels)[at] ?? "";

// "to₂" of the second "to"
/** @param {string[]} labels @param {number} at @returns {string} */
export const indexed = (labels, at) =>
  (labels[at] ?? "") + [...whichOf(labels, at)].map((digit) => DIGITS[Number(digit)]).join("");

// The name of a token beside its row: a long one is cut, and has no room for a number
/** @param {string[]} labels @param {number} at */
export const rowName = (labels, at) => (labels[at].length > LONG ? short(labels[at]) : indexed(labels, at));
