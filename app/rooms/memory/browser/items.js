// The parts of a sentence that can be changed, and the line below the picture: kept while they are the same, so that what has the
// focus, or is typed in, stays.

import { add, button, choice, el, setField, setText } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Item} Item */
/** @typedef {import("./types.js").Asked} Asked */
/** @typedef {(set: Asked) => void} Ask */
/** @template {Item["kind"]} Name @typedef {import("./types.js").Kind<Name>} Kind */

// One pressed in a row; the arrows go from one to the next, and the next is pressed.
/** @param {{name: string, label: string, value: string, options: import("./types.js").Option[]}} item @param {Ask} ask */
export function row({ name, label, value, options }, ask) {
  /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
  const choices = options.map((option) => [option.value, option.text, option.title]);
  const box = choice(label, choices, value, (chosen) => ask({ [name]: chosen }));
  box.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    const all = /** @type {HTMLElement[]} */ ([...box.children]);
    const next = all[all.indexOf(/** @type {HTMLElement} */ (event.target)) + by];
    next?.focus();
    next?.click();
  });
  return box;
}

/** @param {Kind<"select">} item @param {Ask} ask */
function select({ name, label, value, options }, ask) {
  const box = el("label", "pick");
  const list = add(box, "select");
  list.ariaLabel = label;
  for (const option of options) list.add(new Option(option.text, option.value, false, option.value === value));
  list.addEventListener("change", () => ask({ [name]: list.value }));
  return box;
}

/** @param {Kind<"number">} item @param {Ask} ask */
function numberField({ name, label, value, help }, ask) {
  const field = Object.assign(el("input", "typed"), { type: "text", inputMode: "text", title: help, ariaLabel: label });
  field.autocomplete = "off";
  field.spellcheck = false;
  field.dataset.name = name;
  setField(field, value);
  field.addEventListener("change", () => ask({ [name]: field.value }));
  return field;
}

// Pressed twice before an answer it asks for two more, where one more is so written.
/** @param {Kind<"stepper">} item @param {Ask} ask */
function stepper({ name, label, value, less, more, n }, ask) {
  const box = el("span", "stepper");
  box.role = "group";
  box.ariaLabel = label;
  let at = n;
  const down = button("−", "less", () => go(-1), `${label}: ${words.less}`);
  const shown = el("b", "", value);
  const up = button("+", "more", () => go(1), `${label}: ${words.more}`);
  const go = (/** @type {number} */ by) => {
    const text = by < 0 ? less : more;
    if (text === null) return;
    const isCount = text === String(n + by) && value === String(n);
    at = isCount ? Math.max(1, at + by) : n + by;
    if (isCount) setText(shown, String(at));
    ask({ [name]: isCount ? String(at) : text });
  };
  down.disabled = less === null;
  up.disabled = more === null;
  for (const one of [down, up]) one.ariaLabel = one.title;
  box.append(down, shown, up);
  return box;
}

/** @param {Kind<"slider">} item @param {Ask} ask */
function slider({ name, label, values, at }, ask) {
  const box = el("label", "slider");
  add(box, "span").textContent = label;
  const range = add(box, "input");
  Object.assign(range, { type: "range", min: "0", max: String(values.length - 1), step: "1" });
  range.value = String(at);
  const shown = add(box, "b");
  const say = () => {
    setText(shown, values[Number(range.value)]);
    range.setAttribute("aria-valuetext", values[Number(range.value)]);
  };
  range.addEventListener("input", say);
  range.addEventListener("change", () => ask({ [name]: values[Number(range.value)] }));
  say();
  return box;
}

/** @param {Kind<"button">} item @param {Ask} ask */
function press({ name, label, value, pressed }, ask) {
  const made = button(label, "quiet", () => ask({ [name]: value }));
  if (pressed) made.setAttribute("aria-pressed", "true");
  return made;
}

/** @param {Item} item @param {Ask} ask @returns {HTMLElement} */
function made(item, ask) {
  switch (item.kind) {
    case "text":
      return el("span", "said", item.text);
    case "select":
      return select(item, ask);
    case "row":
      return row(item, ask);
    case "number":
      return numberField(item, ask);
    case "stepper":
      return stepper(item, ask);
    case "slider":
      return slider(item, ask);
    case "button":
      return press(item, ask);
  }
}

export class Items {
  /** @type {{was: string, node: HTMLElement}[]} */
  kept = [];
  /** @type {Set<string>} Names that were asked for and not yet answered */
  asked = new Set();

  /** @param {HTMLElement} box @param {Ask} ask */
  constructor(box, ask) {
    this.box = box;
    this.ask = (/** @type {Asked} */ set) => {
      for (const name in set) this.asked.add(name);
      ask(set);
    };
  }

  /** Python has answered: what was asked for looks as the answer says. @param {Item[]} items */
  draw(items) {
    const { box, kept, asked } = this;
    for (const { node } of kept.splice(items.length)) node.remove();
    items.forEach((item, i) => {
      const was = JSON.stringify(item);
      const before = kept[i];
      const isAsked = "name" in item && asked.has(item.name);
      if (before && item.kind === "number" && before.node.dataset.name === item.name) {
        // what was refused stays, to be corrected
        const field = /** @type {HTMLInputElement} */ (before.node);
        if (before.was !== was || !isAsked) setField(field, item.value);
        before.was = was;
      } else if (before?.was !== was || isAsked) {
        const node = made(item, this.ask);
        if (before) before.node.replaceWith(node);
        else box.append(node);
        kept[i] = { was, node };
      }
    });
    asked.clear();
  }

  /** While the orange line is dragged. @param {string} name @param {string} value */
  follow(name, value) {
    for (const { node } of this.kept)
      if (node instanceof HTMLInputElement && node.dataset.name === name) setField(node, value);
  }
}

/** The sentence as a line that nothing can be changed in. @param {HTMLElement} box @param {Item[]} items */
export function plain(box, items) {
  box.replaceChildren();
  for (const item of items) {
    if (item.kind === "text") {
      if (box.lastChild && !/^[,.;:]/.test(item.text)) box.append(" ");
      box.append(item.text);
      continue;
    }
    const said =
      "plain" in item
        ? item.plain
        : item.kind === "slider"
          ? item.values[item.at]
          : "options" in item
            ? item.options.find(({ value }) => value === item.value)?.text
            : item.value;
    if (!said || item.kind === "button") continue;
    if (box.lastChild) box.append(" ");
    box.append(el("b", "", said));
  }
}
