// Where everything of the picture stands: the strip of the given text, the columns as wide as their words, the open one, and what is folded.

import { whichOf } from "../../../kit/browser/labels.js";
import { common } from "./paths.js";
import { nameOf } from "./shapes.js";

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Plan} Plan */
/** @typedef {(text: string, size: number, weight?: number) => number} Ruler */

export const [TYPE, SMALL] = [15.6, 13.2]; // of words, and of what is said about them
const [ARCS, WORD, LINE, STATS, RULER] = [54, 27, 25, 52, 42]; // pixels high
const [STRIP, CHAT, UNFOLDED] = [109, 164, 44]; // of the given text
const [OPEN, OPEN_NARROW] = [240, 56];
const SHORT = 374; // pixels: little room for a line, which ends at the right then
const [LEAST, GAP] = [18, 3]; // of a column, and between two
const [MOST_SPARE, FOLD] = [18, 50]; // pixels that a column may be wider than its word, and a fold is wide
export const LONG = 60; // tokens, above which the whole text has a ruler

/**
 * @param {Scene} scene @param {{width: number, height: number, narrow: boolean, projected?: boolean}} room @param {Ruler} ruler
 * @returns {Plan}
 */
export function plan(scene, { width, height, narrow, projected }, ruler) {
  const { columns: all, focus, unfolded, page } = scene;
  const beams = page === "beams";
  const written = all.findIndex(({ given }) => !given);
  const begins = unfolded ? 0 : Math.max(0, written);
  const open = narrow ? OPEN_NARROW : beams ? 0 : OPEN;
  const strip = unfolded ? UNFOLDED : narrow ? 84 : scene.header.turns?.length ? CHAT : STRIP;
  const names = all.map(({ take, node }) => (take === null ? "?" : scene.names[node.position + 1]));
  const nth = all.map(({ take, node }) => (take === null ? "" : whichOf(scene.counted, node.position + 1)));
  const least = (/** @type {number} */ i) =>
    i === focus && open
      ? Math.max(open, ruler(names[i], TYPE, 650) + 20)
      : Math.max(LEAST, ruler(names[i], TYPE, 650) + 6 * nth[i].length + 3) + GAP;
  const from = strip + GAP;
  // A word that is looked at is written over its fold, which has room for it.
  const looked = scene.look && !scene.header.source ? scene.look.key : -1;
  const before =
    looked >= all[begins].node.position ? Math.max(FOLD, ruler(nameOf(scene, looked), TYPE, 650) + 14) : FOLD;
  const room = width - from;
  // As many columns around the open one as there is room for: after it first, then before it
  let [low, high, used] = [focus, focus, least(focus)];
  const folds = () => (low > begins ? before : 0) + (high < all.length - 1 ? FOLD : 0);
  for (let moved = true; moved; ) {
    moved = false;
    for (const to of [high + 1, low - 1]) {
      if (to < begins || to >= all.length) continue;
      const [a, b] = [Math.min(low, to), Math.max(high, to)];
      const folded = (a > begins ? before : 0) + (b < all.length - 1 ? FOLD : 0);
      if (used + least(to) + folded > room) continue;
      [low, high, used, moved] = [a, b, used + least(to), true];
    }
  }
  // Where some are folded, columns keep their width while words come: a column that only moves is not drawn again.
  const some = low > begins || high < all.length - 1;
  const spare =
    scene.playing && some ? 0 : Math.max(0, Math.min(MOST_SPARE, (room - used - folds()) / (high - low + 1)));
  const left = low > begins ? before : 0;
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
  // Late forks first: no line crosses another's words. A line with little room has no fork.
  const lines = scene.others
    .map((path) => {
      const fork = common(path, scene.path);
      const place = places.get(written + fork);
      const end = width - (scene.how === "beam" ? 4 : 24) - ruler(scene.scoreOf(path), SMALL) - 14;
      const rest = end - (place ? place.x + 26 : width);
      return { path, at: fork, end, short: rest < SHORT && ruler(scene.flush(path.slice(fork)), TYPE, 500) > rest };
    })
    .sort((a, b) => Number(a.short) - Number(b.short) || b.at - a.at);
  const rows = page === "columns" || page === "layers" ? lines.length : 0;
  const arcs = long ? RULER : 0;
  const text = arcs + ARCS;
  const stats = text + WORD + rows * LINE + 6;
  const top = page === "columns" && !projected ? stats + STATS : stats;
  return {
    width,
    height,
    strip,
    names,
    nth,
    low,
    high,
    begins,
    places,
    open: open > 0,
    narrow,
    stated: !projected,
    left: left ? { x: from, width: left - GAP, n: low - begins } : null,
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

// Words of the given text that its strip has room for, from the last on: where each ends. The marks of a turn are one word, whose it
// is; those of its end are none.
/** @param {Scene} scene @param {number} strip @param {Ruler} ruler */
export function lastWords(scene, strip, ruler) {
  const { marks, names, given } = scene;
  /** @type {{position: number, first: number, text: string, mark: boolean, x: number, width: number}[]} */
  const found = [];
  let x = strip - 5;
  let first = scene.prompt.length;
  while (first > 0) {
    const position = first - 1;
    const mark = marks.get(position);
    first = position;
    if (mark !== undefined) while (first > 0 && marks.get(first - 1) === mark) first--;
    if (mark === "") continue;
    const text = mark ?? given[position];
    const glued = mark === undefined && names[position] !== text; // a piece of a word
    const width = ruler(text, mark === undefined ? TYPE : SMALL, mark === undefined ? 400 : 650);
    if (x - width < (first ? 20 : 4)) return { found, rest: true };
    found.push({ position, first, text, mark: mark !== undefined, x: x - width / 2, width });
    x -= width + (glued || CLOSE.test(text) ? 0 : 5);
  }
  return { found, rest: false };
}

const CLOSE = /^[.,;:!?…)\]}”’]+$/; // signs that stand close to the word before them

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
  const word = scene.unfolded
    ? null
    : lastWords(scene, strip, ruler).found.find((one) => one.first <= position && position <= one.position);
  return { x: word ? word.x : 8, isShown: Boolean(word) };
}
