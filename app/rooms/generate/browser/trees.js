// A beam search as a tree: the texts that live at each step, one below the other, and those that were dropped there.

import { apart, fixed } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { cut } from "./shapes.js";

const MOST = 13; // steps side by side

/** @param {Pen} pen @param {{scene: import("./types.js").Scene, at: import("./types.js").Plan, acts: import("./types.js").Acts}} of */
export function trees(pen, { scene, at, acts }) {
  const { grown, winner, nBeams, focus, columns: all } = scene;
  const { top } = at;
  const left = at.strip + 5;
  const most = Math.min(MOST, Math.max(4, Math.floor((at.width - left) / 62)));
  const step = Math.min(110, (at.width - left) / Math.max(1, Math.min(most, grown.length)));
  const wide = step - 14;
  const x = (/** @type {number} */ place) => left + place * step;
  const first = Math.max(0, Math.min(grown.length - most, all[focus].at - most + 3));
  const row = (at.bottom - top) / nBeams;
  const high = row * 0.6;
  const boxes = new Pen(pen.draw("g", step < 40 ? { "font-size": 10 } : {}));
  const lines = new Pen(pen.draw("g", {}));
  grown.forEach(({ kept, dropped }, depth) => {
    const place = depth - first;
    if (place < 0 || place >= most) return;
    kept.forEach((beam, r) => {
      const y = top + r * row + 2;
      const on = beam.path.every((id, i) => id === winner[i]);
      if (depth && place > 0) {
        const from = top + beam.row * row + 2 + high / 2;
        lines.draw("path", {
          d: `M${x(place) - 14} ${from}C${x(place) - 6} ${from} ${x(place) - 8} ${y + high / 2} ${x(place)} ${y + high / 2}`,
          fill: "none",
          stroke: on ? "var(--proof)" : "var(--hatch)",
          "stroke-width": on ? 3 : 1.6,
        });
      }
      boxes.draw(
        "rect",
        { class: "hit", x: x(place), y, width: wide, height: high, rx: 3, fill: on ? "var(--proof)" : "var(--slice2)" },
        {
          title: `${apart(beam.path.map(scene.label).join(" "))} ${fixed(beam.logProb)}`,
          click: () => acts.go(beam.path, beam.path.length - 1),
        },
      );
      boxes.write(x(place) + wide / 2, y + high / 2 - 2, cut(scene.label(beam.id), wide), {
        anchor: "middle",
        size: 12.6,
        "font-weight": 650,
        "pointer-events": "none",
        fill: on ? "var(--on)" : "var(--ink)",
      });
      if (high > 26)
        boxes.write(x(place) + wide / 2, y + high / 2 + 12, fixed(beam.logProb), {
          anchor: "middle",
          size: 11.4,
          "pointer-events": "none",
          fill: on ? "var(--on)" : "var(--mute)",
        });
    });
    dropped.slice(0, nBeams).forEach((beam, r) => {
      if (row < 40) return;
      boxes.write(
        x(place) + wide / 2,
        top + r * row + high + 15,
        `${beam.ends ? "■" : "×"} ${cut(scene.label(beam.id), wide - 10)}`,
        { anchor: "middle", size: 11.4, fill: "var(--mute)" },
      );
    });
  });
  for (const pen of [boxes, lines]) pen.end();
}
