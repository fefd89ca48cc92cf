// Arcs above the map: from the chosen query to the keys that it looks at most, each as thick as its weight.

import { fit } from "../../kit/browser/colours.js";
import { isStill } from "../../kit/browser/dom.js";
import { eased } from "./motion.js";

const MOST = 6; // keys that an arc leads to
const LEAST = 0.02; // of the row; a smaller weight has no arc
const FLIES = 190; // ms that an arc takes from query to key

// The keys of a row that an arc leads to, most weight first
/** @param {Float32Array} weights @param {number} top */
export const strongest = (weights, top) =>
  [...weights.keys()]
    .filter((k) => weights[k] > LEAST * top)
    .sort((a, b) => weights[b] - weights[a] || a - b)
    .slice(0, MOST);

// How an arc looks, by its weight as a share of the largest: grey, or in the colour of the query
/** @param {number} weight @param {boolean} isChosen @param {{query: string, mute: string}} palette */
export const arcOf = (weight, isChosen, { query, mute }) => ({
  stroke: isChosen ? query : mute,
  opacity: isChosen ? 1 : 0.2 + 0.5 * weight,
  width: 1 + 4.5 * weight,
});

export class Arcs {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "arcs";
    this.shown = ""; // the row and head of the arcs
    this.since = 0;
    this.frame = 0;
  }

  // Into the strip, above the words or between two lines of them, with the room that it takes there: the map is measured before
  // anything is drawn.
  /** @param {HTMLElement} box @param {Element | null} before @param {number} height */
  put(box, before, height) {
    this.canvas.style.height = `${height}px`;
    box.insertBefore(this.canvas, before);
  }

  destroy() {
    cancelAnimationFrame(this.frame);
  }

  // `places` gives where an arc begins and ends, in pixels of the canvas; null where nothing is drawn, or for a key that has no column.
  /** @param {number} width @param {number} height @param {{from: number, to: (key: number) => number | null, isAcross: boolean} | null} places */
  draw(width, height, places) {
    cancelAnimationFrame(this.frame);
    const { query } = this.view.chosen;
    const ranking = query === null ? null : this.view.numbers.ranking(query);
    const row = ranking && places ? `${this.view.lens().key},${query}` : "";
    if (row !== this.shown) this.since = performance.now();
    this.shown = row;
    const isAtOnce = isStill();
    const step = () => {
      const done = isAtOnce ? 1 : Math.min(1, (performance.now() - this.since) / FLIES);
      this.paint(width, height, places, eased(done));
      if (done < 1) this.frame = requestAnimationFrame(step);
    };
    step();
  }

  /** @param {number} width @param {number} height @param {{from: number, to: (key: number) => number | null, isAcross: boolean} | null} places @param {number} done */
  paint(width, height, places, done) {
    const { view } = this;
    const context = fit(this.canvas, width, height);
    const ranking = view.chosen.query === null ? null : view.numbers.ranking(view.chosen.query);
    if (!places || !ranking) return;
    const { top } = view.lens();
    const { hover } = view.chosen;
    const column = hover?.key == null ? view.numbers.at().key : view.lens().keyOf(hover.key);
    const keys = strongest(ranking.weights, top);
    if (column !== null && !keys.includes(column) && ranking.weights[column] > 0) keys.push(column);
    for (const k of keys.reverse()) {
      const to = places.to(k);
      if (to === null) continue;
      const isChosen = k === column;
      const { stroke, opacity, width } = arcOf(ranking.weights[k] / top, isChosen, view.palette);
      Object.assign(context, { strokeStyle: stroke, globalAlpha: opacity, lineWidth: width });
      this.arc(context, places.from, to, height, places.isAcross, done);
      if (!isChosen || done < 1) continue;
      context.fillStyle = view.palette.key;
      context.beginPath();
      context.arc(to, height - 3, 3.5, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  // Up and down again, or from the line above to the line below; as far as it has flown
  /** @param {CanvasRenderingContext2D} c @param {number} from @param {number} to @param {number} height @param {boolean} isAcross @param {number} done */
  arc(c, from, to, height, isAcross, done) {
    const low = height - 3;
    const high = isAcross ? 0 : low - Math.min(low - 3, 6 + 0.13 * Math.abs(to - from) + 8);
    /** @type {[x: number, y: number][]} */
    const points = isAcross
      ? [
          [from, 0],
          [from, 0.55 * height],
          [to, 0.45 * height],
          [to, low],
        ]
      : from === to
        ? [
            [from - 5, low],
            [from - 16, high - 4],
            [from + 16, high - 4],
            [from + 5, low],
          ]
        : [
            [from, low],
            [from, high - (low - high) / 3],
            [to, high - (low - high) / 3],
            [to, low],
          ];
    c.beginPath();
    c.moveTo(...points[0]);
    const [, p1, p2, p3] = part(points, done);
    c.bezierCurveTo(...p1, ...p2, ...p3);
    c.stroke();
  }
}

// The beginning of a cubic curve, up to a share of it: de Casteljau
/** @param {[number, number][]} points @param {number} t @returns {[number, number][]} */
function part(points, t) {
  if (t >= 1) return points;
  /** @param {[number, number]} a @param {[number, number]} b @returns {[number, number]} */
  const between = (a, b) => [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t];
  const found = [points[0]];
  for (let line = points; line.length > 1; ) {
    line = line.slice(1).map((point, i) => between(line[i], point));
    found.push(line[0]);
  }
  return found;
}
