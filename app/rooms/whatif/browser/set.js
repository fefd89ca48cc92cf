// More than one sentence: pairs that are pasted or made of a template, the mean share of every part over all of them, and each pair.

import { WORDS as words } from "./constants.js";
import { add, button, choice, el, fill, phrase, saidIn, same, setText } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { signs } from "../../../kit/browser/picture/scale.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { drawShapes } from "../../../kit/browser/scene.js";
import { way } from "../../../kit/browser/share.js";
import { scrolled } from "../../../streamlit_edge/browser/page.js";
import { Tip } from "../../../kit/browser/tip.js";
import { placeOf } from "./found.js";
import { boxOf, partAt, partBeside, planOf, shapesOf } from "./partsmap.js";
import { SetFound } from "./setfound.js";
import { PairForm } from "./setform.js";
import { stream } from "./stream.js";

/** @typedef {{key: string, palette: import("./types.js").Palette, type: import("./types.js").Type}} Shown */
/**
 * @typedef {{changed: () => void, close: () => void, announce: (text: string) => void, link: (pair: [string, string], part: string) => Record<string, unknown>}} Ask
 *   what the set asks of the room: to be drawn, to be left, to say something, and what a link to one pair says
 */

const LISTED = 6; // parts
const [LEAST, FOOT] = [180, 50]; // pixels of the map, and below it
const LOWEST = 130; // pixels of the list of pairs
const NARROW = 560; // pixels, below which layers go down
const TEMPLATES = { carries: words.set_carries, other: words.set_other, nothing: words.set_nothing };
const ONE = { carries: words.set_carries_one, other: words.set_other_one, nothing: words.set_nothing_one };

export class PairSet {
  isOpen = false;
  found = new SetFound();
  pick = "";
  kind = "z";
  key = ""; // the run whose model is asked
  model = "";
  isGoing = false;
  refused = "";
  /** @type {AbortController | undefined} */
  stop;
  /** @type {import("./partsmap.js").Plan | null} */
  plan = null;
  /** @type {Shown} */
  shown;
  /** @type {unknown[]} */
  drawnPairs = [];

  /** @param {HTMLElement} box @param {Ask} ask */
  constructor(box, ask) {
    this.box = box;
    this.ask = ask;
    this.left = add(box, "section", "left");
    this.fact = add(this.left, "h2", "fact");
    this.fact.setAttribute("aria-live", "polite");
    const line = add(this.left, "div", "legend");
    this.legend = add(line, "span", "mute");
    this.legend.append(el("i", "more"), words.set_legend_more, el("i", "less"), words.set_legend_less);
    this.legend.append(` · ${words.set_legend_dot}`);
    this.counts = add(line, "b", "counts");
    this.map = add(this.left, "div", "parts");
    this.map.tabIndex = 0;
    this.map.setAttribute("role", "group");
    this.svg = draw(this.map, "svg", { "aria-hidden": "true" });
    this.tip = new Tip(box);
    this.right = add(box, "section", "right");
    const over = add(this.right, "div", "line");
    add(over, "h2").textContent = words.set_title;
    const acts = add(over, "span", "line");
    this.halt = acts.appendChild(button(words.set_stop, "quiet", () => this.end()));
    acts.append(button(words.set_close, "quiet", () => ask.close()));
    this.form = new PairForm(this.right, () => this.run());
    this.problem = add(this.right, "p", "problem");
    this.problem.setAttribute("role", "alert");
    this.results = add(this.right, "div", "results");
    const head = add(this.results, "div", "line");
    add(head, "h2").textContent = words.strongest;
    this.kinds = add(head, "span", "kinds");
    this.list = add(this.results, "div", "strongest");
    this.each = add(this.results, "h2");
    this.pairs = add(this.results, "div", "eachpair");
    this.map.addEventListener("click", (e) => this.take(this.under(e)));
    this.map.addEventListener("pointermove", (e) => this.tip.follow(this.said(this.under(e)), e));
    this.map.addEventListener("pointerleave", () => this.tip.hide());
  }

  async run() {
    this.end();
    const stop = (this.stop = new AbortController());
    const found = (this.found = new SetFound());
    this.isGoing = true;
    this.refused = "";
    this.pick = "";
    this.ask.changed();
    try {
      await stream(
        "set",
        { run: this.key },
        (message) => {
          found.take(message);
          if (found.found.length === 1) this.form.close();
          this.ask.changed();
        },
        stop.signal,
        this.form.given,
      );
      this.refused = found.refused;
    } catch (error) {
      if (stop.signal.aborted) return;
      this.refused = error instanceof Error ? error.message : words.failed;
    }
    this.isGoing = false;
    this.ask.changed();
  }

