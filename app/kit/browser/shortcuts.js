// Which keys may be a shortcut of the page, and which belong to what has the focus.

const LETTERLESS = ["button", "checkbox", "radio", "range", "submit", "reset", "color", "file"]; // inputs that take no letters

/** @param {EventTarget | undefined} node @returns {Partial<HTMLInputElement>} */
const asInput = (node) => /** @type {Partial<HTMLInputElement>} */ (node ?? {});

/** Whether a letter that is typed here goes into a text. @param {EventTarget | undefined} node */
export function takesText(node) {
  const { tagName = "", type = "", isContentEditable = false } = asInput(node);
  if (tagName === "INPUT") return !LETTERLESS.includes(type);
  return ["TEXTAREA", "SELECT"].includes(tagName) || isContentEditable;
}

/** Whether the arrow keys do something of their own here. @param {EventTarget | undefined} node */
export function takesArrows(node) {
  const { tagName, type = "" } = asInput(node);
  return takesText(node) || (tagName === "INPUT" && ["range", "radio"].includes(type));
}

const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown"];
const PRESSES = ["BUTTON", "SUMMARY", "A", "INPUT"];

/** Whether a key does something of its own here: it moves a slider, presses a button, or with Shift marks text. @param {KeyboardEvent} e */
export function isOwn(e) {
  const at = e.composedPath()[0];
  if (MOVES.includes(e.key)) return e.shiftKey || takesArrows(at);
  return [" ", "Enter"].includes(e.key) && (e.shiftKey || PRESSES.includes(asInput(at).tagName ?? ""));
}

// Whether a key may be a shortcut: no one has taken it, it is none of the browser's own, and it goes into no text
/** @param {KeyboardEvent} e */
export const isFree = (e) =>
  !(e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || takesText(e.composedPath()[0]));
