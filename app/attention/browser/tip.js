// The words beside the pointer, or beside the cell that the keyboard is on.

import { add } from "../../kit/browser/dom.js";

export class Tip {
  /** @param {HTMLElement} root @param {() => boolean} isFrozen whether nothing is said under a moving pointer */
  constructor(root, isFrozen) {
    this.root = root;
    this.isFrozen = isFrozen;
    this.box = add(root, "div", "tip");
    this.hide();
  }

  get isShown() {
    return !this.box.hidden;
  }

  hide() {
    this.box.hidden = true;
  }

  /** @param {HTMLElement[]} lines @param {number} x @param {number} y */
  show(lines, x, y) {
    const { box } = this;
    box.replaceChildren(...lines);
    const frame = this.root.getBoundingClientRect();
    box.hidden = this.isFrozen();
    const left = Math.min(x - frame.left + 14, frame.width - box.offsetWidth - 4);
    const above = y + 18 + box.offsetHeight > innerHeight;
    const top = above ? y - frame.top - box.offsetHeight - 12 : y - frame.top + 16;
    box.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
  }
}
