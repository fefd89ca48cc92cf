// What a pen draws, over what it drew before.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { Pen } from "../../../app/kit/browser/pen.js";
import { draw as svgOf } from "../../../app/kit/browser/picture/svg.js";

/** @type {import("../story.js").Story} */
export default {
  title: "shapes that were drawn twice: what is new stays, what is gone goes",
  style: STYLE,
  width: "24rem",
  mount(root, { palette }) {
    const svg = svgOf(root, "svg", { viewBox: "0 0 300 80", width: 300 });
    /** @param {number[]} values @param {string} fill */
    const draw = (values, fill) => {
      const pen = new Pen(svg);
      values.forEach((value, i) => pen.draw("rect", { x: 10 + 40 * i, y: 70 - value, width: 30, height: value, fill }));
      pen.draw("text", { x: 210, y: 40, "font-size": 14, fill: palette.ink }, { text: `${values.length} bars` });
      pen.end();
    };
    draw([20, 60, 40, 10, 30], palette.key);
    draw([50, 30, 60], palette.query);
  },
};
