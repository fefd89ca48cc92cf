// The files of a picture of attention: PNG, SVG, PDF, CSV, NPZ, or a page that works offline, each saying what it shows.
//
// Pictures and pages are made here; caption, code and exact numbers come from the server (app/export/), which knows the
// model's revision and has every digit.

import { ASKED } from "../../kit/browser/language.js";
import { besideFigure, headsBeside } from "./sidebyside.js";
import { placeTexts, textsOf, unlikeOpening, written } from "./values.js";
import { colours } from "../../kit/browser/colours.js";
import { PALETTES, WORDS as words } from "./constants.js";
import { choice, fill, quotation } from "../../kit/browser/dom.js";
import { headsFigure, linesFigure, mapFigure } from "./figure.js";
import { foldFigure } from "./foldfigure.js";
import { unpack } from "../../kit/browser/messages.js";
import { isNextThere } from "./next.js";
import { save } from "../../kit/browser/save.js";
import { canvas, png, svg } from "../../kit/browser/scene.js";
import { linkTo } from "../../kit/browser/share.js";
import { standalone } from "../../kit/browser/standalone.js";
import { vector } from "../../kit/browser/writers.js";

/** @typedef {import("./types.js").View} View */
/** @typedef {import("./figureparts.js").Still} Still */
/** @typedef {Record<string, any>} Params */
/** @typedef {import("../../kit/browser/types.js").About & {fact: import("./figureparts.js").Fact, said: string[]}} About */
const PATIENCE = 5000; // ms
const SENTENCE = 300; // letters of the text that a picture says it is of
const WHOLE = 512; // tokens; the numbers of a longer map are those on the screen
const PAPER = "#ffffff";
const FALLBACK = "'Source Sans 3', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"; // where the page's font is not installed

export class Export {
  /**
   * @param {View} view
   * @param {import("./types.js").Drawn} drawn the parts that are drawn of it
   * @param {import("../../kit/browser/stage.js").Stage<any, any, any>} room
   */
  constructor(view, drawn, room) {
    this.view = view;
    this.drawn = drawn;
    this.room = room;
    this.of = "shown"; // or heads: which picture
    this.paper = false; // light, on white, whatever the page
  }

  // The menu
  /** @returns {import("../../kit/browser/types.js").FileKind[]} */
  get kinds() {
    /** @param {string} label @param {string} help @param {(still: Still) => string | Promise<string>} act @returns {import("../../kit/browser/types.js").FileEntry} */
    const entry = (label, help, act) => [label, help, async () => act(this.still())];
    /** @type {import("../../kit/browser/types.js").Choice<string>[]} */
    const pictures = [
      [
        "shown",
        { lines: words.lines_tab, beside: words.beside_tab }[/** @type {string} */ (this.view.options.show)] ??
          words.map,
      ],
      ["heads", words.export_heads],
    ];
    /** @type {import("../../kit/browser/types.js").Choice<boolean>[]} */
    const paper = [
      [false, words.export_screen],
      [true, words.export_paper],
    ];
    return [
      [words.export_picture, choice(words.export_picture, pictures, this.of, (of) => (this.of = of))],
      [words.export_colours, choice(words.export_colours, paper, this.paper, (on) => (this.paper = on))],
      [
        words.export_image,
        ...[1, 2, 4].map((scale) =>
          entry(`PNG ${scale}×`, words.export_png_help, (still) => this.savePng(still, scale)),
        ),
        entry("SVG", words.export_svg_help, (still) => this.saveSvg(still)),
        entry("PDF", words.export_pdf_help, (still) => this.savePdf(still)),
      ],
      [
        words.export_numbers,
        entry("CSV", words.export_csv_help, (still) => this.saveNumbers(still, "csv")),
        entry("NPZ", words.export_npz_help, (still) => this.saveNumbers(still, "npz")),
        entry("JSON", words.export_json_help, (still) => this.saveNumbers(still, "json")),
      ],
      [
        words.export_page,
        entry("HTML", words.export_html_help, (still) => this.saveHtml(still)),
        entry("Plotly", words.export_plotly_help, (still) => this.inspect(still)),
      ],
      [
        words.export_copy,
        entry(words.export_snippet, words.export_snippet_help, (still) => this.copy(still, "snippet")),
        entry(words.export_alt, words.export_alt_help, (still) => this.copy(still, "alt")),
      ],
    ];
  }

  // The view as it is now, which stays so while the server is asked; with the sentence of the facts, and what was chosen here
  /** @returns {Still} */
  still() {
    const { view, drawn, of, paper } = this;
    const { picture, sites, palette, room, remote, place, options } = view;
    const still = Object.create(
      view,
      Object.getOwnPropertyDescriptors({ picture, sites, palette, room: { ...room }, remote, place, options }),
    );
    /** @template {object} Part @param {Part} live @param {object} [own] @returns {Part} */
    const part = (live, own = {}) => Object.assign(Object.create(live), { view: still, ...own });
    const { pointed, pin, query, hover } = view.chosen;
    still.chosen = Object.create(
      view.chosen,
      Object.getOwnPropertyDescriptors({ pointed, pin, query, hover, place, options }),
    );
    still.numbers = part(view.numbers, { ranks: new Map(), lenses: new Map(view.numbers.lenses) });
    still.shading = part(view.shading);
    const map = part(drawn.map, { area: drawn.map.area && [...drawn.map.area], geometry: drawn.map.geometry });
    map.fold = part(drawn.map.fold, { map });
    const fact = [...drawn.facts.big.childNodes].map((node) => [
      node.textContent?.replace(` ${words.choose}`, "") ?? "",
      node instanceof HTMLElement && node.nodeName === "EM" ? node.className || "b" : "",
    ]);
    const overview = part(drawn.overview, { numbers: drawn.overview.numbers });
    const lines = part(drawn.lines, { now: drawn.lines.now });
    return Object.assign(still, {
      map,
      overview,
      lines,
      fact,
      of,
      paper,
      message: this.room.message,
      link: linkTo(this.room.link()),
    });
  }

