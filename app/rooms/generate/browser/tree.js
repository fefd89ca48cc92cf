// The tree of all that was written after a text, as JSON: each word with its chance, and the words that were written after it.

import { known } from "./chances.js";

/**
 * @typedef {{id: number, word: string, probability?: number, rank?: number, taken?: true, beam?: "kept" | "dropped", log_probability?: number, next: Branch[]}} Branch
 */

// probability and rank are the model's own; a word of a beam search has the log-probability of its whole text instead, in nats
/** @param {import("./types.js").Scene} scene @param {import("./writing.js").Writing} writing @param {string[]} about */
export function treeJson(scene, writing, about) {
  /** @type {Branch[]} */
  const next = [];
  /** @param {number[]} path */
  const grow = (path) => {
    /** @type {Branch[]} */
    const along = [];
    let among = next;
    path.forEach((id, i) => {
      let branch = among.find((other) => other.id === id);
      if (!branch) {
        const node = writing.node(path.slice(0, i));
        const chance = node && known(node, id, scene.header.vocab);
        branch = {
          id,
          word: scene.label(id),
          ...(chance ? { probability: Number(chance.prob.toPrecision(7)), rank: chance.rank } : {}),
          next: [],
        };
        among.push(branch);
      }
      along.push(branch);
      among = branch.next;
    });
    return along;
  };
  for (const branch of grow(scene.path)) branch.taken = true;
  for (const path of scene.others) grow(path);
  for (const { kept, dropped } of scene.grown)
    for (const [beam, beams] of /** @type {const} */ ([
      ["kept", kept],
      ["dropped", dropped],
    ]))
      for (const { path, logProb } of beams)
        Object.assign(/** @type {Branch} */ (grow(path).at(-1)), {
          beam,
          log_probability: Number(logProb.toPrecision(7)),
        });
  return JSON.stringify({ about, text: writing.names, ids: scene.prompt, next }, null, 1) + "\n";
}
