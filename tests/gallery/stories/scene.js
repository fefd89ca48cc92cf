// One scene of every shape, on a canvas and as SVG: both are to look the same.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { add } from "../../../app/kit/browser/dom.js";
import { canvas, svg, text } from "../../../app/kit/browser/scene.js";

/** @type {import("../story.js").Story} */
export default {
  title: "every shape of a scene, on a canvas and as SVG",
  style: STYLE,
  async mount(root, { palette }) {
    const small = document.createElement("canvas");
    [small.width, small.height] = [2, 2];
    const context = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
    [palette.ramp[1], palette.ramp[4], palette.ramp[3], palette.ramp[2]].forEach((colour, i) => {
      context.fillStyle = colour;
      context.fillRect(i % 2, i >> 1, 1, 1);
    });
    /** @type {import("../../../app/kit/browser/types.js").Scene} */
    const scene = {
      width: 260,
      height: 130,
      background: palette.background,
      hatch: palette.hatch,
      font: "DejaVu Sans",
      shapes: [
        { shape: "rect", x: 10, y: 10, w: 40, h: 40, fill: palette.key },
        { shape: "frame", x: 60, y: 10, w: 40, h: 40, stroke: palette.query, width: 2 },
        { shape: "hatch", x: 110, y: 10, w: 40, h: 40 },
        { shape: "image", canvas: small, x: 160, y: 10, w: 40, h: 40 },
        { shape: "ramp", x: 10, y: 60, w: 90, h: 12, stops: palette.ramp },
        { shape: "curve", points: [[10, 120], [60, 70], [120, 120], [150, 80]], stroke: palette.proof, width: 3, opacity: 0.8, dash: [6, 3] },
        { shape: "dot", x: 150, y: 80, r: 5, fill: palette.query, opacity: 0.7 },
        text(250, 100, [["it", palette.query, 650], [" looks", palette.ink]], 14, { anchor: "end" }),
        text(225, 60, [["head", palette.mute]], 12, { angle: -40, anchor: "middle" }),
      ],
    };
    const row = add(root, "div");
    row.style.cssText = "display: flex; flex-wrap: wrap; gap: 12px";
    row.append(canvas(scene, 1));
    const image = add(row, "img");
    image.alt = "";
    image.src = `data:image/svg+xml,${encodeURIComponent(svg(scene, { title: "", alt: "", caption: "", snippet: "", name: "" }))}`;
    await image.decode();
  },
};
