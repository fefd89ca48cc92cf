// Train: a model learns before one's eyes, alone or beside its twin. Loss, answers and heads share one axis of steps, and that is the slider.

import { cover } from "../../../kit/browser/cover.js";
import { csv } from "../../../kit/browser/csv.js";
import {
  add,
  button,
  choice,
  clamp,
  described,
  el,
  fill,
  isStill,
  focusable,
  number,
  percent,
  phrase,
  selectBox,
  setField,
  setText,
  worded,
} from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { form, listed, pointed } from "../../../kit/browser/language.js";
import { whole } from "../../../kit/browser/selection.js";
import { Stage } from "../../../kit/browser/stage.js";
import { table } from "../../../kit/browser/table.js";
import { goTo } from "../../../streamlit_edge/browser/page.js";
import { Chart } from "./chart.js";
import { EXAMPLES, PALETTES, STYLE, WORDS as words } from "./constants.js";
import { endOf, Finished } from "./finished.js";
import { addressOf, Following } from "./following.js";
import { large, strip } from "./head_drawing.js";
import { band, indexAt, largest, lossText, mean, smooth, upTo } from "./numbers.js";
import { addressOf as ownAddress, OwnText } from "./own_text.js";
import { reading } from "./reading.js";
import { guessSaid, lossAt, momentSaid, seedsSaid, wholeAt } from "./sentences.js";

const LEFT = ["paused", "stopped", "lost"]; // a run that is not watched any longer, and goes on where it is watched again
const REPLAY = 6000; // ms of a run from its first step to its last
const WALK = 10; // ms a step on the way to a moment
const STEP = 5; // steps that an arrow key goes
const SHORTEST = 350; // ms of such a way
const [MOMENTS, MOMENT, LAST] = [80, 0.1, 2.5]; // of a film: how many, and seconds of each and of the last
const HIDDEN = 10_000; // ms out of sight before a run that goes on is left
const FIRST_RACE = "nomask"; // the twin that Race begins with
const LOWEST = 1.1; // em that a row of a map is high, or only the rows of the answer are drawn
const STACKED = 56; // em of a width, as beside a lesson, in which curve and heads are no neighbours

const COVERED = ".main > section, .tablebox, .foot .ok"; // what a lesson covers: all that a race comes to

/** @type {WeakMap<(number | null)[], import("./types.js").Point[]>} */
const MEANT = new WeakMap();

