// The button of projector mode.

import { STYLE } from "../../../app/kit/browser/words.js";
import { Projector } from "../../../app/kit/browser/projector.js";

/** @type {import("../story.js").Story} */
export default {
  title: "the button of projector mode",
  style: STYLE,
  width: "14rem",
  mount(root) {
    root.append(new Projector(() => {}, new AbortController().signal).button);
  },
};
