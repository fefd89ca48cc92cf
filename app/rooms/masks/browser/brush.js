// What takes the pointer and the keys over the middle map: cells are painted while it is down, and the model runs when it is let go.

import { cover } from "../../../kit/browser/cover.js";
import { arrow, clamp, el, fill, pinned } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { LONGEST, MAY, between, encode, paint as stroke } from "./rules.js";

export class Brush {
  /** @type {boolean | null} What the pointer paints, while it is down: that a cell may look, or that it may not */
  painting = null;
  /** @type {[number, number]} */
  last = [0, 0];
  /** @type {[number, number]} Where the keyboard is on the map */
  cursor = [0, 0];
  isKeyed = false; // whether the keyboard brought it there: then the map goes along

  cell = 1;
  tile = { row: 0, column: 0, rows: 1, columns: 1 };

  /** @param {import("./paint.js").Paint} paint @param {HTMLElement} box */
  constructor(paint, box) {
    this.paint = paint;
    const pad = (this.box = box.appendChild(el("div", "brush")));
    pad.tabIndex = 0;
    pad.setAttribute("role", "application");
    pad.setAttribute(
      "aria-label",
      fill(words.maps, { n_query: this.paint.site.n_query, n_key: this.paint.site.n_key }),
    );
    this.spot = pad.appendChild(el("i"));
    const cellAt = (/** @type {PointerEvent} */ e) => {
      const frame = pad.getBoundingClientRect();
      const { row, column, rows, columns } = this.tile;
      const q = Math.floor(((e.clientY - frame.top) / frame.height) * rows);
      const k = Math.floor(((e.clientX - frame.left) / frame.width) * columns);
      return /** @type {[number, number]} */ ([row + clamp(q, 0, rows - 1), column + clamp(k, 0, columns - 1)]);
    };
    pad.addEventListener("pointerdown", (e) => {
      if (e.button || e.pointerType === "touch") return;
      const at = cellAt(e);
      this.isKeyed = false;
      this.begin(at);
      pad.setPointerCapture(e.pointerId);
      e.preventDefault();
      pad.focus({ preventScroll: true });
    });
    pad.addEventListener("pointermove", (e) => {
      const at = cellAt(e);
      if (this.painting === null) return this.paint.view.hint(this.paint.why(at), e);
      if (at[0] === this.last[0] && at[1] === this.last[1]) return;
      for (const cell of between(this.last, at)) this.put(cell, this.painting);
      this.last = at;
      this.paint.view.invalidate("selection");
    });
    pad.addEventListener("pointerleave", () => this.paint.view.hint(""));
    pad.addEventListener("pointerup", () => this.end());
    pad.addEventListener("pointercancel", () => this.end());
    pad.addEventListener("click", (e) => {
      e.stopPropagation();
      if (/** @type {PointerEvent} */ (e).pointerType !== "touch") return;
      const at = cellAt(/** @type {PointerEvent} */ (e));
      if (at[0] !== this.paint.view.place.query) return this.paint.view.chooseRow(at[0]);
      this.begin(at);
      this.end();
    });
    pad.addEventListener("keydown", (e) => this.key(e));
    pad.addEventListener("focus", () => this.show(true));
    pad.addEventListener("blur", () => this.show(false));
  }

  // Over the cells of the first map
  /** @param {number} x @param {number} y @param {number} cell @param {{row: number, column: number, rows: number, columns: number}} tile */
  place(x, y, cell, tile) {
    Object.assign(this, { cell, tile });
    pinned(this.box, { left: x, top: y, width: tile.columns * cell, height: tile.rows * cell });
  }

  /** @param {number} q @param {number} k @param {boolean} may */
  stroke(q, k, may) {
    const { paint } = this;
    const { n_key } = paint.site;
    stroke(paint.preset(), paint.forbid, paint.allow, q * n_key + k, may, paint.now.first * n_key);
  }

  // All of a column that is drawn, as its uppermost cell that the model's own mask leaves says
  /** @param {number} k */
  column(k) {
    const { paint } = this;
    const { row, rows: n } = this.tile;
    const rows = Array.from({ length: n }, (_, q) => row + q).filter((q) => !paint.now.ownMask[paint.index(q, k)]);
    const may = rows.every((q) => paint.now.mask[paint.index(q, k)] !== MAY);
    this.painting = may;
    for (const q of rows) this.stroke(q, k, may);
    this.end();
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    const step = arrow(e);
    const { n_query, n_key } = this.paint.site;
    if (step) {
      this.isKeyed = true;
      this.cursor = [clamp(this.cursor[0] + step[0], 0, n_query - 1), clamp(this.cursor[1] + step[1], 0, n_key - 1)];
      this.paint.view.announce(this.paint.why(this.cursor, true));
      this.show(true);
      this.paint.view.chooseRow(this.cursor[0]);
      this.paint.view.invalidate("selection"); // also within a row
    } else if (e.key === " " || e.key === "Enter") {
      e.preventDefault();
      e.stopPropagation();
      if (cover.hides("row")) return this.begin(this.cursor);
      this.begin(this.cursor);
      const may = this.painting;
      this.end();
      this.paint.view.drawNow();
      const [q, k] = this.cursor;
      const { early } = this.paint.now;
      const said = !may ? words.forbade_cell : early ? words.cell_may : words.painted_cell;
      this.paint.view.announce(
        fill(said, {
          q: this.paint.queries[q],
          k: this.paint.keys[k],
          weight: this.paint.weightOf([q, k]),
        }),
      );
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }

  /** @param {boolean} on */
  show(on) {
    const { cell } = this;
    const [q, k] = [this.cursor[0] - this.tile.row, this.cursor[1] - this.tile.column];
    Object.assign(this.spot.style, {
      display: on ? "block" : "none",
      left: `${k * cell}px`,
      top: `${q * cell}px`,
      width: `${cell}px`,
      height: `${cell}px`,
    });
  }

  /** @param {[number, number]} at */
  begin([q, k]) {
    if (cover.hides("row")) return void (q === this.paint.view.place.query && cover.point(k)); // an answer to what a lesson asks
    this.painting = this.paint.now.mask[this.paint.index(q, k)] !== MAY;
    this.last = this.cursor = [q, k];
    this.put([q, k], this.painting);
    this.paint.view.values.whose = "yours";
    this.paint.view.values.query = String(q);
    this.paint.view.hint("");
    this.paint.view.invalidate("selection");
  }

  /** @param {[number, number]} at @param {boolean} may */
  put([q, k], may) {
    this.stroke(q, k, may);
    this.paint.view.values.query = String(q);
    this.paint.view.values.whose = "yours";
  }

  // The pointer is let go: the link follows, and the model runs.
  end() {
    if (this.painting === null) return;
    this.painting = null;
    const { n_key } = this.paint.site;
    const [forbid, allow] = [encode(this.paint.forbid, n_key), encode(this.paint.allow, n_key)];
    if (forbid.length + allow.length > LONGEST) {
      this.paint.painted = "";
      this.paint.view.announce(words.too_many);
      this.paint.view.invalidate("selection");
      return;
    }
    this.paint.view.choose({ forbid, allow, whose: "yours", stop: "0", query: this.paint.view.values.query });
  }
}
