// The words beside the pointer, or beside the cell that the keyboard is on.

import { add } from "./dom.js";

export class Tip {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.box = add(root, "div", "tip");
    this.hide();
    // A click or a key may change the cell under the pointer. The next move shows its tip.
    for (const name of ["pointerdown", "keydown"])
      root.addEventListener(name, () => this.hide(), { capture: true, passive: true });
  }

  get isShown() {
    return !this.box.hidden;
  }

  hide() {
    this.box.hidden = true;
  }

  // Beside a point of the window: below it, and above where there is no room below
  /** @param {(Node | string)[]} lines @param {number} x @param {number} y */
  show(lines, x, y) {
    const { box } = this;
    box.replaceChildren(...lines);
    const frame = this.root.getBoundingClientRect();
    box.hidden = false;
    const left = Math.min(x - frame.left + 14, frame.width - box.offsetWidth - 4);
    const above = y + 18 + box.offsetHeight > innerHeight;
    const top = above ? y - frame.top - box.offsetHeight - 12 : y - frame.top + 16;
    box.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
  }

  // The same beside the pointer; nothing where there is nothing to say
  /** @param {(Node | string)[]} lines @param {PointerEvent | null} [event] */
  follow(lines, event) {
    if (event && lines.length) this.show(lines, event.clientX, event.clientY);
    else this.hide();
  }
}
