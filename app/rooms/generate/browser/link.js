// A link to exactly this screen: the text, how words are chosen, the words that were taken, and the branches.

import { Share } from "../../../kit/browser/share.js";

export class Link extends Share {
  /** @param {HTMLElement} root @param {() => Record<string, string>} said what a link is to say */
  constructor(root, said) {
    const announce = (/** @type {string} */ text) => void (root.dataset.announced = text);
    super({ root, picture: { link: {} }, place: { site: "", layer: 0, head: 0, query: null }, options: { theme: "auto" }, optionTexts: said, setOption: () => {}, announce }, root);
    this.said = said;
  }

  link() {
    const url = new URL(location.href);
    const page = ["theme", "projector"].map((name) => [name, window.headlight.settings.get(name) ?? ""]);
    const all = [...Object.entries(this.said()), ...page].filter(([, value]) => value !== "");
    url.search = String(new URLSearchParams(all));
    url.hash = "";
    return url.href;
  }
}
