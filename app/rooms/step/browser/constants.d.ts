// What Python writes into constants.js (app/rooms/step/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", import("./types.js").Palette>;
export const DIVISOR: [low: number, high: number];
export const OPENS_AT: string; // the station of a run that no link has named
export const STYLE: string;
