// The first part of Memory: one sentence asks, one line answers, and a picture says why. While the orange line is dragged all follows
// at once; what else is changed Python is asked for, and until it answers the page keeps what it shows.

import { cover } from "../../../kit/browser/cover.js";
import { add, button, described, el, focusedIn, number, setText } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { Stage } from "../../../kit/browser/stage.js";
import { tableBox } from "../../../kit/browser/table.js";
import { TypeScale } from "../../../kit/browser/type_scale.js";
import { Asks } from "./asks.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Figure } from "./figure.js";
import { Items, plain } from "./items.js";
import { nearest } from "./places.js";
import { pieces, Tabs } from "./tabs.js";

/** @typedef {import("./types.js").Asked} Asked */
/** @typedef {import("./types.js").Fit} Header */

const LET_GO = 250; // ms after the last key that moved the line
const LEAP = 5; // places, with Shift
const STACKED = 62; // times the size of the type: in a narrower room the picture stands above what it rests on
const LOWEST = { near: 30, far: 20 }; // times the size of the type: lower than that it scrolls
const PHONE = 640; // pixels
const DIGITS = ["1", "2", "3", "4", "5", "6"];
const SENTENCES = /(?<=[.?!]) /;

/** @extends {Stage<Header, import("./types.js").Palette>} */
class Fit extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static fills = true;
  static pressable = "button, a, input, select, .figure";
  static covers = {
    headline: ".lead, .offers, .note, .side, .same",
    curve: ".lead, .offers, .note, .side, .same, .curve",
    bar: ".lead, .offers, .note, .side, .same, .column",
    number: ".lead, .offers, .note, .side, .same, .axis",
  };

  /** @type {Record<string, string>} */
  keysTold = words.keys_told;

  /** @type {Header} On the screen: the header, unless a question is on its way */
  now;
  /** @type {number | null} The place of the orange line, while it is not where Python knows it */
  moved = null;
  isDragged = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} Until keys have let go of the line */
  letting;
  alone = ""; // the tab that is projected without the picture
  said = ""; // the last verdict for those who hear it

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    const ask = (/** @type {Asked} */ set) => this.asksFor(set);
    this.asks = new Asks(
      (told) => this.host.tell("asks", told),
      () => this.settle(),
    );
    this.type = new TypeScale(this, this.leaving);
    this.sentence = new Items(described(add(root, "div", "sentence"), "group", words.question), ask);
    this.plain = add(root, "p", "plain");
    this.body = add(root, "div", "body");
    const left = add(this.body, "div", "left");
    const lead = add(left, "div", "lead");
    this.heading = add(lead, "h2");
    this.offers = add(left, "div", "offers");
    this.note = add(left, "p", "note");
    this.examples = described(add(left, "div", "examples"), "group", words.examples);
    this.figure = new Figure(add(left, "div", "figure"));
    this.row = new Items(add(left, "div", "low"), ask);
    this.predict = button("", "quiet predict", () => this.predicts());
    this.side = add(this.body, "div", "side");
    this.tabs = new Tabs(this.side, ask, (id) => this.opens(id));
    this.table = add(root, "div", "same");
    this.table.hidden = true;
    this.tabled = button(words.table, "quiet", () => this.showTable(this.table.hidden === true));
    root.tabIndex = -1; // projected it has the focus, so that its keys come before those of the page
    this.listen();
    this.leaving.addEventListener("abort", () => {
      this.asks.end();
      clearTimeout(this.letting);
    });
  }

  buttons() {
    return [this.tabled, this.keyList.button, this.files.box, this.projector.button];
  }

  // ------------------------------------------------------------------ questions out, answers in

  /** @param {Asked} set */
  asksFor(set) {
    if (!Object.keys(set).length) return;
    this.asks.ask(set);
    this.root.classList.add("asked");
    this.show({ asked: this.asks.last });
  }

  received() {
    const isAnswered = this.asks.answered(this.header.answered);
    if (this.now && (!isAnswered || this.isDragged || this.letting !== undefined)) return false;
    this.takes();
    return true;
  }

  // No answer comes, or the line was let go: what came last is shown.
  settle() {
    if (!this.header) return;
    this.takes();
    this.invalidate("data");
  }

  takes() {
    const guess = this.now && this.isHidden ? this.place.n : null; // it stays where it is
    this.now = this.header;
    this.root.classList.remove("asked");
    const { predict, places, tabs } = this.now;
    const titles = tabs.slice(0, DIGITS.length).map(({ title }, i) => [DIGITS[i], title]);
    this.keysTold = { ...words.keys_told, ...Object.fromEntries(titles) };
    this.moved = this.isHidden ? nearest(places, guess ?? predict.guess ?? predict.starts) : null;
  }

  /** Whether the curve waits for a prediction. */
  get isHidden() {
    const { on, answer } = this.now.predict;
    return on && answer === null;
  }

  /** Whether a lesson asks for a part of this before it is seen. */
  get isCovered() {
    return cover.hides(...Object.keys(Fit.covers));
  }

  get place() {
    return this.now.places[this.moved ?? this.now.at];
  }

  // ------------------------------------------------------------------ the orange line

  /** @param {number} index of a place */
  moves(index) {
    const { places, table } = this.now;
    const last = table ? nearest(places, table.n) : places.length - 1;
    const to = Math.max(0, Math.min(last, index));
    if (to === (this.moved ?? this.now.at)) return;
    this.moved = to;
    this.drawNow();
  }

  // Of a guess nothing is told before it is looked at.
  letGo() {
    clearTimeout(this.letting);
    this.letting = undefined;
    if (!this.isHidden && this.moved !== null && this.moved !== this.now.at)
      this.asksFor({ source: String(this.place.n) });
    else if (this.now !== this.header && !this.asks.isWaiting) this.settle(); // an answer came while it was held
  }

  /** @param {number} by places */
  steps(by) {
    this.moves((this.moved ?? this.now.at) + by);
    clearTimeout(this.letting);
    this.letting = setTimeout(() => this.letGo(), LET_GO);
  }

  listen() {
    const { box, handle } = this.figure;
    const signal = this.leaving;
    const goTo = (/** @type {PointerEvent} */ event) => {
      const n = this.figure.tokensAt(event.clientX, this.now);
      this.moves(nearest(this.now.places, n ?? 0));
    };
    box.addEventListener("pointerdown", (event) => {
      if (event.button || !this.now || this.figure.tokensAt(event.clientX, this.now) === null) return;
      if (cover.hides("curve")) return;
      event.preventDefault();
      this.isDragged = true;
      box.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      goTo(event);
    });
    box.addEventListener("pointermove", (event) => this.isDragged && goTo(event));
    for (const name of ["pointerup", "pointercancel"])
      box.addEventListener(name, () => {
        if (!this.isDragged) return;
        this.isDragged = false;
        this.letGo();
      });
    // Before the page leaves the projector
    const back = (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !this.alone || this.root.querySelector(":popover-open")) return;
      event.preventDefault();
      this.alone = "";
      this.drawNow();
      this.root.focus({ preventScroll: true });
    };
    document.addEventListener("keydown", back, { signal });
    handle.addEventListener(
      "keydown",
      (event) => {
        if ((event.key === " " || event.key === "Enter") && this.isHidden) {
          event.preventDefault();
          event.stopPropagation();
          this.sees();
          return;
        }
        const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
        if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        this.steps(event.shiftKey ? LEAP * by : by);
      },
      { signal },
    );
  }

  // ------------------------------------------------------------------ keys

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    if (down) return false;
    this.steps(right);
  }

  /** @param {number} by */
  turn(by) {
    const { examples } = this.now;
    const at = examples.findIndex(({ on }) => on);
    const next = examples[at < 0 && by < 0 ? examples.length - 1 : at + by];
    if (!next) return false;
    this.asksFor(next.set);
  }

  keys = {
    "+": () => this.presses(".sentence .stepper .more"),
    "-": () => this.presses(".sentence .stepper .less"),
    f: () => !this.isHidden && this.presses(".offers .takes"),
    v: () => this.predicts(),
    " ": () => this.isHidden && this.sees(),
    t: () => this.opensNext(),
    ...Object.fromEntries(DIGITS.map((digit, i) => [digit, () => this.opensAt(i)])),
  };

  /** @param {string} selector */
  presses(selector) {
    const found = /** @type {HTMLButtonElement | null} */ (this.root.querySelector(selector));
    if (!found || found.disabled) return false;
    found.click();
  }

  // The next tab; projected the open one first, alone on the screen.
  opensNext() {
    const { tabs, tab } = this.now;
    const at = tabs.findIndex(({ id }) => id === (this.alone || tab));
    const next = this.isProjected && !this.alone ? tabs[at] : tabs[(at + 1) % tabs.length];
    if (this.isProjected) this.alone = next.id;
    this.opens(next.id);
    this.invalidate("data");
  }

  // Elsewhere a digit is the page's, and goes to another room.
  /** @param {number} index */
  opensAt(index) {
    const tab = this.now.tabs[index];
    if (!tab || !(this.isProjected || this.side.contains(focusedIn(this.side)))) return false;
    this.alone = this.isProjected ? tab.id : "";
    if (this.alone) this.root.focus({ preventScroll: true }); // what had the focus may be out of sight now
    this.opens(tab.id);
    this.invalidate("data");
  }

  /** @param {string} id */
  opens(id) {
    this.tabs.press(id);
    if (id !== this.now.tab) this.asksFor({ tab: id });
  }

  predicts() {
    const { on, answer } = this.now.predict;
    const isOver = on && answer === null;
    this.asksFor({ predict: isOver ? "" : "first" });
    if (!isOver) this.figure.handle.focus({ preventScroll: true }); // the keys are the line's: Space sees, and presses no button
  }

  sees() {
    this.asksFor({ predict: "seen", guess: String(this.place.n) });
  }

  // ------------------------------------------------------------------ drawing

  /** @param {Set<import("../../../kit/browser/stage.js").Stale>} stale */
  draw(stale) {
    const { now, root } = this;
    if (!this.isProjected) this.alone = "";
    else if (stale.has("projector") && document.activeElement === document.body) root.focus({ preventScroll: true });
    const isPhone = innerWidth <= PHONE;
    const em = 16 * this.typeUnit;
    const isStacked = !this.isProjected && (isPhone || root.clientWidth < STACKED * em);
    root.classList.toggle("stacked", isStacked);
    root.classList.toggle("hides", this.isHidden);
    root.classList.toggle("alone", this.alone !== "");
    this.files.box.hidden = !now.about;
    this.part("sentence", [now.sentence], () => {
      this.sentence.draw(now.sentence);
      plain(this.plain, now.sentence);
    });
    this.part("examples", [now.examples], () => this.drawExamples());
    this.part("offers", [now.offers, this.isHidden, now.predict], () => this.drawOffers());
    this.part("row", [now.row, now.predict], () => this.drawRow());
    this.part("tabs", [now.tabs, now.tab], () => this.tabs.draw(now.tabs, now.tab));
    this.part("foot", [now.foot], () => this.drawFoot());
    this.part("table", [now.table_of, this.table.hidden, this.isHidden], () => this.drawTable());
    setText(this.note, now.note);
    this.drawVerdict();
    if (this.moved !== null && !this.isHidden) this.sentence.follow("source", this.place.tokens);
    this.fill(isStacked, em);
    this.drawFigure(isPhone || root.clientWidth < 34 * em);
    if (stale.has("data") && !this.isDragged) this.says();
    this.type.drawn(stale);
  }

  // As high as the window has room for: the picture takes what is left.
  /** @param {boolean} isStacked @param {number} em */
  fill(isStacked, em) {
    const { root } = this;
    const beside = [...root.children].filter((one) => one !== this.body && !this.table.contains(one));
    const isIn = (/** @type {Element} */ one) => getComputedStyle(one).position !== "absolute";
    const others = beside.filter(isIn).reduce((sum, one) => sum + outerHeight(/** @type {HTMLElement} */ (one)), 0);
    const free =
      innerHeight -
      this.barHeight -
      this.beginsAt -
      others -
      parseFloat(getComputedStyle(this.body).marginTop) -
      0.55 * em;
    this.body.style.height = isStacked ? "" : `${Math.max(free, LOWEST[this.isProjected ? "far" : "near"] * em)}px`;
  }

  /** @param {boolean} isSlim */
  drawFigure(isSlim) {
    const { now, palette, place, isHidden, isProjected } = this;
    const { guess, answer, on } = now.predict;
    this.figure.draw({
      data: now,
      palette,
      place,
      isHidden,
      isSecret: cover.hides("curve", "number"),
      guess: on && answer !== null && guess !== null ? { n: guess, text: number(guess) } : null,
      unit: this.typeUnit,
      isDark: this.scheme === "dark",
      isProjected,
      isSlim: isSlim && !isProjected,
      label: this.isCovered ? "" : this.verdict.plain,
    });
  }

  get verdict() {
    return this.moved === null ? this.now.verdict : this.place.verdict;
  }

  drawVerdict() {
    const { heading, verdict, isHidden, moved } = this;
    const { ask, answer, on } = this.now.predict;
    const line = isHidden ? ask : on && answer !== null && moved === null ? answer : "";
    this.part("verdict", [line, line ? "" : verdict], () => {
      heading.replaceChildren();
      heading.title = line || verdict.plain;
      if (line) {
        const [first, ...rest] = line.split(SENTENCES);
        heading.append(first);
        if (rest.length) heading.append(" ", el("span", "said", rest.join(" ")));
      } else {
        heading.append(el("b", verdict.fits ? "fits" : "much", verdict.lead), " ");
        pieces(heading, verdict.rest);
      }
    });
  }

  // For those who hear it, where it is another than before; a lesson asks before it is said.
  says() {
    const { ask, answer, on } = this.now.predict;
    const text = this.isHidden ? ask : on && answer !== null ? answer : this.now.verdict.plain;
    if (this.said && this.said !== text && !this.isCovered) this.announce(text);
    this.said = text;
  }

  drawOffers() {
    const { offers, predict, verdict } = this.now;
    const { offers: box } = this;
    box.replaceChildren();
    if (this.isHidden) {
      box.append(button(predict.see, "offer-one go", () => this.sees()));
      return;
    }
    if (predict.on && predict.answer !== null)
      box.append(button(predict.again, "offer-one soft", () => this.asksFor({ predict: "first" })));
    if (offers.label) add(box, "span", "mute").textContent = offers.label;
    for (const { title, beside, set, first } of offers.list) {
      const look = verdict.fits ? "soft" : first ? "go" : "";
      const made = button("", `offer-one takes ${look}`, () => this.asksFor(set));
      made.append(el("b", "", title));
      if (beside) made.append(" ", el("small", "", beside));
      box.append(made);
    }
  }

  drawExamples() {
    this.examples.replaceChildren(
      ...this.now.examples.map(({ title, beside, set, on }) => {
        const made = button(title, "chip", () => {
          for (const other of this.examples.children) other.ariaPressed = String(other === made);
          this.asksFor(set);
        });
        made.ariaPressed = String(on);
        if (beside) made.title = beside;
        return made;
      }),
    );
  }

  drawRow() {
    const { row, predict } = this.now;
    this.row.draw(row);
    const isThere = row.some((item) => "name" in item && item.name === "predict");
    setText(this.predict, predict.button);
    if (isThere || !predict.button) this.predict.remove();
    else this.row.box.append(this.predict);
  }

  drawFoot() {
    this.facts.replaceChildren(...this.now.foot.map((text) => el("span", text.startsWith("✓") ? "ok" : "", text)));
  }

  /** @param {boolean} isShown */
  showTable(isShown) {
    this.table.hidden = !isShown;
    this.invalidate("data");
    if (isShown) requestAnimationFrame(() => this.table.scrollIntoView({ block: "nearest" }));
  }

  drawTable() {
    if (this.isHidden) this.table.hidden = true; // it says what the curve would
    this.tabled.hidden = this.isHidden;
    const isShown = !this.table.hidden;
    setText(this.tabled, isShown ? words.hide : words.table);
    this.tabled.ariaExpanded = String(isShown);
    const { columns, rows } = this.now.table_of;
    this.table.replaceChildren(...(isShown ? [tableBox(words.table, columns, rows)] : []));
  }

  status() {
    const { now, place, verdict } = this;
    return {
      view: now.view,
      tab: now.tab,
      alone: this.alone || null,
      n: place.n,
      fits: this.isCovered || this.isHidden ? null : verdict.fits,
      hidden: this.isHidden,
      answered: this.header.answered,
      asked: this.asks.last,
      scale: this.type.scale,
    };
  }

  // ------------------------------------------------------------------ files

  picture() {
    this.root.classList.add("pictured");
    try {
      return rows([this.plain, this.alone ? this.side : this.figure.box]); // the answer is the title of the file
    } finally {
      this.root.classList.remove("pictured");
    }
  }

  about() {
    return /** @type {import("../../../kit/browser/types.js").AboutFiles} */ (this.now.about);
  }
}

// With what is kept free above and below it
/** @param {HTMLElement} node */
function outerHeight(node) {
  const { marginTop, marginBottom } = getComputedStyle(node);
  return node.offsetHeight ? node.offsetHeight + parseFloat(marginTop) + parseFloat(marginBottom) : 0;
}

export default Fit;
