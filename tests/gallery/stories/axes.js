// A curve with its axes.

import { STYLE } from "../../../app/rooms/whatif/browser/constants.js";
import { linear, ticks } from "../../../app/kit/browser/picture/scale.js";
import { across, below, curve, drop } from "../../../app/kit/browser/picture/axes.js";
import { draw } from "../../../app/kit/browser/picture/svg.js";

/** @type {import("../story.js").Story} */
export default {
  title: "lines across with numbers, the one of 0 stronger; numbers below; two curves, and a point over the axis",
  style: STYLE,
  width: "26rem",
  mount(root) {
    const svg = draw(root, "svg", { width: 400, height: 190, "aria-hidden": "true" });
    const [x, y] = [linear(0, 30, 44, 380), linear(-1, 1, 150, 12)];
    across(svg, ticks(-1, 1), { y, from: 44, to: 380, size: 13 });
    below(svg, ticks(0, 30), { x, y: 176, size: 13 });
    const points = (/** @type {(at: number) => number} */ of) =>
      Array.from({ length: 61 }, (_, i) => /** @type {[number, number]} */ ([x(i / 2), y(of(i / 2))]));
    curve(svg, points((at) => Math.cos(at / 3)), "var(--bar)");
    curve(svg, points((at) => Math.cos(at / 9) / 2), "var(--query)", 2, "6 3");
    drop(svg, [x(18), y(Math.cos(6))], 150, "var(--key)");
  },
};
