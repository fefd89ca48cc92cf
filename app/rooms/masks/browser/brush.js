// What takes the pointer and the keys over the middle map: cells are painted while it is down, and the model runs when it is let go.

import { arrow, clamp, el, fill, percent, pinned } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { LONGEST, MAY, between, encode, paint as stroke } from "./rules.js";

export class Brush {
  /** @type {boolean | null} What the pointer paints, while it is down: that a cell may look, or that it may not */
  painting = null;
  /** @type {[number, number]} */
  last = [0, 0];
  /** @type {[number, number]} Where the keyboard is on the map */
  cursor = [0, 0];

  /** @param {import("./paint.js").Paint} paint @param {HTMLElement} box @param {import("./maps.js").Grid} grid */
  constructor(paint, box, grid) {
    this.paint = paint;
    const { type } = paint.view;
    this.cell = grid.cell * type;
    const pad = (this.box = box.appendChild(el("div", "brush")));
    pinned(pad, { left: grid.x * type, top: grid.y * type, width: grid.width * type, height: grid.height * type });
    pad.tabIndex = 0;
    pad.setAttribute("role", "application");
    pad.setAttribute(
      "aria-label",
      fill(words.map_label, { n_query: this.paint.site.n_query, n_key: this.paint.site.n_key }),
    );
    this.spot = pad.appendChild(el("i"));
    const cellAt = (/** @type {PointerEvent} */ e) => {
      const frame = pad.getBoundingClientRect();
      const q = Math.floor(((e.clientY - frame.top) / frame.height) * this.paint.site.n_query);
      const k = Math.floor(((e.clientX - frame.left) / frame.width) * this.paint.site.n_key);
      return /** @type {[number, number]} */ ([
        clamp(q, 0, this.paint.site.n_query - 1),
        clamp(k, 0, this.paint.site.n_key - 1),
      ]);
    };
    pad.addEventListener("pointerdown", (e) => {
      if (e.button || e.pointerType === "touch") return;
      const at = cellAt(e);
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
      if (/** @type {PointerEvent} */ (e).pointerType !== "touch") return;
      this.begin(cellAt(/** @type {PointerEvent} */ (e)));
      this.end();
    });
    pad.addEventListener("keydown", (e) => this.key(e));
    pad.addEventListener("focus", () => this.show(true));
    pad.addEventListener("blur", () => this.show(false));
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    const step = arrow(e);
    const { n_query, n_key } = this.paint.site;
    if (step) {
      this.cursor = [clamp(this.cursor[0] + step[0], 0, n_query - 1), clamp(this.cursor[1] + step[1], 0, n_key - 1)];
      this.paint.view.announce(this.paint.why(this.cursor, true));
      this.show(true);
      this.paint.view.choose({ query: String(this.cursor[0]) });
    } else if (e.key === " " || e.key === "Enter") {
      this.begin(this.cursor);
      const may = this.painting;
      this.end();
      this.paint.view.drawNow();
      const [q, k] = this.cursor;
      const { early, weighed } = this.paint.now;
      const said = !may ? words.forbade_cell : early ? words.cell_may : words.painted_cell;
      this.paint.view.announce(
        fill(said, {
          q: this.paint.queries[q],
          k: this.paint.keys[k],
          weight: percent(weighed.weights[q * n_key + k], 1),
        }),
      );
    } else return;
    e.preventDefault();
    e.stopPropagation();
  }

  /** @param {boolean} on */
  show(on) {
    const { cell } = this;
    const [q, k] = this.cursor;
    Object.assign(this.spot.style, {
      display: on ? "block" : "none",
      left: `${k * cell}px`,
      top: `${q * cell}px`,
      width: `${cell}px`,
      height: `${cell}px`,
    });
    if (on && this.paint.scrolls) this.spot.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** @param {[number, number]} at */
  begin([q, k]) {
    this.painting = this.paint.now.mask[q * this.paint.site.n_key + k] !== MAY;
    this.last = this.cursor = [q, k];
    this.put([q, k], this.painting);
    this.paint.view.values.whose = "yours";
    this.paint.view.values.query = String(q);
    this.paint.view.hint("");
    this.paint.view.invalidate("selection");
  }

  /** @param {[number, number]} at @param {boolean} may */
  put([q, k], may) {
    stroke(this.paint.preset(), this.paint.forbid, this.paint.allow, q * this.paint.site.n_key + k, may);
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
    this.paint.view.choose({ forbid, allow, whose: "yours", query: this.paint.view.values.query });
  }
}
