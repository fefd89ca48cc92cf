// The choices in a picture, the cell pointed at, and the one way to change both: the screen at once, Python and the address soon after.

import { WORDS as words } from "./constants.js";
import { isPerHead, optionsOf, placeOf, placeTexts, textsOf, unlikeOpening } from "./values.js";

/** @typedef {import("./types.js").At} At */
/** @typedef {import("./types.js").Place} Place */
/** @typedef {import("./types.js").Options} Options */
const SETTLED = 60; // ms after the last change of head
/** @type {Record<string, string[]>} */
const REDRAWS = {
  // what an option changes, where that is less than the whole layout
  scale: ["map", "strip", "lines", "footer", "overview"],
  bounds: ["map", "strip", "footer", "overview"],
  keep: ["lines"],
  metric: ["overview", "alike"],
  sort: ["overview"],
  area: ["map", "over"],
  by: ["side"],
  candidate: ["side", "facts"],
};
const NUMBERS = ["kind", "members", "hide", "words"]; // the options that change what the numbers are

export class Chosen {
  /** @type {At | null} {query, key}: what the pointer or the keyboard is on; one of them may be null */
  pointed = null;
  /** @type {{layer: number, head: number} | null} The head under the pointer in the map of all heads: shown, and not chosen */
  peeked = null;
  /** @type {number | undefined} When what is drawn next was asked for, in ms */
  since;
  /** @type {number | undefined} A timer, until the head has settled */
  settling;
  projector = false; // whether the page is projected,
  spotlight = false; // and every row but the chosen one dimmed
  declined = ""; // the lens whose last key was not hidden
  /** @type {{values: object, number: number, projector: boolean, spotlight: boolean, place: Place, options: Options} | undefined} As last read */
  read;

  /**
   * @param {import("./types.js").View} view
   * @param {import("../../kit/browser/selection.js").RoomSelection} selection what a link says of it
   * @param {{forget(what?: string): void, say(): void}} room drawings and numbers of it change, and a screen reader is told
   */
  constructor(view, selection, room) {
    this.view = view;
    this.selection = selection;
    this.room = room;
  }

  // The texts of the link as values, read once for each change. Of a query and a key that are both locked, the key counts.
  get now() {
    const { values, number } = this.selection;
    const { read, projector, spotlight } = this;
    const isSame = read?.projector === projector && read.spotlight === spotlight;
    if (isSame && read.values === values && read.number === number) return read;
    const options = optionsOf(values);
    const place = placeOf(values);
    if (options.pin !== null) place.query = null;
    Object.assign(options, { projector, spotlight });
    return (this.read = { values, number, projector, spotlight, place, options });
  }

  get place() {
    return this.now.place;
  }

  get options() {
    return this.now.options;
  }

  // Whether the colours leave out the token that heads rest on: out or in
  get sink() {
    return this.selection.values.sink ?? "in";
  }

  /** @param {"out" | "in"} sink */
  setSink(sink) {
    this.selection.choose({ sink });
    this.room.forget("scale");
    this.view.invalidate("layout");
  }

  // A key that is locked instead of a query
  get pin() {
    return this.options.pin;
  }

  /** @returns {At | null} */
  get hover() {
    return this.pointed ?? (this.pin === null ? null : { query: null, key: this.pin });
  }

  get query() {
    return this.hover ? this.hover.query : this.place.query;
  }

  // What is locked, to come back to: a double click, which hides, has locked and released on its way.
  get locked() {
    return { query: this.place.query, pin: this.pin };
  }

  // The options that are not as they open, as the URL has them
  get texts() {
    return unlikeOpening(textsOf(this.options));
  }

  // For a screen reader: what is shown now
  say() {
    this.room.say();
  }

  /** @param {Partial<Place>} place @param {Partial<Options>} [options] */
  change(place, options = {}) {
    this.selection.choose({ ...placeTexts(place), ...textsOf(options) });
  }

