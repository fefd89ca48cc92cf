// The columns: one for each token that was read, cut into what may come next; and the rows below, on the same axis.

import { apart, fill, fixed, number, percent, same } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { svg } from "../../../kit/browser/picture/svg.js";
import { bits, look, most } from "./chances.js";
import { WORDS as words } from "./constants.js";
import { common } from "./paths.js";
import { cut, fitted, ruler, short, size } from "./shapes.js";

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Acts} Acts */
/** @typedef {import("./types.js").Column} Column */
/** @typedef {{x: (i: number) => number, step: number, wide: number, bars: number, gutter: number}} Axis */

const GUTTER = 66; // at the left, where the rows below have their names: as wide as those of this language, between these two
const WIDEST_GUTTER = 110;
const BESIDE = 9; // between a name and its row
const NAME = 12.4; // size of a name's type, and of what is below one
const SMALL = 11;
const TOP = 22;
const SURPRISE = 46; // pixels high
const CACHE = 52;
const NAMED = 14; // words of a column that are drawn by themselves
const LEAST = 11.5; // pixels of a slice that has its word written in it
export const IN_SIGHT = 13;

// The picture. What is as it was at the last drawing is left alone: a column of the same chances, which is only moved where the text
// goes on and the columns in sight with it, and the rows below of the same tokens.
export class Columns {
  /** @type {Scene} That is drawn */
  scene;
  /** @type {SVGTextElement[]} */
  reads = [];
  /** @type {WeakMap<Element, unknown[]>} What each group was drawn of */
  drawn = new WeakMap();
  /** @type {Map<import("./types.js").Node, SVGGElement>} The columns in sight, by the token that was read */
  groups = new Map();
  isBeam = false;
  /** @type {Axis} */
  axis = { x: () => 0, step: 0, wide: 0, bars: 0, gutter: GUTTER };
  /** @type {ReturnType<typeof ruler> | undefined} */
  known;

  /** @param {SVGSVGElement} svg @param {Acts} acts */
  constructor(svg, acts) {
    this.svg = svg;
    this.acts = acts;
    const pen = new Pen(svg);
    const defs = pen.draw("defs", {});
    const hatch = new Pen(
      new Pen(defs).draw("pattern", {
        id: "generate-hatch",
        width: 5,
        height: 5,
        patternTransform: "rotate(45)",
        patternUnits: "userSpaceOnUse",
      }),
    );
    hatch.draw("rect", { width: 5, height: 5, fill: "var(--background)" });
    hatch.draw("rect", { width: 1.1, height: 5, fill: "var(--hatch)" });
    this.heading = pen.draw("g", {});
    this.bars = pen.draw("g", {});
    this.frame = pen.draw("rect", { fill: "none", stroke: "var(--query)", "stroke-width": 2, rx: 4 });
    this.rows = pen.draw("g", {});
    this.hits = pen.draw("g", {});
    this.low = 0; // where the rows end
  }

  get ruler() {
    return (this.known ??= ruler(getComputedStyle(this.svg).fontFamily));
  }

  // The width of the names of the rows
  get gutter() {
    const { reads, writes, surprise, bits, looks, cache, other, branches } = words;
    const large = [reads, writes, surprise, bits, looks, cache, other, branches].map((name) => this.ruler(name, NAME));
    const most = Math.max(...large, this.ruler(words.line_is, SMALL));
    return Math.ceil(Math.min(Math.max(GUTTER, most + BESIDE), WIDEST_GUTTER));
  }

