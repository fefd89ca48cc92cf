// What Python writes into constants.js (app/attention/component.py).
import type { Palette } from "./types.js";

export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", Palette>;
export const OPTIONS: Record<string, string>;
export const STYLE: string;
