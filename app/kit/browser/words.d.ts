// What Python writes into words.js (app/kit/scripts.py).
export { WORDS } from "./wordtypes.js";
export const COLOURS: Record<"light" | "dark", Record<string, string>>;
export const STYLE: string;
