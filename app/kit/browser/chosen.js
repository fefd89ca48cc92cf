// What is chosen in a room, as texts of its link: the visitor changes it here, and Python is told once, a moment later.

const TELL_AFTER = 200; // ms without a change before Python is told

/** @typedef {{values: Record<string, string>, stamp: number, reported: number}} FromPython */

export class Chosen {
  /** @type {Record<string, string>} */
  values = {};
  /** @type {number | undefined} */
  stamp;
  number = 0; // of the last change
  /** @type {number | undefined} A timer, while Python is still to be told */
  telling;
  /** @type {import("./types.js").Tell} */
  set = () => {};

  // What Python sends. Returns whether a link decided: then all is as it says. Otherwise a change that Python does not know yet stays.
  /** @param {FromPython} sent @param {import("./types.js").Tell} setStateValue */
  take(sent, setStateValue) {
    this.set = setStateValue;
    const byLink = sent.stamp !== this.stamp;
    if (byLink || sent.reported >= this.number) {
      if (byLink) clearTimeout(this.telling);
      this.values = { ...sent.values };
      this.number = Math.max(this.number, sent.reported);
    }
    this.stamp = sent.stamp;
    return byLink;
  }

  // The visitor changes something.
  /** @param {Record<string, string>} changes @param {boolean} [atOnce] */
  choose(changes, atOnce = false) {
    Object.assign(this.values, changes);
    this.number += 1;
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.tell(), atOnce ? 0 : TELL_AFTER);
  }

  tell() {
    clearTimeout(this.telling);
    this.telling = undefined;
    this.set("chosen", { number: this.number, said: { ...this.values } });
  }

  destroy() {
    clearTimeout(this.telling);
  }
}

// A whole number that a text says, or the other one
/** @param {string | undefined} text @param {number} [otherwise] */
export const whole = (text, otherwise = 0) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : otherwise);
