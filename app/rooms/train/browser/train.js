// Train: a model learns before one's eyes, beside its twin. The curve is the slider: heads and letters go where it stands.

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
  focusable,
  number,
  phrase,
  setField,
  setText,
  share,
  worded,
} from "../../../kit/browser/dom.js";
import { rows } from "../../../kit/browser/drawing.js";
import { whole } from "../../../kit/browser/selection.js";
import { Stage, stage } from "../../../kit/browser/stage.js";
import { table } from "../../../kit/browser/table.js";
import { goTo } from "../../../streamlit_edge/browser/page.js";
import { EXAMPLES, PALETTES, STYLE, WORDS as words } from "./constants.js";
import { Curve } from "./curve.js";
import { endOf, Finished } from "./finished.js";
import { addressOf, Following } from "./following.js";
import { ghosts, grid, large } from "./head_drawing.js";
import { indexAt, largest, lead, lossText, mean, smooth, upTo } from "./numbers.js";
import { reading } from "./reading.js";
import { form, listed, pointed } from "../../../kit/browser/language.js";

const BROKEN = ["nomask", "nopositions", "noscale", "noresidual"];
const LEFT = ["paused", "stopped", "lost"]; // a run that is not watched any longer, and goes on where it is watched again
const PACE = 60; // steps a second that are played again: as fast as one run learns on a quiet machine
const [MOMENTS, MOMENT, LAST] = [80, 0.1, 2.5]; // of a film: how many, and seconds of each and of the last
const HIDDEN = 10_000; // ms out of sight before a run that goes on is left
const LARGE = 11.9; // em of the large head
const LAYERS = 2; // of every run
const STACKED = 56; // em of a width, as beside a lesson, in which curve and heads are no neighbours

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const COVERED = ".main > section, .fact, .tablebox, .foot .ok"; // what a lesson covers: all that a race comes to

