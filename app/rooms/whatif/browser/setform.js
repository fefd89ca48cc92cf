// How a set of pairs is given: as lines, or by a template with two slots and words for them.

import { WORDS as words } from "./constants.js";
import { add, button, choice, el } from "../../../kit/browser/dom.js";

export class PairForm {
  how = "lines";

  /** @param {HTMLElement} parent @param {() => void} act run the set */
  constructor(parent, act) {
    this.act = act;
    this.form = add(parent, "details", "form");
    this.form.setAttribute("open", "");
    add(this.form, "summary").textContent = words.set_change;
    this.ways = add(this.form, "div", "line");
    const field = (/** @type {"input" | "textarea"} */ tag, /** @type {string} */ label, group = "") => {
      const made = el(tag, group);
      made.ariaLabel = label;
      made.setAttribute("placeholder", label);
      made.spellcheck = false;
      this.form.append(made);
      return /** @type {HTMLInputElement} */ (made);
    };
    this.lines = field("textarea", words.set_lines_label, "of-lines");
    this.hint = add(this.form, "p", "note of-lines");
    this.hint.textContent = words.set_lines_hint;
    this.first = field("input", words.set_first, "of-template");
    this.second = field("input", words.set_second, "of-template");
    this.asks = field("input", words.set_asks, "of-template");
    this.words = field("textarea", words.set_words, "of-template");
    const both = add(this.form, "label", "of-template");
    this.both = /** @type {HTMLInputElement} */ (add(both, "input"));
    Object.assign(this.both, { type: "checkbox", checked: true });
    both.append(` ${words.set_both}`);
    const acts = add(this.form, "div", "line");
    acts.append(button(words.set_run, "quiet", act));
    acts.append(button(words.set_example, "quiet", () => this.example()));
    add(this.form, "p", "note").textContent = words.set_private;
    this.turnTo(this.how);
  }

  /** @param {string} how pairs are given */
  turnTo(how) {
    this.how = how;
    this.form.dataset.how = how;
    this.ways.replaceChildren(
      choice(
        words.set_kind,
        [
          ["lines", words.set_lines],
          ["template", words.set_template],
        ],
        how,
        (chosen) => this.turnTo(chosen),
      ),
    );
  }

  example() {
    this.turnTo("template");
    this.first.value = words.set_example_first;
    this.second.value = words.set_example_second;
    this.asks.value = words.set_example_asks;
    this.words.value = words.set_example_words;
    this.both.checked = true;
    this.act();
  }

  // The set as it is sent: in no address
  /** @returns {Record<string, string>} */
  get given() {
    if (this.how === "lines") return { lines: this.lines.value };
    return {
      template: this.first.value,
      other: this.second.value,
      asks: this.asks.value,
      words: this.words.value,
      both: this.both.checked ? "on" : "",
    };
  }

  close() {
    this.form.removeAttribute("open");
  }
}
