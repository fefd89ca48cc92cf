// The Export menu: what is on the screen as PNG, SVG, CSV, NPZ or a page that works offline, each saying what it shows.
//
// Pictures and pages are made here; caption, code and exact numbers come from the server (app/export/), which knows the
// model's revision and has every digit.

import { placeTexts, textsOf } from "./values.js";
import { colours } from "../../kit/browser/colours.js";
import { PALETTES, WORDS as words } from "./constants.js";
import { add, choice, el, fill } from "../../kit/browser/dom.js";
import { headsFigure, linesFigure, mapFigure } from "./figure.js";
import { foldFigure } from "./foldfigure.js";
import { base64, pack, unpack } from "../../kit/browser/messages.js";
import { addressOf } from "./page.js";
import { copy, save } from "../../kit/browser/save.js";
import { canvas, png, svg } from "../../kit/browser/scene.js";

// What the view is of, and what it looks like: all that an export must not see change
/** @type {(keyof import("./types.js").View)[]} */
const SHOWN = ["picture", "sites", "data", "remote", "place", "options", "pointed", "palette", "colour", "themeName"];
/** @typedef {import("./types.js").View} View */
/** @typedef {import("./figureparts.js").Still} Still */
/** @typedef {Record<string, any>} Params */
/** @typedef {import("../../kit/browser/types.js").About & {fact: import("./figureparts.js").Fact, said: string[]}} About */
const SENTENCE = 300; // letters of the text that a picture says it is of
const WHOLE = 512; // tokens; the numbers of a longer map are those on the screen
const PAPER = "#ffffff";
const FALLBACK = "'Source Sans 3', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"; // where the page's font is not installed

export class Export {
  /** @type {HTMLElement} Made again whenever the menu opens */
  status;

