// The votes over the words of a sentence, and once they are uncovered the head's own weights beside them.

import { add, counted, described, el, fill, isStill, percent, phrase } from "../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { spaced, widest } from "./parts.js";
import { columns, largest, shares } from "./votes.js";
import { isRightToLeft } from "../../kit/browser/direction.js";

/** @typedef {import("./question.js").Question} Question */
/** @typedef {{votes: ArrayLike<number>, weights: ArrayLike<number>, word: string}} Before what the round before had at the same words, and what stood there in its sentence */
/** @typedef {{of: number, counts: number[], hidden: boolean, weights: ArrayLike<number> | null, before: Before | null}} Now weights null: covered */
/** @typedef {{token: number, room: HTMLElement, head: HTMLElement, marks: [HTMLElement, HTMLElement], plot: HTMLElement, cell: HTMLElement, word: HTMLElement}} Column */

export const MOST_BLOCKS = 60; // followers whose votes are blocks one by one; above, plain bars
const HEADROOM = 1.22; // of the tallest bar, for its number
const LEAST = 0.6; // of all votes: the scale of a question that no one has answered yet
const SEEN = 0.004; // of the weight: below it there is nothing to draw
const SAID = 0.015; // below it a bar has no number
const FALLS = 330; // ms
const WIDE = /[mwMW@%]/;
const THIN = /[iltjfr'.,!|]/;

/** How much room a word needs, in letters. @param {string} label */
const width = (label) =>
  Math.max(
    3.6,
    [...label].reduce((all, letter) => all + (THIN.test(letter) ? 0.62 : WIDE.test(letter) ? 1.4 : 1.08), 0) + 1.25,
  );

/**
 * How many of those who follow have answered, as a sentence and a dot for each phone, or a bar for many; and the code for who comes late.
 * @param {{said: HTMLElement, dots: HTMLElement, code: HTMLElement}} into
 * @param {number} n who have answered
 * @param {{of: number, door: boolean}} now
 * @param {string} code
 */
export function drawAnswered(into, n, now, code) {
  const of = Math.max(now.of, n);
  into.said.replaceChildren(
    ...(of ? phrase(words.have_said, { n: [String(n), "b"], of }) : [el("span", "mute", words.nobody_follows)]),
  );
  const isMeter = of > MOST_BLOCKS;
  into.dots.classList.toggle("meter", isMeter);
  const wanted = isMeter ? 1 : of;
  while (into.dots.childElementCount > wanted) into.dots.lastChild?.remove();
  while (into.dots.childElementCount < wanted) add(into.dots, "i");
  [...into.dots.children].forEach((dot, i) => {
    if (isMeter) /** @type {HTMLElement} */ (dot).style.width = `${(100 * n) / of}%`;
    else dot.className = i < n ? "on" : "";
  });
  into.code.textContent = now.door ? spaced(code) : words.door_closed;
  into.code.style.setProperty("--wide", widest(into.code.textContent).toFixed(2));
}

export class Chart {
  /** @param {HTMLElement} parent @param {{colour(p: number): string}} palette */
  constructor(parent, palette) {
    this.palette = palette;
    this.box = add(parent, "div", "chart");
    this.legend = add(this.box, "div", "legend");
    this.columns = add(this.box, "div", "columns");
    this.frame = add(this.box, "div", "frame");
    this.name = add(this.box, "div", "rowname");
    /** @type {Column[]} */
    this.drawn = [];
    this.of = "";
    /** @type {number[]} */
    this.before = [];
  }

  /** @param {Question} question @param {Now} now */
  draw(question, now) {
    const { counts, weights } = now;
    const votes = shares(counts);
    const masked = question.row(question.asked.layer, question.asked.head)?.masked;
    const which = columns(now.hidden ? counts.map(() => 0) : votes, weights, question.at);
    const of = `${question.asked.q}:${which}`;
    if (of !== this.of) {
      this.of = of;
      this.build(question, which);
    }
    const all = counts.reduce((sum, n) => sum + n, 0);
    const isBlocks = now.of <= MOST_BLOCKS && all <= MOST_BLOCKS;
    const most = Math.max(1, weights ? all : Math.max(now.of, all)); // votes that make 100 %
    const bars = counts.map((n) => (now.hidden ? 0 : n / most));
    const marks = weights && now.before ? [...Array.from(now.before.votes), ...Array.from(now.before.weights)] : [];
    const top = Math.max(LEAST, ...bars, ...Array.from(weights ?? [0]), ...marks) * HEADROOM;
    const high = this.drawn.find(({ token }) => token >= 0)?.plot.clientHeight ?? 0;
    const block = high / top / most;
    const first = new Set([...(now.hidden ? [] : largest(counts)), ...(weights ? largest(weights) : [])]);
    this.box.classList.toggle("revealed", weights !== null);
    this.box.dataset.votes = now.hidden ? "" : counts.join();
    for (const { token, room, head, marks, plot, cell, word } of this.drawn) {
      if (token < 0) continue;
      const [v, w] = [bars[token], weights?.[token] ?? 0];
      room.style.height = `${(100 * v) / top}%`;
      room.style.backgroundImage =
        isBlocks && block > 5
          ? `repeating-linear-gradient(to top, transparent 0 ${block - 1.6}px, var(--background) ${block - 1.6}px ${block}px)`
          : "none";
      /** @type {HTMLElement} */ (room.firstChild).textContent = v
        ? String(weights ? Math.round(100 * v) : counts[token])
        : "";
      head.style.height = weights && w > SEEN ? `${(100 * w) / top}%` : "0";
      /** @type {HTMLElement} */ (head.firstChild).textContent = w >= SAID ? String(Math.round(100 * w)) : "";
      cell.style.backgroundColor = weights ? this.palette.colour(w) : "";
      word.classList.toggle("top", first.has(token));
      word.classList.toggle("hidden", Boolean(masked?.[token]));
      const was = now.before ? [now.before.votes[token], now.before.weights[token]] : [0, 0];
      marks.forEach((mark, i) => {
        mark.hidden = !weights || was[i] <= SEEN;
        mark.style.bottom = `calc(${(100 * was[i]) / top}% - 1px)`;
        mark.classList.toggle("within", was[i] < [v, w][i] - 0.005);
      });
      const fell = counts[token] - (this.before[token] ?? 0);
      if (!weights && !now.hidden && isBlocks && fell === 1 && this.before.length && !document.hidden && !isStill())
        this.fall(plot, block, counts[token] - 1);
    }
    this.before = weights || now.hidden ? [] : [...counts];
    this.tell(question, now, isBlocks, all);
  }

  /** @param {Question} question @param {number[]} which */
  build(question, which) {
    const { labels, at } = question;
    this.columns.replaceChildren();
    this.columns.dir = isRightToLeft(labels) ? "rtl" : "ltr";
    this.columns.style.gridTemplateColumns = which
      .map((token) => (token < 0 ? "1.6fr" : `minmax(0, ${width(labels[token]).toFixed(2)}fr)`))
      .join(" ");
    this.drawn = which.map((token, i) => {
      const column = add(this.columns, "div", token < 0 ? "column gap" : "column");
      column.style.setProperty("--i", String(i));
      const plot = add(column, "div", "plot");
      const cell = add(column, "div", "cell");
      const word = add(column, "div", "word");
      const [room, head] = ["room", "head"].map((name) => add(plot, "i", `bar ${name}`));
      room.append(el("u"));
      head.append(el("u"));
      const marks = /** @type {[HTMLElement, HTMLElement]} */ (
        ["room", "head"].map((name) => add(plot, "i", `before ${name}`))
      );
      for (const mark of marks) mark.hidden = true;
      word.textContent = token < 0 ? "…" : labels[token];
      if (token < 0) word.title = fill(words.left_out, { n: -token });
      else word.title = labels[token];
      word.classList.toggle("me", token >= 0 && token === at);
      word.classList.toggle("special", token >= 0 && /^[[<].+[\]>]$/.test(labels[token]));
      return { token, room, head, marks, plot, cell, word };
    });
    this.name.textContent = this.name.title = question.word;
    this.box.style.setProperty("--letters", String(question.word.length));
  }

  // A block on its way down to where it stays
  /** @param {HTMLElement} plot @param {number} block @param {number} below */
  fall(plot, block, below) {
    const falling = add(plot, "i", "falling");
    falling.style.height = `${Math.max(3, block - 1.6)}px`;
    falling.style.bottom = `${below * block}px`;
    const from = plot.clientHeight - below * block;
    falling.animate(
      [
        { transform: `translate(-50%, ${-from}px)`, opacity: 0.3 },
        { transform: "translate(-50%, 0)", opacity: 1 },
      ],
      { duration: FALLS, easing: "cubic-bezier(.5,0,.9,.6)" },
    ).onfinish = () => falling.remove();
  }

  /** @param {Question} question @param {Now} now @param {boolean} isBlocks @param {number} all */
  tell(question, now, isBlocks, all) {
    const item = (/** @type {string} */ name, /** @type {string} */ text) => {
      const line = el("span");
      line.append(el("i", name), text);
      return line;
    };
    described(this.box, "img", this.alt(question, now) || words.no_votes);
    if (!now.weights)
      return this.legend.replaceChildren(
        item("room", now.hidden ? words.votes_hidden : isBlocks ? words.legend_blocks : words.legend_bars),
      );
    const items = [item("room", counted(words.legend_room, all)), item("head", words.legend_head)];
    if (now.before)
      items.push(
        item("was", now.before.word ? fill(words.legend_before_with, { w: now.before.word }) : words.legend_before),
      );
    this.legend.replaceChildren(...items);
  }

  // In words, for a reader who does not see it
  /** @param {Question} question @param {Now} now */
  alt({ labels }, { counts, hidden, weights }) {
    const votes = shares(counts);
    if (hidden) return words.votes_hidden;
    if (!weights)
      return labels.flatMap((w, i) => (counts[i] ? [fill(words.alt_votes, { w, n: counts[i] })] : [])).join("; ");
    const order = labels.map((_, i) => i).filter((i) => votes[i] > 0 || (weights?.[i] ?? 0) >= SAID);
    return order
      .map((i) => fill(words.alt_word, { w: labels[i], p: percent(votes[i]), p2: percent(weights?.[i] ?? 0) }))
      .join("; ");
  }
}
