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

// The answer that says what comes after one row of the lens, and after which token; null while it is fetched
/** @param {import("./types.js").View} view @param {number} row @returns {{found: Answer, token: number} | null} */
function answerTo(view, row) {
  const token = [view.lens().queryTokens[row]].flat().at(-1) ?? 0; // of a word, after its last piece
  const from = Math.floor(token / CHUNK) * CHUNK;
  const to = Math.min(from + CHUNK, view.site.n_query);
  const found = view.remote.get("next", { from, to }, json);
  return found && { found, token };
}

// Whether all is known of what these rows are about to write
/** @param {import("./types.js").View} view @param {number} from @param {number} to */
export function isNextThere(view, from, to) {
  for (let row = from; row < to; row++) if (writes(view) && !answerTo(view, row)) return false;
  return true;
}

// Why nothing is known yet of what comes after a row: it is on its way, or was refused
/** @param {import("./types.js").View} view @param {number} row @param {string} loading */
export const whyNoNext = (view, row, loading) =>
  writes(view) ? ((answerTo(view, row) ?? { found: { refused: loading } }).found.refused ?? "") : "";

// What comes after one row of the lens, and out of how many words; null where nothing does, or while it is fetched
/** @param {import("./types.js").View} view @param {number} row @returns {(Next & {vocabulary: number}) | null} */
export function nextOf(view, row) {
  const answer = writes(view) ? answerTo(view, row) : null;
  const next = answer?.found.rows?.[answer.token];
  return answer && next ? { ...next, vocabulary: answer.found.vocabulary } : null;
}
