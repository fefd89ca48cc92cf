// Vectors as skylines: a bar for each number, heights on a square-root scale, the largest named; and fans from one skyline to another.

import { add, fill, fixed, pinned } from "../../../kit/browser/dom.js";
import { long, signed } from "../../../kit/browser/model_strip.js";
import { paintOn } from "../../../kit/browser/picture/canvas.js";
import { draw, set, svg as element } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { eased, mix, part } from "./motion.js";
import { length } from "./sums.js";

/** @typedef {import("./sheet.js").Sheet} Sheet */
/** @typedef {import("./types.js").Cell} Cell */
/**
 * A part of what is above that fans out to all below: its middle as a share of the width, the length of what it writes, what it adds
 * to the next word's logit where that is known, and its name.
 * @typedef {{at: number, wide: number, length: number, adds?: number, name: string, isOn: boolean}} Fan
 */
const NEAR = 4; // pixels, within which a pointer means the highest bar
const TONE = 0.72; // of the scale of colours

/** @param {ArrayLike<number>} values */
export const highest = (values) => {
  let most = 1e-9;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(values[i]));
  return most;
};

/** Where the n numbers of the largest magnitude are. @param {ArrayLike<number>} values @param {number} n */
export const peaksOf = (values, n) =>
  Array.from(values, (_, i) => i)
    .sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]))
    .slice(0, n);

export class Skyline {
  marked = -1;

