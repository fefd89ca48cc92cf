// What Python writes into write_constants.js (app/rooms/lessons/component.py).
export { WRITE } from "./wordtypes.js";
export const WRITE_STYLE: string;
