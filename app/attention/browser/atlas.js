// What the chosen head does over a whole corpus, where its model has an atlas: a button beside the title, and what it opens.

import { add, el, fill, finely, number, percent, worded } from "../../kit/browser/dom.js";
import { plainTable } from "../../kit/browser/table.js";
import { WORDS as words } from "./constants.js";
import { json } from "../../kit/browser/messages.js";
import { placePanel } from "../../kit/browser/popover.js";
import { pointed } from "../../kit/browser/language.js";

const WIDTH = 36; // em
const IN_TOKENS = "distance";
const IN_BITS = "entropy";

// A mean of one metric, in its unit
/** @param {string} metric @param {number} value */
export function said(metric, value) {
  if (metric === IN_TOKENS) return fill(words.atlas_tokens, { n: pointed(value.toFixed(1)) });
  return metric === IN_BITS ? fill(words.atlas_bits, { n: pointed(value.toFixed(2)) }) : percent(value);
}

export class Atlas {
  /** @type {unknown} What the panel is of */
  filled = null;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.button = add(parent, "button", "atlas");
    this.button.hidden = true;
    this.panel = add(parent, "div", "menu atlas");
    this.panel.popover = "auto"; // Escape and a click beside it close it; it lies over everything, also in the projector
    this.panel.setAttribute("role", "dialog");
    this.button.popoverTargetElement = this.panel;
    this.button.setAttribute("aria-haspopup", "dialog");
    this.panel.addEventListener(
      "beforetoggle",
      (e) => /** @type {ToggleEvent} */ (e).newState === "open" && this.open(),
    );
    this.panel.addEventListener("keydown", (e) => e.stopPropagation()); // arrows scroll it and choose no head
  }

  // How many texts the model has been surveyed over; 0 for a model without an atlas, and while that is unknown
  get texts() {
    const { remote } = this.view;
    if (remote.offline || this.view.lens().kind !== "head") return 0;
    return remote.get("atlas", {}, json)?.texts ?? 0;
  }

  // All that is known of a head; null where nothing is, or while it is fetched
  /** @param {{layer: number, head: number}} at @returns {any} */
  of({ layer, head }) {
    const { remote, site } = this.view;
    if (!this.texts) return null;
    const found = remote.get("atlas", { record: site.records[layer], head }, json);
    return found && !found.refused && found.metrics ? found : null;
  }

  // The number that sets the head apart, in a few words
  /** @param {any} found @returns {string} */
  short(found) {
    const best = found.metrics.find((/** @type {{name: string}} */ metric) => metric.name === found.stands_out);
    return fill(words.atlas_short, { what: worded(words.atlas_of, best.name), mean: said(best.name, best.mean) });
  }

  // The button is in the title, or in another part that tells of the head.
  /** @param {HTMLElement | null} place */
  stand(place) {
    if (place && this.button.parentNode !== place) place.prepend(this.button);
    else if (!place && this.button.parentNode !== this.panel.parentNode) this.panel.before(this.button);
  }

  draw() {
    const n = this.texts;
    this.button.hidden = !n;
    if (!n) return void (this.panel.matches(":popover-open") && this.panel.hidePopover());
    this.button.textContent = fill(words.atlas, { n: number(n) });
    this.button.title = words.atlas_help;
    if (this.panel.matches(":popover-open")) this.fill();
  }

  open() {
    this.fill();
    placePanel(this.panel, this.button, WIDTH);
  }

  fill() {
    const { remote, site, place } = this.view;
    const of = { record: site.records[place.layer], head: place.head };
    const found = remote.get("atlas", of, json);
    this.panel.setAttribute("aria-label", words.atlas_help);
    this.panel.dataset.of = found ? `${of.record}.${of.head}` : "";
    if (found && found === this.filled) return; // a link that is made again while it is pressed would lose the click, and the focus
    this.filled = found;
    if (!found) return this.panel.replaceChildren(el("p", "", words.atlas_loading));
    if (found.refused) return this.panel.replaceChildren(el("p", "", found.refused));
    const best = found.metrics.find((/** @type {{name: string}} */ metric) => metric.name === found.stands_out);
    const [low, high] = [best.low, best.high].map((value) => said(best.name, value));
    const parts = { layer: place.layer, head: place.head, n: number(found.texts) };
    const what = worded(words.atlas_of, best.name);
    const sentence = fill(words.atlas_says, { what, mean: said(best.name, best.mean), low, high });
    this.panel.replaceChildren(
      el("h3", "", fill(words.atlas_title, parts)),
      el("p", "says", sentence),
      this.table(found.metrics),
      el("h3", "", words.atlas_examples),
      this.examples(found),
      el("p", "", fill(words.atlas_source, { tokens: found.most_tokens })),
    );
  }

  /** @param {{name: string, mean: number, low: number, high: number, texts: number}[]} metrics */
  table(metrics) {
    const rows = metrics.map(({ name, mean, low, high, texts }) => {
      const cell = (/** @type {number} */ value) =>
        name === IN_TOKENS || name === IN_BITS ? said(name, value) : finely(value);
      return [worded(words.atlas_of, name), cell(mean), `${cell(low)} – ${cell(high)}`, number(texts)];
    });
    return plainTable(words.atlas_help, words.atlas_columns, rows);
  }

  // Each opens in a tab of its own: what is on the screen stays
  /** @param {{examples: {before: string, word: string, after: string, value: number, link: string}[], stands_out: string}} found */
  examples({ examples, stands_out }) {
    const list = el("ol");
    for (const { before, word, after, value, link } of examples) {
      const open = add(add(list, "li"), "a");
      open.href = link;
      open.target = "_blank";
      open.rel = "noopener";
      const context = el("span");
      context.append(`…${before}`, el("b", "", word), `${after}…`);
      open.title = context.textContent ?? "";
      open.append(context, " ", el("i", "", said(stands_out, value)));
    }
    return list;
  }
}
