// The rows of a head on a phone, small, from which the asked row is guessed. The asked row itself is covered, and has not been sent.

import { described, el } from "../../kit/browser/dom.js";
import { draw, svg } from "../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";

const WIDTH = 360;
const LETTER = 7.6; // of the type, about
const NAMES = 92; // px for the longest name
const ROW = 14;
const LEVELS = 35; // of the sign of a weight

/** @param {import("./types.js").Rows} rows @param {number | null} mine the key that was said */
export function map({ queries, keys, row, rows }, mine) {
  const longest = (/** @type {string[]} */ labels) =>
    Math.min(NAMES, LETTER * Math.max(...labels.map((label) => label.length)) + 6);
  const [left, top] = [longest(queries), longest(keys)];
  const wide = Math.min(2.4 * ROW, (WIDTH - left) / keys.length);
  const down = Math.min(ROW, wide);
  const height = top + down * queries.length + 2;
  const box = el("div", "evidence");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}` });
  keys.forEach((label, k) => {
    const [x, y] = [left + (k + 0.5) * wide + 4, top - 4];
    const look = k === mine ? "mine" : "";
    draw(drawing, "text", { x, y, transform: `rotate(-90 ${x} ${y})`, class: look }, label);
  });
  queries.forEach((label, q) => {
    const y = top + q * down;
    const isAsked = q === row;
    draw(drawing, "text", { x: left - 5, y: y + down - 3, class: isAsked ? "asked end" : "end" }, label);
    [...rows[q]].forEach((sign, k) => {
      const part = Number.parseInt(sign, LEVELS + 1) / LEVELS;
      draw(drawing, "rect", {
        x: left + k * wide,
        y,
        width: wide - 1,
        height: down - 1,
        class: "cell",
        "fill-opacity": (0.05 + 0.95 * part).toFixed(2),
      });
    });
    if (!isAsked) return;
    draw(drawing, "rect", { x: left, y, width: keys.length * wide - 1, height: down - 1, class: "covered" });
    const at = left + ((mine ?? keys.length / 2 - 0.5) + 0.5) * wide;
    draw(drawing, "text", { x: at, y: y + down - 3, class: "unknown" }, "?");
  });
  box.append(drawing);
  return described(box, "img", words.step_rows);
}
