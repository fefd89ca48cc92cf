// The last selection in each room of this page, for the way back to it by the bar: the place in the run, which means the same in every
// room, and the rest of each.

import { HEAD, PINNED, RULE, RUN, TOKENS, WAS } from "./constants.js";

/** @typedef {import("./selection.js").RoomSelection} RoomSelection */
/** @typedef {{values: Record<string, string>, ruled: string[], of: string, ofText: string[]}} Remembered */

/** @type {{place: Record<string, string>, ruled: Set<string>, of: string, run: Record<string, string>}} */
const now = { place: {}, ruled: new Set(), of: "", run: {} };
/** @type {Map<string, Remembered>} */
const rooms = new Map();

/** Returns the run part of an address. @param {URLSearchParams} address @returns {Record<string, string>} */
export const runOf = (address) =>
  Object.fromEntries(
    Object.entries(RUN).flatMap(([name, only]) => {
      const text = address.get(name);
      return text === null || (only !== null && text !== only) ? [] : [[name, text]];
    }),
  );

/** Returns true if an address names this run. @param {URLSearchParams} address @param {Record<string, string>} run */
export function sameRun(address, run) {
  const said = runOf(address);
  return Object.keys(RUN).every((name) => said[name] === run[name]);
}

/** @param {RoomSelection} selection */
export function remember({ values, ruled, of, addressed }) {
  if (!addressed || addressed.going || addressed.view !== addressed.room) return; // a lesson borrows the screen
  const { shared, silent } = addressed;
  const said = Object.entries(values).filter(([name, text]) => text || !silent.includes(name));
  if (shared.length) {
    if (of !== now.of) forget(addressed.run);
    for (const name of shared) {
      delete now.place[name];
      if (ruled.has(name)) now.ruled.add(name);
      else now.ruled.delete(name);
    }
    Object.assign(now.place, Object.fromEntries(said.filter(([name]) => shared.includes(name))));
    Object.assign(now, { of, run: addressed.run });
  }
  const own = said.filter(([name]) => !shared.includes(name));
  rooms.set(addressed.room, {
    values: Object.fromEntries(own),
    ruled: own.flatMap(([name]) => (ruled.has(name) ? [name] : [])),
    of,
    ofText: addressed.of_text,
  });
}

// Values of the previous run that no room has shown mean nothing in the next one, or were a rule's choice there. A head stays for
// another text only where it is pinned.
/** @param {Record<string, string>} run the next one */
function forget(run) {
  const isSameModel = run.model === now.run.model;
  const isKept = run.text === now.run.text || now.place[PINNED] === "true";
  for (const name of Object.keys(now.place))
    if (!isSameModel || TOKENS.includes(name) || now.ruled.has(name) || (HEAD.includes(name) && !isKept))
      delete now.place[name];
}

/**
 * The address of a room with the run that is on the screen, or the one that is given back, and all that was chosen.
 * @param {string} room @param {URLSearchParams} here @param {Record<string, string>} [run]
 */
export function wayTo(room, here, run = runOf(here)) {
  const kept = rooms.get(room);
  const place = now.of
    ? now.place
    : Object.fromEntries(
        [...HEAD, ...TOKENS].flatMap((name) => (here.has(name) ? [[name, here.get(name) ?? ""]] : [])),
      );
  const isOther = kept !== undefined && kept.of !== now.of;
  const gone = isOther ? [...(kept?.ofText ?? []), ...(kept?.ruled ?? [])] : [];
  const own = Object.entries(kept?.values ?? {}).filter(([name]) => !gone.includes(name));
  const said = new URLSearchParams({ view: room, ...run, ...place, ...Object.fromEntries(own) });
  const ruled = [...now.ruled, ...(isOther ? [] : (kept?.ruled ?? []))].filter((name) => said.has(name));
  if (ruled.length) said.set(RULE, [...new Set(ruled)].sort().join(","));
  if (now.of && Object.keys(place).length && !sameRun(said, now.run)) said.set(WAS, now.of);
  return said;
}
