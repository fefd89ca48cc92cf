// The address of a step, and an answer as a link says it.

/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Kind} Kind */

export const AGAIN = "r"; // after the number of a step that a recap asks again: "1.2r" is 1.2 with recap=1

/** @param {string} step */
export const isAgain = (step) => step.endsWith(AGAIN);

// The step of the lesson that it is
/** @param {string} step */
export const once = (step) => (isAgain(step) ? step.slice(0, -AGAIN.length) : step);

/** @param {URLSearchParams} address */
export const stepOf = (address) => (address.get("lesson") ?? "") + (address.get("recap") === "1" ? AGAIN : "");

// An answer as text: places "3" or "1.0,1.1", a number, sizes or options with commas between them
/** @param {Answer | null} answer @returns {string} */
export function written(answer) {
  if (answer === null) return "";
  if (typeof answer === "number") return String(answer);
  if (!Array.isArray(answer)) return "1";
  return answer.map((part) => (Array.isArray(part) ? part.join(".") : String(part))).join(",");
}

// The answer that a link says; null where it says none that this kind of step can have
/** @param {Kind} kind @param {string} text @returns {Answer | null} */
export function read(kind, text) {
  if (!text || text.length > 400) return null;
  const parts = text.split(",");
  const areWhole = (/** @type {string[]} */ some) => some.every((part) => /^\d{1,9}$/.test(part));
  if (kind === "point") {
    const places = parts.map((part) => part.split("."));
    return places.every(areWhole) ? places.map((place) => place.map(Number)) : null;
  }
  if (kind === "drag") return /^-?\d{1,15}(\.\d{1,9})?$/.test(text) ? Number(text) : null;
  if (kind === "shape") return parts.length <= 8 && parts.every((part) => part.length <= 40) ? parts : null;
  if (kind === "choose") return areWhole(parts) ? parts.map(Number) : null;
  return null;
}

// What an address has of its own, and no step gives: a link that a person wrote may change the state of the step.
const OURS = [
  "view",
  "lesson",
  "recap",
  "said",
  "seen",
  "done",
  "contents",
  "write",
  "theme",
  "projector",
  "frozen",
  "spotlight",
  "embed",
  "lang",
];
/** @param {URLSearchParams} address @returns {[string, string][]} */
export function changes(address) {
  if (!address.has("lesson")) return [];
  return [...address].filter(([name, text]) => !OURS.includes(name) && !(name === "at" && /^\d+$/.test(text)));
}

/**
 * Where a step is, with its room's state in full.
 * @param {{step: string, state: Record<string, string>, model?: string, text?: string, target?: string, said?: Answer | null, seen?: boolean, more?: [string, string][]}} of
 */
export function addressOf({ step, state, model, text, target, said = null, seen = false, more = [] }) {
  const query = new URLSearchParams({ view: "lessons", lesson: once(step), seen: seen ? "1" : "0" });
  if (isAgain(step)) query.set("recap", "1");
  const parts = { model, text, target, ...state, said: written(said) };
  for (const [name, value] of Object.entries(parts)) if (value) query.set(name, value);
  for (const [name, value] of more) query.set(name, value);
  return `?${query}`;
}
