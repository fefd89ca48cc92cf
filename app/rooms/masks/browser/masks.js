// Masks: five labs on one run. This file has what they share: choices, the run with another mask, keys, sentence, files and link.

import { HeadChooser } from "../../../kit/browser/chooser.js";
import { csv } from "../../../kit/browser/csv.js";
import { add, button, choice, clamp, el, fill, saidIn, selectBox, setText, worded } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { headMeasures } from "../../../kit/browser/head_measures.js";
import { unpack } from "../../../kit/browser/messages.js";
import { ModelStrip, siteOf, stackOf } from "../../../kit/browser/model_strip.js";
import { whole } from "../../../kit/browser/selection.js";
import { SinkLine } from "../../../kit/browser/sink.js";
import { Stage } from "../../../kit/browser/stage.js";
import { PALETTES, STEP, STYLE, WHOLE, WORDS as words } from "./constants.js";
import { drawCode } from "./incode.js";
import { Kinds } from "./kinds.js";
import { Leak } from "./leak.js";
import { Long } from "./long.js";
import { swatch } from "./maps.js";
import { Padding } from "./padding.js";
import { Paint } from "./paint.js";
import { nodes } from "./pairs.js";
import { Scale } from "./scale.js";
import { forbidsLook, isHardestComing, standing, stopsOf } from "./stops.js";
import { isCausal } from "./rules.js";
import { rowOf, Scores, stepped } from "./sheet.js";
import { Tip } from "../../../kit/browser/tip.js";

const LABS = { paint: Paint, padding: Padding, leak: Leak, kinds: Kinds, scale: Scale };
// A lesson may cover: "row" a mask, "number" what the chosen row becomes, "padding" a mask of padding, "vectors" what padding
// does. The maps themselves leave out a mask, or a row of theirs.
const SAID = ".says-first, .later > .reason, .tablebox, .foot > .ok, .unseen";
const COVERS = {
  row: `${SAID}, .map.after, .choose, .codebox`,
  number: SAID,
  padding: `${SAID}, .says > .values, .masked, .guesses, .stage table`,
  vectors: `${SAID}, .guesses, .stage table`,
};
const NARROW = 720; // pixels: maps stand below each other
const STACKED = 940; // pixels: what is said beside the maps stands below them, as beside a lesson
const LEAP = 8; // rows by which the part of a long text that is shown moves: in between, a row moves and its map stays
const SPANS = { phone: 16, projected: 20, low: 24 }; // words of a long text in one map, at most 32, so that they can be read
const LOW = 800; // units: a window as tall as a laptop's
const PROJECTED = 0.7; // of the projected page's type: what stands below the sentence, as masks.css has it
const WHOLE_LAB = new Set(["padding", "leak", "kind", "scale"]); // while one of these answers is loading, the whole lab shows the previous question
const UNMASKED = { stop: "0", first: "off", mask: "model", when: "before", fill: "inf", forbid: "", allow: "" };

