// The pages of small numbers: one head of 3 × 4 whose inputs can be dragged, a batch and its transpose, the reshape into heads.

import { add, choice, clamp, el, fill, worded } from "../../../kit/browser/dom.js";
import { BatchPage } from "./batch.js";
import { WORDS as words } from "./constants.js";
import { drawFrom } from "./from.js";
import { Grid } from "./grid.js";
import { OnePage, STEPS } from "./one.js";
import { indexOf, ReshapePage } from "./reshape.js";
import { drawTable } from "./table.js";

/** @typedef {import("./types.js").Spot} Spot */
export const PAGES = { one: words.page_one, batch: words.page_batch, reshape: words.page_reshape };

export class Small {
  /** @type {import("./types.js").Small} */
  data;
  /** @type {Record<string, Grid>} */
  grids = {};
  /** @type {Spot | null} */
  spot = null;
  /** @type {HTMLElement} Where the page is drawn */
  host;
  page = "";
  /** @type {Spot | undefined} The number that is looked at */
  now;

  /** @param {import("./step.js").View} view */
  constructor(view) {
    this.view = view;
    /** @type {Record<string, import("./types.js").SmallPage>} */
    this.pages = { one: new OnePage(this), batch: new BatchPage(this), reshape: new ReshapePage(this) };
  }

  get shown() {
    return this.pages[this.page];
  }

  get at() {
    return Math.max(
      0,
      STEPS.indexOf(
        this.view.values.at === "softmax" && !this.view.values.cell && this.opening ? "output" : this.view.values.at,
      ),
    );
  }
  opening = false;

  // Where the number that is looked at stands in [2, 4, 24], on the page of the reshape
  get followed() {
    return this.page === "reshape" ? indexOf(this.now ?? this.shown.opens()) : [];
  }

  get token() {
    const row = Number((this.view.values.cell || "0.0").split(".")[0]);
    return clamp(row || 0, 0, 2);
  }

  /** @param {number} at */
  go(at) {
    if (this.page !== "one") return;
    this.spot = null;
    // with the token that is followed: a page without one opens at its end, whatever step the link leaves out
    this.view.choose({ at: STEPS[clamp(at, 0, STEPS.length - 1)], cell: this.view.values.cell || "0.0" });
  }

  /** @param {import("./types.js").Small} data @param {string} page */
  draw(data, page) {
    const { view } = this;
    this.data = data;
    if (page !== this.page) this.spot = null;
    this.page = page;
    view.rem = parseFloat(getComputedStyle(view.root).fontSize) || 16;
    view.rail.leave();
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
    this.shown.draw();
    const name = worded(PAGES, page);
    view.pic.setAttribute("aria-label", fill(words.picture, { name }));
    view.pic.onkeydown = (event) => this.key(event);
    if (view.values.show === "table") {
      view.pic.replaceChildren();
      view.pic.classList.add("tabled");
      drawTable(view.pic, this.numbers(), name);
    }
    Object.assign(view.root.dataset, {
      at: page === "one" ? STEPS[this.at] : "",
      painted: "1",
      run: view.remote.key,
      small: this.shown.x ? "changed" : "own",
    });
    this.look(this.spot ?? this.shown.opens());
  }

  // ------------------------------------------------------------------ parts of a page

  /** @param {string} title @param {string} facts @param {[axis: string, n: number][]} axes @param {Node[]} more */
  head(title, facts, axes, ...more) {
    const sizes = el("span", "sh");
    for (const [axis, n] of axes)
      sizes.append(el("b", `ax-${axis}`, String(n)), el("small", "", worded(words.shape, axis)));
    const show = choice(
      words.as,
      /** @type {[string, string][]} */ ([
        ["picture", words.as_picture],
        ["table", words.as_table],
      ]),
      this.view.values.show,
      (to) => this.view.choose({ show: to }),
    );
    this.view.meta.replaceChildren(
      el("b", "", title),
      el("span", "", facts),
      ...more,
      ...(this.view.projector.on ? [] : [show]),
      sizes,
    );
  }

  /** @param {number} x @param {number} y @param {string} className @param {string | (string | Node)[]} text @param {number} [width] */
  label(x, y, className, text, width) {
    const node = add(this.host, "div", `lab ${className}`);
    node.append(...(typeof text === "string" ? [text] : text));
    Object.assign(node.style, {
      left: `${x}px`,
      top: `${y}px`,
      ...(width === undefined ? {} : { width: `${width}px` }),
    });
    return node;
  }

  /** @param {string} name @param {number} x @param {number} y @param {number[][]} values @param {Partial<ConstructorParameters<typeof Grid>[1]>} options */
  put(name, x, y, values, options) {
    const grid = new Grid(
      this.host,
      /** @type {any} */ ({
        rows: values.length,
        columns: values[0].length,
        limit: 1.3,
        paint: this.view.paint,
        value: (/** @type {number} */ r, /** @type {number} */ c) => values[r][c],
        digits: 2,
        ...options,
      }),
    );
    Object.assign(grid.canvas.style, { left: `${x}px`, top: `${y}px` });
    grid.canvas.dataset.grid = name;
    grid.listen(
      (r, c) => this.look([name, r, c]),
      (r, c) => {
        this.spot = [name, r, c];
        this.look(this.spot);
      },
      () => this.look(this.spot ?? this.shown.opens()),
    );
    this.grids[name] = grid;
    return grid;
  }

  /** @param {Record<string, import("./grid.js").Frame[]>} frames */
  mark(frames) {
    for (const [name, grid] of Object.entries(this.grids))
      if (frames[name] || grid.frames.length) grid.mark(frames[name] ?? []);
  }

  /** @param {Spot} spot */
  look(spot) {
    const from = this.shown.from(spot);
    this.now = spot;
    this.view.said = drawFrom(this.view.fromBox, from);
    this.view.root.dataset.cell = spot.join(".");
    this.view.root.dataset.total = from.total === undefined ? "" : String(from.total);
  }

  // Arrows go from number to number; Tab from matrix to matrix is the page's own.
  /** @param {KeyboardEvent} event */
  key(event) {
    const by = /** @type {Record<string, [number, number]>} */ ({
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
    })[event.key];
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
    } else if ((event.key === "+" || event.key === "-") && name === "x")
      this.shown.change?.(row, column, event.key === "+" ? 0.1 : -0.1);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.spot = [name, row, column];
    this.look(this.spot);
    this.view.live.textContent = this.view.said ?? "";
  }

  // ------------------------------------------------------------------ as a table

  /** @returns {import("./types.js").Numbers} */
  numbers() {
    const rows = this.shown
      .numbers()
      .flatMap(([name, values]) =>
        values.map((row, i) => /** @type {(string | number)[]} */ ([`${name}[${i}]`, ...row])),
      );
    const most = Math.max(...rows.map((row) => row.length - 1));
    return { columns: ["row", ...Array.from({ length: most }, (_, i) => String(i))], rows };
  }
}
