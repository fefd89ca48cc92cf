// Heads by what they do: which group each head is in, and where the groups stand on the screen.

/** @typedef {{name: string, heads: number[]}} Group Heads are numbered layer · heads + head */
/** @typedef {{pitch: number, places: [x: number, y: number][], titles: {name: string, n: number, y: number}[], height: number}} Grouped */

// From the most telling name to the least; "rests on …" comes last, after "mixed"
const ORDER = [
  "one back",
  "one ahead",
  "itself",
  "2–5 away",
  "same token",
  "induction",
  "punctuation",
  "one word",
  "mixed",
];
const MOST_GROUPED = 160; // heads; of more, rows of layers are easier to read

/**
 * Whether small maps stand in groups by what the heads do, by default: for a text that is seen whole, whose heads are few
 * and have keys of their own. Beside a folded map rows of layers leave room for the whole of it.
 * @param {{isLong: boolean, heads: number, isShared: boolean}} of
 */
export const opensInGroups = ({ isLong, heads, isShared }) => !isLong && !isShared && heads <= MOST_GROUPED;

/** @param {string[]} names The name of each head @returns {Group[]} */
export function groupsOf(names) {
  /** @type {Map<string, number[]>} */
  const heads = new Map();
  names.forEach((name, i) => heads.set(name, [...(heads.get(name) ?? []), i]));
  /** @param {string} name */
  const rank = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return [...heads].map(([name, of]) => ({ name, heads: of })).sort((a, b) => rank(a.name) - rank(b.name));
}

/**
 * Where each head stands: the groups below each other, each with its name at the left, in rows as wide as there is room.
 *
 * The pitch is the largest up to `most` with which all fits into `height`, and `least` where none does.
 * @param {Group[]} groups
 * @param {{width: number, height: number, left: number, between: number, least: number, most: number}} room In pixels
 * @returns {Grouped}
 */
export function placed(groups, { width, height, left, between, least, most }) {
  /** @param {number} pitch */
  const across = (pitch) => Math.max(1, Math.floor((width - left) / pitch));
  /** @param {number} pitch */
  const tall = (pitch) =>
    groups.reduce((sum, { heads }) => sum + Math.ceil(heads.length / across(pitch)) * pitch + between, -between);
  let pitch = most;
  while (pitch > least && tall(pitch) > height) pitch -= 1;
  pitch = Math.max(pitch, least);
  const row = across(pitch);
  /** @type {[x: number, y: number][]} */
  const places = [];
  const titles = [];
  let y = 0;
  for (const { name, heads } of groups) {
    titles.push({ name, n: heads.length, y });
    heads.forEach((i, at) => (places[i] = [left + (at % row) * pitch, y + Math.floor(at / row) * pitch]));
    y += Math.ceil(heads.length / row) * pitch + between;
  }
  return { pitch, places, titles, height: y - between };
}

/**
 * Where groups leave a corner free at their right, beside the few heads of the small ones: the tallest run of rows.
 * @param {[x: number, y: number][]} places @param {number} pitch
 * @param {{width: number, wide: number, tall: number}} room How wide everything is, and what is to find place, in pixels
 * @returns {{y: number, height: number} | null} null where it does not fit
 */
export function corner(places, pitch, { width, wide, tall }) {
  /** @type {Map<number, number>} */
  const ends = new Map(); // row -> where its last head ends
  for (const [x, y] of places) ends.set(y, Math.max(ends.get(y) ?? 0, x + pitch));
  let best = null;
  let from = -1;
  for (const [y, end] of [...ends].sort(([a], [b]) => a - b)) {
    if (end > width - wide) from = -1;
    else {
      if (from < 0) from = y;
      const height = y + pitch - from;
      if (height >= tall && (!best || height > best.height)) best = { y: from, height };
    }
  }
  return best;
}

/**
 * The head that an arrow key leads to: the nearest one on that side.
 * @param {[x: number, y: number][]} places
 * @param {number} from
 * @param {[down: number, right: number]} step
 */
export function beside(places, from, [down, right]) {
  const [x, y] = places[from];
  let best = from;
  let least = Infinity;
  places.forEach(([a, b], i) => {
    const [ahead, aside] = right ? [(a - x) * right, Math.abs(b - y)] : [(b - y) * down, Math.abs(a - x)];
    if (ahead <= 0 || (right && aside > 0)) return;
    const far = ahead * 1000 + aside; // the next row first, and in it the nearest
    if (far < least) [best, least] = [i, far];
  });
  return best;
}
