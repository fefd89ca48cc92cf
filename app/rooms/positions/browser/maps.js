// One head before and after: two maps side by side, a row and a column for each word, also where the words stand elsewhere.

import { toneWithout } from "../../../kit/browser/sink.js";
import { add, arrow, clamp, el, fill, fixed, percent, quoted, short } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { paintOn } from "../../../kit/browser/picture/canvas.js";
import { shapesOf } from "../../../kit/browser/picture/heatmap.js";
import { rising } from "../../../kit/browser/picture/scale.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { paintShapes } from "../../../kit/browser/scene.js";
import { picture } from "./draw.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Weights} Weights */
/**
 * @typedef {{
 *   titles: string[], note: string, second: string, weights: [Weights | null, Weights | null], query: number,
 *   site: import("./types.js").Site, pending: boolean, lock: (query: number, key?: number) => void,
 * }} Drawn
 */
const WIDER = 2.4; // than high, at most, is a cell of a projected map
const LABELLED = 48; // words that have a name beside a map; more have places

export class Maps {
  /** @param {Shown} view @param {HTMLElement} host */
  constructor(view, host) {
    this.view = view;
    this.host = host;
    this.boxes = [0, 1].map((i) => {
      const box = add(host, "div", "map");
      box.dataset.map = String(i);
      box.tabIndex = 0;
      box.setAttribute("role", "img");
      const title = add(box, "h2");
      const canvas = add(box, "canvas");
      const over = add(box, "div", "over");
      return { box, title, canvas, over };
    });
  }

  // Pixels of the lab above the maps
  get above() {
    return this.host.getBoundingClientRect().top - this.view.labPlace.getBoundingClientRect().top;
  }

  clear() {
    for (const { box } of this.boxes) box.dataset.empty = "true";
  }

  /** @param {Drawn} drawn */
  draw(drawn) {
    const { view } = this;
    const { unit, narrow } = view;
    const { site, query } = drawn;
    const [queries, keys] = [view.side(site.query).labels, view.side(site.key).labels];
    const isNamed = Math.max(queries.length, keys.length) <= LABELLED;
    const left = isNamed ? 64 * unit : 40 * unit;
    const top = isNamed ? 66 * unit : 40 * unit; // a title, and below it names that lean or numbers
    const wide = narrow ? view.width : this.host.clientWidth;
    const room = narrow ? wide - left - 26 * unit : (wide - left - 60 * unit) / 2;
    const projected = view.room < Infinity;
    const tall = projected ? Math.max(120 * unit, view.room - this.above - top - 4 * unit) : 300 * unit;
    const down = Math.max(
      0.25,
      Math.min(
        projected ? 26 * unit : narrow ? 24 * unit : 16.6 * unit,
        projected ? Infinity : room / keys.length,
        tall / queries.length,
      ),
    );
    const across = projected ? Math.max(0.25, Math.min(room / keys.length, WIDER * down)) : down; // a projected page has more width than height
    this.boxes.forEach((parts, i) => {
      const { box, title, canvas, over } = parts;
      const names = i === 0 || narrow;
      const x0 = names ? left : 4 * unit;
      const [width, height] = [across * keys.length, down * queries.length];
      box.dataset.empty = "false";
      box.classList.toggle("pending", i === 1 && drawn.pending);
      box.style.width = `${x0 + width + 24 * unit}px`;
      title.replaceChildren(el("b", "", drawn.titles[i]), ` ${i ? drawn.second : drawn.note}`);
      const weights = drawn.weights[i];
      canvas.style.margin = `${top}px 0 0 ${x0}px`;
      this.paint(canvas, weights, width, height, down, keys.length);
      over.replaceChildren();
      const svg = picture(over, x0 + width + 20 * unit, top + height + 4, drawn.titles[i]);
      svg.setAttribute("aria-hidden", "true");
      this.names(svg, { x0, top, across, down, queries, keys, query, isNamed, names });
      draw(svg, "rect", {
        x: x0 - 1.5,
        y: top + query * down - 1.5,
        width: width + 2,
        height: down + 2,
        fill: "none",
        stroke: "var(--query)",
        "stroke-width": 2,
        rx: 2,
      });
      const most = weights && weights.columns === keys.length ? best(weights, query) : -1;
      box.setAttribute(
        "aria-label",
        most < 0
          ? drawn.titles[i]
          : fill(words.map_label, {
              title: drawn.titles[i],
              query: quoted(queries[query]),
              key: quoted(keys[most]),
              share: percent(/** @type {Weights} */ (weights).at(query, most)),
            }),
      );
      box.dataset.value = most < 0 ? "" : String(/** @type {Weights} */ (weights).at(query, most));
      this.listen(box, { x0, top, across, down, queries, keys, weights, drawn });
    });
  }

