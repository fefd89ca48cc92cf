// A drawing in SVG as a page of PDF: boxes, lines, curves, gradients, hatching and text in PDF's own operators. Text is set in the fonts that
// every reader has, as wide as in the page's own; letters that those lack are drawn. An image becomes boxes of one colour where it is a map
// of cells, and stays an image where it is a photograph.

import { paintedAgain } from "../picture/canvas.js";
import { widthOf } from "../scene.js";
import { pieces } from "./fonts.js";
import { areas, boxed, partsOf, round } from "./paths.js";
import { num, Page } from "./pdf.js";
import { after, Recorder } from "./recorder.js";

/** @typedef {import("./pdf.js").Matrix} Matrix */
/** @typedef {import("./paths.js").Part} Part */
/** @typedef {Record<string, string>} Style what children inherit */

const MOST_AREAS = 60_000; // of an image, before it stays one
const DRAWN_AT = 200; // pixels of a letter that no font has
const SEEN = 110; // of 255: what of its edge belongs to it
const UNSEEN = "defs, title, desc, metadata, pattern, clipPath, linearGradient, style, script";
const INHERITED = {
  fill: "black",
  stroke: "none",
  "stroke-width": "1",
  "fill-opacity": "1",
  "stroke-opacity": "1",
  "stroke-dasharray": "none",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  "fill-rule": "nonzero",
  "font-size": "16",
  "font-weight": "400",
  "font-style": "normal",
  "font-family": "sans-serif",
  "text-anchor": "start",
  "white-space": "normal",
  visibility: "visible",
  color: "black",
};
const OWN = ["opacity", "display", "clip-path", "text-decoration", "stop-color", "stop-opacity", "transform"];
/** @type {Matrix} */
const SAME = [1, 0, 0, 1, 0, 0];
/** @type {Record<Part["op"], string>} */
const OPS = { M: "m", L: "l", C: "c", Z: "h" };

/**
 * The file. `canvases` are those that images were made of.
 * @param {Element} root @param {import("../types.js").About} about @param {Map<Element, HTMLCanvasElement>} [canvases]
 */
export async function pdfOf(root, about, canvases = new Map()) {
  const drawing = new Drawing(root, canvases);
  await drawing.images();
  drawing.children(root, drawing.styleOf(root, INHERITED), 1, SAME);
  const language = document.documentElement.lang || "en";
  const bytes = await drawing.page.bytes(about, language);
  return new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)], { type: "application/pdf" });
}

/** @type {CanvasRenderingContext2D | undefined} */
let ink;
/** Any colour as its three parts and how much of it is seen; null for none. @param {string} text @returns {[number[], number] | null} */
function colourOf(text) {
  if (!text || text === "none" || text === "transparent") return null;
  ink ??= /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  ink.fillStyle = "black";
  ink.fillStyle = text;
  const found = String(ink.fillStyle);
  if (found[0] === "#") return [[1, 3, 5].map((i) => parseInt(found.slice(i, i + 2), 16) / 255), 1];
  const [r, g, b, a = 1] = (found.match(/[\d.]+/g) ?? []).map(Number);
  const most = found.startsWith("color") ? 1 : 255;
  return a ? [[r / most, g / most, b / most], a] : null;
}

/** @param {string | null} text @param {number} [of] what 100 % are @returns {number} */
const length = (text, of = 1) => (text?.endsWith("%") ? (parseFloat(text) / 100) * of : parseFloat(text ?? "") || 0);

