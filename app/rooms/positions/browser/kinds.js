// Other kinds of positions: sinusoidal, learned, ALiBi, buckets of T5, and none, each on a model that has it or as its paper's rule.

import { add, button, el, fill, fixed, number, percent, phrase, scientific, worded } from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { json, unpack } from "../../../kit/browser/messages.js";
import { across, below, curve } from "../../../kit/browser/picture/axes.js";
import { paintOn, pixels } from "../../../kit/browser/picture/canvas.js";
import { rising, signed } from "../../../kit/browser/picture/scale.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { picture } from "./draw.js";
import { chips, FindingLab, FINDINGS, hostOf, whose } from "./findings.js";
import { cosine } from "./numbers.js";
import { readMaps, readSwap } from "./swap.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Rows} Rows */
/** @typedef {import("./types.js").Known} Known */
/** @typedef {import("./types.js").Header} Header */
const [PLACES, NUMBERS] = [64, 128]; // rows and columns of a table that are drawn
const WAVES = [0, 4, 10, 20];
const REACH = 32; // words apart, of the mean cosine
const MOST_WORDS = 20; // of a map
/** @type {Record<string, string>} */
const KIND = { sin: "sinusoidal", lrn: "learned", none: "rotary" };

/** @param {Uint8Array} bytes @returns {Rows} */
function readRows(bytes) {
  const [header, body] = unpack(bytes);
  return { ...header, values: new Float32Array(body) };
}

export class Kinds extends FindingLab {
  ownFindings = FINDINGS.kinds;

  get shownFinding() {
    const find = this.view.value("find");
    return FINDINGS.kinds.includes(find) ? find : "sin";
  }

  /** @param {string} find */
  take(find) {
    this.view.choose({ find });
  }

  // The run on which a kind is shown: the visitor's own, where it has these positions
  /** @param {string} kind */
  of(kind) {
    const host = hostOf(this.view, kind);
    return host && !host.refused ? host : null;
  }

  // Without positions: the visitor's own model, if it writes on
  get plain() {
    const { header } = this.view;
    return header.kind === "decoder" ? header : this.of("rotary");
  }

  /** @param {Header | null} host @returns {Known | null} */
  known(host) {
    const found = host && this.view.ask("positions/known", {}, json, host.key);
    return found && !found.refused ? found : null;
  }

  /** @param {Header | null} host @returns {Rows | null} */
  rows(host) {
    if (!host) return null;
    const found = this.view.ask(
      "positions/rows",
      { stack: host.stacks[0], first: 0, rows: PLACES },
      readRows,
      host.key,
    );
    return found && !found.refused ? found : null;
  }

  get rules() {
    return this.known(this.view.header)?.rules ?? null;
  }

  /** @param {string} rule */
  loss(rule) {
    const host = this.plain;
    const found = host && this.view.ask("positions/loss", { rule, factor: 1 }, json, host.key);
    return found?.refused ? null : found;
  }

  // Two words that change places, without what tells order: what is left of it
  /** @param {string} cond */
  swapped(cond) {
    const host = this.plain;
    const stack = host?.stacks[0] ?? "";
    const found =
      host && this.view.ask("positions/swap", { lab: "swap", find: "", swap: "", stack, cond }, readSwap, host.key);
    return found && !found.refused ? found : null;
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    const { view, shownFinding } = this;
    this.main.classList.toggle("narrow", view.narrow);
    chips(
      this.chips,
      FINDINGS.kinds,
      shownFinding,
      (id) => this.take(id),
      (id) => worded(words.kinds_why, id),
    );
    this.picture.replaceChildren();
    this.right.replaceChildren();
    const host = shownFinding === "none" ? this.plain : shownFinding in KIND ? this.of(KIND[shownFinding]) : null;
    this.why.replaceChildren(
      ...(host ? whose(view, host, "kinds", shownFinding) : []),
      ` ${worded(words.kinds_why, shownFinding)}`,
    );
    const refused =
      shownFinding in KIND && shownFinding !== "none" ? hostOf(view, KIND[shownFinding])?.refused : undefined;
    if (refused) this.picture.append(el("p", "refused", refused));
    else if (shownFinding === "sin") this.sinusoidal(host);
    else if (shownFinding === "lrn") this.learned(host);
    else if (shownFinding === "alibi") this.alibi();
    else if (shownFinding === "t5") this.buckets();
    else this.none(host);
  }

