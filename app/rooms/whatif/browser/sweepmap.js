// The map of a sweep, layers × heads or queries × keys, and all changes in order, as small drawings.

import { colours } from "../../../kit/browser/colours.js";
import { short } from "../../../kit/browser/dom.js";
import { evenly, points, tone } from "./numbers.js";

const SVG = "http://www.w3.org/2000/svg";
/** @typedef {{fill: string, ink: string}} Tone */
/** @type {WeakMap<object, {of: (x: number, most: number) => Tone, plain: (x: number, most: number) => Tone, even: (x: number) => Tone}>} */
const SCALES = new WeakMap();
/** @type {CanvasRenderingContext2D | null | undefined} To measure words with: a word in the page tells its length only after a layout */
let pen;

/** @param {Element} parent @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
export function make(parent, name, attributes, text) {
  const node = parent.appendChild(document.createElementNS(SVG, name));
  for (const [key, value] of Object.entries(attributes))
    node.setAttribute(key, String(typeof value === "number" ? Math.round(value * 100) / 100 : value));
  if (text !== undefined) node.textContent = text;
  return node;
}

// Both ramps of a palette; of a signed change, less goes one way and more the other
/** @param {import("./types.js").Palette} palette */
export function scales(palette) {
  const known = SCALES.get(palette);
  if (known) return known;
  const less = colours(palette.ramp);
  const more = colours(palette.ahead);
  const found = {
    /** @param {number} x @param {number} most */
    of: (x, most) => {
      const table = x < 0 ? less : more;
      const at = tone(x, most);
      return { fill: table.css[at], ink: table.ink[at] };
    },
    /** @param {number} x @param {number} most */
    plain: (x, most) => ({ fill: less.css[tone(x, most)], ink: less.ink[tone(x, most)] }),
    /** @param {number} x */
    even: (x) => ({ fill: less.css[evenly(x)], ink: less.ink[evenly(x)] }),
  };
  SCALES.set(palette, found);
  return found;
}

/**
 * @typedef {{rows: string[], columns: string[], values: (number | undefined)[][], chosen: [number, number] | null, turns: boolean,
 *   tokens: boolean, most: number}} Grid values [row][column]; undefined is not known or never changed
 */

// Draw a grid into an svg element, as wide as `width`, at most `height` high; where its cells are, for the pointer.
/** @param {SVGSVGElement} svg @param {Grid} grid @param {import("./types.js").Palette} palette @param {number} width @param {number} height @param {number} unit of the type: 1 is 16 pixels */
export function drawGrid(svg, grid, palette, width, height, unit) {
  svg.replaceChildren();
  const [n, m] = [grid.rows.length, grid.columns.length];
  const labels = grid.tokens && n <= 24;
  const small = 12 * unit;
  const left = grid.tokens ? (n <= 40 ? 62 * unit : 4) : 26 * unit;
  const top = grid.tokens ? (labels && m <= 24 ? 46 * unit : 4) : 16 * unit;
  let w = (width - left - 2) / m;
  const strip = grid.tokens && n === 1; // of a long text: one query's looks, which are narrow and need not be flat
  const h = Math.max(7, Math.min(34 * unit, (height - top) / n, grid.tokens && !strip ? w : 34 * unit));
  if (grid.tokens) w = n === 1 ? w : Math.min(w, Math.max(h, 12));
  const total = top + n * h + 2 + (strip && m > 24 ? small + 3 : 0);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(total));
  const scale = scales(palette);
  const gap = w > 12 && h > 10 ? 2 : w > 5 ? 1 : 0;
  const size = Math.min(13 * unit, h * 0.62, w * 0.42);
  if (!grid.tokens) {
    grid.columns.forEach(
      (name, j) =>
        w > 11 &&
        make(
          svg,
          "text",
          { x: left + (j + 0.5) * w, y: top - 5, "text-anchor": "middle", "font-size": small, fill: palette.mute },
          name,
        ),
    );
    grid.rows.forEach((name, i) =>
      make(
        svg,
        "text",
        {
          x: left - 8,
          y: top + (i + 0.5) * h + 4,
          "text-anchor": "end",
          "font-size": Math.min(small, h),
          fill: palette.mute,
        },
        name,
      ),
    );
  } else {
    if (n <= 40)
      grid.rows.forEach((name, i) =>
        make(
          svg,
          "text",
          {
            x: left - 6,
            y: top + (i + 0.5) * h + 4,
            "text-anchor": "end",
            "font-size": Math.min(small, Math.max(8, h)),
            fill: palette.query,
          },
          short(name),
        ),
      );
    if (strip && m > 24)
      [0, m - 1].forEach((j, i) =>
        make(
          svg,
          "text",
          {
            x: left + (j + i) * w,
            y: top + h + small,
            "text-anchor": i ? "end" : "start",
            "font-size": small,
            fill: palette.key,
          },
          short(grid.columns[j]),
        ),
      );
    if (labels && m <= 24)
      grid.columns.forEach((name, j) =>
        make(
          svg,
          "text",
          {
            x: 0,
            y: 0,
            transform: `translate(${left + (j + 0.6) * w} ${top - 5}) rotate(-50)`,
            "font-size": small,
            fill: palette.key,
          },
          short(name),
        ),
      );
  }
  grid.values.forEach((line, i) =>
    line.forEach((value, j) => {
      const x = left + j * w;
      const y = top + i * h;
      if (value === undefined) {
        if (!grid.tokens)
          make(svg, "rect", {
            x: x + gap / 2,
            y: y + gap / 2,
            width: w - gap,
            height: h - gap,
            rx: 2,
            fill: "none",
            stroke: palette.line,
          });
        return;
      }
      const { fill, ink } = grid.turns ? scale.plain(value, grid.most) : scale.of(value, 1);
      make(svg, "rect", { x: x + gap / 2, y: y + gap / 2, width: w - gap, height: h - gap, rx: 2, fill });
      if (size < 8 || w < 22) return;
      const text = grid.turns ? (value * 100).toFixed(1) : points(value);
      const strong = grid.turns ? value >= 0.01 : Math.abs(value) >= 0.1;
      make(
        svg,
        "text",
        {
          x: x + w / 2,
          y: y + h / 2 + size * 0.36,
          "text-anchor": "middle",
          "font-size": size,
          "font-weight": strong ? 650 : 400,
          fill: ink,
        },
        text,
      );
    }),
  );
  const frame = make(svg, "rect", {
    width: w,
    height: h,
    rx: 3,
    fill: "none",
    stroke: palette.query,
    "stroke-width": 2.5,
  });
  /** @param {[number, number] | null} chosen */
  const choose = (chosen) => {
    frame.setAttribute("visibility", chosen ? "visible" : "hidden");
    const [i, j] = chosen ?? [0, 0];
    frame.setAttribute("x", (left + j * w).toFixed(2));
    frame.setAttribute("y", (top + i * h).toFixed(2));
  };
  choose(grid.chosen);
  return {
    choose,
    /** @param {number} x @param {number} y @returns {[number, number] | null} */
    at: (x, y) => {
      const [i, j] = [Math.floor((y - top) / h), Math.floor((x - left) / w)];
      return i >= 0 && j >= 0 && i < n && j < m ? [i, j] : null;
    },
  };
}

