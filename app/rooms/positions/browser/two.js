// Two positions: the model's own table with two rows held, how alike they are, single features, and where the table ends.
// Models without a table have their rule over distance here; no sinusoid is drawn for a model that has none.

import { cover } from "../../../kit/browser/cover.js";
import { WORDS as kit } from "../../../kit/browser/words.js";
import { add, button, choice, clamp, el, fill, fixed, number, phrase, worded } from "../../../kit/browser/dom.js";
import { json, unpack } from "../../../kit/browser/messages.js";
import { WORDS as words } from "./constants.js";
import { ticks } from "../../../kit/browser/picture/scale.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { Drags, elsewhere, grip, handle, picture } from "./draw.js";
import { ends, trade } from "./ends.js";
import { Heat, WINDOW } from "./heat.js";
import { cosine, lessAlike } from "./numbers.js";
import { rule } from "./rule.js";
import { across, below, curve, drop } from "../../../kit/browser/picture/axes.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Rows} Rows */
const KINDS = ["learned", "sinusoidal", "rotary", "alibi", "relative"];
const DASHES = ["none", "7 3", "2 3", "9 3 2 3", "4 2", "12 4"];
const MOST_FEATURES = 6;
const AXIS = 44; // units of the design below a curve
const FEATURES = 76; // and of what stands around the one below it

/** @param {Uint8Array} bytes @returns {Rows} */
function readRows(bytes) {
  const [header, body] = unpack(bytes);
  return { ...header, values: new Float32Array(body) };
}

