// The Shapes component: the pass as rows on a rail, the chosen tensor spelled out below, or all of it as a table.
//
// Everything a visitor does here is drawn here, and Python is told once, a moment later (selection.js).

import { whole } from "../../../kit/browser/selection.js";
import { HeadChooser } from "../../../kit/browser/chooser.js";
import { classroom } from "../../../kit/browser/classroom.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Detail } from "./detail.js";
import {
  add,
  button,
  choice,
  clamp,
  described,
  el,
  fill,
  focusedIn,
  number,
  setText,
  worded,
} from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { headMeasures } from "../../../kit/browser/head_measures.js";
import { binary, count, decimal, flops, meaningText, shape, shapeText, short } from "./format.js";
import { cross, glyph, rail } from "./rails.js";
import { Stage } from "../../../kit/browser/stage.js";
import { Table } from "./table.js";
import { draw, svg } from "../../../kit/browser/picture/svg.js";

/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Part} Part */
/** @typedef {import("./types.js").Item} Item */
/** @typedef {import("./types.js").View} Shown */

/**
 * @extends {Stage<import("./types.js").Diagram, import("./types.js").Palette>}
 * @implements {Shown}
 */
class Shapes extends Stage {
  static style = STYLE;
  static palettes = PALETTES;

  // What a lesson covers its own page has out of sight already; a class that follows it has only this.
  /** @returns {Record<string, string>} */
  static get covers() {
    return classroom.follows ? { shape: ".body, .detail, .tablebox, .facts" } : {};
  }

