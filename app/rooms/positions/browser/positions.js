// The room: its labs over one run, what is chosen in them, the sentence above, the receipts below, tables and files.

import { rampsOf } from "../../../kit/browser/colours.js";
import { HeadChooser } from "../../../kit/browser/chooser.js";
import { csv } from "../../../kit/browser/csv.js";
import { add, choice, el, fill, keepingFocus, number, selectBox, setText, worded } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { Fetcher } from "../../../kit/browser/fetcher.js";
import { whole } from "../../../kit/browser/selection.js";
import { headMeasures } from "../../../kit/browser/head_measures.js";
import { SinkLine } from "../../../kit/browser/sink.js";
import { Stage } from "../../../kit/browser/stage.js";
import { tableBox } from "../../../kit/browser/table.js";
import { scrolled } from "../../../streamlit_edge/browser/page.js";
import { Beyond } from "./beyond.js";
import { Clocks } from "./clocks.js";
import { ALL, BESIDE, FINDINGS, step } from "./findings.js";
import { Kinds } from "./kinds.js";
import { Line } from "./line.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Order } from "./order.js";
import { Swap } from "./swap.js";
import { Two } from "./two.js";
import { Waves } from "./waves.js";
import { Tip } from "../../../kit/browser/tip.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Lab} Lab */
/** @typedef {import("./types.js").Shown} Shown */
/** @type {Record<string, new (view: Shown) => Lab>} */
const LABS = {
  swap: Swap,
  clocks: Clocks,
  beyond: Beyond,
  kinds: Kinds,
  order: Order,
  two: Two,
  clock: Line,
  binary: Waves,
};
const OF_A_HEAD = ["layer", "head", "query", "key"]; // a finding chooses them, until someone does
// A lesson may cover: "number" the proof of a swap, "cell" how digits change, "curve" how waves do, "headline" what becomes of a
// text that is too long. Curves that belong to it are left out of the drawings.
const SAID = ".foot > .ok, .tables > div, .unseen";
const COVERS = {
  number: `.box.proof, ${SAID}`,
  cell: `.fact, .waves > section + section, ${SAID}`,
  curve: `.two > .table, ${SAID}`,
  headline: `.refusal, .trade, ${SAID}`,
};
const DESIGN = 15.6; // CSS pixels of the type for which the drawings are measured out
const NARROW = 960; // units of the design below which everything stands in one column
const NARROW_PROJECTED = 600; // and of a projected page, which shows less beside each other
const EDGE = 16; // units of the design that a projected page leaves free at its foot
const TABLES_AFTER = 150; // ms without another drawing
const MOST_RUNS = 12; // changed runs whose answers are kept

