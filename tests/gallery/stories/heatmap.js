// Maps of cells: with names, numbers, hatching and frames as SVG, and one of many cells on a canvas.

import { STYLE } from "../../../app/attention/browser/constants.js";
import { add } from "../../../app/kit/browser/dom.js";
import { HeatmapView, MANY } from "../../../app/kit/browser/picture/heatmap.js";
import { rising, rooted, signed } from "../../../app/kit/browser/picture/scale.js";

const WORDS = ["The", "animal", "it", "was"];
const SIDE = 48;

/** @type {import("../story.js").Story} */
export default {
  title: "weights that may not look ahead; changes with a sign; more cells than SVG is made of",
  style: STYLE,
  mount(root, { palette }) {
    const row = add(root, "div");
    row.style.cssText = "display: flex; flex-wrap: wrap; gap: 16px; align-items: end";
    const style = { hatch: palette.hatch, font: "DejaVu Sans" };
    const [share, change] = [rising(palette), signed(palette)];
    /** @param {string} colour @param {number} [lean] */
    const names = (colour, lean) => ({ list: WORDS, colour, size: 12, lean });
    const weights = new HeatmapView(add(row, "div"), "weights");
    weights.draw(
      {
        rows: 4,
        columns: 4,
        x: 60,
        y: 52,
        w: 34,
        h: 26,
        gap: 2,
        radius: 2,
        tone: (q, k) => share((q * 3 + k * 5) % 8 / 7),
        masked: (q, k) => k > q,
        label: (q, k) => [((q * 3 + k * 5) % 8 / 7).toFixed(1)],
        size: 11,
        rowNames: names(palette.query),
        columnNames: names(palette.key, -50),
      },
      222,
      160,
      style,
    );
    weights.frame([{ row: 2, colour: palette.query, out: 1, radius: 2 }]);
    const changes = new HeatmapView(add(row, "div"), "changes");
    changes.draw(
      {
        rows: 3,
        columns: 6,
        x: 20,
        y: 20,
        w: 38,
        h: 26,
        gap: 2,
        radius: 2,
        tone: (layer, head) => (layer === 2 && head > 3 ? null : change(rooted((head - 2) * (layer + 1) / 12))),
        empty: palette.line,
        label: (layer, head) => [String((head - 2) * (layer + 1)).replace("-", "−"), head ? 400 : 650],
        size: 12,
        rowNames: { list: ["0", "1", "2"], colour: palette.mute, size: 12 },
        columnNames: { list: ["0", null, "2", null, "4", null], colour: palette.mute, size: 12 },
        frames: [{ row: 1, column: 4, colour: palette.query, width: 2.5, radius: 3 }],
      },
      254,
      102,
      style,
    );
    if (SIDE * SIDE <= MANY) throw new Error("this is to be a map on a canvas");
    const many = new HeatmapView(add(row, "div"), "many");
    many.draw(
      { rows: SIDE, columns: SIDE, x: 2, y: 2, w: 3, h: 3, tone: (q, k) => share(k === q - 1 ? 1 : k / SIDE / 2), masked: (q, k) => k > q, frames: [{ row: 30, colour: palette.query }] },
      3 * SIDE + 4,
      3 * SIDE + 4,
      style,
    );
  },
};
