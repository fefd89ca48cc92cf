// Explore: one sentence, the chosen head large with what it says, and every head of every layer.
//
// The parts (strip, overview, map, facts, lines, footer) read what is on the screen from the View and tell it what a visitor does; the
// room draws those that became stale. constants.js is made of words.py, theme.py and attention.css.

import { PALETTES, STYLE, WORDS as words } from "../../../attention/browser/constants.js";
import { Export } from "../../../attention/browser/export.js";
import { Facts } from "../../../attention/browser/facts.js";
import { findingOf, Findings } from "../../../attention/browser/findings.js";
import { Footer } from "../../../attention/browser/footer.js";
import { Guide } from "../../../attention/browser/guide.js";
import { HeadCard } from "../../../attention/browser/headcard.js";
import { HeadMap as AllHeads } from "../../../attention/browser/headmap.js";
import { numbersOf } from "../../../attention/browser/lens.js";
import { HeadMap } from "../../../attention/browser/map.js";
import { isGuess, writes } from "../../../attention/browser/next.js";
import { Overview } from "../../../attention/browser/overview.js";
import { SideBySide } from "../../../attention/browser/sidebyside.js";
import { Site, takeSmall } from "../../../attention/browser/site.js";
import { Strip } from "../../../attention/browser/strip.js";
import { TokenLines } from "../../../attention/browser/tokenlines.js";
import { Tools } from "../../../attention/browser/tools.js";
import { layersSoFar, Underway } from "../../../attention/browser/underway.js";
import { placeOf } from "../../../attention/browser/values.js";
import { View } from "../../../attention/browser/view.js";
import { HeadChooser } from "../../../kit/browser/chooser.js";
import { classroom } from "../../../kit/browser/classroom.js";
import { colours } from "../../../kit/browser/colours.js";
import { cover } from "../../../kit/browser/cover.js";
import { add, choice, clamp, el, saidIn } from "../../../kit/browser/dom.js";
import { Fetcher } from "../../../kit/browser/fetcher.js";
import { headMeasures } from "../../../kit/browser/head_measures.js";
import { unpack } from "../../../kit/browser/messages.js";
import { HEAD, RULE, TOKENS } from "../../../kit/browser/constants.js";
import { ModelStrip, siteOf, stackOf } from "../../../kit/browser/model_strip.js";
import { Stage } from "../../../kit/browser/stage.js";

/** @type {Set<Explore>} */
const SHOWN = new Set(); // the rooms on the page: one
const SAY_AFTER = 200; // ms before a screen reader is told
const LEAVES_AFTER = 300; // ms without a picture of a run that went on before the one before it comes back
const LOWS = /** @type {const} */ (["head", "looks", "maps"]); // what may be below the map of all heads
const SIDE = 24; // em, for what the map says and all heads, beside it
const WRITING_SIDE = 14.5; // em, where it is the next word and a map of all heads, projected
const PROJECTED_SIDE = 19; // em, where there are no heads
const LEAST_FOLD = 17; // em, of a folded map
/** @typedef {import("../../../attention/browser/types.js").Picture} Picture */
/** @typedef {"layout" | "map" | "over" | "strip" | "facts" | "lines" | "footer" | "overview" | "chosen" | "alike" | "run" | "tools" | "findings" | "side" | "peek" | "model"} Part */
/** @type {Part[]} */
const ALL = ["overview", "map", "strip", "facts", "lines", "footer", "alike", "findings", "side", "model"];
// The parts that an answer about a large run changes, beside the line below. Others may change all of the picture.
/** @type {Record<string, Part[]>} */
const CHANGES = {
  row: ["over", "facts", "strip", "lines", "side"],
  findings: ["findings", "facts", "over", "strip", "side"],
  additions: ["side"],
  headwords: ["side"],
  looks: ["side"],
  metrics: ["side"],
  sink: ["map", "over", "strip", "footer", "side"],
  column: ["over", "facts", "strip", "lines"],
  scores: [],
  proof: [],
  next: ["over", "facts", "strip", "side"],
  strip: ["model"],
};

const ANEW = new Set(["next", "findings", "additions", "headwords", "looks", "metrics", "sink", "strip"]); // also of a small run

// A component of its own, which has nothing on the screen: it tells the room above of a run that is not done.
/** @param {{data: Uint8Array, parentElement: HTMLElement}} given */
export function underway({ data, parentElement }) {
  const [header] = unpack(data);
  for (const room of SHOWN) room.follows(header);
  return () => {
    if (!parentElement.isConnected) for (const room of SHOWN) room.leaves(header.key);
  };
}

