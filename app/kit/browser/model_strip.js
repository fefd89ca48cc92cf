// The whole model at one word, as a strip: the length of its stream, what attention and MLP add in each layer, and the next word. Every
// room that shows a layer has it. Of an encoder–decoder there are two, and the wires from one to the other. A low strip is one line.

import { cover } from "./cover.js";
import { apart, arrow, clamp, el, fill, percent, phrase, same, setAll, worded } from "./dom.js";
import { isSparing } from "./fetcher.js";
import { indexed, rowName, tokenName } from "./labels.js";
import { json } from "./messages.js";
import { Pen } from "./pen.js";
import { set, svg } from "./picture/svg.js";
import { Tip } from "./tip.js";
import { WORDS as words } from "./words.js";
import { pointed } from "./language.js";

/** @typedef {{name: string, lengths: number[], adds: number[] | null}} Part */
/** The answer of the route. @typedef {{position: number, stream: number[], parts: Part[], next: [word: string, p: number] | null, wires: number[][] | null, refused?: string}} Whole */
/** The place that a room shows. `layer`: "start" is the embedding and "end" the last norm; `query`: the word, the last one where
 * there is none; `key`: the word that cross-attention is asked about; `written`: the decoder's word, where the encoder's is chosen.
 * @typedef {{stack: string, layer: number | "start" | "end" | null, query?: number, key?: number, written?: number, labels: Record<string, string[]>}} Place */
/** Where one strip stands: its box, where its layers begin and end, and what the bars stand on and reach up to.
 * @typedef {{left: number, width: number, top: number, height: number, from: number, right: number, foot: number, high: number}} Space */
/** A strip that was laid out: its stack, and the places of its layers. @typedef {Space & {stack: string, wide: number, layers: number}} Laid */
/** How a wire runs: its path, the height that the drops begin and end at, and the line of what is said of them. @typedef {{d: string, y: number, to: number, line: number}} Way */

const HIGH = 2.75; // rem of one strip
const GAP = 1.9; // between two, where the wires are
const LOW = 2.25; // height of a low strip
const WIRES = 0.5; // of it, where the wires are
const [NAMED, APART] = [9.6, 1]; // rem for the name of a low strip beside another, and between the two
const [BEFORE, AFTER] = [8.6, 6.6]; // rem left and right of the layers; more at the left where the words there are longer
const MOST_BEFORE = 14;
const LETTER = 0.54; // of the size of the type, about
const [BEFORE_NARROW, AFTER_NARROW] = [0.4, 5.4];
const PHONE = 720; // pixels of a window that has no room for a low one
const NARROW = 560; // pixels of a strip without words at its left
const LETTERS = 11; // that the box of the next word has room for

/** Three digits of a length. @param {number} x */
export const long = (x) => pointed(x.toFixed(x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2));
/** The stack that a kind of attention belongs to. @param {string} site */
export const stackOf = (site) => (site === "encoder" ? "encoder" : "decoder");

/** The kind of attention of a stack that is shown where that stack is chosen. @param {string} stack @param {string} site on the screen */
export const siteOf = (stack, site) => (stackOf(site) === stack ? site : stack);

/** The key that all layers together look at most. @param {number[][] | null} wires */
function mostWired(wires) {
  const sums = (wires?.[0] ?? [0]).map((_, key) => (wires ?? []).reduce((sum, row) => sum + row[key], 0));
  return sums.indexOf(Math.max(...sums));
}

/** The name of a part of a layer beside the others. @param {string} name @param {Part[]} parts */
const partName = (name, parts) =>
  name === "attention" && parts.length > 2 ? words.strip_own : worded(words.strip_parts, name);

/** A number in logits with its sign. @param {number} x */
export const signed = (x) => pointed(`${x < -0.005 ? "−" : "+"}${Math.abs(x).toFixed(2)}`);

export class ModelStrip {
  /** @type {Laid[]} */
  laid = [];
  /** @type {Place | null} */
  place = null;
  /** @type {[stack: string, whole: Whole][]} The answers that are drawn */
  wholes = [];
  of = ""; // the run that they are of
  waits = false; // for an answer
  width = 0;
  /** @type {unknown[]} */
  drawn = [];

