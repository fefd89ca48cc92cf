// The page of a step that the class is asked, beside the room with its picture: the code and the count, then the votes, then the answer.

import { add, button, described, el, fill, focusedIn, percent, phrase } from "../../kit/browser/dom.js";
import { square } from "./parts.js";
import { draw, svg } from "../../kit/browser/picture/svg.js";
import { drawVotes, spot } from "./onpicture.js";
import { classroom } from "../../kit/browser/classroom.js";
import { drawAnswered, MOST_BLOCKS } from "./chart.js";
import { named, spoken } from "./phonestep.js";
import { numberLine } from "./numberline.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").StepBody} StepBody */
/** @typedef {[answer: number, count: number]} Vote */

const MOST_ROW_BLOCKS = 40; // phones whose votes are blocks one by one; above, plain bars
const MOST_ROWS = 7; // options below each other; of more, those with votes or weight
const MOST_REPLIES = 5;
const WIDTH = 640;
const HIGH = 250; // of the numbers' line, with its piles
const BASE = 208;
const DOT = 15;
const APART = 64; // of two numbers on the line that are told apart

export class StepPage {
  /** @param {import("./teacher.js").Teacher} teacher @param {HTMLElement} root */
  constructor(teacher, root) {
    this.teacher = teacher;
    const taught = /** @type {import("./types.js").Taught} */ (teacher.taught);
    this.box = add(root, "section", "stepping");
    this.lead = add(this.box, "p", "lead");
    this.title = add(this.box, "h2", "title");
    this.title.tabIndex = -1;
    this.note = add(this.box, "p", "note");
    const join = add(this.box, "div", "join");
    join.append(square(taught));
    const side = add(join, "div", "side");
    add(side, "p", "address").textContent = taught.address;
    this.code = add(side, "p", "code");
    this.said = add(side, "p", "said");
    this.dots = add(side, "div", "dots");
    this.dots.setAttribute("aria-hidden", "true");
    this.chart = add(this.box, "div", "votes");
    this.replies = add(this.box, "div", "replies");
    this.foot = add(this.box, "div", "foot");
    this.above = add(root, "div", "onpicture");
    this.isAbove = false;
    this.stood = ""; // where its votes are
    this.drawn = "";
    this.charted = "";
    this.draw();
  }

  destroy() {}

