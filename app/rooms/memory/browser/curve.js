// The curve: the same question at every length, its parts on each other, and what of it is more than there is.

import { fill } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { WORDS as words } from "./constants.js";
import { look, stripes } from "./draw.js";

/** @typedef {[x: number, y: number][]} Line */

const PALE = 0.42; // of a part, beside the same in the column

/** @param {Line} line */
const points = (line) => line.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");

/** @param {SVGSVGElement} picture @param {import("./types.js").Shown} shown @param {import("./draw.js").Geometry} at */
export function drawCurve(picture, shown, at) {
  const { data, palette, isHidden } = shown;
  const { x0, x1, top, y0, y, text, r } = at;
  const pen = new Pen(picture);
  const inside = new Pen(pen.draw("defs", {}));
  stripes(inside, "over-stripes", palette.over, 7, 2.4);
  const line = Math.max(top, y(data.budget.bytes));
  const box = { x: x0, y: top, width: x1 - x0 };
  for (const [id, height] of /** @type {const} */ ([
    ["all-lengths", y0 - top],
    ["beyond-line", line - top],
  ])) {
    const clip = new Pen(inside.draw("clipPath", { id }));
    clip.draw("rect", { ...box, height });
    clip.end();
  }
  inside.end();
  for (const { bytes, text: said } of data.axis.ticks) {
    const level = y(bytes);
    pen.draw("line", { x1: x0, x2: x1, y1: level, y2: level, stroke: palette.line });
    const isMet = Math.abs(level - y(data.budget.bytes)) < text * 0.8;
    const how = { "font-size": text, "text-anchor": "end", fill: palette.mute };
    pen.draw("text", { x: x0 - 0.5 * r, y: level + text * 0.34, ...how }, { text: isMet ? "" : said });
  }
  if (!isHidden) areas(pen, shown, at);
  pen.end();
  picture.setAttribute(
    "aria-label",
    isHidden || !shown.label ? words.curve : fill(words.figure, { verdict: shown.label }),
  );
}

/** @param {Pen} pen @param {import("./types.js").Shown} shown @param {import("./draw.js").Geometry} at */
function areas(pen, shown, { x0, x1, top, y0, x, y }) {
  const { data, palette } = shown;
  const ends = Math.min(data.table?.n ?? Infinity, data.axis.ends); // beyond a table there is nothing
  const places = data.places.filter(({ n }) => n <= ends);
  const across = places.map(({ n }) => x(n));
  const group = new Pen(pen.draw("g", { "clip-path": "url(#all-lengths)" }));
  let below = places.map(() => 0);
  data.parts.forEach(({ id }, i) => {
    const above = places.map(({ bytes }, j) => below[j] + bytes[i]);
    const upper = /** @type {Line} */ (across.map((at, j) => [at, y(above[j])]));
    const lower = /** @type {Line} */ (across.map((at, j) => [at, y(below[j])]));
    const how = look(id, shown);
    const outline = points([...upper, ...lower.reverse()]);
    group.draw("polygon", { points: outline, ...how, "fill-opacity": how["fill-opacity"] * PALE });
    below = above;
  });
  const curve = /** @type {Line} */ (across.map((at, j) => [at, y(places[j].all)]));
  group.draw("polyline", { points: points(curve), fill: "none", stroke: palette.ink, "stroke-width": 2 });
  group.end();
  const beyond = new Pen(pen.draw("g", { "clip-path": "url(#beyond-line)" }));
  const veil = { fill: palette.background, "fill-opacity": 0.55 };
  beyond.draw("rect", { x: x0, y: top, width: x1 - x0, height: y0 - top, ...veil });
  const under = /** @type {Line} */ ([...curve, [across[across.length - 1], y0], [across[0], y0]]);
  beyond.draw("polygon", { points: points(under), fill: "url(#over-stripes)", "fill-opacity": 0.36 });
  beyond.end();
}