  /**
   * @param {import("./stage.js").Stage<any, any, any>} room @param {(layer: number | "start" | "end", stack: string) => void} pick what a click chooses
   * @param {{isLow?: boolean, tip?: Tip}} [how] low: one line, of whose layers alone one can be chosen; the tip of a room that has one
   */
  constructor(room, pick, { isLow = false, tip = new Tip(room.root) } = {}) {
    this.room = room;
    this.pick = pick;
    this.isLow = isLow;
    this.box = el("div", isLow ? "model-strip low" : "model-strip");
    this.#open(false);
    this.svg = svg("svg", { "aria-hidden": "true" });
    this.box.append(this.svg);
    this.box.hidden = true;
    this.tip = tip;
    const signal = room.leaving;
    this.box.addEventListener("click", (event) => this.#click(event), { signal });
    const tell = (/** @type {PointerEvent} */ event) => {
      if (!this.waits) this.tip.follow(this.#said(this.#at(event)), event);
    };
    this.box.addEventListener("pointermove", tell, { signal });
    this.box.addEventListener("pointerleave", () => this.tip.hide(), { signal });
    this.box.addEventListener("keydown", (event) => this.#key(event), { signal });
    new ResizeObserver(() => {
      const width = this.box.clientWidth;
      if (!width || width === this.width) return;
      this.width = width;
      this.#draw();
    }).observe(this.box);
  }

  /** The answers about each stack, the one that writes last; null while one of them is on its way. @returns {[stack: string, whole: Whole][] | null} */
  #answers() {
    const { stack, query, key, written: at, labels } = /** @type {Place} */ (this.place);
    const asked = (/** @type {string} */ of, /** @type {number | undefined} */ at) =>
      /** @type {Whole | null} */ (
        this.room.askLast("strip", at === undefined ? { stack: of } : { stack: of, query: at }, json)
      );
    const isTwo = Object.keys(labels).length > 1;
    const written = asked(isTwo ? "decoder" : stack, isTwo && stack === "encoder" ? at : query);
    if (!written || written.refused) return written && [];
    if (!isTwo) return [[stack, written]];
    const read = asked("encoder", (stack === "encoder" ? query : key) ?? mostWired(written.wires));
    if (!read || read.refused) return read && [];
    return [
      ["encoder", read],
      ["decoder", written],
    ];
  }

  /** Whether it has a place on the page: not where that is projected; a low one not on a phone either, nor beside a lesson. */
  get hasPlace() {
    if (this.room.isProjected || (this.isLow && isSparing())) return false; // it comes beside what is looked at
    return !this.isLow || (innerWidth > PHONE && !cover.isLed && cover.now === null);
  }

  /** @param {Place | null} place null where the room shows no run */
  draw(place) {
    const isShown = place !== null && this.hasPlace;
    this.place = isShown ? place : null;
    const found = isShown ? this.#answers() : [];
    this.waits = isShown && !found;
    this.box.classList.toggle("late", this.waits);
    if (found || this.of !== this.room.key) [this.wholes, this.of] = [found ?? [], this.room.key];
    // A low one keeps its line free until the answer is there.
    this.box.hidden = !isShown || !(this.wholes.length || (this.isLow && !found));
    this.#draw();
  }

  /** Whether there are no such numbers of this run. */
  get isRefused() {
    return this.of === this.room.key && this.place !== null && !this.waits && !this.wholes.length;
  }

  #draw() {
    const { place, wholes, room, box } = this;
    if (!place) return;
    if (!wholes.length) {
      new Pen(this.svg).end();
      this.laid = [];
      this.drawn = [];
      this.#open(false);
      return;
    }
    this.width ||= box.clientWidth;
    if (!this.width) return;
    const { stack, layer, query, key } = place;
    const of = [this.of, stack, layer, query, key, this.width, room.scheme, ...wholes.map(([, whole]) => whole)];
    if (same(of, this.drawn)) return;
    this.drawn = of;
    const unit = room.typeUnit; // read now alone: it costs a layout where something was written
    const pen = new Pen(this.svg);
    const spaces = this.isLow ? this.#side(16 * unit) : this.#stacked(16 * unit);
    const { top, height } = spaces[spaces.length - 1];
    set(this.svg, { width: this.width, height: top + height, viewBox: `0 0 ${this.width} ${top + height}` });
    this.laid = wholes.map(([name, whole], i) => {
      const layers = whole.stream.length - 1;
      const laid = { ...spaces[i], stack: name, layers, wide: (spaces[i].right - spaces[i].from) / layers };
      this.#drawOne(pen, laid, whole, 16 * unit, wholes.length > 1);
      return laid;
    });
    if (wholes.length > 1) {
      const way = this.isLow ? this.#lowWire(16 * unit) : this.#tallWire(16 * unit);
      this.#wires(pen, wholes[1][1], wholes[0][1].position, 16 * unit, way);
    }
    pen.end();
    this.#open(true);
    this.#describe();
  }

  // A slider once there is something to slide along: before, its line is empty.
  /** @param {boolean} isDrawn */
  #open(isDrawn) {
    this.box.tabIndex = isDrawn ? 0 : -1;
    this.box.ariaHidden = isDrawn ? null : "true";
    if (isDrawn) this.box.setAttribute("role", "slider");
    else this.box.removeAttribute("role");
  }

