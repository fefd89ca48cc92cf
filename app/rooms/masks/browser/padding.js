// Padding: two to four sentences in one batch, both conventions by name, and the proof that masked padding changes nothing.

import { cover } from "../../../kit/browser/cover.js";
import { add, choice, clamp, el, fill, fixed, focusable, scientific } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { share, shares } from "./numbers.js";
import { angle } from "../../../kit/browser/turns.js";
import { weigh } from "./rules.js";
import { lines, stepped } from "./sheet.js";
import { plainTable, table } from "../../../kit/browser/table.js";
import { drawMap, NAMED } from "./maps.js";
import { form } from "../../../kit/browser/language.js";

const PADDING = 2; // among the reasons
const FUTURE = 1;
const NAMES = "ABCD";
const GAP = 26; // units between the two, less those
const AROUND = 540; // of what stands above and below the maps with two sentences
const LINE = 23; // of one sentence more
const ASIDE = 345; // units of what stands beside the maps
const [LEAST, TALLEST] = [15, 46]; // units that a row is tall
const TURN = 90; // degrees at the end of a bar

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
    const hidden = (/** @type {boolean} */ masked) => {
      const mask = new Uint8Array(n * n);
      for (let q = 0; q < n; q++)
        for (let k = 0; k < n; k++)
          mask[q * n + k] = masked && !real[k] ? PADDING : header.causal && k > q ? FUTURE : 0;
      return mask;
    };
    const both = [true, false].map((masked) => {
      const [mask, scores] = [hidden(masked), at(masked ? header.masked : header.free)];
      return { mask, scores, weighed: weigh(scores, mask, n) };
    });
    this.now = {
      header,
      chosen,
      labels,
      n,
      real,
      rows,
      row: real[row] ? row : rows[Math.min(2, rows.length - 1)],
      on,
      texts,
      both,
      ...both[on ? 0 : 1],
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
    const { header, chosen, labels, n, real, rows, on, both, row, texts } = now;
    const hides = cover.hides("padding");
    const state = [view.layout, header.about.snippet, header.layer, chosen, on, row, hides].join(" ");
    if (state === this.drawn) return;
    this.drawn = state;
    const chips = focusable(el("div", "chips"), "region", words.lab.padding);
    header.labels.forEach((/** @type {string[]} */ text, /** @type {number} */ i) => {
      const line = chips.appendChild(el("div", i === header.text ? "seen" : ""));
      line.append(
        el("small", "mute", NAMES[i]),
        ...text.map((label, j) =>
          el("span", header.padding[i][j] ? "tok pad" : "tok", header.padding[i][j] ? words.pad_short : label),
        ),
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
    const { width, type, narrow } = view;
    const room = narrow ? width : (width - (view.beside ? ASIDE : 0) - 2 * GAP) / 2;
    const wide = Math.floor(clamp((room - NAMED - 14) / n, 7, 40) * type);
    const under = view.below(AROUND + LINE * (texts.length - 2) + (view.beside ? 0 : 240));
    const tall = Math.floor(clamp((under * type) / rows.length, Math.min(wide, LEAST * type), TALLEST * type));
    const maps = add(left, "div", "pair two");
    both.forEach((/** @type {any} */ { mask, weighed }, /** @type {number} */ i) => {
      const isMasked = i === 0;
      if (narrow && isMasked !== (on && !hides)) return;
      const host = add(maps, "div", isMasked ? "masked" : "free");
      host.appendChild(el("h3", isMasked === on ? "shown" : "", isMasked ? words.pad_mask.on : words.pad_mask.off));
      const alt = fill(words.pad_map, {
        which: isMasked ? words.pad_mask.on : words.pad_mask.off,
        n_query: rows.length,
        n_key: n,
      });
      const at = (/** @type {number} */ q, /** @type {number} */ k) => rows[q] * n + k;
      const pads = real.flatMap((/** @type {boolean} */ is, /** @type {number} */ k) => (is ? [] : [k]));
      const picture = drawMap(view, host, {
        alt,
        queries: rows.map((/** @type {number} */ q) => labels[q]),
        keys: labels.map((/** @type {string} */ label, /** @type {number} */ k) => (real[k] ? label : words.pad_short)),
        w: wide,
        h: tall,
        row: rows.indexOf(row),
        weight: (q, k) => weighed.weights[at(q, k)],
        masked: (q, k) => mask[at(q, k)] > 0,
        stamp: isMasked && pads.length > 1 ? ["−∞", (pads[0] + pads[pads.length - 1] + 1) / 2] : undefined,
      });
      picture.node?.addEventListener("click", (/** @type {any} */ event) => {
        const found = picture.at(event);
        if (found) view.choose({ query: String(rows[found[0]]) });
      });
    });
    const note = fill(words.pad_rows, { text: texts[header.text], layer: header.layer, head: chosen });
    left.append(el("p", "mute small", header.causal ? `${note} ${words.pad_twice}` : note));
    right.append(...this.outcome());
    const against = plainTable(
      fill(words.pad_against, { name: NAMES[header.text] }),
      ["", words.pad_masked, words.pad_not],
      this.rows(),
      (_, j) => (j === 1 ? (on ? "chosen" : "") : j === 2 && !on ? "chosen free" : ""),
    );
    right.append(against, this.heads());
    stage.replaceChildren(chips, this.switches(now.texts), board);
  }

  // The next word, or the turn of the sentence's vector: alone, in the batch, and there without the mask
  outcome() {
    const { next_word: next, degrees } = this.now.header;
    const bars = el("div", "guesses wide");
    /** @type {[string, number][]} */
    const shown = next
      ? [
          [words.pad_alone, next[1]],
          [words.pad_in_batch, next[2]],
          [words.pad_unmasked, next[3]],
        ]
      : [
          [words.pad_in_batch, degrees[0]],
          [words.pad_unmasked, degrees[1]],
        ];
    for (const [name, x] of shown) {
      const line = add(bars, "div");
      const bar = el("i", "twin");
      const tone = next
        ? x < next[1] * 0.995
          ? "less"
          : x > next[1] * 1.005
            ? "more"
            : "same"
        : x > 0.05
          ? "more"
          : "same";
      add(bar, "u", tone).style.width = `${100 * Math.min(1, next ? x : x / TURN)}%`;
      line.append(el("span", "", name), bar, el("s", "", next ? share(x) : angle(x)));
    }
    const name = next ? `${words.next_word}: ${next[0].trim() || "␣"}` : words.turns_by;
    return [el("h3", "", name), bars];
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
    const small = (/** @type {number} */ x) => (x < 0.01 ? scientific(x) : fixed(x));
    const { all, head, weights, output } = words.pad_table;
    return [
      [all, share(mean(header.on_padding)), share(mean(header.on_padding_free))],
      [head, share(header.on_padding[header.layer][chosen]), share(header.on_padding_free[header.layer][chosen])],
      [weights, ...header.weights.map(small)],
      [output, ...header.output.map(small)],
    ];
  }

  sentence() {
    const { view, now } = this;
    const { header, real, on, texts } = now;
    const text = /** @type {[string, string]} */ ([texts[header.text], "q"]);
    const n = real.filter((/** @type {boolean} */ is) => !is).length;
    const delta = /** @type {[string, string]} */ ([scientific(header.output[0]), "b"]);
    if (on)
      return view.say(
        pieces(n === 0 ? words.pad_fact_longest : form([words.pad_fact_one, words.pad_fact], n), {
          text,
          n: String(n),
          delta,
        }),
      );
    const all = header.on_padding_free.flat();
    const away = all.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0) / all.length;
    if (n === 0) return view.say(pieces(words.pad_free_longest, { text }));
    if (away === 0 && header.causal) return view.say(pieces(words.pad_free_causal, { text }));
    const fact = pieces(words.pad_free, { p: [share(away), "b"] });
    const { next_word: next, leads, degrees } = header;
    if (!next) return view.say([...fact, ...pieces(words.pad_turns, { text, d: [angle(degrees[1]), "b"] })]);
    const end = pieces(words.pad_next, { text, w: [next[0].trim() || "␣", "b"], ab: [shares(next[1], next[3]), "b"] });
    const leader = /** @type {[string, number]} */ (leads);
    const leading =
      leader[0] === next[0]
        ? []
        : pieces(words.say_leads, { w: [leader[0].trim() || "␣", "b"], p: [share(leader[1]), "b"] });
    view.say([...fact, ...end, ...leading]);
  }

  foot() {
    if (!this.now) return { ok: [], rest: [], legend: [] };
    const { header, on, n } = this.now;
    const name = NAMES[header.text];
    const zero = header.on_padding.flat().every((/** @type {number} */ share) => share === 0);
    const ok = on
      ? [fill(words.pad_ok, { name, delta: scientific(header.output[0]) }), ...(zero ? [words.pad_zero] : [])]
      : [];
    return {
      ok,
      rest: [fill(words.pad_size, { texts: header.labels.length, n })],
      legend: header.causal ? ["future"] : [],
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
