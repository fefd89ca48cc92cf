// What a lesson covers until it is said.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { cover, Guard } from "../../../app/kit/browser/cover.js";
import { add } from "../../../app/kit/browser/dom.js";

/** @type {import("../story.js").Story} */
export default {
  title: "a part that is covered, beside one that is not",
  style: STYLE,
  mount(root) {
    add(root, "p").textContent = "This is not asked about.";
    const asked = add(root, "p", "asked");
    asked.textContent = "68 % of the attention of “it”, which nobody may read yet";
    cover.hold({ step: "1.1", part: "row", asks: "point", values: {}, seen: false });
    new Guard(root, { row: ".asked" });
  },
};
