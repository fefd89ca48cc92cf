// What Python writes into constants.js (app/attention/component.py).
import type { Palette } from "./types.js";

export const WORDS: Record<string, any>; // sentences, and tables of them
export const PALETTES: Record<"light" | "dark", Palette>;
export const OPTIONS: Record<string, { url: string; value: unknown }>;
export const STYLE: string;
