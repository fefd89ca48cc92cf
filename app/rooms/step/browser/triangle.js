// An addition as a triangle: the stream, what is added to its end, and both together, in true lengths and at their true angle.

import { cover } from "../../../kit/browser/cover.js";
import { fill } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { draw, set, svg as element } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { length } from "./sums.js";

// The angle between two vectors, in radians
/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export function angleOf(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return Math.acos(Math.max(-1, Math.min(1, sum / (length(a) * length(b) || 1))));
}

/**
 * Drawn below `top`; returns what draws it with a share of the added vector.
 * @param {import("./sheet.js").Sheet} sheet @param {number} top @param {ArrayLike<number>} before @param {ArrayLike<number>} added @param {string} what
 */
export function triangle(sheet, top, before, added, what) {
  const { r, paint } = sheet;
  const [a, b, angle] = [length(before), length(added), angleOf(before, added)];
  const [x, y] = [a + b * Math.cos(angle), b * Math.sin(angle)];
  const [low, high] = [Math.min(0, x), Math.max(a, x)];
  const side = Math.min(120 * r, sheet.width / 8);
  const room = { width: sheet.width - 2 * side, height: Math.max(60, sheet.height - top - 56 * r) };
  const unit = Math.min(room.width / (high - low || 1), room.height / (y || 1e-9));
  const [left, ground] = [side + (room.width - (high - low) * unit) / 2 - low * unit, top + 22 * r + room.height];
  const svg = element("svg", { class: "over", "aria-hidden": "true", width: sheet.width, height: sheet.height });
  const line = (/** @type {string} */ colour, /** @type {number} */ wide) =>
    draw(svg, "path", { stroke: paint.css(colour), "stroke-width": wide * r, fill: "none", "stroke-linecap": "round" });
  const [stream, both, more] = [line("d_model", 4), line("query", 4), line("ink", 4)];
  const tip = draw(svg, "circle", { r: 5 * r, fill: paint.css("query") });
  const at = (/** @type {number} */ px, /** @type {number} */ py) => `${left + px * unit} ${ground - py * unit}`;
  set(stream, { d: `M${at(0, 0)}L${at(a, 0)}` });
  sheet.host.append(svg);
  /** @param {number} px @param {number} py @param {string} className @param {string} text */
  const say = (px, py, className, text) => {
    const wide = 240 * r;
    sheet.label(
      Math.max(0, Math.min(sheet.width - wide, left + px * unit - wide / 2)),
      py,
      `c ${className}`,
      text,
      wide,
    );
  };
  say(a / 2, ground + 14 * r, "", fill(words.vector_of, { what: words.stream, x: long(a) }));
  sheet.label(
    Math.min(sheet.width - 200 * r, left + Math.max(a, x) * unit + 14 * r), // to the right of the whole triangle
    ground - (y / 2) * unit,
    "",
    fill(words.vector_of, { what: fill(words.adds, { what }), x: long(b) }),
    200 * r,
  );
  const hides = cover.hides("bar"); // how long both are together
  const together = length(Float64Array.from(before, (v, i) => v + added[i]));
  say(
    x / 2 - 60 / unit,
    ground - (y / 2) * unit - 14 * r,
    "q here",
    fill(words.vector_of, { what: words.together, x: hides ? "?" : long(together) }),
  );
  return (/** @type {number} */ share) => {
    const [px, py] = [a + (x - a) * share, y * share];
    set(more, { d: `M${at(a, 0)}L${at(px, py)}` });
    if (!hides) set(both, { d: `M${at(0, 0)}L${at(px, py)}` });
    set(tip, { cx: left + px * unit, cy: ground - py * unit });
  };
}
