// How to read the picture: the button, and the card that it opens.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { Guide } from "../../../app/attention/browser/guide.js";
import { add } from "../../../app/kit/browser/dom.js";

/** @type {import("../story.js").Story} */
export default {
  title: "how to read the picture, open",
  style: STYLE,
  mount(root, { theme, isNarrow }) {
    root.style.cssText += "position: relative; padding-top: 14em";
    const guide = new Guide(/** @type {any} */ ({ options: { show: "map" }, palette: { scheme: theme }, room: { narrow: isNarrow } }), root);
    guide.build();
    add(root, "div").append(guide.button);
    guide.keep(true);
  },
};
