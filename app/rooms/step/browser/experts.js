// The page of a mixture of experts: which experts the followed token took in every layer, which ones each token took in the
// followed layer, and how much each expert did in the whole text.

import { add, clamp, counted, el, fill, fixed, number, percent, quoted, selectBox } from "../../../kit/browser/dom.js";
import { unpack } from "../../../kit/browser/messages.js";
import { HeatmapView } from "../../../kit/browser/picture/heatmap.js";
import { table, tableBox } from "../../../kit/browser/table.js";
import { WORDS as words } from "./constants.js";
import { feet } from "./foot.js";
import { math, sentence } from "./sentences.js";
import { label } from "./sheet.js";

/** @typedef {import("./types.js").From} From */
/** @typedef {import("../../../kit/browser/picture/heatmap.js").Names} Names */
/** @typedef {{stack: string, layers: number[], experts: number, arrays: Record<string, [at: number, shape: number[], kind: string]>}} Header */
/** @typedef {{rows: number, columns: number, value: (row: number, column: number) => number, most: number, rowNames: (string | null)[], row: number, from: (row: number, column: number) => From, choose: (row: number) => void}} Map */

const NARROW = 760; // px of the page's width, below which the maps are under each other
const LOWEST = 15; // rem of the page's height that the maps have at least
const LEAST = 7; // px, of a row whose map still shows single tokens
const SAID = 4; // experts that the sentence names, or one fewer and how many more
const WRITTEN = 30; // px of a cell that has room for its number

// The choices of the routers of a stack
export class Routing {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    const [header, body] = unpack(bytes);
    /** @type {Header} */
    this.header = header;
    this.layers = this.header.layers;
    this.experts = this.header.experts;
    const [at, [, n, k]] = this.header.arrays.weights;
    const [load] = this.header.arrays.load;
    const [chosen] = this.header.arrays.chosen;
    const size = this.layers.length * n * k;
    this.n = n;
    this.k = k;
    this.weights = new Float32Array(body, at, size);
    this.loads = new Float32Array(body, load, this.layers.length * this.experts);
    this.chosen = new Uint16Array(body, chosen, size);
    // The ends of the two colour scales
    this.most = this.weights.reduce((a, b) => Math.max(a, b), 1e-9);
    this.mostLoad = this.loads.reduce((a, b) => Math.max(a, b), 1e-9);
  }

  // The choices of one token in one layer, the largest weight first; `row` counts the layers that have experts
  /** @param {number} row @param {number} pos @returns {[expert: number, weight: number][]} */
  of(row, pos) {
    const from = (row * this.n + pos) * this.k;
    return Array.from({ length: this.k }, (_, i) => [this.chosen[from + i], this.weights[from + i]]);
  }

  // The weight of an expert, or NaN where it was not chosen
  /** @param {number} row @param {number} pos @param {number} expert */
  weight(row, pos, expert) {
    return this.of(row, pos).find(([e]) => e === expert)?.[1] ?? NaN;
  }

  /** @param {number} row @param {number} expert */
  load(row, expert) {
    return this.loads[row * this.experts + expert];
  }

  // The first layer with experts from this one on, as a row
  /** @param {number} layer */
  rowOf(layer) {
    const found = this.layers.findIndex((one) => one >= layer);
    return found < 0 ? this.layers.length - 1 : found;
  }
}

export class Experts {
  /** @type {Routing | null} */
  found = null;

  /** @param {import("./step.js").StepThrough} view */
  constructor(view) {
    this.view = view;
  }

  // Whether the run on the screen has any
  get has() {
    return Object.keys(this.view.run?.experts ?? {}).length > 0;
  }

  get stack() {
    const run = /** @type {import("./types.js").Run} */ (this.view.run);
    const { stack } = this.view.place;
    return run.experts[stack] ? stack : Object.keys(run.experts)[0];
  }

  get row() {
    return this.found?.rowOf(this.view.place.layer) ?? 0;
  }

  get layer() {
    return this.found?.layers[this.row] ?? 0;
  }

