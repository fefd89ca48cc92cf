// Swap two words: which heads follow the word to its new place, and which look at whatever stands where it stood.

import { indexed } from "../../../kit/browser/labels.js";
import {
  add,
  button,
  choice,
  clamp,
  el,
  fill,
  isStill,
  fixed,
  number,
  percent,
  phrase,
  quoted,
  scientific,
  selectBox,
  worded,
} from "../../../kit/browser/dom.js";
import { unpack } from "../../../kit/browser/messages.js";
import { signed } from "../../../kit/browser/picture/scale.js";
import { WORDS as words } from "./constants.js";
import { chips, FINDINGS } from "./findings.js";
import { grid } from "./grid.js";
import { SwapMaps, carried } from "./swapmaps.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Swapped} Swapped */
/** @typedef {{layer: number, head: number, query: number, by: number}} Follower */
const LEAST = 0.02; // of its attention: below it, a head is not said to follow anything, and a word not to be looked at
const EXACT = 1e-4; // largest difference of a weight that is the rounding of float32
const ONE_BACK = 0.5; // mean weight from which a head is called the one for the word before

/** @param {Uint8Array} bytes @returns {Swapped} */
export function readSwap(bytes) {
  const [header, body] = unpack(bytes);
  const n = header.layers * header.heads;
  const numbers = (/** @type {number} */ at, each = 1) => new Float32Array(body, at, n * each);
  return {
    ...header,
    guesses: header.words,
    along: numbers(header.along_at),
    still: numbers(header.still_at),
    back: numbers(header.back_at, 2),
  };
}

/** @param {Uint8Array} bytes @returns {import("./swapmaps.js").Pair} */
export function readMaps(bytes) {
  const [header, body] = unpack(bytes);
  const n = header.places.length ** 2;
  return {
    places: header.places,
    before: new Float32Array(body, header.before_at, n),
    after: new Float32Array(body, header.after_at, n),
    allowed: new Uint8Array(body, header.allowed_at, n),
  };
}

