// What each run would write, letter by letter: with the answer given, and on its own; and how often each place is right.

import { colours } from "../../../kit/browser/colours.js";
import { el, fill, percent } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";

const END = "⏎";

/** @typedef {{name: string, className: string, look: import("./types.js").Look, facts: import("./types.js").FrameFacts, colour: string}} Reader */

/** @param {HTMLElement} parent @param {import("./types.js").Seen} seen @param {Reader[]} readers @param {Record<string, any>} palette */
export function reading(parent, seen, readers, palette) {
  parent.replaceChildren();
  const ramp = colours(palette.ramp);
  const samePlace = seen.tokens.length === seen.answer.length + 1;
  const right = samePlace ? [...seen.answer] : [...seen.answer, END];
  const problem = seen.tokens.slice(1, samePlace ? undefined : seen.tokens.length - seen.answer.length);
  /** @param {string} label @param {string} [className] */
  const row = (label, className = "") => {
    const name = parent.appendChild(el("span", `label ${className}`));
    name.textContent = label;
    return parent.appendChild(el("span", "cells"));
  };
  const top = row(words.reads);
  for (const symbol of problem) top.append(el("span", "cell plain", symbol));
  parent.append(Object.assign(el("span", "note", words.filled), { title: words.filled_help }));
  for (const { name, className, look, facts } of readers) {
    const given = row(fill(words.given, { run: name }), className);
    let good = 0;
    right.forEach((symbol, i) => {
      const best = look.best[i] === "</s>" ? END : look.best[i];
      const isRight = best === symbol;
      good += Number(isRight);
      const cell = given.appendChild(el("span", `cell${isRight ? "" : " wrong"}`, best));
      const shade = Math.round(255 * look.p[i]);
      Object.assign(cell.style, { background: ramp.css[shade], color: ramp.ink[shade] });
      cell.title = `${symbol === END ? words.end : symbol}: ${percent(look.p[i])}`;
    });
    parent.append(el("span", "note", fill(words.right, { n: good, m: right.length })));
    if (samePlace) continue; // nothing is read that was written
    const own = row(words.own);
    const written = [...look.own];
    const length = Math.max(right.length, Math.min(written.length + 1, right.length + 3));
    for (let i = 0; i < length; i++) {
      const symbol = written[i] ?? (i === written.length ? END : "");
      own.append(el("span", `cell own${symbol === right[i] ? "" : " wrong"}`, symbol));
    }
    parent.append(el("span", "note", fill(words.whole, { n: facts.whole })));
  }
  const places = row(words.by_place);
  const most = Math.max(...readers.map(({ facts }) => facts.given.length));
  for (let i = 0; i < Math.min(most, right.length); i++) {
    const cell = places.appendChild(el("span", "cell places"));
    for (const { facts, colour } of readers) {
      const bar = cell.appendChild(el("i"));
      Object.assign(bar.style, { height: `${Math.round(100 * (facts.given[i] ?? 0))}%`, background: colour });
    }
    cell.title = readers.map(({ name, facts }) => `${name}: ${percent(facts.given[i] ?? 0)}`).join(", ");
  }
  parent.append(Object.assign(el("span", "note", words.by_place_note), { title: words.by_place_help }));
}
