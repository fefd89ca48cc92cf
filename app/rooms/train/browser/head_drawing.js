// The heads of a run as small maps, and one of them large, with what it writes beside it.

import { colours } from "../../../kit/browser/colours.js";
import { button, el, fill, percent } from "../../../kit/browser/dom.js";
import { paintOn, pixels } from "../../../kit/browser/picture/canvas.js";
import { draw, svg as element, write } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";

const START = "⊢";
export const END = "⏎";
const TILE = 6.4; // em, the most that a small map is wide
const MOST = 8; // small maps in one row, and half of them where there is little room
const NARROW = 30; // em

// Weights of one head on a canvas of so many CSS pixels
/** @param {HTMLCanvasElement} canvas @param {import("./types.js").Look} look @param {number} layer @param {number} head @param {number} size @param {Record<string, any>} palette */
export function map(canvas, look, layer, head, size, palette) {
  const [, heads, n, keys] = look.shape;
  const { packed } = colours(palette.ramp);
  const start = (layer * heads + head) * n * keys;
  const image = pixels(n, keys, (at) => packed[look.maps[start + at]]);
  paintOn(canvas, size, size, (context) => {
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, size, size);
  });
}

// How many CSS pixels a small map is wide and high, where so many share a width
/** @param {number} heads @param {number} width @param {number} em */
const sizeOf = (heads, width, em) => {
  const across = Math.min(heads, width < NARROW * em ? MOST / 2 : MOST);
  return Math.max(1.6 * em, Math.min(Math.floor((width - 4) / across) - 0.6 * em, TILE * em));
};

// All heads of a run in one row, or in a few where there are many. act(layer, head) when one is clicked. What is returned draws the heads
// of a step into them, of any that has as many; `values` is what each head says.
/**
 * @param {HTMLElement} parent
 * @param {{shape: number[], width: number, em: number, most?: number, quiet?: boolean, short?: boolean}} how shape: of the maps; most: em a map is high; quiet: they say no numbers; short: and not which head
 * @param {(layer: number, head: number) => void} act
 * @returns {(look: import("./types.js").Look, values: number[][], chosen: [number, number], palette: Record<string, any>) => void}
 */
export function strip(parent, { shape: [layers, heads], width, em, most = TILE, quiet = false, short = false }, act) {
  const high = Math.floor(Math.min(sizeOf(layers * heads, width, em), most * em));
  const box = parent.appendChild(el("div", "tiles"));
  /** @type {[layer: number, head: number, tile: HTMLElement, canvas: HTMLCanvasElement, said: HTMLElement][]} */
  const tiles = [];
  for (let layer = 0; layer < layers; layer++)
    for (let head = 0; head < heads; head++) {
      const tile = box.appendChild(button("", "tile", () => act(layer, head)));
      const said = el("small");
      tiles.push([layer, head, tile, tile.appendChild(el("canvas")), said]);
      if (!quiet) tile.append(said);
    }
  return (look, values, chosen, palette) => {
    for (const [layer, head, tile, canvas, said] of tiles) {
      const value = percent(values[layer]?.[head] ?? 0);
      const isChosen = layer === chosen[0] && head === chosen[1];
      tile.setAttribute("aria-pressed", String(isChosen));
      tile.setAttribute("aria-label", fill(words.head_of, { l: layer, h: head, w: value }));
      if (quiet) tile.title = fill(words.head_of, { l: layer, h: head, w: value });
      const text = short ? value : `L${layer} H${head} · ${value}`;
      if (said.textContent !== text) said.textContent = text;
      map(canvas, look, layer, head, high, palette);
    }
  };
}

/**
 * One head large: its tokens along both sides, an arc from the row that is chosen to what it looks at most, and what it writes.
 * @param {HTMLElement} box
 * @param {import("./types.js").Seen} seen
 * @param {import("./types.js").Look} look
 * @param {{layer: number, head: number, row: number, arc: boolean, rows?: number[], em: number, act: (row: number) => void}} how rows: those that are drawn
 * @param {Record<string, any>} palette
 */
