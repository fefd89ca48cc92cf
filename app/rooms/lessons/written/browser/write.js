// Write: a lesson as text, beside it what it makes, below it what is wrong, line by line. The text is this browser's; the server reads
// it, and on a machine of one's own runs a step and opens the lesson.

import { add, button, choice, counted, described, el, fill, percent, setText } from "../../../../kit/browser/dom.js";
import { Ground } from "../../../../kit/browser/ground.js";
import { number } from "../../../../kit/browser/language.js";
import { save } from "../../../../kit/browser/save.js";
import { COLOURS as PALETTES } from "../../../../kit/browser/words.js";
import { goTo } from "../../../../streamlit_edge/browser/page.js";
import { named, number as measured, rightOf } from "../../browser/ask.js";
import { check } from "../../browser/check.js";
import {
  BROUGHT,
  draft,
  droppedFile,
  keepDraft,
  MOST_BYTES,
  MOST_KEPT,
  replaceDraft,
  sent,
  textOf,
} from "../../browser/draft.js";
import { lessonOf } from "../../browser/table.js";
import { STYLE, WORDS as words } from "./constants.js";

/** @typedef {import("../../browser/types.js").Fault} Fault */
/** @typedef {import("../../browser/types.js").Truth} Truth */
/** @typedef {import("../../browser/types.js").Writing} Writing */

const PAUSE = 350; // ms without a key, after which the text is read
const MOST_ROWS = 6; // of what can be pointed at

/** @extends {Ground<Record<string, string>>} */
class Write extends Ground {
  static style = STYLE;
  static palettes = PALETTES;

  name = "lesson.md";
  /** @type {Fault[]} */
  faults = [];
  /** @type {Fault[]} */
  hints = [];
  /** @type {import("../../browser/types.js").Sketch[]} */
  steps = [];
  at = 0; // the step that is shown
  state = words.waiting; // what the server says of the text
  note = ""; // what came of the last that was asked for
  /** @type {import("../../browser/draft.js").Said | null} The run of the step that is shown */
  run = null;
  isRunning = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  pause;
  reading = new AbortController();
  /** @type {Writing} */
  data;

  /** @param {HTMLElement} root */
  constructor(root) {
    super(root);
    const bar = add(root, "div", "bar");
    add(bar, "h2").textContent = words.title;
    this.begin = add(bar, "span", "begin");
    this.undo = bar.appendChild(button(words.undo, "quiet", () => this.undoes()));
    add(bar, "span", "about").textContent = words.about;
    this.input = add(bar, "input");
    Object.assign(this.input, { type: "file", hidden: true, accept: ".md,.txt,.yaml,.yml" });
    this.input.addEventListener("change", () => {
      const file = this.input.files?.[0];
      this.input.value = "";
      if (file) void this.takes(file);
    });
    bar.append(
      button(words.back, "link", () => goTo("?view=lessons", false)),
      button(words.open, "quiet", () => this.input.click()),
      button(words.save, "quiet", () => this.saves()),
      (this.tries = button(words.try, "go", () => void this.try())),
    );

    const left = add(root, "div", "left");
    const editor = add(left, "div", "editor");
    this.gutter = add(editor, "div", "gutter");
    this.gutter.ariaHidden = "true";
    this.text = add(editor, "textarea");
    Object.assign(this.text, { spellcheck: false, wrap: "off", ariaLabel: words.text });
    this.text.setAttribute("aria-describedby", "write-state");
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("scroll", () => (this.gutter.scrollTop = this.text.scrollTop));
    for (const moved of ["keyup", "click"]) this.text.addEventListener(moved, () => this.follows());
    this.said = add(left, "p", "state");
    this.said.id = "write-state";
    this.said.setAttribute("role", "status");
    this.noted = add(left, "p", "note");
    this.noted.setAttribute("role", "status");
    this.list = add(left, "ol", "faults");
    this.kept = add(left, "p", "hint");
    add(left, "p", "hint").textContent = words.hint;

    this.made = described(add(root, "section", "made"), "region", words.made);
    this.head = add(this.made, "div", "made-head");
    this.title = add(this.head, "h3");
    this.nav = add(this.head, "span");
    this.body = add(this.made, "div");
    this.rehearsing = this.made.appendChild(button(words.rehearse, "quiet", () => void this.rehearse()));
    this.result = add(this.made, "div", "result");
    this.result.setAttribute("aria-live", "polite");
  }

