// The chart of a run: loss above, percent below, one axis of steps, every curve named at its end. The axis is the slider of the step.

import { add, clamp, fill, fixed, focusable } from "../../../kit/browser/dom.js";
import { linear } from "../../../kit/browser/picture/scale.js";
import { draw, path, svg as element, write } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";

/** @typedef {[step: number, value: number | null][]} Values */
/**
 * @typedef {object} Line
 * @property {Values} values
 * @property {string} colour
 * @property {string} [dash]
 * @property {number} [wide] of the others' width
 * @property {string} [name] at its end; without one it is drawn up to the step and says nothing
 * @property {(value: number) => string} [say]
 */
/** @typedef {{low: Values, high: Values, colour: string}} Band */
/**
 * @typedef {object} Charted
 * @property {number} steps of the axis
 * @property {number} now where the slider stands
 * @property {number} seen up to which step the future is drawn
 * @property {number} last step that there is
 * @property {{n: number, loss: number}} guess the loss of one that knows nothing
 * @property {string} [lossHelp] what the loss is measured on
 * @property {{value: number, name: string}[]} [levels] other losses that are lines across
 * @property {Line[]} losses
 * @property {Line[]} shares
 * @property {Band[]} lossBands
 * @property {Band[]} shareBands
 * @property {string} about what the percent are of
 * @property {{step: number, isOn: boolean}[]} marks
 * @property {{first: number, last: number, colour: string}[]} leads
 * @property {{step: number, text: string, colour: string}[]} posts
 * @property {string} cover shown instead of the run
 * @property {string} says for a screen reader
 */

const STEP = 5;
const FAR = 50;

export class Chart {
  steps = 600;
  width = 0;
  height = 0;
  em = 16;
  now = 0;
  last = 0;
  isProjected = false;

  /** @param {HTMLElement} parent @param {(step: number) => void} chosen when the visitor drags the axis or moves it by keys */
  constructor(parent, chosen) {
    this.box = focusable(add(parent, "div", "curve"), "slider", words.step);
    this.box.addEventListener("pointerdown", (e) => {
      e.preventDefault(); // no text is selected
      this.box.setPointerCapture(e.pointerId);
      this.box.focus({ preventScroll: true });
      chosen(this.stepAt(e));
    });
    this.box.addEventListener("pointermove", (e) => e.buttons && chosen(this.stepAt(e)));
    this.box.addEventListener("keydown", (e) => {
      const by = e.shiftKey ? FAR : STEP;
      /** @type {Record<string, number>} */
      const to = { ArrowLeft: this.now - by, ArrowRight: this.now + by, Home: 0, End: this.last };
      if (!(e.key in to)) return;
      e.preventDefault();
      chosen(clamp(to[e.key], 0, this.last));
    });
  }

  /** @param {boolean} isProjected */
  measure(isProjected) {
    const { clientWidth, clientHeight } = this.box;
    Object.assign(this, { width: clientWidth, height: clientHeight, isProjected });
    this.em = parseFloat(getComputedStyle(this.box).fontSize);
  }

  get isNarrow() {
    return this.width < (this.isProjected ? 22 : 28) * this.em;
  }

  // Pixels on the left of the axis and on its right, where the curves are named
  get left() {
    return 2.6 * this.em;
  }

  get right() {
    return (this.isNarrow ? 0.7 : this.isProjected ? 10.6 : 12.6) * this.em;
  }

  /** @param {PointerEvent} e */
  stepAt(e) {
    const at = e.clientX - this.box.getBoundingClientRect().left - this.left;
    return clamp(Math.round((at / (this.width - this.left - this.right)) * this.steps), 0, this.last);
  }

