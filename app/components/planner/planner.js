// The sentence above a chart of Memory, Compute or Training. While a slider moves, it says what the server has worked out for that
// place, before the slider is let go; beside it are projector mode and the files of the chart.

import { add } from "./dom.js";
import { chart } from "./drawing.js";
import { Files } from "./files.js";
import { mounted } from "./mount.js";
import { Projector } from "./project.js";
import { COLOURS, STYLE } from "./words.js";

const SETTLED = 200; // ms without a change of the window's size

export default function ({ data, parentElement, setStateValue }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new Headline(root));
  view.update(data, setStateValue);
  return leave;
}

class Headline {
  constructor(root) {
    this.root = root;
    const line = add(root, "div", "line");
    this.heading = add(line, "h2");
    this.heading.setAttribute("aria-live", "polite");
    const acts = add(line, "span", "acts");
    this.projector = new Projector(() => this.tell(), (by) => this.turn(by));
    this.files = new Files(() => chart(this.host()), () => this.data.about, () => this.palette);
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
    this.watch.disconnect();
    this.projector.destroy();
    this.files.destroy();
  }

  update(data, setStateValue) {
    this.data = data;
    this.set = setStateValue;
    const page = getComputedStyle(this.root).getPropertyValue("--st-background-color").trim().toLowerCase();
    this.palette = page === COLOURS.dark.background ? COLOURS.dark : COLOURS.light;
    for (const [name, colour] of Object.entries(this.palette)) this.root.style.setProperty(`--${name}`, colour);
    // A script that began before the visitor's last word does not know it.
    if (this.told === undefined || data.told === this.told) this.projector.apply(data.projector);
    this.say();
    this.files.box.hidden = !data.about;
    Object.assign(this.root.dataset, { painted: "1", view: data.view, chart: data.chart ?? "", projector: String(this.projector.on), scale: this.scale() });
    const sliders = document.querySelector(".st-key-planning");
    if (sliders && sliders !== this.sliders) {
      this.watch.disconnect();
      this.watch.observe(sliders, { subtree: true, attributes: true, attributeFilter: ["aria-valuetext"] });
      this.sliders = sliders;
    }
    this.measure();
  }

  host() {
    return document.querySelector(`.st-key-${this.data.chart} .js-plotly-plot`);
  }

  // The sentence for where the sliders stand. One of them may be elsewhere than the script knows: it is still held, or was moved
  // on after the script began.
  say() {
    const { ahead, at, sentence } = this.data;
    const elsewhere = [];
    for (const slider of ahead ? document.querySelectorAll(".st-key-planning [aria-valuetext]") : []) {
      const name = /(?:^|\s)st-key-plan_(\w+)/.exec(slider.closest("[class*=st-key-plan_]")?.className)?.[1];
      const value = slider.getAttribute("aria-valuetext");
      if (at[name] !== undefined && at[name] !== value) elsewhere.push(ahead[name][value]);
    }
    const now = (elsewhere.length === 1 && elsewhere[0]) || sentence;
    if (now !== this.heading.textContent) this.heading.textContent = now;
  }

  // The size of the page's type, which charts follow
  scale() {
    return Math.round((parseFloat(getComputedStyle(document.documentElement).fontSize) / 16) * 10) / 10;
  }

  measure() {
    if (this.scale() !== this.data.scale && this.scale() !== this.said) this.tell();
  }

  tell() {
    this.said = this.scale();
    this.told = Date.now();
    this.set("page", { told: this.told, projector: this.projector.on, scale: this.said });
  }

  // To the next part of the view, as a clicker does
  turn(by) {
    const parts = [...document.querySelectorAll(`.st-key-${this.data.view}_part button`)];
    const at = parts.findIndex((part) => part.getAttribute("aria-checked") === "true" || part.getAttribute("kind")?.includes("Active"));
    parts[Math.max(0, Math.min(parts.length - 1, at + by))]?.click();
  }
}
