// Small helpers for elements and words. What a visitor typed goes in as text, never as markup.

export const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

export function el(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// "{query} gives {share}" and {query: ["it", "q"], share: "68 %"} as nodes; a pair is set off, and names its class.
export function phrase(template, parts) {
  return template.split(/(\{\w+\})/).filter(Boolean).map((piece) => {
    if (piece[0] !== "{") return document.createTextNode(piece);
    const part = parts[piece.slice(1, -1)];
    return Array.isArray(part) ? el("em", part[1], part[0]) : document.createTextNode(part);
  });
}

export const said = (template, parts) => phrase(template, parts).map((node) => node.textContent).join("");

export function share(p) {
  const percent = p * 100;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "under 0.1 %";
  return `${percent < 1 ? percent.toFixed(1) : Math.round(percent)} %`;
}

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
export function scientific(x) {
  if (!x) return "0";
  const [digits, exponent] = x.toExponential(0).split("e");
  return `${digits}·10${[...String(Number(exponent))].map((c) => SUPERSCRIPT[c]).join("")}`;
}

// "0–3, 5" from sorted numbers
export function ranges(numbers) {
  const runs = [];
  for (const i of numbers) {
    const last = runs.at(-1);
    if (last && last[1] === i - 1) last[1] = i;
    else runs.push([i, i]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

export const number = (n) => Math.round(n).toLocaleString("en");
export const counted = (forms, n) => said(forms[n === 1 ? 0 : 1], { n });

// In a sentence, a token that is only signs would be taken for the sentence's own.
export const quoted = (label) => (/^[\p{P}\p{S}\s]+$/u.test(label) ? `“${label}”` : label);

// At most 13 letters, for an axis.
export function short(label) {
  if (label.length <= 13) return label; // in any way of counting letters
  const letters = Array.from(label);
  return letters.length > 13 ? letters.slice(0, 12).join("") + "…" : label;
}

// A row of buttons of which one is pressed. options: [value, text, title]; act(value) when one is chosen.
export function choice(label, options, chosen, act) {
  const box = el("span", "seg");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", label);
  for (const [value, text, title] of options) {
    const button = el("button", "", text);
    button.type = "button";
    if (title) button.title = title;
    button.setAttribute("aria-pressed", value === chosen);
    button.addEventListener("click", (event) => {
      for (const other of box.children) other.setAttribute("aria-pressed", other === button);
      act(value, event);
    });
    box.append(button);
  }
  return box;
}

// Arrow keys as [down, right]; undefined for any other key, and for the browser's own shortcuts.
export function arrow(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
  return { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
}

// Work that may replace the element that has the focus: whatever then stands in its place gets it.
export function keepingFocus(root, work) {
  const tree = root.getRootNode();
  const path = [];
  for (let at = tree.activeElement; at && at !== root; at = at.parentElement) {
    path.unshift(Array.prototype.indexOf.call(at.parentElement?.children ?? [], at));
  }
  const had = tree.activeElement;
  work();
  if (had && !tree.activeElement) path.reduce((at, i) => at?.children[i], root)?.focus({ preventScroll: true });
}

export const add = (parent, tag, className = "") => parent.appendChild(el(tag, className));

// A small question mark that explains in one hover, or in one focus for those without a pointer
export const hint = (text) => Object.assign(el("span", "hint", "?"), { title: text, tabIndex: 0, ariaLabel: text, role: "note" });
