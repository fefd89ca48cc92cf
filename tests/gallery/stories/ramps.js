// The two scales of colour, and the ink that is read on each of their steps.

import { PALETTES, STYLE } from "../../../app/attention/browser/constants.js";
import { colours, fit, rampsOf } from "../../../app/kit/browser/colours.js";
import { add } from "../../../app/kit/browser/dom.js";

/** @type {import("../story.js").Story} */
export default {
  title: "both scales, as a gradient and as steps with their ink",
  style: STYLE,
  width: "24rem",
  mount(root, { theme, palette }) {
    rampsOf(root, PALETTES[theme]);
    for (const name of /** @type {const} */ (["ramp", "ahead"])) {
      const strip = add(root, "div");
      strip.style.cssText = `height: 12px; margin: 6px 0; background: var(--${name})`;
      const canvas = add(root, "canvas");
      const context = fit(canvas, 270, 30);
      const { css, ink } = colours(palette[name]);
      context.font = "14px DejaVu Sans";
      for (let i = 0; i < 9; i++) {
        const level = Math.round((255 * i) / 8);
        context.fillStyle = css[level];
        context.fillRect(30 * i, 0, 30, 30);
        context.fillStyle = ink[level];
        context.fillText(String(i), 30 * i + 11, 20);
      }
    }
  },
};
