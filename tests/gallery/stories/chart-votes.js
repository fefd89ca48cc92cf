// The votes of a class, before the head's own weights are uncovered.

import { Chart } from "../../../app/classroom/browser/chart.js";
import { STYLE } from "../../../app/classroom/browser/constants.js";
import { paint } from "../../../app/classroom/browser/parts.js";
import { colours } from "../../../app/kit/browser/colours.js";
import { ASKED, COUNTS } from "../data/question.js";

/** @type {import("../story.js").Story} */
export default {
  title: "the votes of a class",
  style: STYLE,
  root: "classroom",
  mount(root, { palette }) {
    paint(root, palette);
    root.style.setProperty("--top", "0rem");
    root.style.paddingTop = "2rem"; // its legend stands above it
    const { css } = colours(palette.ramp);
    const chart = new Chart(root, { colour: (p) => css[Math.round(255 * p)] });
    chart.draw(/** @type {any} */ (ASKED), { of: 24, counts: COUNTS, hidden: false, weights: null, before: null });
  },
};
