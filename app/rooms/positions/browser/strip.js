// The words over their numbered places: a word is chosen by a click or the arrow keys, and changes places with another when it is
// dragged onto it, or with its neighbour by Alt and an arrow key.

import { add, el, fill, keepingFocus } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { standing, swapped } from "./numbers.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./order.js").Order} Order */
const MOST_DRAGGED = 32; // words; in longer texts only Shuffle moves them
const MOST_EVEN = 18; // words that share one line evenly
const STILL = 6; // pixels that a pointer may move and still be a click

export class Strip {
  /** @type {Order} */
  lab;
  /** @type {{word: number, fixed: boolean, x: number, y: number, moved: boolean, over: number | null} | null} What a pointer holds, over which word */
  held = null;
  at = 0; // the place that keys move from

  /** @param {Shown} view @param {HTMLElement} host */
  constructor(view, host) {
    this.view = view;
    this.box = add(host, "div", "slots");
    this.box.setAttribute("role", "group");
    this.box.addEventListener("pointerdown", (event) => this.press(event));
    this.box.addEventListener("keydown", (event) => this.key(event));
    const { signal } = view.labLeaves;
    addEventListener("pointermove", (event) => this.drag(event), { signal });
    for (const name of /** @type {const} */ (["pointerup", "pointercancel"]))
      addEventListener(name, (event) => this.drop(event), { signal });
  }

  // The words that may move
  get movable() {
    const { labels, fixed } = this.lab.side;
    return labels.map((_, word) => word).filter((word) => !fixed.includes(word));
  }

  // The words' boxes, by their places: between them are the names of turns
  get slots() {
    return /** @type {HTMLElement[]} */ ([...this.box.querySelectorAll(".slot")]);
  }

  get canDrag() {
    return this.lab.side.labels.length <= MOST_DRAGGED;
  }

  /** @param {Order} lab */
  draw(lab) {
    this.lab = lab;
    const { view, box } = this;
    const { labels, fixed } = lab.side;
    const places = lab.places ?? labels.map((_, word) => word);
    const at = standing(places);
    const site = view.site();
    const isLocked =
      site.query === (view.value("stack") === "decoder" ? "target" : "source") || view.header.stacks.length === 1;
    box.classList.toggle("gone", lab.mode === "drop");
    box.classList.toggle("long", !this.canDrag);
    box.classList.toggle("many", this.canDrag && (labels.length > MOST_EVEN || view.isProjected));
    box.setAttribute("aria-label", this.canDrag ? words.strip : words.strip_long);
    box.title = this.canDrag ? words.strip : words.strip_long;
    const turns = new Map(lab.side.turns);
    this.at = Math.min(this.at, at.length - 1);
    keepingFocus(box, () => {
      box.replaceChildren();
      at.forEach((word, place) => {
        // The name of a turn of a conversation, before the token that opens it
        if (turns.get(word)) add(box, "small", "turn").textContent = turns.get(word) ?? "";
        const slot = add(box, "button", "slot");
        slot.dataset.slot = String(place);
        slot.dataset.word = String(word);
        slot.classList.toggle("moved", word !== place);
        slot.classList.toggle("fixed", fixed.includes(word));
        slot.classList.toggle("q", isLocked && word === lab.query);
        slot.tabIndex = place === this.at ? 0 : -1;
        slot.setAttribute("aria-pressed", String(isLocked && word === lab.query));
        const where = lab.mode === "drop" ? words.slot_none : fill(words.slot, { place });
        slot.setAttribute(
          "aria-label",
          `${labels[word]}, ${where}${word !== place ? `, ${fill(words.slot_moved, { place: word })}` : ""}`,
        );
        slot.append(
          el("b", word !== place ? "chosen" : "", labels[word]),
          el("i", "", lab.mode === "drop" ? "" : String(place)),
        );
      });
    });
    if (this.held) this.mark();
  }

  /** @param {number} word */
  choose(word) {
    const site = this.view.site();
    const isQuery =
      site.query === (this.view.value("stack") === "decoder" && this.view.header.tokens.target ? "target" : "source") ||
      this.view.header.stacks.length === 1;
    if (isQuery) this.view.choose({ query: String(word), key: "" });
  }

  /** @param {PointerEvent} event */
  press(event) {
    const slot = /** @type {Element} */ (event.target).closest(".slot");
    if (!slot || event.button) return;
    const word = Number(/** @type {HTMLElement} */ (slot).dataset.word);
    this.held = {
      word,
      fixed: slot.classList.contains("fixed"),
      x: event.clientX,
      y: event.clientY,
      moved: false,
      over: null,
    };
  }

  // The slot under the pointer that the held word may go to
  /** @param {PointerEvent} event */
  under(event) {
    const tree = /** @type {Document | ShadowRoot} */ (this.box.getRootNode());
    const slot = /** @type {HTMLElement | null | undefined} */ (
      tree.elementFromPoint(event.clientX, event.clientY)?.closest(".slot")
    );
    return slot && this.box.contains(slot) && !slot.classList.contains("fixed") ? slot : null;
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const { held } = this;
    if (!held || !this.canDrag || held.fixed) return;
    held.moved ||= Math.hypot(event.clientX - held.x, event.clientY - held.y) > STILL;
    if (!held.moved) return;
    const over = this.under(event);
    held.over = over ? Number(over.dataset.word) : null;
    this.mark();
  }

  // What is held, and what it is over: also after the words were drawn again meanwhile
  mark() {
    for (const slot of this.slots) {
      const word = Number(slot.dataset.word);
      slot.classList.toggle("over", Boolean(this.held?.moved) && word === this.held?.over);
      slot.classList.toggle("held", Boolean(this.held?.moved) && word === this.held?.word);
    }
  }

  /** @param {PointerEvent} event */
  drop(event) {
    const { held } = this;
    this.held = null;
    if (!held) return;
    this.mark();
    if (!held.moved) {
      this.at = Math.max(
        0,
        [...this.slots].findIndex((slot) => Number(slot.dataset.word) === held.word),
      );
      if (event.type === "pointerup") this.choose(held.word);
      return;
    }
    const over = this.under(event);
    if (over && Number(over.dataset.word) !== held.word && event.type === "pointerup")
      this.swap(held.word, Number(over.dataset.word));
  }

  /** @param {number} a @param {number} b */
  swap(a, b) {
    const { labels } = this.lab.side;
    const places = this.lab.places ?? labels.map((_, word) => word);
    this.lab.move(swapped(places, a, b));
    this.view.announce(fill(words.said_swap, { a: labels[a], b: labels[b] }));
  }

  // The arrow keys choose; with Alt the word changes places with its neighbour. Enter chooses, as a click does.
  /** @param {KeyboardEvent} event */
  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const slot = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(".slot"));
    if (!slot || event.ctrlKey || event.metaKey) return;
    const place = Number(slot.dataset.slot);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.at = place;
      return this.choose(Number(slot.dataset.word));
    }
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = /** @type {HTMLElement | undefined} */ (this.slots[place + step]);
    if (!next) return;
    this.at = place + step;
    next.focus();
    if (!event.altKey) return this.choose(Number(next.dataset.word));
    if (!this.canDrag || slot.classList.contains("fixed") || next.classList.contains("fixed")) this.at = place;
    else this.swap(Number(slot.dataset.word), Number(next.dataset.word));
    this.slots[this.at].focus();
  }
}