  /** @param {Scene} scene @param {{width: number, bars: number, scale: number, brief: boolean}} sizes brief: without what is kept, the cache and other branches */
  draw(scene, { width: whole, bars, scale, brief }) {
    this.scene = scene;
    const { inSight } = scene;
    const width = whole / scale;
    const beam = scene.how === "beam";
    if (beam !== this.isBeam) {
      this.bars.replaceChildren(); // beams stand where the columns stood
      this.groups.clear();
    }
    this.isBeam = beam;
    const gutter = this.gutter;
    const step = Math.min(110, (width - gutter) / (beam ? IN_SIGHT : Math.max(inSight.length, 11)));
    const x = (/** @type {number} */ i) => gutter + i * step;
    const axis = (this.axis = { x, step, wide: step - 14, bars, gutter });
    const place = [width, bars, step, inSight.length];
    heading(this.heading, scene, x(inSight.length) - 14, this.ruler);
    if (beam) trees(this.bars, scene, this.acts, axis);
    else {
      this.places(inSight);
      inSight.forEach((column, i) => {
        const group = /** @type {SVGGElement} */ (this.groups.get(column.node));
        const next = i < inSight.length - 1;
        const { node, shown, take, given, known } = column;
        const at = `translate(${Math.round(x(i) * 100) / 100} 0)`;
        if (group.getAttribute("transform") !== at) group.setAttribute("transform", at);
        this.part(group, [width, bars, step, node, shown, take, given, known?.prob, next], () =>
          column_(group, scene, (id) => this.take(node, id), column, { ...axis, next }),
        );
      });
    }
    Object.entries({ y: TOP - 3, width: Math.round((axis.wide + 6) * 100) / 100, height: bars + 6 }).forEach(
      ([name, value]) => this.frame.setAttribute(name, String(value)),
    );
    const of = [
      ...place,
      scene.header.key,
      scene.how,
      scene.nBeams,
      scene.by?.layer,
      scene.by?.head,
      scene.cached,
      scene.sink,
      brief,
      scene.path.join("."),
      scene.others.join("_"),
      ...inSight.flatMap(({ node, take, given, read, known }) => [node, take, given, read, known?.prob]),
    ];
    this.part(
      this.rows,
      of,
      () =>
        ({ height: this.low, reads: this.reads } = rows(this.rows, scene, this.acts, {
          ...axis,
          y: TOP + bars + 19,
          brief,
          ruler: this.ruler,
        })),
    );
    const pen = new Pen(this.hits);
    inSight.forEach((_, i) =>
      pen.draw(
        "rect",
        { class: "hit", x: x(i), y: TOP + bars + 3, width: axis.wide, height: 150, fill: "transparent" },
        { click: () => this.acts.focus(this.scene.first + i) },
      ),
    );
    pen.end();
    for (const [name, value] of Object.entries({
      width: whole,
      height: this.low * scale,
      viewBox: `0 0 ${width} ${this.low}`,
    }))
      if (this.svg.getAttribute(name) !== String(value)) this.svg.setAttribute(name, String(value));
  }

  /** @param {Element} group @param {unknown[]} of @param {() => void} work */
  part(group, of, work) {
    if (same(of, this.drawn.get(group))) return;
    this.drawn.set(group, of);
    work();
  }

  // A group for each column in sight, in their order: the one that it had, or that of one which has gone out of sight
  /** @param {Column[]} inSight */
  places(inSight) {
    const now = new Set(inSight.map(({ node }) => node));
    const free = [...this.groups].filter(([node]) => !now.has(node)).map(([, group]) => group);
    for (const group of free) group.remove(); // before the others are looked at, which then stay where they are
    const before = this.groups;
    this.groups = new Map();
    /** @type {Element | null} */
    let at = this.bars.firstElementChild;
    for (const { node } of inSight) {
      const group = before.get(node) ?? free.shift() ?? svg("g");
      this.groups.set(node, group);
      if (group === at) at = at.nextElementSibling;
      else this.bars.insertBefore(group, at);
    }
  }

  /** @param {import("./types.js").Node} node @param {number} id */
  take(node, id) {
    this.acts.take(
      this.scene.columns.findIndex((column) => column.node === node),
      id,
    );
  }

  // Which column is looked at
  /** @param {number} focus */
  mark(focus) {
    const { axis, scene } = this;
    const at = focus - scene.first;
    this.frame.setAttribute("visibility", !this.isBeam && at >= 0 && at < scene.inSight.length ? "visible" : "hidden");
    this.frame.setAttribute("x", String(Math.round((axis.x(at) - 3) * 100) / 100));
    this.reads.forEach((read, i) => {
      read.setAttribute("font-weight", i === at ? "650" : "400");
      read.setAttribute("fill", i === at ? "var(--query)" : "var(--mute)");
    });
  }
}

// The title of the columns, and at their right end the loss. The note between them is cut; its tip has all of it.
/** @param {Element} box @param {Scene} scene @param {number} right @param {ReturnType<typeof ruler>} wide */
function heading(box, scene, right, wide) {
  const beam = scene.how === "beam";
  const pen = new Pen(box);
  const line = new Pen(pen.draw("text", { x: 0, y: 12, "font-size": 14.5, "font-weight": 650, fill: "var(--ink)" }));
  const title = beam ? fill(words.beam_title, { n: scene.nBeams }) : words.title;
  const loss = !beam && right > 700 && !scene.said ? lossOf(scene) : "";
  const note = scene.said || (beam ? words.beam_note : words.title_note);
  const room = right - wide(title, 14.5, 650) - 8 - (loss ? wide(loss, 13.4) + 18 : 0);
  const seen = loss ? fitted(note, room, (text) => wide(text, 13.4)) : note;
  line.draw("tspan", {}, { text: title });
  line.draw("tspan", { dx: 8, "font-size": 13.4, "font-weight": 400, fill: "var(--mute)" }, { text: seen });
  if (seen !== note) line.draw("title", {}, { text: note });
  if (loss) pen.write(right, 12, loss, { anchor: "end", size: 13.4, fill: "var(--mute)", class: "loss" });
  line.end();
  pen.end();
}

