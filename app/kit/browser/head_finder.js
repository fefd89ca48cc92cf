// "/" and a head as "13.8": the way to one of a thousand heads without looking for it. Every room that shows a head has it.

import { add, fill, focusedIn } from "./dom.js";
import { WORDS as words } from "./words.js";

// Layer and head of a text such as "13.8", "L13 H8" or "13 8"; null where it says none
/** @param {string} text @returns {[layer: number, head: number] | null} */
export function headOf(text) {
  const found = /^\s*(?:l(?:ayer)?\s*)?(\d{1,4})\s*[.,\s·/]\s*(?:h(?:ead)?\s*)?(\d{1,4})\s*$/i.exec(text);
  return found && [Number(found[1]), Number(found[2])];
}

export class HeadFinder {
  /** @param {import("./stage.js").Stage<any, any, any>} room */
  constructor(room) {
    this.room = room;
    this.box = add(room.root, "form", "finder");
    this.box.hidden = true;
    const label = add(this.box, "label");
    label.append(words.find_head, " ");
    this.field = add(label, "input");
    Object.assign(this.field, { type: "text", autocomplete: "off", spellcheck: false, maxLength: 24 });
    this.said = add(this.box, "span", "mute");
    this.said.setAttribute("role", "status");
    this.box.addEventListener("submit", (event) => {
      event.preventDefault();
      this.take();
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      this.close();
    });
    this.field.addEventListener("blur", () => (this.box.hidden = true));
  }

  /** @returns {boolean} whether the room has heads to be found */
  open() {
    const grid = this.room.headGrid;
    if (!grid) return false;
    this.before = focusedIn(this.room.root);
    this.said.textContent = fill(words.find_head_allowed, { layers: grid.layers - 1, heads: grid.heads - 1 });
    this.field.value = "";
    this.box.hidden = false;
    this.field.focus();
    return true;
  }

  close() {
    this.field.blur(); // at once: hidden, it would keep the focus until the next frame, and a key before that would be its own
    this.box.hidden = true;
    this.before?.focus({ preventScroll: true });
  }

  take() {
    const grid = this.room.headGrid;
    const found = headOf(this.field.value);
    if (!grid || !found || found[0] >= grid.layers || found[1] >= grid.heads) {
      const allowed = { layers: (grid?.layers ?? 1) - 1, heads: (grid?.heads ?? 1) - 1 };
      this.said.textContent = fill(words.find_head_unknown, { asked: this.field.value.trim(), ...allowed });
      this.field.select();
      return;
    }
    this.close();
    this.room.chooseHead(...found);
  }
}
