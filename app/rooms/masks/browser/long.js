// A lab that cannot draw a text as long as this one: it says so, and leads to the beginning of the text.

import { add, fill, number } from "../../../kit/browser/dom.js";
import { way } from "../../../kit/browser/share.js";
import { SHOWN, WHOLE, WORDS as words } from "./constants.js";
import { Padding } from "./padding.js";

export class Long {
  headGrid = null;

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.name = view.labName;
    this.most = this.name === "padding" ? WHOLE : SHOWN;
    const text = view.header.beginnings[this.most];
    if (!text) return;
    const begins = this.name === "padding" ? Padding.opens(view) : {}; // with a second sentence
    const link = { view: "masks", lab: this.name, model: view.header.model, text, ...begins };
    add(stage, "p", "").append(way(fill(words.long_take, { n: this.most }), link, "quiet"));
  }

  draw() {
    const { labels } = this.view.header;
    const n = Math.max(labels.source.length, labels.target?.length ?? 0);
    const lab = words.lab[this.name];
    const said = fill(words.long_lab, { lab, most: this.most, n: number(n) });
    this.view.say([[said, ""]]);
  }

  foot() {
    return { ok: [], rest: [], legend: [] };
  }

  /** @param {HTMLElement} box */
  table(box) {
    box.replaceChildren();
  }

  /** @returns {import("./types.js").Files} */
  files() {
    return { ...this.view.header.about, tables: [] };
  }
}
