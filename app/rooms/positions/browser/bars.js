// Attention of a head by distance, as trained and now: by the places that the words have in each.

import { add, el, fill, percent } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { Pen } from "../../../kit/browser/pen.js";
import { upright } from "../../../kit/browser/picture/bars.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { drawShapes } from "../../../kit/browser/scene.js";
import { picture } from "./draw.js";
import { across } from "../../../kit/browser/picture/axes.js";

/** @typedef {import("./types.js").Shown} Shown */

/** @param {Shown} view @param {HTMLElement} host @param {import("./types.js").Change} change @param {number} head counted through all layers @param {string} now */
export function bars(view, host, change, head, now) {
  const title = add(host, "h2");
  title.append(el("b", "", words.by_distance), ` ${words.by_distance_note}`);
  if (!change.before || !change.after) {
    add(host, "p", "note").textContent = words.by_distance_cross;
    return;
  }
  const { unit } = view;
  const { reach } = change;
  const size = 2 * reach + 1;
  const [before, after] = [change.before, change.after].map((values) => values.slice(head * size, (head + 1) * size));
  const [width, height] = [view.narrow ? Math.min(view.width, 420 * unit) : 246 * unit, 118 * unit];
  const x = (/** @type {number} */ i) => 16 * unit + (i * (width - 32 * unit)) / (size - 1);
  const y = (/** @type {number} */ value) => 8 * unit + height * (1 - value);
  const peak = before.reduce((/** @type {number} */ best, value, i) => (value > (before[best] || 0) ? i : best), 0);
  const label = fill(words.bars, {
    where: where(peak - reach),
    before: percent(before[peak] || 0),
    after: percent(after[peak] || 0),
  });
  const svg = picture(host, width, height + 34 * unit, label);
  across(svg, [0, 0.5, 1], { y, from: 8 * unit, to: width - 8 * unit });
  const both = { x, base: y(0), high: (/** @type {number} */ value) => y(0) - y(value) };
  drawShapes(new Pen(draw(svg, "g")), [
    ...upright({ ...both, values: after, wide: 9 * unit, fill: () => view.palette.ramp[3], radius: 1.5 }),
    ...upright({ ...both, values: before, wide: 13 * unit, stroke: view.palette.mute, radius: 2 }),
  ]);
  const isRight = peak > reach + 2;
  write(svg, x(peak) + (isRight ? -10 : 11) * unit, y(before[peak] || 0) + 11 * unit, percent(before[peak] || 0), {
    anchor: isRight ? "end" : "start",
    class: "b",
    size: 13.5 * unit,
  });
  for (const [i, anchor] of /** @type {[number, string][]} */ ([
    [0, "start"],
    [reach, "middle"],
    [size - 1, "end"],
  ])) {
    write(svg, x(i) + (i ? (i === reach ? 0 : 8) : -8) * unit, height + 26 * unit, where(i - reach), {
      anchor,
      class: "mt",
      size: 12.5 * unit,
    });
  }
  const legend = add(host, "p", "legend");
  legend.append(el("i", "was"), ` ${words.legend_trained} `, el("i", "now"), ` ${now.toLowerCase()}`);
}

/** @param {number} distance */
function where(distance) {
  if (!distance) return words.itself;
  return fill(distance < 0 ? words.distance_before : words.distance_after, { n: Math.abs(distance) });
}
