// The page of a batch: two sentences, what transpose(-2, -1) makes of them, and what .T does.

import { add, el, fill, fixed, pinned } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { feet } from "./foot.js";
import { sentence } from "./sentences.js";

/** @typedef {import("./types.js").From} From */
/** @typedef {import("./types.js").Spot} Spot */
/** @typedef {import("./types.js").SmallPage} SmallPage */

/** @implements {SmallPage} */
export class BatchPage {
  /** @param {import("./small.js").Small} small */
  constructor(small) {
    this.small = small;
  }

  /** @returns {Spot} */
  opens() {
    return ["k1", 2, 0];
  }

  /** @returns {import("./types.js").Rows} */
  numbers() {
    const { k, scores } = this.small.data.batch;
    return [0, 1].flatMap(
      (s) =>
        /** @type {import("./types.js").Rows} */ ([
          [`K[${s}]`, k[s]],
          [`scores[${s}]`, scores[s]],
        ]),
    );
  }

  draw() {
    const { view, host } = this.small;
    const { k, scores, error, wrong_by } = this.small.data.batch;
    this.small.head(words.batch_title, words.batch_facts, [
      ["batch", 2],
      ["query", 3],
      ["d_model", 4],
    ]);
    view.big.replaceChildren(...sentence(words.batch_says, {}));
    const box = this.small.room();
    const narrow = box.width < 760;
    const r = view.rem / 15.55;
    const cell = narrow ? Math.min(42, (box.width - 10) / 7) : Math.min(42 * r, box.width * 0.042);
    const tall = Math.min(25 * r, narrow ? 26 : (box.height - 60 * r) / 9.5);
    const size = Math.min(13 * r, tall * 0.55, cell * 0.32);
    const options = { width: cell, height: tall, size, limit: 1.2 };
    const gap = tall * 4 + 34 * r;
    const y = 42 * r;
    const [a, b, d] = narrow ? [0, cell * 4 + 14, 0] : [0, box.width * 0.2, box.width * 0.4];
    this.small.label(a, 0, "top here", "K [2, 3, 4]");
    this.small.label(b, 0, "top ok", "K.transpose(-2, -1) [2, 4, 3]");
    for (const s of [0, 1]) {
      this.small.label(a, y + s * gap - 18 * r, "top", fill(words.batch_sentence, { s }));
      this.small.put(`k${s}`, a, y + s * gap, k[s], options);
      this.small.label(b, y + s * gap - 18 * r, "top", fill(words.batch_sentence, { s }));
      this.small.put(
        `m${s}`,
        b,
        y + s * gap,
        [0, 1, 2, 3].map((e) => k[s].map((row) => row[e])),
        options,
      );
    }
    const y2 = narrow ? y + 2 * gap + 20 : y;
    this.small.label(d, y2 - 42 * r, "top q", "K.T [4, 3, 2]");
    for (let e = 0; e < 4; e++) {
      const [x, top] = [d + (e % 2) * (cell * 2 + 34 * r), y2 + (e >> 1) * gap];
      this.small.label(x, top - 18 * r, "top q", fill(words.batch_sheet, { e }));
      this.small.put(
        `T${e}`,
        x,
        top,
        [0, 1, 2].map((t) => [0, 1].map((s) => k[s][t][e])),
        options,
      );
    }
    const messages = add(host, "div", "messages");
    const y3 = narrow ? y2 + 2 * gap : 0;
    pinned(messages, { left: narrow ? 0 : Math.max(box.width * 0.62, d + cell * 4 + 90 * r), top: y3 });
    const right = add(messages, "div", "msg");
    add(right, "code").textContent = words.batch_right;
    add(right, "div", "note").textContent = words.batch_own;
    const own = add(right, "div", "own");
    own.style.height = `${tall * 3 + 4}px`;
    const before = this.small.host;
    this.small.host = own;
    for (const s of [0, 1]) this.small.put(`s${s}`, s * (cell * 3 + 20 * r), 0, scores[s], options);
    this.small.host = before;
    const bad = add(messages, "div", "msg bad");
    add(bad, "code").textContent = words.batch_wrong;
    add(bad, "div", "note error").textContent = error;
    add(messages, "div", "msg bad").textContent = fill(words.batch_silent, { x: fixed(wrong_by) });
    if (narrow) host.style.minHeight = `${y3 + 330}px`;
    const facts = el("span", "facts");
    facts.append(el("span", "mute", words.small_torch));
    feet(view, [], facts, 0, 1);
  }

  /** @param {Spot} spot @returns {From} */
  from([name, row, column]) {
    const { q, k, scores } = this.small.data.batch;
    const orange = this.small.view.paint.css("query");
    const n = Number(name.slice(1));
    if (name[0] === "s") {
      this.small.mark({
        [name]: [{ row, column, colour: orange }],
        [`k${n}`]: [{ row: column, colour: this.small.view.paint.css("key") }],
      });
      return {
        title: fill(words.batch_score, { s: n, r: row, c: column }),
        name: `scores[${n},${row},${column}]`,
        total: scores[n][row][column],
        digits: 3,
        terms: q[n][row].map((v, i) => ({
          label: `Q[${n},${row},${i}] × K[${n},${column},${i}]`,
          a: v,
          b: k[n][column][i],
          product: v * k[n][column][i],
        })),
      };
    }
    const [s, t, e] = name[0] === "k" ? [n, row, column] : name[0] === "m" ? [n, column, row] : [column, row, n];
    const frame = (/** @type {number} */ r, /** @type {number} */ c) => [
      { row: r, column: c, colour: orange, width: 3 },
    ];
    this.small.mark({ [`k${s}`]: frame(t, e), [`m${s}`]: frame(e, t), [`T${e}`]: frame(t, s) });
    return { title: fill(words.batch_orders, { x: fixed(k[s][t][e], 4), s, t, e }), note: words.batch_note };
  }
}
