// The Explore component: sentence strip, overview of all heads, the chosen head large, facts about the chosen query.
//
// Everything a visitor does here is drawn here; Python is told once, debounced. Text of visitors goes in through textContent and
// fillText only.
//
// The parts (strip, overview, map, facts, lines, footer) read what is chosen from the View and tell it what a visitor
// does; the View draws what became stale, at most once a frame. constants.js is made of words.py, theme.py and attention.css.

import { classroom } from "../../../kit/browser/classroom.js";
import { paletteOf, rampsOf, themeOf } from "../../../kit/browser/colours.js";
import { PALETTES, STYLE, WORDS as words } from "../../../attention/browser/constants.js";
import { add, clamp, el, keepingFocus, worded } from "../../../kit/browser/dom.js";
import { Export } from "../../../attention/browser/export.js";
import { Facts } from "../../../attention/browser/facts.js";
import { Footer } from "../../../attention/browser/footer.js";
import { cover, Guard } from "../../../kit/browser/cover.js";
import { keyOf, Lens, numbersOf } from "../../../attention/browser/lens.js";
import { Lines } from "../../../attention/browser/lines.js";
import { writes } from "../../../attention/browser/next.js";
import { Guide } from "../../../attention/browser/guide.js";
import { HeadMap } from "../../../attention/browser/map.js";
import { mounted } from "../../../kit/browser/mount.js";
import { mainBlock, scrolled } from "../../../streamlit_edge/browser/page.js";
import { Overview } from "../../../attention/browser/overview.js";
import { Projector } from "../../../attention/browser/projector.js";
import { Fetcher } from "../../../kit/browser/fetcher.js";
import { RoomSelection } from "../../../kit/browser/selection.js";
import { Site } from "../../../attention/browser/site.js";
import { unpack } from "../../../kit/browser/messages.js";
import { Page } from "../../../attention/browser/page.js";
import { Strip } from "../../../attention/browser/strip.js";
import { Tools } from "../../../attention/browser/tools.js";
import { Underway } from "../../../attention/browser/underway.js";
import { optionsOf, placeOf, placeTexts, textsOf, unlikeOpening } from "../../../attention/browser/values.js";

/** @type {Set<View>} */
const SHOWN = new Set(); // the views on the page: one
const SETTLED = 60; // ms after the last change of head
const SAY_AFTER = 200; // ms before a screen reader is told
const LEAVES_AFTER = 300; // ms without a picture of a run that went on before the one before it comes back
const SIDE = 24; // em, for what the map says and all heads, beside it
const PROJECTED_SIDE = 19; // em, where there are no heads
const LEAST_FOLD = 17; // em, of a folded map
const KEPT_ROWS = 256; // rankings of rows that are kept
/** @typedef {import("../../../attention/browser/types.js").View} Shown */
/** @typedef {import("../../../attention/browser/types.js").Picture} Picture */
/** @typedef {import("../../../attention/browser/types.js").Options} Options */
/** @typedef {import("../../../attention/browser/types.js").Place} Place */
/** @typedef {import("../../../attention/browser/types.js").At} At */
/** @typedef {import("../../../attention/browser/types.js").Area} Area */
const KEPT_LENSES = 24; // pictures whose numbers are kept
/** @type {Record<string, string[]>} */
const REDRAWS = {
  // what an option changes, where that is less than the whole layout
  scale: ["map", "strip", "lines", "footer", "overview"],
  bounds: ["map", "strip", "footer", "overview"],
  keep: ["lines"],
  metric: ["overview", "alike"],
  sort: ["overview"],
  spotlight: ["over", "strip", "lines"],
  frozen: ["over"],
};
// What an answer about a large run changes, beside the line below. Others may change all of the picture.
/** @type {Record<string, string[]>} */
const CHANGES = {
  row: ["over", "facts", "strip", "lines"],
  column: ["over", "facts", "strip", "lines"],
  scores: [],
  proof: [],
  next: ["over", "facts", "strip"],
};
/** @type {Record<string, string>} What of the page a lesson may cover, beside the row of the map */
const COVERS = { row: ".main > .facts, .main > .big, .tablebox", heads: ".heads .alike" };
const settings = () => window.headlight.settings; // of the page: light or dark, and the projector
const NUMBERS = ["kind", "members", "hide", "words"]; // the options that change what the numbers are

/** @param {import("../../../kit/browser/types.js").Given<Uint8Array>} given */
export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new View(root));
  view.trigger = setTriggerValue;
  view.update(data, setStateValue);
  return leave;
}

// A component of its own, which has nothing on the screen: it tells the view above of a run that still goes on.
/** @param {{data: Uint8Array, parentElement: HTMLElement}} given */
export function underway({ data, parentElement }) {
  const [header] = unpack(data);
  for (const view of SHOWN) view.follows(header);
  return () => {
    if (!parentElement.isConnected) for (const view of SHOWN) view.leaves(header.key);
  };
}