// All changes in order, bars from a line: what falls hangs below it, what rises stands above it
/** @param {SVGSVGElement} svg @param {{values: number[], names: string[], chosen: number, turns: boolean}} order @param {import("./types.js").Palette} palette @param {number} width @param {import("./types.js").Type} type */
export function drawOrder(svg, { values, names, chosen, turns }, palette, width, { unit, family }) {
  svg.replaceChildren();
  const [above, below] = turns ? [0, 46] : [10, 46];
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const step = width / Math.max(values.length, 12);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(above + below + 22));
  const rects = values.map((value, i) => {
    const down = turns ? value : -value;
    const length = Math.max(1, (Math.abs(value) / most) * (down >= 0 ? below : above));
    return make(svg, "rect", {
      x: i * step + 0.5,
      y: down >= 0 ? above : above - length,
      width: Math.max(1, step - 1.5),
      height: length,
    });
  });
  const texts = names
    .slice(0, 3)
    .map((name, i) =>
      make(
        svg,
        "text",
        { y: above + (Math.abs(values[i]) / most) * below + (i ? 13 : 14) * unit, "font-size": 12 * unit },
        name,
      ),
    );
  pen ??= document.createElement("canvas").getContext("2d");
  /** @param {number} i @param {number} at */
  const paint = (i, at) =>
    rects[i]?.setAttribute(
      "fill",
      i === at ? palette.query : values[i] > 0 && !turns ? palette.ahead[3] : palette.ramp[3],
    );
  // A chosen name is bold, which moves those beside it.
  /** @param {number} at */
  const name = (at) => {
    let last = -1;
    texts.forEach((text, i) => {
      const x = Math.max(i * step, last + 8);
      const weight = i === at ? 650 : 400;
      text.setAttribute("x", x.toFixed(2));
      text.setAttribute("font-weight", String(weight));
      text.setAttribute("fill", i === at ? palette.ink : palette.mute);
      if (pen) pen.font = `${weight} ${12 * unit}px ${family}`;
      last = x + (pen ? pen.measureText(names[i]).width : 40);
    });
  };
  rects.forEach((_, i) => paint(i, chosen));
  name(chosen);
  return {
    /** @param {number} now */
    choose: (now) => {
      const before = chosen;
      chosen = now;
      paint(before, now);
      paint(now, now);
      if (Math.min(before, now) < texts.length) name(now);
    },
    at: (/** @type {number} */ x) => (x >= 0 && x < step * values.length ? Math.floor(x / step) : -1),
  };
}
