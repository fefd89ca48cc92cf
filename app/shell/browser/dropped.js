// A config.json that is dropped anywhere onto the page opens as shapes, or in the room about sizes that is on the screen.

import { ASKED, number } from "../../kit/browser/language.js";
import { alertBox } from "./alert.js";
import { COLOURS, WORDS } from "./constants.js";

const MOST = 400_000; // bytes; the server says the same of more
const SIZES = ["memory", "compute"]; // rooms that have the choice too; all others lead to Shapes
const words = WORDS.dropped;

/** @type {HTMLElement | null} */
let box = null;

/** @param {DragEvent} e */
const hasFile = (e) => Boolean(e.dataTransfer?.types.includes("Files")) && !e.defaultPrevented;

/** The page has a frame while a file is held over it. @param {boolean} isOn */
function held(isOn) {
  const { style } = document.documentElement;
  const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  style.outline = isOn ? `3px dashed ${COLOURS[scheme].ink}` : "";
  style.outlineOffset = isOn ? "-6px" : "";
}

function close() {
  box?.remove();
  box = null;
}

/** @param {string} sentence */
function say(sentence) {
  close();
  const text = document.createElement("p");
  text.textContent = sentence;
  text.style.margin = "0 0 0.75rem";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = words.close;
  Object.assign(button.style, { font: "inherit", padding: "0.2rem 0.8rem", cursor: "pointer" });
  button.addEventListener("click", close);
  box = alertBox("headlight-dropped", [text, button]);
  button.focus();
}

/** @param {File} file */
async function open(file) {
  if (file.size > MOST) return say(words.large.replace("{n}", number(file.size / 1000)));
  const body = await file.arrayBuffer();
  const address = new URL("headlight/shapes/config", document.baseURI);
  const answer = await fetch(address, { method: "POST", body, headers: ASKED }).catch(() => null);
  if (!answer) return say(words.unreachable);
  if (!answer.ok) return say(await answer.text());
  const { config } = await answer.json();
  const said = new URLSearchParams(location.search);
  const view = said.get("view") ?? "";
  const isHere = SIZES.includes(view);
  const link = new URLSearchParams(
    isHere ? { view, plan_model: "pasted", config } : { view: "shapes", of: "pasted", config },
  );
  for (const name of window.headlight.settings.names) if (said.has(name)) link.set(name, said.get(name) ?? "");
  location.assign(new URL(`?${link}`, document.baseURI));
}

addEventListener("dragover", (e) => {
  if (!hasFile(e)) return;
  e.preventDefault();
  held(true);
});
addEventListener("dragleave", (e) => {
  if (!e.relatedTarget) held(false); // it has left the window
});
addEventListener("drop", (e) => {
  held(false);
  if (!hasFile(e)) return;
  e.preventDefault(); // else the browser would leave for the file
  const file = e.dataTransfer?.files[0];
  if (file) void open(file);
});
addEventListener("keydown", (e) => {
  if (e.key === "Escape" && box) {
    e.stopPropagation();
    close();
  }
});
