// Numbers as they are shown, and sums whose shown numbers add up.

import { fixed } from "../../../kit/browser/dom.js";

// The parts of a sum, rounded so that what is shown adds up: each to a neighbouring step of the last digit, those nearest to
// theirs first. Where there are others, they take what is left, so that every part is rounded as ever.
/**
 * @param {number} total
 * @param {number[]} parts that are shown
 * @param {{others?: boolean, digits?: number}} [options]
 * @returns {{total: number, parts: number[], others: number}} in units of the last digit
 */
export function addUp(total, parts, { others = false, digits = 2 } = {}) {
  const unit = 10 ** digits;
  const steps = (/** @type {number} */ value) => Math.round(value * unit) + 0; // never −0
  const whole = steps(total);
  const rounded = parts.map(steps);
  const left = whole - rounded.reduce((a, b) => a + b, 0);
  if (others || !left || !parts.length) return { total: whole, parts: rounded, others: others ? left : 0 };
  const sign = Math.sign(left);
  // Who was rounded furthest the other way is moved first; none by more than one, unless rounding cannot explain it.
  const order = parts
    .map((part, i) => ({ i, gain: sign * (part * unit - rounded[i]) }))
    .sort((a, b) => b.gain - a.gain);
  for (let step = 0; step < Math.abs(left); step++) rounded[order[step % order.length].i] += sign;
  return { total: whole, parts: rounded, others: 0 };
}

// A number in units of the last digit, as text
/** @param {number} units @param {number} digits */
export const ofUnits = (units, digits) => fixed(units / 10 ** digits, digits);

/** @param {ArrayLike<number>} values */
export function length(values) {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] * values[i];
  return Math.sqrt(sum);
}

// Mean and deviation (of all, not of a sample)
/** @param {ArrayLike<number>} values @returns {[mean: number, deviation: number]} */
export function spread(values) {
  const n = values.length;
  let sum = 0;
  for (let i = 0; i < n; i++) sum += values[i];
  const mean = sum / n;
  let squares = 0;
  for (let i = 0; i < n; i++) squares += (values[i] - mean) ** 2;
  return [mean, Math.sqrt(squares / n)];
}

// Where the number of the largest magnitude is
/** @param {ArrayLike<number>} values */
export function largest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++)
    if (Math.abs(values[i]) > Math.abs(values[best]) || Number.isNaN(values[best])) best = i;
  return best;
}

// The magnitude that gets the full colour: the 98.5th of a hundred, so that one outlier does not pale the rest
/** @param {ArrayLike<number>} values */
export function limit(values) {
  const found = Float64Array.from(values, Math.abs).filter(Number.isFinite).sort();
  return found[Math.min(found.length - 1, Math.floor(found.length * 0.985))] || 1;
}
