// The one maker of SVG: elements with attributes and text, for the page and for files.

export const SVG = "http://www.w3.org/2000/svg";
/** @typedef {Record<string, string | number | undefined>} Attributes Numbers are rounded to hundredths; what is undefined is left out */

// Text without the characters that XML cannot hold
/** @param {string} text */
export const clean = (text) => text.toWellFormed().replace(/[^\t\n\r\x20-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");

/** @param {number} x */
export const round = (x) => Math.round(x * 100) / 100;

/** @template {Element} Node @param {Node} node @param {Attributes} attributes @returns {Node} */
export function set(node, attributes) {
  for (const name in attributes) {
    const value = attributes[name];
    if (value !== undefined) node.setAttribute(name, String(typeof value === "number" ? round(value) : value));
  }
  return node;
}

/** @template {keyof SVGElementTagNameMap} Tag @param {Tag} tag @param {Attributes} [attributes] @param {string} [text] */
export function svg(tag, attributes = {}, text) {
  const node = set(document.createElementNS(SVG, tag), attributes);
  if (text !== undefined) node.textContent = clean(text);
  return node;
}

/** @template {keyof SVGElementTagNameMap} Tag @param {Element} parent @param {Tag} tag @param {Attributes} [attributes] @param {string} [text] */
export function draw(parent, tag, attributes, text) {
  const node = svg(tag, attributes, text);
  parent.append(node);
  return node;
}

// A line through points
/** @param {[x: number, y: number][]} points */
export const path = (points) => `M${points.map(([x, y]) => `${x.toFixed(2)} ${y.toFixed(2)}`).join("L")}`;

// A line of text. y: what its letters stand on; size: of the type; anchor: "start", "middle" or "end"
/** @param {Element} parent @param {number | string} x @param {number | string} y @param {string} text @param {Attributes} how */
export const write = (parent, x, y, text, { size, anchor, ...more }) =>
  draw(parent, "text", { x, y, "font-size": size, "text-anchor": anchor, ...more }, text);
