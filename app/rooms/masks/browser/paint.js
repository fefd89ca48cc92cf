// Paint a mask: scores, masked scores and weights of one head, the locked row in numbers, the next word before and after.

import { clamp, el, fill, fixed, focusable, percent } from "../../../kit/browser/dom.js";
import { Brush } from "./brush.js";
import { WHOLE, WORDS as words } from "./constants.js";
import { factOf } from "./facts.js";
import { ABOVE, Grid, apartBy, arrow, canvas, hatch, hatchOver, title } from "./maps.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { toneWithout, topWithout } from "../../../kit/browser/sink.js";
import { drawAside } from "./nextword.js";
import { drawPresets } from "./presets.js";
import { drawRow, inRow } from "./row.js";
import { decode, paintedMask, presetMask, weigh } from "./rules.js";
import { lines, Scores } from "./sheet.js";
import { table } from "../../../kit/browser/table.js";

const SIGNED = 9; // units of a cell that has room for −∞
const SCROLLED = 15; // units of a cell of a map that scrolls
const PROJECTED = { whole: 20, scrolled: 20, letters: 17 }; // the same, for the last row: tokens of a map that does not scroll
const LETTERS = 13.5; // units of the type of the labels, at most
const TITLE = 236; // units of the longest heading above a map, in the wider type of a saved page
const ASIDE = 290; // and of the column beside the maps
const FULL = 0.9995; // a row that sums to this says 1
const LATER = 1_500_000; // bytes of scores: a larger run is asked for one layer at a time

