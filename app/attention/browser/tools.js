// The row above the picture: which picture it is, and behind one button every option of it.
//
// Any part of the view may add to it: tools() gives nodes for the row itself, settings() gives {label, node, help} for the
// options. They are asked for again at every layout; the options only while they are open.

import { WORDS as words } from "./constants.js";
import { add, button, choice, described, el, setAll } from "../../kit/browser/dom.js";
import { placePanel } from "../../kit/browser/popover.js";

const WIDTH = 26; // em

export class Tools {
  /**
   * @param {import("./types.js").View} view
   * @param {HTMLElement} parent
   * @param {HTMLElement} page the panel opens on top of it; on a narrow page the panel is a sheet at the bottom
   * @param {import("./types.js").ViewPart[]} parts
   */
  constructor(view, parent, page, parts) {
    this.view = view;
    this.parts = parts;
    this.row = add(parent, "span", "row");
    this.shown = add(parent, "span", "row");
    this.panel = described(add(page, "div", "settings"), "dialog", words.options_label);
    this.panel.popover = "auto"; // Escape and a click elsewhere close it
    this.open = add(parent, "button", "quiet");
    this.open.textContent = words.options;
    setAll(this.open, { "aria-haspopup": "dialog", "aria-expanded": "false" });
    this.open.popoverTargetElement = this.panel;
    this.panel.addEventListener("beforetoggle", (e) =>
      this.toggled(/** @type {ToggleEvent} */ (e).newState === "open"),
    );
    this.panel.addEventListener("toggle", () => this.isOpen && this.focus());
  }

  get isOpen() {
    return this.panel.matches(":popover-open");
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
    if (this.isOpen) this.buildOptions();
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
    const close = button(words.options_close, "quiet", () => this.panel.hidePopover());
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

  /** @param {boolean} isOpen */
  toggled(isOpen) {
    this.open.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) {
      if (this.panel.matches(":focus-within")) this.open.focus();
      return;
    }
    this.buildOptions();
    if (this.view.room.narrow) this.panel.removeAttribute("style");
    else placePanel(this.panel, this.open, WIDTH, "beside"); // so that the map stays visible
  }

  focus() {
    /** @type {HTMLElement | null} */ (this.panel.querySelector("[aria-pressed=true], button, input, select"))?.focus({
      preventScroll: !this.view.room.narrow,
    });
  }

  close() {
    if (this.isOpen) this.panel.hidePopover();
  }

  // The letter O
  turn() {
    if (this.view.options.projector) return false;
    this.panel.togglePopover();
  }
}
