// A map of cells, described once: on the screen as SVG, or on a canvas where it has many cells, and as the shapes of a file.

import { el } from "../dom.js";
import { Pen } from "../pen.js";
import { drawShapes, hatching, paintShapes, text } from "../scene.js";
import { paintOn, pixels } from "./canvas.js";
import { svg } from "./svg.js";

/** @typedef {import("../types.js").Shape} Shape */
/** @typedef {import("./scale.js").Tone} Tone */
/** @typedef {{row?: number, column?: number, rows?: number, columns?: number, colour: string, width?: number, out?: number, radius?: number}} Frame Around so many cells from one on; without a row or a column, around all of that line. out: how far from the cells */
/** @typedef {{list: (string | null)[], colour: string, size: number, away?: number, lean?: number}} Names Along one side: null has no label. away: pixels from the cells; lean: degrees */
/**
 * @typedef {object} Heatmap
 * @property {number} rows
 * @property {number} columns
 * @property {number} x of the first cell
 * @property {number} y
 * @property {number} w from one cell to the next
 * @property {number} h
 * @property {boolean} [mirrored] whether the first column is at the right, as the first word is of a text written that way
 * @property {number} [gap] between two cells
 * @property {number} [radius] of the corners of a cell
 * @property {(row: number, column: number) => Tone | null} tone null is a number that is not known: see empty
 * @property {string} [empty] the line around such a cell; without it there is nothing
 * @property {(row: number, column: number) => boolean} [masked] whether a cell is hatched, and has no number
 * @property {(row: number, column: number) => [text: string, weight?: number] | null} [label] what is written in a cell
 * @property {number} [size] of that type
 * @property {Names} [rowNames]
 * @property {Names} [columnNames]
 * @property {number} [most] cells that are shapes of their own; more are one image
 * @property {Shape[]} [more] what else belongs to it
 * @property {Frame[]} [frames]
 */
/** @typedef {{hatch: string, font: string}} Style */

export const MANY = 1500; // cells; with more a map is a canvas, whose every change paints all of it

// The cell at a point; null beside the map
/** @param {Heatmap} map @param {number} x @param {number} y @returns {[row: number, column: number] | null} */
export function cellAt(map, x, y) {
  const [row, place] = [Math.floor((y - map.y) / map.h), Math.floor((x - map.x) / map.w)];
  return row >= 0 && place >= 0 && row < map.rows && place < map.columns ? [row, across(map, place)] : null;
}

// Where a column is, counted from the left; and which column is there
/** @param {{columns: number, mirrored?: boolean}} map @param {number} column */
const across = ({ columns, mirrored }, column) => (mirrored ? columns - 1 - column : column);

/** @param {Heatmap} map @param {Frame} frame @returns {Shape} */
function framed({ x, y, w, h, ...map }, { row, column, rows = 1, columns = 1, colour, width = 2, out = 0, radius }) {
  const [wide, down] = [column === undefined ? map.columns : columns, row === undefined ? map.rows : rows];
  const first = column === undefined ? 0 : Math.min(across(map, column), across(map, column + wide - 1));
  return {
    shape: "frame",
    x: x + first * w - out,
    y: y + (row ?? 0) * h - out,
    w: wide * w + 2 * out,
    h: down * h + 2 * out,
    stroke: colour,
    width,
    rx: radius,
  };
}

