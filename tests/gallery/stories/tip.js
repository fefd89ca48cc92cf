// The words beside the pointer: at the edge they stay inside.

import { el } from "../../../app/kit/browser/dom.js";
import { Tip } from "../../../app/kit/browser/tip.js";
import { STYLE } from "../../../app/rooms/whatif/browser/constants.js";

/** @type {import("../story.js").Story} */
export default {
  title: "beside a cell, and beside one at the right edge",
  style: STYLE,
  width: "24rem",
  mount(root) {
    root.style.minHeight = "5rem";
    root.scrollIntoView(); // with room below it in the window
    const { left, right, top } = root.getBoundingClientRect();
    const said = [el("span", "q", "it"), " → ", el("span", "k", "animal"), " ", el("b", "", "67.7 %")];
    new Tip(root).show(said, left, top);
    new Tip(root).show(["may not look here"], right - 4, top + 30);
    scrollTo(0, 0);
  },
};
