// One head in both runs: its map as it is, as it is changed, the difference, and what moved most.

import { WORDS as words } from "./constants.js";
import { fit } from "../../../kit/browser/colours.js";
import { add, choice, el, fill, setText, short } from "../../../kit/browser/dom.js";
import { movedMost, percent, points } from "./numbers.js";
import { scales } from "./sweepmap.js";

/** @typedef {{rows: number, columns: number, values: Float32Array}} Matrix */

/** @param {import("./types.js").Numbers2d | null} found @param {ArrayBuffer} body @returns {Matrix | null} */
export function matrix(found, body) {
  if (!found) return null;
  const [rows, columns] = found.shape;
  return { rows, columns, values: new Float32Array(body, found.at, rows * columns) };
}

// The rest of the view asks: choose another head to look at
/** @typedef {{name: (site: string, layer: number, head: number) => string, choose: (moved: string) => void}} Ask */

export class Pair {
  /** @type {[query: number, key: number, change: number][]} What moved most in the head that is shown */
  found = [];

  /** @param {HTMLElement} box @param {Ask} ask */
  constructor(box, ask) {
    this.box = box;
    this.ask = ask;
    const line = add(box, "div", "line");
    this.heading = add(line, "h2");
    this.tabs = add(line, "span", "tabs");
    this.note = add(box, "p", "note");
    const grid = (this.grid = add(box, "div", "maps"));
    /** @param {string} title @param {string} more */
    const panel = (title, more = "") => {
      const node = add(grid, "figure");
      const caption = add(node, "figcaption");
      const heading = el("span", "", title);
      caption.append(heading, el("span", "mute", more));
      const canvas = add(node, "canvas");
      canvas.setAttribute("role", "img");
      return { node, canvas, title: heading };
    };
    this.before = panel(words.as_it_is, words.query_key);
    this.after = panel(words.changed);
    this.difference = panel(words.difference);
    const legend = /** @type {HTMLElement} */ (this.difference.node.querySelector("figcaption .mute"));
    legend.className = "legend mute";
    legend.append(el("i", "less"), words.less, el("i", "more"), words.more);
    this.list = add(grid, "div", "most");
    this.read = add(box, "p", "read note");
    this.read.setAttribute("aria-live", "off");
    for (const { canvas } of [this.before, this.after, this.difference]) {
      canvas.addEventListener("pointermove", (e) => this.point(e, canvas));
      canvas.addEventListener("pointerleave", () => (this.read.textContent = ""));
    }
  }

  /** @param {import("./types.js").Side} side @param {string} chosen @param {[queries: string[], keys: string[]]} labels @param {import("./types.js").Palette} palette @param {boolean} picked whether a head or a look is changed @param {boolean} other whether another run stands beside */
  draw(side, chosen, labels, palette, picked, other) {
    this.labels = labels;
    const found = side.maps.find((map) => `${map.site}.${map.layer}.${map.head}` === chosen) ?? side.maps[0];
    this.heading.replaceChildren();
    this.tabs.replaceChildren();
    this.list.replaceChildren();
    this.found = [];
    if (!found) {
      this.note.textContent = side.too_long ? words.no_maps : "";
      for (const { node } of [this.before, this.after, this.difference]) node.hidden = true;
      return;
    }
    const moved = side.moved.some(
      ([site, layer, head]) => site === found.site && layer === found.layer && head === found.head,
    );
    this.heading.append(
      el("b", "", this.ask.name(found.site, found.layer, found.head)),
      ` ${moved ? (other ? words.looks_elsewhere_there : words.looks_elsewhere) : words.itself}`,
    );
    setText(this.after.title, other ? words.other_run : words.changed);
    const options = side.moved.map(
      ([site, layer, head]) =>
        /** @type {import("../../../kit/browser/types.js").Choice<string>} */ ([
          `${site}.${layer}.${head}`,
          this.ask.name(site, layer, head),
        ]),
    );
    if (options.length)
      this.tabs.append(
        choice(words.moved_heads, options, `${found.site}.${found.layer}.${found.head}`, (id) => this.ask.choose(id)),
      );
    const before = (this.one = matrix(found.before, side.body));
    const after = (this.two = matrix(found.after, side.body));
    const alike = before && after && before.rows === after.rows && before.columns === after.columns && side.comparable;
    this.note.textContent = !alike ? words.no_difference : side.moved.length || !picked ? "" : words.last_layer;
    const single = alike && !side.moved.length;
    this.grid.classList.toggle("single", Boolean(single));
    this.paint(
      this.before,
      before,
      palette,
      this.heading.textContent ?? "",
      undefined,
      false,
      single ? labels : undefined,
    );
    this.paint(this.after, single ? null : after, palette, this.heading.textContent ?? "");
    this.difference.node.hidden = this.list.hidden = !alike || !side.moved.length;
    if (!alike || !side.moved.length) return;
    const change = { ...before, values: after.values.map((x, i) => x - before.values[i]) };
    const top = movedMost(before.values, after.values, before.columns, 7);
    this.paint(this.difference, change, palette, words.difference, top[0], true);
    this.found = top;
    add(this.list, "div", "mute").textContent = words.moved_most;
    const most = Math.abs(top[0]?.[2] ?? 1);
    for (const [query, key, by] of top) {
      const row = add(this.list, "div", "moved");
      const names = add(row, "span");
      names.append(
        el("b", "query", short(labels[0][query] ?? String(query))),
        " → ",
        el("b", "key", short(labels[1][key] ?? String(key))),
      );
      add(row, "span", "value").textContent = points(by);
      const bar = add(row, "span", by < 0 ? "by chosen less" : "by chosen more");
      bar.style.width = `${Math.max(2, (Math.abs(by) / most) * 100)}%`;
    }
  }

