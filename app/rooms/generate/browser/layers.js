// The words of each layer at each word: a cell a layer, blue as the word that came is likely there, teal where it leads.

import { fill, number, percent } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { SMALL, TYPE } from "./plan.js";
import { fitted } from "./shapes.js";

/** @typedef {import("./types.js").LensColumn} LensColumn */

const WRITTEN = "var(--proof)";
const STRENGTH = 0.7; // of a root: small shares are seen as well

// The first layer from which on the word that came leads for once; null where it never does
/** @param {LensColumn} column */
export const leads = ({ ranks }) => {
  const found = ranks.indexOf(1);
  return found < 0 ? null : found;
};

// 0 is the embedding, 1 the first layer
/** @param {number} point */
export const nameOf = (point) => (point ? fill(words.layer_row, { n: point - 1 }) : words.word_row);

/** @param {import("../../../kit/browser/pen.js").Pen} pen @param {{scene: import("./types.js").Scene, at: import("./types.js").Plan, acts: import("./types.js").Acts, ruler: (text: string, size: number, weight?: number) => number}} of */
export function layersOf(pen, { scene, at, acts, ruler }) {
  const { top, bottom } = at;
  const n = scene.header.layers + 1;
  const high = (bottom - top) / n;
  for (let point = 0; point < n; point++)
    if (!point || point === n - 1 || (point > 1 && (point - 1) % 5 === 0))
      pen.write(
        at.strip - 6,
        top + (point + 0.5) * high + 4.5,
        fitted(nameOf(point), at.strip - 8, (part) => ruler(part, SMALL)),
        { anchor: "end", size: SMALL, fill: "var(--mute)" },
      );
  if (!scene.layers)
    pen.write(at.width / 2, top + 30, words.layers_wait, { anchor: "middle", size: TYPE, fill: "var(--mute)" });
  for (const [i, { x, width }] of at.places) {
    const { node } = scene.columns[i];
    const column = scene.layers?.get(node.position);
    const open = i === scene.focus && at.open;
    const wide = open ? Math.min(42, width / 3) : width;
    if (open)
      pen.draw("rect", {
        x: x - 1,
        y: top - 4,
        width: width + 2,
        height: bottom - top + 7,
        rx: 6,
        fill: "var(--background)",
        stroke: WRITTEN,
        "stroke-width": 2,
      });
    if (!column) continue;
    const first = leads(column);
    for (let point = 0; point < n; point++) {
      const share = column.own[point];
      const is = column.ranks[point] === 1;
      const strength = Math.round(100 * share ** STRENGTH);
      pen.draw(
        "rect",
        {
          class: "hit",
          x,
          y: top + point * high,
          width: wide,
          height: high - 1,
          fill: is
            ? `color-mix(in srgb, ${WRITTEN} ${Math.max(35, strength)}%, var(--background))`
            : `color-mix(in srgb, var(--key) ${Math.max(4, strength)}%, var(--background))`,
        },
        {
          title: fill(words.layer_tip, {
            layer: nameOf(point),
            word: scene.named(node, column.ids[point]),
            share: percent(column.probs[point]),
            came: scene.named(node, column.token),
            rank: number(column.ranks[point]),
          }),
          click: () => acts.focus(i),
        },
      );
    }
    if (first !== null)
      pen.draw("rect", { x: x - 1, y: top + first * high - 1.6, width: wide + 2, height: 3, fill: "var(--query)" });
    if (open) runs(pen, { node, column, x: x + wide, right: x + width - 4, top, high }, scene, ruler);
  }
}

// Of the open column the word of each run of layers
/**
 * @param {import("../../../kit/browser/pen.js").Pen} pen @param {{node: import("./types.js").Node, column: LensColumn, x: number, right: number, top: number, high: number}} place
 * @param {import("./types.js").Scene} scene @param {(text: string, size: number, weight?: number) => number} ruler
 */
function runs(pen, { node, column, x, right, top, high }, scene, ruler) {
  /** @type {{from: number, to: number, id: number}[]} */
  const found = [];
  column.ids.forEach((id, point) => {
    const last = found.at(-1);
    if (last?.id === id) last.to = point;
    else found.push({ from: point, to: point, id });
  });
  const line = 17;
  const bottom = top + column.ids.length * high;
  // Where there are more runs than lines the last ones stay: there the word is decided.
  const shown = found.slice(-Math.max(1, Math.floor((bottom - top) / line)));
  let y = top - line;
  const places = shown.map(({ from, to }, i) => {
    const middle = top + ((from + to + 1) / 2) * high;
    y = Math.max(y + line, Math.min(middle, bottom - (shown.length - i - 0.5) * line));
    return [middle, y];
  });
  shown.forEach(({ from, to, id }, i) => {
    const [middle, at] = places[i];
    const is = id === column.token;
    pen.draw("path", {
      d: `M${x + 1} ${middle}C${x + 9} ${middle} ${x + 6} ${at} ${x + 14} ${at}`,
      fill: "none",
      stroke: is ? WRITTEN : "var(--hatch)",
      "stroke-width": is ? 2 : 1.2,
    });
    const layers = from === to ? nameShort(from) : `${nameShort(from)}–${nameShort(to)}`;
    const said = `${layers} · ${percent(column.probs[to])}`;
    pen.write(right, at + 4.5, said, { anchor: "end", size: SMALL, fill: "var(--mute)" });
    const label = fitted(scene.named(node, id), right - x - 24 - ruler(said, SMALL), (part) => ruler(part, TYPE, 650));
    pen.write(x + 18, at + 5, label, { size: TYPE, "font-weight": is ? 700 : 600, fill: is ? WRITTEN : "var(--ink)" });
  });
}

/** @param {number} point */
const nameShort = (point) => (point ? String(point - 1) : words.word_short);