// Everything that a map is drawn of, its frames last
/** @param {Heatmap} map @returns {Shape[]} */
export function shapesOf(map) {
  const { rows, columns, x, y, w, h, gap = 0, radius, label, size = 0, rowNames, columnNames } = map;
  /** @type {Shape[]} */
  const shapes = [];
  rowNames?.list.forEach((name, row) => {
    if (name === null) return;
    const middle = y + (row + 0.5) * h;
    shapes.push(text(x - (rowNames.away ?? 6), middle, [[name, rowNames.colour]], rowNames.size, { anchor: "end" }));
  });
  columnNames?.list.forEach((name, column) => {
    if (name === null) return;
    const { colour, away = 5, lean = 0 } = columnNames;
    const at = x + (across(map, column) + (lean ? 0.6 : 0.5)) * w;
    shapes.push(
      text(at, y - away - (lean ? 0 : columnNames.size * 0.35), [[name, colour]], columnNames.size, {
        anchor: lean ? "start" : "middle",
        angle: lean,
      }),
    );
  });
  const isImage = rows * columns > (map.most ?? MANY) && !size;
  if (isImage) {
    const canvas = pixels(rows, columns, (at) => {
      const [row, column] = [Math.floor(at / columns), across(map, at % columns)];
      return map.masked?.(row, column) ? 0 : (map.tone(row, column)?.packed ?? 0);
    });
    shapes.push({ shape: "image", canvas, x, y, w: w * columns, h: h * rows });
  }
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (map.masked?.(row, column)) {
        const from = column;
        while (column + 1 < columns && map.masked(row, column + 1)) column++;
        const first = Math.min(across(map, from), across(map, column));
        shapes.push({ shape: "hatch", x: x + first * w, y: y + row * h, w: (column - from + 1) * w - gap, h: h - gap });
        continue;
      }
      if (isImage) continue;
      const tone = map.tone(row, column);
      const left = x + across(map, column) * w;
      const box = { x: left + gap / 2, y: y + row * h + gap / 2, w: w - gap, h: h - gap };
      if (tone) shapes.push({ shape: "rect", ...box, fill: tone.fill, rx: radius });
      else if (map.empty) shapes.push({ shape: "frame", ...box, stroke: map.empty, width: 1, rx: radius });
      const said = tone && size ? label?.(row, column) : null;
      if (said)
        shapes.push(
          text(left + w / 2, y + (row + 0.5) * h, [[said[0], tone?.ink ?? "", said[1]]], size, {
            anchor: "middle",
          }),
        );
    }
  }
  return [...shapes, ...(map.more ?? []), ...(map.frames ?? []).map((frame) => framed(map, frame))];
}

// A map on the screen. A new frame alone moves no cell.
export class HeatmapView {
  /** @type {Heatmap | null} Now drawn */
  map = null;
  /** @type {SVGSVGElement | HTMLCanvasElement | null} */
  node = null;
  /** @type {Style} */
  style = { hatch: "", font: "" };
  size = [0, 0];

  // label: for those who do not see it; without one the map is hidden from them, and what is around it says what it shows
  /** @param {HTMLElement} host @param {string} [label] */
  constructor(host, label = "") {
    this.host = host;
    this.label = label;
  }

  /** @param {Heatmap} map @param {number} width @param {number} height @param {Style} style */
  draw(map, width, height, style) {
    Object.assign(this, { map, style, size: [width, height] });
    const isCanvas = map.rows * map.columns > MANY;
    if (!this.node || isCanvas !== this.node instanceof HTMLCanvasElement) {
      const made = isCanvas ? el("canvas") : svg("svg");
      if (this.node) this.node.replaceWith(made);
      else this.host.append(made);
      this.node = made;
    }
    if (this.label) this.node.setAttribute("role", "img");
    this.node.setAttribute(this.label ? "aria-label" : "aria-hidden", this.label || "true");
    const { frames, ...ground } = map;
    this.ground = shapesOf(ground);
    if (this.node instanceof SVGSVGElement) {
      this.node.setAttribute("width", String(width));
      this.node.setAttribute("height", String(height));
      const pen = new Pen(this.node);
      if (map.masked) hatching(pen, style.hatch);
      drawShapes(new Pen((this.cells = pen.draw("g", {}))), this.ground);
      this.marks = pen.draw("g", {});
      pen.end();
    }
    this.frame(frames ?? []);
  }

  /** @param {Frame[]} frames */
  frame(frames) {
    const { map, node } = this;
    if (!map || !node) return;
    map.frames = frames;
    const shapes = frames.map((frame) => framed(map, frame));
    if (this.marks && node instanceof SVGSVGElement) return drawShapes(new Pen(this.marks), shapes);
    const [width, height] = this.size;
    const all = [...(this.ground ?? []), ...shapes];
    const { style } = this;
    paintOn(/** @type {HTMLCanvasElement} */ (node), width, height, (context) => paintShapes(context, all, style));
  }

  // The cell under the pointer
  /** @param {MouseEvent} event @returns {[row: number, column: number] | null} */
  at(event) {
    if (!this.map || !this.node) return null;
    const box = this.node.getBoundingClientRect();
    const part = box.width ? this.size[0] / box.width : 1; // it may be shown smaller than it was made
    return cellAt(this.map, (event.clientX - box.left) * part, (event.clientY - box.top) * part);
  }
}
