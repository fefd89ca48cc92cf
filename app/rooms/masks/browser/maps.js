// Maps as SVG: a rectangle for each cell, labels around them, patterns for what is hidden, a frame around the row that is looked at.

import { rising, signed } from "../../../kit/browser/picture/scale.js";
import { draw, svg as element, write } from "../../../kit/browser/picture/svg.js";
import { PALETTES } from "./constants.js";

const SLANT = -58; // degrees of the labels above a map
export const ABOVE = 66; // pixels for them

/** @type {Partial<Record<"light" | "dark", ReturnType<typeof made>>>} */
const TONES = {};

// Colours of one scheme: weights by one ramp, scores by two that begin alike
/** @param {"light" | "dark"} scheme */
export const tones = (scheme) => (TONES[scheme] ??= made(scheme));

/** @param {"light" | "dark"} scheme */
function made(scheme) {
  const palette = PALETTES[scheme];
  const [share, score] = [rising(palette), signed(palette)];
  return {
    palette,
    heat: (/** @type {number} */ t) => share(t).fill,
    signed: (/** @type {number} */ t) => score(t).fill,
    ink: (/** @type {number} */ t) => score(t).ink,
  };
}

// Lines, dots and bars over what may not be seen, by the reason; `over` leaves what is below to be seen
/** @param {Element} svg @param {any} palette */
export function patterns(svg, palette) {
  const defs = draw(svg, "defs");
  /** @param {string} id @param {number} size @param {number} turn @param {(box: SVGElement) => void} fill @param {boolean} [over] */
  const pattern = (id, size, turn, fill, over = false) => {
    const box = draw(defs, "pattern", {
      id,
      width: size,
      height: size,
      patternUnits: "userSpaceOnUse",
      patternTransform: `rotate(${turn})`,
    });
    if (!over) draw(box, "rect", { width: size, height: size, fill: palette.background });
    fill(box);
  };
  pattern("future", 5, 45, (box) => draw(box, "rect", { width: 1.1, height: 5, fill: palette.hatch }));
  pattern("edited", 5, -45, (box) => draw(box, "rect", { width: 2, height: 5, fill: palette.query }));
  pattern("window", 5, 0, (box) => draw(box, "rect", { width: 5, height: 1.1, fill: palette.hatch }));
  pattern("padding", 5, 0, (box) => draw(box, "circle", { cx: 2.5, cy: 2.5, r: 1, fill: palette.mute }));
}

const HATCHES = ["", "future", "padding", "window", "edited", "future"];
/** The pattern of a reason, by its number. @param {number} reason */
export const hatch = (reason) => `url(#${HATCHES[reason]})`;

// A small picture of a pattern, for a legend
/** @param {string} name @param {any} palette */
export function swatch(name, palette) {
  const svg = element("svg", { width: 14, height: 14, "aria-hidden": "true" });
  patterns(svg, palette);
  draw(svg, "rect", { width: 14, height: 14, fill: `url(#${name})` });
  return svg;
}

// An empty drawing, as many times as large as its units
/** @param {HTMLElement} parent @param {number} width @param {number} height @param {any} palette @param {string} alt @param {number} [times] */
export function canvas(parent, width, height, palette, alt, times = 1) {
  const svg = draw(parent, "svg", {
    width: width * times,
    height: height * times,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": alt,
  });
  patterns(svg, palette);
  return svg;
}

export class Grid {
  /**
   * @param {Element} svg
   * @param {{x: number, y: number, cell: number, rows: string[], columns: string[], palette: any, letters?: number, named?: boolean, above?: boolean, scrolls?: boolean, act?: (row: number) => void}} how
   *   letters: units of the type of its labels, at most; of a map that scrolls, the labels stay where they are: see stay()
   */
  constructor(
    svg,
    { x, y, cell, rows, columns, palette, letters = 13.5, named = false, above = true, scrolls = false, act },
  ) {
    this.x = x;
    this.y = y;
    this.cell = cell;
    this.palette = palette;
    this.n_query = rows.length;
    this.n_key = columns.length;
    const size = Math.min(letters, Math.max(8, cell * (letters > 13.5 ? 0.82 : 0.72)));
    const every = Math.ceil(9 / cell); // where cells are narrow, not every column has its label
    this.side = draw(svg, "g");
    this.head = draw(svg, "g");
    this.corner = draw(svg, "g");
    if (scrolls) {
      draw(this.side, "rect", { width: x - 2, height: y + rows.length * cell + 6, fill: palette.background });
      draw(this.head, "rect", { width: x + columns.length * cell + 66, height: y - 2, fill: palette.background });
      draw(this.corner, "rect", { width: x - 2, height: y - 2, fill: palette.background });
    }
    if (above)
      columns.forEach(
        (label, k) =>
          k % every ||
          draw(
            this.head,
            "text",
            {
              transform: `translate(${x + (k + 0.62) * cell},${y - 6}) rotate(${SLANT})`,
              "font-size": size,
              fill: palette.key,
            },
            cut(label),
          ),
      );
    this.names = named
      ? rows.map((label, q) => {
          if (q % every) return null;
          const name = write(this.side, x - 8, y + (q + 0.5) * cell + 4.5, cut(label), {
            anchor: "end",
            size,
            fill: palette.ink,
            class: act ? "name" : "",
          });
          if (act) name.addEventListener("click", () => act(q));
          return name;
        })
      : [];
    const gap = cell > 8 ? 1 : 0;
    this.cells = rows.flatMap((_, q) =>
      columns.map((__, k) =>
        draw(svg, "rect", { x: x + k * cell, y: y + q * cell, width: cell - gap, height: cell - gap }),
      ),
    );
    /** @type {string[]} What each is filled with */
    this.filled = [];
    this.over = rows.flatMap(() => columns.map(() => /** @type {SVGElement | null} */ (null)));
    this.svg = svg;
    this.frame = draw(svg, "rect", {
      x: x - 1.5,
      y,
      width: columns.length * cell + 2,
      height: cell + 2,
      fill: "none",
      stroke: palette.query,
      "stroke-width": 2,
      rx: 2,
      "pointer-events": "none",
      visibility: "hidden",
    });
  }