  // Cells of a picture as one image, beneath the SVG that names its rows and columns
  /** @param {number} left @param {number} width @param {number} height @param {number} rows @param {number} columns @param {(i: number, j: number) => number} value from −1 to 1 */
  cells(left, width, height, rows, columns, value) {
    const { view } = this;
    const box = add(this.picture, "div", "cells");
    const canvas = add(box, "canvas");
    canvas.style.left = `${left}px`;
    const tone = signed(view.palette);
    /** @type {Map<string, number>} */
    const packs = new Map();
    const image = pixels(rows, columns, (at) => {
      const { fill: colour } = tone(value(Math.floor(at / columns), at % columns));
      let packed = packs.get(colour);
      if (packed === undefined) {
        packed = packedOf(colour);
        packs.set(colour, packed);
      }
      return packed;
    });
    paintOn(canvas, width, height, (context) => {
      context.imageSmoothingEnabled = false;
      context.drawImage(image, 0, 0, width, height);
    });
    return box;
  }

  /** @param {Header | null} host */
  sinusoidal(host) {
    const rows = this.rows(host);
    if (!rows) return;
    const { unit } = this.view;
    const title = this.title(words.place_down, words.number_right);
    const [left, wide, tall] = [34 * unit, this.wide - 34 * unit, this.tall(title)];
    const columns = Math.min(NUMBERS, rows.columns);
    const box = this.cells(left, wide, tall, rows.rows, columns, (i, j) => 0.8 * rows.values[i * rows.columns + j]);
    const svg = picture(box, left + wide, tall + 26 * unit, this.said());
    svg.setAttribute("role", "img");
    const cell = wide / columns;
    const size = 13 * unit;
    for (const place of [0, 16, 32, 48, rows.rows - 1])
      write(svg, left - 6 * unit, ((place + 0.5) / rows.rows) * tall + 5 * unit, String(place), {
        anchor: "end",
        class: "mt",
        size,
      });
    const shown = WAVES.filter((j) => j < columns);
    for (const j of shown)
      draw(svg, "rect", {
        x: left + j * cell - 1,
        y: -1,
        width: cell + 2,
        height: tall + 2,
        fill: "none",
        stroke: "var(--query)",
        "stroke-width": 2,
      });
    for (const j of [...shown, 64, 96].filter((j) => j < columns))
      write(svg, left + (j + 0.5) * cell, tall + 18 * unit, String(j), {
        anchor: "middle",
        class: shown.includes(j) ? "qt b" : "mt",
        size,
      });
    const waves = heading(words.four_waves, fill(words.four_numbers, { n: shown.join(", ") }));
    this.right.append(waves);
    const width = Math.min((this.view.isProjected ? 330 : 400) * unit, this.view.width - 16);
    const each = 36 * unit;
    const drawn = picture(this.right, width, each * shown.length, words.four_waves);
    drawn.setAttribute("role", "img");
    shown.forEach((j, at) => {
      const y = (at + 0.5) * each;
      write(drawn, 0, y + 5 * unit, String(j), { class: "qt b", size });
      /** @type {[number, number][]} */
      const points = Array.from({ length: rows.rows }, (_, i) => [
        30 * unit + (i / (rows.rows - 1)) * (width - 32 * unit),
        y - rows.values[i * rows.columns + j] * each * 0.4,
      ]);
      curve(drawn, points, "var(--ink)", 1.8);
    });
    this.beside(host);
  }

