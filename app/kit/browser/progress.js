// Which steps of the lessons were looked at: kept by this browser alone, a bit for each.

const KEY = "headlight.lessons";
const TOLD = "headlight:lessons"; // an event of the window, when it changes
let kept = ""; // where the browser keeps nothing

// Bits as text: hexadecimal, the first step in the lowest bit
/** @param {string} text @returns {Set<number> | null} null where it is no such text */
export function read(text) {
  if (!/^[0-9a-f]{0,16}$/i.test(text)) return null;
  const bits = BigInt(`0x${text || "0"}`);
  /** @type {Set<number>} */
  const found = new Set();
  for (let i = 0; i < 64; i++) if ((bits >> BigInt(i)) & 1n) found.add(i);
  return found;
}

/** @param {Iterable<number>} steps */
export function write(steps) {
  let bits = 0n;
  for (const i of steps) bits |= 1n << BigInt(i);
  return bits.toString(16);
}

/** @param {number} of how many steps there are @returns {Set<number>} */
export function done(of) {
  let text = kept;
  try {
    text = localStorage.getItem(KEY) ?? kept;
  } catch {
    // storage is blocked: kept as long as the page is open
  }
  return new Set([...(read(text) ?? [])].filter((i) => i < of));
}

/** @param {Set<number>} steps */
export function keep(steps) {
  kept = write(steps);
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
