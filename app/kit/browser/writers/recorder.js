// A canvas that remembers what is painted on it as shapes of SVG: what a room paints comes into a PDF as lines and boxes, not as pixels.
// It knows what the rooms' painters use; who asks for more gets an error, and the canvas is then saved as pixels.

import { svg } from "../picture/svg.js";
import { widthOf } from "../scene.js";

/** @typedef {import("./pdf.js").Matrix} Matrix */
const RATIO = 1.0001; // of its pixels: a pattern that was made for it is known by it
const HATCH = "url(#hatched)";

/** a after b: a point goes through b first. @param {Matrix} a @param {Matrix} b @returns {Matrix} */
export const after = (a, b) => [
  a[0] * b[0] + a[2] * b[1],
  a[1] * b[0] + a[3] * b[1],
  a[0] * b[2] + a[2] * b[3],
  a[1] * b[2] + a[3] * b[3],
  a[0] * b[4] + a[2] * b[5] + a[4],
  a[1] * b[4] + a[3] * b[5] + a[5],
];

let [clips, gradients] = [0, 0]; // so far, for their names

export class Recorder {
  group = svg("g");
  /** @type {Record<string, any>} */
  state = {
    fillStyle: "black",
    strokeStyle: "black",
    lineWidth: 1,
    lineCap: "butt",
    lineJoin: "miter",
    globalAlpha: 1,
    font: "10px sans-serif",
    textAlign: "start",
    textBaseline: "alphabetic",
    dash: [],
    matrix: [1, 0, 0, 1, 0, 0],
    clip: "",
  };
  /** @type {Record<string, any>[]} */
  kept = [];
  d = "";
  imageSmoothingEnabled = true;

  constructor() {
    for (const name of Object.keys(this.state))
      if (!["dash", "matrix", "clip"].includes(name))
        Object.defineProperty(this, name, {
          get: () => this.state[name],
          set: (value) => (this.state[name] = value),
        });
  }

  // ------------------------------------------------------------------ where

