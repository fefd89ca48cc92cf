// What is on the page as a drawing: a Plotly chart, or rows of text with small pictures. SVG with real text, or PNG.

import { FOR_POINTERS, layersOf } from "../../streamlit_edge/browser/page.js";
import { png, wrapped } from "./scene.js";

const SVG = "http://www.w3.org/2000/svg";
const FALLBACK = "'Source Sans 3', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"; // where the page's font is not installed
const MARGIN = 16;
const SMALL = 13; // pixels: the caption
const LEFT_OUT = "svg, style, .unseen, .seg, .quiet, .files"; // what is not text, and what only a page can do
const PAINT = ["fill", "stroke", "stroke-width", "fill-opacity", "opacity"];

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Element} parent
 * @param {Tag} name
 * @param {Record<string, string | number>} [attributes]
 * @param {string} [text]
 */
function make(parent, name, attributes = {}, text) {
  const node = parent.appendChild(document.createElementNS(SVG, name));
  for (const [key, value] of Object.entries(attributes))
    node.setAttribute(key, String(typeof value === "number" ? Number(value.toFixed(2)) : value));
  if (text !== undefined)
    node.textContent = text.toWellFormed().replace(/[^\t\n\r\x20-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
  return node;
}

// A chart that Plotly has drawn: its own layers of SVG, without those that only listen to the pointer
/** @param {Element | null} host */
export function chart(host) {
  const layers = layersOf(host);
  if (!layers.length) throw new Error("the chart is not drawn yet");
  const { width, height } = layers[0].getBoundingClientRect();
  const group = document.createElementNS(SVG, "g");
  for (const layer of layers) group.append(...layer.cloneNode(true).childNodes);
  for (const node of group.querySelectorAll(FOR_POINTERS)) node.remove();
  return { group, width, height };
}

// Boxes of the page below each other: every piece of text where it stands, and the small drawings among it
/** @param {HTMLElement[]} boxes */
export function rows(boxes) {
  const group = document.createElementNS(SVG, "g");
  let height = 0;
  let width = 0;
  for (const box of boxes) {
    const frame = box.getBoundingClientRect();
    const place = make(group, "g", { transform: `translate(0 ${height})` });
    for (const marked of box.querySelectorAll(".chosen, .legend i")) ground(place, marked, frame);
    for (const picture of box.querySelectorAll("svg")) drawing(place, picture, frame);
    for (const canvas of box.querySelectorAll("canvas")) {
      const at = canvas.getBoundingClientRect();
      if (at.width && canvas.width)
        make(place, "image", {
          x: at.left - frame.left,
          y: at.top - frame.top,
          width: at.width,
          height: at.height,
          href: canvas.toDataURL(),
        });
    }
    texts(place, box, frame);
    height += frame.height + 6;
    width = Math.max(width, frame.width);
  }
  return { group, width, height };
}

/** @param {Element} parent @param {Element} node @param {DOMRect} frame */
function ground(parent, node, frame) {
  const at = node.getBoundingClientRect();
  make(parent, "rect", {
    x: at.left - frame.left,
    y: at.top - frame.top,
    width: at.width,
    height: at.height,
    rx: 5,
    fill: getComputedStyle(node).backgroundColor,
  });
}

// Colours that the page's style gives go into the drawing, which will stand alone.
/** @param {Element} parent @param {SVGSVGElement} picture @param {DOMRect} frame */
function drawing(parent, picture, frame) {
  const at = picture.getBoundingClientRect();
  if (!at.width || !at.height) return;
  const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const [from, to] = [[...picture.querySelectorAll("*")], [...copy.querySelectorAll("*")]];
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of PAINT)
      if (node.hasAttribute(name) || name === "fill") to[i].setAttribute(name, style.getPropertyValue(name));
  });
  copy.removeAttribute("class");
  for (const [key, value] of Object.entries({
    x: at.left - frame.left,
    y: at.top - frame.top,
    width: at.width,
    height: at.height,
    overflow: "visible",
  }))
    copy.setAttribute(key, String(value));
  parent.append(copy);
}

/** @param {Element} parent @param {HTMLElement} box @param {DOMRect} frame */
function texts(parent, box, frame) {
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    const element = /** @type {HTMLElement} */ (node.parentElement);
    const style = getComputedStyle(element);
    if (!node.data.trim() || element.closest(LEFT_OUT) || style.visibility === "hidden") continue;
    range.selectNodeContents(node);
    /** @type {[text: string, at: DOMRect][]} */
    const pieces = range.getClientRects().length > 1 ? lines(node) : [[node.data, range.getBoundingClientRect()]];
    for (const [string, at] of pieces) {
      if (!at.width) continue;
      const size = parseFloat(style.fontSize);
      make(
        parent,
        "text",
        {
          x: at.left - frame.left,
          y: at.top - frame.top + at.height / 2 + 0.35 * size,
          "font-size": size,
          "font-weight": style.fontWeight,
          fill: style.color,
          style: "white-space: pre",
          ...(style.fontFamily.includes("mono")
            ? { "font-family": "ui-monospace, 'DejaVu Sans Mono', monospace" }
            : {}),
        },
        cut(string, element, at),
      );
    }
  }
}

