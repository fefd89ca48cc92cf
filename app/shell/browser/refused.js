// Says why a page stays empty where no websocket comes through, and what to try.

import { COLOURS, WORDS as words } from "./constants.js";

const MOST = 3; // websockets in a row that came to nothing
const WIDE = "min(38rem, calc(100vw - 2rem))";

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
  const { background, ink, line } = COLOURS[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
  box = document.createElement("div");
  box.id = "headlight-refused";
  box.setAttribute("role", "alert");
  Object.assign(box.style, {
    position: "fixed",
    zIndex: "1000000", // above all of Streamlit's
    top: "4rem",
    left: "50%",
    transform: "translateX(-50%)",
    width: WIDE,
    maxHeight: "calc(100vh - 5rem)",
    overflow: "auto",
    boxSizing: "border-box",
    padding: "1.25rem 1.5rem",
    border: `1px solid ${line}`,
    borderRadius: "0.4rem",
    boxShadow: "0 0.5rem 2rem rgb(0 0 0 / 18%)",
    background,
    color: ink,
    font: '1.05rem/1.5 "Source Sans", system-ui, sans-serif',
  });
  const title = document.createElement("h1");
  title.textContent = words.title;
  Object.assign(title.style, { margin: "0 0 0.5rem", font: "inherit", fontSize: "1.35rem", fontWeight: "600" });
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
  box.append(title, why, list);
  document.body.append(box);
}

function hide() {
  box?.remove();
  box = null;
}
