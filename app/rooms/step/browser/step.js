// Step through: one token through one layer. The line below the picture is the scrubber; a step is a sentence, a picture, and next
// to it where the chosen number came from; then its shape and its line of PyTorch. Everything but another walk is computed here.

import { whole } from "../../../kit/browser/selection.js";
import { HeadChooser } from "../../../kit/browser/chooser.js";
import { cover } from "../../../kit/browser/cover.js";
import { csv } from "../../../kit/browser/csv.js";
import {
  add,
  choice,
  clamp,
  el,
  fill,
  focusable,
  focusedIn,
  isStill,
  saidIn,
  setText,
} from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { headMeasures } from "../../../kit/browser/head_measures.js";
import { takesArrows } from "../../../kit/browser/shortcuts.js";
import { json, unpack } from "../../../kit/browser/messages.js";
import { SinkLine } from "../../../kit/browser/sink.js";
import { Stage } from "../../../kit/browser/stage.js";
import { ModelStrip } from "../../../kit/browser/model_strip.js";
import { DIVISOR, OPENS_AT, PALETTES, STYLE, WORDS as words } from "./constants.js";
import { smallSnippet, snippet } from "./export.js";
import { ATTENTION, drawFoot } from "./foot.js";
import { Experts } from "./experts.js";
import { drawFrom } from "./from.js";
import { paintOf } from "./grid.js";
import { Line, shortName } from "./line.js";
import { BACK, FORWARD, Motion, PLAY } from "./motion.js";
import { drawPanel, tell } from "./panel.js";
import { shownOf } from "./shown.js";
import { PAGES, Small } from "./small.js";
import { Tokens } from "./tokens.js";
import { Walk } from "./walk.js";
import { Worth } from "./worth.js";

const ENDS = ["lastnorm", "words", "loss", "end"]; // steps after the last layer
const MOMENTS = [0, 0.25, 0.5, 0.75]; // of a step's motion, in a film
const [MOMENT, STAYS] = [0.12, 1.6]; // seconds of each, and of the step as it stays
const LOWEST = 11; // rem from the top of the page: as if the room began there at the lowest
const SHOWN = ".meta, .big, .eq, .pic, .from, .line, .unseen";

/** @typedef {import("./types.js").Picture} Picture */
/** @typedef {import("./types.js").Step} Step */
/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").Cell} Cell */
/** @typedef {import("./shown.js").Shown} Shown */

/** @extends {Stage<import("./types.js").Header, import("./types.js").Palette>} */
export class StepThrough extends Stage {
  static style = STYLE;
  static fills = true;
  static palettes = PALETTES;
  static remade = ["edits"];
  static covers = {
    number: ".pic.tabled, .big, .from, .unseen", // and the grid of the output, by step.css
    shape: SHOWN,
    bar: ".pic.tabled, .big, .unseen", // and a length, by the picture of an addition
    cell: ".big, .unseen", // and the number that is followed, with the frames around it
    row: ".pic, .big, .from, .unseen",
  };

