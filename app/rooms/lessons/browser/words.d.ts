// What Python writes into words.js (app/rooms/lessons/checks.py).
export const ANSWER: Record<string, string>; // names in braces are filled in
export const NO_ANSWER: Record<string, string>; // by kind of step
