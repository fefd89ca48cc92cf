// A button that opens a menu: the picture as PNG, SVG or PDF, what moves as GIF, MP4 or WebM, its numbers as CSV and NPZ, the room as a page, and the code that gives it again.

import { pixels, sheet, svg } from "./drawing.js";
import { button, described, el } from "./dom.js";
import { columnsOf, npz } from "./npz.js";
import { copy, save } from "./save.js";
import { standalone } from "./standalone.js";
import { WORDS as words } from "./words.js";
import { film, vector } from "./writers.js";

/** @typedef {import("./types.js").AboutFiles} AboutFiles */

export class Files {
  /** @type {HTMLElement} Made again whenever the menu opens */
  status;
  /** @type {AbortController | null} While a film is made */
  filming = null;

  // drawn() -> {group, width, height} or null where there is no picture; about() -> {title, alt, caption, snippet, name, tables}
  /**
   * @param {() => import("./types.js").Drawing} drawn
   * @param {() => AboutFiles | {kinds: import("./types.js").FileKind[]}} about which a room may say whole kind by kind
   * @param {() => Record<"background" | "ink" | "mute", string>} colours
   */
  constructor(drawn, about, colours) {
    this.drawn = drawn;
    this.about = about;
    this.colours = colours;
    this.box = el("span", "files");
    this.open = button(words.export, "quiet", () => this.toggle(this.menu.hidden === true), words.export_help);
    this.open.setAttribute("aria-haspopup", "dialog");
    this.menu = described(el("div", "menu"), "dialog", words.export);
    this.box.append(this.open, this.menu);
    this.box.addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || this.menu.hidden) return;
      e.stopPropagation();
      if (this.filming) return this.filming.abort();
      this.toggle(false);
      this.open.focus();
    });
    this.away = (/** @type {PointerEvent} */ e) =>
      e.composedPath().includes(this.box) || this.filming || this.toggle(false);
    this.toggle(false);
  }

  destroy() {
    this.filming?.abort();
    document.removeEventListener("pointerdown", this.away);
  }

  /** @param {boolean} open */
  toggle(open) {
    if (!open) this.filming?.abort();
    this.menu.hidden = !open;
    this.open.setAttribute("aria-expanded", String(open));
    document.removeEventListener("pointerdown", this.away);
    if (!open) return;
    document.addEventListener("pointerdown", this.away);
    this.build();
    this.menu.querySelector("button")?.focus();
  }

  build() {
    const about = this.about();
    this.status = el("p", "", words.files_note);
    this.status.setAttribute("role", "status");
    const lines = ("kinds" in about ? about.kinds : this.kinds(about)).map(([label, ...entries]) => {
      const line = el("div", "kind");
      const box = el("span");
      for (const entry of entries) {
        if (!Array.isArray(entry)) box.append(entry);
        else {
          const [name, help, what] = entry;
          box.append(button(name, "quiet", () => this.act(what), help));
        }
      }
      line.append(el("span", "", label), box);
      return line;
    });
    this.menu.replaceChildren(...lines, this.status);
  }

  // What a room can be saved as that says what it holds
  /** @param {AboutFiles} about @returns {import("./types.js").FileKind[]} */
  kinds(about) {
    /** @type {import("./types.js").FileEntry[]} */
    const images = [
      ...[1, 2].map(
        (scale) =>
          /** @type {import("./types.js").FileEntry} */ ([
            `PNG ${scale}×`,
            words.export_png_help,
            () => this.png(scale),
          ]),
      ),
      ["SVG", words.export_svg_help, () => this.svg()],
      ["PDF", words.export_pdf_help, () => this.pdf()],
    ];
    /** @type {import("./types.js").FileEntry[]} */
    const tables = about.tables.map(([label, name, text]) => [
      `CSV: ${label}`,
      words.files_csv_help,
      () => save(`${name}.csv`, new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" })),
    ]);
    if (about.arrays || about.tables.some(([, , , numbers]) => numbers))
      tables.push(["NPZ", words.export_npz_help, () => this.npz()]);
    for (const [label, name, text] of about.trees ?? [])
      tables.push([
        `JSON: ${label}`,
        words.files_json_help,
        () => save(`${name}.json`, new Blob([text], { type: "application/json" })),
      ]);
    /** @type {import("./types.js").FileKind[]} */
    const kinds = about.picture === false ? [] : [[words.export_image, ...images]];
    const { film } = about;
    if (film)
      kinds.push([
        words.export_film,
        ["GIF", words.export_gif_help, () => this.film(film, "gif")],
        ["MP4", words.export_mp4_help, () => this.film(film, "mp4")],
        ["WebM", words.export_webm_help, () => this.film(film, "webm")],
      ]);
    kinds.push([words.export_numbers, ...tables]);
    if (about.page) kinds.push([words.export_page, ["HTML", words.export_html_help, () => this.page()]]);
    kinds.push([words.export_copy, [words.export_snippet, words.export_snippet_help, () => this.copy(about.snippet)]]);
    return kinds;
  }

  /** @param {() => string | Promise<string>} what */
  async act(what) {
    if (this.filming) return; // its progress is what is said
    const { status } = this;
    status.textContent = words.export_busy;
    try {
      status.textContent = await what();
    } catch (error) {
      status.textContent = /** @type {{sentence?: string}} */ (error).sentence ?? words.export_failed;
    }
  }

  // What the files of a room that says no kinds of its own say of themselves
  get said() {
    return /** @type {AboutFiles} */ (this.about());
  }

  svg() {
    const about = this.said;
    return save(
      `${about.name}.svg`,
      new Blob([svg(this.drawn(), about, this.colours()).text], { type: "image/svg+xml" }),
    );
  }

  async pdf() {
    const about = this.said;
    const { root, canvases } = sheet(this.drawn(), about, this.colours());
    const { pdfOf } = await vector();
    return save(`${about.name}.pdf`, await pdfOf(root, about, canvases));
  }

  // Moment after moment: how far it is, the menu says, and Escape or its button ends it
  /** @param {() => import("./types.js").Film} make @param {"gif" | "mp4" | "webm"} kind */
  async film(make, kind) {
    const filming = (this.filming = new AbortController());
    const stop = button(words.film_stop, "quiet", () => filming.abort(), words.film_stop_help);
    this.status.after(stop);
    try {
      const { filmed } = await film();
      const made = make();
      const tell = (/** @type {string} */ text) => void (this.status.textContent = text);
      const { blob, note } = await filmed(made, kind, { signal: filming.signal, tell, colours: this.colours() });
      return [save(`${made.name}.${kind}`, blob), note].filter(Boolean).join(" ");
    } finally {
      this.filming = null;
      stop.remove();
    }
  }

  /** @param {number} scale */
  async png(scale) {
    const about = this.said;
    return save(`${about.name}.png`, await pixels(svg(this.drawn(), about, this.colours()), about, scale));
  }

  // The arrays that the room names, or its tables by their columns
  npz() {
    const about = this.said;
    const several = about.tables.length > 1;
    const tables = about.tables.flatMap(([, , , numbers]) =>
      numbers ? [columnsOf(numbers.columns, numbers.rows, several && numbers.of ? `${numbers.of}.` : "")] : [],
    );
    const said = Object.fromEntries(
      /** @type {const} */ (["caption", "alt", "snippet"]).map((name) => [name, { shape: [], values: [about[name]] }]),
    );
    return save(`${about.name}.npz`, npz({ ...Object.assign({}, ...tables), ...about.arrays, ...said }));
  }

  async page() {
    const about = this.said;
    if (!about.page) return words.export_failed;
    return save(`${about.name}.html`, await standalone(about, about.page));
  }

  /** @param {string} text */
  async copy(text) {
    if (await copy(text)) return words.export_copied;
    const field = Object.assign(el("textarea"), { value: text, readOnly: true, ariaLabel: words.export_snippet });
    this.menu.append(field);
    field.select();
    return words.files_by_hand;
  }
}
