// The keys of a room, as a list that "?" or its button opens: every key that a room hears is told here.

import { add, button, el, setAll } from "./dom.js";
import { WORDS as words } from "./words.js";

export class KeyList {
  /** @param {() => [name: string, says: string][]} listed */
  constructor(listed) {
    this.listed = listed;
    this.button = button(words.keys, "quiet keys", () => void this.toggle(), words.keys_help);
    this.button.setAttribute("aria-keyshortcuts", "?");
    this.box = el("div", "keylist");
    setAll(this.box, { popover: "auto", role: "dialog", "aria-label": words.keys });
  }

  /** @returns {boolean | void} */
  toggle() {
    const listed = this.listed();
    if (!listed.length) return false;
    const list = el("dl");
    for (const [name, says] of listed) {
      add(add(list, "dt"), "kbd").textContent = name;
      add(list, "dd").textContent = says;
    }
    this.box.replaceChildren(list);
    this.box.togglePopover();
  }
}
