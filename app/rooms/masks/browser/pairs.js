// The chosen row below the maps: the forbidden key first, then the others as paired bars, before and after.

import { add, counted, el, fill, fixed } from "../../../kit/browser/dom.js";
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

/** Two bars: thin and grey before, thick after. @param {number} a @param {number} b */
export function pair(a, b) {
  const box = el("i", "twin");
  for (const [name, x] of /** @type {[string, number][]} */ ([
    ["was", a],
    [way(a, b), b],
  ])) {
    const bar = add(box, "u", name);
    bar.style.width = `${100 * Math.max(x > 0 ? 0.008 : 0, Math.min(1, x))}%`;
  }
  box.setAttribute("aria-hidden", "true");
  return box;
}

/** @param {string} text */
function arrowed(text) {
  const line = el("span", "now");
  const at = text.lastIndexOf("→");
  line.append(text.slice(0, at + 1), el("b", "", text.slice(at + 1)));
  return line;
}

/** @param {import("./paint.js").Paint} paint @param {HTMLElement} place */
export function drawPairs(paint, place) {
  const { view, now, keys } = paint;
  const { query } = view.place;
  const { n_key } = paint.site;
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
  const room = place.clientWidth / type - 84 - (gone.length ? 212 : 0) - (opened.length ? 212 : 0);
  let most = view.narrow ? 5 : Math.max(2, Math.floor(room / (view.isProjected ? 150 : 96)) - 1);
  if (rest.length === most + 1) most = rest.length;
  const slot = (
    /** @type {Node[]} */ name,
    /** @type {string} */ plain,
    /** @type {number} */ a,
    /** @type {number} */ b,
  ) => {
    const made = el("div", "slot");
    add(made, "p").append(...name);
    made.append(pair(a, b), arrowed(both(share(a), share(b))));
    made.setAttribute("role", "img");
    made.ariaLabel = fill(words.bar_says, { word: plain, a: share(a), b: share(b) });
    parts.push(made);
  };
  for (const k of rest.slice(0, most)) slot(nodes(word(keys, k, "k")), keys[k], before[k], after[k]);
  const tail = rest.slice(most);
  const others = counted(words.others, tail.length);
  if (tail.length) slot([el("span", "mute", others)], others, total(tail, before), total(tail, after));
  place.replaceChildren(...parts);
  place.classList.toggle("early", now.early);
  Object.assign(place.dataset, {
    sum: now.weighed.sums[at].toFixed(6),
    weights: Array.from(after, (x) => x.toPrecision(6)).join(" "),
    keys: Array.from(after, (_, k) => k).join(" "),
    forbidden: gone.join(" "),
  });
}
