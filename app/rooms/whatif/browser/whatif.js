// What if: every head silenced in turn, every look cut, every head taken from another sentence; the changed run beside the plain one.
//
// What is chosen stands in the link (selection.js); the sweep and the changed run come from routes, each under the numbers it was asked with.

import { WORDS as words, PALETTES, STYLE } from "./constants.js";
import { Board } from "./board.js";
import { beneath, drawTurned, drawWords, sayKl, sentence } from "./answer.js";
import { add, el, fill, quoted, saidIn, setText } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { beside, headName, isOther, labelsOf, lead, rowName } from "./lead.js";
import { Left } from "./left.js";
import { drawLines } from "./lines.js";
import { readNotes } from "./notes.js";
import { headsOf, PathsFound } from "./paths.js";
import { unpack } from "../../../kit/browser/messages.js";
import { added, placed, points, ranked, sorts, swapped, Swept } from "./numbers.js";
import { Pair } from "./pair.js";
import { Rack } from "./rack.js";
import { ModelStrip, siteOf, stackOf } from "../../../kit/browser/model_strip.js";
import { linkTo, spoken } from "../../../kit/browser/share.js";
import { PairSet } from "./set.js";
import { SinkLine } from "../../../kit/browser/sink.js";
import { angle, degreesOf, rulerOf } from "../../../kit/browser/turns.js";
import { Stage } from "../../../kit/browser/stage.js";
import { arraysOf, idOf, PartsFound, placeOf } from "./found.js";
import { meant } from "./opening.js";
import { Full, Refusal, stream, sweep } from "./stream.js";
import { drawTables } from "./tables.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Side} Side */
const PATIENT = 400; // ms for which a sweep alone is waited for, and after which its run is shown without it
const STRIP_LINE = 62; // pixels of the window that the map of all parts does without, for the line of the whole model
const STRIP = 110; // and the maps of one head, with what is above them
const AGAIN = 3000; // ms before a server that did not answer is asked again
const SWEPT_BY = ["sweep", "by", "group", "only", "where", "at", "edits"]; // what a sweep depends on, beside its places

