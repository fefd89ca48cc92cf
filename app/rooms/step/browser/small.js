// The pages of small numbers: one head of 3 × 4 whose inputs can be dragged, a batch and its transpose, the reshape into heads.

import { cover } from "../../../kit/browser/cover.js";
import { WORDS as kit } from "../../../kit/browser/words.js";
import { choice, clamp, el, fill, pinned, worded } from "../../../kit/browser/dom.js";
import { tableBox } from "../../../kit/browser/table.js";
import { BatchPage } from "./batch.js";
import { OPENS_AT, WORDS as words } from "./constants.js";
import { Grid } from "./grid.js";
import { label } from "./sheet.js";
import { OnePage, STEPS } from "./one.js";
import { indexOf, ReshapePage } from "./reshape.js";

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

  /** @param {import("./step.js").StepThrough} view */
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
        this.view.values.at === OPENS_AT && !this.view.values.cell && this.opening ? "output" : this.view.values.at,
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

  /** @param {number} at @returns {boolean | void} */
  go(at) {
    if (this.page !== "one") return false;
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
    view.begin();
    this.grids = {};
    this.host = view.pic;
    this.shown.draw();
    const name = worded(PAGES, page);
    view.pic.setAttribute("aria-label", fill(words.picture, { name }));
    if (view.values.show === "table") {
      const { columns, rows } = this.numbers();
      view.pic.replaceChildren(tableBox(name, columns, rows));
      view.pic.classList.add("tabled");
    }
    this.look(this.spot ?? this.shown.opens());
  }

  status() {
    return {
      at: this.page === "one" ? STEPS[this.at] : "",
      run: this.view.key,
      small: this.shown.x ? "changed" : "own",
    };
  }

  // ------------------------------------------------------------------ parts of a page

  // The room that there is, once all that stands above it is written
  room() {
    return this.roomOf(this.host);
  }

  /** @param {HTMLElement} host */
  roomOf(host) {
    return (this.view.box = host.getBoundingClientRect());
  }

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
      ...(this.view.isProjected ? [] : [show]),
      sizes,
    );
  }

  /** @param {number} x @param {number} y @param {string} className @param {string | (string | Node)[]} text @param {number} [width] */
  label(x, y, className, text, width) {
    return label(this.host, x, y, className, text, width);
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
    pinned(grid.canvas, { left: x, top: y });
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
    const from = cover.hides("cell") ? { title: kit.covered } : this.shown.from(spot); // where a number goes is asked for
    this.now = spot;
    this.view.sum(from, spot);
  }

  // Arrows go from number to number; Tab from matrix to matrix is the page's own.
  /** @param {number} down @param {number} right */
  move(down, right) {
    if (!this.now) return false;
    const names = Object.keys(this.grids);
    let [name, row, column] = this.now;
    const { rows, columns } = this.grids[name].options;
    [row, column] = [row + down, column + right];
    if (column < 0 || column >= columns) {
      name = names[clamp(names.indexOf(name) + right, 0, names.length - 1)];
      column = right > 0 ? 0 : this.grids[name].options.columns - 1;
      row = Math.min(row, this.grids[name].options.rows - 1);
    }
    row = clamp(row, 0, (name === this.now[0] ? rows : this.grids[name].options.rows) - 1);
    this.take([name, row, column]);
  }

  // The number of x that is looked at, a little more or less
  /** @param {number} by */
  change(by) {
    const { view, now } = this;
    if (view.opened === "run" || view.focused !== view.pic || now?.[0] !== "x") return false;
    this.shown.change?.(now[1], now[2], by);
    this.take(now);
  }

  /** @param {Spot} spot */
  take(spot) {
    this.spot = spot;
    this.look(spot);
    this.view.announce(this.view.said);
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
