// Numbers of What if: changes and their order, cells that moved, and edits as the text of a link. Nothing here draws.

import { apart, fixed, percent as share } from "../../../kit/browser/dom.js";
import { degreesOf } from "../../../kit/browser/turns.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Part} Part */

const MINUS = "−";
// Below which a change is said to be small: of probability where the cells of the map round to 3, so that as many cells as are counted
// show less, and of a vector's turn in degrees
export const FEW = 0.025;
export const FEW_TURN = 8;

// A change of probability in points: "−87", "+2", "0"
/** @param {number} x */
export function points(x) {
  const whole = Math.round(Math.abs(x) * 100);
  return whole === 0 ? "0" : `${x < 0 ? MINUS : "+"}${whole}`;
}

// The same with one digit after the point, for a sentence: "−0.9"
/** @param {number} x */
export function finer(x) {
  const tenths = (Math.abs(x) * 100).toFixed(1);
  return pointed(x < 0 && tenths !== "0.0" ? MINUS + tenths : tenths);
}

/** @param {number | null | undefined} p */
export function percent(p) {
  return p === null || p === undefined ? "·" : share(p).replace(" ", "\u00a0");
}

// Whether the answer of a model is a class with a probability
/** @param {import("./types.js").Header} data */
export const sorts = (data) => data.classes !== null && data.classes.kind !== "numbers";

// An answer in words: a probability, or the number of a regression
/** @param {import("./types.js").Header} data @param {number | null | undefined} x @param {(p: number | null | undefined) => string} [share_] */
export const answered = (data, x, share_ = percent) =>
  data.classes?.kind === "numbers" && x !== null && x !== undefined ? fixed(x, 3) : share_(x);

// A probability in per cent for a table of bars: "89.9"
/** @param {number | null | undefined} p */
export const tenth = (p) => (p === null || p === undefined ? "·" : share(p, 1).replace(" %", ""));

// The same of a word that may not be among the likeliest, whose last has `least`: it has no more than that
/** @param {number | null | undefined} p @param {number | null | undefined} least */
export const upTo = (p, least) =>
  (p === null || p === undefined) && least !== null && least !== undefined
    ? `≤ ${fixed(Math.ceil(least * 1000) / 10, 1)}`
    : tenth(p);

// A token of several that read alike with its place: "daughter 3"
/** @param {string[]} labels @param {number} at @param {(label: string) => string} [short] */
export function placed(labels, at, short = (label) => label) {
  const label = labels[at] ?? String(at);
  return labels.indexOf(label) === labels.lastIndexOf(label) ? short(label) : `${apart(short(label))} ${at}`;
}

// Row numbers, the largest change first; rows that are not here yet are left out
/** @param {(number | undefined)[]} values */
export function ranked(values) {
  return values
    .map((_, i) => i)
    .filter((i) => values[i] !== undefined)
    .sort((a, b) => Math.abs(/** @type {number} */ (values[b])) - Math.abs(/** @type {number} */ (values[a])) || a - b);
}

// The n cells that differ most: [query, key, change]
/** @param {ArrayLike<number>} before @param {ArrayLike<number>} after @param {number} columns @param {number} n */
export function movedMost(before, after, columns, n) {
  /** @type {[query: number, key: number, change: number][]} */
  const found = [];
  for (let i = 0; i < before.length; i++) {
    const change = after[i] - before[i];
    if (Math.abs(change) >= 0.005) found.push([Math.floor(i / columns), i % columns, change]);
  }
  return found.sort((a, b) => Math.abs(b[2]) - Math.abs(a[2])).slice(0, n);
}

// Link with the two sides swapped: the changed run, `there`, above, compared with `here`, the address of the run above now
/** @param {Record<string, string>} values @param {Record<string, string>} there @param {string} here @returns {Record<string, string>} */
export const swapped = ({ sweep, by, where, pick }, there, here) => ({
  view: "whatif",
  ...there,
  sweep,
  by,
  where,
  against: here,
  pick: sweep === "patch" ? pick : "off",
});

// The edits of a link without every edit that begins with a word, and with `text` instead where it is not empty
/** @param {string} edits @param {string} word @param {string} text */
export function withEdit(edits, word, text) {
  const kept = edits.split("~").filter((edit) => edit && edit.split("_")[0] !== word);
  return [...kept, text].filter(Boolean).join("~");
}

// More edits; an edit that is there already is there once
/** @param {string} edits @param {string} text */
export const added = (edits, text) => [...new Set([...edits.split("~"), ...text.split("~")])].filter(Boolean).join("~");

/** @param {string} edits @param {string} text */
export const without = (edits, text) =>
  edits
    .split("~")
    .filter((edit) => edit && edit !== text)
    .join("~");

/** @param {string} edits @param {string} word */
export const edited = (edits, word) => edits.split("~").find((edit) => edit.split("_")[0] === word);

/** @param {string} edits */
export function temperature(edits) {
  const value = Number(/^temperature_([\d.]+)$/.exec(edited(edits, "temperature") ?? "")?.[1]);
  return value > 0 ? value : 1;
}

// Rows as they come, put together: a sweep
export class Swept {
  /** @type {Row[]} */
  rows = [];
  /** @type {(number | undefined)[]} The change of each row: of the answer's probability, or the turn of the text's vector in degrees */
  changes = [];
  /** @type {Part | null} The last message with rows */
  part = null;
  /** @type {Partial<Part> | null} What the files say, at the end */
  about = null;
  refused = "";
  of = 0;
  /** @type {Record<string, string>} */
  labels = {};
  /** @type {{probability?: number[], ids?: number[], likeliest?: number[], turned?: number[], kl?: number, distance?: number}[]} 1 − cosine */
  after = [];
  /** @type {number[]} */
  written = [];

  /** @param {Part} part */
  take(part) {
    if (part.refused) this.refused = part.refused;
    else if (part.snippet !== undefined) this.about = part;
    else {
      this.part = part;
      this.of = part.of;
      Object.assign(this.labels, part.labels);
      part.rows.forEach((row, i) => {
        const at = part.first + i;
        this.rows[at] = row;
        this.changes[at] = part.distance
          ? degreesOf(part.distance[i])
          : (part.probability?.[i][0] ?? 0) - (part.probability_before?.[0] ?? 0);
        this.after[at] = {
          distance: part.distance?.[i],
          probability: part.probability?.[i],
          ids: part.ids?.[i],
          likeliest: part.likeliest?.[i],
          turned: part.turned?.[i],
          kl: part.kl?.[i],
        };
        if (part.written) this.written[at] = part.written[i];
      });
    }
  }

  get done() {
    return this.of > 0 && Object.keys(this.rows).length === this.of;
  }

  get turns() {
    return this.part?.distance !== undefined;
  }

  // How many changes are small
  get few() {
    const below = this.turns ? FEW_TURN : FEW;
    return this.changes.filter((x) => x !== undefined && Math.abs(x) < below).length;
  }

  // The row that writes most into the stream
  get loudest() {
    return this.written.reduce((best, x, i) => (x > this.written[best] ? i : best), 0);
  }

  /** @param {Row} place */
  indexOf(place) {
    return this.rows.findIndex((row) => row && row.length === place.length && row.every((x, i) => x === place[i]));
  }
}

// The place next to another on a map of rows × columns, held at its edges
/** @param {[row: number, column: number]} at @param {[down: number, right: number]} by @param {[rows: number, columns: number]} size @returns {[number, number]} */
export const stepped = (at, by, size) => [
  Math.max(0, Math.min(size[0] - 1, at[0] + by[0])),
  Math.max(0, Math.min(size[1] - 1, at[1] + by[1])),
];
