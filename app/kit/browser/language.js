// The language of the page: how it writes numbers and counts things, and how the server is asked for its sentences.

// The server says it of the page that it sends, and so does a page that works offline.
export const LANGUAGE = globalThis.document?.documentElement?.lang || "en";

// Of a request: the address may have asked for another language than the browser does by itself.
export const ASKED = { "Accept-Language": LANGUAGE };

// One for all: toLocaleString makes its own each time. Thousands are apart in every language, as they are in Python.
const COUNTS = new Intl.NumberFormat(LANGUAGE, { useGrouping: "always" });
const RULES = new Intl.PluralRules(LANGUAGE);
const ORDER = ["zero", "one", "two", "few", "many", "other"]; // of the forms of a word, as CLDR names them
const FORMS = ORDER.filter((name) => RULES.resolvedOptions().pluralCategories.some((known) => known === name));
const POINT = COUNTS.formatToParts(1.5).find(({ type }) => type === "decimal")?.value ?? ".";

/** @type {Record<string, string>} */
const MARKS = { de: "„“" }; // of a quotation, where they are not as in English
const [OPENS, CLOSES] = MARKS[LANGUAGE] ?? "“”";

// A quoted word or text, between the marks of the language
/** @param {string} text */
export const quotation = (text) => `${OPENS}${text}${CLOSES}`;

// A whole number with its thousands apart
/** @param {number} n */
export const number = (n) => COUNTS.format(Math.round(n));

// The same with so many digits after the point
/** @param {number} x @param {number} digits */
export const grouped = (x, digits) =>
  x.toLocaleString(LANGUAGE, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    useGrouping: "always",
  });

// A number that JavaScript wrote, with the language's own sign before its decimals: "0.35" is "0,35" in German.
/** @param {string} text */
export const pointed = (text) => (POINT === "." ? text : text.replace(".", POINT));

// A number that was typed, with the unit or without it; null where it is none. Both signs before the decimals are read in every
// language: "0,5" is typed on an English page too. "1,024" and "1.024" have thousands apart where that is how the page writes them.
/** @param {string} text @param {string} [unit] */
export function numberOf(text, unit = "") {
  let typed = text.trim().replace(/^[−–]/, "-");
  if (unit && typed.toLowerCase().endsWith(unit.toLowerCase())) typed = typed.slice(0, -unit.length);
  typed = typed.replace(/\s+/g, "");
  const group = POINT === "," ? "." : ",";
  if (new RegExp(`^[+-]?[1-9]\\d{0,2}(\\${group}\\d{3})+(\\${POINT}\\d*)?$`).test(typed))
    typed = typed.replaceAll(group, "");
  if (!/^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d{1,3})?$/i.test(typed)) return null;
  const value = Number(typed.replace(",", "."));
  return Number.isFinite(value) ? value : null;
}

// The one of the forms of a word that goes with a number
/** @param {string[]} forms @param {number} n */
export const form = (forms, n) => forms[Math.min(FORMS.indexOf(RULES.select(n)), forms.length - 1)];

// Numbers one after the other, with what does not read as a sign of one of them between them: "0.5, 1.2" is "0,5; 1,2" in German.
/** @param {string[]} numbers */
export const listed = (numbers) => numbers.join(POINT === "," ? "; " : ", ");
