// The facts beside the picture, in words: what the chosen query looks at, how spread out it is, what is masked.

import { WORDS as words } from "./constants.js";
import { add, el, number, phrase, quoted, ranges, said, share } from "./dom.js";

const TOP = 5; // keys with a bar of their own

export class Facts {
  constructor(view, parent) {
    this.view = view;
    this.title = add(parent, "h2");
    this.big = add(parent, "p", "big");
    this.bars = add(parent, "div", "bars");
    this.entropyLine = add(parent, "p");
    this.entropyLine.title = words.entropy_help;
    this.maskLine = add(parent, "p", "mute");
    this.groupLine = add(parent, "p", "mute");
  }

  draw() {
    const { query, site, place } = this.view;
    const summary = this.view.summary();
    const q = query === null ? null : [quoted(this.view.labels("query")[query]), "q"];
    this.title.replaceChildren(...(q ? phrase(words.looks, { query: q }) : [words.looks_all]));
    this.big.replaceChildren(...this.sentence(q, summary));
    this.drawBars(summary);
    this.drawEntropy(summary.ranking);
    this.drawMask(summary.ranking);
    const sharing = site.group(place.head).filter((head) => head !== place.head);
    this.groupLine.hidden = !sharing.length;
    this.groupLine.textContent = sharing.length
      ? said(words.shares, { heads: said(words.head_numbers[sharing.length > 1 ? 1 : 0], { n: ranges(sharing) }) })
      : "";
  }

  // What the query looks at most, or what it gives to the key under the pointer
  sentence(q, { order, weight, ranking }) {
    const { hover } = this.view;
    const named = (k) => [quoted(this.view.labels("key")[k]), "k"];
    if (!q && !order.length) return [words.choose];
    if (!q) return phrase(words.gives_all, { share: [share(weight(order[0])), ""], key: named(order[0]) });
    if (!ranking) return [words.loading];
    if (!order.length) return phrase(words.gives_nothing, { query: q });
    const key = hover?.key ?? order[0];
    if (ranking.masked?.[key]) {
      return phrase(words.gives_masked, { query: q, key: named(key), reason: this.view.reason(ranking.masked[key]) });
    }
    const rank = number(ranking.rank.get(key));
    return phrase(words.gives, { query: q, share: [share(weight(key)), ""], key: named(key), rank, n: number(order.length) });
  }

  drawBars({ order, weight }) {
    const keys = this.view.labels("key");
    const top = order.slice(0, TOP);
    const most = weight(top[0]) || 1;
    while (this.bars.children.length > top.length) this.bars.lastChild.remove();
    while (this.bars.children.length < top.length) {
      const bar = this.bars.appendChild(el("div", "bar"));
      bar.append(el("span", ""), el("div", ""), el("u", ""));
      bar.children[1].append(el("i", ""));
    }
    top.forEach((k, i) => {
      const [label, box, value] = this.bars.children[i].children;
      label.textContent = keys[k];
      label.title = `${keys[k]}, ${said(words.position, { i: k })}`;
      box.firstChild.style.width = `${Math.max(0.8, (100 * weight(k)) / most)}%`;
      value.textContent = `${(weight(k) * 100).toFixed(1)} %`;
    });
  }

  drawEntropy(ranking) {
    const { place, site } = this.view;
    const line = [];
    if (ranking?.order.length) {
      const parts = { bits: [`${ranking.bits.toFixed(2)} bits`, ""], tokens: ranking.bits < 4 ? (2 ** ranking.bits).toFixed(1) : number(2 ** ranking.bits) };
      line.push(...phrase(words.entropy, parts), " ");
    }
    if (this.view.picture.whole) {
      const all = site.entropies(place.layer, place.head);
      const mean = all.reduce((sum, bits) => sum + bits, 0) / all.length;
      line.push(said(words.entropy_mean, { bits: mean.toFixed(2) + (line.length ? "" : " bits") }));
    }
    this.entropyLine.replaceChildren(...line);
  }

  drawMask(ranking) {
    const { place, site } = this.view;
    if (!ranking) {
      const free = this.view.picture.whole && !site.masked(place.layer, place.head);
      this.maskLine.textContent = free ? words.free_all : "";
      return;
    }
    if (!ranking.masked) {
      this.maskLine.textContent = site.id === "cross" ? words.free_cross : words.free;
      return;
    }
    const count = new Map();
    for (const code of ranking.masked) if (code) count.set(code, (count.get(code) ?? 0) + 1);
    const reasons = [...count].map(([code, n]) => (count.size > 1 ? `${number(n)} ${this.view.reason(code)}` : this.view.reason(code))).join(", ");
    const hidden = [...count.values()].reduce((a, b) => a + b, 0);
    this.maskLine.textContent = hidden
      ? said(words.hidden, { hidden: number(hidden), n: number(ranking.weights.length), reasons })
      : words.free_last;
  }
}
