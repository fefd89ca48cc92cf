// Step through: one token through one layer. The rail is the scrubber; a step is a sentence, an equation, a line of PyTorch, a
// picture; below stands where the chosen number came from. Everything but another walk is computed here.

import { paletteOf, themeOf } from "../../../kit/browser/colours.js";
import { RoomSelection, whole } from "../../../kit/browser/selection.js";
import { cover, Guard } from "../../../kit/browser/cover.js";
import { csv } from "../../../kit/browser/csv.js";
import { add, arrow, choice, clamp, fill, keepingFocus } from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { Files } from "../../../kit/browser/files.js";
import { isFree, takesArrows } from "../../../kit/browser/shortcuts.js";
import { unpack } from "../../../kit/browser/messages.js";
import { mounted } from "../../../kit/browser/mount.js";
import { Projector } from "../../../kit/browser/projector.js";
import { Fetcher } from "../../../kit/browser/fetcher.js";
import { linkTo, Share, spoken } from "../../../kit/browser/share.js";
import { DIVISOR, PALETTES, STYLE, WORDS as words } from "./constants.js";
import { smallSnippet, snippet } from "./export.js";
import { ATTENTION, drawFoot, read } from "./foot.js";
import { drawFrom } from "./from.js";
import { paintOf } from "./grid.js";
import { nameOf, Rail, slider } from "./rail.js";
import { shownOf } from "./shown.js";
import { PAGES, Small } from "./small.js";
import { drawStage, tell } from "./stage.js";
import { Tokens } from "./tokens.js";
import { Walk } from "./walk.js";

const SHOWN = ".meta, .big, .eq, .pic, .from, .rail, .phone-rail, .unseen";
/** @type {Record<string, string>} What a lesson may cover; of "number" also the grid of the output, by step.css */
const COVERS = {
  number: ".pic.tabled, .big, .from, .unseen",
  shape: SHOWN,
  bar: SHOWN,
  cell: ".pic, .big, .from, .unseen",
  row: ".pic, .big, .from, .unseen",
};

/** @typedef {import("./types.js").Picture} Picture */
/** @typedef {import("./types.js").Step} Step */
/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").Cell} Cell */
/** @typedef {import("./shown.js").Shown} Shown */

/** @param {import("../../../kit/browser/types.js").Given<Uint8Array>} given */
export default function ({ data, parentElement, setStateValue }) {
  const [view, leave] = mounted(parentElement, STYLE, (root) => new View(root));
  view.update(data, setStateValue);
  return leave;
}

