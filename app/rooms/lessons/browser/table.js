// Every step that the page knows: those of the course, and those of lessons that teachers wrote, which come with each message. Of these,
// too, the browser keeps which were looked at, by name and apart from the course's, whose bits keep their places.

import { done as courseDone, keep as keepCourse, watch as watchCourse } from "../../../kit/browser/progress.js";
import { fill } from "../../../kit/browser/dom.js";
import { LESSONS, STEPS, WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Written} Written */

export const NAMES = Object.keys(STEPS); // the course's first
export const COURSE = NAMES.length;
const KEY = "headlight.lessons.written";
const MOST = 2000; // names that are kept
/** @type {Record<string, Written>} */
let lessons = {};
let kept = ""; // where the browser keeps nothing

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

/** @returns {Set<string>} */
function written() {
  let text = kept;
  try {
    text = localStorage.getItem(KEY) ?? kept;
  } catch {
    // storage is blocked: kept as long as the page is open
  }
  try {
    const found = JSON.parse(text || "[]");
    return new Set(Array.isArray(found) ? found.filter((name) => typeof name === "string").slice(-MOST) : []);
  } catch {
    return new Set();
  }
}

/** The places in NAMES of the steps that were looked at. @returns {Set<number>} */
export function done() {
  const names = written();
  const found = courseDone(COURSE);
  for (let i = COURSE; i < NAMES.length; i++) if (names.has(NAMES[i])) found.add(i);
  return found;
}

/** @param {Set<number>} steps */
export function keep(steps) {
  const names = written();
  for (const i of steps) if (i >= COURSE) names.add(NAMES[i]);
  kept = JSON.stringify([...names].slice(-MOST));
  try {
    localStorage.setItem(KEY, kept);
  } catch {
    // see above
  }
  keepCourse(new Set([...steps].filter((i) => i < COURSE)));
}

// Told of every change, in this window or in another one of the same browser
/** @param {() => void} hear @param {AbortSignal} signal */
export function watch(hear, signal) {
  watchCourse(hear, signal);
  addEventListener("storage", (e) => e.key === KEY && hear(), { signal });
}
