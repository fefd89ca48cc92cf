// Lines from every query to the keys it looks at: small beside the facts, and large in place of the map.

import { fit } from "../../kit/browser/colours.js";
import { WORDS as words } from "./constants.js";
import { add, clamp, el, fill } from "../../kit/browser/dom.js";
import { kept } from "./edges.js";
import { TokenLines } from "./tokenlines.js";

const MOST = 64; // tokens; above, the small lines between them are a blur
const FEW = 24; // tokens whose lines are drawn in no time

export class Lines {
  /** @type {{id: string, canvas: HTMLCanvasElement} | null} The faint lines as drawn last */
  cache = null;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.large = new TokenLines(view, view.map.box);
    this.box = add(parent, "div", "lines");
    const title = add(this.box, "h2");
    this.share = el("span", "");
    title.append(el("b", "", words.lines), this.share);
    this.title = title;
    this.canvas = add(this.box, "canvas");
  }

  // Colours or maps have changed.
  forget() {
    this.cache = null;
    this.large.forget();
  }

  // [key, weight] of the lines of a row of the lens, most first
  /** @param {number} query */
  edges(query) {
    return kept(this.view.lens(), query, this.view.options.keep) ?? [];
  }

  // Heads that are drawn together, all of the layer on the screen, go to the next one with it.
  /** @param {number} layer */
  follow(layer) {
    const { options, place } = this.view;
    const { members } = options;
    if (options.show !== "lines" || !this.large.isPerHead || !members.length || members.some((pair) => pair[0] !== place.layer)) return;
    this.view.options = { ...options, members: members.map((pair) => [layer, pair[1]]) };
  }

  /** @param {boolean} settled */
  draw(settled) {
    this.large.draw(settled);
    this.drawSmall(settled);
  }

  // All lines lie under those of the chosen query. With many tokens they wait until the head is `settled`.
  /** @param {boolean} settled */
  drawSmall(settled) {
    const { view } = this;
    const lens = view.lens();
    const { em } = view.room;
    const many = Math.max(lens.n_query, lens.n_key);
    const isElsewhere = view.options.show === "lines" || view.narrow; // large already, or one tap away
    this.box.hidden = isElsewhere || !lens.whole || lens.refused || many > MOST || many < 2;
    if (this.box.hidden) return;
    const used = this.box.offsetTop;
    this.box.hidden = view.room.height - used < 6 * em;
    if (this.box.hidden) return;
    this.share.textContent = fill(words.lines_note, { keep: view.options.keep });
    this.title.title = fill(words.lines_help, { keep: view.options.keep });
    const width = this.box.clientWidth;
    const height = clamp(view.room.height - used - 1.8 * em, 4 * em, 9 * em);
    const context = fit(this.canvas, width, height);
    /** @param {number} i @param {number} n */
    const x = (i, n) => 8 + (i * (width - 16)) / Math.max(1, n - 1);
    const [top, bottom] = [0.6 * em, height - 0.7 * em];
    /** @param {number} w */
    const level = (w) => Math.min(1, w / lens.top);
    /** @param {CanvasRenderingContext2D} c @param {number} q @param {number} k */
    const line = (c, q, k) => {
      c.beginPath();
      c.moveTo(x(q, lens.n_query), top);
      c.bezierCurveTo(x(q, lens.n_query), height / 2, x(k, lens.n_key), height / 2, x(k, lens.n_key), bottom);
      c.stroke();
    };
    const id = [lens.key, view.options.keep, width, height, view.themeName].join();
    if (this.cache?.id !== id && (settled || many <= FEW)) {
      const canvas = document.createElement("canvas");
      const c = fit(canvas, width, height);
      c.strokeStyle = view.palette.mute;
      for (let q = 0; q < lens.n_query; q++) {
        for (const [k, w] of this.edges(q)) {
          c.globalAlpha = 0.06 + 0.22 * level(w);
          c.lineWidth = 1 + 2 * level(w);
          line(c, q, k);
        }
      }
      this.cache = { id, canvas };
    }
    if (this.cache?.id === id) context.drawImage(this.cache.canvas, 0, 0, width, height);
    const query = view.query === null ? null : lens.queryOf(view.query);
    const weights = /** @type {ArrayLike<number>} */ (query === null ? lens.averages() : lens.row(query)?.weights); // it is whole
    if (query !== null) {
      context.strokeStyle = view.palette.query;
      for (const [k, w] of this.edges(query)) {
        context.globalAlpha = 0.35 + 0.65 * level(w);
        context.lineWidth = 1 + 4 * level(w);
        line(context, query, k);
      }
    }
    context.globalAlpha = 1;
    /** @param {number} px @param {number} py @param {number} radius @param {string} colour */
    const dot = (px, py, radius, colour) => {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(px, py, radius, 0, 7);
      context.fill();
    };
    const scale = many > 32 ? 0.6 : 1;
    for (let q = 0; q < lens.n_query; q++) dot(x(q, lens.n_query), top, (q === query ? 4 : 2.4) * scale, q === query ? view.palette.query : view.palette.mute);
    for (let k = 0; k < lens.n_key; k++) {
      const p = level(weights[k]);
      context.globalAlpha = 0.4 + 0.6 * Math.min(1, p * 1.6);
      dot(x(k, lens.n_key), bottom, (2 + 4 * Math.sqrt(p)) * scale, view.palette.key);
    }
    context.globalAlpha = 1;
  }
}
