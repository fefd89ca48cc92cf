// Generate: one column for each token, and the words that were taken as a path through them.

import { Chosen, whole } from "../../../kit/browser/chosen.js";
import { colours } from "../../../kit/browser/colours.js";
import { add, el, fill, quoted } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { Files } from "../../../kit/browser/files.js";
import { unpack } from "../../../kit/browser/messages.js";
import { mounted } from "../../../kit/browser/mount.js";
import { Projector } from "../../../kit/browser/projector.js";
import { OWN, chances, known, look } from "./chances.js";
import { IN_SIGHT, columns } from "./columns.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Controls } from "./controls.js";
import { bars, cache, fact, layers, sayFact } from "./panel.js";
import { goesOn, grown, left, read, readAll, written, writtenAll } from "./paths.js";
import { aboutOf, beamsCsv, branchesCsv, table, wordsCsv } from "./tables.js";
import { Writing } from "./writing.js";

/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Column} Column */
/** @typedef {import("./types.js").Node} TokenNode */

const AT_A_TIME = 64; // words that Play writes before it stops by itself
const BEAM_STEPS = 8; // tokens that a search begins with, and goes on by
const PACE = 420; // ms for each column that Play steps over
const LENS_AFTER = 80; // ms that the ring rests before the layers are read
const NARROW = 900; // pixels: below, the bars come first and the columns scroll
const TIMED = 240; // tokens at which the cache is timed

/** @param {import("../../../kit/browser/types.js").Given<Uint8Array>} given */
export default function ({ data, parentElement, setStateValue }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new Generate(root));
  view.update(/** @type {Header} */ (unpack(data)[0]), setStateValue);
  return leave;
}

