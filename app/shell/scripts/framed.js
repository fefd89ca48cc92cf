// In a frame of another page (embed=true): that page hears how high the room is, and a link opens the whole of Headlight.
// A frame without an origin of its own loads none of the page's scripts: it says why it stays empty, and what to try.

import { isDrawn, mainBlock } from "../../streamlit_edge/browser/page.js";
import { alertBox } from "../browser/alert.js";
import { FRAMED as words } from "./constants.js";

const LEAST = 200; // pixels that a room has: before, it is not there yet
const RESTS = 300; // ms after which a height is no longer one on the way

if (window.headlight.settings.get("embed") !== null) {
  let told = 0;
  let high = innerHeight;
  /** @type {number | undefined} A timer */
  let resting;
  const soon = () => {
    clearTimeout(resting);
    resting = setTimeout(tell, RESTS);
  };
  // A room may grow with its frame: what comes of the frame's own height is not told, or the two would drive each other up.
  const tell = () => {
    if (!isDrawn()) return soon();
    const height = Math.ceil(mainBlock()?.scrollHeight ?? 0);
    const isOfFrame = told > 0 && innerHeight !== high;
    high = innerHeight;
    if (height < LEAST || height === told || isOfFrame) return;
    told = height;
    parent.postMessage({ headlight: "height", height }, "*"); // a number, of no one's text
  };
  const watch = new MutationObserver(() => {
    const room = mainBlock();
    if (!room) return;
    watch.disconnect();
    if (parent !== window) new ResizeObserver(soon).observe(room);
    document.body.append(whole());
  });
  watch.observe(document.documentElement, { childList: true, subtree: true });
}

if (self.origin === "null")
  addEventListener("DOMContentLoaded", () => {
    const why = document.createElement("p");
    why.textContent = words.empty;
    why.style.margin = "0 0 0.75rem";
    alertBox("headlight-empty", [why, whole()]);
  });

// The link to this screen without the frame
function whole() {
  const link = document.createElement("a");
  Object.assign(link, { target: "_blank", rel: "noopener", className: "headlight-whole", title: words.help });
  link.textContent = words.open;
  const point = () => {
    const url = new URL(location.href);
    url.searchParams.delete("embed");
    link.href = url.href;
  };
  for (const name of ["pointerenter", "focus", "click"]) link.addEventListener(name, point, true);
  point();
  return link;
}
