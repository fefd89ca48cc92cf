// The smallest real room on the stage: one row of a head as bars; arrows move the word, files take it away, a lesson may cover it.

import { STYLE as BARS } from "../../../app/attention/browser/constants.js";
import { PALETTES, STYLE as ROOM } from "../../../app/rooms/whatif/browser/constants.js";
import { Bars } from "../../../app/kit/browser/picture/bars.js";
import { csv } from "../../../app/kit/browser/csv.js";
import { add, clamp, percent, setText } from "../../../app/kit/browser/dom.js";
import { rows } from "../../../app/kit/browser/drawing.js";
import { pack } from "../../../app/kit/browser/messages.js";
import { mount } from "../../../app/kit/browser/mount.js";
import { Stage } from "../../../app/kit/browser/stage.js";

const STYLE = BARS + ROOM;

class Row extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = { bars: ".bars" };

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.fact = add(root, "p", "fact");
    this.bars = new Bars(root, "looks");
  }

  /** @returns {{label: string, at: number, value: string}[]} */
  get row() {
    const { labels, weights } = this.header;
    return weights[Number(this.values.query)].map((/** @type {number} */ at, /** @type {number} */ i) => ({
      ...{ label: labels[i], className: "k", at, value: percent(at) },
    }));
  }

  draw() {
    const { row } = this;
    const most = row.reduce((best, one) => (one.at > best.at ? one : best));
    setText(this.fact, `${this.header.labels[Number(this.values.query)]} → ${most.label}, ${most.value}`);
    this.bars.draw("share of the row", row);
  }

  status() {
    return { query: this.values.query };
  }

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    this.choose({ query: String(clamp(Number(this.values.query) + down + right, 0, this.header.labels.length - 1)) });
  }

  picture() {
    return rows([this.fact, this.bars.box]);
  }

  about() {
    const [title, name] = [this.fact.textContent ?? "", "headlight-row"];
    const table = csv(["key", "weight"], this.row.map(({ label, at }) => [label, at]), [title]);
    return { title, alt: title, caption: title, snippet: "", name, tables: /** @type {[string, string, string][]} */ ([["row", name, table]]) };
  }
}

/** @type {import("../story.js").Story} */
export default {
  title: "the smallest room: template, picture, files, keys",
  style: STYLE,
  mount(root) {
    const chosen = { values: { query: "2" }, stamp: 1, reported: 0 };
    const weights = [[1, 0, 0], [0.4, 0.6, 0], [0.1, 0.65, 0.25]];
    const header = { key: "fixed", chosen, cover: null, link: {}, labels: ["The", "cat", "sat"], weights };
    mount(root, Row, pack(header, new Uint8Array()));
  },
};
