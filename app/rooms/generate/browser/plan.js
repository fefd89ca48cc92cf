// Where everything of the picture stands: the strip of the given text, the columns as wide as their words, the open one, and what is folded.

import { common } from "./paths.js";

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Plan} Plan */
/** @typedef {(text: string, size: number, weight?: number) => number} Ruler */

export const [TYPE, SMALL] = [15.6, 13.2]; // of words, and of what is said about them
const [ARCS, WORD, LINE, STATS, RULER] = [54, 27, 25, 52, 42]; // pixels high
const [STRIP, CHAT, UNFOLDED] = [109, 164, 44]; // of the given text
const [OPEN, OPEN_NARROW] = [244, 116];
const [LEAST, GAP] = [21, 4]; // of a column, and between two
const [MOST_SPARE, FOLD] = [18, 50]; // pixels that a column may be wider than its word, and a fold is wide
export const LONG = 60; // tokens, above which the whole text has a ruler

/**
 * @param {Scene} scene @param {{width: number, height: number, narrow: boolean}} room @param {Ruler} ruler
 * @returns {Plan}
 */
export function plan(scene, { width, height, narrow }, ruler) {
  const { columns: all, focus, unfolded, page } = scene;
  const beams = page === "beams";
  const written = all.findIndex(({ given }) => !given);
  const begins = unfolded ? 0 : Math.max(0, written);
  const open = narrow ? OPEN_NARROW : beams ? 0 : OPEN;
  const strip = unfolded ? UNFOLDED : narrow ? 64 : scene.header.turns?.length ? CHAT : STRIP;
  const names = all.map((column) => wordOf(scene, column));
  const seen = new Map();
  const nth = names.map((name) => {
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return seen.get(name);
  });
  const least = (/** @type {number} */ i) =>
    i === focus && open
      ? Math.max(open, ruler(names[i], TYPE, 650) + 20)
      : Math.max(LEAST, ruler(names[i], TYPE, 650) + (seen.get(names[i]) > 1 ? 7 : 0) + 4) + GAP;
  const from = strip + GAP;
  const room = width - from;
  // As many columns around the open one as there is room for: after it first, then before it
  let [low, high, used] = [focus, focus, least(focus)];
  const folds = () => (low > begins ? FOLD : 0) + (high < all.length - 1 ? FOLD : 0);
  for (let moved = true; moved; ) {
    moved = false;
    for (const to of [high + 1, low - 1]) {
      if (to < begins || to >= all.length) continue;
      const [a, b] = [Math.min(low, to), Math.max(high, to)];
      const folded = (a > begins ? FOLD : 0) + (b < all.length - 1 ? FOLD : 0);
      if (used + least(to) + folded > room) continue;
      [low, high, used, moved] = [a, b, used + least(to), true];
    }
  }
  const spare = Math.max(0, Math.min(MOST_SPARE, (room - used - folds()) / (high - low + 1)));
  const left = low > begins ? FOLD : 0;
  /** @type {Plan["places"]} */
  const places = new Map();
  let x = from + left;
  for (let i = low; i <= high; i++) {
    const wide = least(i) + (i === focus && open ? 0 : spare);
    places.set(i, {
      x,
      width: wide - GAP,
      word: i === focus && open ? x + ruler(names[i], TYPE, 650) / 2 + 8 : x + (wide - GAP) / 2,
    });
    x += wide;
  }
  const long = scene.path.length > LONG;
  const lines = scene.others.map((path) => ({ path, at: common(path, scene.path) })).sort((a, b) => b.at - a.at); // late forks first: no line crosses another's words
  const rows = page === "columns" || page === "layers" ? lines.length : 0;
  const arcs = long ? RULER : 0;
  const text = arcs + ARCS;
  const stats = text + WORD + rows * LINE + 6;
  const top = page === "columns" ? stats + STATS : stats;
  return {
    width,
    height,
    strip,
    names,
    nth: nth.map((n, i) => (seen.get(names[i]) > 1 ? n : 0)),
    low,
    high,
    begins,
    places,
    open: open > 0,
    narrow,
    left: left ? { x: from, width: FOLD - GAP, n: low - begins } : null,
    right: high < all.length - 1 ? { x, width: FOLD - GAP, n: all.length - 1 - high } : null,
    end: x,
    long,
    arcs,
    text,
    lines: lines.slice(0, rows),
    line: (row) => text + WORD + 2 + row * LINE,
    stats,
    top,
    bottom: height - 4,
    anchor: (position) => anchor(position, scene, { places, strip, left: left ? from : null, low, begins }, ruler),
  };
}

// The word above a column, or a question mark where it is open
/** @param {Scene} scene @param {import("./types.js").Column} column */
export const wordOf = (scene, column) => (column.take === null ? "?" : scene.label(column.take));

// Words of the given text that its strip has room for, from the last on: where each ends
/** @param {Scene} scene @param {number} strip @param {Ruler} ruler */
export function lastWords(scene, strip, ruler) {
  /** @type {{position: number, text: string, x: number, width: number}[]} */
  const found = [];
  let x = strip - 5;
  for (let position = scene.prompt.length - 1; position >= 0; position--) {
    const text = scene.nameAt(position);
    const width = ruler(text, TYPE, 400);
    if (x - width < (position ? 20 : 4)) break;
    found.push({ position, text, x: x - width / 2, width });
    x -= width + 5;
  }
  return { found, rest: found.length < scene.prompt.length };
}

/**
 * The middle of a token's word; of one that is folded, its fold.
 * @param {number} position @param {Scene} scene @param {{places: Plan["places"], strip: number, left: number | null, low: number, begins: number}} at @param {Ruler} ruler
 */
function anchor(position, scene, { places, strip, left, low, begins }, ruler) {
  const first = scene.columns[0].node.position + 1; // the token of the first column
  const place = places.get(position - first);
  if (place) return { x: place.word, isShown: true };
  if (position - first >= begins)
    return { x: position - first < low ? (left ?? strip) + FOLD / 2 : 1e4, isShown: false };
  const word = scene.unfolded ? null : lastWords(scene, strip, ruler).found.find((one) => one.position === position);
  return { x: word ? word.x : 8, isShown: Boolean(word) };
}
