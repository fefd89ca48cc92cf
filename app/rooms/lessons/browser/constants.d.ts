// What Python writes into constants.js (app/rooms/lessons/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", Record<string, string>>;
export const LESSONS: string[];
export const STEPS: Record<string, import("./types.js").Step>;
export const TEXTS: Record<string, string>; // by model
export const STYLE: string;
export const PAGE_STYLE: string;
