// The life of a room in the page: mounted, given messages, chosen in, drawn once a frame, saved, shared, projected, covered and left.
//
// A room is a class on Stage. Its constructor makes its parts; it says what it draws (draw), what leaves the page (picture, about), and
// what its keys do (keys, arrow, turn). It has nothing to tidy up but what it adds to `leaving`, and no listener of its own on the
// window. docs/adding-a-room.md shows one from beginning to end.

import { classroom } from "./classroom.js";
import { cover, Guard } from "./cover.js";
import { add, arrow, el, fill, setText } from "./dom.js";
import { Fetcher } from "./fetcher.js";
import { Files } from "./files.js";
import { Ground, voices } from "./ground.js";
import { HeadFinder } from "./head_finder.js";
import { unpack } from "./messages.js";
import { Projector } from "./projector.js";
import { RoomSelection } from "./selection.js";
import { linkTo, Share, spoken } from "./share.js";
import { KeyList } from "./key_list.js";
import { isFree, isOwn } from "./shortcuts.js";
import { WORDS as words } from "./words.js";

/** @typedef {import("./types.js").StageHeader} StageHeader */
/** @typedef {import("./ground.js").Stale} Stale */
/** @typedef {(event: KeyboardEvent) => boolean | void} Act what a key does; false where it does nothing here, so that the browser may */

const SETTLED = 200; // ms without a change before what depends on it is told
const PATIENCE = 6000; // ms that a moment of a film waits for what it shows

/**
 * @template {StageHeader} [Header=any] @template {object} [Palette=any] @template {string} [Piece=Stale] what a room of many pieces draws one by one
 * @extends {Ground<Palette, Piece>}
 */
export class Stage extends Ground {
  // ------------------------------------------------------------------ what a room declares

  /** @type {Record<string, string>} A selector for each part that a lesson may cover */
  static covers = {};
  /** @type {readonly string[]} Choices for which the room needs another message */
  static remade = [];
  static offers = words.clearest; // in these words the head that it would rather show
  /** @type {readonly string[]} Pieces that a choice makes stale: they are drawn before the next key is heard */
  static choices = ["selection"];

  /**
   * A message is there: of another run, of the same with another header, or with what a link decided. True draws the room whatever the
   * message says; false says that it is on the screen already. @param {{isNew: boolean, isOther: boolean, byLink: boolean}} _ @returns {boolean | void}
   */
  received(_) {}

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

  /**
   * Words for each of them, and for the arrows and the Page keys ("arrows", "pages"); names beside those are keys of a part that has
   * the focus. A room that says nothing has no list of keys.
   * @type {Record<string, string>}
   */
  keysTold = {};

  /** Move what is chosen in the picture. @param {number} _down @param {number} _right @returns {boolean | void} */
  arrow(_down, _right) {
    return false;
  }

  /** To the next or the previous of what the room shows one after the other, as a clicker does. @param {number} _by @returns {boolean | void} */
  turn(_by) {
    return false;
  }

  /** Whether what is to be turned to is still on its way: page keys pressed by then count once it is there. */
  get isComing() {
    return false;
  }

  /** How many layers and heads there are to be found with "/"; null where the room has none. @returns {{layers: number, heads: number} | null} */
  get headGrid() {
    return null;
  }

  /** Show another head, which the visitor asked for by its numbers. @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    this.choose({ layer: String(layer), head: String(head) });
  }

  /** The head that the room would open with here, which it offers where another one is chosen. @returns {{layer: number, head: number} | null} */
  get clearest() {
    return this.header.clearest ?? null;
  }

  /** The holder of what routes answer about the run of the header. */
  fetcher() {
    return new Fetcher(this.key, () => this.invalidate("answer"));
  }

  // ------------------------------------------------------------------ what every room has

