// The heads of a run as small maps, and one of them large.

import { colours } from "../../../kit/browser/colours.js";
import { button, el, fill, share } from "../../../kit/browser/dom.js";
import { paintOn, pixels } from "../../../kit/browser/picture/canvas.js";
import { WORDS as words } from "./constants.js";
import { largest } from "./numbers.js";

const PER_ROW = 8;
const TILE = 6.1; // em, the most that a small map is wide

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

/** @param {number} heads @param {number} width @param {number} em How many CSS pixels a small map is wide and high */
const sizeOf = (heads, width, em) =>
  Math.min(Math.floor((width - 24) / Math.min(heads, PER_ROW)) - 6, Math.round(TILE * em));

// Where the heads of a run will be, which has none yet
/** @param {HTMLElement} parent @param {number} layers @param {number} heads @param {number} width @param {number} em */
export function ghosts(parent, layers, heads, width, em) {
  const box = parent.appendChild(el("div", "grid"));
  box.ariaHidden = "true";
  for (let layer = 0; layer < layers; layer++) {
    const row = box.appendChild(el("div", "layer"));
    row.append(el("span", "which", String(layer)));
    const line = row.appendChild(el("div", "tiles"));
    for (let head = 0; head < heads; head++) {
      const tile = line.appendChild(el("span", "ghost"));
      tile.style.width = tile.style.height = `${sizeOf(heads, width, em)}px`;
    }
  }
}

// All heads of a run. of: "finds" or "ahead", the number that each head says; act(layer, head) when one is clicked. What is returned
// draws the heads of a step into them, of any that has as many.
/**
 * @param {HTMLElement} parent
 * @param {number[]} shape of the maps
 * @param {"finds" | "ahead"} of
 * @param {[layer: number, head: number] | null} chosen
 * @param {number} width
 * @param {number} em
 * @param {(layer: number, head: number) => void} act
 * @returns {(look: import("./types.js").Look, palette: Record<string, any>) => void}
 */
export function grid(parent, [layers, heads], of, chosen, width, em, act) {
  const high = sizeOf(heads, width, em);
  const box = parent.appendChild(el("div", "grid"));
  /** @type {[layer: number, head: number, tile: HTMLElement, canvas: HTMLCanvasElement, said: HTMLElement][]} */
  const tiles = [];
  for (let layer = 0; layer < layers; layer++) {
    const row = box.appendChild(el("div", "layer"));
    row.append(el("span", "which", String(layer)));
    const line = row.appendChild(el("div", "tiles"));
    for (let head = 0; head < heads; head++) {
      const tile = line.appendChild(button("", "tile", () => act(layer, head)));
      tile.setAttribute("aria-pressed", String(chosen?.[0] === layer && chosen[1] === head));
      tiles.push([layer, head, tile, tile.appendChild(el("canvas")), tile.appendChild(el("small"))]);
    }
  }
  return (look, palette) => {
    const [bestLayer, bestHead] = largest(look[of]);
    for (const [layer, head, tile, canvas, said] of tiles) {
      const value = share(look[of][layer][head]);
      tile.classList.toggle("best", layer === bestLayer && head === bestHead);
      tile.setAttribute("aria-label", fill(words.head_of, { l: layer, h: head, w: value }));
      if (said.textContent !== value) said.textContent = value;
      map(canvas, look, layer, head, high, palette);
    }
  };
}

// One head large, with its tokens along both sides
/** @param {HTMLElement} parent @param {import("./types.js").Seen} seen @param {number} layer @param {number} head @param {number} size @param {number} em @returns {(look: import("./types.js").Look, palette: Record<string, any>) => void} */
export function large(parent, seen, layer, head, size, em) {
  const n = seen.tokens.length;
  const cell = Math.floor(size / n);
  const box = parent.appendChild(el("div", "large"));
  box.style.fontSize = `${Math.min(0.78 * em, 1.05 * cell)}px`; // a letter for each row
  const labels = seen.tokens.map((token) => (token === "<s>" ? "⊢" : token));
  const keys = box.appendChild(el("div", "keys"));
  const queries = box.appendChild(el("div", "queries"));
  for (const [place, name] of /** @type {const} */ ([
    [keys, "width"],
    [queries, "height"],
  ])) {
    for (const label of labels) {
      const one = place.appendChild(el("span", "", label));
      one.style[name] = `${cell}px`;
      if (label === "⊢") one.title = words.start;
    }
  }
  const canvas = box.appendChild(el("canvas"));
  canvas.setAttribute("role", "img");
  return (look, palette) => {
    canvas.setAttribute("aria-label", fill(words.head_of, { l: layer, h: head, w: share(look.finds[layer][head]) }));
    map(canvas, look, layer, head, cell * n, palette);
  };
}