  // Labels in front of the cells, and where they are to be seen after so much was scrolled
  /** @param {number} left @param {number} top @param {SVGElement} title */
  stay(left, top, title) {
    if (!title.isSameNode(this.svg.lastChild)) this.svg.append(this.side, this.head, this.corner, title);
    this.side.setAttribute("transform", `translate(${left} 0)`);
    this.head.setAttribute("transform", `translate(0 ${top})`);
    for (const part of [this.corner, title]) part.setAttribute("transform", `translate(${left} ${top})`);
  }

  get width() {
    return this.n_key * this.cell;
  }
  get height() {
    return this.n_query * this.cell;
  }

  /** @param {(query: number, key: number) => string} fill */
  fill(fill) {
    for (let q = 0, at = 0; q < this.n_query; q++) {
      for (let k = 0; k < this.n_key; k++, at++) {
        const tone = fill(q, k);
        if (tone === this.filled[at]) continue;
        this.filled[at] = tone;
        this.cells[at].setAttribute("fill", tone);
      }
    }
  }

  // A second layer of patterns, where what is below is to be seen; "" is none
  /** @param {(query: number, key: number) => string} fill */
  cover(fill) {
    for (let q = 0, at = 0; q < this.n_query; q++) {
      for (let k = 0; k < this.n_key; k++, at++) {
        const tone = fill(q, k);
        if (!tone) {
          this.over[at]?.remove();
          this.over[at] = null;
        } else if (this.over[at]) {
          this.over[at]?.setAttribute("fill", tone);
        } else {
          const box = draw(this.svg, "rect", {
            x: this.x + k * this.cell,
            y: this.y + q * this.cell,
            width: this.cell - 1,
            height: this.cell - 1,
            fill: tone,
            "pointer-events": "none",
          });
          this.frame.before(box);
          this.over[at] = box;
        }
      }
    }
  }

  /** @param {number | null} row */
  look(row) {
    const isThere = row !== null && row < this.n_query;
    this.frame.setAttribute("visibility", isThere ? "visible" : "hidden");
    if (isThere) this.frame.setAttribute("y", String(this.y + row * this.cell - 1.5));
    this.names.forEach((name, q) => {
      name?.setAttribute("fill", q === row ? this.palette.query : this.palette.ink);
      name?.setAttribute("font-weight", q === row ? "650" : "400");
    });
  }

  // The cell at a point of the drawing, null beside it
  /** @param {number} x @param {number} y @returns {[query: number, key: number] | null} */
  at(x, y) {
    const [q, k] = [Math.floor((y - this.y) / this.cell), Math.floor((x - this.x) / this.cell)];
    return q >= 0 && q < this.n_query && k >= 0 && k < this.n_key ? [q, k] : null;
  }
}

// An arrow with a word above it
/** @param {Element} svg @param {number} x @param {number} y @param {number} width @param {string} word @param {any} palette */
export function arrow(svg, x, y, width, word, palette) {
  write(svg, x + width / 2, y - 8, word, { anchor: "middle", size: 13, fill: palette.mute });
  draw(svg, "path", { d: `M${x} ${y}H${x + width - 5}`, stroke: palette.mute, "stroke-width": 1.6, fill: "none" });
  draw(svg, "path", {
    d: `M${x + width - 8} ${y - 4}L${x + width} ${y}L${x + width - 8} ${y + 4}z`,
    fill: palette.mute,
  });
}

// A heading in a drawing: set off, then plain
/** @param {Element} svg @param {number} x @param {number} y @param {string} bold @param {string} plain @param {any} palette */
export function title(svg, x, y, bold, plain, palette) {
  const text = draw(svg, "text", { x, y, "font-size": 14.5, fill: palette.ink });
  draw(text, "tspan", { "font-weight": 650, fill: palette.ink }, bold);
  draw(text, "tspan", { fill: palette.mute }, ` ${plain}`);
}

/** @param {string} label */
export function cut(label) {
  const letters = Array.from(label);
  return letters.length > 10 ? `${letters.slice(0, 9).join("")}…` : label;
}
