// Tables of the room on the screen.

import { el } from "../../../kit/browser/dom.js";

/** @param {string} caption @param {string[]} columns @param {(string | number)[][]} rows @param {(row: number, column: number) => string} [tone] */
export function table(caption, columns, rows, tone = () => "") {
  const node = el("table");
  node.append(el("caption", "", caption));
  const head = el("tr");
  head.append(...columns.map((name) => (name ? Object.assign(el("th", "", name), { scope: "col" }) : el("td"))));
  const top = el("thead");
  top.append(head);
  const body = el("tbody");
  rows.forEach((row, i) => {
    const line = el("tr");
    line.append(
      ...row.map((value, j) =>
        j ? el("td", tone(i, j), String(value)) : Object.assign(el("th", tone(i, j), String(value)), { scope: "row" }),
      ),
    );
    body.append(line);
  });
  node.append(top, body);
  return node;
}

// A link to a lab with a model that can show it
/** @param {string} label @param {string} lab @param {string} model @param {string} text */
export function elsewhere(label, lab, model, text) {
  const link = el("a", "quiet", label);
  link.href = String(new URL(`?${new URLSearchParams({ view: "masks", lab, model, text })}`, document.baseURI));
  link.target = "_self";
  const line = el("p");
  line.append(link);
  return line;
}
