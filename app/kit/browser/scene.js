// A picture as a list of shapes, and the two ways to draw it: on a canvas and as SVG, on the screen and in a file. One list, so that
// all agree.
//
// Shapes: rect {x, y, w, h, fill, rx}, frame {x, y, w, h, stroke, width, rx}, hatch {x, y, w, h}, image {canvas, x, y, w, h},
// ramp {x, y, w, h, stops}, curve {points: four of a cubic, stroke, width, opacity, dash}, dot {x, y, r, fill, opacity},
// text {x, y, parts: [[text, fill, weight]], size, anchor, angle}; y of a text is the middle of its letters.

import { apart } from "./dom.js";
import { Pen } from "./pen.js";
import { clean, round, set, SVG } from "./picture/svg.js";

/** @typedef {Extract<import("./types.js").Shape, {w: number}>} Box */
const HATCH = 6; // between two lines of the hatching
const MIDDLE = 0.35; // of the size of the type: from the middle of small letters down to the line they stand on

/**
 * @param {number} x
 * @param {number} y
 * @param {import("./types.js").TextPart[]} parts
 * @param {number} size
 * @param {{anchor?: "start" | "middle" | "end", angle?: number, most?: number}} [more]
 * @returns {import("./types.js").Text}
 */
export const text = (x, y, parts, size, more = {}) => ({
  shape: "text",
  x,
  y,
  parts,
  size,
  anchor: "start",
  angle: 0,
  ...more,
});

// ------------------------------------------------------------------ SVG

// {width, height, background, hatch, font, shapes} and what the figure says about itself -> the text of a file
/** @param {import("./types.js").Scene} scene @param {import("./types.js").About} about */
export function svg(scene, about) {
  const doc = document.implementation.createDocument(SVG, "svg", null);
  const root = doc.documentElement;
  const { width, height } = scene;
  set(root, {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-labelledby": "title description",
    "font-family": scene.font,
  });
  const pen = new Pen(root);
  pen.draw("title", { id: "title" }, { text: about.title });
  pen.draw("desc", { id: "description" }, { text: about.alt });
  const metadata = pen.draw("metadata", {});
  for (const name of /** @type {const} */ (["caption", "snippet"])) {
    const item = doc.createElementNS("urn:headlight:export", name);
    item.textContent = clean(about[name]);
    metadata.append(item);
  }
  hatching(pen, scene.hatch);
  pen.draw("rect", { width, height, fill: scene.background });
  drawShapes(pen, scene.shapes);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(doc)}\n`;
}

// The pattern of the hatched shapes of this drawing
/** @param {Pen} pen @param {string} stroke */
export function hatching(pen, stroke) {
  const inside = new Pen(pen.draw("defs", {}));
  const box = inside.draw("pattern", { id: "hatch", width: HATCH, height: HATCH, patternUnits: "userSpaceOnUse" });
  new Pen(box).draw("path", {
    d: `M-1 ${HATCH + 1}L${HATCH + 1} -1M-1 1L1 -1M${HATCH - 1} ${HATCH + 1}L${HATCH + 1} ${HATCH - 1}`,
    stroke,
    "stroke-width": 1,
  });
}

// Shapes as SVG, over those that were drawn there before
/** @param {Pen} pen @param {import("./types.js").Shape[]} shapes */
export function drawShapes(pen, shapes) {
  let ramps = 0;
  for (const s of shapes) {
    const { x, y, w, h, rx } = /** @type {Box & {rx?: number}} */ (s);
    const box = { x, y, width: w, height: h, rx };
    if (s.shape === "rect") pen.draw("rect", { ...box, fill: s.fill, "fill-opacity": s.opacity });
    else if (s.shape === "hatch") pen.draw("rect", { ...box, fill: "url(#hatch)" });
    else if (s.shape === "frame") pen.draw("rect", { ...box, fill: "none", stroke: s.stroke, "stroke-width": s.width });
    else if (s.shape === "dot")
      pen.draw("circle", { cx: s.x, cy: s.y, r: s.r, fill: s.fill, "fill-opacity": s.opacity ?? 1 });
    else if (s.shape === "image")
      pen.draw("image", {
        ...box,
        href: s.canvas.toDataURL(),
        preserveAspectRatio: "none",
        style: "image-rendering: pixelated",
      });
    else if (s.shape === "ramp") {
      const id = `ramp${ramps++}`;
      const gradient = new Pen(pen.draw("linearGradient", { id }));
      s.stops.forEach((stop, i) =>
        gradient.draw("stop", { offset: String(i / (s.stops.length - 1)), "stop-color": stop }),
      );
      gradient.end();
      pen.draw("rect", { ...box, fill: `url(#${id})` });
    } else if (s.shape === "curve") {
      const [from, ...rest] = s.points.map((point) => point.map(round).join(" "));
      pen.draw("path", {
        d: `M${from}C${rest.join(" ")}`,
        fill: "none",
        stroke: s.stroke,
        "stroke-width": s.width,
        "stroke-opacity": s.opacity,
        "stroke-dasharray": s.dash?.join(" ") || "none",
      });
    } else {
      const place = s.angle
        ? { transform: `translate(${round(s.x)} ${round(s.y)}) rotate(${s.angle})`, y: MIDDLE * s.size }
        : { x: s.x, y: s.y + MIDDLE * s.size };
      const how = { ...place, "font-size": s.size, "text-anchor": s.anchor, style: "white-space: pre" };
      const [[string, fill, weight]] = s.parts;
      if (s.parts.length === 1)
        pen.draw("text", { ...how, fill, "font-weight": weight || undefined }, { text: string });
      else {
        const line = new Pen(pen.draw("text", how));
        for (const [string, fill, weight] of s.parts)
          line.draw("tspan", { fill, "font-weight": weight || undefined }, { text: apart(string) });
        line.end();
      }
    }
  }
  pen.end();
}

