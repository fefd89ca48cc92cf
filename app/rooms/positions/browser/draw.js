// Small drawings: elements of SVG, colours of numbers that have a sign, ticks, and handles that the pointer and the arrow keys move.

import { clamp } from "../../../kit/browser/dom.js";

/** @typedef {import("./types.js").Shown} Shown */
const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Element} parent
 * @param {Tag} tag
 * @param {Record<string, string | number>} [attributes]
 * @param {string} [text]
 */
export function put(parent, tag, attributes = {}, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes))
    node.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// A picture with its description for those who do not see it
/** @param {Element} parent @param {number} width @param {number} height @param {string} label */
export function picture(parent, width, height, label) {
  const found = put(parent, "svg", { width, height, role: "group", "aria-label": label });
  found.style.overflow = "visible";
  return found;
}

/** @param {number} value @param {number} [digits] */
export const signed = (value, digits = 2) => `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)}`;

// "−10", with the sign that is as wide as a digit
/** @param {number} value */
export const whole = (value) => String(value).replace("-", "−");

// The colour of a number from −1 to 1: blue above 0, purple below, none at 0
/** @param {Shown} view @param {number} t */
export const diverging = (view, t) => (t >= 0 ? view.ramp : view.ahead).css[Math.round(255 * clamp(Math.abs(t), 0, 1))];

// Round steps for an axis
/** @param {number} low @param {number} high @param {number} [parts] */
export function ticks(low, high, parts = 4) {
  const rough = (high - low) / parts || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * size).find((by) => by >= rough) ?? rough;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++)
    found.push(Number((at * step).toPrecision(8)));
  return found;
}

// A line through points
/** @param {[x: number, y: number][]} points */
export const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`).join("L")}`;

// A handle that is a slider: it says its value, and arrow keys, Home and End move it. What the pointer drags, the lab follows by
// data-drag.
/**
 * @param {Element} parent
 * @param {{name: string, label: string, value: number, low: number, high: number, text?: string, move(value: number): void}} what
 */
export function handle(parent, { name, label, value, low, high, text, move }) {
  const group = put(parent, "g", {
    role: "slider",
    tabindex: 0,
    "data-drag": name,
    "aria-label": label,
    "aria-valuemin": low,
    "aria-valuemax": high,
    "aria-valuenow": value,
    "aria-valuetext": text ?? whole(value),
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

// What a finger can hold, over what is seen
/** @param {Element} parent @param {number} x @param {number} y @param {number} size */
export const grip = (parent, x, y, size) =>
  put(parent, "rect", { x: x - size / 2, y: y - size / 2, width: size, height: size, fill: "transparent" });

// What the pointer drags, wherever it goes until it is let go: move(name of data-drag, event, the event that began it)
export class Drags {
  /** @type {{name: string, began: PointerEvent} | null} */
  held = null;

  /** @param {Shown} view @param {(name: string, event: PointerEvent, began: PointerEvent) => void} move @param {(name: string, began: PointerEvent) => void} [begin] */
  constructor({ host, labLeaves: { signal } }, move, begin) {
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
