// Generate: one column for each token, and the words that were taken as a path through them.

import { HeadChooser } from "../../../kit/browser/chooser.js";
import { colours } from "../../../kit/browser/colours.js";
import { cover } from "../../../kit/browser/cover.js";
import {
  add,
  button,
  choice,
  el,
  fill,
  fixed,
  focusable,
  number,
  selectBox,
  setAll,
  setText,
} from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { headMeasures } from "../../../kit/browser/head_measures.js";
import { form, pointed } from "../../../kit/browser/language.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { whole } from "../../../kit/browser/selection.js";
import { linkTo } from "../../../kit/browser/share.js";
import { SinkLine, toneWithout, topWithout } from "../../../kit/browser/sink.js";
import { Stage } from "../../../kit/browser/stage.js";
import { isRightToLeft } from "../../../kit/browser/direction.js";
import { Asks } from "./asks.js";
import { OWN, bits, chances, known, look } from "./chances.js";
import { chips } from "./chips.js";
import { BRANCHES, PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Controls } from "./controls.js";
import { lossOf, saidFact, sayFact } from "./fact.js";
import { repeats } from "./loop.js";
import { Cache, bars, layers } from "./panel.js";
import { common, goesOn, grown, left, read, readAll, written, writtenAll } from "./paths.js";
import { Picture } from "./picture.js";
import { bringRing, strips } from "./strips.js";
import { aboutOf, beamsCsv, branchesCsv, drawTables, wordsCsv } from "./tables.js";
import { treeJson } from "./tree.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Node} TokenNode */

const DIGITS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const [MOMENT, LAST] = [0.7, 2.5]; // seconds of a word in a film, and of the last
const MOST_MOMENTS = 100; // of longer writing every second word or fewer
const LONG_SAID = 30; // letters
const NARROW = 700; // pixels: below, the open column has no list, which comes as bars
const [LOWEST, HIGHEST] = [300, 900]; // pixels: of the picture
const EDGE = 8; // pixels of the page below the room, before the scale of its type

// Pixels by which all elements around one are scrolled
/** @param {Element} element */
function scrolled(element) {
  let sum = 0;
  for (let at = /** @type {Element | null} */ (element); at; ) {
    sum += at.scrollTop;
    const root = at.getRootNode();
    at = at.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
  }
  return sum;
}

