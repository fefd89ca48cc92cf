// What Python writes into constants.js (app/rooms/generate/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", import("./types.js").Palette>;
export const TEMPERATURES: number[];
export const MOST_K: number;
export const BEAMS: [number, number];
export const BRANCHES: number;
export const STYLE: string;
