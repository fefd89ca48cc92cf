// The pages of small numbers: one head of 3 × 4 whose inputs can be dragged, a batch and its transpose, the reshape into heads.

import { add, choice, clamp, el, fill, scientific } from "../../../kit/browser/dom.js";
import { followed, oneHead, softmax } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { feet } from "./foot.js";
import { drawFrom } from "./from.js";
import { Grid } from "./grid.js";
import { sentence } from "./sentences.js";
import { fixed, percent } from "./sums.js";
import { drawing, shape } from "./svg.js";
import { drawTable } from "./table.js";

/** @typedef {import("./types.js").From} From */
/** @typedef {ReturnType<typeof oneHead>} One */
/** @typedef {[name: string, row: number, column: number]} Spot */
export const PAGES = ["one", "batch", "reshape"];
const STEPS = ["x", "q", "k", "v", "scores", "scale", "softmax", "output"];
const OF_STEP = /** @type {Record<string, keyof One>} */ ({ x: "x", q: "q", k: "k", v: "v", scores: "scores", scale: "scaled", softmax: "weights", output: "output" });
const SHOWN = /** @type {Record<string, string>} */ ({ q: "Q", k: "K", v: "V", w_q: "W_q", w_k: "W_k", w_v: "W_v" });
const STEP_BY = 0.01; // what a pixel of dragging changes a number by

export class Small {
  /** @type {import("./types.js").Small} */
  data;
  /** @type {number[][] | null} The visitor's own x */
  x = null;
  /** @type {Record<string, Grid>} */
  grids = {};
  /** @type {Spot | null} */
  spot = null;
  drawn = "";
  /** @type {HTMLElement} Where the page is drawn */
  host;
  page = "";
  /** @type {Spot | undefined} The number that is looked at */
  now;

  /** @param {import("./step.js").View} view */
  constructor(view) {
    this.view = view;
  }

  get at() {
    return Math.max(0, STEPS.indexOf(this.view.values.at === "softmax" && !this.view.values.cell && this.opening ? "output" : this.view.values.at));
  }
  opening = false;

  get token() {
    const row = Number((this.view.values.cell || "0.0").split(".")[0]);
    return clamp(row || 0, 0, 2);
  }

  /** @param {number} at */
  go(at) {
    if (this.page !== "one") return;
    this.spot = null;
    this.view.choose({ at: STEPS[clamp(at, 0, STEPS.length - 1)] });
  }

  /** @param {import("./types.js").Small} data @param {string} page */
  draw(data, page) {
    const { view } = this;
    this.data = data;
    if (page !== this.page) this.spot = null;
    this.page = page;
    view.rem = parseFloat(getComputedStyle(view.root).fontSize) || 16;
    view.railBox.replaceChildren();
    view.rail.shown = view.rail.barred = "";
    view.walk = null;
    view.drawn = view.asks = "";
    view.pic.replaceChildren();
    view.pic.style.minHeight = "";
    view.eq.replaceChildren();
    view.pic.tabIndex = 0;
    view.pic.setAttribute("role", "group");
    view.pic.classList.remove("tabled");
    this.grids = {};
    this.host = view.pic;
    if (page === "one") this.one();
    else if (page === "batch") this.batch();
    else this.reshape();
    view.pic.setAttribute("aria-label", fill(words.picture, { name: words[`page_${page}`] }));
    view.pic.onkeydown = (event) => this.key(event);
    if (view.values.show === "table") {
      view.pic.replaceChildren();
      view.pic.classList.add("tabled");
      drawTable(view.pic, this.numbers(), words[`page_${page}`]);
    }
    Object.assign(view.root.dataset, { at: page === "one" ? STEPS[this.at] : "", painted: "1", run: view.remote.key, small: this.x ? "changed" : "own" });
    this.look(this.spot ?? this.opens());
  }

