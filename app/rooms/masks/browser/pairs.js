// The chosen row below the maps: the forbidden key first, then the others as paired bars, before and after.

import { cover } from "../../../kit/browser/cover.js";
import { add, counted, el, fill, fixed, setText } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { both, share, way, word } from "./numbers.js";

/** @param {import("./types.js").Piece[]} pieces */
export const nodes = (pieces) =>
  pieces.map(([text, tone]) =>
    tone === "sub" ? el("sub", "", text) : tone ? el("em", tone, text) : document.createTextNode(text),
  );

/**
 * The keys of a row as it is shown: those that a hand or a card forbids, those that may be looked at only now, the others by the
 * larger of both weights.
 * @param {{mask: ArrayLike<number>, ownMask: ArrayLike<number>, before: ArrayLike<number>, after: ArrayLike<number>}} row
 */
export function order({ mask, ownMask, before, after }) {
  const all = Array.from({ length: mask.length }, (_, k) => k);
  const larger = (/** @type {number} */ k) => Math.max(before[k], after[k]);
  return {
    gone: all.filter((k) => mask[k] && !ownMask[k]).sort((a, b) => before[b] - before[a] || a - b),
    opened: all.filter((k) => !mask[k] && ownMask[k]).sort((a, b) => after[b] - after[a] || a - b),
    rest: all.filter((k) => !mask[k] && !ownMask[k]).sort((a, b) => larger(b) - larger(a) || a - b),
  };
}

/** @param {number} x of a whole */
const width = (x) => `${100 * Math.max(x > 0 ? 0.008 : 0, Math.min(1, x))}%`;

/** Two bars: thin and grey before, thick after. @param {number} a @param {number} b */
export function pair(a, b) {
  const box = el("i", "twin");
  for (const [name, x] of /** @type {[string, number][]} */ ([
    ["was", a],
    [way(a, b), b],
  ])) {
    const bar = add(box, "u", name);
    bar.style.width = width(x);
  }
  box.setAttribute("aria-hidden", "true");
  return box;
}

/** One key of the row: its nodes are made once, and a move of the row writes texts and widths. */
export class Slot {
  /** @type {unknown} */
  #named = null;

  constructor() {
    this.box = el("div", "slot");
    this.box.setAttribute("role", "img");
    this.name = add(this.box, "p");
    const bars = add(this.box, "i", "twin");
    bars.setAttribute("aria-hidden", "true");
    this.was = add(bars, "u", "was");
    this.now = add(bars, "u");
    const line = add(this.box, "span", "now");
    this.first = line.appendChild(document.createTextNode(""));
    this.last = add(line, "b");
  }

