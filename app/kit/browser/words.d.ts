// What Python writes into words.js (app/kit/scripts.py).
export const WORDS: Record<string, string>;
export const COLOURS: Record<"light" | "dark", Record<string, string>>;
export const STYLE: string;
