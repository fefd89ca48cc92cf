// Says why a page stays empty where no websocket comes through, and what to try.

import { alertBox, heading } from "./alert.js";
import { WORDS as words } from "./constants.js";

const MOST = 3; // websockets in a row that came to nothing

/** @type {HTMLElement | null} */
let box = null;
let isAsking = false;

addEventListener("headlight-handshakes", (e) => {
  const refused = /** @type {CustomEvent<number>} */ (e).detail;
  if (refused === 0) hide();
  else if (refused >= MOST && !box) ask();
});

// Only where the server answers is it the websockets. One that lets no one in now says so itself, on a page that tries again.
async function ask() {
  if (isAsking) return;
  isAsking = true;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" }).catch(() => null);
  isAsking = false;
  if (answer?.status === 503) location.reload();
  else if (answer?.ok) show();
}

function show() {
  const why = document.createElement("p");
  why.textContent = words.why;
  why.style.margin = "0 0 0.75rem";
  const list = document.createElement("ul");
  Object.assign(list.style, { margin: "0", paddingLeft: "1.25rem" });
  for (const text of words.tries) {
    const item = document.createElement("li");
    item.textContent = text.replace("{host}", location.host);
    list.append(item);
  }
  box = alertBox("headlight-refused", [heading(words.title), why, list]);
}

function hide() {
  box?.remove();
  box = null;
}
