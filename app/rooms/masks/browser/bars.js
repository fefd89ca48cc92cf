// Bars of the loss at each word, before and after a mask has changed.

import { fixed } from "../../../kit/browser/dom.js";
import { across } from "../../../kit/browser/picture/axes.js";
import { draw, svg } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { losses, way } from "./numbers.js";

export const BELOW = 44; // units for the words below a chart

/**
 * The loss at each word, before and after.
 * @param {any} palette @param {string[]} labels @param {number[]} before @param {number[] | null} after
 * @param {{width: number, height: number, says?: boolean}} size says: the number stands above a bar, where there is room
 */
export function lossBars(palette, labels, before, after, { width, height, says = false }) {
  const made = svg("svg", { viewBox: `0 0 ${width} ${height + BELOW}`, role: "img" });
  made.setAttribute(
    "aria-label",
    `${words.loss_at}: ${before.map((x, i) => `${labels[i]} ${after ? losses(x, after[i]) : fixed(x)}`).join(", ")}`,
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
  const every = Math.ceil(13 / wide);
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
    if (i % every === 0)
      draw(
        made,
        "text",
        {
          transform: `translate(${x + wide * 0.75},${height + 17}) rotate(-45)`,
          "text-anchor": "end",
          "font-size": 13,
          fill: palette.mute,
        },
        (labels[i] ?? "").slice(0, 8),
      );
  });
  return made;
}