  end() {
    this.stop?.abort();
    this.isGoing = false;
    this.ask.changed();
  }

  // The run on the screen, and its model: of another model nothing that was found holds
  /** @param {string} key @param {string} model */
  of(key, model) {
    this.key = key;
    if (model === this.model) return;
    this.model = model;
    this.stop?.abort();
    this.isGoing = false;
    this.found = new SetFound();
    this.pick = this.refused = "";
  }

  get state() {
    return this.isOpen ? (this.isGoing ? "going" : String(this.found.found.length)) : "";
  }

  // The chosen part: one by hand, else the one with the largest share so far
  get chosen() {
    return this.pick || (this.found.known ? this.found.ranked("z")[0] : "");
  }

  /** @param {string} id */
  name(id) {
    const [kind, layer, head] = placeOf(id);
    return kind === "z" ? fill(words.head_name, { layer, head }) : fill(words.mlp_name, { layer });
  }

  /** @param {string} id */
  line(id) {
    const found = this.found.summed(id);
    if (!found) return "";
    const n = this.found.counted.length;
    const mean = percents(found.mean);
    if (n < 2) return `${mean} %`;
    return fill(words.set_line, { mean, spread: percents(found.spread), same: found.same, n });
  }

  /** @param {string | null} id */
  said(id) {
    return id && this.found.known ? [`${this.name(id)}: ${this.line(id)}`] : [];
  }

  /** @param {MouseEvent} event */
  under(event) {
    const box = this.svg.getBoundingClientRect();
    return this.plan ? partAt(this.plan, event.clientX - box.left, event.clientY - box.top) : null;
  }

  /** @param {string | null} id */
  take(id) {
    if (!id) return;
    this.pick = id;
    this.ask.changed();
    this.ask.announce(this.said(id).join(""));
  }

  /** @param {number} down @param {number} right */
  move(down, right) {
    const to = this.plan && this.chosen ? partBeside(this.plan, this.chosen, down, right) : null;
    this.take(to);
    return to !== null;
  }

  /** @param {number} by */
  next(by) {
    const { chosen, found } = this;
    if (!chosen) return;
    const order = found.ranked(chosen[0]);
    this.take(order[Math.max(0, Math.min(order.length - 1, order.indexOf(chosen) + by))]);
  }

  /** @param {Shown} shown @param {number} width of the map @param {number} height of it at most */
  draw(shown, width, height) {
    this.shown = shown;
    const { palette, type } = shown;
    const { unit } = type;
    const { found, chosen } = this;
    this.fact.replaceChildren(...this.sentence());
    setText(this.problem, this.refused);
    this.problem.hidden = !this.refused;
    this.halt.hidden = !this.isGoing;
    this.results.hidden = this.map.hidden = !found.known;
    /** @type {HTMLElement} */ (this.legend.parentElement).hidden = !found.known;
    setText(this.counts, this.progress);
    if (!found.known) return;
    const free = innerHeight - this.map.getBoundingClientRect().top - scrolled() - FOOT * unit;
    const tall = Math.min(height, Math.max(LEAST * unit, free));
    const plan = (this.plan = planOf(found, [], { width, height: tall, unit, turned: width < NARROW }));
    this.svg.setAttribute("width", String(plan.width));
    this.svg.setAttribute("height", String(Math.ceil(plan.height)));
    const shapes = shapesOf(plan, found, "ld", chosen, { palette, unit });
    const n = found.counted.length;
    for (const lane of plan.lanes)
      for (let layer = 0; layer < found.layers; layer++) {
        const box = boxOf(plan, lane, layer);
        const summed = found.summed(lane.id(layer));
        if (!summed || summed.same === n) continue;
        shapes.push({
          shape: "dot",
          x: box.x + box.w / 2,
          y: box.y + box.h / 2,
          r: Math.min(1.6 * unit, box.w / 4),
          fill: palette.mute,
          opacity: 0.7,
        });
      }
    drawShapes(new Pen(this.svg), shapes);
    this.map.setAttribute("aria-label", fill(words.set_map, { part: this.name(chosen) }));
    this.drawList();
    this.drawPairs();
  }

