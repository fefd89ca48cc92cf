// A code as people type it, and what is wrong with one that is none.

export const SIGNS = 8;
const BETWEEN = /[\s\p{Pd}.,·_]/u; // what people put between the signs

const LINK = /\/r\/([^/?#]*)/i; // of a class, and in it the code

// The single signs, in capitals, of a text that was typed or pasted: of a link, those of its code
/** @param {string} text */
function signsOf(text) {
  const code = LINK.exec(text)?.[1] ?? text;
  return [...code.normalize("NFKC").toUpperCase()].filter((sign) => !BETWEEN.test(sign));
}

/** The signs of a code: without case, spaces and dashes, and without any sign that no code has. @param {string} text @param {string} alphabet */
export const codeOf = (text, alphabet) =>
  signsOf(text)
    .filter((sign) => alphabet.includes(sign))
    .join("");

/** The signs in it that no code has, each once. @param {string} text @param {string} alphabet */
export const impossible = (text, alphabet) => [...new Set(signsOf(text).filter((sign) => !alphabet.includes(sign)))];

/** How many signs it has. @param {string} text */
export const lengthOf = (text) => signsOf(text).length;
