// The votes on a step whose answers are words of the picture: above each word how many said it, and at the answer what the run gives it.

import { add, described, el, share } from "../../kit/browser/dom.js";

/** @typedef {import("../../kit/browser/types.js").Above} Above */
/** @typedef {{counts: number[], shares: number[], before: number[], olds: number[], values: number[], isAnswer: boolean, isBlocks: boolean, right: number[]}} Said by option; values: what the run gives, [] before the answer */

const HIGH = 13; // em, at most
const LEAST = 5; // em: with less room above the words the votes stand beside the picture
const LABELS = 3.2; // em, for the numbers over a bar
const ARROW = 3.4; // em, for two numbers
const FAINT = 0.03; // of the weight: below it a word has no bar of the run

/** Where it has room: above the words, and below the top of the page. @param {Above | null} above @param {number} top @param {number} right @param {number} em */
export function spot(above, top, right, em) {
  if (!above || above.right > right + 1) return null;
  const height = Math.min(HIGH * em, above.bottom - top);
  return height < LEAST * em ? null : { top: above.bottom - height, height, left: above.left, right: above.right };
}

/** @param {HTMLElement} box @param {Above} above @param {NonNullable<ReturnType<typeof spot>>} at @param {Said} said @param {string} alt @param {number} em */
export function drawVotes(box, above, at, said, alt, em) {
  const { counts, shares, before, olds, values, isAnswer, isBlocks, right } = said;
  const most = Math.max(...shares, ...olds, ...values, 0.01);
  const high = (/** @type {number} */ part) => `${Math.max(2, ((at.height - LABELS * em) * part) / most)}px`;
  const had = olds.some(Boolean);
  Object.assign(box.style, {
    top: `${at.top}px`,
    height: `${at.height}px`,
    left: `${at.left}px`,
    width: `${at.right - at.left}px`,
  });
  described(box, "img", alt);
  box.replaceChildren();
  above.columns.forEach(([x, width], i) => {
    const value = values[i] ?? 0;
    const isSeen = counts[i] || (isAnswer ? value >= FAINT || right.includes(i) : olds[i]);
    if (!isSeen) return;
    const column = add(box, "div", right.includes(i) ? "column right" : "column");
    Object.assign(column.style, { left: `${x - at.left}px`, width: `${width}px` });
    if (isAnswer && value >= FAINT) column.append(el("b", "run", share(value).replace(/\s*%$/, "")));
    const text = isAnswer && values.length ? share(shares[i]).replace(/\s*%$/, "") : String(counts[i]);
    if (counts[i] || had)
      column.append(el("b", "room", had && !isAnswer && width > ARROW * em ? `${before[i]} → ${text}` : text));
    const pair = add(column, "div", "pair");
    const room = add(pair, "i", isBlocks ? "room blocks" : "room");
    room.style.height = counts[i] ? high(shares[i]) : "0";
    room.style.setProperty("--blocks", String(counts[i] || 1));
    if (olds[i] && !isAnswer) add(pair, "u").style.height = high(olds[i]);
    if (isAnswer && values.length) add(pair, "i", "run").style.height = value >= FAINT ? high(value) : "0";
  });
}