// A text that wraps, line by line; where each stands
/** @param {Text} node */
function lines(node) {
  const range = document.createRange();
  /** @type {[text: string, at: DOMRect][]} */
  const found = [];
  for (const word of node.data.matchAll(/\S+\s*/g)) {
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    const at = range.getClientRects()[0];
    if (!at) continue;
    const last = found.at(-1);
    if (last && Math.abs(last[1].top - at.top) < 2)
      found[found.length - 1] = [
        last[0] + word[0],
        DOMRect.fromRect({ x: last[1].x, y: last[1].y, width: at.right - last[1].left, height: at.height }),
      ];
    else found.push([word[0], at]);
  }
  return found;
}

// What the page cuts off with an ellipsis is cut off here as well.
/** @param {string} string @param {Element} element @param {DOMRect} at */
function cut(string, element, at) {
  for (
    let box = /** @type {Element | null} */ (element);
    box && !box.classList.contains("hl");
    box = box.parentElement
  ) {
    if (getComputedStyle(box).overflowX !== "hidden") continue;
    const room = box.getBoundingClientRect().right - at.left;
    if (room >= at.width - 0.5) continue;
    if (room <= 0) return "";
    const letters = Array.from(string);
    return letters.slice(0, Math.max(0, Math.floor((letters.length * room) / at.width) - 1)).join("") + "…";
  }
  return string;
}

// The text of an SVG file: the drawing, its caption below, and what it says about itself
/**
 * @param {import("./types.js").Drawing} drawing
 * @param {import("./types.js").About} about
 * @param {Record<"background" | "ink" | "mute", string>} colours
 */
export function svg({ group, width, height }, about, colours) {
  const font = `${getComputedStyle(document.body).fontFamily}, ${FALLBACK}`;
  const caption = wrapped(about.caption, width, SMALL, font);
  const title = wrapped(about.title, width, 20, font);
  const top = MARGIN + title.length * 26;
  const size = { width: width + 2 * MARGIN, height: top + height + caption.length * SMALL * 1.4 + 2 * MARGIN };
  const doc = document.implementation.createDocument(SVG, "svg", null);
  const root = doc.documentElement;
  const attributes = {
    ...size,
    viewBox: `0 0 ${size.width} ${size.height}`,
    role: "img",
    "aria-labelledby": "title description",
    "font-family": font,
  };
  for (const [key, value] of Object.entries(attributes)) root.setAttribute(key, String(value));
  make(root, "title", { id: "title" }, about.title);
  make(root, "desc", { id: "description" }, about.alt);
  const metadata = make(root, "metadata");
  for (const name of /** @type {const} */ (["caption", "snippet"])) {
    const item = doc.createElementNS("urn:headlight:export", name);
    item.textContent = about[name];
    metadata.append(item);
  }
  make(root, "rect", { width: size.width, height: size.height, fill: colours.background });
  title.forEach((line, i) =>
    make(
      root,
      "text",
      { x: MARGIN, y: MARGIN + 18 + i * 26, "font-size": 20, "font-weight": 650, fill: colours.ink },
      line,
    ),
  );
  const place = make(root, "g", { transform: `translate(${MARGIN} ${top})` });
  place.append(doc.importNode(group, true));
  caption.forEach((line, i) =>
    make(
      root,
      "text",
      { x: MARGIN, y: top + height + MARGIN + (i + 0.6) * SMALL * 1.4, "font-size": SMALL, fill: colours.mute },
      line,
    ),
  );
  return { text: `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(doc)}\n`, ...size };
}

// The same as pixels, `scale` for each of its units; the page's own font goes in, for a picture knows none
/**
 * @param {{text: string, width: number, height: number}} drawn
 * @param {import("./types.js").About} about
 * @param {number} scale
 */
export async function pixels(drawn, about, scale) {
  const style = `<style>${await faces()}</style>`;
  const whole = drawn.text.replace("<metadata>", `${style}<metadata>`);
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([whole], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.round(drawn.width * scale), Math.round(drawn.height * scale)];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await png(
      canvas,
      { Title: about.title, Description: about.alt, Comment: about.caption, "Source code": about.snippet },
      scale,
    );
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

/** @type {Promise<string> | undefined} */
let known;
async function faces() {
  return (known ??= Promise.all(
    sources().map(async ([family, weight, address]) => {
      const bytes = new Uint8Array(await (await fetch(address)).arrayBuffer());
      let binary = "";
      for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
      return `@font-face{font-family:${family};font-weight:${weight};src:url(data:font/woff2;base64,${btoa(binary)})}`;
    }),
  )
    .then((found) => found.join(""))
    .catch(() => ""));
}

// The upright faces of the page's first font
function sources() {
  const wanted = getComputedStyle(document.body).fontFamily.split(",")[0].replaceAll(/["']/g, "").trim();
  /** @type {[family: string, weight: string, address: string][]} */
  const found = [];
  for (const sheet of document.styleSheets) {
    /** @type {CSSRule[]} */
    let rules = [];
    try {
      rules = [...sheet.cssRules];
    } catch {
      continue; // another host's sheet, which this page has none of
    }
    for (const rule of rules) {
      if (!(rule instanceof CSSFontFaceRule) || rule.style.getPropertyValue("font-style") === "italic") continue;
      const family = rule.style.getPropertyValue("font-family");
      const address = /url\(["']?([^"')]+)/.exec(rule.style.getPropertyValue("src"))?.[1];
      if (address && family.replaceAll(/["']/g, "") === wanted)
        found.push([
          family,
          rule.style.getPropertyValue("font-weight") || "400",
          new URL(address, sheet.href ?? document.baseURI).href,
        ]);
    }
  }
  return found;
}