  /** @type {Walk | null} */
  walk = null;
  walkOf = ""; // the run that the walk is of
  /** @type {Picture | null} */
  stepPicture = null;
  /** @type {Shown | null} */
  shown = null;
  /** @type {import("./grid.js").Paint} */
  paint;
  /** @type {Cell | null} The cell under the pointer */
  pointed = null;
  drawn = ""; // what the picture on the screen is of
  isThere = false; // whether there is anything on the screen yet
  isWaiting = false; // whether what is on the screen is of the walk before
  /** @type {{width: number, height: number} | undefined} The room that the picture was made for */
  box;
  /** @type {import("./types.js").Sizes | null} Read once: to ask the page in the middle of a drawing costs a layout each time */
  sizes = null;
  above = 0; // pixels that the strip of the whole model takes
  layout = ""; // what the sizes depend on beside the window
  said = ""; // the sum that is shown, in words
  asks = ""; // what can be changed now
  /** @type {HTMLElement} The layer and head that are said there; a cover may stand in front of it */
  where;
  /** @type {((divisor: number) => void) | undefined} Moves the slider */
  slide;
  tokens = new Tokens();
  motion = new Motion();
  coming = { id: "", moment: 1, plays: false }; // of the step that is drawn next
  momentOf = ""; // the step that the motion is of
  playing = 0; // the timer of the next step, while it plays

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.strip = new ModelStrip(this, (layer, stack) => this.chooseLayer(layer, stack));
    root.append(this.strip.box);
    this.bar = add(root, "div", "bar-top");
    this.worth = new Worth(this);
    root.append(this.worth.box);
    this.worth.box.classList.add("former");
    this.main = add(root, "div", "main");
    this.railBox = add(this.main, "div", "rail");
    this.panel = add(this.main, "section", "panel");
    this.panel.tabIndex = -1; // for the focus that a mouse leaves
    this.meta = add(this.panel, "div", "meta former");
    this.big = add(this.panel, "p", "big former");
    this.big.setAttribute("aria-live", "polite");
    this.pic = add(this.panel, "div", "pic former");
    this.fromBox = add(this.panel, "div", "from former");
    focusable(this.fromBox, "group", words.from); // a long sum scrolls
    this.eq = add(this.panel, "div", "eq former");
    this.way = add(this.panel, "div", "way");
    this.lineBox = el("div", "line");
    this.line = new Line(this.lineBox, (at, moment) => this.scrub(at, moment));
    this.player = this.button(null, words.play, () => this.play(!this.playing), words.play_help);
    this.leaving.addEventListener("abort", () => {
      this.motion.stop();
      clearTimeout(this.playing);
    });
    this.small = new Small(this);
    this.experts = new Experts(this);
    this.sink = new SinkLine(this, false);
    this.chooser = new HeadChooser(this, () => this.heads);
    const [back, next] = [
      this.button(null, words.back, () => this.turn(-1)),
      this.button(null, words.next, () => this.turn(1)),
    ];
    back.classList.add("go");
    next.classList.add("go", "next");
    this.ends = { back, next };
    const scale = el("span", "scale", "−");
    scale.append(Object.assign(el("span", "ramp"), { title: words.legend }), "+");
    this.way.append(back, this.lineBox, next);
    this.acts.before(scale);
    document.fonts.ready.then(() => (this.sizes = null)); // numbers on canvas are drawn in their own type
  }

  // ------------------------------------------------------------------ what is shown

  get run() {
    return this.header.run;
  }

  get key() {
    return this.header?.run?.key ?? "";
  }

  // The page that is open: without a run there are those of small numbers
  get opened() {
    const { page } = this.values;
    const own = page === "experts" && !this.experts.has ? "run" : page;
    return own === "run" && !this.run ? "one" : own;
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

  get rem() {
    return this.sizes?.rem ?? 16;
  }

  status() {
    const { shown, walk, small, opened: page } = this;
    const { header } = walk ?? {};
    return {
      painted: this.isThere ? "1" : null,
      waiting: this.isWaiting ? "1" : null,
      page,
      // The one grid that is covered by itself, so that what it is made of can be seen
      covered: cover.hides("number") ? "output" : "",
      ...(page === "experts" ? this.experts.status() : page === small.page ? small.status() : {}),
      ...(page === "run" &&
        shown &&
        header && {
          at: shown.step.id,
          layer: header.layer,
          head: shown.head,
          query: header.query,
          stack: header.stack,
          key: shown.key,
          run: this.walkOf,
          steps: walk?.steps.length,
          show: this.values.show,
          tokens: shown.labels.length,
          edited: Boolean(this.run?.edits.length),
        }),
    };
  }

  // ------------------------------------------------------------------ drawing

  /** @param {Set<import("../../../kit/browser/stage.js").Stale>} stale */
  draw(stale) {
    if (stale.has("theme")) this.dress();
    // Beside a lesson it begins far down: there it is as high as below a bar and a sentence.
    this.root.style.setProperty("--begins", `${Math.min(this.beginsAt, LOWEST * this.rem)}px`);
    const page = this.opened;
    const layout = `${page !== "run"}/${this.isProjected}`;
    if (layout !== this.layout) this.sizes = null;
    this.layout = layout;
    if (this.root.classList.toggle("small-page", page !== "run")) this.foot.prepend(this.ends.back, this.ends.next);
    else if (this.ends.back.parentNode !== this.way)
      this.way.replaceChildren(this.ends.back, this.lineBox, this.ends.next);
    this.show({ page }); // which says how wide everything is
    if (stale.has("size") && this.fits()) {
      if (stale.size === 1) return;
    } else if (stale.has("size")) this.sizes = null;
    if (!this.sizes || stale.has("data") || stale.has("theme") || stale.has("cover")) this.drawn = "";
    this.sizes ??= this.measured();
    if (page === "run") this.drawRun();
    else if (page === "experts") this.drawExperts();
    else this.drawSmall(page);
    this.files.box.hidden = page === "run" ? !this.shown : page === "experts" && !this.experts.found;
    this.foot.hidden = !this.isThere;
    this.chooser?.draw();
    this.drawStrip();
    this.worth.draw();
    const high = [this.strip.box, this.worth.box].reduce(
      (sum, { hidden, offsetHeight }) => sum + (hidden ? 0 : offsetHeight),
      0,
    );
    if (high === this.above) return;
    this.above = high; // what the strip takes, the picture has less
    this.root.style.setProperty("--above", `${high}px`);
    this.invalidate("size");
  }

  // Whether the place of what is drawn has the size that it was drawn for: a sentence that needs a line more or less changes the picture's
  fits() {
    const { box, pic } = this;
    if (!this.sizes || JSON.stringify(this.sizes) !== JSON.stringify(this.measured())) return false;
    if (!box || pic.style.minHeight) return true;
    const { width, height } = pic.getBoundingClientRect();
    return Math.abs(width - box.width) <= 0.5 && Math.abs(height - box.height) <= 0.5;
  }

  dress() {
    this.paint = paintOf(this.palette);
    this.root.style.setProperty(
      "--scale",
      `linear-gradient(90deg, ${[...this.palette.ahead].reverse().join(", ")}, ${this.palette.ramp.join(", ")})`,
    );
    this.root.style.setProperty("--bar", this.palette.ramp[3]);
    this.root.style.setProperty("--less", this.palette.ahead[3]);
    this.line.built = "";
  }

  // A row that was clicked is made again: to take the focus along costs two layouts, and no one sees where a mouse left it.
  leaveFocus() {
    const { focused } = this;
    if (focused && focused !== this.pic && this.pic.contains(focused) && !focused.matches(":focus-visible, input"))
      this.panel.focus({ preventScroll: true });
  }

  /** @param {string} page */
  drawSmall(page) {
    const found = this.ask("step/small", {}, (bytes) => unpack(bytes)[0]);
    this.drawBar(page);
    if (!found) {
      this.isWaiting = true;
      return;
    }
    this.isThere = true;
    this.isWaiting = false;
    this.shown = null;
    if (found.refused) this.big.textContent = found.refused;
    else this.small.draw(found, page);
  }

  // The beginning of every page without a line
  begin() {
    const { pic } = this;
    this.isThere = true;
    this.isWaiting = false;
    this.shown = null;
    this.railBox.replaceChildren();
    this.walk = null;
    this.drawn = this.asks = "";
    pic.replaceChildren();
    pic.style.minHeight = "";
    this.eq.replaceChildren();
    pic.tabIndex = 0;
    pic.setAttribute("role", "group");
    pic.classList.remove("tabled");
  }

  drawExperts() {
    this.walk = null; // the tokens are shaded by no weights here
    this.drawBar("experts");
    this.experts.draw();
  }

  drawRun() {
    const { stack, layer, query, head } = this.place;
    const sizes = /** @type {import("./types.js").Sizes} */ (this.sizes);
    const asked = (/** @type {number} */ h) =>
      this.ask("step/walk", { stack, layer, query, head: h }, (bytes) => new Walk(bytes));
    const known = this.walk;
    const same =
      known &&
      known.header.stack === stack &&
      known.header.layer === layer &&
      known.header.query === query &&
      this.walkOf === this.key;
    let walk = same && known.holds(head) ? known : asked(same ? head : this.firstHead(head));
    if (walk && /** @type {any} */ (walk).refused) {
      this.isThere = true;
      this.isWaiting = false;
      this.shown = null;
      this.drawBar("run");
      const { refused } = /** @type {any} */ (walk);
      this.big.textContent = this.experts.has ? `${refused} ${words.experts_there}` : refused;
      this.drawn = ""; // what stands below is of the walk before
      return;
    }
    if (walk && !walk.holds(head)) walk = asked(head);
    if (!walk) {
      this.proofOf(stack, layer); // it will stand below the picture: asked for now, it comes with the walk and not after it
      this.drawBar("run");
      this.isWaiting = true; // what was there stays until the new one is
      if (this.remote.failed) this.announce(words.failed);
      return;
    }
    this.isThere = true;
    this.isWaiting = false;
    this.walk = walk;
    this.walkOf = this.key;
    const at = this.stepAt();
    const step = walk.steps[at];
    this.line.draw(walk, { id: `${this.key}/${stack}/${layer}`, paint: this.paint, sizes }, at);
    const shown = (this.shown = shownOf(this, walk, step));
    this.drawBar("run"); // whose tokens are shaded by this head's weights
    const place = JSON.stringify([
      this.key,
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
      shown.classes !== null,
      shown.ending !== null,
      shown.logits !== null,
      shown.residual !== null,
      sizes,
    ]);
    const what = `${place}/${head}/${shown.key}`;
    if (what !== this.drawn) {
      if (this.momentOf !== step.id) this.motion.stop();
      if (this.drawn.startsWith(`${place}/`) && this.values.show !== "table" && this.stepPicture?.again?.(shown)) {
        tell(this, shown, at);
        if (this.motion.moment < 1) this.moved(at, this.motion.moment);
        this.invalidate("size"); // asked in the frame that shows it, it costs no layout
      } else {
        this.leaveFocus();
        drawPanel(this, shown, at);
        this.arrive(step.id, at);
      }
      this.drawn = what;
    }
    this.drawFrom();
    drawFoot(this, shown, at);
  }

  /** @returns {import("./types.js").Sizes} */
  measured() {
    const { main, lineBox } = this;
    return {
      rem: parseFloat(getComputedStyle(this.root).fontSize) || 16,
      main: [main.clientWidth, main.clientHeight],
      line: [lineBox.clientWidth, lineBox.clientHeight],
    };
  }

  /** @param {string} stack @param {number} layer */
  proofOf(stack, layer) {
    const { records } = /** @type {Run} */ (this.run);
    const site = this.values.at.startsWith("cross-") ? "cross_attn" : "attn";
    const record = records.findIndex((one) => one[0] === stack && one[1] === layer && one[2] === site);
    if (record >= 0 && ATTENTION.includes(this.values.at.replace("cross-", ""))) this.ask("proof", { record }, json);
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
          steps.findIndex((step) => step.id === OPENS_AT),
        );
  }

  // The cell that is looked at: pointed at, or chosen, or where the picture opens
  /** @returns {Cell} */
  get cell() {
    const picture = /** @type {Picture} */ (this.stepPicture);
    if (this.pointed) return this.pointed;
    const [row, column] = (this.values.cell || "").split(".").map(Number);
    if (!this.values.cell || Number.isNaN(column)) return picture.opens;
    return [clamp(row, 0, picture.rows - 1), clamp(column, 0, picture.columns - 1)];
  }

  drawFrom() {
    const { stepPicture, cell } = this;
    stepPicture?.show(cell, this.pointed !== null || this.values.cell !== "");
    this.sum(stepPicture?.from(cell), cell);
  }

  // Where a number came from, on the screen and in words
  /** @param {import("./types.js").From | undefined} from @param {(string | number)[]} place */
  sum(from, place) {
    if (!from) return;
    this.said = drawFrom(this.fromBox, from);
    this.show({ cell: place.join("."), total: from.total ?? "" });
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
        this.announce(fill(words.mask_keep, { k: labels[key] }));
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
          ...(this.experts.has ? [["experts", words.page_experts]] : []),
          ...Object.entries(PAGES).slice(0, page === "run" || page === "experts" ? 1 : undefined),
        ]),
        page,
        (next) =>
          this.choose({
            page: next,
            cell: "",
            at: next === "one" ? "output" : next === "run" ? OPENS_AT : this.values.at,
          }),
      );
    if ((page !== "run" && page !== "experts") || !run) {
      this.bar.replaceChildren(pages());
      this.bar.firstElementChild?.classList.add("pages");
      this.tokens.of = "";
      return;
    }
    this.tokens.draw(this, pages);
  }

  // ------------------------------------------------------------------ keys

  // What has the focus
  get focused() {
    return focusedIn(this.root);
  }

  /** @param {number} at @returns {boolean | void} */
  go(at) {
    const { walk } = this;
    if (this.opened === "experts") return this.experts.go(at);
    if (this.opened !== "run") return this.small.go(at);
    if (!walk) return false;
    const step = walk.steps[clamp(at, 0, walk.steps.length - 1)];
    if (step.id !== this.values.at) this.choose({ at: step.id, cell: "" });
  }

  // How a step begins whose picture was just drawn: in motion, at a moment of it, or as it stays
  /** @param {string} id @param {number} at */
  arrive(id, at) {
    const { coming } = this;
    this.coming = { id: "", moment: 1, plays: false };
    const isMeant = coming.id === id && this.values.show !== "table";
    const isSame = this.momentOf === id && !coming.id; // it was drawn again, as for another size
    this.momentOf = id;
    if (isSame) {
      if (this.motion.moment < 1) this.moved(at, this.motion.moment);
      return;
    }
    if (isMeant && coming.plays) this.motion.play(0, 1, FORWARD, (moment) => this.moved(at, moment));
    else {
      this.motion.moment = isMeant ? coming.moment : 1;
      if (this.motion.moment < 1) this.moved(at, coming.moment);
      else this.show({ moment: "1" });
    }
  }

  // One moment of the step's motion
  /** @param {number} at @param {number} moment */
  moved(at, moment) {
    this.stepPicture?.at?.(moment);
    this.line.move(at, moment);
    this.show({ moment: String(Math.round(moment * 1000) / 1000) });
  }

  // Any moment, as the line was dragged or clicked
  /** @param {number} at @param {number} moment */
  scrub(at, moment) {
    const step = this.walk?.steps[at];
    if (!step) return;
    this.play(false);
    this.motion.stop();
    if (step.id === this.values.at && this.shown?.step.id === step.id) {
      if (this.motion.moment === moment) return;
      this.motion.moment = moment;
      this.moved(at, moment);
    } else {
      this.coming = { id: step.id, moment, plays: false };
      this.go(at);
    }
  }

  // Step by step by itself, until the end
  /** @param {boolean} on */
  play(on) {
    clearTimeout(this.playing);
    this.playing = 0;
    setText(this.player, on ? words.pause : words.play);
    if (!on) return;
    const next = () => {
      const last = (this.walk?.steps.length ?? 1) - 1;
      if (!this.walk || this.opened !== "run" || this.stepAt() >= last) return this.play(false);
      this.forward();
      this.playing = window.setTimeout(next, PLAY);
    };
    next();
  }

  // Next: a motion that still runs ends, and the next begins
  forward() {
    this.motion.end();
    const at = this.stepAt() + 1;
    const step = this.walk?.steps[at];
    if (!step) return;
    this.coming = { id: step.id, moment: 0, plays: true };
    return this.go(at);
  }

  // Back: the numbers run to where they came from, and the step before is there
  back() {
    const { motion, stepPicture } = this;
    const at = this.stepAt();
    const isBack = motion.isBack;
    if (isBack) motion.end(); // which goes to the step before
    if (
      isBack ||
      isStill() ||
      !stepPicture?.at ||
      this.values.show === "table" ||
      this.shown?.step.id !== this.values.at
    )
      return this.go(this.stepAt() - 1);
    if (!at) return;
    motion.play(
      motion.moment,
      0,
      BACK,
      (moment) => this.moved(at, moment),
      () => this.go(at - 1),
    );
  }

  get isComing() {
    return this.opened === "run" && !this.walk && this.isWaiting;
  }

  /** @param {number} by @returns {boolean | void} */
  turn(by) {
    const { opened, experts } = this;
    if (opened === "run" && this.walk && Math.abs(by) === 1) {
      this.play(false);
      return by > 0 ? this.forward() : this.back();
    }
    const at = opened === "experts" ? experts.row : opened !== "run" ? this.small.at : this.walk ? this.stepAt() : 0;
    return this.go(at + by);
  }

  // Along the line, and in the picture from number to number while it has the focus
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    const { focused } = this;
    const scrolls =
      focused === this.fromBox ? right && focused.scrollWidth > focused.clientWidth : focused?.matches(".tablebox");
    if (scrolls) return false;
    if (this.opened === "experts") return this.experts.move(down, right);
    const heads = this.headGrid?.heads;
    if (focused === this.pic && this.values.show !== "table")
      return heads ? this.walkCells(down, right) : this.small.move(down, right);
    if (right || focused === this.lineBox) return this.turn(right || down);
    if (!heads) return false;
    this.chooseHead(this.place.layer, (this.place.head + down + heads) % heads);
  }

  keysTold = words.keys_told;

  keys = {
    " ": () => (this.opened === "run" && this.walk ? this.play(!this.playing) : false),
    home: () => !takesArrows(this.focused ?? undefined) && this.go(0),
    end: () => !takesArrows(this.focused ?? undefined) && this.go(1e6),
    "+": () => this.small.change(0.1),
    "-": () => this.small.change(-0.1),
  };

  get headGrid() {
    if (this.opened !== "run" || !this.run) return null;
    return { layers: this.run.layers[this.place.stack], heads: this.run.heads };
  }

  // All heads of the stack; coloured by the look that is followed
  get heads() {
    const { run, headGrid } = this;
    if (!run || !headGrid) return null;
    const { stack, layer, head, query } = this.place;
    const { labels } = run.tokens[stack];
    const key = this.walkOf === this.key ? this.shown?.key : undefined;
    const measures = headMeasures(this, { site: stack, query, key, labels: [labels, labels] });
    return { ...headGrid, kv_heads: run.kv_heads, layer, head, measures };
  }

  drawStrip() {
    const { run } = this;
    if (!run || this.opened !== "run") return this.strip.draw(null);
    const { stack, layer, query } = this.place;
    const at = this.shown?.step.id;
    const where = at && ENDS.includes(at) ? "end" : at === "token" || at === "embed" ? "start" : layer;
    const labels = Object.fromEntries(Object.entries(run.tokens).map(([name, side]) => [name, side.labels]));
    const key = this.shown?.site?.site === "cross_attn" ? this.shown.key : undefined;
    this.strip.draw({ stack, layer: where, query, key, labels });
  }

  /** @param {number | "start" | "end"} layer @param {string} stack */
  chooseLayer(layer, stack) {
    if (layer === "start") return this.choose({ stack, layer: "0", at: "embed", key: "", cell: "" });
    if (layer === "end")
      return this.choose({
        stack,
        at: this.run?.tokens[stack] && this.walk?.step("words") ? "words" : "end",
        key: "",
        cell: "",
      });
    const at = ["token", "embed", ...ENDS].includes(this.values.at) ? OPENS_AT : this.values.at;
    this.choose({ stack, layer: String(layer), at, key: "", cell: "" });
  }

  /** @param {number} layer @param {number} head */
  chooseHead(layer, head) {
    this.choose({ layer: String(layer), head: String(head), key: "", cell: "" });
  }

  // Arrows in the picture go from number to number, and say the sum.
  /** @param {number} down @param {number} right */
  walkCells(down, right) {
    const picture = this.stepPicture;
    if (!picture) return false;
    const [row, column] = this.cell;
    const cell = [clamp(row + down, 0, picture.rows - 1), clamp(Math.max(0, column) + right, 0, picture.columns - 1)];
    this.pointed = null;
    this.selection.choose({ cell: cell.join(".") });
    this.drawFrom();
    this.announce(this.said);
  }

  // ------------------------------------------------------------------ files

  get offlinePage() {
    return "step/page";
  }

  picture() {
    return rows([this.meta, this.big, this.pic, this.fromBox, this.eq]);
  }

  // The name of the page's files, the code that gives its numbers again, and the tables
  /** @returns {{name: string, code: string, numbers: import("./types.js").Numbers, more?: import("./types.js").Numbers}} */
  saved() {
    const { opened: page, shown, experts, small } = this;
    const { about } = this.header;
    if (page === "experts" && experts.found)
      return {
        name: fill(words.file_experts, { model: about.name, layer: experts.layer }),
        code: experts.snippet(about.code),
        numbers: experts.choices(experts.found),
        more: experts.allLoads(experts.found),
      };
    if (page === "run" && shown)
      return {
        name: fill(words.file, { model: about.name, layer: this.place.layer, step: shown.step.id }),
        code: snippet(about.code, shown, this.cell),
        numbers: /** @type {Picture} */ (this.stepPicture).numbers(),
      };
    return {
      name: fill(words.file_small, { page }),
      code: smallSnippet(page, small.shown.x, small.followed),
      numbers: small.numbers(),
    };
  }

  // The layer's steps, one after the other: each as it moves, and then as it stays
  /** @returns {import("../../../kit/browser/types.js").Film} */
  film() {
    const { walk } = this;
    if (this.opened !== "run" || !walk || this.values.show === "table") throw { sentence: words.film_nothing };
    const { about } = this.header;
    const { layer, stack, query, head } = this.place;
    const title = fill(words.film_title, { layer, head, token: this.run?.tokens[stack].labels[query] ?? "" });
    const { show, end } = this.rehearsal();
    this.play(false);
    const frames = walk.steps.flatMap((step, at) =>
      [...MOMENTS, 1].map((moment) => ({
        seconds: moment < 1 ? MOMENT : STAYS,
        draw: async () => {
          if (moment === MOMENTS[0]) {
            show({ at: step.id, cell: "", key: "" });
            await this.settled();
          }
          this.motion.stop();
          this.motion.moment = moment;
          this.moved(at, moment);
          return this.picture();
        },
      })),
    );
    const code = [...about.code, `found = walk(run, "${stack}", ${layer}, ${query})`, "print(list(found.values))", ""];
    return {
      title,
      alt: fill(words.film_alt, { title, names: walk.steps.map((step) => shortName(step, walk.header)).join(", ") }),
      caption: about.caption,
      snippet: code.join("\n"),
      name: fill(words.film_file, { model: about.name, layer }),
      frames,
      end,
    };
  }

  about() {
    const { opened: page } = this;
    const { about } = this.header;
    const { name, code, numbers, more } = this.saved();
    const title = saidIn(this.big);
    const file = (/** @type {import("./types.js").Numbers} */ { columns, rows: all }) =>
      csv(columns, all, [about.caption, code.trimEnd()]);
    /** @type {import("../../../kit/browser/types.js").AboutFiles["tables"]} */
    const tables = [[words.csv, name, file(numbers), { of: "", ...numbers }]];
    if (more) tables.push([words.experts_csv, `${name}-load`, file(more), { of: "load", ...more }]);
    return {
      title,
      alt: `${title} ${this.said}`,
      caption: about.caption,
      snippet: code,
      name,
      tables,
      picture: this.values.show !== "table",
      page: this.page(),
      film: page === "run" && !this.isOffline ? () => this.film() : undefined,
    };
  }
}

export default StepThrough;
