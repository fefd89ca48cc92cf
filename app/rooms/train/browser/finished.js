// Runs that ended before and are kept, with their looks at the task's example: what Train shows where nobody has pressed anything yet.

import { unpack } from "../../../kit/browser/messages.js";
import { Remote } from "../../../kit/browser/remote.js";
import { looksOf } from "./following.js";

/** @typedef {import("./types.js").Run} Run */

export class Finished {
  /** @param {() => void} arrived */
  constructor(arrived) {
    this.remote = new Remote("", arrived);
  }

  // Whether something that was asked for is on its way
  get isComing() {
    return this.remote.underway.size > 0;
  }

  // A run and its twin, as the server has them ([task]: its twins); null for one that is not kept, or on its way
  /** @param {Record<string, string[]>} there @param {string} task @param {string} twin @returns {[Run | null, Run | null]} */
  pair(there, task, twin) {
    if (!there[task]?.includes("none")) return [null, null];
    const run = this.get(task, "none");
    return [run, run && twin !== "none" && there[task].includes(twin) ? this.get(task, twin) : null];
  }

  /** @param {string} task @param {string} twin @returns {Run | null} */
  get(task, twin) {
    const found = this.remote.get("train/finished", { task, twin }, (bytes) => runOf(bytes, { task, twin, seed: "0", from: "0" }));
    return found?.refused === undefined ? found : null;
  }
}

/** @param {Uint8Array} bytes @param {Record<string, string>} spec @returns {Run} */
export function runOf(bytes, spec) {
  const [{ points, frames }] = unpack(bytes);
  const { seen, looks } = looksOf(bytes);
  return { spec, points, frames, seen, looks: new Map(looks.map((one) => [one.step, one])), state: "ended", heard: true, place: 0, seconds: 0, why: "" };
}
