// All heads as one map, layer across and head down: one number of each as a colour. Pointing shows a head, a click keeps it.

import { cellsOf, drawLens } from "../../kit/browser/chooser.js";
import { fit } from "../../kit/browser/colours.js";
import { cover } from "../../kit/browser/cover.js";
import {
  add,
  arrow,
  button,
  clamp,
  el,
  fill,
  fixed,
  focusable,
  number,
  percent,
  phrase,
  quoted,
  same,
  setAll,
  setText,
} from "../../kit/browser/dom.js";
import { sharesOf } from "../../kit/browser/head_measures.js";
import { json, unpack } from "../../kit/browser/messages.js";
import { rising, rooted, signed } from "../../kit/browser/picture/scale.js";
import { WORDS as words } from "./constants.js";
import { findingOf } from "./findings.js";
import { indexed } from "../../kit/browser/labels.js";
import { correlations, measured } from "./metrics.js";
import { isGuess, writes } from "./next.js";
import { toggleBeside } from "./sidebyside.js";

/** @typedef {"adds" | "look" | "first" | "back" | "far" | "spread" | "like"} By */
/** @typedef {{candidates: [label: string, p: number][], values: Float32Array}} Additions Of heads to the likeliest next words, [word, layer, head] */
/** @type {By[]} */
const FEW = ["adds", "look", "first"]; // that have a button of their own
/** @type {By[]} */
const MORE = ["back", "far", "spread", "like"];
/** @type {By[]} */
const SIGNED = ["adds", "like"];
/** @type {Record<string, By>} The number that says most of a finding of each kind */
const OF_KIND = {
  "votes against": "adds",
  "largest push": "adds",
  writes: "adds",
  "one back": "back",
  "one ahead": "back",
  rests: "first",
};
const HIT = 0.5; // em; a cell with a smaller side is hard to hit: what is around it is enlarged
const TALL = [5.5, 9.4]; // em, of all cells: the least and the most
const TOGETHER = 1200; // heads: what they add to all candidates comes in one answer of at most 24 kB
const SHARE = 0.155; // of the room's height
// Measures words. It is in no page: where the type of a canvas in one is set, the browser lays that page out first.
const RULER = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));

// The additions of all heads to the likeliest words after the chosen token, of very many heads to the chosen word alone; null while it is
// fetched, or where there is no such number
/** @param {import("./types.js").View} view @returns {Additions | null} */
function additionsOf(view) {
  const { query } = view.chosen.place;
  if (query === null || !writes(view) || !view.picture.look) return null;
  const { id: site, layers, heads } = view.site;
  /** @type {import("../../kit/browser/types.js").Params} */
  const asked = { site, query };
  if (layers * heads > TOGETHER) asked.candidate = view.options.candidate;
  const found = view.remote.get("additions", asked, (bytes) => {
    const [header, body] = unpack(bytes);
    return /** @type {Additions} */ ({ candidates: header.words, values: new Float32Array(body) });
  });
  return found && !found.refused ? found : null;
}