// ------------------------------------------------------------------ canvas

// The scene on a new canvas, `scale` pixels for each of its units
/** @param {import("./types.js").Scene} scene @param {number} scale */
export function canvas(scene, scale) {
  const made = document.createElement("canvas");
  made.width = Math.round(scene.width * scale);
  made.height = Math.round(scene.height * scale);
  const c = /** @type {CanvasRenderingContext2D} */ (made.getContext("2d"));
  c.scale(scale, scale);
  c.fillStyle = scene.background;
  c.fillRect(0, 0, scene.width, scene.height);
  paintShapes(c, scene.shapes, scene);
  return made;
}

// Shapes on a canvas, over what is there
/** @param {CanvasRenderingContext2D} c @param {import("./types.js").Shape[]} shapes @param {{hatch: string, font: string}} style */
export function paintShapes(c, shapes, { hatch: lines, font }) {
  for (const s of shapes) {
    c.globalAlpha = "opacity" in s ? (s.opacity ?? 1) : 1;
    if (s.shape === "rect") {
      c.fillStyle = s.fill;
      if (s.rx) rounded(c, s).fill();
      else c.fillRect(s.x, s.y, s.w, s.h);
    } else if (s.shape === "frame") {
      c.strokeStyle = s.stroke;
      c.lineWidth = s.width;
      if (s.rx) rounded(c, s).stroke();
      else c.strokeRect(s.x, s.y, s.w, s.h);
    } else if (s.shape === "dot") {
      c.fillStyle = s.fill;
      c.beginPath();
      c.arc(s.x, s.y, s.r, 0, 2 * Math.PI);
      c.fill();
    } else if (s.shape === "hatch") {
      c.fillStyle = lined(c, lines);
      c.fillRect(s.x, s.y, s.w, s.h);
    } else if (s.shape === "image") {
      c.imageSmoothingEnabled = false;
      c.drawImage(s.canvas, s.x, s.y, s.w, s.h);
    } else if (s.shape === "ramp") {
      const gradient = c.createLinearGradient(s.x, 0, s.x + s.w, 0);
      s.stops.forEach((stop, i) => gradient.addColorStop(i / (s.stops.length - 1), stop));
      c.fillStyle = gradient;
      c.fillRect(s.x, s.y, s.w, s.h);
    } else if (s.shape === "curve") {
      c.strokeStyle = s.stroke;
      c.lineWidth = s.width;
      c.setLineDash(s.dash ?? []);
      c.beginPath();
      c.moveTo(...s.points[0]);
      c.bezierCurveTo(.../** @type {[number, number, number, number, number, number]} */ (s.points.slice(1).flat()));
      c.stroke();
      c.setLineDash([]);
    } else if (s.shape === "text") write(c, s, font);
  }
  c.globalAlpha = 1;
}

/** @param {CanvasRenderingContext2D} c @param {Box & {rx?: number}} box */
function rounded(c, { x, y, w, h, rx }) {
  c.beginPath();
  c.roundRect(x, y, w, h, rx);
  return c;
}

/** @param {number | undefined} weight @param {number} size @param {string} font */
const typeface = (weight, size, font) => `${weight || 400} ${size}px ${font}`;

/** @param {CanvasRenderingContext2D} c @param {import("./types.js").Text} text @param {string} font */
function write(c, { x, y, parts, size, anchor, angle, most }, font) {
  const widths = parts.map(([string, , weight]) => {
    c.font = typeface(weight, size, font);
    return c.measureText(string).width;
  });
  const all = widths.reduce((a, b) => a + b, 0);
  c.save();
  c.textAlign = "left";
  c.textBaseline = "alphabetic";
  c.translate(x, y);
  c.rotate((angle * Math.PI) / 180);
  let at = anchor === "end" ? -all : anchor === "middle" ? -all / 2 : 0;
  parts.forEach(([string, fill, weight], i) => {
    c.font = typeface(weight, size, font);
    c.fillStyle = fill;
    c.fillText(string, at, MIDDLE * size, most);
    at += widths[i];
  });
  c.restore();
}