/** @extends {Stage<Header, typeof PALETTES.light>} @implements {Shown} */
class Positions extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = COVERS;
  static pressable = "button, a, .grid, .map";

  /** @type {Lab | null} */
  lab = null;
  labName = "";
  labLeaves = new AbortController();
  /** @type {Record<string, unknown>} What the lab says in data attributes */
  said = {};
  /** @type {import("./types.js").Ramp} */
  ramp;
  /** @type {import("./types.js").Ramp} */
  ahead;
  /** @type {Map<string, Fetcher>} Of changed runs, by their keys */
  changed = new Map();
  /** @type {number | undefined} A timer, while the tables are still to follow */
  tabling;
  unit = 1;
  room = Infinity; // pixels of height that a projected page has for the lab; any other is as long as it needs to be
  width = 0;
  narrow = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.line = add(root, "div", "topline");
    this.tabs = add(this.line, "span", "tabs");
    this.toolbox = add(this.line, "span", "labtools");
    this.sentence = add(root, "p", "fact");
    this.sentence.setAttribute("aria-live", "polite");
    this.sink = new SinkLine(this);
    root.append(this.sink.line);
    this.labPlace = add(root, "div", "lab");
    root.append(this.foot);
    this.fold = add(root, "details", "tables");
    add(this.fold, "summary").textContent = words.tables;
    this.tablebox = add(this.fold, "div");
    this.fold.addEventListener("toggle", () => this.drawTables());
    this.tip = new Tip(root);
    this.chooser = new HeadChooser(this, () => this.heads);
    this.leaving.addEventListener("abort", () => {
      this.labLeaves.abort();
      clearTimeout(this.tabling);
    });
  }

  // ------------------------------------------------------------------ data in, choices out

  /** @param {{isNew: boolean}} news */
  received({ isNew }) {
    if (isNew) {
      this.leaveLab();
      this.changed.clear();
    }
    if (this.stale.has("theme")) ({ ramp: this.ramp, ahead: this.ahead } = rampsOf(this.root, this.palette));
  }

  leaveLab() {
    this.labLeaves.abort();
    this.labLeaves = new AbortController();
    this.show(Object.fromEntries(Object.keys(this.said).map((name) => [name, null])));
    this.said = {};
    this.lab = null;
    this.labName = "";
  }

  /** @param {string} name */
  value(name) {
    return this.values[name] ?? "";
  }

  /** @param {string} name */
  number(name, otherwise = 0) {
    return whole(this.values[name], otherwise);
  }

  // A head or a word that is chosen by hand is no finding, and comes beside what the finding has put on the screen
  /** @param {Record<string, string>} changes */
  choose(changes) {
    const isByHand = !("find" in changes) && OF_A_HEAD.some((name) => name in changes);
    super.choose(isByHand ? { ...this.lab?.held?.(), find: "", ...changes } : changes);
  }

  site() {
    return this.header.sites.find((site) => site.id === this.value("site")) ?? this.header.sites[0];
  }

  /** @param {"source" | "target"} name */
  side(name) {
    return /** @type {import("./types.js").Side} */ (this.header.tokens[name] ?? this.header.tokens.source);
  }

  /**
   * @template Answer
   * @param {string} path
   * @param {Record<string, string | number>} params
   * @param {(bytes: Uint8Array) => Answer} read
   * @param {string} [of] the key of a run
   */
  ask(path, params, read, of = this.key) {
    if (of === this.key) return super.ask(path, params, read);
    let remote = this.changed.get(of);
    if (!remote) {
      remote = new Fetcher(of, () => this.invalidate("answer"));
      this.changed.set(of, remote);
      if (this.changed.size > MOST_RUNS) this.changed.delete(String(this.changed.keys().next().value));
    }
    return remote.get(path, params, read);
  }

  get remotes() {
    return [this.remote, ...this.changed.values()];
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    const name = this.value("lab") in LABS ? this.value("lab") : "swap";
    this.unit = (16 * this.typeUnit) / DESIGN;
    this.width = this.labPlace.clientWidth;
    if (!this.width) return; // out of sight: drawn once it has a width again
    this.narrow = this.width < (this.isProjected ? NARROW_PROJECTED : NARROW) * this.unit;
    this.root.classList.toggle("narrow", this.narrow);
    if (name !== this.labName) {
      this.leaveLab();
      this.labPlace.replaceChildren();
      this.lab = new LABS[name](this);
      this.labName = name;
      this.tip.hide();
    }
    const lab = /** @type {Lab} */ (this.lab);
    const site = this.site();
    if (lab.isAsTrained && !this.isProjected) this.sink.draw(site.id, this.side(site.key).labels);
    else this.sink.line.hidden = true; // it describes the run of the unchanged model
    lab.draw();
    this.drawLabs(name);
    this.toolbox.replaceChildren(this.counted(lab), ...lab.tools());
    const isPending = Boolean(lab.status().pending);
    const said = isPending ? [document.createTextNode("…")] : lab.fact();
    const text = said.map((node) => node.textContent).join("");
    if (text !== this.sentence.textContent) this.sentence.replaceChildren(...said);
    this.files.box.hidden = isPending;
    const { proof, facts } = isPending ? { proof: "", facts: "" } : lab.foot();
    setText(this.proof, proof && `✓ ${proof}`);
    setText(this.facts, facts);
    if (this.hasOtherRoom()) lab.draw();
    this.chooser.draw();
    clearTimeout(this.tabling);
    if (this.fold.open) this.tabling = setTimeout(() => this.drawTables(), TABLES_AFTER);
  }

  // The four labs with findings, and the others in a list
  /** @param {string} name */
  drawLabs(name) {
    const shown = BESIDE[name] ?? name;
    /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
    const tabs = Object.keys(FINDINGS)
      .filter((lab) => lab in LABS)
      .map((lab) => [lab, this.titleOf(lab)]);
    const seg = choice(words.lab, tabs, shown, (lab) => this.take({ lab, id: FINDINGS[lab][0] }));
    seg.classList.add("labs");
    /** @type {[string, string][]} */
    const others = Object.keys(BESIDE).map((lab) => [lab, worded(words.labs, lab)]);
    const more = selectBox(words.more_labs, [["", words.more], ...others], name in BESIDE ? name : "", (lab) =>
      lab ? this.choose({ lab, find: "" }) : this.take({ lab: shown, id: FINDINGS[shown][0] }),
    );
    more.classList.add("more");
    keepingFocus(this.tabs, () => this.tabs.replaceChildren(seg, more));
  }

  /** @param {string} lab */
  titleOf(lab) {
    const isOwn = lab === "beyond" && this.header.position === "rotary";
    return isOwn ? fill(words.beyond, { n: number(this.header.n_ctx) }) : worded(words.labs, lab);
  }

  // Which finding it is of how many
  /** @param {Lab} lab */
  counted(lab) {
    const at = ALL.findIndex(({ id }) => id === lab.shownFinding);
    const text = at < 0 ? (lab.ownFindings ? words.by_hand : "") : fill(words.count, { i: at + 1, n: ALL.length });
    return el("span", "mute note count", text);
  }

  /** @param {import("./findings.js").Finding} finding */
  take({ lab, id }) {
    if (lab === this.labName && this.lab?.take) return this.lab.take(id);
    if (lab === "swap") {
      const cond = id === "drop" || id === "free" ? id : "trained";
      this.choose({ lab, find: id, cond, layer: "", head: "" });
    } else this.choose({ lab, find: id, d: "", shift: id === "both" ? "100" : "0", key: "" });
  }

  status() {
    if (!this.lab) return { painted: undefined };
    this.said = this.lab.status();
    return { lab: this.labName, key: this.key, pending: false, ...this.said };
  }

  // A projected page shows all at once: how high the lab may be is known once the sentence stands above it.
  hasOtherRoom() {
    const before = this.room;
    this.room =
      this.isProjected && !this.narrow
        ? innerHeight - this.labPlace.getBoundingClientRect().top - scrolled() - this.barHeight - EDGE * this.unit
        : Infinity;
    return this.room !== before && !(Math.abs(this.room - before) < 1);
  }

  // Pixels of that below what a lab has drawn already
  /** @param {Element} node */
  below(node) {
    if (this.room === Infinity) return Infinity;
    return this.room - (node.getBoundingClientRect().bottom - this.labPlace.getBoundingClientRect().top);
  }

  drawTables() {
    if (!this.fold.open || !this.lab) return;
    const tops = [...this.tablebox.children].map((box) => box.scrollTop);
    const made = this.lab.tables().map(({ title, columns, rows }) => tableBox(title, columns, rows));
    keepingFocus(this.tablebox, () => this.tablebox.replaceChildren(...made));
    tops.forEach((top, i) => this.tablebox.children[i]?.scrollTo(0, top));
  }

  // ------------------------------------------------------------------ keys

  keysTold = words.keys_told;

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    return this.lab?.arrow(down, right) ?? false;
  }

  // Through all findings, over the ends; one that the text or the model lacks is passed over
  /** @param {number} by */
  turn(by) {
    const lacks = (/** @type {import("./findings.js").Finding} */ { lab, id }) =>
      !(lab in LABS) ||
      (id === "free" && !this.header.ordered[this.value("stack")]) ||
      (lab === this.labName && (this.lab?.lacks?.(id) ?? false));
    const next = step(this.labName, this.lab?.shownFinding ?? "", by, lacks);
    if (next) this.take(next);
    return next !== null;
  }

  // The answer says what the lab lacks.
  get isComing() {
    return Boolean(this.lab?.isWaiting);
  }

  get headGrid() {
    const site = this.site();
    return this.lab?.hasHeads ? { layers: site.records.length, heads: site.heads } : null;
  }

  // All heads of the lab that is open; coloured by what it says of each, and as in every room
  get heads() {
    const grid = this.headGrid;
    const shown = this.lab?.shownHead;
    if (!grid || !shown) return null;
    const { site, layer, head, query, key, measures = [] } = shown;
    const labels = /** @type {[string[], string[]]} */ ([this.side(site.query).labels, this.side(site.key).labels]);
    const more = headMeasures(this, { site: site.id, query, key, labels, isCross: site.query !== site.key });
    return { ...grid, kv_heads: site.kv_heads, layer, head, measures: [...measures, ...more] };
  }

  // ------------------------------------------------------------------ files

  picture() {
    return rows([this.labPlace]);
  }

  /** @returns {import("../../../kit/browser/types.js").AboutFiles} */
  about() {
    const lab = /** @type {Lab} */ (this.lab);
    const { about } = this.header;
    const sentence = this.sentence.textContent?.trim() ?? "";
    const name = `${about.name}-${this.labName}`;
    const edit = (lab instanceof Order && lab.change?.edit) || (lab instanceof Swap && lab.found?.edit) || "";
    const caption = [about.caption, edit, this.proof.textContent, this.facts.textContent].filter(Boolean).join(" · ");
    const snippet = lab.snippet();
    const said = `${sentence} ${caption}`;
    return {
      title: this.titleOf(this.labName),
      alt: sentence,
      caption: said,
      snippet,
      name,
      tables: lab
        .tables()
        .map((table) => [
          table.title,
          `${name}-${table.name}`,
          csv(table.columns, table.rows, [said, snippet]),
          { of: table.name, columns: table.columns, rows: table.rows },
        ]),
      page: this.page(),
    };
  }

  get offlinePage() {
    return "positions/page";
  }
}

export default Positions;
