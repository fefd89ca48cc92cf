// The votes on a step whose answers are words of the picture: above each word how many said it, and at the answer its share in the run.

import { add, described, el, percent } from "../../kit/browser/dom.js";

/** @typedef {import("../../kit/browser/types.js").Above} Above */
/** @typedef {{counts: number[], shares: number[], before: number[], olds: number[], values: number[], isAnswer: boolean, isBlocks: boolean, right: number[]}} Said by option; values: what the run gives, [] before the answer */

const HIGH = 13; // em, at most
const LEAST = 5; // em: with less room above the words the votes are beside the picture
const LABELS = 3.2; // em, for the numbers over a bar
const ARROW = 3.4; // em, for two numbers
const FAINT = 0.03; // of the weight: below it a word has no bar of the run

/** Where it has room: all that is above the words, below the top of the page. @param {Above | null} above @param {number} top @param {number} right @param {number} em */
export function spot(above, top, right, em) {
  if (!above || above.right > right + 1 || above.bottom - top < LEAST * em) return null;
  return { top, height: above.bottom - top, right };
}

/** @param {HTMLElement} box @param {Above["columns"]} columns @param {NonNullable<ReturnType<typeof spot>>} at @param {Said} said @param {{alt: string, caption: string}} titles @param {number} em */
export function drawVotes(box, columns, at, said, { alt, caption }, em) {
  const { counts, shares, before, olds, values, isAnswer, isBlocks, right } = said;
  const most = Math.max(...shares, ...olds, ...values, 0.01);
  const tallest = Math.min(HIGH * em, at.height - LABELS * em);
  const high = (/** @type {number} */ part) => `${part ? Math.max(2, (tallest * part) / most) : 0}px`;
  const hasOld = olds.some(Boolean) && !isAnswer;
  Object.assign(box.style, { top: `${at.top}px`, height: `${at.height}px`, width: `${at.right}px` });
  described(box, "img", alt);
  box.replaceChildren(el("p", "caption", caption));
  columns.forEach(([x, width], i) => {
    const value = (values[i] ?? 0) < FAINT ? 0 : values[i];
    if (!counts[i] && !value && !right.includes(i) && !(hasOld && olds[i])) return;
    const pile = add(box, "div", "pile");
    Object.assign(pile.style, { left: `${x}px`, width: `${width}px` });
    if (value) pile.append(el("b", "run", bare(value)));
    const text = values.length ? bare(shares[i]) : String(counts[i]);
    if (hasOld) pile.append(el("b", "room", width > ARROW * em ? `${before[i]} → ${text}` : text));
    else if (counts[i]) pile.append(el("b", "room", text));
    const pair = add(pile, "div", "pair");
    pair.style.height = high(Math.max(shares[i], value, hasOld ? olds[i] : 0));
    const room = add(pair, "i", isBlocks ? "room blocks" : "room");
    room.style.height = high(shares[i]);
    room.style.setProperty("--blocks", String(counts[i] || 1));
    if (hasOld && olds[i]) add(pair, "u").style.height = high(olds[i]);
    if (values.length) add(pair, "i", "run").style.height = high(value);
  });
}

/** A share over a bar, whose scale the legend says. @param {number} p */
const bare = (p) => percent(p).replace(/\s*%$/, "");
