// Every step that the page knows: those of the course, and those of lessons that teachers wrote, which come with each message. Of these,
// too, the browser keeps which were looked at and known, by name and apart from the course's, whose bits keep their places.

import {
  done as courseDone,
  keep as keepCourse,
  watch as watchCourse,
  ways as courseWays,
} from "../../../kit/browser/progress.js";
import { fill } from "../../../kit/browser/dom.js";
import { LESSONS, STEPS as ONCE, TEXTS, WORDS as words } from "./constants.js";
import { AGAIN } from "./link.js";

/** @typedef {import("./types.js").Step} Step */
/** @typedef {import("./types.js").Written} Written */
/** @typedef {import("../../../kit/browser/progress.js").Way} Way */

export const NAMES = Object.keys(ONCE); // of the steps as a lesson has them, the course's first
export const COURSE = NAMES.length;
/** @type {Record<string, Step>} Every step by its name, and by another one as a recap asks it */
export const STEPS = {
  ...ONCE,
  ...Object.fromEntries(NAMES.filter((name) => Object.keys(ONCE[name].varied).length).map(again)),
};
const KEY = "headlight.lessons.written";
const WAYS = ["known", "second"];
const MOST = 2000; // names that are kept
/** @type {Record<string, Written>} */
let lessons = {};
let kept = ""; // where the browser keeps nothing

/** @param {string} name @returns {[string, Step]} */
function again(name) {
  const { values, varied, model, ...rest } = ONCE[name];
  const text = model ? { sentence: TEXTS[model], target: "" } : {};
  return [name + AGAIN, { ...rest, values: { ...values, ...varied }, varied, model, ...text }];
}

/** The written lessons as their files are now. @param {Record<string, Written>} written */
export function takeIn(written) {
  lessons = written;
  NAMES.length = COURSE;
  for (const { steps } of Object.values(written)) {
    Object.assign(STEPS, steps); // one that is gone may be on the screen for a moment longer
    NAMES.push(...Object.keys(steps));
  }
}

/** The names of all lessons. */
export const all = () => [...LESSONS.map((_, i) => String(i + 1)), ...Object.keys(lessons)];

/** @param {string} name of a step @returns {string} of its lesson */
export const lessonOf = (name) => name.slice(0, name.lastIndexOf("."));

/** "1 Attention"; a written lesson has no number. @param {string} lesson @returns {string} */
export const titleOf = (lesson) =>
  lessons[lesson]?.title ?? fill(words.lesson_of, { n: lesson, title: LESSONS[Number(lesson) - 1] });

/** The lesson that a step is of, where a teacher wrote it. @param {string} name */
export const writtenOf = (name) => /** @type {Written | undefined} */ (lessons[lessonOf(name)]);

/** @param {string} lesson @returns {string[]} */
export const stepsOf = (lesson) => NAMES.filter((name) => lessonOf(name) === lesson);

/** The steps among which the Page keys lead: the course, or one written lesson. @param {string} name @returns {string[]} */
export const around = (name) => (writtenOf(name) ? stepsOf(lessonOf(name)) : NAMES.slice(0, COURSE));

// How each written step that was looked at was answered; "" where the answer was shown.
/** @returns {Map<string, Way | "">} */
function written() {
  let text = kept;
  try {
    text = localStorage.getItem(KEY) ?? kept;
  } catch {
    // storage is blocked: kept as long as the page is open
  }
  try {
    const found = Object.entries(JSON.parse(text || "{}"));
    return new Map(found.slice(-MOST).map(([name, way]) => [name, WAYS.includes(way) ? way : ""]));
  } catch {
    return new Map();
  }
}

/** The places in NAMES of the steps that were looked at. @returns {Set<number>} */
export function done() {
  const found = courseDone(COURSE);
  const seen = written();
  for (let i = COURSE; i < NAMES.length; i++) if (seen.has(NAMES[i])) found.add(i);
  return found;
}

/** How each was answered, of those that were known at once or at the second try. @returns {Map<number, Way>} */
export function ways() {
  const found = new Map([...courseWays()].filter(([i]) => i < COURSE));
  const seen = written();
  for (let i = COURSE; i < NAMES.length; i++) {
    const way = seen.get(NAMES[i]);
    if (way) found.set(i, way);
  }
  return found;
}

/** @param {Set<number>} steps @param {Map<number, Way>} known */
export function keep(steps, known) {
  const seen = written();
  for (let i = COURSE; i < NAMES.length; i++) {
    if (steps.has(i)) seen.set(NAMES[i], known.get(i) ?? "");
    else seen.delete(NAMES[i]);
  }
  kept = JSON.stringify(Object.fromEntries([...seen].slice(-MOST)));
  try {
    localStorage.setItem(KEY, kept);
  } catch {
    // see above
  }
  keepCourse(ofCourse(steps), new Map([...known].filter(([i]) => i < COURSE)));
}

/** Those that the course has. @param {Iterable<number>} steps */
export const ofCourse = (steps) => new Set([...steps].filter((i) => i < COURSE));

// Told of every change, in this window or in another one of the same browser
/** @param {() => void} hear @param {AbortSignal} signal */
export function watch(hear, signal) {
  watchCourse(hear, signal);
  addEventListener("storage", (e) => e.key === KEY && hear(), { signal });
}
