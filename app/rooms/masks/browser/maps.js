// The map of one head in a lab, drawings that are not maps, and the small pictures of a legend.

import { HeatmapView } from "../../../kit/browser/picture/heatmap.js";
import { rising } from "../../../kit/browser/picture/scale.js";
import { draw, svg as element } from "../../../kit/browser/picture/svg.js";
import { text } from "../../../kit/browser/scene.js";

export const NAMED = 66; // units for the words at the left of a map
export const ABOVE = 58; // and for the words above it
const LETTERS = 13.5; // units of the type of those, at most

/**
 * The weights of one head, hatched where `masked` says so, with a frame around the row that is looked at.
 * @param {import("./masks.js").Masks} view @param {HTMLElement} host
 * @param {{
 *   alt: string, queries: string[], keys: string[], w: number, h?: number, row?: number,
 *   weight: (q: number, k: number) => number, masked?: (q: number, k: number) => boolean, stamp?: [string, number],
 * }} map w, h: pixels of a cell; stamp: a text in the middle of the rows, and the column of its own middle
 */
export function drawMap(view, host, { alt, queries, keys, w, h = w, row, weight, masked = () => false, stamp }) {
  const { palette, type } = view;
  const [x, y] = [NAMED * type, ABOVE * type];
  const [wide, tall] = [keys.length * w, queries.length * h];
  const size = Math.min(LETTERS * type, Math.max(9, w, h * 0.7));
  const every = (/** @type {string[]} */ labels, /** @type {number} */ cell) =>
    labels.map((label, i) => (i % Math.ceil((11 * type) / cell) ? null : cut(label)));
  const heat = rising(palette);
  const picture = new HeatmapView(host, alt);
  picture.draw(
    {
      rows: queries.length,
      columns: keys.length,
      x,
      y,
      w,
      h,
      gap: w > 8 ? 1 : 0,
      tone: (q, k) => (masked(q, k) ? null : heat(weight(q, k))),
      masked,
      rowNames: { list: every(queries, h), colour: palette.ink, size, away: 8 * type },
      columnNames: { list: every(keys, w), colour: palette.key, size, lean: -45 },
      frames: row === undefined ? [] : [{ row, colour: palette.query, width: 2, out: 1 }],
      more: stamp
        ? [
            text(x + stamp[1] * w, y + tall / 2, [[stamp[0], palette.ink, 700]], Math.min(w * 3, h * 2.2, 34 * type), {
              anchor: "middle",
            }),
          ]
        : [],
    },
    x + wide + size * 2.6,
    y + tall + 4,
    { hatch: palette.hatch, font: view.family },
  );
  return picture;
}

// An empty drawing, as many times as large as its units
/** @param {HTMLElement} parent @param {number} width @param {number} height @param {string} alt @param {number} times */
export const canvas = (parent, width, height, alt, times) =>
  draw(parent, "svg", {
    width: width * times,
    height: height * times,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": alt,
  });

// A small picture of what hides a cell, for a legend
/** @param {string} name @param {any} palette */
export function swatch(name, palette) {
  const svg = element("svg", { width: 14, height: 14, "aria-hidden": "true" });
  const [id, size] = [`swatch-${name}`, 5];
  const box = draw(draw(svg, "defs"), "pattern", {
    id,
    width: size,
    height: size,
    patternUnits: "userSpaceOnUse",
    patternTransform: `rotate(${{ future: 45, edited: -45 }[name] ?? 0})`,
  });
  draw(box, "rect", { width: size, height: size, fill: palette.background });
  if (name === "future") draw(box, "rect", { width: 1.1, height: size, fill: palette.hatch });
  else if (name === "edited") draw(box, "rect", { width: 2, height: size, fill: palette.query });
  else draw(box, "rect", { width: size, height: 1.1, fill: palette.hatch });
  draw(svg, "rect", { width: 14, height: 14, fill: `url(#${id})` });
  return svg;
}

/** @param {string} label */
export function cut(label) {
  const letters = Array.from(label);
  return letters.length > 10 ? `${letters.slice(0, 9).join("")}…` : label;
}