  // F21 and F9: what positions put beside the word would take, and how near two rows are
  /** @param {Header | null} host */
  beside(host) {
    const known = this.known(host);
    if (!known || !host) return;
    const { added, beside, width } = known.beside;
    const said = el("p");
    said.append(
      ...phrase(words.beside_said, { how: [words.beside_added, ""], d: number(width), double: number(2 * width) }),
    );
    const list = el("dl", "numbers");
    const line = (/** @type {string} */ name, /** @type {string} */ value) =>
      list.append(el("dt", "", name), el("dd", "", value));
    const millions = (/** @type {number} */ n) => fixed(n / 1e6);
    line(fill(words.beside_layers, { model: host.model }), fill(words.beside_millions, { n: millions(added) }));
    line(words.beside_put, fill(words.beside_times, { n: millions(beside), times: fixed(beside / added) }));
    this.right.append(heading(words.beside_title), said, list);
    const near = el("dl", "numbers screen");
    for (const kind of ["sinusoidal", "learned"]) {
      const other = this.of(kind);
      const stack = this.known(other)?.stacks[0];
      if (!other || !stack?.closest) continue;
      const name = fill(words.rows_of, {
        model: other.model,
        kind: worded(words.kinds, kind).toLowerCase(),
        n: number(stack.compared),
      });
      near.append(el("dt", "", name), el("dd", "", fill(words.nearest, { d: fixed(stack.closest[2]) })));
    }
    if (near.children.length) {
      const title = heading(words.mistaken);
      title.classList.add("screen");
      this.right.append(title, near);
    }
    this.more("two", fill(words.more_rows, {}));
  }

  /** @param {string} lab @param {string} text */
  more(lab, text) {
    const kind =
      this.shownFinding === "t5" ? "relative" : this.shownFinding === "alibi" ? "alibi" : this.view.header.position;
    add(this.right, "p", "line").append(button(text, "quiet", () => this.view.choose({ lab, find: "", kind })));
  }

  /** @param {Header | null} host */
  learned(host) {
    const rows = this.rows(host);
    const known = this.known(host)?.stacks[0];
    if (!rows || !known) return;
    const { view } = this;
    const { unit } = view;
    const size = 13 * unit;
    const title = this.title(words.rows_alike);
    const left = 34 * unit;
    const side = Math.min(this.wide - left - 8, this.tall(title));
    const row = (/** @type {number} */ i) => rows.values.subarray(i * rows.columns, (i + 1) * rows.columns);
    const box = this.cells(left, side, side, rows.rows, rows.rows, (i, j) => cosine(row(i), row(j)));
    const apart = view.narrow ? 0 : left + side + 60 * unit;
    const svg = picture(box, view.narrow ? left + side : this.wide, side + 26 * unit, this.said());
    svg.setAttribute("role", "img");
    for (const place of [0, 16, 32, 48, rows.rows - 1]) {
      const at = ((place + 0.5) / rows.rows) * side;
      write(svg, left - 6 * unit, at + 5 * unit, String(place), { anchor: "end", class: "mt", size });
      write(svg, left + at, side + 18 * unit, String(place), { anchor: "middle", class: "mt", size });
    }
    const alike = known.alike ?? [];
    if (!view.narrow && alike.length) {
      const right = this.wide - 10 * unit;
      const waves = this.known(this.of("sinusoidal"))?.stacks[0].alike ?? [];
      const y = (/** @type {number} */ value) => side * (1 - (value + 0.1) / 1.15);
      const x = (/** @type {number} */ d) => apart + (d / REACH) * (right - apart);
      write(svg, apart - 20 * unit, 10 * unit, words.cosine_apart, { class: "b", size });
      across(svg, [0, 0.5, 1], { y, from: apart, to: right, size });
      below(svg, [0, 8, 16, 32], { x, y: side + 18 * unit, size });
      if (waves.length)
        curve(
          svg,
          waves.slice(0, REACH + 1).map((value, d) => [x(d), y(value)]),
          "var(--mute)",
          2,
          "6 4",
        );
      curve(
        svg,
        alike.slice(0, REACH + 1).map((value, d) => [x(d), y(value)]),
        "var(--bar)",
        3,
      );
      if (waves.length)
        write(svg, x(13), y(waves[13]) - 10 * unit, worded(words.kinds, "sinusoidal").toLowerCase(), {
          class: "mt",
          size,
        });
      write(svg, x(9), y(alike[9] ?? 0) + 22 * unit, worded(words.kinds, "learned").toLowerCase(), {
        class: "b plus",
        size,
      });
    }
    this.beside(host);
  }

