// Paint a mask: one head before and after its mask, the chosen row as paired bars, what becomes of the next word.

import { cover } from "../../../kit/browser/cover.js";
import { add, el, fill, fixed, percent } from "../../../kit/browser/dom.js";
import { cellAt, HeatmapView, shapesOf } from "../../../kit/browser/picture/heatmap.js";
import { rising, signed } from "../../../kit/browser/picture/scale.js";
import { text } from "../../../kit/browser/scene.js";
import { toneWithout, topWithout } from "../../../kit/browser/sink.js";
import { table } from "../../../kit/browser/table.js";
import { WORDS as kit } from "../../../kit/browser/words.js";
import { scrolled } from "../../../streamlit_edge/browser/page.js";
import { drawBeside } from "./beside.js";
import { rulerOf } from "../../../kit/browser/turns.js";
import { Brush } from "./brush.js";
import { drawCards } from "./cards.js";
import { WHOLE, WORDS as words } from "./constants.js";
import { drawPairs } from "./pairs.js";
import { decode, paintedMask, presetMask, weigh, WHOLE_ROW, WINDOW } from "./rules.js";
import { lines, Scores } from "./sheet.js";
import { hardest } from "./stops.js";
import { toldOf } from "./told.js";
import { pointed } from "../../../kit/browser/language.js";

const LATER = 1_500_000; // bytes of scores: a larger run is asked for one layer at a time
const STAMPED = 20; // units of a cell from which it has room for −∞
const LONG = 9; // letters of a label
const HIGHEST = 8; // a score from which the colours of scores are full

/** @param {string} label */
const cut = (label) => {
  const letters = Array.from(label);
  return letters.length > LONG ? `${letters.slice(0, LONG - 1).join("")}…` : label;
};

