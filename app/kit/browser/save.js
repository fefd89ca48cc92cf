// Downloads and the clipboard.

import { el, fill } from "./dom.js";
import { WORDS as words } from "./words.js";
import { pointed } from "./language.js";

const UNITS = ["bytes", "kB", "MB"];
const KEPT_FOR = 60_000; // ms until the browser has surely begun to write the file

// Has the browser keep a file; returns the sentence that says so.
/** @param {string} name @param {Blob} blob */
export function save(name, blob) {
  const link = el("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_FOR);
  return fill(words.export_saved, { name, size: sizeOf(blob.size) });
}

/** @param {number} bytes */
export function sizeOf(bytes) {
  let [size, unit] = [bytes, 0];
  while (size >= 1000 && unit < UNITS.length - 1) [size, unit] = [size / 1000, unit + 1];
  return pointed(`${size.toFixed(unit ? 1 : 0)} ${UNITS[unit]}`);
}

// Whether a text is on the clipboard now; it is not without permission, or without a secure connection.
/** @param {string} text */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
