// Numbers as cells of colour on a canvas, with the number in a cell where there is room, and frames around some of them.

import { el, fixed } from "../../../kit/browser/dom.js";
import { paintOn, pixels } from "../../../kit/browser/picture/canvas.js";
import { signed } from "../../../kit/browser/picture/scale.js";

/** @typedef {{row?: number, column?: number, columns?: number, colour: string, width?: number}} Frame */
/** @typedef {{scale: import("../../../kit/browser/picture/scale.js").Scale, ink: string, css: (name: string) => string}} Paint */

/** @param {import("./types.js").Palette} palette @returns {Paint} */
export function paintOf(palette) {
  return {
    scale: signed(palette),
    ink: palette.ink,
    css: (name) => String(palette[name]),
  };
}

// Infinite numbers have the colour of 0.
/** @param {Paint} paint @param {number} value @param {number} limit */
const toneOf = (paint, value, limit) => paint.scale(Number.isFinite(value) ? value / limit : 0);

// A vector as a barcode; of more numbers than pixels, the largest magnitude of each pixel
/** @param {HTMLCanvasElement} canvas @param {ArrayLike<number>} vector @param {number} width @param {number} height @param {Paint} paint @param {number} limit */
export function barcode(canvas, vector, width, height, paint, limit) {
  const n = vector.length;
  if (!n) return;
  const places = Math.min(n, Math.round(width * (devicePixelRatio || 1)));
  const step = width / places;
  paintOn(canvas, width, height, (context) => {
    for (let x = 0; x < places; x++) {
      let best = vector[Math.floor((x * n) / places)];
      for (let i = Math.floor((x * n) / places) + 1; i < Math.floor(((x + 1) * n) / places); i++)
        if (Math.abs(vector[i]) > Math.abs(best)) best = vector[i];
      context.fillStyle = toneOf(paint, best, limit).fill;
      context.fillRect(x * step, 0, step + 0.4, height);
    }
  });
}

export class Grid {
  /** @type {Frame[]} */
  frames = [];
  drawn = false;
  /** @type {HTMLCanvasElement | null} The cells without numbers, a pixel each */
  cells = null;

  /**
   * @param {HTMLElement} host
   * @param {{rows: number, columns: number, width: number, height: number, limit: number, value: (row: number, column: number) => number,
   *   paint: Paint, size?: number, digits?: number, gap?: number, alpha?: (row: number, column: number) => number, frames?: Frame[]}} options
   *   width and height are of one cell; size is that of the numbers in them, 0 for none
   */
  constructor(host, options) {
    this.options = options;
    this.fixedFrames = options.frames ?? [];
    this.canvas = host.appendChild(el("canvas", "grid"));
    this.canvas.setAttribute("aria-hidden", "true");
    this.width = options.columns * options.width;
    this.height = options.rows * options.height;
    queueMicrotask(() => this.drawn || this.draw()); // unless it is marked, and so drawn, before
  }

  draw() {
    this.drawn = true;
    this.cells = this.options.size ? null : this.coloured();
    this.paint();
  }

  // The cells as they are, and the frames around some of them
  paint() {
    paintOn(this.canvas, this.width, this.height, (context) => this.paintAll(context));
  }

  /** @param {CanvasRenderingContext2D} context */
  paintAll(context) {
    const o = this.options;
    const gap = Math.min(o.gap ?? (o.width >= 8 ? 1 : 0), o.width / 2);
    const below = o.height > 7 ? 1 : 0;
    if (this.cells) {
      const wide = (this.width * this.cells.width * this.pooled) / o.columns;
      context.imageSmoothingEnabled = false;
      context.drawImage(this.cells, 0, 0, wide, this.height);
      if (gap)
        for (let column = this.pooled; column <= o.columns; column += this.pooled)
          context.clearRect(column * o.width - gap, 0, gap, this.height);
      if (below)
        for (let row = 1; row <= o.rows; row++) context.clearRect(0, row * o.height - below, this.width, below);
    } else this.numbers(context, gap, below);
    for (const frame of [...this.fixedFrames, ...this.frames]) this.frame(context, frame, gap);
  }

