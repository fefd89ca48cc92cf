// The page as a drawing: a Plotly chart, or boxes of text with their pictures, where they stand. SVG with real text, or PNG.

import { FOR_POINTERS, layersOf } from "../../streamlit_edge/browser/page.js";
import { pictureOf } from "./picture/canvas.js";
import { clean, draw as make, set, svg as element, SVG } from "./picture/svg.js";
import { png, wrapped } from "./scene.js";

const FALLBACK = "'Source Sans 3', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"; // where the page's font is not installed
const MARGIN = 16;
const SMALL = 13; // pixels: the caption
const NARROWEST = 420; // pixels, for a title and a caption that are read
const APART = 14; // pixels between boxes that have something else between them on the page
const SHARP = 3; // pixels for each of the screen's, of a canvas that can be painted again
const LEFT_OUT = "style, .unseen, .seg, .quiet, .files, .only-here, select, input, textarea"; // what only a page can do
const PAINT = ["fill", "stroke", "stroke-width", "fill-opacity", "opacity"];

// A chart that Plotly has drawn: its own layers of SVG, without those that only listen to the pointer
/** @param {Element | null} host */
export function chart(host) {
  const layers = layersOf(host);
  if (!layers.length) throw new Error("the chart is not drawn yet");
  const { width, height } = layers[0].getBoundingClientRect();
  const group = element("g");
  for (const layer of layers) group.append(...layer.cloneNode(true).childNodes);
  for (const node of group.querySelectorAll(FOR_POINTERS)) node.remove();
  return { group, width, height };
}

// Boxes of the page, each where it stands: their grounds and lines, their pictures, and every piece of text. Of what lies between them
// on the page nothing is left but a gap.
/** @param {HTMLElement[]} boxes */
export function rows(boxes) {
  gradients = 0;
  const group = element("g");
  const shown = boxes
    .map((box) => ({ box, frame: box.getBoundingClientRect() }))
    .filter(({ frame }) => frame.width && frame.height)
    .sort((a, b) => a.frame.top - b.frame.top);
  const left = Math.min(...shown.map(({ frame }) => frame.left));
  const size = { width: 0, height: 0 };
  let end = shown[0]?.frame.top ?? 0;
  let up = end;
  for (const { box, frame } of shown) {
    if (frame.top > end + APART) up += frame.top - end - APART;
    end = Math.max(end, frame.bottom);
    const at = { x: frame.left - left, y: frame.top - up };
    const place = make(group, "g", { transform: `translate(${at.x} ${at.y})` });
    const inner = new Box(box, frame, place);
    size.width = Math.max(size.width, at.x + inner.width);
    size.height = Math.max(size.height, at.y + inner.height);
  }
  return { group, ...size };
}

// "rgb(1, 2, 3)" and its opacity, of any colour that a style comes to; null where nothing is to be seen
/** @param {string} colour @returns {[colour: string, opacity: number] | null} */
function plain(colour) {
  const numbers = [...colour.matchAll(/[\d.]+(?:e-\d+)?%?/g)].map(([n]) =>
    n.endsWith("%") ? parseFloat(n) / 100 : Number(n),
  );
  if (numbers.length < 3) return null;
  const [r, g, b, a = 1] = numbers;
  const channels = colour.startsWith("color(") ? [r, g, b].map((c) => Math.round(255 * c)) : [r, g, b];
  return a > 0.004 ? [`rgb(${channels.join(", ")})`, a] : null;
}

/** @type {WeakMap<Element, HTMLCanvasElement>} The canvases of the images of drawings */
const CANVASES = new WeakMap();
let gradients = 0; // of a drawing, for their names

// One box of the page, drawn into a group; how far right and down anything of it goes
class Box {
  width = 0;
  height = 0;

