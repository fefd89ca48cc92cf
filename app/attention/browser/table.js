// What one query looks at, as a table: the same numbers as the map's row, for reading and for screen readers.

import { WORDS as words } from "./constants.js";
import { add, el, fill } from "../../kit/browser/dom.js";
import { MOST_ROWS as MOST, table } from "../../kit/browser/table.js";
import { HIDDEN } from "./lens.js";
import { pointed } from "../../kit/browser/language.js";

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
    const title = [fill(caption, parts), lens.note].filter(Boolean).join(". ");
    /** @type {(string | number)[][]} */
    const rows = order
      .slice(0, MOST)
      .map((k, i) => [ranking?.rank.get(k) ?? i + 1, keys[k], lens.firstKey(k), pointed(weight(k).toFixed(4))]);
    for (let k = 0; ranking?.masked && k < keys.length && rows.length < MOST; k++) {
      const code = ranking.masked[k];
      const why =
        code === HIDDEN ? words.tip_hidden : fill(words.masked_word, { reason: this.view.numbers.reason(code) });
      if (code) rows.push(["", keys[k], lens.firstKey(k), why]);
    }
    const columns = [
      words.col_rank,
      words.col_key,
      words.col_position,
      lens.unit === "norm" ? words.col_norm : words.col_weight,
    ];
    this.box.setAttribute("aria-label", title);
    this.box.replaceChildren(table(title, columns, rows, (_, j) => (j === 1 ? "k" : "")));
    if (rows.length < keys.length)
      this.box.append(el("p", "note", fill(words.more, { shown: rows.length, n: keys.length })));
  }
}