  /** @returns {Spot} */
  opens() {
    if (this.page === "one") return [OF_STEP[STEPS[this.at]], this.token, 0];
    return this.page === "batch" ? ["k1", 2, 0] : ["a0", 2, 5];
  }

  // ------------------------------------------------------------------ parts of a page

  /** @param {string} title @param {string} facts @param {[axis: string, n: number][]} axes @param {Node[]} more */
  head(title, facts, axes, ...more) {
    const sizes = el("span", "sh");
    for (const [axis, n] of axes) sizes.append(el("b", `ax-${axis}`, String(n)), el("small", "", words.shape[axis]));
    const show = choice(words.as, /** @type {[string, string][]} */ ([["picture", words.as_picture], ["table", words.as_table]]), this.view.values.show, (to) => this.view.choose({ show: to }));
    this.view.meta.replaceChildren(el("b", "", title), el("span", "", facts), ...more, ...(this.view.projector.on ? [] : [show]), sizes);
  }

  /** @param {number} x @param {number} y @param {string} className @param {string | (string | Node)[]} text @param {number} [width] */
  label(x, y, className, text, width) {
    const node = add(this.host, "div", `lab ${className}`);
    node.append(...(typeof text === "string" ? [text] : text));
    Object.assign(node.style, { left: `${x}px`, top: `${y}px`, ...(width === undefined ? {} : { width: `${width}px` }) });
    return node;
  }

  /** @param {string} name @param {number} x @param {number} y @param {number[][]} values @param {Partial<ConstructorParameters<typeof Grid>[1]>} options */
  put(name, x, y, values, options) {
    const grid = new Grid(this.host, /** @type {any} */ ({ rows: values.length, columns: values[0].length, limit: 1.3, paint: this.view.paint, value: (/** @type {number} */ r, /** @type {number} */ c) => values[r][c], digits: 2, ...options }));
    Object.assign(grid.canvas.style, { left: `${x}px`, top: `${y}px` });
    grid.canvas.dataset.grid = name;
    grid.listen((r, c) => this.look([name, r, c]), (r, c) => { this.spot = [name, r, c]; this.look(this.spot); }, () => this.look(this.spot ?? this.opens()));
    this.grids[name] = grid;
    return grid;
  }

  /** @param {Record<string, import("./grid.js").Frame[]>} frames */
  mark(frames) {
    for (const [name, grid] of Object.entries(this.grids)) if (frames[name] || grid.frames.length) grid.mark(frames[name] ?? []);
  }

  /** @param {Spot} spot */
  look(spot) {
    const from = this.page === "one" ? this.fromOne(spot) : this.page === "batch" ? this.fromBatch(spot) : this.fromReshape(spot);
    this.now = spot;
    this.view.said = drawFrom(this.view.fromBox, from);
    this.view.root.dataset.cell = spot.join(".");
    this.view.root.dataset.total = from.total === undefined ? "" : String(from.total);
  }

