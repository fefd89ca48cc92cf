// The buttons that share a screen, and the link to copy by hand where the browser does not let a page copy.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { add } from "../../../app/kit/browser/dom.js";
import { Share } from "../../../app/kit/browser/share.js";

/** @type {import("../story.js").Story} */
export default {
  title: "sharing a screen, and its link to copy by hand",
  style: STYLE,
  mount(root) {
    const share = new Share(root, () => "", () => {});
    const row = add(root, "div");
    row.style.cssText = "display: flex; flex-wrap: wrap; gap: 0.4em";
    row.append(...share.actions());
    share.field.value = "https://example.org/?view=explore&layer=3&head=1&query=10";
    share.box.hidden = false;
  },
};