  get labels() {
    return /** @type {import("./types.js").Run} */ (this.view.run).tokens[this.stack].labels;
  }

  get query() {
    return clamp(this.view.place.query, 0, this.labels.length - 1);
  }

  status() {
    const { found } = this;
    return {
      run: this.view.key,
      at: "",
      ...(found ? { layer: this.layer, query: this.query, experts: found.experts } : {}),
    };
  }

  // Another layer that has experts, or another token
  /** @param {number} down @param {number} right */
  move(down, right) {
    if (!this.found) return false;
    const { layers } = this.found;
    this.view.choose({
      layer: String(layers[clamp(this.row + down, 0, layers.length - 1)]),
      query: String(clamp(this.query + right, 0, this.labels.length - 1)),
    });
  }

  /** @param {number} at */
  go(at) {
    if (!this.found) return false;
    this.view.choose({ layer: String(this.found.layers[clamp(at, 0, this.found.layers.length - 1)]) });
  }

  draw() {
    const { view } = this;
    const found = view.ask("step/experts", { stack: this.stack }, (bytes) => new Routing(bytes));
    if (!found) {
      view.isWaiting = true;
      if (view.remote.failed) view.announce(words.failed);
      return;
    }
    this.found = found.refused ? null : found;
    view.begin();
    if (!this.found) {
      view.meta.replaceChildren();
      view.fromBox.replaceChildren();
      view.big.textContent = found.refused ?? "";
      return;
    }
    this.head(found);
    view.pic.setAttribute("aria-label", fill(words.picture, { name: words.page_experts }));
    if (view.values.show === "table") this.tables(found);
    else this.maps(found);
    this.rest();
    const idle = Array.from({ length: found.experts }, (_, e) => found.load(this.row, e)).filter((x) => !x).length;
    const load = Array.from({ length: found.experts }, (_, e) => found.load(this.row, e));
    const most = load.indexOf(Math.max(...load));
    const facts = el("span", "facts");
    add(facts, "span", "mute").textContent = fill(words.experts_most, {
      e: most,
      p: percent(load[most]),
      idle: idle ? counted(words.experts_idle, idle) : words.experts_none_idle,
    });
    feet(view, [], facts, this.row, found.layers.length);
  }

  /** @param {Routing} found */
  head(found) {
    const { view } = this;
    const layers = /** @type {[string, string][]} */ (found.layers.map((layer) => [String(layer), String(layer)]));
    const pick = el("label", "ctl");
    const choose = (/** @type {string} */ layer) => view.choose({ layer });
    pick.append(words.experts_layer, " ", selectBox(words.experts_layer, layers, String(this.layer), choose));
    const facts = fill(words.experts_facts, { k: found.k, E: number(found.experts) });
    view.small.head(words.page_experts, facts, [], ...(found.layers.length > 1 ? [pick] : []));
    const all = found.of(this.row, this.query).map(([e, w]) => fill(words.experts_one, { e, w: fixed(w) }));
    const list =
      all.length > SAID ? [...all.slice(0, SAID - 1), fill(words.experts_more, { n: all.length - SAID + 1 })] : all;
    const last = list.pop();
    const parts = {
      layer: this.layer,
      q: [quoted(this.labels[this.query]), "q"],
      list: [list.length ? `${list.join(", ")}${words.experts_and}${last}` : last, ""],
    };
    const has = /** @type {import("./types.js").Run} */ (view.run).shared_expert;
    view.big.replaceChildren(...sentence(has ? words.experts_shared : words.experts_says, parts));
    const m = el("span", "m");
    m.append(...math(words.experts_equation));
    view.eq.replaceChildren(m, el("code", "", words.experts_code));
  }

  // The weights of the followed token in the followed layer
  rest() {
    const found = /** @type {Routing} */ (this.found);
    this.view.sum(this.sumOf(found, this.row, this.query), [this.row, this.query]);
  }