  // Another head, query or kind of attention
  /** @param {Partial<Place>} at @param {Event} [event] */
  go(at, event) {
    const { view, place } = this;
    const before = view.site;
    const to = view.sites.find((site) => site.id === at.site) ?? before;
    if (!to.has(Math.min(at.layer ?? place.layer, to.layers - 1))) return view.announce(words.to_come);
    const next = { ...place, ...at };
    /** @type {Partial<Options>} */
    const options = at.layer === undefined ? {} : { members: this.following(at.layer) };
    if ("query" in at) options.pin = null;
    if (to !== before) {
      next.layer = Math.min(next.layer, to.layers - 1);
      next.head = Math.min(next.head, to.heads - 1);
      if (next.query !== null) next.query = Math.min(next.query, to.n_query - 1);
      Object.assign(options, { members: [], hide: [], area: null, pin: null }); // they are of the kind of attention before
      this.pointed = null;
    }
    this.since = event?.timeStamp;
    this.peeked = null;
    this.change(next, options);
    if (to !== before) {
      this.room.forget("place");
      view.invalidate("layout");
    }
    view.invalidate("chosen", "map", "strip", "facts", "footer", "findings", "side");
    clearTimeout(this.settling);
    this.settling = setTimeout(() => view.invalidate("lines", "alike"), SETTLED); // what a held arrow key need not wait for
    this.say();
  }

  // Heads that are drawn together, all of the layer on the screen, go to the next one with it.
  /** @param {number} layer */
  following(layer) {
    const { members, show, kind } = this.options;
    const isApart = show !== "lines" || !isPerHead(kind) || members.some((pair) => pair[0] !== this.place.layer);
    return isApart ? members : members.map((pair) => /** @type {import("./types.js").Member} */ ([layer, pair[1]]));
  }

  /** @param {number} query */
  lock(query) {
    this.hold(query === this.place.query ? null : query, null);
  }

  // Lock a key, to see who looks at it; a second time releases it.
  /** @param {number} key */
  pinKey(key) {
    this.pointed = null; // what is locked is shown, and not the token that has the focus
    this.hold(null, key === this.pin ? null : key);
  }

  // Let go of what is locked and pointed at. Returns whether there was anything.
  release() {
    const { query, pin } = this.locked;
    if (this.pointed === null && query === null && pin === null) return false;
    this.pointed = null;
    this.view.tip.hide();
    this.hold(null, null);
    return true;
  }

  /** @param {number | null} query @param {number | null} pin */
  hold(query, pin) {
    this.change({ query }, { pin });
    this.view.invalidate("over", "strip", "facts", "findings", "side");
    this.say();
  }

  /** @param {{query: number | null, pin: number | null}} locked */
  relock({ query, pin }) {
    this.change({ query }, { pin });
  }

  /** @param {At | null} at @param {Event} [event] */
  point(at, event) {
    const same = at?.query === this.pointed?.query && at?.key === this.pointed?.key;
    if (!same) {
      this.pointed = at;
      this.since = event?.timeStamp;
      this.view.invalidate("over", "strip", "facts", "findings");
    }
    if (!at || at.key === null) this.view.tip.hide();
  }

  // Another head is shown for as long as the pointer is on it.
  /** @param {{layer: number, head: number} | null} at @param {Event} [event] */
  peek(at, event) {
    if (at?.layer === this.peeked?.layer && at?.head === this.peeked?.head) return;
    this.peeked = at;
    this.since = event?.timeStamp;
    this.view.invalidate("map", "over", "strip", "facts", "findings", "peek");
  }

  // The one way to change how the picture is shown
  /** @param {keyof Options} name @param {any} value @param {Event} [event] */
  set(name, value, event) {
    if (JSON.stringify(value) === JSON.stringify(this.options[name])) return;
    this.since = event?.timeStamp;
    this.change({}, { [name]: value });
    if (name === "scale" || name === "bounds" || NUMBERS.includes(name)) this.room.forget(name);
    this.view.invalidate(...(REDRAWS[name] ?? ["layout"]), "tools");
    if (NUMBERS.includes(name)) this.say();
  }

  // Take tokens out of the keys, or put them back; one must stay.
  /** @param {number[]} tokens @param {Event} e */
  hide(tokens, e) {
    const { hide } = this.options;
    const isHidden = tokens.every((k) => hide.includes(k));
    const others = hide.filter((k) => !tokens.includes(k));
    const next = isHidden ? others : [...others, ...tokens].sort((a, b) => a - b);
    if (next.length < this.view.site.n_key) return this.set("hide", next, e);
    this.declined = this.view.lens().key; // said for as long as the same numbers are on the screen
    this.view.invalidate("map");
  }

  // The tokens of a key, all of a word
  /** @param {At | null} at @param {Event} e */
  hideAt(at, e) {
    const lens = this.view.lens();
    if (at?.key != null) this.hide([lens.keyTokens[lens.keyOf(at.key)]].flat(), e);
  }
}
