// The page of 3 × 4: the lesson's program is the rail, every number is there, and those of x can be dragged or typed.

import { add, button, choice, clamp, el, fill, fixed, percent, pinned, scientific } from "../../../kit/browser/dom.js";
import { oneHead, softmax } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { table } from "../../../kit/browser/table.js";
import { feet } from "./foot.js";
import { sentence } from "./sentences.js";
import { draw, svg as element } from "../../../kit/browser/picture/svg.js";

/** @typedef {import("./types.js").From} From */
/** @typedef {import("./grid.js").Grid} Grid */
/** @typedef {import("./types.js").Spot} Spot */
/** @typedef {import("./types.js").SmallPage} SmallPage */
/** @typedef {ReturnType<typeof oneHead>} One */
export const STEPS = ["x", "q", "k", "v", "scores", "scale", "softmax", "output"];
const OF_STEP = /** @type {Record<string, keyof One>} */ ({
  x: "x",
  q: "q",
  k: "k",
  v: "v",
  scores: "scores",
  scale: "scaled",
  softmax: "weights",
  output: "output",
});
const SHOWN = /** @type {Record<string, string>} */ ({ q: "Q", k: "K", v: "V", w_q: "W_q", w_k: "W_k", w_v: "W_v" });
const LEAST = 36; // pixels that a number is wide, at the usual size of type
const STEP_BY = 0.01; // what a pixel of dragging changes a number by

/** @implements {SmallPage} */
export class OnePage {
  /** @param {import("./small.js").Small} small */
  constructor(small) {
    this.small = small;
  }

  // The visitor's own x: what the link says of it, as in "0-1:0.52,2-3:-4", and the rest as it was; null where it is as it was.
  /** @returns {number[][] | null} */
  get x() {
    const said = this.small.view.values.x;
    if (!said) return null;
    const x = this.small.data.one.x.map((row) => [...row]);
    for (const [, row, column, value] of said.matchAll(/(\d)-(\d):([-.\d]+)/g))
      x[Number(row)][Number(column)] = Number(value);
    return x;
  }

  /** @returns {Spot} */
  opens() {
    return [OF_STEP[STEPS[this.small.at]], this.small.token, 0];
  }

  /** @returns {import("./types.js").Rows} */
  numbers() {
    return Object.entries(this.program()).map(([name, values]) => [SHOWN[name] ?? name, values]);
  }

  program() {
    const { one } = this.small.data;
    return oneHead(this.x ?? one.x, /** @type {any} */ (one));
  }

  /** @param {number} row @param {number} column @param {number} by */
  change(row, column, by) {
    this.set(row, column, this.program().x[row][column] + by);
  }

  /** @param {number} row @param {number} column @param {number} value */
  set(row, column, value) {
    const { selection, values } = this.small.view;
    const changed = new Map(
      values.x ? values.x.split(",").map((one) => /** @type {[string, string]} */ (one.split(":"))) : [],
    );
    changed.set(`${row}-${column}`, String(Math.round(clamp(value, -9, 9) * 100) / 100 || 0)); // no -0
    selection.choose({
      x: [...changed]
        .map((one) => one.join(":"))
        .sort()
        .join(","),
    });
    this.redraw();
  }

  // What follows from x, into the pictures that are there: nothing is laid out again.
  redraw() {
    const all = this.program();
    for (const [name, grid] of Object.entries(this.small.grids)) {
      const values = all[/** @type {keyof One} */ (name)];
      grid.options.value = (r, c) => values[r][c];
      grid.draw();
    }
    this.small.view.show(this.small.status());
    this.sentence(all);
    this.foot(all);
    this.small.look(this.small.spot ?? this.opens());
  }

  /** @param {One} all */
  sentence(all) {
    const i = this.small.token;
    const best = all.weights[i].indexOf(Math.max(...all.weights[i]));
    const [w0, w1, w2] = all.weights[i].map((w) => [fixed(w, 3), ""]);
    this.small.view.big.replaceChildren(
      ...sentence(words.small_says[this.small.at], {
        i,
        k: best,
        w: [percent(all.weights[i][best]), ""],
        w0,
        w1,
        w2,
        row: all.output[i].map((v) => fixed(v)).join(", "),
      }),
    );
  }

