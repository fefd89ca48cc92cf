// The check of an answer: what was said, what is true, and the same words for right and wrong. app/rooms/lessons/checks.py does the same,
// in the same order; tests/js holds the two together.

import { worded } from "../../../kit/browser/dom.js";
import { grouped } from "../../../kit/browser/language.js";
import { ANSWER, NO_ANSWER } from "./words.js";

/** @typedef {{label: string, place: number[], value: number}} Candidate */
/**
 * @typedef {{
 *   kind: string, reason: string, footer: string, slip: string, candidates: Candidate[], best: number, form?: "row" | "ranked" | "plain",
 *   share: boolean,
 *   options: string[], right: number[], all_of: boolean, axes: string[], number: number, unit: string, step?: number, tolerance: number,
 *   digits: number, mistakes: {answer: string | number, name: string, sentence: string}[],
 *   values: Record<string, string> | null, remarks: [string, string][]
 * }} Truth
 */
/** @typedef {{said: string, true: string, rank: number | null, right: boolean, words: string[]}} Checked */
/** @typedef {(truth: Truth, answer: unknown) => Checked | null} Check */

const LARGEST = 1e12; // a number that can be said
const MOST_PARTS = 4000; // of an answer that names several things

/** @type {Record<string, Check>} */
const CHECKS = { point, drag, shape, choose, do: change };

/** @param {Truth} truth @param {unknown} answer @returns {Checked} */
export function check(truth, answer) {
  const checked = CHECKS[truth.kind](truth, answer);
  if (!checked) return { said: "", true: "", rank: null, right: false, words: [worded(NO_ANSWER, truth.kind)] };
  const after = [remark(truth, checked), truth.reason, truth.slip, truth.footer].filter(Boolean);
  return { ...checked, words: [...checked.words, ...after] };
}

// The sentence that a lesson has for this right answer; "" where it has none
/** @param {Truth} truth @param {Omit<Checked, "words">} checked */
const remark = ({ remarks }, { right, said }) => (right && remarks.find(([one]) => one === said)?.[1]) || "";

/** @type {Check} */
function point(truth, answer) {
  const said = places(answer, truth);
  if (!said.length) return null;
  const found = truth.candidates;
  const right = new Set(found.slice(0, truth.best).map(({ place }) => String(place)));
  const tops = named(found.slice(0, truth.best).map(({ label }) => label));
  if (truth.all_of) {
    const hit = said.filter((place) => right.has(place)).length;
    const extra = said.length - hit;
    const isRight = hit === right.size && !extra;
    const words = [
      fill(ANSWER[isRight ? "all_right" : "all_said"], { hit, of: right.size, extra }),
      fill(ANSWER.all_are, { true: tops }),
    ];
    return { said: fill(ANSWER.places, { n: said.length }), true: tops, rank: null, right: isRight, words };
  }
  const chosen = /** @type {Candidate} */ (found.find(({ place }) => String(place) === said[0]));
  const isRight = right.has(said[0]);
  const rank = isRight ? 1 : 1 + found.filter(({ value }) => value > chosen.value).length;
  const form = truth.form ?? "row";
  const names = {
    word: chosen.label,
    rank,
    n: found.length,
    top: tops,
    value: valueWords(truth, chosen.value),
    best: valueWords(truth, found[0].value),
  };
  const second = isRight && truth.best > 1 ? "tied" : /** @type {const} */ (`${form}_${isRight ? "right" : "top"}`);
  return {
    said: chosen.label,
    true: tops,
    rank,
    right: isRight,
    words: [fill(ANSWER[`${form}_said`], names), fill(ANSWER[second], names)],
  };
}

/** @param {Truth} truth @param {number} value */
function valueWords({ share, unit, digits }, value) {
  if (!share) return numberWords(value, unit, digits);
  return value >= 0.9995 && value < 1 ? ANSWER.nearly : numberWords(100 * value, "%", 1); // 100 % is all of it
}

// The places that an answer names, each once, in order, as texts; none where it cannot be read or names one that is not there.
/** @param {unknown} answer @param {Truth} truth @returns {string[]} */
export function places(answer, truth) {
  const given = Array.isArray(answer) ? answer : [answer];
  const listed = given.every(Array.isArray) ? given : [given];
  const known = new Set(truth.candidates.map(({ place }) => String(place)));
  /** @type {Set<string>} */
  const found = new Set();
  for (const part of listed.slice(0, MOST_PARTS)) {
    const place = part.map(whole);
    if (!place.length || place.includes(null) || !known.has(String(place))) return [];
    found.add(String(place));
  }
  return truth.all_of || found.size === 1 ? [...found] : [];
}