/** @param {string | null} text @returns {Matrix} */
export function matrixOf(text) {
  let found = SAME;
  for (const [, name, inside] of (text ?? "").matchAll(/(\w+)\(([^)]*)\)/g)) {
    const n = (inside.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi) ?? []).map(Number);
    if (name === "matrix") found = after(found, /** @type {Matrix} */ (n));
    else if (name === "translate") found = after(found, [1, 0, 0, 1, n[0] ?? 0, n[1] ?? 0]);
    else if (name === "scale") found = after(found, [n[0], 0, 0, n[1] ?? n[0], 0, 0]);
    else if (name === "rotate") {
      const [cos, sin] = [Math.cos((n[0] * Math.PI) / 180), Math.sin((n[0] * Math.PI) / 180)];
      const [x, y] = [n[1] ?? 0, n[2] ?? 0];
      found = after(found, [cos, sin, -sin, cos, x - cos * x + sin * y, y - sin * x - cos * y]);
    }
  }
  return found;
}

class Drawing {
  /** @type {Map<Element, {width: number, height: number, data: Uint8ClampedArray}>} */
  pixels = new Map();

  /** @param {Element} root @param {Map<Element, HTMLCanvasElement>} canvases */
  constructor(root, canvases) {
    this.root = root;
    const box = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    const [, , width, height] =
      box.length === 4 ? box : [0, 0, length(root.getAttribute("width")), length(root.getAttribute("height"))];
    this.page = new Page(width, height);
    for (const [image, canvas] of canvases) this.paintedAgain(image, canvas);
  }

