// Why ÷ √d: the variance of q·k against d, the largest weight against d, and a row of this model with the division and without.

import { apart, choice, clamp, counted, el, fill, fixed, percent, selectBox } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { canvas } from "./maps.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { entropy, weigh } from "./rules.js";
import { both, share, word } from "./numbers.js";
import { nodes, pair } from "./pairs.js";
import { named } from "./sheet.js";
import { table } from "../../../kit/browser/table.js";
import { across, below, curve } from "../../../kit/browser/picture/axes.js";
import { pointed } from "../../../kit/browser/language.js";

const AROUND = 470; // units of what stands above and below a chart
const IN_ROW = 6; // keys of the row
const PROJECTED = 4; // and for the last row of a room

export class Scale {
  /** @type {any} */
  now;
  drawn = "";

  static opens() {
    return {};
  }

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.stage = stage;
  }

  draw() {
    const { view, stage } = this;
    const { site, place, header } = view;
    const scores = view.scores(site, place.layer, place.head);
    const found = view.answer("scale", {});
    if (!found?.header || !scores) {
      view.say([[found?.refused ?? (view.remote.failed ? words.unreachable : words.loading), ""]]);
      this.drawn = "";
      return stage.replaceChildren();
    }
    const { n_key } = site;
    const row = scores.slice(place.query * n_key, (place.query + 1) * n_key);
    const mask = (site.mask(place.layer, place.head) ?? new Uint8Array(site.cells)).subarray(
      place.query * n_key,
      (place.query + 1) * n_key,
    );
    const own = weigh(row, mask, n_key).weights;
    const free = weigh(
      row.map((x) => x * Math.sqrt(header.d)),
      mask,
      n_key,
    ).weights;
    this.now = { header: found.header, own, free, bits: entropy(own), bits_free: entropy(free) };
    const labels = view.labels(site.query);
    /** @type {import("./types.js").Piece[]} */
    const q = place.query === labels.length - 1 ? [[labels[place.query], "q"]] : named(labels, place.query, "q");
    const said = header.divided
      ? pieces(words.scale_fact, {
          q,
          free: [share(Math.max(...free)), "b"],
          own: [share(Math.max(...own)), "b"],
          bits_free: [fixed(this.now.bits_free), "b"],
          bits: [fixed(this.now.bits), "b"],
        })
      : pieces(words.scale_none, { title: header.title });
    view.say(said);
    const state = [view.layout, place.layer, place.head, place.query, view.values.scale].join(" ");
    if (state !== this.drawn) this.build();
    this.drawn = state;
    Object.assign(stage.dataset, {
      own: Math.max(...own).toFixed(6),
      free: Math.max(...free).toFixed(6),
      entropy: found.header.own[2].toFixed(6),
      without: found.header.without[2].toFixed(6),
    });
  }

  build() {
    const { view, stage, now } = this;
    const { site, place, header } = view;
    const { palette } = view;
    const { spreads } = now.header;
    const three = el("div", "three");
    const charts = [
      {
        heading: words.scale_random,
        how: words.scale_random_how,
        lines: [1, 2],
        log: true,
        ticks: [1, 8, 64, 512],
        said: [words.scale_variance, words.scale_one],
      },
      {
        heading: words.scale_largest,
        how: words.scale_largest_how,
        lines: [3, 4],
        log: false,
        ticks: [0, 0.5, 1],
        said: [words.scale_all, words.scale_kept],
      },
    ];
    const width = view.narrow ? view.width : Math.min(420, (view.width - 48) / 3);
    for (const { heading, how, lines, log, ticks, said } of charts) {
      const part = three.appendChild(el("section"));
      const title = part.appendChild(el("h3"));
      title.append(el("b", "", heading), ` ${how}`);
      const [x0, tall] = [52, view.narrow ? 270 : clamp(view.below(AROUND), 180, 270)];
      const x = (/** @type {number} */ d) => x0 + ((width - x0 - 20) * Math.log2(d)) / 9;
      const y = (/** @type {number} */ v) => 10 + tall - (log ? (tall * Math.log2(clamp(v, 0.9, 600))) / 9 : tall * v);
      const svg = canvas(part, width, tall + 60, `${heading}, ${how}`, view.type);
      const say = (/** @type {number} */ tick) => (log ? String(tick) : `${tick * 100} %`);
      across(svg, ticks, { y, from: x0, to: width - 20, size: 13, say });
      below(svg, [1, 8, 64, 512], { x, y: tall + 30, size: 13 });
      write(svg, (x0 + width - 20) / 2, tall + 50, words.scale_axis, {
        anchor: "middle",
        size: 13,
        fill: palette.mute,
      });
      lines.forEach((column, i) => {
        const tone = i ? palette.proof : palette.query;
        const points = spreads.map((/** @type {number[]} */ one) => [x(one[0]), y(one[column])]);
        curve(svg, points, tone, 2.5, i ? "6 3" : undefined);
        for (const one of spreads) draw(svg, "circle", { cx: x(one[0]), cy: y(one[column]), r: 3.5, fill: tone });
        const at = log
          ? i
            ? [x(20), y(1) - 9, "start"]
            : [x(64) - 14, y(64) - 10, "end"]
          : i
            ? [x(512), y(spreads.at(-1)[4]) - 10, "end"]
            : [x(64), y(0.9) - 12, "end"];
        write(svg, at[0], at[1], said[i], { anchor: at[2], size: 13, fill: tone });
      });
    }
    const part = three.appendChild(el("section"));
    const line = part.appendChild(el("div", "line"));
    const title = line.appendChild(el("h3"));
    const labels = view.labels(site.query);
    title.append(
      el("b", "", words.scale_this),
      ` ${fill(words.scale_this_how, { layer: place.layer, head: place.head })}`,
    );
    const tokens = labels.map((label, q) => /** @type {[string, string]} */ ([String(q), `${apart(label)} · ${q}`]));
    line.append(selectBox(words.scale_row, tokens, String(place.query), (query) => view.choose({ query })));
    const options = Object.entries(words.scale_on).map(
      ([id, label]) => /** @type {[string, string]} */ ([id, fill(String(label), { d: header.d })]),
    );
    line.append(choice(words.scale_switch, options, view.values.scale, (id) => view.choose({ scale: id })));
    const bars = part.appendChild(el("div", "guesses texts sides"));
    const keys = view.labels(site.key);
    const most = view.isProjected ? PROJECTED : IN_ROW;
    const weightiest = keys
      .map((_, k) => k)
      .sort((a, b) => now.own[b] - now.own[a])
      .slice(0, most);
    const line_ = (
      /** @type {HTMLElement} */ box,
      /** @type {Node[]} */ name,
      /** @type {number} */ a,
      /** @type {number} */ b,
    ) => {
      const label = el("span");
      label.append(...name);
      box.appendChild(el("div")).append(label, pair(a, b), el("s", "", both(share(a), share(b))));
    };
    for (const k of weightiest) line_(bars, nodes(word(keys, k, "k")), now.own[k], now.free[k]);
    const rest = keys.map((_, k) => k).filter((k) => !weightiest.includes(k));
    const total = (/** @type {ArrayLike<number>} */ x) => rest.reduce((sum, k) => sum + x[k], 0);
    if (rest.length)
      line_(bars, [el("span", "mute", counted(words.others, rest.length))], total(now.own), total(now.free));
    const next = this.nextWords();
    if (next.length) {
      part.appendChild(el("h3", "next")).append(el("b", "", words.next_word), ` ${words.scale_next_how}`);
      const box = part.appendChild(el("div", "guesses texts sides"));
      for (const [label, a, b] of next.slice(0, view.isProjected ? 2 : 4)) line_(box, [el("b", "", label)], a, b);
    }
    const note = el("p", "small");
    note.textContent = this.note();
    stage.replaceChildren(three, note);
  }

  // The likeliest next word, then those of the run that divides nowhere: each with its chance in both
  /** @returns {[label: string, own: number, without: number][]} */
  nextWords() {
    const { header: found } = this.now;
    const [first] = this.view.header.outcome.words;
    if (!first || !this.view.header.divided || this.view.header.classes) return [];
    const others = found.outcome.words.map(
      (/** @type {[number, string, number]} */ [id, label, p], /** @type {number} */ i) => [
        id,
        label.trim(),
        found.before[i],
        p,
      ],
    );
    const all = [[first[0], first[1].trim(), first[2], found.outcome.asked[0]], ...others];
    const apart = all.filter(([id], i) => all.findIndex(([other]) => other === id) === i);
    return apart.map(([, label, a, b]) => [label, a, b]);
  }

  get headGrid() {
    return this.view.site;
  }

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    return this.view.move(down, right);
  }

  note() {
    const { header: found } = this.now;
    const { header } = this.view;
    const said =
      fill(words.scale_here, { d: header.d, raw: found.own[0].toFixed(0), scaled: pointed(found.own[1].toFixed(1)) }) +
      fill(words.scale_run, { a: pointed(found.own[2].toFixed(2)), b: pointed(found.without[2].toFixed(2)) });
    const [word] = header.outcome.words;
    if (!header.divided) return "";
    if (!word || found.outcome.loss === null || header.outcome.loss === null) return `${said}.`;
    return (
      said +
      fill(words.scale_next, {
        w: word[1].trim(),
        a: percent(word[2]),
        b: percent(found.outcome.asked[0]),
        c: fixed(header.outcome.loss),
        e: fixed(found.outcome.loss),
      })
    );
  }

  foot() {
    if (!this.now) return { ok: [], rest: [], legend: [] };
    const ratios = this.now.header.spreads.map((/** @type {number[]} */ one) => one[2]);
    return {
      ok: [fill(words.scale_ok, { low: fixed(Math.min(...ratios)), high: fixed(Math.max(...ratios)) })],
      rest: [],
      legend: [],
    };
  }

  rows() {
    return this.now.header.spreads.map((/** @type {number[]} */ one) => one.map((x) => Number(x.toPrecision(5))));
  }

  // The row of this model, every key of it
  cells() {
    return this.view
      .labels(this.view.site.key)
      .map((key, k) => [`${key} ${k}`, ...[this.now.own[k], this.now.free[k]].map((x) => Number(x.toPrecision(6)))]);
  }

  /** @param {HTMLElement} box */
  table(box) {
    if (!this.now) return box.replaceChildren();
    box.setAttribute("aria-label", words.scale_random);
    const { layer, head, query } = this.view.place;
    const row = fill(words.scale_table, { q: this.view.labels(this.view.site.query)[query], layer, head });
    box.replaceChildren(
      table(words.scale_random, words.scale_columns, this.rows()),
      table(row, words.scale_row_columns, this.cells()),
    );
  }

  /** @returns {import("./types.js").Files} */
  files() {
    if (!this.now) return { ...this.view.header.about, tables: [] };
    return {
      ...this.now.header.about,
      tables: [
        [words.csv_numbers, "scale", words.scale_columns, this.rows()],
        [words.csv_cells, "row", words.scale_row_columns, this.cells()],
      ],
    };
  }
}