  /** @type {import("./types.js").Place} */
  place;
  /** @type {Map<string, {part: Part, row: Row}>} */
  byId = new Map();
  opening = ""; // the tensor that a diagram opens at
  /** @type {{column: HTMLElement, picture: SVGSVGElement, items: Item[]}[] | undefined} */
  columns;
  /** @type {SVGSVGElement} Lines from one stack to another, above both */
  over;
  comes = false; // whether the chosen tensor is to be brought into sight
  wasProjected = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.top = add(root, "div", "top");
    this.body = add(root, "div", "body");
    this.detail = new Detail(this, add(root, "section", "detail"));
    this.chooser = new HeadChooser(this, () => this.heads);
    this.table = new Table(this, add(root, "section"));
  }

  // ------------------------------------------------------------------ data in, place out

  get key() {
    return this.header?.run ?? "";
  }

  /** @param {{byLink: boolean}} news */
  received({ byLink }) {
    this.read();
    this.comes ||= byLink && (this.isProjected || this.place.tensor !== this.opening);
  }

  // What the link, or the visitor before this diagram, asked for, as far as this diagram has it
  read() {
    const { header: data } = this;
    const asked = this.values;
    this.byId = new Map();
    for (const part of data.parts) for (const row of part.rows) this.byId.set(row.id, { part, row });
    const opening = `${data.stacks.at(-1)}.attn.weights`;
    const deepest = Math.max(...Object.values(data.layers)) - 1;
    this.place = {
      tensor: this.byId.has(asked.tensor) ? asked.tensor : opening,
      at: clamp(whole(asked.at), 0, deepest),
      unfold: (asked.unfold ?? "").split(",").filter(Boolean),
      as: asked.as === "table" ? "table" : "diagram",
      break: asked.break ?? "",
      with_head: clamp(whole(asked.with_head), 0, data.heads - 1),
    };
    this.opening = opening;
  }

  /** @param {Partial<import("./types.js").Place>} change @param {boolean} [focus] */
  choosePlace(change, focus) {
    if (change.tensor && change.tensor !== this.place.tensor && change.break === undefined) change.break = "";
    Object.assign(this.place, change);
    const place = this.place;
    this.choose({
      tensor: place.tensor === this.opening ? "" : place.tensor,
      at: place.at ? String(place.at) : "",
      unfold: place.unfold.join(","),
      as: place.as === "diagram" ? "" : place.as,
      break: place.break,
      with_head: place.with_head ? String(place.with_head) : "",
    });
    if (focus) {
      this.drawNow();
      this.focus();
    }
    const { row } = this.chosen;
    if (change.tensor) this.announce(`${row.title}: ${shapeText(row)}. ${meaningText(row, this.sizes(row))}`);
  }

  get chosen() {
    return /** @type {{part: Part, row: Row}} */ (this.byId.get(this.place.tensor));
  }

  // What an axis counts where a tensor does not have it itself
  /** @param {Row} row */
  sizes(row) {
    const { header: data } = this;
    /** @type {Record<string, number>} */
    const found = { batch: data.batch, vocab: data.vocab };
    for (const { row: other } of this.byId.values()) {
      other.axes.forEach((name, i) => (found[name] ??= other.shape[i]));
    }
    const at = row.axes.findIndex((name) => name === "pos" || name === "query" || name === "key");
    if (at >= 0) found.pos = row.shape[at];
    const made = row.axes.includes("head × d_head") || row.axes.includes("kv_head × d_head");
    if (made) found.head = data.heads;
    return found;
  }

  // ------------------------------------------------------------------ drawing

  /** @param {Set<import("../../../kit/browser/stage.js").Stale>} stale */
  draw(stale) {
    const table = this.place.as === "table";
    if ([...stale].every((what) => what === "size")) return this.rails();
    const { header: data } = this;
    this.drawTop();
    this.body.hidden = this.detail.box.hidden = table;
    this.table.box.hidden = !table;
    if (table) this.table.draw();
    else {
      this.drawBody();
      this.detail.draw();
      this.rails();
    }
    setText(
      this.facts,
      fill(words.total, {
        parameters: number(data.parameters),
        weights: `${binary(data.weights)} (${decimal(data.weights)})`,
        flops: flops(data.flops),
      }),
    );
    if (this.isProjected && !this.wasProjected && stale.has("projector")) this.focus();
    else if (this.comes) this.body.querySelector(".row.chosen")?.scrollIntoView({ block: "nearest" });
    this.comes = false;
    this.wasProjected = this.isProjected;
  }

  status() {
    const { header: data, place } = this;
    const { row } = this.chosen;
    return {
      tensor: row.id,
      at: place.at,
      as: place.as,
      break: place.break,
      rows: this.body.querySelectorAll(".row").length,
      title: data.title,
      run: this.key,
      parameters: data.parameters,
      flops: data.flops,
      weights: data.weights,
      shape: row.shape.join(","),
      bytes: row.bytes,
      rowflops: row.flops,
    };
  }

  drawTop() {
    const { header: data } = this;
    this.top.replaceChildren();
    const [source, target] = data.lengths;
    const heading = add(this.top, "h2");
    heading.append(el("b", "", `${number(source)}${target ? ` + ${number(target)}` : ""} ${words.counts.pos[1]}`));
    if (data.batch > 1) heading.append(el("b", "", ` × ${count("batch", data.batch)}`));
    heading.title = data.title;
    heading.append(el("span", "", fill(data.run ? words.subtitle_run : words.subtitle, { model: data.title })));
    const legend = add(this.top, "span", "legend");
    for (const [name, help] of Object.entries(words.axes)) {
      const item = add(legend, "span", "");
      item.title = help;
      item.append(el("i", `ax-${name}`), name);
    }
    /** @type {import("../../../kit/browser/types.js").Choice<"diagram" | "table">[]} */
    const ways = [
      ["diagram", words.diagram],
      ["table", words.table],
    ];
    const shown = choice(words.shown_as, ways, this.place.as, (as) => this.choosePlace({ as }));
    this.top.append(shown);
  }

  picture() {
    return rows([this.top, this.body, this.detail.box]);
  }

  // What its files say about themselves; a table has no picture
  about() {
    const { header: data } = this;
    const { row } = this.chosen;
    const heading = this.top.querySelector("h2")?.textContent;
    const alt = `${heading}. ${row.title}: ${shapeText(row)}. ${meaningText(row, this.sizes(row))}`;
    const named = { title: data.title, alt, name: "headlight-shapes", picture: this.place.as !== "table" };
    /** @type {[label: string, name: string, text: string][]} */
    const tables = [[words.table, "headlight-shapes", this.table.csv()]];
    return { ...named, caption: data.caption, snippet: data.snippet, tables };
  }

  drawBody() {
    const { header: data } = this;
    const pair = data.stacks.length > 1;
    this.body.classList.toggle("pair", pair);
    this.body.replaceChildren();
    this.columns = data.stacks.map((stack, i) => {
      const column = described(add(this.body, "div", "column"), "group", words.label);
      if (pair) add(column, "h3").textContent = `${worded(words.stacks, stack)} · ${count("pos", data.lengths[i])}`;
      const heads = add(column, "div", "heads");
      for (const name of /** @type {const} */ (["rail", "step", "", "shape", "bytes", "flops", "code"]))
        heads.append(el("span", name, name && words.columns[name]));
      const last = i === data.stacks.length - 1;
      /** @type {Item[]} */
      const items = [];
      for (const part of data.parts) {
        if (part.stack === stack || (last && part.stack === "head")) this.drawPart(column, part, items);
      }
      const picture = svg("svg", { class: "rail", "aria-hidden": "true" });
      column.prepend(picture);
      return { column, picture, items };
    });
    this.over = draw(this.body, "svg", { class: "over" });
  }

  /** @param {HTMLElement} column @param {Part} part @param {Item[]} items */
  drawPart(column, part, items) {
    const open = this.place.unfold;
    const holds = part.rows.some((row) => row.id === this.place.tensor);
    if (part.section !== "layer") {
      const key = `${part.stack}.${part.section}`;
      const single = part.rows.length === 1;
      if (single || open.includes(key) || holds) {
        if (!single)
          this.fold(column, items, worded(words.sections, part.section), true, () => this.toggle(key, part), 0, false);
        for (const row of part.rows) this.drawRow(column, row, items, 0);
      } else {
        const steps = part.rows.map((row) => row.title).join(" → ");
        this.fold(
          column,
          items,
          worded(words.sections, part.section),
          false,
          () => this.toggle(key, part),
          0,
          true,
          steps,
        );
      }
      return;
    }
    const at = Math.min(this.place.at, part.times - 1);
    const every = open.includes(part.stack);
    const layers = every ? [...Array(part.times).keys()] : [at];
    /** @param {number} from @param {number} to */
    const between = (from, to) => {
      const text = from === to ? fill(words.folded_one, { from }) : fill(words.folded, { from, to, n: to - from + 1 });
      this.fold(
        column,
        items,
        text,
        false,
        () => this.choosePlace({ at: from === 0 ? to : from }, true),
        0,
        true,
        "",
        this.unfolder(part, every),
      );
    };
    if (!every && at > 0) between(0, at - 1);
    for (const layer of layers) {
      const heading = add(column, "div", "heading");
      heading.append(
        el("b", "", fill(words.layer, { layer })),
        el("span", "", fill(words.of_layers, { n: part.times })),
      );
      if (every && layer === 0) heading.append(this.unfolder(part, every));
      for (const row of part.rows) this.drawRow(column, row, items, layer);
    }
    if (!every && at < part.times - 1) between(at + 1, part.times - 1);
  }

  /** @param {Part} part @param {boolean} every */
  unfolder(part, every) {
    const rest = this.place.unfold.filter((name) => name !== part.stack);
    return button(every ? words.fold : words.unfold, "link", () =>
      this.choosePlace({ unfold: every ? rest : [...rest, part.stack] }),
    );
  }

  /** @param {string} key @param {Part} part */
  toggle(key, part) {
    const { unfold, tensor } = this.place;
    const open = unfold.includes(key) || part.rows.some((row) => row.id === tensor);
    const away = part.rows.some((row) => row.id === tensor) ? { tensor: this.opening } : {};
    this.choosePlace(open ? { unfold: unfold.filter((name) => name !== key), ...away } : { unfold: [...unfold, key] });
  }

  /**
   * @param {HTMLElement} column
   * @param {Item[]} items
   * @param {string} text
   * @param {boolean} open
   * @param {() => void} act
   * @param {number} lane
   * @param {boolean} drawn
   * @param {string} [note]
   * @param {HTMLElement | null} [more]
   */
  fold(column, items, text, open, act, lane, drawn, note = "", more = null) {
    const line = add(column, "div", "fold");
    const opener = line.appendChild(button("", "", act));
    opener.setAttribute("aria-expanded", String(open));
    opener.title = [text, note].filter(Boolean).join(": "); // a narrow window shows only the beginning
    opener.append(el("i", "", open ? "−" : "+"), el("span", "", text), el("small", "", note));
    if (more) line.append(more);
    if (drawn) items.push({ node: line, lane, joins: false, fold: true });
  }

  /** @param {HTMLElement} column @param {Row} row @param {Item[]} items @param {number} layer */
  drawRow(column, row, items, layer) {
    const chosen = row.id === this.place.tensor && (layer === this.layerOf(row) || !this.inLayer(row));
    const node = add(column, "button", `row${chosen ? " chosen" : ""}`);
    node.dataset.id = row.id;
    node.dataset.layer = String(layer);
    node.setAttribute("aria-pressed", String(chosen));
    node.setAttribute(
      "aria-label",
      `${row.title}: ${shapeText(row)}; ${row.view ? words.view : binary(row.bytes)}${row.flops ? `; ${flops(row.flops)}` : ""}`,
    );
    node.append(el("span", "rail"));
    const name = add(node, "span", "name");
    name.title = `${row.title}: ${row.equation || row.code}  ·  ${row.code}`;
    name.append(el("span", "", row.title), " ", el("small", "", row.equation));
    node.append(glyph(row), shape(row));
    const bytes = add(node, "span", "bytes");
    bytes.textContent = row.view ? words.view : binary(row.bytes);
    bytes.title = row.view
      ? words.view_help
      : `${binary(row.bytes)} = ${decimal(row.bytes)} = ${number(row.bytes)} ${words.bytes}`;
    const work = add(node, "span", "flops");
    work.textContent = short(row.flops);
    work.title = row.flops ? `${number(row.flops)} FLOP` : "";
    const code = add(node, "code");
    code.textContent = row.code;
    code.title = row.code;
    if (row.fused) {
      const mark = add(code, "span", "fused");
      mark.textContent = words.fused;
      mark.title = words.fused_help;
    }
    node.addEventListener("click", () =>
      this.choosePlace({ tensor: row.id, ...(this.inLayer(row) ? { at: layer } : {}) }),
    );
    items.push({ node, lane: row.lane, joins: row.joins, chosen });
  }

  /** @param {Row} row */
  inLayer(row) {
    return this.byId.get(row.id)?.part.section === "layer";
  }

  /** @param {Row} row */
  layerOf(row) {
    return Math.min(this.place.at, (this.byId.get(row.id)?.part.times ?? 1) - 1);
  }

  rails() {
    if (!this.columns || this.body.hidden || !this.body.clientWidth) return;
    const unit = parseFloat(getComputedStyle(this.body).fontSize);
    const tight = this.columns.length > 1 ? 0.76 : 1;
    for (const { picture, items } of this.columns) rail(picture, items, unit * tight);
    const box = this.body.getBoundingClientRect();
    /** @param {Element} node */
    const place = (node) => {
      const r = node.getBoundingClientRect();
      return { left: r.left - box.left, right: r.right - box.left, top: r.top - box.top, height: r.height };
    };
    const end = this.body.querySelector('[data-id="encoder.final"]');
    const readers = [...this.body.querySelectorAll('[data-id="decoder.cross.kv"]')];
    this.over.replaceChildren();
    this.over.setAttribute("height", String(box.height));
    if (end && readers.length) cross(this.over, place(end), readers.map(place), unit, words.cross);
  }

  // ------------------------------------------------------------------ keys

  focus() {
    const found = /** @type {HTMLElement | null} */ (this.body.querySelector(".row.chosen"));
    found?.focus({ preventScroll: true });
    found?.scrollIntoView({ block: "nearest" });
  }

  // What a clicker's keys do: to the next tensor, or the one before
  /** @param {number} by */
  turn(by) {
    const all = /** @type {HTMLElement[]} */ ([...this.body.querySelectorAll(".row")]);
    const at = all.findIndex((node) => node.classList.contains("chosen"));
    const next = all[clamp(at + by, 0, all.length - 1)];
    if (next && next !== all[at]) this.take(next);
  }

  /** @param {HTMLElement} node */
  take(node) {
    const id = node.dataset.id ?? "";
    const isOfLayer = this.byId.get(id)?.part.section === "layer";
    this.choosePlace({ tensor: id, ...(isOfLayer ? { at: Number(node.dataset.layer) } : {}) }, true);
  }

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    const focused = focusedIn(this.root);
    if (this.body.hidden) return false;
    if (right) return this.sideways(right);
    const from = focused?.matches(".row, .fold > button:first-child")
      ? focused
      : this.body.querySelector(".row.chosen");
    const all = /** @type {HTMLElement[]} */ ([
      ...(from?.closest(".column")?.querySelectorAll(".row, .fold > button:first-child") ?? []),
    ]);
    const next = all[all.indexOf(/** @type {HTMLElement} */ (from)) + down];
    if (!next) return false;
    if (next.classList.contains("row")) this.take(next);
    else next.focus();
  }

  // The same row of the next layer, or of the one before
  /** @param {number} step */
  sideways(step) {
    const { part } = this.chosen;
    if (part.section !== "layer") return false;
    this.choosePlace({ at: clamp(this.place.at + step, 0, part.times - 1) }, true);
  }

  // All heads of the stack whose tensor is chosen; coloured by what they do in the run
  get heads() {
    const { header, place } = this;
    const { part, row } = this.chosen;
    if (!header.run || part.section !== "layer") return null;
    const isCross = row.id.includes(".cross");
    const sides = isCross
      ? ["target", "source"]
      : Array(2).fill(part.stack === "decoder" && header.tokens?.target.length ? "target" : "source");
    const labels = /** @type {[string[], string[]]} */ (
      sides.map((side) => header.tokens?.[/** @type {"source"} */ (side)] ?? [])
    );
    const measures = headMeasures(this, { site: isCross ? "cross" : part.stack, labels, isCross });
    return {
      layers: part.times,
      heads: header.heads,
      kv_heads: header.kv_heads,
      layer: place.at,
      head: place.with_head,
      measures,
    };
  }

  // Numbers of a run are shown of one head
  get headGrid() {
    const { run, layers, heads } = this.header;
    return run ? { layers: Math.max(...Object.values(layers)), heads } : null;
  }

  /** @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    this.choosePlace({ at: layer, with_head: head });
  }
}

export default Shapes;