/** @implements {Shown} */
class View {
  // What a view has from its first picture on
  /** @type {Picture} Its header */
  picture;
  /** @type {Site[]} */
  sites;
  /** @type {Fetcher} */
  remote;
  /** @type {Uint8Array} The message that the picture is from */
  data;
  message = ""; // its header, but for what is chosen in it
  selection = new RoomSelection();
  /** @type {Place} What is chosen; query null when none is locked */
  place;
  /** @type {Shown["room"]} What the last layout found */
  room;
  /** @type {"light" | "dark"} */
  themeName;
  /** @type {Shown["palette"]} */
  palette;
  /** @type {Shown["colour"]} */
  colour;
  /** @type {Shown["colour"]} */
  ahead;
  /** @type {string} */
  family;
  /** @type {boolean} */
  narrow;
  /** @type {import("../../../kit/browser/types.js").Tell} */
  set;
  /** @type {import("../../../kit/browser/types.js").Tell} */
  trigger;
  /** @type {number | undefined} When what is drawn next was asked for, in ms */
  since;
  // Timers
  /** @type {number | undefined} */
  saying;
  /** @type {number | undefined} */
  settling;

  /** @param {HTMLElement} root */
  constructor(root) {
    SHOWN.add(this);
    this.root = root;
    /** @type {At | null} */
    this.pointed = null; // {query, key}: what the pointer or the keyboard is on; one of them may be null
    this.options = this.onPage(optionsOf({})); // how it is shown
    /** @type {Set<string>} */
    this.stale = new Set();
    this.frame = 0;
    this.painted = 0;
    /** @type {Map<string, import("../../../attention/browser/types.js").Ranking>} */
    this.ranks = new Map();
    /** @type {Map<string, Lens>} */
    this.lenses = new Map();
    /** @type {Underway | null} */
    this.underway = null; // a run that still goes on
    /** @type {(Pick<Shown, "picture" | "sites" | "remote"> & {values: Record<string, string>, area: Area | null}) | null} */
    this.before = null; // what was on the screen before it
    this.isOffline = false;

    root.hidden = true; // until there is something to see
    root.replaceChildren();
    this.strip = new Strip(this, root);
    this.main = add(root, "div", "main");
    const [map, facts, heads] = ["map", "facts", "heads"].map((name) => add(this.main, "section", name));
    this.overview = new Overview(this, heads);
    this.map = new HeadMap(this, map);
    this.facts = new Facts(this, facts);
    this.lines = new Lines(this);
    this.guide = new Guide(this, root);
    this.footer = new Footer(this, root);
    this.page = new Page(this, root);
    this.export = new Export(this, root);
    this.projector = new Projector(this, root);
    this.sections = { heads, map, facts };
    this.fold = add(this.main, "details", "fold");
    this.fold.append(el("summary"));
    this.fold.addEventListener("toggle", () => this.redraw("layout"));
    const parts = [
      this.strip,
      this.overview,
      this.map,
      this.facts,
      this.lines,
      this.footer,
      this.guide,
      this.page,
      this.export,
      this.projector,
    ];
    this.parts = /** @type {import("../../../attention/browser/types.js").ViewPart[]} */ (
      /** @type {object[]} */ (parts)
    );
    this.tools = new Tools(this, this.map.row, heads);
    this.tip = add(root, "div", "tip");
    this.tip.hidden = true;
    this.live = add(root, "div", "unseen");
    this.live.setAttribute("aria-live", "polite");

    this.guard = new Guard(root, COVERS);
    this.uncovers = cover.watch(() => this.redraw("layout", "over"));
    this.resized = () => this.redraw("layout");
    this.unwatch = settings().watch(() => {
      const { frozen, spotlight } = this.options;
      this.options = this.onPage(this.options);
      if (this.picture && (frozen !== this.options.frozen || spotlight !== this.options.spotlight)) this.tell();
      this.theme();
      this.redraw("layout");
    });
    // Before Streamlit hears of what a visitor does elsewhere on the page
    this.elsewhere = (/** @type {Event} */ e) => {
      if (!e.composedPath().includes(root)) this.selection.leaving();
    };
    for (const name of ["pointerdown", "keydown"]) addEventListener(name, this.elsewhere, true);
    this.watch = new ResizeObserver(() => {
      const seen = `${root.clientWidth},${this.top()}`; // our own growth is no reason to draw again
      if (seen !== this.room?.seen) this.resized();
    });
    this.watch.observe(root);
    const page = mainBlock();
    if (page) this.watch.observe(page); // a sentence above moves the picture down, which then has less room
    addEventListener("resize", this.resized);
    document.fonts.ready.then(() => {
      this.forget(); // a canvas drawn before its font came has the wrong letters for good
      this.resized();
    });
  }