  /** @type {Header} */
  header;
  /** @type {[header: any, body: ArrayBuffer]} What Python sent last */
  message;
  selection = new RoomSelection();
  /** @type {Record<string, string>} What was chosen before the last message, or before the visitor went back */
  former = {};
  /** @type {Fetcher} Answers about the run of the header */
  remote;
  /** @type {import("./chooser.js").HeadChooser | null} Where the room shows one head: "h" opens it */
  chooser = null;
  /** @type {Uint8Array | undefined} */
  #data;
  #told = ""; // the header, but for what is chosen

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.foot = el("footer", "foot");
    this.proof = add(this.foot, "span", "ok");
    this.facts = add(this.foot, "span", "facts");
    this.acts = add(this.foot, "span", "acts");
    this.offer = this.button(null, "", () => this.#takeOffer(), words.clearest_help);
    this.offer.classList.add("offer");
    this.keyList = new KeyList(() => this.#listed());
    this.live = el("p", "unseen");
    this.live.setAttribute("role", "status");
    this.projector = new Projector((by) => void this.#page(by), this.leaving);
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

  get isGiven() {
    return Boolean(this.header);
  }

  /** The parts are made: what stands below them, and what is listened to. @returns {this} */
  enter() {
    super.enter();
    const { root, leaving: signal } = this;
    if (!this.foot.parentNode) root.append(this.foot);
    if (!this.offer.parentNode) this.acts.before(this.offer); // a room may have a better place for it
    this.acts.append(...this.buttons());
    root.append(this.share.box, this.finder.box, this.keyList.box, this.live);
    const off = window.headlight.address?.take((now, before) => this.#goTo(now, before));
    this.selection.changed = (names) => this.#changed(names);
    const guard = new Guard(root, /** @type {typeof Stage} */ (this.constructor).covers, () =>
      this.invalidate("cover"),
    );
    const uncovers = cover.watch(() => this.invalidate("cover"));
    // A focused part of the room comes before the page's own keys; where nothing is focused, those of the page come first.
    // Two keys within one frame: the second starts from what the first has chosen, which a part knows once it is drawn.
    // What an answer made stale waits for its frame.
    const { choices } = /** @type {typeof Stage} */ (this.constructor);
    const catchUp = () => choices.some((piece) => this.stale.has(/** @type {any} */ (piece))) && this.#catchUp();
    root.addEventListener("keydown", catchUp, { signal, capture: true });
    root.addEventListener("keydown", (e) => this.#key(e), { signal });
    root.addEventListener("pointerdown", () => this.#forgetPages(), { signal, capture: true });
    document.addEventListener("keydown", (e) => e.composedPath()[0] === document.body && this.#key(e), { signal });
    voices.add(this);
    signal.addEventListener("abort", () => {
      voices.delete(this);
      uncovers();
      off?.();
      clearTimeout(this.#again);
      for (const part of [guard, this.files, this.selection]) part.destroy();
    });
    return this;
  }

  /** The buttons of every room, after this one's own. @returns {HTMLElement[]} */
  buttons() {
    const keys = Object.keys(this.keysTold).length ? [this.keyList.button] : [];
    return [...keys, ...this.share.actions(), this.files.box, this.projector.button];
  }

  /** Every key that is heard, and what it does here. @returns {[name: string, says: string][]} */
  #listed() {
    const { keysTold: told } = this;
    if (!Object.keys(told).length) return [];
    /** @type {Record<string, string>} */
    const named = words.keys_named;
    const own = new Set([...Object.keys(told), ...Object.keys(this.keys)]);
    /** @type {[string, string][]} */
    const found = [...own].map((key) => [named[key] ?? (key.length === 1 ? key.toUpperCase() : key), told[key] ?? ""]);
    if (this.headGrid) found.push(["/", words.keys_find]);
    if (this.chooser) found.push(["H", words.keys_heads]);
    found.push(["P", words.keys_project]);
    if (!own.has("f")) found.push(["F", words.keys_freeze]);
    if (!own.has("s")) found.push(["S", words.keys_spotlight]);
    return [...found, ["Esc", words.keys_escape], ["?", words.keys_this]];
  }

  // ------------------------------------------------------------------ messages in, choices out

  /** @param {Uint8Array} data */
  receive(data) {
    this.selection.host = this.host;
    const isOther = data !== this.#data; // the same again: the page may have other colours
    this.#data = data;
    const message = isOther ? unpack(data) : null;
    if (message && this.header && !message[0].going && !this.canTake(message[0].chosen)) this.again();
    else if (message) this.readMessage(message);
    else if (this.readTheme()) this.invalidate();
  }

  /** @param {[header: any, body: ArrayBuffer]} message */
  readMessage(message) {
    const [key, told] = [this.key, this.#told];
    const isFirst = !this.header;
    this.former = { ...this.values };
    this.message = message;
    this.header = message[0];
    this.#told = JSON.stringify({ ...this.header, chosen: null, cover: null });
    cover.take(this.header.cover);
    const byLink = this.selection.take(this.header.chosen);
    this.share.isOffline = this.isOffline;
    const isNew = isFirst || key !== this.key;
    if (isNew) this.remote = this.fetcher();
    this.readTheme();
    if (this.received({ isNew, isOther: isNew || told !== this.#told, byLink }) === false) return;
    this.stale.add("data");
    if (this.isPressed) this.invalidate("data");
    else this.drawNow();
  }

  /** Whether a message can be shown. One that answers what the address said before is asked for once more, and then taken. @param {import("./types.js").Chosen} chosen */
  canTake(chosen) {
    const address = window.headlight.address?.read().toString();
    if (this.selection.canTake(chosen) || address === this.#askedFor) {
      this.#askedFor = "";
      return true;
    }
    this.#askedFor = address;
    return false;
  }

  #askedFor = /** @type {string | undefined} */ (""); // what the address said when a message was asked for once more
  /** @type {number | undefined} A timer, while the script is to run again */
  #again;
  #times = 0;

  /** The script runs again, for the address as it is now. */
  again(after = 0) {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => this.host.trigger("again", ++this.#times), after);
  }

  /** The message is made once more, for the address as it is now; what is on the screen stays until then. @returns {Promise<void>} */
  async remake() {
    const { addressed } = this.selection;
    const address = window.headlight.address?.read().toString();
    if (!addressed || address === undefined) return;
    // The script keeps the message that a class sees.
    const data = classroom.heard.size ? null : await this.host.message(addressed.room, address).catch(() => null);
    if (window.headlight.address?.read().toString() !== address) return this.remake();
    if (!data) return this.again();
    const [header, body] = unpack(data);
    header.chosen.address.view = addressed.view;
    this.readMessage([{ ...header, cover: this.header.cover }, body]);
  }

  // Others that depend on a choice: the question of a lesson, and a class that follows where there is too much to tell.
  /** @param {string[]} names */
  #changed(names) {
    const { addressed, isTooLong } = this.selection;
    if (!names.length || !addressed) return;
    if (addressed.view !== addressed.room || (isTooLong && classroom.heard.size)) this.again(SETTLED);
    else if (names.some((name) => this.remade.includes(name))) void this.remake();
  }

  get remade() {
    return /** @type {typeof Stage} */ (this.constructor).remade;
  }

  // The visitor went back or forward, to another choice in this room.
  /** @param {URLSearchParams} now @param {URLSearchParams} before */
  #goTo(now, before) {
    if (!this.header || this.isBusy || !this.root.isConnected) return false;
    const former = { ...this.values };
    if (!this.selection.goTo(now, before, this.remade)) return false;
    this.former = former;
    if (this.received({ isNew: false, isOther: false, byLink: true }) !== false) this.invalidate("selection", "data");
    return true;
  }

  /** Whether another message is on its way. */
  get isBusy() {
    return false;
  }

  get values() {
    return this.selection.values;
  }

  get isOffline() {
    return Boolean(this.header.offline);
  }

  /**
   * The visitor chooses, or with "rule" the room by itself: the screen and the address change with the next frame.
   * @param {Record<string, string>} changes @param {"choice" | "rule"} [kind]
   */
  choose(changes, kind) {
    this.selection.choose(changes, kind);
    this.invalidate("selection");
  }

  /**
   * What a route answers, read once: null while it is on its way; the room is drawn again when it is there.
   * @template Answer @param {string} path @param {import("./types.js").Params} params @param {(bytes: Uint8Array) => Answer} read
   */
  ask(path, params, read) {
    return this.remote.get(path, params, read);
  }

  /**
   * The same of an answer that costs a pass of its own: it is asked for when nothing else is on its way.
   * @template Answer @param {string} path @param {import("./types.js").Params} params @param {(bytes: Uint8Array) => Answer} read
   */
  askLast(path, params, read) {
    return this.remote.get(path, params, read, { isLast: true });
  }

  drawNow() {
    super.drawNow();
    if (!this.isGiven) return;
    this.#offerHead();
    this.#turnPages();
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

  /** For a screen reader. @param {string} text */
  announce(text) {
    setText(this.live, text);
  }

  // ------------------------------------------------------------------ keys

  /** @param {KeyboardEvent} event */
  #key(event) {
    const way = event.composedPath();
    if (!this.root.isConnected || !this.header || !isFree(event) || isOwn(event)) return;
    if ([this.files.menu, this.finder.box, this.chooser?.box].some((box) => box && way.includes(box))) return;
    if (event.key === "Escape" && this.root.querySelector(":popover-open")) return; // which it closes
    const step = arrow(event);
    const page = { PageDown: 1, PageUp: -1 }[event.key];
    const act = step
      ? () => this.arrow(...step)
      : page
        ? () => this.#page(page)
        : event.key === "/"
          ? () => this.finder.open()
          : event.key === "?"
            ? () => this.keyList.toggle()
            : (this.keys[event.key.toLowerCase()] ?? (event.key.toLowerCase() === "h" && this.#heads));
    if (!page) this.#forgetPages();
    if (!act || act(event) === false) return;
    event.preventDefault();
    this.#catchUp();
  }

  #pages = { by: 0, from: "" }; // page keys that are still to count, and where they were pressed

  /** @param {number} by @returns {boolean | void} */
  #page(by) {
    const waits = this.#turnPages();
    if (!waits && !this.isComing) return this.turn(by);
    this.#pages = { by: waits + by, from: this.#from };
    return true;
  }

  // One of them, which is drawn before the next. Returns how many still wait.
  #turnPages() {
    if (this.#pages.from !== this.#from) this.#forgetPages();
    const { by } = this.#pages;
    if (!by || this.isComing) return by;
    this.#pages.by -= Math.sign(by);
    this.turn(Math.sign(by));
    return this.#pages.by;
  }

  // The visitor does something else by then.
  #forgetPages() {
    this.#pages.by = 0;
  }

  get #from() {
    return `${this.key} ${this.selection.taken}`;
  }

  #heads = () => this.chooser?.toggle() ?? false;

  #catchUp() {
    if (this.stale.size && !this.isPressed) this.drawNow();
  }

  // ------------------------------------------------------------------ files

  isShown = false; // whether something is on the screen that was not chosen: a moment of a film

  /**
   * The room as it would be with something else chosen, which no one is told of. `show` throws where the visitor, or a link, chooses
   * meanwhile; after `end` the room is as it was, with what they chose.
   * @returns {{show: (changes: Record<string, string>) => void, end: () => void}}
   */
  rehearsal() {
    const { selection } = this;
    const { number, taken } = selection;
    const still = { ...selection.values };
    let shown = still;
    const show = (/** @type {Record<string, string>} */ changes) => {
      if (selection.number !== number || selection.taken !== taken) throw { sentence: words.film_changed };
      this.isShown = true;
      shown = { ...still, ...changes };
      selection.values = { ...shown };
      this.stale.add("selection");
      this.drawNow();
    };
    const end = () => {
      this.isShown = false;
      if (selection.taken === taken) {
        const own = Object.entries(selection.values).filter(([name, text]) => text !== shown[name]);
        selection.values = still;
        if (selection.number !== number) this.choose(Object.fromEntries(own));
      }
      this.invalidate("selection");
    };
    return { show, end };
  }

  /** Until all that the room has asked for is there, some seconds at most. */
  async settled() {
    const until = performance.now() + PATIENCE;
    const rests = () => !this.stale.size && this.remotes.every((remote) => !remote.underway?.size);
    for (let quiet = 0; quiet < 2 && performance.now() < until; ) {
      await new Promise((done) => setTimeout(done, 20));
      quiet = rests() ? quiet + 1 : 0;
    }
  }

  /** What the page that works offline is drawn from. @returns {import("./types.js").OfflinePage | undefined} */
  page() {
    if (this.isOffline || !this.offlinePage) return undefined;
    const [header, body] = this.message;
    const chosen = { values: { ...this.values } };
    const message = /** @type {[object, ArrayBuffer]} */ ([{ ...header, chosen, offline: true }, body]);
    return { path: this.offlinePage, theme: this.scheme, message, remotes: this.remotes };
  }

  /** The holders of the answers that such a page takes along. @returns {{ids: string[], underway?: Set<string>}[]} */
  get remotes() {
    return [this.remote];
  }
}
