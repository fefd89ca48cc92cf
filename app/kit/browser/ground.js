// What every part of the page that is ours stands on, a room and what is beside one: mounted once, drawn once a frame, its state said
// in data attributes, and left. A room is more than that (stage.js): it has the keys, the files and the voice of the page.

import { paletteOf, themeOf } from "./colours.js";
import { button, keepingFocus, same } from "./dom.js";
import { NO_HOST } from "./mount.js";
import { mainBlock, scrolled } from "../../streamlit_edge/browser/page.js";

const BAR = 2.4; // rem of a projected page's bar, as in page.css
const LONGEST_PRESS = 5000; // ms for which a button that is pressed keeps the part from being drawn again under it

/** @typedef {"data" | "selection" | "answer" | "size" | "type" | "theme" | "projector" | "cover"} Stale what a part was not drawn of yet */

/** @type {Set<{announce(text: string): void}>} The rooms in the page, which have its live regions */
export const voices = new Set();

/** @template {object} [Palette=any] @template {string} [Piece=Stale] what one of many pieces draws one by one */
export class Ground {
  static style = "";
  /** @type {Record<"light" | "dark", any>} */
  static palettes;
  static pressable = "button, a"; // not drawn again while it is held down
  static fills = false; // whether it is as high as the window has room for below it: what moves it down is then another size

  /** Whether there is something to draw it from. */
  get isGiven() {
    return true;
  }

  /** Draw what is stale. What is measured is measured before anything is written. @param {Set<Stale | Piece>} _ */
  draw(_) {}

  /**
   * The state of the screen, as data attributes of the part: for tests, and for readers of the page. Undefined says nothing, null takes
   * an attribute away, as a room whose picture is not there yet does with `painted`. @returns {Record<string, unknown>}
   */
  status() {
    return {};
  }

  /** @type {Palette} */
  palette;
  /** @type {"light" | "dark"} */
  scheme = "light";
  frame = 0;
  pressed = -Infinity; // when a button was pressed that is still held
  /** @type {Set<Stale | Piece>} */
  stale = new Set();
  /** @type {import("./types.js").Host} Who shows it, and hears what is done in it */
  host = NO_HOST;
  size = ""; // that it was drawn at
  #off = new AbortController();
  /** @type {Map<string, unknown[]>} What each part was drawn of */
  #drawnOf = new Map();

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    root.replaceChildren();
  }

  /** Aborted when the part leaves the page: for listeners, requests and whatever else ends with it. */
  get leaving() {
    return this.#off.signal;
  }

  /** A message is there. @param {any} _ */
  receive(_) {}

  /** Its elements are made: what is listened to. @returns {this} */
  enter() {
    const { root, leaving: signal } = this;
    // Its height follows from what it draws, and asks for no other drawing.
    const sized = new ResizeObserver(() => {
      const size = this.sizeNow();
      if (size !== this.size) this.invalidate("size");
      this.size = size;
    });
    sized.observe(root);
    const page = mainBlock();
    if (page && /** @type {typeof Ground} */ (this.constructor).fills) sized.observe(page); // which a sentence above makes longer
    document.fonts.ready.then(() => this.invalidate("size", "type"));
    addEventListener("resize", () => this.invalidate("size"), { signal });
    root.addEventListener("pointerdown", (e) => this.#press(e), { signal });
    for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => this.#release(), { signal });
    const unwatch = window.headlight.settings.watch(() => this.invalidate("projector"));
    signal.addEventListener("abort", () => {
      unwatch();
      sized.disconnect();
      cancelAnimationFrame(this.frame);
    });
    return this;
  }

  destroy() {
    this.#off.abort();
  }

  /** Light or dark, as the page is. Returns whether that is another than before. */
  readTheme() {
    const scheme = themeOf(this.root);
    if (this.palette && scheme === this.scheme) return false;
    this.scheme = scheme;
    this.palette = paletteOf(this.root, /** @type {typeof Ground} */ (this.constructor).palettes);
    this.stale.add("theme");
    return true;
  }

  /** It is to be drawn again, in the next frame, however often it is asked for. @param {...(Stale | Piece)} what */
  invalidate(...what) {
    for (const one of what) this.stale.add(one);
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isPressed) this.invalidate();
      else this.drawNow();
    });
  }

  /** Before the next frame begins: what a key or a click asks for is seen one frame sooner. */
  drawNow() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (!this.isGiven || !this.root.isConnected) return;
    const began = performance.now();
    const stale = new Set(this.stale);
    this.stale.clear();
    this.root.classList.toggle("projector", this.isProjected);
    keepingFocus(this.root, () => this.draw(stale));
    this.show({
      painted: "1",
      projector: this.isProjected,
      ms: (performance.now() - began).toFixed(1),
      ...this.status(),
    });
  }

  /** Draw a part, unless it is of the same already. @param {string} name @param {unknown[]} of @param {() => void} work */
  part(name, of, work) {
    if (same(of, this.#drawnOf.get(name))) return;
    this.#drawnOf.set(name, of);
    work();
  }

  /** Every part is drawn again at the next drawing, whatever it is of. */
  forget() {
    this.#drawnOf.clear();
  }

  /** Say this in data attributes; null takes one away. @param {Record<string, unknown>} status */
  show(status) {
    const { dataset } = this.root;
    for (const [name, value] of Object.entries(status)) {
      if (value === null) delete dataset[name];
      else if (value !== undefined && dataset[name] !== String(value)) dataset[name] = String(value);
    }
  }

  /** What it is given: its width, and where it fills the window also how far down it begins, however far the page is scrolled. */
  sizeNow() {
    const { fills } = /** @type {typeof Ground} */ (this.constructor);
    return `${this.root.clientWidth},${fills ? Math.round(this.beginsAt) : ""}`;
  }

  get beginsAt() {
    return this.root.getBoundingClientRect().top + scrolled();
  }

  get isProjected() {
    return window.headlight.settings.get("projector") !== null;
  }

  get isSpotlit() {
    return this.isProjected && window.headlight.settings.get("spotlight") !== null;
  }

  /** Pixels at the bottom of the window that belong to the bar of a projected page. */
  get barHeight() {
    return this.isProjected ? BAR * parseFloat(getComputedStyle(document.documentElement).fontSize) : 0;
  }

  /** Pixels of its type, for 16: drawings grow with it. */
  get typeUnit() {
    return parseFloat(getComputedStyle(this.root).fontSize) / 16 || 1;
  }

  /** For a screen reader, by the room beside which it stands. @param {string} text */
  announce(text) {
    [...voices].at(-1)?.announce(text);
  }

  /** A quiet button. @param {HTMLElement | null} parent @param {string} text @param {() => void} act @param {string} [help] */
  button(parent, text, act, help) {
    const made = button(text, "quiet", act, help);
    parent?.append(made);
    return made;
  }

  // While a button is held down nothing is drawn: one that is made again under a finger hears no click.
  get isPressed() {
    return performance.now() - this.pressed < LONGEST_PRESS;
  }

  /** @param {PointerEvent} event */
  #press(event) {
    if (event.button || event.ctrlKey) return; // a menu opens, and may keep the release for itself
    const { pressable } = /** @type {typeof Ground} */ (this.constructor);
    if (/** @type {Element} */ (event.composedPath()[0]).closest(pressable)) this.pressed = performance.now();
  }

  #release() {
    if (this.pressed > 0) setTimeout(() => (this.pressed = -Infinity)); // after the click that follows
  }
}