  /** @param {Charted} of @param {Record<string, any>} palette */
  draw(of, palette) {
    const { width, height, em, left, isNarrow } = this;
    Object.assign(this, { steps: of.steps, now: of.now, last: of.last });
    Object.assign(this.box, {
      ariaValueMin: "0",
      ariaValueMax: String(of.last),
      ariaValueNow: String(of.now),
      ariaValueText: of.says,
    });
    if (!width || !height) return;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    const size = 0.82 * em;
    const wide = this.isProjected ? 3.6 : 2.4;
    const end = width - this.right;
    const x = linear(0, of.steps, left, end);
    const top = 1.7 * size;
    const foot = height - 1.9 * size;
    const gap = 2.1 * size;
    const high = (foot - top - gap) / 2;
    const highest = Math.min(
      8,
      1.08 *
        Math.max(
          of.guess.loss,
          ...[...of.losses.map((line) => line.values), ...of.lossBands.map((band) => band.high)].map(peak),
        ),
    );
    const y = linear(0, highest, top + high, top);
    const share = linear(0, 1, foot, foot - high);
    const { ink, mute, line: rule } = palette;

    /** @param {number} at @param {string} text @param {string} stroke */
    const across = (at, text, stroke) => {
      draw(svg, "line", { x1: left, x2: end, y1: at, y2: at, stroke });
      write(svg, left - 0.45 * em, at + 0.35 * size, text, { anchor: "end", size, fill: mute });
    };
    const apiece = high / highest < 1.25 * size ? 2 : 1; // of the axis of the loss, so that its numbers have room
    for (let loss = 0; loss < highest - 0.2; loss += apiece) across(y(loss), String(loss), loss ? rule : mute);
    for (const percent of [0, 50, 100]) across(share(percent / 100), String(percent), percent ? rule : mute);
    const parts = isNarrow || this.isProjected ? 3 : 6;
    for (let i = 0; i <= parts; i++) {
      const step = Math.round((of.steps * i) / parts);
      const text = i ? String(step) : fill(words.axis_step, { s: 0 });
      const anchor = i ? (i === parts ? "end" : "middle") : "start";
      write(svg, x(step), height - 0.3 * size, text, { anchor, size, fill: mute });
    }
    /** @type {End[]} */
    const above = [];
    for (const { value, name } of [{ value: of.guess.loss, name: words.line_guess }, ...(of.levels ?? [])]) {
      draw(svg, "line", { x1: left, x2: end, y1: y(value), y2: y(value), stroke: mute, "stroke-dasharray": "2 4" });
      above.push({ y: y(value), text: name, value: fixed(value), colour: mute });
    }
    /** @type {End[]} */
    const below = [];
    if (of.cover)
      write(svg, (left + end) / 2, top + high * 0.7, of.cover, {
        anchor: "middle",
        size: 1.25 * size,
        fill: palette.query,
        "font-weight": 650,
      });
    else {
      for (const [bands, at] of /** @type {const} */ ([
        [of.lossBands, y],
        [of.shareBands, share],
      ]))
        for (const band of bands) area(svg, band, of.now, x, at);
      for (const [lines, at, ends] of /** @type {const} */ ([
        [of.losses, y, above],
        [of.shares, share, below],
      ]))
        for (const line of lines) {
          const points = placed(line.values, x, at);
          const width = wide * (line.wide ?? 1);
          if (line.name)
            stroke(svg, upTo(points, of.seen), { colour: palette.hatch, width: 0.7 * width, dash: line.dash });
          const come = upTo(points, of.now);
          stroke(svg, come, { colour: line.colour, width, dash: line.dash });
          const [last] = come.slice(-1);
          const value = valueAt(line.values, of.now);
          if (line.name && last && value !== null)
            ends.push({ y: last.y, x: last.x, text: line.name, value: line.say?.(value) ?? "", colour: line.colour });
        }
      for (const { first, last, colour } of of.leads)
        if (first <= of.now)
          draw(svg, "rect", {
            x: x(first),
            y: foot + 2,
            width: Math.max(2, x(Math.min(last, of.now)) - x(first)),
            height: this.isProjected ? 8 : 5,
            fill: colour,
          });
      for (const { step, isOn } of of.marks)
        if (step <= of.seen)
          draw(svg, "path", {
            d: `M${x(step)} ${foot}l-5 8h10z`,
            fill: isOn ? palette.proof : mute,
          });
      of.posts.forEach(({ step, text, colour }, i) => {
        draw(svg, "line", { x1: x(step), x2: x(step), y1: top, y2: foot, stroke: colour, "stroke-width": wide });
        const isLeft = x(step) > left + 9 * em && x(step) > (left + end) / 2;
        write(svg, x(step) + (isLeft ? -6 : 6), top + size * (1 + 1.3 * i), text, {
          ...haloed(palette),
          anchor: isLeft ? "end" : "start",
          size,
          fill: colour,
          "font-weight": 650,
        });
      });
      draw(svg, "line", { x1: x(of.now), x2: x(of.now), y1: top, y2: foot, stroke: ink, "stroke-width": wide / 2 });
      draw(svg, "circle", {
        cx: x(of.now),
        cy: foot,
        r: this.isProjected ? 10 : 6.5,
        fill: ink,
        stroke: palette.background,
        "stroke-width": 2,
      });
    }
    this.heading(svg, top - 0.6 * size, words.loss, of.lossHelp ?? words.loss_help, size, palette);
    this.heading(svg, foot - high - 0.6 * size, "%", of.about, size, palette);
    this.names(svg, above, [top, top + high], size, palette);
    const isWithin = isNarrow && below.length > 0;
    if (isWithin) below.sort((a, b) => a.y - b.y);
    this.names(svg, below, [foot - high, foot], size, palette, isWithin);
    this.box.replaceChildren(svg);
  }