  destroy() {
    SHOWN.delete(this);
    classroom.leave(this);
    this.watch.disconnect();
    this.unwatch();
    this.uncovers();
    this.guard.destroy();
    this.tools.destroy();
    this.projector.destroy();
    this.export.destroy();
    removeEventListener("resize", this.resized);
    for (const name of ["pointerdown", "keydown"]) removeEventListener(name, this.elsewhere, true);
    cancelAnimationFrame(this.frame);
    this.selection.destroy();
    clearTimeout(this.saying);
    clearTimeout(this.settling);
    this.underway?.stop();
    delete document.documentElement.dataset.underway;
  }

  // ------------------------------------------------------------------ data in, place out

  /** @param {Uint8Array} data @param {import("../../../kit/browser/types.js").Tell} setStateValue */
  update(data, setStateValue) {
    this.set = setStateValue;
    const before = this.themeName;
    const isNew = this.receive(data);
    this.theme();
    if (!isNew && this.themeName === before) return;
    this.stale.add("layout");
    this.drawNow(); // a visitor waits for it: not in the frame after next, after what else has arrived
  }

  // Whether there is another picture to draw: a script that ran for something else sends the same bytes again, and the
  // picture of a run that was seen going on is on the screen already.
  /** @param {Uint8Array} data */
  receive(data) {
    if (data === this.data) return false; // the page has other colours, or nothing is new
    const run = this.underway;
    const [header, body] = unpack(data);
    this.data = data;
    cover.take(header.cover);
    const isShown = Boolean(run?.isShown); // there is something else on the screen than the message before
    const before = JSON.stringify(this.selection.values);
    const told = JSON.stringify({ ...header, chosen: null, cover: null });
    const isNew = isShown || told !== this.message;
    if (!isNew) {
      this.selection.take(header.chosen, this.set);
      if (JSON.stringify(this.selection.values) === before) return false;
      this.readChosen();
      return true;
    }
    this.message = told;
    if (header.going) {
      this.follows(header);
      return false;
    }
    this.underway = null;
    run?.stop();
    if (isShown && run?.key === header.key) {
      this.selection.take(header.chosen, this.set);
      if (run && run.ms !== null && JSON.stringify(this.selection.values) === before) {
        this.keep(header, body);
        this.unmark();
        return false;
      }
    } else if (isShown && this.before?.picture.key === header.key) this.goBack();
    this.unmark();
    this.selection.take(header.chosen, this.set);
    this.open(
      header,
      header.sites.map(
        (/** @type {import("../../../attention/browser/types.js").SiteHeader} */ site) => new Site(site, body),
      ),
    );
    this.keep(header, body);
    for (const answer of run && run.key === header.key ? run.answers : []) this.remote.keep(...answer);
    this.readChosen();
    if (this.options.show === "map") this.map.ask();
    return true;
  }

  // What is chosen now, as the parts work with it
  readChosen() {
    const { area } = this.options;
    this.place = placeOf(this.selection.values);
    this.options = this.onPage(optionsOf(this.selection.values));
    if (this.pin !== null) this.place.query = null; // of the two, a link to both means the key
    if (JSON.stringify(area) !== JSON.stringify(this.options.area)) this.map.open(this.options.area);
  }

  // Another picture, or the same with other numbers: nothing of the one before counts any more.
  /** @param {Picture} header @param {Site[]} sites */
  open(header, sites) {
    const same = this.picture?.key === header.key;
    this.root.hidden = false;
    this.picture = header;
    this.sites = sites;
    if (!same) this.remote = new Fetcher(header.key, (path) => this.arrived(path), header.receipts);
    this.remote.held = false;
    if (same) this.follow();
    this.ranks.clear();
    this.lenses.clear();
    this.forget();
    this.hover = null;
    this.tip.hidden = true;
  }

  // Answers that came with the picture
  /** @param {Picture} header @param {ArrayBuffer} body */
  keep(header, body) {
    for (const [path, params, at, size] of header.first ?? [])
      this.remote.keep(path, params, numbersOf(new Uint8Array(body, at, size)));
  }

  // ------------------------------------------------------------------ a run that still goes on

  // Its picture takes the place of the one before, if there is one, as soon as the head that is opened is there.
  /** @param {Picture} header */
  follows(header) {
    if (this.picture?.key === header.key) return;
    const known = this.underway;
    if (
      known?.key === header.key &&
      JSON.stringify(known.header.opened) === JSON.stringify(placeOf(header.chosen.values))
    ) {
      known.header = { ...header, opened: placeOf(header.chosen.values) }; // what was chosen meanwhile is in it
      this.came();
      return;
    }
    this.giveUp();
    this.underway = new Underway(
      { ...header, opened: placeOf(header.chosen.values) },
      (run, ...layer) => run === this.underway && this.came(...layer),
    );
  }

