// Written by `make format` from the words that Python gives to the browser (scripts/word_types.py).
export const WORDS: {
  "title": string;
  "why": string;
  "tries": [string, string, string, string];
  "dropped": { "close": string; "large": string; "unreachable": string; };
};
