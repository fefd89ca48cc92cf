// The numbers of a picture as a table.

import { add, fill } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { count, fixed } from "./sums.js";

const [MOST_ROWS, MOST_COLUMNS] = [200, 20]; // the rest is in the file

/** @param {HTMLElement} host @param {import("./types.js").Numbers} numbers @param {string} caption */
export function drawTable(host, { columns, rows }, caption) {
  const box = add(host, "div", "tablebox");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  const table = add(box, "table");
  add(table, "caption").textContent = caption;
  const head = add(add(table, "thead"), "tr");
  for (const name of columns.slice(0, MOST_COLUMNS)) {
    const cell = add(head, "th");
    cell.scope = "col";
    cell.textContent = name;
  }
  const body = add(table, "tbody");
  for (const row of rows.slice(0, MOST_ROWS)) {
    const line = add(body, "tr");
    row.slice(0, MOST_COLUMNS).forEach((value, i) => {
      const cell = add(line, i ? "td" : "th");
      if (!i) /** @type {HTMLTableCellElement} */ (cell).scope = "row";
      cell.textContent =
        typeof value === "number" ? (Number.isInteger(value) ? String(value) : fixed(value, 4)) : value;
      if (typeof value === "number") cell.className = "number";
    });
  }
  const more = rows.length * columns.length - Math.min(rows.length, MOST_ROWS) * Math.min(columns.length, MOST_COLUMNS);
  if (more > 0) add(box, "p", "note").textContent = fill(words.table_more, { n: count(more) });
}