export class Swap {
  /** @type {Swapped | null} What is on the screen: the last that came */
  found = null;
  foundOf = "";
  refused = "";
  hasHeads = true;
  ownFindings = FINDINGS.swap;
  gridOf = "";
  /** @type {import("./swapmaps.js").Pair | null} On the screen: the last that came */
  maps = null;
  mapsOf = ""; // the run and the head that they are of
  /** @type {[number, number]} And their two words, which stay until the maps of two others are there */
  mapsPair = [-1, -1];
  /** @type {((at: {layer: number, head: number}) => void) | undefined} */
  mark;

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
    const { labPlace: host } = view;
    this.main = add(host, "div", "main swap");
    const left = add(this.main, "section");
    this.chips = add(left, "div", "chips");
    this.pair = new SwapMaps(view, left);
    this.legend = add(left, "p", "legend");
    this.right = add(this.main, "section", "follows");
    this.choices = add(this.right, "div", "choices");
    this.heads = add(this.right, "div", "answer");
    this.about = add(this.right, "div", "answer");
  }

  // ------------------------------------------------------------------ what is chosen

  get stack() {
    return this.view.value("stack");
  }

  /** The attention of the stack to itself. */
  get site() {
    const { sites } = this.view.header;
    return sites.find((site) => site.id === this.stack) ?? sites[0];
  }

  get side() {
    return this.view.side(this.site.query);
  }

  get cond() {
    const find = this.view.value("find"); // which may say so itself
    const cond = find === "drop" || find === "free" ? find : this.view.value("cond");
    return cond === "free" && !this.isOrdered ? "drop" : cond;
  }

  // Whether the mask tells early from late as well
  get isOrdered() {
    return this.view.header.ordered[this.stack];
  }

  /** @param {string} cond */
  asking(cond) {
    return { lab: "swap", swap: this.view.value("swap"), stack: this.stack, cond };
  }

  fetch() {
    const params = this.asking(this.cond);
    const of = JSON.stringify(params);
    const found = this.view.ask("positions/swap", params, readSwap);
    if (!found) return;
    this.refused = found.refused ?? "";
    if (found.refused) return;
    [this.found, this.foundOf] = [found, of];
  }

  // True while the picture shows the unchanged model
  get isAsTrained() {
    return this.cond === "trained";
  }

  get isPending() {
    return this.foundOf !== JSON.stringify(this.asking(this.cond));
  }

  // The head that the lab opens with, where none is chosen: the one that follows the word, or the place where a link asks for it or
  // none follows the word
  get follower() {
    const { found, view } = this;
    if (!found || view.value("layer") !== "") return null;
    const isPlace = view.value("find") === "place" ? found.place.by >= LEAST : found.word.by < LEAST;
    return isPlace && found.place.by >= LEAST ? found.place : found.word;
  }

  // The head on the screen: the one that was chosen, else the one that follows the word
  get head() {
    const { view, site } = this;
    const opening = this.follower ?? view.header.opening;
    return {
      layer: Math.min(view.number("layer", opening.layer), site.records.length - 1),
      head: Math.min(view.number("head", opening.head), site.heads - 1),
    };
  }

  // The row on the screen; of the head that the lab opens with, the one that shows it best
  get query() {
    const query = this.follower?.query ?? this.view.number("query");
    return Math.min(query, this.site.n_query - 1);
  }

  get shownHead() {
    const { found } = this;
    /** @type {import("../../../kit/browser/chooser.js").Measure[]} */
    const measures = found
      ? [
          {
            id: "follows",
            name: words.swap_measure,
            title: words.swap_heads_note,
            values: () => this.word,
            say: points,
            isSigned: true,
          },
        ]
      : [];
    return { site: this.site, ...this.head, query: this.query, measures };
  }

  // The run and the head whose maps belong on the screen
  get asksMapsOf() {
    const { layer, head } = this.head;
    return `${this.found?.after} ${layer}.${head}`;
  }

  // Above 0 a head follows the word, below 0 the place, [layer, head]
  get word() {
    const { along, still } = /** @type {Swapped} */ (this.found);
    return along.map((x, i) => still[i] - x);
  }

  // The words that may change places
  get movable() {
    const { labels, fixed } = this.side;
    return labels.map((_, word) => word).filter((word) => !fixed.includes(word));
  }

  /** @param {number} a @param {number} b two words of the text as it was typed */
  swap(a, b) {
    if (a === b || this.side.fixed.includes(a) || this.side.fixed.includes(b)) return;
    this.view.choose({ swap: [a, b].sort((x, y) => x - y).join("-") });
    this.view.announce(fill(words.said_swap, { a: this.name(a), b: this.name(b) }));
  }

  // Which word stands at a place, once both have changed theirs
  /** @param {number} place @param {[number, number]} [pair] */
  standing(place, [a, b] = this.found?.pair ?? [-1, -1]) {
    return place === a ? b : place === b ? a : place;
  }

  /** @param {number} word */
  name(word) {
    return indexed(this.side.labels, word);
  }

  // ------------------------------------------------------------------ what there is to see

  // Findings that this text or this model does not show
  /** @param {string} id */
  lacks(id) {
    if (this.refused && !this.found) return FINDINGS.swap.includes(id);
    const known = this.trained ?? this.found;
    if (id === "word" || id === "place") return known ? known[id].by < LEAST : false;
    return id === "free" && !this.isOrdered;
  }

  get isWaiting() {
    return !this.found && !this.refused;
  }

  // As trained: what the first two findings are of
  get trained() {
    if (this.cond === "trained") return this.found;
    const found = this.view.ask("positions/swap", this.asking("trained"), readSwap);
    return found && !found.refused ? found : null;
  }

  get shownFinding() {
    if (this.cond !== "trained") return this.cond;
    const { layer, head } = this.head;
    const found = this.found;
    for (const kind of /** @type {const} */ (["word", "place"]))
      if (found && found[kind].by >= LEAST && found[kind].layer === layer && found[kind].head === head) return kind;
    return "";
  }

  /** @param {string} find */
  take(find) {
    if (find === "drop" || find === "free") return this.go({ find, cond: find });
    const at = find === "place" || find === "word" ? this.trained?.[find] : null;
    if (at) this.go({ find, cond: "trained", layer: String(at.layer), head: String(at.head), query: String(at.query) });
    else this.view.choose({ find, cond: "trained", layer: "", head: "" });
  }

  // Everything on the screen that no one has chosen: the next choice is made beside it
  held() {
    const { layer, head } = this.head;
    return {
      swap: this.view.value("swap") || (this.found?.pair.join("-") ?? ""),
      cond: this.cond,
      layer: String(layer),
      head: String(head),
      query: String(this.query),
    };
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    this.fetch();
    const { view, found } = this;
    this.main.classList.toggle("narrow", view.narrow);
    if (this.refused && !found) this.chips.replaceChildren();
    else this.drawChips();
    this.drawChoices();
    if (!found) {
      this.pair.clear();
      this.legend.replaceChildren();
      this.heads.replaceChildren();
      this.about.replaceChildren();
      return;
    }
    this.drawMaps(found);
    this.drawHeads(found);
    this.drawAbout(found);
  }

  drawChips() {
    const n = number(this.site.records.length * this.site.heads);
    const why = (/** @type {string} */ id) => fill(worded(words.swap_why, id), { n });
    const ids = FINDINGS.swap.filter((id) => !this.lacks(id));
    chips(this.chips, ids, this.shownFinding, (id) => this.take(id), why);
  }

  drawChoices() {
    this.choices.replaceChildren(...(this.found ? [this.pairChoice(this.found)] : []));
  }

  // Any two words, by two boxes; others that are worth it, by a button
  /** @param {Swapped} found */
  pairChoice({ pair: shown, pairs }) {
    const now = () => {
      const chosen = this.view.value("swap"); // which may still be on its way
      return chosen ? chosen.split("-").map(Number) : shown;
    };
    const pair = now();
    const box = el("span", "line");
    const labels = this.movable.map((word) => /** @type {[string, string]} */ ([String(word), this.name(word)]));
    const select = (/** @type {string} */ label, /** @type {number} */ at) =>
      selectBox(
        label,
        labels.filter(([word]) => Number(word) !== pair[1 - at]),
        String(pair[at]),
        (word) => this.swap(Number(word), now()[1 - at]), // the other box may have changed since it was drawn
      );
    const others = pairs.filter((two) => two.join() !== pair.join());
    box.append(
      select(words.swap_first, 0),
      "⇄",
      select(words.swap_second, 1),
      ...(isStill() ? [] : [button(words.swap_play, "quiet", () => this.pair.play(), words.swap_play_help)]),
      ...others.map(([a, b]) =>
        button(
          fill(words.swap_pair, { a: this.name(a), b: this.name(b) }),
          "quiet",
          () => this.swap(a, b),
          words.swap_pairs,
        ),
      ),
    );
    return box;
  }

  /** @param {Swapped} found */
  drawMaps(found) {
    const { view, site, query } = this;
    const { layer, head } = this.head;
    const [a, b] = found.pair;
    const params = { other: found.after, record: site.records[layer], head, query, a, b };
    const maps = view.ask("positions/swapped", params, readMaps, found.before);
    const isOther = this.mapsPair.join() !== found.pair.join();
    if (maps && !maps.refused) [this.maps, this.mapsOf, this.mapsPair] = [maps, this.asksMapsOf, [a, b]];
    this.pair.box.classList.toggle("pending", this.isPending || !maps);
    if (!this.maps) return this.pair.clear();
    const { places } = this.maps;
    const pair = this.mapsPair;
    const names = this.side.labels.map((_, place) => this.name(this.standing(place, pair)));
    if (isOther && pair.join() === found.pair.join()) this.pair.play();
    this.pair.draw({
      maps: this.maps,
      pair,
      names,
      query: places.includes(query) ? query : places[places.length - 1],
      sink: view.sink.key,
      lock: (row) => this.go({ query: String(row) }),
      swap: (from, to) => this.swap(this.standing(from, pair), this.standing(to, pair)),
    });
    this.legend.replaceChildren(
      el("i", "framed"),
      el("i", "framed fewer"),
      ` ${words.swap_legend_frames} `,
      ...(this.isOrdered && this.cond !== "free" ? [el("i", "masked"), ` ${words.swap_legend_hidden}`] : []),
    );
  }

  /** @param {Swapped} found */
  drawHeads({ along }) {
    const { view } = this;
    const state = JSON.stringify([this.foundOf, view.unit, view.width, view.narrow, view.isProjected, view.scheme]);
    if (state !== this.gridOf) {
      this.gridOf = state;
      this.heads.replaceChildren();
      const word = this.word;
      const most = Math.max(0.01, ...word.map(Math.abs));
      const tone = signed(view.palette);
      const title = add(this.heads, "h2");
      title.append(el("b", "", fill(words.swap_heads, { n: number(along.length) })), ` ${words.swap_heads_note}`);
      this.mark = grid(view, this.heads, word, this.head, (at) => this.choose(at.layer, at.head), {
        wide: view.isProjected ? 296 : 400,
        tall: 150,
        tone: (value) => tone(value / most),
        say: points,
        label: (head, value) => fill(words.swap_grid, { n: word.length, head, points: points(value) }),
      });
      const legend = add(this.heads, "p", "legend");
      legend.append(
        el("b", "", words.swap_legend_place),
        " ",
        el("i", "ahead"),
        el("i", "ramp"),
        " ",
        el("b", "", words.swap_legend_word),
        ` ${fill(words.swap_legend, { most: (100 * most).toFixed(0) })}`,
      );
    }
    this.mark?.(this.head);
  }

  /** @param {Swapped} found */
  drawAbout(found) {
    const { layer, head } = this.head;
    const n = this.site.heads;
    const i = layer * n + head;
    const word = this.word;
    const kind = word[i] >= 0 ? "word" : "place";
    const sign = kind === "word" ? 1 : -1;
    const rank = 1 + word.filter((x) => sign * x > sign * word[i]).length;
    const title = el("h2");
    title.append(el("b", "", words.swap_this), ` ${fill(worded(words.swap_rank, kind), { i: rank, n: word.length })}`);
    const list = el("dl", "numbers");
    const line = (/** @type {string} */ name, /** @type {string} */ value) =>
      list.append(el("dt", "", name), el("dd", "", value));
    line(words.swap_along, fill(words.swap_differs, { p: percent(found.along[i]) }));
    line(words.swap_still, fill(words.swap_differs, { p: percent(found.still[i]) }));
    const back = [found.back[i], found.back[word.length + i]];
    line(words.swap_back, fill(words.swap_changes, { a: percent(back[0]), b: percent(back[1]) }));
    title.className = "numbered";
    this.about.replaceChildren(title, list);
    if (!found.guesses.length) return;
    const next = add(this.about, "h2");
    next.append(el("b", "", words.swap_next), ` ${words.swap_next_note}`);
    const box = add(this.about, "div", "nextwords");
    for (const [label, before, after] of found.guesses.slice(0, 3)) {
      const bars = el("i");
      for (const [value, name] of /** @type {[number, string][]} */ ([
        [before, "was"],
        [after, "now"],
      ]))
        bars.append(Object.assign(el("u", name), { style: `width: ${Math.max(0.5, 100 * value)}%` }));
      box.append(
        el("b", "", label.trim()),
        bars,
        el("span", "", fill(words.swap_changes, { a: percent(before), b: percent(after) })),
      );
    }
  }

  // Chooses, and says what else is on the screen: another text would open with other words and another head
  /** @param {Record<string, string>} changes */
  go(changes) {
    this.view.choose({ ...this.held(), find: "", ...changes });
  }

  /** @param {number} layer @param {number} head */
  choose(layer, head) {
    this.go({ layer: String(layer), head: String(head) });
  }

  // ------------------------------------------------------------------ words

  status() {
    const { layer, head } = this.head;
    const { found, isPending, refused } = this;
    const i = layer * this.site.heads + head;
    return {
      pending: isPending && !refused,
      head: `${layer}.${head}`,
      pair: found?.pair.join("-") ?? "",
      along: found ? found.along[i] : "",
      still: found ? found.still[i] : "",
      apart: found ? found.apart : "",
      finding: this.shownFinding,
    };
  }

  fact() {
    const { found, cond } = this;
    if (!found) return this.refused ? [document.createTextNode(this.refused)] : [];
    const [a, b] = found.pair;
    const said = phrase(words.fact_swap, { a: [quoted(this.name(a)), "w"], b: [quoted(this.name(b)), "w"] });
    return [...said, ...(cond === "trained" ? this.aboutHead(found) : this.aboutOrder(found))];
  }

  /** @param {Swapped} found */
  aboutOrder(found) {
    /** @type {Record<string, [string, string]>} */
    const parts = { n: [number(found.weights), ""], d: [scientific(atMost(found.apart)), ""] };
    if (this.cond === "free" || !this.isOrdered) {
      if (found.apart > EXACT) return phrase(words.fact_swap_most, parts);
      return phrase(this.cond === "free" ? words.fact_swap_exact_free : words.fact_swap_exact, parts);
    }
    const before = this.trained?.back;
    if (!before) return [];
    const n = this.word.length;
    let best = 0;
    for (let i = 1; i < n; i++) if (before[i] > before[best]) best = i;
    if (before[best] < ONE_BACK) return phrase(words.fact_swap_back_none, { d: [percent(found.after_both), ""] });
    return phrase(words.fact_swap_back, { x: [percent(before[best]), ""], y: [percent(found.back[best]), ""] });
  }

  /** @param {Swapped} found */
  aboutHead(found) {
    const { maps, query } = this;
    const { layer, head } = this.head;
    if (!maps || this.mapsOf !== this.asksMapsOf) return []; // nothing is said of the maps before
    const row = maps.places.indexOf(query);
    if (row < 0) return [];
    const n = maps.places.length;
    const [a, b] = found.pair;
    const [i, j] = [maps.places.indexOf(a), maps.places.indexOf(b)];
    const was = (/** @type {number} */ at) => maps.before[row * n + at];
    const now = (/** @type {number} */ at) => maps.after[row * n + at];
    // Each word: where it stood, and where it stands now
    const both = [
      { word: a, other: b, from: i, to: j },
      { word: b, other: a, from: j, to: i },
    ];
    const follow = this.word[layer * this.site.heads + head];
    const kind = follow >= LEAST ? "word" : follow <= -LEAST ? "place" : "";
    const shown = (/** @type {(typeof both)[0]} */ { from, to }) =>
      kind === "place" ? Math.min(was(from), now(from)) : Math.max(was(from), now(to));
    const { word, other, from, to } = shown(both[0]) >= shown(both[1]) ? both[0] : both[1];
    /** @type {Record<string, string | number | [string, string]>} */
    const parts = {
      layer,
      head,
      q: [quoted(this.name(this.standing(query))), "q"],
      w: [quoted(this.name(word)), "k"],
      v: [quoted(this.name(other)), "k"],
      x: [percent(was(from)), ""],
      y: [percent(kind === "place" ? now(from) : now(to)), ""],
      z: [percent(now(from)), ""],
    };
    if (Math.max(was(from), now(to), now(from)) < LEAST) return phrase(words.fact_swap_neither, parts);
    const isClear = shown({ word, other, from, to }) >= LEAST && (kind !== "word" || now(to) > now(from));
    if (kind === "word" && isClear) return phrase(words.fact_swap_word, parts);
    if (kind === "place" && isClear) return phrase(words.fact_swap_place, parts);
    return phrase(words.fact_swap_hand, parts);
  }

  foot() {
    const { found } = this;
    if (!found) return { proof: "", facts: "" };
    const isAll = found.rows === found.read;
    const facts = [
      fill(isAll ? words.swap_mean_all : words.swap_mean, { rows: found.rows }),
      fill(words.tokens, { n: this.side.labels.length }),
      found.read < found.of ? fill(words.swap_of, { rows: found.read, of: found.of }) : "",
    ];
    return { proof: "", facts: facts.filter(Boolean).join(" · ") };
  }

  tools() {
    const { view } = this;
    const made = [];
    if (view.header.stacks.length > 1) {
      /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
      const stacks = view.header.stacks.map((stack) => [stack, worded(words.stacks, stack)]);
      const take = (/** @type {string} */ stack) => view.choose({ stack, site: stack, swap: "", layer: "", head: "" });
      made.push(choice(words.stack, stacks, this.stack, take));
    }
    /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
    const conditions = Object.entries(words.swap_condition).filter(([name]) => name !== "free" || this.isOrdered);
    made.push(choice(words.swap_conditions, conditions, this.cond, (cond) => this.go({ cond })));
    if (view.chooser) made.push(view.chooser.element);
    return made;
  }

  tables() {
    const { found, maps } = this;
    if (!found) return [];
    const { layer, head } = this.head;
    const heads = this.site.heads;
    const n = found.along.length;
    /** @type {import("./types.js").Table[]} */
    const tables = [
      {
        title: words.table_swap,
        name: "heads",
        columns: words.table_swap_columns,
        rows: Array.from(found.along, (along, i) => [
          Math.floor(i / heads),
          i % heads,
          along,
          found.still[i],
          found.back[i],
          found.back[n + i],
        ]),
      },
    ];
    if (maps && this.mapsOf === this.asksMapsOf) {
      const moved = carried(maps, this.mapsPair);
      const label = (/** @type {number} */ place) => this.name(this.standing(place, this.mapsPair));
      const m = maps.places.length;
      tables.push({
        title: fill(words.table_swap_maps, { layer, head }),
        name: "maps",
        columns: words.table_swap_maps_columns,
        rows: Array.from(moved, (value, i) => [
          label(maps.places[Math.floor(i / m)]),
          label(maps.places[i % m]),
          value,
          maps.after[i],
          maps.allowed[i],
        ]),
      });
    }
    return tables;
  }

  snippet() {
    const { view, found } = this;
    const [a, b] = found?.pair ?? [0, 1];
    const what = { ...view.header.about, ...this.head, stack: this.stack, a, b };
    return fill(words.snippet_swap, { ...what, condition: found?.condition ?? "", again: found?.again ?? "" });
  }

  // Another head, over the ends of the grid
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    const { layer, head } = this.head;
    const [layers, heads] = [this.site.records.length, this.site.heads];
    if (down) {
      this.go({ query: String(clamp(this.query + down, 0, this.site.n_query - 1)) });
      return true;
    }
    const at = (layer * heads + head + right + layers * heads) % (layers * heads);
    this.choose(Math.floor(at / heads), at % heads);
    return true;
  }
}

// A small number rounded up to one digit, for "none is more than"
/** @param {number} x */
function atMost(x) {
  const unit = 10 ** Math.floor(Math.log10(x || 1));
  return Math.ceil(x / unit - 1e-9) * unit;
}

/** @param {number} value */
function points(value) {
  return fill(words.swap_points, {
    points: `${value < 0 ? "−" : "+"}${fixed(100 * Math.abs(value), Math.abs(value) < 0.1 ? 1 : 0)}`,
  });
}
