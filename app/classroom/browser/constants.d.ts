// What Python writes into constants.js (app/classroom/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", Record<string, any>>;
export const STYLE: string;
export const ALPHABET: string;
