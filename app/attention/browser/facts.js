// The facts beside the picture, in words: what the chosen query looks at, how spread out it is, what is masked.

import { Bars } from "../../kit/browser/picture/bars.js";
import { WORDS as words } from "./constants.js";
import {
  add,
  apart,
  digits,
  el,
  fill,
  finely,
  number,
  percent,
  phrase,
  quoted,
  ranges,
} from "../../kit/browser/dom.js";
import { lookers } from "./edges.js";
import { findingOf, sentenceOf } from "./findings.js";
import { HIDDEN } from "./lens.js";
import { indexed, tokenName } from "../../kit/browser/labels.js";
import { isGuess, nextOf, whyNoNext, writes } from "./next.js";
import { form, pointed } from "../../kit/browser/language.js";

/** @type {Record<string, string>} */
const GIVES = { mean: words.gives_mean, max: words.gives_max, rollout: words.gives_rollout, value: words.gives_value };
/** @typedef {import("./types.js").Ranking} Ranking */
/** @typedef {import("./types.js").Summary} Summary */
const TOP = 4; // keys with a bar of their own
const SURE = 0.5; // of the probability: above it, the model writes the word, below it is its best guess
const ALMOST = 1e-5; // less than a whole, by what 16 bits can say: one of several keys never has all of a row

export class Facts {
  /** @param {import("./types.js").View} view @param {HTMLElement} parent @param {HTMLElement} top for the sentence @param {HTMLElement} side for the next word */
  constructor(view, parent, top, side) {
    this.view = view;
    this.big = add(top, "p", "big");
    this.bars = new Bars(parent, "looks");
    this.leftLine = add(parent, "p", "note");
    this.entropyLine = add(parent, "p", "spread");
    this.next = new Bars(side, "writes", (i, event) => this.choose(i, event));
    this.nextLine = add(parent, "p", "note");
    this.groupLine = add(parent, "p", "mute");
  }

  draw() {
    const { query, hover } = this.view.chosen;
    const { site, place } = this.view;
    const lens = this.view.lens();
    const summary = this.view.numbers.summary();
    const row = query === null ? null : lens.queryOf(query);
    const q = row === null ? null : [quoted(lens.queries[row]), "q"];
    const key = query === null && hover?.key != null && !lens.refused ? lens.keyOf(hover.key) : null; // a key alone: who looks at it
    const finding = findingOf(this.view);
    if (isGuess(this.view)) this.big.textContent = words.predict_ask;
    else if (finding && summary.ranking) this.big.replaceChildren(...sentenceOf(this.view, finding));
    else if (key === null) this.big.replaceChildren(...this.sentence(q, summary));
    else this.drawLookers(key);
    this.drawLeft(summary.ranking);
    if (key === null) this.drawBars(summary, "key");
    this.entropyLine.replaceChildren(...this.entropy(summary.ranking), this.mask(summary.ranking));
    this.drawNext(row);
    const sharing = ["head", "value"].includes(lens.kind)
      ? site.group(place.head).filter((head) => head !== place.head)
      : [];
    this.groupLine.hidden = !sharing.length;
    this.groupLine.textContent = sharing.length
      ? fill(words.shares, { heads: fill(form(words.head_numbers, sharing.length), { n: ranges(sharing) }) })
      : "";
  }

  // Who looks at a key, most first
  /** @param {number} key */
  drawLookers(key) {
    const lens = this.view.lens();
    const named = [quoted(lens.keys[key]), "k"];
    const column = this.view.numbers.column(key);
    const found = column?.weights ? lookers(column) : null;
    const weights = new Map(found ?? []);
    this.drawBars({ order: [...weights.keys()], weight: (q) => weights.get(q) ?? 0 }, "query");
    if (!found)
      this.big.replaceChildren(
        ...(column
          ? [column.refused ?? ""]
          : phrase(this.view.numbers.isWorthAColumn(key) ? words.loading : words.looked_at_large, { key: named })),
      );
    else if (!found.length) this.big.replaceChildren(...phrase(words.looked_at_none, { key: named }));
    else {
      const [[q, weight]] = found;
      const parts = { key: named, query: [quoted(lens.queries[q]), "q"], share: [this.amount(weight), ""] };
      this.big.replaceChildren(...phrase(words.looked_at_most, parts));
    }
  }

  // A share of attention, or a norm. `said` writes the share; of several keys none has exactly all of a row or nothing of it.
  /** @param {number} value @param {number} [of] @param {(p: number) => string} [said] */
  amount(value, of = Infinity, said = percent) {
    const { unit, kind } = this.view.lens();
    if (unit === "norm") return digits(value, 3);
    const isExact = of < 2 || kind === "rollout";
    return said(isExact ? value : Math.min(1 - ALMOST, Math.max(ALMOST / 2, value)));
  }

