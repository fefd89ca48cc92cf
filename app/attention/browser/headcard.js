// The chosen head here: where it rests, what it adds to the next word and from which words, and the words that it moves.

import { add, el, fill, fixed, number, percent, phrase, quoted, ranges, setText } from "../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { Elsewhere } from "./elsewhere.js";
import { wordsOf } from "./headmap.js";
import { indexed } from "../../kit/browser/labels.js";
import { smallMap } from "./smallmaps.js";

const LEAST = 0.05; // logits; what moves a word by less is not named
const FROM = 3; // words that a head's addition comes from
const PARTNERS = 3; // heads with the same keys that are drawn
const EXAMPLES = 3; // of what the head does over many texts
const SMALL = 1.5; // em, of their maps

export class HeadCard {
  /** @type {string | null} The state that the examples on the screen were made for */
  shown = null;
  /** @type {HTMLElement | null} */
  list = null;

  /** @param {import("./types.js").View} view @param {HTMLElement} parent @param {import("./headmap.js").HeadMap} all @param {import("./atlas.js").Atlas} atlas */
  constructor(view, parent, all, atlas) {
    this.atlas = atlas;
    this.view = view;
    this.all = all;
    this.box = add(parent, "section", "headcard");
    const top = add(this.box, "div", "top");
    this.rests = add(top, "p");
    this.elsewhere = new Elsewhere(view, top, () => ({ query: view.chosen.place.query, key: all.lookedAt }));
    this.rows = add(this.box, "dl");
    this.group = add(this.box, "div", "group");
    this.corpus = add(this.box, "div", "corpus");
    this.what = add(this.corpus, "span");
  }

  draw() {
    const { view } = this;
    const { site, chosen, picture } = view;
    const keys = picture.tokens[site.key] ?? [];
    const { layer, head } = chosen.place;
    const sink = view.shading.rests;
    const rests = sink?.shares[layer]?.[head];
    this.rests.hidden = rests === undefined;
    if (sink?.key != null && rests !== undefined) {
      const parts = { share: [percent(rests), "b"], key: [quoted(indexed(keys, sink.key)), "k"] };
      this.rests.replaceChildren(...phrase(words.card_rests, parts));
    }
    const moved = wordsOf(view);
    const rank = this.all.rank();
    /** @type {[name: string, nodes: (Node | string)[]][]} */
    const rows = [];
    if (rank) {
      const parts = {
        addition: signed(rank.value),
        word: [quoted(this.all.word), "w"],
        rank: number(rank.rank),
        n: number(rank.n),
      };
      rows.push([words.card_adds, phrase(words.card_adds_to, parts)]);
    }
    if (moved) {
      const order = moved.additions.map((x, key) => /** @type {[number, number]} */ ([x, key]));
      const most = order.sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, FROM);
      const named = most
        .filter(([x]) => Math.abs(x) >= LEAST)
        .map(([x, key]) => /** @type {[string, number]} */ ([indexed(keys, key), x]));
      rows.push([words.card_from, listed(named, "k")]);
      rows.push([
        words.card_raises,
        listed(
          moved.raised.filter(([, x]) => x >= LEAST),
          "",
        ),
      ]);
      rows.push([
        words.card_lowers,
        listed(
          moved.lowered.filter(([, x]) => x <= -LEAST),
          "",
        ),
      ]);
    }
    this.rows.replaceChildren(
      ...rows.flatMap(([name, nodes]) => {
        const said = el("dd");
        said.append(...nodes);
        return [el("dt", "", name), said];
      }),
    );
    this.rows.title = moved ? fill(words.card_among, { n: number(moved.among) }) : "";
    this.drawGroup();
    this.drawCorpus();
    this.elsewhere.draw();
  }

  // The same head over many texts: what sets it apart, and as many examples of three as there is room for
  drawCorpus() {
    const { atlas, view } = this;
    this.corpus.hidden = !atlas.texts;
    atlas.stand(this.corpus.hidden ? null : this.corpus);
    const found = this.corpus.hidden ? null : atlas.of(view.chosen.place);
    setText(this.what, found ? atlas.short(found) : "");
    const { narrow, sideHeight } = view.room;
    const state =
      found && `${found.examples[0]?.link} ${narrow} ${sideHeight} ${this.group.hidden} ${this.rows.children.length}`;
    if (this.shown === state) return;
    this.shown = state;
    this.list?.remove();
    this.list = null;
    if (!found || !wordsOf(view)) return; // its height is not known yet
    const line = 1.4 * parseFloat(getComputedStyle(this.box).fontSize);
    const { top } = this.all.box.parentElement?.getBoundingClientRect() ?? { top: 0 };
    const free = narrow ? Infinity : top + sideHeight - this.box.getBoundingClientRect().bottom;
    const n = Math.min(EXAMPLES, Math.floor(free / line));
    if (n < 1) return; // the button has them all
    this.list = atlas.examples({ ...found, examples: found.examples.slice(0, n) });
    this.corpus.append(this.list);
  }

  // The card is not on the screen, so the button is in the title again.
  hide() {
    this.box.hidden = true;
    this.atlas.stand(null);
  }

  // The heads that read the same keys and values, as small maps
  drawGroup() {
    const { view } = this;
    const { site, chosen, room } = view;
    const { layer, head } = chosen.place;
    const others = site.kv_heads < site.heads ? site.group(head).filter((one) => one !== head) : [];
    this.group.hidden = !others.length;
    if (!others.length) return;
    const size = SMALL * room.em;
    this.group.replaceChildren(el("span", "mute", words.card_shares));
    for (const other of others.slice(0, PARTNERS)) {
      const choose = el("button", "partner");
      const map = site.isPictured(layer) ? smallMap(view, site, { layer, head: other }) : el("canvas");
      map.style.width = map.style.height = `${size}px`;
      map.style.imageRendering = map.width < size ? "pixelated" : "auto";
      choose.append(map, el("span", "", fill(words.finding_head, { head: other })));
      choose.addEventListener("click", (event) => chosen.go({ layer, head: other }, event));
      this.group.append(choose);
    }
    if (others.length > PARTNERS) this.group.append(el("span", "mute", ranges(others.slice(PARTNERS))));
  }
}

/** @param {number} x */
const signed = (x) => [`${x < 0 ? "" : "+"}${fixed(x)}`, x < 0 ? "less" : "more"];

/** @param {[word: string, addition: number][]} found @param {string} look */
function listed(found, look) {
  if (!found.length) return [el("span", "mute", words.card_none)];
  return found.flatMap(([word, x]) => {
    const [text, sign] = signed(x);
    return [el("em", look || "b", quoted(word)), " ", el("em", sign, text), "  "];
  });
}