  /** @returns {this} */
  enter() {
    super.enter();
    const { leaving: signal } = this;
    const drops = (/** @type {DragEvent} */ e) => {
      const file = droppedFile(e);
      if (!file) return;
      e.preventDefault();
      void this.takes(file);
    };
    addEventListener("drop", drops, { capture: true, signal });
    signal.addEventListener("abort", () => {
      clearTimeout(this.pause);
      this.reading.abort();
    });
    return this;
  }

  get isGiven() {
    return Boolean(this.data);
  }

  /** @param {Writing} data */
  receive(data) {
    const isFirst = !this.data;
    this.data = data;
    this.readTheme();
    if (isFirst) {
      const names = Object.keys(data.examples);
      const begin = (/** @type {string} */ name) => this.shows({ name: `${name}.md`, text: data.examples[name] });
      this.begin.append(
        el("span", "hint", words.begin),
        ...names.map((name) => button(`${name}.md`, "quiet", () => begin(name))),
      );
      this.put(draft() ?? { name: `${names[0]}.md`, text: data.examples[names[0]] ?? "" });
    }
    this.drawNow();
  }

  // ------------------------------------------------------------------ the text

  /** Another text, from a file or an example; the one before can be had back. @param {import("../../browser/draft.js").Draft} next */
  shows(next) {
    replaceDraft(next);
    this.put(next);
    this.text.focus();
  }

  /** @param {import("../../browser/draft.js").Draft} of */
  put({ name, text }) {
    this.name = name;
    this.text.value = text;
    this.text.setSelectionRange(0, 0);
    this.text.scrollTop = 0;
    this.at = 0;
    this.typed(0);
  }

  undoes() {
    const before = draft("before");
    if (before) this.shows(before);
  }

  /** @param {File} file */
  async takes(file) {
    const n = number(file.size);
    if (file.size > MOST_BYTES) return this.tells(fill(words.large, { n, most: number(MOST_BYTES) }));
    const text = await textOf(file);
    if (text === null) return this.tells(words.no_text);
    this.shows({ name: file.name, text: text.replace(/^\ufeff/, "") });
  }

  saves() {
    this.tells(save(this.name, new Blob([this.text.value], { type: "text/markdown;charset=utf-8" })));
  }

  /** The outcome of the last that was asked for. @param {string} sentence */
  tells(sentence) {
    this.note = sentence;
    this.drawNow();
  }

  typed(pause = PAUSE) {
    const { value: text } = this.text;
    this.run = null;
    this.note = "";
    const isKept = keepDraft({ name: this.name, text });
    this.kept.textContent = isKept
      ? words.kept
      : text.length > MOST_KEPT
        ? fill(words.unkept, { n: number(text.length), most: number(MOST_KEPT) })
        : words.blocked;
    clearTimeout(this.pause);
    this.pause = setTimeout(() => void this.reads(), pause);
    this.drawNow();
  }

  async reads() {
    this.reading.abort();
    this.reading = new AbortController();
    const { signal } = this.reading;
    const found = await sent("check", this.text.value, words.unreachable, signal);
    if (signal.aborted) return;
    const { refused, faults = [], hints = [], steps = refused === undefined ? [] : this.steps } = found;
    Object.assign(this, { faults, hints, steps });
    this.state = refused ?? this.told();
    this.follows();
    this.drawNow();
  }

  // The step in which the caret is
  follows() {
    const line = this.text.value.slice(0, this.text.selectionStart).split("\n").length;
    const at = Math.max(
      0,
      this.steps.findLastIndex((step) => step.line <= line),
    );
    if (at !== this.at) this.turns(at);
  }