  // A canvas that can be painted once more is painted in shapes, and stands there in the place of its image.
  /** @param {Element} image @param {HTMLCanvasElement} canvas */
  paintedAgain(image, canvas) {
    const recorder = new Recorder();
    try {
      const size = paintedAgain(canvas, /** @type {any} */ (recorder));
      if (!size) return;
      const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => length(image.getAttribute(name)));
      const { group } = recorder;
      group.setAttribute("transform", `matrix(${w / size.width} 0 0 ${h / size.height} ${x} ${y})`);
      const opacity = image.getAttribute("opacity");
      if (opacity) group.setAttribute("opacity", opacity);
      image.replaceWith(group);
    } catch (error) {
      console.info(error); // it stays pixels
    }
  }

  // The pixels of images, which takes a moment to read
  async images() {
    for (const node of this.root.querySelectorAll("image")) {
      const href = node.getAttribute("href") ?? node.getAttributeNS("http://www.w3.org/1999/xlink", "href");
      if (!href?.startsWith("data:")) continue;
      const image = new Image();
      image.src = href;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
      context.drawImage(image, 0, 0);
      this.pixels.set(node, context.getImageData(0, 0, canvas.width, canvas.height));
    }
  }

  /** @param {Element} node @param {Style} inherited @returns {Style} */
  styleOf(node, inherited) {
    /** @type {Style} */
    const own = {};
    for (const name of [...Object.keys(INHERITED), ...OWN]) {
      const said = node.getAttribute(name);
      if (said !== null && said !== "inherit") own[name] = said;
    }
    for (const [, name, said] of (node.getAttribute("style") ?? "").matchAll(/([\w-]+)\s*:\s*([^;]+)/g))
      if (said.trim() !== "inherit") own[name] = said.trim();
    const kept = Object.fromEntries(Object.keys(INHERITED).map((name) => [name, inherited[name]]));
    const found = { ...kept, ...own };
    if (own["font-size"]?.endsWith("em"))
      found["font-size"] = String(length(own["font-size"]) * length(kept["font-size"]));
    for (const name of ["fill", "stroke"]) if (found[name] === "currentColor") found[name] = found.color;
    return found;
  }

  /** @param {Element} parent @param {Style} style @param {number} opacity @param {Matrix} at */
  children(parent, style, opacity, at) {
    for (const node of parent.children) this.node(node, style, opacity, at);
  }

  /** @param {Element} node @param {Style} inherited @param {number} above the opacity of its parent @param {Matrix} at where that is */
  node(node, inherited, above, at) {
    if (node.matches(UNSEEN)) return;
    const style = this.styleOf(node, inherited);
    const opacity = above * Number(style.opacity ?? 1);
    if (style.display === "none" || opacity <= 0) return;
    const own = node.localName === "svg" ? this.placeOf(node) : matrixOf(node.getAttribute("transform"));
    const place = after(at, own);
    const { page } = this;
    page.put("q");
    if (own.some((x, i) => x !== SAME[i])) page.put(`${own.map(num).join(" ")} cm`);
    if (style["clip-path"]) this.clip(style["clip-path"]);
    const { localName: name } = node;
    if (name === "g" || name === "svg" || name === "a") this.children(node, style, opacity, place);
    else if (style.visibility === "hidden") undefined;
    else if (name === "text") this.text(node, style, opacity);
    else if (name === "image") this.image(node, opacity);
    else {
      const parts = shape(node);
      if (parts?.length) this.paint(parts, style, opacity, place);
    }
    page.put("Q");
  }

  // A drawing within the drawing
  /** @param {Element} node @returns {Matrix} */
  placeOf(node) {
    const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => length(node.getAttribute(name)));
    const box = (node.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    if (box.length !== 4 || !w || !h) return [1, 0, 0, 1, x, y];
    const [left, top, wide, high] = box;
    if (node.getAttribute("preserveAspectRatio") === "none")
      return [w / wide, 0, 0, h / high, x - (left * w) / wide, y - (top * h) / high];
    const scale = Math.min(w / wide, h / high);
    return [scale, 0, 0, scale, x + (w - scale * wide) / 2 - left * scale, y + (h - scale * high) / 2 - top * scale];
  }

  /** @param {string} text such as url(#name) */
  named(text) {
    const id = /#([^"')]+)/.exec(text)?.[1];
    return id ? this.root.querySelector(`[id="${CSS.escape(id)}"]`) : null;
  }

  /** @param {string} text */
  clip(text) {
    const found = this.named(text);
    if (!found) return;
    const parts = [...found.children].flatMap((node) => {
      const by = matrixOf(node.getAttribute("transform"));
      return (shape(node) ?? []).map(({ op, to }) => ({ op, to: moved(to, by) }));
    });
    this.page.put(parts.length ? `${path(/** @type {Part[]} */ (parts))} W n` : "0 0 0 0 re W n");
  }

  // ------------------------------------------------------------------ shapes

  /** @param {Part[]} parts @param {Style} style @param {number} opacity @param {Matrix} place */
  paint(parts, style, opacity, place) {
    const { page } = this;
    const line = style.stroke.startsWith("url") ? null : colourOf(style.stroke);
    const wide = length(style["stroke-width"]);
    const hasLine = line !== null && wide > 0;
    const evenOdd = style["fill-rule"] === "evenodd" ? "*" : "";
    const d = path(parts);
    let area = colourOf(style.fill);
    if (style.fill.startsWith("url")) {
      this.filled(style.fill, parts, opacity * Number(style["fill-opacity"]), place);
      area = null;
    }
    if (!area && !hasLine) return;
    page.put(
      page.alpha(
        area ? opacity * length(style["fill-opacity"]) * area[1] : 1,
        hasLine ? opacity * length(style["stroke-opacity"]) * line[1] : 1,
      ),
    );
    if (area) page.put(`${area[0].map(num).join(" ")} rg`);
    if (hasLine) {
      page.put(`${line[0].map(num).join(" ")} RG ${num(wide)} w`);
      const cap = ["butt", "round", "square"].indexOf(style["stroke-linecap"]);
      const join = ["miter", "round", "bevel"].indexOf(style["stroke-linejoin"]);
      if (cap > 0) page.put(`${cap} J`);
      if (join > 0) page.put(`${join} j`);
      const dash = (style["stroke-dasharray"].match(/[\d.]+/g) ?? []).map(Number);
      if (dash.some((x) => x > 0)) page.put(`[${dash.map(num).join(" ")}] 0 d`);
    }
    page.put(`${d} ${area ? (hasLine ? `B${evenOdd}` : `f${evenOdd}`) : "S"}`);
  }

  // An area with a gradient, or hatched
  /** @param {string} fill @param {Part[]} parts @param {number} opacity @param {Matrix} place */
  filled(fill, parts, opacity, place) {
    const { page } = this;
    const found = this.named(fill);
    if (!found) return;
    page.put(`q ${page.alpha(opacity, opacity)}`);
    if (found.localName === "pattern") {
      const [w, h] = ["width", "height"].map((name) => length(found.getAttribute(name)));
      const inner = new Drawing(found, new Map());
      inner.children(found, inner.styleOf(found, INHERITED), 1, SAME);
      const by = after(after(page.base, place), matrixOf(found.getAttribute("patternTransform")));
      page.put(`/Pattern cs /${page.tiles(by, w, h, inner.page.out.join("\n"))} scn ${path(parts)} f`);
    } else {
      const stops = [...found.children].map((stop) => {
        const style = this.styleOf(stop, INHERITED);
        const [colour, seen] = colourOf(style["stop-color"] ?? "black") ?? [[1, 1, 1], 0];
        const share = seen * Number(style["stop-opacity"] ?? 1);
        const own = share < 1 ? colour.map((c, i) => share * c + (1 - share) * this.ground[i]) : colour;
        return /** @type {[number, number[]]} */ ([length(stop.getAttribute("offset")), own]);
      });
      if (stops.length === 1) stops.push([1, stops[0][1]]);
      for (let i = 1; i < stops.length; i++) stops[i][0] = Math.max(stops[i][0], stops[i - 1][0] + 1e-4);
      const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((name, i) =>
        length(found.getAttribute(name) ?? (i === 2 ? "1" : "0")),
      );
      page.put(`${path(parts)} W n`);
      if (found.getAttribute("gradientUnits") !== "userSpaceOnUse") {
        const [left, top, right, bottom] = bounds(parts);
        page.put(`${[right - left, 0, 0, bottom - top, left, top].map(num).join(" ")} cm`);
      }
      if (stops.length) page.put(`/${page.shading([x1, y1, x2, y2], stops)} sh`);
    }
    page.put("Q");
  }

  // The paper, which a see-through end of a gradient shows
  get ground() {
    const paper = [...this.root.children].find((node) => node.localName === "rect");
    return colourOf(paper?.getAttribute("fill") ?? "")?.[0] ?? [1, 1, 1];
  }

  /** @param {Element} node @param {number} opacity */
  image(node, opacity) {
    const { page } = this;
    const image = this.pixels.get(node);
    if (!image) return;
    const [x, y, w, h] = ["x", "y", "width", "height"].map((name) => length(node.getAttribute(name)));
    const found = areas(image, MOST_AREAS);
    const isMap = found && found.length <= Math.max(2000, (image.width * image.height) / 2 + 1);
    const isSmall = image.width * image.height <= MOST_AREAS; // a pixel for each cell
    if (found && (isMap || isSmall)) {
      page.put(`${[w / image.width, 0, 0, h / image.height, x, y].map(num6).join(" ")} cm`);
      const byColour = Map.groupBy(found, ({ colour }) => colour.join(" "));
      for (const boxes of byColour.values()) {
        const [r, g, b, a] = boxes[0].colour;
        page.put(`q ${page.alpha((opacity * a) / 255, 1)} ${[r, g, b].map((c) => num(c / 255)).join(" ")} rg`);
        page.put(`${boxes.map((box) => `${[box.x, box.y, box.w, box.h].map(num).join(" ")} re`).join("\n")} f Q`);
      }
      return;
    }
    page.put(page.alpha(opacity, opacity));
    page.put(`${[w, 0, 0, -h, x, y + h].map(num).join(" ")} cm /${page.image(image)} Do`);
  }

  // ------------------------------------------------------------------ texts

  /** @param {Element} node @param {Style} style @param {number} opacity */
  text(node, style, opacity) {
    /** @type {{x: number, y: number, runs: {text: string, style: Style, opacity: number, y: number, dx: number}[]}[]} Lines, each aligned by itself */
    const lines = [];
    let [x, y] = [0, 0];
    /** @param {Element} element @param {Style} own @param {number} seen */
    const read = (element, own, seen) => {
      const size = length(own["font-size"]);
      const said = (/** @type {string} */ name) => {
        const text = element.getAttribute(name);
        return text === null ? null : text.endsWith("em") ? length(text) * size : length(text);
      };
      const [ax, ay] = [said("x"), said("y")];
      if (ax !== null) x = ax;
      if (ay !== null) y = ay;
      y += said("dy") ?? 0;
      let dx = said("dx") ?? 0;
      if (ax !== null || ay !== null || !lines.length) lines.push({ x, y, runs: [] });
      for (const child of element.childNodes) {
        if (child.nodeType === Node.TEXT_NODE) {
          const raw = child.textContent ?? "";
          const text = own["white-space"].startsWith("pre") ? raw.replace(/[\t\n]/g, " ") : raw.replace(/\s+/g, " ");
          if (!text) continue;
          lines[lines.length - 1].runs.push({ text, style: own, opacity: seen, y, dx });
          dx = 0;
        } else if (child instanceof Element && child.localName === "tspan") {
          const inner = this.styleOf(child, own);
          if (inner.display !== "none") read(child, inner, seen * Number(inner.opacity ?? 1));
        }
      }
    };
    read(node, style, opacity);
    const wanted = node.getAttribute("textLength");
    for (const { x, runs } of lines) {
      if (!runs.length || !runs.some(({ text }) => text.trim())) continue;
      const widths = runs.map(({ text, style }) => this.width(text, style));
      const all = widths.reduce((a, b, i) => a + b + runs[i].dx, 0);
      const stretch = wanted && lines.length === 1 && all ? length(wanted) / all : 1;
      const anchor = runs[0].style["text-anchor"];
      let at = x - (anchor === "middle" ? (all * stretch) / 2 : anchor === "end" ? all * stretch : 0);
      runs.forEach((run, i) => {
        at += run.dx;
        this.run(run.text, run.style, run.opacity, [at, run.y], widths[i] * stretch);
        at += widths[i] * stretch;
      });
    }
  }

  /** @param {string} text @param {Style} style */
  width(text, style) {
    return widthOf(text, length(style["font-size"]), style["font-family"], weightOf(style));
  }

  /** Text of one style. @param {string} text @param {Style} style @param {number} opacity @param {[x: number, y: number]} at @param {number} wide */
  run(text, style, opacity, [x, y], wide) {
    const { page } = this;
    const colour = colourOf(style.fill);
    if (!colour || !wide) return;
    const size = length(style["font-size"]);
    const bold = weightOf(style) >= 600;
    const italic = style["font-style"] === "italic" || style["font-style"] === "oblique";
    const found = pieces(text, { bold, italic, mono: /mono|courier/i.test(style["font-family"]) });
    const widths = found.map((piece) => this.width(piece.text, style));
    const all = widths.reduce((a, b) => a + b, 0) || 1;
    page.put(
      `q ${page.alpha(opacity * length(style["fill-opacity"]) * colour[1], 1)} ${colour[0].map(num).join(" ")} rg BT`,
    );
    let at = x;
    found.forEach((piece, i) => {
      const room = (widths[i] / all) * wide;
      let [name, codes, own] = ["", piece.codes, piece.width];
      if (piece.font) name = page.font(piece.font);
      else {
        const [font, code, drawn] = page.sign(`${style["font-family"]} ${bold} ${italic} ${piece.text}`, () =>
          traced(piece.text, style),
        );
        [name, codes, own] = [font, [code], drawn];
      }
      const stretch = own ? (100 * room) / (own * size) : 100;
      const hex = codes.map((code) => code.toString(16).padStart(2, "0")).join("");
      page.put(`/${name} ${num(size)} Tf ${num(stretch)} Tz 1 0 0 -1 ${num(at)} ${num(y)} Tm <${hex}> Tj`);
      at += room;
    });
    page.put("ET");
    if (style["text-decoration"]?.includes("underline"))
      page.put(`${[x, y + 0.12 * size, wide, 0.06 * size].map(num).join(" ")} re f`);
    page.put("Q");
  }
}

