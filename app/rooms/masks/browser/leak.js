// Leakage: the same text with the causal mask and without. The loss at each word, the head that looks ahead, and what each then writes.

import { add, apart, choice, clamp, counted, el, fill, fixed, setText } from "../../../kit/browser/dom.js";
import { table } from "../../../kit/browser/table.js";
import { lossBars } from "./bars.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { drawMap, NAMED } from "./maps.js";
import { losses, share, shares, way } from "./numbers.js";
import { pair } from "./pairs.js";

const MAP = 330; // units that the one map is wide, with its words
const AROUND = 470; // units of what stands above and below the bars
const TWO = 88; // of the two texts that differ in one word
const LARGER = 56; // and of what a projected page writes larger
const BESIDE = 480; // of what stands above and below the map beside them
const [ROWS, LINE] = [28, 21]; // of the heading of the other texts, and of one of them
const WIDEST = 12; // nats at the end of a text's bar

/** @param {number[]} values */
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

export class Leak {
  drawn = "";
  /** @type {any} */
  now;
  /** @type {any} Two texts that differ in one word */
  two;
  isTwoLate = false; // whether these are the two before
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
    const { written, instead } = view.values;
    const two = view.answer("leak_pair", { leaky, written, instead });
    if (two) this.two = two.header ?? { refused: two.refused };
    this.isTwoLate = !two && Boolean(this.two);
    const state = [view.layout, leaky, texts.length, this.isTwoLate, JSON.stringify(this.two ?? "")].join(" ");
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
    const height = clamp(
      view.below(AROUND + TWO + (rows ? ROWS + LINE * rows : view.isProjected ? LARGER : 0), 80),
      80,
      260,
    );
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
    this.drawTwo(left);
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
      ? fill(
          now.leaky === "taught" ? words.leak_other_taught : now.isOwnText ? words.leak_other : words.leak_other_own,
          {
            title: view.header.title,
            other: title,
          },
        )
      : "";
    const how =
      now.leaky === "taught"
        ? fill(words.leak_how_taught, { steps: now.steps, seconds: now.seconds, dropped: fixed(mean(now.dropped)) })
        : fill(words.leak_how, { title, n: now.layers });
    right.append(this.switch());
    if (other) {
      const line = add(right, "p", "small");
      line.append(`${other} `);
      view.button(line, fill(words.back_to, { title: view.header.title }), () =>
        view.choose(now.leaky === "taught" && Leak.opens(view) ? { leaky: "taken" } : { lab: "paint" }),
      );
    }
    setText(add(right, "p", "mute small how"), how);
    this.keep(() => stage.replaceChildren(board));
  }

  /** A text that is being typed stays, as does its cursor. @param {() => void} act */
  keep(act) {
    const root = /** @type {ShadowRoot} */ (this.stage.getRootNode());
    const field = /** @type {HTMLInputElement | null} */ (root.activeElement?.closest(".texts input") ?? null);
    act();
    if (!field) return;
    const now = /** @type {HTMLInputElement} */ (
      this.stage.querySelector(`.texts input[aria-label="${field.ariaLabel}"]`)
    );
    now.value = field.value;
    now.focus();
    now.setSelectionRange(field.selectionStart, field.selectionEnd);
  }

  /** Two texts that differ in one word, and both can be written. Under the mask, what is before that word does not notice. @param {HTMLElement} left */
  drawTwo(left) {
    const { view, two } = this;
    const { palette } = view;
    const tones = { more: palette.ramp[3], less: palette.ahead[3], same: palette.mute };
    const heading = left.appendChild(el("h3", "", `${words.leak_pair} `));
    const of = this.isTwoLate ? "late" : ""; // numbers of the two texts before
    const said = heading.appendChild(el("small", `says ${of}`));
    if (!two) return void (said.textContent = words.loading);
    if (two.refused) said.textContent = two.refused;
    else {
      const changes = (/** @type {number} */ n) => (n ? counted(words.leak_pair_changes, n) : words.leak_pair_none);
      const [a, b] = two.noticed.map(changes);
      const before = counted(words.leak_pair_before, two.before);
      const told = two.noticed[0] || two.noticed[1] ? words.leak_pair_says : words.leak_pair_same;
      said.textContent = two.before ? `${fill(told, { before, a, b })} ` : "";
      heading.appendChild(el("small", "", words.leak_pair_how));
    }
    const list = add(left, "div", "guesses texts two");
    const asked = [view.values.written || this.now.text, view.values.instead];
    for (const i of [0, 1]) {
      const line = add(list, "div");
      const text = two.texts?.[i] ?? asked[i];
      if (view.isProjected) line.appendChild(this.around(i, text));
      else line.append(this.field(i, text));
      if (two.refused) continue;
      const [a, b] = two.chances[i];
      const number = el("s", of, `${apart(two.words[i])} `);
      const told = shares(a, b);
      const at = told.lastIndexOf("→") + 1;
      number.append(told.slice(0, at));
      number.appendChild(el("b", "", told.slice(at))).style.color = tones[way(a, b)];
      const bars = pair(a, b);
      if (of) bars.classList.add(of);
      line.append(bars, number);
    }
    if (view.values.written || view.values.instead)
      view.button(heading, words.leak_pair_reset, () => view.choose({ written: "", instead: "" }));
  }

  /** The changed word between those beside it, for the last row of a room. @param {number} i @param {string} text */
  around(i, text) {
    const span = el("span", "", text);
    const parts = text.split(/\s+/);
    const others = String(this.two?.texts?.[1 - i] ?? "").split(/\s+/);
    const at = parts.findIndex((part, k) => part !== others[k]);
    if (at < 0) return span;
    const from = Math.max(0, at - 2);
    span.textContent = `${from ? "… " : ""}${parts.slice(from, at).join(" ")} `;
    span.append(el("b", "", parts[at]), ` ${parts.slice(at + 1, at + 4).join(" ")}`);
    return span;
  }

  /** A text of the two, taken when it is changed. @param {number} i @param {string} text */
  field(i, text) {
    const field = el("input");
    Object.assign(field, { type: "text", maxLength: 400, value: text, spellcheck: false });
    field.ariaLabel = words.leak_pair_box[i];
    const { view } = this;
    field.addEventListener("change", () => {
      const two = this.two?.texts ?? ["", ""];
      // The other one stays as it is: a text of the room's own would follow the one that is written
      view.choose({ written: view.values.written, instead: two[1], [i ? "instead" : "written"]: field.value.trim() });
    });
    return field;
  }

  foot() {
    if (!this.now) return { ok: [], rest: [], legend: [] };
    const [own, leaky] = [mean(this.now.losses), mean(this.now.without)];
    const rest = [
      fill(words.leak_choice, {
        own: fixed(own),
        many: Math.exp(own).toFixed(0),
        leaky: fixed(leaky),
        few: fixed(Math.exp(leaky), 1),
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
