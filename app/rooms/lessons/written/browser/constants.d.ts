// Written by Python into constants.js (app/rooms/lessons/component.py).
export { WORDS } from "./wordtypes.js";
export const STYLE: string;
