// Written by `make format` from the words that Python gives to the browser (scripts/word_types.py).
export const WORDS: {
  "question": string;
  "figure": string;
  "column": string;
  "curve": string;
  "handle": string;
  "guess": string;
  "less": string;
  "more": string;
  "examples": string;
  "tabs": string;
  "fits": string;
  "not": string;
  "table": string;
  "hide": string;
  "keys_told": { "arrows": string; "+": string; "-": string; "pages": string; "f": string; "v": string; " ": string; };
};