  /** @param {SVGElement} svg @param {number} at @param {string} bold @param {string} text @param {number} size @param {Record<string, any>} palette */
  heading(svg, at, bold, text, size, palette) {
    const line = write(svg, this.left, at, "", { anchor: "start", size, fill: palette.mute, ...haloed(palette) });
    draw(line, "tspan", { fill: palette.ink, "font-weight": 650 }, bold);
    draw(line, "tspan", { dx: 0.5 * size }, text);
  }

  // The name of each curve, beside its end; where there is no room beside it, within
  /** @param {SVGElement} svg @param {End[]} ends @param {[low: number, high: number]} between @param {number} size @param {Record<string, any>} palette */
  names(svg, ends, [low, high], size, palette, isLeft = false) {
    const where = this.isNarrow
      ? ends.map((_, i) => low + size * (1.1 + 1.25 * i))
      : apart(
          ends.map((end) => end.y),
          1.24 * size,
          low + 2,
          high,
        );
    ends.forEach((end, i) => {
      if (end.x !== undefined)
        draw(svg, "circle", { cx: end.x, cy: end.y, r: this.isProjected ? 6 : 4, fill: end.colour });
      const edge = this.width - this.right + (this.isNarrow ? 0 : 0.9 * this.em);
      const line = write(svg, isLeft ? this.left + 0.5 * size : edge, where[i] + 0.35 * size, "", {
        anchor: this.isNarrow && !isLeft ? "end" : "start",
        size,
        fill: end.colour,
        ...haloed(palette),
      });
      draw(line, "tspan", {}, end.text);
      draw(line, "tspan", { dx: 0.3 * size, "font-weight": 650 }, end.value);
    });
  }
}

/** @typedef {{x?: number, y: number, text: string, value: string, colour: string}} End */
/** @typedef {{x: number, y: number, step: number}} Placed */

/** @param {Record<string, any>} palette What is read over lines */
const haloed = (palette) => ({
  stroke: palette.background,
  "stroke-width": 4,
  "stroke-linejoin": "round",
  "paint-order": "stroke",
});

/** @param {Values} values */
const peak = (values) => values.reduce((most, [, value]) => Math.max(most, value ?? 0), 0);

/** @param {Values} values @param {(step: number) => number} x @param {(value: number) => number} y @returns {Placed[]} */
const placed = (values, x, y) =>
  values.flatMap(([step, value]) => (value === null ? [] : [{ x: x(step), y: y(value), step }]));

// The last value up to a step
/** @param {Values} values @param {number} step */
export const valueAt = (values, step) => values.findLast(([at]) => at <= step)?.[1] ?? null;

// The part of a line up to a step, which ends there also between two of its points
/** @param {Placed[]} points @param {number} step @returns {Placed[]} */
export function upTo(points, step) {
  const n = points.findLastIndex((point) => point.step <= step) + 1;
  const [from, to] = [points[n - 1], points[n]];
  if (!from || !to || step <= from.step) return points.slice(0, n);
  const part = (step - from.step) / (to.step - from.step);
  return [...points.slice(0, n), { x: from.x + part * (to.x - from.x), y: from.y + part * (to.y - from.y), step }];
}

/** @param {SVGElement} svg @param {Placed[]} points @param {{colour: string, width: number, dash?: string}} look */
function stroke(svg, points, { colour, width, dash }) {
  if (points.length < 2) return;
  draw(svg, "path", {
    d: path(points.map(({ x, y }) => [x, y])),
    fill: "none",
    stroke: colour,
    "stroke-width": width,
    "stroke-linejoin": "round",
    "stroke-dasharray": dash,
  });
}

/** @param {SVGElement} svg @param {Band} band @param {number} now @param {(step: number) => number} x @param {(value: number) => number} y */
function area(svg, band, now, x, y) {
  const [high, low] = [band.high, band.low].map((values) => upTo(placed(values, x, y), now));
  if (high.length < 2) return;
  draw(svg, "path", {
    d: `${path([...high, ...low.reverse()].map((point) => [point.x, point.y]))}Z`,
    fill: band.colour,
    "fill-opacity": 0.16,
  });
}

// Places of lines of text near where they should be, none nearer to another than `gap`
/** @param {number[]} wanted @param {number} gap @param {number} low @param {number} high */
export function apart(wanted, gap, low, high) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const found = [...wanted];
  for (let turn = 0; turn < 30; turn++) {
    for (let k = 1; k < order.length; k++) {
      const [a, b] = [order[k - 1], order[k]];
      const short = gap - (found[b] - found[a]);
      if (short > 0) [found[a], found[b]] = [found[a] - short / 2, found[b] + short / 2];
    }
    const [first, last] = [order[0], order[order.length - 1]];
    if (found[first] < low) found[first] = low;
    if (found[last] > high) found[last] = high;
  }
  return found;
}
