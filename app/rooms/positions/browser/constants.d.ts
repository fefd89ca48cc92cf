// What Python writes into constants.js (app/rooms/positions/component.py).
export const WORDS: Record<string, any>; // sentences, and tables of them
export const PALETTES: Record<"light" | "dark", Record<string, any> & { ramp: string[]; ahead: string[] }>;
export const STYLE: string;
