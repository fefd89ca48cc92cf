// The token that a head reads where it acts, and which of the two answers its output pushes: read from a message, and said in a few words.

import { WORDS as words } from "./constants.js";
import { fill, quoted } from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { unpack } from "../../../kit/browser/messages.js";
import { placeOf } from "./found.js";
import { percent } from "./numbers.js";

/** @typedef {{each: number, acts: Float32Array, keys: Float32Array, weights: Float32Array, firsts: Float32Array, pushes: Float32Array | null, refused?: string}} Notes each: heads of a layer; pushes: of the answer and of its rival, head by head */

const RESTS = [0.5, 0.2]; // of its attention on the first token, and less than so much on any other: a head rests
const PUSHES = 0.5; // nats

/** @param {Uint8Array} bytes @returns {Notes} */
export function readNotes(bytes) {
  const [header, body] = unpack(bytes);
  const n = header.layers * header.each;
  const read = (/** @type {string} */ name, each = 1) => new Float32Array(body, header[`${name}_at`], n * each);
  return {
    each: header.each,
    acts: read("acts"),
    keys: read("keys"),
    weights: read("weights"),
    firsts: read("firsts"),
    pushes: header.pushes_at === undefined ? null : read("pushes", 2),
  };
}

// The place of a head among these numbers
/** @param {Notes} notes @param {string} id */
function placeIn(notes, id) {
  const [, layer, head] = placeOf(id);
  return layer * notes.each + head;
}

// "reads John₂ (74 %)"; of a head that looks at the first token alone, that it rests there
/** @param {Notes} notes @param {string} id @param {string[]} labels @param {boolean} [isShort] */
export function reads(notes, id, labels, isShort = false) {
  const i = placeIn(notes, id);
  const [at, key, weight, first] = [notes.acts[i], notes.keys[i], notes.weights[i], notes.firsts[i]];
  const isResting = first > RESTS[0] && weight < RESTS[1];
  if (isShort) {
    if (isResting || !at) return words.rests_short;
    return key === at ? words.reads_itself_short : fill(words.reads_short, { word: quoted(indexed(labels, key)) });
  }
  if (isResting) return fill(words.rests, { p: percent(first) });
  const p = percent(weight);
  return key === at
    ? fill(words.reads_itself, { p })
    : fill(words.reads_word, { word: quoted(indexed(labels, key)), p });
}

// The same with where it acts, if that is not the word that is asked about, and what it pushes there
/** @param {Notes} notes @param {string} id @param {string[]} labels @param {number} asked @param {string[]} pair */
export function noteOf(notes, id, labels, asked, pair) {
  const i = placeIn(notes, id);
  const at = notes.acts[i];
  if (!at) return fill(words.at_first, { word: indexed(labels, 0) });
  const text = reads(notes, id, labels);
  if (at !== asked) return fill(words.at_word, { word: indexed(labels, at), text });
  if (!notes.pushes || (notes.firsts[i] > RESTS[0] && notes.weights[i] < RESTS[1])) return text;
  const [answer, rival] = [notes.pushes[2 * i], notes.pushes[2 * i + 1]];
  const isRival = Math.abs(rival) > Math.abs(answer);
  const push = isRival ? rival : answer;
  const said = Math.abs(push) < PUSHES ? words.tells_later : push > 0 ? words.pushes_up : words.pushes_down;
  return fill(words.and_also, { text, more: fill(said, { word: pair[isRival ? 1 : 0] }) });
}

// The token that a head reads, that it acts at, and how much of its attention the first has
/** @param {Notes} notes @param {string} id @returns {[key: number, at: number, weight: number]} */
export function looksOf(notes, id) {
  const i = placeIn(notes, id);
  return [notes.keys[i], notes.acts[i], notes.weights[i]];
}
