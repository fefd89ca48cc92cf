// Of a folded map all of it, small: the rows that are unfolded, and the columns.

import { fit } from "../../kit/browser/colours.js";
import { WORDS as words } from "./constants.js";
import { add, clamp, fill, number } from "../../kit/browser/dom.js";
import { dots } from "../../kit/browser/picture/canvas.js";

export class WholeMap {
  side = 0; // px

  /** @param {import("./types.js").View} view @param {HTMLElement} parent @param {import("./map.js").HeadMap} map */
  constructor(view, parent, map) {
    this.view = view;
    this.map = map;
    this.canvas = add(parent, "canvas", "whole");
    this.canvas.setAttribute("role", "img");
    this.canvas.addEventListener("click", (e) => this.click(e));
  }

  /** @param {number} space px that it may take */
  draw(space) {
    const { view } = this;
    this.side = this.map.geometry?.isFold ? Math.floor(Math.min(8.5 * view.room.em, space)) : 0;
    this.canvas.hidden = !this.side || !Number.isFinite(this.side);
    if (!this.canvas.hidden) this.paint();
  }

  paint() {
    const { view, side } = this;
    const lens = view.lens();
    const { rows: [q0, q1] = [0, 0], columns = [] } = this.map.geometry;
    this.canvas.title = fill(words.whole_map, { n: number(lens.n_query), m: number(lens.n_key) });
    this.canvas.setAttribute("aria-label", this.canvas.title);
    const context = fit(this.canvas, side, side);
    const tile = this.map.tile() ?? this.map.standIn();
    const levels = view.shading.levels(tile);
    const canvas = dots(tile, levels, view.palette.tones.packed);
    const top = 5;
    const size = side - top;
    if (this.map.geometry.isMirrored) context.transform(-1, 0, 0, 1, side, 0);
    context.imageSmoothingEnabled = tile.columns > side;
    context.drawImage(canvas, 0, top, side, size);
    context.fillStyle = view.palette.key;
    for (const k of columns)
      if (k >= 0) context.fillRect((side * k) / lens.n_key, 0, Math.max(1.5, side / lens.n_key), 4);
    context.strokeStyle = view.palette.query;
    context.lineWidth = 1.5;
    context.strokeRect(
      1,
      top + (size * q0) / lens.n_query - 1,
      side - 2,
      Math.max(2, (size * (q1 - q0)) / lens.n_query) + 2,
    );
  }

  // A row of the whole map, to read it
  /** @param {MouseEvent} e */
  click(e) {
    const box = this.canvas.getBoundingClientRect();
    const lens = this.view.lens();
    const row = clamp(Math.floor(((e.clientY - box.top - 5) / (box.height - 5)) * lens.n_query), 0, lens.n_query - 1);
    this.view.chosen.go({ query: lens.firstQuery(row) }, e);
  }
}