/** @extends {Stage<import("./types.js").Header, import("./types.js").Palette>} */
class Train extends Stage {
  static style = STYLE;
  static palettes = PALETTES;
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
  /** @type {number | undefined} */
  hiding;
  width = 440; // of the heads, px
  em = 16;
  /** @type {{made: string, paint: ((looks: (import("./types.js").Look | undefined)[]) => void)[]}} What the heads that are there are of */
  heads = { made: "", paint: [] };
  told = ""; // how far run and twin were when that was last told

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    const ask = add(root, "div", "ask");
    // Made once: news of a run come several times a second, and a button that is made again under a finger hears no click.
    this.tasks = choice(
      words.task,
      Object.entries(words.tasks).map(([name, text]) => [name, text, worded(words.lines, name)]),
      "",
      (task) => this.choose({ task }, true),
    );
    this.tasks.classList.add("tasks");
    ask.append(this.tasks);
    const label = add(ask, "label", "example");
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
      this.choose(
        { example: this.field.value.trim() === EXAMPLES[this.values.task] ? "" : this.field.value.trim() },
        true,
      ),
    );
    this.go = add(ask, "button", "go");
    this.go.addEventListener("click", () =>
      this.isQueued ? this.leave() : this.isGoing ? this.pause() : this.isPaused ? this.goOn() : this.train(),
    );
    this.replay = this.button(
      ask,
      words.start_again,
      () => (this.playing ? this.hold() : this.play()),
      words.start_again_help,
    );
    this.replay.classList.add("replay");
    this.more = this.button(ask, words.more, () => this.unfold(), words.more_help);
    this.more.classList.add("more");
    this.chips = described(add(root, "div", "chips races"), "group", words.race);
    this.chips.append(el("b", "", words.race));
    this.twinChips = Object.entries(words.twins).map(([name, text]) => {
      if (name === BROKEN[0]) this.chips.append(el("i", "", words.break_it));
      const race = () => this.choose({ twin: name, from: "0" }, true);
      const chip = this.chips.appendChild(button(text, `chip ${name}`, race, worded(words.twin_help, name)));
      return /** @type {const} */ ([name, chip]);
    });
    this.unfold(false);
    this.fact = add(root, "h2", "fact");
    this.kept = add(root, "p", "note kept");
    this.refused = add(root, "p", "refused");
    this.refused.setAttribute("role", "alert");
    const main = add(root, "div", "main");
    this.left = add(main, "section");
    this.heading = add(this.left, "h3");
    this.curve = new Curve(this.left, (step) => this.goToStep(step));
    this.write = add(this.left, "div", "write");
    this.fork = add(this.left, "div", "fork");
    this.right = add(main, "section");
    this.tableBox = focusable(add(root, "div", "tablebox"), "region", words.table);
    this.seed = this.button(
      null,
      "",
      () => this.choose({ seed: String(whole(this.values.seed) + 1) }, true),
      words.another_seed_help,
    );
    this.acts.before(this.seed);
    this.opens = [add(this.acts, "a", "quiet"), add(this.acts, "a", "quiet")]; // the run and its twin, in Explore
    this.opens.forEach((link, i) => link.addEventListener("click", (e) => this.open(e, i)));
    this.download = add(this.acts, "a", "quiet");
    Object.assign(this.download, { textContent: words.download, title: words.download_help });
    this.recorded = this.button(
      this.acts,
      words.recorded,
      () => this.choose({ recorded: "on" }, true),
      words.recorded_help,
    );
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
    return clamp(whole(this.values.at, this.header.steps), 0, this.last);
  }

  /** @param {Record<string, string>} changes */
  choose(changes, atOnce = false) {
    const isOther = changes.task !== undefined && changes.task !== this.values.task;
    const opening = { example: "", at: String(this.header.steps), layer: "", head: "" };
    super.choose({ ...changes, ...(isOther ? opening : {}) }, atOnce);
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
    this.hold();
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

  // From step 0 through all that there is; where nothing shall move, to step 0
  play() {
    const began = performance.now();
    const last = this.last;
    /** @param {number} now */
    const next = (now) => {
      const at = Math.round((PACE * Math.max(0, now - began)) / 1000);
      this.playing = at < last ? requestAnimationFrame(next) : 0;
      this.choose({ at: String(at < last ? at : this.header.steps) });
      this.drawNow();
    };
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.choose({ at: "0" });
    next(began);
  }

  hold() {
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.invalidate("answer");
  }

  /** @param {number} step */
  goToStep(step) {
    if (!this.last) return false;
    this.hold();
    this.choose({ at: String(clamp(step, 0, this.last)) });
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

  // By the clicker, in front of a class: on means Train, Pause, the next twin; back means Continue, the twin before. Elsewhere a key
  // that scrolls a page begins no training.
  /** @param {number} by */
  turn(by) {
    if (this.isProjected && by > 0 && !this.run) return this.train();
    if (this.isProjected && by > 0 && this.isGoing) return this.pause();
    if (this.isProjected && by < 0 && this.isPaused) return this.goOn();
    const names = Object.keys(words.twins);
    this.choose({ twin: names[clamp(names.indexOf(this.values.twin) + by, 0, names.length - 1)] }, true);
  }

  keys = { home: () => this.goToStep(0), end: () => this.goToStep(this.last) };

  /** @param {number} _down @param {number} right */
  arrow(_down, right) {
    return right ? this.goToStep(this.at + right) : false;
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

  /** @param {Set<import("../../../kit/browser/stage.js").Stale>} stale */
  draw(stale) {
    if (stale.has("theme")) {
      this.root.style.setProperty("--run", this.palette.heads[0]);
      this.root.style.setProperty("--twin", this.palette.heads[2]);
    }
    const { task, twin } = this.values;
    this.pair = this.showsKept
      ? this.finished.pair(this.header.finished, task, twin, this.example)
      : [this.run, this.twin];
    this.em = 16 * this.typeUnit;
    this.root.classList.toggle("stacked", !this.isProjected && this.root.clientWidth < STACKED * this.em);
    this.curve.measure();
    this.width = this.right.clientWidth || 440;
    this.drawControls();
    this.fact.replaceChildren(...this.sentence());
    this.drawKept();
    this.drawCurve();
    this.drawReading();
    this.drawFork();
    this.drawHeads();
    this.drawTable();
    this.drawFoot();
    const rests = [this.run, this.twin].some((one) => one?.state === "paused" || one?.state === "stopped");
    this.selection.tellClass({ race: this.isGoing || (this.run && !rests) ? "on" : this.run ? "paused" : "off" });
    const states = `${this.run?.state},${this.twin?.state}`;
    if (states !== this.told && /ended|paused/.test(states)) cover.news();
    this.told = states;
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
      looks: run?.looks.size ?? 0,
      twinlooks: twin?.looks.size ?? 0,
    };
  }

  drawControls() {
    const { task, twin } = this.values;
    Object.keys(words.tasks).forEach((name, i) =>
      this.tasks.children[i].setAttribute("aria-pressed", String(name === task)),
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
    this.go.title = this.isGoing && !this.isQueued ? words.pause_help : "";
    this.where.textContent = this.pair[0]?.seen?.unseen === false ? words.seen : words.unseen;
    for (const [name, chip] of this.twinChips) chip.setAttribute("aria-pressed", String(name === twin));
    this.replay.hidden = this.isGoing || this.last < 2;
    this.replay.textContent = this.playing ? words.hold : words.start_again;
    const refused = this.pair[0]?.refused || this.pair[1]?.refused || "";
    this.refused.hidden = !refused;
    const drawn = this.pair.find((one) => one?.refused && one.looks.size)?.shown;
    setText(this.refused, drawn ? `${refused} ${fill(words.refused_drawn, { example: drawn })}` : refused);
  }

  // The two runs at the slider: loss, frame, look
  here() {
    const at = this.at;
    return this.pair.map((one) => {
      if (!one?.points.length) return null;
      const i = indexAt(one.points, at);
      const frame = upTo(one.frames, at);
      return {
        one,
        i,
        loss: i < 0 ? null : smooth(one.points)[i],
        frame,
        look: frame && one.looks.get(frame.step),
        known: i >= 0,
      };
    });
  }

  drawKept() {
    const [run, twin] = this.pair;
    this.kept.hidden = Boolean(this.run) || !run;
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
    const s = String(this.at);
    const burst = [a, b].find((side) => side?.one.points.some(([, loss]) => loss === null));
    if (burst) return phrase(words.not_finite, { s: String(burst.one.points.at(-1)?.[0]), twin: name });
    const right = (/** @type {typeof a} */ side) => (side?.frame ? share(mean(side.frame.given)) : "");
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
      const [l, h, w] = largest(a.look.finds);
      const said = phrase(words.alone, { s, a: loss, p: right(a), l: String(l), h: String(h), w: [share(w), "A"] });
      return [...said, ...(this.values.task === "echo" ? [document.createTextNode(` ${words.echo}`)] : []), ...tail];
    }
    const losses = { a: [lossText(a.loss), "A"], b: [lossText(b.loss), "B"] };
    const ended = run.state === "ended" && twin?.state === "ended" && this.at === this.last;
    if (ended && this.values.twin === "nomask" && a.frame && b.frame && b.look && b.frame.whole < a.frame.whole) {
      const [l, h, w] = largest(b.look.ahead);
      return phrase(words.nomask, {
        ...losses,
        n: String(a.frame.whole),
        m: [String(b.frame.whole), "B"],
        l: String(l),
        h: String(h),
        w: share(w),
      });
    }
    const said =
      a.frame && b.frame
        ? phrase(words.racing, { s, ...losses, twin: [name, "B"], p: right(a), q: right(b) })
        : phrase(words.racing_early, { s, ...losses, twin: [name, "B"] });
    const found = this.from ? null : lead(smooth(a.one.points), smooth(b.one.points), Math.min(a.i, b.i));
    const leads = this.from
      ? []
      : found
        ? phrase(` ${words.lead}`, {
            leader: capital(found.leader ? name : words.as_it_is),
            k: String(found.since + 1),
          })
        : phrase(` ${words.tied}`, {});
    if (ended && a.frame && b.frame) {
      const last =
        this.values.twin === "noresidual" && a.frame.gradients.length
          ? fill(words.gradients, {
              a: listed(a.frame.gradients.map((x) => pointed(x.toPrecision(2)))),
              b: listed(b.frame.gradients.map((x) => pointed(x.toPrecision(2)))),
              twin: name,
            })
          : fill(words.on_its_own, { n: a.frame.whole, m: b.frame.whole });
      return [...said, ...leads, document.createTextNode(` ${last}`)];
    }
    return [...said, ...leads];
  }

  get twinName() {
    const name = worded(words.twins, this.values.twin);
    return this.from ? fill(words.forked, { twin: name, s: this.from }) : name;
  }

  drawCurve() {
    const { header } = this;
    const [run, twin] = this.pair;
    const lines = [
      ...(run
        ? [{ points: run.points, smooth: smooth(run.points), colour: this.palette.heads[0], dash: "", from: 0 }]
        : []),
      ...(twin
        ? [
            {
              points: twin.points,
              smooth: smooth(twin.points),
              colour: this.palette.heads[2],
              dash: "6 3",
              from: this.from,
            },
          ]
        : []),
    ];
    const n = header.tasks[this.values.task].vocabulary.length;
    this.heading.replaceChildren(
      el("b", "", words.loss),
      `${words.loss_help} · ${words.step} `,
      el("b", "", fill(words.of_steps, { s: this.at, n: header.steps })),
      this.last ? el("span", "only-here", words.drag) : "",
    );
    this.curve.draw(lines, header.steps, { n, loss: Math.log(n) }, this.at, this.palette, this.fact.textContent ?? "");
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
              facts: side.frame,
              colour: this.palette.heads[i ? 2 : 0],
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
      const fork = () => this.choose({ twin: name, from: String(at) }, true);
      const chip = chips.appendChild(button(worded(words.twins, name), "chip", fork, worded(words.twin_help, name)));
      chip.setAttribute("aria-pressed", String(this.values.twin === name && this.from === at));
    }
    this.fork.replaceChildren(chips, el("p", "note", words.fork_note));
  }

  drawHeads() {
    const [run, twin] = this.pair;
    const chosen =
      this.values.head === ""
        ? null
        : /** @type {[number, number]} */ ([whole(this.values.layer), whole(this.values.head)]);
    const sides = this.here();
    const { em, width } = this;
    if (this.isProjected) {
      this.heads = { made: "", paint: [] };
      this.right.replaceChildren();
      return this.drawOneOfEach(sides, chosen, em);
    }
    const [only] = sides;
    const seen = run?.seen;
    const isAlone = !twin && only?.look && seen;
    const [layer, head] =
      isAlone && only?.look
        ? chosen && chosen[0] < only.look.shape[0] && chosen[1] < only.look.shape[1]
          ? chosen
          : largest(only.look.finds)
        : [0, 0];
    const looks = sides.map((side) => side?.look);
    // A step looks like the one before but for numbers and pixels, and these go into the tiles that there are.
    const made = JSON.stringify([
      em,
      width,
      Boolean(twin),
      this.values.twin,
      this.twinName,
      this.values.task,
      chosen,
      looks.map((look, i) => look && [look.shape, this.says(i)]),
      isAlone && [layer, head, seen.tokens],
    ]);
    if (made !== this.heads.made)
      this.heads = { made, paint: this.makeHeads(looks, chosen, isAlone ? { layer, head, seen } : null) };
    for (const paint of this.heads.paint) paint(looks);
  }

  /**
   * @param {(import("./types.js").Look | undefined)[]} looks @param {[number, number] | null} chosen
   * @param {{layer: number, head: number, seen: import("./types.js").Seen} | null} one that is shown large
   */
  makeHeads(looks, chosen, one) {
    const { em, width } = this;
    const twin = this.pair[1];
    /** @type {((looks: (import("./types.js").Look | undefined)[]) => void)[]} */
    const found = [];
    this.right.replaceChildren();
    const races = this.values.twin !== "none";
    looks.forEach((look, i) => {
      if (!look && i && !twin && (!races || looks[0])) return; // of one that has not been begun beside a run that is there: the fact says so
      const [layers, heads] = look ? look.shape : [LAYERS, this.header.twins[i ? this.values.twin : "none"].heads];
      const of = this.says(i);
      const title = add(this.right, "h3");
      title.append(
        el(
          "b",
          i ? "B" : "A",
          i ? this.twinName : twin || (races && !look) ? words.as_it_is : worded(words.tasks, this.values.task),
        ),
        `${words[of]} · ${fill(words.heads, { layers, heads, d: 64 / heads })}`,
      );
      title.title = words[`${of}_help`];
      if (!look) return ghosts(this.right, layers, heads, width, em);
      const paint = grid(this.right, look.shape, of, twin ? null : chosen, width, em, (layer, head) =>
        this.choose({ layer: String(layer), head: String(head) }),
      );
      found.push((now) => now[i] && paint(now[i], this.palette));
    });
    if (!looks.some(Boolean)) {
      if (!races)
        Object.assign(add(this.right, "div", "ghost").style, {
          width: `${Math.min(LARGE * em, width)}px`,
          height: `${Math.min(LARGE * em, width)}px`,
        });
      add(this.right, "p", "note").textContent = words.ghost;
    }
    if (!one) return found;
    const { layer, head, seen } = one;
    const title = add(this.right, "h3");
    title.append(
      el("b", "", fill(words.large, { l: layer, h: head })),
      fill(words.large_on, { text: seen.tokens.slice(1).join("") }),
    );
    const paint = large(this.right, seen, layer, head, Math.min(LARGE * em, width), em);
    const about = add(this.right, "p", "about");
    found.push(([now]) => {
      if (!now) return;
      paint(now, this.palette);
      const places = now.p.length - (seen.tokens.length === seen.answer.length + 1 ? 0 : 1);
      const even = mean(Array.from({ length: places }, (_, i) => 1 / (seen.first + i + 1)));
      about.textContent = `${fill(words.large_about, { w: share(now.finds[layer][head]) })} ${fill(words.large_even, { w: share(even) })}`;
    });
    return found;
  }

  // Which number each head of the run (0) or its twin (1) says: without a mask it looks ahead
  /** @param {number} i @returns {"finds" | "ahead"} */
  says(i) {
    return i && this.values.twin === "nomask" ? "ahead" : "finds";
  }

  // In front of a class: one head of each run, the one that was chosen or that does most, as large as the page allows
  /** @param {ReturnType<Train["here"]>} sides @param {[number, number] | null} chosen @param {number} em */
  drawOneOfEach(sides, chosen, em) {
    const twin = this.pair[1];
    const shown = sides.filter((side) => side?.look && side.one.seen).length;
    const across = this.right.clientWidth / Math.max(shown, 1) - 3 * em;
    const size = Math.max(7 * em, Math.min(across, innerHeight - this.right.getBoundingClientRect().top - 7 * em));
    const row = add(this.right, "div", "one-of-each");
    sides.forEach((side, i) => {
      if (!side?.look || !side.one.seen) return;
      const of = this.says(i);
      const [layers, heads] = side.look.shape;
      const [layer, head] =
        chosen && !twin && chosen[0] < layers && chosen[1] < heads ? chosen : largest(side.look[of]);
      const box = add(row, "div");
      const title = add(box, "h3");
      title.append(
        el("b", i ? "B" : "A", i ? this.twinName : twin ? words.as_it_is : worded(words.tasks, this.values.task)),
        fill(words.large, { l: layer, h: head }),
        el("br"),
        fill(words[`large_${of}`], { w: share(side.look[of][layer][head]) }),
      );
      large(box, side.one.seen, layer, head, size, em)(side.look, this.palette);
    });
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
              frame.whole,
              frame.gradients.map((x) => x.toPrecision(4)).join(" "),
            ];
          })
        : [],
    );
  }

  drawTable() {
    const isOpen = this.values.table === "on";
    this.tableBox.hidden = !isOpen;
    this.tableButton.setAttribute("aria-pressed", String(isOpen));
    if (!isOpen) return;
    this.tableBox.replaceChildren(table(words.table_help, words.table_columns, this.lines()));
  }

  drawFoot() {
    const { header } = this;
    const fixed = header.twins[this.values.twin].fixed && header.twins[this.values.twin].heads !== 4;
    this.proof.hidden = !this.pair[1];
    this.proof.textContent = `✓ ${fixed ? words.checks_other : words.checks}`;
    this.facts.textContent = fill(words.cost, {
      n: worded(words.tasks, this.values.task),
      p: number(header.parameters[this.values.task]),
      b: header.batch,
      steps: header.steps,
    });
    this.seed.textContent = `${fill(words.seed, { n: this.values.seed })} · ${words.another_seed}`;
    this.recorded.hidden = this.isGoing || this.isPaused; // it would leave them
    this.opens.forEach((link, i) => {
      const address = this.explored(i);
      link.hidden = address === null;
      if (address === null) return;
      const name = this.pair[1] && (i ? this.twinName : words.as_it_is);
      Object.assign(link, {
        href: address,
        textContent: name ? fill(words.open_one, { run: name }) : words.open,
        title: words.open_help,
      });
    });
    const frame = this.modelOf(0);
    this.download.hidden = !frame;
    if (frame && this.pair[0])
      this.download.href = String(addressOf(this.pair[0].spec, "model", { step: String(frame.step) }));
  }

  // The frame of the run (0) or its twin (1) at this step, if the server has its weights: of a kept run those of the last one
  /** @param {number} i */
  modelOf(i) {
    const one = this.pair[i];
    const frame = one ? upTo(one.frames, this.at) : null;
    return frame && (this.run || frame.step === endOf(/** @type {import("./types.js").Run} */ (one))) ? frame : null;
  }

  // Where Explore shows the run (0) or its twin (1) at this step, on the example with its answer; null where there is nothing to show
  /** @param {number} i */
  explored(i) {
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
  async open(e, i) {
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
    return rows([this.fact, this.left, this.right]);
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

  about() {
    const { task, seed } = this.values;
    const title = fill(words.title, { task: worded(words.tasks, task) });
    const fact = this.fact.textContent ?? "";
    const caption = [
      title,
      this.pair[1] ? this.twinName : "",
      fill(words.seed, { n: seed }),
      fill(words.of_steps, { s: this.at, n: this.header.steps }),
      `Headlight ${this.header.version}`,
      this.header.date,
    ]
      .filter(Boolean)
      .join(" · ");
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
    const [columns, lines] = [words.table_columns, this.lines()];
    const text = csv(columns, lines, [caption, snippet.trimEnd()]);
    return {
      title,
      alt: fill(words.alt, { fact }),
      caption,
      snippet,
      name: `headlight-train-${task}`,
      tables: /** @type {import("../../../kit/browser/types.js").AboutFiles["tables"]} */ ([
        [words.table, `headlight-train-${task}`, text, { of: "", columns, rows: lines }],
      ]),
      film: () => this.film(),
    };
  }
}

export default stage(Train);
