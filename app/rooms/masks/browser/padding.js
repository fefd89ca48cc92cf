// Padding: two to four sentences in one batch, both conventions by name, and the proof that masked padding changes nothing.

import { choice, clamp, el, fill, focusable, percent, scientific } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { ABOVE, Grid, apartBy, arrow, canvas, hatch, title } from "./maps.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { weigh } from "./rules.js";
import { lines, stepped } from "./sheet.js";
import { plainTable, table } from "../../../kit/browser/table.js";

const PADDING = 2; // among the reasons
const FUTURE = 1;
const NAMES = "ABCD";
const GAP = 60; // units between two maps, at least
const TITLE = 282; // of the longest heading above a map, in the wider type of a saved page
const ASIDE = 290; // of what stands beside the maps
const AROUND = 523; // of what stands above and below them with two sentences
const LINE = 23; // of one sentence more

export class Padding {
  drawn = "";
  /** @type {any} */
  now;

  // One sentence is no batch: the second one is the room's own.
  /** @param {import("./masks.js").Masks} view */
  static opens(view) {
    const { header, values } = view;
    if (header.lines > 1 || values.partner) return {};
    const side = view.site.id === "decoder" ? "left" : "right"; // on the right a decoder does not see it
    return { partner: header.partner, pad: "off", side };
  }

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.stage = stage;
  }

  get texts() {
    const added = this.view.values.partner.split("\n");
    return [...this.view.header.text.split("\n"), ...added]
      .map((line) => line.trim())
      .filter(Boolean)
      .slice(0, 4);
  }

  draw() {
    const { view } = this;
    const { values } = view;
    const { texts } = this;
    if (texts.length < 2) return this.ask();
    /** @type {Record<string, string | number>} */
    const params = { texts: texts.join("\n"), side: values.side };
    if (values.sentence && Number(values.sentence) < texts.length) params.sentence = values.sentence;
    const [layer, head] = values.at.split(".");
    if (head !== undefined) params.layer = layer;
    const found = view.answer("padding", params);
    if (!found && this.now && !view.remote.failed) return; // what is there stays until the next is
    if (!found?.header) {
      this.drawn = "";
      this.stage.replaceChildren(
        el("p", "mute", found?.refused ?? (view.remote.failed ? words.unreachable : words.loading)),
      );
      view.say([[found?.refused ?? words.loading, ""]]);
      if (found?.refused) this.stage.append(this.switches(texts));
      return;
    }
    const { header, body } = found;
    const shares = header.on_padding_free[header.layer];
    const chosen = head === undefined ? shares.indexOf(Math.max(...shares)) : clamp(Number(head), 0, shares.length - 1);
    const labels = header.labels[header.text];
    const n = labels.length;
    const real = header.padding[header.text].map((/** @type {boolean} */ padding) => !padding);
    const rows = labels
      .map((/** @type {string} */ _, /** @type {number} */ i) => i)
      .filter((/** @type {number} */ i) => real[i]);
    const row = clamp(Number(values.query), 0, n - 1);
    const at = (/** @type {number} */ offset) => new Float32Array(body, offset + chosen * n * n * 4, n * n);
    const on = values.pad === "on";
    const mask = new Uint8Array(n * n);
    for (let q = 0; q < n; q++)
      for (let k = 0; k < n; k++) mask[q * n + k] = on && !real[k] ? PADDING : header.causal && k > q ? FUTURE : 0;
    const scores = at(on ? header.masked : header.free);
    this.now = {
      header,
      chosen,
      labels,
      n,
      real,
      rows,
      row: real[row] ? row : rows[Math.min(2, rows.length - 1)],
      mask,
      scores,
      on,
      texts,
      weighed: weigh(scores, mask, n),
    };
    this.build();
    this.sentence();
  }

  // One sentence is no batch: say so, and offer another.
  ask() {
    const { view, stage } = this;
    view.say([[words.second, ""]]);
    if (this.drawn === "ask") return;
    this.drawn = "ask";
    this.now = undefined;
    const box = el("div", "ask");
    box.append(el("p", "", words.second_how));
    const line = box.appendChild(el("p", "line"));
    view.button(line, fill(words.second_add, { text: view.header.partner }), () =>
      view.choose({ partner: view.header.partner }),
    );
    const field = line.appendChild(el("input"));
    Object.assign(field, { type: "text", maxLength: 400, placeholder: words.second_box, ariaLabel: words.second_box });
    const take = () => field.value.trim() && view.choose({ partner: field.value.trim() });
    view.button(line, words.second_set, take);
    field.addEventListener("keydown", (e) => e.key === "Enter" && take());
    stage.replaceChildren(box);
  }

  /** @param {string[]} texts */
  switches(texts) {
    const { view } = this;
    const box = el("div", "switches");
    const name = this.now ? String(this.now.header.text) : view.values.sentence;
    box.append(
      choice(words.pad_masks, Object.entries(words.pad_mask), view.values.pad, (id) => view.choose({ pad: id })),
      choice(
        words.pad_side,
        Object.entries(words.pad_sides).map(
          ([id, label]) => /** @type {[string, string]} */ ([id, `${words.pad_side} ${label}`]),
        ),
        view.values.side,
        (id) => view.choose({ side: id }),
      ),
      choice(
        words.lab.padding,
        texts.map(
          (text, i) =>
            /** @type {[string, string, string]} */ ([String(i), fill(words.pad_sentence, { name: NAMES[i] }), text]),
        ),
        name,
        (id) => view.choose({ sentence: id }),
      ),
    );
    if (view.values.partner) view.button(box, words.second_remove, () => view.choose({ partner: "", sentence: "" }));
    return box;
  }

  build() {
    const { view, stage, now } = this;
    const { palette } = view.tones;
    const { header, chosen, labels, n, real, on, mask, scores, weighed, row, texts } = now;
    const state = [view.layout, header.about.snippet, header.layer, chosen, on, row].join(" ");
    if (state === this.drawn) return;
    this.drawn = state;
    const chips = focusable(el("div", "chips"), "region", words.lab.padding);
    header.labels.forEach((/** @type {string[]} */ text, /** @type {number} */ i) => {
      const line = chips.appendChild(el("div", i === header.text ? "seen" : ""));
      line.append(
        el("small", "mute", NAMES[i]),
        ...text.map((label, j) => el("span", header.padding[i][j] ? "tok pad" : "tok", label)),
      );
    });
    for (const [name, says, value] of /** @type {[string, string, (is: boolean) => boolean][]} */ ([
      [words.pad_keep, words.pad_keep_says, (is) => is],
      [words.pad_key, words.pad_key_says, (is) => !is],
    ])) {
      const line = chips.appendChild(el("div", "says"));
      const values = line.appendChild(el("span", "values"));
      values.append(
        el("small"),
        ...real.map((/** @type {boolean} */ is) =>
          el("span", `tok ${value(is) ? (name === words.pad_keep ? "a" : "q") : "mute"}`, value(is) ? "True" : "False"),
        ),
      );
      const note = line.appendChild(el("span", "note"));
      note.append(el("b", "", name), el("span", "", says));
    }
    const board = el("div", view.board);
    const left = board.appendChild(el("div", "left"));
    const right = board.appendChild(el("aside"));
    const { width, type } = view;
    const labelWidth = 64;
    const room = view.narrow
      ? width - labelWidth - 20
      : Math.min(
          clamp((width - labelWidth - view.beside - 2 * GAP) / 3, 110, 320),
          view.below(AROUND + LINE * (texts.length - 2)),
        );
    const cell = clamp(room / n, 6, view.narrow ? 30 : 22);
    const wide = n * cell;
    const gap = apartBy(wide, GAP, TITLE, width - (view.beside && ASIDE) - labelWidth);
    const height = ABOVE + 20 + wide + 8;
    const alt = fill(words.map_alt, { what: words.weights, n_query: n, n_key: n, query: labels[row] });
    const shown = labels.map((/** @type {string} */ label, /** @type {number} */ i) => (real[i] ? label : "·"));
    const xs = view.narrow
      ? [labelWidth, labelWidth, labelWidth]
      : [labelWidth, labelWidth + wide + gap, labelWidth + 2 * (wide + gap)];
    const one = view.narrow
      ? null
      : canvas(left, labelWidth + 2 * (wide + gap) + Math.max(wide + 8, TITLE), height, palette, alt, type);
    const svgs = xs.map(() => one ?? canvas(left, width, height, palette, alt, type));
    const top = scores.reduce(
      (/** @type {number} */ most, /** @type {number} */ x) => Math.max(most, Math.abs(x)),
      1e-9,
    );
    const lock = (/** @type {number} */ q) => real[q] && view.choose({ query: String(q) });
    const grids = svgs.map(
      (svg, i) =>
        new Grid(svg, {
          x: xs[i],
          y: ABOVE + 20,
          cell,
          rows: shown,
          columns: shown,
          palette,
          named: view.narrow || i === 0,
          act: lock,
        }),
    );
    grids[0].fill((q, k) => view.tones.signed(scores[q * n + k] / top));
    grids[1].fill((q, k) => (mask[q * n + k] ? hatch(mask[q * n + k]) : view.tones.signed(scores[q * n + k] / top)));
    grids[2].fill((q, k) => (mask[q * n + k] ? hatch(mask[q * n + k]) : view.tones.heat(weighed.weights[q * n + k])));
    const heads = [
      [words.scores, view.header.divided ? fill(words.scores_how, { d: view.header.d }) : words.scores_plain],
      [words.masked, on ? words.pad_seen : words.pad_unseen],
      [words.weights, fill(words.kinds_of, { layer: header.layer, head: chosen })],
    ];
    const firstPad = real.indexOf(false);
    svgs.forEach((svg, i) => {
      title(svg, xs[i], 14, heads[i][0], heads[i][1], palette);
      const grid = grids[i];
      real.forEach((/** @type {boolean} */ is, /** @type {number} */ q) => {
        if (!is)
          draw(svg, "rect", {
            x: grid.x,
            y: grid.y + q * cell,
            width: wide,
            height: cell,
            fill: palette.background,
            opacity: 0.62,
            "pointer-events": "none",
          });
      });
      if (firstPad >= 0) {
        const edge = firstPad === 0 ? real.indexOf(true) : firstPad;
        for (const d of [
          `M${grid.x} ${grid.y + edge * cell - 0.5}h${wide}`,
          `M${grid.x + edge * cell - 0.5} ${grid.y}v${wide}`,
        ])
          draw(svg, "path", { d, stroke: palette.mute, "stroke-dasharray": "3 3", fill: "none" });
      }
      grid.look(row);
      if (one && i < 2)
        arrow(svg, grid.x + wide + 7, grid.y + wide / 2, gap - 14, [words.arrow_mask, words.arrow_softmax][i], palette);
    });
    left.append(el("p", "mute small", words.pad_rows));
    right.append(el("h3", "", fill(words.pad_against, { name: NAMES[header.text] })));
    const rows = this.rows();
    const against = plainTable(
      fill(words.pad_against, { name: NAMES[header.text] }),
      ["", words.pad_masked, words.pad_not],
      rows,
      (_, j) => (j === 1 ? (on ? "chosen" : "") : j === 2 && !on ? "chosen free" : ""),
    );
    right.append(against, this.heads(), ...(header.causal ? [el("p", "mute small", words.pad_twice)] : []));
    stage.replaceChildren(chips, this.switches(now.texts), board);
  }

  // Another head of the batch
  heads() {
    const { now } = this;
    const box = el("div", "line");
    box.append(el("b", "", fill(words.place, { layer: now.header.layer, head: now.chosen })));
    box.append(this.view.steps((by) => this.arrow(0, by)));
    return box;
  }

  // Rows by the arrow keys, padding's own passed over
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    const { now, headGrid: grid } = this;
    if (!now || !grid) return false;
    const { rows, row, header, chosen } = now;
    this.view.choose(
      right
        ? this.head(...stepped(grid, { layer: header.layer, head: chosen }, right))
        : { query: String(rows[clamp(rows.indexOf(row) + down, 0, rows.length - 1)]) },
    );
    return true;
  }

  get headGrid() {
    const on = this.now?.header.on_padding;
    return on ? { layers: on.length, heads: on[0].length } : null;
  }

  /** @param {number} layer @param {number} head */
  head(layer, head) {
    return { at: `${layer}.${head}` };
  }

  rows() {
    const { header, chosen } = this.now;
    const mean = (/** @type {number[][]} */ all) => all.flat().reduce((a, b) => a + b, 0) / all.flat().length;
    const share = (/** @type {number} */ p) => (p === 0 ? "0" : percent(p));
    const small = (/** @type {number} */ x) => (x < 0.01 ? scientific(x) : x.toFixed(2));
    const { all, head, weights, output, cosine } = words.pad_table;
    return [
      [all, share(mean(header.on_padding)), share(mean(header.on_padding_free))],
      [head, share(header.on_padding[header.layer][chosen]), share(header.on_padding_free[header.layer][chosen])],
      [weights, ...header.weights.map(small)],
      [output, ...header.output.map(small)],
      [cosine, ...header.cosine.map((/** @type {number} */ x) => x.toFixed(2))],
    ];
  }

  sentence() {
    const { view, now } = this;
    const { header, real, on, texts, chosen } = now;
    const text = /** @type {[string, string]} */ ([texts[header.text], "q"]);
    const n = real.filter((/** @type {boolean} */ is) => !is).length;
    const delta = /** @type {[string, string]} */ ([scientific(header.output[0]), "b"]);
    if (on)
      return view.say(
        pieces(n === 0 ? words.pad_fact_longest : n === 1 ? words.pad_fact_one : words.pad_fact, {
          text,
          n: String(n),
          delta,
        }),
      );
    const share = header.on_padding_free[header.layer][chosen];
    if (share === 0 && header.causal) return view.say(pieces(words.pad_free_causal, { text }));
    view.say(
      pieces(words.pad_free, { text, share: [percent(share), "b"], cosine: [header.cosine[1].toFixed(2), "b"] }),
    );
  }

  foot() {
    if (!this.now) return { ok: [], rest: [], legend: ["padding"] };
    const { header, on, n } = this.now;
    const name = NAMES[header.text];
    const zero = header.on_padding.flat().every((/** @type {number} */ share) => share === 0);
    const ok = on
      ? [fill(words.pad_ok, { name, delta: scientific(header.output[0]) }), ...(zero ? [words.pad_zero] : [])]
      : [];
    return {
      ok,
      rest: [fill(words.pad_size, { texts: header.labels.length, n })],
      legend: ["padding", ...(header.causal ? ["future"] : [])],
    };
  }

  /** @param {HTMLElement} box */
  table(box) {
    if (!this.now) return box.replaceChildren();
    const caption = fill(words.table_of, { layer: this.now.header.layer, head: this.now.chosen });
    box.setAttribute("aria-label", caption);
    box.replaceChildren(table(caption, words.columns, this.cells()));
  }

  cells() {
    const { labels, mask, scores, weighed } = this.now;
    return lines({ queries: labels, keys: labels, mask, scores, weights: weighed.weights });
  }

  /** @returns {import("./types.js").Files} */
  files() {
    if (!this.now) return { ...this.view.header.about, tables: [] };
    return {
      ...this.now.header.about,
      tables: [
        [words.csv_numbers, "padding", ["number", words.pad_masked, words.pad_not], this.rows()],
        [words.csv_cells, "cells", words.columns, this.cells()],
      ],
    };
  }
}
