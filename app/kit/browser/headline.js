// A chart of Memory, Compute or Training, which Streamlit draws, as a room: the sentence above it. While a slider moves, it says what
// the server has computed for that place, before the slider is let go; beside it are the files of the chart and projector mode.

import { chartOf, sliders, turn, watchSliders } from "../../streamlit_edge/browser/page.js";
import { add, setText } from "./dom.js";
import { chart } from "./drawing.js";
import { Stage } from "./stage.js";
import { TypeScale } from "./type_scale.js";
import { COLOURS, STYLE } from "./words.js";

/** @typedef {import("./types.js").AboutFiles} AboutFiles */
/** @typedef {{view: string, sentence: string, at: Record<string, string>, ahead?: Record<string, Record<string, string>>, chart?: string, about?: AboutFiles, scale: number}} Own */
/** @typedef {import("./types.js").StageHeader & Own} Header `at` is where the sliders stood for the sentence, and `ahead` what it is at their other places */

/** @extends {Stage<Header, Record<string, string>>} */
class Headline extends Stage {
  static style = STYLE;
  static palettes = COLOURS;
  static covers = { headline: "h2, .unseen" };

  /** @type {Element | null} What holds the sliders that are watched */
  sliders = null;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    const line = add(root, "div", "line");
    this.heading = add(line, "h2");
    line.append(this.acts); // the chart is no part of this, and has no foot
    this.foot.hidden = true;
    this.watch = new MutationObserver(() => this.say());
    this.type = new TypeScale(this, this.leaving);
    this.leaving.addEventListener("abort", () => this.watch.disconnect());
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
    this.type.drawn(stale);
  }

  status() {
    const { view, chart } = this.header;
    return { view, chart: chart ?? "", scale: this.type.scale };
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
}

export default Headline;