  alibi() {
    const { view, rules } = this;
    if (!rules) return;
    const { unit } = view;
    const size = 13 * unit;
    const { slopes } = rules;
    const title = this.title(words.added_score);
    const [left, wide, tall] = [40 * unit, this.wide, this.tall(title)];
    const svg = picture(this.picture, wide, tall + 44 * unit, this.said());
    svg.setAttribute("role", "img");
    const right = wide - 74 * unit;
    const most = PLACES * slopes[0];
    const x = (/** @type {number} */ d) => left + (d / PLACES) * (right - left);
    const y = (/** @type {number} */ value) => 8 * unit + (tall * -value) / (most * 1.05);
    across(
      svg,
      [0, -8, -16, -24, -32].filter((value) => -value <= most),
      { y, from: left, to: right, size },
    );
    below(svg, [0, 16, 32, 48, 64], { x, y: tall + 24 * unit, size });
    write(svg, (left + right) / 2, tall + 41 * unit, words.words_apart, { anchor: "middle", class: "mt", size });
    const tone = signed(view.palette);
    let above = Infinity;
    slopes.forEach((slope, head) => {
      curve(
        svg,
        [
          [x(0), y(0)],
          [x(PLACES), y(-PLACES * slope)],
        ],
        tone(-(0.95 - (0.6 * head) / slopes.length)).fill,
        3 * unit,
      );
      const at = y(-PLACES * slope);
      if (above - at < 14 * unit) return;
      above = at;
      write(svg, right + 6 * unit, at + 5 * unit, fill(words.head_n, { head }), { size });
    });
    const box = el("div", "numbers bars");
    slopes.forEach((slope, head) => {
      const bar = el("i", "less");
      bar.style.width = `${(100 * slope) / slopes[0]}%`;
      const track = el("span", "track");
      track.append(bar);
      box.append(el("span", "name", fill(words.head_n, { head })), track, el("b", "", `1⁄${Math.round(1 / slope)}`));
    });
    this.right.append(heading(words.taken_off), box, el("p", "mute", words.alibi_note));
    this.more("two", words.more_rule);
  }

