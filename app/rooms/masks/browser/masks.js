// Masks: five labs on one run. This file has what they share: choices, the run with another mask, keys, sentence, files and link.

import { csv } from "../../../kit/browser/csv.js";
import { arrow, choice, clamp, el, fill, keepingFocus, worded } from "../../../kit/browser/dom.js";
import { paletteOf, themeOf } from "../../../kit/browser/colours.js";
import { RoomSelection, whole } from "../../../kit/browser/selection.js";
import { cover, Guard } from "../../../kit/browser/cover.js";
import { rows } from "../../../kit/browser/drawing.js";
import { Files } from "../../../kit/browser/files.js";
import { isFree, takesArrows } from "../../../kit/browser/shortcuts.js";
import { unpack } from "../../../kit/browser/messages.js";
import { mounted } from "../../../kit/browser/mount.js";
import { Projector } from "../../../kit/browser/projector.js";
import { Fetcher } from "../../../kit/browser/fetcher.js";
import { linkTo, Share } from "../../../kit/browser/share.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Kinds } from "./kinds.js";
import { Leak } from "./leak.js";
import { swatch, tones } from "./maps.js";
import { Padding } from "./padding.js";
import { Paint } from "./paint.js";
import { Scale } from "./scale.js";
import { Scores } from "./sheet.js";

const LABS = { paint: Paint, padding: Padding, leak: Leak, kinds: Kinds, scale: Scale };
// What a lesson may cover
const BOARD = ".fact, .stage, .table, .foot > .ok, .foot > .legend, .unseen";
/** @type {Record<string, string>} */
const COVERS = { row: BOARD, number: BOARD };
const NARROW = 720; // pixels: maps stand below each other
const STACKED = 940; // pixels: what is said beside the maps stands below them, as beside a lesson
const PROJECTED = 0.7; // of the projected page's type: what stands below the sentence, as masks.css has it
const RETRY = 3200; // ms, a little longer than Fetcher keeps still after a failure
export const UNMASKED = { mask: "model", when: "before", fill: "inf", forbid: "", allow: "" };

/** @param {import("../../../kit/browser/types.js").Given<Uint8Array>} given */
export default function ({ data, parentElement, setStateValue }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new Masks(root));
  view.update(data, setStateValue);
  return leave;
}