/** @extends {Stage<Header, import("./types.js").Palette>} */
class Generate extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = { column: ".main, .wrote, .shown, .bars, .layers, .tables", bar: ".main, .cache" };

  /** @type {Scene | null} */
  scene = null;
  candidate = -1; // of the open column's words, which arrows have chosen
  isRevealed = false; // what comes, where it is to be said first
  isUnfolded = false; // the given text, into columns
  hands = new Set(); // paths whose last word a hand took
  /** @type {Map<number, string>} Tokens of a conversation's form, by their place, and whose turn begins there */
  marks = new Map();
  /** @type {{path: number[], writing: object | null, n: number, names: string[], counted: string[]}} The names of all tokens of a path */
  named = { path: [], writing: null, n: -1, names: [], counted: [] };
  sentence = "";
  known = { text: "", path: /** @type {number[]} */ ([]) };
  guideShown = false;
  tableShown = false;
  stepsShown = Infinity; // of beams, in a film
  layersShown = false; // every layer of the table, also of many
  asks = new Asks(this);

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.leaving.addEventListener("abort", () => {
      cancelAnimationFrame(this.settling);
      this.asks.destroy();
    });
    this.top = add(root, "div", "top");
    this.strips = add(this.top, "div", "strips");
    this.sink = new SinkLine(this);
    this.top.append(this.sink.line);
    const main = add(root, "div", "main former");
    this.fact = add(main, "div", "fact");
    this.fact.setAttribute("aria-live", "polite");
    this.chooser = new HeadChooser(this, () => this.heads);
    this.controls = new Controls(root, {
      choose: (changes) => this.choose(changes),
      set: (changes) =>
        this.choose({
          ...(this.values.how === "sample" ? {} : { how: "sample", page: "columns" }),
          show: "set", // a setting that is moved shows what is drawn from
          ...changes,
        }),
      how: (how) =>
        this.choose({
          how,
          page: how === "beam" ? "beams" : this.values.page === "beams" ? "columns" : this.values.page,
        }),
      step: (by) => this.asks.step(by),
      play: () => this.asks.play(),
      again: () => this.drawAgain(),
      begin: () => this.beginAgain(),
      page: (page) => this.choose({ page }),
    });
    this.notice = add(root, "p", "notice");
    const looking = add(root, "div", "wrote");
    this.chips = add(looking, "span", "chips");
    this.mean = button(words.strongest, "quiet", () => this.choose({ layer: "", head: "" }), words.strongest_help);
    const with_ = add(looking, "span", "looking");
    // The written words as part of the text, in another room and from there in every room
    this.onward = selectBox(
      words.open_in,
      [
        ["", words.open_in],
        ["explore", words.open_explore],
        ["whatif", words.open_whatif],
      ],
      "",
      (room) => {
        this.onward.value = "";
        if (room) this.carry(room);
      },
    );
    this.onward.title = words.onward_help;
    with_.append(this.mean, this.chooser.element, this.onward);
    this.shownBox = add(root, "section", "shown");
    this.figure = focusable(add(this.shownBox, "div", "figure"), "group", `${words.figure}. ${words.figure_keys}`);
    this.svg = draw(this.figure, "svg", { role: "img" });
    /** @param {() => void} act */
    const within = (act) => {
      this.figure.focus({ preventScroll: true });
      act();
    };
    /** @type {import("./types.js").Acts} What a word or a column does */
    this.does = {
      focus: (at) => this.pointAt(at),
      take: (at, id) => this.take(at, id),
      go: (path, f) => this.go(path, f),
      drop: (path) => this.drop(path),
      unfold: () => this.foldOut(),
      reveal: () => this.reveal(),
    };
    this.drawing = new Picture(this.svg, {
      ...this.does,
      focus: (at) => within(() => this.pointAt(at)),
      take: (at, id) => within(() => this.take(at, id)),
      unfold: () => within(() => this.foldOut()),
    });
    this.legend = add(this.shownBox, "p", "legend");
    this.said = add(this.legend, "span", "said");
    this.legendWords = add(this.legend, "span");
    this.drawnFrom = add(this.legend, "span", "drawn-from");
    this.ownOrSet = choice(
      words.own_or_set,
      [
        ["own", words.own],
        ["set", ""],
      ],
      "own",
      (show) => this.choose({ show }),
    );
    this.legend.append(this.ownOrSet);
    this.bars = add(root, "div", "bars");
    this.layers = add(root, "div", "layers");
    this.cache = new Cache(add(root, "div", "cache"), {
      choose: (changes) => this.choose(changes),
      time: () => this.asks.time(),
    });
    this.predictButton = this.button(this.acts, words.predict, () => this.togglePredict(), words.predict_help);
    this.guideButton = this.button(this.acts, words.guide, () => this.unfold("guide"));
    this.tableButton = this.button(this.acts, words.table, () => this.unfold("table"));
    root.append(this.foot);
    this.guide = add(root, "p", "guide");
    this.guide.textContent = words.guide_text;
    this.table = add(root, "div", "tables");
  }

  /** @param {{isNew: boolean, byLink: boolean}} news */
  received({ isNew, byLink }) {
    const { key } = this.header;
    if (isNew || byLink) this.asks.stop();
    this.marks = new Map(this.header.marks);
    if (isNew) {
      this.asks.begin(key);
      this.hands.clear();
      this.isRevealed = false;
      this.say("");
    }
    this.asks.follow();
  }

  // what is chosen

  get path() {
    const text = this.values.path ?? "";
    if (this.known.text !== text) this.known = { text, path: read(text) };
    return this.known.path;
  }

  get by() {
    const { layer, head } = this.values;
    return layer !== "" && head !== "" ? { layer: Number(layer), head: Number(head) } : null;
  }

  /** @param {Record<string, string>} changes @param {"choice" | "rule"} [kind] */
  choose(changes, kind) {
    if (changes.how && changes.how !== this.values.how) this.asks.stop();
    if (changes.f !== undefined || changes.path !== undefined) [this.candidate, this.isRevealed] = [-1, false];
    super.choose(changes, kind);
    this.asks.follow();
  }

  // The same for words that come, which bring their columns with them
  /** @param {Record<string, string>} changes @param {"choice" | "rule"} kind */
  put(changes, kind) {
    super.choose(changes, kind);
  }

  /** @param {string} room */
  async carry(room) {
    this.asks.stop();
    const said = await this.asks.text();
    if (said) location.assign(linkTo({ ...this.header.link, ...said, view: room }));
  }

  // Another path on the screen; the one that is left becomes a line below it. False where there are too many lines.
  /** @param {number[]} path @param {number | null} at how many tokens of it stand before the column to look at */
  go(path, at) {
    this.asks.stop();
    const beam = this.values.how === "beam" ? this.asks.extended(path) : path;
    const isBeam = goesOn(beam, path); // words that no beam has are taken by themselves
    const to = isBeam ? beam : path;
    const known = readAll(this.values.other);
    const others = isBeam && this.values.how === "beam" ? known : left(known, this.path, to);
    if (others.length > BRANCHES) {
      this.say(fill(words.too_many_lines, { n: BRANCHES + 1 }));
      return false;
    }
    this.say("");
    this.choose({
      ...(isBeam || this.values.how !== "beam" ? {} : { how: "sample", page: "columns" }),
      path: written(to),
      other: writtenAll(others),
      f: at === null ? "" : String(this.asks.writing.prompt.length - 1 + at),
    });
    this.drawNow();
    return true;
  }

  // A word by hand: the text continues from there, to the length of the line that was left.
  /** @param {number} at @param {number} id */
  take(at, id) {
    const column = this.scene?.columns[at];
    if (!column) return;
    if (column.at < 0 || id === column.take) return this.focusOn(at);
    const before = this.path.slice(0, column.at);
    const rest = this.path.length - before.length - 1;
    const path = [...before, id];
    this.hands.add(written(path));
    const known = readAll(this.values.other).find((other) => goesOn(other, path));
    if (!this.go(known ?? path, column.take === null ? null : column.at)) return;
    if (!known && this.values.how !== "beam") this.asks.goOn(rest > 0 ? rest + 1 : 1, false, id);
  }

  // A line goes from the screen.
  /** @param {number[]} path */
  drop(path) {
    const name = written(path);
    this.choose({ other: writtenAll(readAll(this.values.other).filter((other) => written(other) !== name)) });
    this.drawNow();
  }

  // The same text once more, with the next seed
  drawAgain() {
    this.asks.stop();
    const others = left(readAll(this.values.other), this.path, []);
    if (others.length > BRANCHES) return this.say(fill(words.too_many_lines, { n: BRANCHES + 1 }));
    const n = Math.max(this.path.length, 1);
    this.choose({
      how: "sample",
      page: "columns",
      seed: String(whole(this.values.seed, 1) + 1),
      path: "",
      other: writtenAll(others),
      n: "0",
      f: "",
    });
    this.drawNow();
    this.asks.goOn(n, true);
  }

  beginAgain() {
    this.choose({ n: "0" });
    this.go([], null);
  }

  foldOut() {
    this.isUnfolded = !this.isUnfolded;
    const { scene } = this;
    if (!this.isUnfolded && scene?.columns[scene.focus].given)
      this.focusOn(scene.columns.findIndex(({ given }) => !given));
    this.invalidate("selection");
  }

  togglePredict() {
    this.choose({ predict: this.values.predict === "on" ? "off" : "on" });
    this.isRevealed = false;
  }

  // The words that open the room are written: it rests on the boldest of them, or where greedy begins to repeat itself.
  async opened() {
    this.drawNow();
    const { path } = this;
    const again = this.values.how === "greedy" ? repeats(path) : null;
    const found = again ? await this.copied(again) : this.boldest();
    if (found !== null && path === this.path && !this.asks.isPlaying) this.choose({ f: String(found) }, "rule");
  }

  // Beams are there: the room rests where the first of them leaves the best one.
  forked() {
    const finished = this.asks.steps().at(-1)?.finished ?? [];
    if (finished.length < 2) return;
    const shared = Math.min(...finished.map(([ids]) => common(ids, finished[0][0])));
    this.choose({ f: String(this.asks.writing.prompt.length - 1 + shared) }, "rule");
  }

  // The word that was drawn against the largest odds, by the position that was read before it
  boldest() {
    let best = null;
    let most = -Infinity;
    for (const {
      given,
      known: own,
      own: { probs },
      node,
    } of this.scene?.columns ?? []) {
      const bold = given || !own ? -Infinity : Math.log(probs[0]) - Math.log(own.prob);
      if (bold > most) [best, most] = [node.position, bold];
    }
    return best;
  }

  // The word of a second copy that the strongest look into the first one wrote, by the position that was read before it
  /** @param {{first: number, second: number, length: number}} again */
  async copied({ first, second, length }) {
    const from = this.asks.writing.prompt.length;
    const told = await this.asks.toldOf(written(this.path));
    const within = (/** @type {number} */ position, /** @type {number} */ start) =>
      position >= from + start && position < from + start + length;
    let best = from + second;
    let most = -Infinity;
    for (const { position, looks } of told) {
      const look = looks.find(({ key }) => this.isFinding(key));
      if (look && within(position + 1, second) && within(look.key, first) && look.adds > most)
        [best, most] = [position, look.adds];
    }
    return best;
  }

  // Whether a look at a token says something: not at one that heads rest on, nor at a mark of a conversation
  /** @param {number} key */
  isFinding(key) {
    return (
      Boolean(this.header.source) || !((this.sink.found?.is && key === this.sink.found.key) || this.marks.has(key))
    );
  }

  /** @param {number} at @param {"choice" | "rule"} [kind] */
  focusOn(at, kind) {
    const all = this.scene?.columns ?? [];
    const to = Math.max(0, Math.min(all.length - 1, at));
    if (!all[to]) return;
    this.choose({ f: to === all.length - 1 && !this.scene?.hides ? "" : String(all[to].node.position) }, kind);
    this.drawNow();
  }

  // A word that is clicked: an answer to what a lesson asks, or the column to look at
  /** @param {number} at */
  pointAt(at) {
    const column = this.scene?.columns[at];
    if (column && cover.hides("bar") && cover.point(column.node.position + 1)) return;
    this.focusOn(at);
  }

  get isLast() {
    return !this.scene || this.scene.focus === this.scene.columns.length - 1;
  }

  /** @param {number} by @param {"choice" | "rule"} [kind] */
  move(by, kind) {
    if (this.scene && this.asks.writing.isOpen) {
      const from = this.scene.focus + by;
      const position = this.scene.columns[0].node.position + Math.max(0, from);
      if (this.scene.hides && by > 0) {
        this.choose({ f: String(position) }, kind);
        this.drawNow();
      } else this.focusOn(from, kind);
    }
  }

  // A long sentence has the place of the legend.
  /** @param {string} text */
  say(text) {
    this.sentence = text;
    setText(this.said, text);
    this.legend.classList.toggle("saying", text.length > LONG_SAID);
    this.announce(text);
    this.invalidate("answer");
  }

  // what is drawn

  /** @returns {Column[]} */
  columns() {
    const { header, path } = this;
    const { writing } = this.asks;
    const { how } = this.values;
    const settings = how === "sample" ? this.settings : OWN;
    const name = Object.values(settings).join(" ");
    if (name !== this.setBy) [this.setBy, this.set] = [name, new WeakMap()];
    /** @type {Column[]} */
    const found = [];
    /** @param {TokenNode} node @param {number} at @param {number | null} take @param {boolean} given */
    const add = (node, at, take, given) => {
      const own = this.own(node);
      /** @type {import("./types.js").Chances | undefined} */
      let made = given || settings === OWN ? own : this.set.get(node);
      const column = {
        node,
        at,
        take,
        given,
        own,
        read: this.nameAt(node.position),
        known: take === null ? null : known(node, take, header.vocab, own),
      };
      // Computed for the columns that are in sight: a slider has one frame for all of them.
      found.push(
        Object.defineProperty(/** @type {Column} */ (column), "shown", {
          get: () => {
            if (!made) this.set.set(node, (made = chances(node, settings, header.vocab)));
            return made;
          },
        }),
      );
    };
    writing.given.forEach((node, i) => {
      const at = i - (writing.given.length - 1);
      if (at < 0) add(node, at, writing.prompt[node.position + 1], true);
      else add(node, 0, path[0] ?? null, false);
    });
    for (const [i, node] of writing.along(path).entries()) {
      if (!node) break;
      add(node, i + 1, path[i + 1] ?? null, false);
    }
    return found;
  }

  /** @type {WeakMap<TokenNode, import("./types.js").Chances>} */
  ownChances = new WeakMap();
  /** @param {TokenNode} node */
  own(node) {
    const found = this.ownChances.get(node) ?? chances(node, OWN, this.header.vocab);
    this.ownChances.set(node, found);
    return found;
  }

  /** @type {WeakMap<TokenNode, import("./types.js").Chances>} What the settings make of a column, while they stay */
  set = new WeakMap();
  setBy = "";

  // How far the chances of a column are from adding up to 1; once for each, since a slider has one frame for all of them
  /** @type {WeakMap<import("./types.js").Chances, number>} */
  sums = new WeakMap();
  /** @param {import("./types.js").Chances} own */
  off(own) {
    const found = this.sums.get(own) ?? Math.abs(own.probs.reduce((a, b) => a + b, own.rest) - 1);
    this.sums.set(own, found);
    return found;
  }

  get settings() {
    return {
      temperature: Number(this.values.t),
      topK: whole(this.values.k),
      topP: Number(this.values.p),
      minP: Number(this.values.minp),
    };
  }

  // Names of all tokens of the text on the screen: pieces of words begin with a hyphen, and a mark says whose turn begins
  get names() {
    const { path, named } = this;
    const { writing } = this.asks;
    const n = writing.labels.size + writing.names.length;
    if (named.path !== path || named.writing !== writing || named.n !== n) {
      const ids = [...writing.prompt, ...path];
      const names = ids.map((id, position) => {
        const mark = this.marks.get(position);
        if (mark !== undefined) return mark || words.end_mark;
        const label = writing.names[position] ?? writing.label(id);
        return position < writing.prompt.length && writing.ends.has(id)
          ? label
          : writing.named(id, position ? this.labelAt(position - 1) : null, label);
      });
      const counted = names.map((name, position) =>
        this.marks.has(position) || (position >= writing.prompt.length && writing.ends.has(ids[position]))
          ? "<>"
          : name,
      );
      this.named = { path, writing, n, names, counted };
    }
    return this.named.names;
  }

  // The label of a token that is part of a text, and no mark
  /** @param {number} position */
  labelAt(position) {
    const { names, prompt, labels } = this.asks.writing;
    if (this.marks.has(position)) return null;
    const id = position < prompt.length ? prompt[position] : this.path[position - prompt.length];
    return names[position] ?? labels.get(id) ?? null;
  }

  /** @param {number} position */
  nameAt(position) {
    return this.names[position];
  }

  /** @param {Set<import("../../../kit/browser/stage.js").Stale>} stale */
  draw(stale) {
    const { values, header } = this;
    const { writing } = this.asks;
    if (stale.has("cover") || stale.has("theme")) this.forget();
    const sizes = this.measured(); // before anything is written: to ask the page in the middle of a drawing costs a layout each time
    if (stale.has("theme")) this.root.style.setProperty("--bar", this.palette.ramp[3]);
    this.controls.draw(values, this.asks.isPlaying, this.path.length > 0);
    const isUnread = !writing.isOpen && !this.scene;
    this.root.classList.toggle("unread", isUnread);
    this.files.box.hidden = isUnread;
    if (!writing.isOpen) return;
    let all = this.columns();
    const wanted = values.f === "" ? all.length - 1 : all.findIndex(({ node }) => node.position === Number(values.f));
    const focus = wanted < 0 ? all.length - 1 : wanted;
    const steps = values.how === "beam" ? this.asks.steps().slice(0, this.stepsShown) : [];
    const hides = values.predict === "on" && !this.isRevealed && !this.isShown;
    // The word of the open column is hidden as well, and all to the right, which would say it
    if (hides)
      all = [
        ...all.slice(0, focus),
        /** @type {Column} */ (Object.create(all[focus], { take: { value: null }, known: { value: null } })),
      ];
    const column = all[focus];
    const { path } = this;
    const page = /** @type {import("./types.js").Page} */ (
      values.page === "beams" && values.how !== "beam" ? "columns" : values.page
    );
    if (!header.source) this.sink.draw("decoder", writing.names);
    const resting = !this.asks.isPlaying && !this.isShown && path.length > 0 && writing.knows(path, this.by);
    const wrote = resting ? this.asks.wrote(column) : null;
    /** @type {Scene} */
    const scene = (this.scene = {
      header,
      columns: all,
      focus,
      how: values.how,
      settings: this.settings,
      seed: whole(values.seed, 1),
      by: this.by,
      cached: values.cache !== "without",
      nBeams: whole(values.beams, 3),
      grown: grown(steps),
      winner: path,
      path,
      others: hides ? [] : values.how === "beam" ? this.beams(steps) : readAll(values.other),
      bytes: writing.bytes,
      losses: writing.losses,
      prompt: writing.prompt,
      cost: this.asks.cost,
      timing: this.asks.timing,
      said: this.sentence,
      lens: page === "layers" && !this.isShown ? this.asks.lens(column) : null,
      page,
      playing: this.asks.isPlaying,
      unfolded: this.isUnfolded || column.given,
      own: values.show === "own" || values.how !== "sample",
      hides,
      candidate: this.candidate,
      wrote,
      look: null,
      looks: [],
      layers: page === "layers" ? this.asks.layersFor(all, focus) : null,
      loop: values.how === "greedy" ? this.loop(path) : new Map(),
      copy: values.how === "greedy" ? this.copyOf(all, column) : null,
      beams: values.how === "beam" && !hides ? this.compared(steps, all, focus) : null,
      marks: this.marks,
      names: this.names,
      counted: hides ? this.named.counted.slice(0, column.node.position + 1) : this.named.counted,
      given: writing.names,
      named: (node, id) => writing.named(id, this.labelAt(node.position)),
      flush: (ids) => writing.flush(ids),
      hand: column.take !== null && this.hands.has(written(path.slice(0, column.at + 1))),
      scoreOf: (of) => this.scoreOf(of),
      takenElsewhere: (of) => this.takenElsewhere(of),
      label: (id) => writing.label(id),
      nameAt: (position) => this.nameAt(position),
      sink: this.sink.found?.is ? this.sink.found.key : null,
    });
    scene.looks = hides || !wrote ? [] : wrote.looks.filter(({ key }) => this.isFinding(key));
    scene.look = hides ? null : this.lookOf(scene);
    const complete = writing.knows(path, this.by);
    const text = [header.key, values.path, focus, all.length, values.layer, values.head, complete, hides].join(" ");
    // The text as a line of its own: of a source, one that is read from the right, and where a lesson asks for one of its words
    const isLine = Boolean(header.source || cover.now) || isRightToLeft(writing.names);
    this.top.hidden = !isLine;
    if (isLine)
      this.part("strips", [text, this.sink.key], () =>
        strips(
          this.strips,
          scene,
          (v, at, row) => this.shadeOf(v, at, row),
          (at) => this.focusOn(at),
        ),
      );
    else this.strips.replaceChildren();
    this.drawing.draw(scene, sizes);
    this.height = sizes.height;
    this.svg.setAttribute("aria-label", saidFact(scene));
    const { how, t, k, p, minp, other, cache, predict } = values;
    const said = [
      text,
      page,
      how,
      t,
      k,
      p,
      minp,
      other,
      cache,
      predict,
      values.show,
      wrote,
      scene.beams?.greedy,
      scene.look?.head,
      scene.look?.layer,
      Boolean(scene.layers),
      scene.cost,
      scene.hand,
      scene.sink,
    ];
    this.part("fact", said, () => sayFact(this.fact, scene));
    this.part("chips", said, () =>
      chips(this.chips, scene, (by) =>
        this.choose(by ? { layer: String(by.layer), head: String(by.head) } : { layer: "", head: "" }),
      ),
    );
    setAll(this.mean, { "aria-pressed": String(!this.by), "aria-disabled": String(!this.by) });
    this.chooser.draw();
    this.drawLegend(scene);
    this.drawNotice(scene);
    this.layers.hidden = page !== "layers";
    const fold = {
      isWhole: this.layersShown,
      toggle: () => {
        this.layersShown = !this.layersShown;
        this.invalidate("selection");
      },
    };
    if (page === "layers")
      this.part("layers", [text, Boolean(scene.lens), fold.isWhole], () =>
        layers(this.layers, scene, (v) => this.shade(v), fold),
      );
    this.bars.hidden = !sizes.narrow || page !== "columns" || hides;
    if (!this.bars.hidden) bars(this.bars, scene, this.does);
    this.cache.box.hidden = page !== "cache";
    this.cache.draw(scene);
    this.drawFoot(scene);
    this.guide.hidden = !this.guideShown;
    this.table.hidden = !this.tableShown || hides;
    if (this.tableShown && !hides) drawTables(this.table, scene);
    if (isLine) this.part("ring", [text, innerWidth], () => bringRing(this.strips));
    if (!this.asks.isPlaying) this.settle();
  }

  // Lines above the picture may have moved it: once it has its place, it gets the room that is left.
  settle() {
    cancelAnimationFrame(this.settling);
    this.settling = requestAnimationFrame(() => {
      const { height } = this.measured();
      if (this.svg.isConnected && Math.abs(height - this.height) > 1) this.invalidate("selection");
    });
  }

  settling = 0;
  height = 0; // pixels: of the picture, as it was drawn

  // The look whose arc is shown: of the head that was chosen, else the one that adds most to the word that came
  /** @param {Scene} scene @returns {import("./types.js").Look | null} */
  lookOf({ columns: all, focus, by, wrote, looks, header }) {
    const { node } = all[focus];
    if (!by) return looks[0] ?? null;
    const told = wrote?.heads.find(({ most }) => most.layer === by.layer && most.head === by.head);
    if (told && this.isFinding(told.most.key)) return told.most;
    const row = look(node, by, header.heads);
    if (!row) return null;
    let best = -1;
    for (let key = 0; key < row.length; key++)
      if (this.isFinding(key) && (best < 0 || row[key] > row[best])) best = key;
    return best < 0 ? null : { ...by, key: best, weight: row[best], adds: NaN };
  }

  /** @param {number[]} path */
  loop(path) {
    /** @type {Map<number, number>} */
    const found = new Map();
    const again = repeats(path);
    const from = this.asks.writing.prompt.length;
    for (let i = 0; again && i < again.length; i++) {
      found.set(from + again.first + i, 0.45);
      found.set(from + again.second + i, 1);
    }
    return found;
  }

  // Of a word that comes a second time: how many tokens do, and how likely it was the first time
  /** @param {Column[]} all @param {Column} column */
  copyOf(all, { at, take }) {
    const again = repeats(this.path);
    if (!again || take === null || at < again.second || at >= again.second + again.length) return null;
    const before = all.find((one) => !one.given && one.at === again.first + at - again.second);
    return before?.known ? { n: again.length, before: before.known.prob } : null;
  }

  // The other lines that the search ends with, the likeliest first
  /** @param {import("./types.js").BeamStep[]} steps */
  beams(steps) {
    const now = this.values.path;
    return (steps.at(-1)?.finished ?? []).map(([ids]) => ids).filter((ids) => written(ids) !== now);
  }

  // The search beside greedy, where it opens and at its end: another word that is looked at has a fact of its own
  /** @param {import("./types.js").BeamStep[]} steps @param {Column[]} all @param {number} focus */
  compared(steps, all, focus) {
    const finished = steps.at(-1)?.finished ?? [];
    const greedy = this.asks.greedyFor(this.asks.length);
    if (!finished.length || !greedy || written(finished[0][0]) !== this.values.path) return null;
    const shared = Math.min(...finished.map(([ids]) => common(ids, finished[0][0])));
    if (focus !== all.length - 1 && all[focus].at !== shared) return null;
    const log = this.sumOf(greedy);
    if (log === null) return null;
    const best = finished[0][1];
    return {
      best,
      n: greedy.length,
      greedy: log,
      same: written(greedy) === this.values.path,
      shared: finished.length > 1 ? shared : 0,
      lines: finished.length,
    };
  }

  // The log-probability of a path; null where one of its words has none that is known
  /** @param {number[]} path */
  sumOf(path) {
    const { writing } = this.asks;
    const along = [writing.given.at(-1), ...writing.along(path)];
    let sum = 0;
    for (const [i, id] of path.entries()) {
      const node = along[i];
      const chance = node && known(node, id, this.header.vocab);
      if (!chance) return null;
      sum += Math.log(chance.prob);
    }
    return sum;
  }

  // The end of a line: its bits a token, or its place among beams
  /** @param {number[]} path */
  scoreOf(path) {
    const name = written(path);
    const finished = this.values.how === "beam" ? (this.asks.steps().at(-1)?.finished ?? []) : [];
    const at = finished.findIndex(([ids]) => written(ids) === name);
    return at < 0 ? this.bitsOf(path) : fill(words.beam_line, { rank: at + 1, log: fixed(finished[at][1]) });
  }

  // Bits a token of a line, as far as its columns are known
  /** @param {number[]} path */
  bitsOf(path) {
    const { writing } = this.asks;
    let [sum, n] = [0, 0];
    let node = writing.given.at(-1);
    const along = writing.along(path);
    for (const [i, id] of path.entries()) {
      const chance = node && known(node, id, this.header.vocab);
      if (chance) [sum, n] = [sum + bits(chance.prob), n + 1];
      node = along[i];
    }
    return n ? fill(words.bits_a_token, { n: fixed(sum / n, 1) }) : "";
  }

  // The words that other lines took here
  /** @param {Column} column */
  takenElsewhere({ at }) {
    const before = this.path.slice(0, at);
    return new Set(
      readAll(this.values.other)
        .filter((path) => path.length > at && common(path, before) === at && path[at] !== this.path[at])
        .map((path) => path[at]),
    );
  }

  /** @param {Scene} scene */
  drawLegend(scene) {
    setText(
      this.legendWords,
      { columns: words.legend, layers: words.legend_layers, cache: "", beams: words.beam_note }[scene.page],
    );
    const sampled = scene.page === "columns" && scene.how === "sample";
    this.ownOrSet.hidden = !sampled;
    this.drawnFrom.hidden = !sampled;
    if (!sampled) return;
    const { left: n } = scene.columns[scene.focus].shown;
    const { vocab } = scene.header;
    setText(
      this.drawnFrom,
      n === null
        ? words.drawn_more
        : n >= vocab
          ? words.drawn_all
          : fill(form([words.drawn_one, words.drawn], n), { n: number(n), vocab: number(vocab) }),
    );
    const [own, set] = this.ownOrSet.children;
    setText(set, fill(words.as_drawn, { t: fixed(scene.settings.temperature, 1) }));
    setAll(own, { "aria-pressed": String(scene.own) });
    setAll(set, { "aria-pressed": String(!scene.own) });
  }

  /** @param {Scene} scene */
  drawNotice(scene) {
    const again = scene.how === "greedy" && !this.asks.isPlaying ? repeats(scene.path) : null;
    this.notice.hidden = !again;
    this.part("notice", [again ? scene.path.slice(again.first, again.first + again.length).join(".") : ""], () => {
      this.notice.replaceChildren();
      if (!again) return;
      const text = scene.flush(scene.path.slice(again.second, again.second + again.length));
      this.notice.append(fill(words.repeats, { words: text }), " ");
      this.notice.append(button(words.draw_instead, "quiet", () => this.drawAgain()));
    });
  }

  status() {
    const { values, scene, asks } = this;
    const drawn = asks.writing.isOpen && scene;
    return {
      painted: drawn ? "1" : null,
      run: this.key,
      writing: asks.doing,
      // For the first word of a new draw, or for the end of a search
      waiting: drawn && asks.doing && (!this.path.length || values.how === "beam") ? "1" : null,
      ...(drawn && {
        how: values.how,
        path: values.path,
        focus: scene.columns[scene.focus].node.position,
        columns: scene.columns.length,
        complete: asks.writing.knows(this.path, this.by),
        lens: this.isSettled(scene) ? "ready" : "",
        page: scene.page,
        look: scene.look ? `${scene.look.layer}.${scene.look.head}.${scene.look.key}` : "",
        steps: scene.grown.length,
        cost: scene.cost ? "ready" : "",
      }),
    };
  }

  // The same of one weight of a row, where the token that heads rest on may be left out of the colours
  /** @param {number} v @param {number} at @param {ArrayLike<number>} row @returns {[background: string, ink: string]} */
  shadeOf(v, at, row) {
    const { key } = this.sink;
    if (key === null) return this.shade(v);
    const { fill: colour, ink } = toneWithout(this.palette, key, topWithout(row, row.length, key))(v, at);
    return [colour, ink];
  }

  /** @param {number} v @returns {[background: string, ink: string]} */
  shade(v) {
    const { css, ink } = colours(this.palette.ramp);
    const i = Math.round(Math.max(0, Math.min(1, v)) * 255);
    return [css[i], ink[i]];
  }

  // Whether all is there that the page asks for
  /** @param {Scene} scene */
  isSettled({ page, lens, layers: all, columns: { length }, focus, columns: of, path }) {
    if (page === "layers") return Boolean(lens) && (Boolean(all) || of[focus].take === null);
    return !path.length || this.asks.isTold || length === 1;
  }

  // The room that there is, and the scale of the page's type: a projected page has larger
  measured() {
    const { root, figure } = this;
    const wide = root.clientWidth;
    const narrow = wide < NARROW;
    root.classList.toggle("narrow", narrow);
    const { top, bottom } = root.getBoundingClientRect();
    const rootTop = top + scrolled(root); // where the room begins while nothing is scrolled
    const picture = figure.getBoundingClientRect();
    const above = picture.top - top;
    const below = this.isProjected ? this.barHeight + 4 : bottom - picture.bottom + EDGE * this.typeUnit;
    const height = narrow ? 380 : Math.max(LOWEST, Math.min(HIGHEST, innerHeight - rootTop - above - below));
    return {
      width: figure.clientWidth || wide,
      height: Math.round(height),
      scale: this.typeUnit,
      narrow,
      projected: this.isProjected,
    };
  }

  /** @param {Scene} scene */
  drawFoot(scene) {
    const off = Math.max(...scene.columns.map(({ own }) => this.off(own)));
    this.part("proofs", [off < 1e-6, scene.cost?.same, scene.cost?.difference], () => {
      const holds = [off < 1e-6 && words.adds_up, scene.cost?.same && words.same].filter(Boolean);
      this.proof.textContent = holds.map((text) => `✓ ${text}`).join("   ");
      if (scene.cost && !scene.cost.same)
        this.proof.append(
          el(
            "b",
            "fails",
            `   ${fill(words.not_same, { difference: pointed(scene.cost.difference.toExponential(1)) })}`,
          ),
        );
    });
    const n = scene.columns[scene.focus].node.position + 1;
    setText(
      this.facts,
      [
        fill(form([words.read_one, words.read], n), { n: number(n) }),
        this.bitsOf(scene.path),
        this.asks.speed,
        this.header.ran,
      ]
        .filter(Boolean)
        .join(" · "),
    );
    this.facts.title = lossOf(scene);
    setAll(this.predictButton, { "aria-pressed": String(this.values.predict === "on") });
    this.onward.hidden = !this.path.length || Boolean(this.header.offline);
    this.guideButton.setAttribute("aria-expanded", String(this.guideShown));
    this.tableButton.setAttribute("aria-expanded", String(this.tableShown));
  }

  /** @param {"guide" | "table"} what */
  unfold(what) {
    if (what === "guide") this.guideShown = !this.guideShown;
    else this.tableShown = !this.tableShown;
    this.drawNow();
    const [shown, at] = what === "guide" ? [this.guideShown, this.guide] : [this.tableShown, this.table];
    if (shown) at.scrollIntoView({ block: "nearest" }); // it stands below a screen that is full
  }

  picture() {
    return rows([this.strips, this.shownBox]);
  }

  // The words as they came, one after the other; of beams, the steps of the search
  /** @returns {import("../../../kit/browser/types.js").Film} */
  film() {
    const { path } = this;
    const isBeam = this.values.how === "beam";
    const n = isBeam ? this.asks.steps().length : path.length;
    if (!n) throw { sentence: words.film_nothing };
    const each = Math.ceil(n / MOST_MOMENTS);
    const moments = [...Array.from({ length: Math.ceil(n / each) }, (_, i) => i * each), n];
    const { show, end } = this.rehearsal();
    show({ f: "" }); // at the last word, which what it says is of
    const { title, alt, caption, snippet, name } = this.about();
    const frames = moments.map((at, i) => ({
      seconds: i === moments.length - 1 ? LAST : MOMENT,
      draw: () => {
        this.stepsShown = isBeam ? at : Infinity;
        show({ f: "", ...(isBeam ? {} : { path: written(path.slice(0, at)) }) });
        return this.picture();
      },
    }));
    return {
      title: fill(words.film_title, { text: this.asks.writing.names.join(" ") }),
      alt: `${fill(words.film_alt, { title })} ${alt}`,
      caption,
      snippet,
      name: `${name}-film`,
      frames,
      end: () => {
        this.stepsShown = Infinity;
        end();
      },
    };
  }

  about() {
    const scene = /** @type {Scene} */ (this.scene);
    const { caption, snippet } = aboutOf(scene);
    const text = [...this.asks.writing.names, ...this.path.map(scene.label)].join(" ");
    const name = this.header.about.name;
    const lines = [caption, ...snippet.trimEnd().split("\n")];
    /** @type {import("../../../kit/browser/types.js").AboutFiles["tables"]} */
    const tables = [[words.csv_words, name, wordsCsv(scene, lines)]];
    if (scene.grown.length) tables.push([words.csv_beams, `${name}-beams`, beamsCsv(scene, lines)]);
    if (scene.path.length) tables.push([words.csv_branches, `${name}-branches`, branchesCsv(scene, lines)]);
    return {
      title: fill(words.file_title, { text }),
      alt: this.svg.getAttribute("aria-label") ?? "",
      caption,
      snippet,
      name,
      tables,
      trees: /** @type {[string, string, string][]} */ ([
        [words.json_tree, `${name}-tree`, treeJson(scene, this.asks.writing, lines)],
      ]),
      film: () => this.film(),
    };
  }

  keys = {
    home: () => this.focusOn(this.isUnfolded ? 0 : (this.scene?.columns.findIndex(({ given }) => !given) ?? 0)),
    end: () => this.focusOn(Infinity),
    v: () => {
      const pages =
        this.values.how === "beam" ? ["columns", "beams", "layers", "cache"] : ["columns", "layers", "cache"];
      this.choose({ page: pages[(pages.indexOf(this.values.page) + 1) % pages.length] });
    },
    f: () => this.togglePredict(),
    enter: () => (this.candidate < 0 ? false : void this.takeCandidate()),
    /** @param {KeyboardEvent} event */
    " ": (event) => void (event.repeat || (this.scene?.hides ? this.reveal() : this.asks.play())),
    ...Object.fromEntries(DIGITS.map((nth) => [nth, (/** @type {KeyboardEvent} */ event) => this.takeNth(nth, event)])),
  };

  keysTold = words.keys_told;

  reveal() {
    this.isRevealed = true;
    this.drawNow();
  }

  takeCandidate() {
    const { scene, candidate } = this;
    const id = scene?.columns[scene.focus].node.ids[candidate];
    if (scene && id !== undefined) this.take(scene.focus, id);
  }

  // Of the likeliest words the nth; where nothing has the focus a digit chooses a room
  /** @param {number} nth @param {KeyboardEvent} event */
  takeNth(nth, event) {
    if (!this.scene || event.composedPath()[0] === document.body) return false;
    const { focus, columns: all } = this.scene;
    const id = all[focus].node.ids[nth - 1];
    if (id !== undefined) this.take(focus, id);
    return true;
  }

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    if (right) return this.asks.step(right);
    const { scene } = this;
    if (scene?.page !== "columns") return false;
    const most = Math.min(11, scene.columns[scene.focus].node.ids.length - 1);
    this.candidate = Math.max(0, Math.min(most, this.candidate + down));
    this.invalidate("selection");
  }

  /** @param {number} by */
  turn(by) {
    if (by > 0 && this.scene?.hides) return this.reveal();
    this.asks.step(by);
  }

  get headGrid() {
    return this.header;
  }

  // All heads of the decoder; coloured by what they do on the given text
  get heads() {
    const { layers, heads, kv_heads, source } = this.header;
    const [layer, head] = [this.values.layer, this.values.head].map((text) => (text === "" ? null : whole(text)));
    const { names } = this.asks.writing;
    const measures = source || !names.length ? [] : headMeasures(this, { site: "decoder", labels: [names, names] });
    return layers ? { layers, heads, kv_heads, layer, head, measures } : null;
  }
}

export default Generate;
