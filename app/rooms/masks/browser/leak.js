// Leakage: the same text with the causal mask and without. The loss at each word, the head that looks ahead, and what each then writes.

import { add, choice, clamp, el, fill, fixed, setText } from "../../../kit/browser/dom.js";
import { table } from "../../../kit/browser/table.js";
import { lossBars } from "./bars.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { drawMap, NAMED } from "./maps.js";
import { losses, share, way } from "./numbers.js";
import { pair } from "./pairs.js";

const MAP = 330; // units that the one map is wide, with its words
const AROUND = 470; // units of what stands above and below the bars
const LARGER = 24; // and of what is written, which a projected page writes larger
const BESIDE = 480; // of what stands above and below the map beside them
const [ROWS, LINE] = [28, 21]; // of the heading of the other texts, and of one of them
const WIDEST = 12; // nats at the end of a text's bar

/** @param {number[]} values */
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

export class Leak {
  drawn = "";
  /** @type {any} */
  now;
  headGrid = null;

  // Of a model whose mask can be taken away
  /** @param {import("./masks.js").Masks} view */
  static opens(view) {
    return view.header.writes && view.sites.size === 1 && view.isCausal("decoder") ? {} : null;
  }

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.stage = stage;
  }

  draw() {
    const { view, stage } = this;
    const { leaky } = view.values;
    const found = view.answer("leak", { leaky });
    if (!found?.header) {
      if (found || !this.now || view.remote.failed) {
        view.say([[found?.refused ?? (view.remote.failed ? words.unreachable : words.loading), ""]]);
        if (found?.refused) stage.replaceChildren(this.switch());
      }
      return;
    }
    this.now = { ...found.header, leaky };
    view.say(this.said());
    const texts = this.texts();
    const state = [view.layout, leaky, texts.length].join(" ");
    if (state === this.drawn) return;
    this.drawn = state;
    this.build(texts);
    Object.assign(stage.dataset, {
      leaky,
      own: mean(this.now.losses).toFixed(6),
      without: mean(this.now.without).toFixed(6),
      next: this.now.next_word.toFixed(6),
      texts: texts.map((both) => both.map((x) => x.toFixed(3)).join(" ")).join(","),
    });
  }

  said() {
    const { now } = this;
    const [a, b] = [mean(now.losses), mean(now.without)];
    const ab = /** @type {[string, string]} */ ([losses(a, b), "b"]);
    const written = now.written_without.trim().split(/\s+/).slice(0, 4);
    const repeats = new Set(written.slice(1).map((/** @type {string} */ one) => one.replace(/[^\p{L}\p{N}]/gu, "")));
    const told = written.length ? /** @type {[string, string]} */ ([written.join(" "), "b"]) : null;
    const isTaught = now.leaky === "taught";
    const fact = pieces(isTaught ? words.leak_taught : b < a ? words.leak_fact : words.leak_fact_more, { ab });
    if (!told) return fact;
    const end = repeats.size > 1 ? words.leak_goes_on : isTaught ? words.leak_copies : words.leak_repeats;
    return [...fact, ...pieces(end, { words: told })];
  }

  // Losses of other texts, each a run of its own: as many as are there
  texts() {
    /** @type {[number, number][]} */
    const found = [];
    for (let i = 0; i < (this.now.texts?.length ?? 0); i++) {
      const one = this.view.answer("leak_text", { i: String(i) });
      if (!one?.header) break;
      found.push(one.header.losses);
    }
    return found;
  }

  switch() {
    const { view } = this;
    const { taken, taught } = words.leak_whoses;
    const title = this.now?.leaky === "taken" ? this.now.title : view.header.title;
    const own = Leak.opens(view) ? view.header.title : title;
    return choice(
      words.leak_whose,
      [
        ["taken", fill(taken, { title: own })],
        ["taught", taught],
      ],
      view.values.leaky,
      (id) => view.choose({ leaky: id }),
    );
  }

  /** @param {[number, number][]} texts */
  build(texts) {
    const { view, stage, now } = this;
    const { palette, type } = view;
    const tones = { more: palette.ramp[3], less: palette.ahead[3], same: palette.mute };
    const board = el("div", view.board);
    const left = add(board, "div", "left");
    const right = add(board, "aside", "wide");
    const legend = el("span", "lines legend small");
    for (const [name, tone] of [
      [words.leak_with, palette.hatch],
      [words.leak_less, tones.less],
      [words.leak_more, tones.more],
    ]) {
      const one = add(legend, "span");
      add(one, "i", "sw").style.background = tone;
      one.append(name);
    }
    const head = left.appendChild(el("h3", "", words.loss_at));
    head.append(legend);
    const rows = now.texts && !view.isProjected ? now.texts.length : 0;
    const height = clamp(view.below(AROUND + (rows ? ROWS + LINE * rows : view.isProjected ? LARGER : 0), 80), 80, 260);
    const width = view.beside ? Math.max(420, view.width - MAP - 50) : view.width;
    const chart = add(left, "div", "chart");
    chart.append(
      lossBars(palette, now.labels.slice(1), now.losses, now.without, { width, height, says: !view.narrow }),
    );
    const wrote = add(left, "div", "wrote");
    wrote.appendChild(el("h3", "", words.leak_write));
    const begun = now.text.trimEnd().split(/\s+/).slice(-4).join(" ");
    for (const [text, tone] of [
      [now.written, "same"],
      [now.written_without, way(mean(now.losses), mean(now.without))],
    ]) {
      const line = add(wrote, "p", tone);
      line.append(el("span", "mute", `… ${begun}`), " ", el("b", "", text.trim().replace(/\s+/g, " ")), " …");
    }
    if (rows) {
      left.appendChild(el("h3", "", `${words.leak_texts} `)).append(el("small", "mute", words.leak_texts_how));
      const list = add(left, "div", "guesses texts");
      now.texts.forEach((/** @type {string} */ text, /** @type {number} */ i) => {
        const line = add(list, "div");
        line.appendChild(el("span", "", text)).title = text;
        const found = texts[i];
        if (!found) return void line.append(el("i"), el("s", "", "…"));
        const said = losses(...found);
        const at = said.lastIndexOf("→") + 1;
        const number = el("s", "", said.slice(0, at));
        number.appendChild(el("b", "", said.slice(at))).style.color = tones[way(...found)];
        line.append(pair(found[0] / WIDEST, found[1] / WIDEST), number);
      });
    }
    const { layer, head: at } = now;
    const p = share(now.next_word);
    right
      .appendChild(el("h3", "", `${fill(words.leak_map, { layer, head: at })} `))
      .append(el("small", "mute", fill(words.leak_map_how, { p })));
    const n = now.labels.length;
    const cell = Math.floor(clamp(Math.min(MAP - NAMED, view.below(BESIDE)) / n, 3, 24) * type);
    const alt = fill(words.leak_map_alt, { layer, head: at, n, p });
    drawMap(view, add(right, "div"), {
      alt,
      queries: now.labels,
      keys: now.labels,
      w: cell,
      weight: (q, k) => now.after[q][k],
    });
    const title = now.title;
    const other = now.isOther
      ? fill(now.leaky === "taught" ? words.leak_other_taught : words.leak_other, {
          title: view.header.title,
          other: title,
        })
      : "";
    const how =
      now.leaky === "taught"
        ? fill(words.leak_how_taught, { steps: now.steps, seconds: now.seconds, dropped: fixed(mean(now.dropped)) })
        : fill(words.leak_how, { title, n: now.layers });
    right.append(this.switch());
    if (other) right.appendChild(el("p", "small", other));
    setText(add(right, "p", "mute small how"), how);
    stage.replaceChildren(board);
  }

  foot() {
    if (!this.now) return { ok: [], rest: [], legend: [] };
    const [own, leaky] = [mean(this.now.losses), mean(this.now.without)];
    const rest = [
      fill(words.leak_choice, {
        own: own.toFixed(2),
        many: Math.exp(own).toFixed(0),
        leaky: leaky.toFixed(2),
        few: Math.exp(leaky).toFixed(1),
      }),
    ];
    return { ok: [fill(words.leak_ok, { n: this.now.losses.length })], rest, legend: [] };
  }

  rows() {
    const { losses: own, without, labels } = this.now;
    return own.map((/** @type {number} */ loss, /** @type {number} */ i) => [
      labels[i + 1],
      labels[i],
      ...[loss, without[i]].map((x) => Number(x.toFixed(4))),
    ]);
  }

  others() {
    return this.texts().map((found, i) => [this.now.texts[i], ...found.map((x) => Number(x.toFixed(4)))]);
  }

  /** @param {HTMLElement} box */
  table(box) {
    if (!this.now) return box.replaceChildren();
    box.setAttribute("aria-label", words.loss_at);
    const { layer, head } = this.now;
    box.replaceChildren(
      table(words.loss_at, words.leak_columns, this.rows()),
      ...(this.now.texts ? [table(words.leak_texts, words.leak_text_columns, this.others())] : []),
      table(fill(words.leak_map, { layer, head }), words.leak_map_columns, this.cells()),
    );
  }

  // The one head, before and after
  cells() {
    const { before, after, labels } = this.now;
    return labels.flatMap((/** @type {string} */ query, /** @type {number} */ q) =>
      labels.map((/** @type {string} */ key, /** @type {number} */ k) => [
        `${query} ${q}`,
        `${key} ${k}`,
        ...[before, after].map((map) => Number(map[q][k].toPrecision(6))),
      ]),
    );
  }

  /** @returns {import("./types.js").Files} */
  files() {
    if (!this.now) return { ...this.view.header.about, tables: [] };
    return {
      ...this.now.about,
      tables: [
        [words.csv_numbers, "leakage", words.leak_columns, this.rows()],
        [words.csv_cells, "cells", words.leak_map_columns, this.cells()],
      ],
    };
  }
}
