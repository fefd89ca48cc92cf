// The page that works offline: the Explore component on the data in the page, without a server and without a request.

import explore from "./explore.js";
import { PALETTES } from "./constants.js";
import { unpack } from "./run.js";

const text = document.getElementById("data").textContent.trim();
const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const [{ about, theme: asExported }] = unpack(bytes);
const screen = document.getElementById("screen");

document.title = about.title;
for (const name of ["caption", "alt", "snippet", "note", "code"]) document.getElementById(name).textContent = about[name];

// The page's light and dark, which the component asks for by this name
window.headlightTheme = (chosen) => {
  const theme = PALETTES[chosen] ? chosen : asExported;
  const { style } = document.documentElement;
  style.colorScheme = theme;
  style.setProperty("--st-background-color", PALETTES[theme].background);
  document.body.style.background = PALETTES[theme].background;
  document.body.style.color = PALETTES[theme].ink;
};

explore({ data: bytes, parentElement: screen, setStateValue: () => {}, setTriggerValue: () => {} });
