// A lesson that the visitor writes: kept in this browser, with the text that stood there before, and sent to be read.

import { ASKED } from "../../../kit/browser/language.js";

/** @typedef {{name: string, text: string}} Draft */
/** @typedef {import("./types.js").Fault} Fault */
/** @typedef {{refused?: string, faults?: Fault[], hints?: Fault[], step?: string, steps?: import("./types.js").Sketch[], truth?: import("./types.js").Truth, language?: string, pictures?: {text: string, words: [string, number][]}[]}} Said */

export const MOST_BYTES = 65_536; // of a file; the server says the same of more
export const MOST_KEPT = 200_000; // characters
/** @type {Set<string>} Lessons that were brought since the rail last looked: answers to an earlier one of the same name are none to it */
export const BROUGHT = new Set();
const KEYS = { now: "headlight.lessons.draft", before: "headlight.lessons.draft.before" };

/** @param {keyof typeof KEYS} which @returns {Draft | null} null where there is none */
export function draft(which = "now") {
  try {
    const { name, text } = JSON.parse(localStorage.getItem(KEYS[which]) ?? "null") ?? {};
    return typeof text === "string" ? { name: String(name), text } : null;
  } catch {
    return null; // storage is blocked, or someone else wrote there
  }
}

/** Whether it is kept now. @param {Draft} of @param {keyof typeof KEYS} which */
export function keepDraft(of, which = "now") {
  if (of.text.length > MOST_KEPT) return false;
  try {
    localStorage.setItem(KEYS[which], JSON.stringify(of));
    return true;
  } catch {
    return false;
  }
}

/** Another text in place of the one that is kept, which stays beside it. @param {Draft} next */
export function replaceDraft(next) {
  const before = draft();
  if (before && before.text !== next.text) keepDraft(before, "before");
  return keepDraft(next);
}

/** The text of a file; null where it is not UTF-8. @param {Blob} file */
export async function textOf(file) {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    return null;
  }
}

/**
 * The server’s word on a lesson; a sentence where it refuses it, and `unreachable` where it does not answer.
 * @param {string} path @param {Blob | string} body @param {string} unreachable @param {AbortSignal} [signal] @returns {Promise<Said>}
 */
export async function sent(path, body, unreachable, signal) {
  const address = new URL(`headlight/lessons/${path}`, document.baseURI);
  try {
    const answer = await fetch(address, { method: "POST", body, headers: ASKED, signal });
    return answer.ok ? await answer.json() : { refused: await answer.text() };
  } catch {
    return { refused: unreachable };
  }
}

/** The file that is dropped, where it may be a lesson: a config.json is the page's. @param {DragEvent} e */
export function droppedFile(e) {
  const file = e.dataTransfer?.files[0];
  return file && !file.name.toLowerCase().endsWith(".json") ? file : null;
}
