// Above column and curve: the line of what there is, where the curve meets it, what the model was taught, and the orange handle. Below
// them the axis of tokens.

import { clamp } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { widthOf } from "../../../kit/browser/scene.js";
import { WORDS as words } from "./constants.js";
import { halo, stripes } from "./draw.js";
import { free } from "./places.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./draw.js").Geometry} Geometry */

/** The mark where the curve meets the line, if it may be seen. @param {Shown} shown */
const met = ({ data: { crossing, budget, axis }, isHidden, isSecret }) =>
  isHidden || isSecret || budget.bytes > axis.top || !crossing || crossing.n > axis.ends ? null : crossing;

/** Where a number below the axis is said, and how wide it is. @param {import("./types.js").Mark} mark @param {Geometry} at */
function below({ n, text }, { x, bold, font, within }) {
  const width = widthOf(text, bold, font, 700);
  return { x: within(x(n), width), width };
}

/** Whether the numbers of the handle and of the crossing have room for each other below the axis. @param {Shown} shown @param {Geometry} at */
function isApart(shown, at) {
  const crossing = met(shown);
  if (!crossing) return false;
  const [one, other] = [below(crossing, at), below({ n: shown.place.n, text: shown.place.tokens }, at)];
  return Math.abs(one.x - other.x) >= (one.width + other.width) / 2 + 0.4 * at.r;
}

/** @param {SVGSVGElement} picture @param {Shown} shown @param {Geometry} at */
export function drawAxis(picture, shown, at) {
  const { data, palette, place } = shown;
  const { x0, x1, y0, x, text, bold, r, font } = at;
  const pen = new Pen(picture);
  const low = y0 + text * 1.5;
  pen.draw("line", { x1: x0, x2: x1, y1: y0, y2: y0, stroke: palette.ink, "stroke-width": 1.4 });
  const strong = { y: low, "text-anchor": "middle", "font-size": bold, "font-weight": 700 };
  const held = below({ n: place.n, text: place.tokens }, at);
  const taken = [held];
  const crossing = met(shown);
  if (crossing && isApart(shown, at)) {
    const found = below(crossing, at);
    taken.push(found);
    pen.draw("text", { x: found.x, ...strong, fill: palette.ink }, { text: crossing.text });
  }
  const quiet = { y: low, "font-size": text, fill: palette.mute };
  const ticks = data.axis.nticks.map(({ n, text: said }) => ({ said, x: x(n), width: widthOf(said, text, font) }));
  const isFree = free(ticks, taken, 0.6 * r);
  ticks.forEach((tick, i) => {
    pen.draw("line", { x1: tick.x, x2: tick.x, y1: y0, y2: y0 + 5, stroke: palette.mute });
    if (isFree[i] && tick.x + tick.width / 2 <= at.width)
      pen.draw("text", { x: tick.x, ...quiet, "text-anchor": "middle" }, { text: tick.said });
  });
  if (held.x - held.width / 2 > x0)
    pen.draw("text", { x: x0 - 0.5 * r, ...quiet, "text-anchor": "end" }, { text: data.axis.name });
  pen.draw("text", { x: held.x, ...strong, fill: palette.query, ...halo(palette, 4) }, { text: place.tokens });
  pen.end();
  picture.setAttribute("aria-label", `${data.axis.name}: ${place.tokens}`);
}

/** @param {SVGGElement} group @param {Shown} shown @param {Geometry} at */
export function drawFront(group, shown, at) {
  const { data, palette, guess, isHidden } = shown;
  const { left, x0, x1, top, y0, x, y, bold, r, font } = at;
  const { budget, axis } = data;
  const pen = new Pen(group);
  const inside = new Pen(pen.draw("defs", {}));
  stripes(inside, "kept-stripes", palette.hatch, 6, 2.4);
  inside.end();
  const line = y(budget.bytes);
  const edge = budget.kept ? Math.max(top, y(budget.bytes + budget.kept.bytes)) : line;
  const mark = isHidden ? null : (data.table ?? data.taught);
  const stands = mark && mark.n <= axis.ends ? mark : null;
  if (stands) {
    const upright = { x1: x(stands.n), x2: x(stands.n), y1: top, y2: y0 };
    pen.draw("line", { ...upright, stroke: palette.mute, "stroke-dasharray": "3 4" });
  }
  const isNear = budget.bytes <= axis.top;
  if (isNear && line - edge > 0.5) {
    const box = { x: left, y: edge, width: x1 - left, height: line - edge };
    pen.draw("rect", { ...box, fill: palette.background, "fill-opacity": 0.6 });
    pen.draw("rect", { ...box, fill: "url(#kept-stripes)", "fill-opacity": 0.75 });
  }
  if (isNear) {
    const thick = { stroke: palette.ink, "stroke-width": at.line };
    pen.draw("line", { x1: left - 0.4 * r, x2: x1, y1: line, y2: line, ...thick });
  }
  if (stands) drawMark(pen, stands, shown, at);
  const crossing = met(shown);
  if (crossing) {
    const upright = { x1: x(crossing.n), x2: x(crossing.n), y1: line, y2: y0 };
    pen.draw("line", { ...upright, stroke: palette.ink, "stroke-dasharray": "2 3" });
    if (!isApart(shown, at)) {
      // there is no room for it below the axis
      const wide = widthOf(crossing.text, bold, font, 700);
      const isLeft = crossing.n <= shown.place.n && x(crossing.n) - wide - 0.6 * r > x0;
      const how = { "text-anchor": isLeft ? "end" : "start", "font-size": bold, "font-weight": 700, fill: palette.ink };
      const where = { x: x(crossing.n) + (isLeft ? -0.45 : 0.45) * r, y: y0 - (stands ? 1.9 : 0.6) * r };
      pen.draw("text", { ...where, ...how, ...halo(palette, 4) }, { text: crossing.text });
    }
  }
  if (guess && !isHidden) {
    const dots = { "stroke-width": 0.2 * r, "stroke-dasharray": `1 ${0.4 * r}`, "stroke-linecap": "round" };
    pen.draw("line", { x1: x(guess.n), x2: x(guess.n), y1: top, y2: y0, stroke: palette.query, ...dots });
    const how = { "text-anchor": "middle", "font-size": bold, "font-weight": 650, fill: palette.query };
    const middle = at.within(x(guess.n), widthOf(guess.text, bold, font, 650));
    pen.draw("text", { x: middle, y: top - 0.35 * r, ...how, ...halo(palette, 4) }, { text: guess.text });
  }
  if (crossing) {
    const ring = { r: 0.43 * r, fill: palette.background, stroke: palette.ink, "stroke-width": at.line };
    pen.draw("circle", { cx: x(crossing.n), cy: line, ...ring });
  }
  pen.end();
}