  /** @param {Routing} found @param {number} row @param {number} pos @returns {From} */
  sumOf(found, row, pos) {
    return {
      title: fill(words.experts_sum, { layer: found.layers[row], q: quoted(this.labels[pos]) }),
      pieces: found
        .of(row, pos)
        .map(([e, w], i) => ({ label: fill(words.experts_name, { e }), value: fixed(w, 3), strong: !i })),
    };
  }

  // ------------------------------------------------------------------ the maps

  /** @param {Routing} found */
  maps(found) {
    const { view, row, query, labels, layer } = this;
    const box = view.small.roomOf(view.pic);
    const r = view.rem / 15.55;
    const narrow = box.width < NARROW;
    const gap = 28 * r;
    const wide = narrow ? box.width : (box.width - gap) / 2;
    const { most } = found;
    const took = (/** @type {number} */ at, /** @type {number} */ pos, /** @type {number} */ e) => {
      const w = found.weight(at, pos, e);
      const parts = { layer: found.layers[at], q: quoted(labels[pos]), e, w: fixed(w, 3) };
      return {
        ...this.sumOf(found, at, pos),
        title: fill(Number.isNaN(w) ? words.experts_left : words.experts_took, parts),
      };
    };
    const layers = found.layers.map(String);
    /** @type {Map} */
    const ofToken = {
      rows: layers.length,
      columns: found.experts,
      value: (at, e) => found.weight(at, query, e),
      most,
      rowNames: layers,
      row,
      from: (at, e) => took(at, query, e),
      choose: (at) => view.choose({ layer: layers[at] }),
    };
    /** @type {Map} */
    const loads = {
      ...ofToken,
      value: (at, e) => found.load(at, e) || NaN,
      most: found.mostLoad,
      from: (at, e) => ({
        title: fill(words.experts_share, {
          layer: layers[at],
          e,
          p: percent(found.load(at, e)),
          even: percent(1 / found.experts),
        }),
      }),
    };
    const high = narrow ? 0 : Math.max(box.height, LOWEST * view.rem);
    const half = narrow ? Math.min(320 * r, layers.length * 18 * r + 40 * r) : high / 2 - 6 * r;
    const tall = narrow ? Math.min(420 * r, found.n * 20 * r + 40 * r) : high;
    // Of a long text as many tokens as have a row, around the one that is followed
    const shown = Math.min(found.n, Math.max(1, Math.floor((tall - 40 * r) / Math.max(LEAST, 14 * r))));
    const first = clamp(query - Math.floor(shown / 2), 0, found.n - shown);
    const q = quoted(labels[query]);
    const [x, y] = narrow ? [0, 2 * half] : [wide + gap, 0];
    this.map(fill(words.experts_token, { q }), 0, 0, wide, half, ofToken);
    this.map(fill(words.experts_load, { n: number(found.n) }), 0, half + (narrow ? 0 : 6 * r), wide, half, loads);
    this.map(fill(words.experts_tokens, { layer }), x, y, wide, tall, {
      rows: shown,
      columns: found.experts,
      value: (at, e) => found.weight(row, first + at, e),
      most,
      rowNames: labels.slice(first, first + shown),
      row: query - first,
      from: (at, e) => took(row, first + at, e),
      choose: (at) => view.choose({ query: String(first + at) }),
    });
    view.pic.style.minHeight = narrow ? `${y + tall}px` : `${high}px`;
  }