  get progress() {
    const { found, isGoing } = this;
    const [n, of] = [found.found.length, found.pairs.length];
    const left = n - found.counted.length;
    const said = found.done ? words.set_done : isGoing ? words.set_going : words.set_stopped;
    return fill(said, { n, of }) + (left ? ` · ${fill(words.set_uncounted, { n: left })}` : "");
  }

  /** @returns {Node[]} */
  sentence() {
    const { found, chosen, isGoing } = this;
    const summed = chosen ? found.summed(chosen) : null;
    if (!summed) return phrase(isGoing ? words.set_coming : words.set_none, {});
    const n = found.counted.length;
    return phrase((n > 1 ? TEMPLATES : ONE)[/** @type {keyof typeof TEMPLATES} */ (SetFound.way(summed.mean))], {
      part: [this.name(chosen), "number"],
      share: [`${percents(Math.abs(summed.mean))} %`, "number"],
      spread: `${percents(summed.spread)} %`,
      same: String(summed.same),
      n: String(n),
    });
  }

  drawList() {
    const { found, chosen } = this;
    this.kinds.replaceChildren(
      choice(
        words.list,
        [
          ["z", words.heads],
          ["m", words.mlps],
        ],
        this.kind,
        (kind) => {
          this.kind = kind;
          this.ask.changed();
        },
      ),
    );
    const listed = found.ranked(this.kind).slice(0, LISTED);
    const most = Math.max(Math.abs(found.change(listed[0]) ?? 0), 1e-9);
    while (this.list.children.length < listed.length) {
      const at = this.list.children.length;
      const row = add(this.list, "button", "one");
      row.addEventListener("click", () => this.take(this.found.ranked(this.kind)[at]));
      row.append(el("b"), this.bar(), el("span", "value"));
    }
    listed.forEach((id, i) => {
      const row = this.list.children[i];
      row.setAttribute("aria-pressed", String(id === chosen));
      setText(row.children[0], this.name(id));
      this.fillBar(row.children[1], found.change(id) ?? 0, most);
      setText(row.children[2], this.line(id));
    });
  }

  // The chosen part in each pair; a link opens the pair
  drawPairs() {
    const { found, chosen, shown } = this;
    setText(this.each, fill(words.set_each, { part: this.name(chosen) }));
    const of = [found, found.found.length, chosen, shown.palette];
    if (same(of, this.drawnPairs)) return;
    this.drawnPairs = of;
    const shares = found.found.map((_, i) => found.share(i, chosen));
    const most = Math.max(...shares.map((x) => Math.abs(x ?? 0)), 1e-9);
    const free = innerHeight - this.pairs.getBoundingClientRect().top - scrolled() - FOOT * shown.type.unit;
    this.pairs.style.maxHeight = `${Math.max(LOWEST * shown.type.unit, free)}px`;
    this.pairs.replaceChildren(
      ...found.found.map(({ words: [answer, rival] }, i) => {
        const [text, other] = found.pairs[i];
        const row = way(`${i + 1}. ${answer} − ${rival}`, this.ask.link([text, other], chosen), "one");
        Object.assign(row, { target: "_blank", title: fill(words.set_pair_help, { text, other }) });
        const bar = this.bar();
        const share = shares[i];
        row.append(bar, el("span", "value", share === null ? "–" : `${percents(share)} %`));
        this.fillBar(bar, share ?? 0, most);
        return row;
      }),
    );
  }

  bar() {
    return new Pen(el("span")).draw("svg", {
      viewBox: "-60 0 120 10",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    });
  }

  /** @param {Element} svg @param {number} x @param {number} most */
  fillBar(svg, x, most) {
    const { palette } = this.shown;
    const { more, less } = signs(palette);
    const width = (58 * Math.abs(x)) / most;
    const pen = new Pen(svg);
    pen.draw("rect", { x: x < 0 ? -width : 0, y: 1, width, height: 8, fill: x < 0 ? less : more });
    pen.draw("rect", { x: -0.3, y: 0, width: 0.6, height: 10, fill: palette.mute });
    pen.end();
  }

  about() {
    const { about } = this.found;
    const title = saidIn(this.fact);
    return {
      title,
      alt: title,
      caption: about?.caption ?? "",
      snippet: about?.snippet ?? "",
      name: about?.name ?? "headlight-whatif-set",
      tables: /** @type {[string, string, string][]} */ (about ? [about.table] : []),
    };
  }
}

// Whole per cent, with a minus that is one: "46", "−23"
/** @param {number} x */
function percents(x) {
  const text = String(Math.round(100 * Math.abs(x)));
  return x < 0 && text !== "0" ? `−${text}` : text;
}
