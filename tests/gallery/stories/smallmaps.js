// The small maps of heads, as they are drawn once and copied from there.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { atlasOf, drawSmall } from "../../../app/attention/browser/smallmaps.js";
import { endsOf, levelOf } from "../../../app/kit/browser/picture/scale.js";
import { colours, fit } from "../../../app/kit/browser/colours.js";
import { add } from "../../../app/kit/browser/dom.js";

const SIDE = 8;
// A head of each kind: one back, itself, the first, all alike
const KINDS = [(/** @type {number} */ r, /** @type {number} */ c) => Number(c === r - 1), (/** @type {number} */ r, /** @type {number} */ c) => Number(c === r), (/** @type {number} */ _, /** @type {number} */ c) => Number(c === 0), () => 1 / SIDE];

/** @type {import("../story.js").Story} */
export default {
  title: "two layers of four heads, and the levels of both scales",
  style: STYLE,
  width: "24rem",
  mount(root, { palette }) {
    const colour = colours(palette.ramp);
    const thumbnail = (/** @type {number} */ layer, /** @type {number} */ head) => {
      const kind = KINDS[(head + layer) % KINDS.length];
      const values = Uint8Array.from({ length: SIDE * SIDE }, (_, i) => Math.round(255 * Math.sqrt(kind(Math.floor(i / SIDE), i % SIDE))));
      return { rows: SIDE, columns: SIDE, values };
    };
    const site = { layers: 2, heads: 4, key: "source", thumbnail };
    const ends = endsOf("linear", 1);
    const view = { palette: { tones: colour }, picture: { tokens: { source: ["it"], target: null } }, shading: { whole: "linear", smallEnds: () => ends } };
    const atlas = atlasOf(/** @type {any} */ (view), /** @type {any} */ (site));
    const context = fit(add(root, "canvas"), 230, 112);
    for (let layer = 0; layer < 2; layer++) for (let head = 0; head < 4; head++) drawSmall(context, atlas, { layer, head }, 56 * head, 56 * layer, 52);
    const strip = fit(add(root, "canvas"), 230, 40);
    for (const [i, scale] of /** @type {const} */ (["linear", "log"]).entries()) {
      for (let x = 0; x < 23; x++) {
        strip.fillStyle = colour.css[levelOf(scale, (x + 1) / 23, endsOf(scale, 1))];
        strip.fillRect(10 * x, 6 + 17 * i, 10, 14);
      }
    }
  },
};