  // How many cells are shown as one, by their largest magnitude: none is narrower than a pixel, in which it would be lost
  get pooled() {
    return Math.max(1, Math.ceil(1 / (this.options.width * (devicePixelRatio || 1)) - 1e-9));
  }

  // A pixel for every cell, which the canvas then enlarges: thousands of rectangles would take longer than a frame.
  coloured() {
    const o = this.options;
    const pool = this.pooled;
    const columns = Math.ceil(o.columns / pool);
    return pixels(o.rows, columns, (at) => {
      const row = Math.floor(at / columns);
      const column = (at % columns) * pool;
      let value = o.value(row, column);
      for (let i = 1; i < pool && column + i < o.columns; i++)
        if (Math.abs(o.value(row, column + i)) > Math.abs(value)) value = o.value(row, column + i);
      const alpha = o.alpha ? Math.round(255 * o.alpha(row, column)) : 255;
      return ((toneOf(o.paint, value, o.limit).packed & 0xffffff) | (alpha << 24)) >>> 0;
    });
  }

  // Cells with their numbers in them
  /** @param {CanvasRenderingContext2D} context @param {number} gap @param {number} below */
  numbers(context, gap, below) {
    const o = this.options;
    context.font = `${o.size}px "Source Sans", sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let row = 0; row < o.rows; row++) {
      for (let column = 0; column < o.columns; column++) {
        context.globalAlpha = o.alpha ? o.alpha(row, column) : 1;
        const value = o.value(row, column);
        const { fill, ink } = toneOf(o.paint, value, o.limit);
        context.fillStyle = fill;
        context.fillRect(column * o.width, row * o.height, o.width - gap, o.height - below);
        context.fillStyle = Number.isFinite(value) ? ink : o.paint.ink;
        context.fillText(
          fixed(value, o.digits ?? 2),
          column * o.width + (o.width - gap) / 2,
          row * o.height + o.height / 2,
        );
      }
    }
    context.globalAlpha = 1;
  }

  /** @param {CanvasRenderingContext2D} context @param {Frame} frame @param {number} gap */
  frame(context, { row, column, columns = 1, colour, width = 2 }, gap) {
    const o = this.options;
    const left = column === undefined ? 0 : column * o.width;
    const right = column === undefined ? this.width : (column + columns) * o.width - gap;
    const top = row === undefined ? 0 : row * o.height;
    const bottom = row === undefined ? this.height : (row + 1) * o.height;
    const inset = width / 2;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(
      Math.max(inset, left - 0.5),
      Math.max(inset, top - 0.5),
      Math.min(this.width - inset, right + 0.5) - Math.max(inset, left - 0.5),
      Math.min(this.height - inset, bottom) - Math.max(inset, top - 0.5),
    );
  }

  /** @param {Frame[]} frames */
  mark(frames) {
    if (this.drawn && !frames.length && !this.frames.length) return;
    this.frames = frames;
    if (this.drawn) this.paint();
    else this.draw();
  }

  /** @param {PointerEvent | MouseEvent} event @returns {[row: number, column: number]} */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const o = this.options;
    const row = Math.floor(((event.clientY - box.top) / box.height) * o.rows);
    const column = Math.floor(((event.clientX - box.left) / box.width) * o.columns);
    return [Math.max(0, Math.min(o.rows - 1, row)), Math.max(0, Math.min(o.columns - 1, column))];
  }

  // Pointing and choosing, with the cell; leave() when the pointer goes
  /** @param {(row: number, column: number) => void} point @param {(row: number, column: number) => void} choose @param {() => void} leave */
  listen(point, choose, leave) {
    this.canvas.addEventListener("pointermove", (event) => point(...this.at(event)));
    this.canvas.addEventListener("pointerleave", leave);
    this.canvas.addEventListener("click", (event) => choose(...this.at(event)));
    return this;
  }
}
