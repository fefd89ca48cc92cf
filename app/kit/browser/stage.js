// The life of a room in the page: mounted, given messages, chosen in, drawn once a frame, saved, shared, projected, covered and left.
//
// A room is a class on Stage. Its constructor makes its parts; it says what it draws (draw), what leaves the page (picture, about), and
// what its keys do (keys, arrow, turn). It has nothing to tidy up but what it adds to `leaving`, and no listener of its own on the
// window. docs/adding-a-room.md shows one from beginning to end.

import { paletteOf, themeOf } from "./colours.js";
import { cover, Guard } from "./cover.js";
import { add, arrow, el, fill, keepingFocus, setText } from "./dom.js";
import { Fetcher } from "./fetcher.js";
import { Files } from "./files.js";
import { HeadFinder } from "./head_finder.js";
import { unpack } from "./messages.js";
import { mounted } from "./mount.js";
import { Projector } from "./projector.js";
import { RoomSelection } from "./selection.js";
import { linkTo, Share, spoken } from "./share.js";
import { isFree, isOwn } from "./shortcuts.js";
import { WORDS as words } from "./words.js";
import { mainBlock, scrolled } from "../../streamlit_edge/browser/page.js";

const LONGEST_PRESS = 5000; // ms for which a button that is pressed keeps the room from being drawn again under it

/** @typedef {import("./types.js").StageHeader} StageHeader */
/** @typedef {"data" | "selection" | "answer" | "size" | "type" | "theme" | "projector" | "cover"} Stale what a room was not drawn of yet */
/** @typedef {(event: KeyboardEvent) => boolean | void} Act what a key does; false where it does nothing here, so that the browser may */

/**
 * What a component's module exports: the room in its place on the page, made once and given every message.
 * @param {{new (root: HTMLElement): Stage<any, any, any>, style: string}} Room
 */
export const stage =
  (Room) =>
  (/** @type {import("./types.js").Given<Uint8Array>} */ { data, parentElement, setStateValue, setTriggerValue }) => {
    const [room, leave] = mounted(parentElement, Room.style, (root) => new Room(root).enter());
    room.trigger = setTriggerValue;
    room.receive(data, setStateValue);
    return leave;
  };

/** @template {StageHeader} [Header=any] @template {object} [Palette=any] @template {string} [Part=Stale] what a room of many parts draws one by one */
export class Stage {
  // ------------------------------------------------------------------ what a room declares

  static style = "";
  /** @type {Record<"light" | "dark", any>} */
  static palettes;
  /** @type {Record<string, string>} A selector for each part that a lesson may cover */
  static covers = {};
  static pressable = "button, a"; // not drawn again while it is held down
  static offers = words.clearest; // in these words the head that it would rather show
  static fills = false; // whether it is as high as the window has room for below it: what moves it down is then another size

  /**
   * A message is there: of another run, of the same with another header, or with what a link decided. True draws the room whatever the
   * message says; false says that it is on the screen already. @param {{isNew: boolean, isOther: boolean, byLink: boolean}} _ @returns {boolean | void}
   */
  received(_) {}

  /** Draw what is stale. What is measured is measured before anything is written. @param {Set<Stale | Part>} _ */
  draw(_) {}

  /**
   * The state of the screen, as data attributes of the room: for tests, and for readers of the page. Undefined says nothing, null takes
   * an attribute away, as a room whose picture is not there yet does with `painted`. @returns {Record<string, unknown>}
   */
  status() {
    return {};
  }

  /** The run of the header: another key is another run. */
  get key() {
    return this.header?.key ?? "";
  }

  /** What a link to this screen says beside the page's own. @returns {Record<string, unknown>} */
  link() {
    return { ...this.header.link, ...spoken(this.values) };
  }

  /** The picture that files are made of. @returns {import("./types.js").Drawing} */
  picture() {
    throw new Error("a room with files says what its picture is");
  }

