// Small helpers for elements and words. A visitor's own text goes in as text, never as markup.

import { form, pointed, quotation as quotes, number as spoken } from "./language.js";

/** @param {number} x @param {number} low @param {number} high */
export const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

/** Whether the visitor wants nothing to move. */
export const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** @template {keyof HTMLElementTagNameMap} Tag @param {Tag} tag @param {string} [className] @param {string} [text] */
export function el(tag, className, text) {
  const node = document.createElement(tag);
  if (tag === "button") Object.assign(node, { type: "button" }); // and not what sends a form
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

const FROM_RIGHT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
// Whether there are letters in a text that are read from the right
/** @param {string} text */
export const isFromRight = (text) => FROM_RIGHT.test(text);

// Such a text as a part of a sentence, a label or a file, where the numbers and signs beside it stay in their order
/** @param {string} text */
export const apart = (text) => (isFromRight(text) ? `\u2068${text}\u2069` : text);

// "{n} [token|tokens]" with the form that goes with the number, in the page's language
const COUNTED = /\{(\w+)\}(\s)\[([^[\]]+)\]/g;
/** @param {string} template @param {Record<string, unknown>} parts */
const inflected = (template, parts) =>
  template.replaceAll(COUNTED, (_, name, space, forms) => {
    const count = Number(String([parts[name]].flat()[0]).replace(/\D/g, ""));
    return `{${name}}${space}${form(forms.split("|"), count)}`;
  });

// "{query} gives {share}" and {query: ["it", "q"], share: "68 %"} as nodes; a pair is set off, and names its class.
/** @param {string} template @param {Record<string, unknown>} parts */
export function phrase(template, parts) {
  return inflected(template, parts)
    .split(/(\{\w+\})/)
    .filter(Boolean)
    .map((piece) => {
      if (piece[0] !== "{") return document.createTextNode(piece);
      const part = parts[piece.slice(1, -1)];
      return Array.isArray(part) ? el("em", part[1], part[0]) : document.createTextNode(apart(String(part)));
    });
}

/** @param {string} template @param {Record<string, unknown>} parts */
export const fill = (template, parts) =>
  inflected(template, parts).replaceAll(/\{(\w+)\}/g, (_, name) => {
    const part = parts[name];
    return apart(String(Array.isArray(part) ? part[0] : part));
  });

// A sentence on the page as a text, with its tokens apart as they are there
/** @param {Node} node @returns {string} */
export const saidIn = (node) =>
  node.nodeType === 3
    ? (node.textContent ?? "")
    : Array.from(node.childNodes, (child) =>
        child.nodeName === "EM" ? apart(child.textContent ?? "") : saidIn(child),
      ).join("");

// The entry of a table of words under a name that came with data, which no type holds; the name itself where there is no entry.
/** @param {Record<string, string>} table @param {string} name */
export const worded = (table, name) => table[name] ?? name;

// A share to one decimal throughout, for a column of numbers
/** @param {number} p */
export function finely(p) {
  const percent = p * 100;
  if (percent === 0 || percent === 100) return `${percent} %`;
  if (percent < 0.1) return pointed("<0.1 %");
  return pointed(percent > 99.9 ? ">99.9 %" : `${percent.toFixed(1)} %`);
}

// A share as it is read at a glance: one decimal below 10 % and above 98.5 %, whole percents between, or as many decimals as are
// asked for. What is little is never said as nothing, nor what is nearly all as all: the sum of a row may miss 1 by a rounding.
/** @param {number} p @param {number} [digits] */
export function percent(p, digits) {
  const last = 10 ** -(digits ?? 1); // per cent: one of the last digit that is said
  if (p > 0 && 100 * p < last) return pointed(`<${last} %`);
  if (100 * p > 100 - last && p < 1 - 1e-9) return pointed(`>${100 - last} %`);
  const close = p > 0 && (p < 0.0995 || (p >= 0.985 && p < 0.9995));
  return pointed(`${(100 * p).toFixed(digits ?? (close ? 1 : 0))} %`);
}

// A number with the minus that is as wide as a digit: as it is, or with so many digits after the point. There −0.00 is 0.00.
/** @param {number} x */
export const minus = (x) => pointed(String(x).replace("-", "−"));
/** @param {number} x @param {number} [digits] */
export function fixed(x, digits = 2) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "NaN" : x > 0 ? "∞" : "−∞";
  const text = Math.abs(x).toFixed(digits);
  return pointed(x < 0 && Number(text) !== 0 ? `−${text}` : text);
}

