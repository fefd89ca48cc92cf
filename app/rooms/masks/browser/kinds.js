// Three kinds of attention: a head of each that this model has, under its own mask.

import { add, clamp, el, fill, percent, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { drawMap, NAMED } from "./maps.js";
import { weigh } from "./rules.js";
import { elsewhere, lines, named, stepped } from "./sheet.js";
import { table } from "../../../kit/browser/table.js";

const AROUND = 486; // units of what stands above and below the maps
const OFFER = 36; // and of the link to a model that has all three
const IDS = /** @type {const} */ (["encoder", "decoder", "cross"]);

export class Kinds {
  /** @type {Record<string, any>} */
  shown = {};
  drawn = "";

  static opens() {
    return {};
  }

  /** @param {import("./masks.js").Masks} view @param {HTMLElement} stage */
  constructor(view, stage) {
    this.view = view;
    this.stage = stage;
  }

  /** @param {string} id */
  place(id) {
    const site = /** @type {import("./sheet.js").Scores} */ (this.view.sites.get(id));
    const [layer, head] = this.view.values[id].split(".").map(Number);
    return { layer: clamp(layer || 0, 0, site.layers - 1), head: clamp(head || 0, 0, site.heads - 1) };
  }

  draw() {
    const { view } = this;
    const ids = IDS.filter((id) => view.sites.has(id));
    let ready = true;
    for (const id of ids) {
      const site = /** @type {import("./sheet.js").Scores} */ (view.sites.get(id));
      const { layer, head } = this.place(id);
      const scores = view.scores(site, layer, head);
      if (!scores) ready = false;
      else {
        const mask = site.mask(layer, head) ?? new Uint8Array(site.cells);
        this.shown[id] = { site, layer, head, scores, mask, ...weigh(scores, mask, site.n_key) };
      }
    }
    if (!ready) return view.say([[words.loading, ""]]);
    const state = [view.layout, view.values.query, ...ids.map((id) => view.values[id])].join(" ");
    if (state !== this.drawn) this.build(ids);
    this.drawn = state;
    const cross = this.shown.cross;
    if (!cross || ids.length < 3) return view.say(pieces(words.kinds_one, { title: view.header.title }));
    const queries = view.labels(cross.site.query);
    const row = this.row("cross");
    const best = this.best("cross", row);
    view.say(
      pieces(words.kinds_fact, {
        q: named(queries, row, "q"),
        p: [percent(cross.weights[row * cross.site.n_key + best], 1), "b"],
        k: named(view.labels(cross.site.key), best, "k"),
      }),
    );
  }

  /** The locked row of a kind. @param {string} id */
  row(id) {
    const { site } = this.shown[id];
    const wanted = this.view.values.row;
    const opening = this.view.header.sites.find(
      (one) => one.id === (this.view.sites.has("cross") ? "cross" : id),
    )?.opening;
    const row = wanted !== "" ? Number(wanted) : (opening?.[2] ?? 0);
    return clamp(row, 0, site.n_query - 1);
  }

  /** @param {string} id @param {number} row */
  best(id, row) {
    const { site, weights } = this.shown[id];
    let best = 0;
    for (let k = 0; k < site.n_key; k++) if (weights[row * site.n_key + k] > weights[row * site.n_key + best]) best = k;
    return best;
  }

  /** @param {readonly string[]} ids */
  build(ids) {
    const { view, stage } = this;
    const three = el("div", "three");
    for (const id of ids) {
      const { site, layer, head, mask, weights } = this.shown[id];
      const [queries, keys] = [view.labels(site.query), view.labels(site.key)];
      const part = three.appendChild(el("section"));
      part.dataset.kind = id;
      const line = part.appendChild(el("div", "line"));
      const heading = line.appendChild(el("h3"));
      heading.append(el("b", "", worded(words.kinds_title, id)), ` ${fill(words.kinds_of, { layer, head })}`);
      line.append(
        view.steps(
          (by) => view.choose({ [id]: stepped(site, { layer, head }, by).join(".") }),
          `${worded(words.kinds_title, id)}: `,
        ),
      );
      const width = view.narrow ? view.width : Math.min(400, (view.width - 48) / Math.max(2, ids.length));
      const cell = clamp(
        Math.min(
          (width - NAMED - 28) / site.n_key,
          view.narrow ? 34 : view.below(AROUND + (ids.length < 3 ? OFFER : 0), 200) / site.n_query,
        ),
        3,
        34,
      );
      const alt = fill(words.map_alt, {
        what: worded(words.kinds_title, id),
        n_query: site.n_query,
        n_key: site.n_key,
        query: queries[this.row(id)],
      });
      const row = this.row(id);
      const picture = drawMap(view, add(part, "div", "map"), {
        alt,
        queries,
        keys,
        w: Math.floor(cell * view.type),
        row,
        weight: (q, k) => weights[q * site.n_key + k],
        masked: (q, k) => mask[q * site.n_key + k] > 0,
      });
      const node = /** @type {HTMLElement} */ (picture.node);
      node.addEventListener("click", (e) => {
        const at = picture.at(e);
        if (at) view.choose({ row: String(at[0]) });
      });
      node.addEventListener("pointermove", (e) => {
        const at = picture.at(e);
        if (!at) return view.hint("");
        const names = { q: queries[at[0]], k: keys[at[1]] };
        const reason = mask[at[0] * site.n_key + at[1]];
        view.hint(
          reason
            ? fill(words.cell_not, { ...names, reason: words.reasons[reason] })
            : `${fill(words.cell_may, names)} ${percent(weights[at[0] * site.n_key + at[1]], 1)}`,
          e,
        );
      });
      node.addEventListener("pointerleave", () => view.hint(""));
      const best = this.best(id, row);
      part.append(el("p", "", worded(words.kinds_how, id)));
      const from = part.appendChild(el("p", "mute"));
      from.textContent = fill(words.kinds_from, {
        Q: "Q",
        query: worded(words.kinds_side, site.query),
        K: "K",
        key: worded(words.kinds_side, site.key),
      });
      const free = mask.filter((/** @type {number} */ reason) => !reason).length;
      const triangle = free === (site.n_query * (site.n_query + 1)) / 2 && free < site.cells;
      part.append(
        el(
          "p",
          "mute cells",
          fill(words.kinds_free, {
            n: free,
            all: site.cells,
            formula: triangle ? fill(words.kinds_formula, { n: site.n_query, m: site.n_query + 1 }) : "",
          }),
        ),
      );
      part.append(
        el(
          "p",
          "mute",
          fill(words.kinds_weight, { q: queries[row], p: percent(weights[row * site.n_key + best], 1), k: keys[best] }),
        ),
      );
      Object.assign(part.dataset, {
        free: String(free),
        cells: String(site.cells),
        weight: weights[row * site.n_key + best].toFixed(6),
      });
    }
    stage.replaceChildren(three);
    if (ids.length < 3) stage.append(elsewhere(words.open_translator, "kinds", "Translator", words.german));
  }

  // The kind that keys are of: the one between two texts, or the only one
  get first() {
    return "cross" in this.shown ? "cross" : Object.keys(this.shown)[0];
  }

  // The same row of all three, and another head of the first
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    const { first, shown, view } = this;
    if (!first) return false;
    const { site } = shown[first];
    if (right) view.chooseHead(...stepped(site, shown[first], right));
    else view.choose({ row: String(clamp(this.row(first) + down, 0, site.n_query - 1)) });
    return true;
  }

  get headGrid() {
    return this.shown[this.first]?.site ?? null;
  }

  /** @param {number} layer @param {number} head */
  head(layer, head) {
    return { [this.first]: `${layer}.${head}` };
  }

  cells() {
    return Object.entries(this.shown).flatMap(([id, { site, mask, scores, weights }]) => {
      const [queries, keys] = [this.view.labels(site.query), this.view.labels(site.key)];
      const named = queries.map((query) => `${worded(words.kinds_title, id)}: ${query}`);
      return lines({ queries: named, keys, mask, scores, weights });
    });
  }

  /** @param {HTMLElement} box */
  table(box) {
    box.setAttribute("aria-label", words.lab.kinds);
    box.replaceChildren(table(words.lab.kinds, words.columns, this.cells()));
  }

  foot() {
    const { source, target } = this.view.header.labels;
    const rest = target ? [fill(words.kinds_size, { source: source.length, target: target.length })] : [];
    const shown = Object.values(this.shown);
    const isOne = (/** @type {number} */ sum) => Math.abs(sum - 1) < 1e-6;
    const ok = [];
    if (shown.length && shown.every(({ sums }) => sums.every(isOne))) ok.push(words.ok_rows);
    if (
      shown.length &&
      shown.every(({ mask, weights }) =>
        mask.every((/** @type {number} */ reason, /** @type {number} */ at) => !reason || weights[at] === 0),
      )
    )
      ok.push(words.ok_cells);
    return { ok, rest, legend: ["future"] };
  }

  /** @returns {import("./types.js").Files} */
  files() {
    return { ...this.view.header.about, tables: [[words.csv_cells, "kinds", words.columns, this.cells()]] };
  }
}
