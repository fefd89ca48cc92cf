// Paths between the strongest heads, as their runs come: the picture, what is held, and what all earlier heads bring to one of them.

import { WORDS as words } from "./constants.js";
import { add, button, fill, quoted, setText } from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { unpack } from "../../../kit/browser/messages.js";
import { Pen } from "../../../kit/browser/pen.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { drawShapes } from "../../../kit/browser/scene.js";
import { tableBox } from "../../../kit/browser/table.js";
import { Tip } from "../../../kit/browser/tip.js";
import { signed } from "./low.js";
import { looksOf, reads } from "./notes.js";
import { ALL, ANSWER, cardAt, drawn, headBeside, lineAt, planOf, shapesOf, strongestInto } from "./pathsmap.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./pathsmap.js").Edge} Edge */
/** @typedef {import("./board.js").Shown} Shown */

export const HEADS = 9; // whose paths are drawn
export const SENDERS = 300; // heads whose paths into one are run
const READ = 0.25; // of a head's attention on a word that differs: what it reads comes from there
const NARROW = 560; // pixels, below which layers go down

// Paths as their runs come
export class PathsFound {
  /** @type {Edge[]} */
  edges = [];
  of = 0;
  refused = "";
  /** @type {{caption: string, snippet: string, name: string, table: [label: string, name: string, text: string]} | null} For the files, at the end */
  about = null;

  /** @param {Uint8Array} message */
  take(message) {
    const [header] = unpack(message);
    if (header.refused) this.refused = header.refused;
    else if (header.snippet !== undefined) this.about = header;
    else {
      this.of = header.of;
      for (const [from, to, input, change] of header.edges)
        this.edges.push({ from: from || ALL, to: to || ANSWER, input, change });
    }
  }

  get done() {
    return this.of > 0 && this.edges.length >= this.of;
  }
}

// The heads whose paths are asked for: the strongest of the map by their runs, or all that come before one; null before all have run
/** @param {import("./found.js").PartsFound} found @param {string} into */
export function headsOf(found, into) {
  const { known } = found;
  if (!known?.there) return null;
  const order = found.ranked("z", "ld");
  if (!order.every((id) => found.exact.has(id))) return null;
  if (!into) return order.slice(0, HEADS);
  const layer = Number(into.split(".")[0]);
  return order.filter((id) => Number(id.slice(1).split(".")[0]) < layer).slice(0, SENDERS);
}

export class Paths {
  /** @type {Shown} */
  shown;
  /** @type {import("./pathsmap.js").Plan | null} */
  plan = null;

