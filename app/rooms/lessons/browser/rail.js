// The steps of a lesson on a rail: passed ones filled, the present one open, the rest titles; and, when asked for, all five lessons.

import { WORDS as words } from "./constants.js";
import { classroom } from "../../../kit/browser/classroom.js";
import { add, button, counted, el, fill, phrase } from "../../../kit/browser/dom.js";
import { Share } from "../../../kit/browser/share.js";
import { named } from "./ask.js";
import { isAgain, once } from "./link.js";
import { Own } from "./own.js";
import { all, around, done, lessonOf, NAMES, STEPS, stepsOf, titleOf, ways, writtenOf } from "./table.js";

/** @typedef {import("./lessons.js").View} View */

// A number stays on one line with its unit.
/** @param {string} text */
const unbroken = (text) => text.replace(/(\d) (?=%|[KMG]iB)/g, "$1\u00a0");

export class Rail {
  /** @param {View} view @param {HTMLElement} root */
  constructor(view, root) {
    this.view = view;
    const head = add(root, "div", "head");
    this.title = add(head, "h2");
    this.where = add(head, "span", "where");
    this.all = head.appendChild(button(words.all, "link", () => this.toggle()));
    this.knew = add(root, "p", "knew");
    this.three = add(root, "p", "hint");
    this.three.textContent = words.asked_again;
    this.list = add(root, "ol", "rail");
    this.own = new Own({
      opens: () => view.data.opens,
      show: () => this.toggle(true),
    });
    root.append(this.own.box);
    this.lessons = add(root, "div", "lessons-all");

    // The open step: its parts stay the elements that they are, so that the focus stays in them.
    this.body = el("div", "open");
    this.text = add(this.body, "p", "text");
    const asks = add(this.body, "div", "asks");
    this.question = add(asks, "p", "question");
    this.question.id = "question";
    this.hint = add(asks, "p", "hint");
    this.place = add(this.body, "div", "place");
    const row = add(this.body, "div", "acts");
    this.look = row.appendChild(button(words.look, "go", () => view.looks()));
    this.show = row.appendChild(button(words.show_me, "quiet", () => view.shows()));
    this.said = add(row, "span", "said");
    this.reset = row.appendChild(button(words.back_to_step, "quiet", () => view.reset()));
    this.example = row.appendChild(button(words.take_example, "go", () => view.reset(false)));
    this.reply = add(this.body, "div", "reply");
    const room = add(this.body, "div", "acts room");
    this.asks = room.appendChild(button(words.ask_room, "quiet", () => classroom.ask(), words.ask_room_help));
    this.unasked = add(room, "span", "said"); // why a class cannot be asked
    this.answer = add(this.body, "div", "answer");
    this.answer.id = "answer";
    const on = add(this.body, "div", "acts");
    this.next = on.appendChild(button("", "go", () => view.goesOn()));
    this.next.setAttribute("aria-describedby", "answer"); // it has the focus after a look
    this.over = on.appendChild(button(words.next_lesson, "quiet", () => view.turn(1, true))); // without the recap
    this.again = on.appendChild(button(words.again, "quiet", () => view.again()));

    const sum = add(root, "p", "sum");
    this.sum = add(sum, "span");
    this.recap = sum.appendChild(
      button("", "link", () => (isAgain(view.step) ? view.open(once(view.step), true) : view.recaps())),
    );
    this.note = add(root, "p", "note");
    const foot = add(root, "div", "foot");
    this.before = foot.appendChild(button("←", "quiet", () => view.turn(-1, true)));
    this.before.setAttribute("aria-label", words.before);
    this.after = foot.appendChild(button("→", "quiet", () => view.turn(1, true)));
    this.after.setAttribute("aria-label", words.after);
    add(foot, "span", "keys").textContent = words.keys; // which give way to what there is to save
    this.save = foot.appendChild(button(words.save, "quiet save", () => view.save()));
    this.save.title = words.save_help;
    this.present = foot.appendChild(
      button(words.present, "quiet", () => window.headlight.settings.set("projector", "true")),
    );
    this.present.title = words.present_help;
    this.share = new Share(
      root,
      () => view.link(),
      (text) => view.announce(text),
    );
    foot.append(this.share.copying());
  }

