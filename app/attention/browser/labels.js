// Names of tokens in a sentence: of a word that the text has more than once, which of them it is.

const DIGITS = [..."₀₁₂₃₄₅₆₇₈₉"];
const MOST = 99; // of one word: above, its number would be longer than the word

/** @param {string[]} labels @param {number} at @returns {string} */
export function indexed(labels, at) {
  const label = labels[at] ?? "";
  if (!/[\p{L}\p{N}]/u.test(label)) return label; // signs are said as they are
  let count = 0;
  let which = 0;
  for (let i = 0; i < labels.length; i++) {
    if (labels[i] !== label) continue;
    count += 1;
    if (i === at) which = count;
  }
  if (count < 2 || count > MOST) return label;
  return label + [...String(which)].map((digit) => DIGITS[Number(digit)]).join("");
}
