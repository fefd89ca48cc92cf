// A code as people type it.

/** A code as people type it: without case, spaces and dashes. @param {string} text @param {string} alphabet */
export const codeOf = (text, alphabet) =>
  [...text.toUpperCase()]
    .filter((sign) => alphabet.includes(sign))
    .join("")
    .slice(0, 8);
