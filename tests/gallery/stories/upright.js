// Bars that stand on a line or hang from it, with an axis of round steps beside them.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { Pen } from "../../../app/kit/browser/pen.js";
import { upright } from "../../../app/kit/browser/picture/bars.js";
import { linear, logarithmic, signs, ticks } from "../../../app/kit/browser/picture/scale.js";
import { draw, path } from "../../../app/kit/browser/picture/svg.js";
import { drawShapes, text } from "../../../app/kit/browser/scene.js";

const VALUES = [-38, -21, -9, -2, 0, 3, NaN, 14, 27];

/** @type {import("../story.js").Story} */
export default {
  title: "changes in order, outlined what was before; a curve on a logarithmic axis",
  style: STYLE,
  width: "36rem",
  mount(root, { palette }) {
    const svg = draw(root, "svg", { width: 520, height: 130, viewBox: "0 0 520 130" });
    const y = linear(-40, 40, 120, 10);
    const { more, less } = signs(palette);
    const bars = { x: (/** @type {number} */ i) => 60 + 20 * i, base: y(0), high: (/** @type {number} */ value) => y(0) - y(value) };
    const loss = logarithmic(0.01, 4, 120, 10);
    drawShapes(new Pen(draw(svg, "g")), [
      ...ticks(-40, 40).map((tick) => text(36, y(tick), [[String(tick).replace("-", "−"), palette.mute]], 12, { anchor: "end" })),
      ...upright({ ...bars, values: VALUES, wide: 12, fill: (i) => (VALUES[i] < 0 ? less : more), radius: 2 }),
      ...upright({ ...bars, values: VALUES.map((value) => value / 2), wide: 16, stroke: palette.ink, line: 1 }),
      ...[0.01, 0.1, 1].map((tick) => text(296, loss(tick), [[String(tick), palette.mute]], 12, { anchor: "end" })),
    ]);
    const points = Array.from({ length: 40 }, (_, i) => /** @type {[number, number]} */ ([304 + 5 * i, loss(3 * Math.exp(-i / 8))]));
    draw(svg, "path", { d: path(points), fill: "none", stroke: palette.proof, "stroke-width": 2 });
  },
};