/** @param {number} x */
const num6 = (x) => String(Math.round(x * 1e6) / 1e6);

/** @param {Style} style */
const weightOf = (style) => ({ bold: 700, normal: 400 })[style["font-weight"]] ?? (Number(style["font-weight"]) || 400);

/** Letters as the browser draws them, as boxes of whole pixels: fine enough for any printer. @param {string} text @param {Style} style @returns {import("./pdf.js").Sign} */
function traced(text, style) {
  const canvas = document.createElement("canvas");
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  const font = `${style["font-style"]} ${weightOf(style)} ${DRAWN_AT}px ${style["font-family"]}`;
  context.font = font;
  const wide = context.measureText(text).width;
  [canvas.width, canvas.height] = [Math.ceil(wide) + 2 * DRAWN_AT, 3 * DRAWN_AT];
  Object.assign(context, { font, fillStyle: "black" });
  context.fillText(text, DRAWN_AT, 2 * DRAWN_AT);
  const image = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < image.data.length; i += 4) image.data.set([0, 0, 0, image.data[i + 3] >= SEEN ? 255 : 0], i);
  const found = areas(image, MOST_AREAS) ?? [];
  return { text, wide, boxes: found.map(({ x, y, w, h }) => [x - DRAWN_AT, 2 * DRAWN_AT - y - h, w, h]) };
}

