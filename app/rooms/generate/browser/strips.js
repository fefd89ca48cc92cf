// The text above the columns, shaded by what the newest token looks at: the ring around what was read, and what came next.

import { isRightToLeft } from "../../../kit/browser/direction.js";
import { cover } from "../../../kit/browser/cover.js";
import { add, el, focusable } from "../../../kit/browser/dom.js";
import { look } from "./chances.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Scene} Scene */

/** @param {HTMLElement} box @param {Scene} scene @param {(v: number, at: number, row: ArrayLike<number>) => [background: string, ink: string]} shade @param {(at: number) => void} focus */
export function strips(box, scene, shade, focus) {
  const { header, columns: all } = scene;
  const column = all[scene.focus];
  const row = look(column.node, scene.by, header.heads);
  /** @param {HTMLElement} strip @param {string} text @param {string} name @param {number | null} v @param {number} at */
  const token = (strip, text, name, v, at) => {
    const made = add(strip, "span", name);
    made.textContent = text;
    if (v !== null && row) [made.style.background, made.style.color] = shade(v, at, row);
    return made;
  };
  const found = [];
  if (header.source) {
    const source = el("div", "strip");
    add(source, "small").textContent = words.source;
    header.source.forEach((text, i) => token(source, text, "", row ? row[i] : null, i));
    if (isRightToLeft(header.source)) source.dir = "rtl";
    found.push(source);
  }
  const strip = el("div", "strip own");
  if (header.source) add(strip, "small").textContent = words.target;
  const n = scene.prompt.length;
  const here = column.node.position;
  const turns = new Map(header.turns);
  for (let i = 0; i < n + scene.path.length; i++) {
    if (turns.get(i)) add(strip, "small", "turn").textContent = turns.get(i) ?? "";
    const name = i === here ? "ring" : i <= here || i < n ? "" : i === here + 1 ? "next" : "later";
    const made = token(strip, scene.nameAt(i), name, !header.source && row && i <= here ? row[i] : null, i);
    const at = i - all[0].node.position;
    made.addEventListener("click", () => {
      if (cover.hides("bar") && cover.point(i)) return; // an answer to what a lesson asks
      if (at >= 0 && at < all.length) focus(at);
    });
  }
  if (isRightToLeft(Array.from(strip.querySelectorAll("span"), (token) => token.textContent ?? ""))) strip.dir = "rtl";
  found.push(strip);
  box.replaceChildren(...found);
}

// Brings the ring of a long text into sight: it asks the page for sizes, so it comes after all that is written.
/** @param {HTMLElement} box */
export function bringRing(box) {
  const strip = /** @type {HTMLElement | null} */ (box.querySelector(".own"));
  const ring = /** @type {HTMLElement | null | undefined} */ (strip?.querySelector(".ring"));
  if (!strip || !ring || strip.scrollHeight <= strip.clientHeight) return;
  strip.scrollTop = ring.offsetTop - strip.offsetTop - strip.clientHeight / 2;
  focusable(strip, "group", words.strip_label); // so that keys scroll it
}
