// Memory or Compute on the page of a follower: the sentence of a chart, the chart, and what stands beside it. The teacher has
// the sliders. Plotly is fetched when the first chart is to be seen: Streamlit, which has it, is not on this page.

import { PALETTES, STYLE } from "./constants.js";
import { cover, Guard } from "../../kit/browser/cover.js";
import { add } from "../../kit/browser/dom.js";
import { paletteOf, themeOf } from "../../kit/browser/colours.js";
import { unpack } from "../../kit/browser/messages.js";
import { mounted } from "../../kit/browser/mount.js";

const ALL = ".seen";

/** @type {Promise<unknown> | undefined} */
let coming;
/** @param {string} address */
const plotly = (address) =>
  (coming ??= import(new URL(address, document.baseURI).href).catch((error) => {
    coming = undefined;
    throw error;
  }));

/** @param {import("../../kit/browser/types.js").Given<Uint8Array>} given */
export default function ({ data, parentElement }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new Seen(root));
  view.update(unpack(data)[0]);
  return leave;
}

class Seen {
  /** @type {import("./types.js").Header} */
  header;
  drawn = "";

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    const seen = add(root, "div", "seen");
    this.heading = add(seen, "h2");
    this.heading.setAttribute("aria-live", "polite");
    this.chart = add(seen, "div", "chart");
    this.chart.setAttribute("role", "img");
    this.note = add(seen, "p");
    this.guard = new Guard(root, { bar: ALL, headline: ALL, number: ALL, curve: ALL }, () => this.draw());
  }

  destroy() {
    this.guard.destroy();
    window.Plotly?.purge(this.chart);
  }

  /** @param {import("./types.js").Header} header */
  update(header) {
    cover.take(header.cover);
    this.header = header;
    paletteOf(this.root, PALETTES);
    this.heading.textContent = header.sentence;
    this.note.textContent = header.note;
    this.note.hidden = !header.note;
    this.chart.setAttribute("aria-label", header.sentence);
    this.draw();
  }

  async draw() {
    const { header } = this;
    const theme = themeOf(this.root);
    await plotly(header.plotly);
    const figure = header.figures[theme];
    if (header !== this.header || this.drawn === figure || !this.chart.isConnected) return;
    this.drawn = figure;
    const { data, layout } = JSON.parse(figure);
    await window.Plotly?.react(
      this.chart,
      data,
      { ...layout, autosize: true },
      { displayModeBar: false, responsive: true },
    );
    Object.assign(this.root.dataset, { painted: "1", chart: header.chart, theme });
  }
}
