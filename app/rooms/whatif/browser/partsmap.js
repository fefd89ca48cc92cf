// The map of all parts: a column for each layer; rows for its heads, its MLP and the stream at each word. On a phone, layers go down.

import { rooted, signed } from "../../../kit/browser/picture/scale.js";
import { text } from "../../../kit/browser/scene.js";
import { WORDS as words } from "./constants.js";
import { idOf } from "./found.js";
import { fill } from "../../../kit/browser/dom.js";

/** @typedef {import("../../../kit/browser/types.js").Shape} Shape */
/** @typedef {import("./found.js").Measure} Measure */
/**
 * @typedef {{known: {tokens: number[], each: number} | null, layers: number, change: (id: string, measure: Measure) => number | undefined,
 *   estimate: (id: string, measure: Measure) => number | undefined, top: (measure: Measure) => number}} Mapped What has a number for each part
 */
/** @typedef {{id: (layer: number) => string, name: string, at: number, size: number}} Lane One row of the map, or on a phone a column: where it is, and how large its cells */
/** @typedef {{lanes: Lane[], layers: number, step: number, start: number, turned: boolean, width: number, height: number, caption: number | null}} Plan step, start: of the layers */

const SMALL = 0.36; // of a cell: an estimate
const HIGHEST = 37; // pixels of a cell, at the page's size of type

// Where everything stands
/** @param {Mapped} found @param {string[]} names of the words that have rows @param {{width: number, height: number, unit: number, turned: boolean}} room @returns {Plan} */
export function planOf(found, names, { width, height, unit, turned }) {
  const { known, layers } = found;
  const tokens = known?.tokens ?? [];
  const each = known?.each ?? 0;
  const rows = each + 1 + tokens.length;
  const label = (turned ? 30 : 62) * unit;
  const above = turned ? 56 * unit : 18 * unit;
  const between = turned ? 6 * unit : 5 * unit;
  const captioned = turned || !tokens.length ? between : 22 * unit;
  const room = turned ? width - label - 2 * between - 2 : height - above - between - captioned;
  const size = turned ? Math.max(4, room / rows) : Math.min(HIGHEST * unit, Math.max(8, room / rows));
  const step = turned ? Math.max(14, 20 * unit) : (width - label - 2) / Math.max(layers, 1);
  let at = turned ? label : above;
  /** @type {Lane[]} */
  const lanes = [];
  for (let head = 0; head < each; head++, at += size)
    lanes.push({
      id: (layer) => idOf("z", layer, head),
      name: turned ? String(head) : fill(words.map_head, { head }),
      at,
      size,
    });
  at += between;
  lanes.push({ id: (layer) => idOf("m", layer, 0), name: words.mlp, at, size });
  at += size + captioned;
  const caption = tokens.length && !turned ? at - 9 * unit : null;
  tokens.forEach((token, i) => {
    lanes.push({ id: (layer) => idOf("r", layer, token), name: names[i], at, size });
    at += size;
  });
  return {
    lanes,
    layers,
    step,
    start: turned ? above : label,
    turned,
    width,
    height: turned ? above + layers * step + 2 : at + 2,
    caption,
  };
}

/** @param {Plan} plan @param {Lane} lane @param {number} layer */
export function boxOf({ start, step, turned }, lane, layer) {
  const gap = step > 9 && lane.size > 9 ? 1 : 0;
  const along = { at: start + layer * step, size: step };
  const [x, y] = turned ? [lane, along] : [along, lane];
  return { x: x.at + gap / 2, y: y.at + gap / 2, w: x.size - gap, h: y.size - gap };
}

// The part at a point; null beside the map
/** @param {Plan} plan @param {number} x @param {number} y */
export function partAt({ lanes, layers, step, start, turned }, x, y) {
  const [along, across] = turned ? [y, x] : [x, y];
  const layer = Math.floor((along - start) / step);
  const lane = lanes.find(({ at, size }) => across >= at && across < at + size);
  return lane && layer >= 0 && layer < layers ? lane.id(layer) : null;
}

