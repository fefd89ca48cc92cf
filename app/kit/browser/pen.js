// Draws SVG into what is there: of the shapes that follow each other in a group those stay that are of the same kind, and get what is
// new about them. To make a shape again costs some ten times as much, and one that is made again while it is pressed loses the click.

import { clean, round, svg } from "./picture/svg.js";

/** @typedef {import("./picture/svg.js").Attributes} Attributes */
/** @typedef {{text?: string, title?: string, click?: () => void}} More text: what it says; title: what it says to a pointer that rests there */
/** @type {WeakMap<Element, {attributes: Attributes, text?: string, title?: string}>} */
const DRAWN = new WeakMap();

export class Pen {
  /** @param {Element} parent whose children are drawn, from the first on */
  constructor(parent) {
    this.parent = parent;
    this.next = parent.firstElementChild;
  }

  /** The next shape. @template {keyof SVGElementTagNameMap} Tag @param {Tag} tag @param {Attributes} attributes @param {More} [more] */
  draw(tag, attributes, { text, title, click } = {}) {
    let node = /** @type {SVGElementTagNameMap[Tag] | null} */ (this.next?.localName === tag ? this.next : null);
    if (node) this.next = node.nextElementSibling;
    else node = this.parent.insertBefore(svg(tag), this.next);
    const before = DRAWN.get(node);
    for (const name in attributes) {
      const value = attributes[name];
      const now = (attributes[name] = typeof value === "number" ? round(value) : value);
      if (before?.attributes[name] === now) continue;
      if (now === undefined) node.removeAttribute(name);
      else node.setAttribute(name, String(now));
    }
    for (const name in before?.attributes) if (!(name in attributes)) node.removeAttribute(name);
    if (text !== before?.text) node.textContent = clean(text ?? "");
    if (title !== before?.title) titled(node, title);
    node.onclick = click ?? null;
    DRAWN.set(node, { attributes, text, title });
    return node;
  }

  /** A line of text. y: what its letters stand on; size: of the type. @param {number} x @param {number} y @param {string} text @param {Attributes} how */
  write(x, y, text, { size, anchor, ...more }) {
    return this.draw("text", { x, y, "font-size": size, "text-anchor": anchor, ...more }, { text });
  }

  /** Shapes of before that were not drawn again go. */
  end() {
    for (let node = this.next; node; node = this.next) {
      this.next = node.nextElementSibling;
      node.remove();
    }
  }
}

/** @param {SVGElement} node that has no text @param {string} [text] */
function titled(node, text) {
  if (text === undefined) return node.replaceChildren();
  (node.firstElementChild ?? node.appendChild(svg("title"))).textContent = text;
}
