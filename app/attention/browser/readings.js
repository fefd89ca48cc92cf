// The numbers of the picture on the screen, read from its lens: rows, rankings, columns, averages, and what is said of one cell.

import { fill, worded } from "../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { findingOf } from "./findings.js";
import { HIDDEN, keyOf, Lens } from "./lens.js";
import { pointed } from "../../kit/browser/language.js";

/** @typedef {import("./types.js").Ranking} Ranking */
const KEPT_ROWS = 256; // rankings of rows that are kept
const KEPT_LENSES = 24; // pictures whose numbers are kept

export class Readings {
  /** @type {Map<string, Ranking>} */
  ranks = new Map();
  /** @type {Map<string, Lens>} */
  lenses = new Map();

  /** @param {import("./types.js").View} view */
  constructor(view) {
    this.view = view;
  }

  forget() {
    this.ranks.clear();
    this.lenses.clear();
  }

  // The numbers of the picture: what they are of, and what was done to them. Places are tokens throughout; the lens says
  // which of its rows and columns a token is in.
  lens() {
    const { picture, site, place, remote, options } = this.view;
    // Of several heads the lines are drawn each in its colour; what is said, and every other picture, is their mean.
    const isSeveral = options.members.length > 0 && options.kind === "head" && options.show !== "beside";
    const of = {
      picture,
      site,
      place,
      options: isSeveral ? { ...options, kind: /** @type {const} */ ("mean") } : options,
      remote,
    };
    const key = keyOf(of);
    let lens = this.lenses.get(key);
    if (!lens) {
      if (this.lenses.size >= KEPT_LENSES) this.lenses.delete(String(this.lenses.keys().next().value));
      this.lenses.set(key, (lens = new Lens(of)));
    }
    return lens;
  }

  // {weights, masked, bits, left} of one query token, by the keys of the lens; null while it is being fetched
  /** @param {number} query */
  row(query) {
    const lens = this.lens();
    return lens.row(lens.queryOf(query));
  }

  // The keys a query may look at, most weight first, and each one's rank; cached for the head on the screen.
  /** @param {number} query */
  ranking(query) {
    const id = `${this.lens().key},${this.lens().queryOf(query)}`;
    const known = this.ranks.get(id);
    if (known) return known;
    const row = this.row(query);
    if (!row) return null;
    /** @type {number[]} */
    const order = [];
    for (let k = 0; k < row.weights.length; k++) if (!row.masked?.[k]) order.push(k);
    order.sort((a, b) => row.weights[b] - row.weights[a] || a - b);
    /** @type {Map<number, number>} */
    const rank = new Map();
    order.forEach((k, i) => {
      const above = order[i - 1];
      const isEqual = above !== undefined && row.weights[above] === row.weights[k];
      rank.set(k, isEqual ? /** @type {number} */ (rank.get(above)) : i + 1);
    });
    if (this.ranks.size > KEPT_ROWS) this.ranks.clear();
    const ranking = { ...row, order, rank };
    this.ranks.set(id, ranking);
    return ranking;
  }

  // Who looks at a key of the lens; null while that is fetched. Of a large run it is a lot of work, which no one gets for
  // having moved the pointer across a token.
  /** @param {number} key */
  column(key) {
    return this.isWorthAColumn(key) ? this.lens().column(key) : null;
  }

  /** @param {number} key */
  isWorthAColumn(key) {
    const { picture, chosen } = this.view;
    return picture.whole || (chosen.pin !== null && this.lens().keyOf(chosen.pin) === key);
  }

  // What each key of the lens gets on average over queries; null for a large run
  averages() {
    return this.lens().averages();
  }

  // What the facts and the table tell: keys by weight for the query, or on average where none is chosen.
  // ranking is null while it is fetched, and where there is no query.
  /** @returns {import("./types.js").Summary} */
  summary() {
    const { query } = this.view.chosen;
    const ranking = query === null ? null : this.ranking(query);
    if (ranking) return { ranking, order: ranking.order, weight: (k) => ranking.weights[k] };
    const mean = query === null ? this.averages() : null;
    const order = mean ? [...mean.keys()].sort((a, b) => mean[b] - mean[a] || a - b) : [];
    return { ranking: null, order, weight: (k) => mean?.[k] ?? 0 };
  }

  // Row, column under the pointer, and key to name, of what the pointer is on or what is locked; each may be null
  at() {
    const { query, hover } = this.view.chosen;
    const lens = this.lens();
    const column = hover?.key == null ? null : lens.keyOf(hover.key);
    const known = column === null ? findingOf(this.view) : null; // a finding may be about another key than the strongest
    const key = column ?? known?.key ?? (query === null ? null : (this.ranking(query)?.order[0] ?? null));
    return { query: query === null ? null : lens.queryOf(query), column, key };
  }

  // Why a cell is masked
  /** @param {number} code */
  reason(code) {
    return worded(words.reasons, this.view.picture.reasons[code]);
  }

  // A cell's contents in words
  /** @param {Ranking | null} ranking @param {number} column */
  valueLine(ranking, column) {
    const lens = this.lens();
    if (!ranking) return lens.refused ?? words.loading;
    const code = ranking.masked?.[column];
    if (code === HIDDEN) return words.tip_hidden;
    if (code) return fill(words.tip_masked, { reason: this.reason(code) });
    const value = ranking.weights[column];
    const parts = {
      value: pointed(value.toFixed(4)),
      share: pointed(`${(value * 100).toFixed(2)} %`),
      rank: ranking.rank.get(column),
      n: ranking.order.length,
    };
    return fill(lens.unit === "norm" ? words.tip_norm : lens.kind === "max" ? words.tip_max : words.tip_value, parts);
  }
}