// The part that stands one step further; null at an edge
/** @param {Plan} plan @param {string} id @param {number} down @param {number} right */
export function partBeside({ lanes, layers, turned }, id, down, right) {
  const layer = Number(id.slice(1).split(".")[0]);
  const lane = lanes.findIndex((one) => one.id(layer) === id);
  const [across, along] = turned ? [right, down] : [down, right];
  const [to, next] = [lanes[lane + across], layer + along];
  return lane < 0 || !to || next < 0 || next >= layers ? null : to.id(next);
}

/**
 * @param {Plan} plan @param {Mapped} found @param {import("./found.js").Measure} measure @param {string | null} pick
 * @param {{palette: import("./types.js").Palette, unit: number}} look @returns {Shape[]}
 */
export function shapesOf(plan, found, measure, pick, { palette, unit }) {
  const { lanes, layers, step, start, turned, caption } = plan;
  const [scale, top, small] = [signed(palette), found.top(measure), 13 * unit];
  const radius = Math.min(4, step / 5);
  const chosen = pick ? Number(pick.slice(1).split(".")[0]) : -1;
  /** @type {Shape[]} */
  const shapes = [];
  const every = [1, 2, 5, 10, 20].find((by) => by * step >= (turned ? 14 : 21) * unit) ?? 20;
  if (!turned) shapes.push(text(0, 7 * unit, [[words.map_layer, palette.mute]], small));
  for (let layer = 0; layer < layers; layer++) {
    if (layer % every && layer !== chosen) continue;
    if (layer !== chosen && Math.abs(layer - chosen) * step < 20 * unit && every > 1) continue;
    const at = start + (layer + 0.5) * step;
    const part = /** @type {[string, string, number]} */ ([
      String(layer),
      layer === chosen ? palette.ink : palette.mute,
      layer === chosen ? 650 : 400,
    ]);
    shapes.push(
      turned
        ? text(24 * unit, at, [part], small, { anchor: "end" })
        : text(at, 7 * unit, [part], small, { anchor: "middle" }),
    );
  }
  for (const lane of lanes) {
    const isChosen = lane.id(chosen) === pick;
    const middle = lane.at + lane.size / 2;
    const ink = isChosen ? palette.ink : palette.mute;
    if (turned) shapes.push(text(middle, start - 8, [[lane.name, ink]], small, { anchor: "start", angle: -60 }));
    else if (lane.size >= 11 * unit) shapes.push(text(0, middle, [[lane.name, ink]], small));
    for (let layer = 0; layer < layers; layer++) {
      const [id, box] = [lane.id(layer), boxOf(plan, lane, layer)];
      const change = found.change(id, measure);
      if (change !== undefined) {
        shapes.push({ shape: "rect", ...box, fill: scale(rooted(change / top)).fill, rx: radius });
        continue;
      }
      shapes.push({ shape: "rect", ...box, fill: palette.line, opacity: 0.5, rx: radius });
      const guess = found.estimate(id, measure);
      if (guess === undefined) continue;
      const side = Math.max(3, Math.min(box.w, box.h) * SMALL * 1.5);
      shapes.push({
        shape: "rect",
        x: box.x + (box.w - side) / 2,
        y: box.y + (box.h - side) / 2,
        w: side,
        h: side,
        fill: scale(rooted(guess / top)).fill,
        rx: 2,
      });
    }
  }
  if (caption !== null) shapes.push(text(0, caption, [[words.each_word, palette.mute]], small));
  const lane = pick ? lanes.find((one) => one.id(chosen) === pick) : null;
  if (lane)
    shapes.push({ shape: "frame", ...boxOf(plan, lane, chosen), stroke: palette.query, width: 2.5, rx: radius });
  return shapes;
}
