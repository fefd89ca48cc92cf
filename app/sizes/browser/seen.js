// Memory or Compute on the page of a follower: the sentence of a chart, the chart, and what stands beside it. The teacher has
// the sliders. Plotly is fetched when the first chart is to be seen: Streamlit, which has it, is not on this page.

import { PALETTES, STYLE } from "./constants.js";
import { add, setText } from "../../kit/browser/dom.js";
import { Stage } from "../../kit/browser/stage.js";

const ALL = ".seen";

/** @type {Promise<unknown> | undefined} */
let coming;
/** @param {string} address */
const plotly = (address) =>
  (coming ??= import(new URL(address, document.baseURI).href).catch((error) => {
    coming = undefined;
    throw error;
  }));

/** @extends {Stage<import("./types.js").Header, Record<string, string>>} */
class Seen extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = { bar: ALL, headline: ALL, number: ALL, curve: ALL };

  figure = ""; // that is drawn

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    const seen = add(root, "div", "seen");
    this.heading = add(seen, "h2");
    this.chart = add(seen, "div", "chart");
    this.chart.setAttribute("role", "img");
    this.note = add(seen, "p");
    this.leaving.addEventListener("abort", () => window.Plotly?.purge(this.chart));
  }

  // What a follower can do stands around the room.
  /** @returns {HTMLElement[]} */
  buttons() {
    return [];
  }

  draw() {
    const { sentence, note } = this.header;
    if (this.heading.textContent && this.heading.textContent !== sentence) this.announce(sentence);
    setText(this.heading, sentence);
    setText(this.note, note);
    this.note.hidden = !note;
    this.chart.setAttribute("aria-label", sentence);
    this.plot();
  }

  status() {
    const isDrawn = this.figure === this.header.figures[this.scheme];
    return isDrawn ? { chart: this.header.chart, theme: this.scheme } : { painted: null };
  }

  async plot() {
    const { header, scheme } = this;
    await plotly(header.plotly);
    const figure = header.figures[scheme];
    if (header !== this.header || scheme !== this.scheme || this.figure === figure || !this.chart.isConnected) return;
    this.figure = figure;
    const { data, layout } = JSON.parse(figure);
    await window.Plotly?.react(
      this.chart,
      data,
      { ...layout, autosize: true },
      { displayModeBar: false, responsive: true },
    );
    this.show({ painted: "1", ...this.status() });
  }
}

export default Seen;
