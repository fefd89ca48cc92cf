// What Python writes into constants.js (app/rooms/train/component.py).
export const WORDS: Record<string, any>; // sentences, and tables of them
export const PALETTES: Record<"light" | "dark", Record<string, any>>;
export const EXAMPLES: Record<string, string>;
export const STYLE: string;