/** @extends {Stage<Header, import("./types.js").Palette>} */
class WhatIf extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = { number: ".columns > .right, .board > .right, .board .fact, .board > .tip, .tables" };

  swept = new Swept();
  found = new PartsFound();
  /** @type {PathsFound | null} */
  paths = null;
  askedPaths = ""; // those that are here or come
  /** @type {AbortController | undefined} */
  stopPaths;
  /** @type {import("./notes.js").Notes | null} */
  notes = null;
  /** @type {import("./low.js").Tests | null} */
  tests = null;
  askedOne = ""; // the part whose run was asked for by itself
  /** @type {Side | null} The newest that is here */
  side = null;
  refused = ""; // why what was asked for last is not there
  asked = ""; // of the sweep that is here or comes
  /** @type {AbortController | undefined} */
  stop;
  table = false;
  ms = 0;
  fresh = false; // whether the changed run on the screen is the one that is asked for
  failed = false;
  failure = ""; // what is said of it
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  waiting;
  begun = 0; // when the sweep was asked for
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  patience;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.model = new ModelStrip(this, (layer, stack) => this.chooseLayer(Number(layer), stack), { isLow: true });
    root.append(this.model.box);
    this.lines = add(root, "div", "lines");
    this.rack = new Rack(add(root, "div", "racks"), (changes) => this.choose(changes));
    this.problem = add(root, "p", "problem");
    this.problem.setAttribute("role", "alert");
    this.board = new Board(
      el("div", "board"),
      (changes) => this.choose(changes),
      (id) => this.takePart(id),
    );
    this.set = new PairSet(el("div", "board set"), {
      changed: () => this.invalidate("answer"),
      close: () => this.openSet(false),
      announce: (text) => this.announce(text),
      link: (pair, part) => this.linkOfPair(pair, part),
    });
    const columns = (this.columns = add(root, "div", "columns"));
    this.left = add(columns, "section", "left former");
    this.middle = add(columns, "section", "middle former");
    this.right = add(columns, "section", "right former");
    this.sweepPart = new Left(
      this.left,
      (changes) => this.choose(changes),
      (row) => this.take(row),
    );
    this.sink = new SinkLine(this, false);
    this.left.append(this.sink.line);
    this.pair = new Pair(this.middle, {
      name: (...head) => headName(this.header, ...head),
      choose: (moved) => this.choose({ moved }),
    });
    this.over = add(this.right, "div", "over");
    this.fact = add(this.right, "p", "fact");
    this.fact.setAttribute("aria-live", "polite");
    this.scale = add(this.right, "div", "mute");
    this.words = add(this.right, "div", "bars");
    this.said = add(this.right, "p", "said");
    this.tables = add(root, "div", "tables");
    root.append(this.foot);
    this.facts.setAttribute("role", "status");
    this.explained = add(root, "p", "note how");
    this.explained.hidden = true;
    const undo = /** @type {HTMLElement} */ (this.rack.undo.parentElement);
    this.keep = this.button(undo, words.keep, () => this.hold(), words.keep_help);
    this.opens = this.button(undo, words.set_open, () => this.openSet(true), words.set_open_help);
    this.swap = add(undo, "a", "quiet"); // a link, so that the step back leads to the sides as they were
    Object.assign(this.swap, { textContent: words.swap, title: words.swap_help, target: "_self" });
    const how = this.button(this.acts, words.how, () => {
      this.explained.hidden = !this.explained.hidden;
      how.setAttribute("aria-expanded", String(!this.explained.hidden));
      this.explained.scrollIntoView({ block: "nearest" }); // it stands below a screen that is full
    });
    how.setAttribute("aria-expanded", "false");
    this.tabled = this.button(this.acts, words.as_table, () => this.showTable());
    this.npz = add(this.acts, "a", "quiet");
    Object.assign(this.npz, { textContent: words.npz, title: words.npz_help, download: "headlight-whatif.npz" });
    this.leaving.addEventListener("abort", () => {
      this.stop?.abort();
      this.stopPaths?.abort();
      this.set.stop?.abort();
      clearTimeout(this.waiting);
      clearTimeout(this.patience);
    });
  }

  /** @param {{isNew: boolean}} news */
  received({ isNew }) {
    this.root.style.setProperty("--less", this.palette.ahead[3]);
    this.root.style.setProperty("--more", this.palette.ramp[3]);
    if (isNew) {
      this.side = null;
      this.refused = "";
      this.rack.fit(this.header);
    }
    this.fetch(); // the sweep is on its way while the room is drawn
  }

  // ---------------------------------------------------------------- what is asked for

  // Whether the map of all parts is shown
  get hasParts() {
    return this.values.sweep === "parts";
  }

  get values() {
    const said = super.values;
    return this.header ? meant(said, this.header) : said;
  }

  // The part that is shown: one by hand or by link, else the strongest head once the first runs are here
  /** @returns {string | null} */
  get shownPart() {
    const { part, layer, head, pick } = this.values;
    if (pick === "off") return null;
    if (part && !(part[0] === "r" && this.values.how !== "patch")) return part; // words have neither silence nor a mean
    return layer !== "" && head !== "" ? idOf("z", Number(layer), Number(head)) : this.found.strongest;
  }

  // The place that is changed now; the strongest by default
  /** @returns {Row | null} */
  get pick() {
    const { pick, sweep: what, site, layer, head, query, key } = this.values;
    if (pick === "off") return null;
    if (what === "looks" ? query !== "" && key !== "" : layer !== "" && head !== "") {
      /** @type {Row} */
      const place =
        what === "looks" ? [Number(query), Number(key)] : [site || this.place.id, Number(layer), Number(head)];
      if (!this.swept.done || this.swept.indexOf(place) >= 0) return place;
    } // until the strongest is known, the run is shown as it is
    return this.swept.done ? (this.swept.rows[ranked(this.swept.changes)[0]] ?? null) : null;
  }

  // The edits of the run above, as its link says them
  get own() {
    return this.header.link.with ?? "";
  }

  get place() {
    const { places } = this.header;
    return places.find(({ id }) => id === this.values.site) ?? places[places.length - 1];
  }

  fetch() {
    if (this.hasParts && this.set.isOpen) return;
    if (this.hasParts) return this.fetchParts();
    const { values } = this;
    const params = {
      run: this.header.key,
      with: this.own,
      ...Object.fromEntries(SWEPT_BY.map((name) => [name, values[name]])),
    };
    Object.assign(params, values.sweep === "looks" ? { site: values.site } : {});
    if (values.sweep === "looks" && this.header.long) Object.assign(params, { query: values.query });
    if (values.sweep === "looks" && values.only === "one")
      Object.assign(params, { layer: values.layer, head: values.head });
    if (values.sweep === "patch") Object.assign(params, { against: values.against });
    const asked = JSON.stringify(params);
    if (asked !== this.asked) this.sweep(asked, params);
    const isPatient = performance.now() < this.begun + PATIENT;
    if (!this.swept.done && !this.swept.refused && values.pick !== "off" && isPatient) return; // what is picked is not known yet
    const side = this.ask("whatif/side", this.sideParams(), readSide);
    if (side) [this.side, this.refused] = side.refused ? [this.side, side.refused] : [side, ""]; // what was there stays
    this.fresh = Boolean(side) && !side?.refused;
  }

  fetchParts() {
    const part = this.shownPart;
    const params = this.given(["how", "edits", "against", "other", "at", "answer", "rival"]);
    const asked = `parts ${JSON.stringify(params)}`;
    if (asked !== this.asked) this.streamParts(asked, params);
    const one = `${asked} ${part}`;
    if (part && this.found.known && !this.found.exact.has(part) && one !== this.askedOne) {
      this.askedOne = one;
      this.runPart(part, params);
    }
    const [kind, layer, head] = part ? placeOf(part) : ["r", 0, 0];
    const moved = kind === "z" ? `${this.place.id}.${layer}.${head}` : "";
    const side = this.ask(
      "whatif/side",
      this.given(["edits", "against", "other", "at"], { pick: "off", moved }),
      readSide,
    );
    if (side) [this.side, this.refused] = side.refused ? [this.side, side.refused] : [side, ""];
    this.fresh = Boolean(side) && !side?.refused;
    this.fetchPaths(params);
    this.notes = this.found.known ? this.ask("whatif/notes", params, readNotes) : null;
    const isTested = part !== null && part[0] !== "r" && this.values.low === "tests" && this.found.known;
    this.tests = isTested ? this.ask("whatif/tests", { ...params, tested: part }, readTests) : null;
  }

  // The paths of the strongest heads, once they are known, while they are shown
  /** @param {Record<string, string>} params */
  fetchPaths(params) {
    const { draw: drawing, how, into } = this.values;
    const heads = drawing === "paths" && how === "patch" ? headsOf(this.found, into) : null;
    const asked = heads ? JSON.stringify({ ...params, into, heads }) : "";
    if (asked === this.askedPaths) return;
    this.stopPaths?.abort();
    this.askedPaths = asked;
    this.paths = null;
    if (!heads) return;
    const paths = (this.paths = new PathsFound());
    const stop = (this.stopPaths = new AbortController());
    const take = (/** @type {Uint8Array} */ message) => {
      paths.take(message);
      if (paths === this.paths) this.invalidate("answer");
    };
    const more = { heads: heads.map((id) => id.slice(1)).join(","), ...(into ? { into } : {}) };
    stream("paths", { run: this.header.key, ...params, ...more }, take, stop.signal).catch((error) => {
      if (stop.signal.aborted) return;
      paths.refused = error instanceof Refusal || error instanceof Full ? error.message : words.failed;
      this.invalidate("answer");
    });
  }

  // Other sentences to choose from, once there is nothing else to wait for
  get offers() {
    const { found, values } = this;
    const isQuiet = found.done || found.refused !== "";
    if (values.against || !isQuiet) return [];
    return this.ask("whatif/swaps", {}, readOffers)?.offers ?? [];
  }

  // Parameters of a route by the names of what is chosen; what is empty is left out
  /** @param {string[]} names @param {Record<string, string>} [more] */
  given(names, more = {}) {
    const all = {
      with: this.own,
      sweep: "parts",
      ...Object.fromEntries(names.map((name) => [name, this.values[name]])),
      ...more,
    };
    return Object.fromEntries(Object.entries(all).filter(([, text]) => text !== ""));
  }

  /** @param {string} asked @param {Record<string, string>} params */
  streamParts(asked, params) {
    const stop = this.begin(asked);
    const found = (this.found = new PartsFound());
    found.isTaken = params.how === "patch";
    const begun = performance.now();
    const take = (/** @type {Uint8Array} */ message) => {
      found.take(message);
      if (!found.about) this.ms = performance.now() - begun;
      if (found === this.found) this.invalidate("answer");
    };
    stream("parts", { run: this.header.key, ...params }, take, stop.signal).catch((error) =>
      this.lost(error, stop, found),
    );
  }

  // The run of one part alone, before its turn
  /** @param {string} part @param {Record<string, string>} params */
  runPart(part, params) {
    const { found } = this;
    const alone = new PartsFound();
    const stop = /** @type {AbortController} */ (this.stop);
    stream("parts", { run: this.header.key, ...params, alone: part }, (message) => alone.take(message), stop.signal)
      .then(() => {
        found.add(alone);
        this.invalidate("answer");
      })
      .catch(() => {}); // its turn among all comes
  }

  // The sweep before it is no longer waited for.
  /** @param {string} asked */
  begin(asked) {
    this.stop?.abort();
    this.asked = asked;
    this.failed = false;
    clearTimeout(this.patience);
    return (this.stop = new AbortController());
  }

  /** @param {Error} error @param {AbortController} stop @param {{refused: string}} found */
  lost(error, stop, found) {
    if (stop.signal.aborted) return;
    if (error instanceof Refusal) found.refused = error.message;
    else {
      this.failed = true;
      this.failure = error instanceof Full ? error.message : words.failed;
      this.retry();
    }
    this.invalidate("answer");
  }

  sideParams() {
    const pick = this.pick;
    const { values } = this;
    const chosen = { ...values, with: this.own, pick: pick ? "on" : "off" };
    if (pick?.length === 3) Object.assign(chosen, { site: pick[0], layer: pick[1], head: pick[2] });
    if (pick?.length === 2) Object.assign(chosen, { query: pick[0], key: pick[1] });
    return Object.fromEntries(
      Object.entries(chosen)
        .map(([name, text]) => [name, String(text)])
        .filter(([, text]) => text !== ""),
    );
  }

  /** @param {string} asked @param {Record<string, string>} params */
  sweep(asked, params) {
    const stop = this.begin(asked);
    const swept = (this.swept = new Swept());
    const begun = (this.begun = performance.now());
    this.patience = setTimeout(() => this.invalidate("answer"), PATIENT + 10);
    sweep(
      Object.fromEntries(Object.entries(params).filter(([, text]) => text !== "")),
      (part) => {
        swept.take(part);
        if (swept.done) {
          this.ms = performance.now() - begun;
          clearTimeout(this.patience);
        }
        if (swept === this.swept) this.invalidate("answer");
      },
      stop.signal,
    ).catch((error) => this.lost(error, stop, swept));
  }

  retry() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      if (this.failed) this.asked = "";
      this.invalidate("answer");
    }, AGAIN);
  }

  // ---------------------------------------------------------------- drawing

  draw() {
    this.fetch();
    const { header: data, values, swept, side, palette, hasParts } = this;
    const isSet = hasParts && this.set.isOpen;
    if (!isSet) this.set.box.remove();
    else if (!this.set.box.parentNode) this.columns.before(this.set.box);
    this.opens.hidden = !data.parts;
    this.lines.hidden = isSet;
    this.set.of(data.key, data.title);
    this.columns.hidden = hasParts;
    if (!hasParts || isSet) this.board.box.remove();
    else if (!this.board.box.parentNode) this.columns.before(this.board.box);
    setText(this.explained, hasParts ? words.how_parts : words.how_text);
    this.root.classList.toggle("of-parts", hasParts && !values.edits);
    this.root.classList.toggle("of-paths", hasParts && values.draw === "paths" && values.how === "patch");
    this.middle.hidden = !side || Boolean(side.refused); // before anything is measured
    this.middle.style.visibility = this.fresh ? "" : "hidden"; // it belongs to the previous change
    // All that is measured, before anything is written
    const type = { unit: this.typeUnit, family: getComputedStyle(this.root).fontFamily };
    const width = Math.max(240, (hasParts ? this.board.left : this.left).clientWidth || 400);
    const pick = this.pick;
    const at = pick ? swept.indexOf(pick) : -1;
    /** @type {import("./types.js").Shown} */
    const shown = {
      data,
      values,
      swept,
      side,
      fresh: this.fresh,
      pick,
      at,
      place: this.place,
      palette: this.palette,
      type,
    };
    const seen = [data.key, side, palette, type.unit, width, innerHeight, this.isProjected, values.moved];
    this.part("rack", [data.key, values.edits, values.sweep, values.pick, values.against, values.other, side], () =>
      this.rack.draw(values, side?.edits ?? []),
    );
    this.part("lines", [...seen, this.fresh, values.at, values.sweep, values.against, values.other], () =>
      drawLines(this.lines, shown, (changes) => this.choose(changes)),
    );
    this.drawModel(pick);
    setText(this.problem, swept.refused || this.found.refused || this.refused || (this.failed ? this.failure : ""));
    this.problem.hidden = !this.problem.textContent;
    if (isSet) return this.drawSet(type);
    if (hasParts) return this.drawParts(width, type);
    this.sink.draw(this.place.id, labelsOf(data, this.place.id)[1]);
    const tall = innerHeight - (this.model.box.hidden ? 0 : STRIP * type.unit);
    this.pair.tall = tall;
    this.sweepPart.draw(shown, width, this.isProjected ? 0.56 * innerHeight : Math.min(320, 0.27 * tall));
    this.drawAnswer(pick, at);
    const site =
      side?.maps.find((m) => `${m.site}.${m.layer}.${m.head}` === values.moved)?.site ?? side?.maps[0]?.site ?? "";
    if (side && !side.refused)
      this.part("pair", [...seen, tall, site, pick !== null, isOther(values)], () =>
        this.pair.draw(side, values.moved, labelsOf(data, site), palette, pick !== null, isOther(values)),
      );
    this.drawFoot(pick, at);
    this.tables.hidden = !this.table;
    if (this.table) drawTables(this.tables, shown, this.pair.found);
  }

  /** @param {boolean} isOpen */
  openSet(isOpen) {
    this.set.isOpen = isOpen;
    this.stop?.abort(); // a set has the processor for itself; all that was found is kept
    this.asked = "";
    if (isOpen) this.choose({ sweep: "parts", group: "off", other: "", pick: "on" });
    this.drawNow();
  }

  // Of one pair of the set: the same room, with its two sentences
  /** @param {[string, string]} pair @param {string} id */
  linkOfPair([text, against], id) {
    const [kind, layer, head] = placeOf(id || "r0.0");
    const part = kind === "z" ? { layer: String(layer), head: String(head) } : { part: id };
    const { as: _, ...there } = this.header.link;
    return { ...there, text, against, sweep: "parts", how: "patch", measure: "ld", ...part };
  }

  /** @param {import("./types.js").Type} type */
  drawSet(type) {
    const width = Math.max(240, this.set.map.clientWidth || this.set.left.clientWidth || 400);
    const tall = innerHeight - (this.model.box.hidden ? 0 : STRIP_LINE * type.unit);
    this.set.draw({ key: this.header.key, palette: this.palette, type }, width, (this.isProjected ? 0.54 : 0.5) * tall);
    setText(this.proof, this.set.found.found.length ? `✓ ${words.proof}` : "");
    setText(this.facts, "");
    for (const part of [this.npz, this.swap, this.tabled, this.tables]) part.hidden = true;
  }

  /** @param {number} width @param {import("./types.js").Type} type */
  drawParts(width, type) {
    const { header: data, values, found, side, palette, isProjected } = this;
    const shown = {
      data,
      values,
      found,
      pick: this.shownPart,
      seconds: this.ms / 1000,
      side,
      palette,
      type,
      offers: this.offers,
      isProjected,
      notes: this.notes,
      tests: this.tests,
      paths: this.paths,
    };
    this.board.box.classList.toggle("empty", !found.known && this.problem.textContent !== "");
    const tall = innerHeight - (this.model.box.hidden ? 0 : STRIP_LINE * type.unit);
    this.board.draw(shown, width, (isProjected ? 0.54 : 0.48) * tall);
    setText(this.proof, found.exact.size ? `✓ ${words.proof}` : "");
    setText(this.facts, "");
    for (const part of [this.npz, this.swap]) part.hidden = true;
    this.tabled.hidden = !this.board.hasPaths;
    this.tabled.setAttribute("aria-pressed", String(this.table));
    this.tables.hidden = this.tabled.hidden || !this.table;
    if (!this.tables.hidden) this.tables.replaceChildren(this.board.paths.table());
    this.keep.disabled = !this.silenced;
  }

  partStatus() {
    const { found, shownPart: part } = this;
    const [kind, layer, at] = part ? placeOf(part) : ["r", 0, 0];
    const settled = Boolean(found.refused) || (found.about && this.fresh && (!part || found.exact.has(part)));
    return {
      run: this.header.key,
      swept: String(found.done),
      settled: String(Boolean(settled)),
      sweep: this.values.sweep,
      pick: !part ? "" : kind === "z" ? `${this.place.id}.${layer}.${at}` : part,
      change: part ? String(found.change(part, "ld") ?? "") : "",
      rows: String(found.exact.size),
      estimates: String(found.known !== null),
      paths: this.paths ? (this.paths.done ? String(this.paths.of) : this.paths.refused ? "refused" : "") : "",
      noted: String(this.notes !== null),
    };
  }

  status() {
    if (this.hasParts) return { ...this.partStatus(), set: this.set.state };
    const { header: data, values, swept, side, pick } = this;
    const at = pick ? swept.indexOf(pick) : -1;
    const settled = (swept.about || swept.refused) && this.fresh;
    return {
      run: data.key,
      waiting: this.isLate ? "1" : null,
      swept: String(swept.done),
      settled: String(Boolean(settled)),
      sweep: values.sweep,
      pick: pick ? pick.join(".") : "",
      change: at >= 0 ? String(swept.changes[at]) : "",
      answer: side && !side.refused ? String(side.words[0]?.[3] ?? side.distance ?? "") : "",
      rows: String(Object.keys(swept.rows).length),
      moved: side?.maps[0] ? `${side.maps[0].site}.${side.maps[0].layer}.${side.maps[0].head}` : "",
    };
  }

  // Whether the maps and bars on the screen still belong to the previous question.
  get isLate() {
    const { swept } = this;
    if (swept.refused || this.refused || this.failed) return false;
    return !this.fresh || !(swept.about || swept.done);
  }

  /** @param {Row | null} pick @param {number} at */
  drawAnswer(pick, at) {
    const { header: data, values, swept, side } = this;
    const turns = swept.part ? swept.turns : !sorts(data) && (data.kind === "encoder" || !data.writes);
    const labels = data.target ?? data.source;
    const position = values.at === "" ? labels.length - 1 : Number(values.at);
    const [over, note] = turns
      ? [words.vectors, data.classes ? words.number_note : words.vectors_note]
      : data.classes
        ? [
            words.decides,
            fill(data.classes.kind === "one" ? words.of_classes : words.of_several, { n: data.classes.n }),
          ]
        : [words.predicts, fill(words.after, { token: quoted(labels[position] ?? "") })];
    this.part("over", [over, note], () => this.over.replaceChildren(el("b", "", over), " ", el("span", "mute", note)));
    const changes = beside(data, values, side);
    const plain = !pick && !values.edits && !values.against && !values.other;
    /** @type {import("./answer.js").Fact} */
    const fact = {
      lead: lead(data, values, pick, changes),
      before: null,
      after: null,
      word: "",
      likeliest: null,
      other: null,
      plain,
      turn: null,
      marks: null,
      token: null,
      unlike: null,
      classes: data.classes !== null,
      number: null,
    };
    const row = at >= 0 ? swept.after[at] : null;
    const part = swept.part;
    // What the batch says of this row is there at once; of what changes beside it only the run itself knows.
    const byRow = row && part && (values.sweep === "patch" || (!values.edits && !values.other && !values.against));
    /** @type {import("./types.js").Word[]} */
    let found = [];
    if (turns) {
      fact.turn = byRow
        ? (swept.changes[at] ?? null)
        : plain
          ? 0
          : side?.distance == null
            ? null
            : degreesOf(side.distance);
      if (!plain && data.kind === "encoder" && !data.classes) fact.marks = rulerOf(this)?.marks ?? null;
      const turned = byRow ? row.turned : side?.turned;
      if (turned?.length) fact.token = placed(labels, turned.indexOf(Math.max(...turned)));
      const score = side?.words[0];
      if (this.fresh && score && score[2] !== null && score[3] !== null) fact.number = [score[1], score[2], score[3]];
      drawTurned(this.words, turned ?? [], labels, this.palette);
    } else if (byRow && part.probability_before && row.probability && row.ids && row.likeliest) {
      const [first, second] = part.watched;
      fact.word = swept.labels[first];
      fact.before = part.probability_before[0];
      fact.after = row.probability[0];
      fact.likeliest = [swept.labels[row.ids[0]], row.likeliest[0]];
      if (second !== undefined && second !== first)
        fact.other = [swept.labels[second], part.probability_before[1], row.probability[1]];
      const before = new Map((part.ids_before ?? []).map((id, i) => [id, part.likeliest_before?.[i] ?? null]));
      const after = new Map(row.ids.map((id, i) => [id, row.likeliest?.[i] ?? null]));
      for (const [i, id] of part.watched.entries()) {
        before.set(id, part.probability_before[i]);
        after.set(id, row.probability[i]);
      }
      found = [...new Set([...before.keys(), ...after.keys()])].map((id) => [
        id,
        swept.labels[id],
        before.get(id) ?? null,
        after.get(id) ?? null,
      ]);
      const exact = values.sweep !== "patch" && this.fresh && side?.shared && side.words.length ? side.words : found;
      // The sentence says what the bars beside it show, whichever of the two runs that is from.
      const shown = (/** @type {number} */ id) => exact.find(([known]) => known === id);
      const [own, other] = [shown(first), second === undefined ? undefined : shown(second)];
      if (own && own[2] !== null && own[3] !== null) [fact.before, fact.after] = [own[2], own[3]];
      if (fact.other && other && other[2] !== null && other[3] !== null) fact.other = [other[1], other[2], other[3]];
      const best = exact.reduce((top, word) => ((word[3] ?? -1) > (top[3] ?? -1) ? word : top), exact[0]);
      if (best[3] !== null) fact.likeliest = [best[1], best[3]];
      drawWords(this.words, exact, this.palette, [part.likeliest_before?.at(-1), row.likeliest.at(-1)]);
    } else if (side?.likeliest) {
      found = side.words;
      const [a, b] = side.likeliest;
      fact.word = a[1];
      fact.before = a[2];
      fact.after = a[3];
      fact.likeliest = b[3] === null ? null : [b[1], b[3]];
      if (!side.shared) fact.unlike = [a, b];
      drawWords(this.words, found, this.palette);
    }
    const isWaiting = !byRow && !this.fresh; // the numbers belong to the previous change
    this.right.classList.toggle("waiting", isWaiting);
    this.fact.replaceChildren(...(isWaiting ? ["…"] : sentence(fact)));
    setText(this.scale, turns ? words.turned : words.outlined);
    this.scale.hidden = !this.words.childElementCount; // what could not be run has no bars to read
    setText(
      this.said,
      side && !side.refused && (this.fresh || !byRow) && values.sweep !== "patch"
        ? beneath(side, Boolean(pick), values.edits.includes("nocausal"))
        : values.sweep === "patch" && row?.kl !== undefined
          ? sayKl(row.kl)
          : "",
    );
  }

  /** @param {Row | null} pick @param {number} at */
  drawFoot(pick, at) {
    const { swept, side, values, header: data } = this;
    const row = at >= 0 ? swept.after[at] : null;
    const same = this.fresh && side && pick && row && values.sweep !== "patch" && !values.against && !values.other;
    const alone = side?.words.find(([id]) => id === swept.part?.watched[0])?.[3];
    const one = swept.turns ? (values.edits ? undefined : side?.distance) : alone;
    const batch = swept.turns ? row?.distance : row?.probability?.[0];
    let proof = `✓ ${words.proof}`;
    if (same && one !== undefined && one !== null && batch !== undefined) {
      const d = Math.abs(one - batch);
      proof += `   ${d <= 1e-4 ? "✓ " : ""}${fill(d <= 1e-4 ? words.equals : words.differs, { d: d.toExponential(0) })}`;
      this.show({ batch: d });
    }
    setText(this.proof, proof);
    const n = Object.keys(swept.rows).length;
    setText(
      this.facts,
      swept.refused
        ? ""
        : swept.done
          ? fill(words.swept, { of: swept.of, ms: Math.round(this.ms), device: data.device, dtype: data.dtype })
          : swept.of
            ? fill(words.sweeping, { n, of: swept.of })
            : words.loading,
    );
    this.proof.hidden = !swept.done;
    this.npz.hidden = !this.fresh || Boolean(side?.refused) || values.sweep === "patch";
    this.npz.href = new URL(
      `headlight/whatif/npz?${new URLSearchParams({ run: data.key, ...this.sideParams() })}`,
      document.baseURI,
    ).href;
    this.keep.disabled = !(this.fresh && side?.pick);
    const theirs =
      this.fresh && side && !side.refused && (pick || values.edits || values.against || values.other)
        ? side.there
        : null;
    this.swap.hidden = !theirs;
    if (theirs) this.swap.href = linkTo(spoken(swapped(values, theirs, linkTo(data.link))));
    this.tabled.hidden = false;
    this.tabled.setAttribute("aria-pressed", String(this.table));
  }

  // On the map of all parts: the edit that silences the chosen head; "" for what no edit says
  get silenced() {
    const { how } = this.values;
    const [kind, layer, head] = placeOf(this.shownPart ?? "r0.0");
    if (kind !== "z" || how === "patch") return "";
    return `ablate_${this.place.stack}_L${layer}_H${head}${how === "mean" ? "_mean" : ""}`;
  }

  // The pick becomes a change that stays; the changed run is then beside the plain one.
  hold() {
    const pick = this.hasParts ? this.silenced : this.side?.pick;
    if (!pick) return;
    this.choose({
      edits: added(this.values.edits, pick),
      layer: "",
      head: "",
      query: "",
      key: "",
      pick: "off",
      moved: "",
    });
  }

  showTable() {
    this.table = !this.table;
    this.drawNow();
    if (this.table) this.tables.scrollIntoView({ block: "nearest" });
  }

  picture() {
    if (this.set.isOpen && this.hasParts) return rows([this.set.left, this.set.results]);
    if (this.hasParts) return rows([this.lines, this.board.left, this.board.right]);
    return rows([this.lines, this.right, this.left, this.middle]);
  }

  about() {
    if (this.set.isOpen && this.hasParts) return this.set.about();
    if (this.hasParts) return this.aboutParts();
    const { swept, side } = this;
    const sentence_ = saidIn(this.fact);
    const tables = [swept.about?.table, ...(side?.tables ?? [])].filter((t) => t !== undefined);
    const snippets = [swept.about?.snippet, side && this.values.sweep !== "patch" ? side.snippet : ""].filter(Boolean);
    return {
      title: sentence_,
      alt: fill(words.alt, { heading: this.sweepPart.heading.textContent, sentence: sentence_ }),
      caption: (this.values.sweep === "patch" ? swept.about?.caption : side?.caption) ?? "",
      snippet: snippets.join("\n\n"),
      name: swept.about?.name ?? "headlight-whatif",
      tables: /** @type {[string, string, string][]} */ (tables),
    };
  }

  aboutParts() {
    const { found, header: data, tests, values } = this;
    const paths = this.board.hasPaths ? this.paths : null;
    const shown = [found.about, paths?.about, values.low === "tests" ? tests : null].filter((one) => one?.table);
    const title = saidIn(this.board.fact);
    return {
      title,
      alt: fill(words.alt, { heading: words.heading_patch, sentence: title }),
      caption: found.about?.caption ?? "",
      snippet: [...new Set(shown.map((one) => one?.snippet))].join("\n\n"),
      name: paths?.about?.name ?? found.about?.name ?? "headlight-whatif",
      tables: /** @type {[string, string, string][]} */ (shown.map((one) => one?.table)),
      arrays: arraysOf(found, data.source),
    };
  }

  // ---------------------------------------------------------------- what the visitor does

  // A head is chosen as in every room; an MLP, or a word, by itself.
  /** @param {string} id */
  takePart(id) {
    const [kind, layer, at] = placeOf(id);
    this.selection.choose(
      kind === "z"
        ? { site: "", layer: String(layer), head: String(at), part: "", pick: "on" }
        : { part: id, pick: "on" },
    );
    this.drawNow();
    this.announce(this.board.said(id).join(""));
  }

  /** @param {Row} place */
  take(place) {
    this.selection.choose(
      place.length === 3
        ? {
            site: this.header.places.length > 1 ? place[0] : "",
            layer: String(place[1]),
            head: String(place[2]),
            pick: "on",
            moved: "",
          }
        : { query: String(place[0]), key: String(place[1]), pick: "on", moved: "" },
    );
    this.drawNow();
    const at = this.swept.indexOf(place);
    if (at >= 0)
      this.announce(
        fill(words.chosen, {
          place: rowName(this.header, this.values, place),
          change: this.swept.turns ? angle(this.swept.changes[at] ?? 0) : points(this.swept.changes[at] ?? 0),
        }),
      );
  }

  keys = {
    u: () => this.rack.undo.click(),
    g: () =>
      this.hasParts &&
      this.values.how === "patch" &&
      this.choose({ draw: this.values.draw === "paths" ? "map" : "paths" }),
    m: () => this.hasParts && this.choose({ measure: { ld: "lp", lp: "p", p: "ld" }[this.values.measure] ?? "ld" }),
    // Elsewhere L leads to the lessons
    s: () =>
      this.hasParts
        ? this.choose({ how: this.values.how === "zero" && this.values.against ? "patch" : "zero" })
        : this.choose({ sweep: this.values.sweep === "looks" ? "heads" : "looks", pick: "on" }),
  };

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    if (this.hasParts && this.set.isOpen) return this.set.move(down, right);
    if (this.hasParts) return this.board.move(down, right);
    return this.sweepPart.move([down, right]);
  }

  // The order of strength is known with all numbers.
  get isComing() {
    const { found, swept } = this;
    if (!this.hasParts) return !this.pick && !swept.done && !swept.refused;
    return !this.set.isOpen && !found.known && !found.refused;
  }

  // The next in order of strength
  /** @param {number} by */
  turn(by) {
    if (this.hasParts && this.set.isOpen) return this.set.next(by);
    if (this.hasParts) return this.board.next(by);
    this.sweepPart.next(by);
  }

  get headGrid() {
    const { layers, heads } = this.place;
    return { layers, heads };
  }

  // The whole model at the word whose answer is looked at, and the layer of the head that is changed
  /** @param {Row | null} pick */
  drawModel(pick) {
    const { header: data, values } = this;
    const { id, stack } = this.place;
    const at = values.at === "" ? undefined : Number(values.at);
    const isOne = values.sweep === "looks" && values.only === "one" && values.layer !== "";
    const part = this.hasParts && this.shownPart;
    const layer = part ? placeOf(part)[1] : pick?.length === 3 ? pick[1] : isOne ? Number(values.layer) : null;
    const labels = data.target ? { encoder: data.source, decoder: data.target } : { [stack]: data.source };
    const isRead = stack === "encoder" && data.target !== null;
    this.model.draw({
      stack: pick?.length === 3 ? stackOf(pick[0]) : stackOf(id),
      layer,
      query: isRead ? undefined : at,
      written: at,
      labels,
    });
  }

  // The head stays, and the looks of one head are then those of its place in the other layer.
  /** @param {number} layer @param {string} stack */
  chooseLayer(layer, stack) {
    const { sweep: what, only, head } = this.values;
    const { pick, shownPart: part } = this;
    if (this.hasParts) {
      const [kind, , at] = placeOf(part ?? idOf("z", layer, Number(head)));
      return this.takePart(idOf(kind, layer, at));
    }
    if (what === "looks" && only === "one")
      return this.choose({ site: siteOf(stack, this.place.id), layer: String(layer) });
    if (what === "looks") this.choose({ sweep: "heads" });
    this.take([siteOf(stack, this.place.id), layer, pick?.length === 3 ? pick[2] : Number(head)]);
  }

  /** @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    if (this.values.sweep === "looks") this.choose({ sweep: "heads" });
    if (this.hasParts) this.takePart(idOf("z", layer, head));
    else this.take([this.place.id, layer, head]);
  }
}

export default WhatIf;

/** @param {Uint8Array} bytes @returns {{offers: import("./types.js").Offer[]}} */
const readOffers = (bytes) => /** @type {any} */ (unpack(bytes)[0]);

/** @param {Uint8Array} bytes @returns {import("./low.js").Tests} */
const readTests = (bytes) => /** @type {any} */ (unpack(bytes)[0]);

/** @param {Uint8Array} bytes @returns {Side} */
function readSide(bytes) {
  const [header, body] = unpack(bytes);
  return { ...header, body };
}
