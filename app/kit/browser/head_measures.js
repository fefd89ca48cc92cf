// By which numbers the map of all heads is coloured where a run is shown: routes of the run answer them, one number for each head.

import { share } from "./dom.js";
import { unpack } from "./messages.js";
import { WORDS as words } from "./words.js";

/** @typedef {import("./chooser.js").Measure} Measure */

/** @param {Uint8Array} bytes */
const numbers = (bytes) => ({ values: new Float32Array(unpack(bytes)[1]) });

/** @param {Uint8Array} bytes */
const metrics = (bytes) => {
  /** @type {Record<"sink" | "previous", (number | null)[][]>} */
  const read = JSON.parse(new TextDecoder().decode(bytes));
  const flat = (/** @type {(number | null)[][]} */ rows) => Float32Array.from(rows.flat(), (x) => x ?? NaN);
  return { sink: flat(read.sink), previous: flat(read.previous) };
};

/**
 * What each head gives from one token to another, what it rests on the first token, and what it gives to the token just before.
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
      say: share,
    });
  const all = () => room.ask("metrics", { site }, metrics);
  found.push({
    id: "first",
    name: words.heads_first,
    title: words.heads_first_title,
    parts: { key: [keys[0] ?? "", "k"] },
    values: () => all()?.sink ?? null,
    say: share,
  });
  if (!isCross)
    found.push({
      id: "back",
      name: words.heads_back,
      title: words.heads_back_title,
      values: () => all()?.previous ?? null,
      say: share,
    });
  return found;
}