  buckets() {
    const { view, rules } = this;
    if (!rules) return;
    const { unit } = view;
    const size = 13 * unit;
    const { wide: buckets, decoder, far } = rules;
    const title = this.title(words.bucket_title);
    const [left, wide, tall] = [40 * unit, this.wide, this.tall(title)];
    const svg = picture(this.picture, wide, tall + 44 * unit, this.said());
    svg.setAttribute("role", "img");
    const step = (wide - left - 8 * unit) / buckets.length;
    const x = (/** @type {number} */ d) => left + (d + far + 0.5) * step;
    const y = (/** @type {number} */ bucket) => 8 * unit + tall * (1 - bucket / 32);
    across(svg, [0, 8, 16, 24, 31], { y, from: left, to: wide, size });
    curve(
      svg,
      [
        [x(0), 8 * unit],
        [x(0), 8 * unit + tall],
      ],
      "var(--hatch)",
      1.4,
      "4 4",
    );
    buckets.forEach((bucket, i) => {
      const d = i - far;
      draw(svg, "rect", {
        x: x(d) - step / 2,
        y: y(bucket) - 3 * unit,
        width: step + 0.6,
        height: 6 * unit,
        fill: d < 0 ? "var(--query)" : d ? "var(--key)" : "var(--ink)",
      });
    });
    const some = view.narrow ? [-far, -far / 2, 0, far / 2, far] : [-far, -64, -32, -8, 8, 32, 64, far];
    for (const d of some)
      write(svg, Math.min(x(d), wide - 14 * unit), tall + 26 * unit, String(d).replace("-", "−"), {
        anchor: "middle",
        class: "mt",
        size,
      });
    write(svg, (left + wide) / 2, tall + 42 * unit, words.distance_axis, { anchor: "middle", class: "mt", size });
    write(svg, x(-68), y(19), words.earlier, { anchor: "middle", class: "qt b", size: 14 * unit });
    write(svg, x(66), y(13), words.later, { anchor: "middle", class: "kt b", size: 14 * unit });
    const table = el("div", "turned three");
    table.append(...words.bucket_columns.map((text) => el("span", "mute", text)));
    for (const d of [1, 4, 7, 8, 16, 32, 64, 128])
      table.append(el("span", "", String(d)), el("b", "", String(buckets[far - d])), el("b", "", String(decoder[d])));
    this.right.append(heading(words.which_bucket), table, el("p", "mute", words.bucket_note));
    this.more("two", words.more_rule);
  }

  /** @param {Header | null} host */
  none(host) {
    const drop = this.swapped("drop");
    if (!host) return;
    const [own, dropped] = [this.loss("none"), this.loss("drop")];
    const box = el("div", "numbers bars");
    const most = Math.max(6.5, own?.loss ?? 0, dropped?.loss ?? 0);
    for (const [name, loss, look] of /** @type {[string, {loss: number} | null, string][]} */ ([
      [worded(words.rule_name, "none"), own, ""],
      [worded(words.rule_name, "drop"), dropped, "less"],
    ])) {
      const bar = el("i", look || "plain");
      bar.style.width = `${(100 * (loss?.loss ?? 0)) / most}%`;
      const track = el("span", "track");
      track.append(bar);
      box.append(el("span", "name", name), track, el("b", "", loss ? fixed(loss.loss) : words.measuring));
    }
    const free = this.swapped("free");
    const exact = el("p");
    if (free) exact.append(...phrase(words.left_free, { d: [scientific(free.apart), ""] }));
    this.right.append(
      heading(words.loss_of, words.of_alice),
      box,
      heading(words.order_left),
      el("p", "", words.left_mask),
      exact,
    );
    const go = button(words.see_swap, "quiet", () =>
      this.view.choose({ lab: "swap", find: "free", cond: "free", layer: "", head: "" }),
    );
    add(this.right, "p", "line").append(go);
    if (!drop) return;
    const openings = this.view.ask("positions/dials", {}, json, host.key);
    const at = openings && !openings.refused && openings.fast ? openings.fast : host.opening;
    const site = host.sites.find((one) => one.id !== "cross") ?? host.sites[0];
    const labels = host.tokens[site.query]?.labels ?? [];
    const query = at.query ?? labels.length - 1;
    const [a, b] = drop.pair;
    const maps = this.view.ask(
      "positions/swapped",
      { other: drop.before, record: site.records[at.layer], head: at.head, query, a, b },
      readMaps,
      host.key,
    );
    if (!maps || maps.refused) return;
    this.maps(maps, labels, at);
  }