class Generate {
  chosen = new Chosen();
  /** @type {Header} */
  header;
  /** @type {Writing} */
  writing;
  /** @type {Record<string, string>} */
  palette;
  /** @type {Scene | null} */
  scene = null;
  /** @type {AbortController | null} While words are written */
  playing = null;
  /** @type {AbortController | null} While a path is read */
  loading = null;
  /** @type {AbortController | null} While beams grow */
  searching = null;
  /** @type {number | undefined} */
  pacing;
  /** @type {number | undefined} */
  resting;
  frame = 0;
  asked = "";
  searched = "";
  /** @type {Map<string, import("./types.js").LensRow[]>} */
  lenses = new Map();
  /** @type {import("./types.js").Cost | null} */
  cost = null;
  timing = false;
  /** @type {Map<string[], ReturnType<typeof colours>>} */
  ramps = new Map();
  tableShown = false;
  guideShown = false;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.strips = add(root, "div", "strips");
    this.controls = new Controls(root, { choose: (changes) => this.choose(changes), first: () => this.focusOn(0), step: (by) => this.step(by), play: () => this.play() });
    this.said = add(root, "p", "said");
    this.said.setAttribute("role", "status");
    const main = add(root, "div", "main");
    this.left = add(main, "section", "left");
    this.figure = add(this.left, "div", "figure");
    Object.assign(this.figure, { tabIndex: 0 });
    this.figure.setAttribute("role", "group");
    this.figure.setAttribute("aria-label", `${words.figure}. ${words.figure_keys}`);
    this.svg = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    this.svg.setAttribute("role", "img");
    this.figure.append(this.svg);
    const right = add(main, "section", "right");
    this.fact = add(right, "div", "fact");
    this.fact.setAttribute("aria-live", "polite");
    this.bars = add(right, "div", "bars");
    this.layers = add(right, "div", "layers");
    this.cache = add(right, "div", "cache");
    const foot = add(root, "footer");
    this.proofs = add(foot, "span", "proofs");
    this.ran = add(foot, "span", "ran");
    const acts = add(foot, "span", "acts");
    this.again = this.button(acts, words.begin_again, () => this.go([], null), words.begin_again_help);
    this.guideButton = this.button(acts, words.guide, () => this.show("guide"));
    this.tableButton = this.button(acts, words.table, () => this.show("table"));
    this.files = new Files(() => rows([this.strips, this.left]), () => this.about(), () => /** @type {Record<"background" | "ink" | "mute", string>} */ (this.palette));
    this.projector = new Projector(() => this.soon(), (by) => this.step(by));
    acts.append(this.files.box, this.projector.button);
    this.guide = add(root, "p", "guide");
    this.guide.textContent = words.guide_text;
    this.table = add(root, "div", "tables");
    root.addEventListener("keydown", (e) => this.key(e));
    this.sized = new ResizeObserver(() => this.soon());
    this.sized.observe(root);
  }

  /** @param {HTMLElement} parent @param {string} text @param {() => void} act */
  button(parent, text, act, help = "") {
    const made = add(parent, "button", "quiet");
    Object.assign(made, { type: "button", textContent: text, title: help });
    made.addEventListener("click", act);
    return made;
  }

  destroy() {
    this.stop();
    this.loading?.abort();
    this.searching?.abort();
    clearTimeout(this.resting);
    cancelAnimationFrame(this.frame);
    this.sized.disconnect();
    this.projector.destroy();
    this.files.destroy();
    this.chosen.destroy();
  }

  /** @param {Header} header @param {import("../../../kit/browser/types.js").Tell} setStateValue */
  update(header, setStateValue) {
    const byLink = this.chosen.take(header.chosen, setStateValue);
    const isNew = this.header?.key !== header.key;
    if (isNew || byLink) this.stop();
    if ((isNew && this.header && !byLink) || header.changed) this.chosen.choose({ path: "", other: "", f: "" }); // words behind another text
    if (isNew) {
      this.loading?.abort();
      this.searching?.abort();
      this.writing = new Writing(header.key);
      [this.asked, this.searched, this.cost] = ["", "", null];
      this.lenses.clear();
      this.say("");
    }
    this.header = header;
    const page = getComputedStyle(this.root).getPropertyValue("--st-background-color").trim().toLowerCase();
    this.palette = page === PALETTES.dark.background ? PALETTES.dark : PALETTES.light;
    for (const [name, colour] of Object.entries(this.palette)) if (typeof colour === "string") this.root.style.setProperty(`--${name}`, colour);
    this.root.dataset.dark = String(this.palette === PALETTES.dark);
    this.root.dataset.run = header.key;
    this.follow();
  }

  // what is chosen

  get values() {
    return this.chosen.values;
  }

  get path() {
    return read(this.values.path);
  }

  get by() {
    const { layer, head } = this.values;
    return layer !== "" && head !== "" ? { layer: Number(layer), head: Number(head) } : null;
  }

  /** @param {Record<string, string>} changes */
  choose(changes) {
    if (changes.how && changes.how !== this.values.how) this.stop();
    this.chosen.choose(changes);
    this.follow();
  }

  // Another path on the screen; the one that is left becomes a branch.
  /** @param {number[]} path @param {number | null} position */
  go(path, position) {
    this.stop();
    const others = left(readAll(this.values.other), this.path, path);
    this.say("");
    this.choose({ path: written(path), other: writtenAll(others), f: position === null ? "" : String(position) });
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
    if (all[to]) this.choose({ f: to === all.length - 1 ? "" : String(all[to].node.position) });
  }

  // what is asked for

  // Bring what is known in line with what is chosen.
  follow() {
    if (!this.writing.knows(this.path, this.by)) this.open();
    if (this.values.how === "beam") this.search();
    this.soon();
  }

  get params() {
    const { layer, head, how, t, k, p, seed, other } = this.values;
    return { how, t, k, p, seed, ...(other ? { also: other } : {}), ...(layer !== "" && head !== "" ? { layer, head } : {}) };
  }

  async open() {
    const wanted = `${this.header.key} ${this.values.path} ${this.values.layer}.${this.values.head}`;
    if (this.asked === wanted || this.playing) return;
    this.asked = wanted;
    this.loading?.abort();
    const stopped = (this.loading = new AbortController());
    if (!this.writing.isOpen) this.say(words.loading);
    const path = this.path;
    await this.told(stopped, async () => {
      const refused = await this.writing.write(path, this.params, stopped.signal, () => this.soon());
      if (!refused && this.said.textContent === words.loading) this.say("");
      if (refused && path.length && !stopped.signal.aborted) this.chosen.choose({ path: "", f: "" }); // the text itself can be shown
      if (refused && path.length && !stopped.signal.aborted) this.follow();
      return refused;
    });
    if (this.asked === wanted) this.asked = "";
    this.soon();
  }

  async search() {
    const n = Math.max(BEAM_STEPS, this.path.length);
    const name = `${this.values.beams} ${n}`;
    if (this.writing.searches.has(name) || this.searched === name) return;
    this.searched = name;
    this.searching?.abort();
    const stopped = (this.searching = new AbortController());
    this.root.dataset.writing = "beams";
    await this.told(stopped, () => this.writing.search(name, { beams: this.values.beams, n: String(n) }, stopped.signal, () => this.soon()));
    if (this.searched === name) this.searched = "";
    if (stopped.signal.aborted || this.values.how !== "beam") return;
    this.root.dataset.writing = "";
    const steps = this.writing.searches.get(name) ?? [];
    const best = steps.at(-1)?.finished[0]?.[0];
    const all = grown(steps).flatMap(({ kept }) => kept);
    if (best && !all.some(({ path }) => this.path.length && goesOn(path, this.path))) this.go(best, null);
    this.soon();
  }

  // Play: step to the last column, then write on until it is stopped.
  play() {
    if (this.playing || this.pacing) return this.stop();
    const scene = this.scene;
    if (!scene) return;
    if (scene.focus < scene.columns.length - 1) {
      this.pacing = setInterval(() => {
        const now = this.scene;
        if (now && now.focus < now.columns.length - 1) return this.focusOn(now.focus + 1);
        this.stop();
        this.write(AT_A_TIME);
      }, PACE);
      this.soon();
    } else this.write(AT_A_TIME);
  }

  /** @param {number} by */
  step(by) {
    const scene = this.scene;
    if (!scene) return;
    if (this.playing || this.pacing) return this.stop();
    if (by > 0 && scene.focus === scene.columns.length - 1) this.write(1);
    else this.focusOn(scene.focus + by);
  }

  /** @param {number} n */
  async write(n) {
    const before = this.path;
    const over = this.writing.over.get(written(before));
    if (over) return this.sayOver(over);
    if (this.values.how === "beam") {
      const longer = String(Math.max(BEAM_STEPS, before.length) + BEAM_STEPS);
      return this.grow(Number(longer));
    }
    this.loading?.abort();
    const stopped = (this.playing = new AbortController());
    this.root.dataset.writing = "words";
    this.say(words.writing);
    this.soon();
    let now = before;
    const refused = await this.told(stopped, () =>
      this.writing.write(before, { ...this.params, n: String(n) }, stopped.signal, (path) => {
        if (stopped.signal.aborted || path.length === now.length) return;
        now = path;
        const others = readAll(this.values.other).filter((other) => !goesOn(now, other));
        this.chosen.choose({ path: written(now), other: writtenAll(others), f: "" });
        this.soon();
      }),
    );
    if (this.playing === stopped) this.playing = null;
    if (stopped.signal.aborted) return;
    this.root.dataset.writing = "";
    const why = this.writing.over.get(written(now));
    if (why) this.sayOver(why);
    else if (!refused) this.say(n > 1 ? fill(words.wrote, { n: now.length - before.length }) : "");
    this.soon();
  }

  // A beam search that goes further, and its best text on the screen
  /** @param {number} n */
  async grow(n) {
    const name = `${this.values.beams} ${n}`;
    this.searching?.abort();
    const stopped = (this.playing = this.searching = new AbortController());
    this.root.dataset.writing = "beams";
    this.soon();
    await this.told(stopped, () => this.writing.search(name, { beams: this.values.beams, n: String(n) }, stopped.signal, () => this.soon()));
    if (this.playing === stopped) this.playing = null;
    if (stopped.signal.aborted) return;
    this.root.dataset.writing = "";
    const best = this.writing.searches.get(name)?.at(-1)?.finished[0]?.[0];
    if (best) this.choose({ path: written(best), f: "" });
  }

  stop() {
    clearInterval(this.pacing);
    this.pacing = undefined;
    if (this.playing) {
      this.playing.abort();
      this.playing = null;
      this.root.dataset.writing = "";
      this.say(fill(words.stopped, { n: this.path.length }));
    }
    this.soon();
  }

  // What the server refuses is said; so is that it does not answer. What was stopped says nothing.
  /** @param {AbortController} stopped @param {() => Promise<string>} work */
  async told(stopped, work) {
    try {
      const refused = await work();
      if (refused && !stopped.signal.aborted) this.say(refused);
      return refused;
    } catch (error) {
      if (!stopped.signal.aborted) {
        console.warn(error);
        this.say(words.failed);
        this.root.dataset.writing = "";
      }
      return "failed";
    }
  }

  /** @param {string} over */
  sayOver(over) {
    const last = this.path.at(-1);
    this.say(fill(words[`over_${over}`], { word: last === undefined ? "" : `“${this.writing.label(last)}”` }));
  }

  /** @param {string} text */
  say(text) {
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  async time() {
    if (this.timing) return;
    this.timing = true;
    this.soon();
    const { writing } = this;
    try {
      const response = await writing.fetch("cost", { path: this.values.path, n: String(TIMED) });
      if (!response.ok) this.say(await response.text());
      else if (writing === this.writing) this.cost = await response.json();
    } catch {
      this.say(words.failed);
    }
    this.timing = false;
    this.soon();
  }

  // The layers behind the column with the ring, once it rests there
  lens() {
    clearTimeout(this.resting);
    const scene = this.scene;
    if (!scene || this.playing) return null;
    const column = scene.columns[scene.focus];
    const path = written(this.path.slice(0, Math.max(0, column.at)));
    const token = column.take ?? column.node.ids[0];
    const name = `${path}|${column.node.position}|${token}`;
    const found = this.lenses.get(name);
    if (found) return found;
    const { writing } = this;
    this.resting = setTimeout(async () => {
      try {
        const response = await writing.fetch("lens", { path, position: String(column.node.position), token: String(token) });
        if (writing !== this.writing) return;
        if (!response.ok) this.say(await response.text());
        else this.lenses.set(name, await response.json());
        if (this.lenses.size > 400) this.lenses.delete(String(this.lenses.keys().next().value));
        if (response.ok) this.soon();
      } catch (error) {
        console.warn(error);
      }
    }, LENS_AFTER);
    return null;
  }

  // what is drawn

  soon() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  /** @returns {Column[]} */
  columns() {
    const { writing, header, path } = this;
    const { how } = this.values;
    const settings = how === "sample" ? this.settings : OWN;
    /** @type {Column[]} */
    const found = [];
    /** @param {TokenNode} node @param {number} at @param {number | null} take @param {boolean} given */
    const add = (node, at, take, given) => {
      const own = this.own(node);
      const shown = given || settings === OWN ? own : chances(node, settings, header.vocab);
      found.push({ node, at, take, given, own, shown, read: this.nameAt(node.position), known: take === null ? null : known(node, take, header.vocab) });
    };
    writing.given.forEach((node, i) => {
      const at = i - (writing.given.length - 1);
      if (at < 0) add(node, at, writing.prompt[node.position + 1], true);
      else add(node, 0, path[0] ?? null, false);
    });
    for (let n = 1; n <= path.length; n++) {
      const node = writing.node(path.slice(0, n));
      if (!node) break;
      add(node, n, path[n] ?? null, false);
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

  get settings() {
    return { temperature: Number(this.values.t), topK: whole(this.values.k), topP: Number(this.values.p) };
  }

  /** @param {number} position */
  nameAt(position) {
    const { names, prompt } = this.writing;
    return position < prompt.length ? names[position] : this.writing.label(this.path[position - prompt.length]);
  }

  draw() {
    this.frame = 0;
    const { values, header, writing } = this;
    if (!header) return;
    this.controls.draw(values, Boolean(this.playing || this.pacing), header);
    if (!writing.isOpen) return;
    const all = this.columns();
    const wanted = values.f === "" ? all.length - 1 : all.findIndex(({ node }) => node.position === Number(values.f));
    const focus = wanted < 0 ? all.length - 1 : wanted;
    const first = all.length <= IN_SIGHT ? 0 : Math.max(0, Math.min(all.length - IN_SIGHT, focus - 8));
    const steps = values.how === "beam" ? this.steps() : [];
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
      cost: this.cost,
      timing: this.timing,
      lens: null,
      label: (id) => writing.label(id),
      nameAt: (position) => this.nameAt(position),
    });
    scene.lens = this.lens();
    this.sentence(scene);
    this.picture(scene);
    const acts = { focus: (/** @type {number} */ at) => this.focusOn(at), take: (/** @type {number} */ at, /** @type {number} */ id) => this.take(at, id), go: (/** @type {number[]} */ path, /** @type {number | null} */ f) => this.go(path, f), choose: (/** @type {Record<string, string>} */ changes) => this.choose(changes), time: () => this.time() };
    sayFact(this.fact, scene);
    this.kept(this.bars, () => bars(this.bars, scene, acts));
    layers(this.layers, scene, (v) => this.shade(v));
    this.kept(this.cache, () => cache(this.cache, scene, acts));
    this.foot(scene);
    this.guide.hidden = !this.guideShown;
    this.table.hidden = !this.tableShown;
    if (this.tableShown) table(this.table, scene);
    const node = all[focus].node;
    Object.assign(this.root.dataset, {
      painted: "1",
      how: values.how,
      path: values.path,
      focus: String(node.position),
      columns: String(all.length),
      complete: String(writing.knows(this.path, this.by)),
      lens: scene.lens ? "ready" : "",
      steps: String(steps.length),
      cost: this.cost ? "ready" : "",
    });
  }

  steps() {
    const n = Math.max(BEAM_STEPS, this.path.length);
    const searches = this.writing.searches;
    const exact = searches.get(`${this.values.beams} ${n}`);
    const growing = this.playing ? searches.get(`${this.values.beams} ${n + BEAM_STEPS}`) : undefined;
    return growing ?? exact ?? [];
  }

  // What is in the place of the focus keeps it.
  /** @param {HTMLElement} box @param {() => void} work */
  kept(box, work) {
    const tree = /** @type {Document | ShadowRoot} */ (box.getRootNode());
    const buttons = [...box.querySelectorAll("button")];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (tree.activeElement));
    work();
    if (at >= 0) box.querySelectorAll("button")[at]?.focus({ preventScroll: true });
  }

  /** @param {number} v @returns {[background: string, ink: string]} */
  shade(v) {
    const ramp = /** @type {string[]} */ (/** @type {unknown} */ (this.palette.ramp));
    const found = this.ramps.get(ramp) ?? colours(ramp);
    this.ramps.set(ramp, found);
    const i = Math.round(Math.max(0, Math.min(1, v)) * 255);
    return [found.css[i], found.ink[i]];
  }

  // The text, shaded by what the newest token looks at: the ring around what was read, and what came next.
  /** @param {Scene} scene */
  sentence(scene) {
    const { header, columns: all, focus } = scene;
    const column = all[focus];
    const row = look(column.node, scene.by, header.heads);
    /** @param {HTMLElement} strip @param {string} text @param {string} name @param {number | null} v */
    const token = (strip, text, name, v) => {
      const made = add(strip, "span", name);
      made.textContent = text;
      if (v !== null) [made.style.background, made.style.color] = this.shade(v);
      return made;
    };
    const strips = [];
    if (header.source) {
      const source = el("div", "strip");
      add(source, "small").textContent = words.source;
      header.source.forEach((text, i) => token(source, text, "", row ? row[i] : null));
      strips.push(source);
    }
    const strip = el("div", "strip own");
    if (header.source) add(strip, "small").textContent = words.target;
    const n = this.writing.prompt.length;
    const total = n + this.path.length;
    for (let i = 0; i < total; i++) {
      const text = this.nameAt(i);
      const at = all.findIndex(({ node }) => node.position === i);
      const here = i === column.node.position;
      const name = here ? "q" : i === column.node.position + 1 && i >= n ? "next" : i > column.node.position ? (i >= n ? "later" : "") : "";
      const made = token(strip, text, name, !header.source && row && i <= column.node.position ? row[i] : null);
      if (at >= 0) made.addEventListener("click", () => this.focusOn(at));
    }
    strips.push(strip);
    this.strips.replaceChildren(...strips);
    const ring = /** @type {HTMLElement | null} */ (strip.querySelector(".q"));
    if (ring && strip.scrollHeight > strip.clientHeight) strip.scrollTop = ring.offsetTop - strip.offsetTop - strip.clientHeight / 2;
  }

  /** @param {Scene} scene */
  picture(scene) {
    const wide = this.root.clientWidth;
    const narrow = wide < NARROW;
    this.root.classList.toggle("narrow", narrow);
    this.root.dataset.projector = String(this.projector.on);
    const room = this.figure.clientWidth || wide;
    const width = narrow ? Math.max(room, 66 + scene.inSight.length * 62) : room;
    const bar = this.projector.on ? 300 : narrow ? 210 : 228;
    const acts = { focus: (/** @type {number} */ at) => (this.figure.focus({ preventScroll: true }), this.focusOn(at)), take: (/** @type {number} */ at, /** @type {number} */ id) => (this.figure.focus({ preventScroll: true }), this.take(at, id)), go: (/** @type {number[]} */ path, /** @type {number | null} */ f) => this.go(path, f), choose: () => {}, time: () => {} };
    columns(this.svg, scene, acts, { width, bars: bar });
    const [template, parts] = fact(scene);
    this.svg.setAttribute("aria-label", `${fill(words.after, { read: quoted(scene.columns[scene.focus].read) })}: ${fill(template, Object.fromEntries(Object.entries(parts).map(([key, value]) => [key, Array.isArray(value) ? value[0] : value])))}`);
    if (width > room) {
      const step = (width - 66) / Math.max(scene.inSight.length, 11);
      const at = 66 + (scene.focus - scene.first) * step;
      if (at < this.figure.scrollLeft || at + step > this.figure.scrollLeft + room) this.figure.scrollLeft = at - room / 2;
    }
  }

  /** @param {Scene} scene */
  foot(scene) {
    this.proofs.replaceChildren();
    const off = Math.max(...scene.columns.map(({ own }) => Math.abs(own.probs.reduce((a, b) => a + b, own.rest) - 1)));
    if (off < 1e-6) add(this.proofs, "span", "holds").textContent = `✓ ${words.adds_up}`;
    if (this.cost?.same) add(this.proofs, "span", "holds").textContent = `✓ ${words.same}`;
    else if (this.cost) add(this.proofs, "span", "fails").textContent = fill(words.not_same, { difference: this.cost.difference.toExponential(1) });
    const n = scene.columns[scene.focus].node.position + 1;
    const hidden = scene.columns[0].node.position;
    this.ran.textContent = [fill(words.read, { n: n.toLocaleString("en") }), this.header.ran, hidden ? fill(words.early, { n: hidden }) : ""].filter(Boolean).join(" · ");
    this.again.hidden = !this.path.length;
    this.guideButton.setAttribute("aria-expanded", String(this.guideShown));
    this.tableButton.setAttribute("aria-expanded", String(this.tableShown));
  }

  /** @param {"guide" | "table"} what */
  show(what) {
    if (what === "guide") this.guideShown = !this.guideShown;
    else this.tableShown = !this.tableShown;
    this.soon();
  }

  /** @returns {import("./types.js").AboutFiles} */
  about() {
    const scene = /** @type {Scene} */ (this.scene);
    const { caption, snippet } = aboutOf(scene);
    const text = [...this.writing.names, ...this.path.map((id) => this.writing.label(id))].join(" ");
    const name = this.header.about.name;
    const lines = [caption, ...snippet.trimEnd().split("\n")];
    /** @type {[label: string, name: string, text: string][]} */
    const tables = [[words.csv_words, name, wordsCsv(scene, lines)]];
    if (scene.grown.length) tables.push([words.csv_beams, `${name}-beams`, beamsCsv(scene, lines)]);
    if (scene.path.length) tables.push([words.csv_branches, `${name}-branches`, branchesCsv(scene, lines)]);
    return { title: fill(words.file_title, { text }), alt: this.svg.getAttribute("aria-label") ?? "", caption, snippet, name, tables };
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    const at = /** @type {HTMLElement} */ (e.composedPath()[0]);
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey || e.defaultPrevented || ["INPUT", "SELECT", "TEXTAREA"].includes(at.tagName)) return;
    const inMenu = this.files.box.contains(at);
    if (e.key === "ArrowRight") this.step(1);
    else if (e.key === "ArrowLeft") this.step(-1);
    else if (e.key === "Home") this.focusOn(0);
    else if (e.key === "End") this.focusOn(Infinity);
    else if (e.key === " " && at.tagName !== "BUTTON" && !e.repeat) this.play();
    else if (/^[1-9]$/.test(e.key) && !inMenu && this.scene) {
      const { focus, columns: all } = this.scene;
      const id = all[focus].node.ids[Number(e.key) - 1];
      if (id !== undefined) this.take(focus, id);
    } else return;
    e.preventDefault();
  }
}