  /** @param {HTMLElement} parent @param {HTMLElement} tipped has the words beside the pointer @param {(changes: Record<string, string>) => void} choose @param {(id: string) => void} take */
  constructor(parent, tipped, choose, take) {
    this.choose = choose;
    this.box = add(parent, "div", "paths");
    this.map = add(this.box, "div", "between");
    this.map.tabIndex = 0;
    this.map.setAttribute("role", "group");
    this.svg = draw(this.map, "svg", { "aria-hidden": "true" });
    const line = add(this.box, "div", "line");
    const said = add(line, "div", "said");
    this.read = add(said, "p", "mute");
    this.held = add(said, "p", "mute");
    this.into = button("", "quiet", () => this.toInto());
    line.append(this.into);
    this.tip = new Tip(tipped);
    this.map.addEventListener("click", (e) => {
      const id = this.plan && cardAt(this.plan, ...this.#at(e));
      if (id && id !== ALL && id !== ANSWER) take(id);
    });
    this.map.addEventListener("pointermove", (e) => this.tip.follow(this.under(e), e));
    this.map.addEventListener("pointerleave", () => this.tip.hide());
  }

  /** @param {MouseEvent} event @returns {[x: number, y: number]} */
  #at(event) {
    const box = this.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // Under the pointer: a head with what it reads, or a path with its change
  /** @param {MouseEvent} event @returns {string[]} */
  under(event) {
    const { plan } = this;
    if (!plan) return [];
    const id = cardAt(plan, ...this.#at(event));
    if (id) return [this.said(id).slice(0, 2).filter(Boolean).join(": ")];
    const edge = lineAt(plan, ...this.#at(event));
    return edge ? [this.pathSaid(edge)] : [];
  }

  // "L23 H3 → L29 H1, what it reads: −2.2"
  /** @param {Edge} edge */
  pathSaid({ from, to, input, change }) {
    const inputs = /** @type {Record<string, string>} */ (words.inputs);
    return fill(words.path_said, {
      from: this.nameOf(from),
      to: this.nameOf(to),
      input: inputs[input],
      change: signed(change),
    });
  }

  /** @param {string} id */
  nameOf(id) {
    if (id === ALL) return words.all_before;
    return id === ANSWER ? words.the_answer : this.name(id);
  }

  // Where the two sentences differ
  get differing() {
    const { data, side } = this.shown;
    const other = side && !side.refused ? side.source : data.source;
    return data.source.flatMap((label, i) => (other[i] === label ? [] : [i]));
  }

  // A card: a head and what it reads; the words that differ; the answer and its lead in both sentences
  /** @param {string} id @returns {[title: string, note: string, shorter?: string]} */
  said(id) {
    const { data, side, found, notes } = this.shown;
    if (id === ANSWER) {
      const [own, difference] = found.whole;
      const say = (/** @type {number} */ x) => pointed(x.toFixed(1).replace("-", "−"));
      const [answer, rival] = this.pair;
      const leads = [say(own), say(own + difference)];
      return [fill(words.lead_tight, { answer, rival }), leads.join(" → "), leads.join("→")];
    }
    if (id !== ALL) {
      if (!notes || notes.refused) return [this.name(id), ""];
      const note = reads(notes, id, data.source, true);
      const [key, at] = looksOf(notes, id);
      return [
        this.name(id),
        note,
        note === words.rests_short ? note : key === at ? words.itself_key : indexed(data.source, key),
      ];
    }
    const { differing } = this;
    if (this.shown.values.into || !differing.length) return [words.all_before, ""];
    const [first] = differing;
    return [
      quoted(indexed(data.source, first)),
      differing.length > 1
        ? fill(words.words_differ, { n: differing.length })
        : fill(words.swapped_for, { word: quoted(side?.source[first] ?? "") }),
    ];
  }

  /** @param {Shown} shown @param {number} width @param {number} height @param {(id: string) => string} name @param {[answer: string, rival: string]} pair */
  draw(shown, width, height, name, pair) {
    Object.assign(this, { shown, name, pair });
    const { paths, found, values, pick, palette, type } = shown;
    const { into } = values;
    this.drawInto();
    const heads = headsOf(found, into);
    const isReady = paths !== null && heads !== null && paths.edges.length > 0;
    setText(
      this.held,
      paths?.refused ||
        (!heads
          ? words.paths_wait
          : !paths?.done
            ? fill(words.paths_come, { n: paths?.edges.length ?? 0, of: paths?.of || "…" })
            : into
              ? fill(words.held_into, { head: name(`z${into}`), n: heads.length })
              : words.held),
    );
    setText(this.read, isReady ? words.paths_read : "");
    this.svg.toggleAttribute("hidden", !isReady);
    this.box.classList.toggle("coming", !isReady);
    if (!isReady) {
      this.plan = null;
      this.svg.setAttribute("height", "0");
      return;
    }
    const nodes = into ? [...strongestInto(paths.edges, HEADS - 1), `z${into}`] : heads;
    const own = new Set(nodes);
    const among = paths.edges.filter(
      ({ from, to }) => (from === ALL || own.has(from)) && (to === ANSWER || own.has(to)),
    );
    const lines = drawn(among, (edge) => this.isRead(edge));
    const order = [...nodes].sort((a, b) => (found.change(a, "ld") ?? 0) - (found.change(b, "ld") ?? 0));
    const room = { width, height, unit: type.unit, turned: width < NARROW, hasAnswer: !into };
    this.plan = planOf(order, lines, room);
    this.svg.setAttribute("width", String(this.plan.width));
    this.svg.setAttribute("height", String(Math.ceil(this.plan.height)));
    const layers = (/** @type {number[]} */ of) => fill(words.layers_of, { n: of.join(", ") });
    drawShapes(
      new Pen(this.svg),
      shapesOf(this.plan, (id) => this.said(id), layers, pick, palette),
    );
    const largest = [...lines].sort((a, b) => Math.abs(b.change) - Math.abs(a.change)).slice(0, 6);
    this.map.setAttribute(
      "aria-label",
      fill(words.paths_label, {
        paths: largest.map((edge) => this.pathSaid(edge)).join("; "),
        part: pick ? name(pick) : words.no_part,
      }),
    );
  }

  // Whether what differs comes to this input straight from the words: of the one head that is looked into, whatever comes
  /** @param {Edge} edge */
  isRead({ to, input, change }) {
    const { notes, values } = this.shown;
    if (values.into) return Math.abs(change) >= 0.05;
    if (!notes || notes.refused) return false;
    const [key, at, weight] = looksOf(notes, to);
    const { differing } = this;
    return differing.includes(at) ? input === "q" : input === "v" && weight > READ && differing.includes(key);
  }

  drawInto() {
    const { values, pick } = this.shown;
    const head = pick?.[0] === "z" && Number(pick.slice(1).split(".")[0]) > 0 ? pick : null;
    this.into.hidden = !values.into && !head;
    setText(this.into, values.into ? words.into_back : fill(words.into_head, { head: head ? this.name(head) : "" }));
    this.into.title = values.into ? "" : words.into_help;
  }

  toInto() {
    const { values, pick } = this.shown;
    this.choose({ into: values.into ? "" : (pick ?? "").slice(1) });
  }

  // The same as a table: every path, the strongest first
  table() {
    const edges = this.shown.paths?.edges ?? [];
    const inputs = /** @type {Record<string, string>} */ (words.inputs);
    return tableBox(
      words.table_paths,
      [words.column_from, words.column_to, words.column_input, words.column_change],
      [...edges]
        .sort((a, b) => Math.abs(b.change) - Math.abs(a.change))
        .map(({ from, to, input, change }) => [this.nameOf(from), this.nameOf(to), inputs[input], change]),
    );
  }

  /** @param {number} down @param {number} right */
  beside(down, right) {
    const { pick } = this.shown;
    if (!this.plan) return null;
    const isThere = this.plan.cards.some(({ id }) => id === pick);
    const first = this.plan.cards.find(({ id }) => id !== ALL && id !== ANSWER)?.id ?? null;
    return isThere ? headBeside(this.plan, pick ?? "", down, right) : first;
  }

  /** @type {(id: string) => string} */
  name = (id) => id;
  /** @type {[answer: string, rival: string]} */
  pair = ["", ""];
}
