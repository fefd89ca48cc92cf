// What the pictures of the steps are made of: labels where they stand, strips of numbers, and the map of what sublayers add.

import { add, fill, pinned, quoted, worded } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { WORDS as words } from "./constants.js";
import { paintOn } from "../../../kit/browser/picture/canvas.js";
import { Grid } from "./grid.js";
import { limit } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */
/** @typedef {import("./types.js").From} From */
/** @typedef {import("./types.js").Cell} Cell */

/** Puts rows of a grid somewhere else. @typedef {(grid: Grid, from: number, to: number, place: [x: number, y: number, width: number, height: number], alpha?: number) => void} Put */
const LEAST = 280; // pixels that a picture takes, also where there is less

// A label in a picture
/** @param {HTMLElement} host @param {number} x @param {number} y @param {string} className @param {string | (string | Node)[]} text @param {number} [width] */
export function label(host, x, y, className, text, width) {
  const node = add(host, "div", `lab ${className}`);
  node.append(...(typeof text === "string" ? [text] : text));
  if (width !== undefined) node.title = node.textContent ?? ""; // it may be cut off
  return pinned(node, { left: x, top: y, ...(width === undefined ? {} : { width }) });
}

// What every picture needs: labels where they stand, strips of numbers, and the table behind it
export class Sheet {
  /** @type {{grid: Grid, row: number}[]} Strips, and which row of the picture each is */
  strips = [];

  /** @param {HTMLElement} host @param {Shown} on */
  constructor(host, on) {
    this.host = host;
    this.on = on;
    this.r = on.rem / 15.55;
    const box = on.box ?? host.getBoundingClientRect();
    this.width = box.width;
    this.height = Math.max(box.height, LEAST);
    this.left = (box.width < 560 ? 74 : 118) * this.r;
    this.paint = on.paint;
  }

  /** @param {number} x @param {number} y @param {string} className @param {string | Node[]} text @param {number} [width] */
  label(x, y, className, text, width) {
    return label(this.host, x, y, className, text, width);
  }

  /** @param {number} x @param {number} y @param {ConstructorParameters<typeof Grid>[1]} options @param {(row: number, column: number) => Cell} [cellOf] */
  grid(x, y, options, cellOf) {
    const grid = new Grid(this.host, options);
    pinned(grid.canvas, { left: x, top: y });
    if (cellOf) {
      grid.listen(
        (row, column) => this.on.point(cellOf(row, column)),
        (row, column) => this.on.choose({ cell: cellOf(row, column).join(".") }),
        () => this.on.leave(),
      );
    }
    return grid;
  }

  // A canvas over the picture, on which rows of its grids are on their way: nothing is on it once they are there
  /** @returns {(moment: number, draw: (put: Put) => void) => void} */
  flight() {
    /** @type {HTMLCanvasElement | undefined} */
    let canvas;
    return (moment, draw) => {
      if (moment >= 1) {
        canvas?.remove();
        canvas = undefined;
        return;
      }
      if (!canvas) {
        canvas = add(this.host, "canvas", "flight");
        canvas.setAttribute("aria-hidden", "true");
      }
      paintOn(canvas, this.width, this.height, (context) =>
        draw((grid, from, to, [x, y, width, height], alpha = 1) => {
          const { canvas: source, options } = grid;
          if (!source.width || !source.height) return;
          const ratio = source.height / options.rows;
          context.globalAlpha = alpha;
          context.drawImage(source, 0, from * ratio, source.width, (to - from) * ratio, x, y, width, height);
        }),
      );
    };
  }

  // One vector as a row of the picture
  /** @param {number} row @param {number} y @param {string | Node[]} name @param {ArrayLike<number>} vector @param {{height?: number, note?: string, limit?: number, className?: string, right?: number}} [options] */
  strip(
    row,
    y,
    name,
    vector,
    {
      height = 24 * this.r,
      note = "",
      limit: lim = limit(/** @type {number[]} */ (vector)),
      className = "",
      right = 4,
    } = {},
  ) {
    this.label(0, y + height / 2 - (note ? 7 * this.r : 0), `r ${className}`, name, this.left - 12 * this.r);
    if (note) this.label(0, y + height / 2 + 8 * this.r, "r note", note, this.left - 12 * this.r);
    const grid = this.grid(
      this.left,
      y,
      {
        rows: 1,
        columns: vector.length,
        width: (this.width - this.left - right) / vector.length,
        height,
        limit: lim,
        paint: this.paint,
        gap: 0,
        value: (_, j) => vector[j],
      },
      (_, j) => [row, j],
    );
    this.strips.push({ grid, row });
    return grid;
  }