  // What the query looks at most, or what it gives to the key under the pointer
  /** @param {string[] | null} q @param {Summary} summary */
  sentence(q, { order, weight, ranking }) {
    const { hover } = this.view.chosen;
    const lens = this.view.lens();
    if (lens.refused) return [lens.refused];
    /** @param {number} k */
    const named = (k) => [quoted(lens.keys[k]), "k"];
    if (!q && !order.length) return [words.choose];
    if (!q)
      return phrase(lens.kind === "head" ? words.gives_all : words.all_kinds[lens.kind], {
        share: [this.amount(weight(order[0])), ""],
        key: named(order[0]),
      });
    if (!ranking) return [words.loading];
    const key = hover?.key == null ? order[0] : lens.keyOf(hover.key);
    const code = key === undefined ? 0 : ranking.masked?.[key];
    if (code === HIDDEN) return phrase(words.gives_hidden, { key: named(key) });
    if (!order.length)
      return phrase(ranking.masked?.includes(HIDDEN) ? words.gives_none_left : words.gives_nothing, { query: q });
    if (code) return phrase(words.gives_masked, { query: q, key: named(key), reason: this.view.numbers.reason(code) });
    const rank = number(/** @type {number} */ (ranking.rank.get(key)));
    const template = GIVES[lens.kind] ?? (lens.hide.length ? words.gives_rest : words.gives);
    const parts = {
      query: q,
      share: [this.amount(weight(key), order.length), ""],
      key: named(key),
      rank,
      n: number(order.length),
    };
    const sink = this.view.shading.sink;
    const other = order.find((k) => k !== sink);
    if (this.writesOf(q) && key === sink && other !== undefined && weight(other) > 0) {
      const rest = {
        share: parts.share,
        sink: named(key),
        key: named(other),
        p: [this.amount(weight(other), order.length), ""],
      };
      return [...this.written(q), ...phrase(words.rests_at, rest)];
    }
    return [...this.written(q), ...phrase(this.writesOf(q) ? words.looks_at : template, parts)];
  }

  // What the model writes after the chosen token of a decoder, as the beginning of the headline
  /** @param {string[]} q */
  written(q) {
    const next = this.writesOf(q);
    if (!next) return [];
    const [[word, p]] = next.words;
    const parts = { query: q, word: [quoted(tokenName(word)), "w"], share: [percent(Math.min(1 - ALMOST, p)), ""] };
    return [...phrase(p >= SURE ? words.writes : words.writes_guess, parts), " "];
  }

  // The head looks, so that the model writes: said of one head as it is, and of no cell that is pointed at
  /** @param {string[] | null} q */
  writesOf(q) {
    const { query, hover } = this.view.chosen;
    const lens = this.view.lens();
    if (!q || query === null || lens.kind !== "head" || lens.hide.length || hover?.key != null) return null;
    return nextOf(this.view, lens.queryOf(query));
  }

  // What the model is about to write after the chosen row
  /** @param {number | null} row */
  drawNext(row) {
    this.next.box.hidden = !writes(this.view);
    const next = row === null ? null : nextOf(this.view, row);
    const most = 1 - ALMOST;
    const bars = (next?.words ?? []).map(([label, p]) => ({
      label: tokenName(label),
      title: fill(words.candidate_help, { word: label }),
      className: "w",
      at: p,
      value: percent(Math.min(most, p)),
    }));
    const pressed = Math.min(Number(this.view.options.candidate), bars.length - 1);
    const of = row === null ? "" : indexed(this.view.lens().queries, row);
    this.next.draw(
      row === null ? words.writes_next : fill(words.next_word, { query: quoted(of) }),
      bars,
      true,
      pressed,
    );
    const asked = writes(this.view) ? words.writes_choose : ""; // an encoder writes after no token
    if (!next)
      return void (this.nextLine.textContent = row === null ? asked : whyNoNext(this.view, row, words.loading));
    if (!next.given) return void (this.nextLine.textContent = words.writes_last);
    const [label, p, rank] = next.given;
    const parts = {
      word: [quoted(tokenName(label)), "w"],
      share: finely(Math.min(most, p)),
      rank: number(rank),
      n: number(next.vocabulary),
    };
    this.nextLine.replaceChildren(...phrase(words.writes_given, parts));
  }

  // The word that heads add to, by which they are coloured from now on
  /** @param {number} candidate of the likeliest, 0 the first @param {Event} event */
  choose(candidate, event) {
    this.view.chosen.set("candidate", String(candidate), event);
    this.view.chosen.set("by", "adds", event);
  }

