// What one query looks at, as a table: the same numbers as the map's row, for reading and for screen readers.

import { WORDS as words } from "./constants.js";
import { add, el, fill } from "../../kit/browser/dom.js";
import { HIDDEN } from "./lens.js";

const MOST = 500; // rows

export class Table {
  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "tablebox");
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "region");
  }

  /** @param {import("./types.js").Summary} summary */
  draw({ order, weight, ranking }) {
    const { place } = this.view;
    const { query } = this.view.chosen;
    const lens = this.view.lens();
    const { keys } = lens;
    const caption = query === null ? words.table_caption_all : words.table_caption;
    const what = lens.kind === "head" ? fill(words.table_head, place) : lens.title;
    const parts = { what, query: query === null ? "" : lens.queries[lens.queryOf(query)] };
    const table = el("table", "");
    table.append(el("caption", "", [fill(caption, parts), lens.note].filter(Boolean).join(". ")));
    const head = table.createTHead().insertRow();
    for (const name of [
      words.col_rank,
      words.col_key,
      words.col_position,
      lens.unit === "norm" ? words.col_norm : words.col_weight,
    ]) {
      head.append(Object.assign(el("th", "", name), { scope: "col" }));
    }
    const body = table.createTBody();
    /** @param {(string | number)[]} cells */
    const line = (...cells) => {
      const tr = body.insertRow();
      for (const cell of cells) tr.append(el("td", "", String(cell)));
      tr.cells[1].className = "k";
    };
    for (const [i, k] of order.slice(0, MOST).entries())
      line(ranking?.rank.get(k) ?? i + 1, keys[k], lens.firstKey(k), weight(k).toFixed(4));
    if (ranking?.masked) {
      for (let k = 0; k < keys.length && body.rows.length < MOST; k++) {
        const code = ranking.masked[k];
        const why =
          code === HIDDEN ? words.tip_hidden : fill(words.masked_word, { reason: this.view.numbers.reason(code) });
        if (code) line("", keys[k], lens.firstKey(k), why);
      }
    }
    this.box.setAttribute("aria-label", table.caption?.textContent ?? "");
    const shown = body.rows.length;
    this.box.replaceChildren(table);
    if (shown < keys.length) this.box.append(el("p", "note", fill(words.more, { shown, n: keys.length })));
  }
}
