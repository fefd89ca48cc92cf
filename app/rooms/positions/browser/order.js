// Order: the words over their places, how far each head moves without positions or in another order, one head before and after,
// attention by distance, and the proof.

import {
  add,
  button,
  choice,
  el,
  fill,
  fixed,
  percent,
  phrase,
  quoted,
  scientific,
  worded,
} from "../../../kit/browser/dom.js";
import { json, unpack } from "../../../kit/browser/messages.js";
import { rising } from "../../../kit/browser/picture/scale.js";
import { bars } from "./bars.js";
import { WORDS as words } from "./constants.js";
import { grid } from "./grid.js";
import { Maps } from "./maps.js";
import { asked, largest, ranked, standing, swap, written } from "./numbers.js";
import { Strip } from "./strip.js";

/** @typedef {import("./types.js").Change} Change */
/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Weights} Weights */
const LEAST = 0.5; // of the mean weight one word back: below it, no head is called the one for the word before
const SEEDS = 1_000_000;

/** @param {Uint8Array} bytes @returns {Change} */
function readChange(bytes) {
  const [header, body] = unpack(bytes);
  const n = header.layers * header.heads;
  const numbers = (/** @type {number | null} */ at, each = 1) =>
    at === null ? null : new Float32Array(body, at, n * each);
  const weights = (/** @type {number | null} */ at) => (at === null ? null : new Uint16Array(body, at, header.cells));
  return {
    ...header,
    moved: numbers(header.moved_at),
    before: numbers(header.before_at, 2 * header.reach + 1),
    after: numbers(header.after_at, 2 * header.reach + 1),
    weights: weights(header.weights_at),
    weightsNow: weights(header.weights_now_at),
  };
}

/** @param {number} columns @param {number} rows @param {Uint16Array} values @param {number} from @returns {Weights} */
const weightsOf = (columns, rows, values, from) => ({
  rows,
  columns,
  at: (row, column) => values[from + row * columns + column] / 65535,
});

