// Beside the answer, the grounds of it: assumptions, a layer, training, the cache, cards and the time, one at a time.

import { add, button, described, el } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { row } from "./items.js";

/** @typedef {import("./types.js").Block} Block */
/** @typedef {import("./types.js").Piece} Piece */
/** @typedef {import("./items.js").Ask} Ask */
/** @template {Block["kind"]} Name @typedef {Extract<Block, {kind: Name}>} Of */

/** @param {HTMLElement} box @param {Piece[]} pieces */
export function pieces(box, pieces) {
  for (const { text, strong, quiet } of pieces)
    box.append(strong ? el("b", quiet ? "mute" : "", text) : quiet ? el("span", "mute", text) : text);
  return box;
}

/** @param {boolean} isGood */
const sign = (isGood) => {
  const made = el("i", isGood ? "good" : "bad", isGood ? "✓" : "✗");
  made.role = "img";
  made.ariaLabel = isGood ? words.fits : words.not;
  return made;
};

/** @param {Of<"switch">} block @param {Ask} ask */
function assumption(block, ask) {
  const line = el("div", "as");
  const said = add(line, "p");
  said.append(block.sentence);
  if (block.beside) {
    const at = block.beside.lastIndexOf(": ") + 2; // "eager: +8.4 GiB"
    const beside = el("span", "beside", at > 1 ? block.beside.slice(0, at) : "");
    beside.append(el("b", "", at > 1 ? block.beside.slice(at) : block.beside));
    said.append(" ", beside);
  }
  line.append(row(block, ask));
  return line;
}

/** @param {Of<"table">} block */
function table({ label, columns, rows, numeric }) {
  const made = el("table", "lines");
  made.ariaLabel = label;
  const head = add(add(made, "thead"), "tr");
  columns.forEach((name, j) => {
    const cell = add(head, name ? "th" : "td", numeric[j] ? "number" : "");
    cell.textContent = name;
    if (name) cell.scope = "col";
  });
  const body = add(made, "tbody");
  for (const cells of rows) {
    const line = add(body, "tr");
    cells.forEach((value, j) => {
      const cell = add(line, j ? "td" : "th", numeric[j] ? "number" : "");
      if (!j) cell.scope = "row";
      if (typeof value === "string") cell.textContent = value;
      else {
        if (value.good || value.bad) cell.append(sign(Boolean(value.good)), " ");
        cell.append(value.text);
      }
    });
  }
  return made;
}

/** @param {HTMLElement} track @param {string} look @param {number} share */
const filled = (track, look, share) => {
  add(track, "i", look).style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
};

/** @param {Of<"bars">} block @param {Ask} ask */
function bars({ label, line, line_text, rows }, ask) {
  const box = described(el("div", "hbars"), "group", label);
  for (const { title, share, text, fits, on, set } of rows) {
    const made = button("", "hbar", () => ask(set));
    if (on) made.setAttribute("aria-pressed", "true");
    const name = add(made, "span", "name");
    name.append(sign(fits), " ", title);
    const track = add(made, "span", "track");
    filled(track, fits ? "room" : "small", share);
    add(track, "u").style.left = `${100 * line}%`;
    track.title = line_text;
    add(made, "b").textContent = text;
    box.append(made);
  }
  return box;
}

/** @param {Of<"stack">} block */
function stack({ label, rows }) {
  const box = described(el("div", "hbars"), "list", label);
  for (const { title, text, share, id } of rows) {
    const line = add(box, "div", "hbar");
    line.role = "listitem";
    add(line, "span", "name").textContent = title;
    filled(add(line, "span", "track"), `of-${id}`, share);
    add(line, "b").textContent = text;
  }
  return box;
}

/** @param {Block} block @param {Ask} ask @returns {HTMLElement[]} */
function drawn(block, ask) {
  switch (block.kind) {
    case "switch":
      return [assumption(block, ask)];
    case "lines":
      return block.rows.map((line) => pieces(el("p"), line));
    case "heading": {
      const heading = el("h3", "", block.text);
      if (block.beside) heading.append(" ", el("small", "", block.beside));
      return [heading];
    }
    case "table":
      return [table(block)];
    case "bars":
      return [bars(block, ask)];
    case "stack":
      return [stack(block)];
    case "button":
      return [button(block.title, "quiet", () => ask(block.set))];
    case "wrong":
      return [described(el("p", "wrong", block.text), "alert", block.text)];
  }
}

export class Tabs {
  was = "";

  /** @param {HTMLElement} box @param {Ask} ask @param {(id: string) => void} open */
  constructor(box, ask, open) {
    this.list = described(add(box, "div", "tabs"), "tablist", words.tabs);
    this.panel = add(box, "div", "panel");
    this.panel.role = "tabpanel";
    this.ask = ask;
    this.open = open;
    this.list.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      event.preventDefault();
      event.stopPropagation();
      const all = /** @type {HTMLElement[]} */ ([...this.list.children]);
      const next = all[(all.indexOf(/** @type {HTMLElement} */ (event.target)) + by + all.length) % all.length];
      next.focus();
      next.click();
    });
  }

  /** @param {import("./types.js").Tab[]} tabs @param {string} at */
  draw(tabs, at) {
    this.list.replaceChildren(
      ...tabs.map(({ id, title }) => {
        const made = button(title, "", () => this.open(id));
        made.role = "tab";
        made.dataset.id = id;
        return made;
      }),
    );
    this.press(at);
    const shown = tabs.find(({ id }) => id === at);
    this.panel.ariaLabel = shown?.title ?? "";
    this.panel.replaceChildren(...(shown?.blocks ?? []).flatMap((block) => drawn(block, this.ask)));
  }

  /** The tab that is asked for looks so before its blocks are there. @param {string} at */
  press(at) {
    for (const made of /** @type {Iterable<HTMLElement>} */ (this.list.children)) {
      const isOn = made.dataset.id === at;
      made.ariaSelected = String(isOn);
      made.tabIndex = isOn ? 0 : -1;
    }
  }
}
