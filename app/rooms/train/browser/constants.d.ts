// What Python writes into constants.js (app/rooms/train/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", import("./types.js").Palette>;
export const EXAMPLES: Record<string, string>;
export const STYLE: string;