// A number to so many digits, and no more than it needs: "0.5", "33", "0.057"
/** @param {number} x @param {number} most */
export const digits = (x, most) => pointed(String(Number(x.toPrecision(most))));

/** @type {Record<string, string>} */
const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
/** @param {number} x */
export function scientific(x) {
  if (!x) return "0";
  const [digits, exponent] = x.toExponential(0).split("e");
  return `${digits}·10${[...String(Number(exponent))].map((c) => SUPERSCRIPT[c]).join("")}`;
}

// "0–3, 5" from sorted numbers
/** @param {number[]} numbers */
export function ranges(numbers) {
  /** @type {[from: number, to: number][]} */
  const runs = [];
  for (const i of numbers) {
    const last = runs.at(-1);
    if (last && last[1] === i - 1) last[1] = i;
    else runs.push([i, i]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

export const number = spoken;
export const quotation = quotes;
/** @param {string[]} forms @param {number} n */
export const counted = (forms, n) => fill(form(forms, n), { n });

// In a sentence, a token that is only signs would be taken for the sentence's own.
/** @param {string} label */
export const quoted = (label) => (/^[\p{P}\p{S}\s]+$/u.test(label) ? quotation(label) : label);

// At most 13 letters, for an axis.
/** @param {string} label */
export function short(label) {
  if (label.length <= 13) return label; // in any way of counting letters
  const letters = Array.from(label);
  return letters.length > 13 ? letters.slice(0, 12).join("") + "…" : label;
}

// A button. look: its classes; help: what it says to a pointer that rests there
/** @param {string} text @param {string} look @param {(event: MouseEvent) => void} act @param {string} [help] */
export function button(text, look, act, help) {
  const made = el("button", look, text);
  if (help) made.title = help;
  made.addEventListener("click", act);
  return made;
}

// A row of buttons, one of them pressed. options: [value, text, title]; act(value) when one is chosen.
/**
 * @template Value
 * @param {string} label
 * @param {import("./types.js").Choice<Value>[]} options
 * @param {Value} chosen
 * @param {(value: Value, event: MouseEvent) => void} act
 */
export function choice(label, options, chosen, act) {
  const box = described(el("span", "seg"), "group", label);
  for (const [value, text, title] of options) {
    const choose = (/** @type {MouseEvent} */ event) => {
      for (const other of box.children) other.setAttribute("aria-pressed", String(other === made));
      act(value, event);
    };
    const made = button(text, "", choose, title);
    made.setAttribute("aria-pressed", String(value === chosen));
    box.append(made);
  }
  return box;
}

// A select box. options: [value, text]
/** @param {string} label @param {[value: string, text: string][]} options @param {string} chosen @param {(value: string) => void} act */
export function selectBox(label, options, chosen, act) {
  const box = el("select");
  box.ariaLabel = label;
  for (const [value, text] of options) box.add(new Option(text, value, false, value === chosen));
  box.addEventListener("change", () => act(box.value));
  return box;
}

// Arrow keys as [down, right]; undefined for any other key, and for the browser's own shortcuts.
/** @param {KeyboardEvent} event */
export function arrow(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  /** @type {Record<string, [down: number, right: number] | undefined>} */
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  return steps[event.key];
}

// Work that may replace the element that has the focus: the one that then stands in its place gets it, or where the things around it
// are built in another way now, the one with its name.
/** @param {HTMLElement} root @param {() => void} work */
export function keepingFocus(root, work) {
  const had = focusedIn(root);
  if (!had || !root.contains(had)) return work();
  const path = [];
  for (let at = /** @type {Element | null} */ (had); at && at !== root; at = at.parentElement)
    path.unshift(Array.prototype.indexOf.call(at.parentElement?.children ?? [], at));
  const isText = ["button", "a"].includes(had.localName);
  const named = (/** @type {Element} */ node) => node.ariaLabel ?? (isText ? node.textContent : "");
  const [tag, name] = [had.localName, named(had)];
  const isAlike = (/** @type {Element | undefined} */ node) => node?.localName === tag && named(node) === name;
  const such = () =>
    /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(isText ? tag : `${tag}[aria-label]`));
  const before = such(); // their names are read only where the focus is lost: this is done at every drawing
  work();
  const now = focusedIn(root);
  if (now && now !== root.ownerDocument.body) return; // a document has its body there when nothing has the focus, and a shadow root null
  const there = /** @type {HTMLElement | undefined} */ (
    path.reduce((/** @type {Element | undefined} */ at, i) => at?.children[i], root)
  );
  const others = isAlike(there) ? [] : [...such()].filter(isAlike);
  const nth = [...before].filter(isAlike).indexOf(had);
  (others[Math.min(nth, others.length - 1)] ?? there)?.focus({ preventScroll: true });
}

/** @template {keyof HTMLElementTagNameMap} Tag @param {Node} parent @param {Tag} tag */
export const add = (parent, tag, className = "") => parent.appendChild(el(tag, className));

// What an element is and says to those who do not see it
/** @template {Element} Node @param {Node} node @param {string} role @param {string} label @returns {Node} */
export function described(node, role, label) {
  node.setAttribute("role", role);
  node.setAttribute("aria-label", label);
  return node;
}

// The same of a part that can have the focus: keys scroll it, or move what is in it
/** @template {HTMLElement | SVGElement} Node @param {Node} node @param {string} role @param {string} label @returns {Node} */
export const focusable = (node, role, label) => Object.assign(described(node, role, label), { tabIndex: 0 });

// Where an element stands in its box and how large it is, in pixels
/** @template {HTMLElement} Node @param {Node} node @param {Partial<Record<"left" | "top" | "right" | "width" | "height" | "max-height", number>>} at @returns {Node} */
export function pinned(node, at) {
  for (const [name, pixels] of Object.entries(at)) node.style.setProperty(name, `${pixels}px`);
  return node;
}

// What has the focus in the document, or in the component, that a node is in
/** @param {Node} node */
export const focusedIn = (node) =>
  /** @type {HTMLElement | null} */ (/** @type {Document | ShadowRoot} */ (node.getRootNode()).activeElement);

// A small question mark that explains in one hover, or in one focus for those without a pointer
/** @param {string} text */
export const hint = (text) =>
  Object.assign(el("span", "hint", "?"), { title: text, tabIndex: 0, ariaLabel: text, role: "note" });

// Whether a list is of the same things as another, one by one
/** @param {unknown[]} a @param {unknown[] | undefined} b */
export const same = (a, b) => b !== undefined && a.length === b.length && a.every((what, i) => Object.is(what, b[i]));

// What an element says and has, if it is not the same already: to write it again would have the browser lay it out again.
/** @param {Element} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** @param {Element} node @param {Record<string, string>} attributes */
export function setAll(node, attributes) {
  for (const [name, text] of Object.entries(attributes))
    if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/** @type {WeakMap<HTMLInputElement, string>} */
const written = new WeakMap();

// What is chosen goes into its field; news of the same value leave alone what the visitor is typing there.
/** @param {HTMLInputElement} field @param {string} value */
export function setField(field, value) {
  if (focusedIn(field) === field && written.get(field) === value) return;
  written.set(field, value);
  if (field.value !== value) field.value = value;
}
