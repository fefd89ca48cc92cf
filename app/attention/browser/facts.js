// The facts beside the picture, in words: what the chosen query looks at, how spread out it is, what is masked.

import { WORDS as words } from "./constants.js";
import { add, el, fill, number, phrase, quoted, ranges, share } from "../../kit/browser/dom.js";
import { lookers } from "./edges.js";
import { HIDDEN } from "./lens.js";

/** @type {Record<string, string>} */
const LOOKS = { rollout: words.looks_rollout, value: words.looks_value };
/** @type {Record<string, string>} */
const GIVES = { mean: words.gives_mean, max: words.gives_max, rollout: words.gives_rollout, value: words.gives_value };
/** @typedef {import("./types.js").Ranking} Ranking */
/** @typedef {import("./types.js").Summary} Summary */
const TOP = 5; // keys with a bar of their own

export class Facts {
  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.title = add(parent, "h2");
    this.big = add(parent, "p", "big");
    this.bars = add(parent, "div", "bars");
    this.leftLine = add(parent, "p", "note");
    this.entropyLine = add(parent, "p");
    this.entropyLine.title = words.entropy_help;
    this.maskLine = add(parent, "p", "mute");
    this.groupLine = add(parent, "p", "mute");
  }

  draw() {
    const { query, site, place } = this.view;
    const lens = this.view.lens();
    const summary = this.view.summary();
    const q = query === null ? null : [quoted(lens.queries[lens.queryOf(query)]), "q"];
    const of = LOOKS[lens.kind] ?? words.looks;
    this.title.replaceChildren(...(q ? phrase(of, { query: q }) : [words.looks_kinds[lens.kind] ?? words.looks_all]));
    const { hover } = this.view;
    const key = query === null && hover?.key != null && !lens.refused ? lens.keyOf(hover.key) : null; // a key alone: who looks at it
    if (key === null) this.big.replaceChildren(...this.sentence(q, summary));
    else this.drawLookers(key);
    this.drawLeft(summary.ranking);
    if (key === null) this.drawBars(summary);
    this.drawEntropy(summary.ranking);
    this.drawMask(summary.ranking);
    const sharing = ["head", "value"].includes(lens.kind) ? site.group(place.head).filter((head) => head !== place.head) : [];
    this.groupLine.hidden = !sharing.length;
    this.groupLine.textContent = sharing.length
      ? fill(words.shares, { heads: fill(words.head_numbers[sharing.length > 1 ? 1 : 0], { n: ranges(sharing) }) })
      : "";
  }

  // Who looks at a key, most first
  /** @param {number} key */
  drawLookers(key) {
    const lens = this.view.lens();
    const named = [quoted(lens.keys[key]), "k"];
    const column = this.view.column(key);
    const found = column?.weights ? lookers(column) : null;
    this.title.replaceChildren(...phrase(words.looked_at, { key: named }));
    const weights = new Map(found ?? []);
    this.drawBars({ order: [...weights.keys()], weight: (q) => weights.get(q) ?? 0 }, "query");
    if (!found) this.big.replaceChildren(...(column ? [column.refused ?? ""] : phrase(this.view.isWorthAColumn(key) ? words.loading : words.looked_at_large, { key: named })));
    else if (!found.length) this.big.replaceChildren(...phrase(words.looked_at_none, { key: named }));
    else {
      const [[q, weight]] = found;
      const parts = { key: named, query: [quoted(lens.queries[q]), "q"], share: [this.amount(weight), ""] };
      this.big.replaceChildren(...phrase(words.looked_at_most, parts));
    }
  }

  // A share of attention, or a norm
  /** @param {number} value */
  amount(value) {
    return this.view.lens().unit === "norm" ? String(Number(value.toPrecision(3))) : share(value);
  }

  // What the query looks at most, or what it gives to the key under the pointer
  /** @param {string[] | null} q @param {Summary} summary */
  sentence(q, { order, weight, ranking }) {
    const { hover } = this.view;
    const lens = this.view.lens();
    if (lens.refused) return [lens.refused];
    /** @param {number} k */
    const named = (k) => [quoted(lens.keys[k]), "k"];
    if (!q && !order.length) return [words.choose];
    if (!q) return phrase(words.all_kinds[lens.kind] ?? words.gives_all, { share: [this.amount(weight(order[0])), ""], key: named(order[0]) });
    if (!ranking) return [words.loading];
    const key = hover?.key == null ? order[0] : lens.keyOf(hover.key);
    const code = key === undefined ? 0 : ranking.masked?.[key];
    if (code === HIDDEN) return phrase(words.gives_hidden, { key: named(key) });
    if (!order.length) return phrase(ranking.masked?.includes(HIDDEN) ? words.gives_none_left : words.gives_nothing, { query: q });
    if (code) return phrase(words.gives_masked, { query: q, key: named(key), reason: this.view.reason(code) });
    const rank = number(/** @type {number} */ (ranking.rank.get(key)));
    const template = GIVES[lens.kind] ?? (lens.hide.length ? words.gives_rest : words.gives);
    return phrase(template, { query: q, share: [this.amount(weight(key)), ""], key: named(key), rank, n: number(order.length) });
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

  /** @param {Pick<Summary, "order" | "weight">} summary */
  drawBars({ order, weight }, axis = "key") {
    const lens = this.view.lens();
    const labels = axis === "key" ? lens.keys : lens.queries;
    const top = order.slice(0, TOP);
    const most = weight(top[0]) || 1;
    while (this.bars.children.length > top.length) this.bars.lastChild?.remove();
    while (this.bars.children.length < top.length) {
      const bar = this.bars.appendChild(el("div", "bar"));
      bar.append(el("span", ""), el("div", ""), el("u", ""));
      bar.children[1].append(el("i", ""));
    }
    top.forEach((k, i) => {
      const [label, box, value] = /** @type {HTMLElement[]} */ ([...this.bars.children[i].children]);
      label.className = axis === "key" ? "" : "q";
      label.textContent = labels[k];
      label.title = `${labels[k]}, ${fill(words.position, { i: axis === "key" ? lens.firstKey(k) : lens.firstQuery(k) })}`;
      /** @type {HTMLElement} */ (box.firstChild).style.width = `${Math.max(0.8, (100 * weight(k)) / most)}%`;
      value.textContent = lens.unit === "norm" ? this.amount(weight(k)) : `${(weight(k) * 100).toFixed(1)} %`;
    });
  }

  /** @param {Ranking | null} ranking */
  drawEntropy(ranking) {
    const { place, site } = this.view;
    const line = [];
    if (ranking?.order.length && ranking.bits != null) {
      const parts = { bits: [`${ranking.bits.toFixed(2)} bits`, ""], tokens: ranking.bits < 4 ? (2 ** ranking.bits).toFixed(1) : number(2 ** ranking.bits) };
      line.push(...phrase(words.entropy, parts), " ");
    }
    if (this.view.picture.whole && this.view.lens().plain) {
      const all = site.entropies(place.layer, place.head);
      const mean = all.reduce((sum, bits) => sum + bits, 0) / all.length;
      line.push(fill(words.entropy_mean, { bits: mean.toFixed(2) }));
    }
    this.entropyLine.replaceChildren(...line);
  }

  /** @param {Ranking | null} ranking */
  drawMask(ranking) {
    const { picture, site } = this.view;
    const lens = this.view.lens();
    if (!ranking) {
      const free = picture.whole && lens.plain && !site.masked(lens.layer, lens.head);
      this.maskLine.textContent = free ? words.free_all : "";
      return;
    }
    const count = new Map();
    for (const code of ranking.masked ?? []) if (code % HIDDEN) count.set(code, (count.get(code) ?? 0) + 1);
    if (!count.size) {
      const unmasked = !ranking.masked || lens.hide.length ? (site.id === "cross" ? words.free_cross : words.free) : words.free_last;
      this.maskLine.textContent = ["head", "value"].includes(lens.kind) ? unmasked : "";
      return;
    }
    const reasons = [...count].map(([code, n]) => (count.size > 1 ? `${number(n)} ${this.view.reason(code)}` : this.view.reason(code))).join(", ");
    const hidden = [...count.values()].reduce((a, b) => a + b, 0);
    this.maskLine.textContent = fill(words.hidden, { hidden: number(hidden), n: number(ranking.weights.length), reasons });
  }
}

// Small shares to a digit that says something: 0.04 %
/** @param {number} p */
const left = (p) => (p < 0.001 ? `${Number((p * 100).toPrecision(1))} %` : share(p));