  /** @param {One} all */
  foot(all) {
    const { view, data } = this.small;
    const facts = el("span", "facts");
    const proofs = [words.ok_rows];
    if (this.x) {
      add(facts, "span", "changed").textContent = words.small_changed;
      view.button(facts, words.small_back, () => view.choose({ x: "" }));
    } else {
      const error = Math.max(...all.output.flatMap((row, r) => row.map((v, c) => Math.abs(v - data.one.output[r][c]))));
      proofs.push(fill(words.small_fused, { error: scientific(error) }));
    }
    add(facts, "span", "mute").textContent = words.small_at_once;
    feet(view, proofs, facts, this.small.at, STEPS.length);
  }

  draw() {
    const { view, host } = this.small;
    this.small.opening = !view.values.cell;
    const all = this.program();
    const at = this.small.at;
    const { rem } = view;
    const r = rem / 15.55;
    const i0 = this.small.token;
    // the program is the rail
    const program = add(view.railBox, "ol", "prog");
    words.small_programs.forEach((/** @type {[string, string]} */ [code, note], /** @type {number} */ i) => {
      const line = add(program, "li");
      const go = line.appendChild(button("", i === at ? "on" : i > at ? "todo" : "", () => this.small.go(i)));
      go.append(el("code", "", code), el("small", "", note));
      go.setAttribute("aria-current", i === at ? "step" : "false");
    });
    const note = add(view.railBox, "div", "small-note");
    note.append(el("p", "", words.small_drag), el("p", "mute", words.small_printed));
    if (STEPS[at] === "softmax") {
      const slips = table(words.small_slips, words.small_slips_columns, words.small_slips_rows); // rows that the lessons print
      slips.classList.add("slips");
      note.append(slips);
    }
    const which = choice(
      words.small_which,
      [0, 1, 2].map((i) => /** @type {[number, string]} */ ([i, fill(words.small_token, { i })])),
      i0,
      (i) => {
        this.small.spot = null;
        view.choose({ cell: `${i}.0` });
      },
    );
    this.small.head(
      words.small_title,
      fill(words.small_step, { i: at + 1 }),
      [["query", 3], at > 3 && at < 7 ? ["key", 3] : ["d_model", 4]],
      which,
    );
    this.sentence(all);
    const box = this.small.room();
    const abreast = (box.width - 152 * r) / 16; // four matrices of four numbers beside each other, with their wires
    const narrow = abreast < LEAST * r;
    const cell = Math.min(46 * r, narrow ? (box.width - 30) / 8 : abreast);
    const tall = narrow ? 26 * r : Math.min(25 * r, (box.height - 4 * 23 * r) / 12);
    const size = Math.min(13.5 * r, tall * 0.6, cell * 0.3);
    const shade = (/** @type {string} */ step) => ({
      width: cell,
      height: tall,
      size,
      alpha: () => (at >= STEPS.indexOf(step) ? 1 : 0.16),
    });
    const row = [{ row: i0, colour: view.paint.css("query"), width: 1.8 }];
    const line = 17 * r;
    /** @param {string} name @param {number} x @param {number} y @param {string} label @param {number[][]} values @param {any} options */
    const put = (name, x, y, label, values, options) => {
      this.small.label(x, y, `top ${{ q: "q", k: "k", v: "dh" }[name] ?? ""}`, label);
      return this.small.put(name, x, y + line, values, options);
    };
    const block = narrow ? 4 * tall + 30 : (box.height - tall * 4 - 19 * r) / 2;
    const [x1, x2, x3] = narrow
      ? [0, cell * 4 + 22, 0]
      : [cell * 4 + 74 * r, cell * 8 + 118 * r, Math.max(cell * 12 + 150 * r, box.width - cell * 4 - 2)];
    const start = narrow ? 3 * tall + 34 : 0;
    const x = put("x", 0, narrow ? 0 : block, words.small_x, all.x, { ...shade("x"), frames: row });
    this.draggable(x);
    this.typed(0, (narrow ? 0 : block) + line, cell, tall, all);
    [
      ["q", "Q = x W_qᵀ"],
      ["k", "K = x W_kᵀ"],
      ["v", "V = x W_vᵀ"],
    ].forEach(([name, text], i) => {
      const y = start + i * block;
      put(`w_${name}`, x1, y, `W_${name}`, all[/** @type {"w_q"} */ (`w_${name}`)], { ...shade(name), limit: 0.8 });
      put(name, x2, y, text, all[/** @type {"q"} */ (name)], { ...shade(name), frames: name === "q" ? row : [] });
    });
    const y3 = narrow ? start + 3 * block : 0;
    const small = narrow ? 3 * tall + 30 : (box.height - tall * 3 - 19 * r) / 3;
    [
      ["scores", words.small_scores, "scores", 1.7],
      ["scaled", words.small_scaled, "scale", 1.7],
      ["weights", words.small_weights, "softmax", 1],
      ["output", words.small_output, "output", 1.3],
    ].forEach(([name, text, step, limit], i) => {
      const [px, py] = narrow ? [i % 2 ? x2 : 0, y3 + Math.floor(i / 2) * small] : [x3, i * small];
      put(String(name), px, py, String(text), all[/** @type {"scores"} */ (name)], {
        ...shade(String(step)),
        limit,
        frames: row,
      });
    });
    if (narrow) host.style.minHeight = `${y3 + 2 * small + 10}px`;
    else this.wires(x1, x2, x3, cell, tall, block, small, line, at, r);
    this.foot(all);
  }

