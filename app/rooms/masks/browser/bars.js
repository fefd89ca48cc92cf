// Bars of the loss at each word, before and after a mask has changed.

import { apart, fill, fixed } from "../../../kit/browser/dom.js";
import { across } from "../../../kit/browser/picture/axes.js";
import { draw, svg } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { losses, way } from "./numbers.js";

export const BELOW = 44; // units for the words below a chart

const LETTER = 8; // units of a letter, at most
const NARROWEST = 5; // units of a bar: with narrower ones, several words share one

/**
 * So many equal stretches of a list, as long as they need to be.
 * @param {number} n @param {number} most @returns {[first: number, end: number][]}
 */
export function folds(n, most) {
  const each = Math.ceil(n / Math.max(1, most));
  return Array.from({ length: Math.ceil(n / Math.max(1, each)) }, (_, i) => [i * each, Math.min(n, (i + 1) * each)]);
}

/**
 * The loss at each word, before and after. Where there are too many words, one bar is the mean of several.
 * @param {any} palette @param {string[]} labels @param {number[]} before @param {number[] | null} after
 * @param {{width: number, height: number, says?: boolean, jump?: (row: number) => void}} size says: the number stands above a bar, where
 *   there is room; jump: a click at a bar calls it with the number of its first word
 */
export function lossBars(palette, labels, before, after, { width, height, says = false, jump }) {
  const parts = folds(before.length, (width - 24) / NARROWEST);
  if (parts.length < before.length) {
    const mean = (/** @type {number[]} */ x) =>
      parts.map(([i, end]) => x.slice(i, end).reduce((a, b) => a + b, 0) / (end - i));
    return bars(palette, null, mean(before), after && mean(after), { width, height, says, jump, parts });
  }
  return bars(palette, labels, before, after, { width, height, says, jump, parts });
}

/**
 * @param {any} palette @param {string[] | null} words_ of the bars; null where each is of several words, which are counted
 * @param {number[]} before @param {number[] | null} after
 * @param {{width: number, height: number, says: boolean, jump?: (row: number) => void, parts: [number, number][]}} size
 */
function bars(palette, words_, before, after, { width, height, says, jump, parts }) {
  const labels = words_ ?? parts.map(([i, end]) => fill(words.loss_of, { from: i + 1, to: end }));
  const made = svg("svg", { viewBox: `0 0 ${width} ${height + BELOW}`, role: "img" });
  made.setAttribute(
    "aria-label",
    `${words.loss_at}: ${before.map((x, i) => `${apart(labels[i])} ${after ? losses(x, after[i]) : fixed(x)}`).join(", ")}`,
  );
  const top = 1.05 * Math.max(0.1, ...before, ...(after ?? []));
  const y = (/** @type {number} */ x) => 6 + height * (1 - x / top);
  const step = top > 8 ? 5 : top > 3 ? 2 : 1;
  across(
    made,
    Array.from({ length: Math.floor(top / step) + 1 }, (_, i) => i * step),
    { y, from: 24, to: width, size: 13 },
  );
  const wide = (width - 24) / before.length;
  const every = Math.ceil((words_ ? 13 : 30) / wide);
  const isFlat = words_ && every === 1 && labels.every((label) => label.slice(0, 8).length * LETTER < wide);
  const tones = { more: palette.ramp[3], less: palette.ahead[3], same: palette.mute };
  before.forEach((a, i) => {
    const x = 24 + i * wide;
    const bar = (
      /** @type {number} */ at,
      /** @type {number} */ w,
      /** @type {number} */ v,
      /** @type {string} */ tone,
    ) => draw(made, "rect", { x: at, y: y(v), width: w, height: Math.max(0, 6 + height - y(v)), fill: tone, rx: 1 });
    if (!after) bar(x + wide * 0.2, wide * 0.6, a, palette.mute);
    else {
      bar(x + wide * 0.1, wide * 0.32, a, palette.hatch);
      bar(x + wide * 0.44, wide * 0.44, after[i], tones[way(a, after[i])]);
      if (says && wide > 40)
        draw(
          made,
          "text",
          {
            x: x + wide * 0.66,
            y: y(after[i]) - 4,
            "text-anchor": "middle",
            "font-size": 13,
            fill: tones[way(a, after[i])],
          },
          fixed(after[i], 1),
        );
    }
    if (jump) {
      const spot = draw(made, "rect", { x, y: 0, width: wide, height: height + 6, fill: "transparent", class: "jump" });
      spot.append(svg("title", {}, `${labels[i]}: ${after ? losses(a, after[i]) : fixed(a)}`));
      spot.addEventListener("click", () => jump(parts[i][0] + 1));
    }
    if (i % every === 0)
      draw(
        made,
        "text",
        {
          transform: isFlat
            ? `translate(${x + wide / 2},${height + 24})`
            : `translate(${x + wide * 0.75},${height + 17}) rotate(-45)`,
          "text-anchor": isFlat ? "middle" : "end",
          "font-size": 13,
          fill: palette.mute,
        },
        words_ ? (labels[i] ?? "").slice(0, 8) : String(parts[i][0] + 1),
      );
  });
  return made;
}