  /** @param {string} title @param {number} x @param {number} y @param {number} width @param {number} height @param {Map} of */
  map(title, x, y, width, height, of) {
    const { view } = this;
    const r = view.rem / 15.55;
    const left = Math.min(
      width * 0.28,
      Math.max(26 * r, 8 * r * Math.max(...of.rowNames.map((name) => name?.length ?? 0))),
    );
    label(view.pic, x, y, "top", title, width);
    const top = 38 * r; // of the cells, below the title and the numbers of the experts
    const w = Math.min((width - left - 4) / of.columns, 60 * r);
    const h = Math.min((height - top - 4 * r) / of.rows, 26 * r);
    const names = (/** @type {(string | null)[]} */ list, /** @type {number} */ cell, /** @type {number} */ room) => {
      const every = [1, 2, 4, 8, 16, 32].find((by) => by * cell >= room * r) ?? 64;
      return list.map((name, i) => (i % every ? null : name));
    };
    const type = { colour: view.palette.mute, size: 11.5 * r };
    const short = (/** @type {string | null} */ name) => {
      const most = Math.floor(left / (7 * r));
      return name && name.length > most ? `${name.slice(0, most - 1)}…` : name;
    };
    const box = add(view.pic, "div", "expertmap");
    Object.assign(box.style, { left: `${x}px`, top: `${y}px` });
    const map = new HeatmapView(box);
    const written = w >= WRITTEN * r && h >= 15 * r;
    map.draw(
      {
        rows: of.rows,
        columns: of.columns,
        x: left,
        y: top,
        w,
        h,
        gap: w > 5 && h > 5 ? 1 : 0,
        tone: (row, column) => {
          const value = of.value(row, column);
          return Number.isNaN(value) ? view.paint.scale(0) : view.paint.scale(value / of.most);
        },
        label: (row, column) => {
          const value = of.value(row, column);
          return Number.isNaN(value) ? null : [fixed(value)];
        },
        size: written ? Math.min(12 * r, h * 0.65) : 0,
        rowNames: { ...type, list: names(of.rowNames.map(short), h, 13) },
        columnNames: {
          ...type,
          list: names(
            Array.from({ length: of.columns }, (_, e) => String(e)),
            w,
            22,
          ),
        },
        frames: [{ row: of.row, colour: view.palette.query, width: 2 }],
      },
      width,
      top + of.rows * h + 2,
      { hatch: view.palette.hatch, font: getComputedStyle(view.root).fontFamily },
    );
    box.addEventListener("pointermove", (event) => {
      const at = map.at(event);
      if (at) view.sum(of.from(...at), at);
      else this.rest();
    });
    box.addEventListener("pointerleave", () => this.rest());
    box.addEventListener("click", (event) => {
      const at = map.at(event);
      if (at) of.choose(at[0]);
    });
  }

  // ------------------------------------------------------------------ as tables

  /** @param {Routing} found */
  tables(found) {
    const { pic } = this.view;
    const [choices, loads] = [this.choices(found), this.layerLoads(found)];
    pic.classList.add("tabled");
    pic.replaceChildren(tableBox(fill(words.experts_table, { layer: this.layer }), choices.columns, choices.rows));
    const name = fill(words.experts_loads, { layer: this.layer });
    pic.firstElementChild?.append(table(name, loads.columns, loads.rows));
  }

  // Every token of the followed layer, with its experts and their weights
  /** @param {Routing} found @returns {import("./types.js").Numbers} */
  choices(found) {
    const each = Array.from({ length: found.k }, (_, i) => i + 1);
    return {
      columns: [
        words.experts_column,
        ...each.flatMap((i) => [fill(words.experts_choice, { i }), fill(words.experts_weight, { i })]),
      ],
      rows: this.labels.map((text, pos) => [text, ...found.of(this.row, pos).flat()]),
    };
  }

  /** @param {Routing} found @returns {import("./types.js").Numbers} */
  layerLoads(found) {
    return {
      columns: [words.experts_expert, words.experts_part],
      rows: Array.from({ length: found.experts }, (_, e) => [String(e), found.load(this.row, e)]),
    };
  }

  // The same of every layer, for a file
  /** @param {Routing} found @returns {import("./types.js").Numbers} */
  allLoads(found) {
    return {
      columns: ["layer", "expert", "load"],
      rows: found.layers.flatMap((layer, at) =>
        Array.from({ length: found.experts }, (_, e) => [layer, e, found.load(at, e)]),
      ),
    };
  }

  /** @param {string[]} lines of code that load and trace */
  snippet(lines) {
    return [
      ...lines,
      "from headlight.read.layer_walk import routing",
      "",
      `found = routing(run, "${this.stack}")`,
      `numbers = found.chosen[${this.row}], found.weights[${this.row}]  # layer ${this.layer}: [token, choice]`,
      "load = found.load  # [layer, expert]",
      "",
    ].join("\n");
  }
}
