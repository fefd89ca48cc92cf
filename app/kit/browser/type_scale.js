// Tells Python how large the type of the page is, and whether the page is projected: pictures that Python makes follow it.

const SETTLED = 200; // ms without a change of the window's size
const TELLS = 5;
const ANSWERED = 1000; // ms in which Python answers, unless it never heard

/** @typedef {{header: {scale: number}, host: import("./types.js").Host, isProjected: boolean}} Room */

// The size of the page's type, in units of 16 pixels
const now = () => Math.round((parseFloat(getComputedStyle(document.documentElement).fontSize) / 16) * 10) / 10;

export class TypeScale {
  /** @type {number | undefined} A timer, while the window changes its size */
  waiting;
  /** @type {number | undefined} The size of the type that Python was told */
  said;
  left = 0; // times that it may still be told
  /** @type {number | undefined} A timer, while Python is given the time to answer */
  asked;

  /** @param {Room} room @param {AbortSignal} leaving */
  constructor(room, leaving) {
    this.room = room;
    leaving.addEventListener("abort", () => {
      clearTimeout(this.waiting);
      clearTimeout(this.asked);
    });
  }

  get scale() {
    return now();
  }

  /** The room was drawn. @param {Set<string>} stale */
  drawn(stale) {
    clearTimeout(this.waiting);
    if (stale.has("size")) this.waiting = setTimeout(() => this.measure(), SETTLED);
    else this.measure();
  }

  // What was told can be lost with a script that is broken off, so it is told again where no answer knows it; not for ever, since
  // Python takes no size that is out of the way. Data that comes meanwhile was on its way before, and is no answer.
  measure() {
    const { scale, room } = this;
    if (scale !== this.said) {
      this.left = TELLS;
      clearTimeout(this.asked);
      this.asked = undefined;
    }
    if (scale === room.header.scale || this.asked || !this.left) return;
    this.left -= 1;
    this.said = scale;
    room.host.tell("page", { scale, projected: room.isProjected });
    this.asked = setTimeout(() => {
      this.asked = undefined;
      this.measure();
    }, ANSWERED);
  }
}
