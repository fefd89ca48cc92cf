// Written into constants.js by Python (app/rooms/memory/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<"light" | "dark", import("./types.js").Palette>;
export const STYLE: string;