  /** @param {Site} [site] @param {number} [layer] */
  came(site, layer) {
    const run = this.underway;
    if (!run) return;
    if (run.isShown && site && layer !== undefined) this.overview.fill(site, layer);
    if (run.isShown && run.ms !== null) this.ended();
    this.root.dataset.underway = this.layersLeft;
    if (run.isShown) return;
    if (!run.canBeShown || this.selection.number > run.header.chosen.reported) return; // the run's header predates the latest selection
    const {
      picture,
      sites,
      remote,
      map: { area },
    } = this;
    this.before = picture && { picture, sites, remote, values: { ...this.selection.values }, area };
    run.isShown = true;
    document.documentElement.dataset.underway = ""; // the page dims what is of the run before
    this.selection.take(run.header.chosen, this.set);
    this.open(run.header, run.sites);
    this.remote.held = true;
    for (const answer of run.answers) this.remote.keep(...answer);
    this.readChosen();
    this.map.open(this.options.area);
    this.theme();
    this.stale.add("layout");
    this.drawNow();
  }

  // Of a run on the screen that still goes on: how many layers the pass has left, and of how many
  get layersLeft() {
    if (!this.underway?.isShown || this.underway.ms !== null) return "";
    /** @param {(site: Site) => number} count */
    const sum = (count) => this.sites.reduce((all, site) => all + count(site), 0);
    return `${sum((site) => site.left?.size ?? 0)} of ${sum((site) => site.layers)}`;
  }

  // Everything of it is there. The script's own picture, of the same numbers, is still to come.
  ended() {
    this.picture.ms = this.underway?.ms;
    for (const site of this.sites) site.left = null;
    this.remote.held = false;
    this.unmark();
    this.stale.add("run");
    this.drawNow(); // a visitor waits for it, and not for what follows:
    requestAnimationFrame(() => setTimeout(() => this.arrived())); // answers that no one could give before
  }

  // There is no picture before.
  empty() {
    this.picture = /** @type {any} */ (null);
    this.root.hidden = true;
    this.unmark();
  }

  // The run that went on is stopped, has failed, or is no longer wanted: the picture before comes back.
  goBack() {
    const { area, values, ...before } = /** @type {NonNullable<View["before"]>} */ (this.before);
    Object.assign(this, before);
    Object.assign(this.selection, { values, of: before.picture.key });
    this.readChosen();
    this.map.area = area;
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
    if (!this.before) return this.empty();
    const { picture, sites } = this.before;
    this.goBack();
    this.open(picture, sites);
    this.redraw("layout");
  }

  theme() {
    const name = themeOf(this.root);
    if (name === this.themeName) return;
    this.forget();
    this.themeName = name;
    this.palette = paletteOf(this.root, PALETTES);
    ({ ramp: this.colour, ahead: this.ahead } = rampsOf(this.root, this.palette));
  }

  // Drawings that are kept between frames
  forget() {
    for (const part of [this.overview, this.map, this.lines]) part.forget();
  }

  // The weights of all heads, where they come after the picture that they would have kept waiting
  follow() {
    const { picture, remote } = this;
    if (picture.whole || !picture.follows) return;
    const heads = remote.get("heads", {}, unpack);
    if (!heads || heads.refused) return;
    const [header, body] = heads;
    picture.whole = true;
    picture.ids = header.ids;
    for (const site of header.sites) this.sites.find(({ id }) => id === site.id)?.fill(site, body);
    this.ranks.clear();
    this.lenses.clear();
    this.lines.forget();
    this.redraw("map", "strip", "facts", "lines", "footer", "alike");
  }

  // An answer is there, or cannot be had. The large picture is drawn again only where it may be another one: rows and
  // scores come while a visitor moves over it.
  /** @param {string} [path] */
  arrived(path) {
    if (this.picture.whole && this.options.hide.length) this.ranks.clear(); // exact numbers may have come for faint rows
    const fetched = !this.picture.whole || this.options.hide.length || this.options.kind === "value";
    const isTurn = this.remote.failed !== this.isOffline; // which is said under the picture
    this.isOffline = this.remote.failed;
    if (path === "roles" && this.overview.wantsGroups) this.redraw("overview");
    if (path === "atlas") return this.map.atlas.draw();
    if (path === "roles") return this.options.show === "lines" ? this.redraw("map", "lines") : this.map.drawTitle();
    if (path === "row" && this.map.geometry?.isFold) this.redraw("map");
    const parts =
      path === "next"
        ? CHANGES.next
        : fetched
          ? ((isTurn ? null : CHANGES[path ?? ""]) ?? ["map", "facts", "strip", "lines"])
          : [];
    this.redraw("footer", ...parts, ...(this.overview.isWaiting() ? ["overview"] : []));
    const { query, key } = this.hover ?? { query: null, key: null };
    if (!this.tip.hidden && key != null && query !== null && this.options.show === "map")
      this.map.showTip({ query, key }, ...this.map.tipAt);
  }

