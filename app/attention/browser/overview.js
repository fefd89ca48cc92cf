// All heads of the model, a small picture or one number each: rows are layers, columns are heads, one block for each kind
// of attention. Or the heads in the order of that number. Below, the heads with a similar map.

import { fit } from "../../kit/browser/colours.js";
import { WORDS as words } from "./constants.js";
import { add, arrow, clamp, counted, el, fill, number, ranges } from "../../kit/browser/dom.js";
import { LOWEST_FIRST, measured, metricsOf } from "./metrics.js";
import { levelsOfRoots } from "./scale.js";

/** @typedef {import("./types.js").Site} Site */
/** @typedef {{site: Site, layer: number, head: number}} Head */
/** @typedef {{canvas: HTMLCanvasElement, rows: number, columns: number, from: number}} Atlas */
/** @typedef {{site: Site, title: number, top: number, numbered: boolean}} Block */
/** @typedef {NonNullable<ReturnType<typeof measured>>} Measured */
const FINGER = 44; // px that a finger hits
const RANKED = 100; // heads in the list

export class Overview {
  /** @type {Map<Site, Atlas>} The small pictures of each site */
  atlases = new Map();
  waiting = false;
  /** @type {Map<Site, Measured>} */
  numbers = new Map();
  /** @type {ReturnType<Overview["geometry"]>} Where the last draw() put things */
  grid;
  space = 0; // px that the grid may take
  /** @type {Head | null} The small picture under the pointer */
  peeked = null;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.title = add(parent, "h2");
    const bar = add(parent, "div", "metricbar");
    this.select = add(bar, "select");
    this.select.setAttribute("aria-label", words.metric);
    this.select.addEventListener("change", (e) => view.setOption("metric", this.select.value, e));
    this.sorter = Object.assign(add(bar, "button", "quiet"), { type: "button", textContent: words.sort, title: words.sort_help });
    this.sorter.addEventListener("click", (e) => view.setOption("sort", !view.options.sort, e));
    this.legend = add(bar, "span", "legend");
    this.row = add(parent, "div", "headrow");
    this.whole = add(this.row, "canvas", "whole");
    this.whole.setAttribute("role", "img");
    this.whole.addEventListener("click", (e) => this.wholeClick(e));
    this.box = add(this.row, "div", "overview");
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "application");
    this.box.setAttribute("aria-label", words.heads_label);
    this.base = add(this.box, "canvas");
    this.over = add(this.box, "canvas", "over");
    this.list = add(parent, "div", "ranked");
    this.list.setAttribute("role", "group");
    this.shared = add(parent, "p", "note");
    this.chosen = add(parent, "p", "note");
    this.more = add(this.row, "p", "note more");
    this.alike = add(parent, "div", "alike");
    this.box.addEventListener("click", (e) => this.click(e));
    this.box.addEventListener("pointermove", (e) => this.peek(this.headAt(e), e));
    this.box.addEventListener("pointerleave", () => this.peek(null));
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.list.addEventListener("keydown", (e) => this.step(e));
  }

  // Colours or maps have changed.
  forget() {
    this.atlases = new Map();
  }

  // Whether numbers of it are on their way
  isWaiting() {
    return this.waiting ?? false;
  }

  // The metric that is drawn: what is asked for, where the kind of attention has it
  /** @returns {import("./types.js").Options["metric"]} */
  get metric() {
    const { metric } = this.view.options;
    return metric !== "maps" && metricsOf(this.view.site).includes(metric) ? metric : "maps";
  }

  build() {
    const { site, sites, picture } = this.view;
    const size = fill(words.heads_size, {
      kind: picture.kind,
      layers: counted(words.layers, site.layers),
      heads: counted(words.heads_count, site.heads),
    });
    this.title.replaceChildren(el("b", "", words.heads), " ", el("span", "", sites.length > 1 ? picture.kind : size));
    this.title.title = site.how ? `${words.heads_help} ${fill(words.heads_how, { how: site.how })}` : words.heads_help;
    this.shared.hidden = site.kv_heads === site.heads;
    this.shared.textContent = this.shared.hidden ? "" : fill(words.shared_all, { n: site.heads / site.kv_heads });
    const options = ["maps", ...metricsOf(site)].map((name) => {
      const [text, title] = words.metrics[name];
      return Object.assign(el("option", "", text), { value: name, title });
    });
    this.select.replaceChildren(...options);
    const { metric } = this;
    this.select.value = metric;
    this.select.title = words.metrics[metric][1];
    this.sorter.hidden = metric === "maps";
    this.title.parentElement?.classList.toggle("numbered", metric !== "maps"); // whose legend needs a line of its own
    this.sorter.setAttribute("aria-pressed", String(this.view.options.sort));
  }

  // One kind of attention at a time, large: the tabs above the map change it
  get shown() {
    return [this.view.site];
  }

  get isLowestFirst() {
    return this.metric !== "maps" && LOWEST_FIRST.includes(this.metric);
  }

  get isList() {
    return this.view.options.sort && this.metric !== "maps";
  }

  geometry() {
    const sites = this.shown;
    const { em, headsHeight: height } = this.view.room;
    const headsWidth = this.view.room.headsWidth - (this.wholeSide ? this.wholeSide + em : 0);
    const left = 1.5 * em;
    const title = 0;
    const heads = Math.max(...sites.map((site) => site.heads));
    const layers = sites.reduce((sum, site) => sum + site.layers, 0);
    const groups = Math.max(...sites.map((site) => (site.kv_heads < site.heads ? site.kv_heads : 1)));
    const between = groups > 1 ? clamp((0.12 * (headsWidth - left)) / groups, 1, 0.4 * em) : 0; // two groups of heads
    const bracket = sites.some((site) => site.kv_heads < site.heads) ? 0.35 * em : 0;
    const top = 1.15 * em + bracket;
    const numbered = sites.map((site, i) => i === 0 || site.heads !== sites[i - 1].heads); // the same numbers are there once
    const above = sites.map((_, i) => title + (numbered[i] ? top : bracket + 0.1 * em));
    const titles = sites.length > 1 ? above.reduce((sum, x) => sum + x + 0.3 * em, 0) : 0;
    const most = Math.min(height, 64 * em, this.space - above[0]);
    const tallest = Math.max(0.95 * em, (most - titles - 3) / layers);
    const fitting = clamp((headsWidth - left - (groups - 1) * between) / heads, 6, Math.min(4.8 * em, tallest));
    const pitch = this.view.narrow ? Math.max(FINGER, fitting) : fitting; // on a phone, the grid scrolls
    const gap = pitch > 18 ? 3 : pitch > 10 ? 2 : 1;
    let y = 0;
    const blocks = sites.map((site, i) => {
      const block = { site, title: y, top: y + above[i], numbered: numbered[i] };
      y = block.top + pitch * site.layers + (title ? 0.3 * em : 0);
      return block;
    });
    const width = Math.max(left + pitch * heads + (groups - 1) * between + 2, title && headsWidth); // room for titles
    return { left, bracket, pitch, gap, size: pitch - gap, between, blocks, width, height: y + 2 };
  }

  // Where a head is drawn
  /** @param {Head} at */
  corner({ site, layer, head }) {
    const g = this.grid;
    const block = /** @type {Block} */ (g.blocks.find((b) => b.site === site));
    const group = site.kv_heads < site.heads ? Math.floor(head / (site.heads / site.kv_heads)) : 0;
    return [g.left + head * g.pitch + group * g.between, block.top + layer * g.pitch];
  }

  draw() {
    const { em } = this.view.room;
    this.build();
    const { metric } = this;
    this.waiting = false;
    this.numbers = new Map();
    if (metric !== "maps") {
      for (const site of this.shown) {
        if (!metricsOf(site).includes(metric)) continue;
        const found = measured(this.view, site, metric);
        if (found) this.numbers.set(site, found);
        else this.waiting = true;
      }
    }
    this.drawLegend();
    this.box.hidden = this.isList;
    this.list.hidden = !this.isList;
    this.drawMembers();
    /** @param {HTMLElement} box */
    const tall = (box) => (box.hidden ? 0 : box.offsetHeight); // not to be asked in vain: the whole page is laid out for it
    const rest = (metric === "maps" ? 2.7 : 4.6) * em + tall(this.shared) + tall(this.chosen) + (this.mayBeAlike ? (this.areNamed ? 3.8 : 7) * em : 0) + [this.shared, this.chosen].filter((box) => !box.hidden).length * 0.55 * em;
    const isWide = Number.isFinite(this.view.room.headsHeight);
    const room = isWide ? Math.max(5 * em, this.view.room.headsHeight - rest) : 30 * em;
    this.space = room;
    this.drawWhole();
    const g = (this.grid = this.geometry());
    this.box.style.height = `${g.height}px`;
    this.box.style.maxHeight = `${room}px`;
    this.list.style.maxHeight = `${Math.min(room, this.view.room.headsHeight)}px`;
    const below = this.isList ? 0 : Math.ceil((g.height - room) / g.pitch);
    this.more.hidden = below < 1;
    this.more.textContent = below < 1 ? "" : fill(words.more_layers, { layers: counted(words.layers, below) });
    if (this.isList) return this.drawList();
    Object.assign(this.box.dataset, { left: g.left, top: g.blocks[0].top, pitch: g.pitch });
    const context = fit(this.base, g.width, g.height);
    for (const block of g.blocks) this.drawBlock(context, block);
    this.view.root.dataset.metrics = [...this.numbers.values()].map(({ values }) => values.map((x) => x.toFixed(5)).join(" ")).join(" ");
  }

  /** @param {CanvasRenderingContext2D} context @param {Block} block */
  drawBlock(context, { site, title, top, numbered }) {
    const { em } = this.view.room;
    const { palette, colour } = this.view;
    const g = this.grid;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = palette.mute;
    context.font = `${0.72 * em}px ${this.view.font()}`;
    const every = Math.max(1, Math.ceil((1.15 * em) / g.pitch));
    context.textAlign = "center";
    for (let h = 0; numbered && h < site.heads; h += every) {
      context.fillText(String(h), this.corner({ site, layer: 0, head: h })[0] + g.size / 2, top - g.bracket - 0.65 * em);
    }
    context.textAlign = "right";
    for (let l = 0; l < site.layers; l += every) context.fillText(String(l), g.left - 0.45 * em, top + l * g.pitch + g.size / 2);
    if (site.kv_heads < site.heads) {
      const group = site.heads / site.kv_heads;
      context.fillStyle = palette.key;
      for (let first = 0; first < site.heads; first += group) {
        const [x] = this.corner({ site, layer: 0, head: first });
        const width = group * g.pitch - g.gap;
        context.fillRect(x, top - 5, width, 3);
        context.globalAlpha = 0.13;
        context.fillRect(x - g.between / 3, top - 2, width + (2 * g.between) / 3, site.layers * g.pitch - g.gap + 4);
        context.globalAlpha = 1;
      }
    }
    const found = this.numbers.get(site);
    if (!found) {
      for (let layer = 0; layer < site.layers; layer++) this.drawLayer(context, site, layer, this.atlas(site));
      return;
    }
    for (let layer = 0; layer < site.layers; layer++) {
      for (let head = 0; head < site.heads; head++) {
        const value = found.values[layer * site.heads + head];
        const [x, y] = this.corner({ site, layer, head });
        if (Number.isNaN(value)) {
          this.drawNothing(context, x, y);
          continue;
        }
        const level = clamp(Math.round((255 * Math.abs(value)) / (found.high || 1)), 0, 255);
        context.fillStyle = (value < 0 ? this.view.ahead : colour).css[level];
        context.fillRect(x, y, g.size, g.size);
      }
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Site} site @param {number} layer @param {Atlas} atlas */
  drawLayer(context, site, layer, { canvas, rows, columns, from }) {
    const { size } = this.grid;
    context.imageSmoothingEnabled = size < columns;
    for (let head = 0; head < site.heads; head++) {
      const [x, y] = this.corner({ site, layer, head });
      if (!site.has(layer)) this.drawNothing(context, x, y);
      else context.drawImage(canvas, head * columns, (layer - from) * rows, columns, rows, x, y, size, size);
    }
  }

  // The pass has left one more layer: its small pictures alone, while it goes on
  /** @param {Site} site @param {number} layer */
  fill(site, layer) {
    this.atlases.delete(site);
    if (this.isList || this.numbers.has(site)) return;
    this.drawLayer(/** @type {CanvasRenderingContext2D} */ (this.base.getContext("2d")), site, layer, this.drawAtlas(site, layer, layer + 1));
  }

  // A head without a picture or a number
  /** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y */
  drawNothing(context, x, y) {
    context.strokeStyle = this.view.palette.line;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, this.grid.size - 1, this.grid.size - 1);
  }

  drawLegend() {
    const found = this.numbers.get(this.view.site);
    this.legend.replaceChildren();
    if (this.metric === "maps") return;
    if (!found) return void this.legend.append(el("span", "", words.loading));
    /** @param {number} x */
    const digits = (x) => String(Number(x.toPrecision(2)));
    if (found.low < 0) this.legend.append(el("span", "", digits(found.low)), el("i", "ramp ahead"), el("span", "", "0"));
    else this.legend.append(el("span", "", "0"));
    this.legend.append(el("i", "ramp"), el("span", "", digits(found.high)));
    this.legend.title = this.view.picture.whole ? words.metrics[this.metric][1] : fill(words.metric_rows, { rows: found.rows, of: number(Number(found.of)) });
    if (!this.view.picture.whole && Number(found.rows) < Number(found.of)) this.legend.append(el("span", "", fill(words.metric_sampled, { rows: found.rows })));
    if (found.values.every(Number.isNaN)) this.legend.replaceChildren(el("span", "", words.metric_none));
  }

  // All heads by the metric, the best first
  ranking() {
    const { site } = this.view;
    const { values } = this.numbers.get(site) ?? { values: [] };
    const sign = this.isLowestFirst ? 1 : -1;
    return [...values.keys()].filter((i) => !Number.isNaN(values[i])).sort((a, b) => sign * (values[a] - values[b]) || a - b);
  }

  drawList() {
    const { site, place } = this.view;
    const found = this.numbers.get(site);
    const order = this.ranking();
    this.list.setAttribute("aria-label", this.isLowestFirst ? words.sorted_low : words.sorted);
    const lines = order.slice(0, RANKED).map((i, rank) => {
      const [layer, head] = [Math.floor(i / site.heads), i % site.heads];
      const value = found?.values[i] ?? 0;
      const button = Object.assign(el("button", ""), { type: "button" });
      const bar = el("i", value < 0 ? "ahead" : "");
      bar.style.width = `${(100 * Math.abs(value)) / (found?.high || 1)}%`;
      const track = el("span", "track");
      track.append(bar);
      button.append(el("span", "mute", `${rank + 1}`), el("b", "", fill(words.head_short, { layer, head })), track, el("u", "", value.toFixed(2)));
      button.dataset.at = `${layer}.${head}`;
      button.setAttribute("aria-pressed", String(layer === place.layer && head === place.head));
      button.addEventListener("click", (e) => this.view.choose({ layer, head }, e));
      return button;
    });
    this.list.replaceChildren(...lines);
    if (order.length > RANKED) this.list.append(el("p", "note", fill(words.sorted_more, { shown: RANKED, n: number(order.length) })));
    this.view.root.dataset.sorted = order.slice(0, RANKED).map((i) => `${Math.floor(i / site.heads)}.${i % site.heads}`).join(" ");
  }

  /** @param {KeyboardEvent} e */
  step(e) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    const all = [...this.list.querySelectorAll("button")];
    const at = all.indexOf(/** @type {HTMLButtonElement} */ (e.target));
    if (!by || at < 0) return;
    e.preventDefault();
    const next = all[clamp(at + by, 0, all.length - 1)];
    next.focus();
    next.click();
  }

  /** @param {Site} site @returns {Atlas} */
  atlas(site) {
    this.atlases ??= new Map();
    if (!this.atlases.has(site)) this.atlases.set(site, this.drawAtlas(site));
    return /** @type {Atlas} */ (this.atlases.get(site));
  }

  // The small pictures of some layers, a row each
  /** @param {Site} site */
  drawAtlas(site, from = 0, to = site.layers) {
    const { rows, columns } = site.thumbnail(from, 0);
    const canvas = document.createElement("canvas");
    canvas.width = columns * site.heads;
    canvas.height = rows * (to - from);
    const { packed } = this.view.colour;
    const levels = levelsOfRoots(this.view.map.wholeScale);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = context.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let l = from; l < to; l++) {
      for (let h = 0; h < site.heads; h++) {
        const { values } = site.thumbnail(l, h);
        for (let r = 0; r < rows; r++) {
          const at = ((l - from) * rows + r) * canvas.width + h * columns;
          for (let c = 0; c < columns; c++) pixels[at + c] = packed[levels[values[r * columns + c]]];
        }
      }
    }
    context.putImageData(image, 0, 0);
    return { canvas, rows, columns, from };
  }

  // Of a folded map all of it, small: the band that is unfolded, and the columns
  get wholeSide() {
    const { map, room } = this.view;
    return map.geometry?.isFold ? Math.floor(Math.min(8.5 * room.em, this.space)) : 0;
  }

  drawWhole() {
    const side = this.wholeSide;
    this.whole.hidden = !side || !Number.isFinite(side);
    if (this.whole.hidden) return;
    const { view } = this;
    const lens = view.lens();
    const { rows: [q0, q1] = [0, 0], columns = [] } = view.map.geometry;
    this.whole.title = fill(words.whole_map, { n: number(lens.n_query), m: number(lens.n_key) });
    this.whole.setAttribute("aria-label", this.whole.title);
    const context = fit(this.whole, side, side);
    const tile = view.map.tile() ?? view.map.standIn();
    const levels = view.map.levels(tile);
    const canvas = document.createElement("canvas");
    canvas.width = tile.columns;
    canvas.height = tile.rows;
    const inner = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = inner.createImageData(tile.columns, tile.rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < levels.length; i++) pixels[i] = tile.masked?.[i] ? 0 : view.colour.packed[levels[i]];
    inner.putImageData(image, 0, 0);
    const top = 5;
    const size = side - top;
    context.imageSmoothingEnabled = tile.columns > side;
    context.drawImage(canvas, 0, top, side, size);
    context.fillStyle = view.palette.key;
    for (const k of columns) if (k >= 0) context.fillRect((side * k) / lens.n_key, 0, Math.max(1.5, side / lens.n_key), 4);
    context.strokeStyle = view.palette.query;
    context.lineWidth = 1.5;
    context.strokeRect(1, top + (size * q0) / lens.n_query - 1, side - 2, Math.max(2, (size * (q1 - q0)) / lens.n_query) + 2);
  }

  // A row of the whole map, to read it
  /** @param {MouseEvent} e */
  wholeClick(e) {
    const box = this.whole.getBoundingClientRect();
    const lens = this.view.lens();
    const row = clamp(Math.floor(((e.clientY - box.top - 5) / (box.height - 5)) * lens.n_query), 0, lens.n_query - 1);
    this.view.choose({ query: lens.firstQuery(row) }, e);
  }

  drawChosen() {
    const { place, site, options, palette } = this.view;
    this.drawMembers();
    if (this.isList) {
      for (const button of this.list.querySelectorAll("button")) {
        button.setAttribute("aria-pressed", String(button.dataset.at === `${place.layer}.${place.head}`));
      }
      return;
    }
    const g = this.grid;
    const context = fit(this.over, g.width, g.height);
    /** @param {Head} at @param {string} colour @param {number} width */
    const box = (at, colour, width) => {
      context.strokeStyle = colour;
      context.lineWidth = width;
      const [x, y] = this.corner(at);
      context.strokeRect(x - width / 2, y - width / 2, g.size + width, g.size + width);
    };
    for (const [layer, head] of this.areSeveral ? this.view.lens().members : []) {
      box({ site, layer, head }, palette.ink, g.pitch > 14 ? 2 : 1.5);
      const [x, y] = this.corner({ site, layer, head });
      const side = clamp(g.size / 3, 3, 8);
      context.fillStyle = palette.ink;
      context.fillRect(x + g.size - side, y, side, side); // a corner, so that it is told by shape too
    }
    if (options.kind === "rollout" && site.id !== "cross") {
      const [x, y] = this.corner({ site, layer: 0, head: 0 });
      const [end] = this.corner({ site, layer: 0, head: site.heads - 1 });
      context.strokeStyle = palette.ink;
      context.lineWidth = 2;
      context.strokeRect(x - 2, y - 2, end - x + g.size + 4, place.layer * g.pitch + g.size + 4);
    }
    if (this.peeked) box(this.peeked, palette.mute, 1.5);
    box({ ...place, site }, palette.query, g.pitch > 14 ? 2.5 : 2);
    const [x, y] = this.corner({ ...place, site });
    if (this.box.scrollWidth > this.box.clientWidth + 1 && (x < this.box.scrollLeft || x + g.pitch > this.box.scrollLeft + this.box.clientWidth)) this.box.scrollLeft = x - this.box.clientWidth / 2;
    const { scrollTop, clientHeight } = this.box;
    const hidden = y < scrollTop + 20 || y + g.pitch > scrollTop + clientHeight;
    if (this.box.scrollHeight > clientHeight && hidden) this.box.scrollTop = y - clientHeight / 2;
  }

  drawMembers() {
    const { options, narrow } = this.view;
    const [chosen, all] = narrow ? [words.members_chosen_touch, words.members_all_touch] : [words.members_chosen, words.members_all];
    const text = this.areSeveral ? (options.members.length ? chosen : all) : "";
    this.chosen.hidden = !text;
    if (this.chosen.textContent !== text) this.chosen.textContent = text;
  }

  /** @param {MouseEvent} e */
  headAt(e) {
    const g = this.grid;
    if (!g) return null;
    const box = this.base.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    for (const { site, top } of g.blocks) {
      const layer = Math.floor((y - top) / g.pitch);
      if (layer < 0 || layer >= site.layers) continue;
      for (let head = 0; head < site.heads; head++) {
        const [from] = this.corner({ site, layer, head });
        if (x >= from && x < from + g.pitch) return { site, layer, head };
      }
    }
    return null;
  }

  /** @param {MouseEvent} e */
  click(e) {
    const at = this.headAt(e);
    if (!at) return;
    if (e.shiftKey) {
      this.toggle(at, e);
      return;
    }
    const { options } = this.view;
    if (options.members.length && this.areSeveral && e.detail < 2) return this.toggle(at, e); // among several: one more, or one less
    if (options.members.length) {
      this.view.setOption("members", [], e); // a double click shows one head alone
      this.view.setOption("kind", "head", e);
    }
    this.view.choose({ site: at.site.id, layer: at.layer, head: at.head }, e);
  }

  // Put a head among those that the mean or the maximum is of, or take it out.
  /** @param {Head} at @param {Event} e */
  toggle({ site, layer, head }, e) {
    const { view } = this;
    if (site !== view.site) return;
    const { kind, members } = view.options;
    const several = this.areSeveral;
    /** @type {import("./types.js").Member[]} */
    const start = several ? members : [[view.place.layer, view.place.head]];
    /** @param {import("./types.js").Member} member */
    const same = ([l, h]) => l === layer && h === head;
    const isIn = start.some(same);
    /** @type {import("./types.js").Member[]} */
    const next = isIn && several ? start.filter((pair) => !same(pair)) : isIn ? start : [...start, [layer, head]];
    view.setOption("members", next.sort((a, b) => a[0] - b[0] || a[1] - b[1]), e);
    if (!several) view.setOption("kind", "mean", e);
    else if (!next.length && kind !== "head") view.setOption("kind", "head", e);
  }

  // Whether the picture is of more heads than one: put together, or each with lines of its own colour
  get areSeveral() {
    const { kind, members, show } = this.view.options;
    return kind === "mean" || kind === "max" || (show === "lines" && members.length > 0);
  }

  // Name the small picture under the pointer.
  /** @param {Head | null} at @param {MouseEvent} [event] */
  peek(at, event) {
    const same = at?.site === this.peeked?.site && at?.layer === this.peeked?.layer && at?.head === this.peeked?.head;
    this.peeked = at;
    if (!same) this.view.redraw("chosen");
    if (!at || !event) {
      this.view.tip.hidden = true;
      return;
    }
    const { site } = at;
    const lines = [el("div", "", fill(words.place, at))];
    if (this.view.sites.length > 1) lines.push(el("div", "mute", words.blocks[site.id] ?? site.id));
    if (!site.has(at.layer)) lines.push(el("div", "mute", words.to_come));
    const value = this.numbers.get(site)?.values[at.layer * site.heads + at.head];
    if (value !== undefined) {
      const text = Number.isNaN(value) ? words.metric_none : fill(words.metric_value, { name: words.metrics[this.metric][0], value: this.valued(value) });
      lines.push(el("div", "", text));
    }
    if (site.kv_heads < site.heads) lines.push(el("div", "mute", fill(words.shared, { heads: ranges(site.group(at.head)) })));
    this.view.tip.replaceChildren(...lines);
    this.view.putTip(event.clientX, event.clientY);
  }

  /** @param {number} value */
  valued(value) {
    if (this.metric === "entropy") return fill(words.in_bits, { value: value.toFixed(2) });
    if (this.metric === "distance") return fill(value < 0 ? words.in_tokens_ahead : words.in_tokens, { value: Math.abs(value).toFixed(2) });
    return `${(value * 100).toFixed(1)} %`;
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    const { site, sites, place } = this.view;
    if (e.key === " " || (e.key === "Enter" && e.shiftKey)) {
      e.preventDefault();
      this.toggle({ site, layer: place.layer, head: place.head }, e);
      return;
    }
    const step = arrow(e);
    if (!step) return;
    e.preventDefault();
    const rows = sites.flatMap((of) => Array.from({ length: of.layers }, (_, layer) => ({ site: of, layer })));
    const from = rows.findIndex((row) => row.site === site && row.layer === place.layer);
    const to = rows[clamp(from + step[0], 0, rows.length - 1)];
    const head = clamp(place.head + step[1], 0, to.site.heads - 1);
    if (to.site !== site || to.layer !== place.layer || head !== place.head) this.view.choose({ site: to.site.id, layer: to.layer, head }, e);
  }

  // Whether there are heads to compare: the grid leaves room for them
  get mayBeAlike() {
    const { site, options, picture } = this.view;
    const several = site.layers * site.heads > 4 && site.n_query * site.n_key > 8;
    const { em, headsHeight } = this.view.room;
    const isRoom = headsHeight > (7.7 + 0.95 * Math.min(site.layers, 8)) * em; // beside the grid
    return several && isRoom && ["head", "value"].includes(options.kind) && (picture.whole || picture.follows);
  }

  // Heads with a similar map are named and not drawn, so that the maps of several kinds of attention may be larger.
  get areNamed() {
    return !this.view.narrow;
  }

  drawAlike() {
    this.alike.hidden = !this.mayBeAlike || !this.view.picture.whole;
    if (this.alike.hidden) return; // before anything is measured
    const { em } = this.view.room;
    const { site, place } = this.view;
    const shown = this.isList ? this.list : this.box;
    const notes = [this.shared, this.chosen].reduce((sum, box) => sum + (box.hidden ? 0 : box.offsetHeight + 0.55 * em), 0);
    const space = this.view.room.headsHeight - (this.metric === "maps" ? 2.4 : 4) * em - shown.offsetHeight - notes;
    this.alike.hidden = space < (this.areNamed ? 3.2 : 8) * em;
    if (this.alike.hidden) return;
    const best = this.likest(4);
    this.alike.replaceChildren(Object.assign(el("h2", "", words.alike), { title: words.alike_help }));
    const rowOf = this.alike.appendChild(el("div", "row"));
    const size = Math.floor(Math.min((this.view.room.headsWidth - 3 * 0.6 * em) / 4, space - 4.4 * em));
    for (const { layer, head, r } of best) {
      const button = rowOf.appendChild(el("button", ""));
      button.type = "button";
      button.setAttribute("aria-label", `${fill(words.place, { layer, head })}, ${r.toFixed(2)}`);
      button.addEventListener("click", (e) => this.view.choose({ layer, head }, e));
      if (!this.areNamed) {
        const context = fit(button.appendChild(el("canvas", "")), size, size);
        context.imageSmoothingEnabled = false;
        const { canvas, rows, columns } = this.atlas(site);
        context.drawImage(canvas, head * columns, layer * rows, columns, rows, 0, 0, size, size);
      }
      const line = button.appendChild(el("span", ""));
      line.append(el("b", "", fill(words.head_short, { layer, head })), el("i", "", r.toFixed(2)));
    }
    this.view.root.dataset.alike = best.map(({ layer, head, r }) => `${layer}.${head}:${r.toFixed(4)}`).join(" ");
  }

  // Pearson correlation with every other head's map over the cells that may be seen, largest first
  /** @param {number} count */
  likest(count) {
    const { site, place } = this.view;
    const masked = site.masked(place.layer, place.head);
    /** @type {number[]} */
    const cells = [];
    for (let at = 0; at < site.n_query * site.n_key; at++) if (!masked?.[at]) cells.push(at);
    /** @param {number} layer @param {number} head @returns {[weights: Uint16Array, mean: number]} */
    const centred = (layer, head) => {
      const all = site.weights(layer, head);
      let sum = 0;
      for (const at of cells) sum += all[at];
      return [all, sum / cells.length];
    };
    /** @param {[weights: Uint16Array, mean: number]} one @param {[weights: Uint16Array, mean: number]} other */
    const product = ([a, ma], [b, mb]) => {
      let sum = 0;
      for (const at of cells) sum += (a[at] - ma) * (b[at] - mb);
      return sum;
    };
    const mine = centred(place.layer, place.head);
    const length = Math.sqrt(product(mine, mine));
    const found = [];
    for (let layer = 0; layer < site.layers; layer++) {
      for (let head = 0; head < site.heads; head++) {
        if (layer === place.layer && head === place.head) continue;
        const other = centred(layer, head);
        const scale = length * Math.sqrt(product(other, other));
        if (scale > 0) found.push({ layer, head, r: product(mine, other) / scale });
      }
    }
    return found.sort((a, b) => b.r - a.r).slice(0, count);
  }
}
