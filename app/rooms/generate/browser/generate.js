// Generate: one column for each token, and the words that were taken as a path through them.

import { HeadChooser } from "../../../kit/browser/chooser.js";
import { colours } from "../../../kit/browser/colours.js";
import { add, el, fill, focusable, number, quoted, setText } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { whole } from "../../../kit/browser/selection.js";
import { linkTo } from "../../../kit/browser/share.js";
import { headMeasures } from "../../../kit/browser/head_measures.js";
import { SinkLine, toneWithout, topWithout } from "../../../kit/browser/sink.js";
import { Stage, stage } from "../../../kit/browser/stage.js";
import { Asks } from "./asks.js";
import { OWN, chances, known } from "./chances.js";
import { Columns, IN_SIGHT } from "./columns.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Controls } from "./controls.js";
import { Cache, bars, fact, layers, sayFact } from "./panel.js";
import { goesOn, grown, left, read, readAll, written, writtenAll } from "./paths.js";
import { bringRing, strips } from "./strips.js";
import { aboutOf, beamsCsv, branchesCsv, drawTables, wordsCsv } from "./tables.js";
import { treeJson } from "./tree.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { form, pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Node} TokenNode */

const DIGITS = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const [MOMENT, LAST] = [0.7, 2.5]; // seconds of a word in a film, and of the last
const MOST_MOMENTS = 100; // of longer writing every second word or fewer
const NARROW = 900; // pixels: below, the bars come first and the columns scroll