  /** What its files say of themselves; or which there are, kind by kind. @returns {import("./types.js").AboutFiles | {kinds: import("./types.js").FileKind[]}} */
  about() {
    throw new Error("a room with files says what they hold");
  }

  /** Where the page that works offline has its address; "" where the room has none. */
  get offlinePage() {
    return "";
  }

  /** Acts of keys beside arrows and Page keys, by its name in lower case. @type {Record<string, Act>} */
  keys = {};

  /** Move what is chosen in the picture. @param {number} _down @param {number} _right @returns {boolean | void} */
  arrow(_down, _right) {
    return false;
  }

  /** To the next or the previous of what the room shows one after the other, as a clicker does. @param {number} _by @returns {boolean | void} */
  turn(_by) {
    return false;
  }

  /** How many layers and heads there are to be found with "/"; null where the room has none. @returns {{layers: number, heads: number} | null} */
  get headGrid() {
    return null;
  }

  /** The head that the room would open with here, which it offers where another one is chosen. @returns {{layer: number, head: number} | null} */
  get clearest() {
    return this.header.clearest ?? null;
  }

  /** The holder of what routes answer about the run of the header. */
  fetcher() {
    return new Fetcher(this.key, () => this.invalidate("answer"));
  }

  /** Show another head, which the visitor asked for by its numbers. @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    this.choose({ layer: String(layer), head: String(head) });
  }

  // ------------------------------------------------------------------ what every room has

  /** @type {Header} */
  header;
  /** @type {[header: any, body: ArrayBuffer]} What Python sent last */
  message;
  selection = new RoomSelection();
  /** @type {Fetcher} Answers about the run of the header */
  remote;
  /** @type {Palette} */
  palette;
  /** @type {"light" | "dark"} */
  scheme = "light";
  frame = 0;
  pressed = -Infinity; // when a button was pressed that is still held
  /** @type {Set<Stale | Part>} */
  stale = new Set();
  /** @type {import("./types.js").Tell} Asks the script for something once, such as a dialog */
  trigger = () => {};
  size = ""; // that it was drawn at
  /** @type {Uint8Array | undefined} */
  #data;
  #told = ""; // the header, but for what is chosen
  #off = new AbortController();

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    root.replaceChildren();
    this.foot = el("footer", "foot");
    this.proof = add(this.foot, "span", "ok");
    this.facts = add(this.foot, "span", "facts");
    this.acts = add(this.foot, "span", "acts");
    this.offer = this.button(null, "", () => this.#takeOffer(), words.clearest_help);
    this.offer.classList.add("offer");
    this.live = el("p", "unseen");
    this.live.setAttribute("role", "status");
    this.projector = new Projector(
      () => this.invalidate("projector"),
      (by) => void this.turn(by),
    );
    this.files = new Files(
      () => this.picture(),
      () => this.about(),
      () => /** @type {any} */ (this.palette),
    );
    this.finder = new HeadFinder(this);
    this.share = new Share(
      root,
      () => linkTo(this.link()),
      (text) => this.announce(text),
    );
  }

  /** Aborted when the room leaves the page: for listeners, requests and whatever else ends with it. */
  get leaving() {
    return this.#off.signal;
  }

