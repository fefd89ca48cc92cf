// Written by Python into constants.js (app/shell/refused.py).
export { WORDS } from "./wordtypes.js";
export const COLOURS: Record<"light" | "dark", { background: string; ink: string; line: string }>;
