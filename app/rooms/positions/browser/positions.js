// The room: four labs over one run, what is chosen in them, the sentence above, the receipts below, tables and files.

import { RoomSelection, whole } from "../../../kit/browser/selection.js";
import { paletteOf, rampsOf, themeOf } from "../../../kit/browser/colours.js";
import { cover, Guard } from "../../../kit/browser/cover.js";
import { csv } from "../../../kit/browser/csv.js";
import { add, choice, keepingFocus, worded } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { Files } from "../../../kit/browser/files.js";
import { unpack } from "../../../kit/browser/messages.js";
import { mounted } from "../../../kit/browser/mount.js";
import { Projector } from "../../../kit/browser/projector.js";
import { Fetcher } from "../../../kit/browser/fetcher.js";
import { scrolled } from "../../../streamlit_edge/browser/page.js";
import { Clocks } from "./clocks.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { linkTo, Share, spoken } from "../../../kit/browser/share.js";
import { Order } from "./order.js";
import { shown } from "./tables.js";
import { Two } from "./two.js";
import { Waves } from "./waves.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Lab} Lab */
/** @typedef {import("./types.js").Shown} Shown */
/** @type {Record<string, new (view: Shown) => Lab>} */
const LABS = { order: Order, two: Two, clock: Clocks, binary: Waves };
// What a lesson may cover
const LAB = ".fact, .lab, .foot > .ok, .foot > .facts, .tables > div, .unseen";
/** @type {Record<string, string>} */
const COVERS = { number: LAB, cell: LAB, curve: LAB, headline: LAB };
const DESIGN = 15.6; // CSS pixels of the type for which the drawings are measured out
const NARROW = 960; // units of the design below which everything stands in one column
const NARROW_PROJECTED = 600; // and of a projected page, which shows less beside each other
const EDGE = 16; // units of the design that a projected page leaves free at its foot
const LONGEST_PRESS = 1000; // ms
const TABLES_AFTER = 150; // ms without another drawing
const MOST_RUNS = 12; // whose answers are kept

/** @param {import("../../../kit/browser/types.js").Given<Uint8Array>} given */
export default function ({ data, parentElement, setStateValue }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new View(root));
  view.update(data, setStateValue);
  return leave;
}