  /** @param {number} at */
  turns(at) {
    Object.assign(this, { at, run: null });
    this.drawNow();
  }

  /** The caret to the beginning of a line. @param {number} line from 1 */
  goes(line) {
    const lines = this.text.value.split("\n");
    const place = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.text.focus();
    this.text.setSelectionRange(place, place);
    const high = this.text.scrollHeight / Math.max(lines.length, 1);
    this.text.scrollTop = Math.max(0, (line - 1) * high - this.text.clientHeight / 2);
    this.follows();
  }

  // ------------------------------------------------------------------ the runs

  async rehearse() {
    if (!this.data.opens || this.isRunning) return;
    const { at } = this;
    const { value: text } = this.text;
    this.isRunning = true;
    this.tells(words.running);
    const found = await sent(`rehearsal?at=${at}`, text, words.unreachable, this.leaving);
    this.isRunning = false;
    if (this.leaving.aborted) return;
    if (text !== this.text.value || at !== this.at) return this.tells(""); // it is another text by now
    if (found.refused !== undefined) return this.tells(found.refused);
    this.run = found.truth ? found : null;
    if (found.faults?.length) this.faults = found.faults;
    this.state = this.told();
    this.tells("");
  }

  async try() {
    if (!this.data.opens || this.isRunning) return this.tells(words.elsewhere);
    this.isRunning = true;
    this.tells(words.trying);
    const { value: text } = this.text;
    const name = new URLSearchParams({ name: this.name });
    const found = await sent(`own?${name}`, text, words.unreachable, this.leaving);
    this.isRunning = false;
    if (this.leaving.aborted) return;
    if (found.refused !== undefined) return this.tells(found.refused);
    if (found.step) {
      BROUGHT.add(lessonOf(found.step));
      return goTo(`?${new URLSearchParams({ view: "lessons", lesson: found.step })}`, false);
    }
    if (text !== this.text.value) return this.tells("");
    this.faults = found.faults ?? [];
    this.state = this.told();
    this.tells("");
  }

  told() {
    const { faults, steps } = this;
    return faults.length ? counted(words.faults, faults.length) : counted(words.steps, steps.length);
  }

  // ------------------------------------------------------------------ what is on the screen

  draw() {
    const { faults, hints, steps, at, run, isRunning } = this;
    setText(this.said, this.state);
    setText(this.noted, this.note);
    this.undo.hidden = !draft("before");
    this.tries.disabled = isRunning;
    const lines = this.text.value.split("\n").length;
    this.part("gutter", [lines, faults], () => {
      const marked = new Set(faults.map(({ line }) => line));
      this.gutter.replaceChildren(
        ...Array.from({ length: lines }, (_, i) => el("span", marked.has(i + 1) ? "marked" : "", String(i + 1))),
      );
      this.gutter.scrollTop = this.text.scrollTop;
    });
    this.part("faults", [faults, hints], () => {
      this.list.replaceChildren(
        ...[...faults, ...hints].map(({ line, said }, i) => {
          const item = el("li", i < faults.length ? "" : "hinted");
          const press = item.appendChild(button("", "fault", () => this.goes(line)));
          press.append(el("b", "", fill(words.line, { line })), ` ${said}`);
          return item;
        }),
      );
    });
    const step = steps[at];
    this.title.textContent = step?.title ?? "";
    this.part("nav", [steps.length, at], () =>
      this.nav.replaceChildren(
        ...(steps.length > 1
          ? [
              choice(
                words.made,
                steps.map((_, i) => [i, String(i + 1), fill(words.step, { n: i + 1 })]),
                at,
                (i) => this.goes(steps[i].line),
              ),
            ]
          : []),
      ),
    );
    this.part("body", [step, run], () => this.drawStep(step));
    this.rehearsing.hidden = !step || !this.data.opens || faults.length > 0 || Boolean(run);
    this.rehearsing.toggleAttribute("disabled", isRunning);
    this.part("result", [run, faults.length > 0, Boolean(step)], () => this.drawResult());
  }

