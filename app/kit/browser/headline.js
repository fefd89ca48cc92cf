// A chart of Memory, Compute or Training, which Streamlit draws, as a room: the sentence above it. While a slider moves, it says what
// the server has computed for that place, before the slider is let go; beside it are the files of the chart and projector mode.

import { chartOf, sliders, turn, watchSliders } from "../../streamlit_edge/browser/page.js";
import { add, setText } from "./dom.js";
import { chart } from "./drawing.js";
import { Stage, stage } from "./stage.js";
import { COLOURS, STYLE } from "./words.js";

/** @typedef {import("./types.js").AboutFiles} AboutFiles */
/** @typedef {{view: string, sentence: string, at: Record<string, string>, ahead?: Record<string, Record<string, string>>, chart?: string, about?: AboutFiles, scale: number}} Own */
/** @typedef {import("./types.js").StageHeader & Own} Header `at` is where the sliders stood for the sentence, and `ahead` what it is at their other places */
const SETTLED = 200; // ms without a change of the window's size
const TELLS = 5;
const ANSWERED = 1000; // ms in which Python answers, unless it never heard

/** @extends {Stage<Header, Record<string, string>>} */
class Headline extends Stage {
  static style = STYLE;
  static palettes = COLOURS;
  static covers = { headline: "h2, .unseen" };

  /** @type {Element | null} What holds the sliders that are watched */
  sliders = null;
  /** @type {number | undefined} A timer, while the window changes its size */
  waiting;
  /** @type {number | undefined} The size of the type that Python was told */
  said;
  left = 0; // times that it may still be told
  /** @type {number | undefined} A timer, while Python is given the time to answer */
  asked;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    const line = add(root, "div", "line");
    this.heading = add(line, "h2");
    line.append(this.acts); // the chart is no part of this, and has no foot
    this.foot.hidden = true;
    this.watch = new MutationObserver(() => this.say());
    this.leaving.addEventListener("abort", () => {
      this.watch.disconnect();
      clearTimeout(this.waiting);
      clearTimeout(this.asked);
    });
  }

  // The line is the sentence's: what a class or a colleague is to see, the bar and the address say.
  buttons() {
    return [this.files.box, this.projector.button];
  }

  received() {
    this.files.box.hidden = !this.header.about;
    this.sliders = watchSliders(this.watch, this.sliders, "planning");
    this.say(); // also where Python says the same again: a slider may have come back
  }

  /** @param {Set<import("./stage.js").Stale>} stale */
  draw(stale) {
    this.say();
    clearTimeout(this.waiting);
    if (stale.has("size")) this.waiting = setTimeout(() => this.measure(), SETTLED);
    else this.measure();
  }

  status() {
    const { view, chart } = this.header;
    return { view, chart: chart ?? "", scale: this.scale };
  }

  picture() {
    return chart(chartOf(String(this.header.chart)));
  }

  about() {
    return /** @type {AboutFiles} */ (this.header.about);
  }

  // A page that is not projected is longer than the window, and the keys scroll it.
  /** @param {number} by */
  turn(by) {
    return this.isProjected && turn(`box_${this.header.view}_part_`, by);
  }

  // The sentence for where the sliders stand. One of them may be elsewhere than the script knows: it is still held, or was moved
  // on after the script began.
  say() {
    const { ahead, at, sentence } = this.header;
    const elsewhere = [];
    for (const [name, value] of ahead ? sliders("planning", "box_plan_") : []) {
      if (at[name] !== undefined && at[name] !== value) elsewhere.push(ahead?.[name][value]);
    }
    const now = (elsewhere.length === 1 && elsewhere[0]) || sentence;
    if (this.heading.textContent && this.heading.textContent !== now) this.announce(now);
    setText(this.heading, now);
  }

  // The size of the page's type, which charts follow
  get scale() {
    return Math.round((parseFloat(getComputedStyle(document.documentElement).fontSize) / 16) * 10) / 10;
  }

  // What was told can be lost with a script that is broken off, so it is told again where no answer knows it; not for ever, since
  // Python takes no size that is out of the way. Data that comes meanwhile was on its way before, and is no answer.
  measure() {
    const { scale } = this;
    if (scale !== this.said) {
      this.left = TELLS;
      clearTimeout(this.asked);
      this.asked = undefined;
    }
    if (scale === this.header.scale || this.asked || !this.left) return;
    this.left -= 1;
    this.said = scale;
    this.selection.set("page", { scale, projected: this.isProjected });
    this.asked = setTimeout(() => {
      this.asked = undefined;
      this.measure();
    }, ANSWERED);
  }
}

export default stage(Headline);