/** @type {Map<string, CanvasPattern>} */
const HATCHES = new Map(); // of each colour and number of pixels

// The same lines as SVG's pattern: they run on from one cell to the next.
/** @param {CanvasRenderingContext2D} c @param {string} stroke */
function lined(c, stroke) {
  const ratio = c.getTransform().a;
  const name = `${stroke} ${ratio}`;
  const known = HATCHES.get(name);
  if (known) return known;
  const canvas = document.createElement("canvas");
  const size = (canvas.width = canvas.height = Math.round(HATCH * ratio));
  const inner = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  inner.strokeStyle = stroke;
  inner.lineWidth = ratio;
  inner.beginPath();
  for (const shift of [-size, 0, size]) {
    inner.moveTo(shift - 1, size + 1);
    inner.lineTo(shift + size + 1, -1);
  }
  inner.stroke();
  const pattern = /** @type {CanvasPattern} */ (c.createPattern(canvas, "repeat"));
  pattern.setTransform(new DOMMatrix().scale(HATCH / size));
  HATCHES.set(name, pattern);
  return pattern;
}

/** @type {CanvasRenderingContext2D | undefined} */
let ruler;
/** @param {string} string @param {number} size @param {string} font @param {number} [weight] */
export function widthOf(string, size, font, weight) {
  ruler ??= /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  ruler.font = typeface(weight, size, font);
  return ruler.measureText(string).width;
}

// Lines of at most `width`, broken at spaces, and inside a word only where it alone is longer
/** @param {string} string @param {number} width @param {number} size @param {string} font @param {number} [weight] */
export function wrapped(string, width, size, font, weight) {
  /** @type {string[]} */
  const lines = [];
  let line = "";
  const pieces = string.split(/(?<= )/);
  while (pieces.length) {
    const piece = /** @type {string} */ (pieces.shift());
    if (widthOf((line + piece).trimEnd(), size, font, weight) <= width) line += piece;
    else if (line) {
      lines.push(line.trimEnd());
      line = "";
      pieces.unshift(piece);
    } else {
      const letters = Array.from(piece);
      let fits = letters.length - 1;
      while (fits > 1 && widthOf(letters.slice(0, fits).join(""), size, font, weight) > width)
        fits = Math.floor(fits * 0.9);
      lines.push(letters.slice(0, Math.max(1, fits)).join(""));
      if (letters.length > fits && fits >= 1) pieces.unshift(letters.slice(Math.max(1, fits)).join(""));
    }
  }
  if (line.trim()) lines.push(line.trimEnd());
  return lines;
}

// ------------------------------------------------------------------ PNG

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

/** @param {string} name @param {Uint8Array} data */
function chunk(name, data) {
  const out = new Uint8Array(data.length + 12);
  const view = new DataView(out.buffer);
  view.setUint32(0, data.length);
  out.set(new TextEncoder().encode(name), 4);
  out.set(data, 8);
  let crc = 0xffffffff;
  for (let i = 4; i < out.length - 4; i++) crc = CRC[(crc ^ out[i]) & 255] ^ (crc >>> 8);
  view.setUint32(out.length - 4, (crc ^ 0xffffffff) >>> 0);
  return out;
}

// A canvas as the bytes of a PNG that says what it shows: {keyword: text} as iTXt chunks, and its size on paper (pHYs).
/** @param {HTMLCanvasElement} drawn @param {Record<string, string>} texts @param {number} scale */
export async function png(drawn, texts, scale) {
  const blob = await new Promise((/** @type {(blob: Blob | null) => void} */ done) => drawn.toBlob(done, "image/png"));
  if (!blob) throw new Error("the browser could not make a picture of this size");
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const size = new Uint8Array(9);
  const perMetre = Math.round((96 * scale) / 0.0254);
  new DataView(size.buffer).setUint32(0, perMetre);
  new DataView(size.buffer).setUint32(4, perMetre);
  size[8] = 1;
  const encode = new TextEncoder();
  const more = [chunk("pHYs", size)];
  for (const [keyword, value] of Object.entries(texts)) {
    more.push(
      chunk("iTXt", new Uint8Array([...encode.encode(keyword), 0, 0, 0, 0, 0, ...encode.encode(value.toWellFormed())])),
    );
  }
  const header = 8 + 25; // the signature and IHDR, which come first
  return new Blob([bytes.subarray(0, header), ...more, bytes.subarray(header)], { type: "image/png" });
}
