// The answer, right: one sentence about what changed, the words outlined as they were and filled as they are, or the vectors that turned.

import { WORDS as words } from "./constants.js";
import { add, counted, el, fill, phrase, quoted } from "../../../kit/browser/dom.js";
import { percent, tenth } from "./numbers.js";
import { make } from "./sweepmap.js";

/** @typedef {import("./types.js").Word} Word */
const BITS = 1 / Math.LN2; // of a nat
const SHOWN = 11; // words, or tokens

/**
 * @typedef {{lead: Node[], before: number | null, after: number | null, word: string, likeliest: [label: string, p: number] | null,
 *   other: [label: string, before: number, after: number] | null, plain: boolean, turn: number | null, token: string | null,
 *   unlike: [a: Word, b: Word] | null}} Fact
 */

// What there is to say, as nodes; a name is set off
/** @param {Fact} fact */
export function sentence(fact) {
  /** @type {Node[]} */
  const nodes = [];
  /** @param {string} template @param {Record<string, unknown>} [parts] */
  const say = (template, parts = {}) => nodes.push(...phrase(template, parts));
  if (fact.unlike) {
    const [a, b] = fact.unlike;
    say(words.unlike, { word: [quoted(a[1]), "word"], p: percent(a[2]), other: [quoted(b[1]), "word"], q: percent(b[3]) });
    return capital(nodes);
  }
  if (fact.plain) {
    if (fact.turn !== null || fact.before === null) say(words.plain_turn);
    else say(words.plain, { word: [quoted(fact.word), "word"], p: percent(fact.before) });
    return nodes;
  }
  nodes.push(...fact.lead);
  if (fact.turn !== null) {
    say(words.turns, { d: [fact.turn.toFixed(3), "number"] });
    if (fact.token) say(words.most_moves, { token: [quoted(fact.token), "word"] });
    return capital(nodes);
  }
  if (fact.before === null || fact.after === null) return capital(nodes);
  const change = fact.after - fact.before;
  const template = Math.abs(change) < 0.01 ? words.stays : change < 0 ? words.falls : words.rises;
  say(template, { word: [quoted(fact.word), "word"], p: [percent(fact.before), "number"], q: [percent(fact.after), "number"] });
  if (fact.other) say(words.theirs, { word: [quoted(fact.other[0]), "word"], p: percent(fact.other[1]), q: percent(fact.other[2]) });
  if (fact.likeliest && fact.likeliest[0] !== fact.word) say(words.now, { word: [quoted(fact.likeliest[0]), "word"], p: percent(fact.likeliest[1]) });
  return capital(nodes);
}

/** @param {Node[]} nodes */
function capital(nodes) {
  const first = nodes[0];
  if (first?.textContent && first.nodeType === Node.TEXT_NODE) first.textContent = first.textContent[0].toUpperCase() + first.textContent.slice(1);
  return nodes;
}

// Bars of words: outlined before, filled after
/** @param {HTMLElement} box @param {Word[]} found @param {import("./types.js").Palette} palette */
export function drawWords(box, found, palette) {
  box.replaceChildren();
  const most = Math.max(...found.flatMap(([, , a, b]) => [a ?? 0, b ?? 0]), 1e-6);
  found.slice(0, SHOWN).forEach(([, label, before, after], i) => {
    const row = add(box, "div", `bar${i ? "" : " first"}`);
    add(row, "span", "label").textContent = label;
    const svg = /** @type {SVGSVGElement} */ (row.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg")));
    svg.setAttribute("viewBox", "0 0 160 14");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    if (after !== null) make(svg, "rect", { x: 0.5, y: 2, width: Math.max(1, (after / most) * 150), height: 10, rx: 2, fill: i ? palette.ramp[3] : palette.proof });
    if (before !== null) make(svg, "rect", { x: 0.5, y: 2, width: Math.max(1, (before / most) * 150), height: 10, rx: 2, fill: "none", stroke: palette.ink, "stroke-width": 1 });
    const value = add(row, "span", "value");
    value.append(`${tenth(before)} → `, el("b", "", tenth(after)), " %");
  });
}

// Bars of the tokens whose last vector turned most
/** @param {HTMLElement} box @param {number[]} turned @param {string[]} labels @param {import("./types.js").Palette} palette */
export function drawTurned(box, turned, labels, palette) {
  box.replaceChildren();
  const order = turned.map((_, i) => i).sort((a, b) => turned[b] - turned[a]).slice(0, 8);
  const most = Math.max(turned[order[0]] ?? 0, 1e-6);
  order.forEach((at, i) => {
    const row = add(box, "div", `bar${i ? "" : " first"}`);
    add(row, "span", "label").textContent = labels[at];
    const svg = /** @type {SVGSVGElement} */ (row.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg")));
    svg.setAttribute("viewBox", "0 0 160 14");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    make(svg, "rect", { x: 0.5, y: 2, width: Math.max(1, (turned[at] / most) * 150), height: 10, rx: 2, fill: i ? palette.ramp[3] : palette.proof });
    add(row, "span", "value").textContent = turned[at].toFixed(3);
  });
}

// What is said below the bars
/** @param {import("./types.js").Side} side @param {boolean} silenced @param {boolean} masked */
export function beneath(side, silenced, masked) {
  const said = [];
  if (side.kl !== null) said.push(fill(words.kl, { bits: (side.kl * BITS).toFixed(2) }));
  if (side.elsewhere) said.push(counted(words.elsewhere, side.elsewhere));
  if (side.entropy && Math.abs(side.entropy[0] - side.entropy[1]) >= 0.05) said.push(fill(words.entropy, { a: side.entropy[0].toFixed(2), b: side.entropy[1].toFixed(2) }));
  if (masked && side.losses) said.push(fill(words.loss, { a: side.losses[0].toFixed(3), b: side.losses[1].toFixed(3) }));
  if (silenced) said.push(words.honest);
  return said.join(" ");
}
