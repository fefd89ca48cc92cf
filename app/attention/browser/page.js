// What a picture of a run has of the page around it: the link to it, and light or dark.

import { choice } from "../../kit/browser/dom.js";
import { placeTexts, textsOf } from "./values.js";
import { linkTo, Share, spoken } from "../../kit/browser/share.js";
import { WORDS as words } from "./constants.js";

export class Page extends Share {
  /** @param {import("./types.js").View} view @param {HTMLElement} root */
  constructor(view, root) {
    super(
      root,
      () => addressOf(view),
      (text) => view.announce(text),
    );
    this.view = view;
  }

  actions() {
    return this.view.picture.offline ? [] : super.actions(); // a page in a file has no address that another browser could open
  }

  settings() {
    /** @type {import("../../kit/browser/types.js").Choice<string>[]} */
    const themes = [
      ["auto", words.theme_auto],
      ["light", words.theme_light],
      ["dark", words.theme_dark],
    ];
    const node = choice(words.theme, themes, this.view.options.theme, (theme, e) =>
      this.view.setOption("theme", theme, e),
    );
    return [{ label: words.theme, node, help: words.theme_help }];
  }
}

// Everything is spelled out, also what is as it opens: a link should still show this when the example has changed.
/** @param {import("./types.js").View} view */
export function addressOf(view) {
  const { picture, place } = view;
  return linkTo({ view: "explore", ...picture.link, ...placeTexts(place), ...spoken(textsOf(view.options)) });
}
