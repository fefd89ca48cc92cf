// A page that works offline: a room's component on the data in the page, without a server and without a request. Where the page is a
// frame of a notebook's widget, what is chosen goes to it through a port that it sends, and from it come choices and other runs.

import { pack, unpack } from "./messages.js";
import { Fetcher } from "./fetcher.js";
import { mount, NO_HOST } from "./mount.js";
import { projectionBar } from "./projection.js";
import { COLOURS, WORDS as words } from "./words.js";

/** @typedef {Parameters<typeof mount>[1]} Class */

/** @type {MessagePort | null} To a notebook */
let port = null;
/** @type {number | undefined} A timer, while it is to be told what is chosen */
let telling;
const TELL_AFTER = 200; // ms without a change
const HOST = {
  ...NO_HOST,
  choose(/** @type {object} */ report) {
    clearTimeout(telling);
    telling = setTimeout(() => port?.postMessage({ chosen: report }), TELL_AFTER);
  },
};

// What such a page holds: the message that the room was drawn from, and the answers that had come by then
/** @param {string} room the class of its place in the page, by which its style knows it @param {Class} Room */
export function offline(room, Room) {
  const place = /** @type {HTMLElement} */ (document.querySelector("#screen .hl"));
  place.classList.add(room);
  const { headlightData } = /** @type {{headlightData?: Uint8Array}} */ (/** @type {unknown} */ (window));
  const text = document.getElementById("data")?.textContent?.trim() ?? "";
  let message = opened(headlightData ?? Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  page(message.theme);
  const draw = () => mount(place, Room, message.data, HOST);
  draw();
  if (window.parent === window) return;
  addEventListener("message", ({ source, data, ports }) => {
    if (source !== window.parent || data?.headlight !== "connect" || !ports[0]) return;
    port = ports[0];
    port.onmessage = ({ data: said }) => {
      if (said.picture) message = opened(said.picture);
      if (said.chosen) message.data = chosen(message.data, said.chosen);
      draw();
    };
  });
  window.parent.postMessage({ headlight: "ready" }, "*"); // it holds nothing: who listens may send a port
}

/** Take in a run, with what the page says of it. @param {Uint8Array} bytes */
function opened(bytes) {
  const [{ about, theme, data, answers }, body] = unpack(bytes);
  for (const name of ["caption", "alt", "snippet", "note", "code"]) {
    const part = /** @type {HTMLElement} */ (document.getElementById(name));
    part.textContent = about[name];
  }
  document.title = about.title;
  if (!answers) return { theme, data: bytes };
  const part = (/** @type {[at: number, length: number]} */ [at, length]) =>
    new Uint8Array(body.slice(at, at + length));
  Fetcher.answers = new Map(
    answers.map((/** @type {[string, number, number]} */ [id, at, length]) => [id, part([at, length])]),
  );
  Fetcher.missing = words.offline_missing;
  return { theme, data: part(data) };
}

/** The same picture with something else chosen in it. @param {Uint8Array} data @param {Record<string, string>} values */
function chosen(data, values) {
  const [header, body] = unpack(data);
  return pack({ ...header, chosen: { values: { ...header.chosen.values, ...values } } }, body);
}

// The page's light and dark, and its projector
/** @param {"light" | "dark" | null} asExported null for a page of no screen, which is as the reader's browser is */
function page(asExported) {
  const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  /** @type {Record<string, string | null>} */
  let settings = { theme: null, projector: null, frozen: null, spotlight: null };
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
      names: Object.keys(settings),
      get: (name) => settings[name],
      set(name, value) {
        if (settings[name] === value) return;
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
  projectionBar(words);
}