// The loss on the text that was given, where it has a second token, or on the words that were written
/** @param {Scene} scene */
export function lossOf(scene) {
  const given = scene.losses.slice(0, scene.prompt.length - 1);
  const own = scene.columns
    .filter(({ given, known }) => !given && known)
    .map(({ known }) => -Math.log(/** @type {{prob: number}} */ (known).prob));
  const losses = given.length ? given : own;
  if (!losses.length) return "";
  const nats = losses.reduce((a, b) => a + b, 0) / losses.length;
  return fill(given.length ? words.loss_given : words.loss_own, {
    nats: fixed(nats),
    bits: fixed(nats / Math.LN2),
  });
}

/** @param {Element} box @param {Scene} scene @param {(id: number) => void} choose @param {Column} column @param {Axis & {next: boolean}} place */
function column_(box, scene, choose, column, { step, wide, bars, next }) {
  const pen = new Pen(box);
  const { node, shown, take, given } = column;
  const colour = given ? "var(--given)" : "var(--proof)";
  const ink = given ? "var(--given-ink)" : "var(--on)";
  /** @type {[id: number, share: number][]} */
  const list = Array.from(node.ids.subarray(0, NAMED), (id, j) => [id, shown.probs[j]]);
  if (take !== null && !list.some(([id]) => id === take)) {
    const at = node.ids.indexOf(take);
    list.push([take, at >= 0 ? shown.probs[at] : (column.known?.prob ?? 0)]);
  }
  let y = TOP;
  /** @type {[y: number, height: number] | null} */
  let taken = null;
  const bottom = TOP + bars;
  list.forEach(([id, share], j) => {
    const high = Math.min(share * bars, bottom - y);
    if (share <= 0) return;
    const isTaken = id === take;
    if (isTaken) taken = [y, Math.max(high, 1.5)];
    const label = scene.label(id);
    pen.draw(
      "rect",
      {
        class: "hit",
        y,
        width: wide,
        height: Math.max(isTaken ? 1.5 : 0, high - (high > 3 ? 1 : 0)),
        fill: isTaken ? colour : j % 2 ? "var(--slice2)" : "var(--slice)",
      },
      { title: fill(words.slice, { word: label, share: percent(share) }), click: () => choose(id) },
    );
    if (high >= LEAST)
      pen.write(4, y + high / 2 + 3.9, cut(label, wide - 7), {
        size: 12.4,
        "font-weight": isTaken ? 650 : 400,
        "pointer-events": "none",
        fill: isTaken ? ink : "var(--ink)",
      });
    y += high;
  });
  const high = bottom - y;
  if (high > 0.5) {
    const n = scene.header.vocab - list.length;
    pen.draw(
      "rect",
      { y, width: wide, height: high, fill: "url(#generate-hatch)", opacity: 0.8 },
      { title: fill(words.rest, { n: number(n), share: percent(high / bars) }) },
    );
    if (high > 24 && shown.left !== null && shown.left > list.length) {
      const text = `+${short(Math.min(n, shown.left - list.length))}`;
      pen.write(wide / 2, y + high / 2 + 4, text, {
        anchor: "middle",
        size: 11.6,
        "font-weight": 400,
        fill: "var(--mute)",
        stroke: "var(--background)",
        "stroke-width": 4,
        "paint-order": "stroke",
        "pointer-events": "none",
      });
    }
  }
  if (taken && next)
    pen.draw("path", {
      d: `M${wide} ${taken[0]}L${step} ${TOP}L${step} ${bottom}L${wide} ${taken[0] + taken[1]}Z`,
      fill: colour,
      opacity: 0.16,
    });
  pen.end();
}

