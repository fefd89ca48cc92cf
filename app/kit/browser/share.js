// A link to exactly this screen, and a class that follows it.

import { classroom } from "./classroom.js";
import { WORDS as words } from "./words.js";
import { add, button, el } from "./dom.js";
import { copy } from "./save.js";

const THANKS_FOR = 2500; // ms that the button says that it worked

// The address of this page with all that is said, and with its light or dark and its projector
/** @param {Record<string, unknown>} said */
export function linkTo(said) {
  const page = Object.fromEntries(
    ["theme", "projector"].map((name) => [name, window.headlight.settings.get(name)]).filter(([, value]) => value),
  );
  const url = new URL(document.baseURI); // of the page that shows rooms, also where this one only follows it
  url.search = String(new URLSearchParams(/** @type {Record<string, string>} */ ({ ...said, ...page })));
  url.hash = "";
  return url.href;
}

// The way to another screen, in this tab
/** @param {string} text @param {Record<string, unknown>} said @param {string} [look] */
export const way = (text, said, look) => Object.assign(el("a", look, text), { href: linkTo(said), target: "_self" });

// What is said by some text, of all that may be
/** @param {Record<string, string>} texts */
export const spoken = (texts) => Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ""));

export class Share {
  /** @type {HTMLButtonElement} Made again by every layout that asks for actions() */
  button;
  /** @type {HTMLButtonElement | undefined} */
  sharing;
  copied = false;
  /** @type {number | undefined} A timer, while the button says that it worked */
  thanking;

  /** @param {HTMLElement} root of the room @param {() => string} link @param {(text: string) => void} announce for a screen reader */
  constructor(root, link, announce) {
    this.root = root;
    this.link = link;
    this.announce = announce;
    this.box = add(root, "div", "by-hand");
    this.box.hidden = true;
    const label = add(this.box, "label", "mute");
    label.textContent = words.copy_by_hand;
    this.field = add(label, "input");
    Object.assign(this.field, { type: "text", readOnly: true });
    this.field.addEventListener("keydown", (e) => e.key === "Escape" && this.close());
    this.box.append(button(words.close, "quiet", () => this.close()));
  }

  actions() {
    if (classroom.follows) return [this.copying()];
    this.sharing = button(words.share_screen, "quiet", () => classroom.share(), words.share_screen_help);
    return [this.sharing, this.copying()];
  }

  // A page in a file has no address that another browser could open, and no class.
  /** @param {boolean} isOffline */
  set isOffline(isOffline) {
    for (const button of [this.button, this.sharing]) if (button) button.hidden = isOffline;
  }

  // The button that copies, by itself
  copying() {
    this.button = button("", "quiet", () => this.copy(), words.copy_link_help);
    this.draw();
    return this.button;
  }

  async copy() {
    const link = this.link();
    this.root.dataset.link = link;
    if (!(await copy(link))) {
      this.field.value = link; // the visitor's own keys can always copy
      this.box.hidden = false;
      this.field.focus();
      this.field.select();
      this.announce(words.copy_by_hand);
      return;
    }
    this.close();
    this.copied = true;
    this.draw();
    this.announce(words.copied);
    clearTimeout(this.thanking);
    this.thanking = setTimeout(() => {
      this.copied = false;
      this.draw();
    }, THANKS_FOR);
  }

  draw() {
    this.button.textContent = this.copied ? `✓ ${words.copied}` : words.copy_link;
    this.button.classList.toggle("done", this.copied);
  }

  close() {
    if (this.box.hidden) return;
    this.box.hidden = true;
    this.button?.focus();
  }
}
