// How far each head moves: a cell for every head, layers down and heads to the right.

import { add, el, fill, share } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { picture, put } from "./draw.js";

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
  const svg = picture(box, x0 + heads * cell, y0 + layers * cell, words.moved);
  const size = Math.min(12 * unit, cell * 0.75);
  const every = cell < 16 * unit ? 4 : 1;
  for (let head = 0; head < heads; head += every)
    put(
      svg,
      "text",
      { x: x0 + (head + 0.5) * cell - 1, y: 11 * unit, "text-anchor": "middle", class: "mt", "font-size": size },
      String(head),
    );
  for (let layer = 0; layer < layers; layer++) {
    if (layer % every === 0)
      put(
        svg,
        "text",
        { x: 14 * unit, y: y0 + (layer + 0.5) * cell + 3 * unit, "text-anchor": "end", class: "mt", "font-size": size },
        String(layer),
      );
    for (let head = 0; head < heads; head++) {
      const value = moved[layer * heads + head];
      const fills = view.ramp.css[Math.round(255 * Math.min(1, value))];
      put(svg, "rect", {
        x: x0 + head * cell,
        y: y0 + layer * cell,
        width: cell - 2,
        height: cell - 2,
        rx: 2,
        fill: fills,
        "data-h": `${layer}.${head}`,
      });
    }
  }
  const ring = put(svg, "rect", {
    width: cell + 2,
    height: cell + 2,
    rx: 3,
    fill: "none",
    stroke: "var(--query)",
    "stroke-width": 2.5,
  });
  const headOf = (/** @type {Event} */ event) => {
    const found = /** @type {SVGElement | null} */ (
      /** @type {Element} */ (event.target).closest?.("[data-h]")
    )?.dataset.h
      ?.split(".")
      .map(Number);
    return found ? { layer: found[0], head: found[1] } : null;
  };
  svg.addEventListener("click", (event) => {
    const at = headOf(event);
    if (at) choose(at);
  });
  svg.addEventListener("pointermove", (event) => {
    const at = headOf(event);
    view.tip(
      at ? event : null,
      at
        ? [document.createTextNode(`${fill(words.head, at)}: `), el("b", "", share(moved[at.layer * heads + at.head]))]
        : [],
    );
  });
  svg.addEventListener("pointerleave", () => view.tip(null));
  const legend = add(host, "p", "legend");
  const ramp = el("i", "ramp");
  legend.append("0 ", ramp, ` ${words.grid_legend}`);
  const mark = (/** @type {{layer: number, head: number}} */ at) => {
    ring.setAttribute("x", (x0 + at.head * cell - 2).toFixed(2));
    ring.setAttribute("y", (y0 + at.layer * cell - 2).toFixed(2));
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