export class View {
  chosen = new RoomSelection();
  /** @type {Run | null} */
  run = null;
  /** @type {any} What a file says about itself */
  about;
  /** @type {[header: any, body: ArrayBuffer]} What Python sent last */
  sent;
  /** @type {Fetcher} */
  remote;
  /** @type {Walk | null} */
  walk = null;
  /** @type {Picture | null} */
  picture = null;
  /** @type {Shown | null} */
  shown = null;
  /** @type {import("./types.js").Palette} */
  palette;
  /** @type {import("./grid.js").Paint} */
  paint;
  /** @type {Cell | null} The cell under the pointer */
  pointed = null;
  drawn = ""; // what the picture on the screen is of
  /** @type {{width: number, height: number} | undefined} The room that it was made for */
  box;
  walkOf = ""; // the run that the walk is of
  rem = 16; // pixels
  /** @type {import("./types.js").Sizes | null} Read once: to ask the page in the middle of a drawing costs a layout each time */
  sizes = null;
  layout = ""; // what the sizes depend on beside the window
  said = ""; // the sum that is shown, in words
  asks = ""; // what can be changed now
  /** @type {HTMLElement} The layer and head that are said there; a cover may stand in front of it */
  where;
  /** @type {((divisor: number) => void) | undefined} Moves the slider */
  slide;
  tokens = new Tokens();
  /** @type {number | undefined} A frame in which the picture is drawn */
  frame;

  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    root.replaceChildren();
    this.bar = add(root, "div", "bar-top");
    this.main = add(root, "div", "main");
    this.phone = add(root, "div", "phone-rail");
    this.railBox = add(this.main, "div", "rail");
    this.stage = add(this.main, "section", "stage");
    this.stage.tabIndex = -1; // for the focus that a mouse leaves
    this.meta = add(this.stage, "div", "meta");
    this.big = add(this.stage, "p", "big");
    this.big.setAttribute("aria-live", "polite");
    this.eq = add(this.stage, "div", "eq");
    this.pic = add(this.stage, "div", "pic");
    this.fromBox = add(this.stage, "div", "from");
    this.fromBox.tabIndex = 0; // a long sum scrolls
    this.fromBox.setAttribute("role", "group");
    this.fromBox.setAttribute("aria-label", words.from);
    this.footer = add(root, "div", "foot");
    this.live = add(root, "div", "unseen");
    this.live.setAttribute("aria-live", "polite");
    this.rail = new Rail(this.railBox, (at) => this.go(at));
    this.slider = slider(this.phone, (at) => this.go(at));
    this.small = new Small(this);
    this.files = new Files(
      () => rows([this.meta, this.big, this.eq, this.pic, this.fromBox]),
      () => this.file(),
      () => this.palette,
    );
    this.share = new Share(
      root,
      () => linkTo({ ...this.sent[0].link, ...spoken(this.values) }),
      (text) => (this.live.textContent = text),
    );
    this.projector = new Projector(
      () => this.draw(true),
      (by) => this.turn(by),
    );
    this.pic.addEventListener("keydown", (event) => this.walkCells(event));
    this.keys = (/** @type {KeyboardEvent} */ event) => this.key(event);
    document.addEventListener("keydown", this.keys);
    this.watch = new ResizeObserver(() => {
      this.sizes = null;
      this.soon(true);
    });
    this.watch.observe(this.main);
    this.guard = new Guard(root, COVERS);
    this.uncovers = cover.watch(() => this.covers());
    this.covers();
    document.fonts.ready.then(() => this.soon(true));
  }

  destroy() {
    document.removeEventListener("keydown", this.keys);
    this.watch.disconnect();
    this.uncovers();
    this.guard.destroy();
    this.files.destroy();
    this.projector.destroy();
    this.chosen.destroy();
    if (this.frame) cancelAnimationFrame(this.frame);
  }

  // The one grid that is covered by itself, so that what it is made of can be seen
  covers() {
    this.root.dataset.covered = cover.hides("number") ? "output" : "";
    this.soon(true);
  }

  // ------------------------------------------------------------------ data in, choices out

  /** @param {Uint8Array} data @param {import("../../../kit/browser/types.js").Tell} setStateValue */
  update(data, setStateValue) {
    const [header, body] = unpack(data);
    const before = this.state();
    this.sent = [header, body];
    cover.take(header.cover);
    this.chosen.take(header.chosen, setStateValue);
    this.share.isOffline = this.offline;
    this.run = header.run;
    this.about = header.about;
    const key = this.run?.key ?? "";
    if (this.remote?.key !== key) this.remote = new Fetcher(key, () => this.soon(false));
    this.theme();
    // Python's answer to a change that is drawn already takes no button away from under a click.
    if (this.state() !== before || this.root.dataset.waiting || !this.root.dataset.painted) this.draw(true);
  }

  // All that Python decides of what is drawn
  state() {
    return JSON.stringify([this.values, this.run, this.about, this.root.dataset.theme]);
  }

  theme() {
    if (this.root.dataset.theme === themeOf(this.root)) return;
    this.palette = paletteOf(this.root, PALETTES);
    this.paint = paintOf(this.palette);
    this.root.style.setProperty(
      "--scale",
      `linear-gradient(90deg, ${[...this.palette.ahead].reverse().join(", ")}, ${this.palette.ramp.join(", ")})`,
    );
    this.rail.shown = this.rail.barred = this.rail.at = "";
  }

  /** @param {Record<string, string>} changes */
  choose(changes) {
    this.chosen.choose(changes);
    this.draw(false);
  }

  // Drawn in the next frame, however often it is asked for
  /** @param {boolean} everything */
  soon(everything) {
    if (everything) this.drawn = "";
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.draw(false);
    });
  }

  get values() {
    return this.chosen.values;
  }

  // The stack, the layer and the token as this run has them
  get place() {
    const run = /** @type {Run} */ (this.run);
    const stacks = Object.keys(run.layers);
    const stack = run.layers[this.values.stack] ? this.values.stack : stacks[stacks.length - 1];
    const labels = run.tokens[stack].labels;
    return {
      stack,
      layer: clamp(whole(this.values.layer), 0, run.layers[stack] - 1),
      query: clamp(whole(this.values.query), 0, labels.length - 1),
      head: clamp(whole(this.values.head), 0, run.heads - 1),
    };
  }

  /** @returns {import("./types.js").Edit} */
  get edit() {
    const divide = Number(this.values.divide);
    const hide = this.values.hide ? this.values.hide.split(",").map(Number) : [];
    return { divide: this.values.divide && divide >= DIVISOR[0] ? divide : null, hide };
  }

  // ------------------------------------------------------------------ drawing

  /** @param {boolean} everything */
  draw(everything) {
    if (everything) this.drawn = "";
    if (!this.palette) return;
    const page = this.run ? this.values.page : this.values.page === "run" ? "one" : this.values.page;
    const layout = `${page !== "run"}/${this.projector.on}`;
    if (layout !== this.layout) {
      this.layout = layout;
      this.root.classList.toggle("projector", this.projector.on);
      this.root.classList.toggle("small-page", page !== "run");
      this.sizes = null;
    }
    keepingFocus(this.root, () => (page === "run" ? this.drawRun() : this.drawSmall(page)));
    Object.assign(this.root.dataset, {
      page,
      projector: String(this.projector.on),
      chosen: String(this.chosen.number),
    });
  }

  // A row that was clicked is made again: to take the focus along costs two layouts, and no one sees where a mouse left it.
  leaveFocus() {
    const had = /** @type {Document | ShadowRoot} */ (this.root.getRootNode()).activeElement;
    if (had && had !== this.pic && this.pic.contains(had) && !had.matches(":focus-visible, input"))
      this.stage.focus({ preventScroll: true });
  }

  /** @param {string} page */
  drawSmall(page) {
    const found = this.remote.get("step/small", {}, (bytes) => unpack(bytes)[0]);
    this.drawBar(page);
    if (!found) return;
    if (found.refused) {
      this.big.textContent = found.refused;
      return;
    }
    this.shown = null;
    this.small.draw(found, page);
    this.root.dataset.painted = "1";
  }

  drawRun() {
    const { stack, layer, query, head } = this.place;
    const sizes = (this.sizes ??= this.measured());
    this.rem = sizes.rem;
    const asked = (/** @type {number} */ h) =>
      this.remote.get("step/walk", { stack, layer, query, head: h }, (bytes) => new Walk(bytes));
    const known = this.walk;
    const same =
      known &&
      known.header.stack === stack &&
      known.header.layer === layer &&
      known.header.query === query &&
      this.walkOf === this.remote.key;
    let walk = same && known.holds(head) ? known : asked(same ? head : this.firstHead(head));
    if (walk && /** @type {any} */ (walk).refused) {
      this.drawBar("run");
      this.big.textContent = /** @type {any} */ (walk).refused;
      this.root.dataset.painted = "1";
      this.drawn = ""; // what stands below is of the walk before
      return;
    }
    if (walk && !walk.holds(head)) walk = asked(head);
    if (!walk) {
      this.proofOf(stack, layer); // it will stand below the picture: asked for now, it comes with the walk and not after it
      this.drawBar("run");
      this.root.dataset.waiting = "1";
      if (this.remote.failed) this.live.textContent = words.failed;
      if (!this.walk) return;
      return; // what was there stays until the new one is
    }
    delete this.root.dataset.waiting;
    this.walk = walk;
    this.walkOf = this.remote.key;
    const at = this.stepAt();
    const step = walk.steps[at];
    this.rail.draw(
      walk,
      { id: `${this.remote.key}/${stack}/${layer}/${query}`, head, edit: this.edit, paint: this.paint, sizes },
      at,
    );
    Object.assign(this.slider, { max: String(walk.steps.length - 1), value: String(at) });
    this.slider.setAttribute(
      "aria-valuetext",
      fill(words.rail_value, { i: at + 1, n: walk.steps.length, name: nameOf(step, walk.header) }),
    );
    const shown = (this.shown = shownOf(this, walk, step));
    this.drawBar("run"); // whose tokens are shaded by this head's weights
    const place = JSON.stringify([
      this.remote.key,
      stack,
      layer,
      query,
      step.id,
      this.values.divide,
      this.values.hide,
      this.values.act,
      this.values.norm,
      this.values.show,
      shown.guesses !== null,
      sizes,
    ]);
    const what = `${place}/${head}/${shown.key}`;
    if (what !== this.drawn) {
      if (this.drawn.startsWith(`${place}/`) && this.values.show !== "table" && this.picture?.again?.(shown)) {
        tell(this, shown, at);
        this.fits();
      } else {
        this.leaveFocus();
        drawStage(this, shown, at);
      }
      this.drawn = what;
    }
    this.drawFrom();
    drawFoot(this, shown, at);
    Object.assign(this.root.dataset, {
      painted: "1",
      at: step.id,
      layer,
      head,
      query,
      stack,
      key: shown.key,
      run: this.remote.key,
      steps: walk.steps.length,
      show: this.values.show,
      tokens: shown.labels.length,
      edited: String(Boolean(this.run?.edits.length)),
    });
  }

  // A sentence that needs a line more or less leaves the picture another height; asked in the frame that shows it, it costs no layout.
  fits() {
    const { picture, box } = this;
    requestAnimationFrame(() => {
      if (!box || picture !== this.picture || this.pic.style.minHeight) return;
      const { width, height } = this.pic.getBoundingClientRect();
      if (Math.abs(width - box.width) <= 0.5 && Math.abs(height - box.height) <= 0.5) return;
      this.draw(true);
    });
  }

  /** @returns {import("./types.js").Sizes} */
  measured() {
    const { main, railBox } = this;
    return {
      rem: parseFloat(getComputedStyle(this.root).fontSize) || 16,
      main: [main.clientWidth, main.clientHeight],
      rail: [railBox.clientWidth, railBox.clientHeight],
    };
  }

  /** @param {string} stack @param {number} layer */
  proofOf(stack, layer) {
    const { records } = /** @type {Run} */ (this.run);
    const site = this.values.at.startsWith("cross-") ? "cross_attn" : "attn";
    const record = records.findIndex((one) => one[0] === stack && one[1] === layer && one[2] === site);
    if (record >= 0 && ATTENTION.includes(this.values.at.replace("cross-", "")))
      this.remote.get("proof", { record }, read);
  }

  // Which head's keys to ask for: where not all come, those of the head that is looked at
  /** @param {number} head */
  firstHead(head) {
    const run = /** @type {Run} */ (this.run);
    const longest = Math.max(...Object.values(run.tokens).map(({ labels }) => labels.length));
    return longest > 128 ? head : 0; // of a short text all come, and one answer serves every head
  }

  stepAt() {
    const steps = /** @type {Walk} */ (this.walk).steps;
    const found = steps.findIndex((step) => step.id === this.values.at);
    return found >= 0
      ? found
      : Math.max(
          0,
          steps.findIndex((step) => step.id === "softmax"),
        );
  }

  // The cell that is looked at: pointed at, or chosen, or where the picture opens
  /** @returns {Cell} */
  get cell() {
    const picture = /** @type {Picture} */ (this.picture);
    if (this.pointed) return this.pointed;
    const [row, column] = (this.values.cell || "").split(".").map(Number);
    if (!this.values.cell || Number.isNaN(column)) return picture.opens;
    return [clamp(row, 0, picture.rows - 1), clamp(column, 0, picture.columns - 1)];
  }

  drawFrom() {
    const { picture } = this;
    if (!picture) return;
    const cell = this.cell;
    picture.show(cell, this.pointed !== null || this.values.cell !== "");
    const from = picture.from(cell);
    this.said = drawFrom(this.fromBox, from);
    this.root.dataset.cell = cell.join(".");
    this.root.dataset.total = from.total === undefined ? "" : String(from.total);
  }

  /** @param {Cell | null} cell */
  point(cell) {
    if (String(cell) === String(this.pointed)) return;
    this.pointed = cell;
    this.drawFrom();
  }

  /** @param {number} key @param {string[]} labels */
  toggle(key, labels) {
    const { shown } = this;
    if (!shown) return;
    const hidden = new Set(shown.edit.hide);
    if (hidden.has(key)) hidden.delete(key);
    else {
      const left = shown.at.seen.filter(Boolean).length;
      if (!shown.at.seen[key]) return;
      if (left <= 1) {
        this.live.textContent = fill(words.mask_keep, { k: labels[key] });
        return;
      }
      hidden.add(key);
    }
    this.choose({ hide: [...hidden].sort((a, b) => a - b).join(","), key: "" });
  }

  // ------------------------------------------------------------------ what stands around the picture

  /** @param {string} page */
  drawBar(page) {
    const { run } = this;
    const pages = () =>
      choice(
        words.pages,
        /** @type {[string, string][]} */ ([
          ...(run ? [["run", words.page_run]] : []),
          ...Object.entries(PAGES).slice(0, page === "run" ? 1 : undefined),
        ]),
        page,
        (next) =>
          this.choose({
            page: next,
            cell: "",
            at: next === "one" ? "output" : next === "run" ? "softmax" : this.values.at,
          }),
      );
    if (page !== "run" || !run) {
      this.bar.replaceChildren(pages());
      this.bar.firstElementChild?.classList.add("pages");
      this.tokens.of = "";
      return;
    }
    this.tokens.draw(this, pages);
  }

  // ------------------------------------------------------------------ keys

  /** @param {number} at */
  go(at) {
    const { walk } = this;
    if (this.root.classList.contains("small-page")) return this.small.go(at);
    if (!walk) return;
    const step = walk.steps[clamp(at, 0, walk.steps.length - 1)];
    if (step.id !== this.values.at) this.choose({ at: step.id, cell: "" });
  }

  /** @param {number} by */
  turn(by) {
    if (this.root.classList.contains("small-page")) this.small.go(this.small.at + by);
    else if (this.walk) this.go(this.stepAt() + by);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = /** @type {HTMLElement} */ (event.composedPath()[0]);
    const ours = event.composedPath().includes(this.root) || at === document.body;
    if (!ours || !isFree(event) || takesArrows(at) || !this.root.isConnected) return;
    if (at === this.pic || this.files.menu.contains(at)) return;
    const onRail = at === this.railBox;
    const step = {
      ArrowRight: 1,
      PageDown: 1,
      ArrowLeft: -1,
      PageUp: -1,
      ...(onRail ? { ArrowDown: 1, ArrowUp: -1 } : {}),
    }[event.key];
    if (step) this.turn(step);
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(1e6);
    else if (
      (event.key === "ArrowUp" || event.key === "ArrowDown") &&
      this.run &&
      !this.root.classList.contains("small-page")
    ) {
      const { head } = this.place;
      const by = event.key === "ArrowUp" ? this.run.heads - 1 : 1;
      this.choose({ head: String((head + by) % this.run.heads), key: "", cell: "" });
    } else return;
    event.preventDefault();
  }

  // Arrows in the picture go from number to number, and say the sum.
  /** @param {KeyboardEvent} event */
  walkCells(event) {
    if (event.target !== this.pic || !this.picture || this.values.show === "table") return;
    const by = arrow(event);
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const [row, column] = this.cell;
    const cell = [
      clamp(row + by[0], 0, this.picture.rows - 1),
      clamp(Math.max(0, column) + by[1], 0, this.picture.columns - 1),
    ];
    this.pointed = null;
    this.chosen.choose({ cell: cell.join(".") });
    this.drawFrom();
    this.live.textContent = this.said ?? "";
  }

  // ------------------------------------------------------------------ files

  get offline() {
    return Boolean(this.sent[0].offline);
  }

  /** @returns {import("../../../kit/browser/types.js").OfflinePage} */
  page() {
    const [header, body] = this.sent;
    const chosen = { values: { ...this.values }, stamp: 1, reported: 0 };
    return {
      path: "step/page",
      theme: String(this.root.dataset.theme),
      message: [{ ...header, chosen, offline: true }, body],
      remotes: [this.remote],
    };
  }

  /** @returns {import("../../../kit/browser/types.js").AboutFiles} */
  file() {
    const page = this.root.dataset.page ?? "run";
    const at = this.shown?.step.id ?? "";
    const name =
      page === "run"
        ? fill(words.file, { model: this.about.name, layer: this.place.layer, step: at })
        : fill(words.file_small, { page });
    const code =
      page === "run"
        ? snippet(this.about.code, /** @type {Shown} */ (this.shown), this.cell)
        : smallSnippet(page, this.small.shown.x, this.small.followed);
    const title = this.big.textContent ?? "";
    const numbers = page === "run" ? /** @type {Picture} */ (this.picture).numbers() : this.small.numbers();
    return {
      title,
      alt: `${title} ${this.said ?? ""}`,
      caption: this.about.caption,
      snippet: code,
      name,
      tables: [
        [
          words.csv,
          name,
          csv(numbers.columns, numbers.rows, [this.about.caption, code.trimEnd()]),
          { of: "", ...numbers },
        ],
      ],
      picture: this.values.show !== "table",
      page: this.offline ? undefined : this.page(),
    };
  }
}
