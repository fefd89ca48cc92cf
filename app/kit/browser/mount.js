// The one way a part of the page comes to life: a room on its stage, or a part beside one. A host shows it: the application, a page that
// follows a class, a cell of a notebook, a page that works offline, the gallery, or a test. The part does not know which.

import { el } from "./dom.js";

/** @typedef {import("./types.js").Mounted} Mounted */
/** @typedef {import("./types.js").Host} Host */

/** @type {WeakMap<HTMLElement, Mounted>} */
const PARTS = new WeakMap();

/** Of a page on which no one hears what is chosen. @type {Host} */
export const NOBODY = { choose() {}, tell() {}, trigger() {}, message: async () => null };

/**
 * Give a message to the part on this element, which is made with the first one. Its style stands before the element, so that a
 * shadow root has it as well.
 * @template {Mounted} Part
 * @param {HTMLElement} element @param {{new (root: HTMLElement): {enter(): Part}, style: string}} Class
 * @param {any} message @param {Host} [host] @returns {Part}
 */
export function mount(element, Class, message, host = NOBODY) {
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

/** End the part on this element, if there is one. @param {HTMLElement} element */
export function unmount(element) {
  PARTS.get(element)?.destroy();
  PARTS.delete(element);
}
