// The motion of a step: a moment from 0 to 1 that runs linearly in time; pictures ease inside. Off for visitors who want none.

import { isStill } from "../../../kit/browser/dom.js";

export const FORWARD = 520; // ms of a step
export const BACK = 200;
export const PLAY = 1500; // from step to step while it plays

/** Slow at both ends. @param {number} share */
export const eased = (share) => share * share * (3 - 2 * share);
/** The part of a motion from `from` to `to`, as a share of its own. @param {number} moment @param {number} from @param {number} to */
export const part = (moment, from, to) => Math.max(0, Math.min(1, (moment - from) / (to - from)));
/** @param {number} a @param {number} b @param {number} share */
export const mix = (a, b, share) => a + (b - a) * share;

export class Motion {
  #frame = 0;
  #since = 0;
  /** @type {{from: number, to: number, ms: number, draw: (moment: number) => void, then?: () => void} | null} */
  #run = null;
  moment = 1;

  get isRunning() {
    return this.#run !== null;
  }

  get isBack() {
    return this.#run !== null && this.#run.to < this.#run.from;
  }

  /** @param {number} from @param {number} to @param {number} ms of the whole way @param {(moment: number) => void} draw @param {() => void} [then] */
  play(from, to, ms, draw, then) {
    this.stop();
    this.#run = { from, to, ms: ms * Math.abs(to - from), draw, then };
    if (isStill() || !this.#run.ms) return this.end();
    this.moment = from;
    draw(from);
    this.#since = performance.now();
    this.#frame = requestAnimationFrame(this.#step);
  }

  #step = () => {
    const run = this.#run;
    if (!run) return;
    const share = Math.max(0, (performance.now() - this.#since) / run.ms);
    if (share >= 1) return this.end();
    this.moment = mix(run.from, run.to, share);
    run.draw(this.moment);
    this.#frame = requestAnimationFrame(this.#step);
  };

  // At once to where it leads
  end() {
    const run = this.#run;
    this.stop();
    if (!run) return;
    this.moment = run.to;
    run.draw(run.to);
    run.then?.();
  }

  // It stays where it is
  stop() {
    cancelAnimationFrame(this.#frame);
    this.#run = null;
  }
}
