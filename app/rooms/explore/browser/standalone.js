// The page that works offline: the Explore component on the data in the page, without a server and without a request.

import explore from "./explore.js";
import { PALETTES } from "../../../attention/browser/constants.js";
import { unpack } from "../../../kit/browser/messages.js";

const text = document.getElementById("data")?.textContent?.trim() ?? "";
const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const [{ about, theme: asExported }] = unpack(bytes);
const screen = /** @type {HTMLElement} */ (document.getElementById("screen"));

document.title = about.title;
for (const name of ["caption", "alt", "snippet", "note", "code"]) /** @type {HTMLElement} */ (document.getElementById(name)).textContent = about[name];

// The page's light and dark, and its projector
/** @type {Record<string, string | null>} */
let settings = { theme: null, projector: null };
/** @type {Set<(settings: Record<string, string | null>) => void>} */
const heard = new Set();
function show() {
  /** @type {"light" | "dark"} */
  const theme = settings.theme ?? asExported;
  const { style } = document.documentElement;
  style.colorScheme = theme;
  style.setProperty("--st-background-color", PALETTES[theme].background);
  document.body.style.background = PALETTES[theme].background;
  document.body.style.color = PALETTES[theme].ink;
  if (settings.projector) document.documentElement.dataset.projector = settings.projector;
  else delete document.documentElement.dataset.projector;
}
window.headlight = {
  settings: {
    get: (name) => settings[name],
    set(name, value) {
      settings = { ...settings, [name]: value };
      show();
      for (const hear of heard) hear(settings);
    },
    watch(hear) {
      heard.add(hear);
      return () => heard.delete(hear);
    },
  },
};
show();

explore({ data: bytes, parentElement: screen, setStateValue: () => {}, setTriggerValue: () => {} });
