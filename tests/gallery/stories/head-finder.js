// The field for a head by its numbers, after it was asked for one that is not there.

import { STYLE } from "../../../app/rooms/whatif/browser/constants.js";
import { HeadFinder } from "../../../app/kit/browser/head_finder.js";

/** @type {import("../story.js").Story} */
export default {
  title: "a head that the model does not have",
  style: STYLE,
  mount(root) {
    root.style.minHeight = "4rem";
    const room = { root, headGrid: { layers: 30, heads: 9 }, chooseHead: () => {} };
    const finder = new HeadFinder(/** @type {any} */ (room));
    finder.open();
    finder.field.value = "31.4";
    finder.take();
    Object.assign(finder.box.style, { position: "static", transform: "none" }); // else it is over the middle of the window
    const { box } = finder;
    finder.field.blur();
    box.hidden = false;
  },
};
