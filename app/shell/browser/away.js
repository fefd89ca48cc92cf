// Says that the server has gone, that the page will continue, and what to do where it cannot.

import { alertBox, heading } from "./alert.js";
import { WORDS } from "./constants.js";

const words = WORDS.away;
const SOON = 1500; // ms in which most pages find the server again, or a proxy finds another one
const RESTARTS = 1012; // the code by which a server that was asked to end closes a websocket

/** @type {HTMLElement | null} */
let box = null;
let waiting = 0;
let isLost = false;

addEventListener("headlight-lost", (e) => {
  const { detail: code } = /** @type {CustomEvent<number>} */ (e);
  isLost = true;
  clearTimeout(waiting);
  waiting = window.setTimeout(() => show(code === RESTARTS ? words.restarts : words.lost), SOON);
});
addEventListener("headlight-handshakes", (e) => {
  if (/** @type {CustomEvent<number>} */ (e).detail !== 0) return;
  hide();
  if (isLost) setTimeout(resume); // once Streamlit has heard of the open websocket too
  isLost = false;
});

// A new server runs the sentence of the address at the first message of a page, whatever else that says. Without this it would
// drop the first sentence that is typed after a restart.
function resume() {
  window.headlight.address?.go(location.search, true);
}

// What Streamlit would have said in a dialog of its own (handshakes.js)
addEventListener("message", ({ source, data }) => {
  if (source !== window || data?.type !== "CLIENT_ERROR_DIALOG" || data.error === "Connection error") return;
  hide();
  box = alertBox("headlight-away", inside(words.stopped));
});

/** @param {{title: string, why: string}} said */
function show(said) {
  hide();
  const shown = alertBox("headlight-away", [], "status");
  Object.assign(shown.style, { top: "auto", bottom: "1rem" }); // the sentence and its picture stay in sight
  requestAnimationFrame(() => shown.append(...inside(said))); // a screen reader reads what comes into a status that is there
  box = shown;
}

/** @param {{title: string, why: string}} said */
function inside({ title, why }) {
  const text = document.createElement("p");
  text.textContent = why;
  text.style.margin = "0";
  return [heading(title), text];
}

function hide() {
  clearTimeout(waiting);
  box?.remove();
  box = null;
}
