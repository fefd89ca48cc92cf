// Tables of numbers on the page: for those who read no picture, and for those who want to read more of it. A file has all.

import { add, el, fill, fixed, focusable, minus, number } from "./dom.js";
import { WORDS as words } from "./words.js";
import { pointed } from "./language.js";

/** @typedef {string | number | Node} Cell */
export const MOST_ROWS = 400;
const MOST_COLUMNS = 20;
const NUMBER = /^[-+−<>≤≈]? ?[\d.,]+(e[-+−]?\d+)?( %)?$/;

// A number as a table says it: four digits after the point, and none where it is whole
/** @param {number} value */
function decimals(value) {
  if (Number.isInteger(value)) return minus(value);
  if (Math.abs(value) >= 0.001 || !Number.isFinite(value)) return fixed(value, 4);
  return pointed(`${value < 0 ? "−" : ""}${Math.abs(value).toExponential(2)}`);
}

/** @param {Cell} cell */
const isNumber = (cell) => typeof cell === "number" || (typeof cell === "string" && (!cell || NUMBER.test(cell)));

/**
 * A table whose first column names the rows. A column of numbers, or of texts that are numbers, stands at the right.
 * @param {string} caption @param {string[]} columns one without a name is a corner @param {Cell[][]} rows
 * @param {(row: number, column: number) => string} [tone] the class of a cell
 */
export function table(caption, columns, rows, tone = () => "") {
  const shown = rows.slice(0, MOST_ROWS).map((row) => row.slice(0, MOST_COLUMNS));
  const isRight = columns.map((_, j) => j < MOST_COLUMNS && shown.length > 0 && shown.every((row) => isNumber(row[j])));
  const right = (/** @type {number} */ j) => (isRight[j] ? " number" : "");
  const made = el("table", "numbers");
  add(made, "caption").textContent = caption;
  const head = add(add(made, "thead"), "tr");
  columns.slice(0, MOST_COLUMNS).forEach((name, j) => {
    const cell = add(head, name ? "th" : "td", right(j).trim());
    cell.textContent = name;
    if (name) cell.scope = "col";
  });
  const body = add(made, "tbody");
  shown.forEach((row, i) => {
    const line = add(body, "tr");
    row.forEach((value, j) => {
      const isHeader = !j && value !== ""; // a row without a name has no header
      const cell = add(line, isHeader ? "th" : "td", `${tone(i, j)}${right(j)}`.trim());
      if (isHeader) cell.scope = "row";
      cell.append(typeof value === "number" ? decimals(value) : value);
    });
  });
  return made;
}

/**
 * The same under a heading that says what it is: the caption is for those who do not see that.
 * @param {Parameters<typeof table>} of
 */
export function plainTable(...of) {
  const made = table(...of);
  made.caption?.classList.add("unseen");
  return made;
}

/**
 * The same in a box that the keys scroll, with a line on what only the file has.
 * @param {string} caption @param {string[]} columns @param {Cell[][]} rows @param {(row: number, column: number) => string} [tone]
 */
export function tableBox(caption, columns, rows, tone) {
  const box = focusable(el("div", "tablebox"), "region", caption);
  box.append(table(caption, columns, rows, tone));
  const more = rows.length * columns.length - Math.min(rows.length, MOST_ROWS) * Math.min(columns.length, MOST_COLUMNS);
  if (more > 0) add(box, "p", "note").textContent = fill(words.table_more, { n: number(more) });
  return box;
}