  /** @param {View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.of = "shown"; // or heads: which picture
    this.paper = false; // light, on white, whatever the page
    this.open = el("button", "quiet", words.export);
    Object.assign(this.open, { type: "button", title: words.export_help });
    this.open.setAttribute("aria-haspopup", "dialog");
    this.open.setAttribute("aria-expanded", "false");
    this.panel = add(parent, "div", "options export");
    this.panel.setAttribute("role", "dialog");
    this.panel.setAttribute("aria-label", words.export);
    this.panel.hidden = true;
    this.open.addEventListener("click", () => this.toggle(this.panel.hidden === true));
    for (const box of /** @type {HTMLElement[]} */ ([this.open, this.panel]))
      box.addEventListener("keydown", (e) => this.key(e));
    this.away = (/** @type {PointerEvent} */ e) => {
      const path = e.composedPath();
      if (!path.includes(this.panel) && !path.includes(this.open)) this.toggle(false);
    };
  }

  destroy() {
    document.removeEventListener("pointerdown", this.away);
  }

  // What it adds below the picture; a page that was exported has no server to export from.
  actions() {
    return this.view.picture.offline ? [] : [this.open];
  }

  build() {
    const { options } = this.view;
    /** @param {string} label @param {HTMLElement[]} nodes */
    const line = (label, ...nodes) => {
      const made = el("div", "line");
      const box = el("span", "buttons");
      box.append(...nodes);
      made.append(el("span", "mute", label), box);
      return made;
    };
    /** @param {string} label @param {string} help @param {(still: Still) => string | Promise<string>} act */
    const button = (label, help, act) => {
      const made = el("button", "quiet", label);
      Object.assign(made, { type: "button", title: help });
      made.addEventListener("click", () => this.act(act));
      return made;
    };
    /** @type {import("../../kit/browser/types.js").Choice<string>[]} */
    const pictures = [
      ["shown", options.show === "lines" ? words.lines_tab : words.map],
      ["heads", words.export_heads],
    ];
    /** @type {import("../../kit/browser/types.js").Choice<boolean>[]} */
    const paper = [
      [false, words.export_screen],
      [true, words.export_paper],
    ];
    this.status = el("p", "note");
    this.status.setAttribute("role", "status");
    this.status.textContent = words.export_note;
    this.panel.replaceChildren(
      line(
        words.export_picture,
        choice(words.export_picture, pictures, this.of, (of) => (this.of = of)),
      ),
      line(
        words.export_colours,
        choice(words.export_colours, paper, this.paper, (on) => (this.paper = on)),
      ),
      line(
        words.export_image,
        ...[1, 2, 4].map((scale) =>
          button(`PNG ${scale}×`, words.export_png_help, (still) => this.savePng(still, scale)),
        ),
        button("SVG", words.export_svg_help, (still) => this.saveSvg(still)),
      ),
      line(
        words.export_numbers,
        button("CSV", words.export_csv_help, (still) => this.saveNumbers(still, "csv")),
        button("NPZ", words.export_npz_help, (still) => this.saveNumbers(still, "npz")),
      ),
      line(
        words.export_page,
        button("HTML", words.export_html_help, (still) => this.saveHtml(still)),
        button("Plotly", words.export_plotly_help, (still) => this.inspect(still)),
      ),
      line(
        words.export_copy,
        button(words.export_snippet, words.export_snippet_help, (still) => this.copy(still, "snippet")),
        button(words.export_alt, words.export_alt_help, (still) => this.copy(still, "alt")),
      ),
      this.status,
    );
  }

  /** @param {boolean} open */
  toggle(open) {
    if (this.panel.hidden === !open) return;
    if (open) this.build();
    this.panel.hidden = !open;
    this.open.setAttribute("aria-expanded", String(open));
    if (open) {
      document.addEventListener("pointerdown", this.away);
      this.panel.querySelector("button")?.focus();
    } else {
      document.removeEventListener("pointerdown", this.away);
    }
  }

  /** @param {KeyboardEvent} e */
  key(e) {
    if (e.key !== "Escape" || this.panel.hidden) return;
    e.stopPropagation();
    this.toggle(false);
    this.open.focus();
  }

  // Whatever happens is said in the menu. What is taken away is what was on the screen at the click.
  /** @param {(still: Still) => string | Promise<string>} what */
  async act(what) {
    this.say(words.export_busy);
    try {
      this.say((await what(this.still())) ?? "");
    } catch (error) {
      this.say(/** @type {{sentence?: string}} */ (error).sentence ?? words.export_failed);
    }
  }

  /** @param {string} sentence */
  say(sentence) {
    this.status.textContent = sentence;
  }

  // The view as it is now, which stays so while the server is asked; with the sentence of the facts, and what was chosen here
  /** @returns {Still} */
  still() {
    const { view, of, paper } = this;
    const still = Object.create(view);
    for (const name of SHOWN) still[name] = view[name];
    /** @param {object} live @param {object} own */
    const part = (live, own) => Object.assign(Object.create(live), own);
    const large = part(view.lines.large, { view: still, now: view.lines.large.now });
    const fold = part(view.map.fold, { view: still });
    const shown = {
      map: part(view.map, {
        view: still,
        area: view.map.area && [...view.map.area],
        geometry: view.map.geometry,
        fold,
      }),
      overview: part(view.overview, { view: still, numbers: view.overview.numbers }),
      lines: part(view.lines, { view: still, large }),
    };
    const fact = [...view.facts.big.childNodes].map((node) => [
      node.textContent?.replace(` ${words.choose}`, "") ?? "",
      node instanceof HTMLElement && node.nodeName === "EM" ? node.className || "b" : "",
    ]);
    return Object.assign(still, shown, { fact, of, paper });
  }

  // ------------------------------------------------------------------ what an export says about itself

  // What is on the screen, in the words of the URL. Numbers are of the whole map where that is not too long.
  /** @param {View} view */
  params(view, what = "shown") {
    const { picture, place, options, map } = view;
    const { hide, kind, heads, words: merged } = view.optionTexts();
    const show = what === "heads" ? "heads" : what === "shown" && options.show === "lines" ? "lines" : "map";
    /** @type {Params} */
    const params = {
      run: picture.key,
      site: place.site,
      layer: place.layer,
      head: place.head,
      kind,
      heads,
      hide,
      words: merged,
    };
    Object.assign(params, { scale: map.scaleShown, show, keep: options.keep });
    if (options.bounds) params.bounds = options.bounds.join();
    if (what === "heads") params.metric = view.overview.metric;
    const { n_query, n_key } = view.lens();
    const isPart = what !== "numbers" || Math.max(n_query, n_key) > WHOLE;
    if (isPart) [params.q0, params.q1, params.k0, params.k1] = /** @type {import("./types.js").Area} */ (map.area);
    return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined));
  }

  // A file of the export route
  /** @param {string} format @param {Params} [params] */
  ask(format, params = {}) {
    return this.fetch("export", { format, ...params });
  }

  /** @param {string} path @param {Params} params */
  async fetch(path, params) {
    const url = new URL(`headlight/${path}`, document.baseURI);
    url.search = String(new URLSearchParams(params));
    let response;
    try {
      response = await fetch(url);
    } catch {
      throw { sentence: words.offline };
    }
    if (!response.ok) throw { sentence: response.status < 500 ? await response.text() : words.export_failed };
    return response;
  }

  // {title, caption, snippet, name, alt, fact}
  /** @param {Still} view @returns {Promise<About>} */
  async about(view, what = "shown") {
    const params = this.params(view, what);
    const told = await (await this.ask("about", params)).json();
    const { site, place } = view;
    const lens = view.lens();
    /** @type {import("./figureparts.js").Fact} */
    const outlined = [[fill(words.export_outlined, { head: fill(words.place, place) }), ""]];
    const fact = what === "heads" ? outlined : view.fact;
    const sizes = { title: told.title, n: lens.n_query, m: lens.n_key, layers: site.layers, heads: site.heads };
    /** @type {Record<string, string>} */
    const shapes = { map: words.export_alt_map, lines: words.export_alt_lines, heads: words.export_alt_heads };
    return {
      ...told,
      fact,
      said: this.said(view),
      alt: `${fill(shapes[params.show], sizes)} ${fact.map(([text]) => text).join("")}`,
    };
  }

  // What a picture is of, for a reader who has nothing else: the text, and the link that opens it
  /** @param {Still} view @returns {string[]} */
  said(view) {
    const { text, target } = view.picture.link;
    const texts = [text, target]
      .filter(Boolean)
      .map((said) => `“${said.length > SENTENCE ? `${said.slice(0, SENTENCE)}…` : said}”`);
    if (view.picture.offline) return texts;
    return [...texts, addressOf(view)];
  }

  // ------------------------------------------------------------------ pictures

  /** @param {Still} view */
  style(view) {
    const palette = view.paper ? { ...PALETTES.light, background: PAPER } : view.palette;
    const first = view.font().split(",")[0].trim();
    return {
      palette,
      colour: colours(palette.ramp),
      ahead: colours(palette.ahead),
      font: `${first}, ${FALLBACK}`.replaceAll('"', "'"),
    };
  }

  // Whether the words stand over columns that are as wide as they are, and not over a square grid
  /** @param {Still} view */
  isOfWords({ map, options }) {
    return Boolean(map.geometry?.isFold || (map.geometry?.isHeader && options.widths === "words"));
  }

  /** @param {Still} view */
  async figure(view) {
    const about = await this.about(view, view.of);
    const make =
      view.of === "heads"
        ? headsFigure
        : view.options.show === "lines"
          ? linesFigure
          : this.isOfWords(view)
            ? foldFigure
            : mapFigure;
    const scene = make(view, this.style(view), about);
    if (!scene) throw { sentence: words.export_wait };
    return { scene, about };
  }

  /** @param {Still} view @param {number} scale */
  async savePng(view, scale) {
    const { scene, about } = await this.figure(view);
    const texts = {
      Title: about.title,
      Description: about.alt,
      Comment: about.caption,
      Source: about.snippet,
      Software: "Headlight",
    };
    const blob = await png(canvas(scene, scale), texts, scale);
    return save(`${about.name}${scale > 1 ? `@${scale}x` : ""}.png`, blob);
  }

  /** @param {Still} view */
  async saveSvg(view) {
    const { scene, about } = await this.figure(view);
    return save(`${about.name}.svg`, new Blob([svg(scene, about)], { type: "image/svg+xml" }));
  }

  // ------------------------------------------------------------------ numbers, page, Plotly, clipboard

  /** @param {Still} view @param {string} format */
  async saveNumbers(view, format) {
    const about = await this.about(view, "numbers");
    const response = await this.ask(format, { ...this.params(view, "numbers"), alt: about.alt });
    return save(`${about.name}.${format}`, await response.blob());
  }

  // The page is the component itself with this run's bytes, opening on this place.
  /** @param {Still} view */
  async saveHtml(view) {
    if (!view.picture.whole) throw { sentence: view.picture.follows ? words.export_wait : words.export_whole_only };
    const [about, page] = await Promise.all([this.about(view), this.ask("page").then((response) => response.text())]);
    const [header, body] = await this.everything(view);
    const { title, caption, alt, snippet } = about;
    const told = {
      ...header,
      chosen: {
        values: { ...placeTexts(view.place), ...textsOf(view.options), frozen: "false" },
        stamp: 1,
        reported: 0,
      },
      offline: true,
      theme: view.themeName,
      about: { title, caption, alt, snippet, note: words.offline_page, code: words.offline_code },
      receipts: await this.receipts(view),
    };
    const data = await base64(pack(told, body));
    return save(`${about.name}.html`, new Blob([page.replace("{{DATA}}", () => data)], { type: "text/html" }));
  }

  // The picture with all heads and all norms in it, whatever came later than the rest
  /** @param {View} view @returns {Promise<[header: any, body: ArrayBuffer]>} */
  async everything(view) {
    let [header, body] = unpack(view.data);
    if (!header.whole) {
      /** @type {any[]} */
      const [heads, weights] = view.remote.get("heads", {}, unpack) ?? [];
      if (!heads) throw { sentence: words.export_wait };
      const sites = header.sites.map((/** @type {import("./types.js").SiteHeader} */ site) => ({
        ...site,
        thumbnails_at: undefined,
        ...heads.sites.find((/** @type {{id: string}} */ { id }) => id === site.id),
      }));
      [header, body] = [{ ...header, sites, ids: heads.ids, whole: true, follows: false, first: undefined }, weights];
    }
    const parts = [body];
    let size = body.byteLength;
    for (const site of header.sites) {
      const response = await this.fetch("norms", { run: header.key, site: site.id });
      const [, norms] = unpack(new Uint8Array(await response.arrayBuffer()));
      site.norms_at = size;
      parts.push(norms);
      size += norms.byteLength;
    }
    return [header, await new Blob(parts).arrayBuffer()];
  }

  // What the server has proved about each record: the page cannot ask for it later.
  /** @param {View} view */
  async receipts({ sites, picture }) {
    /** @type {Record<number, unknown>} */
    const found = {};
    for (const record of sites.flatMap((site) => site.records)) {
      const url = new URL("headlight/proof", document.baseURI);
      url.search = String(new URLSearchParams({ run: picture.key, record: String(record) }));
      const response = await fetch(url).catch(() => null);
      if (response?.ok) found[record] = await response.json();
    }
    return found;
  }

  /** @param {Still} view */
  inspect(view) {
    this.toggle(false);
    this.open.focus();
    view.trigger("inspect", { ...this.params(view, "numbers"), theme: view.paper ? "light" : view.themeName });
    return words.export_opening;
  }

  /** @param {Still} view @param {"snippet" | "alt"} what */
  async copy(view, what) {
    const text = (await this.about(view, view.of))[what];
    this.view.root.dataset.copied = text;
    if (!(await copy(text))) throw { sentence: `${words.export_by_hand}\n${text}` };
    return words.export_copied;
  }
}