  draw() {
    const { teacher } = this;
    const { step, body } = teacher;
    if (!step) return;
    this.count();
    if (!body) return;
    const isHidden = step.stage === "votes" && teacher.isHidden;
    const place = isHidden || step.stage === "ask" ? null : this.place();
    this.isAbove = place !== null;
    const drawn = [step.q, body.round, body.stage, isHidden, this.isAbove, teacher.isMistake].join();
    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.stood = "";
      this.build(body, isHidden);
    }
    this.above.hidden = !place;
    if (place) this.stand(body, place);
  }

  // Where the votes stand on the picture; null where its words have no room for them
  place() {
    const { body } = this.teacher;
    if (!body?.tokens?.length || body.stage === "ask") return null;
    const above = classroom.shown?.above?.(body.tokens) ?? null;
    const em = parseFloat(getComputedStyle(this.above).fontSize);
    const top = this.teacher.over.getBoundingClientRect().top;
    const at = spot(above, top, this.teacher.over.getBoundingClientRect().left, em);
    return above && at && { above, at, em };
  }

  /** @param {StepBody} body @param {NonNullable<ReturnType<StepPage["place"]>>} place */
  stand(body, { above, at, em }) {
    const stood = JSON.stringify([this.drawn, at, above.columns]);
    if (stood === this.stood) return;
    this.stood = stood;
    const all = sum(body.votes ?? []);
    const { layer, head } = classroom.shown?.with ?? {};
    const said = { ...this.parts(body, all), isBlocks: all <= MOST_ROW_BLOCKS };
    const titles = { alt: this.alt(body), caption: fill(words.place_short, { layer, head }) };
    drawVotes(this.above, above.columns, at, said, titles, em);
    spoken(this.above, body);
  }

  /** By option: the votes of this round and of the one before, their shares, and at the answer what the run gives. @param {StepBody} body @param {number} all */
  parts({ options, votes, before: old, stage, right = [], values = [] }, all) {
    const counts = tally(votes ?? [], options.length);
    const before = tally(old ?? [], options.length);
    const had = sum(old ?? []);
    const isAnswer = stage === "answer";
    return {
      counts,
      before,
      shares: counts.map((n) => n / Math.max(1, all)),
      olds: before.map((n) => n / Math.max(1, had)),
      values: isAnswer ? values : [],
      right: isAnswer ? right : [],
      isAnswer,
    };
  }

  /** @param {StepBody} body @param {boolean} isHidden */
  build(body, isHidden) {
    const { stage, round } = body;
    this.box.dataset.stage = stage;
    this.box.classList.toggle("mistaken", stage === "votes" && this.teacher.isMistake);
    this.lead.textContent =
      stage === "answer"
        ? body.question
        : round > 1
          ? fill(words.step_round, { n: round })
          : `${body.step} ${body.title}`;
    this.title.textContent = stage === "answer" ? fill(words.step_true, { true: body.true ?? "" }) : body.question;
    this.note.textContent =
      stage === "ask"
        ? round > 1
          ? words.step_again_how
          : words.step_how
        : stage === "votes"
          ? this.teacher.isMistake
            ? "" // which takes its room
            : words.step_discuss
          : (body.words?.[0] ?? "");
    this.chart.replaceChildren();
    this.replies.replaceChildren();
    for (const part of [this.lead, this.title, this.note, this.chart, this.replies]) spoken(part, body);
    if (stage !== "ask" && isHidden) add(this.chart, "p", "mute").textContent = words.step_hidden;
    else if (stage !== "ask") {
      const all = sum(body.votes ?? []);
      if (!all && stage === "votes") add(this.chart, "p", "mute").textContent = words.step_none;
      else if (this.isAbove) this.legend(body, all);
      else if (body.options.length) this.options(body, all);
      else this.numbers(body, all);
      if (stage === "answer") this.answers(body, all);
      else if (this.teacher.isMistake) this.mistake(body);
    }
    this.acts(body);
    this.teacher.over.scrollTop = 0;
  }

  /** @param {StepBody} body */
  acts({ stage, round }) {
    const { teacher } = this;
    const acts = [];
    if (stage === "ask")
      acts.push(button(words.step_show_votes, "primary", () => teacher.move("votes"), words.step_show_help));
    else if (stage === "votes") {
      acts.push(button(words.step_show_answer, "primary", () => teacher.move("answer"), words.step_answer_help));
      if (this.teacher.body?.mistake)
        acts.push(
          button(
            teacher.isMistake ? words.step_no_mistake : words.step_mistake,
            "quiet big",
            () => teacher.showMistake(),
            words.step_mistake_help,
          ),
        );
      if (round < 4)
        acts.push(button(words.step_ask_again, "quiet big", () => teacher.move("again"), words.step_ask_again_help));
      acts.push(
        button(
          teacher.isHidden ? words.step_unhide : words.step_hide,
          "quiet big",
          () => teacher.hideStep(),
          words.step_hide_help,
        ),
      );
    } else {
      acts.push(
        button(words.step_back, "primary", () => teacher.show("")),
        button(words.step_csv, "quiet big", () => teacher.saveClass("csv"), words.step_csv_help),
        button(words.step_page, "quiet big", () => teacher.saveClass("html"), words.step_page_help),
      );
    }
    if (stage === "ask") acts.push(button(words.code_key, "quiet big", () => teacher.show("share")));
    if (stage !== "answer") acts.push(button(words.step_back, "quiet big", () => teacher.show("")));
    const had = focusedIn(this.foot) !== null;
    this.foot.replaceChildren(...acts);
    if (had) acts[0].focus({ preventScroll: true });
  }

  // How many have answered: a dot for each phone, or a bar for many
  count() {
    const { now, votes, taught, step } = this.teacher;
    if (!taught || !step) return;
    const { said, dots, code } = this;
    drawAnswered({ said, dots, code }, votes?.said ?? 0, now, taught.code);
  }

  // Options below each other: the room's votes, and at the answer what the run gives, on one scale
  /** @param {StepBody} body @param {number} all */
  options(body, all) {
    const { options: labels } = body;
    const { counts, before, shares, olds, isAnswer, right, values } = this.parts(body, all);
    const had = olds.some(Boolean);
    const order = labels.map((_, i) => i);
    const matters = order.filter(
      (i) => counts[i] || (isAnswer ? right.includes(i) || (values[i] ?? 0) >= 0.05 : before[i]),
    );
    const which = labels.length <= MOST_ROWS ? order : strongest(matters, counts, isAnswer ? values : []);
    const most = Math.max(...shares, ...olds, ...(isAnswer ? values : [0]), 0.01);
    this.legend(body, all);
    const list = described(add(this.chart, "div", "bars"), "img", this.alt(body));
    for (const i of which) {
      const isRight = isAnswer && right.includes(i);
      const row = add(list, "div", isRight ? "bar right" : "bar");
      add(row, "span", "label").textContent = labels[i];
      const two = add(row, "div", "two");
      const line = add(two, "p", "room");
      const room = add(line, "i");
      room.style.width = `${(76 * shares[i]) / most}%`;
      if (counts[i] && all <= MOST_ROW_BLOCKS) room.style.setProperty("--blocks", String(counts[i]));
      room.classList.toggle("blocks", all <= MOST_ROW_BLOCKS);
      add(line, "b").textContent = counts[i]
        ? values.length && isAnswer
          ? percent(shares[i])
          : String(counts[i])
        : "";
      if (had && olds[i]) add(line, "u").style.left = `${(76 * olds[i]) / most}%`;
      if (isAnswer && values.length) {
        const run = add(two, "p", "run");
        add(run, "i").style.width = `${(76 * values[i]) / most}%`;
        add(run, "b").textContent = values[i] >= 0.005 ? percent(values[i]) : "";
      }
    }
  }

  /** @param {StepBody} body @param {number} all */
  legend({ stage, values = [], before = [], options }, all) {
    const legend = add(this.chart, "p", "legend");
    const item = (/** @type {string} */ look, /** @type {string} */ text) => {
      const part = add(legend, "span");
      part.append(el("i", look), text);
    };
    const isAnswer = stage === "answer";
    if (!options.length) item("room", all <= MOST_BLOCKS ? words.step_one_dot : words.step_bars);
    else if (isAnswer && values.length) item("room", fill(words.step_of_room, { n: all }));
    else item("room", all <= MOST_ROW_BLOCKS ? words.step_one_block : words.step_bars);
    if (isAnswer && (values.length || !options.length)) item("run", words.step_of_run);
    if (before.length && !(isAnswer && this.isAbove)) item("was", words.step_of_before);
  }

  // Numbers as dots on a line, in piles; above so many phones a pile is one bar
  /** @param {StepBody} body @param {number} all */
  numbers(body, all) {
    const votes = /** @type {Vote[]} */ (body.votes ?? []);
    const truth = body.stage === "answer" ? (body.value ?? 0) : null;
    const { at, piles, beyond, ticks } = numberLine(votes, truth);
    this.legend(body, all);
    const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HIGH}`, class: "line" });
    const x = (/** @type {number} */ part) => part * WIDTH;
    draw(drawing, "line", { x1: 0, x2: WIDTH, y1: BASE, y2: BASE, class: "axis" });
    for (const tick of ticks) {
      draw(drawing, "line", { x1: x(at(tick)), x2: x(at(tick)), y1: BASE, y2: BASE + 7, class: "axis" });
      draw(drawing, "text", { x: x(at(tick)), y: BASE + 30, class: "tick" }, named({ ...body, unit: "" }, tick));
    }
    const most = Math.max(1, ...piles.map(({ count }) => count));
    const isDots = all <= MOST_BLOCKS;
    const high = Math.min(DOT + 2, (BASE - 44) / most);
    if (truth !== null) {
      draw(drawing, "line", { x1: x(at(truth)), x2: x(at(truth)), y1: 26, y2: BASE + 7, class: "truth" });
      const isRight = at(truth) > 0.6;
      const text = fill(words.step_is_true, { true: body.true ?? "" });
      draw(
        drawing,
        "text",
        { x: x(at(truth)) + (isRight ? -8 : 8), y: 20, class: isRight ? "truth end" : "truth" },
        text,
      );
    }
    let last = -APART; // where the last number stands
    for (const { at: place, count, value } of piles) {
      const top = isDots ? BASE - count * high : BASE - ((BASE - 60) * count) / most;
      if (isDots)
        for (let i = 0; i < count; i++)
          draw(drawing, "circle", {
            cx: x(place),
            cy: BASE - (i + 0.5) * high,
            r: Math.min(DOT, high) / 2,
            class: "dot",
          });
      else draw(drawing, "rect", { x: x(place) - 8, y: top, width: 16, height: BASE - top, rx: 2, class: "dot" });
      const isNamed = count > 1 || (piles.length <= 8 && x(place) - last >= APART);
      if (isNamed) last = x(place);
      if (isNamed)
        draw(
          drawing,
          "text",
          { x: x(place), y: top - 6, class: "count" },
          count > 1 ? String(count) : named({ ...body, unit: "" }, value),
        );
    }
    this.chart.append(described(/** @type {any} */ (drawing), "img", this.alt(body)));
    const far = [...beyond.below, ...beyond.above];
    if (far.length)
      add(this.chart, "p", "mute").textContent = fill(words.step_beyond, {
        n: sum(far),
        values: far
          .slice(0, 4)
          .map(([value]) => named(body, value))
          .join(" · "),
      });
  }

  // How often each answer was given, and the reply to it
  /** @param {StepBody} body @param {number} all */
  answers(body, all) {
    const replies = body.replies ?? [];
    const so = replies.filter(([, , isRight]) => isRight).reduce((n, [, count]) => n + count, 0);
    if (all) add(this.replies, "p", "so").textContent = fill(words.step_so, { n: so, of: all });
    const table = add(this.replies, "dl");
    for (const [answer, count, isRight, lines, mistake] of replies
      .filter(([, , isRight]) => !isRight)
      .slice(0, MOST_REPLIES)) {
      const term = add(table, "dt", isRight ? "right" : "");
      term.append(el("b", "", String(count)), ` ${named(body, answer)}`);
      add(table, "dd").append(...(mistake ? [el("b", "", mistake), " "] : []), lines[0] ?? "");
    }
  }

  // Before the answer: which mistake most of those who are wrong have made
  /** @param {StepBody} body */
  mistake(body) {
    if (!body.mistake) return;
    const [answer, count, name, lines] = body.mistake;
    const box = add(this.replies, "div", "mistake");
    const said = add(box, "p", "so");
    said.append(...phrase(words.step_said_by, { n: [String(count), "q"], said: [named(body, answer), "b"] }));
    if (name) add(box, "p", "b").textContent = name;
    for (const line of lines) add(box, "p").textContent = line;
  }

  // In words, for a reader who does not see it
  /** @param {StepBody} body */
  alt(body) {
    return (body.votes ?? []).map(([answer, n]) => fill(words.step_alt, { said: named(body, answer), n })).join("; ");
  }

  // For a screen reader, every few seconds
  summary() {
    const { step, votes, now, body } = this.teacher;
    if (!step || !body) return "";
    const n = votes?.said ?? 0;
    if (step.stage === "answer") return this.title.textContent ?? "";
    const said = fill(words.have_said, { n, of: Math.max(now.of, n) });
    return step.stage === "votes" && !this.teacher.isHidden ? `${said} ${this.alt(body)}` : said;
  }
}

/** @param {Vote[]} votes */
const sum = (votes) => votes.reduce((all, [, n]) => all + n, 0);

/** @param {Vote[]} votes @param {number} n */
function tally(votes, n) {
  const counts = Array(n).fill(0);
  for (const [answer, count] of votes) if (answer < n) counts[answer] = count;
  return counts;
}

/** So many of the options as there is room for, in their own order. @param {number[]} which @param {number[]} counts @param {number[]} values */
function strongest(which, counts, values) {
  const weight = (/** @type {number} */ i) => counts[i] + (values[i] ?? 0) * 1000;
  return [...which]
    .sort((a, b) => weight(b) - weight(a))
    .slice(0, MOST_ROWS)
    .sort((a, b) => a - b);
}
