// What Python writes into constants.js (app/rooms/positions/component.py).
export { WORDS } from "./wordtypes.js";
export const PALETTES: Record<
  "light" | "dark",
  Record<string, any> & { ramp: string[]; ahead: string[]; mute: string }
>;
export const STYLE: string;
