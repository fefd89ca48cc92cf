// A page that works offline: a room's component on the data in the page, without a server and without a request.

import { unpack } from "./messages.js";
import { Fetcher } from "./fetcher.js";
import { COLOURS, WORDS as words } from "./words.js";

// What such a page holds: the message that the room was drawn from, and the answers that had come by then
/**
 * @param {string} room the class of its place in the page, by which its style knows it
 * @param {(given: {data: Uint8Array, parentElement: HTMLElement, setStateValue: () => void, setTriggerValue: () => void}) => unknown} component
 */
export function offline(room, component) {
  document.querySelector("#screen .hl")?.classList.add(room);
  const text = document.getElementById("data")?.textContent?.trim() ?? "";
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const [{ about, theme: asExported, data, answers }, body] = unpack(bytes);
  for (const name of ["caption", "alt", "snippet", "note", "code"]) {
    const part = /** @type {HTMLElement} */ (document.getElementById(name));
    part.textContent = about[name];
  }
  document.title = about.title;
  if (answers) {
    const part = (/** @type {[at: number, length: number]} */ [at, length]) =>
      new Uint8Array(body.slice(at, at + length));
    Fetcher.answers = new Map(
      answers.map((/** @type {[string, number, number]} */ [id, at, length]) => [id, part([at, length])]),
    );
    Fetcher.missing = words.offline_missing;
    page(asExported);
    component({ data: part(data), ...given() });
    return;
  }
  page(asExported);
  component({ data: bytes, ...given() });
}

const given = () => ({
  parentElement: /** @type {HTMLElement} */ (document.getElementById("screen")),
  setStateValue: () => {},
  setTriggerValue: () => {},
});

// The page's light and dark, and its projector
/** @param {"light" | "dark" | null} asExported null for a page of no screen, which is as the reader's browser is */
function page(asExported) {
  const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  /** @type {Record<string, string | null>} */
  let settings = { theme: null, projector: null };
  /** @type {Set<(settings: Record<string, string | null>) => void>} */
  const heard = new Set();
  function show() {
    const theme = /** @type {"light" | "dark"} */ (settings.theme ?? asExported ?? (isDark() ? "dark" : "light"));
    const { style } = document.documentElement;
    style.colorScheme = theme;
    style.setProperty("--st-background-color", COLOURS[theme].background);
    document.body.style.background = COLOURS[theme].background;
    document.body.style.color = COLOURS[theme].ink;
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
}
