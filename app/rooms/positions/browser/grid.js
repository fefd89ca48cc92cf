// How far each head moves: a cell for every head, layers down and heads to the right.

import { add, el, fill, share } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { HeatmapView } from "../../../kit/browser/picture/heatmap.js";
import { rising } from "../../../kit/browser/picture/scale.js";

/** @typedef {import("./types.js").Shown} Shown */
const CELL = 25.5; // units of the design
const SMALLEST = 13;
const [MOST_LAYERS, MOST_HEADS] = [24, 32]; // beyond them the grid scrolls

/**
 * Draws it; the answer marks another head of it as the chosen one, and leaves the rest as it is.
 * @param {Shown} view
 * @param {HTMLElement} host
 * @param {Float32Array} moved [layer, head]
 * @param {{layer: number, head: number}} chosen
 * @param {(at: {layer: number, head: number}) => void} choose
 */
export function grid(view, host, moved, chosen, choose) {
  const { unit } = view;
  const site = view.site();
  const [layers, heads] = [site.records.length, site.heads];
  const title = add(host, "h2");
  title.append(el("b", "", words.moved));
  const wide = (view.narrow ? view.width : 334 * unit) - 28 * unit;
  const tall = (view.isProjected ? 380 : 210) * unit;
  const cell = Math.max(
    SMALLEST * unit,
    Math.min(
      (view.narrow ? 40 : CELL) * unit,
      wide / Math.min(heads, MOST_HEADS),
      tall / Math.min(layers, MOST_LAYERS),
    ),
  );
  const [x0, y0] = [24 * unit, 18 * unit];
  const box = add(host, "div", "grid");
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  const every = cell < 16 * unit ? 4 : 1;
  /** @type {(n: number, away: number) => import("../../../kit/browser/picture/heatmap.js").Names} */
  const names = (n, away) => ({
    list: Array.from({ length: n }, (_, i) => (i % every ? null : String(i))),
    colour: view.palette.mute,
    size: Math.min(12 * unit, cell * 0.75),
    away,
  });
  const scale = rising(view.palette);
  const map = new HeatmapView(box);
  map.draw(
    {
      rows: layers,
      columns: heads,
      x: x0,
      y: y0,
      w: cell,
      h: cell,
      gap: 2,
      radius: 2,
      tone: (layer, head) => scale(moved[layer * heads + head]),
      rowNames: names(layers, 10 * unit),
      columnNames: names(heads, 3 * unit),
    },
    x0 + heads * cell,
    y0 + layers * cell,
    { hatch: view.palette.hatch, font: getComputedStyle(host).fontFamily },
  );
  const headOf = (/** @type {MouseEvent} */ event) => {
    const at = map.at(event);
    return at && { layer: at[0], head: at[1] };
  };
  box.addEventListener("click", (event) => {
    const at = headOf(event);
    if (at) choose(at);
  });
  box.addEventListener("pointermove", (event) => {
    const at = headOf(event);
    view.tip(
      at ? event : null,
      at
        ? [document.createTextNode(`${fill(words.head, at)}: `), el("b", "", share(moved[at.layer * heads + at.head]))]
        : [],
    );
  });
  box.addEventListener("pointerleave", () => view.tip(null));
  const legend = add(host, "p", "legend");
  const ramp = el("i", "ramp");
  legend.append("0 ", ramp, ` ${words.grid_legend}`);
  const mark = (/** @type {{layer: number, head: number}} */ at) => {
    map.frame([{ row: at.layer, column: at.head, colour: view.palette.query, width: 2.5, out: 1, radius: 3 }]);
    box.setAttribute(
      "aria-label",
      fill(words.grid, {
        n: moved.length,
        head: fill(words.head, at),
        share: share(moved[at.layer * heads + at.head]),
      }),
    );
  };
  mark(chosen);
  return mark;
}
