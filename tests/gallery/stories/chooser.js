// All heads of a model, one to be chosen: 270 with groups that share keys, and 5,120.

import { HeadChooser } from "../../../app/kit/browser/chooser.js";
import { el } from "../../../app/kit/browser/dom.js";
import { STYLE } from "../../../app/rooms/masks/browser/constants.js";

// A number for each head that is the same each time, from −1 to 1, and mostly small
/** @param {number} at */
const made = (at) => Math.sin(at * 12.9898 + 1) ** 15;

/** @type {import("../story.js").Story} */
export default {
  title: "270 heads by what they add; 5,120 by where they look",
  style: STYLE,
  width: "62rem",
  async mount(root, { palette, theme }) {
    for (const [layers, heads, kv_heads, isSigned] of /** @type {[number, number, number, boolean][]} */ ([
      [30, 9, 3, true],
      [80, 64, 8, false],
    ])) {
      const values = Float32Array.from({ length: layers * heads }, (_, at) => (isSigned ? made(at) : (Math.floor(at / heads / 8) % 2) * 0.3 + (at % heads < 8 ? 0.5 : 0)));
      const say = (/** @type {number} */ x) => (isSigned ? x.toFixed(2).replace("-", "−") : `${Math.round(100 * x)} %`);
      const room = {
        root,
        palette,
        scheme: theme,
        typeUnit: parseFloat(getComputedStyle(root).fontSize) / 16,
        leaving: new AbortController().signal,
        chooseHead: () => {},
        values: {},
        button: (/** @type {HTMLElement | null} */ parent, /** @type {string} */ text) => {
          const button = el("button", "quiet", text);
          parent?.append(button);
          return button;
        },
      };
      const chooser = new HeadChooser(/** @type {any} */ (room), () => ({
        layers,
        heads,
        kv_heads,
        layer: Math.round(layers * 0.8),
        head: 4,
        measures: [
          { id: "adds", name: "adds to Mary", title: "What each head adds to {word}", parts: { word: ["Mary", "a"] }, note: "blue more, purple less", isSigned, values: () => values, say },
          { id: "first", name: "first token", title: "", values: () => values, say },
        ],
      }));
      root.append(chooser.button);
      chooser.draw();
      chooser.toggle();
      chooser.box.hidePopover();
      chooser.box.removeAttribute("popover"); // else it is over the page
      chooser.box.style.position = "static";
      root.append(chooser.box);
      await new Promise((done) => setTimeout(done)); // it hears that it was closed
      chooser.move({ layer: Math.round(layers * 0.8), head: 4 });
    }
  },
};
