// A table of numbers in the box that it scrolls in.

import { tableBox } from "../../../app/kit/browser/table.js";
import { STYLE } from "../../../app/rooms/whatif/browser/constants.js";

/** @type {import("../story.js").Story} */
export default {
  title: "rows with names, texts at the left and numbers at the right, a cell set off, and what only the file has",
  style: STYLE,
  width: "30rem",
  mount(root) {
    const rows = Array.from({ length: 420 }, (_, i) => [`token ${i}`, i, (-1) ** i / (i + 1) ** 3, `${(100 / (i + 2)).toFixed(1)} %`]);
    root.append(tableBox("What a row looks at", ["key", "position", "score", "weight"], rows, (i, j) => (i === 1 && j === 3 ? "key" : "")));
    /** @type {HTMLElement} */ (root.firstElementChild).style.maxHeight = "9rem";
    root.append(tableBox("A corner without a name", ["", "masked", "not masked"], [["share", 0, 0.25], ["cosine", 1, 0.82]]));
  },
};