export class HeadMap {
  /** @type {ReturnType<typeof cellsOf> | null} */
  cells = null;
  origin = [0, 0];
  /** @type {ArrayLike<number> | null} */
  values = null;
  drawn = "";
  isFitted = true; // whether the names of the kinds that are there were measured
  row = ""; // the run and the token whose next word is meant,
  meant = ""; // the candidate that was chosen there, "" for the likeliest,
  lost = ""; // and the one that was chosen before, where it is none of the candidates here
  /** @type {(at: import("../../kit/browser/chooser.js").Head) => string} The colour of a head */
  tone = () => "";
  /** @type {unknown[] | undefined} What the cells are painted for */
  painted;
  /** @type {number[]} Their numbers */
  of = [];
  isPainted = false; // whether they are on the screen so
  /** @type {[width: number, height: number]} Of both canvases, px */
  size = [0, 0];

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "section", "headmap");
    const top = add(this.box, "div", "top");
    this.title = add(top, "h2");
    this.kinds = add(top, "span", "seg");
    setAll(this.kinds, { role: "group", "aria-label": words.all_heads_by });
    this.more = add(top, "select", "more-by");
    this.more.setAttribute("aria-label", words.by_more);
    this.more.addEventListener("change", (event) => view.chosen.set("by", this.more.value, event));
    this.grid = focusable(add(this.box, "div", "grid"), "application", "");
    this.base = add(this.grid, "canvas");
    this.over = add(this.grid, "canvas", "over");
    this.lens = add(this.grid, "canvas", "heads-lens");
    setAll(this.lens, { "aria-hidden": "true", hidden: "" });
    const low = add(this.box, "div", "low");
    this.legend = add(low, "span", "legend");
    this.now = add(low, "span", "unseen");
    this.now.id = "all-heads-now";
    this.grid.setAttribute("aria-describedby", this.now.id);
    this.grid.addEventListener("pointermove", (event) => this.point(event));
    this.grid.addEventListener("pointerleave", () => {
      view.chosen.peek(null);
      view.tip.hide();
      this.lens.hidden = true;
    });
    this.grid.addEventListener("click", (event) => {
      const at = this.headAt(event);
      if (!at) return;
      if (event.shiftKey || event.ctrlKey || event.metaKey) return toggleBeside(view, [at.layer, at.head], event);
      const wasBeside = view.options.show === "beside";
      if (wasBeside) view.chosen.change({}, { show: "map", members: [] });
      view.chosen.go(at, event);
      if (wasBeside) view.invalidate("layout", "tools");
    });
    this.grid.addEventListener("keydown", (event) => this.key(event));
  }

  // A lesson may ask which head has most of something.
  get isShown() {
    return writes(this.view) && !cover.hides("heads") && !isGuess(this.view);
  }

  // The number that is drawn: chosen, or else the one that the finding on the screen is about
  /** @returns {By} */
  get by() {
    const { by } = this.view.options;
    const hasAdds = writes(this.view);
    if (by !== "auto") return by === "adds" && !hasAdds ? "look" : by;
    const finding = findingOf(this.view);
    return finding ? (OF_KIND[finding.kind] ?? "look") : hasAdds ? "adds" : "look";
  }

  // The candidate that heads add to
  get word() {
    const found = additionsOf(this.view);
    return found ? (found.candidates[Number(this.view.options.candidate)]?.[0] ?? found.candidates[0][0]) : "";
  }

  // In another row the candidate that was chosen is the same word, whatever its rank there; or else the likeliest, and that is said.
  keepWord() {
    const { chosen, options, picture } = this.view;
    const found = additionsOf(this.view);
    const { query } = chosen.place;
    if (!found || chosen.peeked) return;
    const row = `${picture.key} ${query}`;
    const labels = found.candidates.map(([label]) => label);
    const at = Math.min(Number(options.candidate), labels.length - 1);
    const { meant } = this;
    if (row === this.row || !meant || !this.row.startsWith(picture.key)) {
      this.meant = at ? labels[at] : "";
      if (this.lost && (row !== this.row || at)) {
        this.lost = "";
        this.view.invalidate("side"); // which was drawn with it when the words of this row came
      }
      this.row = row;
      return;
    }
    this.row = row;
    const same = labels.indexOf(meant);
    this.lost = same < 0 ? meant : "";
    if (same < 0) this.meant = "";
    if (Math.max(0, same) !== at) chosen.set("candidate", String(Math.max(0, same)));
    if (this.lost) this.view.announce(fill(words.candidate_lost, { lost: quoted(meant), word: quoted(labels[0]) }));
    this.view.invalidate("side");
  }

  // The key that is meant by "looks at"
  get lookedAt() {
    const { chosen, numbers } = this.view;
    const finding = findingOf(this.view);
    if (finding) return finding.key;
    const { query } = chosen.place;
    if (chosen.pin !== null) return chosen.pin;
    return query === null ? null : this.view.lens().merged ? null : (numbers.ranking(query)?.order[0] ?? null);
  }

  /** @param {By} by @returns {ArrayLike<number> | null} */
  valuesOf(by) {
    const { view } = this;
    const { site, picture, remote } = view;
    if (by === "adds") {
      const found = additionsOf(view);
      const n = site.layers * site.heads;
      const of = n > TOGETHER ? 0 : Math.min(Number(view.options.candidate), (found?.candidates.length ?? 1) - 1);
      return found?.values.subarray(of * n, of * n + n) ?? null;
    }
    if (by === "first") return view.shading.rests && sharesOf(view.shading.rests);
    if (by === "look") return this.looks(view.chosen.place.query, this.lookedAt);
    if (picture.whole && !picture.ids) return null;
    if (by === "like") return this.likeness();
    const name = /** @type {const} */ ({ back: "previous", far: "distance", spread: "entropy" })[by];
    const shown = /** @type {any} */ ({ picture, remote });
    return measured(shown, site, name)?.values ?? null;
  }

  // How like the map of the chosen head that of every head is
  likeness() {
    const { site, picture, remote, chosen, shading } = this.view;
    const { layer, head } = chosen.place;
    if (picture.whole) return correlations(site, { layer, head }, shading.rests?.key ?? null);
    const found = remote.get("correlations", { site: site.id, layer, head }, (bytes) => ({
      values: new Float32Array(unpack(bytes)[1]),
    }));
    return found && !found.refused ? found.values : null;
  }

  // The weight of every head from one token to another
  /** @param {number | null} query @param {number | null} key */
  looks(query, key) {
    const { site, picture, remote } = this.view;
    if (query === null || key === null) return null;
    if (!picture.whole) {
      const found = remote.get("looks", { site: site.id, query, key }, (bytes) => ({
        values: new Float32Array(unpack(bytes)[1]),
      }));
      return found && !found.refused ? found.values : null;
    }
    const at = query * site.n_key + key;
    return Float32Array.from(
      { length: site.layers * site.heads },
      (_, i) => site.weights(Math.floor(i / site.heads), i % site.heads)[at] / 65535,
    );
  }

  draw() {
    const { view } = this;
    this.box.hidden = !this.isShown;
    if (this.box.hidden) return;
    const { site, room, palette } = view;
    const n = site.layers * site.heads;
    const { by } = this;
    const parts = this.parts();
    const title = view.options.projector ? words.by[by][2] : words.all_heads; // there no button says what the colours are
    setText(this.title, fill(title, { ...parts, n: number(n) }));
    setAll(this.grid, { "aria-label": fill(words.all_heads_label, { n: number(n) }) });
    this.drawKinds(by, parts);
    this.values = this.valuesOf(by);
    const { em } = room;
    const turned = room.narrow;
    const [left, below] = [this.namesWidth(), 1.25 * em];
    this.cells = cellsOf(
      site,
      room.headsWidth - left - 2,
      clamp(SHARE * room.sideHeight, TALL[0] * em, TALL[1] * em),
      turned,
      em / 16,
    );
    const { cells } = this;
    const up = Math.max(2, 0.5 * em - cells.h / 2); // a name may be higher than a cell
    this.origin = [left, up];
    const [width, height] = [left + cells.width + 3, cells.height + below + up + 2];
    const top = this.top(by);
    const scale = SIGNED.includes(by) ? signed(palette) : rising(palette);
    const tone = (/** @type {import("../../kit/browser/chooser.js").Head} */ { layer, head }) => {
      const value = this.values?.[layer * site.heads + head];
      if (value === undefined || Number.isNaN(value)) return palette.line;
      return scale(by === "adds" ? rooted(value / top) : value / top).fill;
    };
    this.tone = tone;
    const looks = [
      site,
      by,
      palette,
      room.family,
      view.options.projector,
      em,
      turned,
      width,
      height,
      devicePixelRatio,
      top,
    ];
    const values = Array.from(this.values ?? []);
    this.isPainted &&= same(looks, this.painted) && same(values, this.of);
    Object.assign(this, { painted: looks, of: values, size: [width, height] });
    this.grid.style.height = `${height}px`;
    this.drawLegend(by, top, parts);
  }

  // Measurements, which need the page to be laid out: the room does this after everything else of the side is drawn.
  finish() {
    if (this.box.hidden) return;
    this.fitKinds();
    if (!this.isPainted) this.paint();
    this.isPainted = true;
    this.drawChosen();
  }

  // All cells and the numbers beside them, which another head leaves as they are
  paint() {
    const { site, room } = this.view;
    const { cells, tone } = this;
    if (!cells || !tone) return;
    const [left, up] = this.origin;
    const context = fit(this.base, ...this.size);
    const gap = Math.min(2, Math.min(cells.w, cells.h) / 6);
    for (let layer = 0; layer < site.layers; layer++)
      for (let head = 0; head < site.heads; head++) {
        const [x, y] = cells.at({ layer, head });
        context.fillStyle = tone({ layer, head });
        context.fillRect(left + x, up + y, cells.w - gap, cells.h - gap);
      }
    this.drawNumbers(context, left, room.narrow);
  }

  // The letters have changed, so that all is to be drawn again.
  forget() {
    this.isPainted = false;
  }

  // The largest number, whose colour is the strongest
  /** @param {By} by */
  top(by) {
    if (by !== "adds" && by !== "far" && by !== "spread") return 1;
    let most = 0;
    for (const x of Array.from(this.values ?? [])) if (!Number.isNaN(x)) most = Math.max(most, Math.abs(x));
    return most || 1;
  }

  parts() {
    const { site, picture, chosen } = this.view;
    const { query } = chosen.place;
    const key = this.lookedAt;
    const [queries, keys] = [picture.tokens[site.query] ?? [], picture.tokens[site.key] ?? []];
    return {
      word: quoted(this.word),
      query: query === null ? "" : quoted(indexed(queries, query)),
      key: key === null ? "" : quoted(indexed(keys, key)),
      layer: chosen.place.layer,
      head: chosen.place.head,
    };
  }

  /** @param {By} by @param {Record<string, string | number>} parts */
  drawKinds(by, parts) {
    const { headsWidth } = this.view.room;
    const state = JSON.stringify([
      by,
      parts.word,
      parts.query,
      parts.key,
      Boolean(this.view.shading.rests),
      headsWidth,
    ]);
    if (state === this.drawn) return;
    this.drawn = state;
    const has = (/** @type {By} */ name) =>
      (name !== "adds" || parts.word) &&
      (name !== "look" || parts.key) &&
      (name !== "first" || this.view.shading.rests);
    const focused = [...this.kinds.children].findIndex((node) => node.matches(":focus"));
    this.kinds.replaceChildren(
      ...FEW.filter(has).map((name) => {
        const [text, title] = words.by[name];
        const made = button(
          fill(text, parts),
          "",
          (event) => this.view.chosen.set("by", name, event),
          fill(title, parts),
        );
        setAll(made, { "aria-pressed": String(name === by), "data-by": name });
        return made;
      }),
    );
    if (focused >= 0) /** @type {HTMLElement | undefined} */ (this.kinds.children[focused])?.focus();
    const options = MORE.filter((name) => name !== "back" || this.view.site.query === this.view.site.key).map((name) =>
      Object.assign(el("option", "", words.by[name][0]), { value: name, title: words.by[name][1] }),
    );
    const isMore = MORE.includes(by);
    this.more.replaceChildren(
      ...(isMore ? [] : [Object.assign(el("option", "", words.by_more), { value: "", disabled: true, hidden: true })]),
      ...options,
    );
    this.more.value = isMore ? by : "";
    this.more.classList.toggle("on", isMore);
    this.isFitted = false;
  }

  // Where they are not all to be read, the names without their word, which the line below the map says
  fitKinds() {
    if (this.isFitted) return;
    this.isFitted = true;
    const buttons = /** @type {HTMLElement[]} */ ([...this.kinds.children]);
    if (!buttons.some((made) => made.scrollWidth > made.clientWidth)) return;
    for (const made of buttons) {
      made.ariaLabel = made.textContent;
      made.textContent = words.by_short[/** @type {"adds" | "look" | "first"} */ (made.dataset.by)];
    }
  }

  get type() {
    const { options, room } = this.view;
    return `${(options.projector ? 0.95 : 0.82) * room.em}px ${room.family}`;
  }

  // How wide the names at the left of the cells are
  namesWidth() {
    const { em } = this.view.room;
    RULER.font = this.type;
    const names = [fill(words.finding_head, { head: 0 }), fill(words.finding_layer, { layer: 0 })];
    const most = Math.max(...names.map((name) => RULER.measureText(name).width));
    return clamp(most + 0.45 * em, 3.1 * em, 6 * em);
  }

  /** @param {CanvasRenderingContext2D} context @param {number} left @param {boolean} turned */
  drawNumbers(context, left, turned) {
    const { site, palette, room } = this.view;
    const cells = /** @type {NonNullable<HeadMap["cells"]>} */ (this.cells);
    const { em } = room;
    context.fillStyle = palette.mute;
    context.font = this.type;
    context.textBaseline = "middle";
    const up = this.origin[1];
    const y = up + cells.height + 0.7 * em;
    const write = (
      /** @type {string} */ text,
      /** @type {number} */ x,
      /** @type {number} */ at,
      /** @type {CanvasTextAlign} */ align,
    ) => {
      context.textAlign = align;
      context.fillText(text, x, at);
    };
    const across = turned ? site.heads : site.layers;
    const w = turned ? cells.width / site.heads : cells.w;
    const step = [1, 2, 5, 10, 20, 50].find((s) => s * w >= 1.9 * em) ?? 100;
    for (let i = 0; i < across; i += step) {
      const [x] = cells.at(turned ? { layer: 0, head: i } : { layer: i, head: 0 });
      write(String(i), left + x + w / 2, y, "center");
    }
    write(
      turned ? fill(words.finding_head, { head: "" }).trim() : fill(words.finding_layer, { layer: "" }).trim(),
      left - 0.4 * em,
      y,
      "right",
    );
    const first = turned ? fill(words.finding_layer, { layer: 0 }) : fill(words.finding_head, { head: 0 });
    write(first, left - 0.4 * em, up + cells.h / 2, "right");
    const last = turned ? site.layers - 1 : site.heads - 1;
    if (last > 2) {
      const [, at] = cells.at(turned ? { layer: last, head: 0 } : { layer: 0, head: last });
      write(String(last), left - 0.4 * em, up + at + cells.h / 2, "right");
    }
  }

  // The chosen head, and the one that is pointed at
  drawChosen() {
    const { cells, view } = this;
    if (!cells || this.box.hidden) return;
    this.enlarge();
    const [width, height] = this.size.map(Math.round); // as the browser has it
    const context = fit(this.over, width, height);
    const { place, peeked } = view.chosen;
    for (const [at, colour] of /** @type {const} */ ([
      [peeked, view.palette.ink],
      [place, view.palette.query],
    ])) {
      if (!at) continue;
      const [x, y] = cells.at(at);
      context.lineWidth = 4.5;
      for (const style of [view.palette.background, colour]) {
        context.strokeStyle = style;
        context.strokeRect(this.origin[0] + x - 1.5, this.origin[1] + y - 1.5, cells.w + 1, cells.h + 1);
        context.lineWidth = 2.2;
      }
    }
  }

  // The heads around the one that is pointed at, where cells are too small to be told apart
  enlarge() {
    const { cells, view, origin } = this;
    const { peeked } = view.chosen;
    const { em, narrow } = view.room;
    this.lens.hidden = !cells || !peeked || Math.min(cells.w, cells.h) >= HIT * em;
    if (!cells || !peeked || this.lens.hidden) return;
    const looks = { turned: narrow, unit: em / 16, isSmall: true, palette: view.palette };
    const of = { cells, origin, at: peeked, heads: view.site, ...looks };
    drawLens(this.lens, this.base, of, this.tone);
  }

  /** @param {By} by @param {number} top @param {Record<string, string | number>} parts */
  drawLegend(by, top, parts) {
    const { site, chosen } = this.view;
    const { place } = chosen;
    const digits = by === "like" ? 0 : 1;
    const ends = SIGNED.includes(by)
      ? [`−${fixed(top, digits)}`, `+${fixed(top, digits)}`]
      : by === "far" || by === "spread"
        ? ["0", fixed(top, 1)]
        : ["0", "100 %"];
    const known = Array.from(this.values ?? []).filter((x) => !Number.isNaN(x));
    const mean = known.reduce((sum, x) => sum + x, 0) / Math.max(1, known.length);
    const bar = el("i", SIGNED.includes(by) ? "ramp both" : "ramp");
    const isLost = by === "adds" && this.lost;
    const said = !this.values
      ? words.loading
      : isLost
        ? fill(words.candidate_lost, { lost: quoted(this.lost), word: parts.word })
        : fill(words.by_said[by], { ...parts, mean: percent(mean), rest: this.leftOut() });
    const value = this.values?.[place.layer * site.heads + place.head];
    const isKnown = value !== undefined && !Number.isNaN(value);
    const now = {
      place: fill(words.place, parts),
      name: fill(this.name, parts),
      value: isKnown ? this.say(value) : "",
    };
    setText(this.now, isKnown ? fill(words.by_now, now) : "");
    const scale = this.values ? [el("span", "", ends[0]), bar, el("span", "", ends[1])] : []; // of numbers that are there
    this.legend.replaceChildren(...scale, el("span", "mute", said));
  }

  // The number of one head, in words
  get name() {
    return this.by === "like" ? words.by_like : words.by[this.by][0];
  }

  // The key that a likeness leaves out
  leftOut() {
    const { picture, site, shading } = this.view;
    const key = shading.rests?.key;
    if (key == null) return words.by_like_rest.all;
    return fill(words.by_like_rest.apart, { key: quoted(indexed(picture.tokens[site.key] ?? [], key)) });
  }

  /** @param {MouseEvent} event */
  headAt(event) {
    const box = this.base.getBoundingClientRect();
    return this.cells?.of(event.clientX - box.left - this.origin[0], event.clientY - box.top - this.origin[1]) ?? null;
  }

  /** @param {PointerEvent} event */
  point(event) {
    if (event.pointerType === "touch") return;
    const { view } = this;
    const at = this.headAt(event);
    if (at && !view.site.has(at.layer)) return;
    view.chosen.peek(at, event);
    if (!at) return view.tip.hide();
    const value = this.values?.[at.layer * view.site.heads + at.head];
    const lines = [el("div", "", fill(words.place, at))];
    if (value !== undefined && !Number.isNaN(value)) {
      const parts = this.parts();
      const line = el("div", "");
      line.append(...phrase(this.name, parts), ` ${this.say(value)}`);
      lines.push(line);
    }
    view.tip.show(lines, event.clientX, event.clientY);
  }

  /** @param {number} value */
  say(value) {
    const { by } = this;
    if (SIGNED.includes(by)) return `${value < 0 ? "" : "+"}${fixed(value)}`;
    return by === "far" || by === "spread" ? fixed(value, 1) : percent(value);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = arrow(event);
    if (event.key === " " && this.view.options.show === "beside") {
      event.preventDefault();
      const { layer, head } = this.view.chosen.place;
      return toggleBeside(this.view, [layer, head], event);
    }
    if (!step) return;
    event.preventDefault();
    const { site, chosen, room } = this.view;
    const [down, right] = room.narrow ? [step[1], step[0]] : step;
    const layer = clamp(chosen.place.layer + right, 0, site.layers - 1);
    const head = clamp(chosen.place.head + down, 0, site.heads - 1);
    if (layer === chosen.place.layer && head === chosen.place.head) return;
    if (event.shiftKey) toggleBeside(this.view, [layer, head], event);
    chosen.go({ layer, head }, event);
  }

  // Of the chosen head among all: what it adds, and its rank
  rank() {
    const { site, chosen } = this.view;
    const values = this.valuesOf("adds");
    if (!values) return null;
    const value = values[chosen.place.layer * site.heads + chosen.place.head];
    return { value, rank: 1 + Array.from(values).filter((x) => x > value).length, n: values.length };
  }
}

/** The additions of the looks of one head, and the words that its output moves; null while it is fetched. @param {import("./types.js").View} view @returns {{additions: number[], raised: [string, number][], lowered: [string, number][], among: number} | null} */
export function wordsOf(view) {
  const { layer, head, query } = view.chosen.place;
  if (query === null || !writes(view) || !view.picture.look) return null;
  const asked = { site: view.site.id, layer, head, query, candidate: view.options.candidate };
  const found = view.remote.get("headwords", asked, json);
  return found && !found.refused ? found : null;
}
