// The numbers of a lab as tables on the page.

import { add, el, fill, number } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Table} Table */
const MOST_ROWS = 400; // on the page; a file has all

/** @param {string | number} value */
const cell = (value) =>
  typeof value !== "number"
    ? value
    : Number.isInteger(value)
      ? String(value)
      : Math.abs(value) < 0.001 && value
        ? value.toExponential(2)
        : value.toFixed(4);

/** @param {Table[]} tables */
export function shown(tables) {
  return tables.map(({ title, columns, rows }) => {
    const box = el("div", "scroll");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", title);
    const table = add(box, "table");
    add(table, "caption").textContent =
      rows.length > MOST_ROWS ? fill(words.table_first, { title, n: MOST_ROWS, of: number(rows.length) }) : title;
    const head = add(add(table, "thead"), "tr");
    for (const column of columns) head.append(Object.assign(el("th", "", column), { scope: "col" }));
    const body = add(table, "tbody");
    for (const row of rows.slice(0, MOST_ROWS)) {
      const line = add(body, "tr");
      for (const value of row) add(line, "td", typeof value === "number" ? "number" : "").textContent = cell(value);
    }
    return box;
  });
}