  // The part of the map on the screen, which a link says; null for all of it
  /** @param {Options["area"]} area */
  keepArea(area) {
    this.options = { ...this.options, area };
  }

  tell() {
    this.selection.choose({ ...placeTexts(this.place), ...textsOf(this.options) });
  }

  // Options of a picture, with those that are of the whole page as they are there. Freeze and Spotlight are the projector's:
  // without it there would be no button that undoes them.
  /** @param {Options} options @returns {Options} */
  onPage(options) {
    const projector = settings().get("projector") === "true";
    const { frozen, spotlight } = options;
    return {
      ...options,
      theme: settings().get("theme") ?? "auto",
      projector,
      frozen: projector && frozen,
      spotlight: projector && spotlight,
    };
  }

  // The options that are not as they open, as the URL has them
  optionTexts() {
    return unlikeOpening(textsOf(this.options));
  }

  // ------------------------------------------------------------------ what is chosen, and its numbers

  get site() {
    return this.sites.find((site) => site.id === this.place.site) ?? this.sites[0];
  }

  /** @param {"query" | "key"} axis */
  labels(axis) {
    return this.picture.tokens[this.site[axis]];
  }

  // A key that is locked instead of a query
  get pin() {
    return this.options.pin;
  }

  set pin(key) {
    this.options = { ...this.options, pin: key };
  }

  /** @returns {At | null} */
  get hover() {
    return this.pointed ?? (this.pin === null ? null : { query: null, key: this.pin });
  }

  set hover(at) {
    this.pointed = at;
  }

  get query() {
    return this.hover ? this.hover.query : this.place.query;
  }

  get headName() {
    return [this.picture.key, this.site.id, this.place.layer, this.place.head].join();
  }

  // The numbers of the picture: what they are of, and what was done to them. Places are tokens throughout; the lens says
  // which of its rows and columns a token is in.
  lens() {
    const { picture, sites, site, place, remote } = this;
    // Of several heads the lines are drawn each in its colour; what is said, and every other picture, is their mean.
    const isSeveral = this.options.members.length > 0 && this.options.kind === "head";
    const options = isSeveral ? { ...this.options, kind: /** @type {const} */ ("mean") } : this.options;
    const of = { picture, sites, site, place, options, remote };
    const key = keyOf(of);
    let lens = this.lenses.get(key);
    if (!lens) {
      if (this.lenses.size >= KEPT_LENSES) this.lenses.delete(String(this.lenses.keys().next().value));
      this.lenses.set(key, (lens = new Lens(of)));
    }
    return lens;
  }

  // {weights, masked, bits, left} of one query token, by the keys of the lens; null while it is being fetched
  /** @param {number} query */
  row(query) {
    const lens = this.lens();
    return lens.row(lens.queryOf(query));
  }

  // The keys a query may look at, most weight first, and each one's rank; cached for the head on the screen.
  /** @param {number} query */
  ranking(query) {
    const id = `${this.lens().key},${this.lens().queryOf(query)}`;
    const known = this.ranks.get(id);
    if (known) return known;
    const row = this.row(query);
    if (!row) return null;
    /** @type {number[]} */
    const order = [];
    for (let k = 0; k < row.weights.length; k++) if (!row.masked?.[k]) order.push(k);
    order.sort((a, b) => row.weights[b] - row.weights[a] || a - b);
    /** @type {Map<number, number>} */
    const rank = new Map();
    order.forEach((k, i) => {
      const above = order[i - 1];
      rank.set(
        k,
        above !== undefined && row.weights[above] === row.weights[k] ? /** @type {number} */ (rank.get(above)) : i + 1,
      );
    });
    if (this.ranks.size > KEPT_ROWS) this.ranks.clear();
    const ranking = { ...row, order, rank };
    this.ranks.set(id, ranking);
    return ranking;
  }

  // Who looks at a key of the lens; null while that is fetched. Of a large run it is a lot of work, which no one gets for
  // having moved the pointer across a token.
  /** @param {number} key */
  column(key) {
    return this.isWorthAColumn(key) ? this.lens().column(key) : null;
  }

  /** @param {number} key */
  isWorthAColumn(key) {
    return this.picture.whole || (this.pin !== null && this.lens().keyOf(this.pin) === key);
  }

  // What each key of the lens gets on average over queries; null for a large run
  averages() {
    return this.lens().averages();
  }

  // What the facts and the table tell: keys by weight for the query, or on average where none is chosen.
  // ranking is null while it is fetched, and where there is no query.
  /** @returns {import("../../../attention/browser/types.js").Summary} */
  summary() {
    const { query } = this;
    const ranking = query === null ? null : this.ranking(query);
    if (ranking) return { ranking, order: ranking.order, weight: (k) => ranking.weights[k] };
    const mean = query === null ? this.averages() : null;
    const order = mean ? [...mean.keys()].sort((a, b) => mean[b] - mean[a] || a - b) : [];
    return { ranking: null, order, weight: (k) => mean?.[k] ?? 0 };
  }