  /** The parts are made: what stands below them, and what is listened to. @returns {this} */
  enter() {
    const { root, leaving: signal } = this;
    if (!this.foot.parentNode) root.append(this.foot);
    if (!this.offer.parentNode) this.acts.before(this.offer); // a room may have a better place for it
    this.acts.append(...this.share.actions(), this.files.box, this.projector.button);
    root.append(this.share.box, this.finder.box, this.live);
    const guard = new Guard(root, /** @type {typeof Stage} */ (this.constructor).covers, () =>
      this.invalidate("cover"),
    );
    const uncovers = cover.watch(() => this.invalidate("cover"));
    // Its height follows from what it draws, and asks for no other drawing.
    const sized = new ResizeObserver(() => {
      const size = this.sizeNow();
      if (size !== this.size) this.invalidate("size");
      this.size = size;
    });
    sized.observe(root);
    const page = mainBlock();
    if (page && /** @type {typeof Stage} */ (this.constructor).fills) sized.observe(page); // which a sentence above makes longer
    document.fonts.ready.then(() => this.invalidate("size", "type"));
    addEventListener("resize", () => this.invalidate("size"), { signal });
    // A focused part of the room comes before the page's own keys; where nothing is focused, those of the page come first.
    // Two keys within one frame: the second starts from what the first has chosen, which a part knows once it is drawn.
    root.addEventListener("keydown", () => this.#catchUp(), { signal, capture: true });
    root.addEventListener("keydown", (e) => this.#key(e), { signal });
    document.addEventListener("keydown", (e) => e.composedPath()[0] === document.body && this.#key(e), { signal });
    root.addEventListener("pointerdown", (e) => this.#press(e), { signal });
    for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => this.#release(), { signal });
    signal.addEventListener("abort", () => {
      uncovers();
      sized.disconnect();
      cancelAnimationFrame(this.frame);
      for (const part of [guard, this.projector, this.files, this.selection]) part.destroy();
    });
    return this;
  }

  destroy() {
    this.#off.abort();
  }

  // ------------------------------------------------------------------ messages in, choices out

  /** @param {Uint8Array} data @param {import("./types.js").Tell} tell */
  receive(data, tell) {
    const isOther = data !== this.#data; // the same again: the page may have other colours
    this.#data = data;
    this.selection.set = tell;
    if (isOther) this.readMessage(unpack(data), tell);
    else if (this.readTheme()) this.invalidate();
  }

  /** @param {[header: any, body: ArrayBuffer]} message @param {import("./types.js").Tell} tell */
  readMessage(message, tell) {
    const [key, before, told] = [this.key, this.#state(), this.#told];
    const isFirst = !this.header;
    this.message = message;
    this.header = message[0];
    this.#told = JSON.stringify({ ...this.header, chosen: null, cover: null });
    cover.take(this.header.cover);
    const byLink = this.selection.take(this.header.chosen, tell);
    this.share.isOffline = this.isOffline;
    const isNew = isFirst || key !== this.key;
    if (isNew) this.remote = this.fetcher();
    this.readTheme();
    const isDrawn = this.received({ isNew, isOther: isNew || told !== this.#told, byLink });
    if (isDrawn === false) return;
    if (isDrawn !== true && this.root.dataset.painted && this.#state() === before) return; // Python's answer to what is drawn already
    this.stale.add("data");
    if (this.isPressed) this.invalidate("data");
    else this.drawNow();
  }

  // All that Python and the page decide of what is drawn
  #state() {
    return `${this.#told} ${JSON.stringify(this.values)} ${this.scheme}`;
  }

  /** Light or dark, as the page is. Returns whether that is another than before. */
  readTheme() {
    const scheme = themeOf(this.root);
    if (this.palette && scheme === this.scheme) return false;
    this.scheme = scheme;
    this.palette = paletteOf(this.root, /** @type {typeof Stage} */ (this.constructor).palettes);
    this.stale.add("theme");
    return true;
  }

  get values() {
    return this.selection.values;
  }

  get isOffline() {
    return Boolean(this.header.offline);
  }

  /** The visitor chooses: the screen changes with the next frame, the address a moment later. @param {Record<string, string>} changes */
  choose(changes, atOnce = false) {
    this.selection.choose(changes, atOnce);
    this.invalidate("selection");
  }

  /**
   * What a route answers, read once: null while it is on its way; the room is drawn again when it is there.
   * @template Answer @param {string} path @param {import("./types.js").Params} params @param {(bytes: Uint8Array) => Answer} read
   */
  ask(path, params, read) {
    return this.remote.get(path, params, read);
  }

  // ------------------------------------------------------------------ drawing

  /** The room is to be drawn again, in the next frame, however often it is asked for. @param {...(Stale | Part)} what */
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
    if (!this.header || !this.root.isConnected) return;
    const began = performance.now();
    const stale = new Set(this.stale);
    this.stale.clear();
    this.root.classList.toggle("projector", this.isProjected);
    keepingFocus(this.root, () => this.draw(stale));
    this.#offerHead();
    this.show({
      painted: "1",
      projector: this.isProjected,
      ms: (performance.now() - began).toFixed(1),
      ...this.status(),
    });
  }

  // Another head than the room would show is never changed silently: it is offered.
  #offerHead() {
    const { layer, head } = this.values;
    const found = this.isProjected || cover.now ? null : this.clearest; // a lesson may ask for it
    this.offer.hidden = !found || (String(found.layer) === layer && String(found.head) === head);
    if (found && !this.offer.hidden)
      setText(this.offer, fill(/** @type {typeof Stage} */ (this.constructor).offers, found));
  }

  #takeOffer() {
    const { clearest } = this;
    if (clearest) this.chooseHead(clearest.layer, clearest.head);
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
    const { fills } = /** @type {typeof Stage} */ (this.constructor);
    return `${this.root.clientWidth},${fills ? Math.round(this.beginsAt) : ""}`;
  }

  get beginsAt() {
    return this.root.getBoundingClientRect().top + scrolled();
  }

  get isProjected() {
    return this.projector.on;
  }

  /** Pixels of the room's type, for 16: drawings grow with it. */
  get typeUnit() {
    return parseFloat(getComputedStyle(this.root).fontSize) / 16 || 1;
  }

  /** For a screen reader. @param {string} text */
  announce(text) {
    setText(this.live, text);
  }

  /** A quiet button. @param {HTMLElement | null} parent @param {string} text @param {() => void} act @param {string} [help] */
  button(parent, text, act, help) {
    const made = el("button", "quiet", text);
    made.type = "button";
    if (help) made.title = help;
    made.addEventListener("click", act);
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
    const { pressable } = /** @type {typeof Stage} */ (this.constructor);
    if (/** @type {Element} */ (event.composedPath()[0]).closest(pressable)) this.pressed = performance.now();
  }

  #release() {
    if (this.pressed > 0) setTimeout(() => (this.pressed = -Infinity)); // after the click that follows
  }

  // ------------------------------------------------------------------ keys

  /** @param {KeyboardEvent} event */
  #key(event) {
    const way = event.composedPath();
    if (!this.root.isConnected || !this.header || !isFree(event) || isOwn(event)) return;
    if (way.includes(this.files.menu) || way.includes(this.finder.box)) return;
    const step = arrow(event);
    const page = { PageDown: 1, PageUp: -1 }[event.key];
    const act = step
      ? () => this.arrow(...step)
      : page
        ? () => this.turn(page)
        : event.key === "/"
          ? () => this.finder.open()
          : this.keys[event.key.toLowerCase()];
    if (!act || act(event) === false) return;
    event.preventDefault();
    this.#catchUp();
  }

  #catchUp() {
    if (this.stale.size && !this.isPressed) this.drawNow();
  }

  // ------------------------------------------------------------------ files

  /** What the page that works offline is drawn from. @returns {import("./types.js").OfflinePage | undefined} */
  page() {
    if (this.isOffline || !this.offlinePage) return undefined;
    const [header, body] = this.message;
    const chosen = { values: { ...this.values }, stamp: 1, reported: 0 };
    const message = /** @type {[object, ArrayBuffer]} */ ([{ ...header, chosen, offline: true }, body]);
    return { path: this.offlinePage, theme: this.scheme, message, remotes: this.remotes };
  }

  /** The holders of the answers that such a page takes along. @returns {{ids: string[]}[]} */
  get remotes() {
    return [this.remote];
  }
}