  /**
   * @param {Sheet} sheet
   * @param {{x: number, y: number, width: number, height: number, values: ArrayLike<number>, limit?: number, isQuiet?: boolean}} options
   *   limit is what reaches the top: else the largest; quiet bars have no colour of sign
   * @param {(j: number) => Cell} cellOf
   */
  constructor(sheet, options, cellOf) {
    this.sheet = sheet;
    this.options = options;
    this.values = options.values;
    this.limit = options.limit ?? highest(options.values);
    this.canvas = add(sheet.host, "canvas", "grid");
    this.canvas.setAttribute("aria-hidden", "true");
    pinned(this.canvas, { left: options.x, top: options.y });
    const { on } = sheet;
    this.canvas.addEventListener("pointermove", (event) => on.point(cellOf(this.#at(event))));
    this.canvas.addEventListener("pointerleave", () => on.leave());
    this.canvas.addEventListener("click", (event) => on.choose({ cell: cellOf(this.#at(event)).join(".") }));
    this.draw();
  }

  /** @param {MouseEvent} event */
  #at(event) {
    const { left, width } = this.canvas.getBoundingClientRect();
    const { values } = this;
    const each = width / values.length;
    const clamped = (/** @type {number} */ i) => Math.max(0, Math.min(values.length - 1, i));
    const here = clamped(Math.floor((event.clientX - left) / each));
    const near = Math.round(each >= NEAR ? 0 : NEAR / each / 2);
    let best = here;
    for (let i = clamped(here - near); i <= clamped(here + near); i++)
      if (Math.abs(values[i]) > Math.abs(values[best])) best = i;
    return best;
  }

  /** How far from the middle a number reaches, in pixels. @param {number} value */
  reach(value) {
    return (Math.sign(value) * Math.sqrt(Math.min(1, Math.abs(value) / this.limit)) * this.options.height) / 2;
  }

  draw() {
    const { paint } = this.sheet;
    const { width, height, isQuiet } = this.options;
    const { values, marked } = this;
    const n = values.length;
    const middle = height / 2;
    const [more, less, quiet] = [paint.scale(TONE).fill, paint.scale(-TONE).fill, paint.css("hatch")];
    const places = Math.max(1, Math.min(n, Math.floor(width * 1.25)));
    const each = width / places;
    paintOn(this.canvas, width, height, (context) => {
      context.fillStyle = paint.css("line");
      context.fillRect(0, middle - 0.5, width, 1);
      for (let x = 0; x < places; x++) {
        const from = Math.floor((x * n) / places);
        let best = values[from];
        for (let i = from + 1; i < Math.floor(((x + 1) * n) / places); i++)
          if (Math.abs(values[i]) > Math.abs(best)) best = values[i];
        const tall = this.reach(best);
        context.fillStyle = isQuiet ? quiet : best < 0 ? less : more;
        context.fillRect(x * each, tall > 0 ? middle - tall : middle, Math.max(0.8, each * 0.86), Math.abs(tall));
      }
      if (marked < 0 || marked >= n) return;
      context.strokeStyle = paint.css("query");
      context.lineWidth = 2;
      const [x, tall] = [((marked + 0.5) * width) / n, this.reach(values[marked])];
      context.strokeRect(
        Math.max(1, Math.min(width - 5, x - 2)),
        Math.max(1, Math.min(middle, middle - tall) - 2),
        4,
        Math.min(height - 2, Math.abs(tall) + 4),
      );
    });
  }

  /** @param {number} j the chosen number, or −1 */
  mark(j) {
    if (j === this.marked) return;
    this.marked = j;
    this.draw();
  }

  /** The n largest, named where they stand and not over each other. @param {number} n */
  peaks(n) {
    const { sheet, values } = this;
    const { x, y, width, height } = this.options;
    /** @type {number[]} */
    const taken = [];
    const wide = 62 * sheet.r;
    for (const j of peaksOf(values, n)) {
      const at = ((j + 0.5) / values.length) * width;
      if (taken.some((other) => Math.abs(other - at) < wide) || !values[j]) continue;
      taken.push(at);
      const isLeft = at > width - wide;
      const top = y + height / 2 - this.reach(values[j]) + (values[j] > 0 ? 1 : -1) * 8 * sheet.r;
      const text = Math.abs(values[j]) >= 100 ? fixed(values[j], 0) : fixed(values[j]);
      const look = `peak ${values[j] < 0 ? "less" : "more"}${isLeft ? " r" : ""}`;
      sheet.label(isLeft ? x + at - wide - 5 * sheet.r : x + at + 5 * sheet.r, top, look, text, wide);
    }
  }
}

/**
 * A vector above, the one that is made of it below, and between them a fan from each part to all of it: as wide as what it writes is
 * long, and in the colour of what it adds. Row 0 of the picture is above, row 1 below.
 * @param {Sheet} sheet
 * @param {{from: ArrayLike<number>, to: ArrayLike<number>, above: string, below: string, fans: Fan[], bands?: number}} of
 *   bands: how many equal parts the vector above has; they are named and divided
 */
export function flow(sheet, { from, to, above, below, fans, bands = 0 }) {
  const { r, paint, host, width } = sheet;
  const narrow = width < 560;
  const isEach = bands > 0 && width / bands >= 54 * r; // every band has room for its name and number
  const gap = 20 * r;
  const tall = Math.max(40, (sheet.height - 2 * gap) * (bands ? 0.25 : 0.27));
  const names = (bands ? 40 : 22) * r;
  const [y0, y1] = [gap, sheet.height - tall];
  const [top, bottom] = [y0 + tall + names, y1 - gap - 2 * r];
  sheet.label(0, 0, "top", above);
  if (!narrow) sheet.label(width - 220 * r, 0, "top r", words.sky_scale, 220 * r);
  const svg = element("svg", { class: "over", "aria-hidden": "true", width, height: sheet.height });
  host.append(svg);
  const upper = new Skyline(sheet, { x: 0, y: y0, width, height: tall, values: from }, (j) => [0, j]);
  const lower = new Skyline(sheet, { x: 0, y: y1, width, height: tall, values: to }, (j) => [1, j]);
  sheet.label(0, y1 - 17 * r, "top here", below);
  sheet.label(width - 160 * r, y1 - 17 * r, "top here r", fill(words.long, { x: long(length(to)) }), 160 * r);
  for (let i = 1; i < bands; i++)
    draw(svg, "path", { d: `M${(i * width) / bands} ${y0}V${y0 + tall}`, stroke: paint.css("hatch") });
  const longest = Math.max(...fans.map((fan) => fan.length), 1e-9);
  const most = Math.max(...fans.map((fan) => Math.abs(fan.adds ?? 0)), 1e-9);
  const drawn = [...fans]
    .sort((a, b) => Number(a.isOn) - Number(b.isOn)) // the chosen one lies over the others
    .map((fan) => {
      const share = fan.adds === undefined ? 0 : fan.adds / most;
      const path = draw(svg, "path", {
        fill:
          fan.adds === undefined
            ? paint.css("mute")
            : paint.scale(Math.sign(share) * (0.35 + 0.4 * Math.sqrt(Math.abs(share)))).fill,
        "fill-opacity": fan.isOn
          ? 0.5
          : fan.adds === undefined
            ? ((0.05 + (0.1 * fan.length) / longest) * 6) / Math.max(6, fans.length)
            : 0.14 + 0.14 * Math.abs(share),
        stroke: fan.isOn ? paint.css("query") : "none",
        "stroke-width": fan.isOn ? 2.4 * r : 0,
      });
      return { fan, path };
    });
  /** @type {number[]} */
  const taken = [];
  for (const fan of fans) {
    const middle = fan.at * width;
    const room = bands ? (isEach ? width / bands : 120 * r) : 96 * r;
    if (!isEach && (bands ? !fan.isOn : taken.some((other) => Math.abs(other - middle) < room))) continue;
    taken.push(middle);
    const left = Math.max(0, Math.min(width - room, middle - room / 2));
    sheet.label(left, y0 + tall + 11 * r, `c ${bands ? "hd" : ""}${fan.isOn || !bands ? " here" : ""}`, fan.name, room);
    if (!bands) continue;
    const text = fan.adds === undefined ? long(fan.length) : signed(fan.adds);
    const look = fan.adds === undefined ? "mute" : fan.adds < 0 ? "less" : "more";
    sheet.label(left, y0 + tall + 29 * r, `c ${look}${fan.isOn ? " here" : ""}`, text, room);
  }
  lower.peaks(narrow ? 2 : 3);
  const peaks = [...host.querySelectorAll(".peak")];
  /** @param {number} moment */
  const at = (moment) => {
    const [spread, grown] = [eased(part(moment, 0.05, 0.75)), eased(part(moment, 0.45, 1))];
    for (const { fan, path } of drawn) {
      const [middle, half] = [fan.at * width, Math.max(1, (fan.length / longest) * fan.wide * width * 0.5)];
      const end = mix(top, bottom, spread);
      const [left, right] = [mix(middle - half, 0, spread), mix(middle + half, width, spread)];
      const [one, two] = [mix(top, end, 0.62), mix(top, end, 0.45)];
      set(path, {
        d: `M${middle - half} ${top}C${middle - half} ${one} ${left} ${two} ${left} ${end}H${right}C${right} ${two} ${middle + half} ${one} ${middle + half} ${top}Z`,
      });
    }
    lower.values = moment < 1 ? Float64Array.from(to, (v) => v * grown) : to;
    lower.draw();
    for (const peak of peaks) /** @type {HTMLElement} */ (peak).style.opacity = moment < 1 ? "0" : "";
  };
  at(1);
  return {
    at,
    /** @param {Cell} cell */
    show: ([row, j]) => {
      upper.mark(row ? -1 : j);
      lower.mark(row ? j : -1);
    },
  };
}