  // The chosen number in every strip of the picture
  /** @param {Cell} cell @param {boolean} [all] in every strip, not only in its own */
  mark([row, j], all = true) {
    for (const strip of this.strips)
      strip.grid.mark(all || strip.row === row ? [{ row: 0, column: j, colour: this.paint.css("query") }] : []);
  }
}

/** @param {Shown} on @param {string} step @param {number[]} index @param {(answer: import("./types.js").ServerTerms) => From} make @returns {From} */
export function asked(on, step, index, make) {
  const answer = on.terms(step, index);
  if (answer === null) return { title: words.asking };
  return answer.refused ? { title: answer.refused } : make(answer);
}

export const x = (/** @type {number} */ j) => `x[${j}]`;
/** @param {string} name @param {ArrayLike<number>} vector */
export const column = (name, vector) => ({ columns: ["index", name], rows: Array.from(vector, (v, j) => [j, v]) });
/** @param {string[]} names @param {ArrayLike<number>[]} vectors */
export const columnsOf = (names, vectors) => ({
  columns: ["index", ...names],
  rows: Array.from(vectors[0], (_, j) => [j, ...vectors.map((v) => v[j])]),
});

// What every sublayer adds to every token: layers down, tokens across
/** @param {Sheet} sheet @param {number} top @param {number} here the row that the step is about */
export function heat(sheet, top, here) {
  const { on, r, paint } = sheet;
  const { walk, header, labels } = on;
  const values = walk.array("added");
  const [rows, n] = walk.shape("added");
  const room = sheet.height - top - 44 * r;
  const tall = Math.max(3, Math.min(19 * r, room / rows));
  const wide = (sheet.width - sheet.left - 4) / n;
  const most = Math.sqrt(values.reduce((a, b) => Math.max(a, b), 1e-9));
  const every = header.added_every;
  sheet.label(
    sheet.left,
    top,
    "top",
    `${words.heat_title}${every > 1 ? `. ${fill(words.heat_pooled, { n: every })}` : ""}`,
    sheet.width - sheet.left,
  );
  const y = top + 20 * r;
  const own = Math.floor(header.query / every);
  const grid = sheet.grid(sheet.left, y, {
    rows,
    columns: n,
    width: wide,
    height: tall,
    limit: most,
    paint,
    value: (row, j) => Math.sqrt(values[row * n + j]),
    frames: [
      { column: own, colour: paint.css("query") },
      ...(here >= 0 ? [{ row: here, colour: paint.css("ink"), width: 1.3 }] : []),
    ],
  });
  for (let row = 0; row < rows; row++) {
    const [l, what] = header.added[row];
    if (tall < 0.82 * on.rem && row !== here && row % Math.ceil((0.82 * on.rem) / tall)) continue;
    sheet.label(
      0,
      y + tall * (row + 0.5),
      `r small${l === header.layer ? " here" : ""}`,
      fill(words.heat_row, { l, what: worded(words.sublayers, what) }),
      sheet.left - 12 * r,
    );
  }
  if (wide > 20 && every === 1)
    labels.forEach((text, i) =>
      sheet.label(
        sheet.left + wide * i,
        y + tall * rows + 10 * r,
        `c small${i === header.query ? " q here" : ""}`,
        text,
        wide - 2,
      ),
    );
  return { grid, rows, n, values, every };
}

// The numbers of a picture, and below them those of the additions: row −1 − i is row i of these
/** @param {ReturnType<typeof heat>} map @param {Sheet} sheet @param {Omit<Picture, "show">} picture @returns {Picture} */
export function withHeat(map, sheet, picture) {
  const { on } = sheet;
  /** @type {(row: number, j: number) => Cell} */
  const cell = (row, j) => [picture.rows + row, j];
  map.grid.listen(
    (row, j) => on.point(cell(row, j)),
    (row, j) => on.choose({ cell: cell(row, j).join(".") }),
    () => on.leave(),
  );
  return {
    ...picture,
    rows: picture.rows + map.rows,
    show: ([row, j]) => {
      const inside = row >= picture.rows;
      sheet.mark([row, inside ? -1 : j]);
      map.grid.mark(
        inside ? [{ row: row - picture.rows, column: Math.min(j, map.n - 1), colour: sheet.paint.css("query") }] : [],
      );
    },
    from: ([row, j]) => {
      if (row < picture.rows) return picture.from([row, j]);
      const at = Math.min(j, map.n - 1);
      const [l, what] = on.header.added[row - picture.rows];
      return {
        title: fill(words.heat_says, {
          l,
          what: worded(words.sublayers, what),
          k: quoted(on.labels[Math.min(on.labels.length - 1, at * map.every)]),
          a: long(map.values[(row - picture.rows) * map.n + at]),
        }),
      };
    },
  };
}
