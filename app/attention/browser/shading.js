// How weights become colours: the scale that is shown, what its two ends stand for, and the level of each value.

import { digits, fill, scientific } from "../../kit/browser/dom.js";
import { endsOf, levelOf } from "../../kit/browser/picture/scale.js";
import { LEAST_TOP, sinkOf } from "../../kit/browser/sink.js";
import { WORDS as words } from "./constants.js";
import { pointed } from "../../kit/browser/language.js";

const LONG = 128; // keys; above, the map opens on a logarithmic scale

export class Shading {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
  }

  // The weights of a long row are all small: unless a visitor chose otherwise, it is drawn on the scale that shows them.
  get scale() {
    const { scale } = this.view.options;
    return scale === "auto" ? (this.view.lens().n_key > LONG ? "log" : "linear") : scale;
  }

  // The same where there are no rows
  get whole() {
    return this.scale === "log" ? "log" : "linear";
  }

  // The token that most heads rest on; null where they rest on none, or while that is not known
  get rests() {
    const { view } = this;
    const found = sinkOf({ ask: (...asked) => view.remote.get(...asked) }, view.site.id);
    return found?.is && found.key !== null ? found : null;
  }

  // The column that the colours leave out: only they change, and no number
  get sink() {
    const { chosen, options } = this.view;
    if (chosen.sink !== "out" || options.bounds || this.scale === "row") return null;
    const lens = this.view.lens();
    const key = lens.unit === "weight" ? (this.rests?.key ?? null) : null;
    return key === null || lens.n_key < 3 ? null : lens.keyOf(key);
  }

  // The largest value that the colours go to
  get top() {
    const { sink } = this;
    const lens = this.view.lens();
    return sink === null ? lens.top : Math.max(LEAST_TOP, lens.topWithout(sink));
  }

  // The same of a part of the map whose own largest value this is
  /** @param {number} [own] */
  topOf(own = this.view.lens().top) {
    return this.sink === null ? own : this.top;
  }

  // What the colours at both ends stand for, of the whole map or of a part of it whose largest value this is
  ends(top = this.top) {
    return endsOf(this.whole, top, this.view.options.bounds);
  }

  // 0 to 255 for each weight of a row
  /** @param {import("./types.js").Row} row @returns {(weight: number) => number} */
  levelIn({ weights }) {
    const { whole } = this;
    const ends = this.scale === "row" ? endsOf(whole, weights.reduce((a, b) => Math.max(a, b), 0) || 1) : this.ends();
    return (weight) => levelOf(whole, weight, ends);
  }

  // The same of the small maps, which are of weights whatever the large one is of
  smallEnds() {
    return endsOf(this.whole, 1, this.view.lens().unit === "weight" ? this.view.options.bounds : null);
  }

  // What is said of both ends and the middle of the scale of a map whose largest value this is
  ticks(top = this.top, figures = 2) {
    const lens = this.view.lens();
    /** @param {number} x */
    const text = (x) => (x >= 1e-4 || !x ? digits(x, figures) : scientific(x));
    if (this.scale !== "row") {
      const { low, high } = this.ends(top);
      const middle = this.scale === "log" ? Math.sqrt(low * high) : (low + high) / 2;
      if (!this.view.options.bounds) return { low: text(low), middle: text(middle), high: text(high) };
      const [from, to] = [low, high].map((value) =>
        value >= 1e-4 || !value ? pointed(String(value)) : scientific(value),
      ); // as they were written
      return {
        low: low ? fill(words.bounds_below, { value: from }) : from,
        middle: text(middle),
        high: high < top ? fill(words.bounds_above, { value: to }) : to,
      };
    }
    const { query } = this.view.numbers.at();
    const row = query === null ? null : lens.row(query);
    const most = row ? row.weights.reduce((a, b) => Math.max(a, b), 0) : 0;
    return { low: "0", middle: "", high: row ? fill(words.per_row_most, { most: text(most) }) : words.per_row_top };
  }

  // values 0..top -> 0..255, by the scale
  /** @param {import("./types.js").DrawnTile} tile */
  levels(tile) {
    const { rows, columns, values } = tile;
    const top = this.topOf(tile.top);
    const out = new Uint8Array(rows * columns);
    const scale = this.scale;
    if (scale !== "row") {
      const ends = this.ends(top);
      for (let i = 0; i < out.length; i++) out[i] = levelOf(scale, values[i], ends);
      return out;
    }
    for (let r = 0; r < rows; r++) {
      let most = 0;
      for (let c = 0; c < columns; c++) most = Math.max(most, values[r * columns + c]);
      if (most)
        for (let c = 0; c < columns; c++) out[r * columns + c] = Math.round((values[r * columns + c] * 255) / most);
    }
    return out;
  }
}
