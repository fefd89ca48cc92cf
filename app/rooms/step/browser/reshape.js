// The page of the reshape: one number followed from the fused projection into its head, and its place in memory.

import { el, fill, fixed } from "../../../kit/browser/dom.js";
import { followed } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { feet } from "./foot.js";
import { sentence } from "./sentences.js";

/** @typedef {import("./types.js").From} From */
/** @typedef {import("./types.js").Spot} Spot */
/** @typedef {import("./types.js").SmallPage} SmallPage */

// Sentence, token and number of a spot, in whichever shape it was pointed at
/** @param {Spot} spot */
export const indexOf = ([name, row, column]) => [
  Number(name[1]),
  row,
  name.length > 2 ? Number(name[2]) * 4 + column : column,
];

/** @implements {SmallPage} */
export class ReshapePage {
  /** @param {import("./small.js").Small} small */
  constructor(small) {
    this.small = small;
  }

  /** @returns {Spot} */
  opens() {
    return ["a0", 2, 5];
  }

  /** @returns {import("./types.js").Rows} */
  numbers() {
    return [0, 1].map((s) => [`qkv[${s}]`, this.small.data.reshape.qkv[s]]);
  }

  draw() {
    const { view, host } = this.small;
    const { qkv } = this.small.data.reshape;
    this.small.head(words.reshape_title, words.reshape_facts, [
      ["batch", 2],
      ["query", 4],
      ["d_model", 8],
    ]);
    view.big.replaceChildren(...sentence(words.reshape_says, {}));
    const box = this.small.room();
    const narrow = box.width < 760;
    const r = view.rem / 15.55;
    const tall = narrow ? 18 : Math.max(8, Math.min(15.6 * r, (box.height - 120 * r) / 16)); // sixteen rows of numbers, and what is written above and below them
    const left = 34 * r;
    const wide = (box.width - left) / 24;
    const letters = Math.min(11 * r, tall * 0.72);
    const size = (/** @type {number} */ cell) => (cell > 2.4 * letters ? letters : 0);
    const more = narrow ? 17 * r : 0; // a phone has the code on a line of its own
    const code = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ i) => {
      const [shape, said] = words.reshape_codes[i];
      if (!narrow) return this.small.label(x, y, "top", [el("b", "", shape), " ", el("code", "", said)]);
      this.small.label(x, y, "top", [el("b", "", shape)]);
      return this.small.label(x, y + more, "top", [el("code", "", said.split("#")[0].trim())]);
    };
    code(0, 0, 0);
    ["q", "k", "dh"].forEach((colour, i) =>
      this.small.label(left + wide * 8 * i, 17 * r + more, `top ${colour}`, words.reshape_parts[i]),
    );
    for (const b of [0, 1]) {
      const y = 34 * r + more + b * (tall * 4 + 6 * r);
      this.small.label(0, y + tall * 2, "mute", `b ${b}`);
      this.small.put(`a${b}`, left, y, qkv[b], {
        width: wide,
        height: tall,
        size: size(wide),
        alpha: (_, j) => (j < 8 ? 1 : 0.45),
      });
    }
    const y1 = 34 * r + more + 2 * (tall * 4 + 6 * r) + 10 * r;
    const half = narrow ? box.width / 2 : 0;
    const columns = narrow ? [0, half, 0, half] : [0, 0.245, 0.49, 0.735].map((part) => box.width * part);
    const cell = ((narrow ? half : box.width * 0.235) - 16 * r) / 8;
    const down = narrow ? 36 * r + more + 2 * (tall * 4 + 8 * r) + 26 * r : 0;
    const tops = [y1, y1, y1 + down, y1 + down];
    const rows = (/** @type {number} */ b) => 36 * r + more + b * (tall * 4 + 8 * r);
    for (let i = 0; i < 4; i++) code(columns[i], tops[i], i + 1);
    const options = { width: cell, height: tall, size: size(cell) };
    for (const b of [0, 1]) {
      const q = qkv[b].map((row) => row.slice(0, 8));
      this.small.put(`s${b}`, columns[0], tops[0] + rows(b), q, options);
      for (const h of [0, 1]) {
        const part = q.map((row) => row.slice(h * 4, h * 4 + 4));
        for (const [name, i] of /** @type {const} */ ([
          ["v", 1],
          ["t", 2],
        ])) {
          if (!b)
            this.small.label(
              columns[i] + h * (cell * 4 + 8 * r),
              tops[i] + 18 * r + more,
              "top hd",
              fill(words.head_n, { h }),
            );
          this.small.put(`${name}${b}${h}`, columns[i] + h * (cell * 4 + 8 * r), tops[i] + rows(b), part, options);
        }
      }
      this.small.put(`m${b}`, columns[3], tops[3] + rows(b), q, options);
    }
    const end = rows(1) + tall * 4 + 4 * r;
    if (!narrow) {
      this.small.label(columns[1], tops[1] + end, "top", words.reshape_row);
      this.small.label(columns[2], tops[2] + end, "top", words.reshape_block);
    } else host.style.minHeight = `${tops[2] + end + 20}px`;
    const facts = el("span", "facts");
    facts.append(el("span", "mute", words.small_torch));
    feet(view, [], facts, 0, 1);
  }

  /** @param {Spot} spot @returns {From} */
  from([name, row, column]) {
    const { qkv, error, strides } = this.small.data.reshape;
    const [b, , e] = indexOf([name, row, column]);
    const found = followed([b, row, e], [2, 4, 24], 2);
    const frame = (/** @type {number} */ c) => [
      { row, column: c, colour: this.small.view.paint.css("query"), width: 3 },
    ];
    const { head, j, inner, part } = found;
    this.small.mark({
      [`a${b}`]: frame(e),
      ...(part
        ? {}
        : { [`s${b}`]: frame(inner), [`v${b}${head}`]: frame(j), [`t${b}${head}`]: frame(j), [`m${b}`]: frame(inner) }),
    });
    return {
      title: fill(words.reshape_number, {
        x: fixed(qkv[b][row][e], 4),
        b,
        t: row,
        e: inner,
        part: "QKV"[part],
        j,
        h: head,
      }),
      right: fill(words.reshape_strides, { s: strides.join(", ") }),
      pieces: found.steps.flatMap(([index, memory], i) => [
        ...(i ? [{ op: "→" }] : []),
        {
          label: words.reshape_names[i],
          value: `[${/** @type {number[]} */ (index).join(", ")}]`,
          kind: "code",
          under: fill(words.reshape_memory, { m: memory }),
        },
      ]),
      note: fill(words.reshape_without, { error: error.split(". ")[0] }),
    };
  }
}
