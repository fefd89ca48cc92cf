// A file of what is on the page: rows of text with their small drawings, as the SVG that is saved.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { add } from "../../../app/kit/browser/dom.js";
import { rows, svg } from "../../../app/kit/browser/drawing.js";
import { Bars } from "../../../app/kit/browser/picture/bars.js";

/** @type {import("../story.js").Story} */
export default {
  title: "rows of the page, and below them the file that is saved of them",
  style: STYLE,
  width: "30rem",
  async mount(root, { palette }) {
    const box = add(root, "div");
    new Bars(box, "looks").draw("looks at", [{ label: "animal", className: "k", at: 0.68, value: "68 %" }, { label: "it", className: "k", at: 0.06, value: "6 %" }]);
    const about = { title: "What “it” looks at", alt: "", caption: "Headlight · a sentence about where this is from.", snippet: "", name: "" };
    const drawn = svg(rows([box]), about, palette);
    const image = add(root, "img");
    image.alt = "";
    image.style.maxWidth = "100%";
    image.src = `data:image/svg+xml,${encodeURIComponent(drawn.text)}`;
    await image.decode();
  },
};
