// Lines from every query to the keys it looks at, in place of the map.

import { TokenLines } from "./tokenlines.js";

export class Lines {
  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
    this.large = new TokenLines(view, view.map.box);
  }

  // Colours or maps have changed.
  forget() {
    this.large.forget();
  }

  // Heads that are drawn together, all of the layer on the screen, go to the next one with it.
  /** @param {number} layer */
  follow(layer) {
    const { options, place } = this.view;
    const { members } = options;
    if (
      options.show !== "lines" ||
      !this.large.isPerHead ||
      !members.length ||
      members.some((pair) => pair[0] !== place.layer)
    )
      return;
    this.view.options = { ...options, members: members.map((pair) => [layer, pair[1]]) };
  }

  /** @param {boolean} settled */
  draw(settled) {
    this.large.draw(settled);
  }
}