  /** @param {HTMLCanvasElement} canvas @param {Weights | null} weights @param {number} width @param {number} height @param {number} cell @param {number} columns keys, as long as none are pooled */
  paint(canvas, weights, width, height, cell, columns) {
    const { palette } = this.view;
    const rest = this.view.sink.key;
    const scale = rising(palette);
    const without =
      rest !== null && weights?.columns === columns ? toneWithout(palette, rest, top(weights, rest)) : null;
    const shapes = weights
      ? shapesOf({
          rows: weights.rows,
          columns: weights.columns,
          x: 0,
          y: 0,
          w: width / weights.columns,
          h: height / weights.rows,
          gap: cell > 6 ? 1 : 0,
          tone: (row, column) => without?.(weights.at(row, column), column) ?? scale(weights.at(row, column)),
        })
      : [];
    paintOn(canvas, width, height, (context) => {
      context.fillStyle = weights ? palette.background : palette.ramp[0];
      context.fillRect(0, 0, width, height);
      paintShapes(context, shapes, { hatch: palette.hatch, font: "" });
    });
  }

  /**
   * @param {Element} svg
   * @param {{x0: number, top: number, across: number, down: number, queries: string[], keys: string[], query: number, isNamed: boolean, names: boolean}} at
   */
  names(svg, { x0, top, across, down, queries, keys, query, isNamed, names }) {
    const { unit } = this.view;
    const size = (/** @type {number} */ cell) => Math.min(13.5 * unit, Math.max(8 * unit, cell * 0.85));
    if (!isNamed) {
      const every = (/** @type {number} */ cell) => 10 ** Math.ceil(Math.log10((28 * unit) / cell));
      for (let k = 0; k < keys.length; k += every(across))
        write(svg, x0 + (k + 0.5) * across, top - 6 * unit, String(k), {
          anchor: "middle",
          class: "kt",
          size: 12 * unit,
        });
      for (let q = 0; names && q < queries.length; q += every(down))
        write(svg, x0 - 6 * unit, top + (q + 0.5) * down + 4 * unit, String(q), {
          anchor: "end",
          class: "mt",
          size: 12 * unit,
        });
      return;
    }
    keys.forEach((label, k) =>
      draw(
        svg,
        "text",
        {
          class: "kt",
          transform: `translate(${(x0 + (k + 0.65) * across).toFixed(1)} ${(top - 5 * unit).toFixed(1)}) rotate(-58)`,
          "font-size": Math.min(12.5 * unit, size(across)),
        },
        cut(label, 9),
      ),
    );
    if (!names) return;
    queries.forEach((label, q) =>
      write(svg, x0 - 8 * unit, top + (q + 0.5) * down + size(down) * 0.35, cut(label, 8), {
        class: q === query ? "qt b" : "",
        anchor: "end",
        size: size(down),
      }),
    );
  }

  /**
   * @param {HTMLElement} box
   * @param {{x0: number, top: number, across: number, down: number, queries: string[], keys: string[], weights: Weights | null, drawn: Drawn}} at
   */
  listen(box, { x0, top, across, down, queries, keys, weights, drawn }) {
    const { view } = this;
    const found = (/** @type {PointerEvent | MouseEvent} */ event) => {
      const frame = /** @type {Element} */ (box.querySelector(".over")).getBoundingClientRect();
      const query = Math.floor((event.clientY - frame.top - top) / down);
      const key = Math.floor((event.clientX - frame.left - x0) / across);
      return query >= 0 && query < queries.length && key < keys.length ? { query, key } : null;
    };
    box.onpointermove = (event) => {
      const at = found(event);
      if (!at || at.key < 0 || !weights) return view.tip.hide();
      const [row, column] = [
        Math.floor((at.query * weights.rows) / queries.length),
        Math.floor((at.key * weights.columns) / keys.length),
      ];
      const weight = `${fixed(100 * weights.at(row, column), 1)} %`;
      const words = [el("span", "q", quoted(queries[at.query])), " → ", el("span", "k", quoted(keys[at.key])), " "];
      view.tip.follow([...words, el("b", "", weight)], event);
    };
    box.onpointerleave = () => view.tip.hide();
    box.onclick = (event) => {
      const at = found(event);
      if (at) drawn.lock(at.query, at.key >= 0 ? at.key : undefined);
    };
    box.onkeydown = (event) => {
      const step = arrow(event);
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      const query = clamp(drawn.query + step[0], 0, queries.length - 1);
      const key =
        view.value("key") === ""
          ? weights && weights.columns === keys.length
            ? best(weights, drawn.query)
            : 0
          : view.number("key");
      drawn.lock(query, step[1] ? clamp(key + step[1], 0, keys.length - 1) : undefined);
    };
  }
}

/** @param {string} label @param {number} most */
const cut = (label, most) =>
  short(label).length > most
    ? `${Array.from(label)
        .slice(0, most - 1)
        .join("")}…`
    : label;

/** @param {Weights} weights @param {number} query */
function best(weights, query) {
  let most = 0;
  for (let key = 1; key < weights.columns; key++) if (weights.at(query, key) > weights.at(query, most)) most = key;
  return most;
}

// The largest weight on any other key
/** @param {Weights} weights @param {number} key */
function top(weights, key) {
  let most = 0;
  for (let q = 0; q < weights.rows; q++)
    for (let k = 0; k < weights.columns; k++) if (k !== key) most = Math.max(most, weights.at(q, k));
  return most;
}
