// Three kinds of attention: a head of each that this model has, under its own mask.

import { add, clamp, el, fill, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { pieces } from "./facts.js";
import { drawMap, NAMED } from "./maps.js";
import { share } from "./numbers.js";
import { weigh } from "./rules.js";
import { lines, named, Scores, stepped } from "./sheet.js";
import { way } from "../../../kit/browser/share.js";
import { table } from "../../../kit/browser/table.js";

const AROUND = 486; // units of what stands above and below the maps
const SPARED = 42; // less where each is on a model of its own
const OFFER = 30; // of the line that says whose they are, which a projected page leaves out
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

  /** Whether this model has all kinds; of one that has one, the others are shown on models that have them. */
  get isAll() {
    return this.view.sites.size > 1;
  }

  /** @param {string} id */
  place(id) {
    const site = /** @type {import("./sheet.js").Scores} */ (this.view.sites.get(id));
    const [layer, head] = this.view.values[id].split(".").map(Number);
    return { layer: clamp(layer || 0, 0, site.layers - 1), head: clamp(head || 0, 0, site.heads - 1) };
  }

  /** A kind of this model; null while it is on its way. @param {string} id */
  own(id) {
    const { view } = this;
    const site = /** @type {import("./sheet.js").Scores} */ (view.sites.get(id));
    const place = this.place(id);
    const scores = view.scores(site, place.layer, place.head);
    const opening = view.header.sites.find((one) => one.id === (view.sites.has("cross") ? "cross" : id))?.opening;
    const labels = { source: view.labels("source"), target: view.labels("target") };
    return scores && this.weighed(site, scores, { ...place, labels, title: "", opening: opening?.[2] ?? 0 });
  }

  /** A kind on a model that has it; null while it is on its way. @param {string} id */
  onOther(id) {
    const { view } = this;
    const [layer, head] = view.values[id].split(".");
    const found = view.answer("kind", {
      kind: id,
      sentence_of: view.values.sentence_of,
      ...(head === undefined ? {} : { layer, head }),
    });
    if (!found?.header) return found?.refused ? { refused: found.refused } : null;
    const { labels, title, place } = found.header;
    const site = new Scores(found.header.site, found.body);
    const scores = /** @type {Float32Array} */ (site.scores(place[0], place[1]));
    const more = { layer: place[0], head: place[1], opening: place[2], title };
    return this.weighed(site, scores, {
      ...more,
      labels: { source: labels.source, target: labels.target ?? labels.source },
    });
  }

  /**
   * @param {import("./sheet.js").Scores} site @param {Float32Array} scores
   * @param {{layer: number, head: number, labels: {source: string[], target: string[]}, title: string, opening: number}} about
   */
  weighed(site, scores, about) {
    const mask = site.mask(about.layer, about.head) ?? new Uint8Array(site.cells);
    const [queries, keys] = [about.labels[site.query], about.labels[site.key]];
    return { site, scores, mask, queries, keys, ...about, ...weigh(scores, mask, site.n_key) };
  }

  draw() {
    const { view } = this;
    const ids = this.isAll ? IDS.filter((id) => view.sites.has(id)) : IDS;
    /** @type {Record<string, any>} */
    const shown = {};
    for (const id of ids) shown[id] = this.isAll ? this.own(id) : this.onOther(id);
    const refused = Object.values(shown).find((one) => one?.refused)?.refused;
    if (refused) {
      view.say([[refused, ""]]);
      this.shown = {};
      this.drawn = "";
      return this.stage.replaceChildren(this.note());
    }
    if (Object.values(shown).some((one) => !one)) {
      if (!this.drawn) view.say([[view.remote.failed ? words.unreachable : words.loading, ""]]);
      return;
    }
    this.shown = shown;
    const state = [view.layout, view.values.row, view.values.sentence_of, ...ids.map((id) => view.values[id])].join(
      " ",
    );
    if (state !== this.drawn) this.build(ids);
    this.drawn = state;
    if (!this.isAll) {
      const parts = Object.entries(words.kinds_three_parts).map(([name, said]) => [name, [said, "b"]]);
      return view.say(pieces(words.kinds_three, Object.fromEntries(parts)));
    }
    const { cross } = this.shown;
    const row = this.row("cross");
    const best = this.best("cross", row);
    view.say(
      pieces(words.kinds_fact, {
        q: named(cross.queries, row, "q"),
        p: [share(cross.weights[row * cross.site.n_key + best]), "b"],
        k: named(cross.keys, best, "k"),
      }),
    );
  }

  /** The locked row of a kind: of other models, the one of the same word. @param {string} id */
  row(id) {
    const { site, opening, queries } = this.shown[id];
    const wanted = this.view.values.row;
    if (wanted === "") return clamp(opening, 0, site.n_query - 1);
    const at = this.isAll ? -1 : queries.indexOf(this.shown[this.first].queries[Number(wanted)]);
    return clamp(at < 0 ? Number(wanted) : at, 0, site.n_query - 1);
  }

  /** The sentence that is shown, the other one, and the way back. */
  note() {
    const { view } = this;
    const { sentence_of } = view.values;
    const line = el("p", "small kindnote", `${worded(words.kinds_note, sentence_of)} `);
    const other = sentence_of === "yours" ? "example" : "yours";
    view.button(line, worded(words.kinds_use, other), () => view.choose({ sentence_of: other, row: "" }));
    view.button(line, fill(words.back_to, { title: view.header.title }), () => view.choose({ lab: "paint" }));
    return line;
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
      const { site, layer, head, mask, weights, queries, keys, title } = this.shown[id];
      const part = three.appendChild(el("section"));
      part.dataset.kind = id;
      const line = part.appendChild(el("div", "line"));
      const heading = line.appendChild(el("h3"));
      const name = title ? fill(worded(words.kinds_named, id), { title }) : worded(words.kinds_title, id);
      heading.append(el("b", "", name));
      if (this.isAll || !view.isProjected) heading.append(` ${fill(words.kinds_of, { layer, head })}`);
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
          view.narrow
            ? 34
            : view.below(AROUND - (this.isAll ? 0 : view.isProjected ? SPARED + OFFER : SPARED), 140) / site.n_query,
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
        if (!at) return;
        const of = this.isAll ? at[0] : this.shown[this.first].queries.indexOf(queries[at[0]]);
        if (of >= 0) view.choose({ row: String(of) });
      });
      node.addEventListener("pointermove", (e) => {
        const at = picture.at(e);
        if (!at) return view.hint("");
        const names = { q: queries[at[0]], k: keys[at[1]] };
        const reason = mask[at[0] * site.n_key + at[1]];
        view.hint(
          reason
            ? fill(words.cell_not, { ...names, reason: words.reasons[reason] })
            : `${fill(words.cell_may, names)} ${share(weights[at[0] * site.n_key + at[1]])}`,
          e,
        );
      });
      node.addEventListener("pointerleave", () => view.hint(""));
      const best = this.best(id, row);
      part.appendChild(el("p", "", worded(words.kinds_how, id))).hidden = !this.isAll;
      const from = part.appendChild(el("p", "mute"));
      from.hidden = !this.isAll;
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
          fill(words.kinds_weight, { q: queries[row], p: share(weights[row * site.n_key + best]), k: keys[best] }),
        ),
      );
      Object.assign(part.dataset, {
        free: String(free),
        cells: String(site.cells),
        weight: weights[row * site.n_key + best].toFixed(6),
      });
    }
    stage.replaceChildren(three);
    if (!this.isAll) {
      const note = this.note();
      note.append(
        way(words.open_translator, { view: "masks", lab: "kinds", model: "Translator", text: words.german }, "quiet"),
      );
      stage.prepend(note);
    }
  }

  // The kind that keys are of: the one between two texts, or that of the model that only writes
  get first() {
    return this.isAll ? "cross" : "decoder";
  }

  // The same row of all three, and another head of the first
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    const { first, shown, view } = this;
    if (!shown[first]) return false;
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
    return Object.entries(this.shown).flatMap(([id, { mask, scores, weights, queries, keys }]) => {
      const named = queries.map((/** @type {string} */ query) => `${worded(words.kinds_title, id)}: ${query}`);
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