  /** @param {import("./swapmaps.js").Pair} maps @param {string[]} labels @param {{layer: number, head: number}} at */
  maps(maps, labels, at) {
    const { view } = this;
    const { unit } = view;
    const size = 13 * unit;
    const n = Math.min(maps.places.length, MOST_WORDS);
    const title = this.title(words.two_maps, fill(words.head, at));
    const left = 62 * unit;
    const gap = 30 * unit;
    const each = Math.min((this.wide - left - gap - 4) / 2 / n, 26 * unit, this.tall(title) / n);
    const svg = picture(this.picture, left + 2 * n * each + gap, n * each + 26 * unit, this.said());
    svg.setAttribute("role", "img");
    const tone = rising(view.palette);
    [maps.before, maps.after].forEach((map, which) => {
      const x0 = left + which * (n * each + gap);
      write(svg, x0, 14 * unit, worded(words.rule_name, which ? "drop" : "none"), { class: "b", size });
      let most = 0.1; // the first word, on which heads rest, is left out of the scale
      for (let q = 1; q < n; q++) for (let k = 1; k <= q; k++) most = Math.max(most, map[q * maps.places.length + k]);
      for (let q = 0; q < n; q++) {
        const y = 24 * unit + q * each;
        if (!which)
          write(svg, left - 6 * unit, y + each / 2 + 4 * unit, indexed(labels, maps.places[q]), {
            anchor: "end",
            size: Math.min(size, each),
          });
        for (let k = 0; k < n; k++) {
          if (!maps.allowed[q * maps.places.length + k]) continue;
          const value = map[q * maps.places.length + k];
          const x = x0 + k * each;
          if (!k) {
            draw(svg, "rect", {
              x: x + 1,
              y: y + each * 0.16,
              width: each - 2,
              height: each * 0.68,
              rx: 2,
              fill: "var(--line)",
            });
            draw(svg, "rect", {
              x: x + 1,
              y: y + each * 0.16,
              width: (each - 2) * value,
              height: each * 0.68,
              rx: 2,
              fill: "var(--hatch)",
            });
          } else
            draw(svg, "rect", {
              x: x + 0.8,
              y: y + 0.8,
              width: each - 1.6,
              height: each - 1.6,
              rx: 2,
              fill: tone(Math.min(1, value / most)).fill,
            });
        }
      }
      write(svg, x0 + n * each, 24 * unit + each * 1.6, fill(words.darkest, { p: percent(most) }), {
        anchor: "end",
        class: "mt",
        size,
      });
    });
  }

  arrow() {
    return false;
  }

  tools() {
    return [];
  }

  // ------------------------------------------------------------------ words

  said() {
    return this.fact()
      .map((node) => node.textContent)
      .join("");
  }

  status() {
    const { shownFinding } = this;
    const text = this.said();
    return {
      finding: shownFinding,
      pending: text === "" || (shownFinding === "none" && !this.loss("drop")),
      closest: this.known(this.of("sinusoidal"))?.stacks[0].closest?.[2] ?? "",
    };
  }

  /** @returns {Node[]} */
  fact() {
    const { shownFinding, rules } = this;
    if (shownFinding === "sin") {
      const stack = this.known(this.of("sinusoidal"))?.stacks[0];
      if (!stack?.closest) return [];
      return phrase(words.fact_sin, { n: number(stack.compared), d: [fixed(stack.closest[2]), ""] });
    }
    if (shownFinding === "lrn") {
      const host = this.of("learned");
      const stack = this.known(host)?.stacks[0];
      const alike = stack?.alike;
      if (!host || !stack || !alike) return [];
      const [near, far] = wave(alike.slice(0, REACH));
      const parts = { model: host.model, n: number(stack.n_ctx), last: number(stack.n_ctx) };
      if (!near) return phrase(words.fact_lrn_plain, parts);
      const cosines = {
        far: [String(far), ""],
        near: [String(near), ""],
        x: [pointed(alike[far].toFixed(2)), ""],
        y: [pointed(alike[near].toFixed(2)), ""],
      };
      return phrase(words.fact_lrn, { ...parts, ...cosines });
    }
    if (!rules) return [];
    if (shownFinding === "alibi") {
      const { slopes } = rules;
      const say = (/** @type {number} */ slope) => /** @type {[string, string]} */ ([`1⁄${Math.round(1 / slope)}`, ""]);
      return phrase(words.fact_alibi_score, {
        first: say(slopes[0]),
        n: slopes.length - 1,
        last: say(slopes[slopes.length - 1]),
      });
    }
    if (shownFinding === "t5") {
      const { wide, far, exact } = rules;
      const last = wide[0];
      let from = far;
      while (from > 1 && wide[far - from + 1] === last) from--;
      return phrase(words.fact_t5, {
        n: [String(Math.max(...wide) + 1), ""],
        exact: exact - 1,
        from: [String(from), ""],
      });
    }
    const [own, dropped] = [this.loss("none"), this.loss("drop")];
    const host = this.plain;
    if (!host) return [];
    if (!own || !dropped) return phrase(words.fact_none_waits, { model: host.model });
    return phrase(words.fact_none, {
      model: host.model,
      x: [fixed(own.loss), ""],
      y: [fixed(dropped.loss), ""],
    });
  }

