// A table as CSV below lines that say what it is. What a spreadsheet would run is decided here for all files that the browser writes; for
// those of the server in app/export/files.py.

import { WORDS as words } from "./words.js";

const FORMULA = /^'*[=+\-@＝＋－＠\t\r]/; // one apostrophe more is taken off again without doubt

/** A field: a number as short as it is exact, a text quoted, with an apostrophe before what a spreadsheet would run @param {string | number} value */
export function field(value) {
  if (typeof value === "number")
    return Number.isFinite(value) ? String(Math.fround(value) === value ? Number(value.toPrecision(9)) : value) : "";
  return `"${FORMULA.test(value) ? "'" : ""}${value.replaceAll('"', '""')}"`;
}

/** `about` are texts of one line or more. @param {string[]} columns @param {(string | number)[][]} rows @param {string[]} about */
export function csv(columns, rows, about) {
  // A spreadsheet cuts these lines too, where it cuts lines: no piece of one may begin as a formula does.
  const said = about
    .flatMap((text) => text.split("\n"))
    .map((line) => `# ${line.replace(/([,;\t])(?=[=+\-@＝＋－＠])/g, "$1 ")}`.trimEnd());
  const isGuarded = [columns, ...rows].flat().some((value) => typeof value === "string" && FORMULA.test(value));
  if (isGuarded) said.push(`# ${words.csv_guard}`);
  const head = columns.map((name) => (/[",\r\n]/.test(name) || FORMULA.test(name) ? field(name) : name));
  return [...said, head.join(","), ...rows.map((row) => row.map(field).join(",")), ""].join("\r\n");
}
