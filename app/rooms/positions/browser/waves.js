// Digits to waves: a position in binary, and waves of the same periods that say it smoothly.

import { cover } from "../../../kit/browser/cover.js";
import { WORDS as kit } from "../../../kit/browser/words.js";
import { add, clamp, el, fill, fixed, phrase, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { draw, path, write } from "../../../kit/browser/picture/svg.js";
import { Drags, grip, handle, picture } from "./draw.js";
import { flips, stepLength, wave } from "./numbers.js";
import { form, pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Shown} Shown */
const DIGITS = 4;
const N = 2 ** DIGITS;
const WIDTH = 256; // features of the formula where the model has none of its own

export class Waves {
  /** @type {{left: number, step: number} | null} */
  line = null;
  /** @type {Element | null} */
  box = null;

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
    this.host = view.labPlace;
    new Drags(view, (_, event) => this.drag(event));
  }

  hasHeads = false;

  get t() {
    return Math.min(this.view.number("t", 7), N - 1);
  }

  get isOwn() {
    return this.view.header.position === "sinusoidal";
  }

  get width() {
    return this.isOwn ? this.view.header.d_model : WIDTH;
  }

  draw() {
    const { view, host } = this;
    host.replaceChildren();
    const main = add(host, "div", "main waves");
    main.classList.toggle("narrow", view.narrow);
    this.digits(add(main, "section"));
    this.steps(add(main, "section"));
  }

  /** @param {HTMLElement} host */
  digits(host) {
    const { view, t } = this;
    const { unit } = view;
    const title = add(host, "h2");
    title.append(el("b", "", words.digits), ` ${words.digits_note}`);
    const most = (view.isProjected ? 84 : 72) * unit;
    const tall = Math.max(20 * unit, Math.min(most, (view.below(title) - 74 * unit) / DIGITS - 14 * unit));
    const [width, left] = [view.narrow ? view.width : view.width - (400 + 40) * unit, 86 * unit];
    const step = (width - left - 20 * unit) / (N - 1);
    const x = (/** @type {number} */ p) => left + p * step;
    this.line = { left, step };
    const hides = cover.hides("cell"); // how they change: of each digit there is its value at one place
    const bottom = 14 * unit + DIGITS * (tall + 14 * unit);
    const svg = picture(
      host,
      width,
      bottom + 40 * unit,
      [fill(words.digits_label, { t, binary: binary(t) }), ...(hides ? [kit.covered] : [])].join(". "),
    );
    svg.classList.add("touch");
    this.box = svg;
    for (let digit = 0; digit < DIGITS; digit++) {
      const y = (/** @type {number} */ value) => 14 * unit + digit * (tall + 14 * unit) + tall * (1 - value);
      write(svg, 0, y(0.5) - 2 * unit, fill(words.digit, { digit }), { class: "b", size: 13.5 * unit });
      const bit = (t >> digit) & 1;
      if (hides) {
        const box = { x: left - 10 * unit, y: y(1), width: width - left, height: tall, rx: 6 };
        draw(svg, "rect", { ...box, fill: "none", stroke: "var(--proof)", "stroke-dasharray": "5 5" });
        write(svg, left - 30 * unit, y(0.5) + 6 * unit, "?", {
          class: "b",
          size: 20 * unit,
          style: "fill: var(--proof)",
        });
        draw(svg, "circle", { cx: x(t), cy: y(bit), r: 5.5 * unit, fill: "var(--ink)" });
        write(svg, x(t) + 12 * unit, y(bit) + 5 * unit, String(bit), { class: "b", size: 15 * unit });
        continue;
      }
      write(svg, 0, y(0.5) + 15 * unit, fill(words.period, { n: 2 ** (digit + 1) }), {
        class: "mt",
        size: 12.5 * unit,
      });
      const square = Array.from(
        { length: N },
        (_, p) =>
          /** @type {[number, number][]} */ ([
            [x(p - 0.5), y((p >> digit) & 1)],
            [x(p + 0.5), y((p >> digit) & 1)],
          ]),
      ).flat();
      draw(svg, "path", { d: path(square), fill: "none", stroke: "var(--hatch)", "stroke-width": 2 });
      const soft = Array.from(
        { length: 161 },
        (_, i) => /** @type {[number, number]} */ ([x(-0.5 + i / 10), y(wave(digit, -0.5 + i / 10))]),
      );
      draw(svg, "path", { d: path(soft), fill: "none", stroke: "var(--proof)", "stroke-width": 2.4 });
      draw(svg, "circle", { cx: x(t), cy: y(bit), r: 5.5 * unit, fill: "var(--ink)" });
      draw(svg, "circle", { cx: x(t), cy: y(wave(digit, t)), r: 5.5 * unit, fill: "var(--proof)" });
    }
    const group = handle(svg, {
      name: "t",
      label: words.position,
      value: t,
      low: 0,
      high: N - 1,
      text: fill(words.t_value, { t, binary: binary(t) }),
      move: (to) => view.choose({ t: String(to) }),
    });
    draw(group, "path", {
      d: `M${x(t)} ${4 * unit}V${bottom}`,
      stroke: "var(--query)",
      "stroke-width": 1.6,
      "stroke-dasharray": "3 3",
    });
    draw(group, "rect", { x: x(t) - 12 * unit, y: 0, width: 24 * unit, height: bottom, fill: "transparent" });
    grip(group, x(t), bottom + 4 * unit, 44);
    draw(group, "circle", { cx: x(t), cy: bottom + 4 * unit, r: 8 * unit, fill: "var(--query)" });
    for (let p = 0; p < N; p++)
      write(svg, x(p), bottom + 30 * unit, String(p), {
        anchor: "middle",
        class: p === t ? "qt b" : "mt",
        size: 13 * unit,
      });
    const legend = add(host, "p", "legend");
    legend.append(el("i", "square"), ` ${words.legend_digit} `, el("i", "soft"), ` ${words.legend_wave}`);
  }

  /** @param {HTMLElement} host */
  steps(host) {
    const { view } = this;
    const { unit } = view;
    const title = add(host, "h2");
    title.append(el("b", "", words.flips), ` ${words.flips_note}`);
    const height = Math.max(40 * unit, Math.min(118 * unit, (view.below(title) - 110 * unit) / 2));
    this.columns(host, height, flips, DIGITS, "var(--hatch)", words.flips, true);
    const length = stepLength(this.width);
    add(host, "h2", "second").append(
      el("b", "", words.step),
      ` ${fill(this.isOwn ? words.step_own : words.step_formula, { model: view.header.model, d: this.width })}`,
    );
    this.columns(host, height, () => length, length * 1.25, "var(--proof)", words.step, false);
    add(host, "p").append(...phrase(words.step_same, { length: [fixed(length, 3), "a"] }));
  }

  /** @param {HTMLElement} host @param {number} height @param {(p: number) => number} value @param {number} most @param {string} colour @param {string} label @param {boolean} named */
  columns(host, height, value, most, colour, label, named) {
    const { view, t } = this;
    const { unit } = view;
    const width = view.narrow ? Math.min(view.width, 480 * unit) : 400 * unit;
    const x = (/** @type {number} */ p) => 24 * unit + (p * (width - 40 * unit)) / (N - 2);
    const svg = picture(
      host,
      width,
      height + 28 * unit,
      `${label}: ${Array.from({ length: N - 1 }, (_, p) => pointed(String(Number(value(p).toFixed(3))))).join(" ")}`,
    );
    svg.setAttribute("role", "img");
    for (let p = 0; p < N - 1; p++) {
      const tall = (height * value(p)) / most;
      draw(svg, "rect", {
        x: x(p) - 8 * unit,
        y: 6 * unit + height - tall,
        width: 16 * unit,
        height: tall,
        rx: 2,
        fill: p === t ? "var(--query)" : colour,
      });
      write(svg, x(p), height + 24 * unit, String(p), { anchor: "middle", class: "mt", size: 12 * unit });
      if (named)
        write(svg, x(p), 2 * unit + height - tall, String(value(p)), {
          anchor: "middle",
          class: "b",
          size: 12.5 * unit,
        });
    }
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.line || !this.box) return;
    const frame = this.box.getBoundingClientRect();
    this.view.choose({
      t: String(clamp(Math.round((event.clientX - frame.left - this.line.left) / this.line.step), 0, N - 1)),
    });
  }

  /** @param {number} _ @param {number} right */
  arrow(_, right) {
    if (right) this.view.choose({ t: String(clamp(this.t + right, 0, N - 1)) });
    return right !== 0;
  }

  status() {
    return { step: stepLength(this.width) };
  }

  fact() {
    const { t } = this;
    const parts = { t: [String(t), "q"], binary: [binary(t), ""], n: [String(flips(t)), ""] };
    return phrase(t === N - 1 ? words.fact_last : form([words.fact_digit, words.fact_digits], flips(t)), parts);
  }

  foot() {
    const { view } = this;
    return {
      proof: words.foot_waves,
      facts: this.isOwn
        ? words.foot_wavelengths
        : fill(words.foot_no_waves, {
            model: view.header.model,
            own: worded(words.kinds, view.header.position).toLowerCase(),
          }),
    };
  }

  tools() {
    return [];
  }

  tables() {
    const length = stepLength(this.width);
    const rows = Array.from({ length: N }, (_, p) => [
      p,
      binary(p),
      ...Array.from({ length: DIGITS }, (_, digit) => wave(digit, p)),
      p < N - 1 ? flips(p) : "",
      p < N - 1 ? length : "",
    ]);
    return [{ title: words.labs.binary, name: "digits", columns: words.table_digits_columns, rows }];
  }

  snippet() {
    return fill(words.snippet_binary, { d_model: this.width });
  }
}

/** @param {number} p */
const binary = (p) => p.toString(2).padStart(DIGITS, "0");