  /** @param {import("./types.js").Piece[]} name @param {string} plain @param {number} a @param {number} b */
  write(name, plain, a, b) {
    const named = name.map(([text]) => text).join("|");
    if (named !== this.#named) this.name.replaceChildren(...nodes(name));
    this.#named = named;
    this.was.style.width = width(a);
    this.now.style.width = width(b);
    this.now.className = way(a, b);
    const text = both(share(a), share(b));
    const at = text.lastIndexOf("→");
    this.first.data = text.slice(0, at + 1);
    setText(this.last, text.slice(at + 1));
    this.box.ariaLabel = fill(words.bar_says, { word: plain, a: share(a), b: share(b) });
    return this.box;
  }
}

let counting = [0, ""];

/** The numbers below n, as a text that is made once. @param {number} n */
function countedTo(n) {
  if (counting[0] !== n) counting = [n, Array.from({ length: n }, (_, k) => k).join(" ")];
  return String(counting[1]);
}

/** @param {import("./paint.js").Paint} paint @param {HTMLElement} place */
export function drawPairs(paint, place) {
  const { view, now, keys } = paint;
  const { query } = view.place;
  const { n_key } = paint.site;
  if (cover.hides("row", "number")) return drawScores(paint, place);
  const at = query - now.first;
  const of = (/** @type {any} */ values) => values.subarray(at * n_key, (at + 1) * n_key);
  const [before, after, scores, own] = [of(now.before), of(now.weighed.weights), of(now.scores), of(now.own)];
  const { gone, opened, rest } = order({ mask: of(now.mask), ownMask: of(now.ownMask), before, after });
  const sign = now.fillWith > -Infinity ? "−1e9" : "−∞";
  const who = el("div", "who");
  who.append(...nodes(word(paint.queries, query, "q")), el("small", "", words.looks_at));
  const parts = [who];
  const total = (/** @type {number[]} */ some, /** @type {ArrayLike<number>} */ x) =>
    some.reduce((sum, k) => sum + x[k], 0);
  const box = (
    /** @type {string} */ name,
    /** @type {(Node | string)[]} */ first,
    /** @type {(Node | string)[]} */ second,
  ) => {
    const made = el("div", `forbidden ${name}`);
    add(made, "p").append(...first);
    add(made, "small").append(...second);
    parts.push(made);
  };
  const now0 = (/** @type {number} */ x) => el("b", "", share(x));
  if (gone.length === 1) {
    const [k] = gone;
    const name = nodes(word(keys, k, "k"));
    const half = (/** @type {string} */ template, /** @type {string} */ name_, /** @type {string} */ value) =>
      fill(template, { [name_]: value });
    if (now.after)
      box(
        "",
        [...name, " ", half(words.times_zero, "p", share(of(now.weighed.softmax)[k])), el("b", "", "0")],
        [fill(words.row_sum, { sum: fixed(now.weighed.sums[at]) })],
      );
    else {
      const moved = Math.abs(scores[k] - own[k]) > 0.02;
      box(
        "",
        [...name, " ", half(words.keeps, "score", fixed(scores[k])), el("b", "", sign)],
        [
          half(words.gone, "p", share(before[k])),
          now0(after[k]),
          ...(moved ? [el("span", "mute", ` · ${fill(words.was, { score: fixed(own[k]) })}`)] : []),
        ],
      );
    }
  } else if (gone.length) {
    box(
      "",
      [
        el("em", "k", fill(words.gone_words, { n: gone.length })),
        " ",
        fill(words.keeps, { score: "" }),
        el("b", "", sign),
      ],
      [
        fill(words.gone, { p: share(Math.min(1, total(gone, before))) }),
        now0(total(gone, after)),
        el("span", "mute", ` · ${fill(words.most_from, { word: keys[gone[0]] })}`),
      ],
    );
  }
  if (opened.length)
    box(
      "opened",
      [el("em", "k", counted(words.later_words, opened.length)), " ", fill(words.later_score, { sign })],
      [
        fill(words.gone, { p: "0" }),
        now0(total(opened, after)),
        el("span", "mute", ` · ${fill(words.most_to, { word: keys[opened[0]] })}`),
      ],
    );
  const { type } = view;
  if (paint.rowWidth[0] !== view.layout) paint.rowWidth = [view.layout, place.clientWidth];
  const room = paint.rowWidth[1] / type - 84 - (gone.length ? 212 : 0) - (opened.length ? 212 : 0);
  let most = view.narrow ? 5 : Math.max(2, Math.floor(room / (view.isProjected ? 150 : 96)) - 1);
  if (rest.length === most + 1) most = rest.length;
  let shown = 0;
  const slot = (
    /** @type {import("./types.js").Piece[]} */ name,
    /** @type {string} */ plain,
    /** @type {number} */ a,
    /** @type {number} */ b,
  ) => {
    paint.slots[shown] ??= new Slot();
    parts.push(paint.slots[shown++].write(name, plain, a, b));
  };
  for (const k of rest.slice(0, most)) slot(word(keys, k, "k"), keys[k], before[k], after[k]);
  const tail = rest.slice(most);
  const others = counted(words.others, tail.length);
  if (tail.length) slot([[others, "mute"]], others, total(tail, before), total(tail, after));
  const kept = parts.map((part, i) => {
    const there = place.children[i];
    return there?.isEqualNode(part) ? /** @type {HTMLElement} */ (there) : part;
  });
  if (kept.length !== place.children.length || kept.some((part, i) => part !== place.children[i]))
    place.replaceChildren(...kept);
  Object.assign(place.dataset, {
    sum: now.weighed.sums[at].toFixed(6),
    weights: Array.from(after, (x) => x.toPrecision(6)).join(" "),
    keys: countedTo(after.length),
    forbidden: gone.join(" "),
  });
}

// The scores of the row alone, as long as a lesson asks what becomes of them
/** @param {import("./paint.js").Paint} paint @param {HTMLElement} place */
function drawScores(paint, place) {
  const { query } = paint.view.place;
  const { early, scores: all } = paint.now; // of a mask in every head they come with the run
  const who = el("div", "who");
  who.append(...nodes(word(paint.queries, query, "q")), el("small", "", words.its_scores));
  const scores = paint.keys.map((_, k) => {
    const slot = el("div", "slot");
    add(slot, "p").append(...nodes(word(paint.keys, k, "k")));
    add(slot, "span", "now").textContent = early ? "…" : fixed(all[paint.index(query, k)]);
    return slot;
  });
  place.replaceChildren(who, ...scores);
  for (const name of Object.keys(place.dataset)) delete place.dataset[name];
}
