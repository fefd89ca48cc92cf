// All heads of the model, a small picture each, in groups by what they do or with layers as rows and heads as columns; or one
// number each, as colours or in its order. Below, the heads with a similar map.

import { Alike } from "./alike.js";
import { cover } from "../../kit/browser/cover.js";
import { fit } from "../../kit/browser/colours.js";
import { WORDS as words } from "./constants.js";
import {
  add,
  arrow,
  button,
  clamp,
  counted,
  digits,
  el,
  fill,
  focusable,
  number,
  ranges,
  worded,
} from "../../kit/browser/dom.js";
import { beside, corner, groupsOf, opensInGroups, placed } from "./groups.js";
import { LOWEST_FIRST, measured, metricsOf } from "./metrics.js";
import { Flight } from "./motion.js";
import { Ranked } from "./ranked.js";
import { namesOf, roleName } from "./roles.js";
import { signed } from "../../kit/browser/picture/scale.js";
import { toggleBeside } from "./sidebyside.js";
import { atlasOf, drawSmall } from "./smallmaps.js";
import { areSeveral } from "./values.js";
import { WholeMap } from "./whole.js";
import { pointed } from "../../kit/browser/language.js";

/** @typedef {import("./types.js").Site} Site */
/** @typedef {{site: Site, layer: number, head: number}} Head */
/** @typedef {import("./smallmaps.js").Atlas} Atlas */
/** @typedef {{site: Site, top: number, numbered: boolean}} Block */
/** @typedef {import("./ranked.js").Measured} Measured */
const FINGER = 44; // px that a finger hits
const SMALLEST = 24; // px from one small map to the next in groups
const GROUP = 6.2; // em, for the name of a group
/** @type {{places?: [x: number, y: number][], titles?: {name: string, n: number, y: number}[]}} */
const UNGROUPED = {};

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

  /** @type {Record<string, unknown>} What it drew, for the room's status */
  said = {};

  /** @param {import("./types.js").View} view @param {HTMLElement} parent @param {import("./map.js").HeadMap} map that it shows all of, where that is folded */
  constructor(view, parent, map) {
    this.view = view;
    this.title = add(parent, "h2");
    const bar = add(parent, "div", "metricbar");
    this.select = add(bar, "select");
    this.select.setAttribute("aria-label", words.metric);
    this.select.addEventListener("change", (e) => view.chosen.set("metric", this.select.value, e));
    const sort = (/** @type {MouseEvent} */ e) => view.chosen.set("sort", !view.options.sort, e);
    this.sorter = bar.appendChild(button(words.sort, "quiet", sort, words.sort_help));
    this.legend = add(bar, "span", "legend");
    this.row = add(parent, "div", "headrow");
    this.whole = new WholeMap(view, this.row, map);
    this.box = focusable(add(this.row, "div", "overview"), "application", words.heads_label);
    this.base = add(this.box, "canvas");
    this.over = add(this.box, "canvas", "over");
    this.titles = add(this.box, "div", "groups");
    this.flight = new Flight();
    this.list = new Ranked(view, parent, this.said);
    this.shared = add(parent, "p", "note");
    this.chosen = add(parent, "p", "note");
    this.more = add(this.row, "p", "note more");
    this.alike = new Alike(view, parent, this);
    this.box.addEventListener("click", (e) => this.click(e));
    this.box.addEventListener("pointermove", (e) => this.peek(this.headAt(e), e));
    this.box.addEventListener("pointerleave", () => this.peek(null));
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("scroll", () => this.tellMore(), { passive: true });
  }

  // Colours or maps have changed.
  forget() {
    this.atlases = new Map();
  }

  // Whether numbers of it are on their way
  isWaiting() {
    return this.waiting ?? false;
  }

  // The number that is drawn, where the kind of attention has what is asked for; else small maps
  /** @returns {"maps" | import("./types.js").Metric} */
  get metric() {
    if (cover.hides("heads")) return "maps"; // a lesson asks which head has most of it
    return metricsOf(this.view.site).find((name) => name === this.view.options.metric) ?? "maps";
  }

  // Whether small maps are to stand in groups by what the heads do: chosen, or else by rule
  get wantsGroups() {
    const { options, picture, site, room } = this.view;
    if (options.kind === "rollout" || cover.hides("heads")) return false; // it is of layers, or a lesson asks
    if (options.metric !== "auto") return options.metric === "roles";
    return (
      Boolean(picture.roles) &&
      opensInGroups({ isLong: room.isLong, heads: site.layers * site.heads, isShared: site.kv_heads < site.heads })
    );
  }

  // The name of each head of the kind of attention on the screen, where groups are wanted; null while they are fetched
  get names() {
    return this.wantsGroups ? namesOf(this.view, this.view.site) : null;
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
    const options = /** @type {const} */ (["roles", "maps", ...metricsOf(site)]).map((name) => {
      const [text, title] = words.metrics[name];
      return Object.assign(el("option", "", text), { value: name, title });
    });
    this.select.replaceChildren(...options);
    const { metric } = this;
    const shown = this.wantsGroups ? "roles" : metric;
    this.select.value = shown;
    this.select.disabled = cover.hides("heads");
    this.select.title = words.metrics[shown][1];
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

  // Where everything is drawn. places: of small maps in groups, by layer · heads + head.
  geometry() {
    const sites = this.shown;
    const { em, headsHeight: height } = this.view.room;
    const headsWidth = this.view.room.headsWidth - (this.whole.side ? this.whole.side + em : 0);
    const { names } = this;
    if (names) return this.grouped(names, headsWidth);
    const left = 1.5 * em;
    const heads = Math.max(...sites.map((site) => site.heads));
    const layers = sites.reduce((sum, site) => sum + site.layers, 0);
    const groups = Math.max(...sites.map((site) => (site.kv_heads < site.heads ? site.kv_heads : 1)));
    const between = groups > 1 ? clamp((0.12 * (headsWidth - left)) / groups, 1, 0.4 * em) : 0; // two groups of heads
    const bracket = sites.some((site) => site.kv_heads < site.heads) ? 0.35 * em : 0;
    const top = 1.15 * em + bracket;
    const numbered = sites.map((site, i) => i === 0 || site.heads !== sites[i - 1].heads); // the same numbers are there once
    const above = sites.map((_, i) => (numbered[i] ? top : bracket + 0.1 * em));
    const titles = sites.length > 1 ? above.reduce((sum, x) => sum + x + 0.3 * em, 0) : 0;
    const most = Math.min(height, 64 * em, this.space - above[0]);
    const tallest = Math.max(0.95 * em, (most - titles - 3) / layers);
    const fitting = clamp((headsWidth - left - (groups - 1) * between) / heads, 6, Math.min(4.8 * em, tallest));
    const pitch = this.view.room.narrow ? Math.max(FINGER, fitting) : fitting; // on a phone, the grid scrolls
    const gap = pitch > 18 ? 3 : pitch > 10 ? 2 : 1;
    let y = 0;
    const blocks = sites.map((site, i) => {
      const block = { site, top: y + above[i], numbered: numbered[i] };
      y = block.top + pitch * site.layers;
      return block;
    });
    const width = left + pitch * heads + (groups - 1) * between + 2;
    return { left, bracket, pitch, gap, size: pitch - gap, between, blocks, width, height: y + 2, ...UNGROUPED };
  }

  // The same in groups
  /** @param {string[]} names @param {number} width */
  grouped(names, width) {
    const { em, narrow } = this.view.room;
    const least = narrow ? FINGER : Math.max(SMALLEST, 1.5 * em);
    const left = GROUP * em;
    const room = {
      width: width - 3,
      height: narrow ? Infinity : this.space - 4,
      left,
      between: 0.3 * em,
      least,
      most: narrow ? FINGER : 3 * em,
    };
    const { pitch, places, titles, height } = placed(groupsOf(names), room);
    const gap = 2;
    for (const at of places) for (const i of [0, 1]) at[i] += 2; // room for the outline
    const blocks = [{ site: this.view.site, title: 0, top: 0, numbered: false }];
    return {
      left,
      bracket: 0,
      pitch,
      gap,
      size: pitch - gap,
      between: 0,
      blocks,
      width,
      height: height + 4,
      places,
      titles,
    };
  }

  // Height of the grid below the visible part of its box
  tellMore() {
    const { grid: g, box, more } = this;
    const end = box.scrollTop + box.clientHeight;
    const below =
      this.isList || !g
        ? 0
        : g.places
          ? g.places.filter(([, y]) => y + g.size > end + 1).length
          : Math.ceil((g.height - 2 - end) / g.pitch - 0.1);
    more.hidden = below < 1;
    const said = { layers: counted(words.layers, below), heads: counted(words.heads_count, below) };
    more.textContent = below < 1 ? "" : fill(g?.places ? words.more_heads : words.more_layers, said);
  }

  // Where a head is drawn
  /** @param {Head} at */
  corner({ site, layer, head }) {
    const g = this.grid;
    if (g.places) return g.places[layer * site.heads + head];
    const block = /** @type {Block} */ (g.blocks.find((b) => b.site === site));
    const group = site.kv_heads < site.heads ? Math.floor(head / (site.heads / site.kv_heads)) : 0;
    return [g.left + head * g.pitch + group * g.between, block.top + layer * g.pitch];
  }

  // The number of each head, where numbers are asked for
  count() {
    const { metric } = this;
    this.waiting = false;
    this.numbers = new Map();
    if (metric === "maps") return;
    for (const site of this.shown) {
      if (!metricsOf(site).includes(metric)) continue;
      const found = measured(this.view, site, metric);
      if (found) this.numbers.set(site, found);
      else this.waiting = true;
    }
  }

  draw() {
    const { em } = this.view.room;
    this.build();
    const { metric } = this;
    this.count();
    this.drawLegend();
    this.box.hidden = this.isList;
    this.list.box.hidden = !this.isList;
    this.drawMembers();
    /** @param {HTMLElement} box */
    const tall = (box) => (box.hidden ? 0 : box.offsetHeight); // not to be asked in vain: the whole page is laid out for it
    const rest =
      (metric === "maps" ? 2.7 : 4.6) * em +
      tall(this.shared) +
      tall(this.chosen) +
      (this.wantsGroups ? 0 : this.alike.tall * em) +
      [this.shared, this.chosen].filter((box) => !box.hidden).length * 0.55 * em;
    const isWide = Number.isFinite(this.view.room.headsHeight);
    const room = isWide ? Math.max(5 * em, this.view.room.headsHeight - rest) : 30 * em;
    this.space = room;
    this.whole.draw(room);
    const g = (this.grid = this.geometry());
    const most = g.places && !isWide ? g.height : room;
    this.box.style.height = `${g.height}px`;
    this.box.style.maxHeight = `${most}px`;
    this.list.box.style.maxHeight = `${Math.min(room, this.view.room.headsHeight)}px`;
    this.tellMore();
    if (this.isList) return this.list.draw(this.numbers.get(this.view.site), this.isLowestFirst);
    Object.assign(this.box.dataset, { left: g.left, top: g.blocks[0].top, pitch: g.pitch });
    const { heads } = this.view.site;
    this.box.dataset.places = (g.places ?? [])
      .map(([x, y], i) => `${Math.floor(i / heads)}.${i % heads}:${Math.round(x)},${Math.round(y)}`)
      .join(" ");
    this.drawTitles();
    this.flight.stop();
    if (metric === "maps") return this.fly();
    const context = fit(this.base, g.width, g.height);
    for (const block of g.blocks) this.drawBlock(context, block);
    this.said.metrics = [...this.numbers.values()]
      .map(({ values }) => values.map((x) => x.toFixed(5)).join(" "))
      .join(" ");
  }

  // The whole of a folded map, once other rows and columns are unfolded
  drawWhole() {
    this.whole.draw(this.space);
  }

  // The names of the groups, and how many heads each has
  drawTitles() {
    const { titles } = this.grid;
    this.titles.hidden = !titles;
    if (!titles) return;
    const lines = titles.map(({ name, n, y }) => {
      const said = roleName(name);
      const line = el("p", "", said);
      line.title = said; // of a long one the beginning is seen
      line.append(" ", el("span", "", String(n)));
      line.style.top = `${y + 2}px`;
      line.style.height = `${this.grid.size}px`;
      return line;
    });
    this.titles.replaceChildren(...lines);
  }

  // Small maps where they stand; from where they stood before, if the same heads were there in other places
  fly() {
    const g = this.grid;
    const { site } = this.view;
    const all = Array.from({ length: site.layers * site.heads }, (_, i) =>
      this.corner({ site, layer: Math.floor(i / site.heads), head: i % site.heads }),
    );
    const corners = all.map(([x, y]) => /** @type {[number, number]} */ ([x, y]));
    this.flight.to(`${site.id},${site.layers},${site.heads}`, corners, (at, isThere) => {
      const context = fit(this.base, g.width, g.height);
      if (isThere) for (const block of g.blocks) this.drawBlock(context, block);
      else
        at.forEach(([x, y], i) =>
          drawSmall(
            context,
            this.atlas(site),
            { layer: Math.floor(i / site.heads), head: i % site.heads },
            x,
            y,
            g.size,
          ),
        );
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {Block} block */
  drawBlock(context, { site, top, numbered }) {
    const { em } = this.view.room;
    const { palette } = this.view;
    const g = this.grid;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = palette.mute;
    context.font = `${0.82 * em}px ${this.view.room.family}`;
    if (!g.places) this.drawNumbers(context, site, top, numbered);
    const found = this.numbers.get(site);
    if (!found) {
      for (let layer = 0; layer < site.layers; layer++) this.drawLayer(context, site, layer, this.atlas(site));
      return;
    }
    const scale = signed(palette);
    for (let layer = 0; layer < site.layers; layer++) {
      for (let head = 0; head < site.heads; head++) {
        const value = found.values[layer * site.heads + head];
        const [x, y] = this.corner({ site, layer, head });
        if (Number.isNaN(value)) {
          this.drawNothing(context, x, y);
          continue;
        }
        context.fillStyle = scale(value / (found.high || 1)).fill;
        context.fillRect(x, y, g.size, g.size);
      }
    }
  }

  // The numbers of heads and layers, and the bars over heads that share keys
  /** @param {CanvasRenderingContext2D} context @param {Site} site @param {number} top @param {boolean} numbered */
  drawNumbers(context, site, top, numbered) {
    const { em } = this.view.room;
    const { palette } = this.view;
    const g = this.grid;
    const every = Math.max(1, Math.ceil((1.15 * em) / g.pitch));
    context.textAlign = "center";
    for (let h = 0; numbered && h < site.heads; h += every) {
      context.fillText(
        String(h),
        this.corner({ site, layer: 0, head: h })[0] + g.size / 2,
        top - g.bracket - 0.65 * em,
      );
    }
    context.textAlign = "right";
    for (let l = 0; l < site.layers; l += every)
      context.fillText(String(l), g.left - 0.45 * em, top + l * g.pitch + g.size / 2);
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
  }

  /** @param {CanvasRenderingContext2D} context @param {Site} site @param {number} layer @param {Atlas} atlas */
  drawLayer(context, site, layer, atlas) {
    const { size } = this.grid;
    for (let head = 0; head < site.heads; head++) {
      const [x, y] = this.corner({ site, layer, head });
      if (!site.isPictured(layer)) this.drawNothing(context, x, y);
      else drawSmall(context, atlas, { layer, head }, x, y, size);
    }
  }

  // The pass has left one more layer: its small pictures alone, while it goes on
  /** @param {Site} site @param {number} layer @param {boolean} isShown */
  fill(site, layer, isShown) {
    this.atlases.delete(site);
    if (!isShown || this.isList || this.numbers.has(site)) return;
    this.drawLayer(
      /** @type {CanvasRenderingContext2D} */ (this.base.getContext("2d")),
      site,
      layer,
      atlasOf(this.view, site, layer, layer + 1),
    );
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
    if (found.low < 0)
      this.legend.append(el("span", "", digits(found.low, 2)), el("i", "ramp ahead"), el("span", "", "0"));
    else this.legend.append(el("span", "", "0"));
    this.legend.append(el("i", "ramp"), el("span", "", digits(found.high, 2)));
    this.legend.title = this.view.picture.whole
      ? words.metrics[this.metric][1]
      : fill(words.metric_rows, { rows: found.rows, of: number(Number(found.of)) });
    if (!this.view.picture.whole && Number(found.rows) < Number(found.of))
      this.legend.append(el("span", "", fill(words.metric_sampled, { rows: found.rows })));
    if (found.values.every(Number.isNaN)) this.legend.replaceChildren(el("span", "", words.metric_none));
  }

  /** @param {Site} site @returns {Atlas} */
  atlas(site) {
    const known = this.atlases.get(site) ?? atlasOf(this.view, site);
    this.atlases.set(site, known);
    return known;
  }

  drawChosen() {
    const { place, site, options, palette } = this.view;
    this.drawMembers();
    if (this.isList) return this.list.mark();
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
    if (
      this.box.scrollWidth > this.box.clientWidth + 1 &&
      (x < this.box.scrollLeft || x + g.pitch > this.box.scrollLeft + this.box.clientWidth)
    )
      this.box.scrollLeft = x - this.box.clientWidth / 2;
    const { scrollTop, clientHeight } = this.box;
    const hidden = y < scrollTop + 20 || y + g.pitch > scrollTop + clientHeight;
    if (this.box.scrollHeight > clientHeight && hidden) this.box.scrollTop = y - clientHeight / 2;
  }

  drawMembers() {
    const { options } = this.view;
    const { narrow } = this.view.room;
    const [chosen, all] = narrow
      ? [words.members_chosen_touch, words.members_all_touch]
      : [words.members_chosen, words.members_all];
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
    if (g.places) {
      const { site } = this.view;
      const i = g.places.findIndex(([a, b]) => x >= a && x < a + g.pitch && y >= b && y < b + g.pitch);
      return i < 0 ? null : { site, layer: Math.floor(i / site.heads), head: i % site.heads };
    }
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
      if (options.show === "beside") this.view.chosen.set("show", "map", e);
      this.view.chosen.set("members", [], e); // a double click shows one head alone
      this.view.chosen.set("kind", "head", e);
    }
    if (cover.point(at.layer, at.head)) return; // an answer to what a lesson asks
    this.view.chosen.go({ site: at.site.id, layer: at.layer, head: at.head }, e);
  }

  // Put a head among those that the mean or the maximum is of, or take it out.
  /** @param {Head} at @param {Event} e */
  toggle({ site, layer, head }, e) {
    const { view } = this;
    if (site !== view.site) return;
    if (view.options.show === "beside") return toggleBeside(view, [layer, head], e);
    const { kind, members } = view.options;
    const several = this.areSeveral;
    /** @type {import("./types.js").Member[]} */
    const start = several ? members : [[view.place.layer, view.place.head]];
    /** @param {import("./types.js").Member} member */
    const same = ([l, h]) => l === layer && h === head;
    const isIn = start.some(same);
    /** @type {import("./types.js").Member[]} */
    const next = isIn && several ? start.filter((pair) => !same(pair)) : isIn ? start : [...start, [layer, head]];
    view.chosen.set(
      "members",
      next.sort((a, b) => a[0] - b[0] || a[1] - b[1]),
      e,
    );
    if (!several) view.chosen.set("kind", "mean", e);
    else if (!next.length && kind !== "head") view.chosen.set("kind", "head", e);
  }

  get areSeveral() {
    return areSeveral(this.view.options);
  }

  // Name the small picture under the pointer.
  /** @param {Head | null} at @param {MouseEvent} [event] */
  peek(at, event) {
    const same = at?.site === this.peeked?.site && at?.layer === this.peeked?.layer && at?.head === this.peeked?.head;
    this.peeked = at;
    if (!same) this.view.invalidate("chosen");
    if (!at || !event) {
      this.view.tip.hide();
      return;
    }
    const { site } = at;
    const lines = [el("div", "", fill(words.place, at))];
    if (this.view.sites.length > 1) lines.push(el("div", "mute", worded(words.blocks, site.id)));
    if (!site.has(at.layer)) lines.push(el("div", "mute", words.to_come));
    const name = this.grid.places ? this.names?.[at.layer * site.heads + at.head] : null;
    if (name) lines.push(el("div", "mute", name));
    const value = this.numbers.get(site)?.values[at.layer * site.heads + at.head];
    if (value !== undefined) {
      const text = Number.isNaN(value)
        ? words.metric_none
        : fill(words.metric_value, { name: words.metrics[this.metric][0], value: this.valued(value) });
      lines.push(el("div", "", text));
    }
    if (site.kv_heads < site.heads)
      lines.push(el("div", "mute", fill(words.shared, { heads: ranges(site.group(at.head)) })));
    this.view.tip.show(lines, event.clientX, event.clientY);
  }

  /** @param {number} value */
  valued(value) {
    if (this.metric === "entropy") return fill(words.in_bits, { value: pointed(value.toFixed(2)) });
    if (this.metric === "distance")
      return fill(value < 0 ? words.in_tokens_ahead : words.in_tokens, { value: pointed(Math.abs(value).toFixed(2)) });
    return pointed(`${(value * 100).toFixed(1)} %`);
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
    if (this.grid.places) {
      const to = beside(this.grid.places, place.layer * site.heads + place.head, [step[0], step[1]]);
      return this.view.chosen.go({ layer: Math.floor(to / site.heads), head: to % site.heads }, e);
    }
    const rows = sites.flatMap((of) => Array.from({ length: of.layers }, (_, layer) => ({ site: of, layer })));
    const from = rows.findIndex((row) => row.site === site && row.layer === place.layer);
    const to = rows[clamp(from + step[0], 0, rows.length - 1)];
    const head = clamp(place.head + step[1], 0, to.site.heads - 1);
    if (to.site !== site || to.layer !== place.layer || head !== place.head)
      this.view.chosen.go({ site: to.site.id, layer: to.layer, head }, e);
  }

  drawAlike() {
    const { em, headsHeight } = this.view.room;
    const { places, pitch } = this.grid;
    this.alike.stand(
      places && !this.view.room.narrow
        ? corner(places, pitch, { width: this.box.clientWidth, wide: 11 * em, tall: 3.5 * em })
        : null,
    );
    this.alike.draw(() => {
      const tall = this.isList ? this.list.box.offsetHeight : Math.min(this.grid.height, this.space); // also where options hide it
      const notes = [this.shared, this.chosen].reduce(
        (sum, box) => sum + (box.hidden ? 0 : box.offsetHeight + 0.55 * em),
        0,
      );
      return headsHeight - (this.metric === "maps" ? 2.4 : 4) * em - tall - notes;
    });
  }
}