/** @extends {Stage<import("./types.js").Header, any>} */
export class Masks extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = COVERS;

  /** @type {Map<string, Scores>} */
  sites = new Map();
  /** @type {import("./types.js").Lab} */
  lab;
  type = 1; // how large the page's type is, in units of 16 pixels: drawings grow with it
  pixels = 0; // how wide the room is
  width = 0; // and in the units of its drawings
  tall = 0; // how tall the window is, in those
  layout = "";
  bar = "";
  isWaiting = false; // for an answer of WHOLE_LAB
  said = ""; // the sentence

  /** @type {import("./types.js").Look | null} The look that the walk forbids: of this text, and of the head that a person chose */
  look = null;
  #picked = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.tip = new Tip(root);
    this.model = new ModelStrip(this, (layer, stack) => this.chooseLayer(Number(layer), stack), {
      isLow: true,
      tip: this.tip,
    });
    root.append(this.model.box);
    this.tabs = add(root, "div", "tabs");
    const says = (this.says = add(root, "div", "says-first former"));
    this.fact = add(says, "h2", "fact");
    this.reason = add(says, "p", "reason");
    this.fact.setAttribute("aria-live", "polite");
    this.sink = new SinkLine(this);
    this.turns = el("p", "turns note");
    says.append(this.sink.line);
    root.append(this.turns);
    this.labPlace = add(root, "div", "stage former");
    this.tableBox = add(root, "div", "tablebox");
    this.tableBox.tabIndex = 0;
    this.tableBox.setAttribute("role", "region");
    this.legend = el("span", "legend");
    this.acts.before(this.legend);
    this.chooser = new HeadChooser(this, () => this.heads);
    this.codeBox = add(root, "div", "codebox");
    this.codeBox.setAttribute("role", "region");
    this.codeButton = this.button(
      this.acts,
      words.code,
      () => this.choose({ code: this.values.code === "off" ? "attn_mask" : "off" }),
      words.code_help,
    );
    this.tableButton = this.button(this.acts, words.table, () =>
      this.choose({ table: this.values.table === "on" ? "off" : "on" }),
    );
  }

  // The look that is forbidden is one of the row on the screen, until the visitor paints.
  get remade() {
    return this.values.stop === "3" ? ["site"] : ["site", "layer", "head", "query"];
  }

  /** @param {{isNew: boolean}} news */
  received({ isNew }) {
    const { header: told } = this;
    if (isNew || !this.#picked || this.values.stop !== "3") this.look = told.look;
    if (!isNew) return;
    this.#picked = false;
    this.look = told.look;
    const [header, body] = this.message;
    this.sites = new Map(
      header.sites.map((/** @type {import("./types.js").SiteHeader} */ site) => [site.id, new Scores(site, body)]),
    );
  }

  // Also what is empty: cells open otherwise
  link() {
    return { ...this.header.link, ...this.values };
  }

  /** The look that is forbidden where the walk stands. */
  get demonstrated() {
    const { query, key, stop } = this.values;
    if (!forbidsLook({ stop }) || this.labName !== "paint" || !key) return null;
    return Number(query) < this.site.n_query && Number(key) < this.site.n_key ? { query, key } : null;
  }

  /** @param {string} id of a kind of attention */
  isCausal(id) {
    if (id === "cross") return false;
    const site = this.sites.get(id);
    if (this.header.isByRow) return Boolean(site?.causal);
    const [layer] = site?.sent.keys() ?? [];
    return Boolean(site && layer !== undefined && isCausal(site.mask(layer, 0), site.n_key));
  }

  /** The choices that open a lab; null where the model lacks it. @param {string} name @returns {Record<string, string> | null} */
  opens(name) {
    if (this.isTooLong(name)) return null;
    return LABS[/** @type {keyof typeof LABS} */ (name)].opens(this) ?? null;
  }

  /** Whether a lab draws whole maps, for which the text is too long; Leakage may be on a text of another model. @param {string} name */
  isTooLong(name) {
    return this.header.isByRow && name !== "paint" && (name !== "leak" || Leak.opens(this) !== null);
  }

  /** The logits that a head adds to the likeliest next word; null while it is on its way. @param {string} site @param {number} query @param {{layer: number, head: number}} head @returns {number | null} */
  added(site, query, { layer, head }) {
    const found = this.ask("additions", { site, query, candidate: 0 }, (bytes) => ({
      values: new Float32Array(unpack(bytes)[1]),
    }));
    return found?.values?.[layer * this.site.heads + head] ?? null;
  }

  get family() {
    return getComputedStyle(this.root).fontFamily;
  }

  /** The kind of attention that is painted. */
  get site() {
    return /** @type {Scores} */ (this.sites.get(this.values.site) ?? this.sites.values().next().value);
  }

  get place() {
    const { layers, heads, n_query } = this.site;
    return {
      layer: clamp(whole(this.values.layer), 0, layers - 1),
      head: clamp(whole(this.values.head), 0, heads - 1),
      query: clamp(whole(this.values.query), 0, n_query - 1),
    };
  }

  /** @param {"source" | "target"} side @returns {string[]} */
  labels(side) {
    return this.header.labels[side] ?? this.header.labels.source;
  }

  get narrow() {
    return this.width < NARROW;
  }

  // What stands beside three maps takes of their width; none where it stands below them
  get beside() {
    return this.width < STACKED ? 0 : this.isProjected ? 240 : 330;
  }

  // What holds both; it says itself how they stand, since a lesson may cover it before the room is drawn
  get board() {
    return this.beside ? "board" : "board stacked";
  }

  // Read once a drawing, before anything of it is written: in the middle of it the page would be laid out for the answer.
  measure() {
    this.type = this.isProjected ? this.typeUnit * PROJECTED : this.typeUnit;
    this.pixels = this.root.clientWidth;
    this.tall = innerHeight / this.type;
    this.width = this.pixels / this.type;
  }

  // Units that are left for a picture in a window of this height, where so many go to what stands above and below it
  /** @param {number} around @param {number} [least] */
  below(around, least = 150) {
    return Math.max(least, this.tall - around);
  }

  // An answer of the room's routes, or null while it is on its way
  /** @param {string} path @param {import("../../../kit/browser/types.js").Params} params @returns {any} */
  answer(path, params) {
    const found = this.ask(`masks/${path}`, params, (bytes) => {
      const [header, body] = unpack(bytes);
      return { header, body };
    });
    if (WHOLE_LAB.has(path) && !found) this.isWaiting = true;
    return found;
  }

  // The scores of a head under the model's own mask; null while its layer is on its way
  /** @param {Scores} site @param {number} layer @param {number} head */
  scores(site, layer, head) {
    if (!site.has(layer)) {
      const found = this.answer("scores", { site: site.id, layer });
      if (found?.refused) this.announce(found.refused);
      if (!found?.header) return null;
      site.take(found.header.site, found.body);
    }
    return site.scores(layer, head);
  }

  /** How many of so many words a map shows: of a longer text as many as can be named. @param {number} n */
  span(n) {
    if (n <= WHOLE) return n;
    if (this.narrow) return SPANS.phone;
    if (this.isProjected) return SPANS.projected;
    return this.tall < LOW ? SPANS.low : WHOLE;
  }

  /** The first row of the part of a text around a query that is drawn. @param {number} n rows of the text @param {number} query */
  firstRow(n, query) {
    const span = this.span(n);
    if (!this.header.isByRow) return Math.max(0, Math.min(n - span, query - Math.floor(span * 0.75)));
    return Math.max(0, Math.min(n - span, LEAP * Math.floor((query - span / 2) / LEAP)));
  }

  /**
   * The rows of a head that are at hand around a query; null while they are on their way. Of a long text some, of a shorter one all.
   * @param {Scores} site @param {{layer: number, head: number, query: number}} place @param {string} [run] another run than the one above
   * @returns {import("./types.js").Rows | null}
   */
  rowsOf(site, { layer, head, query }, run = "") {
    if (!this.header.isByRow) {
      const scores = this.scores(site, layer, head);
      return scores && { first: 0, count: site.n_query, scores, mask: site.mask(layer, head) };
    }
    const first = STEP * Math.floor(this.firstRow(site.n_query, query) / STEP);
    const found = this.#block(site, layer, head, first, run);
    // Those after and before them come unasked, so that the next row is there when one moves to it
    if (found) for (const by of [STEP, -STEP]) this.#block(site, layer, head, first + by, run);
    return found;
  }

  /** @param {Scores} site @param {number} layer @param {number} head @param {number} first @param {string} run */
  #block(site, layer, head, first, run) {
    if (first < 0 || first >= site.n_query) return null;
    const found = this.ask(
      "masks/rows",
      { ...(run ? { run } : {}), site: site.id, layer, head, from: first },
      (bytes) => {
        const [header, body] = unpack(bytes);
        const n = header.rows * site.n_key;
        return {
          first: header.from,
          count: header.rows,
          scores: new Float32Array(body, header.scores, n),
          mask: new Uint8Array(body, header.mask, n),
        };
      },
    );
    if (found?.refused) this.announce(found.refused);
    return found?.scores ? found : null;
  }

  /** @returns {keyof typeof LABS} */
  get labName() {
    return /** @type {keyof typeof LABS} */ (this.values.lab in LABS ? this.values.lab : "paint");
  }

  draw() {
    this.measure();
    const name = this.labName;
    const layout = [
      this.header.key,
      name,
      this.scheme,
      Math.round(this.pixels),
      this.type,
      this.isProjected,
      this.values.site,
    ].join(" ");
    if (layout !== this.layout) {
      this.layout = layout;
      this.root.style.setProperty("--bar", this.palette.ramp[3]);
      this.root.style.setProperty("--more", this.palette.ramp[3]);
      this.root.style.setProperty("--less", this.palette.ahead[3]);
      if (name !== "paint") this.tabs.after(this.says);
      this.fact.after(this.reason);
      if (this.chooser) this.chooser.isShort = this.narrow && name === "paint";
      if (this.lab instanceof Paint && name !== "paint") this.reason.textContent = "";
      this.labPlace.replaceChildren();
      this.labPlace.dataset.lab = name;
      this.lab = new (this.isTooLong(name) ? Long : LABS[name])(this, this.labPlace);
      this.bar = "";
    }
    this.drawModel(name);
    this.sink.line.hidden = true;
    const turns = this.header.turns ?? [];
    this.turns.hidden = name !== "paint" || !turns.length;
    setText(this.turns, fill(words.turns, { all: turns.map(([i, role]) => fill(words.turn, { i, role })).join(", ") }));
    this.isWaiting = false;
    this.lab.draw();
    this.drawBar(name);
    this.chooser?.draw();
    this.drawFoot();
  }

  status() {
    const waiting = this.isWaiting ? "1" : null;
    return { lab: this.labName, run: this.header.key, waiting, ...this.place, ...this.lab.status?.() };
  }

  /** @param {string} name */
  drawBar(name) {
    const { layer, head } = this.place;
    const state = [name, layer, head, this.values.show, this.isChanged, this.values.site, this.layout].join(" ");
    if (state === this.bar) return;
    this.bar = state;
    const labs = choice(words.labs, Object.entries(words.lab), name, (id) =>
      this.choose({ lab: id, stop: "0", ...(this.opens(id) ?? {}) }),
    );
    labs.classList.add("main");
    this.tabs.replaceChildren(labs);
    if (this.narrow) labs.replaceWith(this.labBox(name));
    if (name !== "paint" && (name !== "scale" || this.isProjected)) return; // projected, the buttons stand there
    if (this.isTooLong(name)) return;
    const right = add(this.tabs, "span", "right");
    if (this.sites.size > 1) {
      const sites = [...this.sites.keys()].map((id) => /** @type {[string, string]} */ ([id, worded(words.sites, id)]));
      right.append(
        choice(words.site, sites, this.site.id, (id) => {
          const opening = this.sites.get(id) && this.header.sites.find((site) => site.id === id)?.opening;
          this.choose({
            ...UNMASKED,
            site: id,
            ...(opening ? { layer: String(opening[0]), head: String(opening[1]), query: String(opening[2]) } : {}),
          });
        }),
      );
    }
    const { element: heads } = /** @type {HeadChooser} */ (this.chooser);
    const rest = this.lab instanceof Paint && this.narrow ? this.lab.rest : right; // on a phone, below the map
    if (rest !== right) rest.replaceChildren();
    if (name === "paint")
      rest.append(choice(words.show, Object.entries(words.shows), this.values.show, (id) => this.choose({ show: id })));
    if (this.header.isByRow) rest.append(this.jump());
    right.append(heads);
    rest.append(this.steps((by) => this.step(by)));
    if (name === "scale") return;
    if (this.lab instanceof Paint && this.narrow) right.append(this.lab.scope);
    const reset = this.button(rest, words.reset, () => this.choose({ ...UNMASKED, whose: "yours" }), words.reset_help);
    reset.disabled = !this.isChanged;
  }

  // A field that leads to a row of a long text, by its number or by its word
  jump() {
    const form = el("form", "jump");
    const field = add(form, "input");
    Object.assign(field, { type: "text", autocomplete: "off", spellcheck: false, maxLength: 40 });
    field.placeholder = field.ariaLabel = words.jump;
    field.title = words.jump_help;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const to = rowOf(this.labels(this.site.query), field.value, this.place.query);
      if (to === null) this.announce(fill(words.jump_none, { text: field.value.trim() }));
      else this.chooseRow(to);
      field.classList.toggle("wrong", to === null);
    });
    return form;
  }

  // The labs as a list, where a row of them is too wide
  /** @param {string} name */
  labBox(name) {
    return selectBox(words.labs, Object.entries(words.lab), name, (id) =>
      this.choose({ lab: id, stop: "0", ...(this.opens(id) ?? {}) }),
    );
  }

  // Buttons for the head before and the next; `of` names the kind of attention that they are of
  /** @param {(by: number) => void} act @param {string} [of] */
  steps(act, of = "") {
    const box = el("span", "seg steps");
    for (const [by, sign, label] of /** @type {[number, string, string][]} */ ([
      [-1, "‹", words.previous_head],
      [1, "›", words.next_head],
    ])) {
      box.append(
        Object.assign(
          button(sign, "", () => act(by), label),
          { ariaLabel: of + label },
        ),
      );
    }
    return box;
  }

  drawFoot() {
    const { ok, rest, legend } = this.lab.foot();
    setText(this.proof, ok.join("   "));
    setText(this.facts, rest.join(" · "));
    const of = legend.join(" ") + this.layout;
    if (this.legend.dataset.of !== of) {
      this.legend.dataset.of = of;
      this.legend.replaceChildren(
        ...legend.map((name) => {
          const one = el("span");
          one.append(swatch(name, this.palette), ` ${worded(words.legend, name)}`);
          return one;
        }),
      );
    }
    const isOpen = this.values.table === "on";
    const hasCode = this.labName === "paint";
    const isCode = hasCode && this.values.code !== "off";
    this.codeButton.hidden = !hasCode;
    this.codeButton.setAttribute("aria-pressed", String(isCode));
    this.codeBox.hidden = !isCode;
    if (isCode) drawCode(this, this.codeBox);
    this.tableButton.setAttribute("aria-pressed", String(isOpen));
    this.tableBox.hidden = !isOpen;
    if (isOpen) this.lab.table(this.tableBox);
  }

  get isChanged() {
    const { mask, when, fill: filled, forbid, allow } = this.values;
    const isPlain = mask === "model" && when === "before" && filled === "inf" && forbid === "" && allow === "";
    return !isPlain || this.demonstrated !== null;
  }

  // Head by head, over the ends of layers
  /** @param {number} by */
  step(by) {
    this.chooseHead(...stepped(this.site, this.place, by));
  }

  // To another row, or to another head
  /** @param {number} down @param {number} right */
  move(down, right) {
    if (right) this.step(right);
    else this.chooseRow(clamp(this.place.query + down, 0, this.site.n_query - 1));
    return true;
  }

  keysTold = words.keys_told;

  keys = {
    s: () => {
      if (this.labName !== "paint") return false;
      this.choose({ show: this.values.show === "scores" ? "weights" : "scores" });
      return true;
    },
    b: () => {
      if (this.labName !== "paint" || !this.isChanged) return false;
      this.choose({ whose: this.values.whose === "yours" ? "model" : "yours" });
      return true;
    },
  };

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    return this.lab.arrow?.(down, right) ?? false;
  }

  get isComing() {
    return this.labName === "paint" && isHardestComing(this);
  }

  // To the next stop of the walk, or back: what this run cannot show is not on the way
  /** @param {number} by */
  turn(by) {
    const stops = stopsOf(this);
    const to = stops[standing(this, stops) + by] ?? null;
    if (!to) return false;
    if (to.id === "3") this.#picked = true;
    this.choose(to.values);
    return true;
  }

  // Another row: what the walk forbids stays where it is, painted, for it is of its own row
  /** @param {number} query */
  chooseRow(query) {
    this.choose({ query: String(query), ...this.kept() });
  }

  /** The demonstration as cells of the link. @returns {Record<string, string>} */
  kept() {
    const { demonstrated } = this;
    if (!demonstrated) return {};
    const cell = `${demonstrated.query}-${demonstrated.key}`;
    return { stop: "0", forbid: [this.values.forbid, cell].filter(Boolean).join(",") };
  }

  get headGrid() {
    return this.lab.headGrid;
  }

  // All heads of the labs that show one of the run above; coloured by the look that stands out in the row
  get heads() {
    if (!["paint", "scale"].includes(this.labName)) return null;
    const { site, place } = this;
    const labels = /** @type {[string[], string[]]} */ ([this.labels(site.query), this.labels(site.key)]);
    const key = this.lab.looked?.(place.query);
    const measures = headMeasures(this, {
      site: site.id,
      query: place.query,
      key,
      labels,
      isCross: site.query !== site.key,
    });
    return { ...site, ...place, measures };
  }

  // Whose strongest look at a word of the text is the strongest of all
  get clearest() {
    const opening = this.labName === "paint" && this.header.sites.find((site) => site.id === this.site.id)?.opening;
    return opening ? { layer: opening[0], head: opening[1] } : null;
  }

  /** @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    /** @type {Record<string, string>} */
    const stop = this.values.stop === "3" ? { stop: "1" } : {};
    this.choose(this.lab.head?.(layer, head) ?? { layer: String(layer), head: String(head), ...stop });
  }

  /** @param {number} layer @param {string} stack */
  chooseLayer(layer, stack) {
    const site = siteOf(stack, this.site.id);
    if (site !== this.site.id) this.choose({ ...UNMASKED, site });
    this.chooseHead(layer, Math.min(this.place.head, this.site.heads - 1));
  }

  // The whole model at the chosen row, above the maps of one head
  /** @param {string} name */
  drawModel(name) {
    const { site, place } = this;
    const isTwo = this.sites.has("cross");
    const stack = stackOf(site.id);
    const labels = isTwo
      ? { encoder: this.labels("source"), decoder: this.labels("target") }
      : { [stack]: this.labels(site.query) };
    const key = site.id === "cross" ? this.lab.looked?.(place.query) : undefined;
    this.model.draw(name === "paint" ? { stack, layer: place.layer, query: place.query, key, labels } : null);
  }

  /** @param {import("./types.js").Piece[]} found @param {import("./types.js").Piece[]} [reason] */
  say(found, reason = []) {
    const text = [...found, ["|"], ...reason].map(([piece]) => piece).join("");
    if (this.said === text) return;
    this.said = text;
    this.fact.replaceChildren(...nodes(found));
    this.reason.replaceChildren(...nodes(reason));
  }

  /** @param {string} text @param {PointerEvent | null} [e] */
  hint(text, e = null) {
    this.tip.follow(text ? [text] : [], e);
  }

  picture() {
    return rows(this.labName === "paint" ? [this.labPlace] : [this.fact, this.labPlace]);
  }

  /** @returns {import("../../../kit/browser/types.js").AboutFiles} */
  about() {
    const { caption, snippet, name, tables, arrays } = this.lab.files();
    const said = saidIn(this.fact);
    return {
      title: said,
      alt: said,
      caption,
      snippet,
      name: `${name}-${this.values.lab}`,
      tables: tables.map(([label, file, columns, body]) => [
        label,
        `${name}-${file}`,
        csv(columns, body, [caption, snippet]),
        { of: file, columns, rows: body },
      ]),
      arrays,
      page: this.page(),
    };
  }

  get offlinePage() {
    return "masks/page";
  }
}

export default Masks;
