// Panels in the browser's top layer: Escape and a click elsewhere close them.

import { clamp, pinned } from "./dom.js";

const EDGE = 8; // px kept free at the edges of the window
const LOWEST = 0.4; // of the window's height: below it a panel would have too little room

/**
 * Place a panel that is about to open below `opener`, within the window. What does not fit scrolls.
 * @param {HTMLElement} panel @param {HTMLElement} opener @param {number} em its width @param {"under" | "beside"} [where] its right edge under the opener's, or its left edge just after it
 */
export function placePanel(panel, opener, em, where = "under") {
  const at = opener.getBoundingClientRect();
  const width = Math.min(innerWidth - 2 * EDGE, em * parseFloat(getComputedStyle(panel).fontSize));
  const left = clamp(where === "under" ? at.right - width : at.right + EDGE, EDGE, innerWidth - width - EDGE);
  const top = clamp(at.bottom + 4, EDGE, LOWEST * innerHeight);
  pinned(panel, { width, left, top, "max-height": innerHeight - top - EDGE });
}
