// Questions of the visitor: told to Python at once under a number that rises, and merged with those that are not answered yet.

/** @typedef {import("./types.js").Asked} Asked */
const PATIENCE = 6000; // ms, after which it is told again: it can be lost with a script that is broken off
const TELLS = 3;

export class Asks {
  last = 0; // the number of what was asked last
  /** @type {Asked} Not answered yet */
  waiting = {};
  left = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;

  /** @param {(told: {id: number, set: Asked}) => void} tell @param {() => void} [lost] no answer comes any more */
  constructor(tell, lost = () => {}) {
    this.tell = tell;
    this.lost = lost;
  }

  get isWaiting() {
    return Object.keys(this.waiting).length > 0;
  }

  /** @param {Asked} set */
  ask(set) {
    this.last += 1;
    this.waiting = { ...this.waiting, ...set };
    this.left = TELLS;
    this.#told();
  }

  #told() {
    clearTimeout(this.timer);
    this.left -= 1;
    this.timer = setTimeout(() => (this.left > 0 ? this.#told() : this.#forget()), PATIENCE);
    this.tell({ id: this.last, set: this.waiting });
  }

  #forget() {
    this.end();
    this.lost();
  }

  /** Python has answered up to this number. Returns whether that is all that was asked. @param {number} id */
  answered(id) {
    if (id < this.last && this.isWaiting) return false;
    this.last = Math.max(this.last, id); // of a page that was here before
    this.end();
    return true;
  }

  end() {
    clearTimeout(this.timer);
    this.waiting = {};
  }
}
