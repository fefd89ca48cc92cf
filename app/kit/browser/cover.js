// What a lesson covers in a room until the visitor has said it: numbers, pixels, words, names. The lesson leads, the room follows.
//
// Both are components of one page and share this module. The lesson opens a step before any message of it comes, so nothing is seen
// for a moment that is to be covered; where a room is there first, its own message says the same.

import { el } from "./dom.js";
import { WORDS as words } from "./words.js";

/** @typedef {import("./types.js").Covered} Covered */
const NAMES = ["aria-label", "aria-description", "aria-valuetext", "title", "alt"]; // what a screen reader says of an element, or a pointer shows

class Cover {
  /** @type {Covered | null} */
  now = null;
  seen = false;
  isLed = false; // whether a lesson is on the page
  /** @type {number[][]} What was pointed at, as long as it is covered */
  said = [];
  /** @type {Set<() => void>} */
  heard = new Set();
  /** @type {(place: number[]) => void} What a lesson does with what is pointed at */
  pointed = () => {};
  /** @type {((place: number[]) => void) | null} The same of what a class is asked, whose cover lies over every other */
  held = null;
  /** @type {Covered | null} What is covered below that */
  below = null;

  // The lesson opens a step, or shows one again that was looked at.
  /** @param {Covered} step @param {(place: number[]) => void} pointed @param {() => void} news */
  open(step, pointed, news) {
    Object.assign(this, { isLed: true, pointed, news });
    this.put(step);
  }

  // A room has a message: of the step that it is for, or of none.
  /** @param {Covered | null | undefined} sent */
  take(sent) {
    if (this.isLed && sent) return; // the lesson knows better, and sooner
    this.isLed = false;
    this.put(sent ?? null);
  }

  // A class is asked: this is covered whatever else a lesson or a room says, until free().
  /** @param {Covered} step @param {(place: number[]) => void} [pointed] */
  hold(step, pointed = () => {}) {
    if (!this.held) this.below = this.now && { ...this.now, seen: this.seen };
    this.held = pointed;
    this.set(step);
  }

  free() {
    if (!this.held) return;
    this.held = null;
    this.set(this.below);
  }

  /** @param {Covered | null} step */
  put(step) {
    if (this.held) this.below = step;
    else this.set(step);
  }

  /** @param {Covered | null} step */
  set(step) {
    if (JSON.stringify(step) === JSON.stringify(this.now) && this.seen === Boolean(step?.seen)) return;
    if (step?.step !== this.now?.step) this.said = [];
    this.now = step;
    this.seen = Boolean(step?.seen);
    this.tell();
  }

  // What the visitor says, wherever it was said
  /** @param {number[][]} places */
  mark(places) {
    if (String(places) === String(this.said)) return;
    this.said = places;
    this.tell();
  }

  // The visitor has said it, and looks.
  look() {
    if (!this.now || this.seen) return;
    this.seen = true;
    this.tell();
  }

  leave() {
    Object.assign(this, { isLed: false, pointed: () => {}, news: () => {} });
    this.put(null);
  }

  tell() {
    const { dataset } = document.documentElement;
    if (this.now && this.seen) dataset.looked = this.now.step;
    else delete dataset.looked;
    for (const hear of [...this.heard]) hear();
  }

  /** Whether a part of the room is covered. @param {...string} parts */
  hides(...parts) {
    return this.now !== null && !this.seen && parts.includes(this.now.part);
  }

  /** Whether this is an answer, and was taken as one. Numbers are places: a token, or a row and a column. @param {...number} place */
  point(...place) {
    if (this.now?.asks !== "point" || this.seen) return false;
    (this.held ?? this.pointed)(place);
    return true;
  }

  // There is something new to ask about, which no script knows: a training has come to its end.
  news = () => {};

  /** @param {() => void} hear */
  watch(hear) {
    this.heard.add(hear);
    return () => void this.heard.delete(hear);
  }
}

export const cover = new Cover();

/** @typedef {{names: [string, string][], box: HTMLElement, under: HTMLElement, watches: {disconnect(): void}[]}} Stashed */

// Covers whole elements of a room, by part. What is in one goes behind a wall (a closed shadow root) in which the room still draws and
// measures it, and out of the page's text, names and sight; all before the browser shows what was drawn.
export class Guard {
  /** @type {Map<HTMLElement, Stashed>} */
  stashed = new Map();

  /** @param {HTMLElement} root @param {Record<string, string>} parts a selector for each part @param {() => void} [changed] something is in the page again */
  constructor(root, parts, changed = () => {}) {
    this.root = root;
    this.parts = parts;
    this.changed = changed;
    this.observer = new MutationObserver(() => this.apply());
    this.unwatch = cover.watch(() => this.apply());
    this.apply();
  }

  destroy() {
    this.observer.disconnect();
    this.unwatch();
  }

