// The row above the picture: which picture it is, and behind one button every option of it.
//
// Any part of the view may add to it: tools() gives nodes for the row itself, settings() gives {label, node, help} for the
// options. They are asked for again at every layout; the options only while they are open.

import { WORDS as words } from "./constants.js";
import { add, button, choice, described, el } from "../../kit/browser/dom.js";

export class Tools {
  // The options open in `place`, in front of what is there: never over the map that they change
  /**
   * @param {import("./types.js").View} view
   * @param {HTMLElement} parent
   * @param {HTMLElement} place
   * @param {HTMLElement} page on which they are a sheet where it is narrow
   * @param {import("./types.js").ViewPart[]} parts
   */
  constructor(view, parent, place, page, parts) {
    this.view = view;
    this.place = place;
    this.page = page;
    this.parts = parts;
    this.row = add(parent, "span", "row");
    this.shown = add(parent, "span", "row");
    this.open = add(parent, "button", "quiet");
    this.open.textContent = words.options;
    this.open.setAttribute("aria-haspopup", "dialog");
    this.open.setAttribute("aria-expanded", "false");
    this.panel = described(add(place, "div", "settings"), "dialog", words.options_label);
    this.panel.hidden = true;
    this.open.addEventListener("click", () => this.toggle(this.panel.hidden === true));
    this.panel.addEventListener("keydown", (e) => this.key(e));
    this.open.addEventListener("keydown", (e) => this.key(e));
  }

  build() {
    const { parts, view } = this;
    const { options } = view;
    /** @type {import("../../kit/browser/types.js").Choice<string>[]} */
    const tabs = [
      ["map", words.map],
      ["lines", words.lines_tab],
      ["beside", words.beside_tab, words.beside_help],
      ["table", words.table],
    ];
    this.row.replaceChildren(...parts.flatMap((part) => part.tools?.() ?? []));
    this.shown.replaceChildren(
      choice(words.shown_as, tabs, options.show, (show, e) => view.chosen.set("show", show, e)),
    );
    if (!this.panel.hidden) this.buildOptions();
    this.mark();
  }

  buildOptions() {
    const { parts } = this;
    const lines = [...parts.flatMap((part) => part.settings?.() ?? []), this.theme()].map(({ label, node, help }) => {
      const line = el("div", "line");
      line.append(el("span", "mute", label), node);
      if (help) line.title = help;
      return line;
    });
    const title = el("div", "head");
    const close = button(words.options_close, "quiet", () => {
      this.toggle(false);
      this.open.focus();
    });
    title.append(el("h2", "", ""), close);
    /** @type {HTMLElement} */ (title.firstChild).append(el("b", "", words.options_label));
    this.panel.replaceChildren(title, ...lines);
  }

  // Light or dark, which is of the whole page
  theme() {
    const { settings } = window.headlight;
    /** @type {import("../../kit/browser/types.js").Choice<string>[]} */
    const themes = [
      ["auto", words.theme_auto],
      ["light", words.theme_light],
      ["dark", words.theme_dark],
    ];
    const node = choice(words.theme, themes, settings.get("theme") ?? "auto", (theme) =>
      settings.set("theme", theme === "auto" ? null : theme),
    );
    return { label: words.theme, node, help: words.theme_help };
  }

  // Whether some option is not as it opens: one should see that without looking inside.
  mark() {
    const changed = Object.keys(this.view.chosen.texts).filter((name) =>
      ["scale", "bounds", "kind", "heads", "hide", "words", "keep"].includes(name),
    );
    this.open.textContent = changed.length ? `${words.options} · ${changed.length}` : words.options;
  }

  /** @param {boolean} open */
  toggle(open) {
    if (this.panel.hidden === !open) return;
    if (open) this.buildOptions();
    this.panel.hidden = !open;
    this.open.setAttribute("aria-expanded", String(open));
    this.place.classList.toggle("under-options", open);
    if (this.view.room.narrow)
      this.page.append(this.panel); // a sheet over the page
    else this.place.append(this.panel);
    if (open)
      /** @type {HTMLElement | null} */ (this.panel.querySelector("[aria-pressed=true], button, input, select"))?.focus(
        { preventScroll: !this.view.room.narrow },
      );
  }

  // The letter O
  turn() {
    if (this.view.options.projector) return false;
    const open = this.panel.hidden === true;
    this.toggle(open);
    if (!open) this.open.focus();
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.key !== "Escape" || this.panel.hidden) return;
    e.stopPropagation();
    this.toggle(false);
    this.open.focus();
  }
}
