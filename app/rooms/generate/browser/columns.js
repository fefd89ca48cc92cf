// The columns: one for each token that was read, cut into what may come next; and the rows below, on the same axis.

import { fill } from "../../../kit/browser/dom.js";
import { bits, look, most } from "./chances.js";
import { WORDS as words } from "./constants.js";
import { common } from "./paths.js";
import { cut, draw, percent, short, signed, size } from "./shapes.js";

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Acts} Acts */
/** @typedef {import("./types.js").Column} Column */

const GUTTER = 66;
const TOP = 22;
const SURPRISE = 46; // pixels high
const CACHE = 52;
const NAMED = 14; // words of a column that are drawn by themselves
const LEAST = 11.5; // pixels of a slice that has its word written in it
export const IN_SIGHT = 13;

/** @param {SVGSVGElement} svg @param {Scene} scene @param {Acts} acts @param {{width: number, bars: number, scale: number, brief: boolean}} sizes brief: without what is kept, the cache and other branches @returns {(focus: number) => void} marks a column */
export function columns(svg, scene, acts, { width: whole, bars, scale, brief }) {
  const width = whole / scale;
  const { inSight, first } = scene;
  const beam = scene.how === "beam";
  const step = Math.min(110, (width - GUTTER) / (beam ? IN_SIGHT : Math.max(inSight.length, 11)));
  const wide = step - 14;
  const x = (/** @type {number} */ i) => GUTTER + i * step;
  svg.replaceChildren();
  const defs = draw(svg, "defs", {});
  const pattern = draw(defs, "pattern", { id: "generate-hatch", width: 5, height: 5, patternTransform: "rotate(45)", patternUnits: "userSpaceOnUse" });
  draw(pattern, "rect", { width: 5, height: 5, fill: "var(--background)" });
  draw(pattern, "rect", { width: 1.1, height: 5, fill: "var(--hatch)" });
  heading(svg, scene, x(inSight.length) - 14);
  if (beam) trees(svg, scene, acts, { x, step, wide, bars });
  else inSight.forEach((column, i) => column_(svg, scene, acts, column, i, { x: x(i), step, wide, bars, next: i < inSight.length - 1 }));
  const frame = draw(svg, "rect", { y: TOP - 3, width: wide + 6, height: bars + 6, fill: "none", stroke: "var(--query)", "stroke-width": 2, rx: 4 });
  const { height, reads } = rows(svg, scene, acts, { x, step, wide, y: TOP + bars + 19, brief });
  inSight.forEach((_, i) => {
    const hit = draw(svg, "rect", { class: "hit", x: x(i), y: TOP + bars + 3, width: wide, height: 150, fill: "transparent" });
    hit.addEventListener("click", () => acts.focus(first + i));
  });
  svg.setAttribute("width", String(whole));
  svg.setAttribute("height", String(height * scale));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return (focus) => {
    const at = focus - first;
    frame.setAttribute("visibility", !beam && at >= 0 && at < inSight.length ? "visible" : "hidden");
    frame.setAttribute("x", String(Math.round((x(at) - 3) * 100) / 100));
    reads.forEach((read, i) => {
      read.setAttribute("font-weight", i === at ? "650" : "400");
      read.setAttribute("fill", i === at ? "var(--query)" : "var(--mute)");
    });
  };
}

/** @param {Element} svg @param {Scene} scene @param {number} right */
function heading(svg, scene, right) {
  const beam = scene.how === "beam";
  const title = draw(svg, "text", { x: 0, y: 12, "font-size": 14.5, "font-weight": 650, fill: "var(--ink)" }, beam ? fill(words.beam_title, { n: scene.nBeams }) : words.title);
  draw(title, "tspan", { dx: 8, "font-size": 13.4, "font-weight": 400, fill: "var(--mute)" }, scene.said || (beam ? words.beam_note : words.title_note));
  const loss = lossOf(scene);
  if (!beam && loss && right > 700 && !scene.said) draw(svg, "text", { x: right, y: 12, "text-anchor": "end", "font-size": 13.4, fill: "var(--mute)", class: "loss" }, loss);
}

