// One menu to the other rooms, which open on the same text, head and token.

import { add, el, fill, quoted } from "../../kit/browser/dom.js";
import { way } from "../../kit/browser/share.js";
import { WORDS as words } from "./constants.js";
import { indexed } from "../../kit/browser/labels.js";

/** @typedef {{query: number | null, key: number | null}} Cell The chosen token, and the one that the head looks at */

export class Elsewhere {
  /** @param {import("./types.js").View} view @param {HTMLElement} parent @param {() => Cell} cell */
  constructor(view, parent, cell) {
    this.view = view;
    this.cell = cell;
    this.box = /** @type {HTMLDetailsElement} */ (add(parent, "details", "elsewhere"));
    this.opener = add(this.box, "summary");
    this.opener.textContent = words.elsewhere;
    this.list = add(this.box, "ul", "menu");
    const leave = (/** @type {PointerEvent} */ event) => {
      if (event.composedPath().includes(this.box)) return;
      this.box.open = false;
      removeEventListener("pointerdown", leave, true);
    };
    this.box.addEventListener("toggle", () => {
      if (this.box.open) addEventListener("pointerdown", leave, true);
      else removeEventListener("pointerdown", leave, true);
      this.draw();
    });
    this.box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.box.open) return;
      event.stopPropagation();
      this.box.open = false;
      this.opener.focus();
    });
    this.box.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget && !this.box.contains(/** @type {Node} */ (relatedTarget))) this.box.open = false;
    });
  }

  draw() {
    this.box.hidden = this.view.remote.offline; // a page in a file has no other rooms
    if (!this.box.open || this.box.hidden) return;
    const { site, picture } = this.view;
    const { query, key } = this.cell();
    const named = (/** @type {string[]} */ labels, /** @type {number | null} */ at) =>
      at === null ? "" : quoted(indexed(labels, at));
    const parts = {
      query: named(picture.tokens[site.query] ?? [], query),
      key: named(picture.tokens[site.key] ?? [], key),
    };
    const focused = [...this.list.children].findIndex((item) =>
      item.contains(/** @type {ShadowRoot} */ (this.box.getRootNode()).activeElement),
    );
    this.list.replaceChildren(
      ...Object.entries(words.elsewhere_rooms).map(([room, [title, line, ofCell]]) => {
        const item = el("li");
        const link = way(title, { ...picture.link, view: room, ...this.said(room) });
        link.append(" ", el("small", "mute", fill(ofCell && parts.query && parts.key ? ofCell : line, parts)));
        item.append(link);
        return item;
      }),
    );
    if (focused >= 0) /** @type {HTMLElement | null} */ (this.list.children[focused].firstChild)?.focus();
  }

  // The head and the token in a link to a room, by the names that all rooms share
  /** @param {string} room @returns {Record<string, string>} */
  said(room) {
    const { layer, head, site } = this.view.chosen.place;
    const { query, key } = this.cell();
    /** @type {Record<string, string>} */
    const said = { layer: String(layer), head: String(head) };
    if (room === "step") said.stack = site === "encoder" ? "encoder" : "decoder";
    else if (room !== "generate") said.site = site;
    if (room === "generate") return said;
    if (query !== null) said.query = String(query);
    if (room === "masks" && query !== null && key !== null) said.key = String(key); // it opens with this look forbidden
    return said;
  }
}