  apply() {
    this.observer.disconnect();
    const part = cover.now?.part ?? "";
    const selector = cover.hides(part) ? this.parts[part] : undefined;
    const wanted = new Set(selector ? /** @type {HTMLElement[]} */ ([...this.root.querySelectorAll(selector)]) : []);
    const gone = [...this.stashed.keys()].filter((node) => !wanted.has(node));
    for (const node of gone) this.uncover(node);
    for (const node of wanted) this.cover(node);
    if (selector)
      this.observer.observe(this.root, {
        childList: true,
        characterData: true,
        subtree: true,
        attributes: true,
        attributeFilter: NAMES,
      });
    if (gone.length) this.changed();
  }

  /** @param {HTMLElement} node */
  cover(node) {
    const known = this.stashed.get(node);
    const isDone = known?.box.parentNode === node && node.childNodes.length === 1;
    if (isDone && !NAMES.some((name) => node.hasAttribute(name))) return;
    const { box, under, names, watches } = known ?? this.wall(node);
    // What the room put beside the box belongs to what is under it; what it put in place of all that is there now is all.
    const children = [...node.childNodes];
    const at = children.indexOf(box);
    if (at < 0) under.replaceChildren(...children);
    else {
      under.prepend(...children.slice(0, at));
      under.append(...children.slice(at + 1));
    }
    for (const name of NAMES) {
      const text = node.getAttribute(name);
      if (text === null) continue;
      names.push([name, text]);
      node.removeAttribute(name);
    }
    node.replaceChildren(box);
    this.stashed.set(node, { box, under, names, watches });
  }

  // What stands in for an element, and the place behind it: of its size, and with the styles that it has in the room. One that is
  // covered before anything is drawn in it has no size yet: it grows with what is drawn behind the wall.
  /** @param {HTMLElement} node @returns {Stashed} */
  wall(node) {
    const [width, height] = [node.offsetWidth, node.offsetHeight];
    const box = el("div", "covered", words.covered);
    box.title = words.covered;
    box.style.cssText = `position: relative; display: grid; grid-template: auto / 1fr; place-items: center; height: 100%; min-height: ${height}px; min-width: ${Math.min(width, 60)}px; padding: 0.5em 0.8em; overflow: hidden; color: var(--mute); font: 400 1rem / 1.35 var(--st-font), system-ui, sans-serif; text-align: center; white-space: normal; border: 1px dashed var(--line); border-radius: 0.5em; background: repeating-linear-gradient(135deg, transparent 0 5px, color-mix(in srgb, var(--mute) 11%, transparent) 5px 6px);`;
    const wall = el("div");
    wall.ariaHidden = "true";
    wall.inert = true;
    wall.style.cssText = `position: absolute; left: 0; top: 0; visibility: hidden; opacity: 0; width: ${width}px; height: ${height}px; overflow: hidden; pointer-events: none;`;
    box.append(wall);
    const within = wall.attachShadow({ mode: "closed" });
    const style = this.root.parentNode?.querySelector("style")?.cloneNode(true);
    if (style) within.append(style);
    /** @type {HTMLElement[]} */
    const way = [];
    for (let at = /** @type {HTMLElement | null} */ (node); at; at = at === this.root ? null : at.parentElement)
      way.unshift(at);
    const copies = way.map((step) => /** @type {HTMLElement} */ (step.cloneNode(false)));
    /** @type {Node} */
    let at = within;
    for (const copy of copies) at = at.appendChild(copy);
    const under = /** @type {HTMLElement} */ (at);
    const grown = new ResizeObserver(() => (box.style.minHeight = `${under.offsetHeight}px`));
    if (width && !height) grown.observe(under);
    // Styles behind the wall are those of the room as it is now: it may say what it shows only after it is covered
    const dressed = new MutationObserver((changes) => {
      for (const { target, attributeName: name } of changes) {
        if (name !== "class" && !name?.startsWith("data-")) continue;
        const [step, copy] = [
          /** @type {HTMLElement} */ (target),
          copies[way.indexOf(/** @type {HTMLElement} */ (target))],
        ];
        if (step.hasAttribute(name)) copy.setAttribute(name, step.getAttribute(name) ?? "");
        else copy.removeAttribute(name);
      }
    });
    for (const step of way) dressed.observe(step, { attributes: true });
    return { box, under, names: [], watches: [grown, dressed] };
  }

  /** @param {HTMLElement} node */
  uncover(node) {
    const { names, box, under, watches } = /** @type {Stashed} */ (this.stashed.get(node));
    this.stashed.delete(node);
    for (const watch of watches) watch.disconnect();
    if (box.parentNode !== node) return; // the room has drawn it again
    box.replaceWith(...under.childNodes);
    for (const [name, text] of names) node.setAttribute(name, text);
  }
}
