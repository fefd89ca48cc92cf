// The reply to a wrong answer: which mistake it is, and never what is true. app/rooms/lessons/replies.py does the same, in the same order;
// tests/js holds the two together.

import { check, fill, numberWords, places } from "./check.js";
import { ANSWER, NO_ANSWER, REPLY } from "./words.js";
import { worded } from "../../../kit/browser/dom.js";

/** @typedef {import("./check.js").Truth} Truth */
/** @typedef {{name: string, sentence: string}} Reply */

const CLOSE = 0.1; // a number this near to what a mistake gives, as a share of it, is that mistake

/** @type {Record<string, (truth: Truth, answer: any) => Reply>} */
const REPLIES = { point, drag, shape, choose, do: () => ({ name: REPLY.not_yet, sentence: ANSWER.not_done }) };

// Null where the answer is right. One that cannot be read gets a sentence without a name.
/** @param {Truth} truth @param {unknown} answer @returns {Reply | null} */
export function reply(truth, answer) {
  const checked = check(truth, answer);
  if (checked.right) return null;
  if (!checked.true && truth.kind !== "do") return { name: "", sentence: worded(NO_ANSWER, truth.kind) };
  return REPLIES[truth.kind](truth, answer);
}

// The mistake that the first of these answers is, which is one
/** @param {Truth} truth @param {string[]} answers @returns {Reply | null} */
function known({ mistakes }, answers) {
  for (const answer of answers) {
    const found = mistakes.findLast((one) => one.answer === answer);
    if (found) return { name: found.name, sentence: found.sentence };
  }
  return null;
}

/** @param {string} a @param {string} b */
function compare(a, b) {
  const [x, y] = [a, b].map((text) => text.split(",").map(Number));
  const at = x.findIndex((size, i) => size !== y[i]);
  return at < 0 ? 0 : x[at] - y[at];
}

/** @param {string[]} some places as texts: "1,0" */
const written = (some) => some.map((place) => place.replaceAll(",", ".")).join(",");

/** @param {Truth} truth @param {unknown} answer */
function point(truth, answer) {
  const said = places(answer, truth);
  const right = new Set(truth.candidates.slice(0, truth.best).map(({ place }) => String(place)));
  if (truth.all_of) return several(truth, said, right);
  return known(truth, [written(said)]) ?? { name: REPLY[truth.form ?? "row"], sentence: check(truth, answer).words[0] };
}

/** @param {Truth} truth @param {string[]} said @param {Set<string>} right */
function several(truth, said, right) {
  const extra = said.filter((place) => !right.has(place)).sort(compare);
  const found = known(truth, [written([...said].sort(compare)), ...extra.map((place) => written([place]))]);
  if (found) return found;
  const hit = said.length - extra.length;
  const sentence = fill(ANSWER.all_said, { hit, of: right.size, extra: extra.length });
  return { name: extra.length ? REPLY.too_many : REPLY.missing, sentence };
}

/** @param {Truth} truth @param {number} said */
function drag(truth, said) {
  const { step = 0, tolerance, number, unit, digits } = truth;
  const near = truth.mistakes
    .map(({ answer, ...one }) => ({ ...one, off: Math.abs(said - Number(answer)), is: Number(answer) }))
    .filter(({ off, is }) => off <= Math.max(step, Math.min(tolerance, CLOSE * Math.abs(is))))
    .sort((a, b) => a.off - b.off)[0];
  if (near) return { name: near.name, sentence: near.sentence };
  const [smaller, larger] = [Math.min(said, number), Math.max(said, number)];
  const isFar = smaller > 0 && unit !== "%";
  const far = !isFar ? "some" : larger > 10 * smaller ? "ten" : larger > 2 * smaller ? "two" : "near";
  const word = numberWords(said, unit, digits);
  return { name: said > number ? REPLY.high : REPLY.low, sentence: fill(REPLY[far], { word }) };
}

/** @param {Truth} truth @param {(string | number)[]} answer */
function shape(truth, answer) {
  const sizes = answer.map(String);
  const found = known(truth, [sizes.join(",")]);
  if (found) return found;
  if (sizes.length !== truth.axes.length)
    return { name: REPLY.axes, sentence: fill(REPLY.so_many, { n: sizes.length }) };
  const isOrder = String([...sizes].sort()) === String([...truth.axes].sort());
  const n = sizes.filter((size, i) => size === truth.axes[i]).length;
  return { name: isOrder ? REPLY.order : REPLY.sizes, sentence: fill(REPLY.placed, { n, of: sizes.length }) };
}

/** @param {Truth} truth @param {number | number[]} answer */
function choose(truth, answer) {
  const picked = [...new Set([answer].flat())].sort((a, b) => a - b);
  const wrong = picked.filter((i) => !truth.right.includes(i));
  const found = known(truth, wrong.map(String));
  if (found) return found;
  const name = !truth.all_of ? REPLY.other : wrong.length ? REPLY.too_many : REPLY.missing;
  return { name, sentence: check(truth, answer).words[0] };
}