/** @type {Check} */
function drag(truth, answer) {
  if (typeof answer !== "number" || !(Math.abs(answer) <= LARGEST)) return null;
  const off = answer - truth.number;
  const right = Math.abs(off) <= truth.tolerance + 1e-9 * Math.max(1, Math.abs(truth.number));
  const [said, is] = [answer, truth.number].map((value) => numberWords(value, truth.unit, truth.digits));
  const far = between(Math.abs(off), truth);
  const first = right ? "plain_said" : off > 0 ? "too_much" : "too_little";
  return {
    said,
    true: is,
    rank: null,
    right,
    words: [fill(ANSWER[first], { word: said, far }), fill(ANSWER.is, { true: is })],
  };
}

// How far apart two numbers are. Shares differ by percentage points: 12 % is 2 of them, and 20 %, above 10 %.
/** @param {number} off @param {Truth} truth */
function between(off, { unit, digits }) {
  if (unit !== "%") return numberWords(off, unit, digits);
  const said = numberWords(off, "", digits);
  return `${said} ${said === "1" ? ANSWER.point : ANSWER.points}`;
}

/** @type {Check} */
function shape(truth, answer) {
  if (!Array.isArray(answer) || answer.length < 1 || answer.length > 8) return null;
  const sizes = answer.map((part) =>
    whole(part) !== null ? String(whole(part)) : typeof part === "string" && [...part].length <= 40 ? part : null,
  );
  if (sizes.includes(null)) return null;
  const [said, is] = [sizes, truth.axes].map((axes) => `[${axes.join(", ")}]`);
  const right = sizes.length === truth.axes.length && sizes.every((size, i) => size === truth.axes[i]);
  const words = [
    fill(ANSWER.plain_said, { word: said }),
    fill(ANSWER[right ? "plain_right" : "plain_top"], { top: is }),
  ];
  return { said, true: is, rank: null, right, words };
}

/** @type {Check} */
function choose(truth, answer) {
  const given = (Array.isArray(answer) ? answer : [answer]).slice(0, MOST_PARTS);
  const picked = [...new Set(given.map(whole))];
  const options = /** @type {number[]} */ (picked.filter((part) => part !== null && part < truth.options.length));
  if (!options.length || options.length !== picked.length || (options.length > 1 && !truth.all_of)) return null;
  options.sort((a, b) => a - b);
  const last = ANSWER[truth.all_of ? "and" : "or"];
  const [said, is] = [options, truth.right].map((some) =>
    named(
      some.map((i) => truth.options[i]),
      last,
    ),
  );
  const wanted = [...truth.right].sort((a, b) => a - b);
  const right = truth.all_of ? String(options) === String(wanted) : wanted.includes(options[0]);
  const words = [fill(ANSWER.chosen, { word: said }), fill(ANSWER[right ? "chosen_right" : "chosen_top"], { top: is })];
  return { said, true: is, rank: null, right, words };
}

/** @type {Check} */
function change(truth, answer) {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) return null;
  const values = /** @type {Record<string, unknown>} */ (answer);
  const right = Object.entries(truth.values ?? {}).every(([name, value]) => values[name] === value);
  return { said: "", true: "", rank: null, right, words: [ANSWER[right ? "done" : "not_done"]] };
}

// A sentence with its names filled in
/** @param {string} sentence @param {Record<string, string | number>} names */
export const fill = (sentence, names) => sentence.replace(/\{(\w+)\}/g, (_, name) => String(names[name]));

// A number as it is said: "30.566 MiB", "66.6 %", "623 tokens". Halves go up, here and in Python.
/** @param {number} value @param {string} unit @param {number} digits */
export function numberWords(value, unit, digits) {
  const rounded = Math.floor(value * 10 ** digits + 0.5) / 10 ** digits;
  const text = grouped(Math.abs(rounded), digits) + (unit ? ` ${unit}` : "");
  return rounded < 0 ? `−${text}` : text;
}

// "a", "a and b", "a, b and c"; of many the first three and how many more
/** @param {string[]} labels @param {string} [last] */
function named(labels, last = ANSWER.and) {
  if (labels.length > 8) return fill(ANSWER.more, { first: labels.slice(0, 3).join(", "), n: labels.length - 3 });
  return [labels.slice(0, -1).join(", "), ...labels.slice(-1)].filter(Boolean).join(last);
}

// A whole number from 0; null for anything else
/** @param {unknown} value @returns {number | null} */
function whole(value) {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= LARGEST ? value : null;
}
