// The bar of a projected page, the same in every room: Exit, Freeze and Spotlight at the bottom right.
//
// Freeze hides pointer moves from the page. Spotlight dims everything except the area around the pointer or the focused element. A room
// with a spotlight of its own sets data-own-spotlight on the document.

import { isFree } from "./shortcuts.js";

/** @typedef {"projector" | "frozen" | "spotlight"} Setting */
const KEYS = /** @type {const} */ ({ f: "frozen", s: "spotlight" });
const HOVERS = ["over", "out", "enter", "leave", "move"].flatMap((name) => [`pointer${name}`, `mouse${name}`]);
const RADIUS = 7; // em of the spotlight
const STYLE = `
  :host { display: none; }
  :host([data-on]) { display: block; font-size: 0.7em; }
  .bar { position: fixed; right: 1rem; bottom: 0.4rem; z-index: 1000; display: flex; gap: 0.5em; }
  button { padding: 0.2em 0.8em; font: inherit; color: inherit; cursor: pointer; border-radius: 0.4em; min-height: 2em;
    border: 1px solid color-mix(in srgb, currentColor 30%, transparent); background: var(--st-background-color, Canvas); }
  button:hover, button[aria-pressed="true"] { border-color: currentColor; }
  button[aria-pressed="true"] { font-weight: 650; box-shadow: inset 0 -0.2em currentColor; }
  button:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
  .dim { position: fixed; inset: 0; z-index: 999; pointer-events: none; background:
    radial-gradient(circle at var(--x, 50%) var(--y, 50%), transparent ${RADIUS}em, rgb(0 0 0 / 72%) ${RADIUS + 0.5}em); }
  .dim[hidden] { display: none; }
  @media (hover: none) { button { min-height: 44px; } }
  @media print { :host([data-on]) { display: none; } }
`;

/**
 * Put the bar into the page. @param {Record<"projection" | "exit" | "exit_help" | "freeze" | "freeze_help" | "spotlight" | "spotlight_help", string>} words
 */
export function projectionBar(words) {
  const { settings } = window.headlight;
  const isOn = (/** @type {Setting} */ name) => settings.get("projector") !== null && settings.get(name) !== null;
  const toggle = (/** @type {Setting} */ name) => settings.set(name, isOn(name) ? null : "true");
  const host = document.createElement("div");
  host.className = "headlight-projection";
  host.setAttribute("role", "region");
  host.setAttribute("aria-label", words.projection);
  const root = host.attachShadow({ mode: "open" });
  const style = new CSSStyleSheet();
  style.replaceSync(STYLE);
  root.adoptedStyleSheets = [style];
  const bar = root.appendChild(document.createElement("div"));
  bar.className = "bar";
  bar.setAttribute("role", "toolbar");
  bar.setAttribute("aria-label", words.projection);
  const button = (/** @type {string} */ text, /** @type {string} */ help, /** @type {() => void} */ act) => {
    const made = bar.appendChild(document.createElement("button"));
    made.type = "button";
    made.textContent = text;
    made.title = help;
    made.addEventListener("click", act);
    return made;
  };
  button(words.exit, words.exit_help, () => settings.set("projector", null));
  const freeze = button(words.freeze, words.freeze_help, () => toggle("frozen"));
  const spotlight = button(words.spotlight, words.spotlight_help, () => toggle("spotlight"));
  const dim = root.appendChild(document.createElement("div"));
  dim.className = "dim";

  const light = (/** @type {number} */ x, /** @type {number} */ y) => {
    dim.style.setProperty("--x", `${x}px`);
    dim.style.setProperty("--y", `${y}px`);
  };
  const draw = () => {
    const isProjected = settings.get("projector") !== null;
    host.toggleAttribute("data-on", isProjected);
    if (!isProjected) for (const name of Object.values(KEYS)) settings.set(name, null); // nothing outside the bar undoes them
    freeze.setAttribute("aria-pressed", String(isOn("frozen")));
    spotlight.setAttribute("aria-pressed", String(isOn("spotlight")));
    dim.hidden = !isOn("spotlight") || document.documentElement.dataset.ownSpotlight !== undefined;
  };

  addEventListener("pointermove", (e) => light(e.clientX, e.clientY), { capture: true, passive: true });
  addEventListener("focusin", (e) => {
    const at = /** @type {Element} */ (e.composedPath()[0]);
    if (!at.matches?.(":focus-visible")) return;
    const { left, top, width, height } = at.getBoundingClientRect();
    light(left + width / 2, top + height / 2);
  });
  const holdStill = (/** @type {Event} */ e) => {
    const isDragged = /** @type {PointerEvent} */ (e).buttons > 0;
    if (isOn("frozen") && !isDragged && !e.composedPath().includes(host)) e.stopImmediatePropagation();
  };
  for (const name of HOVERS) addEventListener(name, holdStill, true);
  addEventListener("keydown", (e) => {
    const name = KEYS[/** @type {"f" | "s"} */ (e.key.toLowerCase())];
    if (!name || settings.get("projector") === null || !isFree(e) || e.repeat) return;
    e.preventDefault();
    toggle(name);
  });
  settings.watch(draw);
  document.body.append(host);
  draw();
}