  toggle(open = !this.view.lists) {
    this.view.list(open);
    if (open) /** @type {HTMLElement | null} */ (this.lessons.querySelector("button"))?.focus();
  }

  focus() {
    if (this.view.seen) this.next.focus();
    else if (this.view.asking) this.view.asking.focus();
    else this.look.focus(); // what can be answered comes with the run
  }

  draw() {
    const { step, lists } = this.view;
    const lesson = lessonOf(step);
    const names = isAgain(step) ? this.view.three : stepsOf(lesson);
    this.title.textContent = lists ? words.all_title : titleOf(lesson);
    this.where.textContent = fill(words.step_of, { at: names.indexOf(step) + 1, of: names.length });
    this.all.textContent = lists ? words.all_close : words.all;
    this.all.setAttribute("aria-expanded", String(lists));
    this.list.hidden = lists;
    this.lessons.hidden = this.own.box.hidden = !lists;
    if (lists) this.drawAll();
    this.drawList(names);
    this.drawBody();
    this.drawSum(stepsOf(lesson));
    this.note.textContent = this.view.note;
    this.note.hidden = !this.view.note;
    this.before.disabled = step === around(step)[0];
    this.after.disabled = !this.view.beside(1);
    this.save.hidden = !this.view.isFinished(lesson);
  }

  // How many steps of the lesson were known
  /** @param {string[]} names */
  drawSum(names) {
    const passed = done();
    const known = ways();
    const places = names.map((name) => NAMES.indexOf(name)).filter((i) => passed.has(i));
    const n = (/** @type {string | undefined} */ way) => places.filter((i) => known.get(i) === way).length;
    const many = { known: n("known"), second: n("second"), shown: n(undefined), of: names.length };
    this.sum.textContent = fill(words.sum, many);
    const { step, lists } = this.view;
    const open = names.length - places.length;
    this.knew.textContent = `${[
      fill(words.knew, many),
      counted(words.knew_shown, many.shown),
      ...(open ? [counted(words.knew_open, open)] : []),
    ].join(", ")}.`;
    this.knew.hidden = this.three.hidden = !isAgain(step) || lists;
    this.sum.hidden = isAgain(step);
    this.recap.textContent = isAgain(step) ? words.back_to_lesson : words.recap;
    this.recap.hidden = !isAgain(step) && (open > 0 || this.view.leadsToRecap || !this.view.recapped().length);
    this.sum.parentElement?.toggleAttribute("hidden", lists || !(places.length || isAgain(step)));
  }

  /** @param {string[]} names */
  drawList(names) {
    const { step } = this.view;
    const passed = done();
    const known = ways();
    const titles = names.map((name) => STEPS[name].title);
    const of = `${names.join()}|${titles.join()}|${step}|${this.view.seen}|${[...passed].sort().join()}|${[...known].sort().join()}`;
    if (of === this.list.dataset.of) return;
    this.list.dataset.of = of;
    this.list.replaceChildren(
      ...names.map((name) => {
        const line = el("li");
        const isDone = isAgain(name) ? this.view.isSeen(name) : passed.has(NAMES.indexOf(name));
        const way = isAgain(name) ? "known" : (known.get(NAMES.indexOf(name)) ?? "shown");
        line.className = `${isDone ? `done ${way}` : ""} ${name === step ? "now" : ""}`;
        const title = line.appendChild(
          button(STEPS[name].title, "title", () => name !== this.view.step && this.view.open(name, true)),
        );
        title.dataset.step = name;
        if (isDone && !isAgain(name)) title.append(el("span", "unseen", ` (${words.passed[way]})`));
        if (name === step) {
          title.setAttribute("aria-current", "step");
          line.append(this.body);
        }
        return line;
      }),
    );
  }

  // All steps of all lessons, for a visitor who looks for one
  drawAll() {
    const passed = done();
    this.lessons.replaceChildren(
      ...all().map((lesson) => {
        const box = el("section");
        const names = stepsOf(lesson);
        const many = names.filter((name) => passed.has(NAMES.indexOf(name))).length;
        const head = add(box, "h3");
        head.append(titleOf(lesson), " ", el("small", "", fill(words.step_of, { at: many, of: names.length })));
        if (writtenOf(names[0])?.own) head.append(" ", el("small", "yours", words.own.yours));
        const list = add(box, "ol");
        for (const name of names) {
          const line = add(list, "li", passed.has(NAMES.indexOf(name)) ? "done" : "");
          line.append(button(STEPS[name].title, "title", () => this.view.open(name, true)));
        }
        return box;
      }),
    );
  }