/** @extends {Stage<Header, import("./types.js").Palette>} */
class Generate extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = { column: ".main, .tables", bar: ".cache" };

  /** @type {Scene | null} */
  scene = null;
  drawnIn = { width: 0, room: 0 }; // pixels of the picture, and those that there are for it
  sentence = "";
  known = { text: "", path: /** @type {number[]} */ ([]) };
  guideShown = false;
  tableShown = false;
  stepsShown = Infinity; // of beams, in a film
  layersShown = false; // every layer of the lens, also of many
  asks = new Asks(this);

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.leaving.addEventListener("abort", () => this.asks.destroy());
    const top = add(root, "div", "top"); // the sink is named beside a short sentence, and below a long one
    this.strips = add(top, "div", "strips");
    this.sink = new SinkLine(this);
    top.append(this.sink.line);
    this.chooser = new HeadChooser(this, () => this.heads);
    this.controls = new Controls(
      root,
      {
        choose: (changes) => this.choose(changes),
        first: () => this.focusOn(0),
        step: (by) => this.asks.step(by),
        play: () => this.asks.play(),
      },
      this.chooser,
    );
    this.said = add(root, "p", "said");
    const main = add(root, "div", "main");
    this.left = add(main, "section", "left");
    this.figure = focusable(add(this.left, "div", "figure"), "group", `${words.figure}. ${words.figure_keys}`);
    this.svg = draw(this.figure, "svg", { role: "img" });
    /** @param {() => void} act */
    const within = (act) => {
      this.figure.focus({ preventScroll: true });
      act();
    };
    /** @type {import("./types.js").Acts} What a word or a column does */
    this.does = {
      focus: (at) => this.focusOn(at),
      take: (at, id) => this.take(at, id),
      go: (path, f) => this.go(path, f),
    };
    this.drawing = new Columns(this.svg, {
      ...this.does,
      focus: (at) => within(() => this.focusOn(at)),
      take: (at, id) => within(() => this.take(at, id)),
    });
    const right = add(main, "section", "right");
    this.fact = add(right, "div", "fact");
    this.fact.setAttribute("aria-live", "polite");
    this.bars = add(right, "div", "bars");
    this.layers = add(right, "div", "layers");
    this.cache = new Cache(add(right, "div", "cache"), {
      choose: (changes) => this.choose(changes),
      time: () => this.asks.time(),
    });
    // The written words as part of the text, in another room and from there in every room
    this.onward = [
      [words.explore_it, "explore"],
      [words.ask_what_if, "whatif"],
    ].map(([text, room]) => this.button(this.acts, text, () => this.carry(room), words.onward_help));
    this.again = this.button(this.acts, words.begin_again, () => this.go([], null), words.begin_again_help);
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
    if (isNew) {
      this.asks.begin(key);
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

  /** @param {Record<string, string>} changes */
  choose(changes) {
    if (changes.how && changes.how !== this.values.how) this.asks.stop();
    super.choose(changes);
    this.asks.follow();
  }

  // The same for words that come, which bring their columns with them
  /** @param {Record<string, string>} changes */
  put(changes) {
    super.choose(changes);
  }

  /** @param {string} room */
  async carry(room) {
    this.asks.stop();
    const said = await this.asks.text();
    if (said) location.assign(linkTo({ ...this.header.link, ...said, view: room }));
  }

  // Another path on the screen; the one that is left becomes a branch.
  /** @param {number[]} path @param {number | null} position */
  go(path, position) {
    this.asks.stop();
    const beam = this.values.how === "beam" ? this.asks.extended(path) : path;
    const isBeam = goesOn(beam, path); // words that no beam has are taken by themselves
    const to = isBeam ? beam : path;
    const others = left(readAll(this.values.other), this.path, to);
    this.say("");
    this.choose({
      ...(isBeam ? {} : { how: "greedy" }),
      path: written(to),
      other: writtenAll(others),
      f: position === null ? "" : String(position),
    });
    this.drawNow();
  }

  /** @param {number} at @param {number} id */
  take(at, id) {
    const column = this.scene?.columns[at];
    if (!column) return;
    if (column.at < 0 || id === column.take) return this.focusOn(at);
    this.go([...this.path.slice(0, column.at), id], null);
  }

  /** @param {number} at */
  focusOn(at) {
    const all = this.scene?.columns ?? [];
    const to = Math.max(0, Math.min(all.length - 1, at));
    if (!all[to]) return;
    this.choose({ f: to === all.length - 1 ? "" : String(all[to].node.position) });
    this.drawNow();
  }

  get isLast() {
    return !this.scene || this.scene.focus === this.scene.columns.length - 1;
  }

  /** @param {number} by */
  move(by) {
    if (this.scene) this.focusOn(this.scene.focus + by);
  }

  /** @param {string} text */
  say(text) {
    this.sentence = text;
    setText(this.said, text);
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
    return { temperature: Number(this.values.t), topK: whole(this.values.k), topP: Number(this.values.p) };
  }

  /** @param {number} position */
  nameAt(position) {
    const { names, prompt } = this.asks.writing;
    return position < prompt.length ? names[position] : this.asks.writing.label(this.path[position - prompt.length]);
  }

  /** @param {Set<import("../../../kit/browser/stage.js").Stale>} stale */
  draw(stale) {
    const { values, header } = this;
    const { writing } = this.asks;
    if (stale.has("cover") || stale.has("theme")) this.forget();
    const sizes = this.measured(); // before anything is written: to ask the page in the middle of a drawing costs a layout each time
    if (stale.has("theme")) this.root.style.setProperty("--bar", this.palette.ramp[3]);
    this.controls.draw(values, this.asks.isPlaying);
    if (!writing.isOpen) return;
    const all = this.columns();
    const wanted = values.f === "" ? all.length - 1 : all.findIndex(({ node }) => node.position === Number(values.f));
    const focus = wanted < 0 ? all.length - 1 : wanted;
    const steps = values.how === "beam" ? this.asks.steps().slice(0, this.stepsShown) : [];
    const reach = Math.max(all.length, steps.length ? writing.given.length + steps.length : 0); // beams grow beyond the columns
    const first =
      reach <= IN_SIGHT
        ? 0
        : Math.max(0, Math.min(reach - IN_SIGHT, all.length - 1, focus - 8 + (reach > all.length ? IN_SIGHT : 0)));
    /** @type {Scene} */
    const scene = (this.scene = {
      header,
      columns: all,
      first,
      inSight: all.slice(first, first + IN_SIGHT),
      focus,
      how: values.how,
      settings: this.settings,
      seed: whole(values.seed, 1),
      by: this.by,
      cached: values.cache !== "without",
      nBeams: whole(values.beams, 3),
      grown: grown(steps),
      winner: this.path,
      path: this.path,
      others: readAll(values.other),
      bytes: writing.bytes,
      losses: writing.losses,
      prompt: writing.prompt,
      cost: this.asks.cost,
      timing: this.asks.timing,
      said: this.sentence,
      lens: null,
      label: (id) => writing.label(id),
      nameAt: (position) => this.nameAt(position),
      sink: null,
    });
    scene.lens = this.isShown ? null : this.asks.lens(all[focus]);
    const complete = writing.knows(this.path, this.by);
    const text = [header.key, values.path, focus, all.length, values.layer, values.head, complete].join(" ");
    // A slice that was made again while it is pressed would lose the click: what stays the same is not drawn again.
    if (!header.source) this.sink.draw("decoder", writing.names);
    scene.sink = this.sink.found?.is ? this.sink.found.key : null;
    this.part("strips", [text, this.sink.key], () =>
      strips(
        this.strips,
        scene,
        (v, at, row) => this.shadeOf(v, at, row),
        (at) => this.focusOn(at),
      ),
    );
    const { how, t, k, p, beams, cache, other } = values;
    const settings = [how, t, k, p, beams, cache, other, steps.length, this.sentence];
    const looks = [
      header.key,
      values.path,
      first,
      all.length,
      values.layer,
      values.head,
      complete,
      ...settings,
      scene.sink,
      ...Object.values(sizes),
      this.isProjected,
    ];
    this.part("picture", looks, () => this.drawPicture(scene, sizes));
    this.part("focus", [...looks, focus], () => this.mark(scene));
    this.part("fact", [text, ...settings], () => sayFact(this.fact, scene));
    const fold = {
      isWhole: this.layersShown,
      toggle: () => {
        this.layersShown = !this.layersShown;
        this.invalidate("selection");
      },
    };
    this.part("layers", [text, Boolean(scene.lens), fold.isWhole], () =>
      layers(this.layers, scene, (v) => this.shade(v), fold),
    );
    bars(this.bars, scene, this.does);
    this.cache.draw(scene);
    this.drawFoot(scene);
    this.guide.hidden = !this.guideShown;
    this.table.hidden = !this.tableShown;
    if (this.tableShown) drawTables(this.table, scene);
    this.part("ring", [text, innerWidth], () => bringRing(this.strips));
  }

  status() {
    const { values, scene, asks } = this;
    const drawn = asks.writing.isOpen && scene;
    return {
      painted: drawn ? "1" : null,
      run: this.key,
      writing: asks.doing,
      ...(drawn && {
        how: values.how,
        path: values.path,
        focus: scene.columns[scene.focus].node.position,
        columns: scene.columns.length,
        complete: asks.writing.knows(this.path, this.by),
        lens: scene.lens ? "ready" : "",
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

  // The room that there is, and the scale of the page's type: a projected page has larger
  measured() {
    const wide = this.root.clientWidth;
    this.root.classList.toggle("narrow", wide < NARROW);
    return { wide, room: this.figure.clientWidth || wide, scale: this.typeUnit };
  }

  /** @param {Scene} scene @param {{wide: number, room: number, scale: number}} sizes */
  drawPicture(scene, { wide, room, scale }) {
    const narrow = wide < NARROW;
    const least = this.drawing.gutter + scene.inSight.length * 62; // on a phone the columns scroll
    const width = narrow ? Math.max(room, least) : room;
    const brief = this.isProjected && !narrow; // the sentence, the columns and the fact fit on one screen
    const bar = narrow ? 210 : brief ? 160 : scene.header.source ? 180 : 206;
    this.drawing.draw(scene, { width, bars: bar, scale, brief });
    this.drawnIn = { width, room };
  }

  // Which column is looked at
  /** @param {Scene} scene */
  mark(scene) {
    const { width, room } = this.drawnIn;
    this.drawing.mark(scene.focus);
    const [template, parts] = fact(scene);
    this.svg.setAttribute(
      "aria-label",
      `${fill(words.after, { read: quoted(scene.columns[scene.focus].read) })}: ${fill(template, Object.fromEntries(Object.entries(parts).map(([key, value]) => [key, Array.isArray(value) ? value[0] : value])))}`,
    );
    if (width > room) {
      const { gutter } = this.drawing.axis;
      const step = (width - gutter) / Math.max(scene.inSight.length, 11);
      const at = gutter + (scene.focus - scene.first) * step;
      if (at < this.figure.scrollLeft || at + step > this.figure.scrollLeft + room)
        this.figure.scrollLeft = at - room / 2;
    }
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
    const hidden = scene.columns[0].node.position;
    setText(
      this.facts,
      [
        fill(form([words.read_one, words.read], n), { n: number(n) }),
        this.header.ran,
        hidden ? fill(words.early, { n: hidden }) : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
    this.again.hidden = !this.path.length;
    for (const button of this.onward) button.hidden = !this.path.length || Boolean(this.header.offline);
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
    return rows([this.strips, this.left]);
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
    home: () => this.focusOn(0),
    end: () => this.focusOn(Infinity),
    /** @param {KeyboardEvent} event */
    " ": (event) => void (event.repeat || this.asks.play()),
    ...Object.fromEntries(DIGITS.map((nth) => [nth, (/** @type {KeyboardEvent} */ event) => this.takeNth(nth, event)])),
  };

  // Of the likeliest words the nth; where nothing has the focus a digit chooses a room
  /** @param {number} nth @param {KeyboardEvent} event */
  takeNth(nth, event) {
    if (!this.scene || event.composedPath()[0] === document.body) return false;
    const { focus, columns: all } = this.scene;
    const id = all[focus].node.ids[nth - 1];
    if (id !== undefined) this.take(focus, id);
    return true;
  }

  /** @param {number} _down @param {number} right */
  arrow(_down, right) {
    return right ? this.asks.step(right) : false;
  }

  /** @param {number} by */
  turn(by) {
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

export default stage(Generate);
