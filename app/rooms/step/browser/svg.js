// Lines and circles of a drawing, made one by one.

const SVG = "http://www.w3.org/2000/svg";

/** @param {Record<string, string | number>} [attributes] */
export function drawing(attributes = {}) {
  return /** @type {SVGSVGElement} */ (
    set(document.createElementNS(SVG, "svg"), { "aria-hidden": "true", ...attributes })
  );
}

/** @param {Element} parent @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
export function shape(parent, name, attributes, text) {
  const node = set(document.createElementNS(SVG, name), attributes);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

/** @param {Element} node @param {Record<string, string | number>} attributes */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}