/** @param {Element} box @param {Scene} scene @param {Acts} acts @param {Axis} place */
function trees(box, scene, acts, { x, step, wide, bars }) {
  const { inSight, grown, winner, nBeams } = scene;
  const row = bars / nBeams;
  const high = row * 0.6;
  const all = new Pen(box);
  const given = new Pen(all.draw("g", {}));
  inSight.forEach((column, i) => {
    if (column.given) {
      given.draw("rect", { x: x(i), y: TOP, width: wide, height: bars, fill: "var(--slice)", rx: 3 });
      given.write(x(i) + wide / 2, TOP + bars / 2, cut(column.take === null ? "" : scene.label(column.take), wide), {
        anchor: "middle",
        size: 12.8,
        fill: "var(--mute)",
      });
    }
  });
  const begins = -(inSight[0]?.at ?? 0);
  const boxes = new Pen(all.draw("g", step < 40 ? { "font-size": 10 } : {}));
  const lines = new Pen(all.draw("g", {}));
  grown.forEach(({ kept, dropped }, depth) => {
    const place = begins + depth;
    if (place < 0 || place >= IN_SIGHT) return;
    kept.forEach((beam, r) => {
      const y = TOP + r * row + 2;
      const on = beam.path.every((id, i) => id === winner[i]);
      if (depth && place > 0) {
        const from = TOP + beam.row * row + 2 + high / 2;
        lines.draw("path", {
          d: `M${x(place) - 14} ${from}C${x(place) - 6} ${from} ${x(place) - 8} ${y + high / 2} ${x(place)} ${y + high / 2}`,
          fill: "none",
          stroke: on ? "var(--proof)" : "var(--hatch)",
          "stroke-width": on ? 3 : 1.6,
        });
      }
      boxes.draw(
        "rect",
        { class: "hit", x: x(place), y, width: wide, height: high, rx: 3, fill: on ? "var(--proof)" : "var(--slice2)" },
        {
          title: `${apart(beam.path.map(scene.label).join(" "))} ${fixed(beam.logProb)}`,
          click: () => acts.go(beam.path, scene.prompt.length + beam.path.length - 2),
        },
      );
      boxes.write(x(place) + wide / 2, y + high / 2 - 2, cut(scene.label(beam.id), wide), {
        anchor: "middle",
        size: 12.6,
        "font-weight": 650,
        "pointer-events": "none",
        fill: on ? "var(--on)" : "var(--ink)",
      });
      if (high > 26)
        boxes.write(x(place) + wide / 2, y + high / 2 + 12, fixed(beam.logProb), {
          anchor: "middle",
          size: 11.4,
          "pointer-events": "none",
          fill: on ? "var(--on)" : "var(--mute)",
        });
    });
    dropped.slice(0, nBeams).forEach((beam, r) => {
      if (row < 40) return;
      boxes.write(
        x(place) + wide / 2,
        TOP + r * row + high + 15,
        `${beam.ends ? "■" : "×"} ${cut(scene.label(beam.id), wide - 10)}`,
        { anchor: "middle", size: 11.4, fill: "var(--mute)" },
      );
    });
  });
  for (const pen of [given, boxes, lines, all]) pen.end();
}