/** @extends {Stage<Picture, import("../../../attention/browser/types.js").Palette, Part>} */
export class Explore extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static covers = { row: ".story, .main > .side, .main > .facts, .tablebox", heads: ".heads .alike" };
  static offers = words.clearest_short;
  static fills = true;
  static choices = ["chosen", "over", "layout", "findings"];

  /** @type {Underway | null} A run that is not done */
  underway = null;
  /** @type {{header: Picture, picture: Picture, sites: Site[], remote: Fetcher, values: Record<string, string>, addressed: any} | null} What was on the screen before it */
  before = null;
  /** @type {Underway | null} What was seen of a run whose own message is there now */
  run = null;
  wasUnderway = false; // whether the run on the screen went on when the message came
  isAway = false; // the server did not answer
  /** @type {boolean | undefined} */
  isNarrow;
  painted = 0;
  /** @type {number | undefined} A timer */
  saying;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    SHOWN.add(this);
    root.hidden = true; // until there is something to see
    const view = (this.view = new View(this));
    this.story = add(root, "section", "story");
    this.strip = new Strip(view, root);
    this.model = new ModelStrip(this, (layer, stack) => this.chooseLayer(Number(layer), stack), {
      isLow: true,
      tip: view.tip,
    });
    root.append(this.model.box);
    this.main = add(root, "div", "main");
    this.side = add(this.main, "section", "side");
    const [map, facts, heads] = ["map", "facts", "heads"].map((name) => add(this.main, "section", name));
    this.sections = { heads, map, facts };
    this.map = new HeadMap(view, map);
    this.overview = new Overview(view, heads, this.map);
    this.looks = new Facts(view, facts, this.story, this.side);
    this.findings = new Findings(view, this.story);
    this.predict = this.button(this.side, words.predict_first, () => this.guess(true), words.predict_first_help);
    this.predict.classList.add("predict");
    this.reveal = this.button(this.story, words.predict_show, () => this.guess(false));
    this.asChat = this.button(this.story, words.ask_as_chat, () => this.askAsChat(), words.ask_as_chat_help);
    this.chooser = new HeadChooser(this, () => this.chooserHeads);
    this.allHeads = new AllHeads(view, this.side);
    this.lows = add(this.side, "div", "lows");
    this.lowChoice = add(this.lows, "span");
    this.lows.append(this.chooser.element);
    this.card = new HeadCard(view, this.main, this.allHeads, this.map.atlas);
    this.lines = new TokenLines(view, this.map.box);
    this.beside = new SideBySide(view, map);
    this.guide = new Guide(view, root);
    this.footer = new Footer(view, this.foot, this.acts, () => this.host.trigger("shapes", { run: this.key }));
    this.map.row.before(this.offer);
    this.acts.append(this.map.sinkButton, this.guide.button);
    root.append(this.foot);
    this.fold = add(this.main, "details", "fold");
    this.fold.append(el("summary"));
    this.fold.addEventListener("toggle", () => this.invalidate("layout"));
    this.tools = new Tools(view, this.map.row, root, [this.map, this.footer]);
    this.saved = new Export(
      view,
      { map: this.map, overview: this.overview, lines: this.lines, facts: this.looks },
      this,
    );
    /** @type {Record<string, import("../../../kit/browser/stage.js").Act>} */
    this.keys = {
      escape: () => !this.isProjected && this.view.chosen.release(),
      o: () => this.tools.turn(),
      l: () => void this.view.chosen.set("show", this.view.options.show === "lines" ? "map" : "lines"),
    };
    document.documentElement.dataset.ownSpotlight = ""; // its rows
    this.leaving.addEventListener("abort", () => {
      delete document.documentElement.dataset.ownSpotlight;
      SHOWN.delete(this);
      classroom.leave(this);
      clearTimeout(this.saying);
      this.underway?.stop();
      delete document.documentElement.dataset.underway;
    });
  }

  // ------------------------------------------------------------------ messages in

  // Of a run that is not done there is only its header: it is shown as soon as the head that is opened is there.
  /** @param {[header: Picture, body: ArrayBuffer]} message */
  readMessage(message) {
    const [header] = message;
    if (header.going) {
      cover.take(header.cover);
      return this.follows(header);
    }
    const run = this.underway;
    this.run = run?.key === header.key ? run : null;
    this.wasUnderway = Boolean(run?.isShown);
    if (run && (run.isShown || header.key !== this.key)) {
      this.underway = null;
      run.stop();
    }
    if (this.wasUnderway && this.before?.header.key === header.key) this.goBack();
    this.unmark();
    super.readMessage(message);
  }

  // The picture of a run that was seen going on is on the screen already.
  /** @param {{isOther: boolean}} news */
  received({ isOther }) {
    const [header, body] = this.message;
    const { run, wasUnderway, view } = this;
    const isWhole = run?.isShown && run.ms !== null;
    const isSeen = isWhole && JSON.stringify(this.values) === JSON.stringify(this.former);
    const isOpened = !isSeen && (isOther || wasUnderway);
    if (isOpened) {
      /** @type {Site[]} */
      const sites = header.sites.map(
        (/** @type {import("../../../attention/browser/types.js").SiteHeader} */ site) => new Site(site, body),
      );
      const known = header.whole ? [] : (run?.sites ?? []);
      for (const site of known) sites.find(({ id }) => id === site.id)?.borrow(site); // so that nothing comes twice
      this.open(header, sites);
    }
    for (const [path, params, at, size] of header.first ?? [])
      this.remote.keep(path, params, numbersOf(new Uint8Array(body, at, size))); // answers that came with the picture
    for (const answer of run?.answers ?? []) this.remote.keep(...answer);
    this.run = null;
    this.files.box.hidden = this.isOffline; // a page that was exported has no server to export from
    if (isSeen) return false;
    if (wasUnderway || this.former.zoom !== this.values.zoom) this.map.open(view.options.area);
    if (isOpened && view.options.show === "map") this.map.ask();
    return wasUnderway || undefined;
  }

  // Another picture, or the same with other numbers: nothing of the one before counts any more.
  /** @param {Picture} header @param {Site[]} sites */
  open(header, sites) {
    const { view } = this;
    const same = view.picture?.key === header.key;
    this.root.hidden = false;
    view.picture = { ...header };
    view.sites = sites;
    this.remote.held = false;
    if (same) this.follow();
    view.chosen.pointed = null;
    view.tip.hide();
    this.forget("place");
    this.forget();
  }

  get isBusy() {
    return this.underway !== null;
  }

  fetcher() {
    const fetcher = new Fetcher(this.key, (path) => this.arrived(path));
    for (const [site, sink] of Object.entries(this.header.sinks ?? {})) fetcher.keep("sink", { site }, sink);
    return fetcher;
  }

  readTheme() {
    if (!super.readTheme()) return false;
    this.view.palette = { ...this.palette, scheme: this.scheme, tones: colours(this.palette.ramp) };
    this.forget();
    return true;
  }

  // Drawings that are kept between frames; for what an option changes, or a place, the numbers that they are of
  /** @param {string} [what] */
  forget(what) {
    const { numbers } = this.view;
    if (what !== "scale" && what !== "bounds") this.beside.forget();
    if (what === "place") return numbers.forget();
    if (what) numbers.ranks.clear();
    this.overview.forget();
    if (what === "scale" || what === "bounds") return;
    this.map.forget();
    this.lines.forget();
    this.allHeads.forget();
  }

  // ------------------------------------------------------------------ a run that still goes on

  // Its picture takes the place of the one before, if there is one, as soon as the head that is opened is there.
  /** @param {Picture} header */
  follows(header) {
    if (this.key === header.key) return;
    const known = this.underway;
    const opened = placeOf(header.chosen.values);
    if (known?.key === header.key && JSON.stringify(known.opened) === JSON.stringify(opened)) {
      known.header = header; // what was chosen meanwhile is in it
      return this.came();
    }
    this.giveUp();
    this.underway = new Underway(header, opened, (run, ...layer) => run === this.underway && this.came(...layer));
  }

  /** @param {Site} [site] @param {number} [layer] */
  came(site, layer) {
    const run = this.underway;
    if (!run) return;
    if (run.isShown && site && layer !== undefined) {
      this.overview.fill(site, layer, this.areHeadsShown);
      this.invalidate("findings");
    }
    if (run.isShown && run.ms !== null) this.ended();
    this.show({ underway: this.layersLeft });
    if (run.isShown) return;
    if (!run.canBeShown || !this.selection.isAnswer(run.header.chosen)) return; // something else is chosen since: the whole picture has that
    const { header, remote, view } = this;
    const { picture, sites } = view;
    const { values, addressed } = this.selection;
    this.before = header && { header, picture, sites, remote, values: { ...values }, addressed };
    run.isShown = true;
    document.documentElement.dataset.underway = ""; // the page dims what is of the run before
    this.header = run.header;
    this.selection.take(run.header.chosen);
    this.remote = this.fetcher();
    this.open(run.header, run.sites);
    this.remote.held = true;
    for (const answer of run.answers) this.remote.keep(...answer);
    this.map.open(view.options.area);
    this.readTheme();
    this.stale.add("layout");
    this.drawNow();
  }

  // Of a run on the screen that still goes on: how many layers the pass has left, and of how many
  get layersLeft() {
    if (!this.underway?.isShown || this.underway.ms !== null) return "";
    const so = layersSoFar(this.view.sites);
    return so ? `${so.here} of ${so.of}` : "";
  }

  // Everything of it is there. The script's own picture, of the same numbers, is still to come.
  ended() {
    this.view.picture.ms = this.underway?.ms;
    for (const site of this.view.sites) site.left = null;
    this.remote.held = false;
    this.unmark();
    this.stale.add("run").add("findings");
    this.drawNow(); // a visitor waits for it, and not for what follows:
    requestAnimationFrame(() => setTimeout(() => this.arrived())); // answers that no one could give before
  }

  // The run that went on is stopped, has failed, or is no longer wanted: the picture before comes back.
  goBack() {
    const { header, picture, sites, remote, values, addressed } = /** @type {NonNullable<Explore["before"]>} */ (
      this.before
    );
    Object.assign(this, { header, remote });
    Object.assign(this.selection, { values, addressed, of: header.key });
    this.open(picture, sites);
    this.map.open(this.view.options.area);
    this.unmark();
  }

  unmark() {
    this.before = null;
    delete document.documentElement.dataset.underway;
  }

  // The script has nothing more to say of it. Its picture may come in the same breath.
  /** @param {string} key */
  leaves(key) {
    setTimeout(() => this.underway?.key === key && this.underway.ms === null && this.giveUp(), LEAVES_AFTER);
  }

  // No one waits any longer for the run that goes on. What is there of it goes, unless that is all.
  giveUp() {
    const run = this.underway;
    this.underway = null;
    run?.stop();
    if (!run?.isShown) return;
    if (run.ms !== null) return this.unmark();
    if (this.before) {
      this.goBack();
      return this.invalidate("layout");
    }
    this.header = /** @type {any} */ (undefined); // there is no picture before
    this.root.hidden = true;
    this.unmark();
  }

  // ------------------------------------------------------------------ answers

  // Numbers that come after the picture, which they would have kept waiting: the small pictures of a larger run, and the weights of all heads
  follow() {
    const { picture, sites, remote } = this.view;
    if (picture.whole) return;
    if (takeSmall(this.view)) {
      this.overview.forget();
      this.invalidate("overview", "side", "alike", ...(this.map.said.fetching ? /** @type {const} */ (["map"]) : []));
    }
    if (!picture.follows) return;
    const heads = remote.get("heads", {}, unpack);
    if (!heads || heads.refused) return;
    const [header, body] = heads;
    picture.whole = true;
    picture.ids = header.ids;
    for (const site of header.sites) sites.find(({ id }) => id === site.id)?.fill(site, body);
    this.forget("place");
    this.lines.forget();
    this.invalidate("map", "strip", "facts", "lines", "footer", "alike");
  }

  // An answer is there, or cannot be had. The large picture is drawn again only where it may be another one: rows and
  // scores come while a visitor moves over it.
  /** @param {string} [path] */
  arrived(path) {
    const { view } = this;
    const { picture, options } = view;
    if (!picture) return;
    if (picture.whole && options.hide.length) view.numbers.ranks.clear(); // exact numbers may have come for faint rows
    if (this.model.waits) this.invalidate("model"); // it asks when nothing else is on its way
    const fetched = !picture.whole || options.hide.length || options.kind === "value";
    const isTurn = this.remote.failed !== this.isAway; // which is said under the picture
    this.isAway = this.remote.failed;
    if (path === "roles" && this.overview.wantsGroups) this.invalidate("overview");
    if (path === "small") return this.follow();
    if (path === "atlas") {
      this.invalidate("side");
      return this.map.atlas.draw();
    }
    if (path === "roles") return options.show === "lines" ? this.invalidate("map", "lines") : this.map.drawTitle();
    if (path === "findings" && options.show === "beside") this.invalidate("map"); // it is of their heads
    if (path === "row" && this.map.geometry?.isFold) this.invalidate("map");
    /** @type {Part[]} */
    const changed = (isTurn ? null : CHANGES[path ?? ""]) ?? ["map", "facts", "strip", "lines"];
    const parts = ANEW.has(path ?? "") ? CHANGES[path ?? ""] : fetched ? changed : [];
    this.invalidate("footer", ...parts);
    if (this.overview.isWaiting()) this.invalidate("overview");
    const { query, key } = view.chosen.hover ?? { query: null, key: null };
    if (view.tip.isShown && key != null && query !== null && options.show === "map")
      this.map.showTip({ query, key }, ...this.map.tipAt);
  }

  // ------------------------------------------------------------------ what a visitor does

  get headGrid() {
    return this.view.site;
  }

  // The heads of the map that "h" opens
  get chooserHeads() {
    const { site, chosen, picture } = this.view;
    if (!picture || !writes(this.view)) return null; // an encoder shows all of its heads
    const { layer, head, query } = chosen.place;
    const labels = /** @type {[string[], string[]]} */ ([
      picture.tokens[site.query] ?? [],
      picture.tokens[site.key] ?? [],
    ]);
    const of = {
      site: site.id,
      query: query ?? undefined,
      key: this.allHeads.lookedAt ?? undefined,
      labels,
      isCross: site.query !== site.key,
    };
    const measures = this.chooser?.isOpen ? headMeasures(this, of) : [];
    return { layers: site.layers, heads: site.heads, kv_heads: site.kv_heads, layer, head, measures };
  }

  /** @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    this.view.chosen.go({ layer, head });
  }

  /** @param {number} layer @param {string} stack */
  chooseLayer(layer, stack) {
    const { chosen, site } = this.view;
    this.view.chosen.go({ site: siteOf(stack, site.id), layer, head: chosen.place.head });
  }

  // By the rule of core.read.head_roles.opening_edges, of the kind of attention on the screen
  get clearest() {
    const { picture, place, options } = this.view;
    const opening = options.kind === "head" && !options.members.length ? picture.openings?.[place.site] : null;
    return opening ? { layer: opening[0], head: opening[1] } : null;
  }

  // To the next finding; where there is none, to the next head
  /** @param {number} by */
  turn(by) {
    if (!this.findings.turn(by)) this.step(by);
  }

  get isComing() {
    return this.findings.isComing;
  }

  // To the next head, and from the last of a layer to the first of the next
  /** @param {number} by */
  step(by) {
    const { site } = this.view;
    const { place } = this.view.chosen;
    const at = clamp(place.layer * site.heads + place.head + by, 0, site.layers * site.heads - 1);
    this.chooseHead(Math.floor(at / site.heads), at % site.heads);
  }

  // Left and right through heads, up and down through queries
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    if (right) return this.step(right);
    const { chosen } = this.view;
    const { place } = chosen;
    const lens = this.view.lens(); // its rows are words, where sub-words are merged
    const last = lens.n_query - 1;
    const row = place.query === null ? (down > 0 ? 0 : last) : clamp(lens.queryOf(place.query) + down, 0, last);
    chosen.pointed = null;
    chosen.go({ query: lens.firstQuery(row) });
  }

  // Whether what the model writes, and where it looked, is hidden until a visitor has guessed it
  /** @param {boolean} first */
  guess(first) {
    this.view.chosen.set("predict", first);
    this.view.invalidate("layout");
  }

  link() {
    return { view: "explore", ...super.link() };
  }

  about() {
    return { kinds: this.saved.kinds };
  }

  // ------------------------------------------------------------------ drawing

  /** @param {Set<Part | import("../../../kit/browser/stage.js").Stale>} stale */
  draw(stale) {
    if (stale.has("type")) this.forget(); // a canvas drawn before its font came has the wrong letters for good
    if (stale.has("projector") || !this.painted) this.project();
    for (const what of /** @type {const} */ (["data", "selection", "size", "theme", "projector", "cover"]))
      if (stale.has(what)) stale.add("layout");
    if (stale.has("cover")) stale.add("over");
    this.coverRows(stale);
    const isLaid = stale.has("layout"); // which draws the facts, the findings and the side, since their heights decide the rest
    if (isLaid) {
      if (!this.layout()) return void this.stale.add("layout"); // hidden: an answer that comes now has nothing to be drawn on
      for (const part of ALL) stale.add(part);
    }
    const { map, overview, strip, lines, view } = this;
    const { areHeadsShown } = this;
    if (stale.has("over") && map.fold.isStale) stale.add("map"); // other columns, for another row
    if (stale.has("overview") && areHeadsShown) overview.draw();
    else if (stale.has("overview")) overview.count(); // an export needs the numbers
    if ((stale.has("overview") || stale.has("chosen")) && areHeadsShown) overview.drawChosen();
    if (stale.has("map")) map.draw();
    if (stale.has("map") && map.geometry?.isFold && areHeadsShown) overview.drawWhole();
    if (stale.has("map") || stale.has("over")) map.drawOver();
    if (stale.has("map")) this.beside.draw();
    else if (stale.has("over") || stale.has("chosen")) this.beside.mark();
    if (stale.has("strip")) strip.shade();
    if (stale.has("facts")) {
      if (!isLaid) this.looks.draw();
      if (view.options.show === "table") map.table.draw(view.numbers.summary());
    }
    if (stale.has("facts") || stale.has("lines")) lines.draw(stale.has("lines"), this.fact);
    if (stale.has("alike") && areHeadsShown) overview.drawAlike();
    if (stale.has("run")) this.footer.tellRun();
    if (stale.has("footer")) this.footer.draw();
    if (stale.has("tools")) this.tools.mark();
    if (stale.has("findings") && !isLaid) this.findings.draw();
    if (stale.has("side") && !isLaid) this.drawSide();
    else if (stale.has("peek") || stale.has("chosen")) this.allHeads.drawChosen();
    this.card.box.style.visibility = view.chosen.peeked ? "hidden" : ""; // the map shows another head
    if (stale.has("model") || stale.has("side") || stale.has("chosen")) this.drawModel();
    if (stale.has("strip") || stale.has("over")) strip.drawArcs();
    if (stale.has("side") && !isLaid) this.allHeads.finish();
    if (stale.has("strip")) strip.bringIntoView(); // last: to measure, the browser lays out all that has changed
    this.painted += 1;
    if (!this.layersLeft) this.showToClass();
    this.allHeads.keepWord();
    this.follow();
  }

  // Whether the whole model is above the picture: it tells the next word, which a visitor may want to guess.
  get hasModel() {
    const { view } = this;
    return this.model.hasPlace && !view.room.narrow && !isGuess(view);
  }

  // The whole model at the locked word, or at the last
  drawModel() {
    const { picture, site, sites, chosen } = this.view;
    const { layer, query } = chosen.place;
    const { source, target } = picture.tokens;
    const stack = stackOf(site.id);
    const isTwo = sites.some(({ id }) => id === "cross");
    /** @type {Record<string, string[]>} */
    const labels = isTwo ? { encoder: source ?? [], decoder: target ?? [] } : { [stack]: source ?? [] };
    const { hidden } = this.model.box;
    this.model.draw(this.hasModel ? { stack, layer, query: query ?? undefined, labels } : null);
    if (this.model.box.hidden !== hidden) this.invalidate("layout"); // there is nothing to be had after all
  }

  // True if the small maps of all heads are on the screen. In a wide window attention.css shows another part in their place.
  get areHeadsShown() {
    const { classList, dataset } = this.root;
    return !classList.contains("sided") || this.isNarrow || dataset.low === "maps" || dataset.low === "all";
  }

  // The next word and all heads, and below them what is chosen of three
  drawSide() {
    const { view } = this;
    this.allHeads.draw();
    this.chooser?.draw();
    const { low, areHeadsShown } = this;
    this.root.dataset.low = low;
    if (this.areHeadsShown && !areHeadsShown) this.invalidate("layout"); // they were not drawn while they were hidden
    this.predict.hidden = isGuess(view) || cover.now !== null;
    this.lowChoice.hidden = view.room.narrow || low === "all";
    /** @type {import("../../../kit/browser/types.js").Choice<any>[]} */
    const options = LOWS.map((name) => [name, ...words.lows[name]]);
    if (!this.lowChoice.hidden && this.lows.dataset.low !== low) {
      this.lows.dataset.low = low;
      const made = choice(words.low_label, options, low, (name, event) => view.chosen.set("low", name, event));
      this.lowChoice.replaceChildren(made);
    }
    if (low !== "head" || this.isProjected) return this.card.hide();
    this.card.box.hidden = false;
    this.card.draw();
  }

  // The part below the map of all heads. An older link to small maps by some number shows those. Of a model that writes nothing there
  // is no such map, and all is there.
  get low() {
    const { options } = this.view;
    if (!writes(this.view)) return "all";
    if (cover.now) return "looks"; // a lesson asks about the row
    if (this.view.room.narrow) return "head"; // the others stand below it
    if (options.low !== "auto") return options.low;
    const isOfMaps =
      options.metric !== "auto" ||
      options.sort ||
      (options.members.length > 0 && options.show !== "beside") ||
      options.kind !== "head";
    return isOfMaps ? "maps" : "head";
  }

  // Asks the same question through the chat template of the model.
  askAsChat() {
    const { address } = window.headlight;
    const said = address?.read();
    if (!said) return;
    for (const name of [...HEAD, ...TOKENS, RULE, "zoom"]) said.delete(name);
    said.set("as", "chat");
    address?.go(`?${said}`, false);
  }

  // The first line of the facts
  get fact() {
    return saidIn(this.looks.big);
  }

  // The projector comes or goes, or its spotlight
  project() {
    const { isProjected, isSpotlit } = this;
    const { chosen } = this.view;
    const isOther = chosen.projector !== isProjected;
    Object.assign(chosen, { projector: isProjected, spotlight: isSpotlit });
    this.root.classList.toggle("spotlight", isSpotlit);
    if (isProjected) this.tools.close();
    if (this.painted && isOther) this.announce(isProjected ? words.projector_on : words.projector_off);
  }

  // Rows that a question covers are not drawn by any part: the row it opened at and the locked one; or all rows.
  /** @param {Set<Part | import("../../../kit/browser/stage.js").Stale>} stale */
  coverRows(stale) {
    const own = cover.now?.values.query;
    const { site, sites, place } = this.view;
    const isAll = own === "all"; // a class is about to be asked about one of them
    const asked = !cover.hides("row")
      ? []
      : isAll
        ? Array(site.n_query).keys()
        : [place.query, own === undefined ? null : Number(own)];
    const rows = [...new Set(asked)].filter((q) => q !== null && q < site.n_query);
    if (String(rows) === String(site.covered)) return;
    for (const one of sites) one.covered = [];
    site.covered = /** @type {number[]} */ (rows);
    this.forget("place");
    this.forget();
    for (const part of /** @type {Part[]} */ (["over", ...ALL])) if (part !== "alike") stale.add(part);
  }

  status() {
    const { site, options, chosen, numbers } = this.view;
    const { place } = chosen;
    const { query, key } = chosen.hover ?? { query: null, key: null };
    const cell = key != null && query !== null ? { query, key } : null;
    const row = cell && numbers.row(cell.query);
    const shown = Object.entries(options).map(([name, value]) => [
      name,
      typeof value === "object" ? JSON.stringify(value) : value,
    ]);
    if (chosen.since !== undefined) this.time(chosen.since);
    chosen.since = undefined;
    return {
      ...Object.fromEntries(shown),
      ...this.map.said,
      ...this.overview.said,
      run: this.key,
      underway: this.layersLeft,
      site: site.id,
      layer: place.layer,
      head: place.head,
      query: chosen.query ?? "",
      locked: place.query ?? "",
      tokens: site.n_query,
      key: key ?? "",
      pin: chosen.pin ?? "",
      peeked: chosen.peeked ? `${chosen.peeked.layer}.${chosen.peeked.head}` : "",
      finding: findingOf(this.view)?.kind ?? "",
      low: this.low,
      by: this.allHeads.box.hidden ? "" : this.allHeads.by,
      cell: cell ? `${cell.query},${cell.key}` : "",
      value: cell && row ? row.weights[this.view.lens().keyOf(cell.key)].toFixed(6) : "",
      painted: this.painted || null,
      ms: undefined,
    };
  }

  // How long what was asked for took until it was seen
  /** @param {number} since */
  time(since) {
    requestAnimationFrame(() => this.show({ ms: (performance.now() - since).toFixed(1) }));
  }

  // What a class that follows has on its screens, and what its teacher can ask about
  showToClass() {
    const { picture, sites, chosen } = this.view;
    const { site, layer, head, query } = this.values;
    const labels = (/** @type {string} */ id) =>
      picture.tokens[sites.find((one) => one.id === id)?.query ?? "source"] ?? [];
    const at = { site, layer, head, query, ...chosen.texts };
    const above = (/** @type {number[]} */ tokens) => this.map.above(tokens, this.strip.over);
    classroom.show(
      { view: "explore", run: picture.key, text: picture.link?.text ?? "", with: at, labels, above },
      this,
    );
  }

  // A wide window has the map with its words at the left, and at the right what it says and all heads. A small one has what the
  // map says first, then the map, the sentence under it, and all heads folded away: what is read first stands first, for the
  // keyboard too.
  /** @param {boolean} narrow */
  arrange(narrow) {
    const isAbove = narrow || this.isProjected; // the sentence has all of the width
    if (isAbove && this.story.nextSibling !== this.main) this.main.before(this.story);
    else if (!isAbove && this.story.parentNode !== this.sections.map) this.sections.map.prepend(this.story);
    if (this.isNarrow === narrow) return;
    this.isNarrow = narrow;
    this.root.classList.toggle("narrow", narrow);
    this.fold.hidden = !narrow;
    const { heads } = this.sections;
    if (narrow) {
      this.looks.big.after(this.strip.box);
      this.fold.append(heads);
      /** @type {HTMLElement} */ (this.fold.firstChild).append(this.overview.title);
    } else {
      this.map.head.after(this.strip.box);
      this.main.append(heads);
      heads.prepend(this.overview.title);
    }
  }

  // These take from the room of the picture, and some of their words come late.
  sizeNow() {
    const around = [this.foot, this.model.box, this.map.head, this.story];
    return [super.sizeNow(), ...around.map((box) => box.offsetHeight)].join(",");
  }

  // Sizes from the window: the picture fills the screen without scrolling. False while there is no room yet.
  layout() {
    const width = this.root.clientWidth;
    if (!width) return false;
    const { view, map, strip } = this;
    const { options, site, picture } = view;
    const projected = options.projector;
    const style = getComputedStyle(this.root);
    const em = parseFloat(style.fontSize);
    const isBeside = cover.now !== null; // a lesson, which takes a part of the window
    const wide = width > (isBeside ? (projected ? 30 : 46) : projected ? 44 : 56) * em; // two columns, or one
    this.arrange(!wide);
    Object.assign(view.room, { em, family: style.fontFamily, narrow: !wide });
    const isAlone = wide && projected && isBeside; // only the map, next to the sentences of a lesson
    const ems =
      projected && writes(view) ? WRITING_SIDE : projected || (isBeside && width < 56 * em) ? PROJECTED_SIDE : SIDE;
    const side = wide ? ems * em : width;
    const free = wide && !isAlone ? width - side - 1.8 * em : width;
    this.root.classList.toggle("alone", isAlone);
    const hasSide = writes(view);
    const { box } = this.model;
    // The browser lays the page out again for each size that is read after a change: first all that decides sizes is written.
    for (const part of [strip, map, this.footer, this.tools, this.guide]) part.build();
    box.hidden = !this.hasModel || this.model.isRefused;
    this.root.style.setProperty("--side", `${side}px`);
    this.root.classList.toggle("sided", hasSide);
    if (hasSide) this.chooser.element.append(this.chooser.pin);
    else map.title.after(this.chooser.pin);
    this.root.classList.toggle("predicting", isGuess(view));
    this.reveal.hidden = !isGuess(view);
    this.asChat.hidden = !this.header.asks || this.isOffline || projected || cover.now !== null;
    this.root.dataset.low = this.low;
    this.looks.draw();
    this.findings.draw();
    this.size = this.sizeNow(); // our own growth is no reason to draw again
    const top = Math.round(this.beginsAt) + (box.hidden ? 0 : box.offsetHeight + 0.4 * em);
    const below = 0.6 * em;
    const foot = projected ? this.barHeight : this.foot.offsetHeight + this.share.box.offsetHeight + 0.9 * em;
    const all = clamp(innerHeight - top - below - foot, (projected ? 14 : 22) * em, 64 * em);
    const storyHeight = this.story.offsetHeight + 0.4 * em;
    Object.assign(view.room, { headsWidth: side, sideHeight: all });
    this.drawSide();
    this.allHeads.finish();
    const height = projected && wide ? all - storyHeight : all;
    const hasFacts = wide && !projected; // above the small maps, whose room depends on their height
    const factsHeight =
      !hasFacts || !this.areHeadsShown
        ? 0
        : hasSide
          ? this.side.offsetHeight + 0.5 * em
          : 11.1 * em + (options.hide.length || site.kv_heads < site.heads ? 1.4 * em : 0);
    const note = (picture.whole || picture.follows) && !view.lens().note ? 0.2 * em : 2.6 * em; // room to say what was done to the numbers
    const isMap = options.show === "map";
    const mapTall = wide && !projected ? height - storyHeight : height;
    const head = map.head.offsetHeight;
    this.sections.facts.style.height = factsHeight && !hasSide ? `${factsHeight}px` : "";
    const room = Object.assign(view.room, {
      headsWidth: side,
      headsHeight: wide ? height - factsHeight - 0.5 * em : Infinity,
      mapWidth: free,
      mapHeight: Math.max(20 * em, width),
      height: wide ? mapTall : Infinity,
    });
    // The words stand over the columns if they fit beside a map of this height; else the text takes its own room above it.
    const tools = () => `${map.canFold},${map.zooms()},${map.hasColumns}`;
    const known = tools();
    const across = site.query === site.key ? 2.4 + 2.25 : 1.6 + 2.25 + 2.3;
    const tall = wide ? mapTall - head - note - across * em : room.mapHeight;
    room.isLong = map.isLongIn(free, tall, em);
    const g = wide && isMap ? map.measure(free, tall, em) : null;
    if (g?.isHeader) {
      map.geometry = g;
      strip.lay(g);
      room.mapHeight = Math.min(
        mapTall - head - note - strip.box.offsetHeight,
        g.top + g.cell * view.lens().n_query + 4,
      );
    } else {
      strip.lay(null);
      // A long text takes as many lines as leave room for the rows of the folded map.
      const most =
        g?.isFold && !projected ? Math.max(4.3, (mapTall - head - note) / em - LEAST_FOLD) / strip.axes.length : 0;
      strip.box.style.setProperty("--most", most ? `${most}em` : "");
      const said = g?.isFold ? (0.4 + 1.1 * map.foldedLines(free, em)) * em : note; // which is always there
      if (wide) room.mapHeight = mapTall - head - said - (strip.box.offsetHeight + 0.7 * em);
      map.geometry = map.measure(free, room.mapHeight, em);
      if (!wide && isMap)
        room.mapHeight = Math.min(room.mapHeight, map.geometry.top + map.geometry.cell * map.rows + 4);
    }
    if (tools() !== known) this.tools.build();
    this.main.style.minHeight = wide ? `${height}px` : "";
    for (const box of [map.box, map.table.box]) box.style.height = `${room.mapHeight}px`;
    return true;
  }

  // For a screen reader, now
  /** @param {string} text */
  announce(text) {
    clearTimeout(this.saying);
    super.announce(text);
  }

  // For a screen reader, once the visitor has paused
  say() {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => super.announce(`${this.view.lens().title}. ${this.fact}`), SAY_AFTER);
  }
}

export default Explore;
