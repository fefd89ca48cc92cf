// Paths: the tokens that were taken after a text, as links write them, and the branches that were left.

/** @param {string} text */
export const read = (text) => (text ? text.split(".").map(Number) : []);
/** @param {number[]} path */
export const written = (path) => path.join(".");
/** @param {string} text */
export const readAll = (text) => (text ? text.split("_").map(read) : []);
/** @param {number[][]} paths */
export const writtenAll = (paths) => paths.map(written).join("_");

/** @param {number[]} whole @param {number[]} start */
export const goesOn = (whole, start) => start.length <= whole.length && start.every((id, i) => id === whole[i]);

// How many tokens two paths have in common
/** @param {number[]} a @param {number[]} b */
export function common(a, b) {
  let n = 0;
  while (n < a.length && n < b.length && a[n] === b[n]) n++;
  return n;
}

// The branches that are kept once `now` is on the screen instead of `before`: each once, the newest first. A branch that only goes
// as far as the text on the screen says nothing of its own.
/** @param {number[][]} kept @param {number[]} before @param {number[]} now */
export function left(kept, before, now) {
  /** @type {number[][]} */
  const found = [];
  for (const path of [before, ...kept]) {
    if (!path.length || goesOn(now, path) || found.some((other) => goesOn(other, path))) continue;
    found.push(path);
  }
  return found;
}

// Every beam of a search as a path: texts that lived at each step, and those that were dropped there
/** @param {import("./types.js").BeamStep[]} steps @returns {import("./types.js").Grown[]} */
export function grown(steps) {
  /** @type {import("./types.js").Grown[]} */
  const all = [];
  /** @type {{path: number[]}[]} */
  let live = [{ path: [] }];
  for (const { candidates } of steps) {
    /** @type {import("./types.js").Beam[]} */
    const kept = [];
    /** @type {import("./types.js").Beam[]} */
    const dropped = [];
    for (const [row, id, logProb, isKept, ends] of candidates) {
      const beam = { row, id, logProb, ends, path: [...live[row].path, id] };
      (isKept ? kept : dropped).push(beam);
    }
    all.push({ kept, dropped });
    live = kept;
  }
  return all;
}