  /** @param {HTMLElement} box @param {DOMRect} frame @param {SVGGElement} place */
  constructor(box, frame, place) {
    this.frame = frame;
    this.place = place;
    const skip = (/** @type {Node} */ node) => {
      const { parentElement } = node;
      if (parentElement?.localName === "svg" || /** @type {Element} */ (node).matches(LEFT_OUT))
        return NodeFilter.FILTER_REJECT;
      return NodeFilter.FILTER_ACCEPT;
    };
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_ELEMENT, skip);
    for (
      let node = /** @type {Element | null} */ (box);
      node;
      node = /** @type {Element | null} */ (walker.nextNode())
    ) {
      const style = getComputedStyle(node);
      const at = node.getBoundingClientRect();
      if (style.visibility === "hidden" || !at.width || !at.height || !isSeen(node, at)) continue;
      const faded = fading(node);
      if (node instanceof SVGSVGElement) this.drawing(node, at, faded);
      else if (node instanceof HTMLCanvasElement) this.image(node, at, faded);
      else if (node instanceof HTMLElement) this.ground(style, at, faded, node.matches(":focus-visible"));
    }
    this.texts(box);
  }

  // The place of something in the drawing, which grows as far as it goes
  /** @param {DOMRect} at */
  boxOf(at) {
    const { frame } = this;
    this.width = Math.max(this.width, at.right - frame.left);
    this.height = Math.max(this.height, at.bottom - frame.top);
    return { x: at.left - frame.left, y: at.top - frame.top, width: at.width, height: at.height };
  }

  // Ground and frame of an element: its colour or gradient, its borders, and a line inside or outside of it
  /** @param {CSSStyleDeclaration} style @param {DOMRect} at @param {number} faded @param {boolean} isFocused */
  ground(style, at, faded, isFocused) {
    const { place } = this;
    const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, at.width / 2, at.height / 2);
    const rx = radius || undefined;
    /** @param {string} colour @param {object} attributes */
    const filled = (colour, attributes) => {
      const found = plain(colour);
      if (found)
        make(place, "rect", { ...this.boxOf(at), rx, ...attributes, fill: found[0], "fill-opacity": faded * found[1] });
    };
    filled(style.backgroundColor, {});
    const gradient = /^linear-gradient\((?:(-?[\d.]+)deg, )?(.*)\)$/.exec(style.backgroundImage);
    const stops = gradient?.[2].match(/(?:rgba?|color)\([^)]*\)(?: -?[\d.]+%)?/g) ?? [];
    if (gradient && stops.length > 1) {
      const id = `ground${gradients++}`;
      const turn = ((Number(gradient[1] ?? 180) - 90) * Math.PI) / 180;
      const [dx, dy] = [Math.cos(turn) / 2, Math.sin(turn) / 2];
      const made = make(place, "linearGradient", { id, x1: 0.5 - dx, x2: 0.5 + dx, y1: 0.5 - dy, y2: 0.5 + dy });
      stops.forEach((stop, i) => {
        const [, colour, where] = /^(.*?\))(?: (-?[\d.]+%))?$/.exec(stop) ?? [];
        const [tone, opacity] = plain(colour) ?? ["rgb(0, 0, 0)", 0];
        make(made, "stop", {
          offset: where ?? `${(100 * i) / (stops.length - 1)}%`,
          "stop-color": tone,
          "stop-opacity": opacity,
        });
      });
      make(place, "rect", { ...part(this.boxOf(at), style), rx, fill: `url(#${id})`, opacity: faded });
    }
    /** @param {string} colour @param {number} wide @param {number} out how far outside the box its middle is @param {string} kind */
    const framed = (colour, wide, out, kind) => {
      const found = plain(colour);
      if (!found) return;
      const { x, y, width, height } = this.boxOf(at);
      make(place, "rect", {
        x: x - out,
        y: y - out,
        width: Math.max(0, width + 2 * out),
        height: Math.max(0, height + 2 * out),
        rx,
        fill: "none",
        stroke: found[0],
        "stroke-opacity": faded * found[1],
        "stroke-width": wide,
        "stroke-dasharray": kind === "dashed" ? `${3 * wide} ${2 * wide}` : undefined,
      });
    };
    const sides = /** @type {const} */ (["Top", "Right", "Bottom", "Left"]).map((side) => ({
      side,
      wide: style[`border${side}Style`] === "none" ? 0 : parseFloat(style[`border${side}Width`]),
      colour: style[`border${side}Color`],
    }));
    const [{ wide, colour }] = sides;
    if (sides.every((one) => one.wide === wide && one.colour === colour)) {
      if (wide) framed(colour, wide, -wide / 2, style.borderTopStyle);
    } else
      for (const { side, wide, colour } of sides) {
        const found = wide ? plain(colour) : null;
        if (!found) continue;
        const { x, y, width, height } = this.boxOf(at);
        const line = {
          Top: { x, y, width, height: wide },
          Bottom: { x, y: y + height - wide, width, height: wide },
          Left: { x, y, width: wide, height },
          Right: { x: x + width - wide, y, width: wide, height },
        }[side];
        make(place, "rect", { ...line, fill: found[0], "fill-opacity": faded * found[1] });
      }
    const inside = /^(.*\)) 0px 0px 0px ([\d.]+)px inset$/.exec(style.boxShadow);
    if (inside) framed(inside[1], Number(inside[2]), -Number(inside[2]) / 2, "");
    const outline = style.outlineStyle === "none" || isFocused ? 0 : parseFloat(style.outlineWidth);
    if (outline) framed(style.outlineColor, outline, parseFloat(style.outlineOffset) + outline / 2, style.outlineStyle);
  }

  /** @param {HTMLCanvasElement} canvas @param {DOMRect} at @param {number} faded */
  image(canvas, at, faded) {
    if (!canvas.width || !canvas.height) return;
    const image = make(this.place, "image", {
      ...this.boxOf(at),
      href: pictureOf(canvas, SHARP),
      preserveAspectRatio: "none",
      opacity: faded < 1 ? faded : undefined,
    });
    CANVASES.set(image, canvas);
  }

  // Colours that the page's style gives go into the drawing, which will stand alone.
  /** @param {SVGSVGElement} picture @param {DOMRect} at @param {number} faded */
  drawing(picture, at, faded) {
    const copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
    const [from, to] = [[...picture.querySelectorAll("*")], [...copy.querySelectorAll("*")]];
    from.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of PAINT)
        if (node.hasAttribute(name) || name === "fill") {
          const value = style.getPropertyValue(name);
          to[i].setAttribute(name, value.startsWith("color(") ? (plain(value)?.[0] ?? "none") : value);
        }
      if (node.localName === "text") set(to[i], { "font-size": style.fontSize, "font-weight": style.fontWeight });
    });
    copy.removeAttribute("class");
    for (const node of copy.querySelectorAll(".only-here")) node.remove();
    set(copy, { ...this.boxOf(at), overflow: "visible", opacity: faded < 1 ? faded : undefined });
    this.place.append(copy);
  }

  /** @param {HTMLElement} box */
  texts(box) {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = /** @type {Text} */ (walker.currentNode);
      const parent = /** @type {HTMLElement} */ (node.parentElement);
      const style = getComputedStyle(parent);
      if (!node.data.trim() || parent.closest(`svg, ${LEFT_OUT}`) || style.visibility === "hidden") continue;
      for (const [string, at] of lines(node)) {
        if (!at.width || !isSeen(parent, at)) continue;
        const size = parseFloat(style.fontSize);
        const [fill, opacity] = plain(style.color) ?? [style.color, 1];
        const said = cut(string, parent, at);
        if (!said) continue;
        const { x, y, height } = this.boxOf(at);
        const isRtl = style.direction === "rtl";
        make(
          this.place,
          "text",
          {
            x: isRtl ? x + at.width : x, // where such a text begins
            y: y + height / 2 + 0.35 * size,
            direction: isRtl ? "rtl" : undefined,
            "font-size": size,
            "font-weight": style.fontWeight,
            "font-style": style.fontStyle === "italic" ? "italic" : undefined,
            "text-decoration": style.textDecorationLine === "underline" ? "underline" : undefined,
            fill,
            "fill-opacity": opacity * fading(parent) < 1 ? opacity * fading(parent) : undefined,
            textLength: said === string ? at.width : undefined, // another font does not run into what follows
            lengthAdjust: said === string ? "spacingAndGlyphs" : undefined,
            style: `white-space: pre${style.unicodeBidi === "plaintext" ? "; unicode-bidi: plaintext" : ""}`,
            "font-family": style.fontFamily.includes("mono")
              ? "ui-monospace, 'DejaVu Sans Mono', monospace"
              : undefined,
          },
          said,
        );
      }
    }
  }
}

