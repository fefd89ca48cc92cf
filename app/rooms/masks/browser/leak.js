// Leakage: loss at every position for three models, one head before and after, and what each then writes.

import { clamp, el, fill, focusable, percent } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { Grid, canvas, cut, hatch } from "./maps.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { table } from "../../../kit/browser/table.js";
import { elsewhere } from "./sheet.js";
import { across } from "../../../kit/browser/picture/axes.js";

const FUTURE = 1;
const AROUND = 532; // units of what stands above and below the bars
const LARGER = 76; // and of what is written, which a projected page writes larger

/** @param {number[]} values */
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

export class Leak {
  drawn = "";
  /** @type {any} */
  now;
  headGrid = null;

  // Only of the model that was trained without its mask
  /** @param {import("./masks.js").Masks} view */
  static opens(view) {
    return view.header.model === "storyteller" ? {} : null;
  }

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.stage = stage;
  }

  draw() {
    const { view, stage } = this;
    if (view.header.model !== "storyteller") {
      view.say([[words.leak_only, ""]]);
      return stage.replaceChildren(elsewhere(words.open_storyteller, "leak", "Storyteller", words.king));
    }
    const found = view.answer("leak", {});
    if (!found?.header) {
      const said = found?.refused ?? (view.remote.failed ? words.unreachable : words.loading);
      view.say([[said, ""]]);
      return stage.replaceChildren();
    }
    const { header } = found;
    this.now = header;
    const own = /** @type {[string, string]} */ ([mean(header.losses).toFixed(2), "b"]);
    const leaky = /** @type {[string, string]} */ ([mean(header.relearnt).toFixed(2), "q"]);
    const labels = view.labels("source");
    const last = labels[labels.length - 1];
    const copies = header.written_relearnt
      .trim()
      .split(/\s+/)
      .every((/** @type {string} */ word) => word === last);
    view.say(
      copies
        ? pieces(words.leak_fact, { own, leaky, word: [last, "b"] })
        : pieces(words.leak_fact_plain, { own, leaky }),
    );
    if (this.drawn !== view.layout) this.build();
    this.drawn = view.layout;
    Object.assign(stage.dataset, {
      own: mean(header.losses).toFixed(6),
      dropped: mean(header.dropped).toFixed(6),
      relearnt: mean(header.relearnt).toFixed(6),
      next: header.next_word.toFixed(6),
    });
  }

  build() {
    const { view, stage, now } = this;
    const { palette } = view.tones;
    const labels = view.labels("source");
    const tones = [view.tones.palette.ramp[3], palette.hatch, palette.query];
    const rows = [now.losses, now.dropped, now.relearnt];
    const legend = el("div", "lines legend");
    rows.forEach((losses, i) => {
      const one = legend.appendChild(el("span"));
      const swatch = one.appendChild(el("i", "sw"));
      swatch.style.background = tones[i];
      one.append(el("b", i === 2 ? "q" : "", words.leak_names[i]), ` ${mean(losses).toFixed(2)}`);
    });
    const board = el("div", view.board);
    const left = board.appendChild(el("div", "left"));
    const right = board.appendChild(el("aside", "wide"));
    const heading = left.appendChild(el("h3", "", `${words.leak_loss} `));
    heading.append(el("span", "mute", words.leak_loss_how));
    const n = labels.length - 1;
    const width = Math.max(view.narrow ? n * 46 + 44 : 0, view.beside ? Math.max(480, view.width - 432) : view.width);
    const x0 = 44;
    const step = (width - x0) / n;
    const tall = clamp(view.below(AROUND + (view.isProjected ? LARGER : 0)), 120, 240);
    const top = Math.max(2, Math.ceil(Math.max(...rows.flat()) / 2) * 2);
    const y = (/** @type {number} */ v) => 8 + tall - (tall * v) / top;
    const box = left.appendChild(el("div", "scroll"));
    focusable(box, "region", words.leak_loss);
    const svg = canvas(
      box,
      width,
      tall + 54,
      palette,
      `${words.leak_loss}. ${rows.map((losses, i) => `${words.leak_names[i]} ${mean(losses).toFixed(2)}`).join(", ")}.`,
      view.type,
    );
    const evens = Array.from({ length: top / 2 + 1 }, (_, i) => 2 * i);
    across(svg, evens, { y, from: x0, to: width, size: 13 });
    for (let i = 0; i < n; i++) {
      rows.forEach((losses, j) => {
        const bar = (step - 12) / 3;
        draw(svg, "rect", {
          x: x0 + i * step + 6 + j * bar,
          y: Math.min(y(losses[i]), y(0) - 2),
          width: Math.max(1, bar - 2),
          height: Math.max(2, y(0) - y(losses[i])),
          rx: 2,
          fill: tones[j],
        });
      });
      if (step < 16 && i % 2) continue;
      const size = clamp(step / 4.4, 8, 13.5);
      write(svg, x0 + (i + 0.5) * step, y(0) + 19, cut(labels[i + 1]), {
        anchor: "middle",
        size,
        "font-weight": 650,
        fill: palette.ink,
      });
      write(svg, x0 + (i + 0.5) * step, y(0) + 36, `${cut(labels[i])} ⇥`, {
        anchor: "middle",
        size: size - 1,
        fill: palette.query,
      });
    }
    write(svg, 0, y(0) + 19, words.leak_word, { size: 12.5, fill: palette.mute });
    write(svg, 0, y(0) + 36, words.leak_from, { size: 12.5, fill: palette.mute });
    const name = right.appendChild(el("h3"));
    name.append(el("b", "", fill(words.leak_map, { layer: now.layer, head: now.head })), ` ${words.leak_map_how}`);
    const pair = right.appendChild(el("div", "pair"));
    const cell = clamp(172 / labels.length, 2, 16);
    for (const [map, hides, said] of /** @type {[number[][], boolean, string][]} */ ([
      [now.before, true, words.leak_before],
      [now.after, false, fill(words.leak_after, { share: percent(now.next_word, 2) })],
    ])) {
      const one = pair.appendChild(el("div"));
      const drawn = canvas(one, labels.length * cell, labels.length * cell, palette, said, view.type);
      const grid = new Grid(drawn, { x: 0, y: 0, cell, rows: labels, columns: labels, palette, above: false });
      grid.fill((q, k) => (hides && k > q ? hatch(FUTURE) : view.tones.heat(map[q][k])));
      one.append(el("p", hides ? "mute small" : "small", said));
    }
    const wrote = el("div", "wrote");
    wrote.append(el("h3", "", words.leak_write));
    for (const [text, tone] of [
      [now.written, "own"],
      [now.written_relearnt, "leaky"],
    ]) {
      const line = wrote.appendChild(el("p", tone));
      line.append(el("span", "mute", view.header.text.trimEnd()), " ", el("b", "", `${text.trim()} …`));
    }
    const note = el("p", "mute small how", fill(words.leak_note, { steps: now.steps, seconds: now.seconds }));
    stage.replaceChildren(legend, board, wrote, note);
  }

  foot() {
    if (!this.now) return { ok: [], rest: [], legend: [] };
    const [own, leaky] = [mean(this.now.losses), mean(this.now.relearnt)];
    const rest = [
      fill(words.leak_choice, {
        own: own.toFixed(2),
        many: Math.exp(own).toFixed(0),
        leaky: leaky.toFixed(2),
        few: Math.exp(leaky).toFixed(1),
      }),
    ];
    return { ok: [fill(words.leak_ok, { n: this.now.losses.length })], rest, legend: ["future"] };
  }

  rows() {
    const labels = this.view.labels("source");
    const { losses, dropped, relearnt } = this.now;
    return losses.map((/** @type {number} */ loss, /** @type {number} */ i) => [
      labels[i + 1],
      labels[i],
      ...[loss, dropped[i], relearnt[i]].map((x) => Number(x.toFixed(4))),
    ]);
  }

  /** @param {HTMLElement} box */
  table(box) {
    if (!this.now) return box.replaceChildren();
    box.setAttribute("aria-label", words.leak_loss);
    const { layer, head } = this.now;
    box.replaceChildren(
      table(words.leak_loss, words.leak_columns, this.rows()),
      table(`${fill(words.leak_map, { layer, head })} ${words.leak_map_how}`, words.leak_map_columns, this.cells()),
    );
  }

  // The one head, before and after
  cells() {
    const labels = this.view.labels("source");
    const { before, after } = this.now;
    return labels.flatMap((query, q) =>
      labels.map((key, k) => [
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
