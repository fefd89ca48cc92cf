// The sentence above a chart of Memory, Compute or Training. While a slider moves, it says what the server has computed for that
// place, before the slider is let go; beside it are projector mode and the files of the chart.

import { classroom } from "./classroom.js";
import { chartOf, sliders, turn, watchSliders } from "../../streamlit_edge/browser/page.js";
import { paletteOf } from "./colours.js";
import { add } from "./dom.js";
import { chart } from "./drawing.js";
import { Files } from "./files.js";
import { mounted } from "./mount.js";
import { Projector } from "./projector.js";
import { COLOURS, STYLE } from "./words.js";

/** @typedef {import("./types.js").AboutFiles} AboutFiles */
/** @typedef {{view: string, sentence: string, at: Record<string, string>, ahead?: Record<string, Record<string, string>>, chart?: string, about?: AboutFiles, scale: number, follow?: string}} Data */
const SETTLED = 200; // ms without a change of the window's size
const TELLS = 5;
const ANSWERED = 1000; // ms in which Python answers, unless it never heard

/** @param {import("./types.js").Given<Data>} given */
export default function ({ data, parentElement, setStateValue }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new Headline(root));
  view.update(data, setStateValue);
  return leave;
}

class Headline {
  /** @type {Data} */
  data;
  /** @type {import("./types.js").Tell} */
  set;
  /** @type {Record<string, string>} */
  palette;
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
    this.root = root;
    const line = add(root, "div", "line");
    this.heading = add(line, "h2");
    this.heading.setAttribute("aria-live", "polite");
    const acts = add(line, "span", "acts");
    this.projector = new Projector(
      () => this.projected(),
      (by) => turn(`${this.data.view}_part`, by),
    );
    this.files = new Files(
      () => chart(this.host()),
      () => /** @type {AboutFiles} */ (this.data.about),
      () => this.palette,
    );
    acts.append(this.files.box, this.projector.button);
    this.watch = new MutationObserver(() => this.say());
    this.resized = () => {
      clearTimeout(this.waiting);
      this.waiting = setTimeout(() => this.measure(), SETTLED);
    };
    window.addEventListener("resize", this.resized);
  }

  destroy() {
    window.removeEventListener("resize", this.resized);
    clearTimeout(this.waiting);
    clearTimeout(this.asked);
    classroom.leave(this);
    this.watch.disconnect();
    this.projector.destroy();
    this.files.destroy();
  }

  /** @param {Data} data @param {import("./types.js").Tell} setStateValue */
  update(data, setStateValue) {
    this.data = data;
    this.set = setStateValue;
    this.palette = paletteOf(this.root, COLOURS);
    this.say();
    if (data.follow) classroom.show({ view: data.view, run: data.follow, text: "", with: {}, labels: () => [] }, this);
    this.files.box.hidden = !data.about;
    Object.assign(this.root.dataset, { painted: "1", view: data.view, chart: data.chart ?? "", scale: this.scale() });
    this.projected();
    this.sliders = watchSliders(this.watch, this.sliders, "planning");
  }

  // The type of a projected page is larger, so that Python hears of it with its size.
  projected() {
    this.root.dataset.projector = String(this.projector.on);
    this.root.dataset.scale = String(this.scale());
    this.measure();
  }

  host() {
    return chartOf(String(this.data.chart));
  }

  // The sentence for where the sliders stand. One of them may be elsewhere than the script knows: it is still held, or was moved
  // on after the script began.
  say() {
    const { ahead, at, sentence } = this.data;
    const elsewhere = [];
    for (const [name, value] of ahead ? sliders("planning", "plan_") : []) {
      if (at[name] !== undefined && at[name] !== value) elsewhere.push(ahead?.[name][value]);
    }
    const now = (elsewhere.length === 1 && elsewhere[0]) || sentence;
    if (now !== this.heading.textContent) this.heading.textContent = now;
  }

  // The size of the page's type, which charts follow
  scale() {
    return Math.round((parseFloat(getComputedStyle(document.documentElement).fontSize) / 16) * 10) / 10;
  }

  // What was told can be lost with a script that is broken off, so it is told again where no answer knows it; not for ever, since
  // Python takes no size that is out of the way. Data that comes meanwhile was on its way before, and is no answer.
  measure() {
    const scale = this.scale();
    if (scale !== this.said) {
      this.left = TELLS;
      clearTimeout(this.asked);
      this.asked = undefined;
    }
    if (scale === this.data.scale || this.asked || !this.left) return;
    this.left -= 1;
    this.tell();
    this.asked = setTimeout(() => {
      this.asked = undefined;
      this.measure();
    }, ANSWERED);
  }

  tell() {
    this.said = this.scale();
    this.set("page", { scale: this.said, projected: this.projector.on });
  }
}
