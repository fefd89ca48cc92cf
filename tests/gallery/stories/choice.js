// What rooms build with the small helpers: a row of buttons of which one is pressed, a hint, and words that are set off.

import { add, choice, hint, phrase } from "../../../app/kit/browser/dom.js";
import { STYLE } from "../../../app/attention/browser/constants.js";

/** @type {import("../story.js").Story} */
export default {
  title: "a choice, a hint, and a sentence with words set off",
  style: STYLE,
  mount(root) {
    const line = add(root, "p");
    line.append(choice("As", [["map", "map"], ["lines", "lines"], ["table", "table"]], "map", () => {}), " ", hint("What it means"));
    add(root, "p", "big").append(...phrase("{query} gives {share} of its attention to {key}.", { query: ["it", "q"], share: ["68 %", ""], key: ["animal", "k"] }));
  },
};
