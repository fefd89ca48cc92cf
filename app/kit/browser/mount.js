// A component's view on its place in the page: made once, kept while the place is there.
//
// Streamlit calls a component's default export again whenever its data or the theme changes, always with the same parentElement.
// What that returns it calls when the component leaves the page, but also right after a call that came too late, when there was
// other data by then. So a view whose place is still in the page stays.

import { el } from "./dom.js";

/** @type {WeakMap<HTMLElement, import("./types.js").Mounted>} */
const VIEWS = new WeakMap();

// The view of this place, and what to return to Streamlit. make(root) is called where there is none yet.
/**
 * @template {import("./types.js").Mounted} View
 * @param {HTMLElement} parentElement
 * @param {string} style
 * @param {(root: HTMLElement) => View} make
 * @returns {[view: View, leave: () => void]}
 */
export function mounted(parentElement, style, make) {
  const root = /** @type {HTMLElement} */ (parentElement.querySelector(".hl"));
  let view = /** @type {View | undefined} */ (VIEWS.get(parentElement));
  if (view?.root !== root) {
    view?.destroy();
    root.before(el("style", "", style));
    view = make(root);
    VIEWS.set(parentElement, view);
  }
  const leave = () => {
    if (root.isConnected || VIEWS.get(parentElement) !== view) return;
    view.destroy();
    VIEWS.delete(parentElement);
  };
  return [view, leave];
}