// The loss on the text that was given, where it has a second token, or on the words that were written
/** @param {Scene} scene */
export function lossOf(scene) {
  const given = scene.losses.slice(0, scene.prompt.length - 1);
  const own = scene.columns.filter(({ given, known }) => !given && known).map(({ known }) => -Math.log(/** @type {{prob: number}} */ (known).prob));
  const losses = given.length ? given : own;
  if (!losses.length) return "";
  const nats = losses.reduce((a, b) => a + b, 0) / losses.length;
  return fill(given.length ? words.loss_given : words.loss_own, { nats: nats.toFixed(2), bits: (nats / Math.LN2).toFixed(2) });
}

/** @param {Element} svg @param {Scene} scene @param {Acts} acts @param {Column} column @param {number} i @param {{x: number, step: number, wide: number, bars: number, next: boolean}} place */
function column_(svg, scene, acts, column, i, { x, step, wide, bars, next }) {
  const { node, shown, take, given } = column;
  const colour = given ? "var(--given)" : "var(--proof)";
  const ink = given ? "var(--given-ink)" : "var(--on)";
  /** @type {[id: number, share: number][]} */
  const list = Array.from(node.ids.subarray(0, NAMED), (id, j) => [id, shown.probs[j]]);
  if (take !== null && !list.some(([id]) => id === take)) {
    const at = node.ids.indexOf(take);
    list.push([take, at >= 0 ? shown.probs[at] : column.known?.prob ?? 0]);
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
    const slice = draw(svg, "rect", { class: "hit", x, y, width: wide, height: Math.max(isTaken ? 1.5 : 0, high - (high > 3 ? 1 : 0)), fill: isTaken ? colour : j % 2 ? "var(--slice2)" : "var(--slice)" });
    draw(slice, "title", {}, fill(words.slice, { word: label, share: percent(share) }));
    slice.addEventListener("click", () => acts.take(scene.first + i, id));
    if (high >= LEAST) draw(svg, "text", { x: x + 4, y: y + high / 2 + 3.9, "font-size": 12.4, "font-weight": isTaken ? 650 : 400, "pointer-events": "none", fill: isTaken ? ink : "var(--ink)" }, cut(label, wide - 7));
    y += high;
  });
  const high = bottom - y;
  if (high > 0.5) {
    const rest = draw(svg, "rect", { x, y, width: wide, height: high, fill: "url(#generate-hatch)", opacity: 0.8 });
    const n = scene.header.vocab - list.length;
    draw(rest, "title", {}, fill(words.rest, { n: n.toLocaleString("en"), share: percent(high / bars) }));
    if (high > 24 && shown.left !== null && shown.left > list.length) {
      draw(svg, "text", { x: x + wide / 2, y: y + high / 2 + 4, "text-anchor": "middle", "font-size": 11.6, "font-weight": 400, fill: "var(--mute)", stroke: "var(--background)", "stroke-width": 4, "paint-order": "stroke", "pointer-events": "none" }, `+${short(Math.min(n, shown.left - list.length))}`);
    }
  }
  if (taken && next) draw(svg, "path", { d: `M${x + wide} ${taken[0]}L${x + step} ${TOP}L${x + step} ${bottom}L${x + wide} ${taken[0] + taken[1]}Z`, fill: colour, opacity: 0.16 });
}