  save() {
    this.kept.push({ ...this.state });
  }
  restore() {
    this.state = this.kept.pop() ?? this.state;
  }
  /** @param {...number} by */
  transform(...by) {
    this.state.matrix = after(this.state.matrix, /** @type {Matrix} */ (by));
  }
  /** @param {number} x @param {number} y */
  translate(x, y) {
    this.transform(1, 0, 0, 1, x, y);
  }
  /** @param {number} x @param {number} y */
  scale(x, y) {
    this.transform(x, 0, 0, y, 0, 0);
  }
  /** @param {number} angle */
  rotate(angle) {
    this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0);
  }
  getTransform() {
    return { a: RATIO };
  }

  /** @template {keyof SVGElementTagNameMap} Tag @param {Tag} tag @param {import("../picture/svg.js").Attributes} attributes @param {string} [text] */
  put(tag, attributes, text) {
    const { matrix, globalAlpha, clip } = this.state;
    const isPlain = matrix.every((/** @type {number} */ x, /** @type {number} */ i) => x === [1, 0, 0, 1, 0, 0][i]);
    const node = svg(tag, attributes, text);
    if (!isPlain) node.setAttribute("transform", `matrix(${matrix.join(" ")})`);
    if (globalAlpha < 1) node.setAttribute("opacity", String(globalAlpha));
    if (!clip) return this.group.append(node);
    const cut = svg("g", { "clip-path": clip }); // where it was set, whatever was turned since
    cut.append(node);
    this.group.append(cut);
  }

  /** @param {any} style */
  paint(style) {
    if (typeof style === "string") return style;
    if (style instanceof Pattern || style instanceof Gradient) return style.placed(this.group);
    throw new TypeError("a pattern of another canvas");
  }

  get lines() {
    const { strokeStyle, lineWidth, lineCap, lineJoin, dash } = this.state;
    return {
      fill: "none",
      stroke: this.paint(strokeStyle),
      "stroke-width": lineWidth,
      "stroke-linecap": lineCap,
      "stroke-linejoin": lineJoin,
      "stroke-dasharray": dash.length ? dash.join(" ") : undefined,
    };
  }

  // ------------------------------------------------------------------ shapes

  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  fillRect(x, y, width, height) {
    const [w, h] = [Math.abs(width), Math.abs(height)];
    if (w && h)
      this.put("rect", {
        x: Math.min(x, x + width),
        y: Math.min(y, y + height),
        width: w,
        height: h,
        fill: this.paint(this.state.fillStyle),
      });
  }
  /** @param {number} x @param {number} y @param {number} width @param {number} height */
  strokeRect(x, y, width, height) {
    this.put("rect", { x, y, width, height, ...this.lines });
  }
  clearRect() {} // nothing is there before the first shape
  beginPath() {
    this.d = "";
  }
  closePath() {
    this.d += "Z";
  }
  /** @param {number} x @param {number} y */
  moveTo(x, y) {
    this.d += `M${x} ${y}`;
  }
  /** @param {number} x @param {number} y */
  lineTo(x, y) {
    this.d += `${this.d ? "L" : "M"}${x} ${y}`;
  }
  /** @param {...number} to */
  bezierCurveTo(...to) {
    this.d += `C${to.join(" ")}`;
  }
  /** @param {...number} to */
  quadraticCurveTo(...to) {
    this.d += `Q${to.join(" ")}`;
  }
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  rect(x, y, w, h) {
    this.d += `M${x} ${y}h${w}v${h}h${-w}Z`;
  }
  /** @param {number} x @param {number} y @param {number} w @param {number} h @param {number | number[]} [radius] */
  roundRect(x, y, w, h, radius = 0) {
    const r = Math.min(Number([radius].flat()[0]), Math.abs(w) / 2, Math.abs(h) / 2);
    if (!r) return this.rect(x, y, w, h);
    const turn = (/** @type {number} */ dx, /** @type {number} */ dy) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
    this.d += `M${x + r} ${y}h${w - 2 * r}${turn(r, r)}v${h - 2 * r}${turn(-r, r)}h${2 * r - w}${turn(-r, -r)}v${2 * r - h}${turn(r, -r)}Z`;
  }
  /** @param {number} x @param {number} y @param {number} r @param {number} from @param {number} to */
  arc(x, y, r, from, to, back = false) {
    const at = (/** @type {number} */ angle) => `${x + r * Math.cos(angle)} ${y + r * Math.sin(angle)}`;
    const way = Math.max(-2 * Math.PI, Math.min(2 * Math.PI, to - from));
    const half = from + way / 2; // in two, for a whole round has no single arc
    const piece = (/** @type {number} */ end) => `A${r} ${r} 0 0 ${back || way < 0 ? 0 : 1} ${at(end)}`;
    this.d += `${this.d && !/Z$/.test(this.d) ? "L" : "M"}${at(from)}${piece(half)}${piece(from + way)}`;
  }
  fill() {
    this.put("path", { d: this.d, fill: this.paint(this.state.fillStyle) });
  }
  stroke() {
    this.put("path", { d: this.d, ...this.lines });
  }
  clip() {
    const id = `canvas-clip${clips++}`;
    const box = svg("clipPath", { id });
    box.append(svg("path", { d: this.d, transform: `matrix(${this.state.matrix.join(" ")})` }));
    this.group.append(box);
    this.state.clip = `url(#${id})`;
  }
  /** @param {number[]} dash */
  setLineDash(dash) {
    this.state.dash = [...dash];
  }

  // ------------------------------------------------------------------ texts and pictures

  get type() {
    const [, weight, size, family] =
      /^(?:(?:italic|normal) )?(?:(bold|normal|\d+) )?([\d.]+)px (.*)$/.exec(this.state.font) ?? [];
    if (!size) throw new TypeError(`a font that is not known: ${this.state.font}`);
    const known = { bold: 700, normal: 400 }[weight] ?? (Number(weight) || 400);
    return { weight: known, size: Number(size), family };
  }
  /** @param {string} text */
  measureText(text) {
    const { size, family, weight } = this.type;
    return { width: widthOf(text, size, family, weight) };
  }
  /** @param {string} text @param {number} x @param {number} y @param {number} [most] */
  fillText(text, x, y, most) {
    const { size, family, weight } = this.type;
    const { textAlign, textBaseline } = this.state;
    const down = { middle: 0.35, top: 0.8, hanging: 0.8, bottom: -0.2 }[/** @type {"top"} */ (textBaseline)] ?? 0;
    const tight = most && widthOf(text, size, family, weight) > most;
    this.put(
      "text",
      {
        x,
        y: y + down * size,
        fill: this.paint(this.state.fillStyle),
        "font-size": size,
        "font-weight": weight,
        "font-family": family,
        "text-anchor": { center: "middle", right: "end", end: "end" }[/** @type {"end"} */ (textAlign)] ?? "start",
        textLength: tight ? most : undefined,
        style: "white-space: pre",
      },
      text,
    );
  }
  /** @param {HTMLCanvasElement} canvas @param {number} x @param {number} y @param {number} [width] @param {number} [height] @param {...number} cut */
  drawImage(canvas, x, y, width = canvas.width, height = canvas.height, ...cut) {
    if (cut.length) throw new TypeError("a part of a picture");
    this.put("image", { x, y, width, height, href: canvas.toDataURL(), preserveAspectRatio: "none" });
  }
  /** @param {HTMLCanvasElement} canvas */
  createPattern(canvas) {
    return new Pattern(canvas);
  }
  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  createLinearGradient(x0, y0, x1, y1) {
    return new Gradient([x0, y0, x1, y1]);
  }
}

// Hatching: of all patterns that are painted it is the only one
class Pattern {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const { width, height } = canvas;
    const data = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).getImageData(
      0,
      0,
      width,
      height,
    ).data;
    let best = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > data[best + 3]) best = at;
    this.colour = `rgb(${data.slice(best, best + 3).join(", ")})`;
    this.size = width;
  }
  setTransform() {}
  /** @param {Element} group */
  placed(group) {
    if (!group.querySelector("#hatched")) {
      const { size } = this;
      const tile = svg("pattern", { id: "hatched", width: size, height: size, patternUnits: "userSpaceOnUse" });
      const d = `M-1 ${size + 1}L${size + 1} -1M-1 1L1 -1M${size - 1} ${size + 1}L${size + 1} ${size - 1}`;
      tile.append(svg("path", { d, stroke: this.colour, "stroke-width": 1, fill: "none" }));
      group.append(tile);
    }
    return HATCH;
  }
}

class Gradient {
  id = `canvas-ramp${gradients++}`;
  isThere = false;
  /** @type {[number, string][]} */
  stops = [];
  /** @param {number[]} along */
  constructor(along) {
    this.along = along;
  }
  /** @param {number} offset @param {string} colour */
  addColorStop(offset, colour) {
    this.stops.push([offset, colour]);
  }
  /** @param {Element} group */
  placed(group) {
    if (!this.isThere) {
      const [x1, y1, x2, y2] = this.along;
      const made = svg("linearGradient", { id: this.id, gradientUnits: "userSpaceOnUse", x1, y1, x2, y2 });
      for (const [offset, colour] of this.stops)
        made.append(svg("stop", { offset: String(offset), "stop-color": colour }));
      group.append(made);
      this.isThere = true;
    }
    return `url(#${this.id})`;
  }
}
