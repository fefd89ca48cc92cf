// What Python writes into constants.js (app/rooms/step/component.py).
export const WORDS: Record<string, any>; // sentences, and tables of them
export const PALETTES: Record<"light" | "dark", import("./types.js").Palette>;
export const DIVISOR: [low: number, high: number];
export const STYLE: string;