  foot() {
    return { proof: "", facts: words.foot_kinds };
  }

  tables() {
    const { shownFinding, rules } = this;
    if (shownFinding === "sin" || shownFinding === "lrn") {
      const rows = this.rows(this.of(KIND[shownFinding]));
      if (!rows) return [];
      const all = Array.from({ length: rows.rows }, (_, i) =>
        WAVES.filter((j) => j < rows.columns).map((j) => rows.values[i * rows.columns + j]),
      );
      const columns = [words.table_values_columns[0], ...WAVES.map((j) => fill(words.feature_n, { feature: j }))];
      return [{ title: words.table_values, name: "rows", columns, rows: all.map((row, i) => [i, ...row]) }];
    }
    if (shownFinding === "alibi" && rules)
      return [
        {
          title: words.taken_off,
          name: "slopes",
          columns: words.table_slopes_columns,
          rows: rules.slopes.map((slope, i) => [i, slope]),
        },
      ];
    if (shownFinding === "t5" && rules)
      return [
        {
          title: words.table_buckets,
          name: "buckets",
          columns: words.table_buckets_columns,
          rows: rules.wide.map((bucket, i) => [i - rules.far, bucket]),
        },
      ];
    const losses = [
      ["none", this.loss("none")],
      ["drop", this.loss("drop")],
    ];
    const rows = losses.flatMap(([rule, loss]) =>
      loss ? [[worded(words.rule_name, String(rule)), Number(loss.loss)]] : [],
    );
    return [{ title: words.loss_of, name: "losses", columns: words.table_losses_columns, rows }];
  }

  snippet() {
    const { shownFinding, view } = this;
    if (shownFinding === "alibi" || shownFinding === "t5") return words.snippet_paper;
    if (shownFinding === "none")
      return fill(words.snippet_stretch, { ...(this.plain ?? view.header).about, rule: "none", factor: 1 });
    const host = this.of(KIND[shownFinding]) ?? view.header;
    return fill(words.snippet_rows, { ...host.about, stack: host.stacks[0] });
  }
}

/** @param {string} bold @param {string} [rest] */
function heading(bold, rest = "") {
  const title = el("h2");
  title.append(el("b", "", bold), ` ${rest}`);
  return title;
}

// Of cosines by distance, the first at which rows are least alike and the next at which they are most, further on; 0 where they
// fall all the way
/** @param {number[]} alike @returns {[near: number, far: number]} */
export function wave(alike) {
  let near = 1;
  while (near + 1 < alike.length && alike[near + 1] <= alike[near]) near++;
  let far = near;
  while (far + 1 < alike.length && alike[far + 1] >= alike[far]) far++;
  return far > near ? [near, far] : [0, 0];
}

// A colour of the palette as a canvas keeps it
/** @param {string} colour */
function packedOf(colour) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0];
}
