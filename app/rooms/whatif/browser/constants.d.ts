// What Python writes into constants.js (app/rooms/whatif/component.py).
import type { Palette } from "./types.js";

export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", Palette>;
export const STYLE: string;