  // Arrows go from number to number; Tab from matrix to matrix is the page's own.
  /** @param {KeyboardEvent} event */
  key(event) {
    const by = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] })[event.key];
    if (event.target !== this.view.pic || !this.now || event.ctrlKey || event.metaKey || event.altKey) return;
    const names = Object.keys(this.grids);
    let [name, row, column] = this.now;
    if (by) {
      const { rows, columns } = this.grids[name].options;
      [row, column] = [row + by[0], column + by[1]];
      if (column < 0 || column >= columns) {
        name = names[clamp(names.indexOf(name) + by[1], 0, names.length - 1)];
        column = by[1] > 0 ? 0 : this.grids[name].options.columns - 1;
        row = Math.min(row, this.grids[name].options.rows - 1);
      }
      row = clamp(row, 0, (name === this.now[0] ? rows : this.grids[name].options.rows) - 1);
    } else if ((event.key === "+" || event.key === "-") && name === "x") this.change(row, column, this.program().x[row][column] + (event.key === "+" ? 0.1 : -0.1));
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.spot = [name, row, column];
    this.look(this.spot);
    this.view.live.textContent = this.view.said ?? "";
  }

  // ------------------------------------------------------------------ 3 × 4

  program() {
    const { one } = this.data;
    return oneHead(this.x ?? one.x, /** @type {any} */ (one));
  }

  /** @param {number} row @param {number} column @param {number} value */
  change(row, column, value) {
    this.x = (this.x ?? this.data.one.x).map((r) => [...r]);
    this.x[row][column] = Math.round(clamp(value, -9, 9) * 100) / 100;
    this.redraw();
  }

  // What follows from x, into the pictures that are there: nothing is laid out anew.
  redraw() {
    const all = this.program();
    for (const [name, grid] of Object.entries(this.grids)) {
      const values = all[/** @type {keyof One} */ (name)];
      grid.options.value = (r, c) => values[r][c];
      grid.draw();
    }
    this.view.root.dataset.small = this.x ? "changed" : "own";
    this.sentence(all);
    this.foot(all);
    this.look(this.spot ?? this.opens());
  }

  /** @param {One} all */
  sentence(all) {
    const i = this.token;
    const best = all.weights[i].indexOf(Math.max(...all.weights[i]));
    const [w0, w1, w2] = all.weights[i].map((w) => [fixed(w, 3), ""]);
    this.view.big.replaceChildren(...sentence(words.small_says[this.at], { i, k: best, w: [percent(all.weights[i][best]), ""], w0, w1, w2, row: all.output[i].map((v) => fixed(v)).join(", ") }));
  }

  /** @param {One} all */
  foot(all) {
    const facts = el("span", "facts");
    const { one } = this.data;
    facts.append(el("span", "ok", words.ok_rows));
    if (this.x) {
      const back = el("button", "quiet", words.small_back);
      back.type = "button";
      back.addEventListener("click", () => {
        this.x = null;
        this.view.draw(true);
      });
      facts.append(el("span", "changed", words.small_changed), back);
    } else {
      const error = Math.max(...all.output.flatMap((row, r) => row.map((v, c) => Math.abs(v - one.output[r][c]))));
      facts.append(el("span", "ok", fill(words.small_fused, { error: scientific(error) })));
    }
    facts.append(el("span", "mute", words.small_at_once));
    feet(this.view, facts, this.at, STEPS.length);
  }

  one() {
    const { view, host } = this;
    this.opening = !view.values.cell;
    const all = this.program();
    const at = this.at;
    const rem = view.rem ?? 16;
    const r = rem / 15.55;
    const i0 = this.token;
    // the program is the rail
    const program = add(view.railBox, "ol", "prog");
    words.small_programs.forEach((/** @type {[string, string]} */ [code, note], /** @type {number} */ i) => {
      const line = add(program, "li");
      const button = add(line, "button", i === at ? "on" : i > at ? "todo" : "");
      button.type = "button";
      button.append(el("code", "", code), el("small", "", note));
      button.setAttribute("aria-current", i === at ? "step" : "false");
      button.addEventListener("click", () => this.go(i));
    });
    const note = add(view.railBox, "div", "small-note");
    note.append(el("p", "", words.small_drag), el("p", "mute", words.small_printed));
    const which = choice(words.small_which, [0, 1, 2].map((i) => /** @type {[number, string]} */ ([i, fill(words.small_token, { i })])), i0, (i) => { this.spot = null; view.choose({ cell: `${i}.0` }); });
    this.head(words.small_title, fill(words.small_step, { i: at + 1 }), [["query", 3], at > 3 && at < 7 ? ["key", 3] : ["d_model", 4]], which);
    this.sentence(all);
    const box = host.getBoundingClientRect();
    const narrow = box.width < 640;
    const cell = narrow ? Math.min(46, (box.width - 30) / 8) : 46 * r;
    const tall = narrow ? 26 : Math.min(25 * r, (box.height - 4 * 23 * r) / 12);
    const size = Math.min(13.5 * r, tall * 0.6);
    const shade = (/** @type {string} */ step) => ({ width: cell, height: tall, size, alpha: () => (at >= STEPS.indexOf(step) ? 1 : 0.16) });
    const row = [{ row: i0, colour: view.paint.css("query"), width: 1.8 }];
    const line = 17 * r;
    /** @param {string} name @param {number} x @param {number} y @param {string} label @param {number[][]} values @param {any} options */
    const put = (name, x, y, label, values, options) => {
      this.label(x, y, `top ${{ q: "q", k: "k", v: "dh" }[name] ?? ""}`, label);
      return this.put(name, x, y + line, values, options);
    };
    const block = narrow ? 4 * tall + 30 : (box.height - tall * 4 - 19 * r) / 2;
    const [x1, x2, x3] = narrow ? [0, cell * 4 + 22, 0] : [cell * 4 + 74 * r, cell * 8 + 118 * r, Math.max(cell * 12 + 150 * r, box.width - cell * 4 - 2)];
    const start = narrow ? 3 * tall + 34 : 0;
    const x = put("x", 0, narrow ? 0 : block, words.small_x, all.x, { ...shade("x"), frames: row });
    this.draggable(x);
    this.typed(0, (narrow ? 0 : block) + line, cell, tall, all);
    [["q", "Q = x W_qᵀ"], ["k", "K = x W_kᵀ"], ["v", "V = x W_vᵀ"]].forEach(([name, text], i) => {
      const y = start + i * block;
      put(`w_${name}`, x1, y, `W_${name}`, all[/** @type {"w_q"} */ (`w_${name}`)], { ...shade(name), limit: 0.8 });
      put(name, x2, y, text, all[/** @type {"q"} */ (name)], { ...shade(name), frames: name === "q" ? row : [] });
    });
    const y3 = narrow ? start + 3 * block : 0;
    const small = narrow ? 3 * tall + 30 : (box.height - tall * 3 - 19 * r) / 3;
    [["scores", words.small_scores, "scores", 1.7], ["scaled", words.small_scaled, "scale", 1.7], ["weights", words.small_weights, "softmax", 1], ["output", words.small_output, "output", 1.3]].forEach(([name, text, step, limit], i) => {
      const [px, py] = narrow ? [i % 2 ? x2 : 0, y3 + Math.floor(i / 2) * small] : [x3, i * small];
      put(String(name), px, py, String(text), all[/** @type {"scores"} */ (name)], { ...shade(String(step)), limit, frames: row });
    });
    if (narrow) host.style.minHeight = `${y3 + 2 * small + 10}px`;
    else this.wires(x1, x2, x3, cell, tall, block, small, line, at, r);
    this.foot(all);
  }

  // From x to Q, K and V, and from these to the scores and the output
  /** @param {number} x1 @param {number} x2 @param {number} x3 @param {number} cell @param {number} tall @param {number} block @param {number} small @param {number} line @param {number} at @param {number} r */
  wires(x1, x2, x3, cell, tall, block, small, line, at, r) {
    const svg = drawing({ class: "wires" });
    const { paint } = this.view;
    /** @param {number} xa @param {number} ya @param {number} xb @param {number} yb @param {string} colour @param {boolean} on */
    const wire = (xa, ya, xb, yb, colour, on) => shape(svg, "path", { d: `M${xa} ${ya}C${(xa + xb) / 2} ${ya} ${(xa + xb) / 2} ${yb} ${xb} ${yb}`, fill: "none", stroke: paint.css(colour), "stroke-width": 1.8 * r, "stroke-opacity": on ? 0.6 : 0.14 });
    const middle = (/** @type {number} */ i, /** @type {number} */ rows) => i * block + line + (tall * rows) / 2;
    ["query", "key", "d_head"].forEach((colour, i) => wire(cell * 4 + 4, middle(1, 3), x1 - 8 * r, middle(i, 4), colour, at > i));
    const right = x2 + cell * 4 + 4;
    wire(right, middle(0, 3), x3 - 6 * r, line + tall * 1.2, "query", at > 3);
    wire(right, middle(1, 3), x3 - 6 * r, line + tall * 1.8, "key", at > 3);
    wire(right, middle(2, 3), x3 - 6 * r, 3 * small + line + tall * 1.5, "d_head", at > 6);
    this.host.prepend(svg);
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
      this.spot = ["x", row, column];
      const move = (/** @type {PointerEvent} */ moved) => this.change(row, column, value + (moved.clientX - from) * STEP_BY);
      canvas.addEventListener("pointermove", move);
      canvas.addEventListener("pointerup", () => canvas.removeEventListener("pointermove", move), { once: true });
    });
  }

  // The same numbers for the keyboard and the screen reader, under the picture
  /** @param {number} x @param {number} y @param {number} cell @param {number} tall @param {One} all */
  typed(x, y, cell, tall, all) {
    all.x.forEach((row, r) => row.forEach((value, c) => {
      const input = add(this.host, "input", "typed");
      Object.assign(input, { type: "number", step: "0.01", min: "-9", max: "9", value: value.toFixed(2) });
      input.setAttribute("aria-label", fill(words.small_x_label, { r, c }));
      Object.assign(input.style, { left: `${x + c * cell}px`, top: `${y + r * tall}px`, width: `${cell}px`, height: `${tall}px` });
      input.addEventListener("input", () => {
        const typed = Number(input.value);
        if (input.value !== "" && Number.isFinite(typed)) {
          this.spot = ["x", r, c];
          this.change(r, c, typed);
        }
      });
    }));
  }

  /** @param {Spot} spot @returns {From} */
  fromOne([name, r, c]) {
    const all = this.program();
    const { paint } = this.view;
    const [orange, blue] = [paint.css("query"), paint.css("key")];
    const me = [{ row: r, column: c, colour: orange, width: 2.4 }];
    const values = all[/** @type {keyof One} */ (name)];
    const total = values[r][c];
    if (name === "q" || name === "k" || name === "v") {
      const w = all[/** @type {"w_q"} */ (`w_${name}`)];
      this.mark({ x: [{ row: r, colour: blue }], [`w_${name}`]: [{ row: c, colour: blue }], [name]: me });
      return { title: fill(words.small_made, { n: SHOWN[name], r, c }), name: `${SHOWN[name]}[${r},${c}]`, total, digits: 4, terms: all.x[r].map((v, i) => ({ label: `x[${r},${i}] × W[${c},${i}]`, a: v, b: w[c][i], product: v * w[c][i] })) };
    }
    if (name === "scores") {
      this.mark({ q: [{ row: r, colour: orange }], k: [{ row: c, colour: blue }], scores: me });
      return { title: fill(words.small_dot, { r, c }), name: `scores[${r},${c}]`, total, digits: 4, terms: all.q[r].map((v, i) => ({ label: `Q[${r},${i}] × K[${c},${i}]`, a: v, b: all.k[c][i], product: v * all.k[c][i] })) };
    }
    if (name === "scaled") {
      this.mark({ scores: [{ row: r, column: c, colour: blue }], scaled: me });
      return { title: fill(words.small_halved, { r, c, s: fixed(all.scores[r][c], 4), x: fixed(total, 4) }), pieces: [{ label: "scaled", value: fixed(total, 4), strong: true }, { op: "=" }, { label: "scores", value: fixed(all.scores[r][c], 4) }, { op: "÷" }, { label: "√4", value: "2" }] };
    }
    if (name === "weights") {
      this.mark({ scaled: [{ row: r, colour: blue }], weights: me });
      const exp = all.scaled[r].map((s) => Math.exp(s));
      return {
        title: fill(words.small_share, { r, c, one: fixed(softmax(all.scaled[r]).weights.reduce((a, b) => a + b, 0), 6) }),
        pieces: [{ label: `weights[${r},${c}]`, value: fixed(total, 4), strong: true }, { op: "=" }, { label: `e^${fixed(all.scaled[r][c], 4)}`, value: fixed(exp[c], 4) }, { op: "÷ (" }, ...exp.flatMap((v, i) => [...(i ? [{ op: "+" }] : []), { label: fill(words.small_token, { i }), kind: "k", value: fixed(v, 4) }]), { op: ")" }],
      };
    }
    if (name === "output") {
      this.mark({ weights: [{ row: r, colour: orange }], v: [{ column: c, colour: blue }], output: me });
      return { title: fill(words.small_sum, { r, c }), name: `output[${r},${c}]`, total, digits: 4, terms: all.weights[r].map((w, i) => ({ label: `weight × V[${i},${c}]`, kind: "k", a: w, b: all.v[i][c], product: w * all.v[i][c] })) };
    }
    this.mark({ [name]: me });
    return { title: name === "x" ? fill(words.small_in, { r, c, x: fixed(total, 4) }) : fill(words.small_weight, { n: SHOWN[name], r, c, x: fixed(total, 4) }) };
  }

  // ------------------------------------------------------------------ the batch

  batch() {
    const { view, host } = this;
    const { k, scores, error, wrong_by } = this.data.batch;
    this.head(words.batch_title, words.batch_facts, [["batch", 2], ["query", 3], ["d_model", 4]]);
    view.big.replaceChildren(...sentence(words.batch_says, {}));
    const box = host.getBoundingClientRect();
    const narrow = box.width < 760;
    const r = (view.rem ?? 16) / 15.55;
    const cell = narrow ? Math.min(42, (box.width - 10) / 7) : Math.min(42 * r, box.width * 0.03);
    const tall = Math.min(25 * r, narrow ? 26 : (box.height - 60 * r) / 9.5);
    const size = Math.min(13 * r, tall * 0.55);
    const options = { width: cell, height: tall, size, limit: 1.2 };
    const gap = tall * 4 + 34 * r;
    const y = 42 * r;
    const [a, b, d] = narrow ? [0, cell * 4 + 14, 0] : [0, box.width * 0.2, box.width * 0.4];
    this.label(a, 0, "top here", "K [2, 3, 4]");
    this.label(b, narrow ? 16 : 0, "top ok", "K.transpose(-2, -1) [2, 4, 3]");
    for (const s of [0, 1]) {
      this.label(a, y + s * gap - 18 * r, "top", fill(words.batch_sentence, { s }));
      this.put(`k${s}`, a, y + s * gap, k[s], options);
      this.label(b, y + s * gap - 18 * r, "top", fill(words.batch_sentence, { s }));
      this.put(`m${s}`, b, y + s * gap, [0, 1, 2, 3].map((e) => k[s].map((row) => row[e])), options);
    }
    const y2 = narrow ? y + 2 * gap + 20 : y;
    this.label(d, y2 - 42 * r, "top q", "K.T [4, 3, 2]");
    for (let e = 0; e < 4; e++) {
      const [x, top] = [d + (e % 2) * (cell * 2 + 34 * r), y2 + (e >> 1) * gap];
      this.label(x, top - 18 * r, "top q", fill(words.batch_sheet, { e }));
      this.put(`T${e}`, x, top, [0, 1, 2].map((t) => [0, 1].map((s) => k[s][t][e])), options);
    }
    const messages = add(host, "div", "messages");
    const y3 = narrow ? y2 + 2 * gap : 0;
    Object.assign(messages.style, { left: `${narrow ? 0 : Math.max(box.width * 0.62, d + cell * 4 + 90 * r)}px`, top: `${y3}px` });
    const right = add(messages, "div", "msg");
    add(right, "code").textContent = words.batch_right;
    add(right, "div", "note").textContent = words.batch_own;
    const own = add(right, "div", "own");
    own.style.height = `${tall * 3 + 4}px`;
    const before = this.host;
    this.host = own;
    for (const s of [0, 1]) this.put(`s${s}`, s * (cell * 3 + 20 * r), 0, scores[s], options);
    this.host = before;
    const bad = add(messages, "div", "msg bad");
    add(bad, "code").textContent = words.batch_wrong;
    add(bad, "div", "note error").textContent = error;
    add(messages, "div", "msg bad").textContent = fill(words.batch_silent, { x: fixed(wrong_by) });
    if (narrow) host.style.minHeight = `${y3 + 330}px`;
    const facts = el("span", "facts");
    facts.append(el("span", "mute", words.small_torch));
    feet(view, facts, 0, 1);
  }

  /** @param {Spot} spot @returns {From} */
  fromBatch([name, row, column]) {
    const { q, k, scores } = this.data.batch;
    const orange = this.view.paint.css("query");
    const n = Number(name.slice(1));
    if (name[0] === "s") {
      this.mark({ [name]: [{ row, column, colour: orange }], [`k${n}`]: [{ row: column, colour: this.view.paint.css("key") }] });
      return { title: fill(words.batch_score, { s: n, r: row, c: column }), name: `scores[${n},${row},${column}]`, total: scores[n][row][column], digits: 3, terms: q[n][row].map((v, i) => ({ label: `Q[${n},${row},${i}] × K[${n},${column},${i}]`, a: v, b: k[n][column][i], product: v * k[n][column][i] })) };
    }
    const [s, t, e] = name[0] === "k" ? [n, row, column] : name[0] === "m" ? [n, column, row] : [column, row, n];
    const frame = (/** @type {number} */ r, /** @type {number} */ c) => [{ row: r, column: c, colour: orange, width: 3 }];
    this.mark({ [`k${s}`]: frame(t, e), [`m${s}`]: frame(e, t), [`T${e}`]: frame(t, s) });
    return { title: fill(words.batch_orders, { x: fixed(k[s][t][e], 4), s, t, e }), note: words.batch_note };
  }

  // ------------------------------------------------------------------ the reshape

  reshape() {
    const { view, host } = this;
    const { qkv } = this.data.reshape;
    this.head(words.reshape_title, words.reshape_facts, [["batch", 2], ["query", 4], ["d_model", 8]]);
    view.big.replaceChildren(...sentence(words.reshape_says, {}));
    const box = host.getBoundingClientRect();
    const narrow = box.width < 760;
    const r = (view.rem ?? 16) / 15.55;
    const tall = narrow ? 18 : Math.max(8, Math.min(15.6 * r, (box.height - 110 * r) / 17));
    const left = 34 * r;
    const wide = (box.width - left) / 24;
    const size = (/** @type {number} */ cell) => (cell > 26 * r ? Math.min(11 * r, tall * 0.72) : 0);
    const code = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ i) => this.label(x, y, "top", [el("b", "", words.reshape_codes[i][0]), " ", el("code", "", words.reshape_codes[i][1])]);
    code(0, 0, 0);
    ["q", "k", "dh"].forEach((colour, i) => this.label(left + wide * 8 * i, 17 * r, `top ${colour}`, words.reshape_parts[i]));
    for (const b of [0, 1]) {
      const y = 34 * r + b * (tall * 4 + 6 * r);
      this.label(0, y + tall * 2, "mute", `b ${b}`);
      this.put(`a${b}`, left, y, qkv[b], { width: wide, height: tall, size: size(wide), alpha: (_, j) => (j < 8 ? 1 : 0.45) });
    }
    const y1 = 34 * r + 2 * (tall * 4 + 6 * r) + 10 * r;
    const half = narrow ? box.width / 2 : 0;
    const columns = narrow ? [0, half, 0, half] : [0, box.width * 0.262, box.width * 0.524, box.width * 0.77];
    const cell = ((narrow ? half : box.width * 0.235) - 16 * r) / 8;
    const down = narrow ? 36 * r + 2 * (tall * 4 + 8 * r) + 26 * r : 0;
    const tops = [y1, y1, y1 + down, y1 + down];
    const rows = (/** @type {number} */ b) => 36 * r + b * (tall * 4 + 8 * r);
    for (let i = 0; i < 4; i++) code(columns[i], tops[i], i + 1);
    const options = { width: cell, height: tall, size: size(cell) };
    for (const b of [0, 1]) {
      const q = qkv[b].map((row) => row.slice(0, 8));
      this.put(`s${b}`, columns[0], tops[0] + rows(b), q, options);
      for (const h of [0, 1]) {
        const part = q.map((row) => row.slice(h * 4, h * 4 + 4));
        for (const [name, i] of /** @type {const} */ ([["v", 1], ["t", 2]])) {
          if (!b) this.label(columns[i] + h * (cell * 4 + 8 * r), tops[i] + 18 * r, "top hd", fill(words.head_n, { h }));
          this.put(`${name}${b}${h}`, columns[i] + h * (cell * 4 + 8 * r), tops[i] + rows(b), part, options);
        }
      }
      this.put(`m${b}`, columns[3], tops[3] + rows(b), q, options);
    }
    const end = rows(1) + tall * 4 + 4 * r;
    if (!narrow) {
      this.label(columns[1], tops[1] + end, "top", words.reshape_row);
      this.label(columns[2], tops[2] + end, "top", words.reshape_block);
    } else host.style.minHeight = `${tops[2] + end + 20}px`;
    const facts = el("span", "facts");
    facts.append(el("span", "mute", words.small_torch));
    feet(view, facts, 0, 1);
  }

  /** @param {Spot} spot @returns {From} */
  fromReshape([name, row, column]) {
    const { qkv, error, strides } = this.data.reshape;
    const b = Number(name[1]);
    const e = name.length > 2 ? Number(name[2]) * 4 + column : column;
    const found = followed([b, row, e], [2, 4, 24], 2);
    const frame = (/** @type {number} */ c) => [{ row, column: c, colour: this.view.paint.css("query"), width: 3 }];
    const { head, j, inner, part } = found;
    this.mark({ [`a${b}`]: frame(e), ...(part ? {} : { [`s${b}`]: frame(inner), [`v${b}${head}`]: frame(j), [`t${b}${head}`]: frame(j), [`m${b}`]: frame(inner) }) });
    return {
      title: fill(words.reshape_number, { x: fixed(qkv[b][row][e], 4), b, t: row, e: inner, part: "QKV"[part], j, h: head }),
      right: fill(words.reshape_strides, { s: strides.join(", ") }),
      pieces: found.steps.flatMap(([index, memory], i) => [...(i ? [{ op: "→" }] : []), { label: words.reshape_names[i], value: `[${/** @type {number[]} */ (index).join(", ")}]`, kind: "code", under: fill(words.reshape_memory, { m: memory }) }]),
      note: fill(words.reshape_without, { error: error.split(". ")[0] }),
    };
  }

  // ------------------------------------------------------------------ as a table

  /** @returns {import("./types.js").Numbers} */
  numbers() {
    /** @type {(string | number)[][]} */
    const rows = [];
    const put = (/** @type {string} */ name, /** @type {number[][]} */ values) => values.forEach((row, i) => rows.push([`${name}[${i}]`, ...row]));
    if (this.page === "one") for (const [name, values] of Object.entries(this.program())) put(SHOWN[name] ?? name, values);
    else if (this.page === "batch") for (const s of [0, 1]) { put(`K[${s}]`, this.data.batch.k[s]); put(`scores[${s}]`, this.data.batch.scores[s]); }
    else for (const s of [0, 1]) put(`qkv[${s}]`, this.data.reshape.qkv[s]);
    const most = Math.max(...rows.map((row) => row.length - 1));
    return { columns: ["row", ...Array.from({ length: most }, (_, i) => String(i))], rows };
  }
}
