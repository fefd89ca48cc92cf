// Runs that ended before and are kept, with their looks at an example: what Train shows where no one has pressed anything yet.

import { unpack } from "../../../kit/browser/messages.js";
import { EXAMPLES } from "./constants.js";
import { looksOf } from "./following.js";

/** @typedef {import("./types.js").Run} Run */

export class Finished {
  /** @type {Map<string, string>} The last example of each task that could be looked at */
  good = new Map();

  /** @param {import("../../../kit/browser/fetcher.js").Fetcher} remote */
  constructor(remote) {
    this.remote = remote;
  }

  // Whether something that was asked for is on its way
  get isComing() {
    return this.remote.underway.size > 0;
  }

  // A run and its twin, as the server has them ([task]: its twins); null for one that is not kept, or on its way
  /** @param {Record<string, string[]>} there @param {string} task @param {string} twin @param {string} example @returns {[Run | null, Run | null]} */
  pair(there, task, twin, example) {
    if (!there[task]?.includes("none")) return [null, null];
    const run = this.get(task, "none", example);
    return [run, run && twin !== "none" && there[task].includes(twin) ? this.get(task, twin, example) : null];
  }

  // Kept runs look at the task's own example at every frame, and at another one with their last frame, whose weights are there.
  /** @param {string} task @param {string} twin @param {string} example @returns {Run | null} */
  get(task, twin, example) {
    const spec = { task, twin, seed: "0", from: "0" };
    const found = this.remote.get("train/finished", { task, twin }, (bytes) => runOf(bytes, spec));
    if (!found || found.refused) return null;
    if (example === EXAMPLES[task]) return found;
    const other = this.remote.get("train/looks", { ...spec, example, after: String(endOf(found)) }, looksOf);
    if (other?.refused) {
      const kept = this.get(task, twin, this.good.get(task) ?? EXAMPLES[task]);
      return kept && { ...kept, refused: other.refused };
    }
    if (other) this.good.set(task, example);
    return {
      ...found,
      shown: example,
      seen: other?.seen ?? null,
      looks: new Map(other?.looks?.map((one) => [one.step, one])),
    };
  }
}

/** The step of a run's last frame @param {Run} run */
export const endOf = (run) => run.frames.at(-1)?.step ?? 0;

/** @param {Uint8Array} bytes @param {Record<string, string>} spec @returns {Run} */
function runOf(bytes, spec) {
  const [{ points, frames, moments, seeds, leads }] = unpack(bytes);
  const { seen, looks } = looksOf(bytes);
  return {
    spec,
    points,
    frames,
    seen,
    moments,
    seeds,
    leads,
    looks: new Map(looks.map((one) => [one.step, one])),
    state: "ended",
    heard: true,
    place: 0,
    seconds: 0,
    why: "",
    refused: "",
    shown: EXAMPLES[spec.task],
  };
}