// The lengths that the model was taught, or the end of its table: beside its line, and where the handle is not
/** @param {Pen} pen @param {import("./types.js").Mark} mark @param {Shown} shown @param {Geometry} at */
function drawMark(pen, mark, { palette, place, guess }, { x0, x1, top, y0, x, text, r, font }) {
  const [here, handle, wide] = [x(mark.n), x(place.n), widthOf(mark.text, text, font) + 0.7 * r];
  const right = here + wide < x1 && !(handle > here + 2 && handle < here + wide);
  const left = here - wide > x0 && !(handle < here - 2 && handle > here - wide);
  if (!right && !left && guess) return; // which is said there
  const isRight = right || (!left && here + wide < x1);
  pen.draw(
    "text",
    {
      x: here + (isRight ? 0.35 : -0.35) * r,
      y: right || left ? y0 - 0.6 * r : top + text * 0.6,
      "text-anchor": isRight ? "start" : "end",
      "font-size": text,
      fill: palette.ink,
      ...halo(palette, 3.4),
    },
    { text: mark.text },
  );
}

// The name of the line: at its left above what is still free, or else at its right. Where it is far above the picture, how far.
/** @param {SVGGElement} group @param {Shown} shown @param {Geometry} at */
export function drawName(group, shown, { x0, x1, top, x, y, text, bold, r, font, width }) {
  const { data, palette, place, isHidden, isSlim } = shown;
  const { budget, axis } = data;
  const isFar = budget.bytes > axis.top;
  const { label } = budget;
  const rest = isFar ? axis.more : budget.kept && !isSlim ? ` + ${budget.kept.label}` : "";
  const more = isFar && rest.startsWith(label) ? rest.slice(label.length) : rest;
  const first = isFar && !rest.startsWith(label) ? "" : label;
  const wide = widthOf(first, bold, font, 650);
  const all = wide + widthOf(more, text, font);
  const crossing = met(shown);
  const upTo = crossing ? x(crossing.n) : isHidden ? x(place.n) : x1;
  const isLeft = !isFar && upTo - x0 > wide + 1.2 * r;
  const isWhole = isFar || (isLeft && upTo - x0 > all + 1.2 * r);
  const edge = isFar ? top : Math.max(top, y(budget.bytes + (budget.kept?.bytes ?? 0)));
  const how = {
    x: isLeft ? x0 + 0.2 * r : isFar && all > x1 - x0 ? width : x1,
    y: edge - 0.45 * r,
    "text-anchor": isLeft ? "start" : "end",
    "font-size": bold,
    style: "white-space: pre",
    ...halo(palette, 0.33 * r),
  };
  const pen = new Pen(group);
  const said = new Pen(pen.draw("text", how));
  said.draw("tspan", { fill: palette.ink, "font-weight": 650 }, { text: first });
  if (more && isWhole) said.draw("tspan", { fill: palette.mute, "font-size": text }, { text: more });
  said.end();
  pen.end();
}

/** @param {SVGGElement} group @param {Shown} shown @param {Geometry} at */
export function drawHandle(group, shown, { top, y0, x, y, r, height }) {
  const { data, palette, place, isHidden, isSecret, label } = shown;
  const here = x(place.n);
  const high = isHidden || isSecret ? top : clamp(y(place.all), top, y0);
  const pen = new Pen(group);
  pen.draw("rect", { x: here - 22, y: top, width: 44, height: height - top, fill: "transparent" });
  const stroke = { stroke: palette.query, "stroke-width": 0.2 * r };
  pen.draw("line", { x1: here, x2: here, y1: high, y2: y0, ...stroke });
  if (!isHidden && !isSecret) {
    const ring = { r: 0.37 * r, fill: palette.query, stroke: palette.background, "stroke-width": 2 };
    pen.draw("circle", { cx: here, cy: high, ...ring });
  }
  const tall = 0.58 * r;
  const grip = { x: here - tall, y: y0 - tall / 2, width: 2 * tall, height: tall, rx: tall / 2 };
  pen.draw("rect", { ...grip, fill: palette.query, class: "grip" });
  pen.end();
  const said = isHidden || !label ? place.tokens : `${place.tokens}. ${label}`;
  for (const [name, text] of Object.entries({
    "aria-label": isHidden ? words.guess : words.handle,
    "aria-valuemin": "1",
    "aria-valuemax": String(data.axis.ends),
    "aria-valuenow": String(place.n),
    "aria-valuetext": said,
  }))
    if (group.getAttribute(name) !== text) group.setAttribute(name, text);
}