/** @extends {Stage<import("./types.js").Header, import("./types.js").Palette>} */
class Train extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
  static remade = ["recorded"];
  static covers = { curve: COVERED, number: COVERED };

  /** @type {Finished} */
  finished;
  /** @type {Following | null} */
  run = null;
  /** @type {Following | null} */
  twin = null;
  /** @type {(import("./types.js").Run | null)[]} What is drawn: the runs above, or else two that are kept */
  pair = [null, null];
  race = ""; // what decided which runs there are
  playing = 0; // the frame in which the next step is played again
  /** @type {number | null} The step that is shown while the run plays; the one that is chosen is where it ends */
  moving = null;
  hasPlayed = false; // whether the run was played when the room opened
  /** @type {number | null} The step at which the visitor expects 90 % to be right */
  guess = null;
  going = -1; // the moment that the run plays on to
  /** @type {number | undefined} */
  hiding;
  em = 16;
  /** @type {{made: string, paint: ((looks: (import("./types.js").Look | undefined)[]) => void)}} What the heads that are there are of */
  heads = { made: "", paint: () => {} };
  isKept = false; // whether a kept run is drawn
  ownAsked = false; // whether it was asked if there is a text of this visitor's
  raced = ""; // the twin that was raced last
  told = ""; // how far run and twin were when that was last told

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    const ask = add(root, "div", "ask");
    // Made once: news of a run come several times a second, and a button that is made again under a finger hears no click.
    this.ways = choice(
      words.ways,
      [
        ["watch", words.watch, ""],
        ["race", words.race, words.race_help],
        ["own", words.own_text, words.own_help],
      ],
      "",
      (way) =>
        this.choose(
          way === "own" ? { own: "on" } : { own: "off", twin: way === "watch" ? "none" : this.lastTwin, from: "0" },
        ),
    );
    this.ways.classList.add("ways");
    const label = el("label", "example");
    this.where = add(label, "small");
    this.field = add(label, "input");
    Object.assign(this.field, {
      type: "text",
      maxLength: 40,
      autocomplete: "off",
      spellcheck: false,
      ariaLabel: words.example,
    });
    this.field.addEventListener("change", () =>
      this.choose({ example: this.field.value.trim() === EXAMPLES[this.values.task] ? "" : this.field.value.trim() }),
    );
    this.tasks = selectBox(words.task, Object.entries(words.tasks), "", (task) => this.choose({ task }));
    this.tasks.classList.add("tasks");
    ask.append(this.ways, label, this.tasks);
    this.go = add(ask, "button", "go");
    this.go.addEventListener("click", () =>
      this.isOwn
        ? this.own.act()
        : this.isQueued
          ? this.leave()
          : this.isGoing
            ? this.pause()
            : this.isPaused
              ? this.goOn()
              : this.train(),
    );
    this.more = this.button(ask, words.more, () => this.unfold(), words.more_help);
    this.more.classList.add("more");
    this.unfold(false);
    this.refused = add(root, "p", "refused");
    this.refused.setAttribute("role", "alert");
    this.own = new OwnText(() => this.invalidate("answer"));
    const main = add(root, "div", "main former");
    this.main = main;
    this.left = add(main, "section");
    this.fact = add(this.left, "h2", "fact");
    this.chips = add(this.left, "div", "chips only-here");
    this.replay = this.chips.appendChild(
      button("", "play", () => (this.playing ? this.hold() : this.play()), words.play_help),
    );
    this.moments = described(add(this.chips, "span", "moments"), "group", words.moments);
    this.races = described(add(this.chips, "span", "races"), "group", words.race);
    this.twinChips = Object.entries(words.twins).flatMap(([name, text]) => {
      if (name === "none") return [];
      const race = () => this.choose({ twin: name, from: "0" });
      const chip = this.races.appendChild(button(text, `chip ${name}`, race, worded(words.twin_help, name)));
      return [/** @type {const} */ ([name, chip])];
    });
    this.others = selectBox(words.more_twins, [], "", (twin) => this.choose({ twin, from: "0" }));
    this.races.append(this.others);
    this.place = add(this.chips, "span", "place");
    this.curve = new Chart(this.left, (step) => this.pick(step));
    this.strips = add(this.left, "div", "strips");
    this.fork = add(this.left, "div", "fork only-here");
    this.right = add(main, "section");
    this.kept = el("span", "kept ok");
    this.foot.prepend(this.kept);
    this.tableBox = focusable(add(root, "div", "tablebox"), "region", words.table);
    this.write = add(this.tableBox, "div", "write");
    this.numbers = add(this.tableBox, "div");
    this.predict = this.button(
      null,
      words.predict,
      () => {
        this.guess = null;
        this.hold();
        this.choose({ predict: this.values.predict === "on" ? "off" : "on" });
      },
      words.predict_help,
    );
    this.acts.append(this.predict);
    this.seed = this.button(
      null,
      "",
      () => this.choose({ seed: String(whole(this.values.seed) + 1) }),
      words.another_seed_help,
    );
    this.tasks.before(this.seed);
    this.seed.classList.add("seed");
    this.opens = [add(this.acts, "a", "quiet"), add(this.acts, "a", "quiet")]; // the run and its twin, in Explore
    this.opens.forEach((link, i) => link.addEventListener("click", (e) => this.explore(e, i)));
    this.download = add(this.acts, "a", "quiet");
    Object.assign(this.download, { textContent: words.download, title: words.download_help });
    this.recorded = this.button(this.acts, words.recorded, () => this.choose({ recorded: "on" }), words.recorded_help);
    this.tableButton = this.button(
      this.acts,
      words.table,
      () => this.choose({ table: this.values.table === "on" ? "off" : "on" }),
      words.table_help,
    );
    document.addEventListener("visibilitychange", () => this.hidden(), { signal: this.leaving });
    this.leaving.addEventListener("abort", () => {
      clearTimeout(this.hiding);
      cancelAnimationFrame(this.playing);
      this.run?.close();
      this.twin?.close();
      this.own.close();
    });
  }

  // On a phone task, example and twins stand behind a button, so that what a run shows is seen first; elsewhere they are always there.
  unfold(open = !this.root.classList.contains("unfolded")) {
    this.root.classList.toggle("unfolded", open);
    this.more.setAttribute("aria-expanded", String(open));
  }

  /** @param {{isNew: boolean}} news */
  received({ isNew }) {
    if (isNew) this.finished = new Finished(this.remote);
    this.settle();
    if (this.isOffline) this.asTaught(this.values.race);
    this.watch();
  }

  // The twin that Race goes back to
  get lastTwin() {
    return this.raced || FIRST_RACE;
  }

  get example() {
    return this.values.example || EXAMPLES[this.values.task] || "";
  }

  get from() {
    return this.values.twin === "none" || this.header.twins[this.values.twin].fixed ? 0 : whole(this.values.from);
  }

  // The choices that decide which runs there are
  get described() {
    const { task, twin, seed } = this.values;
    return task ? [task, twin, seed, this.from].join(" ") : "";
  }

  // Whether it is the visitor's own text that is learnt
  get isOwn() {
    return this.values.own === "on" && !this.isOffline;
  }

  get isGoing() {
    return [this.run, this.twin].some((one) => one && (one.state === "waiting" || one.state === "running"));
  }

  // Whether a race has nothing yet, and waits for its turn after others
  get isQueued() {
    const runs = [this.run, this.twin].filter((one) => one !== null);
    return runs.length > 0 && runs.every((one) => one.state === "waiting" && one.place > 0 && !one.points.length);
  }

  get isPaused() {
    return [this.run, this.twin].some((one) => one?.state === "paused");
  }

  get last() {
    return Math.max(0, ...this.pair.map((one) => one?.points.at(-1)?.[0] ?? 0));
  }

  // Where the slider stands: at the newest step while the visitor leaves it at the end
  get at() {
    return clamp(this.moving ?? whole(this.values.at, this.header.steps), 0, this.last);
  }

  // The recorded curves are Streamlit's.
  async remake() {
    this.again();
  }

  // Whether the run is hidden until the visitor has said when it will be right
  get isHidden() {
    return this.values.predict === "on" && this.guess === null && this.values.twin === "none";
  }

  /** @param {Record<string, string>} changes */
  choose(changes) {
    const isOther = changes.task !== undefined && changes.task !== this.values.task;
    const opening = { example: "", at: String(this.header.steps), layer: "", head: "", row: "", by: "finds" };
    if (changes.twin !== undefined || isOther) this.rest();
    super.choose({ ...changes, ...(isOther ? opening : {}) });
    if (this.values.twin !== "none") this.raced = this.values.twin;
    this.settle();
    this.watch();
  }

  // Another task or seed is another race; another twin alone is run beside the run that is there.
  settle() {
    if (this.race === this.described) return;
    this.race = this.described;
    const { task, seed } = this.values;
    if (this.run && (this.run.spec.task !== task || this.run.spec.seed !== seed)) {
      this.run.close();
      this.run = null;
    }
    this.twin?.close();
    this.twin = null;
    if (this.run && this.values.twin !== "none") this.twin = this.follow(this.values.twin, this.from);
  }

  watch() {
    for (const one of [this.run, this.twin]) one?.watch(this.example);
    setField(this.field, this.example);
  }

  train() {
    this.rest();
    this.guess = null;
    this.begin();
    this.choose({ at: String(this.header.steps) });
  }

  // glances: see what there is of the runs, and let them wait
  begin(glances = false) {
    this.run?.close();
    this.twin?.close();
    this.run = this.follow("none", 0, glances);
    this.twin = this.values.twin === "none" ? null : this.follow(this.values.twin, this.from, glances);
  }

  // On the page of a follower: the runs that the teacher has begun, as long as the teacher lets them go on
  /** @param {string | undefined} race */
  asTaught(race) {
    const runs = [this.run, this.twin];
    if ((race === "on" || race === "paused") && !this.run) this.begin(race === "paused");
    else if (race === "on")
      [this.run, this.twin] = runs.map((one) => (one && LEFT.includes(one.state) ? one.again() : one));
    else for (const one of runs) one?.rest();
    if (race === "on" || race === "paused") return;
    for (const one of runs) one?.close();
    [this.run, this.twin] = [null, null];
  }

  // From where the slider stands through all that there is, and from step 0 where it is at the end; with less motion it is there at once
  play(from = this.at >= this.last ? 0 : this.at) {
    this.walk(from, this.last, (REPLAY * (this.last - from)) / Math.max(1, this.last), {
      at: String(this.header.steps),
    });
  }

  // The steps between two, in so many ms, and what is chosen at their end
  /** @param {number} from @param {number} to @param {number} ms @param {Record<string, string>} then */
  walk(from, to, ms, then) {
    this.rest();
    if (ms <= 0 || isStill()) return this.choose(then);
    const began = performance.now();
    /** @param {number} now */
    const next = (now) => {
      const part = clamp((now - began) / ms, 0, 1);
      this.moving = Math.round(from + part * (to - from));
      this.playing = part < 1 ? requestAnimationFrame(next) : 0;
      if (part >= 1) {
        this.moving = null;
        this.choose(then);
      }
      this.stale.add("selection");
      this.drawNow();
    };
    next(began);
  }

  rest() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.moving = null;
  }

  // Stop where the run is
  hold() {
    const { at, playing } = this;
    this.rest();
    if (playing) this.choose({ at: String(at) });
    this.invalidate("answer");
  }

  // A step that was clicked: what a visitor expects of a hidden run, or where to go
  /** @param {number} step */
  pick(step) {
    if (!this.isHidden) return this.goToStep(step);
    this.guess = 5 * Math.round(step / 5);
    this.play(0);
    return true;
  }

  /** @param {number} step */
  goToStep(step) {
    if (this.isOwn) {
      this.own.goTo(step);
      return true;
    }
    if (!this.last || this.isHidden) return false;
    this.rest();
    this.choose({ at: String(clamp(step, 0, this.last)) });
    return true;
  }

  // The moments of the run, and which of them the slider stands at
  get momentsHere() {
    return this.values.twin === "none" ? (this.pair[0]?.moments ?? []) : [];
  }

  get momentAt() {
    if (this.moving !== null) return -1;
    const { at, momentsHere: all } = this;
    const { layer, head } = this.values;
    const same = all.findIndex((one) => one.step === at && String(one.layer) === layer && String(one.head) === head);
    return same >= 0 ? same : all.findLastIndex((one) => one.step === at && (layer === "" || one.layer < 0));
  }

  // To a moment: forward it plays on the way there, and a second press skips that
  /** @param {number} i */
  goToMoment(i) {
    const one = this.momentsHere[i];
    if (!one) return false;
    const isHead = one.layer >= 0;
    const then = {
      at: String(one.step),
      by: one.kind === "back" ? "back" : "finds",
      layer: isHead ? String(one.layer) : "",
      head: isHead ? String(one.head) : "",
      row: "",
    };
    const from = this.at;
    this.going = i;
    if (this.playing || one.step <= from) {
      this.rest();
      this.choose(then);
    } else this.walk(from, one.step, Math.max(SHORTEST, WALK * (one.step - from)), then);
    return true;
  }

  pause() {
    this.run?.pause();
    this.twin?.pause();
  }

  goOn() {
    if (this.run?.state === "paused") this.run = this.run.again();
    if (this.twin?.state === "paused") this.twin = this.twin.again();
    this.invalidate("answer");
  }

  // Give up a place in the queue: the room is as it was before
  leave() {
    this.run?.close();
    this.twin?.close();
    [this.run, this.twin] = [null, null];
    this.invalidate("answer");
  }

  stop() {
    this.run?.close();
    this.twin?.close();
    this.invalidate("answer");
  }

  /** @param {string} twin @param {number} from */
  follow(twin, from, glances = false) {
    const { task, seed } = this.values;
    const one = new Following({ task, twin, seed, from: String(from) }, this.example, () => this.invalidate("answer"));
    if (glances) one.glance();
    else one.begin();
    return one;
  }

  // Out of sight for a while: no one watches, and the server may end the run.
  hidden() {
    clearTimeout(this.hiding);
    if (document.hidden && this.isGoing) this.hiding = setTimeout(() => this.stop(), HIDDEN);
    else if (!document.hidden && this.header?.offline) this.asTaught(this.values.race);
  }

  // The moments of a run are found in it.
  get isComing() {
    const isWalk = !this.isOwn && this.values.twin === "none";
    return isWalk && this.showsKept && !this.pair[0] && this.finished.isComing;
  }

  // By the clicker, or the Page keys: the next moment of a run, the next twin of a race. None of them begins a training.
  /** @param {number} by */
  turn(by) {
    if (this.isOwn) return this.own.turn(by);
    if (this.values.twin !== "none") {
      const names = Object.keys(words.twins).filter((name) => this.isOffered(name));
      const i = names.indexOf(this.values.twin);
      return this.choose({ twin: names[(i + by + names.length) % names.length], from: "0" });
    }
    const { momentsHere: all, at } = this;
    if (this.isHidden || !all.length) return false;
    const now = this.playing ? this.going : this.momentAt;
    const next = this.playing
      ? now
      : now >= 0
        ? now + by
        : by > 0
          ? all.findIndex((one) => one.step > at)
          : all.findLastIndex((one) => one.step < at);
    this.goToMoment(next < 0 ? (by > 0 ? all.length - 1 : 0) : next % all.length);
  }

  // Whether a twin has a chip: those that are kept of the task, and the one that is chosen; the others are in a list.
  /** @param {string} twin */
  isOffered(twin) {
    if (twin === "none") return false;
    const kept = this.header.finished[this.values.task] ?? [];
    return kept.length < 2 || kept.includes(twin) || twin === this.values.twin;
  }

  keys = {
    home: () => this.goToStep(0),
    end: () => this.goToStep(this.last),
    " ": () => (this.last < 2 || this.isGoing ? false : this.playing ? this.hold() : this.play()),
  };

  /** @param {number} down @param {number} right */
  arrow(down, right) {
    if (right) return this.goToStep((this.isOwn ? this.own.at : this.at) + STEP * right);
    const seen = this.pair[0]?.seen;
    if (!seen || this.values.twin !== "none") return false;
    this.choose({ row: String(clamp(this.row + down, 1, seen.tokens.length - 1)) });
    return true;
  }

  // The row of the large map that is told
  get row() {
    const seen = this.pair[0]?.seen ?? this.pair[1]?.seen;
    if (!seen) return 1;
    return clamp(whole(this.values.row, Math.min(seen.first + 1, seen.tokens.length - 1)), 1, seen.tokens.length - 1);
  }

  get headGrid() {
    const look = this.here().find((side) => side?.look)?.look;
    return look ? { layers: look.shape[0], heads: look.shape[1] } : null;
  }

  // Whether a kept run is shown while no one has begun one. A lesson covers what comes out of it.
  get showsKept() {
    return !this.run && this.values.seed === "0" && !this.from;
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    const { task, twin } = this.values;
    this.pair = this.showsKept
      ? this.finished.pair(this.header.finished, task, twin, this.example)
      : [this.run, this.twin];
    this.em = 16 * this.typeUnit;
    this.root.classList.toggle("stacked", !this.isProjected && this.root.clientWidth < STACKED * this.em);
    this.root.classList.toggle("race", twin !== "none");
    this.drawControls();
    if (this.drawOwn()) return this.drawFoot();
    this.drawChips();
    this.fact.replaceChildren(...this.sentence());
    this.fact.setAttribute("aria-live", this.playing ? "off" : "polite");
    this.drawKept();
    this.drawHeads();
    this.drawFork();
    this.drawCurve();
    this.drawTable();
    this.drawFoot();
    const rests = [this.run, this.twin].some((one) => one?.state === "paused" || one?.state === "stopped");
    this.selection.tellClass({ race: this.isGoing || (this.run && !rests) ? "on" : this.run ? "paused" : "off" });
    const states = `${this.run?.state},${this.twin?.state}`;
    if (states !== this.told && /ended|paused/.test(states)) cover.news();
    this.told = states;
    if (!this.hasPlayed && this.pair[0]) this.open();
  }

  // Whether the visitor's own text takes the place of the runs
  drawOwn() {
    const { isOwn } = this;
    this.main.hidden = isOwn;
    if (!isOwn) this.own.box.remove();
    else if (!this.own.box.parentNode) this.main.before(this.own.box);
    this.root.classList.toggle("of-own", isOwn);
    if (!isOwn) return false;
    this.rest();
    this.hasPlayed = true;
    if (!this.ownAsked) this.own.watch(true);
    this.ownAsked = true;
    this.own.draw(this.palette, this.em, this.isProjected);
    this.drawTable();
    return true;
  }

  // The room opens alive: the kept run is played once, unless a lesson asks of it, or the address names a step on the way
  open() {
    this.hasPlayed = true;
    const isAtEnd = whole(this.values.at, this.header.steps) >= this.last;
    if (this.showsKept && isAtEnd && this.values.twin === "none" && !cover.now && !this.isOffline && !this.isHidden)
      this.play(0);
  }

  status() {
    const { run, twin, values } = this;
    return {
      kept: run ? 0 : this.pair.filter(Boolean).length,
      task: values.task,
      twin: values.twin,
      state: run?.state ?? "none",
      twinstate: twin?.state ?? "none",
      at: this.at,
      last: run?.points.length ?? 0,
      twinlast: twin?.points.length ?? 0,
      frame: (run && upTo(run.frames, this.at)?.step) ?? "",
      waiting: this.showsKept && this.finished.isComing ? "1" : null,
      looks: run?.looks.size ?? 0,
      twinlooks: twin?.looks.size ?? 0,
    };
  }

  drawControls() {
    const { task, twin } = this.values;
    this.tasks.value = task;
    [...this.ways.children].forEach((one, i) =>
      one.setAttribute("aria-pressed", String(i === (this.isOwn ? 2 : twin === "none" ? 0 : 1))),
    );
    this.go.textContent = this.isQueued
      ? words.cancel
      : this.isGoing
        ? words.pause
        : this.isPaused
          ? words.go_on
          : this.run
            ? words.train_again
            : words.train;
    if (this.isOwn) this.go.textContent = this.own.label;
    this.go.hidden = this.isOwn && this.own.state === "ended";
    this.where.parentElement?.toggleAttribute("hidden", this.isOwn);
    this.tasks.hidden = this.isOwn;
    this.more.hidden = this.isOwn;
    this.go.title = this.isGoing && !this.isQueued ? words.pause_help : "";
    this.where.textContent = this.pair[0]?.seen?.unseen === false ? words.seen : words.unseen;
    const refused = this.pair[0]?.refused || this.pair[1]?.refused || "";
    this.refused.hidden = !refused;
    const drawn = this.pair.find((one) => one?.refused && one.looks.size)?.shown;
    setText(this.refused, drawn ? `${refused} ${fill(words.refused_drawn, { example: drawn })}` : refused);
  }

  // Play, and the moments of a run or the twins of a race
  drawChips() {
    const { twin, task } = this.values;
    const isRace = twin !== "none";
    this.chips.hidden = this.isHidden;
    this.replay.hidden = this.isGoing || this.last < 2 || isStill();
    setText(this.replay, this.playing ? "❚❚" : "▶");
    this.replay.ariaLabel = this.playing ? words.stop_playing : words.play;
    this.moments.hidden = isRace;
    this.races.hidden = !isRace;
    for (const [name, chip] of this.twinChips) {
      chip.hidden = !this.isOffered(name);
      chip.setAttribute("aria-pressed", String(name === twin));
    }
    const rest = Object.entries(words.twins).filter(([name]) => name !== "none" && !this.isOffered(name));
    this.others.hidden = !rest.length;
    const told = `${task} ${rest.map(([name]) => name)}`;
    if (this.others.dataset.told !== told) {
      this.others.replaceChildren(
        new Option(words.more_twins, ""),
        ...rest.map(([name, text]) => new Option(text, name)),
      );
      this.others.dataset.told = told;
    }
    this.others.value = "";
    const all = this.momentsHere;
    const now = this.playing && this.going >= 0 ? this.going : this.momentAt;
    const made = JSON.stringify(all.map(({ kind, step }) => [kind, step]));
    if (this.moments.dataset.made !== made) {
      this.moments.dataset.made = made;
      this.moments.replaceChildren(
        ...all.map(({ kind }, i) => button(words.moment[kind], "chip", () => this.goToMoment(i))),
      );
    }
    [...this.moments.children].forEach((chip, i) => chip.setAttribute("aria-pressed", String(i === now)));
    setText(
      this.place,
      all.length && !isRace ? (now >= 0 ? fill(words.of_moments, { n: now + 1, m: all.length }) : "PgDn") : "",
    );
  }

  // The two runs at the slider: loss, frame, look
  here() {
    const at = this.at;
    return this.pair.map((one) => {
      if (!one?.points.length) return null;
      const i = indexAt(one.points, at);
      const frame = upTo(one.frames, at);
      const seen = frame && [...one.looks.keys()].filter((step) => step <= frame.step);
      return {
        one,
        i,
        loss: lossAt(one, at),
        frame,
        look: seen?.length ? one.looks.get(Math.max(...seen)) : undefined,
        known: i >= 0 || (Boolean(frame) && this.showsKept),
      };
    });
  }

  // Measures of each head of a run, by step: over unseen problems, or over the example where a record has no more
  /** @param {import("./types.js").Run} one @param {"finds" | "back" | "ahead"} by @returns {[step: number, of: number[][]][]} */
  measured(one, by) {
    const found = one.frames.flatMap((frame) => (frame[by]?.length ? [[frame.step, frame[by]]] : []));
    if (found.length || by === "back") return /** @type {any} */ (found);
    return [...one.looks.values()].sort((a, b) => a.step - b.step).map((look) => [look.step, look[by]]);
  }

  // The measure of the heads of the run (0) or of its twin (1): without a mask it looks ahead
  /** @param {number} i @returns {"finds" | "back" | "ahead"} */
  says(i) {
    if (this.values.twin === "none") return this.values.by === "back" && this.hasBack ? "back" : "finds";
    return i && this.values.twin === "nomask" ? "ahead" : "finds";
  }

  get hasBack() {
    return Boolean(this.pair[0]?.frames.some((frame) => frame.back?.length));
  }

  // The head of the run (0) or its twin (1) that is shown large: the chosen one, or the one that does most at its last step
  /** @param {number} i @returns {[layer: number, head: number]} */
  headOf(i) {
    const one = this.pair[i];
    const last = one && this.measured(one, this.says(i)).at(-1)?.[1];
    if (!last?.length) return [0, 0];
    const [layer, head] = [whole(this.values.layer, -1), whole(this.values.head, -1)];
    if ((!i || this.values.twin === "none") && head >= 0 && last[layer]?.[head] !== undefined) return [layer, head];
    const [l, h] = largest(last);
    return [l, h];
  }

  // Its measure at the slider
  /** @param {number} i @returns {number[][]} */
  valuesOf(i) {
    const one = this.pair[i];
    const found = one ? this.measured(one, this.says(i)) : [];
    return (found.findLast(([step]) => step <= this.at) ?? found[0])?.[1] ?? [];
  }

  drawKept() {
    const [run, twin] = this.pair;
    this.isKept = !this.run && Boolean(run);
    const what =
      this.values.twin === "none"
        ? words.finished
        : twin
          ? words.finished_race
          : fill(words.finished_alone, { twin: this.twinName });
    this.kept.textContent = this.example === EXAMPLES[this.values.task] ? what : `${what} ${words.finished_other}`;
  }

  /** @returns {Node[]} */
  sentence() {
    const [run, twin] = this.pair;
    const [a, b] = this.here();
    const name = this.twinName;
    if (!run) return this.showsKept && this.finished.isComing ? [] : phrase(words.before, {});
    for (const one of [run, twin]) {
      if (one?.state === "failed")
        return one.heard ? phrase(words.failed, { why: one.why }) : [document.createTextNode(one.why)]; // or it never began
      if (one?.state === "lost") return phrase(words.lost, {});
    }
    const waits = [run, twin].find((one) => one?.state === "waiting" && one.heard);
    if (!a?.known)
      return waits
        ? phrase(form(words.waiting, waits.place), { n: waits.place, s: waits.seconds })
        : phrase(words.beginning, {});
    if (this.isHidden) return phrase(words.predict_ask, {});
    const s = String(this.at);
    const burst = [a, b].find((side) => side?.one.points.some(([, loss]) => loss === null));
    if (burst) return phrase(words.not_finite, { s: String(burst.one.points.at(-1)?.[0]), twin: name });
    const right = (/** @type {typeof a} */ side) => (side?.frame ? percent(mean(side.frame.given)) : "");
    if (!b?.known) {
      const begins = twin
        ? this.from
          ? fill(words.forking, { from: this.from })
          : waits
            ? words.waiting_short
            : words.beginning
        : "";
      const tail = twin ? [document.createTextNode(` ${name}: ${begins}`)] : [];
      const loss = [lossText(a.loss), "A"];
      if (!a.look) return [...phrase(words.alone_early, { s, loss, a: loss }), ...tail];
      if (this.guess !== null && !this.playing && !twin && this.at >= this.last)
        return guessSaid(run, this.guess, this.header.steps);
      const moment = this.momentsHere[this.momentAt];
      if (moment && !twin) {
        const best = largest(this.measured(run, "finds").at(-1)?.[1] ?? []);
        const symbols = this.header.tasks[this.values.task].vocabulary.length;
        const told = momentSaid(moment, run, { symbols, best });
        return [...told, ...(this.values.task === "echo" ? [document.createTextNode(` ${words.echo}`)] : []), ...tail];
      }
      const [l, h] = this.headOf(0);
      const w = this.valuesOf(0)[l]?.[h] ?? 0;
      const said = phrase(this.says(0) === "back" ? words.alone_back : words.alone, {
        s,
        a: loss,
        p: [right(a), "word"],
        l: String(l),
        h: [String(h), "A"],
        w: [percent(w), "A"],
      });
      return [...said, ...(this.values.task === "echo" ? [document.createTextNode(` ${words.echo}`)] : []), ...tail];
    }
    if (run.seeds.length && twin?.seeds.length && !this.from)
      return seedsSaid(run, twin, { at: this.at, steps: this.header.steps, name });
    const losses = { a: [lossText(a.loss), "A"], b: [lossText(b.loss), "B"] };
    const ended = run.state === "ended" && twin?.state === "ended" && this.at === this.last;
    if (ended && this.values.twin === "nomask" && a.frame && b.frame && b.look && b.frame.whole < a.frame.whole) {
      const [l, h] = this.headOf(1);
      return phrase(words.nomask, {
        ...losses,
        n: String(a.frame.whole),
        m: [String(b.frame.whole), "B"],
        l: String(l),
        h: String(h),
        w: percent(this.valuesOf(1)[l]?.[h] ?? 0),
      });
    }
    const said =
      a.frame && b.frame
        ? phrase(words.racing, { s, ...losses, twin: [name, "B"], p: right(a), q: right(b) })
        : phrase(words.racing_early, { s, ...losses, twin: [name, "B"] });
    if (ended && a.frame && b.frame) {
      const last =
        this.values.twin === "noresidual" && a.frame.gradients.length
          ? fill(words.gradients, {
              a: listed(a.frame.gradients.map((x) => pointed(x.toPrecision(2)))),
              b: listed(b.frame.gradients.map((x) => pointed(x.toPrecision(2)))),
              twin: name,
            })
          : fill(words.on_its_own, { n: wholeAt(a.one, this.at), m: wholeAt(b.one, this.at) });
      return [...said, document.createTextNode(` ${last}`)];
    }
    return said;
  }

  get twinName() {
    const name = worded(words.twins, this.values.twin);
    return this.from ? fill(words.forked, { twin: name, s: this.from }) : name;
  }

  drawCurve() {
    const { header, palette, at } = this;
    const [run, twin] = this.pair;
    this.curve.measure(this.isProjected);
    const n = header.tasks[this.values.task].vocabulary.length;
    const isBanded = Boolean(run?.seeds.length && twin?.seeds.length && !this.from);
    /** @type {import("./chart.js").Charted} */
    const of = {
      steps: header.steps,
      now: at,
      seen: this.playing ? at : this.last,
      last: this.isHidden ? header.steps : this.last,
      guess: { n, loss: Math.log(n) },
      losses: [],
      shares: [],
      lossBands: [],
      shareBands: [],
      about: twin || this.isProjected ? words.percent_right : words.percent_heads,
      marks: this.momentsHere.map(({ step }, i) => ({ step, isOn: i === this.momentAt })),
      leads: isBanded
        ? (twin?.leads ?? []).map((lead) => ({ ...lead, colour: lead.side ? palette.query : palette.ink }))
        : [],
      posts: [],
      cover: this.isHidden ? words.predict_here : "",
      says: this.fact.textContent ?? "",
    };
    this.pair.forEach((one, i) => {
      if (!one) return;
      const colour = i ? palette.query : palette.ink;
      const dash = i ? "8 4" : undefined;
      const begun = one.frames[0];
      const first = begun?.step === 0 && begun.loss != null ? [[0, begun.loss]] : [];
      const losses = /** @type {[number, number | null][]} */ ([
        ...first,
        ...smooth(one.points).map((loss, k) => [one.points[k][0], loss]),
      ]);
      const name = twin ? (i ? this.twinName : words.as_it_is) : words.line_loss;
      of.losses.push({ values: losses, colour, dash, name, say: lossText });
      const right = /** @type {[number, number][]} */ (one.frames.map((frame) => [frame.step, mean(frame.given)]));
      if (twin) of.shares.push({ values: right, colour, dash, name, say: percent });
      else this.headLines(of, one, right);
      if (!isBanded) return;
      of.lossBands.push({
        ...band(one.seeds.map((seed) => meansOf(seed.losses))),
        colour,
      });
      of.shareBands.push({ ...band(one.seeds.map((seed) => seed.frames.map(([step, x]) => [step, x]))), colour });
    });
    if (this.guess !== null && run) {
      of.posts.push({ step: this.guess, text: fill(words.you_said, { s: this.guess }), colour: palette.query });
      const right = run.moments.find(({ kind }) => kind === "right");
      if (right && right.step <= at)
        of.posts.push({ step: right.step, text: fill(words.was_at, { s: right.step }), colour: palette.proof });
    }
    this.curve.draw(of, palette);
  }

  // The heads of a run alone: the one that finds, the one that looks back, the chosen one, and the others faintly
  /** @param {import("./chart.js").Charted} of @param {import("./types.js").Run} one @param {[number, number][]} right */
  headLines(of, one, right) {
    const { palette } = this;
    const by = this.says(0) === "back" ? "back" : "finds";
    const [finds, back] = [this.measured(one, "finds"), this.measured(one, "back")];
    /** @param {[step: number, of: number[][]][]} all @param {number} l @param {number} h @returns {[number, number][]} */
    const line = (all, l, h) => all.map(([step, values]) => [step, values[l]?.[h] ?? 0]);
    const ends = by === "back" ? back : finds;
    const chosen = this.headOf(0);
    ends
      .at(-1)?.[1]
      .forEach((row, l) =>
        row.forEach((_, h) => of.shares.push({ values: line(ends, l, h), colour: palette.hatch, wide: 0.4 })),
      );
    const isShown = (/** @type {number[]} */ head, /** @type {string} */ what) =>
      by === what && head[0] === chosen[0] && head[1] === chosen[1];
    /** @type {["finds" | "back", [step: number, of: number[][]][], string, string | undefined][]} */
    const kinds = [
      ["back", back, words.line_back, "7 4"],
      ["finds", finds, words.line_finds, undefined],
    ];
    for (const [what, all, name, dash] of kinds) {
      const last = all.at(-1)?.[1];
      if (!last?.length) continue;
      const [l, h] = largest(last);
      const heads = isShown([l, h], what) || by !== what ? [[l, h]] : [[l, h], chosen];
      for (const head of heads)
        of.shares.push({
          values: line(all, head[0], head[1]),
          colour: isShown(head, what) ? palette.query : what === "back" ? palette.key : palette.mute,
          dash,
          name: fill(name, { l: head[0], h: head[1] }),
          say: percent,
        });
    }
    of.shares.push({ values: right, colour: palette.proof, wide: 1.15, name: words.line_right, say: percent });
  }

  drawReading() {
    const [a, b] = this.here();
    const [run, twin] = this.pair;
    const seen = run?.seen ?? twin?.seen;
    const readers = [a, b].flatMap((side, i) =>
      side?.look && side.frame
        ? [
            {
              name: i ? this.twinName : twin ? words.as_it_is : worded(words.tasks, this.values.task),
              className: i ? "B" : "A",
              look: side.look,
              facts: { ...side.frame, whole: wholeAt(side.one, this.at) },
              colour: i ? this.palette.query : this.palette.proof,
            },
          ]
        : [],
    );
    if (seen && readers.length) reading(this.write, seen, readers, this.palette);
    else this.write.replaceChildren(el("p", "note", words.ghost_write));
  }

  drawFork() {
    const canFork = ["ended", "stopped", "paused"].includes(this.run?.state ?? "");
    const at = Math.min(this.at, this.header.steps - 1);
    this.fork.hidden = !canFork || at < 1;
    if (this.fork.hidden) return;
    const chips = el("div", "chips");
    chips.append(el("b", "", fill(words.fork, { s: at })));
    for (const [name, { fixed }] of Object.entries(this.header.twins)) {
      if (fixed || name === "none" || name === "nowarmup" || !(name in words.twins)) continue;
      const fork = () => this.choose({ twin: name, from: String(at) });
      const chip = chips.appendChild(button(worded(words.twins, name), "chip", fork, worded(words.twin_help, name)));
      chip.setAttribute("aria-pressed", String(this.values.twin === name && this.from === at));
    }
    this.fork.replaceChildren(chips, el("p", "note", words.fork_note));
  }

  // The heads as small maps below the chart, and one of each run large beside it. A step looks like the one before but for numbers
  // and pixels, and these go into the parts that there are.
  drawHeads() {
    const sides = this.here();
    const [run, twin] = this.pair;
    const looks = sides.map((side) => side?.look);
    const made = JSON.stringify([
      this.em,
      this.left.clientWidth,
      this.isProjected,
      this.values.twin,
      this.twinName,
      this.hasBack,
      this.isHidden,
      looks.map((look) => look?.shape),
      [run, twin].map((one) => one?.seen?.tokens),
    ]);
    if (made !== this.heads.made) this.heads = { made, paint: this.makeHeads(looks) };
    this.heads.paint(looks);
  }

  /** @param {(import("./types.js").Look | undefined)[]} looks */
  makeHeads(looks) {
    const { em, isProjected } = this;
    const twin = this.pair[1];
    const width = this.left.clientWidth;
    /** @type {((looks: (import("./types.js").Look | undefined)[]) => void)[]} */
    const found = [];
    this.strips.replaceChildren();
    this.right.replaceChildren();
    if (this.isHidden) {
      add(this.right, "p", "note").textContent = words.predict_hidden;
      return () => {};
    }
    if (!looks.some(Boolean)) add(this.right, "p", "note").textContent = words.ghost;
    looks.forEach((look, i) => {
      if (!look) return;
      const [layers, heads] = look.shape;
      const choose = (/** @type {number} */ layer, /** @type {number} */ head) =>
        this.choose({ layer: String(layer), head: String(head) });
      const box = add(this.strips, "div", twin ? "two" : "one");
      const title = add(box, "h3");
      const about = el("span");
      title.append(
        el("b", i ? "B" : "A", twin ? (i ? this.twinName : words.as_it_is) : counted(layers * heads)),
        ...(twin ? [] : [words.as_they_form, about]),
      );
      about.className = "about";
      const room = twin ? width - 7.5 * em : width;
      const isMany = layers * heads > 16;
      const paint = strip(
        box,
        {
          shape: look.shape,
          width: twin && !isMany ? room * 1.06 : room,
          em,
          most: twin ? (isMany ? 1.95 : isProjected ? 3 : 3.9) : isProjected ? 5 : undefined,
          quiet: Boolean(twin),
          short: isProjected,
        },
        choose,
      );
      const one = add(this.right, "div", "head");
      const name = add(one, "h3");
      const said = add(one, "p", "note");
      const by = i || twin || !this.hasBack ? null : this.byChoice();
      if (by) name.append(by);
      const called = el("span");
      name.prepend(called);
      const map = add(one, "div", "map");
      found.push((now) => {
        const here = now[i];
        const seen = this.pair[i]?.seen;
        if (!here || !seen) return;
        const of = this.says(i);
        const [layer, head] = this.headOf(i);
        const values = this.valuesOf(i);
        const what = words[/** @type {const} */ (`by_${of}`)];
        paint(here, values, [layer, head], this.palette);
        about.textContent = fill(words.percent_of, { what });
        called.replaceChildren(
          el(
            "b",
            i ? "B" : "A",
            twin ? (i ? this.twinName : words.as_it_is) : fill(words.large, { l: layer, h: head }),
          ),
          ` ${twin ? fill(words.large, { l: layer, h: head }) : fill(words.at_step, { s: this.at })}`,
        );
        const isMean = this.pair[i]?.frames.some((frame) => frame[of]?.length);
        said.replaceChildren(
          ...phrase(isProjected ? words.on_wall : isMean ? words.on_average : words.on_this, {
            w: [percent(values[layer]?.[head] ?? 0), "strong"],
            what: [what, "key"],
          }),
        );
        const { first, tokens, answer } = seen;
        const answerRows = Array.from({ length: tokens.length - first }, (_, k) => first + k);
        large(
          map,
          seen,
          here,
          {
            layer,
            head,
            row: twin ? Math.min(first + 1, tokens.length - 1) : this.row,
            arc: !twin,
            rows: twin && answer.length > 1 && map.clientHeight < LOWEST * em * tokens.length ? answerRows : undefined,
            em: em * (twin ? 0.92 : 1),
            act: (row) => this.choose({ row: String(Math.max(1, row)) }),
          },
          this.palette,
        );
      });
    });
    const legend = add(this.right, "p", "legend");
    const scale = el("i");
    legend.append("0", scale, words.of_a_row, " ", el("b", "query", words.looks), el("b", "key", words.is_looked_at));
    return (/** @type {(import("./types.js").Look | undefined)[]} */ now) => {
      scale.style.background = `linear-gradient(90deg, ${this.palette.ramp})`;
      for (const paint of found) paint(now);
    };
  }

  byChoice() {
    return choice(
      words.by,
      [
        ["finds", words.short_finds],
        ["back", words.short_back],
      ],
      this.values.by,
      (by) => this.choose({ by, layer: "", head: "", row: "" }),
    );
  }

  lines() {
    return this.pair.flatMap((one, i) =>
      one
        ? one.frames.map((frame) => {
            const point = one.points[indexAt(one.points, frame.step)];
            return [
              i ? this.twinName : words.as_it_is,
              frame.step,
              point?.[1] ?? "",
              point?.[2] ?? "",
              mean(frame.given),
              frame.whole < 0 ? "" : frame.whole,
              frame.gradients.map((x) => x.toPrecision(4)).join(" "),
            ];
          })
        : [],
    );
  }

  // A column for each measure of each head that run or twin has, and of each line above its values: as frames have them, or else looks
  /** @returns {[columns: string[], values: (number | string)[][]]} */
  headColumns() {
    const kinds = /** @type {const} */ ([
      ["finds", words.line_finds],
      ["back", words.line_back],
      ["ahead", words.line_ahead],
    ]);
    /** @type {Map<string, ((step: number) => number | string)[]>} */
    const found = new Map();
    this.pair.forEach((one, i) => {
      if (!one) return;
      for (const [by, name] of kinds) {
        const steps = new Map(this.measured(one, by));
        [...steps.values()].at(-1)?.forEach((row, l) =>
          row.forEach((_, h) => {
            const column = fill(name, { l, h });
            const sides = found.get(column) ?? [() => "", () => ""];
            sides[i] = (step) => steps.get(step)?.[l]?.[h] ?? "";
            found.set(column, sides);
          }),
        );
      }
    });
    const values = this.pair.flatMap((one, i) =>
      one ? one.frames.map(({ step }) => [...found.values()].map((sides) => sides[i](step))) : [],
    );
    return [[...found.keys()], values];
  }

  // The curve: loss and share of symbols right at every step, not only where there is a frame
  points() {
    return this.pair.flatMap((one, i) =>
      one ? one.points.map(([step, loss, right]) => [i ? this.twinName : words.as_it_is, step, loss ?? "", right]) : [],
    );
  }

  drawTable() {
    const isOpen = this.values.table === "on";
    this.tableBox.hidden = !isOpen;
    this.tableButton.setAttribute("aria-pressed", String(isOpen));
    if (this.isOwn && !this.own.frames.length) this.tableBox.hidden = true;
    if (this.tableBox.hidden) return;
    this.write.hidden = this.isOwn;
    if (this.isOwn) return this.numbers.replaceChildren(table(words.table_help, ...this.own.shown()));
    this.drawReading();
    this.numbers.replaceChildren(table(words.table_help, words.table_columns, this.lines()));
  }

  drawFoot() {
    const { header, isOwn } = this;
    for (const part of [this.seed, this.facts, this.kept, this.proof, this.predict, this.recorded]) part.hidden = isOwn;
    this.opens.forEach((link, i) => {
      const address = this.explored(i);
      link.hidden = address === null;
      if (address === null) return;
      const name = this.pair[1] && !isOwn && (i ? this.twinName : words.as_it_is);
      Object.assign(link, {
        href: address,
        textContent: name ? fill(words.open_one, { run: name }) : words.open,
        title: isOwn ? words.own_open_help : words.open_help,
      });
    });
    this.download.title = isOwn ? words.own_download_help : words.download_help;
    this.tableButton.hidden = isOwn && !this.own.frames.length;
    if (isOwn) return this.drawOwnFoot();
    const fixed = header.twins[this.values.twin].fixed && header.twins[this.values.twin].heads !== 4;
    const isBanded = Boolean(this.pair[0]?.seeds.length && this.pair[1]?.seeds.length && !this.from);
    this.proof.hidden = !this.pair[1];
    this.kept.hidden = !this.isKept;
    this.proof.textContent = `✓ ${fixed ? words.checks_other : words.checks}`;
    this.facts.textContent = isBanded
      ? words.seeds_foot
      : fill(words.cost, {
          p: number(header.parameters[this.values.task]),
          b: header.batch,
          steps: header.steps,
        });
    this.seed.textContent = `${fill(words.seed, { n: this.values.seed })} · ${words.another_seed}`;
    this.recorded.hidden = this.isGoing || this.isPaused; // it would leave them
    this.predict.hidden = this.values.twin !== "none" || this.isGoing;
    this.predict.setAttribute("aria-pressed", String(this.values.predict === "on"));
    const frame = this.modelOf(0);
    this.download.hidden = !frame;
    if (frame && this.pair[0])
      this.download.href = String(addressOf(this.pair[0].spec, "model", { step: String(frame.step) }));
  }

  drawOwnFoot() {
    const { begun, hasModel, points, frames } = this.own;
    this.facts.hidden = !begun;
    if (begun)
      this.facts.textContent = fill(begun.unit === "pieces" ? words.own_foot_pieces : words.own_foot, {
        n: number(begun.signs),
      });
    this.download.hidden = !hasModel;
    this.download.href = String(ownAddress("text/model"));
    this.files.box.hidden = !points.length || !frames.length;
  }

  // The frame of the run (0) or its twin (1) at this step, if the server has its weights: of a kept run those of the last one
  /** @param {number} i */
  modelOf(i) {
    const one = this.pair[i];
    const frame = one ? upTo(one.frames, this.at) : null;
    if (!one || !frame || this.run) return frame ?? null;
    const isThere = this.header.weighed[one.spec.task]?.includes(one.spec.twin);
    return isThere && frame.step === endOf(one) ? frame : null;
  }

  // Where Explore shows the run (0) or its twin (1) at this step, on the example with its answer; null where there is nothing to show
  /** @param {number} i */
  explored(i) {
    if (this.isOwn) return i ? null : this.own.explored;
    const [one, frame] = [this.pair[i], this.modelOf(i)];
    if (!one?.seen || !frame || one.seen.edits === null) return null;
    const { model, edits, tokens } = one.seen;
    const said = {
      model,
      text: tokens.slice(1).join(""),
      step: frame.step,
      with: edits,
      layer: this.values.layer,
      head: this.values.head,
    };
    const query = new URLSearchParams({ view: "explore" });
    for (const [name, text] of Object.entries(said)) if (text !== "") query.set(name, String(text));
    return `?${query}`;
  }

  // In this tab: the server keeps a run that still goes on where it is, so that there is something to show.
  /** @param {MouseEvent} e @param {number} i */
  async explore(e, i) {
    const address = this.explored(i);
    if (address === null || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    await Promise.all(
      [this.run, this.twin].map((one) => (one?.state === "running" || one?.state === "waiting" ? one.pause() : null)),
    );
    goTo(address, false);
  }

  link() {
    return { view: "train", ...super.link() };
  }

  picture() {
    return this.isOwn ? rows([this.own.left, this.own.right]) : rows([this.left, this.right]);
  }

  // From step 0 through all that was learnt
  /** @returns {import("../../../kit/browser/types.js").Film} */
  film() {
    const { last } = this;
    if (last < 2) throw { sentence: words.film_nothing };
    const { show, end } = this.rehearsal();
    show({ at: String(last) }); // which what it says is of
    const { title, caption, snippet, name, alt } = this.about();
    const first = Math.min(...this.pair.map((one) => one?.points[0]?.[0] ?? last));
    const n = Math.min(last - first, MOMENTS);
    const frames = Array.from({ length: n + 1 }, (_, i) => ({
      seconds: i === n ? LAST : MOMENT,
      draw: () => {
        show({ at: String(Math.round(first + (i * (last - first)) / n)) });
        return this.picture();
      },
    }));
    return {
      title,
      alt: `${fill(words.film_alt, { n: last })} ${alt}`,
      caption,
      snippet,
      name: `${name}-film`,
      frames,
      end,
    };
  }

  /** @param {string[]} of what it is, in pieces */
  captioned(of) {
    return [...of, `Headlight ${this.header.version}`, this.header.date].filter(Boolean).join(" · ");
  }

  // The own text's files say nothing of the kept run that the room has beside it
  ownAbout() {
    const { own } = this;
    const title = words.own_file_title;
    const caption = this.captioned([title, fill(words.of_steps, { s: own.at, n: own.last })]);
    const { snippet } = own;
    const name = "headlight-train-text";
    const points = own.points.map(([step, loss, seconds]) => [step, seconds, loss]);
    return {
      title,
      alt: fill(words.alt, { fact: own.fact.textContent ?? "" }),
      caption,
      snippet,
      name,
      tables: this.filed({ name, caption, snippet }, own.numbers(true), [words.own_point_columns, points]),
      film: () => this.ownFilm(),
    };
  }

  // From noise to its last frame
  /** @returns {import("../../../kit/browser/types.js").Film} */
  ownFilm() {
    const { own } = this;
    const { chosen, frames } = own;
    const { show, end } = this.rehearsal();
    const { title, caption, snippet, name, alt } = this.ownAbout();
    return {
      title,
      alt: `${fill(words.film_alt, { n: own.last })} ${alt}`,
      caption,
      snippet,
      name: `${name}-film`,
      frames: frames.map(({ step }, i) => ({
        seconds: i === frames.length - 1 ? LAST : 2 * MOMENT,
        draw: () => {
          own.chosen = step;
          show({});
          return this.picture();
        },
      })),
      end: () => {
        own.chosen = chosen;
        end();
      },
    };
  }

  // The two tables of a run as files: its frames, and its points
  /**
   * @typedef {(string | number)[][]} Rows
   * @param {{name: string, caption: string, snippet: string}} of
   * @param {[string[], Rows]} frames columns and rows
   * @param {[string[], Rows]} points
   * @returns {import("../../../kit/browser/types.js").AboutFiles["tables"]}
   */
  filed({ name, caption, snippet }, [columns, rows], [pointColumns, points]) {
    const said = [caption, snippet.trimEnd()];
    return [
      [words.table, name, csv(columns, rows, said), { of: "", columns, rows }],
      [
        words.every_step,
        `${name}-steps`,
        csv(pointColumns, points, said),
        { of: "steps", columns: pointColumns, rows: points },
      ],
    ];
  }

  about() {
    if (this.isOwn) return this.ownAbout();
    const { task, seed } = this.values;
    const title = fill(words.title, { task: worded(words.tasks, task) });
    const fact = this.fact.textContent ?? "";
    const caption = this.captioned([
      title,
      this.pair[1] ? this.twinName : "",
      fill(words.seed, { n: seed }),
      fill(words.of_steps, { s: this.at, n: this.header.steps }),
    ]);
    const spec = (/** @type {import("./types.js").Run} */ one) =>
      `Spec(${JSON.stringify(one.spec.task)}, ${JSON.stringify(one.spec.twin)}, seed=${one.spec.seed}${one.spec.from === "0" ? "" : `, fork=${one.spec.from}`})`;
    const snippet = [
      "from headlight.learn.watched_training import Point, Spec, run",
      "",
      ...this.pair.flatMap((one, i) =>
        one ? [`${i ? "twin" : "plain"} = [x for x in run(${spec(one)}) if isinstance(x, Point)]`] : [],
      ),
      "print(plain[-1].step, plain[-1].loss)",
      "",
    ].join("\n");
    const [heads, values] = this.headColumns();
    const columns = [...words.table_columns, ...heads];
    const lines = this.lines().map((line, i) => [...line, ...values[i]]);
    const name = `headlight-train-${task}`;
    return {
      title,
      alt: fill(words.alt, { fact }),
      caption,
      snippet,
      name,
      tables: this.filed({ name, caption, snippet }, [columns, lines], [words.point_columns, this.points()]),
      film: () => this.film(),
    };
  }
}

/** @param {number} n */
const counted = (n) => fill(form(words.eight, n), { n });

// Losses by step, each the mean of five
/** @param {(number | null)[]} losses @returns {[number, number | null][]} */
function meansOf(losses) {
  const points =
    MEANT.get(losses) ?? losses.map((loss, i) => /** @type {import("./types.js").Point} */ ([i + 1, loss, 0]));
  MEANT.set(losses, points);
  return smooth(points).map((loss, i) => [i + 1, loss]);
}

export default Train;