  drawBody() {
    const { view } = this;
    const { step, truth, told, seen, said, asking, data } = view;
    const at = STEPS[step];
    const cannot = told?.step === step ? told.cannot : undefined;
    const language = writtenOf(step)?.language ?? "";
    for (const part of [this.text, this.question, this.place, this.reply, this.answer]) {
      if (language) Object.assign(part, { lang: language, dir: "auto" });
      else for (const name of ["lang", "dir"]) part.removeAttribute(name);
    }
    this.text.replaceChildren(
      ...(language ? [at.text] : marked(at.text)), // a teacher's query is a word like any other
      " ",
      el("span", "source", fill(words.source, { lesson: at.source, room: data.rooms[at.room] ?? at.room })),
    );
    this.question.replaceChildren(
      ...(language
        ? [cannot ?? at.question]
        : marked(cannot ?? truth?.question ?? (at.question.includes("{") ? words.waiting : at.question))),
    );
    this.hint.textContent = cannot
      ? fill(words.offers, { text: told?.example ?? at.sentence })
      : at.pointed && at.kind === "point"
        ? words.hint_pointed
        : (words.hints[at.kind] ?? "");
    this.hint.hidden = seen || (Boolean(cannot) && !(told?.example ?? at.sentence));
    this.place.hidden = Boolean(cannot) || seen;
    if (asking && this.place.firstChild !== asking.node) this.place.replaceChildren(asking.node);
    else if (!asking) this.place.replaceChildren();
    asking?.mark(said);
    this.look.hidden = seen || Boolean(cannot);
    this.look.classList.toggle("quiet", said === null && at.kind !== "do");
    this.said.hidden = seen || Boolean(cannot);
    this.said.replaceChildren(
      ...(said === null || !truth
        ? [words.say_first]
        : phrase(words.you_say, { said: [named(truth, said), "word"] })
      ).map((part) => (typeof part === "string" ? document.createTextNode(part) : part)),
    );
    this.example.hidden = !cannot || !(told?.example ?? at.sentence);
    this.reset.hidden = !view.isChanged;
    const ofClass = told?.step === step ? told.room : undefined;
    this.asks.disabled = !ofClass?.offer;
    this.unasked.textContent = ofClass?.offer ? "" : (ofClass?.cannot ?? (cannot ? "" : words.room_waits));
    this.asks.hidden = Boolean(ofClass?.cannot ?? cannot);
    const checked = view.checked;
    this.show.hidden = seen || !view.tries;
    // The reply takes the place of the text. A second one stays beside the answer, unless that says the same.
    const { name, sentence } = view.reply ?? { name: "", sentence: "" };
    const more = seen ? [] : [el("p", "", words.try_again)];
    this.reply.hidden = !sentence || checked?.words[0] === sentence;
    this.reply.replaceChildren(
      ...(this.reply.hidden ? [] : [el("b", "", name), el("p", "", unbroken(sentence)), ...more]),
    );
    this.text.hidden = seen || !this.reply.hidden;
    this.answer.hidden = !seen || Boolean(cannot);
    if (!this.answer.hidden) {
      const lines = checked?.words ?? [words.waiting];
      this.answer.replaceChildren(
        ...lines.map((line, i) => el(i && i === lines.length - 1 ? "small" : "p", "", unbroken(line))),
      );
    } else this.answer.replaceChildren();
    this.next.parentElement?.toggleAttribute("hidden", !seen && !cannot);
    this.again.hidden = !seen;
    const next = view.beside(1);
    this.next.textContent = view.leadsToRecap
      ? words.recap
      : next
        ? view.isOfLesson(next)
          ? words.next
          : words.next_lesson
        : words.finish;
    this.over.hidden = !view.leadsToRecap || !next;
  }
}

// The words of the field that have a colour in every picture
/** @param {string} text */
function marked(text) {
  return text
    .split(/\b(query|queries|keys?)\b/)
    .filter(Boolean)
    .map((piece) =>
      /^(query|queries|keys?)$/.test(piece)
        ? el("em", piece[0] === "q" ? "q" : "k", piece)
        : document.createTextNode(piece),
    );
}
