// The whole model at one word, as a strip: the length of its stream, what attention and MLP add in each layer, and the next word. Every
// room that shows a layer has it. Of an encoder–decoder there are two, and the wires from one to the other.

import { arrow, clamp, described, el, fill, percent, phrase, setAll, worded } from "./dom.js";
import { indexed, rowName } from "./labels.js";
import { json } from "./messages.js";
import { Pen } from "./pen.js";
import { set, svg } from "./picture/svg.js";
import { Tip } from "./tip.js";
import { WORDS as words } from "./words.js";

/** @typedef {{name: string, lengths: number[], adds: number[] | null}} Part */
/** The answer of the route. @typedef {{position: number, stream: number[], parts: Part[], next: [word: string, p: number] | null, wires: number[][] | null, refused?: string}} Whole */
/** The place that a room shows. `layer`: "start" is the embedding and "end" the last norm; `key`: the word that cross-attention is asked about.
 * @typedef {{stack: string, layer: number | "start" | "end", query: number, key?: number, labels: Record<string, string[]>}} Place */
/** A strip that was laid out: its stack, and the places of its layers. @typedef {{stack: string, top: number, from: number, wide: number, layers: number}} Laid */

const HIGH = 2.75; // rem of one strip
const GAP = 1.9; // between two, where the wires are
const [BEFORE, AFTER] = [8.6, 6.6]; // rem left and right of the layers
const [BEFORE_NARROW, AFTER_NARROW] = [0.4, 5.4];
const NARROW = 560; // pixels of a strip without words at its left
const LETTERS = 11; // that the box of the next word has room for

/** Three digits of a length. @param {number} x */
export const long = (x) => (x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x.toFixed(2));
/** The key that all layers together look at most. @param {number[][] | null} wires */
function mostWired(wires) {
  const sums = (wires?.[0] ?? [0]).map((_, key) => (wires ?? []).reduce((sum, row) => sum + row[key], 0));
  return sums.indexOf(Math.max(...sums));
}

