// The answer, right: one sentence about what changed, the words outlined as they were and filled as they are, or the vectors that turned.

import { WORDS as words } from "./constants.js";
import { add, counted, el, fill, fixed, quoted, setText, phrase } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { percent, placed, upTo } from "./numbers.js";
import { angle, degreesOf, meant } from "../../../kit/browser/turns.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Word} Word */
const BITS = 1 / Math.LN2; // of a nat
const SHOWN = 11; // words, or tokens

/**
 * @typedef {{lead: Node[], before: number | null, after: number | null, word: string, likeliest: [label: string, p: number] | null,
 *   other: [label: string, before: number, after: number] | null, plain: boolean, turn: number | null, marks: [string, number][] | null, token: string | null,
 *   unlike: [a: Word, b: Word] | null, classes: boolean, number: [label: string, before: number, after: number] | null}} Fact
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
    say(fact.classes ? words.unlike_classes : words.unlike, {
      word: [quoted(a[1]), "word"],
      p: percent(a[2]),
      other: [quoted(b[1]), "word"],
      q: percent(b[3]),
    });
    return capital(nodes);
  }
  if (fact.plain) {
    if (fact.turn !== null || fact.before === null) say(words.plain_turn);
    else say(words.plain, { word: [quoted(fact.word), "word"], p: percent(fact.before) });
    return nodes;
  }
  nodes.push(...fact.lead);
  if (fact.turn !== null) {
    say(words.turns, { d: [angle(fact.turn), "number"] });
    const as = meant(fact.turn, fact.marks);
    if (as) say(` ${as[0]}`, { w: as[1].w, d: as[1].d });
    if (fact.token) say(words.most_moves, { token: [quoted(fact.token), "word"] });
    if (fact.number)
      say(words.number, {
        word: [quoted(fact.number[0]), "word"],
        p: [fixed(fact.number[1], 3), "number"],
        q: [fixed(fact.number[2], 3), "number"],
      });
    return capital(nodes);
  }
  if (fact.before === null || fact.after === null) return capital(nodes);
  const change = fact.after - fact.before;
  const template = Math.abs(change) < 0.01 ? words.stays : change < 0 ? words.falls : words.rises;
  say(template, {
    word: [quoted(fact.word), "word"],
    p: [percent(fact.before), "number"],
    q: [percent(fact.after), "number"],
  });
  if (fact.other)
    say(words.theirs, { word: [quoted(fact.other[0]), "word"], p: percent(fact.other[1]), q: percent(fact.other[2]) });
  if (fact.likeliest && fact.likeliest[0] !== fact.word)
    say(words.now, { word: [quoted(fact.likeliest[0]), "word"], p: percent(fact.likeliest[1]) });
  return capital(nodes);
}

/** @param {Node[]} nodes */
function capital(nodes) {
  const first = nodes[0];
  if (first?.textContent && first.nodeType === Node.TEXT_NODE)
    first.textContent = first.textContent[0].toUpperCase() + first.textContent.slice(1);
  return nodes;
}

// Bars of words: outlined before, filled after
/** @param {HTMLElement} box @param {Word[]} found @param {import("./types.js").Palette} palette @param {[before: number | undefined, after: number | undefined]} [least] what a word without a number has at most */
export function drawWords(box, found, palette, least) {
  const most = Math.max(...found.flatMap(([, , a, b]) => [a ?? 0, b ?? 0]), 1e-6);
  const shown = found.slice(0, SHOWN);
  /** @param {number} share */
  const width = (share) => Math.max(1, (share / most) * 150);
  rowsOf(box, shown.length).forEach(([label, svg, value], i) => {
    const [, name, before, after] = shown[i];
    setText(label, name);
    drawOutlined(svg, {
      before: before === null ? null : width(before),
      after: after === null ? null : width(after),
      fill: i ? palette.ramp[3] : palette.proof,
      ink: palette.ink,
    });
    if (!value.childElementCount) value.replaceChildren("", el("b"), " %");
    value.childNodes[0].nodeValue = `${upTo(before, least?.[0])} → `;
    setText(value.children[0], upTo(after, least?.[1]));
  });
}

// A bar after a change, and around it the outline of the one before
/** @param {Element} svg @param {{before: number | null, after: number | null, fill: string, ink: string}} bars pixels; null has none */
export function drawOutlined(svg, { before, after, fill, ink }) {
  const pen = new Pen(svg);
  const place = { x: 0.5, y: 2, height: 10, rx: 2 };
  if (after !== null) pen.draw("rect", { ...place, width: after, fill });
  if (before !== null) pen.draw("rect", { ...place, width: before, fill: "none", stroke: ink, "stroke-width": 1 });
  pen.end();
}

// Bars of the tokens whose last vector turned most
/** @param {HTMLElement} box @param {number[]} turned 1 − cosine of each @param {string[]} labels @param {import("./types.js").Palette} palette */
export function drawTurned(box, turned, labels, palette) {
  const order = turned
    .map((_, i) => i)
    .sort((a, b) => turned[b] - turned[a])
    .slice(0, 8);
  const most = Math.max(degreesOf(turned[order[0]] ?? 0), 1e-6);
  rowsOf(box, order.length).forEach(([label, svg, value], i) => {
    const at = order[i];
    setText(label, placed(labels, at));
    const pen = new Pen(svg);
    pen.draw("rect", {
      x: 0.5,
      y: 2,
      width: Math.max(1, (degreesOf(turned[at]) / most) * 150),
      height: 10,
      rx: 2,
      fill: i ? palette.ramp[3] : palette.proof,
    });
    pen.end();
    setText(value, angle(degreesOf(turned[at])));
  });
}

// So many rows: what each is called, its bar and its number. Those that are there stay.
/** @param {HTMLElement} box @param {number} n @returns {HTMLCollection[]} */
function rowsOf(box, n) {
  while (box.children.length > n) box.lastElementChild?.remove();
  while (box.children.length < n) {
    const row = add(box, "div", `bar${box.children.length ? "" : " first"}`);
    add(row, "span", "label");
    const svg = new Pen(row).draw("svg", { viewBox: "0 0 160 14", preserveAspectRatio: "none", "aria-hidden": "true" });
    row.append(svg, el("span", "value"));
  }
  return Array.from(box.children, (row) => row.children);
}

/** @param {number} nats */
export const sayKl = (nats) => fill(words.kl, { bits: pointed((nats * BITS).toFixed(2)) });

// What is said below the bars
/** @param {import("./types.js").Side} side @param {boolean} silenced @param {boolean} masked */
export function beneath(side, silenced, masked) {
  const said = [];
  if (side.kl !== null) said.push(sayKl(side.kl));
  if (side.elsewhere) said.push(counted(words.elsewhere, side.elsewhere));
  if (side.entropy && Math.abs(side.entropy[0] - side.entropy[1]) >= 0.05)
    said.push(fill(words.entropy, { a: fixed(side.entropy[0]), b: fixed(side.entropy[1]) }));
  if (masked && side.losses) said.push(fill(words.loss, { a: fixed(side.losses[0], 3), b: fixed(side.losses[1], 3) }));
  if (silenced) said.push(words.honest);
  return said.join(" ");
}
