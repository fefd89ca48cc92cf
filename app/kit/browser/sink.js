// The token that most heads rest on, named once in a room, and a switch that takes it out of the colours: numbers stay as they are.

import { el, fill, quoted, setAll, phrase } from "./dom.js";
import { rising } from "./picture/scale.js";
import { WORDS as words } from "./words.js";
import { unpack } from "./messages.js";

/** @typedef {import("./picture/scale.js").Scale} Scale */
/** @typedef {import("./picture/scale.js").Tone} Tone */
/** The answer of the route. @typedef {{key: number | null, is: boolean, between: [number, number], shares: number[][]}} Sink */

export const LEAST_TOP = 0.1; // of the colours of the other cells: below it, what is nothing would look like something

/**
 * The sink of a kind of attention; null while it is on its way, or where it was refused.
 * @param {Pick<import("./stage.js").Stage<any, any, any>, "ask">} room @param {string} site @returns {Sink | null}
 */
export function sinkOf(room, site) {
  const found = room.ask("sink", { site }, read);
  return found && !found.refused ? found : null;
}

/** @param {Uint8Array} bytes @returns {Sink} */
function read(bytes) {
  const [{ layers, heads, ...said }, body] = unpack(bytes);
  const shares = new Float32Array(body);
  const row = (/** @type {number} */ layer) => [...shares.subarray(layer * heads, (layer + 1) * heads)];
  return { ...said, shares: Array.from({ length: layers }, (_, layer) => row(layer)) };
}

/** @type {WeakMap<object, string[]>} */
const GREYS = new WeakMap(); // of each palette

/** @param {{ramp: string[], mute: string}} palette */
function greys(palette) {
  let found = GREYS.get(palette);
  if (!found) {
    const [from, to] = [palette.ramp[0], palette.mute].map((hex) =>
      [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)),
    );
    const stop = (/** @type {number} */ t) =>
      `#${from
        .map((c, i) =>
          Math.round(c + (to[i] - c) * t)
            .toString(16)
            .padStart(2, "0"),
        )
        .join("")}`;
    GREYS.set(palette, (found = [0, 0.25, 0.5, 0.75, 1].map(stop)));
  }
  return found;
}

/** The colours of a key that is left out of them. @param {{ramp: string[], mute: string}} palette @returns {Scale} */
export const greyScale = (palette) => rising({ ramp: greys(palette) });

/**
 * The colour of a weight where one key is left out of the colours: that one is grey, and the others have all of the scale.
 * @param {{ramp: string[], mute: string}} palette @param {number} key @param {number} top the largest weight on any other key
 * @returns {(weight: number, at: number) => Tone}
 */
export function toneWithout(palette, key, top) {
  const [grey, scale] = [greyScale(palette), rising(palette)];
  const most = Math.max(LEAST_TOP, top);
  return (weight, at) => (at === key ? grey(weight) : scale(weight / most));
}

// The largest weight of rows of keys, but for one key
/** @param {ArrayLike<number>} weights @param {number} keys in a row @param {number} key */
export function topWithout(weights, keys, key) {
  let top = 0;
  for (let at = 0; at < weights.length; at++) if (at % keys !== key && weights[at] > top) top = weights[at];
  return top;
}

export class SinkLine {
  /** @type {Sink | null} */
  found = null;
  drawn = "";

  /** @param {import("./stage.js").Stage<any, any, any>} room @param {boolean} [hasColours] whether it may be left out of them */
  constructor(room, hasColours = true) {
    this.room = room;
    this.line = el("p", "sink note");
    this.line.hidden = true;
    this.text = el("span");
    this.line.append(this.text);
    this.hasColours = hasColours;
    const toggle = () => room.choose({ sink: room.values.sink === "out" ? "in" : "out" });
    this.switch = room.button(hasColours ? this.line : null, words.sink_out, toggle, words.sink_out_help);
  }

  /** The key that the colours leave out now; null where they leave out none. */
  get key() {
    return this.hasColours && this.room.values.sink === "out" && this.found?.is ? this.found.key : null;
  }

  /** @param {string} site @param {string[]} keys the labels of its keys */
  draw(site, keys) {
    this.found = sinkOf(this.room, site);
    const { found } = this;
    this.line.hidden = !found?.is;
    setAll(this.switch, { "aria-pressed": String(this.key !== null) });
    if (!found?.is || found.key === null) return;
    const of = JSON.stringify([found.key, found.between, keys[found.key], keys.length]);
    if (of === this.drawn) return;
    this.drawn = of;
    const where = found.key === 0 ? words.sink_first : found.key === keys.length - 1 ? words.sink_last : words.sink_at;
    const [low, high] = found.between.map((share) => Math.round(100 * share));
    this.text.replaceChildren(
      ...phrase(words.sink_said, {
        where: fill(where, { i: found.key }),
        token: [quoted(keys[found.key] ?? ""), "k"],
        range: low === high ? `${low} %` : `${low}–${high} %`,
      }),
    );
    this.line.title = fill(words.sink_help, { n: found.shares.flat().length });
  }
}
