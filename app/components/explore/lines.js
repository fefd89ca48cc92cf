// Lines from every query to the keys it looks at, the chosen query's on top.

import { fit } from "./colours.js";
import { WORDS as words } from "./constants.js";
import { add, clamp, el } from "./dom.js";

const MOST = 64; // tokens; above, lines between them are a blur
const FEW = 24; // tokens whose lines are drawn in no time
const KEEP = 0.8; // of each row that its lines carry

export class Lines {
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "lines");
    const title = add(this.box, "h2");
    title.append(el("b", "", words.lines), el("span", "", words.lines_note));
    title.title = words.lines_help;
    this.canvas = add(this.box, "canvas");
  }

  // Colours or maps have changed.
  forget() {
    this.cache = null;
  }

  // The fewest lines that carry 80 % of each row
  edges(query) {
    const ranking = this.view.ranking(query);
    const out = [];
    let sum = 0;
    for (const k of ranking?.order ?? []) {
      const p = ranking.weights[k];
      if (sum >= KEEP || p < 0.001) break;
      sum += p;
      out.push([k, p]);
    }
    return out;
  }

  // All lines lie under those of the chosen query. With many tokens they wait until the head is `settled`.
  draw(settled) {
    const { site, query } = this.view;
    const { em } = this.view.room;
    this.box.hidden = false;
    const used = this.box.offsetTop;
    const many = Math.max(site.n_query, site.n_key);
    this.box.hidden = !this.view.picture.whole || many > MOST || many < 2 || this.view.room.height - used < 6 * em;
    if (this.box.hidden) return;
    const width = this.box.clientWidth;
    const height = clamp(this.view.room.height - used - 1.8 * em, 4 * em, 9 * em);
    const context = fit(this.canvas, width, height);
    const x = (i, n) => 8 + (i * (width - 16)) / Math.max(1, n - 1);
    const [top, bottom] = [0.6 * em, height - 0.7 * em];
    const line = (c, q, k) => {
      c.beginPath();
      c.moveTo(x(q, site.n_query), top);
      c.bezierCurveTo(x(q, site.n_query), height / 2, x(k, site.n_key), height / 2, x(k, site.n_key), bottom);
      c.stroke();
    };
    const id = [this.view.headName, width, height, this.view.themeName].join();
    if (this.cache?.id !== id && (settled || many <= FEW)) {
      const canvas = document.createElement("canvas");
      const c = fit(canvas, width, height);
      c.strokeStyle = this.view.palette.mute;
      for (let q = 0; q < site.n_query; q++) {
        for (const [k, p] of this.edges(q)) {
          c.globalAlpha = 0.06 + 0.22 * p;
          c.lineWidth = 1 + 2 * p;
          line(c, q, k);
        }
      }
      this.cache = { id, canvas };
    }
    if (this.cache?.id === id) context.drawImage(this.cache.canvas, 0, 0, width, height);
    const weights = query === null ? this.view.averages() : this.view.row(query).weights;
    if (query !== null) {
      context.strokeStyle = this.view.palette.query;
      for (const [k, p] of this.edges(query)) {
        context.globalAlpha = 0.35 + 0.65 * p;
        context.lineWidth = 1 + 4 * p;
        line(context, query, k);
      }
    }
    context.globalAlpha = 1;
    const dot = (px, py, radius, colour) => {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(px, py, radius, 0, 7);
      context.fill();
    };
    const scale = many > 32 ? 0.6 : 1;
    for (let q = 0; q < site.n_query; q++) dot(x(q, site.n_query), top, (q === query ? 4 : 2.4) * scale, q === query ? this.view.palette.query : this.view.palette.mute);
    for (let k = 0; k < site.n_key; k++) {
      const p = weights[k];
      context.globalAlpha = 0.4 + 0.6 * Math.min(1, p * 1.6);
      dot(x(k, site.n_key), bottom, (2 + 4 * Math.sqrt(p)) * scale, this.view.palette.key);
    }
    context.globalAlpha = 1;
  }
}