// The part of a box that its background image takes: all of it, or one tile
/** @param {{x: number, y: number, width: number, height: number}} box @param {CSSStyleDeclaration} style */
function part({ x, y, width, height }, { backgroundSize, backgroundPosition }) {
  const of = (/** @type {string | undefined} */ text, /** @type {number} */ whole) =>
    text?.endsWith("%") ? (parseFloat(text) * whole) / 100 : text?.endsWith("px") ? parseFloat(text) : whole;
  const [wide, high] = backgroundSize.split(" ");
  const [left, top] = backgroundPosition.split(" ");
  const [w, h] = [of(wide, width), of(high ?? wide, height)];
  return { x: x + of(left, width - w), y: y + of(top, height - h), width: w, height: h };
}

// The opacity of an element together with that of its ancestors
/** @param {Element} element */
function fading(element) {
  let found = 1;
  for (let box = /** @type {Element | null} */ (element); box; box = box.parentElement)
    found *= Number(getComputedStyle(box).opacity);
  return found;
}

// Whether any of it is in sight, in boxes that scroll
/** @param {Element} element @param {DOMRect} at */
function isSeen(element, at) {
  for (let box = element.parentElement; box && !box.classList.contains("hl"); box = box.parentElement) {
    const { overflowX, overflowY } = getComputedStyle(box);
    if (overflowX === "visible" && overflowY === "visible") continue;
    const { left, right, top, bottom } = box.getBoundingClientRect();
    if (at.right <= left + 0.5 || at.left >= right - 0.5 || at.bottom <= top + 0.5 || at.top >= bottom - 0.5)
      return false;
  }
  return true;
}

