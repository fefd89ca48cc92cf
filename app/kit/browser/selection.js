// What is chosen in a room, as texts of its link: the visitor changes it here, and Python is told once, a moment later.

import { classroom } from "./classroom.js";
import { NOBODY } from "./mount.js";

const TELL_AFTER = 200; // ms without a change before Python is told

/** @typedef {{values: Record<string, string>, stamp: number, merged?: number, reported: number, of?: string, follow?: Follow}} FromPython */
/** @typedef {{room: string, drawn: string, base: Record<string, string>, most: number}} Follow `most` are the bytes of what is chosen that a class is told at once */

export class RoomSelection {
  /** @type {Record<string, string>} */
  values = {};
  of = ""; // the run that they were chosen on
  /** @type {number | undefined} */
  stamp;
  /** @type {number | undefined} */
  merged;
  /** @type {Record<string, string>} What Python is still to be told */
  untold = {};
  number = 0; // of the last change
  /** @type {number | undefined} A timer, while Python is still to be told */
  telling;
  /** @type {import("./types.js").Host} */
  host = NOBODY;
  /** @type {Follow | undefined} What a class that follows is to see */
  follow;
  /** @type {Record<string, string>} What a class hears beside the link */
  beside = {};
  // Before the visitor goes elsewhere: told later, it would come between and take the way there for a choice.
  leaving = () => {
    if (this.telling !== undefined) this.tell();
  };

  constructor() {
    addEventListener("popstate", this.leaving, true);
  }

  // What Python sends. Returns whether it decided, by a link or in a place that it found in another run: then all is as it says. Otherwise
  // a change that Python does not know yet stays.
  // `sent.of` is the run that Python places the choice on. What was chosen on the run before goes to Python first, which finds its place in this one.
  /** @param {FromPython} sent */
  take(sent) {
    const of = sent.of ?? "";
    const byLink = sent.stamp !== this.stamp;
    const isMerged = sent.merged !== this.merged;
    const isOther = of !== this.of;
    if (isOther && !byLink) this.leaving();
    if (byLink) this.hush();
    this.of = of;
    if (byLink || isMerged || isOther || sent.reported >= this.number) {
      this.values = { ...sent.values, ...this.untold };
      this.number = Math.max(this.number, sent.reported);
    }
    this.stamp = sent.stamp;
    this.merged = sent.merged;
    this.follow = sent.follow;
    this.show();
    return byLink || isMerged;
  }

  // A class that follows this screen sees the room as it came, and what is chosen otherwise.
  show() {
    if (!this.follow) return;
    const { room, drawn, base, most } = this.follow;
    const chosen = drawn
      ? Object.fromEntries(
          Object.entries({ ...this.values, ...this.beside }).filter(([name, text]) => text !== base[name]),
        )
      : {};
    const length = JSON.stringify(chosen).replace(/[^ -~]/g, "\\u0000").length; // as it travels; of more the class hears when Python knows it
    if (length <= most) classroom.show({ view: room, run: drawn, text: "", with: chosen, labels: () => [] }, this);
  }

  /** The class that follows hears of something that no link says. @param {Record<string, string>} beside */
  tellClass(beside) {
    this.beside = beside;
    this.show();
  }

  // The visitor changes something.
  /** @param {Record<string, string>} changes @param {boolean} [atOnce] */
  choose(changes, atOnce = false) {
    Object.assign(this.values, changes);
    Object.assign(this.untold, changes);
    this.number += 1;
    classroom.chose();
    this.show();
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.tell(), atOnce ? 0 : TELL_AFTER);
  }

  tell() {
    this.hush();
    this.host.choose({ number: this.number, said: { ...this.values }, of: this.of });
  }

  // Nothing is to be told any more.
  hush() {
    clearTimeout(this.telling);
    this.telling = undefined;
    this.untold = {};
  }

  destroy() {
    removeEventListener("popstate", this.leaving, true);
    this.hush();
    classroom.leave(this);
  }
}

// A whole number that a text says, or the other one
/** @param {string | undefined} text @param {number} [otherwise] */
export const whole = (text, otherwise = 0) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : otherwise);
