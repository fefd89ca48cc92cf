// Streamlit as the host of a part of the page: what Streamlit calls for a component.
//
// Streamlit calls it again whenever the component's data or the theme changes, always with the same parentElement. It calls what that
// returns when the component leaves the page, but also right after a call that came too late, when there was other data by then. So a
// part whose place is still in the page stays.

import { mount, NO_HOST, unmount } from "./mount.js";

/** @type {WeakMap<HTMLElement, HTMLElement>} The place of the part in each component's element */
const PLACES = new WeakMap();

/** @param {string} room @param {string} link */
async function message(room, link) {
  const answer = await fetch(new URL(`headlight/room/${room}?${link}`, document.baseURI));
  return answer.ok ? new Uint8Array(await answer.arrayBuffer()) : null;
}

/** @template Data @param {{new (root: HTMLElement): {enter(): import("./types.js").Mounted}, style: string}} Part */
export const component =
  (Part) =>
  (/** @type {import("./types.js").Given<Data>} */ { data, parentElement, setStateValue, setTriggerValue }) => {
    const place = /** @type {HTMLElement} */ (parentElement.querySelector(".hl"));
    const before = PLACES.get(parentElement);
    if (before && before !== place) unmount(before);
    PLACES.set(parentElement, place);
    mount(place, Part, data, {
      ...NO_HOST, // a selection is in the address already
      tell: setStateValue,
      trigger: setTriggerValue,
      message,
    });
    return () => {
      if (place.isConnected || PLACES.get(parentElement) !== place) return;
      unmount(place);
      PLACES.delete(parentElement);
    };
  };
