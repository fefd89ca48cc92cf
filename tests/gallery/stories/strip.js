// The whole model at one word: 30 layers with the next word, and two stacks with the wires between them.

import { ModelStrip } from "../../../app/kit/browser/model_strip.js";
import { STYLE } from "../../../app/rooms/masks/browser/constants.js";

/** @param {number} n @param {number} seed @param {number} size */
const made = (n, seed, size) => Array.from({ length: n }, (_, i) => size * (1.2 + Math.sin(i * 12.9898 + seed)) * (1 + i / n));
/** @param {number} n @param {string[]} names */
const whole = (n, names) => ({
  position: 1,
  stream: Array.from({ length: n + 1 }, (_, i) => 3 + 30 * i),
  parts: names.map((name, i) => ({ name, lengths: made(n, i, 20), adds: made(n, i, 0.2) })),
  next: null,
  wires: null,
});

/** @type {import("../story.js").Story} */
export default {
  title: "30 layers at one word; an encoder and a decoder",
  style: STYLE,
  width: "80rem",
  mount(root, { palette, theme }) {
    const labels = { encoder: ["Ein", "Hund"], decoder: ["A", "dog"] };
    const one = { ...whole(30, ["attention", "MLP"]), next: ["Mary", 0.92] };
    const read = whole(3, ["attention", "MLP"]);
    const written = { ...whole(3, ["attention", "cross-attention", "MLP"]), next: ["runs", 0.48], wires: [[0.1, 0.86], [0.2, 0.8], [0.05, 0.9]] }; // prettier-ignore
    const places = [
      { stack: "decoder", layer: 23, query: 1, labels: { decoder: ["to", "to"] } },
      { stack: "decoder", layer: 1, query: 1, key: 1, labels },
    ];
    for (const place of places) {
      const room = {
        root,
        palette,
        scheme: theme,
        key: "",
        isProjected: false,
        typeUnit: parseFloat(getComputedStyle(root).fontSize) / 16,
        leaving: new AbortController().signal,
        invalidate: () => {},
        askLast: (/** @type {string} */ _, /** @type {{stack: string}} */ { stack }) =>
          place.layer === 23 ? one : stack === "encoder" ? read : written,
      };
      const strip = new ModelStrip(/** @type {any} */ (room), () => {});
      root.append(strip.box);
      strip.draw(/** @type {any} */ (place));
      strip.box.style.marginBottom = "1rem";
    }
  },
};
