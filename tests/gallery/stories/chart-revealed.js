// The votes of a class beside the head's own weights, with those of the round before.

import { Chart } from "../../../app/classroom/browser/chart.js";
import { STYLE } from "../../../app/classroom/browser/constants.js";
import { paint } from "../../../app/classroom/browser/parts.js";
import { colours } from "../../../app/kit/browser/colours.js";
import { ASKED, COUNTS, WEIGHTS } from "../data/question.js";

/** @type {import("../story.js").Story} */
export default {
  title: "votes beside the head’s own weights",
  style: STYLE,
  root: "classroom",
  mount(root, { palette }) {
    paint(root, palette);
    root.style.setProperty("--top", "0rem");
    root.style.paddingTop = "2rem"; // its legend stands above it
    const { css } = colours(palette.ramp);
    const chart = new Chart(root, { colour: (p) => css[Math.round(255 * p)] });
    const before = { votes: [0.1, 0, 0.5, 0, 0, 0.4], weights: [0.2, 0, 0.3, 0, 0.5, 0], word: "tired" };
    chart.draw(/** @type {any} */ (ASKED), { of: 24, counts: COUNTS, hidden: false, weights: WEIGHTS, before });
  },
};
