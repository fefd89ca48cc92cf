// The one way a room, or another part of the page, appears in a browser. Its host is the application, a page that follows a class, a
// notebook cell, an offline page, the gallery or a test. The part does not know which.

import { el } from "./dom.js";

/** @typedef {import("./types.js").Mounted} Mounted */
/** @typedef {import("./types.js").Host} Host */

/** @type {WeakMap<HTMLElement, Mounted>} */
const PARTS = new WeakMap();

/** Host of a page where a selection has no listener. @type {Host} */
export const NO_HOST = { choose() {}, tell() {}, trigger() {}, message: async () => null };

/**
 * Passes a message to the part on this element. The first message creates the part. Its style is inserted before the element, so that
 * it also applies in a shadow root.
 * @template {Mounted} Part
 * @param {HTMLElement} element @param {{new (root: HTMLElement): {enter(): Part}, style: string}} Class
 * @param {any} message @param {Host} [host] @returns {Part}
 */
export function mount(element, Class, message, host = NO_HOST) {
  let part = /** @type {Part | undefined} */ (PARTS.get(element));
  if (!part) {
    element.before(el("style", "", Class.style));
    part = new Class(element).enter();
    PARTS.set(element, part);
  }
  part.host = host;
  part.receive(message);
  return part;
}

/** Destroys the part on this element, if there is one. @param {HTMLElement} element */
export function unmount(element) {
  PARTS.get(element)?.destroy();
  PARTS.delete(element);
}
