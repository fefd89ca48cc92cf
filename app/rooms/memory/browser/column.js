// The column: what this question takes, part by part, beside it what each part is.

import { Pen } from "../../../kit/browser/pen.js";
import { WORDS as words } from "./constants.js";
import { halo, look, stripes } from "./draw.js";
import { spread } from "./places.js";

/** @typedef {import("./draw.js").Geometry} Geometry */
/** @typedef {{title: string, size: string, help: string, middle: number}} Label */

/** @param {SVGSVGElement} picture @param {import("./types.js").Shown} shown @param {Geometry} at */
export function drawColumn(picture, shown, at) {
  const { data, palette, place, isHidden } = shown;
  const { left, wide, top, y0, y } = at;
  const { budget, axis } = data;
  const pen = new Pen(picture);
  const inside = new Pen(pen.draw("defs", {}));
  stripes(inside, "much-stripes", palette.background, 9, 3);
  inside.end();
  const ground = { x: left, width: wide, rx: 3, fill: palette.mute, "fill-opacity": 0.12 };
  const edge = Math.max(top, y(budget.bytes + (budget.kept?.bytes ?? 0)));
  pen.draw("rect", { ...ground, y: edge, height: y0 - edge });
  const labels = parts(pen, shown, at);
  if (place.over && !isHidden) {
    const [from, to] = [Math.max(top, y(place.all)), Math.max(top, y(budget.bytes))];
    const box = { x: left, y: from, width: wide, height: Math.max(0, to - from) };
    pen.draw("rect", { ...box, fill: palette.over, "fill-opacity": 0.6 });
    pen.draw("rect", { ...box, fill: "url(#much-stripes)", "fill-opacity": 0.55 });
    pen.draw("rect", { ...box, fill: "none", stroke: palette.over, "stroke-width": 2 });
  }
  const isTorn = place.all > axis.top && !isHidden;
  if (isTorn) {
    const [dx, dy] = [wide / 4, 6];
    const tear = `M${left - 4} ${top + 8}l${dx + 4} ${-dy}l${dx} ${dy}l${dx} ${-dy}l${dx + 4} ${dy}`;
    pen.draw("path", { d: tear, fill: "none", stroke: palette.background, "stroke-width": 5 });
  }
  names(pen, labels, shown, at);
  if (!isHidden) {
    const [all, line] = [y(place.all), y(budget.bytes)];
    const isMet = !place.over && line >= top && all - 1.4 * at.bold < line; // the line would go through it
    const level = isTorn ? top : isMet ? edge : all;
    const how = { x: left + wide / 2, "text-anchor": "middle", "font-size": at.bold, "font-weight": 700 };
    const colour = { fill: place.over ? palette.over : palette.ink, ...halo(palette, 4) };
    const said = `${isTorn ? "↑ " : ""}${place.total}`;
    pen.draw("text", { ...how, ...colour, y: level - 0.42 * at.r }, { text: said });
  }
  pen.end();
  const said = labels.map(({ title, size }) => `${title} ${size}`);
  picture.setAttribute("aria-label", [words.column, ...said].join(". "));
}

// Before a prediction only the weights are there
/** @param {Pen} pen @param {import("./types.js").Shown} shown @param {Geometry} at @returns {Label[]} */
function parts(pen, shown, { left, wide, top, y }) {
  const { data, place, isHidden } = shown;
  let sum = 0;
  /** @type {Label[]} */
  const labels = [];
  data.parts.forEach(({ id, title, help }, i) => {
    const bytes = place.bytes[i];
    if (!bytes || (isHidden && id !== "weights")) return;
    const below = Math.max(top, y(sum));
    sum += bytes;
    const above = Math.max(top, y(sum));
    if (below - above > 0.3) {
      const box = { x: left, y: above, width: wide, height: Math.max(1, below - above - 0.8) };
      const said = `${title}: ${place.sizes[i]}. ${help}`;
      pen.draw("rect", { ...box, ...look(id, shown) }, { title: said });
    }
    labels.push({ title, size: place.sizes[i], help, middle: (below + above) / 2 });
  });
  return labels;
}

/** @param {Pen} pen @param {Label[]} labels @param {import("./types.js").Shown} shown @param {Geometry} at */
function names(pen, labels, { palette }, { left, r, text, bold, top, y0 }) {
  const middles = labels.map(({ middle }) => middle);
  const levels = spread(middles, text * 2.15, top - 0.6 * r, y0 + 0.3 * r);
  labels.forEach(({ title, size, middle }, i) => {
    const level = levels[i];
    const how = { x: left - 0.9 * r, "text-anchor": "end" };
    pen.draw("text", { ...how, y: level - text * 0.12, "font-size": text, fill: palette.mute }, { text: title });
    const strong = { "font-size": bold, "font-weight": 650, fill: palette.ink };
    pen.draw("text", { ...how, y: level + text * 0.86, ...strong }, { text: size });
    const leader = `M${left - 0.72 * r} ${(level + text * 0.3).toFixed(1)}L${left - 0.15 * r} ${middle.toFixed(1)}`;
    pen.draw("path", { d: leader, stroke: palette.mute, fill: "none" });
  });
}