export class Two {
  /** @type {{left: number, step: number} | null} And in the curve */
  curve = null;
  /** @type {Element | null} */
  curveBox = null;
  typed = ""; // in the box for another feature
  isTradeOpen = true;
  hasHeads = false;

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
    this.host = view.labPlace;
    this.heat = new Heat(view);
    new Drags(view, (name, event) => this.drag(name, event));
  }

  // ------------------------------------------------------------------ what is known

  get kind() {
    return this.view.value("kind");
  }

  get isOwn() {
    return this.kind === this.view.header.position;
  }

  get hasTable() {
    return this.isOwn && (this.kind === "learned" || this.kind === "sinusoidal");
  }

  get known() {
    return this.view.ask(
      "positions/known",
      {},
      /** @type {(bytes: Uint8Array) => import("./types.js").Known} */ (json),
    );
  }

  get stack() {
    const known = this.known;
    return known && !known.refused
      ? (known.stacks.find((stack) => stack.stack === this.view.value("stack")) ?? known.stacks[0])
      : null;
  }

  get first() {
    return Math.min(this.view.number("first"), Math.max(0, this.view.header.n_ctx - 1));
  }

  get rows() {
    const found = this.view.ask(
      "positions/rows",
      { stack: this.view.value("stack"), first: this.first, rows: WINDOW },
      readRows,
    );
    return found && !found.refused ? found : null;
  }

  // One row of the table, in the window or fetched alone; null while it is on its way
  /** @param {number} at */
  row(at) {
    const rows = this.rows;
    if (!rows) return null;
    if (at >= rows.first && at < rows.first + rows.rows)
      return rows.values.subarray((at - rows.first) * rows.columns, (at - rows.first + 1) * rows.columns);
    const one = this.view.ask("positions/rows", { stack: this.view.value("stack"), first: at, rows: 1 }, readRows);
    return one && !one.refused ? one.values : null;
  }

  /** @returns {[i: number, j: number]} */
  get ij() {
    return [this.view.number("i"), this.view.number("j")];
  }

  /** @param {number} i @param {number} j */
  alike(i, j) {
    const [a, b] = [this.row(i), this.row(j)];
    return a && b ? cosine(a, b) : null;
  }

  get features() {
    return this.view.value("features").split(",").map(Number);
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    const { view, host } = this;
    host.replaceChildren();
    const line = add(host, "div", "kinds");
    /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
    const kinds = KINDS.map((kind) => [
      kind,
      kind === view.header.position
        ? fill(words.kind_own, { kind: worded(words.kinds, kind), model: view.header.model })
        : worded(words.kinds, kind),
    ]);
    line.append(choice(words.kind, kinds, this.kind, (kind) => view.choose({ kind })));
    const known = this.known;
    if (known?.refused) {
      add(host, "p", "refused").textContent = known.refused;
      return;
    }
    const isRule = this.kind === "alibi" || this.kind === "relative";
    add(line, "span", "mute").textContent = this.isOwn ? worded(words.own, this.kind) : isRule ? words.rule_alone : "";
    if (!known) return;
    if (isRule) return rule(view, host, this.isOwn && this.stack ? this.stack : null, known.rules, this.kind);
    if (!this.isOwn) return elsewhere(view, words.elsewhere, this.kind);
    if (this.kind === "rotary") return this.periods();
    this.draws();
  }

  // Rotary: no table, but how many positions each pair of features takes for one full turn
  periods() {
    const { view, host } = this;
    const { unit } = view;
    const periods = this.stack?.periods ?? [];
    const box = add(host, "div", "box elsewhere");
    add(box, "p").textContent = words.rotary_none;
    view.button(add(box, "p"), words.labs.clock, () => view.choose({ lab: "clock" }));
    const title = add(host, "h2");
    title.append(el("b", "", words.periods), ` ${words.periods_note}`);
    const [width, height, left] = [
      Math.min(view.width, 900 * unit),
      Math.max(80 * unit, Math.min(240 * unit, view.below(title) - AXIS * unit)),
      60 * unit,
    ];
    const [low, high] = [0, Math.ceil(Math.log10(Math.max(10, ...periods)))];
    const y = (/** @type {number} */ value) => 10 * unit + height * (1 - (value - low) / (high - low));
    const svg = picture(
      host,
      width,
      height + 40 * unit,
      fill(words.periods_label, { n: periods.length, low: number(periods[0]), high: number(periods.at(-1) ?? 0) }),
    );
    const powers = Array.from({ length: high + 1 }, (_, power) => power);
    across(svg, powers, { y, from: left, to: width, size: 12.5 * unit, say: (power) => number(10 ** power) });
    const step = (width - left) / Math.max(1, periods.length);
    periods.forEach((period, i) =>
      draw(svg, "rect", {
        x: left + (i + 0.15) * step,
        y: y(Math.log10(period)),
        width: step * 0.7,
        height: y(low) - y(Math.log10(period)),
        fill: "var(--bar)",
      }),
    );
    const x = (/** @type {number} */ i) => left + (i + 0.5) * step;
    below(svg, ticks(0, periods.length - 1, 8), { x, y: height + 28 * unit, size: 12.5 * unit });
  }

  draws() {
    const { view, host } = this;
    const main = add(host, "div", "main two");
    main.classList.toggle("narrow", view.narrow);
    const rows = this.rows;
    const [table, curves, end] = ["table", "curves", "end"].map((name) => add(main, "section", name));
    if (rows) {
      this.heat.draw(table, rows, ...this.ij);
      if (view.value("alike") === "distance") this.byDistance(curves);
      else this.byRow(curves, rows);
      this.lines(curves, rows);
    }
    add(end, "h2").append(el("b", "", words.end));
    const stack = this.stack;
    if (!stack) return;
    ends(end, stack);
    if (!view.isProjected) trade(view, host, stack, this.isTradeOpen, (isOpen) => (this.isTradeOpen = isOpen));
  }

  /** @param {HTMLElement} host @param {string} note @param {string} [named] */
  alikeTitle(host, note, named) {
    const { view } = this;
    const line = add(host, "div", "titled");
    const title = add(line, "h2");
    title.append(el("b", "", words.alike), " ", ...phrase(note, { i: [named ?? "", "q"] }));
    /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
    const ways = [
      ["row", words.alike_row],
      ["distance", words.alike_distance],
    ];
    line.append(choice(words.alike, ways, view.value("alike"), (alike) => view.choose({ alike })));
  }

  // Of the curves: as wide as their column, and with the share of a projected page's height that the next ones leave
  /** @param {HTMLElement} host @param {number} tall @param {number} others */
  sizeIn(host, tall, others) {
    const { view } = this;
    const { unit } = view;
    const room = view.below(/** @type {Element} */ (host.lastElementChild)) - (AXIS + others) * unit;
    return {
      width: Math.min(host.clientWidth, (view.narrow ? 620 : 900) * unit),
      height: Math.max(50 * unit, Math.min(tall * unit, others ? room / 2 : room)),
      left: 44 * unit,
    };
  }

  /** @param {HTMLElement} host @param {Rows} rows */
  byRow(host, rows) {
    const { view } = this;
    const { unit } = view;
    const [i, j] = this.ij;
    this.alikeTitle(host, words.alike_note, String(i));
    const last = rows.first + rows.rows - 1;
    const cosines = Array.from({ length: rows.rows }, (_, row) => this.alike(i, row + rows.first) ?? 0);
    const low = Math.min(-0.1, ...cosines);
    const { width, height, left } = this.sizeIn(host, 150, FEATURES);
    const step = (width - left - 14 * unit) / Math.max(1, rows.rows - 1);
    const x = (/** @type {number} */ at) => left + (at - rows.first) * step;
    const y = (/** @type {number} */ value) => 12 * unit + height * (1 - (value - low) / (1 - low));
    const between = this.alike(i, j);
    const svg = picture(
      host,
      width,
      height + 40 * unit,
      between === null ? words.alike : fill(words.alike_label, { i, j, cosine: fixed(between) }),
    );
    svg.classList.add("touch");
    this.curve = { left, step };
    this.curveBox = svg;
    across(svg, [0, 0.5, 1], { y, from: left, to: width - 10 * unit, size: 13 * unit });
    /** @type {[x: number, y: number][]} */
    const points = cosines.map((value, row) => [x(row + rows.first), y(value)]);
    curve(svg, points, "var(--bar)");
    below(svg, ticks(rows.first, last, 4), { x, y: height + 32 * unit, size: 13 * unit });
    const inside = (/** @type {number} */ at) => at >= rows.first && at <= last;
    const move = (/** @type {string} */ name) => (/** @type {number} */ value) => this.hold(name, value);
    for (const [name, at, colour, value] of /** @type {[string, number, string, number | null][]} */ ([
      ["j", j, "var(--key)", between],
      ["i", i, "var(--query)", 1],
    ])) {
      if (!inside(at) || value === null) continue;
      drop(svg, [x(at), y(value)], y(low), colour);
      const group = handle(svg, {
        name,
        label: fill(words.row_handle, { name }),
        value: at,
        low: 0,
        high: view.header.n_ctx - 1,
        text: between === null ? String(at) : fill(words.row_value, { at, cosine: fixed(between) }),
        move: move(name),
      });
      grip(group, x(at), y(value), 44);
      draw(group, "circle", { cx: x(at), cy: y(value), r: 7 * unit, fill: colour });
    }
    if (between !== null && inside(j)) {
      const isRight = j > rows.first + rows.rows * 0.8;
      write(svg, x(j) + (isRight ? -12 : 12) * unit, y(between) - 8 * unit, fixed(between), {
        anchor: isRight ? "end" : "start",
        class: "kt b",
        size: 14 * unit,
      });
    }
  }

  /** @param {HTMLElement} host */
  byDistance(host) {
    const { view } = this;
    const { unit } = view;
    this.alikeTitle(host, words.alike_mean);
    const alike = this.stack?.alike;
    if (!alike) return;
    const low = Math.min(-0.1, ...alike);
    const { width, height, left } = this.sizeIn(host, 150, FEATURES);
    const x = (/** @type {number} */ at) => left + (at * (width - left - 14 * unit)) / (alike.length - 1);
    const y = (/** @type {number} */ value) => 12 * unit + height * (1 - (value - low) / (1 - low));
    const svg = picture(
      host,
      width,
      height + 40 * unit,
      fill(words.alike_mean_label, { one: fixed(alike[1] ?? 0), far: fixed(alike.at(-1) ?? 0), n: alike.length - 1 }),
    );
    across(svg, [0, 0.5, 1], { y, from: left, to: width - 10 * unit, size: 13 * unit });
    /** @type {[x: number, y: number][]} */
    const points = alike.map((value, at) => [x(at), y(value)]);
    curve(svg, points, "var(--bar)");
    below(svg, ticks(0, alike.length - 1, 4), { x, y: height + 32 * unit, size: 13 * unit });
  }

  /** @param {HTMLElement} host @param {Rows} rows */
  lines(host, rows) {
    const { view } = this;
    const { unit } = view;
    const features = this.features;
    const title = add(host, "h2", "features");
    title.append(`${words.features} `);
    features.forEach((feature, at) => {
      const drop = () => view.choose({ features: features.filter((other) => other !== feature).join(",") });
      const chip = button(`${feature}${features.length > 1 ? " ×" : ""}`, "quiet chip", drop);
      Object.assign(chip, { disabled: features.length === 1, ariaLabel: fill(words.feature_drop, { feature }) });
      chip.style.setProperty("--colour", this.colour(at));
      title.append(chip);
    });
    if (features.length < MOST_FEATURES) title.append(this.more(features));
    const { width, height, left } = this.sizeIn(host, 132, 0);
    const skip = rows.first === 0 && view.header.position === "learned" ? 1 : 0;
    const value = (/** @type {number} */ row, /** @type {number} */ feature) =>
      rows.values[row * rows.columns + feature];
    const every = features.flatMap((feature) =>
      Array.from({ length: rows.rows - skip }, (_, row) => Math.abs(value(row + skip, feature))),
    );
    const most = Math.max(1e-6, ...every);
    const x = (/** @type {number} */ row) => left + (row * (width - left - 34 * unit)) / Math.max(1, rows.rows - 1);
    const y = (/** @type {number} */ v) => 10 * unit + (height * (1 - clamp(v / most, -1.15, 1.15) / 1.15)) / 2;
    const hides = cover.hides("curve"); // the waves, except that of the first feature
    const label = fill(words.features_label, {
      features: features.join(", "),
      first: rows.first,
      last: rows.first + rows.rows - 1,
    });
    const svg = picture(host, width, height + 40 * unit, hides ? `${label}. ${kit.covered}` : label);
    const unitText = most < 1 ? 2 : 0;
    across(svg, [-most, 0, most], {
      y,
      from: left,
      to: width - 30 * unit,
      size: 12.5 * unit,
      say: (v) => (v ? fixed(v, unitText) : "0"),
    });
    features.forEach((feature, at) => {
      if (hides && feature) {
        write(svg, width - 26 * unit, (14 + 20 * at) * unit, `${feature}: ?`, {
          class: "b",
          size: 12.5 * unit,
          style: `fill: ${this.colour(at)}`,
        });
        return;
      }
      /** @type {[x: number, y: number][]} */
      const points = Array.from({ length: rows.rows }, (_, row) => [x(row), y(value(row, feature))]);
      curve(svg, points, this.colour(at), 2, DASHES[at]);
      write(svg, width - 26 * unit, y(value(rows.rows - 1, feature)) + 4 * unit, String(feature), {
        class: "b",
        size: 12.5 * unit,
        style: `fill: ${this.colour(at)}`,
      });
    });
    for (const [at, colour] of /** @type {[number, string][]} */ ([
      [this.ij[0], "var(--query)"],
      [this.ij[1], "var(--key)"],
    ])) {
      if (at >= rows.first && at < rows.first + rows.rows)
        drop(svg, [x(at - rows.first), 6 * unit], height + 12 * unit, colour);
    }
    const last = rows.first + rows.rows - 1;
    below(svg, ticks(rows.first, last, 4), {
      x: (at) => x(at - rows.first),
      y: height + 30 * unit,
      size: 13 * unit,
    });
  }

  /** @param {number} at */
  colour(at) {
    return this.view.palette.heads[at];
  }

  // A box for any other feature
  /** @param {number[]} features */
  more(features) {
    const { view } = this;
    const form = el("form", "more");
    const most = view.header.d_model - 1;
    const input = add(form, "input");
    Object.assign(input, {
      type: "number",
      min: "0",
      max: String(most),
      placeholder: words.feature_more,
      ariaLabel: fill(words.feature_help, { most }),
      title: fill(words.feature_help, { most }),
    });
    input.value = this.typed;
    input.addEventListener("input", () => (this.typed = input.value));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.typed = "";
      const feature = Number(input.value);
      if (input.value === "" || !Number.isInteger(feature) || feature < 0 || feature > most)
        return view.announce(fill(words.feature_help, { most }));
      view.choose({ features: [...new Set([...features, feature])].sort((a, b) => a - b).join(",") });
    });
    return form;
  }

  // ------------------------------------------------------------------ by hand

  /** @param {string} name @param {number} value */
  hold(name, value) {
    const at = clamp(Math.round(value), 0, this.view.header.n_ctx - 1);
    this.view.choose({
      [name]: String(at),
      ...(at < this.first || at >= this.first + WINDOW
        ? { first: String(clamp(at - WINDOW / 2, 0, Math.max(0, this.view.header.n_ctx - WINDOW))) }
        : {}),
    });
  }

  /** @param {string} name @param {PointerEvent} event */
  drag(name, event) {
    const rows = this.rows;
    if (!rows || !this.heat.box) return;
    const last = rows.first + rows.rows - 1;
    const heat = this.heat.box.getBoundingClientRect();
    const curve = this.curveBox?.isConnected ? this.curveBox.getBoundingClientRect() : null;
    const isCurve =
      curve &&
      this.curve &&
      event.clientX > curve.left &&
      event.clientY < curve.bottom + 20 &&
      event.clientY > curve.top - 60 &&
      (!this.view.narrow || event.clientY > heat.bottom);
    const at =
      isCurve && this.curve
        ? rows.first + (event.clientX - curve.left - this.curve.left) / this.curve.step
        : rows.first + Math.floor(((event.clientY - heat.top) / heat.height) * rows.rows);
    this.view.choose({ [name]: String(clamp(Math.round(at), rows.first, last)) });
  }

  // Up and down move one row, left and right the other
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    if (!this.hasTable) return false;
    const [i, j] = this.ij;
    if (down) this.hold("i", i + down);
    else this.hold("j", j + right);
    return true;
  }

  // ------------------------------------------------------------------ words

  status() {
    const stack = this.hasTable && this.rows ? this.stack : null;
    return {
      cosine: stack && this.view.value("alike") !== "distance" ? (this.alike(...this.ij) ?? "") : "",
      closest: stack?.closest?.[2] ?? "",
    };
  }

  fact() {
    const { view, kind } = this;
    const known = this.known;
    if (kind === "alibi" || kind === "relative") {
      const own = this.isOwn ? this.stack : null;
      const slopes = own?.slopes ?? known?.rules.slopes ?? [];
      const name = (/** @type {number} */ slope) => (slope ? `1/${Math.round(1 / slope)}` : "0");
      if (kind === "alibi")
        return phrase(words.fact_alibi, {
          first: [name(slopes[0]), ""],
          last: [name(slopes.at(-1) ?? 0), ""],
          n: slopes.length,
        });
      return phrase(own ? words.fact_relative_own : words.fact_relative, {
        far: [String(known?.rules.far ?? 128), ""],
        model: view.header.model,
      });
    }
    if (!this.isOwn)
      return phrase(words.fact_elsewhere, {
        model: view.header.model,
        own: worded(words.kinds, view.header.position).toLowerCase(),
      });
    if (kind === "rotary") return phrase(words.fact_rotary_table, {});
    const [i, j] = this.ij;
    const found = this.alike(i, j);
    if (found === null) return [];
    const parts = { i: [String(i), "q"], j: [String(j), "k"], cosine: [fixed(found), ""] };
    if (kind === "sinusoidal") {
      const apart = Math.abs(i - j);
      const other = i === 8 ? 9 : 8;
      const again = other + apart < view.header.n_ctx ? this.alike(other, other + apart) : null;
      if (again === null || !apart) return phrase(words.fact_sinusoidal_alone, parts);
      return phrase(words.fact_sinusoidal, {
        ...parts,
        apart: [String(apart), ""],
        a: other,
        b: other + apart,
        again: [fixed(again), ""],
      });
    }
    const rows = this.rows;
    const inside = (/** @type {number} */ row) =>
      rows && row >= rows.first && row < rows.first + rows.rows ? this.alike(i, row) : row === j ? found : null;
    const less = lessAlike(inside, i, j);
    const said = phrase(
      i === j ? words.fact_same : Math.abs(i - j) <= 8 ? words.fact_learned : words.fact_learned_far,
      parts,
    );
    const cosineOf = less === null ? null : inside(less);
    if (less !== null && cosineOf !== null)
      said.push(...phrase(words.fact_less, { i, n: less, cosine: [fixed(cosineOf), ""] }));
    else said.push(document.createTextNode("."));
    return said;
  }

  foot() {
    const { view } = this;
    const { header } = view;
    const proof = !this.isOwn
      ? ""
      : this.kind === "learned"
        ? words.foot_learned
        : this.kind === "sinusoidal"
          ? words.foot_sinusoidal
          : "";
    const shape = fill(words.foot_table, { model: header.model, n: number(header.n_ctx), d: number(header.d_model) });
    return { proof: this.known ? proof : "", facts: this.hasTable ? shape : this.isOwn ? header.model : "" };
  }

  tools() {
    const { view } = this;
    if (view.header.stacks.length < 2) return [];
    /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
    const stacks = view.header.stacks.map((stack) => [stack, worded(words.stacks, stack)]);
    return [choice(words.stack, stacks, view.value("stack"), (stack) => view.choose({ stack }))];
  }

  tables() {
    const { kind } = this;
    const stack = this.stack;
    if (kind === "alibi" || kind === "relative") {
      const own = this.isOwn ? stack : null;
      const bias = own?.bias ?? (kind === "alibi" ? this.known?.rules.bias : null);
      const buckets = own?.buckets ?? this.known?.rules.buckets ?? [];
      if (bias) {
        const reach = (bias[0].length - 1) / 2;
        return [
          {
            title: words.table_rule,
            name: "rule",
            columns: [words.distance, ...bias.map((_, head) => fill(words.head_n, { head }))],
            rows: bias[0].map((_, i) => [i - reach, ...bias.map((row) => row[i])]),
          },
        ];
      }
      return [
        {
          title: words.table_buckets,
          name: "buckets",
          columns: words.table_buckets_columns,
          rows: buckets.map((bucket, i) => [i - (buckets.length - 1) / 2, bucket]),
        },
      ];
    }
    if (!this.isOwn) return [];
    if (kind === "rotary")
      return [
        {
          title: words.periods,
          name: "periods",
          columns: words.table_periods_columns,
          rows: (stack?.periods ?? []).map((period, pair) => [pair, period]),
        },
      ];
    const rows = this.rows;
    if (!rows) return [];
    const [i] = this.ij;
    const features = this.features;
    const curves = Array.from({ length: rows.rows }, (_, row) => [
      row + rows.first,
      this.alike(i, row + rows.first) ?? "",
      ...features.map((feature) => rows.values[row * rows.columns + feature]),
    ]);
    const values = Array.from({ length: rows.rows }, (_, row) =>
      Array.from(rows.values.subarray(row * rows.columns, (row + 1) * rows.columns), (value, feature) => [
        row + rows.first,
        feature,
        value,
      ]),
    ).flat();
    const tables = [
      {
        title: words.table_rows,
        name: "features",
        columns: [
          words.position,
          fill(words.cosine_to, { i }),
          ...features.map((feature) => fill(words.feature_n, { feature })),
        ],
        rows: curves,
      },
      { title: words.table_values, name: "table", columns: words.table_values_columns, rows: values },
    ];
    if (stack?.alike)
      tables.push({
        title: words.alike_distance,
        name: "alike",
        columns: words.table_alike_columns,
        rows: stack.alike.map((value, distance) => [distance, value]),
      });
    return tables;
  }

  snippet() {
    const { view, kind } = this;
    const [i, j] = this.ij;
    const what = {
      ...view.header.about,
      stack: view.value("stack"),
      i,
      j,
      features: `[${this.features.join(", ")}]`,
      number: view.header.stacks.indexOf(view.value("stack")),
    };
    if (this.hasTable) return fill(words.snippet_two, what);
    if (this.isOwn && kind !== "rotary") return fill(words.snippet_rule, what);
    return kind === "alibi" || kind === "relative" ? words.snippet_paper : fill(words.snippet_rotary, what);
  }
}