/** @param {Element} svg @param {Scene} scene @param {Acts} acts @param {{x: (i: number) => number, step: number, wide: number, bars: number}} place */
function trees(svg, scene, acts, { x, step, wide, bars }) {
  const { inSight, grown, winner, nBeams } = scene;
  const row = bars / nBeams;
  const box = row * 0.6;
  inSight.forEach((column, i) => {
    if (column.given) {
      draw(svg, "rect", { x: x(i), y: TOP, width: wide, height: bars, fill: "var(--slice)", rx: 3 });
      draw(svg, "text", { x: x(i) + wide / 2, y: TOP + bars / 2, "text-anchor": "middle", "font-size": 12.8, fill: "var(--mute)" }, cut(column.take === null ? "" : scene.label(column.take), wide));
    }
  });
  const begins = -(inSight[0]?.at ?? 0);
  const boxes = draw(svg, "g", {});
  grown.forEach(({ kept, dropped }, depth) => {
    const place = begins + depth;
    if (place < 0 || place >= IN_SIGHT) return;
    kept.forEach((beam, r) => {
      const y = TOP + r * row + 2;
      const on = beam.path.every((id, i) => id === winner[i]);
      if (depth && place > 0) {
        const from = TOP + beam.row * row + 2 + box / 2;
        draw(svg, "path", { d: `M${x(place) - 14} ${from}C${x(place) - 6} ${from} ${x(place) - 8} ${y + box / 2} ${x(place)} ${y + box / 2}`, fill: "none", stroke: on ? "var(--proof)" : "var(--hatch)", "stroke-width": on ? 3 : 1.6 });
      }
      const drawn = draw(boxes, "rect", { class: "hit", x: x(place), y, width: wide, height: box, rx: 3, fill: on ? "var(--proof)" : "var(--slice2)" });
      draw(drawn, "title", {}, `${beam.path.map(scene.label).join(" ")} ${signed(beam.logProb)}`);
      drawn.addEventListener("click", () => acts.go(beam.path, scene.prompt.length + beam.path.length - 2));
      draw(boxes, "text", { x: x(place) + wide / 2, y: y + box / 2 - 2, "text-anchor": "middle", "font-size": 12.6, "font-weight": 650, "pointer-events": "none", fill: on ? "var(--on)" : "var(--ink)" }, cut(scene.label(beam.id), wide));
      if (box > 26) draw(boxes, "text", { x: x(place) + wide / 2, y: y + box / 2 + 12, "text-anchor": "middle", "font-size": 11.4, "pointer-events": "none", fill: on ? "var(--on)" : "var(--mute)" }, signed(beam.logProb));
    });
    dropped.slice(0, nBeams).forEach((beam, r) => {
      if (row < 40) return;
      draw(boxes, "text", { x: x(place) + wide / 2, y: TOP + r * row + box + 15, "text-anchor": "middle", "font-size": 11.4, fill: "var(--mute)" }, `${beam.ends ? "■" : "×"} ${cut(scene.label(beam.id), wide - 10)}`);
    });
  });
  if (step < 40) boxes.setAttribute("font-size", "10");
}