  /** @param {number} code */
  reason(code) {
    const name = this.picture.reasons[code];
    return worded(words.reasons, name);
  }

  // ------------------------------------------------------------------ what a visitor does

  /** @param {Partial<Place>} at @param {Event} [event] */
  choose(at, event) {
    const before = this.site;
    const to = this.sites.find((site) => site.id === at.site) ?? before;
    if (!to.has(Math.min(at.layer ?? this.place.layer, to.layers - 1))) return this.announce(words.to_come);
    if (at.layer !== undefined) this.lines.follow(at.layer);
    this.place = { ...this.place, ...at };
    if ("query" in at) this.pin = null;
    if (this.site !== before) {
      const { site } = this;
      this.place.layer = Math.min(this.place.layer, site.layers - 1);
      this.place.head = Math.min(this.place.head, site.heads - 1);
      if (this.place.query !== null) this.place.query = Math.min(this.place.query, site.n_query - 1);
      this.map.open(null);
      this.hover = this.pin = null;
      this.options = { ...this.options, members: [], hide: [], area: null }; // they are of the kind of attention before
      this.ranks.clear();
      this.redraw("layout");
    }
    this.since = event?.timeStamp;
    this.tell();
    this.redraw("chosen", "map", "strip", "facts", "footer");
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.redraw("lines", "alike"), SETTLED); // what a held arrow key need not wait for
    this.say();
  }

  /** @param {number} query */
  lock(query) {
    this.pin = null;
    this.place = { ...this.place, query: query === this.place.query ? null : query };
    this.tell();
    this.redraw("over", "strip", "facts");
    this.say();
  }

  // Lock a key, to see who looks at it; a second time releases it.
  /** @param {number} key */
  pinKey(key) {
    this.pin = key === this.pin ? null : key;
    this.hover = null; // what is locked is shown, and not the token that has the focus
    this.place = { ...this.place, query: null };
    this.tell();
    this.redraw("over", "strip", "facts");
    this.say();
  }

  // What is locked, to come back to: a double click, which hides, has locked and released on its way.
  get locked() {
    return { query: this.place.query, pin: this.pin };
  }

  /** @param {{query: number | null, pin: number | null}} locked */
  relock({ query, pin }) {
    this.pin = pin;
    this.place = { ...this.place, query };
  }

  release() {
    this.pin = null;
    this.place = { ...this.place, query: null };
    this.hover = null;
    this.tip.hidden = true;
    this.tell();
    this.redraw("over", "strip", "facts");
    this.say();
  }

  /** @param {At | null} at @param {Event} [event] */
  point(at, event) {
    if (this.options.frozen) at = null;
    const same = at?.query === this.pointed?.query && at?.key === this.pointed?.key;
    if (!same) {
      this.hover = at;
      this.since = event?.timeStamp;
      this.redraw("over", "strip", "facts");
    }
    if (!at || at.key === null) this.tip.hidden = true;
  }

  // The one way to change how the picture is shown: the screen at once, Python and the URL soon after.
  /** @param {string} name @param {any} value @param {Event} [event] */
  setOption(name, value, event) {
    if (JSON.stringify(value) === JSON.stringify(/** @type {any} */ (this.options)[name])) return;
    this.since = event?.timeStamp;
    if (name === "theme") return settings().set("theme", value === "auto" ? null : value);
    if (name === "projector") return settings().set("projector", value ? "true" : null);
    this.options = { ...this.options, [name]: value };
    if (name === "scale" || name === "bounds") this.overview.forget();
    if (NUMBERS.includes(name)) {
      this.ranks.clear();
      this.forget();
    }
    if (name === "frozen") this.point(null);
    this.tell();
    this.redraw(...(REDRAWS[name] ?? ["layout"]));
    this.tools.mark();
    if (NUMBERS.includes(name)) this.say();
  }

  // ------------------------------------------------------------------ drawing, at most once a frame

  /** @param {string[]} what */
  redraw(...what) {
    for (const part of what) this.stale.add(part);
    if (!this.frame && this.picture) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    cancelAnimationFrame(this.frame);
    keepingFocus(this.root, () => this.paint());
  }

  paint() {
    this.frame = 0;
    const stale = new Set(this.stale);
    this.stale.clear();
    if (!this.root.isConnected) return;
    this.projector.apply();
    this.coverRows(stale);
    if (stale.has("layout")) {
      if (!this.layout()) return;
      for (const part of ["overview", "map", "strip", "facts", "lines", "footer", "alike"]) stale.add(part);
    }
    if (stale.has("over") && this.map.fold.isStale) stale.add("map"); // other columns, for another row
    if (stale.has("overview")) this.overview.draw();
    if (stale.has("overview") || stale.has("chosen")) this.overview.drawChosen();
    if (stale.has("map")) this.map.draw();
    if (stale.has("map") || stale.has("over")) this.map.drawOver();
    if (stale.has("strip")) this.strip.shade();
    if (stale.has("facts")) {
      this.facts.draw();
      if (this.options.show === "table") this.map.table.draw(this.summary());
    }
    if (stale.has("facts") || stale.has("lines")) this.lines.draw(stale.has("lines"));
    if (stale.has("alike")) this.overview.drawAlike();
    if (stale.has("run")) this.footer.tellRun();
    if (stale.has("footer")) this.footer.draw();
    if (stale.has("strip") || stale.has("over")) this.strip.drawArcs();
    if (stale.has("strip")) this.strip.bringIntoView(); // last: to measure, the browser lays out all that has changed
    this.publish();
    this.follow();
  }

  // Rows that a question covers are not drawn by any part: the row it opened at and the locked one; or all rows.
  /** @param {Set<string>} stale */
  coverRows(stale) {
    if (!this.sites) return; // the first run is still under way
    const own = cover.now?.values.query;
    const { site, place } = this;
    const isAll = own === "all"; // a class is about to be asked about one of them
    const asked = !cover.hides("row")
      ? []
      : isAll
        ? Array(site.n_query).keys()
        : [place.query, own === undefined ? null : Number(own)];
    const rows = [...new Set(asked)].filter((q) => q !== null && q < site.n_query);
    if (String(rows) === String(site.covered)) return;
    for (const one of this.sites) one.covered = [];
    site.covered = /** @type {number[]} */ (rows);
    this.ranks.clear();
    this.lenses.clear();
    this.forget();
    for (const part of ["map", "over", "strip", "facts", "lines", "footer", "overview"]) stale.add(part);
  }

  // What is on the screen, as data attributes: for tests, and for anybody who wants to read it
  publish() {
    const { dataset } = this.root;
    dataset.run = this.picture.key;
    dataset.underway = this.layersLeft;
    dataset.site = this.site.id;
    dataset.layer = String(this.place.layer);
    dataset.head = String(this.place.head);
    dataset.query = String(this.query ?? "");
    dataset.locked = String(this.place.query ?? "");
    dataset.tokens = String(this.site.n_query);
    const { theme, ...options } = this.options; // the theme that is on the screen is there already
    for (const [name, value] of Object.entries(options))
      dataset[name] = typeof value === "object" ? JSON.stringify(value) : String(value);
    const { query, key } = this.hover ?? { query: null, key: null };
    const cell = key != null && query !== null ? { query, key } : null;
    dataset.key = String(key ?? "");
    dataset.pin = String(this.pin ?? "");
    dataset.cell = cell ? `${cell.query},${cell.key}` : "";
    const row = cell && this.row(cell.query);
    dataset.value = cell && row ? row.weights[this.lens().keyOf(cell.key)].toFixed(6) : "";
    dataset.painted = String(++this.painted);
    if (!this.layersLeft) this.showToClass();
    const since = this.since;
    this.since = undefined;
    if (since !== undefined) requestAnimationFrame(() => (dataset.ms = (performance.now() - since).toFixed(1)));
  }

  // What a class that follows has on its screens, and what its teacher can ask about
  showToClass() {
    const { picture, place } = this;
    const at = {
      site: place.site,
      layer: String(place.layer),
      head: String(place.head),
      query: String(place.query ?? "none"),
    };
    const labels = (/** @type {string} */ id) =>
      picture.tokens[this.sites.find((site) => site.id === id)?.query ?? "source"] ?? [];
    classroom.show(
      {
        view: "explore",
        run: picture.key,
        text: picture.link?.text ?? "",
        with: { ...at, ...this.optionTexts() },
        labels,
      },
      this,
    );
  }

  // A wide window has the map with its words at the left, and at the right what it says and all heads. A small one has what the
  // map says first, then the map, the sentence under it, and all heads folded away: what is read first stands first, for the
  // keyboard too.
  /** @param {boolean} narrow */
  arrange(narrow) {
    if (this.narrow === narrow) return;
    this.narrow = narrow;
    this.root.classList.toggle("narrow", narrow);
    this.fold.hidden = !narrow;
    const { heads, map, facts } = this.sections;
    if (narrow) {
      this.main.prepend(this.facts.big);
      map.after(this.strip.box);
      this.fold.append(heads);
      /** @type {HTMLElement} */ (this.fold.firstChild).append(this.overview.title);
    } else {
      facts.prepend(this.facts.big);
      this.map.head.after(this.strip.box);
      this.main.append(heads);
      heads.prepend(this.overview.title);
    }
  }

  // Where the component begins on the page, however far that is scrolled.
  top() {
    return Math.round(this.root.getBoundingClientRect().top + scrolled());
  }

  // Sizes from the window: the picture fills the screen without scrolling. False while there is no room yet.
  layout() {
    const width = this.root.clientWidth;
    if (!width) return false;
    const projected = this.options.projector;
    const style = getComputedStyle(this.root);
    const em = parseFloat(style.fontSize);
    this.family = style.fontFamily;
    const isBeside = cover.now !== null; // a lesson, which takes a part of the window
    const wide = width > (projected ? 44 : isBeside ? 46 : 56) * em; // two columns, or one
    this.arrange(!wide);
    for (const part of [this.strip, this.map, this.footer, this.tools, this.guide]) part.build();
    const top = this.top();
    const below = 0.6 * em;
    const foot = [this.footer, this.page, this.projector].reduce((sum, { box }) => sum + box.offsetHeight, 0);
    const height = clamp(innerHeight - top - below - foot - 0.9 * em, (projected ? 14 : 22) * em, 64 * em);
    const side = wide ? (projected || (isBeside && width < 56 * em) ? PROJECTED_SIDE : SIDE) * em : width;
    this.root.style.setProperty("--side", `${side}px`);
    const free = wide ? width - side - 1.8 * em : width;
    const factsHeight =
      projected || !wide
        ? 0
        : (writes(this) ? 22 : 15.4) * em +
          (this.options.hide.length || this.site.kv_heads < this.site.heads ? 1.4 * em : 0);
    const note = (this.picture.whole || this.picture.follows) && !this.lens().note ? 0.2 * em : 2.6 * em; // room to say what was done to the numbers
    const isMap = this.options.show === "map";
    this.sections.facts.style.height = factsHeight ? `${factsHeight}px` : "";
    this.room = {
      em,
      headsWidth: side,
      headsHeight: wide ? height - factsHeight - 0.5 * em : Infinity,
      mapWidth: free,
      mapHeight: Math.max(20 * em, width),
      height: wide ? height : Infinity,
      seen: `${width},${top}`,
    };
    // The words stand over the columns if they fit beside a map of this height; else the text takes its own room above it.
    const head = this.map.head.offsetHeight;
    const tools = () => `${this.map.canFold},${this.map.zooms()},${this.map.hasColumns}`;
    const known = tools();
    const across = this.site.query === this.site.key ? 2.4 + 2.25 : 1.6 + 2.25 + 2.3;
    const tall = wide ? height - head - note - across * em : this.room.mapHeight;
    this.map.isLong = this.map.isLongIn(free, tall, em);
    const g = wide && isMap ? this.map.measure(free, tall, em) : null;
    if (g?.isHeader) {
      this.map.geometry = g;
      this.strip.lay(g);
      this.room.mapHeight = Math.min(
        height - head - note - this.strip.box.offsetHeight,
        g.top + g.cell * this.lens().n_query + 4,
      );
    } else {
      this.strip.lay(null);
      // A long text takes as many lines as leave room for the rows of the folded map.
      const most =
        g?.isFold && !projected ? Math.max(4.3, (height - head - note) / em - LEAST_FOLD) / this.strip.axes.length : 0;
      this.strip.box.style.setProperty("--most", most ? `${most}em` : "");
      const said = g?.isFold ? (0.4 + 1.1 * this.map.foldedLines(free, em)) * em : note; // which is always there
      if (wide) this.room.mapHeight = height - head - said - (this.strip.box.offsetHeight + 0.7 * em);
      this.map.geometry = this.map.measure(free, this.room.mapHeight, em);
      if (!wide && isMap)
        this.room.mapHeight = Math.min(
          this.room.mapHeight,
          this.map.geometry.top + this.map.geometry.cell * this.map.rows + 4,
        );
    }
    if (tools() !== known) this.tools.build();
    this.main.style.minHeight = wide ? `${height}px` : "";
    for (const box of [this.map.box, this.map.table.box]) box.style.height = `${this.room.mapHeight}px`;
    return true;
  }

  // The page's typeface, as the last layout found it: asking the browser again would have it compute every style first
  font() {
    return this.family;
  }

  /** @param {number} x @param {number} y */
  putTip(x, y) {
    const box = this.root.getBoundingClientRect();
    this.tip.hidden = this.options.frozen;
    const left = Math.min(x - box.left + 14, box.width - this.tip.offsetWidth - 4);
    const above = y + 18 + this.tip.offsetHeight > innerHeight;
    const top = above ? y - box.top - this.tip.offsetHeight - 12 : y - box.top + 16;
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
  }

  // For a screen reader, now
  /** @param {string} text */
  announce(text) {
    clearTimeout(this.saying);
    this.live.textContent = text;
  }

  // For a screen reader, once the visitor has paused
  say() {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      const { title } = this.lens();
      this.live.textContent = `${title}. ${this.facts.big.textContent}`;
    }, SAY_AFTER);
  }
}
