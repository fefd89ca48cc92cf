// A curve and its axes as SVG: lines across with their numbers at the left, numbers below, and the line through the points.

import { minus } from "../dom.js";
import { draw, path, write } from "./svg.js";

const MIDDLE = 0.35; // of the size of the type: from the middle of its letters down to the line they stand on

/** @typedef {(value: number) => string} Say what a value is called */

// A line across for each value, the one of 0 stronger, and what it is called at its left; without `size` nothing is
/** @param {Element} parent @param {number[]} values @param {{y: (value: number) => number, from: number, to: number, size?: number, say?: Say}} at */
export function across(parent, values, { y, from, to, size = 0, say = minus }) {
  for (const value of values) {
    draw(parent, "path", { d: `M${from} ${y(value)}H${to}`, stroke: "var(--line)", "stroke-width": value ? 1 : 1.6 });
    if (size)
      write(parent, from - 0.6 * size, y(value) + MIDDLE * size, say(value), {
        anchor: "end",
        size,
        fill: "var(--mute)",
      });
  }
}

// What values are called, below a picture. y: what the letters stand on
/** @param {Element} parent @param {number[]} values @param {{x: (value: number) => number, y: number, size: number, say?: Say}} at */
export function below(parent, values, { x, y, size, say = minus }) {
  for (const value of values) write(parent, x(value), y, say(value), { anchor: "middle", size, fill: "var(--mute)" });
}

// A line through points; one from a point down to an axis is dashed
/** @param {Element} parent @param {[x: number, y: number][]} points @param {string} stroke @param {number} [width] @param {string} [dash] */
export const curve = (parent, points, stroke, width = 2.2, dash) =>
  draw(parent, "path", {
    d: path(points),
    fill: "none",
    stroke,
    "stroke-width": width,
    "stroke-linejoin": "round",
    "stroke-dasharray": dash,
  });
/** @param {Element} parent @param {[x: number, y: number]} from @param {number} to @param {string} stroke */
export const drop = (parent, [x, y], to, stroke) =>
  curve(
    parent,
    [
      [x, y],
      [x, to],
    ],
    stroke,
    1.5,
    "3 3",
  );
