// Bars of attention on one track.

import { Bars } from "../../../app/kit/browser/picture/bars.js";
import { STYLE, WORDS as words } from "../../../app/attention/browser/constants.js";

/** @type {import("../story.js").Story} */
export default {
  title: "shares on one track, and a scale that ends at the largest value",
  style: STYLE,
  width: "24rem",
  mount(root) {
    root.style.display = "grid";
    root.style.gap = "1em";
    new Bars(root, "looks").draw(words.looks_at_head, [
      { label: "animal", className: "k", at: 0.677, value: "67.7 %" },
      { label: "[CLS]", className: "k", at: 0.102, value: "10.2 %" },
      { label: "a word that is too long for its place", className: "k", at: 0.001, value: "0.1 %" },
      { label: "other 12", className: "rest", at: 0.22, value: "22.0 %" },
    ]);
    new Bars(root, "writes").draw(words.writes_next, [{ label: "the", className: "w", at: 1, value: "8.21" }, { label: "nothing", className: "w", at: 0, value: "0" }], false);
  },
};
