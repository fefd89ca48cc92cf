// The heads of a run as small maps, and one of them large.

import { colours, fit } from "../../../kit/browser/colours.js";
import { el, fill, share } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { largest } from "./numbers.js";

const PER_ROW = 8;
const TILE = 6.1; // em, the most that a small map is wide

// Weights of one head on a canvas of so many CSS pixels
/** @param {HTMLCanvasElement} canvas @param {import("./types.js").Look} look @param {number} layer @param {number} head @param {number} size @param {Record<string, any>} palette */
export function map(canvas, look, layer, head, size, palette) {
  const [, heads, n, keys] = look.shape;
  const small = document.createElement("canvas");
  [small.width, small.height] = [keys, n];
  const context = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
  const image = context.createImageData(keys, n);
  const packed = new Uint32Array(image.data.buffer);
  const ramp = colours(palette.ramp).packed;
  const start = (layer * heads + head) * n * keys;
  for (let i = 0; i < n * keys; i++) packed[i] = ramp[look.maps[start + i]];
  context.putImageData(image, 0, 0);
  const on = fit(canvas, size, size);
  on.imageSmoothingEnabled = false;
  on.drawImage(small, 0, 0, size, size);
}

// All heads of a run at a step. of: "finds" or "ahead", the number that each head says; act(layer, head) when one is clicked
/**
 * @param {HTMLElement} parent
 * @param {import("./types.js").Look} look
 * @param {"finds" | "ahead"} of
 * @param {[layer: number, head: number] | null} chosen
 * @param {number} width
 * @param {Record<string, any>} palette
 * @param {(layer: number, head: number) => void} act
 */
export function grid(parent, look, of, chosen, width, palette, act) {
  const [layers, heads] = look.shape;
  const [bestLayer, bestHead] = largest(look[of]);
  const columns = Math.min(heads, PER_ROW);
  const size = Math.floor((width - 24) / columns) - 6;
  const high = Math.min(size, Math.round(TILE * parseFloat(getComputedStyle(parent).fontSize)));
  const box = parent.appendChild(el("div", "grid"));
  for (let layer = 0; layer < layers; layer++) {
    const row = box.appendChild(el("div", "layer"));
    row.append(el("span", "which", String(layer)));
    const tiles = row.appendChild(el("div", "tiles"));
    for (let head = 0; head < heads; head++) {
      const value = look[of][layer][head];
      const isChosen = chosen?.[0] === layer && chosen[1] === head;
      const tile = tiles.appendChild(el("button", `tile${layer === bestLayer && head === bestHead ? " best" : ""}`));
      tile.type = "button";
      tile.setAttribute("aria-pressed", String(isChosen));
      tile.setAttribute("aria-label", fill(words.head_of, { l: layer, h: head, w: share(value) }));
      tile.append(el("canvas"), el("small", "", share(value)));
      map(/** @type {HTMLCanvasElement} */ (tile.firstChild), look, layer, head, high, palette);
      tile.addEventListener("click", () => act(layer, head));
    }
  }
  return box;
}

// One head large, with its tokens along both sides
/** @param {HTMLElement} parent @param {import("./types.js").Look} look @param {import("./types.js").Seen} seen @param {number} layer @param {number} head @param {number} size @param {Record<string, any>} palette */
export function large(parent, look, seen, layer, head, size, palette) {
  const n = seen.tokens.length;
  const cell = Math.floor(size / n);
  const box = parent.appendChild(el("div", "large"));
  box.style.fontSize = `${Math.min(0.78 * parseFloat(getComputedStyle(parent).fontSize), 1.05 * cell)}px`; // a letter for each row
  const labels = seen.tokens.map((token) => (token === "<s>" ? "⊢" : token));
  const keys = box.appendChild(el("div", "keys"));
  const queries = box.appendChild(el("div", "queries"));
  for (const [place, name] of /** @type {const} */ ([[keys, "width"], [queries, "height"]])) {
    for (const label of labels) {
      const one = place.appendChild(el("span", "", label));
      one.style[name] = `${cell}px`;
      if (label === "⊢") one.title = words.start;
    }
  }
  const canvas = box.appendChild(el("canvas"));
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", fill(words.head_of, { l: layer, h: head, w: share(look.finds[layer][head]) }));
  map(canvas, look, layer, head, cell * n, palette);
  return box;
}