// A text by its lines, without the space around them; where each stands
/** @param {Text} node */
function lines(node) {
  const range = document.createRange();
  /** @type {[text: string, at: DOMRect][]} */
  const found = [];
  /** @param {number} from @param {number} to */
  const rect = (from, to) => {
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getClientRects();
  };
  let from = -1; // of the line that is read
  let end = 0;
  for (const word of node.data.matchAll(/\S+/g)) {
    const [start, stop] = [word.index, word.index + word[0].length];
    if (from >= 0 && rect(from, stop).length === 1) end = stop;
    else [from, end] = [start, stop];
    const at = joined(rect(from, end));
    if (!at) continue;
    const line = [node.data.slice(from, end).replace(/\s+/g, " "), at];
    if (end === stop && from < start) found.pop();
    found.push(/** @type {[string, DOMRect]} */ (line));
  }
  return found;
}

// The place of a word: one that is read from both sides has several parts in its line
/** @param {DOMRectList} parts */
function joined(parts) {
  const [first] = parts;
  const line = [...parts].filter(({ top, bottom }) => top < first.bottom && bottom > first.top);
  const [left, right] = [Math.min(...line.map((one) => one.left)), Math.max(...line.map((one) => one.right))];
  return first && new DOMRect(left, first.top, right - left, first.height);
}

