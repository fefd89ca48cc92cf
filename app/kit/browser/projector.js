// Projector mode of a room: a button that begins it, and Page keys that turn while it is on.
//
// Whether the page is projected is the page's own (history.js), and so are P, Escape and the bar (projection.js); its style does the rest.

import { button } from "./dom.js";
import { turnsPages } from "./page_keys.js";
import { WORDS as words } from "./words.js";

export class Projector {
  /** @param {(by: number) => void} turn @param {AbortSignal} leaving */
  constructor(turn, leaving) {
    const project = () => window.headlight.settings.set("projector", "true");
    this.button = button(words.project, "quiet", project, words.project_keys);
    turnsPages((by) => (this.on && this.button.isConnected ? turn(by) : false), leaving);
  }

  get on() {
    return window.headlight.settings.get("projector") !== null;
  }
}
