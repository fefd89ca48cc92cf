// The turn of a text's vector, in degrees, and what it means: which word does as much when it is left out.

import { WORDS as words } from "./words.js";
import { fixed } from "./dom.js";
import { unpack } from "./messages.js";

/** @typedef {{marks: [word: string, degrees: number][], other: number, refused?: string}} Ruler other: of another sentence */

/** @param {number} degrees */
export const angle = (degrees) => `${fixed(degrees, 1)}°`;

// The angle of 1 − cosine
/** @param {number} apart */
export const degreesOf = (apart) => (Math.acos(Math.max(-1, Math.min(1, 1 - apart))) * 180) / Math.PI;

// Null while the text is run without each of its words
/** @param {import("./stage.js").Stage<any, any, any>} room @returns {Ruler | null} */
export const rulerOf = (room) => room.askLast("ruler", {}, (bytes) => unpack(bytes)[0]);

// The word that is left out beside it, as a sentence and its parts; null where none is known
/** @param {number} degrees @param {[word: string, degrees: number][] | null | undefined} marks @returns {[template: string, parts: {w: string, d: string}] | null} */
export function meant(degrees, marks) {
  if (!marks?.length) return null;
  const sorted = [...marks].sort((a, b) => a[1] - b[1]);
  const most = sorted[sorted.length - 1];
  const [template, [w, d]] =
    degrees < sorted[0][1]
      ? [words.turn_least, sorted[0]]
      : degrees > most[1]
        ? [words.turn_most, most]
        : [words.turn_near, /** @type {[string, number]} */ (sorted.findLast(([, at]) => at <= degrees))];
  return [template, { w, d: angle(d) }];
}