  /** @param {{node: HTMLElement, canvas: HTMLCanvasElement}} panel @param {Matrix | null} found @param {import("./types.js").Palette} palette @param {string} name @param {[number, number, number]} [marked] @param {boolean} [signed] @param {[string[], string[]]} [named] */
  paint({ node, canvas }, found, palette, name, marked, signed = false, named = undefined) {
    node.hidden = !found;
    if (!found) return;
    canvas.setAttribute("aria-label", name);
    const unit = parseFloat(getComputedStyle(node).fontSize) / 16 || 1;
    const words_ = named && found.rows <= 30 && found.columns <= 30 ? named : null;
    const [left, top] = words_ ? [64 * unit, 52 * unit] : [0, 0];
    const room = Math.max(120, node.clientWidth || 190) - left - (words_ ? 24 * unit : 0);
    const cell = Math.min(room / found.columns, 26 * unit);
    const least = words_ ? found.rows * 13 * unit : 0; // for what the rows are called
    // Two rows of maps, or one with names, on a laptop's screen: a look that moved in the last row is not below its edge.
    const most = Math.max((named ? 0.38 : 0.24) * innerHeight, least);
    const height = Math.min(found.rows * cell, most, 420);
    const context = fit(canvas, left + cell * found.columns + (words_ ? 24 * unit : 0), top + height);
    const scale = scales(palette);
    const h = height / found.rows;
    const gap = cell > 6 ? 0.7 : 0;
    canvas.dataset.left = String(left);
    canvas.dataset.top = String(top);
    canvas.dataset.width = String(cell * found.columns);
    canvas.dataset.height = String(height);
    context.translate(left, top);
    for (let i = 0; i < found.rows; i++) {
      for (let j = 0; j < found.columns; j++) {
        const value = found.values[i * found.columns + j];
        context.fillStyle = signed ? scale.of(value, 1).fill : scale.even(value).fill;
        context.fillRect(j * cell, i * h, cell - gap, h - gap);
      }
    }
    if (words_) {
      context.font = `${Math.min(12 * unit, h)}px ${getComputedStyle(node).fontFamily}`;
      context.textAlign = "right";
      context.fillStyle = palette.query;
      words_[0].forEach((label, i) => context.fillText(short(label), -5, (i + 0.75) * h));
      context.textAlign = "left";
      context.fillStyle = palette.key;
      words_[1].forEach((label, j) => {
        context.save();
        context.translate((j + 0.6) * cell, -5);
        context.rotate(-0.87);
        context.fillText(short(label), 0, 0);
        context.restore();
      });
    }
    if (!marked) return;
    context.strokeStyle = palette.query;
    context.lineWidth = 2;
    context.strokeRect(marked[1] * cell, marked[0] * h, cell, h);
  }

  /** @param {PointerEvent} event @param {HTMLCanvasElement} canvas */
  point(event, canvas) {
    const { one, two } = this;
    if (!one || !this.labels) return;
    const at = canvas.getBoundingClientRect();
    const of = canvas === this.after.canvas && two ? two : one;
    const [left, top, width, height] = ["left", "top", "width", "height"].map((name) => Number(canvas.dataset[name]));
    const i = Math.floor(((event.clientY - at.top - top) / height) * of.rows);
    const j = Math.floor(((event.clientX - at.left - left) / width) * of.columns);
    const [queries, keys] = this.labels;
    if (!(i >= 0 && j >= 0 && i < of.rows && j < of.columns)) return;
    const a = one.values[i * one.columns + j];
    const b = two && two.columns === one.columns && two.rows === one.rows ? two.values[i * two.columns + j] : null;
    this.read.textContent = `${queries[i] ?? i} → ${keys[j] ?? j}: ${fill("{a} → {b}", { a: percent(a), b: percent(b) })}`;
  }
}
