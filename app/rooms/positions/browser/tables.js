// The numbers of a lab as tables: on the page, and as CSV below lines that say what they are.

import { add, el, fill, number } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Table} Table */
const MOST_ROWS = 400; // on the page; a file has all

/** @param {string | number} value */
const cell = (value) => (typeof value !== "number" ? value : Number.isInteger(value) ? String(value) : Math.abs(value) < 0.001 && value ? value.toExponential(2) : value.toFixed(4));

/** @param {Table[]} tables */
export function shown(tables) {
  return tables.map(({ title, columns, rows }) => {
    const box = el("div", "scroll");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", title);
    const table = add(box, "table");
    add(table, "caption").textContent = rows.length > MOST_ROWS ? fill(words.table_first, { title, n: MOST_ROWS, of: number(rows.length) }) : title;
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

// A field as a spreadsheet takes it: quoted, and never the beginning of a formula
/** @param {string | number} value */
export function field(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(Math.fround(value) === value ? Number(value.toPrecision(9)) : value) : "";
  const text = value.replaceAll('"', '""');
  return /^[=+\-@\t\r]/.test(text) ? `"'${text}"` : `"${text}"`;
}

/** @param {Table} table @param {string} caption @param {string} snippet */
export function csv({ columns, rows }, caption, snippet) {
  const about = [caption, ...snippet.split("\n")].map((line) => (line.trim() ? `# ${line.replace(/([,;\t])(?=[=+\-@])/g, "$1 ")}` : "#"));
  return [...about, columns.map(field).join(","), ...rows.map((row) => row.map(field).join(",")), ""].join("\r\n");
}