export class Order {
  /** @type {Change | null} What is on the screen: the last that came */
  change = null;
  changeOf = "";
  /** @type {string} */
  refused = "";
  hasHeads = true;
  movedOf = ""; // what the grid of heads is drawn of
  /** @type {((at: {layer: number, head: number}) => void) | undefined} */
  mark;

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
    const host = view.labPlace;
    this.strip = new Strip(view, add(host, "div", "stripbox"));
    this.main = add(host, "div", "main order");
    this.left = add(this.main, "section", "moves answer");
    this.maps = new Maps(view, add(this.main, "section", "pair"));
    this.right = add(this.main, "section", "by answer");
    this.host = host;
  }

  // ------------------------------------------------------------------ what is chosen

  /** @returns {"drop" | "trained" | "words"} */
  get mode() {
    return /** @type {any} */ (this.view.value("order"));
  }

  get side() {
    return this.view.side(
      this.view.value("stack") === "decoder" && this.view.header.tokens.target ? "target" : "source",
    );
  }

  // The places of the words as they are asked for; null for those that only the server deals out, until they have come
  /** @returns {number[] | null} */
  get places() {
    const { view } = this;
    const order = this.side.labels.map((_, word) => word);
    if (this.mode !== "words") return order;
    if (view.value("places")) return parse(view.value("places"), order);
    if (view.value("swap")) {
      const [a, b] = view.value("swap").split("-").map(Number);
      if (this.side.fixed.includes(a) || this.side.fixed.includes(b) || Math.max(a, b) >= order.length) return order;
      return order.map((word) => (word === a ? b : word === b ? a : word));
    }
    if (view.value("seed")) return this.change && this.changeOf === this.asking ? this.change.places : null;
    return order;
  }

  // What is asked of the server, as one text
  get asking() {
    const { view } = this;
    const names = ["order", "swap", "seed", "places", "stack", "site"];
    return JSON.stringify(names.map((name) => [name, view.value(name)]).filter(([, value]) => value));
  }

  // True while the picture shows the unchanged model
  get isAsTrained() {
    return this.mode === "trained";
  }

  get isPending() {
    return this.changeOf !== this.asking;
  }

  // What the last answer was asked for, which stays on the screen until the next is there
  /** @returns {Record<string, string>} */
  get of() {
    return Object.fromEntries(JSON.parse(this.changeOf || this.asking));
  }

  // The same, as the picture and the sentence need it
  get shown() {
    const { order, stack } = this.of;
    const isMoved = order === "words" && Boolean(this.change?.places.some((place, word) => place !== word));
    return { mode: order, isMoved, isCausal: stack === "decoder" };
  }

  fetch() {
    const params = Object.fromEntries(JSON.parse(this.asking));
    // Of other words than those on the screen, no number may stand under them.
    if (this.change && (this.of.site !== params.site || this.of.stack !== params.stack))
      [this.change, this.changeOf] = [null, ""];
    const found = this.view.ask("positions/order", params, readChange);
    if (!found) return;
    this.refused = found.refused ?? "";
    if (found.refused) return;
    this.change = found;
    this.changeOf = this.asking;
  }

  // The head on the screen: the one that was chosen, else the one for the word before, else where the model's first example is
  get head() {
    const { view } = this;
    const site = view.site();
    const back = this.back;
    const opening = back && view.value("layer") === "" ? back : view.header.opening;
    const layer = Math.min(view.number("layer", opening.layer), site.records.length - 1);
    return { layer, head: Math.min(view.number("head", opening.head), site.heads - 1) };
  }

  get shownHead() {
    const { moved } = this.change ?? {};
    /** @type {import("../../../kit/browser/chooser.js").Measure[]} */
    const measures = moved
      ? [{ id: "moved", name: words.moved_short, title: words.moved, values: () => moved, say: percent }]
      : [];
    return { site: this.view.site(), ...this.head, measures };
  }

  // The head that looks at the word before as trained, with how much it gives before and now
  get back() {
    const change = this.change;
    if (!change?.before || !change.after) return null;
    const { heads } = this.view.site();
    const size = 2 * change.reach + 1;
    let best = -1;
    for (let i = 0; i * size < change.before.length && i < change.moved.length; i++) {
      if (
        change.before[i * size + change.reach - 1] > (best < 0 ? LEAST : change.before[best * size + change.reach - 1])
      )
        best = i;
    }
    if (best < 0) return null;
    const [before, after] = [change.before, change.after].map((values) => values[best * size + change.reach - 1]);
    return { layer: Math.floor(best / heads), head: best % heads, before, after };
  }

  get query() {
    return Math.min(this.view.number("query"), this.view.site().n_query - 1);
  }

  // Both maps of a head: at hand, or fetched. null while they are on their way
  /** @param {number} layer @param {number} head @returns {[before: Weights | null, after: Weights | null]} */
  weights(layer, head) {
    const { view, change } = this;
    const site = view.site();
    if (change?.weights && change.weightsNow) {
      const from = (layer * site.heads + head) * site.n_query * site.n_key;
      return [
        weightsOf(site.n_key, site.n_query, change.weights, from),
        weightsOf(site.n_key, site.n_query, change.weightsNow, from),
      ];
    }
    if (!change) return [null, null];
    const params = { record: site.records[layer], head, q0: 0, q1: site.n_query, k0: 0, k1: site.n_key };
    const read = (/** @type {Uint8Array} */ bytes) => {
      const [header, body] = unpack(bytes);
      return weightsOf(header.columns, header.rows, new Uint16Array(body, 0, header.rows * header.columns), 0);
    };
    const [before, after] = [view.header.key, change.other].map((key) => {
      const found = view.ask("tile", params, read, key);
      return found?.refused ? null : found;
    });
    return [before, after];
  }

  // The cell of the sentence: the locked row of the head on the screen, at the key that is chosen or gets the most as trained. The
  // head for the word before has its own words; beside it the sentence has the cell that the model's first example is about.
  get cell() {
    const { view, change } = this;
    if (!change?.weights || !change.weightsNow) return null;
    const site = view.site();
    const [at, back] = [this.head, this.back];
    const isBack = back && at.layer === back.layer && at.head === back.head;
    const { layer, head } = isBack ? view.header.opening : at;
    if (isBack && back.layer === layer && back.head === head) return null;
    if (layer >= site.records.length || head >= site.heads) return null;
    const [before, after] = this.weights(layer, head);
    if (!before || !after) return null;
    const row = (/** @type {Weights} */ map) =>
      Array.from({ length: map.columns }, (_, key) => map.at(this.query, key));
    const [was, now] = [row(before), row(after)];
    const key = view.value("key") === "" ? largest(was) : Math.min(view.number("key"), site.n_key - 1);
    const other = largest(now, key);
    const fixed = view.side(site.key).fixed;
    return {
      layer,
      head,
      query: this.query,
      key,
      was: was[key],
      now: now[key],
      other: now[other] > now[key] && !fixed.includes(other) ? other : null,
      gets: now[other],
    };
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    this.fetch();
    const { view, change } = this;
    const { layer, head } = this.head;
    const site = view.site();
    this.strip.draw(this);
    this.main.classList.toggle("narrow", view.narrow);
    this.right.replaceChildren();
    if (!change) {
      this.left.replaceChildren();
      if (this.refused) add(this.left, "p", "refused").textContent = this.refused;
      return this.maps.clear();
    }
    this.drawMoved(change);
    this.maps.draw({
      titles: [words.map_trained, this.changedWords],
      note: fill(words.head, { layer, head }),
      second: this.shown.isMoved ? words.map_rows : "",
      weights: this.weights(layer, head),
      query: this.query,
      site,
      pending: this.isPending,
      lock: (query, key) => view.choose({ query: String(query), ...(key === undefined ? {} : { key: String(key) }) }),
    });
    bars(view, this.right, change, layer * site.heads + head, this.changedWords);
    this.proof();
  }

  // How far the heads move, drawn once for every answer; another head is marked in it
  /** @param {Change} change */
  drawMoved(change) {
    const { view } = this;
    const state = JSON.stringify([
      this.changeOf,
      this.refused,
      view.unit,
      view.width,
      view.narrow,
      view.isProjected,
      innerHeight,
      view.header.key,
      view.scheme,
    ]);
    if (state !== this.movedOf) {
      this.movedOf = state;
      const { scrollTop = 0, scrollLeft = 0 } = this.left.querySelector(".grid") ?? {};
      this.left.replaceChildren();
      if (this.refused) add(this.left, "p", "refused").textContent = this.refused;
      add(this.left, "h2").append(el("b", "", words.moved));
      const tone = rising(view.palette);
      const { moved } = change;
      this.mark = grid(view, this.left, moved, this.head, (at) => this.choose(at.layer, at.head), {
        wide: 334,
        tone,
        say: percent,
        label: (head, value) => fill(words.grid, { n: moved.length, head, share: percent(value) }),
      });
      add(this.left, "p", "legend").append("0 ", el("i", "ramp"), ` ${words.grid_legend}`);
      if (scrollTop || scrollLeft) this.left.querySelector(".grid")?.scrollTo(scrollLeft, scrollTop);
      this.ranks();
    }
    this.mark?.(this.head);
    const chosen = fill(words.short_head, this.head);
    for (const line of this.left.querySelectorAll(".ranked button"))
      line.setAttribute("aria-pressed", String(line.firstChild?.textContent === chosen));
  }

  // What the second map shows
  get changedWords() {
    const { mode, isMoved, isCausal } = this.shown;
    if (mode === "drop") return words.map_drop;
    return !isMoved ? words.map_same : isCausal ? words.map_places : words.map_words;
  }

  // A decoder's mask goes by the order in which the tokens are read, whatever their positions.
  get isCausal() {
    return this.view.value("stack") === "decoder";
  }

  // The four heads that move most, and the two that move least
  ranks() {
    const { view } = this;
    if (view.isProjected || !this.change) return;
    const heads = view.site().heads;
    const all = ranked(this.change.moved, heads);
    const shown = all.length > 6 ? [...all.slice(0, 4), ...all.slice(-2)] : all;
    const list = add(this.left, "div", "ranked");
    shown.forEach((at, i) => {
      const choose = () => this.choose(at.layer, at.head);
      const line = list.appendChild(button("", i >= 4 && all.length > 6 ? "apart" : "", choose));
      line.append(
        el("b", "", fill(words.short_head, at)),
        Object.assign(el("i", ""), { style: `width: ${Math.max(1, 100 * at.value)}%` }),
        el("span", "mute", percent(at.value)),
      );
    });
    add(this.left, "p", "note").textContent = all.length > 6 ? words.ranks : words.ranks_all;
  }

  /** @param {number} layer @param {number} head */
  choose(layer, head) {
    this.view.choose({ layer: String(layer), head: String(head) });
  }

  // Words moved without positions give the same map, moved about with them: proved on this sentence, by five passes.
  get proven() {
    const { view } = this;
    if (view.header.kind === "decoder") return null;
    const { labels, fixed } = view.side("source");
    const movable = labels.map((_, word) => word).filter((word) => !fixed.includes(word));
    if (movable.length < 2) return null;
    const here =
      !this.isCausal && this.mode === "words" && this.places?.some((place, word) => place !== word)
        ? this.places
        : null;
    const order = labels.map((_, word) =>
      fixed.includes(word) ? word : movable[movable.length - 1 - movable.indexOf(word)],
    );
    return view.ask("positions/proof", { places: written(here ?? order) }, json);
  }

  proof() {
    const { view } = this;
    const box = add(this.right, "div", "box proof");
    if (view.header.kind === "decoder") {
      add(box, "p").append(...phrase(words.proof_causal, {}));
      return;
    }
    const found = this.proven;
    const line = add(box, "p");
    line.append(el("b", "", words.proof), ` ${words.proof_line}`);
    if (!found) return;
    if (found.refused) {
      add(box, "p", "mute").textContent = found.refused;
      return;
    }
    const numbers = add(box, "p", "numbers");
    numbers.append(
      el("b", "a", `max |Δ| ${scientific(found.without)}`),
      ` ${words.proof_without}`,
      el("br"),
      el("b", "", `max |Δ| ${fixed(found.trained)}`),
      ` ${words.proof_with}`,
    );
    add(box, "p", "mute").textContent = words.proof_word;
  }

  // ------------------------------------------------------------------ words

  status() {
    const { layer, head } = this.head;
    const { change, isPending, refused, proven } = this;
    const isProven = change && proven && !proven.refused;
    return {
      pending: isPending && !refused,
      head: `${layer}.${head}`,
      moved: change ? change.moved[layer * this.view.site().heads + head] : "",
      without: isProven ? proven.without : "",
      with: isProven ? proven.trained : "",
    };
  }

  fact() {
    const { view, change } = this;
    const n = change ? change.moved.length : view.site().records.length * view.site().heads;
    const { mode, isMoved, isCausal } = this.shown;
    const said = [];
    if (!change || (mode !== "drop" && !isMoved)) {
      return phrase(words.fact_trained, { head: this.named(this.head), n });
    }
    const back = this.back;
    if (mode === "drop") {
      said.push(...phrase(isCausal ? words.fact_bag_causal : words.fact_bag, {}));
      if (back)
        said.push(
          ...phrase(back.after < back.before - 0.2 ? words.fact_back : words.fact_back_kept, {
            head: this.named(back),
            before: [percent(back.before), ""],
            after: [percent(back.after), ""],
          }),
        );
    } else {
      const two = swap(change.places);
      const labels = this.side.labels;
      if (two)
        said.push(
          ...phrase(isCausal ? words.fact_swapped_places : words.fact_swapped, {
            a: [quoted(labels[two[0]]), ""],
            b: [quoted(labels[two[1]]), ""],
          }),
        );
      else said.push(...phrase(isCausal ? words.fact_dealt_places : words.fact_dealt, {}));
    }
    const about = this.aboutCell();
    if (about.length && back && mode === "drop") said.push(document.createTextNode(words.fact_and));
    said.push(...about);
    if (mode === "words" && back) {
      const kept = back.after > back.before - 0.1;
      said.push(
        ...phrase(kept ? words.fact_keeps : words.fact_loses, {
          head: this.named(back),
          share: [percent(back.after), ""],
          before: [percent(back.before), ""],
        }),
      );
    }
    if (isCausal && mode === "words") said.push(...phrase(words.fact_mask, {}));
    return said;
  }

  aboutCell() {
    const { view } = this;
    const cell = this.cell;
    if (!cell) return [];
    const site = view.site();
    const labels = view.side(site.key).labels;
    const moved = cell.now - cell.was;
    const template =
      Math.abs(moved) < 0.005 ? words.fact_cell_same : moved < 0 ? words.fact_cell_falls : words.fact_cell_rises;
    const parts = {
      query: [quoted(view.side(site.query).labels[cell.query]), "q"],
      key: [quoted(labels[cell.key]), "k"],
      head: this.named(cell),
      before: [percent(cell.was), ""],
      after: [percent(cell.now), ""],
    };
    const said = phrase(template, parts);
    if (cell.other !== null)
      said.push(
        ...phrase(words.fact_other, { key: [quoted(labels[cell.other]), "k"], share: [percent(cell.gets), ""] }),
      );
    return [...said, document.createTextNode(". ")];
  }

  /** @param {{layer: number, head: number}} at */
  named(at) {
    return fill(words.head, at);
  }

  foot() {
    const { view, change } = this;
    const found = this.proven;
    const n = change?.moved.length ?? 0;
    const far = change ? change.moved.filter((value) => value > 0.5).length : 0;
    const looked = change && change.rows < change.of ? fill(words.rows, { n: change.rows, of: change.of }) : "";
    return {
      proof: found && !found.refused ? fill(words.foot_order, { size: scientific(found.same) }) : "",
      facts: change
        ? [fill(words.foot_moved, { far, n }), fill(words.tokens, { n: view.side("source").labels.length }), looked]
            .filter(Boolean)
            .join(" · ")
        : "",
    };
  }

  tools() {
    const { view } = this;
    const made = [];
    if (view.header.stacks.length > 1) {
      /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
      const sites = view.header.sites.map((site) => [site.id, words.sites[site.id]]);
      made.push(
        choice(words.site, sites, view.site().id, (site) => view.choose({ site, layer: "", head: "", key: "" })),
      );
      /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
      const stacks = view.header.stacks.map((stack) => [stack, worded(words.stacks, stack)]);
      made.push(
        choice(words.stack, stacks, view.value("stack"), (stack) =>
          view.choose({
            stack,
            order: view.value("order") === "words" ? "trained" : view.value("order"),
            swap: "",
            seed: "",
            places: "",
          }),
        ),
      );
    }
    if (!view.isProjected) made.push(el("span", "mute note", this.strip.canDrag ? words.drag : words.drag_long));
    if (view.chooser) made.push(view.chooser.element);
    /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
    const orders = [
      ["trained", words.order_trained],
      ["drop", words.order_drop],
      ["words", this.isCausal ? words.order_places : words.order_words],
    ];
    made.push(choice(words.order, orders, this.mode, (order) => this.take(order)));
    const deal = () =>
      view.choose({
        order: "words",
        swap: "",
        places: "",
        seed: view.value("seed") ? String((view.number("seed") + 1) % SEEDS) : "1",
      });
    const shuffle = view.button(null, words.shuffle, deal, words.shuffle_help);
    shuffle.disabled = this.strip.movable.length < 2;
    made.push(shuffle);
    return made;
  }

  // Words moved, where no one has moved one yet: dealt out
  /** @param {string} order */
  take(order) {
    const { view } = this;
    const isDealt = view.value("swap") || view.value("seed") || view.value("places");
    view.choose({ order, ...(order === "words" && !isDealt && this.strip.movable.length > 1 ? { seed: "1" } : {}) });
  }

  // Two words change their places
  /** @param {number[]} places */
  move(places) {
    this.view.choose(asked(places));
  }

  tables() {
    const { view, change } = this;
    if (!change) return [];
    const site = view.site();
    const size = 2 * change.reach + 1;
    const { layer, head } = this.head;
    const [queries, keys] = [view.side(site.query).labels, view.side(site.key).labels];
    const heads = ranked(change.moved, site.heads).map((at) => {
      const from = (at.layer * site.heads + at.head) * size + change.reach - 1;
      return [
        at.layer,
        at.head,
        at.value,
        change.before ? change.before[from] : "",
        change.after ? change.after[from] : "",
      ];
    });
    const [before, after] = this.weights(layer, head);
    /** @type {import("./types.js").Table[]} */
    const tables = [{ title: words.table_moved, name: "moved", columns: words.table_moved_columns, rows: heads }];
    if (before && after && before.rows === site.n_query && before.columns === site.n_key) {
      const cells = queries.flatMap((query, q) =>
        keys.map((key, k) => [q, query, k, key, before.at(q, k), after.at(q, k)]),
      );
      tables.push({
        title: fill(words.table_maps, { layer, head }),
        name: "maps",
        columns: words.table_maps_columns,
        rows: cells,
      });
    }
    if (change.before && change.after) {
      const from = (layer * site.heads + head) * size;
      const { before: was, after: now } = change;
      const number = (/** @type {number} */ x) => (Number.isNaN(x) ? "" : x);
      tables.push({
        title: fill(words.table_distance, { layer, head }),
        name: "distance",
        columns: words.table_distance_columns,
        rows: Array.from({ length: size }, (_, i) => [i - change.reach, number(was[from + i]), number(now[from + i])]),
      });
    }
    const at = standing(change.places);
    tables.push({
      title: words.table_places,
      name: "places",
      columns: words.table_places_columns,
      rows: at.map((word, place) => [place, this.side.labels[word], word]),
    });
    return tables;
  }

  snippet() {
    const { view, change } = this;
    const site = view.site();
    const what = {
      ...view.header.about,
      ...this.head,
      site: site.id === "cross" ? "cross_attn" : "attn",
      stack: site.stack,
      again: change?.again ?? "",
    };
    return fill(words.snippet_order, what);
  }

  // Another head, over the ends of the grid
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    const site = this.view.site();
    const { layer, head } = this.head;
    const [layers, heads] = [site.records.length, site.heads];
    this.choose((layer + right + layers) % layers, (head + down + heads) % heads);
    return true;
  }
}

/** @param {string} text @param {number[]} otherwise */
function parse(text, otherwise) {
  const found = text.split(".").flatMap((part) => {
    const [from, to = from] = part.split("-").map(Number);
    return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
  });
  return found.length === otherwise.length ? found : otherwise;
}
