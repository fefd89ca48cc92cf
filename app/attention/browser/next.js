// What the model is about to write after a token that its decoder reads: the likeliest words, and the text's own next one.

import { json } from "../../kit/browser/messages.js";
const CHUNK = 64; // positions of one answer

/**
 * words: the likeliest, most first; given: the text's own next word, its probability and rank, null after the last token
 * @typedef {{words: [label: string, p: number][], given: [label: string, p: number, rank: number] | null}} Next
 */
/** @typedef {{rows: Record<string, Next>, vocabulary: number, refused?: string}} Answer */

// Whether the rows on the screen are about to write something
/** @param {import("./types.js").Shown} view */
export const writes = ({ picture, site, remote }) => picture.writes && site.id !== "encoder" && !remote.offline;

// Whether the next word is hidden until a visitor has guessed it
/** @param {import("./types.js").View} view */
export const isGuess = (view) => view.options.predict && Boolean(writes(view));

// What comes after one row of the lens, and out of how many words; null where nothing does, or while it is fetched
/** @param {import("./types.js").View} view @param {number} row @returns {(Next & {vocabulary: number}) | null} */
export function nextOf(view, row) {
  if (!writes(view)) return null;
  const token = [view.lens().queryTokens[row]].flat().at(-1) ?? 0; // of a word, after its last piece
  const from = Math.floor(token / CHUNK) * CHUNK;
  const to = Math.min(from + CHUNK, view.site.n_query);
  const found = view.remote.get("next", { from, to }, json);
  const next = found?.rows?.[token];
  return next && found ? { ...next, vocabulary: found.vocabulary } : null;
}
