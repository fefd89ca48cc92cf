// What Python writes into constants.js (app/rooms/shapes/component.py).
export const WORDS: Record<string, any>; // sentences, and tables of them
export const PALETTES: Record<"light" | "dark", import("./types.js").Palette>;
export const STYLE: string;
