// The picture: a column of the parts, the same at every length as a curve, and one line of what there is, all on one scale in bytes.
//
// Four drawings lie over each other and have the same coordinates, so that a lesson can cover one of them.

import { add, setAll } from "../../../kit/browser/dom.js";
import { svg } from "../../../kit/browser/picture/svg.js";
import { drawColumn } from "./column.js";
import { drawCurve } from "./curve.js";
import { geometry } from "./draw.js";
import { drawAxis, drawFront, drawHandle, drawName } from "./front.js";

export class Figure {
  /** @type {import("./draw.js").Geometry | undefined} */
  at;

  /** @param {HTMLElement} box */
  constructor(box) {
    this.box = box;
    const layer = (/** @type {string} */ name) => {
      const host = add(box, "div", name);
      return { host, picture: host.appendChild(svg("svg", { role: name === "front" ? "group" : "img" })) };
    };
    this.column = layer("column");
    this.curve = layer("curve");
    this.axis = layer("axis");
    this.front = layer("front");
    this.lines = this.front.picture.appendChild(svg("g", { "aria-hidden": "true" }));
    this.handle = this.front.picture.appendChild(svg("g", { role: "slider", tabindex: 0, class: "handle" }));
    this.name = this.front.picture.appendChild(svg("g", { "aria-hidden": "true" }));
  }

  /** The number of tokens at a place of the window; null where no curve is. @param {number} x @param {{axis: {ends: number}}} data */
  tokensAt(x, { axis }) {
    if (!this.at) return null;
    const { x0, x1, r } = this.at;
    const across = x - this.box.getBoundingClientRect().left;
    return across < x0 - r ? null : ((across - x0) / (x1 - x0)) * axis.ends;
  }

  /** @param {import("./types.js").Shown} shown */
  draw(shown) {
    if (!this.box.clientWidth || !this.box.clientHeight) return;
    const at = (this.at = geometry(this.box, shown));
    const { x0, y0, width, height } = at;
    place(this.column, 0, 0, x0, height);
    place(this.curve, x0, 0, width - x0, y0);
    place(this.axis, x0, y0, width - x0, height - y0);
    place(this.front, 0, 0, width, height);
    drawColumn(this.column.picture, shown, at);
    drawCurve(this.curve.picture, shown, at);
    drawAxis(this.axis.picture, shown, at);
    drawFront(this.lines, shown, at);
    drawHandle(this.handle, shown, at);
    drawName(this.name, shown, at);
  }
}

/** @param {{host: HTMLElement, picture: SVGSVGElement}} layer @param {number} left @param {number} top @param {number} width @param {number} height */
function place({ host, picture }, left, top, width, height) {
  host.style.cssText = `left: ${left}px; top: ${top}px; width: ${width}px; height: ${height}px`;
  const size = { width: String(width), height: String(height) };
  setAll(picture, { ...size, viewBox: `${left} ${top} ${width} ${height}` });
}
