// A link to exactly this screen, and a class that follows it.

import { classroom } from "./classroom.js";
import { WORDS as words } from "./words.js";
import { add, button, el } from "./dom.js";
import { copy } from "./save.js";

const THANKS_FOR = 2500; // ms that the button says that it worked
const LEAST_WIDE = 640; // pixels of a frame
const AROUND = 190; // pixels above a room and below it: the boxes of the text and of the model

// The address of this page with all that is said, and with its light or dark and its projector
/** @param {Record<string, unknown>} said */
export function linkTo(said) {
  const page = Object.fromEntries(
    ["theme", "projector", "frozen", "spotlight", "lang"]
      .map((name) => [name, window.headlight.settings.get(name)])
      .filter(([, value]) => value),
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
  /** @type {HTMLButtonElement | undefined} */
  frame;
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
    return [this.sharing, this.copying(), ...this.framing()];
  }

  // Where the operator lets other sites show Headlight: the line of HTML that shows exactly this screen
  framing() {
    if (!document.querySelector('meta[name="headlight-frames"]')) return [];
    this.frame = button(words.copy_frame, "quiet", () => this.copyFrame(), words.copy_frame_help);
    return [this.frame];
  }

  copyFrame() {
    const shown = new URL(this.link());
    shown.searchParams.set("embed", "true");
    const { scrollHeight, clientWidth } = this.root;
    const address = shown.href.replaceAll("&", "&amp;"); // an address has no quotes: they are %22
    const size = `width="${Math.max(LEAST_WIDE, clientWidth)}" height="${scrollHeight + AROUND}"`;
    return this.take(`<iframe src="${address}" ${size} title="Headlight"></iframe>`, words.frame_copied);
  }

  // A page in a file has no address that another browser could open, and no class.
  /** @param {boolean} isOffline */
  set isOffline(isOffline) {
    for (const button of [this.button, this.sharing, this.frame]) if (button) button.hidden = isOffline;
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
    if (!(await this.take(link, words.copied))) return;
    this.copied = true;
    this.draw();
    clearTimeout(this.thanking);
    this.thanking = setTimeout(() => {
      this.copied = false;
      this.draw();
    }, THANKS_FOR);
  }

  /** @param {string} text @param {string} done the sentence once it is copied @returns {Promise<boolean>} whether it was */
  async take(text, done) {
    if (!(await copy(text))) {
      this.field.value = text; // the visitor's own keys can always copy
      this.box.hidden = false;
      this.field.focus();
      this.field.select();
      this.announce(words.copy_by_hand);
      return false;
    }
    this.close();
    this.announce(done);
    return true;
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