// Text that the page cuts off with an ellipsis is cut off here as well.
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
    const fits = Math.floor((letters.length * room) / at.width) - 1;
    return fits > 0 ? letters.slice(0, fits).join("") + "…" : "";
  }
  return string;
}

// The drawing as a page of its own: with its title above, its caption below, and what it says about itself
/**
 * @param {import("./types.js").Drawing} drawing
 * @param {import("./types.js").About} about
 * @param {Record<"background" | "ink" | "mute", string>} colours
 */
export function sheet({ group, width: wide, height }, about, colours) {
  const width = Math.max(wide, NARROWEST);
  const font = `${getComputedStyle(document.body).fontFamily}, ${FALLBACK}`;
  const caption = wrapped(about.caption, width, SMALL, font);
  const title = wrapped(about.title, width, 20, font, 650);
  const top = MARGIN + title.length * 26;
  const size = { width: width + 2 * MARGIN, height: top + height + caption.length * SMALL * 1.4 + 2 * MARGIN };
  const doc = document.implementation.createDocument(SVG, "svg", null);
  const root = set(doc.documentElement, {
    ...size,
    viewBox: `0 0 ${size.width} ${size.height}`,
    role: "img",
    "aria-labelledby": "title description",
    "font-family": font,
  });
  make(root, "title", { id: "title" }, about.title);
  make(root, "desc", { id: "description" }, about.alt);
  const metadata = make(root, "metadata");
  for (const name of /** @type {const} */ (["caption", "snippet"])) {
    const item = doc.createElementNS("urn:headlight:export", name);
    item.textContent = clean(about[name]);
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
  const copy = doc.importNode(group, true);
  place.append(copy);
  caption.forEach((line, i) =>
    make(
      root,
      "text",
      { x: MARGIN, y: top + height + MARGIN + (i + 0.6) * SMALL * 1.4, "font-size": SMALL, fill: colours.mute },
      line,
    ),
  );
  const [from, to] = [group, copy].map((one) => [...one.querySelectorAll("image")]);
  /** @type {Map<Element, HTMLCanvasElement>} The canvases that its images were made of */
  const canvases = new Map();
  from.forEach((image, i) => {
    const canvas = CANVASES.get(image);
    if (canvas) canvases.set(to[i], canvas);
  });
  return { root, canvases, ...size };
}

// The same as the text of a file
/** @param {Parameters<typeof sheet>} of */
export function svg(...of) {
  const { root, width, height } = sheet(...of);
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(root)}\n`;
  return { text, width, height };
}

// The same as pixels, `scale` for each of its units
/**
 * @param {{text: string, width: number, height: number}} drawn
 * @param {import("./types.js").About} about
 * @param {number} scale
 */
export async function pixels(drawn, about, scale) {
  const image = await pictured(drawn.text);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(drawn.width * scale), Math.round(drawn.height * scale)];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return await png(
    canvas,
    { Title: about.title, Description: about.alt, Comment: about.caption, "Source code": about.snippet },
    scale,
  );
}

// The drawing as SVG without a word about it
/** @param {import("./types.js").Drawing} drawing */
export function alone({ group, width, height }) {
  const font = `${getComputedStyle(document.body).fontFamily}, ${FALLBACK}`;
  const root = element("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": font,
    "text-rendering": "geometricPrecision", // at any size letters stand as close as at their own
  });
  root.append(group.cloneNode(true));
  return new XMLSerializer().serializeToString(root);
}

// SVG as a picture that can be painted, with the page's own font in it
/** @param {string} text */
export async function pictured(text) {
  const image = new Image();
  const begins = text.indexOf(">", text.indexOf("<svg")) + 1;
  const parts = [text.slice(0, begins), "<style>", await faces(), "</style>", text.slice(begins)];
  image.src = URL.createObjectURL(new Blob(parts, { type: "image/svg+xml" }));
  try {
    await image.decode();
    return image;
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
