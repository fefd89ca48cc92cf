// Small drawings: pictures with what they say, and handles that the pointer and the arrow keys move.

import { add, clamp, fill, minus, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { way } from "../../../kit/browser/share.js";
import { draw } from "../../../kit/browser/picture/svg.js";

/** @typedef {import("./types.js").Shown} Shown */
// A picture with its description for those who do not see it
/** @param {Element} parent @param {number} width @param {number} height @param {string} label */
export function picture(parent, width, height, label) {
  const found = draw(parent, "svg", { width, height, role: "group", "aria-label": label });
  found.style.overflow = "visible";
  return found;
}

// Where this model does not have a kind of positions: so it is said, and the way to a model that has it
/** @param {Shown} view @param {string} template @param {string} kind */
export function elsewhere({ labPlace: host, header }, template, kind) {
  const box = add(host, "div", "box elsewhere");
  const named = (/** @type {string} */ one) => worded(words.kinds, one).toLowerCase();
  const parts = { model: header.model, own: named(header.position), kind: named(kind) };
  add(box, "p").textContent = fill(template, parts);
  const home = header.homes[kind];
  if (!home) return;
  const [model, text] = home;
  const said = { view: "positions", lab: kind === "rotary" ? "clock" : "two", model, text };
  add(box, "p").append(way(fill(words.go_home, { model }), said));
}

// A handle that is a slider: it says its value, and arrow keys, Home and End move it. What the pointer drags, the lab follows by
// data-drag.
/**
 * @param {Element} parent
 * @param {{name: string, label: string, value: number, low: number, high: number, text?: string, move(value: number): void}} what
 */
export function handle(parent, { name, label, value, low, high, text, move }) {
  const group = draw(parent, "g", {
    role: "slider",
    tabindex: 0,
    "data-drag": name,
    "aria-label": label,
    "aria-valuemin": low,
    "aria-valuemax": high,
    "aria-valuenow": value,
    "aria-valuetext": text ?? minus(value),
  });
  group.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, number>} */
    const to = {
      ArrowLeft: value - 1,
      ArrowDown: value - 1,
      ArrowRight: value + 1,
      ArrowUp: value + 1,
      PageUp: value + 10,
      PageDown: value - 10,
      Home: low,
      End: high,
    };
    if (!(event.key in to)) return;
    event.preventDefault();
    event.stopPropagation();
    move(clamp(to[event.key], low, high));
  });
  return group;
}

// An area that a finger can hold, over what is seen
/** @param {Element} parent @param {number} x @param {number} y @param {number} size */
export const grip = (parent, x, y, size) =>
  draw(parent, "rect", { x: x - size / 2, y: y - size / 2, width: size, height: size, fill: "transparent" });

// The thing that the pointer drags, wherever it goes until it is let go: move(name of data-drag, event, the event that began it)
export class Drags {
  /** @type {{name: string, began: PointerEvent} | null} */
  held = null;

  /** @param {Shown} view @param {(name: string, event: PointerEvent, began: PointerEvent) => void} move @param {(name: string, began: PointerEvent) => void} [begin] */
  constructor({ labPlace: host, labLeaves: { signal } }, move, begin) {
    host.addEventListener(
      "pointerdown",
      (event) => {
        const found = /** @type {SVGElement | HTMLElement | null} */ (
          /** @type {Element} */ (event.target).closest("[data-drag]")
        );
        if (!found || event.button) return;
        event.preventDefault();
        this.held = { name: String(found.dataset.drag), began: event };
        begin?.(this.held.name, event);
        if (found.tabIndex >= 0) found.focus({ preventScroll: true });
        else move(this.held.name, event, event);
      },
      { signal },
    );
    addEventListener("pointermove", (event) => this.held && move(this.held.name, event, this.held.began), { signal });
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => (this.held = null), { signal });
  }
}
