// Every traced step as a table, and as a file.

import { WORDS as words } from "./constants.js";
import { csv } from "../../../kit/browser/csv.js";
import { add, el, worded } from "../../../kit/browser/dom.js";
import { axis, plain } from "./format.js";

const MIB = 1 << 20;

export class Table {
  /** @param {import("./types.js").View} view @param {HTMLElement} box */
  constructor(view, box) {
    this.view = view;
    this.box = box;
  }

  // [part, times, title, traced as, axes, shape, dtype, bytes, flops, view] of every step, with words for parts
  lines() {
    return this.view.header.table.map(([stack, times, title, name, op, axes, shape, dtype, bytes, flops, view]) => ({
      part: worded({ ...words.stacks, ...words.sections }, stack),
      times,
      title,
      name,
      op,
      axes,
      shape,
      dtype,
      bytes,
      flops,
      view,
    }));
  }

  draw() {
    this.box.replaceChildren();
    add(this.box, "p", "note").textContent = words.table_caption;
    const scroll = add(this.box, "div", "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", words.table_caption);
    const table = add(scroll, "table");
    const heads = add(add(table, "thead"), "tr");
    for (const text of words.table_columns)
      text ? Object.assign(add(heads, "th"), { textContent: text, scope: "col" }) : add(heads, "td");
    const body = add(table, "tbody");
    for (const line of this.lines()) {
      const row = add(body, "tr");
      /** @param {string | number} text */
      const cell = (text, kind = "") => Object.assign(add(row, "td", kind), { textContent: String(text) });
      cell(line.part);
      cell(line.times > 1 ? line.times : "", "num");
      cell(line.title);
      cell(line.name, "code");
      cell(line.axes.join(" × "));
      const shape = add(row, "td", "sizes");
      shape.append("[", ...line.shape.flatMap((n, i) => [i ? ", " : "", el("b", axis(line.axes[i]), String(n))]), "]");
      cell(line.dtype);
      cell((line.bytes / MIB).toFixed(3), "num");
      cell((line.bytes / 1e6).toFixed(3), "num");
      cell(line.flops ? plain(line.flops) : "", "num");
      cell(line.view ? words.view : "");
    }
  }

  // All of it below lines that start with # and say what it is
  csv() {
    const { header: data } = this.view;
    const heads = [
      "part",
      "times",
      "step",
      "traced_as",
      "operation",
      "axes",
      "shape",
      "dtype",
      "bytes",
      "mib",
      "mb",
      "flops",
      "view",
    ];
    const lines = this.lines().map((l) => [
      l.part,
      l.times,
      l.title,
      l.name,
      l.op,
      l.axes.join(" × "),
      l.shape.join(" × "),
      l.dtype,
      l.bytes,
      l.bytes / MIB,
      l.bytes / 1e6,
      l.flops,
      String(l.view),
    ]);
    return csv(heads, lines, [data.caption, data.snippet]);
  }
}