export function large(box, seen, look, { layer, head, row, arc, rows, em, act }, palette) {
  const { clientWidth: width, clientHeight: height } = box;
  if (!width || !height) return;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
  svg.setAttribute("aria-label", fill(words.head_of, { l: layer, h: head, w: percent(look.finds[layer][head]) }));
  const tokens = seen.tokens.map((token) => (token === "<s>" ? START : token));
  const n = tokens.length;
  const size = Math.min(0.95 * em, (0.8 * height) / (rows?.length ?? n));
  const shown = rows ?? tokens.map((_, i) => i);
  const isLong = tokens.some((token) => token.length > 2); // word pieces: a row shows more of one than a column does
  const [left, top] = [(isLong ? 3.4 : 1.5) * size, (arc ? 2.5 * size : 0) + 1.5 * size];
  const across = Math.min((width - left - 6 * size) / n, 3.2 * em);
  const down = Math.min((height - top - 2) / shown.length, across * 1.45);
  const x = (/** @type {number} */ key) => left + key * across;
  const y = (/** @type {number} */ query) => top + shown.indexOf(query) * down;
  const [, heads, queries, keys] = look.shape;
  const start = (layer * heads + head) * queries * keys;
  const weight = (/** @type {number} */ query, /** @type {number} */ key) => look.maps[start + query * keys + key];
  const weights = Array.from({ length: n }, (_, key) => weight(row, key));
  const most = weights.indexOf(Math.max(...weights));
  const { css } = colours(palette.ramp);
  const isAhead = shown.some((query) => weights.length && query < n - 1 && weight(query, n - 1) > 0);

  if (arc && most !== row) {
    const [from, to] = [x(row) + across / 2, x(most) + across / 2];
    const base = 2.5 * size;
    draw(svg, "path", {
      d: `M${from} ${base}C${from} ${0.2 * size} ${to} ${0.2 * size} ${to} ${base}`,
      fill: "none",
      stroke: palette.query,
      "stroke-width": Math.max(1.2, (weights[most] / 255) * 0.32 * size),
    });
    write(svg, (from + to) / 2, 1.25 * size, percent(weights[most] / 255), {
      anchor: "middle",
      size: 1.1 * size,
      fill: palette.ink,
      "font-weight": 700,
      stroke: palette.background,
      "stroke-width": Math.max(7, 0.6 * size),
      "paint-order": "stroke",
    });
  }
  tokens.forEach((token, key) => {
    const isMarked = key === most || key === row;
    write(svg, x(key) + across / 2, top - 0.45 * size, cut(token, 2), {
      anchor: "middle",
      size,
      fill: key === most ? palette.key : key === row ? palette.query : palette.ink,
      "font-weight": isMarked ? 700 : undefined,
    });
  });
  for (const query of shown) {
    write(svg, left - 0.5 * size, y(query) + down / 2 + 0.35 * size, cut(tokens[query], 5), {
      anchor: "end",
      size,
      fill: query === row ? palette.query : palette.ink,
      "font-weight": query === row ? 700 : undefined,
    });
    for (let key = 0; key < (isAhead ? n : query + 1); key++) {
      const cell = draw(svg, "rect", {
        x: x(key) + 0.6,
        y: y(query) + 0.6,
        width: across - 1.2,
        height: down - 1.2,
        rx: 1.5,
        fill: css[weight(query, key)],
      });
      cell.addEventListener("click", () => act(query));
    }
  }
  if (shown.includes(row))
    draw(svg, "rect", {
      x: left - 1.5,
      y: y(row) - 1,
      width: across * (isAhead ? n : row + 1) + 3,
      height: down + 2,
      rx: 3,
      fill: "none",
      stroke: palette.query,
      "stroke-width": 2,
    });
  const samePlace = n === seen.answer.length + 1;
  const right = samePlace ? [...seen.answer] : [...seen.answer, END];
  const at = x(n) + 0.7 * size;
  if (seen.answer) write(svg, at, top - 0.45 * size, words.writes, { size, fill: palette.proof, "font-weight": 650 });
  right.forEach((symbol, i) => {
    const query = seen.first + i;
    if (!shown.includes(query)) return;
    const written =
      look.best[i] === "</s>" ? END : look.best[i] === "<s>" ? START : look.best[i] === "<pad>" ? "·" : look.best[i];
    const isRight = written === symbol;
    const base = y(query) + down / 2 + 0.35 * size;
    draw(svg, "rect", {
      x: at - 0.2 * size,
      y: y(query) + 1.2,
      width: 1.5 * size,
      height: down - 2.4,
      rx: 3,
      fill: isRight ? palette.proof : "none",
      stroke: isRight ? palette.proof : palette.mute,
      "stroke-dasharray": isRight ? undefined : "3 2",
    });
    write(svg, at + 0.55 * size, base, written, {
      anchor: "middle",
      size,
      fill: isRight ? palette.background : palette.mute,
      "font-weight": 650,
    });
    write(svg, at + 1.65 * size, base, isRight ? percent(look.p[i]) : fill(words.not_this, { s: symbol }), {
      size,
      fill: isRight ? palette.proof : palette.mute,
    });
  });
  box.replaceChildren(svg);
}

// A token that is no longer than so many signs
/** @param {string} token @param {number} most */
const cut = (token, most) => (token.length > most ? `${token.slice(0, most - 1)}…` : token);
