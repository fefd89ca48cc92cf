// The recap of a lesson: three of its steps asked again, of another text or of other sizes, those that were not known first.

import { STEPS as ONCE, TEXTS } from "./constants.js";
import { AGAIN } from "./link.js";

/** @typedef {import("./types.js").Step} Step */

export const NAMES = Object.keys(ONCE);
const MOST = 3;

/** @param {string} name @returns {[string, Step]} */
function again(name) {
  const { values, varied, model, ...rest } = ONCE[name];
  const text = model ? { sentence: TEXTS[model], target: "" } : {};
  return [name + AGAIN, { ...rest, values: { ...values, ...varied }, varied, model, ...text }];
}

// Every step by its name, and by another one as a recap asks it
/** @type {Record<string, Step>} */
export const STEPS = {
  ...ONCE,
  ...Object.fromEntries(NAMES.filter((name) => Object.keys(ONCE[name].varied).length).map(again)),
};

// The steps that a recap of a lesson asks, in the order of the lesson
/** @param {string} lesson @param {(at: number) => boolean} isKnown @param {string} [now] one of them that is open @returns {string[]} */
export function recapOf(lesson, isKnown, now = "") {
  const names = NAMES.filter((name) => name.startsWith(`${lesson}.`) && name + AGAIN in STEPS);
  const rank = (/** @type {string} */ name) => (name + AGAIN === now ? -1 : Number(isKnown(NAMES.indexOf(name))));
  const chosen = [...names].sort((a, b) => rank(a) - rank(b)).slice(0, MOST);
  return names.filter((name) => chosen.includes(name)).map((name) => name + AGAIN);
}