export class Masks {
  /** @type {import("./types.js").Header} */
  header;
  /** @type {[header: any, body: ArrayBuffer]} What Python sent last */
  sent;
  /** @type {Map<string, Scores>} */
  sites = new Map();
  /** @type {import("./types.js").Lab} */
  lab;
  /** @type {ReturnType<typeof tones>} */
  tones;
  /** @type {Fetcher} */
  remote;
  type = 1; // how large the page's type is, in units of 16 pixels: drawings grow with it
  pixels = 0; // how wide the room is
  width = 0; // and in the units of its drawings
  tall = 0; // how tall the window is, in those
  layout = "";
  bar = "";
  frame = 0;
  /** @type {number | undefined} */
  retry;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.chosen = new RoomSelection();
    this.tabs = root.appendChild(el("div", "tabs"));
    this.fact = root.appendChild(el("h2", "fact"));
    this.fact.setAttribute("aria-live", "polite");
    this.stage = root.appendChild(el("div", "stage"));
    this.tableBox = root.appendChild(el("div", "table"));
    this.tableBox.tabIndex = 0;
    this.tableBox.setAttribute("role", "region");
    this.foot = root.appendChild(el("div", "foot"));
    this.ok = this.foot.appendChild(el("span", "ok"));
    this.rest = this.foot.appendChild(el("span"));
    this.legend = this.foot.appendChild(el("span", "legend"));
    const acts = this.foot.appendChild(el("span", "acts"));
    this.said = root.appendChild(el("p", "unseen"));
    this.said.setAttribute("role", "status");
    this.tip = root.appendChild(el("div", "tip"));
    this.tip.hidden = true;
    this.projector = new Projector(
      () => this.redraw(),
      (by) => this.turn(by),
    );
    this.files = new Files(
      () => rows([this.fact, this.stage]),
      () => this.about(),
      () => this.tones.palette,
    );
    this.share = new Share(
      root,
      () => linkTo({ ...this.header.link, ...this.values }),
      (text) => this.announce(text),
    ); // also what is empty: cells open otherwise
    this.tableButton = el("button", "quiet", words.table);
    this.tableButton.type = "button";
    this.tableButton.addEventListener("click", () => this.choose({ table: this.values.table === "on" ? "off" : "on" }));
    acts.append(this.tableButton, ...this.share.actions(), this.files.box, this.projector.button);
    this.pressed = (/** @type {KeyboardEvent} */ e) => this.key(e);
    document.addEventListener("keydown", this.pressed);
    this.sized = new ResizeObserver(() => this.redraw());
    this.sized.observe(root);
    this.guard = new Guard(root, COVERS);
    this.uncovers = cover.watch(() => this.header && this.redraw());
  }

  destroy() {
    document.removeEventListener("keydown", this.pressed);
    this.sized.disconnect();
    this.uncovers();
    this.guard.destroy();
    this.chosen.destroy();
    this.projector.destroy();
    this.files.destroy();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.retry);
    this.lab?.destroy?.();
  }

  /** @param {Uint8Array} data @param {import("../../../kit/browser/types.js").Tell} setStateValue */
  update(data, setStateValue) {
    const [header, body] = unpack(data);
    const isNew = header.key !== this.header?.key;
    const before = this.state();
    this.sent = [header, body];
    this.header = header;
    this.share.isOffline = Boolean(header.offline);
    cover.take(header.cover);
    this.chosen.take(header.chosen, setStateValue);
    if (isNew) {
      this.sites = new Map(
        header.sites.map((/** @type {import("./types.js").SiteHeader} */ site) => [site.id, new Scores(site, body)]),
      );
      this.remote = new Fetcher(header.key, () => this.arrived());
      this.layout = "";
    }
    const isDrawn =
      this.root.dataset.painted && this.state() === before && this.root.dataset.theme === themeOf(this.root);
    if (isDrawn) return; // Python's answer to a change that is drawn already
    this.redraw(true);
  }

  // All that Python decides of what is drawn
  state() {
    return JSON.stringify([this.header?.key, this.header?.lines, this.header?.text, this.values]);
  }

  get values() {
    return this.chosen.values;
  }

  /** The kind of attention that is painted. */
  get site() {
    return /** @type {Scores} */ (this.sites.get(this.values.site) ?? this.sites.values().next().value);
  }

  get place() {
    const { layers, heads, n_query } = this.site;
    return {
      layer: clamp(whole(this.values.layer), 0, layers - 1),
      head: clamp(whole(this.values.head), 0, heads - 1),
      query: clamp(whole(this.values.query), 0, n_query - 1),
    };
  }

  /** @param {"source" | "target"} side @returns {string[]} */
  labels(side) {
    return this.header.labels[side] ?? this.header.labels.source;
  }

  get narrow() {
    return this.width < NARROW;
  }

  // What stands beside three maps takes of their width; none where it stands below them
  get beside() {
    return this.width < STACKED ? 0 : 330;
  }

  // What holds both; it says itself how they stand, since a lesson may cover it before the room is drawn
  get board() {
    return this.beside ? "board" : "board stacked";
  }

  // Read once a drawing, before anything of it is written: in the middle of it the page would be laid out for the answer.
  measure() {
    const size = parseFloat(getComputedStyle(this.root).fontSize) / 16 || 1;
    this.type = this.projector.on ? size * PROJECTED : size;
    this.pixels = this.root.clientWidth;
    this.tall = innerHeight / this.type;
    this.width = this.pixels / this.type;
  }

  // Units that are left for a picture in a window of this height, where so many go to what stands above and below it
  /** @param {number} around @param {number} [least] */
  below(around, least = 150) {
    return Math.max(least, this.tall - around);
  }

  /** @param {Record<string, string>} changes */
  choose(changes) {
    this.chosen.choose(changes);
    this.redraw();
  }

  // An answer of the room's routes, or null while it is on its way
  /** @param {string} path @param {import("../../../kit/browser/types.js").Params} params @returns {any} */
  ask(path, params) {
    return this.remote.get(`masks/${path}`, params, (bytes) => {
      const [header, body] = unpack(bytes);
      return { header, body };
    });
  }

  arrived() {
    clearTimeout(this.retry);
    if (this.remote.failed) this.retry = setTimeout(() => this.redraw(), RETRY);
    this.redraw();
  }

  // The scores of a head under the model's own mask; null while its layer is on its way
  /** @param {Scores} site @param {number} layer @param {number} head */
  scores(site, layer, head) {
    if (!site.has(layer)) {
      const found = this.ask("scores", { site: site.id, layer });
      if (found?.refused) this.announce(found.refused);
      if (!found?.header) return null;
      site.take(found.header.site, found.body);
    }
    return site.scores(layer, head);
  }

  redraw(now = false) {
    cancelAnimationFrame(this.frame);
    if (now) this.draw();
    else this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (!this.header || !this.root.isConnected) return;
    const began = performance.now();
    this.measure();
    const scheme = themeOf(this.root);
    const name = /** @type {keyof typeof LABS} */ (this.values.lab in LABS ? this.values.lab : "paint");
    const projected = this.projector.on;
    const layout = [
      this.header.key,
      name,
      scheme,
      Math.round(this.pixels),
      this.type,
      projected,
      this.values.site,
    ].join(" ");
    if (layout !== this.layout) {
      this.layout = layout;
      this.tones = tones(scheme);
      this.root.style.setProperty("--bar", paletteOf(this.root, PALETTES).ramp[3]);
      this.root.dataset.projector = String(projected);
      keepingFocus(this.root, () => {
        this.lab?.destroy?.();
        this.stage.replaceChildren();
        this.stage.dataset.lab = name;
        this.lab = new LABS[name](this, this.stage);
      });
      this.bar = "";
    }
    this.lab.draw();
    this.drawBar(name);
    this.drawFoot();
    Object.assign(this.root.dataset, {
      painted: "1",
      lab: name,
      run: this.header.key,
      ...this.place,
      ms: (performance.now() - began).toFixed(1),
    });
  }

  /** @param {string} name */
  drawBar(name) {
    const { layer, head } = this.place;
    const state = [name, layer, head, this.values.whose, this.isChanged, this.values.site, this.layout].join(" ");
    if (state === this.bar) return;
    this.bar = state;
    keepingFocus(this.root, () => {
      const labs = choice(
        words.labs,
        Object.entries(words.lab).map(([id, label]) => /** @type {[string, string]} */ ([id, label])),
        name,
        (id) => this.choose({ lab: id }),
      );
      labs.classList.add("main");
      this.tabs.replaceChildren(labs);
      if (name !== "paint" && (name !== "scale" || this.projector.on)) return; // projected, the buttons stand there
      const right = this.tabs.appendChild(el("span", "right"));
      if (this.sites.size > 1) {
        const sites = [...this.sites.keys()].map(
          (id) => /** @type {[string, string]} */ ([id, worded(words.sites, id)]),
        );
        right.append(
          choice(words.site, sites, this.site.id, (id) => {
            const opening = this.sites.get(id) && this.header.sites.find((site) => site.id === id)?.opening;
            this.choose({
              ...UNMASKED,
              site: id,
              ...(opening ? { layer: String(opening[0]), head: String(opening[1]), query: String(opening[2]) } : {}),
            });
          }),
        );
      }
      right.append(el("b", "place", fill(words.place, { layer, head })));
      const steps = right.appendChild(el("span", "seg steps"));
      for (const [by, sign, label] of /** @type {[number, string, string][]} */ ([
        [-1, "‹", words.previous_head],
        [1, "›", words.next_head],
      ])) {
        const button = steps.appendChild(el("button", "", sign));
        Object.assign(button, { type: "button", title: label, ariaLabel: label });
        button.addEventListener("click", () => this.step(by));
      }
      if (name === "scale") return;
      const whose = Object.entries(words.whose_of).map(([id, label]) => /** @type {[string, string]} */ ([id, label]));
      right.append(
        choice(words.whose, whose, this.isChanged ? this.values.whose : "model", (id) => this.choose({ whose: id })),
      );
      const reset = right.appendChild(el("button", "quiet", words.reset));
      Object.assign(reset, { type: "button", title: words.reset_help, disabled: !this.isChanged });
      reset.addEventListener("click", () => this.reset());
    });
  }

  drawFoot() {
    const { ok, rest, legend } = this.lab.foot();
    this.ok.textContent = ok.join("   ");
    this.rest.textContent = rest.join(" · ");
    if (this.legend.dataset.of !== legend.join(" ") + this.layout) {
      this.legend.dataset.of = legend.join(" ") + this.layout;
      this.legend.replaceChildren(
        ...legend.map((name) => {
          const one = el("span");
          one.append(swatch(name, this.tones.palette), ` ${worded(words.legend, name)}`);
          return one;
        }),
      );
    }
    this.tableButton.hidden = !("table" in this.lab);
    this.tableButton.setAttribute("aria-pressed", String(this.values.table === "on"));
    this.tableBox.hidden = this.tableButton.hidden || this.values.table !== "on";
    if (!this.tableBox.hidden) /** @type {any} */ (this.lab).table(this.tableBox);
  }

  get isChanged() {
    const { mask, when, fill: filled, forbid, allow } = this.values;
    return mask !== "model" || when !== "before" || filled !== "inf" || forbid !== "" || allow !== "";
  }

  reset() {
    this.choose({ ...UNMASKED, whose: "yours" });
  }

  // Head by head, over the ends of layers
  /** @param {number} by */
  step(by) {
    const { layers, heads } = this.site;
    const { layer, head } = this.place;
    const at = (layer * heads + head + by + layers * heads) % (layers * heads);
    this.choose({ layer: String(Math.floor(at / heads)), head: String(at % heads) });
  }

  /** @param {number} by */
  turn(by) {
    const names = Object.keys(LABS);
    this.choose({ lab: names[clamp(names.indexOf(this.values.lab) + by, 0, names.length - 1)] });
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    const [at] = e.composedPath();
    const inside = e.composedPath().includes(this.root);
    if (!isFree(e) || !this.root.isConnected || !(inside || at === document.body)) return;
    const step = inside && !takesArrows(at) ? arrow(e) : undefined;
    const paints = this.values.lab === "paint";
    if (paints && e.key.toLowerCase() === "b")
      this.choose({ whose: this.values.whose === "yours" ? "model" : "yours" });
    else if (paints && e.key === "Escape" && this.isChanged && !this.projector.on) this.reset();
    else if (step && this.lab.arrow) this.lab.arrow(...step);
    else return;
    this.redraw(true); // by the next frame it stands there, and is not begun with it
    e.preventDefault();
  }

  /** @param {import("./types.js").Piece[]} found */
  say(found) {
    const text = found.map(([piece]) => piece).join("");
    if (this.fact.dataset.text === text) return;
    this.fact.dataset.text = text;
    this.fact.replaceChildren(
      ...found.map(([piece, tone]) =>
        tone ? (tone === "sub" ? el("sub", "", piece) : el("em", tone, piece)) : document.createTextNode(piece),
      ),
    );
  }

  /** @param {string} text */
  announce(text) {
    this.said.textContent = text;
  }

  /** @param {string} text @param {PointerEvent | null} [e] */
  hint(text, e = null) {
    this.tip.hidden = !text || !e;
    if (!text || !e) return;
    this.tip.textContent = text;
    const frame = this.root.getBoundingClientRect();
    this.tip.style.left = `${clamp(e.clientX - frame.left + 14, 0, Math.max(0, frame.width - 330))}px`;
    this.tip.style.top = `${e.clientY - frame.top + 16}px`;
  }

  /** @returns {import("../../../kit/browser/types.js").OfflinePage} */
  page() {
    const [header, body] = this.sent;
    const chosen = { values: { ...this.values }, stamp: 1, reported: 0 };
    return {
      path: "masks/page",
      theme: this.tones === tones("dark") ? "dark" : "light",
      message: [{ ...header, chosen, offline: true }, body],
      remotes: [this.remote],
    };
  }

  /** @returns {import("../../../kit/browser/types.js").AboutFiles} */
  about() {
    const { caption, snippet, name, tables, arrays } = this.lab.files();
    const said = this.fact.textContent ?? "";
    return {
      title: said,
      alt: said,
      caption,
      snippet,
      name: `${name}-${this.values.lab}`,
      tables: tables.map(([label, file, columns, body]) => [
        label,
        `${name}-${file}`,
        csv(columns, body, [caption, snippet]),
        { of: file, columns, rows: body },
      ]),
      arrays,
      page: this.header.offline ? undefined : this.page(),
    };
  }
}
