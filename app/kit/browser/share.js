// A link to exactly this screen, and the page's light or dark.

import { classroom } from "./classroom.js";
import { WORDS as words } from "./words.js";
import { add, choice, el } from "./dom.js";

const THANKS_FOR = 2500; // ms that the button says that it worked

export class Share {
  /** @type {HTMLButtonElement} Made anew at every layout */
  button;
  copied = false;
  /** @type {number | undefined} A timer, while the button says that it worked */
  thanking;

  /** @param {import("./types.js").Shared} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "link");
    this.box.hidden = true;
    const label = add(this.box, "label", "mute");
    label.textContent = words.copy_by_hand;
    this.field = add(label, "input");
    Object.assign(this.field, { type: "text", readOnly: true });
    this.field.addEventListener("keydown", (e) => e.key === "Escape" && this.close());
    this.dismiss = add(this.box, "button", "quiet");
    Object.assign(this.dismiss, { type: "button", textContent: words.close });
    this.dismiss.addEventListener("click", () => this.close());
  }

  actions() {
    if (this.view.picture.offline) return []; // a page in a file has no address that another browser could open
    const button = (this.button = el("button", "quiet", words.copy_link));
    Object.assign(button, { type: "button", title: words.copy_link_help });
    button.addEventListener("click", () => this.copy());
    this.draw();
    if (classroom.follows) return [button];
    const share = el("button", "quiet", words.share_screen);
    Object.assign(share, { type: "button", title: words.share_screen_help });
    share.addEventListener("click", () => classroom.share());
    return [share, button];
  }

  settings() {
    /** @type {import("./types.js").Choice<string>[]} */
    const themes = [["auto", words.theme_auto], ["light", words.theme_light], ["dark", words.theme_dark]];
    const node = choice(words.theme, themes, this.view.options.theme, (theme, e) => this.view.setOption("theme", theme, e));
    return [{ label: words.theme, node, help: words.theme_help }];
  }

  // Everything is spelled out, also what is as it opens: a link should still show this when the example has changed.
  link() {
    const { picture, place } = this.view;
    const url = new URL(location.href);
    const query = place.query === null ? "none" : place.query;
    const page = Object.fromEntries(["theme", "projector"].map((name) => [name, window.headlight.settings.get(name)]).filter(([, value]) => value));
    const said = { ...picture.link, ...place, query, ...this.view.optionTexts(), ...page };
    url.search = String(new URLSearchParams(/** @type {Record<string, string>} */ (said)));
    url.hash = "";
    return url.href;
  }

  async copy() {
    const link = this.link();
    this.view.root.dataset.link = link;
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      this.field.value = link; // no permission, or no secure connection: the visitor's own keys can always copy
      this.box.hidden = false;
      this.field.focus();
      this.field.select();
      this.view.announce(words.copy_by_hand);
      return;
    }
    this.close();
    this.copied = true;
    this.draw();
    this.view.announce(words.copied);
    clearTimeout(this.thanking);
    this.thanking = setTimeout(() => {
      this.copied = false;
      this.draw();
    }, THANKS_FOR);
  }

  draw() {
    this.button.textContent = this.copied ? `✓ ${words.copied}` : words.copy_link;
    this.button.classList.toggle("done", Boolean(this.copied));
  }

  close() {
    if (this.box.hidden) return;
    this.box.hidden = true;
    this.button?.focus();
  }
}