/** @param {Element} box @param {Scene} scene @param {Acts} acts @param {Axis & {y: number, brief: boolean, ruler: ReturnType<typeof ruler>}} place */
function rows(box, scene, acts, { x, step, wide, gutter, y, brief, ruler: width }) {
  const { header, inSight } = scene;
  const middle = (/** @type {number} */ i) => x(i) + wide / 2;
  const all = new Pen(box);
  /** @type {Pen[]} */
  const pens = [all];
  const row = () => {
    const pen = new Pen(all.draw("g", {}));
    pens.push(pen);
    return pen;
  };
  const names = row();
  const name = (/** @type {string} */ text, /** @type {number} */ at, small = NAME) =>
    names.write(
      gutter - BESIDE,
      at,
      fitted(text, gutter - BESIDE, (part) => width(part, small)),
      { anchor: "end", size: small, fill: "var(--mute)" },
    );
  const end = () => pens.forEach((pen) => pen.end());
  name(words.reads, y);
  name(words.writes, y + 18);
  const read = row();
  const reads = inSight.map((column, i) =>
    read.write(middle(i), y, cut(column.read, step - 3), { anchor: "middle", size: 12.8 }),
  );
  const writes = row();
  inSight.forEach((column, i) => {
    const written = column.take === null ? "?" : scene.label(column.take);
    writes.write(middle(i), y + 18, cut(written, step - 3), {
      anchor: "middle",
      size: 13,
      "font-weight": column.given || column.take === null ? 400 : 650,
      fill: column.take === null ? "var(--mute)" : column.given ? "var(--ink)" : "var(--proof)",
    });
    if (i < inSight.length - 1)
      writes.draw("path", {
        d: `M${middle(i) + 13} ${y + 10}L${middle(i + 1) - 13} ${y + 1}`,
        stroke: "var(--line)",
        "stroke-width": 1.2,
        fill: "none",
      });
  });
  y += 30;
  name(words.surprise, y + SURPRISE - 10);
  name(words.bits, y + SURPRISE + 3);
  const surprise = row();
  const highest = Math.max(10, ...inSight.map(({ known }) => (known ? bits(known.prob) : 0)));
  inSight.forEach(({ known, given }, i) => {
    if (!known) return;
    const value = bits(known.prob);
    const high = (value / highest) * (SURPRISE - 11);
    surprise.draw("rect", {
      x: middle(i) - 9,
      y: y + SURPRISE + 3 - high,
      width: 18,
      height: high,
      rx: 1.5,
      fill: given ? "var(--given)" : "var(--proof)",
      opacity: 0.75,
    });
    surprise.write(middle(i), y + SURPRISE - high - 1, fixed(value, 1), {
      anchor: "middle",
      size: 11.4,
      fill: "var(--mute)",
    });
  });
  surprise.draw("path", {
    d: `M${gutter} ${y + SURPRISE + 3.5}H${x(inSight.length) - 14}`,
    stroke: "var(--line)",
    fill: "none",
  });
  y += SURPRISE + 20;
  name(words.looks, y);
  if (scene.sink !== null)
    name(fill(words.looks_but, { token: cut(scene.nameAt(scene.sink), gutter - 24) }), y + 13, SMALL);
  const looks = row();
  inSight.forEach(({ node }, i) => {
    const row = look(node, scene.by, header.heads);
    if (!row) return;
    const best = most(row, scene.sink);
    const text = header.source ? header.source[best] : scene.nameAt(best);
    looks.write(middle(i), y, cut(text, step - 3), { anchor: "middle", size: 12.4, fill: "var(--key)" });
  });
  if (brief) {
    end();
    return { height: y + (scene.sink === null ? 10 : 18), reads };
  }
  y += scene.sink === null ? 10 : 17;
  name(words.cache, y + 14);
  name(words.line_is, y + 28, SMALL);
  name(size(scene.bytes.token), y + 41, SMALL);
  const beams = scene.how === "beam" ? scene.nBeams : 1;
  const tallest = Math.max(15, ...inSight.map(({ node }) => node.position + 1));
  const kept = row();
  inSight.forEach(({ node }, i) => {
    const n = node.position + 1;
    const high = (CACHE - 3) / tallest;
    const base = y + CACHE;
    const lines = new Pen(kept.draw("g", {}));
    if (high < 2.2) {
      lines.draw("rect", {
        x: middle(i) - 9,
        y: base - n * high,
        width: 18,
        height: n * high,
        fill: scene.cached ? "var(--slice3)" : "var(--proof)",
      });
      lines.draw("rect", { x: middle(i) - 9, y: base - n * high, width: 18, height: 2.2, fill: "var(--proof)" });
    } else
      for (let r = 0; r < n; r++)
        lines.draw("rect", {
          x: middle(i) - 9,
          y: base - (r + 1) * high,
          width: 18,
          height: high - 1,
          fill: r === n - 1 || !scene.cached ? "var(--proof)" : "var(--slice3)",
        });
    lines.end();
    kept.write(middle(i), y + CACHE + 12, `${Math.round((node.cache * beams) / 102.4) / 10}`, {
      anchor: "middle",
      size: 11.2,
      fill: "var(--mute)",
    });
  });
  y += CACHE + 28;
  name(words.other, y);
  name(words.branches, y + 15);
  const others = row();
  if (!scene.others.length)
    others.write(gutter, y + 5, words.no_branches, { class: "only-here", size: 12.8, fill: "var(--mute)" });
  scene.others.forEach((path, r) => {
    const depth = common(path, scene.path);
    const place = inSight.findIndex(({ at }) => at === depth);
    const begins = place >= 0 ? place : depth - (inSight[0]?.at ?? 0);
    const line = y + r * 19;
    if (place >= 0)
      others.draw("path", {
        d: `M${x(place) - 9} ${line - 13 - (r ? 19 : 0)}V${line - 4}H${x(place) + 1}`,
        fill: "none",
        stroke: "var(--hatch)",
        "stroke-width": 1.4,
      });
    path.slice(depth).forEach((id, j) => {
      const at = begins + j;
      if (at < 0 || at >= inSight.length + 1) return;
      others.draw(
        "text",
        { class: "hit", x: middle(at), y: line, "text-anchor": "middle", "font-size": 12.6, fill: "var(--mute)" },
        { text: cut(scene.label(id), step - 3), click: () => acts.go(path, null) },
      );
    });
  });
  end();
  return { height: y + Math.max(1, scene.others.length) * 19 + 4, reads };
}
