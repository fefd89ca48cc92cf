// What Python writes into constants.js (app/classroom/component.py).
export const WORDS: Record<string, any>; // sentences, and pairs of them
export const PALETTES: Record<"light" | "dark", Record<string, any>>;
export const STYLE: string;
export const ALPHABET: string;
