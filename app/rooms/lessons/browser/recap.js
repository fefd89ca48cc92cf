// The recap of a lesson of the course: three of its steps asked again, of another text or of other sizes, those that were not known first.

import { AGAIN } from "./link.js";
import { NAMES, STEPS, stepsOf } from "./table.js";

const MOST = 3;

// The steps that a recap of a lesson asks, in the order of the lesson; none where a teacher wrote it
/** @param {string} lesson @param {(at: number) => boolean} isKnown @param {string} [now] one of them that is open @returns {string[]} */
export function recapOf(lesson, isKnown, now = "") {
  const names = stepsOf(lesson).filter((name) => name + AGAIN in STEPS);
  const rank = (/** @type {string} */ name) => (name + AGAIN === now ? -1 : Number(isKnown(NAMES.indexOf(name))));
  const chosen = [...names].sort((a, b) => rank(a) - rank(b)).slice(0, MOST);
  return names.filter((name) => chosen.includes(name)).map((name) => name + AGAIN);
}
