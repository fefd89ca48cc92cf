// What Python writes into words.js (app/rooms/lessons/checks.py).
export { ANSWER, NO_ANSWER, REPLY } from "./wordtypes.js";