  // ------------------------------------------------------------------ what an export says about itself

  // What is on the screen, in the words of the URL. Numbers are of the whole map where that is not too long.
  /** @param {Still} view */
  params(view, what = "shown") {
    const { picture, place, options, map } = view;
    const { hide, kind, heads, words: merged } = unlikeOpening(textsOf(options));
    const isBeside = options.show === "beside";
    const drawn = isBeside || options.show === "lines" ? options.show : "map";
    const show = what === "heads" ? "heads" : what === "shown" ? drawn : "map";
    /** @type {Params} */
    const params = {
      run: picture.key,
      site: place.site,
      layer: place.layer,
      head: place.head,
      kind,
      heads: isBeside ? (show === "beside" ? written(headsBeside(view)) : undefined) : heads,
      hide,
      words: merged,
    };
    Object.assign(params, { scale: view.shading.scale, show, keep: options.keep });
    if (options.bounds) params.bounds = options.bounds.join();
    if (view.shading.sink !== null && show !== "lines") params.apart = String(view.shading.rests?.key);
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
      response = await fetch(url, { headers: ASKED });
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
    const shapes = {
      map: words.export_alt_map,
      beside: words.export_alt_beside,
      lines: words.export_alt_lines,
      heads: words.export_alt_heads,
    };
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
      .map((said) => quotation(said.length > SENTENCE ? `${said.slice(0, SENTENCE)}…` : said));
    if (view.picture.offline) return texts;
    return [...texts, view.link];
  }

  // ------------------------------------------------------------------ pictures

  /** @param {Still} view */
  style(view) {
    const palette = view.paper ? { ...PALETTES.light, background: PAPER } : view.palette;
    const first = view.room.family.split(",")[0].trim();
    return {
      palette,
      colour: colours(palette.ramp),
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
        : view.options.show === "beside"
          ? besideFigure
          : view.options.show === "lines"
            ? linesFigure
            : this.isOfWords(view)
              ? foldFigure
              : mapFigure;
    const { site } = view;
    const isPictured = site.records.every((/** @type {number} */ _, /** @type {number} */ layer) =>
      site.isPictured(layer),
    );
    if (view.of === "heads" && view.overview.metric === "maps" && !isPictured) throw { sentence: words.export_wait };
    if (make === foldFigure) await this.nextIsThere(view);
    const scene = make(view, this.style(view), about);
    if (!scene) throw { sentence: words.export_wait };
    return { scene, about };
  }

  // Until the server has said which words the rows are about to write, which is later than the picture; some seconds at most
  /** @param {Still} view */
  async nextIsThere(view) {
    const [from, to] = view.map.geometry.rows ?? [0, view.lens().n_query];
    const end = performance.now() + PATIENCE;
    while (view.map.hasNext && !isNextThere(view, from, to) && performance.now() < end)
      await new Promise((done) => setTimeout(done, 30));
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

  /** @param {Still} view */
  async savePdf(view) {
    const { scene, about } = await this.figure(view);
    const root = new DOMParser().parseFromString(svg(scene, about), "image/svg+xml").documentElement;
    const { pdfOf } = await vector();
    return save(`${about.name}.pdf`, await pdfOf(root, about));
  }

  // ------------------------------------------------------------------ numbers, page, Plotly, clipboard

  /** @param {Still} view @param {string} format */
  async saveNumbers(view, format) {
    const about = await this.about(view, "numbers");
    const response = await this.ask(format, { ...this.params(view, "numbers"), alt: about.alt });
    return save(`${about.name}.${format}`, await response.blob());
  }

  // The page is the room itself with this run's bytes, opening on this place, and with what has been proved about each record.
  /** @param {Still} view */
  async saveHtml(view) {
    if (!view.picture.whole) throw { sentence: view.picture.follows ? words.export_wait : words.export_whole_only };
    const about = await this.about(view);
    const [header, body] = await this.everything(view);
    const values = { ...placeTexts(view.place), ...textsOf(view.options) };
    const chosen = { values };
    const ids = view.sites.flatMap(({ records }) => records.map((record) => view.remote.idOf("proof", { record })));
    const page = await standalone(about, {
      path: `export?format=page`,
      theme: view.palette.scheme,
      message: [{ ...header, chosen, cover: null, offline: true }, body],
      remotes: [{ ids }],
    });
    return save(`${about.name}.html`, page);
  }

  // The picture with all heads and all norms in it, whatever came later than the rest
  /** @param {Still} view @returns {Promise<[header: any, body: ArrayBuffer]>} */
  async everything(view) {
    let [header, body] = view.message;
    header = { ...header, sites: header.sites.map((/** @type {object} */ site) => ({ ...site })) };
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

  /** @param {Still} view */
  inspect(view) {
    this.room.files.toggle(false);
    this.room.files.open.focus();
    const theme = view.paper ? "light" : view.palette.scheme;
    this.room.host.trigger("inspect", { ...this.params(view, "numbers"), theme });
    return words.export_opening;
  }

  /** @param {Still} view @param {"snippet" | "alt"} what */
  async copy(view, what) {
    return this.room.files.copy((await this.about(view, view.of))[what]);
  }
}
