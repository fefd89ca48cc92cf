// What each head does, by the name that core gives it after where its attention goes.

import { fill, worded } from "../../kit/browser/dom.js";
import { json } from "../../kit/browser/messages.js";
import { WORDS as words } from "./constants.js";

const RESTS = "rests on "; // what core calls a head begins so, where it rests on a special token

/** @typedef {[name: string, share: number]} Role */

// In the language of the page
/** @param {string} name by core */
export const roleName = (name) =>
  name.startsWith(RESTS) ? fill(words.role_rests, { token: name.slice(RESTS.length) }) : worded(words.role_names, name);

// By record and head; null while they are fetched
/** @param {import("./types.js").View} view @returns {Role[][] | null} */
function rolesOf({ picture, remote }) {
  if (picture.roles) return picture.roles;
  const found = remote.get("roles", {}, json);
  return found && "refused" in found ? null : found;
}

// The chosen head's; "mixed" while it is not known
/** @param {import("./types.js").View} view @returns {Role} */
export function roleOf(view) {
  const { site, place } = view;
  return rolesOf(view)?.[site.records[place.layer]]?.[place.head] ?? ["mixed", 0];
}

// The name of every head of a kind of attention, by layer · heads + head
/** @param {import("./types.js").View} view @param {import("./types.js").Site} site */
export function namesOf(view, site) {
  const roles = rolesOf(view);
  return roles && site.records.flatMap((record) => roles[record].map(([name]) => name));
}
