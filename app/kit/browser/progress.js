// Which steps of the lessons were looked at, and which of them were known: kept by this browser alone, a bit for each.

const KEY = "headlight.lessons";
const TOLD = "headlight:lessons"; // an event of the window, when it changes
let kept = ""; // where the browser keeps nothing

/** @typedef {"known" | "second"} Way A step was known at once, or at the second try; of any other the answer was shown */

// Bits as text: hexadecimal, the first step in the lowest bit. After a dot those that were known, after another those of the second try.
/** @param {string} text @returns {Set<number> | null} null where it is no such text */
export function read(text) {
  return /^[0-9a-f]{0,16}(\.[0-9a-f]{0,16}){0,2}$/i.test(text) ? bitsOf(text.split(".")[0]) : null;
}

/** @param {string} text @returns {Map<number, Way>} */
export function readWays(text) {
  const [, known = "", second = ""] = read(text) ? text.split(".") : [];
  return new Map([
    ...[...bitsOf(second)].map((i) => /** @type {[number, Way]} */ ([i, "second"])),
    ...[...bitsOf(known)].map((i) => /** @type {[number, Way]} */ ([i, "known"])),
  ]);
}

/** @param {string} text */
function bitsOf(text) {
  const bits = BigInt(`0x${text || "0"}`);
  /** @type {Set<number>} */
  const found = new Set();
  for (let i = 0; i < 64; i++) if ((bits >> BigInt(i)) & 1n) found.add(i);
  return found;
}

/** @param {Iterable<number>} steps @param {Map<number, Way>} [known] */
export function write(steps, known = new Map()) {
  const of = (/** @type {Way} */ way) => textOf([...known].filter((one) => one[1] === way).map(([i]) => i));
  return [textOf(steps), of("known"), of("second")].join(".").replace(/(\.0)+$/, "");
}

/** @param {Iterable<number>} steps */
function textOf(steps) {
  let bits = 0n;
  for (const i of steps) bits |= 1n << BigInt(i);
  return bits.toString(16);
}

function stored() {
  try {
    return localStorage.getItem(KEY) ?? kept;
  } catch {
    return kept; // storage is blocked: kept as long as the page is open
  }
}

/** @param {number} of how many steps there are @returns {Set<number>} */
export function done(of) {
  return new Set([...(read(stored()) ?? [])].filter((i) => i < of));
}

// How each step was answered, of those that were known at once or at the second try
export const ways = () => readWays(stored());

/** @param {Set<number>} steps @param {Map<number, Way>} [known] */
export function keep(steps, known = ways()) {
  kept = write(steps, known);
  try {
    localStorage.setItem(KEY, kept);
  } catch {
    // see above
  }
  dispatchEvent(new Event(TOLD));
}

// Told of every change, in this window or in another one of the same browser
/** @param {() => void} hear @param {AbortSignal} signal */
export function watch(hear, signal) {
  addEventListener(TOLD, hear, { signal });
  addEventListener("storage", (e) => e.key === KEY && hear(), { signal });
}