  /** @param {import("../../browser/types.js").Sketch | undefined} step */
  drawStep(step) {
    if (!step) return this.body.replaceChildren(el("p", "hint", words.no_step));
    /** @type {HTMLElement[]} */
    const parts = [el("p", "", step.text), el("p", "question", step.question || words.no_question)];
    if (!this.run) {
      const kinds = { number: words.number, shape: words.shape, look: step.options.length ? "" : words.words };
      const kind = /** @type {Record<string, string>} */ (kinds)[step.check] ?? "";
      const list = el("ul", "options");
      list.append(...step.options.map((option) => el("li", "", option)));
      parts.push(kind ? el("p", "hint", kind) : list);
    }
    for (const part of parts) part.dir = "auto";
    this.body.replaceChildren(...parts);
  }

  drawResult() {
    const { run, faults, steps } = this;
    if (!run?.truth) {
      const hint = !steps.length ? "" : !this.data.opens ? words.elsewhere : faults.length ? words.mend_first : "";
      return this.result.replaceChildren(...(hint ? [el("p", "hint", hint)] : []));
    }
    const { truth, pictures = [], language = "" } = run;
    const answer = el("div", "answer");
    const said = check(truth, rightOf(truth)).words.slice(2); // after what was chosen, and that it is right
    answer.append(...said.map((line, i) => el(i === said.length - 1 ? "small" : "p", "", line)));
    const parts = [answers(truth), answer, ...pictures.filter(({ words }) => words.length).map(bars)];
    for (const part of parts) Object.assign(part, { lang: language, dir: "auto" });
    this.result.replaceChildren(...parts);
  }

  status() {
    return { faults: this.faults.length, steps: this.steps.length, run: Boolean(this.run), running: this.isRunning };
  }
}

/** The answers of a step, each with what it is told. @param {Truth} truth */
function answers(truth) {
  const list = el("ul", "options");
  /** @param {string} label @param {boolean} isRight @param {string} reply */
  const put = (label, isRight, reply) => {
    const item = add(list, "li", isRight ? "right" : "");
    item.append(el("span", "", label));
    if (isRight) item.append(" ", el("b", "", words.right));
    if (reply) item.append(el("p", "hint", `${words.told}: ${reply}`));
  };
  const told = new Map(truth.mistakes.map(({ answer, sentence }) => [String(answer), sentence]));
  if (truth.kind === "choose")
    truth.options.forEach((option, i) => {
      const isRight = truth.right.includes(i);
      put(option, isRight, isRight ? "" : (told.get(String(i)) ?? ""));
    });
  else if (truth.kind === "point")
    truth.candidates
      .slice(0, MOST_ROWS)
      .forEach(({ label, value }, i) => put(`${label} ${percent(value)}`, i < truth.best, ""));
  else {
    put(named(truth, rightOf(truth)), true, "");
    for (const { answer, sentence } of truth.mistakes)
      put(
        truth.kind === "drag" ? measured(truth, Number(answer)) : `[${String(answer).replaceAll(",", ", ")}]`,
        false,
        sentence,
      );
  }
  return list;
}

/** The words that a step shows after one text, as bars. @param {{text: string, words: [string, number][]}} picture */
function bars({ text, words: those }) {
  const isShare = those.every(([, value]) => value <= 1);
  const table = el("table");
  add(table, "caption").textContent = fill(isShare ? words.shown : words.heads, { text });
  const most = Math.max(...those.map(([, value]) => value), isShare ? 0.01 : 1);
  for (const [word, value] of those) {
    const row = add(table, "tr");
    const head = add(row, "th");
    head.scope = "row";
    head.textContent = word;
    const bar = add(add(row, "td", "track"), "i");
    bar.style.width = `${(100 * value) / most}%`;
    add(row, "td", "value").textContent = isShare ? percent(value) : number(value);
  }
  return table;
}

export default Write;
