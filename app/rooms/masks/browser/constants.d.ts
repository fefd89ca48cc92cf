// What Python writes into constants.js (app/rooms/masks/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", any>;
export const REASONS: string[];
export const WHOLE: number;
export const STEP: number;
export const SHOWN: number;
export const STYLE: string;