  get isNarrow() {
    return this.width < NARROW;
  }

  /** The width of the words at the left of a strip. @param {number} unit */
  #before(unit) {
    const letters = 0.82 * unit * LETTER;
    const widths = this.wholes.map(([, { parts }]) =>
      parts.reduce((sum, { name }) => sum + 1.05 * unit + partName(name, parts).length * letters, 0),
    );
    return clamp(Math.max(...widths), BEFORE * unit, MOST_BEFORE * unit);
  }

  /** Strips below each other. @param {number} unit @returns {Space[]} */
  #stacked(unit) {
    const { wholes, width, isNarrow } = this;
    const from = isNarrow ? BEFORE_NARROW * unit : this.#before(unit);
    const height = HIGH * unit;
    return wholes.map(([, { next }], i) => {
      const top = i * (HIGH + GAP) * unit;
      const after = next || wholes.length > 1 ? (isNarrow ? AFTER_NARROW : AFTER) * unit : 0.6 * unit;
      const foot = top + height - (isNarrow ? 2 : 1.2 * 0.82 * unit) - 2;
      return { left: 0, width, top, height, from, right: width - after, foot, high: foot - top - 4 };
    });
  }

  /** Strips in one line, as wide as their layers. @param {number} unit @returns {Space[]} */
  #side(unit) {
    const { wholes, width } = this;
    const isTwo = wholes.length > 1;
    const before = isTwo ? NAMED * unit : this.#before(unit);
    const after = wholes.map(([, { next }]) => (next ? AFTER * unit : 0.6 * unit));
    const apart = isTwo ? APART * unit : 0;
    const free = width - apart - after.reduce((sum, one) => sum + one + before, 0);
    const all = wholes.reduce((sum, [, { stream }]) => sum + stream.length - 1, 0);
    const height = LOW * unit;
    const foot = height - 1.1 * 0.82 * unit - 1.5; // the numbers of the layers are below it
    const above = isTwo ? WIRES * unit : 2;
    let left = 0;
    return wholes.map(([, { stream }], i) => {
      const from = left + before;
      const right = from + (free * (stream.length - 1)) / all;
      const space = { left, width: right + after[i] - left, top: 0, height, from, right, foot };
      left = right + after[i] + apart;
      return { ...space, high: foot - above };
    });
  }

  /** @param {Pen} pen @param {Laid} laid @param {Whole} whole @param {number} unit @param {boolean} isNamed */
  #drawOne(pen, laid, whole, unit, isNamed) {
    const place = /** @type {Place} */ (this.place);
    const { palette } = this.room;
    const { top, height, from, right, foot, high, wide, layers, stack } = laid;
    const { isNarrow, isLow } = this;
    const size = 0.82 * unit;
    const most = Math.max(...whole.stream);
    const added = Math.max(...whole.parts.flatMap(({ lengths }) => lengths));
    const y = (/** @type {number} */ x) => foot - Math.sqrt(x / most) * high;
    const at = (/** @type {number} */ layer) => from + layer * wide;
    const line = whole.stream.map((x, i) => `${i ? "L" : "M"}${at(i).toFixed(1)} ${y(x).toFixed(1)}`).join("");
    pen.draw("path", { d: `${line}L${right} ${foot}L${from} ${foot}Z`, fill: palette.proof, "fill-opacity": 0.11 });
    const own = place.stack === stack ? place.layer : null;
    const frame = { y: top + 1, height: height - 2, rx: 4 };
    if (typeof own === "number")
      pen.draw("rect", { ...frame, x: at(own), width: wide, fill: palette.query, "fill-opacity": 0.12 });
    const bar = Math.min((0.86 * wide) / whole.parts.length, 0.6 * unit);
    const bars = (/** @type {number} */ layer) => at(layer) + wide / 2 - (whole.parts.length / 2) * bar;
    const tones = { attention: palette.ink, "cross-attention": palette.key, MLP: palette.mute };
    for (let layer = 0; layer < layers; layer++)
      whole.parts.forEach(({ name, lengths }, i) => {
        const tall = Math.sqrt(lengths[layer] / added) * high;
        pen.draw("rect", {
          x: bars(layer) + (i + 0.08) * bar,
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
    if (isLow || !isNarrow) {
      const every = [1, 2, 5, 10, 20, 50].find((n) => n * wide > 2.4 * size) ?? 100;
      for (let layer = 0; layer < layers; layer++) {
        const isOwn = layer === own;
        const near = typeof own === "number" && Math.abs(layer - own) * wide < 1.7 * size;
        const isLast = layer === layers - 1 && (layer % every) * wide > 1.7 * size;
        if (isOwn || ((layer % every === 0 || isLast) && !near))
          pen.write(at(layer) + wide / 2, top + height - 0.2 * size - 1, String(layer), {
            size,
            anchor: "middle",
            fill: isOwn ? palette.query : palette.mute,
            "font-weight": isOwn ? 700 : 400,
          });
      }
    }
    if (typeof own === "number")
      pen.draw("rect", {
        ...frame,
        x: at(own) + 0.5,
        width: Math.max(3, wide - 1),
        fill: "none",
        stroke: palette.query,
        "stroke-width": 2,
      });
    if (isLow || !isNarrow) this.#legend(pen, laid, whole, unit, isNamed);
    if (whole.next) this.#next(pen, laid, whole, y(whole.stream[layers]), unit, own === "end");
  }

  /** @param {Pen} pen @param {Laid} laid @param {Whole} whole @param {number} unit @param {boolean} isNamed */
  #legend(pen, { stack, left, top, height, from }, whole, unit, isNamed) {
    const { palette } = this.room;
    const place = /** @type {Place} */ (this.place);
    const size = 0.82 * unit;
    const word = rowName(place.labels[stack], whole.position);
    if (isNamed)
      pen.write(left, top + 0.95 * size, fill(words.strip_stack, { stack: worded(words.strip_stacks, stack), word }), {
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
    let x = left + 0.1 * unit;
    for (const { name } of whole.parts) {
      const said = partName(name, whole.parts);
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
      x += 1.05 * unit + said.length * LETTER * size;
    }
    if (this.isLow) return;
    const isOwn = place.stack === stack && place.layer === "start";
    pen.write(from - 0.4 * unit, top + height - 0.25 * size - 1, words.strip_start, {
      size,
      anchor: "end",
      fill: isOwn ? palette.query : palette.mute,
      "font-weight": isOwn ? 700 : 400,
    });
  }

  /** @param {Pen} pen @param {Laid} laid @param {Whole} whole @param {number} y where the stream ends @param {number} unit @param {boolean} isOn */
  #next(pen, { right: x, top, height }, whole, y, unit, isOn) {
    const { palette } = this.room;
    const isFlat = this.isLow || this.isNarrow; // nothing stands below it
    const size = 0.82 * unit;
    const [label, p] = /** @type {[string, number]} */ (whole.next);
    const word = tokenName(label);
    const left = x + (this.isNarrow ? 0.5 : 1.3) * unit;
    const [wide, tall] = [this.width - left - 2, height - (isFlat ? 4 : 1.2 * size + 3)];
    const said = `${apart(word)} ${percent(p)}`;
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
    if (!isFlat)
      pen.write(left + wide / 2, top + height - 0.25 * size - 1, words.strip_end, {
        size,
        anchor: "middle",
        fill: isOn ? palette.query : palette.mute,
      });
  }

  /** The way of a wire between strips below each other: where it begins and runs along, and how it drops. @param {number} unit @returns {Way} */
  #tallWire(unit) {
    const [above, below] = this.laid;
    const y = (HIGH + 0.5) * unit;
    return {
      d: `M${above.right} ${above.top + 0.5 * unit}H${above.right + 0.5 * unit}V${y}H${below.from + below.wide / 2}`,
      y,
      to: below.top + 0.2 * unit,
      line: y + 1.05 * 0.82 * unit,
    };
  }

  /** And between two in one line. @param {number} unit @returns {Way} */
  #lowWire(unit) {
    const [before, { right, wide }] = this.laid;
    return {
      d: `M${before.right} ${before.foot - before.high}H${before.right + 0.5 * unit}V1.5H${right - wide / 2}`,
      y: 1.5,
      to: WIRES * unit,
      line: 1.2 * 0.82 * unit,
    };
  }

  // From the encoder's end onto each cross-attention, as thick as the weight on the chosen word
  /** @param {Pen} pen @param {Whole} whole @param {number} key @param {number} unit @param {Way} way */
  #wires(pen, whole, key, unit, { d, y, to, line }) {
    const { palette } = this.room;
    const { layer, stack, labels } = /** @type {Place} */ (this.place);
    const below = this.laid[1];
    const size = 0.82 * unit;
    pen.draw("path", { d, stroke: palette.key, "stroke-width": 2, fill: "none" });
    const word = rowName(labels.encoder, key);
    whole.wires?.forEach((weights, i) => {
      const x = below.from + (i + 0.5) * below.wide;
      const weight = weights[key] ?? 0;
      const tone = i === layer && stack === "decoder" ? palette.query : palette.key;
      pen.draw("path", {
        d: `M${x} ${y}V${to}`,
        stroke: tone,
        "stroke-width": Math.max(0.8, 6 * weight),
        fill: "none",
      });
      const said = fill(words.strip_wire, { share: percent(weight), word });
      const beside = this.isLow ? 1.2 * unit : 0.5 * unit; // of its bars
      if (below.wide / (this.isLow ? 2 : 1) - beside > said.length * 0.55 * size)
        pen.write(x + beside, line, said, { size, fill: tone, "font-weight": 650 });
    });
  }

  // The part under a point: a layer, the embedding or the end of one of the stacks
  /** @param {MouseEvent} event @returns {{stack: string, layer: number | "start" | "end"} | null} */
  #at(event) {
    const { left, top } = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    const laid = this.laid.findLast((one) => y >= one.top && x >= one.left) ?? this.laid[0];
    if (!laid) return null;
    const layer = Math.floor((x - laid.from) / laid.wide);
    return { stack: laid.stack, layer: layer < 0 ? "start" : layer >= laid.layers ? "end" : layer };
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const at = this.#at(event);
    if (at && (typeof at.layer === "number" || !this.isLow)) this.pick(at.layer, at.stack);
  }

  /** @param {{stack: string, layer: number | "start" | "end"} | null} at @returns {Node[]} */
  #said(at) {
    const whole = at && this.wholes.find(([stack]) => stack === at.stack)?.[1];
    if (!whole || !at) return [];
    const { layer } = at;
    if (layer === "start") {
      const said = phrase(words.strip_says_start, { x: long(whole.stream[0]) });
      return this.isLow ? said : [...said, document.createTextNode(` ${words.strip_made}`)];
    }
    const last = whole.stream.length - 1;
    if (layer === "end" || layer >= last)
      return phrase(whole.next ? words.strip_says_end : words.strip_says_last, {
        x: long(whole.stream[last]),
        word: [tokenName(whole.next?.[0] ?? ""), "next"],
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
    const weights = whole.wires?.[layer];
    if (weights) {
      const { position } = this.wholes[0][1];
      const { labels } = /** @type {Place} */ (this.place);
      const word = /** @type {[string, string]} */ ([rowName(labels.encoder, position), "key"]);
      line.push(
        document.createTextNode(" "),
        ...phrase(words.strip_says_wire, { word, share: percent(weights[position]) }),
      );
    }
    if (!whole.next || whole.parts.some(({ adds }) => !adds)) return line;
    const logits = whole.parts.map(
      ({ name, adds }) => `${worded(words.strip_parts, name)} ${signed(/** @type {number[]} */ (adds)[layer])}`,
    );
    return [
      ...line,
      el("br"),
      ...phrase(words.strip_logit, { word: [tokenName(whole.next[0]), "next"], parts: logits.join(", ") }),
    ];
  }

  #describe() {
    const { layer, stack, labels } = /** @type {Place} */ (this.place);
    const laid = this.laid.find((one) => one.stack === stack);
    const whole = this.wholes.find(([of]) => of === stack)?.[1];
    if (!laid || !whole) return;
    const now = layer === "start" ? -1 : layer === "end" ? laid.layers : (layer ?? 0);
    const said = layer === null ? [] : this.#said({ stack, layer });
    const label = fill(words.strip, { word: indexed(labels[stack], whole.position) });
    setAll(this.box, {
      "aria-label": label,
      "aria-valuemin": this.isLow ? "0" : "-1",
      "aria-valuemax": String(laid.layers - (this.isLow ? 1 : 0)),
      "aria-valuenow": String(now),
      "aria-valuetext": said.map((node) => node.textContent || " ").join("") || label,
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
    const now = place.layer === "start" ? -1 : place.layer === "end" ? laid.layers : (place.layer ?? -1);
    const next = this.isLow ? clamp(now + step, 0, laid.layers - 1) : clamp(now + step, -1, laid.layers);
    if (next === now) return;
    this.pick(next < 0 ? "start" : next >= laid.layers ? "end" : next, place.stack);
  }
}
