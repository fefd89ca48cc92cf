// Where a number came from: its largest terms, the others, and the bias, in shown numbers that add up.

import { apart, el, fill, fixed, number } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { addUp, ofUnits } from "./sums.js";
import { form } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").From} From */
/** @typedef {import("./types.js").Term} Term */

// The parts of a sum as texts: {total, terms: [product], others, bias}, which add up as they stand
/** @param {From} from */
function shownSum({ total = 0, terms = [], nRest = 0, bias = null, edited = 0, digits = 2 }) {
  const parts = terms.map((term) => term.product);
  if (bias !== null) parts.push(bias);
  if (edited) parts.push(edited);
  const sum = addUp(total, parts, { others: nRest > 0, digits });
  const texts = sum.parts.map((units) => ofUnits(units, digits));
  return {
    total: ofUnits(sum.total, digits),
    terms: texts.slice(0, terms.length),
    bias: bias === null ? null : texts[terms.length],
    edited: edited ? texts[texts.length - 1] : null,
    others: nRest > 0 ? ofUnits(sum.others, digits) : null,
    units: sum,
  };
}

// What a walk's picture makes of a server's answer
/** @param {import("./types.js").ServerTerms} answer @param {(index: number) => string} label @param {string} [kind] */
export function termsOf(answer, label, kind) {
  return {
    total: answer.value,
    terms: answer.indices.map((index, i) => ({
      label: label(index),
      kind,
      a: answer.factors[i][0],
      b: answer.factors[i][1],
      product: answer.products[i],
    })),
    nRest: answer.n_rest,
    rest: answer.rest,
    bias: answer.bias || null,
    edited: answer.edited,
  };
}

/** @param {string} label @param {string} value @param {{kind?: string, under?: string, strong?: boolean}} [options] */
function block(label, value, { kind = "", under = "\u00a0", strong = false } = {}) {
  const node = el("span", `t${strong ? " tot" : ""}${under.trim() ? "" : " alone"}`);
  node.append(el("small", kind, label || "\u00a0"), el("span", "", value), el("u", "", under));
  return node;
}
const sign = (/** @type {string} */ text) => el("span", "op", text);

// Draws it; returns the sentence that a screen reader hears.
/** @param {HTMLElement} host @param {From} from */
export function drawFrom(host, from) {
  const heading = el("div", "h");
  const title = el("span");
  title.append(...(typeof from.title === "string" ? [from.title] : from.title));
  heading.append(title);
  if (from.right) heading.append(el("span", "", from.right));
  const nodes = [heading];
  let said = title.textContent ?? "";
  if (from.terms) {
    const shown = shownSum(from);
    const digits = from.digits ?? 2;
    const line = el("div", "sum terms");
    line.append(block(from.name ?? "", shown.total, { strong: true }), sign("="));
    const spoken = [];
    from.terms.forEach((term, i) => {
      if (i) line.append(sign("+"));
      const product = shown.terms[i];
      const factors =
        term.a === undefined
          ? product
          : `${fixed(term.a, from.factorDigits ?? digits)} × ${fixed(term.b ?? 0, digits)}`;
      line.append(block(term.label, factors, { kind: term.kind, under: term.a === undefined ? undefined : product }));
      spoken.push(`${apart(term.label)} ${product}`);
    });
    for (const [text, label] of /** @type {const} */ ([
      [shown.others, fill(form(words.others, from.nRest ?? 0), { n: number(from.nRest ?? 0) })],
      [shown.bias, words.bias],
      [shown.edited, words.edited],
    ])) {
      if (text === null) continue;
      if (spoken.length) line.append(sign("+"));
      line.append(block(label, text));
      spoken.push(`${label} ${text}`);
    }
    nodes.push(line);
    said = fill(words.cell, { name: said, value: shown.total, sum: spoken.join(" + ") });
  }
  if (from.pieces) {
    const line = el("div", "sum");
    for (const piece of from.pieces) {
      line.append("op" in piece ? sign(piece.op) : block(piece.label, piece.value, piece));
      said += "op" in piece ? ` ${piece.op}` : ` ${apart(String(piece.label))} ${piece.value}`;
    }
    nodes.push(line);
  }
  if (from.note) {
    nodes.push(el("div", "note", from.note));
    said += `. ${from.note}`;
  }
  host.replaceChildren(...nodes);
  return said;
}
