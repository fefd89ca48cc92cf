// The line above the picture: the tokens, one of them followed, and the layer and head.

import { isRightToLeft } from "../../../kit/browser/direction.js";
import { cover } from "../../../kit/browser/cover.js";
import { add, described, el, fill, selectBox, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./step.js").StepThrough} View */
/** @typedef {import("./types.js").Run} Run */

export class Tokens {
  of = ""; // the run that the line is of
  scrolled = ""; // the token that it was last brought to
  /** @type {HTMLElement[]} */
  tokens = [];
  /** @type {unknown[]} What the tokens are shaded by */
  shaded = [];

  /** @param {View} view @param {() => HTMLElement} pages made where the line is */
  draw(view, pages) {
    const run = /** @type {Run} */ (view.run);
    const { stack, query } = view.place;
    const { labels, joins, turns } = run.tokens[stack];
    const of = JSON.stringify([run.key, stack, view.opened, Object.keys(run.layers).length]);
    if (of !== this.of) this.build(view, run, stack, labels, joins, new Map(turns), pages());
    this.of = of;
    const at = view.walk && view.walkOf === run.key ? view.shown : null;
    const weighs =
      at && at.site?.site === "attn" && ["softmax", "z"].includes(view.values.at) && at.header.query === query
        ? at.at.weights
        : null;
    const shaded = [of, this.tokens, query, weighs, view.paint];
    if (shaded.some((what, i) => what !== this.shaded[i]))
      this.tokens.forEach((token, i) => {
        token.classList.toggle("q", i === query);
        token.setAttribute("aria-pressed", String(i === query));
        const tone = weighs && view.paint.scale(Math.sqrt(weighs[i]) * 0.9);
        token.style.background = tone ? tone.fill : "";
        token.style.color = tone ? tone.ink : "";
      });
    this.shaded = shaded;
    const strip = this.tokens[0]?.parentElement;
    const token = this.tokens[query];
    if (strip && this.scrolled !== `${of}/${query}`)
      strip.scrollLeft = token.offsetLeft - strip.offsetLeft - strip.clientWidth / 2;
    this.scrolled = `${of}/${query}`;
  }

  /** @param {View} view @param {Run} run @param {string} stack @param {string[]} labels @param {number[]} joins @param {Map<number, string>} turns @param {HTMLElement} pages */
  build(view, run, stack, labels, joins, turns, pages) {
    const strip = described(el("div", "toks"), "group", words.strip);
    if (isRightToLeft(labels)) strip.dir = "rtl";
    this.tokens = labels.map((text, i) => {
      if (turns.get(i)) strip.append(el("small", "turn", turns.get(i))); // of a conversation: whose turn begins
      const token = add(strip, "button", "tok");
      token.textContent = text;
      token.classList.toggle("joined", joins.includes(i));
      token.setAttribute("aria-label", fill(words.strip_token, { label: text, i }));
      token.dataset.i = String(i);
      token.addEventListener("click", () => {
        if (cover.hides("row") && cover.point(i)) return; // an answer to what a lesson asks
        view.choose({ query: String(i), key: "", cell: "", hide: "" });
      });
      return token;
    });
    const pick = el("div", "pick");
    const stacks = Object.keys(run.layers).map(
      (name) => /** @type {[string, string]} */ ([name, worded(words.stacks, name)]),
    );
    const choose = (/** @type {string} */ name) => view.choose({ stack: name, key: "", cell: "", hide: "" });
    if (stacks.length > 1) add(pick, "label").append(words.stack, " ", selectBox(words.stack, stacks, stack, choose));
    pick.append(view.chooser.element);
    pages.classList.add("pages");
    view.bar.replaceChildren(strip, pick, pages);
  }
}