export class Paint {
  /** @type {Set<number>} */
  forbid = new Set();
  /** @type {Set<number>} */
  allow = new Set();
  painted = ""; // the texts that the two sets are of
  options = "";
  aside = "";
  tries = el("div", "try"); // buttons of cells that are worth trying
  how = ""; // which headings stand above the maps
  isEarly = false; // whether they say that the model is still to run
  /** @type {any} What is on the screen: scores, mask, weights, and the run under that mask */
  now;
  /** @type {Brush} */
  brush;
  /** @type {HTMLElement[] | undefined} What long texts scroll in */
  windows;
  at = [0, 0]; // how far they have scrolled, all of them
  /** @type {number | undefined} The row that they were brought to */
  followed;

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.site = view.site;
    this.queries = view.labels(this.site.query);
    this.keys = view.labels(this.site.key);
    this.choose = el("div", "choose");
    this.board = el("div", view.board);
    stage.append(...(view.narrow ? [this.board] : [this.choose, this.board]));
    this.left = this.board.appendChild(el("div", "left"));
    this.right = this.board.appendChild(el("aside"));
    this.build();
    if (view.narrow) this.left.append(this.choose); // on a phone the maps come first
    this.row = this.left.appendChild(el("div", "row"));
    this.row.tabIndex = 0;
    this.row.setAttribute("role", "region");
  }

  // Longer texts scroll: three maps in boxes of their own, which go together
  get scrolls() {
    return Math.max(this.site.n_query, this.site.n_key) > (this.view.isProjected ? PROJECTED.whole : WHOLE);
  }

  build() {
    const { narrow, beside, tones, isProjected, width, type } = this.view;
    const { palette } = tones;
    const { n_query, n_key } = this.site;
    const letters = isProjected ? PROJECTED.letters : LETTERS;
    const longest = Math.max(...this.queries.map((label) => Math.min(10, label.length)));
    const labels = Math.min(86, 14 + longest * 7.2) * (letters / LETTERS);
    const { scrolls } = this;
    const apart = narrow || scrolls;
    const room = narrow ? width - labels - 52 : clamp((width - labels - beside - 190) / 3, 110, 420);
    const tall = clamp(((isProjected ? 0.45 : 0.275) * innerHeight) / type, 210, 460);
    const cell = scrolls
      ? isProjected
        ? PROJECTED.scrolled
        : SCROLLED
      : clamp(Math.min(room / n_key, (narrow ? room : tall) / n_query), narrow ? 6 : 2.5, 34);
    const wide = n_key * cell;
    const gap = apartBy(wide, 62, TITLE, width - (beside && ASIDE) - labels);
    const height = ABOVE + 20 + n_query * cell + 6;
    const common = { y: ABOVE + 20, cell, letters, rows: this.queries, columns: this.keys, palette };
    const alt = fill(words.map_alt, { what: words.masked, n_query, n_key, query: this.queries[this.view.place.query] });
    const lock = (/** @type {number} */ q) => this.view.choose({ query: String(q) });
    const places = apart ? [labels, labels, labels] : [labels, labels + wide + gap, labels + 2 * (wide + gap)];
    const line = this.left.appendChild(el("div", scrolls && !narrow ? "windows" : ""));
    const boxes = apart
      ? places.map(() => line.appendChild(el("div", "maps")))
      : Array(3).fill(line.appendChild(el("div", "maps")));
    const svgs = apart
      ? boxes.map((box) =>
          canvas(box, Math.max(width * (scrolls ? 0 : 1), labels + wide + 66), height, palette, alt, type),
        )
      : Array(3).fill(
          canvas(boxes[0], labels + 2 * (wide + gap) + Math.max(wide + 66, TITLE), height, palette, alt, type),
        );
    this.titles = svgs.map((svg) => draw(svg, "g"));
    this.grids = svgs.map(
      (svg, i) => new Grid(svg, { ...common, x: places[i], named: apart || i === 0, scrolls, act: lock }),
    );
    this.arrows = svgs.map((svg) => draw(svg, "g"));
    this.marks = draw(svgs[1], "g", { "pointer-events": "none" });
    this.sums = draw(svgs[2], "g");
    this.wide = wide;
    this.gap = gap;
    this.svgs = [...new Set(svgs)];
    for (const svg of this.svgs) {
      svg.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => this.point(e, svg));
      svg.addEventListener("pointerleave", () => this.view.hint(""));
    }
    this.brush = new Brush(this, boxes[1], this.grids[1]);
    if (scrolls) this.scroll(boxes, (tall + 1.6 * ABOVE) * type);
  }

  // Boxes that show a part of the text, and the same part; they open where the locked row and the key that it looks at most are.
  /** @param {HTMLElement[]} boxes @param {number} tall */
  scroll(boxes, tall) {
    for (const [i, box] of boxes.entries()) {
      box.classList.add("window");
      box.style.maxHeight = `${tall}px`;
      focusable(box, "region", [words.scores, words.masked, words.weights][i]);
      const [grid, title] = [/** @type {Grid[]} */ (this.grids)[i], /** @type {SVGElement[]} */ (this.titles)[i]];
      const stay = () => grid.stay(box.scrollLeft / this.view.type, box.scrollTop / this.view.type, title);
      stay();
      box.addEventListener("scroll", () => {
        stay();
        const { scrollLeft, scrollTop } = box;
        // An event of our own scrollTo: ignore it, the scrolling box may be further by now.
        if (scrollLeft === this.at[0] && scrollTop === this.at[1]) return;
        this.at = [scrollLeft, scrollTop];
        for (const other of boxes) if (other !== box) other.scrollTo(scrollLeft, scrollTop);
      });
    }
    this.windows = boxes;
  }

  // Bring the locked row into the boxes, where it is not
  follow() {
    const [box] = this.windows ?? [];
    if (!box || this.followed === this.view.place.query) return;
    const { x, y, cell } = /** @type {Grid[]} */ (this.grids)[0];
    const { type } = this.view;
    const { query } = this.view.place;
    const top = (y + query * cell) * type;
    if (top < box.scrollTop + y * type || top > box.scrollTop + box.clientHeight - 2 * cell * type)
      box.scrollTop = top - box.clientHeight / 2;
    if (this.followed === undefined) box.scrollLeft = (x + this.strongest(query) * cell) * type - box.clientWidth / 2;
    this.followed = query;
  }

  /** The key that gets most from a row. @param {number} query */
  strongest(query) {
    const { n_key } = this.site;
    const row = this.now.weighed.weights.subarray(query * n_key, (query + 1) * n_key);
    return row.indexOf(Math.max(...row));
  }

  // The same but for the first key, on which most heads rest whatever the words are
  /** @param {number} query */
  looked(query) {
    if (!this.now) return undefined;
    const { n_key } = this.site;
    const row = this.now.weighed.weights.subarray(query * n_key, (query + 1) * n_key);
    return n_key > 1 ? 1 + row.subarray(1).indexOf(Math.max(...row.subarray(1))) : 0;
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

  status() {
    const { early, changed, found } = this.now ?? {};
    return {
      early: Boolean(early),
      edited: found?.header?.key ?? "",
      fresh: Boolean(this.now && (!changed || found?.header || found?.refused)),
    };
  }

  preset() {
    const { values, place } = this.view;
    return presetMask(
      this.site.mask(place.layer, place.head),
      { mask: values.mask, window: Number(values.window) },
      this.site.n_query,
      this.site.n_key,
    );
  }

  // The run under the chosen mask: null while it is on its way, {refused} where it was refused
  run() {
    const { values, place, header } = this.view;
    const { site } = this;
    /** @type {Record<string, string | number>} */
    const params = {
      site: site.id,
      mask: values.mask,
      window: values.window,
      when: values.when,
      fill: values.fill,
      scope: values.scope,
      forbid: values.forbid,
      allow: values.allow,
    };
    if (values.scope === "one") Object.assign(params, { layer: place.layer, head: place.head });
    else if (values.forbid && values.forbid === header.first_look)
      Object.assign(params, { layer: place.layer, part: 1 });
    else if (site.layers * site.heads * site.cells * 4 > LATER) params.layer = place.layer;
    params.ids = header.outcome.words.map(([id]) => id).join(",");
    const found = this.view.answer("edited", params);
    if (found?.header && !found.scores) found.scores = new Scores(found.header.site, found.body);
    return found;
  }

  draw() {
    const { view, site } = this;
    const { values, place, header } = view;
    const { n_query, n_key } = site;
    const own = view.scores(site, place.layer, place.head);
    this.left.dataset.loading = String(!own);
    if (!own) return view.say([[words.loading, ""]]);
    const texts = `${values.forbid} ${values.allow}`;
    if (this.brush.painting === null && texts !== this.painted) {
      [this.forbid, this.allow, this.painted] = [
        decode(values.forbid, n_query, n_key),
        decode(values.allow, n_query, n_key),
        texts,
      ];
    }
    const ownMask = site.mask(place.layer, place.head) ?? new Uint8Array(site.cells);
    const changed = (view.isChanged || this.forbid.size + this.allow.size > 0) && values.whose === "yours";
    const mask = changed ? paintedMask(this.preset(), this.forbid, this.allow) : ownMask;
    const after = changed && values.when === "after";
    const fillWith = changed && values.fill === "1e9" && !after ? -1e9 : -Infinity;
    const found = changed && this.brush.painting === null && view.isChanged ? this.run() : null;
    const scores = found?.scores?.scores(place.layer, place.head) ?? own;
    const weighed = weigh(scores, mask, n_key, { after, fill: fillWith });
    const ownWeighed = weigh(own, ownMask, n_key);
    // Until the run is there, the weights are those of the model's own scores: right only where no mask came before them
    const early = changed && !found?.header && !found?.refused && values.scope !== "one" && place.layer > 0;
    this.now = {
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
    this.drawMaps();
    this.follow();
    drawPresets(this, this.choose);
    drawRow(this, this.row);
    drawAside(this, this.right);
    if (found?.refused) view.say([[found.refused, ""]]);
    else {
      view.say(
        factOf(
          {
            labels: { queries: this.queries, keys: this.keys },
            site: site.id,
            n_key,
            row: place.query,
            ...place,
            own: ownMask,
            mask,
            preset: values.mask,
            window: Number(values.window),
            one: values.scope === "one",
            after,
            finite: fillWith > -Infinity,
            changed,
            early,
            weights: weighed.weights,
            ownWeights: ownWeighed.weights,
            sums: weighed.sums,
            painted: this.forbid.size + this.allow.size,
            busiest: (keys) => this.busiest(keys),
            outcome: found?.header?.outcome ?? null,
            ownOutcome: header.outcome,
            classes: header.classes,
            cosine: found?.header?.cosine ?? null,
          },
          words,
        ),
      );
    }
  }

  // The head that gives these keys most from the locked row, among those that are here
  /** @param {number[]} keys */
  busiest(keys) {
    const { site } = this;
    const { query } = this.view.place;
    let best = null;
    for (const layer of site.sent.keys()) {
      for (let head = 0; head < site.heads; head++) {
        const scores = /** @type {Float32Array} */ (site.scores(layer, head)).subarray(
          query * site.n_key,
          (query + 1) * site.n_key,
        );
        const mask =
          site.mask(layer, head)?.subarray(query * site.n_key, (query + 1) * site.n_key) ?? new Uint8Array(site.n_key);
        const { weights } = weigh(scores, mask, site.n_key);
        const share = keys.reduce((sum, k) => sum + weights[k], 0);
        if (!best || share > best.share) best = { layer, head, share };
      }
    }
    return best;
  }

  drawMaps() {
    const { view, now } = this;
    const { tones, place, header } = view;
    const { palette } = tones;
    const { n_key } = this.site;
    const grids = /** @type {Grid[]} */ (this.grids);
    const top = now.scores.reduce(
      (/** @type {number} */ most, /** @type {number} */ x) => Math.max(most, Math.abs(x)),
      1e-9,
    );
    const { mask, after, weighed } = now;
    const rest = view.sink.key;
    const without = rest === null ? null : toneWithout(palette, rest, topWithout(weighed.weights, n_key, rest));
    grids[0].fill((q, k) => tones.signed(now.scores[q * n_key + k] / top));
    grids[1].fill((q, k) =>
      after
        ? tones.heat(weighed.softmax[q * n_key + k])
        : mask[q * n_key + k]
          ? hatch(mask[q * n_key + k])
          : tones.signed(now.scores[q * n_key + k] / top),
    );
    grids[1].cover((q, k) => (after && mask[q * n_key + k] ? hatchOver(mask[q * n_key + k]) : ""));
    grids[2].fill((q, k) =>
      mask[q * n_key + k] && !(now.fillWith > -Infinity && weighed.weights[q * n_key + k] > 0)
        ? hatch(mask[q * n_key + k])
        : (without?.(weighed.weights[q * n_key + k], k).fill ?? tones.heat(weighed.weights[q * n_key + k])),
    );
    for (const grid of grids) grid.look(place.query);
    const how = `${after} ${view.layout}`;
    if (this.how !== how || this.isEarly !== now.early) {
      [this.how, this.isEarly] = [how, now.early];
      const scaled =
        (header.divided ? fill(words.scores_how, { d: header.d }) : words.scores_plain) +
        (header.biased ? words.scores_bias : "");
      const said = [
        [words.scores, scaled],
        [after ? words.softmax_all : words.masked, after ? words.sum_one : words.paint_how],
        [after ? words.after_mask : words.weights, now.early ? words.early : after ? words.sum_less : words.sum_one],
      ];
      /** @type {SVGElement[]} */ (this.titles).forEach((box, i) => {
        box.replaceChildren();
        title(box, grids[i].x, 14, said[i][0], said[i][1], palette);
      });
      const names = after ? [words.arrow_softmax, words.arrow_times] : [words.arrow_mask, words.arrow_softmax];
      /** @type {SVGElement[]} */ (this.arrows).forEach((box, i) => {
        box.replaceChildren();
        if (i < 2 && !view.narrow && !this.scrolls)
          arrow(
            box,
            grids[i].x + grids[i].width + 6,
            grids[i].y + grids[i].height / 2,
            /** @type {number} */ (this.gap) - 14,
            names[i],
            palette,
          );
      });
    }
    const marks = /** @type {SVGElement} */ (this.marks);
    marks.replaceChildren();
    const { x, y, cell } = grids[1];
    if (!after && cell >= SIGNED) {
      const sign = now.fillWith > -Infinity ? "−1e9" : "−∞";
      for (let k = 0; k < n_key; k++) {
        if (mask[place.query * n_key + k]) {
          // on a ground of its own: over a hatch a small sign cannot be read
          const [left, top] = [x + k * cell, y + place.query * cell];
          draw(marks, "rect", { x: left, y: top, width: cell - 1, height: cell - 1, fill: palette.background });
          write(marks, left + cell / 2 - 0.5, top + cell / 2 + 4, sign, {
            anchor: "middle",
            size: sign.length > 2 ? cell * 0.4 : Math.min(13, cell * 0.85),
            "font-weight": 650,
            fill: palette.ink,
          });
        }
      }
    }
    this.drawSums(grids[2]);
  }

  /** @param {Grid} grid */
  drawSums({ x, y, cell, width }) {
    const { palette } = this.view.tones;
    const box = /** @type {SVGElement} */ (this.sums);
    const { sums } = this.now.weighed;
    const at = x + width + 10;
    box.replaceChildren();
    write(box, at, y - 7, "Σ", { size: 13, fill: palette.mute });
    const tall = Math.max(2, cell * 0.55);
    sums.forEach((/** @type {number} */ sum, /** @type {number} */ q) => {
      const middle = y + q * cell + (cell - tall) / 2;
      draw(box, "rect", { x: at, y: middle, width: 24, height: tall, rx: 2, fill: palette.line });
      draw(box, "rect", {
        x: at,
        y: middle,
        width: 24 * Math.min(1, sum),
        height: tall,
        rx: 2,
        fill: sum > FULL ? palette.proof : palette.query,
      });
      if (sum <= FULL && cell > 10)
        write(box, at + 28, y + (q + 0.5) * cell + 4, sum.toFixed(2), { size: 11.5, fill: palette.query });
    });
  }

  /** @param {PointerEvent} e @param {SVGSVGElement} svg */
  point(e, svg) {
    const frame = svg.getBoundingClientRect();
    const scale = this.view.type;
    for (const grid of /** @type {Grid[]} */ (this.grids)) {
      const at = grid.svg === svg ? grid.at((e.clientX - frame.left) / scale, (e.clientY - frame.top) / scale) : null;
      if (at) return this.view.hint(this.why(at), e);
    }
    this.view.hint("");
  }

  /** Who may look at whom here, and why not. @param {[number, number]} at @param {boolean} [numbers] */
  why([q, k], numbers = false) {
    if (!this.now) return "";
    const at = q * this.site.n_key + k;
    const reason = this.now.mask[at];
    const names = { q: this.queries[q], k: this.keys[k] };
    if (numbers)
      return fill(words.at_cell, {
        ...names,
        state: reason ? words.state_not : words.state_may,
        score: this.now.scores[at].toFixed(2),
        weight: percent(this.now.weighed.weights[at], 1),
      });
    const may = reason
      ? fill(words.cell_not, { ...names, reason: words.reasons[reason] })
      : fill(words.cell_may, names);
    return `${may} ${fill(words.cell_score, { score: fixed(this.now.scores[at]), weight: percent(this.now.weighed.weights[at], 1) })}`;
  }

  cells() {
    const { mask, scores, weighed } = this.now;
    return lines({ queries: this.queries, keys: this.keys, mask, scores, weights: weighed.weights }, 9);
  }

  // The maps as numpy has them, [query, key]
  arrays() {
    const { n_query, n_key } = this.site;
    const { mask, scores, weighed } = this.now;
    const shape = [n_query, n_key];
    return {
      scores: { shape, values: scores },
      masked: { shape, values: mask },
      weights: { shape, values: weighed.weights },
      queries: { shape: [n_query], values: this.queries },
      keys: { shape: [n_key], values: this.keys },
    };
  }

  /** @param {HTMLElement} box */
  table(box) {
    if (!this.now) return;
    const { layer, head } = this.view.place;
    const caption = fill(words.table_of, { layer, head });
    const shown = this.cells().map((line) => [
      ...line.slice(0, 2),
      Number(line[2]).toFixed(3),
      line[3],
      line[4],
      percent(Number(line[5]), 2),
    ]);
    box.setAttribute("aria-label", caption);
    box.replaceChildren(table(caption, words.columns, shown));
  }

  foot() {
    const { layer, head } = this.view.place;
    const { n_query, n_key } = this.site;
    const rest = [fill(words.foot_place, { n: n_query === n_key ? n_query : `${n_query} × ${n_key}`, layer, head })];
    const most = inRow(this.view.isProjected);
    if (n_key > most) rest.push(fill(words.row_most, { n: most, all: n_key }));
    const legend = ["future", "edited", "window"];
    if (!this.now) return { ok: [], rest, legend };
    const { mask, weighed, after } = this.now;
    const zero = weighed.sums.filter((/** @type {number} */ sum) => sum === 0).length;
    const right = weighed.sums.every((/** @type {number} */ sum) => sum === 0 || Math.abs(sum - 1) < 1e-6);
    const exact = mask.every(
      (/** @type {number} */ reason, /** @type {number} */ at) => !reason || weighed.weights[at] === 0,
    );
    const ok = [];
    if (!after && right) ok.push(zero ? fill(words.ok_rows_zero, { n: zero }) : words.ok_rows);
    if (exact) ok.push(words.ok_cells);
    return { ok, rest, legend };
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
