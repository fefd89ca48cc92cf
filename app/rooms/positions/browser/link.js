// A button that copies a link to exactly what is on the screen.

import { WORDS as kit } from "../../../kit/browser/words.js";
import { add, el } from "../../../kit/browser/dom.js";

const THANKS_FOR = 2500; // ms that the button says that it worked

export class LinkButton {
  /** @param {import("./types.js").Shown} view */
  constructor(view) {
    this.view = view;
    this.button = el("button", "quiet", kit.copy_link);
    Object.assign(this.button, { type: "button", title: kit.copy_link_help });
    this.button.addEventListener("click", () => this.copy());
    this.box = el("div", "link");
    this.box.hidden = true;
    const label = add(this.box, "label", "mute");
    label.textContent = kit.copy_by_hand;
    this.field = add(label, "input");
    Object.assign(this.field, { type: "text", readOnly: true });
    this.field.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  // Everything is spelled out, also what is as it opens.
  get href() {
    const url = new URL(location.href);
    url.searchParams.set("view", "positions");
    for (const [name, value] of Object.entries(this.view.chosen.values)) {
      if (value === "") url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    url.hash = "";
    return url.href;
  }

  async copy() {
    this.view.root.dataset.link = this.href;
    try {
      await navigator.clipboard.writeText(this.href);
    } catch {
      this.field.value = this.href;
      this.box.hidden = false;
      this.field.focus();
      this.field.select();
      return;
    }
    this.close();
    this.button.textContent = `✓ ${kit.copied}`;
    this.view.say(kit.copied);
    setTimeout(() => (this.button.textContent = kit.copy_link), THANKS_FOR);
  }

  close() {
    if (this.box.hidden) return;
    this.box.hidden = true;
    this.button.focus();
  }
}
