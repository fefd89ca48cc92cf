// The Page keys, which a clicker sends: heard once for the whole page, by a lesson before the room that it shows.

import { isFree } from "./shortcuts.js";

/** @typedef {(by: number) => boolean | void} Turn false where it turns nothing now, so that others may */

/** @type {Turn[]} */
let turns = [];

/** @param {KeyboardEvent} event */
function hear(event) {
  const by = { PageDown: 1, PageUp: -1 }[event.key];
  if (!by || event.repeat || !isFree(event)) return;
  if (turns.every((turn) => turn(by) === false)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/**
 * Have this turn with the Page keys until it leaves, wherever the focus is but in a text. What `leads` comes before all that is there.
 * @param {Turn} turn @param {AbortSignal} leaving @param {boolean} [leads]
 */
export function turnsPages(turn, leaving, leads = false) {
  if (!turns.length) addEventListener("keydown", hear, true);
  turns = leads ? [turn, ...turns] : [...turns, turn];
  leaving.addEventListener("abort", () => {
    turns = turns.filter((other) => other !== turn);
    if (!turns.length) removeEventListener("keydown", hear, true);
  });
}