/** @param {Element} svg @param {Scene} scene @param {Acts} acts @param {{x: (i: number) => number, step: number, wide: number, y: number, brief: boolean}} place */
function rows(svg, scene, acts, { x, step, wide, y, brief }) {
  const { header, inSight } = scene;
  const middle = (/** @type {number} */ i) => x(i) + wide / 2;
  const name = (/** @type {string} */ text, /** @type {number} */ at, small = 12.4) => draw(svg, "text", { x: GUTTER - 9, y: at, "text-anchor": "end", "font-size": small, fill: "var(--mute)" }, text);
  name(words.reads, y);
  name(words.writes, y + 18);
  const reads = inSight.map((column, i) => draw(svg, "text", { x: middle(i), y, "text-anchor": "middle", "font-size": 12.8 }, cut(column.read, step - 3)));
  inSight.forEach((column, i) => {
    const written = column.take === null ? "?" : scene.label(column.take);
    draw(svg, "text", { x: middle(i), y: y + 18, "text-anchor": "middle", "font-size": 13, "font-weight": column.given || column.take === null ? 400 : 650, fill: column.take === null ? "var(--mute)" : column.given ? "var(--ink)" : "var(--proof)" }, cut(written, step - 3));
    if (i < inSight.length - 1) draw(svg, "path", { d: `M${middle(i) + 13} ${y + 10}L${middle(i + 1) - 13} ${y + 1}`, stroke: "var(--line)", "stroke-width": 1.2, fill: "none" });
  });
  y += 30;
  name(words.surprise, y + SURPRISE - 10);
  name(words.bits, y + SURPRISE + 3);
  const highest = Math.max(10, ...inSight.map(({ known }) => (known ? bits(known.prob) : 0)));
  inSight.forEach(({ known, given }, i) => {
    if (!known) return;
    const value = bits(known.prob);
    const high = (value / highest) * (SURPRISE - 11);
    draw(svg, "rect", { x: middle(i) - 9, y: y + SURPRISE + 3 - high, width: 18, height: high, rx: 1.5, fill: given ? "var(--given)" : "var(--proof)", opacity: 0.75 });
    draw(svg, "text", { x: middle(i), y: y + SURPRISE - high - 1, "text-anchor": "middle", "font-size": 11.4, fill: "var(--mute)" }, value.toFixed(1));
  });
  draw(svg, "path", { d: `M${GUTTER} ${y + SURPRISE + 3.5}H${x(inSight.length) - 14}`, stroke: "var(--line)", fill: "none" });
  y += SURPRISE + 20;
  name(words.looks, y);
  inSight.forEach(({ node }, i) => {
    const row = look(node, scene.by, header.heads);
    if (!row) return;
    const best = most(row, !header.source);
    const text = header.source ? header.source[best] : scene.nameAt(best);
    draw(svg, "text", { x: middle(i), y, "text-anchor": "middle", "font-size": 12.4, fill: "var(--key)" }, cut(text, step - 3));
  });
  if (brief) return { height: y + 10, reads };
  y += 10;
  name(words.cache, y + 14);
  name(words.line_is, y + 28, 11);
  name(size(scene.bytes.token), y + 41, 11);
  const beams = scene.how === "beam" ? scene.nBeams : 1;
  const tallest = Math.max(15, ...inSight.map(({ node }) => node.position + 1));
  inSight.forEach(({ node }, i) => {
    const n = node.position + 1;
    const high = (CACHE - 3) / tallest;
    const base = y + CACHE;
    if (high < 2.2) {
      draw(svg, "rect", { x: middle(i) - 9, y: base - n * high, width: 18, height: n * high, fill: scene.cached ? "var(--slice3)" : "var(--proof)" });
      draw(svg, "rect", { x: middle(i) - 9, y: base - n * high, width: 18, height: 2.2, fill: "var(--proof)" });
    } else for (let r = 0; r < n; r++) draw(svg, "rect", { x: middle(i) - 9, y: base - (r + 1) * high, width: 18, height: high - 1, fill: r === n - 1 || !scene.cached ? "var(--proof)" : "var(--slice3)" });
    draw(svg, "text", { x: middle(i), y: y + CACHE + 12, "text-anchor": "middle", "font-size": 11.2, fill: "var(--mute)" }, `${Math.round((node.cache * beams) / 102.4) / 10}`);
  });
  y += CACHE + 28;
  name(words.other, y);
  name(words.branches, y + 15);
  if (!scene.others.length) draw(svg, "text", { x: GUTTER, y: y + 5, "font-size": 12.8, fill: "var(--mute)" }, words.no_branches);
  scene.others.forEach((path, r) => {
    const depth = common(path, scene.path);
    const place = inSight.findIndex(({ at }) => at === depth);
    const begins = place >= 0 ? place : depth - (inSight[0]?.at ?? 0);
    const line = y + r * 19;
    if (place >= 0) draw(svg, "path", { d: `M${x(place) - 9} ${line - 13 - (r ? 19 : 0)}V${line - 4}H${x(place) + 1}`, fill: "none", stroke: "var(--hatch)", "stroke-width": 1.4 });
    path.slice(depth).forEach((id, j) => {
      const at = begins + j;
      if (at < 0 || at >= inSight.length + 1) return;
      const word = draw(svg, "text", { class: "hit", x: middle(at), y: line, "text-anchor": "middle", "font-size": 12.6, fill: "var(--mute)" }, cut(scene.label(id), step - 3));
      word.addEventListener("click", () => acts.go(path, null));
    });
  });
  return { height: y + Math.max(1, scene.others.length) * 19 + 4, reads };
}
