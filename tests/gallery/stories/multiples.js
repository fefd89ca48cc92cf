// Small maps side by side: all at once as they were painted, and two of them copied from there.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { add } from "../../../app/kit/browser/dom.js";
import { paintOn } from "../../../app/kit/browser/picture/canvas.js";
import { copyOne, multiples } from "../../../app/kit/browser/picture/multiples.js";
import { rising } from "../../../app/kit/browser/picture/scale.js";

/** @type {import("../story.js").Story} */
export default {
  title: "two rows of five small maps, and two of them again, larger",
  style: STYLE,
  width: "30rem",
  mount(root, { palette }) {
    const scale = rising(palette);
    const all = multiples({
      down: 2,
      across: 5,
      rows: 6,
      columns: 6,
      gap: [1, 1],
      of: (i, j) => (row, column) => scale(column === Math.max(0, row - j) ? 1 : i * 0.4).packed,
    });
    paintOn(add(root, "canvas"), 350, 140, (context) => {
      context.imageSmoothingEnabled = false;
      context.drawImage(all.canvas, 0, 0, 350, 140);
    });
    paintOn(add(root, "canvas"), 210, 100, (context) => {
      copyOne(context, all, 0, 2, 0, 10, 90);
      copyOne(context, all, 1, 4, 110, 10, 90);
    });
  },
};
