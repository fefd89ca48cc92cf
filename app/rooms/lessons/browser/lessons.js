// Lessons: the rail of steps. It opens a step at once, covers what that asks about, takes the answer and tells what is true; the room
// beside it follows by the step's address, as it follows any link.

import { classroom } from "../../../kit/browser/classroom.js";
import { isFree } from "../../../kit/browser/shortcuts.js";
import { cover } from "../../../kit/browser/cover.js";
import { fill, focusedIn } from "../../../kit/browser/dom.js";
import { Ground } from "../../../kit/browser/ground.js";
import { turnsPages } from "../../../kit/browser/page_keys.js";
import { read as readBits, readWays, write } from "../../../kit/browser/progress.js";
import { goTo, here } from "../../../streamlit_edge/browser/page.js";
import { asking, rightOf } from "./ask.js";
import { check } from "./check.js";
import { PALETTES, STYLE, WORDS as words } from "./constants.js";
import { BROUGHT } from "./draft.js";
import { addressOf, changes, isAgain, once, read, stepOf, written } from "./link.js";
import { Rail } from "./rail.js";
import { recapOf } from "./recap.js";
import { savePage } from "./page.js";
import { reply } from "./reply.js";
import { isDrawn, pictureOf } from "./picture.js";
import {
  around,
  COURSE,
  done,
  keep,
  lessonOf,
  NAMES,
  ofCourse,
  STEPS,
  stepsOf,
  takeIn,
  titleOf,
  watch,
  ways,
  writtenOf,
} from "./table.js";

/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Data} Data */
/** @typedef {import("./types.js").Told} Told */
/** @typedef {{said: Answer | null, seen: boolean, words?: string[], question?: string, named?: string, picture?: string}} Remembered */

/** @type {Set<Lessons>} */
const SHOWN = new Set(); // on the page: one
/** @type {Map<string, Remembered>} */
const VISIT = new Map(); // what was said and seen as long as the page is open; no one else keeps it
const PATIENCE = 5000; // ms that a picture is waited for
/** @type {Told | null} */
let latest = null; // what is true of the run on the screen, as long as the room is there

// A component of its own, with nothing on the screen: what is true of the run that the room shows. Streamlit starts the two in any
// order, so it is kept for a rail that comes later.
/** @param {{data: Told, parentElement: HTMLElement}} given */
export function truth({ data, parentElement }) {
  latest = data;
  for (const view of SHOWN) view.hears(data);
  return () => {
    if (!parentElement.isConnected && latest === data) latest = null;
  };
}

/** @typedef {Lessons} View */

// No room of its own: it stands beside one, whose keys, live region and projector are the page's.
/** @extends {Ground<Record<string, string>>} */
class Lessons extends Ground {
  static style = STYLE;
  static palettes = PALETTES;

