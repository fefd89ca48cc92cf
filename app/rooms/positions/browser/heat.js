// A table of positions as a picture: a row for each position, blue above 0 and purple below, with two rows held.

import { add, button, clamp, el, fill, fixed, number } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { paintOn, pixels } from "../../../kit/browser/picture/canvas.js";
import { signed } from "../../../kit/browser/picture/scale.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { picture } from "./draw.js";
import { bound, furthest } from "./numbers.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Rows} Rows */
export const WINDOW = 64; // rows of the table on the screen
const BENEATH = 60; // units of the design that its legend takes
const CUT = 0.005; // of the numbers lie beyond the colours' scale

export class Heat {
  /** @type {Element | null} What a drag is measured by */
  box = null;
  /** @type {{rows: Rows, palette: object, columns: number, scale: number, image: HTMLCanvasElement} | null} */
  picture = null;

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
  }

  /** @param {HTMLElement} host @param {Rows} rows @param {number} i @param {number} j */
  draw(host, rows, i, j) {
    const { view } = this;
    const { unit } = view;
    const title = add(host, "h2");
    title.append(el("b", "", words.table), ` ${words.table_note}`);
    const left = 58 * unit;
    const width = Math.round(view.narrow ? Math.min(view.width - left - 8, 620 * unit) : 384 * unit);
    const height = Math.round(Math.max(150 * unit, Math.min(336 * unit, view.below(title) - BENEATH * unit)));
    const box = add(host, "div", "heat");
    box.style.cssText = `margin-left: ${left}px; width: ${width}px; height: ${height}px`;
    const canvas = add(box, "canvas");
    const step = height / rows.rows;
    const { scale, image } = this.painted(rows, Math.min(width, rows.columns));
    paintOn(canvas, width, height, (context) => {
      context.imageSmoothingEnabled = false;
      context.drawImage(image, 0, 0, width, height);
    });
    canvas.setAttribute("role", "img");
    canvas.setAttribute(
      "aria-label",
      fill(words.table_label, { n: rows.rows, first: rows.first, last: rows.first + rows.rows - 1, d: rows.columns }),
    );
    this.box = canvas;
    const over = add(box, "div", "over");
    over.style.left = `${-left}px`;
    const svg = picture(over, width + left + 8, height + 24 * unit, words.table);
    svg.setAttribute("aria-hidden", "true");
    for (const [name, at, colour, kind] of /** @type {[string, number, string, string][]} */ ([
      ["i", i, "var(--query)", "qt b"],
      ["j", j, "var(--key)", "kt b"],
    ])) {
      const row = at - rows.first;
      if (row < 0 || row >= rows.rows) continue;
      const group = draw(svg, "g", { "data-drag": name });
      draw(group, "rect", {
        x: left,
        y: row * step - 1,
        width,
        height: step + 2,
        fill: "none",
        stroke: colour,
        "stroke-width": 2,
      });
      draw(group, "rect", {
        x: 0,
        y: (row + 0.5) * step - 11 * unit,
        width: left + width,
        height: 22 * unit,
        fill: "transparent",
      });
      write(group, left - 8 * unit, (row + 0.5) * step + 4.5 * unit, String(at), {
        anchor: "end",
        class: kind,
        size: 13.5 * unit,
      });
    }
    for (const row of [0, rows.rows - 1]) {
      if (Math.min(Math.abs(row + rows.first - i), Math.abs(row + rows.first - j)) > 3)
        write(svg, left - 8 * unit, (row + 0.5) * step + 4.5 * unit, String(row + rows.first), {
          anchor: "end",
          class: "mt",
          size: 13.5 * unit,
        });
    }
    write(svg, left, height + 18 * unit, "0", { class: "mt", size: 13 * unit });
    write(svg, left + width, height + 18 * unit, String(rows.columns - 1), {
      anchor: "end",
      class: "mt",
      size: 13 * unit,
    });
    box.onpointermove = (event) => {
      const at = this.under(event, rows);
      view.tip.follow(at ? [fill(words.table_tip, { ...at, value: fixed(at.value, 4) })] : [], event);
    };
    box.onpointerleave = () => view.tip.hide();
    const legend = add(host, "p", "legend");
    legend.style.marginLeft = `${left}px`;
    legend.append(`${fixed(-scale, 3)} `, el("i", "ahead"), el("i", "ramp"), ` ${fixed(scale, 3)} · ${words.cut}`);
    this.windows(host, rows, left);
  }

  // The table as a picture of a pixel for each number, which a drag does not change
  /** @param {Rows} rows @param {number} columns */
  painted(rows, columns) {
    const { palette } = this.view;
    const known = this.picture;
    if (known?.rows === rows && known.palette === palette && known.columns === columns) return known;
    const scale = bound(rows.first ? rows.values : rows.values.subarray(rows.columns), CUT); // row 0 of a learned table is unlike the rest
    const lines = Array.from({ length: rows.rows }, (_, row) =>
      furthest(rows.values.subarray(row * rows.columns, (row + 1) * rows.columns), columns),
    );
    const tone = signed(palette);
    const image = pixels(
      rows.rows,
      columns,
      (at) => tone(lines[Math.floor(at / columns)][at % columns] / scale).packed,
    );
    return (this.picture = { rows, palette, columns, scale, image });
  }

  /** @param {PointerEvent} event @param {Rows} rows */
  under(event, rows) {
    const frame = /** @type {Element} */ (this.box).getBoundingClientRect();
    const row = Math.floor(((event.clientY - frame.top) / frame.height) * rows.rows);
    const feature = Math.floor(((event.clientX - frame.left) / frame.width) * rows.columns);
    if (row < 0 || row >= rows.rows || feature < 0 || feature >= rows.columns) return null;
    return { position: row + rows.first, feature, value: rows.values[row * rows.columns + feature] };
  }

  // The way to the other rows of the table
  /** @param {HTMLElement} host @param {Rows} rows @param {number} left */
  windows(host, rows, left) {
    const { view } = this;
    const n = view.header.n_ctx;
    if (n <= WINDOW) return;
    const line = add(host, "p", "windows");
    line.style.marginLeft = `${left}px`;
    const go = (
      /** @type {string} */ text,
      /** @type {string} */ label,
      /** @type {number} */ first,
      /** @type {boolean} */ off,
    ) => {
      const to = String(clamp(first, 0, Math.max(0, n - WINDOW)));
      const made = button(text, "quiet", () => view.choose({ first: to }));
      return Object.assign(made, { disabled: off, ariaLabel: label });
    };
    line.append(
      go("‹", words.rows_before, rows.first - WINDOW, rows.first === 0),
      el("span", "mute", fill(words.rows_shown, { first: rows.first, last: rows.first + rows.rows - 1, n: number(n) })),
      go("›", words.rows_after, rows.first + WINDOW, rows.first + rows.rows >= n),
    );
  }
}
