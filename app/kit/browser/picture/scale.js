// From a number to a place and to a colour: linear, logarithmic, by row and signed. Both ends of every colour are the palette's.

import { colours } from "../colours.js";
import { clamp } from "../dom.js";

const DECADES = 4; // of the logarithmic scale: from a ten-thousandth of the top

/** @typedef {{low: number, high: number}} Ends The numbers whose colours are the ends of a scale */
/** @typedef {{fill: string, ink: string, packed: number}} Tone A colour, and black or white to be read on it */
/** @typedef {(t: number) => Tone} Scale */
/** @typedef {{readonly ramp: string[], readonly ahead: string[]}} Ramps */

// ------------------------------------------------------------------ places

/** @param {number} low @param {number} high @param {number} from @param {number} to @returns {(x: number) => number} */
export const linear = (low, high, from, to) => (x) => from + ((x - low) / (high - low)) * (to - from);

// Numbers below `low`, which may have no logarithm, have its place.
/** @param {number} low @param {number} high @param {number} from @param {number} to @returns {(x: number) => number} */
export function logarithmic(low, high, from, to) {
  const place = linear(Math.log(low), Math.log(high), from, to);
  return (x) => place(Math.log(Math.max(x, low)));
}

// Round steps for an axis
/** @param {number} low @param {number} high @param {number} [parts] */
export function ticks(low, high, parts = 4) {
  const rough = (high - low) / parts || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * size).find((by) => by >= rough) ?? rough;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++)
    found.push(Number((at * step).toPrecision(8)));
  return found;
}

// ------------------------------------------------------------------ colours

/** @type {WeakMap<string[], Tone[]>} */
const TONES = new WeakMap(); // of each ramp of the palettes

/** @param {string[]} ramp */
function tones(ramp) {
  let found = TONES.get(ramp);
  if (!found) {
    const { css, ink, packed } = colours(ramp);
    TONES.set(ramp, (found = css.map((fill, i) => ({ fill, ink: ink[i], packed: packed[i] }))));
  }
  return found;
}

// 0 to 255 for a share from 0 to 1; what is no number stands at the beginning
/** @param {number} t */
export const level = (t) => Math.round(255 * clamp(t, 0, 1)) || 0;

// From 0 to 1: nothing to all
/** @param {Pick<Ramps, "ramp">} palette @returns {Scale} */
export function rising({ ramp }) {
  const more = tones(ramp);
  return (t) => more[level(t)];
}

// From −1 to 1. Blue is positive, more, rises; purple is negative, less, falls. Both begin alike at 0.
/** @param {Ramps} palette @returns {Scale} */
export function signed({ ramp, ahead }) {
  const [more, less] = [tones(ramp), tones(ahead)];
  return (t) => (t < 0 ? less : more)[level(Math.abs(t))];
}

// A number from −1 to 1 further from 0, so that small ones show
/** @param {number} t */
export const rooted = (t) => Math.sign(t) * Math.sqrt(Math.abs(t));

// The flat colours of a sign, for bars and legends
/** @param {Ramps} palette */
export const signs = ({ ramp, ahead }) => ({ more: ramp[3], less: ahead[3] });

// ------------------------------------------------------------------ weights of attention

// The default ends of a scale whose largest value is `top`
/** @param {"linear" | "log"} scale @param {number} top @param {number[] | null} bounds @returns {Ends} */
export function endsOf(scale, top, bounds = null) {
  const [low, high] = bounds ?? [0, top];
  return { low: scale === "log" && !low ? high / 10 ** DECADES : low, high };
}

// 0 to 255 for a value between both ends
/** @param {"linear" | "log"} scale @param {number} value @param {Ends} ends */
export function levelOf(scale, value, { low, high }) {
  if (scale === "linear") return clamp(Math.round(((value - low) * 255) / (high - low)), 0, 255);
  return value > 0 ? clamp(Math.round((255 * Math.log10(value / low)) / Math.log10(high / low)), 0, 255) : 0;
}

// The level of each byte of a small map, whose weights travel as square roots
/** @param {"linear" | "log"} scale @param {Ends} ends */
export const levelsOfRoots = (scale, ends) =>
  Uint8Array.from({ length: 256 }, (_, root) => levelOf(scale, (root / 255) ** 2, ends));