  step = "";
  /** @type {string | null} The step whose address the page is on the way to */
  going = null;
  /** @type {Answer | null} */
  said = null;
  seen = false;
  tries = 0; // wrong answers of the present step
  /** @type {import("./reply.js").Reply | null} What the first of them was told */
  first = null;
  /** @type {Told | null} */
  told = null;
  /** @type {import("./types.js").Asking | null} */
  asking = null;
  /** @type {string[]} The steps of the recap that is open */
  three = [];
  lists = false; // whether all five lessons are shown
  note = "";
  asked = 0; // how often the script was asked for what is true, without anything else being new to it
  /** @type {Data} */
  data;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    this.rail = new Rail(this, root);
  }

  /** @returns {this} */
  enter() {
    super.enter();
    const { leaving: signal } = this;
    turnsPages((by) => (this.root.isConnected ? this.turnsTo(by) : false), signal, true); // a room turns its own pages with these, where there is no lesson
    const leave = window.headlight.address?.watch((_, __, isWay) => isWay && this.wentBack());
    signal.addEventListener("abort", () => leave?.());
    addEventListener("keydown", (e) => this.asksByKey(e), { signal });
    watch(() => this.invalidate("data"), signal);
    this.rail.own.listens(signal);
    SHOWN.add(this);
    signal.addEventListener("abort", () => {
      SHOWN.delete(this);
      cover.leave();
      classroom.offers(null);
    });
    return this;
  }

  get isGiven() {
    return Boolean(this.step && this.data);
  }

  // ------------------------------------------------------------------ the script's side

  /** @param {Data} data */
  receive(data) {
    const isFirst = !this.data;
    takeIn(data.written);
    this.data = data;
    this.readTheme();
    for (const lesson of BROUGHT) this.forgets(lesson);
    BROUGHT.clear();
    this.follow(data);
    if (isFirst && latest) this.hears(latest);
  }

  /** @param {Data} data */
  follow(data) {
    if (data.fresh && data.step === (this.going ?? data.step)) this.begin(data.step);
    else if (this.going !== null && data.step !== this.going)
      this.drawNow(); // of a run that began before
    else if (data.step !== this.step) this.arrive(data.step);
    else {
      this.drawNow();
    }
    if (data.step !== this.going || data.fresh) return;
    this.going = null;
    this.publish(); // what was said on the way
  }

  // An address without a step, or with one in words: the step opens in its own state.
  /** @param {string} step */
  begin(step) {
    if (this.going !== null && this.going === step) return;
    const asked = here();
    const known = readBits(asked.get("done") ?? "");
    const own = [...readWays(asked.get("done") ?? "")].filter(([i]) => i < COURSE);
    if (known?.size) keep(new Set([...done(), ...ofCourse(known)]), new Map([...own, ...ways()]));
    this.note = known === null ? words.done_unknown : "";
    const next = step || NAMES.find((name) => !done().has(NAMES.indexOf(name))) || NAMES[0];
    this.take(next, read(STEPS[next].kind, asked.get("said") ?? ""), asked.get("seen") === "1");
    this.go(true, changes(asked));
  }

  // A link, or the browser's Back, shows a step in the state that its address has.
  /** @param {string} step */
  arrive(step) {
    const asked = here();
    this.lists = asked.get("contents") === "1";
    this.take(step, read(STEPS[step].kind, asked.get("said") ?? ""), asked.get("seen") === "1");
    this.drawNow();
  }

  wentBack() {
    const step = stepOf(here());
    if (here().get("view") !== "lessons" || !(step in STEPS)) return;
    this.going = null;
    this.arrive(step); // before the script does, so that nothing is seen too soon
    this.going = step;
  }

  /** @param {Told} told */
  hears(told) {
    if (told.step !== this.step || (this.going !== null && this.going !== this.step)) return;
    if (writtenOf(told.step)) {
      STEPS[told.step].values = this.data.states[told.step] = told.state; // with its row, which a run tells
      this.covers();
    }
    const before = JSON.stringify(this.told?.truth ?? this.told?.cannot);
    this.told = told;
    if (before !== JSON.stringify(told.truth ?? told.cannot))
      Object.assign(this, { asking: null, tries: 0, first: null });
    const had = focusedIn(this.root) === this.rail.look;
    this.drawNow();
    if (had && told.cannot) this.rail.next.focus(); // there is nothing to look at
    if (this.seen) this.remember();
  }

  // ------------------------------------------------------------------ a step

  /** @param {string} step @param {Answer | null} said @param {boolean} seen */
  take(step, said, seen) {
    if (step !== this.step) {
      this.told = null;
      this.asking = null;
    }
    Object.assign(this, { step, said, seen, tries: 0, first: null });
    if (!isAgain(step)) this.three = [];
    else if (!this.three.includes(step)) this.three = this.recapped(step);
    if (seen && !isAgain(step)) this.pass();
    this.covers();
  }

  covers() {
    const { step, seen } = this;
    const { cover: part, kind, values } = STEPS[step];
    cover.open(
      { step, part, asks: kind, values, seen },
      (place) => this.points(place),
      () => this.host.tell("again", ++this.asked),
    );
  }

  // The visitor opens a step: as it was left in this visit, or covered.
  /** @param {string} step */
  open(step, focus = false) {
    const { said, seen } = VISIT.get(step) ?? { said: null, seen: false };
    this.lists = false;
    this.note = "";
    this.take(step, said, seen);
    this.go(false);
    if (focus) this.rail.focus();
  }

  // To the address of this step, in the state that it opens in
  /** @param {boolean} replace @param {[string, string][]} [more] */
  go(replace, more = []) {
    this.going = this.step;
    this.drawNow();
    goTo(this.opening(more), replace);
  }

  /** @param {[string, string][]} [more] */
  opening(more = [], own = true) {
    const { step, said, seen, data } = this;
    const { model, sentence, target } = STEPS[step];
    const text = own && !isAgain(step) && !writtenOf(step) ? (data.own[model] ?? sentence) : sentence;
    return addressOf({
      step,
      state: data.states[step],
      model: data.models[model],
      text,
      target: text === sentence ? target : "",
      said,
      seen,
      more,
    });
  }

  // Where the page is, with what was said and seen
  address() {
    const query = here();
    for (const [name, text] of Object.entries(this.spoken())) {
      if (text) query.set(name, text);
      else query.delete(name);
    }
    return `?${query}`;
  }

  // The step in an address
  /** @returns {Record<string, string | null>} */
  spoken() {
    return {
      view: "lessons",
      lesson: once(this.step),
      recap: isAgain(this.step) ? "1" : null,
      seen: this.seen ? "1" : "0",
      said: written(this.said) || null,
      contents: this.lists ? "1" : null,
      done: null,
    };
  }

  // The list of all lessons, which Back closes
  /** @param {boolean} open */
  list(open) {
    this.lists = open;
    this.publish(true);
    this.drawNow();
  }

  // Say in the address what was said and seen, which the script need not know; Back takes back a look, and not every word
  publish(isLook = false) {
    if (this.going !== null) return;
    window.headlight.address?.write(this.spoken(), isLook ? "choice" : "rule");
  }

  /** @param {Answer | null} answer @param {boolean} [isAll] */
  says(answer, isAll = false) {
    if (this.seen) return;
    this.said = answer;
    this.publish();
    this.drawNow();
    if (isAll) this.rail.look.focus();
  }

  // Something in the room was pointed at
  /** @param {number[]} place */
  points(place) {
    const known = this.truth?.candidates.map((one) => String(one.place)) ?? [];
    const found = [place, place.slice(-1)].find((one) => known.includes(String(one)));
    if (!found || this.seen) return;
    const before = /** @type {number[][]} */ (Array.isArray(this.said) ? this.said : []);
    if (!this.truth?.all_of) return this.says([found]);
    const rest = before.filter((one) => String(one) !== String(found));
    this.says(rest.length < before.length ? rest : [...before, found]);
  }

  get truth() {
    return this.told?.step === this.step ? this.told.truth : undefined;
  }

  // The answer beside what is true; null as long as no one looks
  /** @returns {import("./types.js").Checked | null} */
  get checked() {
    const { truth } = this;
    if (!this.seen || !truth) return null;
    if (truth.kind === "do") return check(truth, this.told?.values ?? {});
    if (this.said !== null) return check(truth, this.said);
    const { true: is } = check(truth, rightOf(truth));
    const more = [truth.reason, truth.slip, truth.footer].filter(Boolean);
    return { said: "", true: is, rank: null, right: false, words: [fill(words.unsaid, { true: is }), ...more] };
  }

  looks() {
    if (this.seen || this.told?.cannot) return;
    const wrong = this.tries ? null : this.wrong;
    if (wrong) {
      this.tries = 1;
      const hint = this.truth?.hint ?? "";
      this.first = { ...wrong, sentence: `${wrong.sentence} ${hint}`.trim() };
      this.drawNow();
      this.announce(`${wrong.name} ${this.first.sentence}`.trim());
      this.rail.focus();
      return;
    }
    this.seen = true;
    cover.look();
    if (!isAgain(this.step)) this.pass(this.checked?.right ? ["known", "second"][this.tries] : undefined);
    else if (!this.checked?.right) this.reopen();
    this.publish(true);
    this.drawNow();
    this.remember();
    this.rail.next.focus();
  }

  // The visitor has had a first try, and wants to see the answer.
  shows() {
    this.tries = 2;
    this.looks();
  }

  // The reply to what is said; null where nothing is said yet, or where it is right
  get wrong() {
    const { truth, said, told } = this;
    const answer = truth?.kind === "do" ? (told?.values ?? null) : said;
    return truth && answer !== null ? reply(truth, answer) : null;
  }

  // The reply that is on the screen: to the first wrong answer, and once it is looked at, to the answer as it is
  get reply() {
    return this.seen ? this.wrong : this.first;
  }

  again() {
    VISIT.delete(this.step);
    this.take(this.step, null, false);
    this.publish();
    this.asking = null;
    this.drawNow();
    this.rail.focus();
  }

  // The step counts as it was answered the first time: who has seen the answer can no longer have known it.
  /** @param {string} [way] */
  pass(way) {
    const steps = done();
    const at = NAMES.indexOf(this.step);
    if (steps.has(at)) return;
    const known = ways();
    if (way) known.set(at, /** @type {import("../../../kit/browser/progress.js").Way} */ (way));
    keep(steps.add(at), known);
  }

  // A lesson of the visitor's own was brought once more: what was said to the one before is no answer to it.
  /** @param {string} lesson */
  forgets(lesson) {
    this.lists = false;
    for (const step of VISIT.keys()) if (lessonOf(step) === lesson) VISIT.delete(step);
    const before = new Set(stepsOf(lesson).map((name) => NAMES.indexOf(name)));
    keep(new Set([...done()].filter((i) => !before.has(i))), new Map([...ways()].filter(([i]) => !before.has(i))));
    if (lessonOf(this.step) === lesson) this.take(this.step, null, false);
  }

  // Asked again the step was not known: it is open again.
  reopen() {
    const step = once(this.step);
    const steps = done();
    const known = ways();
    steps.delete(NAMES.indexOf(step));
    known.delete(NAMES.indexOf(step));
    keep(steps, known);
    VISIT.delete(step);
    this.note = fill(words.reopened, { step: STEPS[step].title });
  }

  remember() {
    const { said, seen, step, checked, reply } = this;
    const memory = VISIT.get(step);
    const replied = reply && reply.sentence !== checked?.words[0] ? [`${reply.name} ${reply.sentence}`] : [];
    VISIT.set(step, {
      said,
      seen,
      words: checked ? [...replied, ...checked.words] : memory?.words,
      question: this.truth?.question ?? memory?.question,
      picture: memory?.picture,
    });
    this.keepPicture(step);
  }

  // A picture of a step that was looked at. What is uncovered is drawn two frames after the room has all that it shows.
  /** @param {string} step */
  async keepPicture(step) {
    const until = performance.now() + PATIENCE;
    for (let drawn = 0; drawn < 2 && this.step === step && performance.now() < until; drawn = isDrawn() ? drawn + 1 : 0)
      await new Promise(requestAnimationFrame);
    const kept = VISIT.get(step);
    if (kept && this.step === step && this.seen) kept.picture = pictureOf() ?? kept.picture;
  }

  // ------------------------------------------------------------------ from step to step

  /** @param {number} by */
  turn(by, focus = false) {
    const to = this.beside(by);
    if (to) this.open(to, focus);
  }

  // The step before or after: in a recap one of its own, then one of the lessons beside it
  /** @param {number} by */
  beside(by) {
    const all = around(this.step);
    const of = isAgain(this.step) ? this.three : all;
    const to = of[of.indexOf(this.step) + by];
    if (to || of === all) return to;
    const last = all.findLastIndex((name) => this.isOfLesson(name));
    return all[by > 0 ? last + 1 : last];
  }

  // Whether a recap comes next: before the next step, which is of another lesson
  get leadsToRecap() {
    const next = this.beside(1);
    return !isAgain(this.step) && !(next && this.isOfLesson(next)) && this.recapped().length > 0;
  }

  /** @param {string} step */
  isOfLesson(step) {
    return lessonOf(step) === lessonOf(this.step);
  }

  /** @param {string} [now] */
  recapped(now) {
    const known = ways();
    return recapOf(lessonOf(now ?? this.step), (at) => known.get(at) === "known", now);
  }

  // From the answer: on, over the recap where the lesson ends
  goesOn() {
    if (this.leadsToRecap) this.recaps();
    else if (this.beside(1)) this.turn(1, true);
    else this.rail.toggle(true);
  }

  /** @param {string} step */
  isSeen(step) {
    return step === this.step ? this.seen : Boolean(VISIT.get(step)?.seen);
  }

  recaps() {
    const three = this.recapped();
    for (const step of three) VISIT.delete(step);
    this.three = three;
    this.open(three[0], true);
  }

  // Back to how the step opens; with `own` false also to its own sentence
  reset(own = true) {
    this.going = this.step;
    this.drawNow();
    if (!own) delete this.data.own[STEPS[this.step].model];
    goTo(this.opening([], own), false);
  }

  // Whether the room shows something else than the step opens with
  get isChanged() {
    const { told, data } = this;
    if (!told || told.step !== this.step) return false;
    return Object.entries(STEPS[this.step].values).some(
      ([name, text]) =>
        told.values[name] !== undefined &&
        told.values[name] !== text &&
        told.values[name] !== data.states[this.step][name],
    );
  }

  /** By the Page keys: on, which is a look where there is something to look at, or back. @param {number} by */
  turnsTo(by) {
    if (classroom.turn(by)) return;
    if (by > 0 && !this.seen && !this.told?.cannot) this.looks();
    else this.turn(by);
  }

  // ------------------------------------------------------------------ a class

  // By its key, as Explore's class is asked by A
  /** @param {KeyboardEvent} e */
  asksByKey(e) {
    if (e.key.toLowerCase() !== "r" || e.repeat || !isFree(e) || this.rail.asks.disabled) return;
    e.preventDefault();
    classroom.ask();
  }

  // The question for a class; until the answer is looked at, no phone gets the picture that has it
  offers() {
    const { step, seen } = this;
    const { kind, cover: part } = STEPS[step];
    const told = this.told?.step === step ? this.told : null;
    const cannot = told?.cannot !== undefined || told?.room?.cannot !== undefined || ["shape", "do"].includes(kind);
    classroom.offers({
      name: step,
      offer: told?.room?.offer ?? "",
      isCovered: !seen && Boolean(part) && !cannot,
      cover: () => this.seen && this.step === step && this.again(),
      look: () => this.step === step && (this.wrong ? this.shows() : this.looks()), // the class has had the tries
    });
  }

  // ------------------------------------------------------------------ what is on the screen

  draw() {
    this.offers();
    cover.mark(
      STEPS[this.step].kind === "point" && !this.seen && Array.isArray(this.said)
        ? /** @type {number[][]} */ (this.said)
        : [],
    );
    this.asking ??= this.truth ? asking(this.truth, (answer, isAll) => this.says(answer, isAll)) : null;
    this.rail.draw();
  }

  status() {
    return {
      step: this.step,
      seen: this.seen,
      said: written(this.said),
      tries: this.tries,
      right: this.checked?.right ?? "",
      ready: this.going === null && this.told?.step === this.step, // its room and what is true are there
    };
  }

  // ------------------------------------------------------------------ links and files

  link() {
    const url = new URL(this.address(), location.href);
    const steps = ofCourse(done());
    if (steps.size) url.searchParams.set("done", write(steps, new Map([...ways()].filter(([i]) => steps.has(i)))));
    return url.href;
  }

  // Whether every step of a lesson was looked at, by this browser
  /** @param {string} lesson */
  isFinished(lesson) {
    const steps = done();
    return stepsOf(lesson).every((name) => steps.has(NAMES.indexOf(name)));
  }

  async save() {
    if (this.seen) await this.keepPicture(this.step); // those of other steps were kept when they were looked at
    const lesson = lessonOf(this.step);
    const steps = stepsOf(lesson).map((name, i) => ({
      ...STEPS[name],
      ...VISIT.get(name),
      number: writtenOf(name) ? String(i + 1) : name,
    }));
    savePage(titleOf(lesson), steps, this.data.rooms, writtenOf(this.step)?.language);
  }
}

export default Lessons;