export class Paint {
  /** @type {Set<number>} */
  forbid = new Set();
  /** @type {Set<number>} */
  allow = new Set();
  painted = ""; // the texts that the two sets are of
  cards = "";
  aside = "";
  /** @type {{state: string, losses: number[] | null, node: SVGElement} | null} The losses that were drawn last */
  bars = null;
  above = 0; // pixels of the page above this lab
  tall = 0; // that are left for the cells
  label = ""; // of the maps
  told = 0; // that the sentences take
  /** @type {import("./pairs.js").Slot[]} The keys of the row: for another row their texts and widths change */
  slots = [];
  /** @type {[layout: string, pixels: number]} The width of the row, read once a layout */
  rowWidth = ["", 0];
  at = { size: 13.5, beside: 72, gap: 48, top: 44, cell: 6 }; // pixels of the drawings
  /** @type {[number, number] | null} The one cell that is forbidden, where it is the only one */
  onlyCell = null;
  side = "before"; // on a phone: which map is shown
  /** @type {any} What is on the screen: scores, mask, weights, and the run under that mask */
  now;
  /** @type {any} The last mask, with its weights */
  kept;
  /** @type {any[]} They are of these rows, these scores, and this mask as a text */
  weighedOf = [];
  /** @type {Brush} */
  brush;

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.site = view.site;
    this.queries = view.labels(this.site.query);
    this.keys = view.labels(this.site.key);
    const most = (/** @type {string[]} */ labels) => labels.reduce((n, label) => Math.max(n, cut(label).length), 0);
    this.letters = { longest: most(this.queries), across_: most(this.keys) }; // of the longest words beside and above a map
    this.choose = el("div", "choose");
    this.board = el("div", view.board);
    this.count = el("span", "count mute"); // where the walk stands, on a projected page
    this.left = add(this.board, "div", "left");
    this.right = el("aside");
    this.later = view.narrow ? el("div", "later") : this.right; // what a phone shows below the map
    if (view.isProjected) stage.append(view.says, this.count);
    else this.right.append(view.says);
    this.scope = el("span"); // whose mask it is: beside the cards, or on a phone beside the head
    this.rest = el("span", "rest"); // on a phone, what else can be chosen
    if (view.narrow) {
      this.later.append(view.reason);
      stage.append(this.choose);
      this.board.prepend(this.right);
      this.board.append(this.later);
      this.left.append(this.sides());
    } else {
      this.board.append(this.right);
      this.left.append(this.choose);
    }
    stage.append(this.board);
    const frame = add(this.left, "div", "frame");
    this.hosts = ["before", "after"].map((name) => add(frame, "div", `map ${name}`));
    const label = (this.label = fill(words.maps, { n_query: this.site.n_query, n_key: this.site.n_key }));
    this.maps = this.hosts.map((host) => new HeatmapView(host, label));
    this.hosts.forEach((host, i) => {
      host.addEventListener("pointermove", (e) => this.point(e, i));
      host.addEventListener("pointerleave", () => view.hint(""));
      host.addEventListener("click", (e) => this.click(e, i));
    });
    this.brush = new Brush(this, this.hosts[0]);
    this.row = add(this.left, "div", "row pairs");
    this.row.tabIndex = 0;
    this.row.setAttribute("role", "region");
    this.row.ariaLabel = words.looks_at;
  }

  /** Whether a lesson asks for this row of the weights after the mask. @param {number} q */
  isAsked(q) {
    return cover.hides("number") && q === this.view.place.query;
  }

  /** The weight of a cell as it is said; not while a lesson asks for it. @param {[number, number]} at */
  weightOf([q, k]) {
    return this.isAsked(q) ? "?" : percent(this.now.weighed.weights[this.index(q, k)], 1);
  }

  sides() {
    const box = el("span", "seg sides");
    for (const name of /** @type {const} */ (["before", "after"])) {
      const one = add(box, "button");
      one.textContent = words[name];
      one.addEventListener("click", () => {
        this.side = name;
        this.view.invalidate("selection");
      });
    }
    this.sideButtons = box;
    return box;
  }

  // Longer texts are shown by a tile around the row: which part of them
  get tile() {
    const { n_query, n_key } = this.site;
    const { query } = this.view.place;
    let column = this.view.firstRow(n_key, query);
    const isIn = (/** @type {number} */ k) => k >= column && k < column + this.view.span(n_key);
    const { cursor, isKeyed } = this.brush;
    const painted = isKeyed && cursor[0] === query ? [cursor[1]] : this.paintedIn(query);
    if (painted.length && !painted.some(isIn))
      column = this.view.firstRow(n_key, painted[0] + this.view.span(n_key) / 4);
    return {
      row: this.view.firstRow(n_query, query),
      column,
      rows: this.view.span(n_query),
      columns: this.view.span(n_key),
    };
  }

  /** The keys of a row that a hand has painted, or the walk. @param {number} query */
  paintedIn(query) {
    const { n_key } = this.site;
    const found = [];
    for (const cells of [this.forbid, this.allow])
      for (const cell of cells) if (Math.floor(cell / n_key) === query) found.push(cell % n_key);
    return found.sort((a, b) => a - b);
  }

  // Pixels of the window below what stands above this lab and its own foot; read before anything is written
  get window() {
    const { isProjected, barHeight, type } = this.view;
    return innerHeight - barHeight - this.above - (isProjected ? 10 : 38) * type;
  }

  // Sizes of the maps
  measure() {
    const { view } = this;
    const { type, narrow, isProjected } = view;
    const { rows, columns } = this.tile;
    const size = (isProjected ? 21 : narrow ? 13 : 13.5) * type;
    const { longest, across_ } = this.letters;
    const beside = narrow ? 62 * type : Math.max(78 * type, longest * size * 0.54 + 14 * type);
    const gap = narrow ? 0 : isProjected ? size * 2.7 : Math.max(54 * type, size * 4);
    const top = Math.max(44 * type, across_ * size * 0.38 + size);
    const wide = view.pixels - (view.beside ? (isProjected ? 142 : 280) * type : 0);
    const said = isProjected ? view.says.offsetHeight : 0;
    const tall = Math.max(210 * type, this.window - said - top - (isProjected ? 96 : 118) * type);
    const cell = Math.floor(
      narrow
        ? (wide - beside - 8) / columns
        : Math.min((wide - beside - gap - (isProjected ? 4 : size * 1.6)) / (2 * columns), tall / rows, 66 * type),
    );
    this.at = { size, beside, gap, top, cell: Math.max(6, cell) };
    this.tall = tall;
  }

  static opens() {
    return {};
  }

  get headGrid() {
    return this.site;
  }

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    return this.view.move(down, right);
  }

  /** The key that the row is about: the forbidden one, or what it looks at most. @param {number} query */
  looked(query) {
    if (this.onlyCell && this.onlyCell[0] === query) return this.onlyCell[1];
    if (!this.now) return undefined;
    const { n_key } = this.site;
    const row = this.now.before.subarray(this.index(query, 0), this.index(query + 1, 0));
    if (!row.length) return undefined;
    return n_key > 1 ? 1 + row.subarray(1).indexOf(Math.max(...row.subarray(1))) : 0;
  }

  status() {
    const { early, changed, found } = this.now ?? {};
    return {
      early: Boolean(early),
      edited: found?.header?.key ?? "",
      fresh: Boolean(this.now && (!changed || found?.header || found?.refused)),
      stop: this.view.values.stop,
    };
  }

  /** The mask of the chosen card, in the rows that are at hand. @param {import("./types.js").Rows} [rows] */
  preset(rows = this.now.rows) {
    const { values } = this.view;
    const { n_key } = this.site;
    const card = { mask: values.mask, window: Number(values.window) };
    const found = presetMask(rows.mask, card, rows.count, n_key, rows.first);
    if (values.mask === "window" && values.first === "on") for (let q = 0; q < rows.count; q++) found[q * n_key] = 0;
    return found;
  }

  /** Where a cell is in the numbers that are at hand. @param {number} q @param {number} k */
  index(q, k) {
    return (q - this.now.first) * this.site.n_key + k;
  }

  // Painted cells, and the look of the demonstration, as a link says them
  get forbidden() {
    const { values } = this.view;
    const { query, key } = this.view.demonstrated ?? {};
    const more = query === undefined ? "" : `${query}-${key}`;
    return [values.forbid, more].filter(Boolean).join(",");
  }

  // The run under the chosen mask: null while it is on its way, {refused} where it was refused
  // The mask that is painted, as an address says it
  masked() {
    const { values } = this.view;
    const { site } = this;
    return {
      site: site.id,
      mask: values.mask,
      window: values.window,
      first: values.first,
      when: values.when,
      fill: values.fill,
      scope: values.scope,
      forbid: this.forbidden,
      allow: values.allow,
    };
  }

  run() {
    const { values, place, header } = this.view;
    const { site } = this;
    /** @type {Record<string, string | number>} */
    const params = this.masked();
    // Where one head alone is masked, nothing else of the run is drawn
    if (values.scope === "one") Object.assign(params, { layer: place.layer, head: place.head, part: 1 });
    else if (!header.isByRow && site.layers * site.heads * site.cells * 4 > LATER)
      Object.assign(params, { layer: place.layer, part: 1 });
    params.ids = header.outcome.words.map(([id]) => id).join(",");
    const found = this.view.answer("edited", params);
    if (found?.header && !found.scores && !header.isByRow) found.scores = new Scores(found.header.site, found.body);
    return found;
  }

  draw() {
    const { view, site } = this;
    const { values, place } = view;
    const { n_query, n_key } = site;
    const rows = view.rowsOf(site, place);
    this.left.dataset.loading = String(!rows);
    if (!rows) return view.say([[words.loading, ""]]);
    const { first, scores: own } = rows;
    const before = first * n_key; // cells of the text before those at hand
    const forbidden = this.forbidden;
    const texts = `${forbidden} ${values.allow}`;
    if (this.brush.painting === null && texts !== this.painted) {
      [this.forbid, this.allow, this.painted] = [
        decode(forbidden, n_query, n_key),
        decode(values.allow, n_query, n_key),
        texts,
      ];
    }
    const [only] = this.forbid;
    const ownMask = rows.mask ?? new Uint8Array(rows.count * n_key);
    this.onlyCell =
      this.forbid.size === 1 && !this.allow.size && !ownMask[only - before]
        ? [Math.floor(only / n_key), only % n_key]
        : null;
    const isChanged = view.isChanged || this.forbid.size + this.allow.size > 0;
    const changed = isChanged && values.whose === "yours";
    const after = changed && values.when === "after";
    const fillWith = changed && values.fill === "1e9" && !after ? -1e9 : -Infinity;
    const found = changed && this.brush.painting === null && view.isChanged ? this.run() : null;
    // A mask of one head alone changes none of its own scores, nor any those of the first layer
    const isSame = values.scope === "one" || place.layer === 0;
    const other = found?.header && view.header.isByRow && !isSame ? view.rowsOf(site, place, found.header.key) : null;
    const scores = found?.scores?.scores(place.layer, place.head) ?? other?.scores ?? own;
    // Another row alone changes none of this
    const card = [values.mask, values.window, values.first, changed, after, fillWith].join(" ");
    const of = [rows, scores, this.brush.painting === null ? `${card} ${texts}` : null];
    if (of[2] === null || of.some((one, i) => one !== this.weighedOf[i])) {
      const mask = changed ? paintedMask(this.preset(rows), this.forbid, this.allow, before) : ownMask;
      const isOwnKept = rows === this.weighedOf[0];
      this.kept = {
        mask,
        weighed: weigh(scores, mask, n_key, { after, fill: fillWith }),
        ownWeighed: isOwnKept ? this.kept.ownWeighed : weigh(own, ownMask, n_key),
      };
      this.weighedOf = of;
    }
    const { mask, weighed, ownWeighed } = this.kept;
    if (after && view.selection.ruled.has("query")) this.showLoss(weighed.sums, first);
    // Until the run is there, the weights are those of the model's own scores: right only where no mask came before them
    const isThere = view.header.isByRow ? other : found?.header;
    const early = changed && !isThere && !found?.refused && !isSame;
    this.now = {
      rows,
      first,
      scores,
      mask,
      weighed,
      own,
      ownMask,
      before: ownWeighed.weights,
      changed,
      after,
      found,
      fillWith,
      early,
    };
    // The line of the sink is for a head that nothing is hidden from, or for colours that leave it out already
    const isOut = values.sink === "out";
    if (!view.isProjected && (!changed || isOut)) view.sink.draw(site.id, this.keys);
    this.above = view.labPlace.getBoundingClientRect().top + scrolled();
    if (found?.refused) view.say([[found.refused, ""]]);
    else {
      const said = toldOf(this.shown(found, changed, early, after, mask, ownMask), words);
      view.say(said.fact, said.reason);
    }
    this.told = view.says.offsetHeight; // before the pictures are written: what stands below it depends on it
    this.drawMaps();
    drawCards(this, this.choose);
    drawPairs(this, this.row);
    drawBeside(this, this.right);
  }

  // Selects a row that loses weight to a mask after the softmax, unless the visitor selected a row.
  /** @param {Float64Array} sums @param {number} first */
  showLoss(sums, first) {
    const { place } = this.view;
    const least = sums.indexOf(Math.min(...sums));
    if (sums[place.query - first] < WHOLE_ROW || !(sums[least] < WHOLE_ROW)) return;
    queueMicrotask(() => this.view.choose({ query: String(first + least) }, "rule"));
  }

  /** The state that the sentences tell. @param {any} found @param {boolean} changed @param {boolean} early @param {boolean} after @param {Uint8Array} mask @param {Uint8Array} ownMask */
  shown(found, changed, early, after, mask, ownMask) {
    const { view, site, now } = this;
    const { values, place, header } = view;
    const cell = this.onlyCell;
    const most = cell && values.stop === "3" ? hardest(view, { site: site.id, query: cell[0], key: cell[1] }) : null;
    const isEncoder = !header.outcome.words.length && !header.outcome.numbers.length;
    let rest = 0;
    for (let at = 0; at < now.before.length; at += site.n_key) rest += now.before[at];
    return {
      labels: { queries: this.queries, keys: this.keys },
      site: site.id,
      n_key: site.n_key,
      row: place.query,
      from: now.first,
      rows: now.rows.count,
      isByRow: header.isByRow,
      ...place,
      own: ownMask,
      mask,
      preset: values.mask,
      window: Number(values.window),
      first: values.first === "on",
      one: values.scope === "one",
      after,
      finite: now.fillWith > -Infinity,
      changed,
      early,
      isCausal: view.isCausal(site.id),
      weights: now.weighed.weights,
      softmax: now.weighed.softmax,
      ownWeights: now.before,
      scores: now.scores,
      ownScores: now.own,
      sums: now.weighed.sums,
      painted: this.forbid.size + this.allow.size,
      onlyCell: cell,
      stop: values.stop,
      heads: site.layers * site.heads,
      hardest: most,
      added: most
        ? view.added(site.id, header.labels.target ? header.labels.target.length - 1 : place.query, place)
        : null,
      rest: rest / now.rows.count,
      busiest: (/** @type {number[]} */ keys) => this.busiest(keys),
      outcome: found?.header?.outcome ?? null,
      ownOutcome: header.outcome,
      classes: header.classes,
      degrees: isEncoder ? (found?.header?.degrees ?? null) : null,
      marks: isEncoder ? (rulerOf(view)?.marks ?? null) : null,
    };
  }

  // The head that gives these keys most from the locked row, among those that are here
  /** @param {number[]} keys */
  busiest(keys) {
    const { site } = this;
    const { query } = this.view.place;
    const from = query * site.n_key;
    let best = null;
    for (const layer of site.sent.keys()) {
      for (let head = 0; head < site.heads; head++) {
        const scores = /** @type {Float32Array} */ (site.scores(layer, head)).subarray(from, from + site.n_key);
        const mask = site.mask(layer, head)?.subarray(from, from + site.n_key) ?? new Uint8Array(site.n_key);
        const { weights } = weigh(scores, mask, site.n_key);
        const share = keys.reduce((sum, k) => sum + weights[k], 0);
        if (!best || share > best.share) best = { layer, head, share };
      }
    }
    return best;
  }

  drawMaps() {
    const { view } = this;
    this.measure();
    const { narrow } = view;
    const { beside, gap, top, cell } = this.at;
    const { rows, columns } = this.tile;
    const style = { hatch: view.palette.hatch, font: view.family };
    this.maps.forEach((map, i) => {
      const isHidden = narrow && (i === 0) !== (this.side === "before");
      this.hosts[i].hidden = isHidden;
      if (isHidden) return;
      map.label = cover.hides(i ? "number" : "row") ? `${this.label}. ${kit.covered}` : this.label;
      const x = i && !narrow ? gap : beside;
      const width = x + columns * cell + (narrow ? 6 : this.at.size * (i ? 1.6 : 0) + 2);
      map.draw(this.map(i, x, top), width, top + rows * cell + 4, style);
    });
    for (const one of this.sideButtons?.children ?? [])
      one.setAttribute(
        "aria-pressed",
        String(one.textContent === words[/** @type {"before" | "after"} */ (this.side)]),
      );
    this.brush.place(beside, top, cell, this.tile);
  }

  /** @param {number} which @param {number} x @param {number} top @returns {import("../../../kit/browser/picture/heatmap.js").Heatmap} */
  map(which, x, top) {
    const { view, now, site } = this;
    const { palette } = view;
    const { values, place, narrow, type } = view;
    const { size, cell } = this.at;
    const { row, column, rows, columns } = this.tile;
    const { n_key } = site;
    const { mask, ownMask, weighed } = now;
    const hides = cover.hides("row"); // the mask: all scores are there, as they are before it
    const isScores = which === 0 && (hides || values.show === "scores");
    const [heat, score] = [rising(palette), signed(palette)];
    const full = isScores ? Math.min(HIGHEST, largest(now.scores)) : 1;
    const weights = which ? weighed.weights : now.before;
    const rest = view.sink.key;
    const without = rest === null ? null : toneWithout(palette, rest, topWithout(weights, n_key, rest));
    const tone = (/** @type {number} */ at) =>
      isScores ? score(now.scores[at] / full) : without ? without(weights[at], at % n_key) : heat(weights[at]);
    const index = (/** @type {number} */ q, /** @type {number} */ k) => this.index(q + row, k + column);
    const sign = now.after ? "× 0" : now.fillWith > -Infinity ? "−1e9" : "−∞";
    /** @type {import("../../../kit/browser/types.js").Shape[]} */
    const more = [];
    const pad = cell >= 20 ? 1 : 0.5;
    /** @type {Record<string, [x: number, y: number, n: number]>} */
    const middle = {};
    const [colour, pale] = [palette.query, palette.background];
    for (let q = 0; q < rows; q++) {
      for (let k = 0; k < columns; k++) {
        const at = index(q, k);
        const reason = mask[at];
        if (hides || (which && this.isAsked(q + row))) continue;
        if (!reason) {
          if (ownMask[at] && which === 0) {
            more.push({
              shape: "frame",
              x: x + k * cell + 1,
              y: top + q * cell + 1,
              w: cell - 2,
              h: cell - 2,
              stroke: palette.ramp[3],
              width: 1,
            });
            middle.open = add3(middle.open, x + (k + 0.5) * cell, top + (q + 0.5) * cell);
          }
          continue;
        }
        const [left, up] = [x + k * cell, top + q * cell];
        // A row whose scores are all −1e9 attends equally to all keys, so its cells show their weights.
        if (which && weights[at] > 0) {
          if (this.forbid.has(at))
            more.push({
              shape: "frame",
              x: left + 1,
              y: up + 1,
              w: cell - pad - 2,
              h: cell - pad - 2,
              stroke: colour,
              width: 1.5,
            });
          continue;
        }
        if (ownMask[at]) middle.future = add3(middle.future, left + cell / 2, up + cell / 2);
        else if (this.forbid.has(at)) {
          const edge = Math.max(1.5, cell * 0.07);
          const band = cell * 0.6;
          more.push({
            shape: "frame",
            x: left + edge / 2,
            y: up + edge / 2,
            w: cell - pad - edge,
            h: cell - pad - edge,
            stroke: colour,
            width: edge,
            rx: 2,
          });
          more.push({
            shape: "rect",
            x: left + edge,
            y: up + (cell - pad - band) / 2,
            w: cell - pad - 2 * edge,
            h: band,
            fill: pale,
          });
          const said = which ? "0" : sign;
          if (cell >= STAMPED * type)
            more.push(
              text(
                left + cell / 2,
                up + cell / 2,
                [[said, palette.ink, 700]],
                said.length > 2 ? cell * 0.36 : Math.max(13.5, Math.min(30, cell * 0.54)),
                { anchor: "middle" },
              ),
            );
        } else {
          more.push({ shape: "rect", x: left, y: up, w: cell - pad, h: cell - pad, fill: colour, opacity: 0.16 });
          const name = reason === WINDOW && k + column > q + row ? "ahead" : "window";
          middle[name] = add3(middle[name], left + cell / 2, up + cell / 2);
        }
      }
    }
    const large = Math.min(cell * 1.15, 54 * type);
    const stamp = (
      /** @type {[number, number, number] | undefined} */ found,
      /** @type {string} */ said,
      /** @type {string} */ why,
      /** @type {string} */ ink,
    ) => {
      if (!found || found[2] < 10) return;
      const [cx, cy] = [found[0] / found[2], found[1] / found[2]];
      more.push({
        shape: "rect",
        x: cx - large * 0.32 * said.length,
        y: cy - large * 0.5,
        w: large * 0.64 * said.length,
        h: large,
        fill: pale,
        rx: 3,
        opacity: 0.85,
      });
      more.push(text(cx, cy, [[said, ink, 700]], large, { anchor: "middle" }));
      if (!why) return;
      const low = cy + large * 0.5 + size * 0.6;
      more.push({
        shape: "rect",
        x: cx - why.length * size * 0.27,
        y: low - size * 0.65,
        w: why.length * size * 0.54,
        h: size * 1.3,
        fill: pale,
        rx: 3,
        opacity: 0.85,
      });
      more.push(text(cx, low, [[why, ink]], size, { anchor: "middle" }));
    };
    const hidden = which ? "0" : sign;
    stamp(middle.future, hidden, which ? "" : words.later, palette.mute);
    stamp(middle.window, hidden, which ? "" : words.back, colour);
    stamp(middle.ahead, hidden, which ? "" : words.far, colour);
    stamp(middle.open, words.open, words.open_says, palette.ramp[3]);
    const letters = Math.min(size, cell * 0.98);
    const every = Math.ceil((11 * type) / cell);
    const wide = columns * cell;
    const title = which ? words.after : words.before;
    if (!narrow) {
      more.push(
        text(x - 9, which ? top + cell * 0.5 : top - 26 * type, [[title, palette.ink, 650]], size * 1.06, {
          anchor: "end",
        }),
      );
      if (which) {
        const [cx, cy] = [this.at.gap / 2 - 4, top + (rows * cell) / 2];
        const [first, second] = now.after
          ? [words.arrow_softmax, words.arrow_mask]
          : [words.arrow_mask, words.arrow_softmax];
        const span = this.at.gap * (view.isProjected ? 0.6 : 0.36);
        more.push(text(cx, cy, [["→", palette.mute, 600]], span, { anchor: "middle" }));
        if (!view.isProjected) {
          more.push(text(cx, cy - size, [[first, palette.mute]], size * 0.95, { anchor: "middle" }));
          more.push(text(cx, cy + size, [[second, palette.mute]], size * 0.95, { anchor: "middle" }));
        }
      }
    }
    const apart = n_key > WHOLE ? Math.ceil((size * 1.2) / cell) : every; // of words above a part of the map
    for (let k = 0; k < columns; k++) {
      const at = this.index(place.query, k + column);
      const isOther = Boolean(mask[at]) !== Boolean(ownMask[at]);
      if (
        k % apart &&
        !(view.header.isByRow && isOther && now.changed && this.paintedIn(place.query).includes(k + column))
      )
        continue;
      more.push(
        text(
          x + (k + 0.55) * cell,
          top - 7 * type,
          [[cut(this.keys[k + column]), palette.key, isOther ? 650 : 400]],
          Math.min(size, apart > 1 ? apart * cell * 0.8 : cell * (view.isProjected ? 0.68 : 1.1)),
          { angle: -45 },
        ),
      );
    }
    if (!which || narrow)
      for (let q = 0; q < rows; q++) {
        const isChosen = q + row === place.query;
        if (!isChosen && (q % every || Math.abs(q + row - place.query) < every)) continue; // the chosen row always has its name
        more.push(
          text(
            x - 9 * type,
            top + (q + 0.5) * cell,
            [[cut(this.queries[q + row]), isChosen ? palette.query : palette.ink, isChosen ? 650 : 400]],
            letters,
            { anchor: "end" },
          ),
        );
      }
    if (which && this.isAsked(place.query))
      more.push(
        text(
          x + wide / 2,
          top + (place.query - row + 0.5) * cell,
          [["?", palette.proof, 700]],
          Math.min(cell, 40 * type),
          {
            anchor: "middle",
          },
        ),
      );
    if (!which && hides)
      for (const said of cover.said)
        more.push({
          shape: "frame",
          x: x + (said[said.length - 1] - column) * cell + 2,
          y: top + (place.query - row) * cell + 2,
          w: cell - 4,
          h: cell - 4,
          stroke: palette.ink,
          width: 3,
          rx: 3,
        });
    const out = { x: x - 2, y: top + (place.query - row) * cell - 2, w: wide + 3, h: cell + 3 };
    more.push({ shape: "frame", ...out, stroke: palette.query, width: 2.2, rx: 4 });
    return {
      rows,
      columns,
      x,
      y: top,
      w: cell,
      h: cell,
      gap: pad,
      radius: cell > 20 ? 2 : 0,
      tone: (q, k) => (which && this.isAsked(q + row) ? null : tone(index(q, k))),
      empty: palette.hatch,
      masked: (q, k) =>
        !hides &&
        !(which && this.isAsked(q + row)) &&
        (Boolean(mask[index(q, k)] && ownMask[index(q, k)] && !(which && weights[index(q, k)] > 0)) ||
          Boolean(which === 0 && !isScores && ownMask[index(q, k)])),
      more,
    };
  }

  // The shapes of a file: both maps side by side
  shapes() {
    return this.maps.flatMap((map) => (map.map ? shapesOf(map.map) : []));
  }

  /** @param {PointerEvent} e @param {number} which */
  point(e, which) {
    if (this.brush.painting !== null || !this.now) return;
    const at = this.maps[which].at(e);
    this.view.hint(at ? this.why(this.whole(at)) : "", e);
  }

  /** The cell of the text that a cell of the tile is. @param {[number, number]} at @returns {[number, number]} */
  whole([q, k]) {
    return [q + this.tile.row, k + this.tile.column];
  }

  // A click beside the cells: a row's word chooses the row, a column's word paints the whole column; on the second map, the row
  /** @param {MouseEvent} e @param {number} which */
  click(e, which) {
    const { map, node } = this.maps[which];
    if (!map || !node) return;
    const box = node.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    const at = cellAt(map, x < map.x ? map.x + 1 : x, y);
    if (x < map.x || which) {
      if (at) this.view.chooseRow(this.whole(at)[0]);
      return;
    }
    const column = y < map.y ? cellAt(map, x - (map.y - y) * 0.8, map.y + 1) : null;
    if (column && cover.hides("row")) cover.point(column[1] + this.tile.column);
    else if (column) this.brush.column(column[1] + this.tile.column);
  }

  /** Who may look at whom here, and why not. @param {[number, number]} at @param {boolean} [numbers] */
  why([q, k], numbers = false) {
    if (!this.now) return "";
    const at = this.index(q, k);
    const reason = this.now.mask[at];
    const names = { q: this.queries[q], k: this.keys[k] };
    if (cover.hides("row")) return fill(words.cell_alone, { ...names, score: fixed(this.now.scores[at]) });
    const weight = this.weightOf([q, k]);
    if (numbers)
      return fill(words.at_cell, {
        ...names,
        state: reason ? words.state_not : words.state_may,
        score: pointed(this.now.scores[at].toFixed(2)),
        weight,
      });
    const may = reason
      ? fill(words.cell_not, { ...names, reason: words.reasons[reason] })
      : fill(words.cell_may, names);
    return `${may} ${fill(words.cell_score, { score: fixed(this.now.scores[at]), weight })}`;
  }

  // Every cell; of a long text those of the chosen row
  cells() {
    const { isByRow } = this.view.header;
    const { query } = this.view.place;
    const part = (/** @type {any} */ values) =>
      isByRow ? values.subarray(this.index(query, 0), this.index(query + 1, 0)) : values;
    const [mask, scores] = [part(this.now.mask), part(this.now.scores)];
    const [weights, before] = [part(this.now.weighed.weights), part(this.now.before)];
    const queries = isByRow ? [this.queries[query]] : this.queries;
    const found = lines({ queries, keys: this.keys, mask, scores, weights }, 9, isByRow ? query : 0);
    return found.map((line, at) => [...line.slice(0, 5), Number(before[at].toPrecision(9)), line[5]]);
  }

  // The maps as numpy has them, [query, key]; of a long text the rows that are at hand
  arrays() {
    const { n_key } = this.site;
    const { mask, scores, weighed, before, rows } = this.now;
    const shape = [rows.count, n_key];
    return {
      scores: { shape, values: scores },
      masked: { shape, values: mask },
      before: { shape, values: before },
      weights: { shape, values: weighed.weights },
      queries: { shape: [rows.count], values: this.queries.slice(rows.first, rows.first + rows.count) },
      keys: { shape: [n_key], values: this.keys },
    };
  }

  /** @param {HTMLElement} box */
  table(box) {
    if (!this.now) return;
    const { layer, head } = this.view.place;
    const caption = this.view.header.isByRow
      ? fill(words.scale_table, { q: this.queries[this.view.place.query], layer, head })
      : fill(words.table_of, { layer, head });
    const shown = this.cells().map((line) => [
      ...line.slice(0, 2),
      pointed(Number(line[2]).toFixed(3)),
      line[3],
      line[4],
      percent(Number(line[5]), 2),
      percent(Number(line[6]), 2),
    ]);
    box.setAttribute("aria-label", caption);
    box.replaceChildren(table(caption, words.columns, shown));
  }

  foot() {
    const { layer, head } = this.view.place;
    const { n_query, n_key } = this.site;
    const rest = [fill(words.foot_place, { n: n_query === n_key ? n_query : `${n_query} × ${n_key}`, layer, head })];
    if (this.view.header.isByRow) rest.push(fill(words.foot_row, { row: this.view.place.query }));
    if (!this.now) return { ok: [], rest, legend: [] };
    const { mask, weighed, after } = this.now;
    const zero = weighed.sums.filter((/** @type {number} */ sum) => sum === 0).length;
    const right = weighed.sums.every((/** @type {number} */ sum) => sum === 0 || Math.abs(sum - 1) < 1e-6);
    const exact = mask.every(
      (/** @type {number} */ reason, /** @type {number} */ at) => !reason || weighed.weights[at] === 0,
    );
    const ok = [];
    if (!after && right) ok.push(zero ? fill(words.ok_rows_zero, { n: zero }) : words.ok_rows);
    if (exact) ok.push(words.ok_cells);
    return { ok, rest, legend: [] };
  }

  /** @returns {import("./types.js").Files} */
  files() {
    const given = this.now?.found?.header?.about ?? this.view.header.about;
    const about = { ...given, snippet: given.snippet + fill(given.looks, this.view.place) };
    const { outcome: own, classes } = this.view.header;
    const now = this.now?.found?.header?.outcome;
    const guesses = own.words.map(([, label, p], i) => [label.trim(), p, now?.asked[i] ?? p]);
    /** @type {import("./types.js").Files["tables"]} */
    const tables = [[words.csv_cells, "cells", words.columns, this.now ? this.cells() : []]];
    if (guesses.length)
      tables.push([words.csv_words, "words", [classes ? "class" : "word", words.models_own, words.with_mask], guesses]);
    return { ...about, tables, arrays: this.now ? this.arrays() : undefined };
  }
}

/** @param {ArrayLike<number>} scores */
function largest(scores) {
  let most = 1e-9;
  for (let at = 0; at < scores.length; at++) most = Math.max(most, Math.abs(scores[at]));
  return most;
}

/** @param {[number, number, number] | undefined} sum @param {number} x @param {number} y @returns {[number, number, number]} */
const add3 = (sum, x, y) => [(sum?.[0] ?? 0) + x, (sum?.[1] ?? 0) + y, (sum?.[2] ?? 0) + 1];