  // From x to Q, K and V, and from these to the scores and the output
  /** @param {number} x1 @param {number} x2 @param {number} x3 @param {number} cell @param {number} tall @param {number} block @param {number} small @param {number} line @param {number} at @param {number} r */
  wires(x1, x2, x3, cell, tall, block, small, line, at, r) {
    const svg = element("svg", { "aria-hidden": "true", class: "wires" });
    const { paint } = this.small.view;
    /** @param {number} xa @param {number} ya @param {number} xb @param {number} yb @param {string} colour @param {boolean} on */
    const wire = (xa, ya, xb, yb, colour, on) =>
      draw(svg, "path", {
        d: `M${xa} ${ya}C${(xa + xb) / 2} ${ya} ${(xa + xb) / 2} ${yb} ${xb} ${yb}`,
        fill: "none",
        stroke: paint.css(colour),
        "stroke-width": 1.8 * r,
        "stroke-opacity": on ? 0.6 : 0.14,
      });
    const middle = (/** @type {number} */ i, /** @type {number} */ rows) => i * block + line + (tall * rows) / 2;
    ["query", "key", "d_head"].forEach((colour, i) =>
      wire(cell * 4 + 4, middle(1, 3), x1 - 8 * r, middle(i, 4), colour, at > i),
    );
    const right = x2 + cell * 4 + 4;
    wire(right, middle(0, 3), x3 - 6 * r, line + tall * 1.2, "query", at > 3);
    wire(right, middle(1, 3), x3 - 6 * r, line + tall * 1.8, "key", at > 3);
    wire(right, middle(2, 3), x3 - 6 * r, 3 * small + line + tall * 1.5, "d_head", at > 6);
    this.small.host.prepend(svg);
  }

  /** @param {Grid} grid */
  draggable(grid) {
    const { canvas } = grid;
    canvas.style.cursor = "ew-resize";
    canvas.style.touchAction = "none";
    canvas.addEventListener("pointerdown", (event) => {
      const [row, column] = grid.at(event);
      const [from, value] = [event.clientX, this.program().x[row][column]];
      canvas.setPointerCapture(event.pointerId);
      this.small.spot = ["x", row, column];
      const move = (/** @type {PointerEvent} */ moved) =>
        this.set(row, column, value + (moved.clientX - from) * STEP_BY);
      canvas.addEventListener("pointermove", move);
      canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", move), { once: true });
    });
  }