/** @implements {Shown} */
class View {
  /** @type {Header} */
  header;
  /** @type {[header: any, body: ArrayBuffer]} What Python sent last */
  sent;
  /** @type {Lab | null} */
  lab = null;
  labName = "";
  /** @type {"light" | "dark" | undefined} */
  theme;
  /** @type {typeof PALETTES.light} */
  palette;
  /** @type {import("./types.js").Ramp} */
  ramp;
  /** @type {import("./types.js").Ramp} */
  ahead;
  /** @type {Map<string, Fetcher>} */
  remotes = new Map();
  frame = 0;
  /** @type {number | undefined} A timer, while the tables are still to follow */
  tabling;
  pressed = -Infinity; // when what can be clicked was pressed: it must be there still when it is let go
  unit = 1;
  room = Infinity; // pixels of height that a projected page has for the lab; any other is as long as it needs to be
  width = 0;
  narrow = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    root.replaceChildren();
    this.chosen = new RoomSelection();
    this.line = add(root, "div", "topline");
    this.tabs = add(this.line, "span", "tabs");
    this.toolbox = add(this.line, "span", "labtools");
    this.sentence = add(root, "p", "fact");
    this.sentence.setAttribute("aria-live", "polite");
    this.host = add(root, "div", "lab");
    this.footer = add(root, "div", "foot");
    this.proof = add(this.footer, "span", "ok");
    this.facts = add(this.footer, "span", "facts");
    this.acts = add(this.footer, "span", "acts");
    this.fold = add(root, "details", "tables");
    add(this.fold, "summary").textContent = words.tables;
    this.tablebox = add(this.fold, "div");
    this.fold.addEventListener("toggle", () => this.drawTables());
    this.tipbox = add(root, "div", "tip");
    this.tipbox.hidden = true;
    this.live = add(root, "div", "unseen");
    this.live.setAttribute("aria-live", "polite");
    this.projectorMode = new Projector(
      () => this.redraw(),
      (by) => this.turn(by),
    );
    this.files = new Files(
      () => this.drawn(),
      () => this.about(),
      () => /** @type {any} */ (this.palette),
    );
    this.share = new Share(
      root,
      () => linkTo({ ...this.header.link, ...spoken(this.chosen.values) }),
      (text) => this.say(text),
    );
    this.acts.append(...this.share.actions(), this.files.box, this.projectorMode.button);
    root.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || !this.lab?.key?.(event)) return;
      event.preventDefault();
      if (this.frame && !this.isPressed) this.drawNow(); // by the next frame it stands there, and is not begun with it
    });
    root.addEventListener("pointerdown", (event) => {
      const at = /** @type {Element} */ (event.composedPath()[0]);
      if (at.closest("button:not(.slot), .grid, .map")) this.pressed = performance.now();
    });
    this.released = () => setTimeout(() => (this.pressed = -Infinity)); // after the click that follows
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, this.released);
    this.watch = new ResizeObserver(() => this.host.clientWidth !== this.width && this.redraw());
    this.watch.observe(this.host);
    this.resized = () => this.projector && this.redraw();
    addEventListener("resize", this.resized);
    this.guard = new Guard(root, COVERS);
    this.uncovers = cover.watch(() => this.header && this.redraw());
  }

  destroy() {
    this.watch.disconnect();
    removeEventListener("resize", this.resized);
    this.uncovers();
    this.guard.destroy();
    for (const name of ["pointerup", "pointercancel"]) removeEventListener(name, this.released);
    this.projectorMode.destroy();
    this.files.destroy();
    this.chosen.destroy();
    this.lab?.destroy?.();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.tabling);
  }

  // ------------------------------------------------------------------ data in, choices out

  /** @param {Uint8Array} data @param {import("../../../kit/browser/types.js").Tell} setStateValue */
  update(data, setStateValue) {
    const [header, body] = unpack(data);
    this.sent = [header, body];
    const isOther = this.header?.key !== header.key;
    const before = this.state();
    this.header = header;
    cover.take(header.cover);
    this.chosen.take(header.chosen, setStateValue);
    if (isOther) this.leaveLab();
    this.share.isOffline = Boolean(header.offline);
    this.paletteOf();
    if (this.root.dataset.painted && this.state() === before) return; // Python's answer to a change that is drawn already
    if (this.isPressed) return this.redraw();
    this.drawNow();
  }

  // All that Python decides of what is drawn
  state() {
    return JSON.stringify([this.header?.key, this.chosen.values, this.theme]);
  }

  leaveLab() {
    this.lab?.destroy?.();
    this.lab = null;
    this.labName = "";
  }

  paletteOf() {
    const name = themeOf(this.root);
    if (name === this.theme) return;
    this.theme = name;
    this.palette = paletteOf(this.root, PALETTES);
    ({ ramp: this.ramp, ahead: this.ahead } = rampsOf(this.root, this.palette));
  }

  get isPressed() {
    return performance.now() - this.pressed < LONGEST_PRESS;
  }

  /** @param {string} name */
  value(name) {
    return this.chosen.values[name] ?? "";
  }

  /** @param {string} name */
  number(name, otherwise = 0) {
    return whole(this.chosen.values[name], otherwise);
  }

  /** @param {Record<string, string>} changes */
  choose(changes) {
    this.chosen.choose(changes);
    this.redraw();
  }

  site() {
    return this.header.sites.find((site) => site.id === this.value("site")) ?? this.header.sites[0];
  }

  /** @param {"source" | "target"} name */
  side(name) {
    return /** @type {import("./types.js").Side} */ (this.header.tokens[name] ?? this.header.tokens.source);
  }

  get projector() {
    return this.projectorMode.on;
  }

  /**
   * @template Answer
   * @param {string} path
   * @param {Record<string, string | number>} params
   * @param {(bytes: Uint8Array) => Answer} read
   * @param {string} [of] the key of a run
   */
  get(path, params, read, of = this.header.key) {
    let remote = this.remotes.get(of);
    if (!remote) {
      remote = new Fetcher(of, () => this.redraw());
      this.remotes.set(of, remote);
      if (this.remotes.size > MOST_RUNS) this.remotes.delete(String(this.remotes.keys().next().value));
    }
    return remote.get(path, params, read);
  }

  // ------------------------------------------------------------------ drawing

  redraw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isPressed) this.redraw();
      else if (this.root.isConnected && this.header) this.draw();
    });
  }

  drawNow() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.draw();
  }

  draw() {
    const start = performance.now();
    const name = this.value("lab") in LABS ? this.value("lab") : "order";
    this.root.dataset.projector = String(this.projector);
    this.unit = parseFloat(getComputedStyle(this.root).fontSize) / DESIGN;
    this.width = this.host.clientWidth;
    if (!this.width) return; // out of sight: drawn once it has a width again
    this.narrow = this.width < (this.projector ? NARROW_PROJECTED : NARROW) * this.unit;
    this.root.classList.toggle("narrow", this.narrow);
    if (name !== this.labName) {
      this.leaveLab();
      this.host.replaceChildren();
      delete this.host.dataset.pending;
      for (const [key] of Object.entries(this.root.dataset))
        if (!["projector"].includes(key)) delete this.root.dataset[key];
      this.lab = new LABS[name](this);
      this.labName = name;
      this.tip(null);
    }
    const lab = /** @type {Lab} */ (this.lab);
    keepingFocus(this.host, () => lab.draw());
    keepingFocus(this.line, () => {
      /** @type {import("../../../kit/browser/types.js").Choice<string>[]} */
      const tabs = Object.keys(LABS).map((lab) => [lab, worded(words.labs, lab)]);
      const seg = choice(words.lab, tabs, name, (lab) => this.choose({ lab }));
      seg.classList.add("labs");
      this.tabs.replaceChildren(seg);
      this.toolbox.replaceChildren(...lab.tools());
    });
    const said = lab.fact();
    const text = said.map((node) => node.textContent).join("");
    if (text !== this.sentence.textContent) this.sentence.replaceChildren(...said);
    const { proof, facts } = lab.foot();
    this.proof.textContent = proof && `✓ ${proof}`;
    this.facts.textContent = facts;
    if (this.hasOtherRoom()) keepingFocus(this.host, () => lab.draw());
    clearTimeout(this.tabling);
    if (this.fold.open) this.tabling = setTimeout(() => this.drawTables(), TABLES_AFTER);
    Object.assign(this.root.dataset, {
      lab: name,
      key: this.header.key,
      painted: "1",
      theme: this.theme,
      pending: this.host.dataset.pending ?? "false",
      ms: (performance.now() - start).toFixed(1),
    });
  }

  // A projected page shows all at once: how high the lab may be is known once the sentence stands above it.
  hasOtherRoom() {
    const before = this.room;
    this.room =
      this.projector && !this.narrow
        ? innerHeight - this.host.getBoundingClientRect().top - scrolled() - EDGE * this.unit
        : Infinity;
    return this.room !== before && !(Math.abs(this.room - before) < 1);
  }

  // Pixels of that below what a lab has drawn already
  /** @param {Element} node */
  below(node) {
    if (this.room === Infinity) return Infinity;
    return this.room - (node.getBoundingClientRect().bottom - this.host.getBoundingClientRect().top);
  }

  drawTables() {
    if (!this.fold.open || !this.lab) return;
    const tops = [...this.tablebox.children].map((box) => box.scrollTop);
    keepingFocus(this.tablebox, () => this.tablebox.replaceChildren(...shown(/** @type {Lab} */ (this.lab).tables())));
    tops.forEach((top, i) => this.tablebox.children[i]?.scrollTo(0, top));
  }

  /** @param {number} by */
  turn(by) {
    const labs = Object.keys(LABS);
    this.choose({ lab: labs[(Math.max(0, labs.indexOf(this.value("lab"))) + by + labs.length) % labs.length] });
  }

  /** @param {PointerEvent | null} event @param {Node[]} [nodes] */
  tip(event, nodes = []) {
    this.tipbox.hidden = !event || !nodes.length;
    if (!event || !nodes.length) return;
    this.tipbox.replaceChildren(...nodes);
    const frame = this.root.getBoundingClientRect();
    const x = Math.min(event.clientX - frame.left + 14, frame.width - this.tipbox.offsetWidth - 4);
    this.tipbox.style.translate = `${Math.max(0, x)}px ${event.clientY - frame.top + 16}px`;
  }

  /** @param {string} text */
  say(text) {
    this.live.textContent = text;
  }

  // ------------------------------------------------------------------ files

  drawn() {
    return rows([this.host]);
  }

  /** @returns {import("../../../kit/browser/types.js").AboutFiles} */
  about() {
    const lab = /** @type {Lab} */ (this.lab);
    const { about } = this.header;
    const sentence = this.sentence.textContent?.trim() ?? "";
    const name = `${about.name}-${this.labName}`;
    const edit = lab instanceof Order && lab.change?.edit ? lab.change.edit : "";
    const caption = [about.caption, edit, this.proof.textContent, this.facts.textContent].filter(Boolean).join(" · ");
    const snippet = lab.snippet();
    const said = `${sentence} ${caption}`;
    return {
      title: worded(words.labs, this.labName),
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
      page: this.sent[0].offline ? undefined : this.page(),
    };
  }

  /** @returns {import("../../../kit/browser/types.js").OfflinePage} */
  page() {
    const [header, body] = this.sent;
    const chosen = { values: { ...this.chosen.values }, stamp: 1, reported: 0 };
    return {
      path: "positions/page",
      theme: String(this.theme),
      message: [{ ...header, chosen, offline: true }, body],
      remotes: [...this.remotes.values()],
    };
  }
}
