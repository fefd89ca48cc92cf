// Shared by the four drawings of the picture: sizes, colours, stripes and the ground around letters.

import { clamp } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Palette} Palette */
/** @typedef {ReturnType<typeof geometry>} Geometry */

/** @type {Record<import("./types.js").PartId, [colour: keyof Palette, opacity: number]>} */
const COLOURS = {
  weights: ["mute", 1],
  masters: ["mute", 0.84],
  gradients: ["mute", 0.68],
  optimizer: ["mute", 0.42],
  activations: ["held", 1],
  kv_cache: ["held", 1],
  transient: ["work", 1],
  lost: ["hatch", 1],
};

/** The colour of a part. @param {import("./types.js").PartId} id @param {Shown} shown */
export function look(id, { palette, isDark }) {
  const [colour, opacity] = COLOURS[id];
  return { fill: palette[colour], "fill-opacity": isDark && colour === "mute" ? DIM * opacity : opacity };
}
const DIM = 0.68; // letters are lighter on a dark page than a slate is to be

// In the page's type: how large the letters are, and what is left free around the curve. Of a screen that is near, far, or a phone.
const SIZES = {
  near: { text: 0.94, bold: 1.06, above: 1.55, below: 2.5, labels: 8.6, bar: 6.2, gap: 4.1, right: 0.9 },
  far: { text: 1.26, bold: 1.5, above: 2.2, below: 3.1, labels: 10.2, bar: 8, gap: 5, right: 1.2 },
  slim: { text: 0.86, bold: 0.96, above: 1.55, below: 2.5, labels: 4.9, bar: 2.9, gap: 3.6, right: 0.5 },
};

const FAR = 0.665; // a projected page has larger type, and a picture that needs no more of it

/** The places of everything within a box, in pixels. @param {HTMLElement} box @param {Shown} shown */
export function geometry(box, { data: { axis }, unit, isProjected, isSlim }) {
  const size = SIZES[isSlim ? "slim" : isProjected ? "far" : "near"];
  const { clientWidth: width, clientHeight: height } = box;
  const r = 16 * unit * (isProjected ? FAR : 1);
  const left = size.labels * r; // of the column
  const wide = size.bar * r;
  const x0 = left + wide + size.gap * r;
  const x1 = Math.max(x0 + 1, width - size.right * r);
  const top = size.above * r;
  const y0 = Math.max(top + 1, height - size.below * r);
  return {
    width,
    height,
    r,
    left,
    wide,
    x0,
    x1,
    top,
    y0,
    text: size.text * r,
    bold: size.bold * r,
    line: 0.17 * r, // the thickness of the line of what there is, and of the ring on it
    font: getComputedStyle(box).fontFamily,
    x: (/** @type {number} */ n) => x0 + (clamp(n, 0, axis.ends) / axis.ends) * (x1 - x0),
    y: (/** @type {number} */ bytes) => y0 - (bytes / axis.top) * (y0 - top),
    /** The middle of what is `across` pixels wide, below x as far as it has room there. @param {number} x @param {number} across */
    within: (x, across) => clamp(x, x0, Math.max(x0, width - across / 2 - 1)),
  };
}

/** A ground for letters over lines. @param {Palette} palette @param {number} width */
export const halo = (palette, width) => ({
  stroke: palette.background,
  "stroke-width": width,
  "stroke-linejoin": "round",
  "paint-order": "stroke",
});

/** @param {Pen} pen @param {string} id @param {string} stroke @param {number} size @param {number} wide */
export function stripes(pen, id, stroke, size, wide) {
  const square = { width: size, height: size, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  const inside = new Pen(pen.draw("pattern", { id, ...square }));
  inside.draw("line", { x1: 0, y1: 0, x2: 0, y2: size, stroke, "stroke-width": wide });
  inside.end();
}
