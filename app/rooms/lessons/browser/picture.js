// A still picture of what the room beside the rail shows, for the page of a finished lesson: its largest canvas or drawing.

import { rows, svg } from "../../../kit/browser/drawing.js";

const SMALLEST = 60 * 60; // pixels
const LARGEST = 1200; // pixels across

const room = () => document.querySelector(".st-key-lessons_view");

// Whether the room has drawn what it shows, and waits for nothing more of it
export function isDrawn() {
  const roots = within(room(), ".hl").map(({ dataset }) => dataset);
  return roots.some(({ painted }) => painted) && !roots.some(({ underway, waiting }) => underway || waiting);
}

/** @returns {string | undefined} a PNG or SVG as a data address */
export function pictureOf() {
  const found = canvases(room())
    .filter((canvas) => canvas.offsetParent !== null && canvas.width * canvas.height > SMALLEST)
    .sort((a, b) => b.width * b.height - a.width * a.height)[0];
  if (!found) return drawingOf();
  const part = Math.min(1, LARGEST / found.width);
  const small = document.createElement("canvas");
  Object.assign(small, { width: Math.round(found.width * part), height: Math.round(found.height * part) });
  const ink = small.getContext("2d");
  if (!ink) return undefined;
  for (const layer of [
    found,
    ...canvases(found.parentElement).filter((one) => one !== found && one.width === found.width),
  ])
    ink.drawImage(layer, 0, 0, small.width, small.height);
  return small.toDataURL("image/png");
}

// Of a room that draws with SVG: the part of it around its largest drawing
function drawingOf() {
  const size = (/** @type {Element} */ one) => one.getBoundingClientRect().width * one.getBoundingClientRect().height;
  const [found] = within(room(), "svg")
    .filter((one) => size(one) > SMALLEST)
    .sort((a, b) => size(b) - size(a));
  const box = found?.parentElement;
  if (!box) return undefined;
  const style = getComputedStyle(box);
  /** @param {string} name */
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const colours = { background: colour("background"), ink: colour("ink"), mute: colour("mute") };
  const drawn = svg(rows([box]), { title: "", alt: "", caption: "", snippet: "", name: "" }, colours);
  return `data:image/svg+xml,${encodeURIComponent(drawn.text)}`;
}

/** @param {ParentNode | null} from */
const canvases = (from) => /** @type {HTMLCanvasElement[]} */ (within(from, "canvas"));

// Those below an element, also in the components that stand there
/** @param {ParentNode | null} from @param {string} selector @returns {HTMLElement[]} */
function within(from, selector) {
  if (!from) return [];
  const own = /** @type {HTMLElement[]} */ ([...from.querySelectorAll(selector)]);
  const inner = [...from.querySelectorAll("*")].flatMap(({ shadowRoot }) => within(shadowRoot, selector));
  return [...own, ...inner];
}
