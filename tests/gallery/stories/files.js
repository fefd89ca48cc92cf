// The menu of files, open.

import { Files } from "../../../app/kit/browser/files.js";
import { STYLE } from "../../../app/kit/browser/words.js";

/** @type {import("../story.js").Story} */
export default {
  title: "the menu of files, open",
  style: STYLE,
  mount(root, { palette }) {
    root.style.cssText += "min-height: 21em; text-align: right;";
    const about = { title: "", alt: "", caption: "", snippet: "", name: "memory", tables: /** @type {[string, string, string][]} */ ([["parts", "parts", ""], ["lengths", "lengths", ""]]), trees: /** @type {[string, string, string][]} */ ([["shapes", "shapes", "{}"]]) };
    const files = new Files(() => ({ group: document.createElementNS("http://www.w3.org/2000/svg", "g"), width: 1, height: 1 }), () => about, () => palette);
    root.append(files.box);
    files.toggle(true);
    /** @type {HTMLElement} */ (files.menu.querySelector("button")).blur();
  },
};
