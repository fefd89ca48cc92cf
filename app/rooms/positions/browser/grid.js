// One number for each head: a cell for every head, layers to the right and heads downward.

import { add, clamp, el, fill } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { HeatmapView } from "../../../kit/browser/picture/heatmap.js";

/** @typedef {import("./types.js").Shown} Shown */
const CELL = 25.5; // units of the design
const [NARROWEST, LOWEST] = [7, 7]; // with more layers or heads than fit so, the grid scrolls
const AROUND = 560; // units of the page above the grid, and of the list and the footer below it
const FEW = 22; // units of a line of labels along a side

/** @typedef {import("../../../kit/browser/picture/scale.js").Tone} Tone */
/** @typedef {{wide: number, tall?: number, tone: (value: number) => Tone, say: (value: number) => string, label: (head: string, value: number) => string}} Look How it looks: units of the design that it may be wide and high, and its words */

/**
 * Draws it; the answer marks another head of it as the chosen one, and leaves the rest as it is.
 * @param {Shown} view
 * @param {HTMLElement} host
 * @param {Float32Array} values [layer, head]
 * @param {{layer: number, head: number}} chosen
 * @param {(at: {layer: number, head: number}) => void} choose
 * @param {Look} look
 */
export function grid(view, host, values, chosen, choose, { wide: widest, tall: highest, tone, say, label }) {
  const { unit } = view;
  const site = view.site();
  const [layers, heads] = [site.records.length, site.heads];
  const wide = (view.narrow ? view.width : widest * unit) - 28 * unit;
  const atMost = highest ? highest * unit : clamp(innerHeight - AROUND * unit, 120 * unit, 210 * unit);
  const tall = view.isProjected && !highest ? 380 * unit : atMost;
  const most = (view.narrow ? 40 : CELL) * unit;
  const w = Math.max(NARROWEST * unit, Math.min(most, wide / layers));
  const h = Math.max(LOWEST * unit, Math.min(most, 2.2 * w, tall / heads));
  const [x0, y0] = [24 * unit, 18 * unit];
  const box = add(host, "div", "grid");
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  /** @type {(n: number, cell: number, room: number, away: number) => import("../../../kit/browser/picture/heatmap.js").Names} */
  const names = (n, cell, room, away) => {
    const every = [1, 2, 5, 10].find((by) => by * cell >= room * unit) ?? 20;
    return {
      list: Array.from({ length: n }, (_, i) => (i % every ? null : String(i))),
      colour: view.palette.mute,
      size: 12 * unit,
      away,
    };
  };
  const map = new HeatmapView(box);
  map.draw(
    {
      rows: heads,
      columns: layers,
      x: x0,
      y: y0,
      w,
      h,
      gap: 2,
      radius: 2,
      tone: (head, layer) => tone(values[layer * heads + head]),
      rowNames: names(heads, h, FEW * 0.7, 10 * unit),
      columnNames: names(layers, w, FEW, 3 * unit),
    },
    x0 + layers * w,
    y0 + heads * h,
    { hatch: view.palette.hatch, font: getComputedStyle(host).fontFamily },
  );
  const headOf = (/** @type {MouseEvent} */ event) => {
    const at = map.at(event);
    return at && { layer: at[1], head: at[0] };
  };
  box.addEventListener("click", (event) => {
    const at = headOf(event);
    if (at) choose(at);
  });
  box.addEventListener("pointermove", (event) => {
    const at = headOf(event);
    const said = (/** @type {{layer: number, head: number}} */ { layer, head }) => [
      `${fill(words.head, { layer, head })}: `,
      el("b", "", say(values[layer * heads + head])),
    ];
    view.tip.follow(at ? said(at) : [], event);
  });
  box.addEventListener("pointerleave", () => view.tip.hide());
  const mark = (/** @type {{layer: number, head: number}} */ at) => {
    map.frame([{ row: at.head, column: at.layer, colour: view.palette.query, width: 2.5, out: 1, radius: 3 }]);
    box.setAttribute("aria-label", label(fill(words.head, at), values[at.layer * heads + at.head]));
  };
  mark(chosen);
  return mark;
}
