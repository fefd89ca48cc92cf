// A vote as a drawing for a file: its bars over its words, as they are on the screen.

import { columns, shares } from "./votes.js";
import { counted, percent } from "../../kit/browser/dom.js";
import { draw, svg, write } from "../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";

const WIDTH = 1100;
const HIGH = 300; // of the tallest bar
const BAR = 20;

/**
 * @param {{labels: string[], counts: number[], weights: ArrayLike<number>, at: number | null, fact: string}} of
 * @param {Record<string, string>} colours
 * @returns {import("../../kit/browser/types.js").Drawing}
 */
export function figure({ labels, counts, weights, at, fact }, colours) {
  const group = svg("g");
  const votes = shares(counts);
  const which = columns(votes, weights, at);
  const top = Math.max(...votes, ...Array.from(weights), 0.01);
  const wide = WIDTH / which.length;
  const base = 56 + HIGH;
  const all = counts.reduce((sum, n) => sum + n, 0);
  write(group, 0, 16, counted(words.legend_room, all), { size: 16, fill: colours.room });
  write(group, 300, 16, words.legend_head, { size: 16, fill: colours.head });
  which.forEach((token, i) => {
    const middle = (i + 0.5) * wide;
    if (token < 0) return write(group, middle, base + 26, "…", { size: 18, anchor: "middle", fill: colours.mute });
    const pair = /** @type {const} */ ([
      [votes[token], colours.room, -BAR - 1],
      [weights[token], colours.head, 1],
    ]);
    for (const [value, fill, x] of pair) {
      if (value < 0.004) continue;
      const height = (value / top) * HIGH;
      draw(group, "rect", { x: middle + x, y: base - height, width: BAR, height, rx: 3, fill });
      if (value >= 0.015)
        write(group, middle + x + BAR / 2, base - height - 6, percent(value).replace(" %", ""), {
          size: 14,
          "font-weight": 650,
          anchor: "middle",
          fill,
        });
    }
    const size = Math.min(18, (1.6 * wide) / Math.max(2, labels[token].length));
    write(group, middle, base + 26, labels[token], {
      size,
      anchor: "middle",
      fill: token === at ? colours.room : colours.ink,
    });
  });
  draw(group, "line", { x1: 0, x2: WIDTH, y1: base, y2: base, stroke: colours.room, "stroke-width": 2 });
  write(group, 0, base + 66, fact, { size: 19, fill: colours.ink });
  return { group, width: WIDTH, height: base + 84 };
}