  // The same numbers for the keyboard and the screen reader, under the picture
  /** @param {number} x @param {number} y @param {number} cell @param {number} tall @param {One} all */
  typed(x, y, cell, tall, all) {
    all.x.forEach((row, r) =>
      row.forEach((value, c) => {
        const input = add(this.small.host, "input", "typed");
        Object.assign(input, { type: "number", step: "0.01", min: "-9", max: "9", value: value.toFixed(2) });
        input.setAttribute("aria-label", fill(words.small_x_label, { r, c }));
        pinned(input, { left: x + c * cell, top: y + r * tall, width: cell, height: tall });
        input.addEventListener("input", () => {
          const typed = Number(input.value);
          if (input.value !== "" && Number.isFinite(typed)) {
            this.small.spot = ["x", r, c];
            this.set(r, c, typed);
          }
        });
      }),
    );
  }

  /** @param {Spot} spot @returns {From} */
  from([name, r, c]) {
    const all = this.program();
    const { paint } = this.small.view;
    const [orange, blue] = [paint.css("query"), paint.css("key")];
    const me = [{ row: r, column: c, colour: orange, width: 2.4 }];
    const values = all[/** @type {keyof One} */ (name)];
    const total = values[r][c];
    if (name === "q" || name === "k" || name === "v") {
      const w = all[/** @type {"w_q"} */ (`w_${name}`)];
      this.small.mark({ x: [{ row: r, colour: blue }], [`w_${name}`]: [{ row: c, colour: blue }], [name]: me });
      return {
        title: fill(words.small_made, { n: SHOWN[name], r, c }),
        name: `${SHOWN[name]}[${r},${c}]`,
        total,
        digits: 4,
        terms: all.x[r].map((v, i) => ({
          label: `x[${r},${i}] × W[${c},${i}]`,
          a: v,
          b: w[c][i],
          product: v * w[c][i],
        })),
      };
    }
    if (name === "scores") {
      this.small.mark({ q: [{ row: r, colour: orange }], k: [{ row: c, colour: blue }], scores: me });
      return {
        title: fill(words.small_dot, { r, c }),
        name: `scores[${r},${c}]`,
        total,
        digits: 4,
        terms: all.q[r].map((v, i) => ({
          label: `Q[${r},${i}] × K[${c},${i}]`,
          a: v,
          b: all.k[c][i],
          product: v * all.k[c][i],
        })),
      };
    }
    if (name === "scaled") {
      this.small.mark({ scores: [{ row: r, column: c, colour: blue }], scaled: me });
      return {
        title: fill(words.small_halved, { r, c, s: fixed(all.scores[r][c], 4), x: fixed(total, 4) }),
        pieces: [
          { label: "scaled", value: fixed(total, 4), strong: true },
          { op: "=" },
          { label: "scores", value: fixed(all.scores[r][c], 4) },
          { op: "÷" },
          { label: "√4", value: "2" },
        ],
      };
    }
    if (name === "weights") {
      this.small.mark({ scaled: [{ row: r, colour: blue }], weights: me });
      const exp = all.scaled[r].map((s) => Math.exp(s));
      return {
        title: fill(words.small_share, {
          r,
          c,
          one: fixed(
            softmax(all.scaled[r]).weights.reduce((a, b) => a + b, 0),
            6,
          ),
        }),
        pieces: [
          { label: `weights[${r},${c}]`, value: fixed(total, 4), strong: true },
          { op: "=" },
          { label: `e^${fixed(all.scaled[r][c], 4)}`, value: fixed(exp[c], 4) },
          { op: "÷ (" },
          ...exp.flatMap((v, i) => [
            ...(i ? [{ op: "+" }] : []),
            { label: fill(words.small_token, { i }), kind: "k", value: fixed(v, 4) },
          ]),
          { op: ")" },
        ],
      };
    }
    if (name === "output") {
      this.small.mark({ weights: [{ row: r, colour: orange }], v: [{ column: c, colour: blue }], output: me });
      return {
        title: fill(words.small_sum, { r, c }),
        name: `output[${r},${c}]`,
        total,
        digits: 4,
        terms: all.weights[r].map((w, i) => ({
          label: `weight × V[${i},${c}]`,
          kind: "k",
          a: w,
          b: all.v[i][c],
          product: w * all.v[i][c],
        })),
      };
    }
    this.small.mark({ [name]: me });
    return {
      title:
        name === "x"
          ? fill(words.small_in, { r, c, x: fixed(total, 4) })
          : fill(words.small_weight, { n: SHOWN[name], r, c, x: fixed(total, 4) }),
    };
  }
}
