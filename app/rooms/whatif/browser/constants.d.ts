// What Python writes into constants.js (app/rooms/whatif/component.py).
import type { Palette } from "./types.js";

export const WORDS: Record<string, any>; // sentences, and tables of them
export const PALETTES: Record<"light" | "dark", Palette>;
export const STYLE: string;