  // How much of the row the picture still shows, where tokens are hidden
  /** @param {Ranking | null} ranking */
  drawLeft(ranking) {
    const lens = this.view.lens();
    const hidden = lens.hide.length && ranking?.left != null;
    this.leftLine.hidden = !hidden;
    if (!hidden) return;
    const text = ranking.left ? fill(words.left, { share: left(ranking.left) }) : words.left_none;
    this.leftLine.textContent = lens.unit === "norm" ? words.left_norm : text;
  }

  // The keys with the most, or the queries; what is left is one more bar, so that all of them add up.
  /** @param {Pick<Summary, "order" | "weight">} summary @param {"key" | "query"} axis */
  drawBars({ order, weight }, axis) {
    const lens = this.view.lens();
    const labels = axis === "key" ? lens.keys : lens.queries;
    const isShare = lens.unit === "weight";
    const top = order.slice(0, order.length === TOP + 1 ? TOP + 1 : TOP);
    const scale = isShare ? 1 : lens.top;
    const bars = top.map((k) => ({
      label: labels[k],
      title: `${apart(labels[k])}, ${fill(words.position, { i: axis === "key" ? lens.firstKey(k) : lens.firstQuery(k) })}`,
      className: axis === "key" ? "k" : "q",
      at: weight(k) / scale,
      value: this.amount(weight(k), axis === "key" ? order.length : 2, finely),
    }));
    const others = order.slice(top.length);
    const adds = axis === "key" && isShare && lens.kind !== "max" && others.length > 0;
    const rest = others.reduce((sum, k) => sum + weight(k), 0);
    if (adds)
      bars.push({
        label: fill(words.others, { n: number(others.length) }),
        title: words.others_help,
        className: "rest",
        at: rest,
        value: this.amount(rest, 2, finely),
      });
    this.bars.draw(axis === "key" ? words.looks_at_head : words.looked_at_head, bars, isShare);
  }

  // How spread out the row is; of a whole head, on average
  /** @param {Ranking | null} ranking */
  entropy(ranking) {
    const { place, site, picture } = this.view;
    this.entropyLine.title = words.entropy_help;
    if (ranking?.order.length && ranking.bits != null) {
      const parts = {
        bits: [fill(words.in_bits, { value: pointed(ranking.bits.toFixed(2)) }), ""],
        tokens: ranking.bits < 4 ? pointed((2 ** ranking.bits).toFixed(1)) : number(2 ** ranking.bits),
      };
      return [...phrase(words.entropy, parts), " "];
    }
    if (ranking || !picture.whole || !this.view.lens().plain) return [];
    const all = site.entropies(place.layer, place.head);
    const mean = all.reduce((sum, bits) => sum + bits, 0) / all.length;
    return [fill(words.entropy_mean, { bits: pointed(mean.toFixed(2)) }), " "];
  }

  /** @param {Ranking | null} ranking */
  mask(ranking) {
    const text = this.masked(ranking);
    return el("span", "mute", text);
  }

  /** @param {Ranking | null} ranking */
  masked(ranking) {
    const { picture, site } = this.view;
    const lens = this.view.lens();
    if (picture.brought && !site.masked(lens.layer, lens.head)) return words.free_brought;
    if (!ranking) return picture.whole && lens.plain && !site.masked(lens.layer, lens.head) ? words.free_all : "";
    const count = new Map();
    for (const code of ranking.masked ?? []) if (code % HIDDEN) count.set(code, (count.get(code) ?? 0) + 1);
    if (!count.size) {
      const all = site.id === "cross" ? words.free_cross : words.free;
      // The last token of a causal head sees all there is, and still no other side.
      const isMasked = picture.whole ? site.masked(lens.layer, lens.head) : site.id === "decoder";
      const isLast = (ranking.masked && !lens.hide.length) || isMasked;
      const unmasked = isLast ? words.free_last : all;
      return ["head", "value"].includes(lens.kind) ? unmasked : "";
    }
    const reasons = [...count]
      .map(([code, n]) =>
        count.size > 1 ? `${number(n)} ${this.view.numbers.reason(code)}` : this.view.numbers.reason(code),
      )
      .join(", ");
    const hidden = [...count.values()].reduce((a, b) => a + b, 0);
    return fill(words.hidden, { hidden: number(hidden), n: number(ranking.weights.length), reasons });
  }
}

// Small shares to a digit that says something: 0.04 %
/** @param {number} p */
const left = (p) => (p < 0.001 ? `${digits(p * 100, 1)} %` : percent(p));
