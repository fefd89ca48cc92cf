// A chip for each step of the run that is worth stepping through: a click goes to its layer, word, head and station, in motion.

import { cover } from "../../../kit/browser/cover.js";
import { add, described, el, fill, fixed, percent, quoted, setAll } from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { json } from "../../../kit/browser/messages.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./step.js").StepThrough} View */
/**
 * One of them, as the server tells of it (message.py). Without head and key it is a whole sublayer.
 * @typedef {{kind: string, at: string, stack: string, site: string, layer: number, head?: number, query: number, key?: number, weight: number, word: string, addition?: number, unturned?: number, value?: number, median?: number}} Chip
 */

export class Worth {
  drawn = "";
  /** @type {Chip[]} */
  found = [];

  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.box = described(el("div", "worth"), "group", words.worth);
    this.box.hidden = true;
  }

  // A lesson that covers something does not tell where to find it
  get isShown() {
    const { view } = this;
    return Boolean(view.run && view.opened === "run" && !view.isProjected && !cover.now);
  }

  draw() {
    const { view, box } = this;
    box.hidden = !this.isShown;
    if (box.hidden) return;
    const answer = view.isThere ? view.ask("step/worth", {}, json) : null;
    this.found = answer?.found ?? []; // none, of a run that refuses
    const of = `${view.key}/${Boolean(answer)}`;
    if (of !== this.drawn) this.#build(); // the row keeps its place while they are on their way
    this.drawn = of;
    [...box.children].forEach((chip, i) => setAll(chip, { "aria-pressed": String(this.#isAt(this.found[i])) }));
  }

  #build() {
    const { box } = this;
    box.replaceChildren();
    for (const one of [...this.found, null]) {
      const [name, reason] = one ? this.#words(one) : words.worth_why;
      const chip = add(box, "button", "chip");
      chip.textContent = name;
      chip.title = reason;
      if (one) chip.dataset.kind = one.kind;
      chip.addEventListener("click", () => this.#go(one));
    }
  }

  /** Its name and the reason for it. @param {Chip} one @returns {string[]} */
  #words(one) {
    const run = /** @type {import("./types.js").Run} */ (this.view.run);
    const table = /** @type {Record<string, string[]>} */ (words.worth_chips);
    const labels = run.tokens[one.stack].labels;
    const keys = one.site === "cross_attn" ? run.tokens.encoder.labels : labels;
    const isLast = one.layer === run.layers[one.stack] - 1;
    const parts = {
      q: quoted(indexed(labels, one.query)),
      k: one.key === undefined ? "" : quoted(indexed(keys, one.key)),
      w: percent(one.weight),
      u: percent(one.unturned ?? 0),
      a: fixed(Math.abs(one.addition ?? 0)),
      v: fixed(one.value ?? 0),
      m: fixed(one.median ?? 0),
      word: quoted(one.word),
      layer: one.layer,
      head: one.head ?? 0,
    };
    const form = table[one.kind === "the MLP decides" && isLast ? "the last MLP" : one.kind] ?? [one.kind, ""];
    return form.map((text) => fill(text, parts));
  }

  /** @param {Chip | undefined} one undefined: the station that asks why the stream is added to */
  #isAt(one) {
    const { view } = this;
    const { stack, layer, head, query } = view.place;
    const { at } = view.values;
    if (!one) return at === "why";
    if (one.stack !== stack || one.layer !== layer || one.query !== query || at === "why") return false;
    return one.head === undefined ? one.at === at : one.head === head;
  }

  /** @param {Chip | null} one */
  #go(one) {
    const { view } = this;
    view.play(false);
    view.motion.stop();
    view.coming = { id: one?.at ?? "why", moment: 0, plays: true };
    if (!one) return view.choose({ at: "why", cell: "" });
    view.choose({
      stack: one.stack,
      layer: String(one.layer),
      ...(one.head === undefined ? {} : { head: String(one.head) }),
      query: String(one.query),
      key: one.key === undefined ? "" : String(one.key),
      at: one.at,
      cell: "",
      divide: "",
      hide: "",
    });
  }
}
