// A box above the page that says something which no room can say.

import { COLOURS } from "./constants.js";

const WIDE = "min(38rem, calc(100vw - 2rem))";

/** @param {string} id @param {Node[]} inside @param {"alert" | "status"} role @returns {HTMLElement} */
export function alertBox(id, inside, role = "alert") {
  const { background, ink, line } = COLOURS[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
  const box = document.createElement("div");
  box.id = id;
  box.setAttribute("role", role);
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
  box.append(...inside);
  document.body.append(box);
  return box;
}

/** @param {string} text @returns {HTMLElement} */
export function heading(text) {
  const title = document.createElement("h1");
  title.textContent = text;
  Object.assign(title.style, {
    margin: "0 0 0.5rem",
    padding: "0",
    font: "inherit",
    fontSize: "1.35rem",
    fontWeight: "600",
  });
  return title;
}
