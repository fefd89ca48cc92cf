// By which numbers the map of all heads is coloured where a run is shown: routes of the run answer them, one number for each head.

import { fixed, percent } from "./dom.js";
import { json, unpack } from "./messages.js";
import { sinkOf } from "./sink.js";
import { WORDS as words } from "./words.js";

/** @typedef {import("./chooser.js").Measure} Measure */

/** @param {Uint8Array} bytes */
const numbers = (bytes) => ({ values: new Float32Array(unpack(bytes)[1]) });

/** @param {Uint8Array} bytes */
const metrics = (bytes) => {
  /** @type {{previous: (number | null)[][]}} */
  const read = json(bytes);
  return { previous: Float32Array.from(read.previous.flat(), (x) => x ?? NaN) };
};

// The additions of heads to the logit of the likeliest word, [layer, head]
/** @param {Uint8Array} bytes */
export const added = (bytes) => {
  const [header, body] = unpack(bytes);
  return { word: String(header.words[0][0]), values: new Float32Array(body) };
};

const NONE = new Float32Array(); // of a model whose logits are no sum over heads

/** @type {WeakMap<import("./sink.js").Sink, Float32Array>} */
const shares = new WeakMap();
/** @param {import("./sink.js").Sink} sink */
export function sharesOf(sink) {
  const found = shares.get(sink) ?? Float32Array.from(sink.shares.flat());
  shares.set(sink, found);
  return found;
}

/**
 * The share that each head gives from one token to another, to the token that most rest on, and to the token just before; and what it
 * adds to the next word, where a model writes.
 * @param {import("./stage.js").Stage<any, any, any>} room
 * @param {{site: string, query?: number, key?: number, labels: [query: string[], key: string[]], isCross?: boolean}} of
 * @returns {Measure[]}
 */
export function headMeasures(room, { site, query, key, labels, isCross = false }) {
  const [queries, keys] = labels;
  /** @type {Measure[]} */
  const found = [];
  if (query !== undefined && key !== undefined && queries[query] !== undefined && keys[key] !== undefined)
    found.push({
      id: "look",
      name: words.heads_look,
      title: words.heads_look_title,
      parts: { query: [queries[query], "q"], key: [keys[key], "k"] },
      values: () => room.ask("looks", { site, query, key }, numbers)?.values ?? null,
      say: percent,
    });
  if (query !== undefined && queries[query] !== undefined && site !== "encoder") {
    const after = [queries[query], "q"];
    /** @type {Measure} */
    const adds = {
      id: "adds",
      name: words.heads_adds,
      title: words.heads_adds_wait,
      note: words.heads_adds_note,
      parts: { query: after },
      isSigned: true,
      values: () => {
        const answer = room.ask("additions", { site, query, candidate: 0 }, added);
        if (answer?.refused) return NONE;
        if (answer)
          Object.assign(adds, { title: words.heads_adds_title, parts: { query: after, word: [answer.word, "a"] } });
        return answer?.values ?? null;
      },
      say: (x) => `${x > 0 ? "+" : ""}${fixed(x, 2)}`,
    };
    found.push(adds);
  }
  const sink = sinkOf(room, site);
  if (sink?.key !== null && sink?.key !== undefined)
    found.push({
      id: "first",
      name: words.heads_first,
      title: words.heads_first_title,
      parts: { key: [keys[sink.key] ?? "", "k"] },
      values: () => sharesOf(sink),
      say: percent,
    });
  if (!isCross)
    found.push({
      id: "back",
      name: words.heads_back,
      title: words.heads_back_title,
      values: () => room.ask("metrics", { site }, metrics)?.previous ?? null,
      say: percent,
    });
  return found;
}