/** A number in logits with its sign. @param {number} x */
export const signed = (x) => `${x < -0.005 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;

export class ModelStrip {
  /** @type {Laid[]} */
  laid = [];
  /** @type {Place | null} */
  place = null;
  width = 0;
  drawn = "";

  /** @param {import("./stage.js").Stage<any, any, any>} room @param {(layer: number | "start" | "end", stack: string) => void} pick what a click chooses */
  constructor(room, pick) {
    this.room = room;
    this.pick = pick;
    this.box = described(el("div", "strip"), "slider", words.strip);
    this.box.tabIndex = 0;
    this.svg = svg("svg", { "aria-hidden": "true" });
    this.box.append(this.svg);
    this.box.hidden = true;
    this.tip = new Tip(room.root);
    const signal = room.leaving;
    this.box.addEventListener("click", (event) => this.#click(event), { signal });
    this.box.addEventListener("pointermove", (event) => this.tip.follow(this.#said(this.#at(event)), event), {
      signal,
    });
    this.box.addEventListener("pointerleave", () => this.tip.hide(), { signal });
    this.box.addEventListener("keydown", (event) => this.#key(event), { signal });
    new ResizeObserver(() => {
      if (this.box.clientWidth !== this.width) this.room.invalidate("size");
    }).observe(this.box);
  }

  /** The answers about each stack, the one that writes last; none while one of them is on its way. @returns {[stack: string, whole: Whole][]} */
  #wholes() {
    const { stack, query, key, labels } = /** @type {Place} */ (this.place);
    const asked = (/** @type {string} */ of, /** @type {number | undefined} */ at) =>
      /** @type {Whole | null} */ (
        this.room.ask("strip", at === undefined ? { stack: of } : { stack: of, query: at }, json)
      );
    const isTwo = Object.keys(labels).length > 1;
    const written = asked(isTwo ? "decoder" : stack, isTwo && stack === "encoder" ? undefined : query);
    if (!written || written.refused) return [];
    if (!isTwo) return [[stack, written]];
    const read = asked("encoder", stack === "encoder" ? query : (key ?? mostWired(written.wires)));
    return !read || read.refused
      ? []
      : [
          ["encoder", read],
          ["decoder", written],
        ]; // prettier-ignore
  }

  /** @param {Place | null} place null where the room shows no run */
  draw(place) {
    this.place = place;
    const wholes = place && !this.room.isProjected ? this.#wholes() : [];
    if (!place || this.room.isProjected) this.box.hidden = true;
    if (!wholes.length || !place) return;
    this.box.hidden = false;
    const unit = this.room.typeUnit * 16;
    this.width = this.box.clientWidth;
    if (!this.width) return;
    const of = JSON.stringify([this.room.key, place, this.width, unit, this.room.scheme]);
    if (of === this.drawn) return;
    this.drawn = of;
    const height = (HIGH * wholes.length + GAP * (wholes.length - 1)) * unit;
    set(this.svg, { width: this.width, height, viewBox: `0 0 ${this.width} ${height}` });
    const pen = new Pen(this.svg);
    this.laid = wholes.map(([stack, whole], i) =>
      this.#drawOne(pen, stack, whole, i * (HIGH + GAP) * unit, unit, wholes.length > 1),
    );
    if (wholes.length > 1) this.#wires(pen, wholes[1][1], wholes[0][1].position, unit);
    pen.end();
    this.#describe();
  }

  /** @param {Pen} pen @param {string} stack @param {Whole} whole @param {number} top @param {number} unit @param {boolean} isNamed @returns {Laid} */
  #drawOne(pen, stack, whole, top, unit, isNamed) {
    const place = /** @type {Place} */ (this.place);
    const { palette } = this.room;
    const isNarrow = this.width < NARROW;
    const [size, layers] = [0.82 * unit, whole.stream.length - 1];
    const [before, after] = isNarrow ? [BEFORE_NARROW * unit, AFTER_NARROW * unit] : [BEFORE * unit, AFTER * unit];
    const [from, right] = [before, this.width - (whole.next || isNamed ? after : 0.6 * unit)];
    const wide = (right - from) / layers;
    const foot = top + HIGH * unit - (isNarrow ? 2 : 1.2 * size) - 2; // what the bars stand on
    const high = foot - top - 4;
    const most = Math.max(...whole.stream);
    const added = Math.max(...whole.parts.flatMap(({ lengths }) => lengths));
    const y = (/** @type {number} */ x) => foot - Math.sqrt(x / most) * high;
    const at = (/** @type {number} */ layer) => from + layer * wide;
    const line = whole.stream.map((x, i) => `${i ? "L" : "M"}${at(i).toFixed(1)} ${y(x).toFixed(1)}`).join("");
    pen.draw("path", { d: `${line}L${right} ${foot}L${from} ${foot}Z`, fill: palette.proof, "fill-opacity": 0.11 });
    const own = place.stack === stack ? place.layer : null;
    if (typeof own === "number")
      pen.draw("rect", {
        x: at(own),
        y: top + 1,
        width: wide,
        height: HIGH * unit - 2,
        rx: 4,
        fill: palette.query,
        "fill-opacity": 0.12,
      });
    const bar = Math.min((0.86 * wide) / whole.parts.length, 0.6 * unit);
    const tones = { attention: palette.ink, "cross-attention": palette.key, MLP: palette.mute };
    for (let layer = 0; layer < layers; layer++)
      whole.parts.forEach(({ name, lengths }, i) => {
        const tall = Math.sqrt(lengths[layer] / added) * high;
        const x = at(layer) + wide / 2 + (i - whole.parts.length / 2) * bar;
        pen.draw("rect", {
          x: x + 0.08 * bar,
          y: foot - tall,
          width: 0.84 * bar,
          height: tall,
          rx: 1,
          fill: tones[/** @type {"MLP"} */ (name)],
          "fill-opacity": name === "MLP" ? 0.62 : 1,
        });
      });
    pen.draw("path", { d: `M${from} ${foot}H${right}`, stroke: palette.hatch, fill: "none" });
    pen.draw("path", { d: line, stroke: palette.proof, "stroke-width": 2, fill: "none" });
    if (!isNarrow) {
      const every = [1, 2, 5, 10, 20, 50].find((n) => n * wide > 2.4 * size) ?? 100;
      for (let layer = 0; layer < layers; layer++) {
        const isOwn = layer === own;
        const near = typeof own === "number" && Math.abs(layer - own) * wide < 1.7 * size;
        if (isOwn || ((layer % every === 0 || layer === layers - 1) && !near))
          pen.write(at(layer) + wide / 2, top + HIGH * unit - 0.25 * size - 1, String(layer), {
            size,
            anchor: "middle",
            fill: isOwn ? palette.query : palette.mute,
            "font-weight": isOwn ? 700 : 400,
          });
      }
    }
    if (typeof own === "number")
      pen.draw("rect", {
        x: at(own) + 0.5,
        y: top + 1,
        width: Math.max(3, wide - 1),
        height: HIGH * unit - 2,
        rx: 4,
        fill: "none",
        stroke: palette.query,
        "stroke-width": 2,
      });
    if (!isNarrow) this.#legend(pen, stack, whole, top, unit, size, isNamed, own === "start");
    if (whole.next)
      this.#next(pen, whole, { x: right, y: y(whole.stream[layers]), top, unit, size, isNarrow, isOn: own === "end" });
    return { stack, top, from, wide, layers };
  }

  /** @param {Pen} pen @param {string} stack @param {Whole} whole @param {number} top @param {number} unit @param {number} size @param {boolean} isNamed @param {boolean} isStart */
  #legend(pen, stack, whole, top, unit, size, isNamed, isStart) {
    const { palette } = this.room;
    const word = rowName(/** @type {Place} */ (this.place).labels[stack], whole.position);
    if (isNamed)
      pen.write(0, top + 0.95 * size, fill(words.strip_stack, { stack: worded(words.strip_stacks, stack), word }), {
        size,
        fill: palette.ink,
        "font-weight": 650,
      });
    else {
      pen.draw("path", {
        d: `M0 ${top + 0.62 * size}H${1.1 * unit}`,
        stroke: palette.proof,
        "stroke-width": 2.2,
        fill: "none",
      });
      pen.write(1.5 * unit, top + 0.95 * size, fill(words.strip_stream, { word }), { size, fill: palette.ink });
    }
    let x = 0.1 * unit;
    for (const { name } of whole.parts) {
      const said = name === "attention" && whole.parts.length > 2 ? words.strip_own : worded(words.strip_parts, name);
      pen.draw("rect", {
        x,
        y: top + 1.3 * size,
        width: 0.34 * unit,
        height: 0.8 * size,
        rx: 1,
        fill: name === "MLP" ? palette.mute : name === "attention" ? palette.ink : palette.key,
        "fill-opacity": name === "MLP" ? 0.62 : 1,
      });
      pen.write(x + 0.6 * unit, top + 2.02 * size, said, { size, fill: palette.ink });
      x += 1.05 * unit + said.length * 0.5 * size;
    }
    pen.write(BEFORE * unit - 0.4 * unit, top + HIGH * unit - 0.25 * size - 1, words.strip_start, {
      size,
      anchor: "end",
      fill: isStart ? palette.query : palette.mute,
      "font-weight": isStart ? 700 : 400,
    });
  }

  /** @param {Pen} pen @param {Whole} whole @param {{x: number, y: number, top: number, unit: number, size: number, isNarrow: boolean, isOn: boolean}} of */
  #next(pen, whole, { x, y, top, unit, size, isNarrow, isOn }) {
    const { palette } = this.room;
    const [word, p] = /** @type {[string, number]} */ (whole.next);
    const left = x + (isNarrow ? 0.5 : 1.3) * unit;
    const [wide, tall] = [this.width - left - 2, HIGH * unit - (isNarrow ? 4 : 1.2 * size + 3)];
    const said = `${word} ${percent(p)}`;
    pen.draw("path", { d: `M${x} ${y}H${left}`, stroke: palette.proof, "stroke-width": 2, fill: "none" });
    pen.draw("rect", {
      x: left,
      y: top + 2,
      width: wide,
      height: tall,
      rx: 5,
      fill: palette.proof,
      "fill-opacity": 0.11,
      stroke: isOn ? palette.query : palette.proof,
      "stroke-width": isOn ? 2.4 : 1.5,
      "stroke-dasharray": "5 4",
    });
    pen.write(
      left + wide / 2,
      top + 2 + tall / 2 + 0.35 * size,
      said.length <= LETTERS ? said : word.length <= LETTERS ? word : `${[...word].slice(0, LETTERS - 1).join("")}…`,
      { size, anchor: "middle", fill: palette.proof, "font-weight": 650 },
    );
    if (!isNarrow)
      pen.write(left + wide / 2, top + HIGH * unit - 0.25 * size - 1, words.strip_end, {
        size,
        anchor: "middle",
        fill: isOn ? palette.query : palette.mute,
      });
  }

  // From the encoder's end onto each cross-attention, as thick as the weight on the chosen word
  /** @param {Pen} pen @param {Whole} whole @param {number} key @param {number} unit */
  #wires(pen, whole, key, unit) {
    const { palette } = this.room;
    const { layer, labels } = /** @type {Place} */ (this.place);
    const [above, below] = this.laid;
    const [end, y] = [above.from + above.wide * above.layers, HIGH * unit + 0.5 * unit];
    const size = 0.82 * unit;
    const last = below.from + below.wide / 2;
    pen.draw("path", {
      d: `M${end} ${above.top + 0.5 * unit}H${end + 0.5 * unit}V${y}H${last}`,
      stroke: palette.key,
      "stroke-width": 2,
      fill: "none",
    });
    const word = rowName(labels.encoder, key);
    whole.wires?.forEach((weights, i) => {
      const x = below.from + (i + 0.5) * below.wide;
      const weight = weights[key] ?? 0;
      const tone = i === layer ? palette.query : palette.key;
      pen.draw("path", {
        d: `M${x} ${y}V${below.top + 0.2 * unit}`,
        stroke: tone,
        "stroke-width": Math.max(0.8, 6 * weight),
        fill: "none",
      });
      const said = fill(words.strip_wire, { share: percent(weight), word });
      if (below.wide > said.length * 0.55 * size)
        pen.write(x + 0.5 * unit, y + 1.05 * size, said, { size, fill: tone, "font-weight": 650 });
    });
  }

  // The part under a point: a layer, the embedding or the end of one of the stacks
  /** @param {MouseEvent} event @returns {{stack: string, layer: number | "start" | "end"} | null} */
  #at(event) {
    const { left, top } = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const laid = this.laid.findLast((one) => y >= one.top) ?? this.laid[0];
    if (!laid) return null;
    const layer = Math.floor((x - laid.from) / laid.wide);
    return { stack: laid.stack, layer: layer < 0 ? "start" : layer >= laid.layers ? "end" : layer };
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const at = this.#at(event);
    if (at) this.pick(at.layer, at.stack);
  }

  /** @param {{stack: string, layer: number | "start" | "end"} | null} at @returns {Node[]} */
  #said(at) {
    const whole = at && this.#wholes().find(([stack]) => stack === at.stack)?.[1];
    if (!whole || !at) return [];
    const { layer } = at;
    if (layer === "start") return phrase(words.strip_says_start, { x: long(whole.stream[0]) });
    const last = whole.stream.length - 1;
    if (layer === "end" || layer >= last)
      return phrase(whole.next ? words.strip_says_end : words.strip_says_last, {
        x: long(whole.stream[last]),
        word: [whole.next?.[0] ?? "", "next"],
        p: percent(whole.next?.[1] ?? 0),
      });
    const parts = whole.parts.map(({ name, lengths }) =>
      fill(words.strip_adds, { name: worded(words.strip_parts, name), x: long(lengths[layer]) }),
    );
    const line = phrase(words.strip_says, {
      layer,
      a: long(whole.stream[layer]),
      b: long(whole.stream[layer + 1]),
      parts: parts.join(", "),
    });
    if (!whole.next || whole.parts.some(({ adds }) => !adds)) return line;
    const logits = whole.parts.map(
      ({ name, adds }) => `${worded(words.strip_parts, name)} ${signed(/** @type {number[]} */ (adds)[layer])}`,
    );
    return [
      ...line,
      el("br"),
      ...phrase(words.strip_logit, { word: [whole.next[0], "next"], parts: logits.join(", ") }),
    ];
  }

  #describe() {
    const { layer, stack, labels } = /** @type {Place} */ (this.place);
    const laid = this.laid.find((one) => one.stack === stack);
    const whole = this.#wholes().find(([of]) => of === stack)?.[1];
    if (!laid || !whole) return;
    const now = layer === "start" ? -1 : layer === "end" ? laid.layers : layer;
    setAll(this.box, {
      "aria-label": fill(words.strip, { word: indexed(labels[stack], whole.position) }),
      "aria-valuemin": "-1",
      "aria-valuemax": String(laid.layers),
      "aria-valuenow": String(now),
      "aria-valuetext": this.#said({ stack, layer })
        .map((node) => node.textContent || " ")
        .join(""),
    });
  }

  // Left and right go from layer to layer while it has the focus
  /** @param {KeyboardEvent} event */
  #key(event) {
    const { place } = this;
    const laid = place && this.laid.find((one) => one.stack === place.stack);
    const step = arrow(event)?.[1];
    if (!place || !laid || !step) return;
    event.preventDefault();
    event.stopPropagation();
    const now = place.layer === "start" ? -1 : place.layer === "end" ? laid.layers : place.layer;
    const next = clamp(now + step, -1, laid.layers);
    this.pick(next < 0 ? "start" : next >= laid.layers ? "end" : next, place.stack);
  }
}