/** The outline of a shape. @param {Element} node @returns {Part[] | null} */
function shape(node) {
  const number = (/** @type {string} */ name) => length(node.getAttribute(name));
  const { localName: name } = node;
  if (name === "path") return partsOf(node.getAttribute("d") ?? "");
  if (name === "rect") {
    const [rx, ry] = [node.getAttribute("rx"), node.getAttribute("ry")].map((text) =>
      text === null ? null : length(text),
    );
    const [w, h] = [number("width"), number("height")];
    return w > 0 && h > 0 ? boxed(number("x"), number("y"), w, h, rx ?? ry ?? 0, ry ?? rx ?? 0) : null;
  }
  if (name === "circle") return round(number("cx"), number("cy"), number("r"), number("r"));
  if (name === "ellipse") return round(number("cx"), number("cy"), number("rx"), number("ry"));
  if (name === "line") return partsOf(`M${number("x1")} ${number("y1")}L${number("x2")} ${number("y2")}`);
  if (name === "polyline" || name === "polygon")
    return partsOf(`M${node.getAttribute("points") ?? ""}${name === "polygon" ? "Z" : ""}`);
  return null;
}

/** @param {number[]} points @param {Matrix} by */
const moved = (points, by) =>
  points.map((_, i) => {
    const [x, y] = [points[i - (i % 2)], points[i - (i % 2) + 1]];
    return i % 2 ? by[1] * x + by[3] * y + by[5] : by[0] * x + by[2] * y + by[4];
  });

/** @param {Part[]} parts */
const path = (parts) => parts.map(({ op, to }) => [...to.map(num), OPS[op]].join(" ")).join(" ");

/** @param {Part[]} parts @returns {[left: number, top: number, right: number, bottom: number]} */
function bounds(parts) {
  const all = parts.flatMap(({ to }) => to);
  const side = (/** @type {number} */ of) => all.filter((_, i) => i % 2 === of);
  return [Math.min(...side(0)), Math.min(...side(1)), Math.max(...side(0)), Math.max(...side(1))];
}
