// Every traced step as a table, and as a file.

import { WORDS as words } from "./constants.js";
import { csv } from "../../../kit/browser/csv.js";
import { el, fixed, number, worded } from "../../../kit/browser/dom.js";
import { tableBox } from "../../../kit/browser/table.js";
import { axis } from "./format.js";

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
    const rows = this.lines().map((line) => {
      const shape = el("span", "sizes");
      shape.append("[", ...line.shape.flatMap((n, i) => [i ? ", " : "", el("b", axis(line.axes[i]), String(n))]), "]");
      return [
        line.part,
        line.times > 1 ? line.times : "",
        line.title,
        el("code", "", line.name),
        line.axes.join(" × "),
        shape,
        line.dtype,
        fixed(line.bytes / MIB, 3),
        fixed(line.bytes / 1e6, 3),
        line.flops ? number(line.flops) : "",
        line.view ? words.view : "",
      ];
    });
    this.box.replaceChildren(tableBox(words.table_caption, words.table_columns, rows));
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
