// One head in both runs: its map as it is, as it is changed, the difference, and what moved most.

import { WORDS as words } from "./constants.js";
import { add, choice, el, fill, saidIn, setText, short } from "../../../kit/browser/dom.js";
import { HeatmapView } from "../../../kit/browser/picture/heatmap.js";
import { rising, rooted, signed } from "../../../kit/browser/picture/scale.js";
import { movedMost, percent, placed, points } from "./numbers.js";

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
  tall = innerHeight; // pixels of the window that the maps may count on

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
      return { node, map: new HeatmapView(node), title: heading };
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
    for (const { node, map } of [this.before, this.after, this.difference]) {
      node.addEventListener("pointermove", (e) => this.point(map.at(e)));
      node.addEventListener("pointerleave", () => (this.read.textContent = ""));
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
      ` ${found.there ? words.own_heads : moved ? (other ? words.looks_elsewhere_there : words.looks_elsewhere) : words.itself}`,
    );
    const [layer, head] = found.there ?? [];
    const there = found.there ? `${words.other_run} · ${fill(words.head_name, { layer, head })}` : words.other_run;
    setText(this.after.title, other ? there : words.changed);
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
    const name = saidIn(this.heading);
    this.paint(this.before, before, palette, name, { labels: single ? labels : undefined });
    this.paint(this.after, single ? null : after, palette, name);
    this.difference.node.hidden = this.list.hidden = !alike || !side.moved.length;
    if (!alike || !side.moved.length) return;
    const change = { ...before, values: after.values.map((x, i) => x - before.values[i]) };
    const top = movedMost(before.values, after.values, before.columns, 7);
    this.paint(this.difference, change, palette, words.difference, { marked: top[0], isSigned: true });
    this.found = top;
    add(this.list, "div", "mute").textContent = words.moved_most;
    const most = Math.abs(top[0]?.[2] ?? 1);
    for (const [query, key, by] of top) {
      const row = add(this.list, "div", "moved");
      const names = add(row, "span");
      names.append(
        el("b", "query", placed(labels[0], query, short)),
        " → ",
        el("b", "key", placed(labels[1], key, short)),
      );
      add(row, "span", "value").textContent = points(by);
      const bar = add(row, "span", by < 0 ? "by chosen less" : "by chosen more");
      bar.style.width = `${Math.max(2, (Math.abs(by) / most) * 100)}%`;
    }
  }

  /** @param {{node: HTMLElement, map: HeatmapView}} panel @param {Matrix | null} found @param {import("./types.js").Palette} palette @param {string} name @param {{marked?: [number, number, number], isSigned?: boolean, labels?: [string[], string[]]}} [more] */
  paint({ node, map }, found, palette, name, { marked, isSigned = false, labels } = {}) {
    node.hidden = !found;
    if (!found) return;
    const { rows, columns, values } = found;
    const { fontSize, fontFamily } = getComputedStyle(node);
    const unit = parseFloat(fontSize) / 16 || 1;
    const isNamed = labels && rows <= 30 && columns <= 30;
    const [left, top, right] = isNamed ? [64 * unit, 52 * unit, 24 * unit] : [0, 0, 0];
    const w = Math.min((Math.max(120, node.clientWidth || 190) - left - right) / columns, 26 * unit);
    // Two rows of maps, or one with names, on a laptop's screen: a look that moved in the last row is not below its edge.
    const most = Math.max((labels ? 0.38 : 0.24) * this.tall, isNamed ? rows * 13 * unit : 0);
    const height = Math.min(rows * w, most, 420);
    const h = height / rows;
    const scale = isSigned ? signed(palette) : rising(palette);
    /** @type {(list: string[], colour: string, size: number, lean?: number) => import("../../../kit/browser/picture/heatmap.js").Names} */
    const names = (list, colour, size, lean) => ({ list: list.map(short), colour, size, away: 5, lean });
    map.label = name;
    map.draw(
      {
        rows,
        columns,
        x: left,
        y: top,
        w,
        h,
        gap: w > 6 ? 0.7 : 0,
        tone: (row, column) => {
          const value = values[row * columns + column];
          return scale(isSigned ? rooted(value) : value);
        },
        rowNames: isNamed ? names(labels[0], palette.query, Math.min(12 * unit, h)) : undefined,
        columnNames: isNamed ? names(labels[1], palette.key, Math.min(12 * unit, h), -50) : undefined,
        frames: marked ? [{ row: marked[0], column: marked[1], colour: palette.query }] : [],
      },
      left + w * columns + right,
      top + height,
      { hatch: palette.hatch, font: fontFamily },
    );
  }

  /** @param {[query: number, key: number] | null} at */
  point(at) {
    const { one, two } = this;
    if (!at || !one || !this.labels) return;
    const [i, j] = at;
    const [queries, keys] = this.labels;
    const a = one.values[i * one.columns + j];
    const b = two && two.columns === one.columns && two.rows === one.rows ? two.values[i * two.columns + j] : null;
    this.read.textContent = `${queries[i] ?? i} → ${keys[j] ?? j}: ${fill("{a} → {b}", { a: percent(a), b: percent(b) })}`;
  }
}
