// The steps of a lesson on a rail: passed ones filled, the present one open, the rest titles; and, when asked for, all five lessons.

import { LESSONS, STEPS, WORDS as words } from "./constants.js";
import { add, button, el, fill, phrase } from "../../../kit/browser/dom.js";
import { classroom } from "../../../kit/browser/classroom.js";
import { done } from "../../../kit/browser/progress.js";
import { Share } from "../../../kit/browser/share.js";
import { named } from "./ask.js";

/** @typedef {import("./lessons.js").View} View */
const NAMES = Object.keys(STEPS);

export class Rail {
  /** @param {View} view @param {HTMLElement} root */
  constructor(view, root) {
    this.view = view;
    const head = add(root, "div", "head");
    this.title = add(head, "h2");
    this.where = add(head, "span", "where");
    this.all = head.appendChild(button(words.all, "link", () => this.toggle()));
    this.list = add(root, "ol", "rail");
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
    this.said = add(row, "span", "said");
    this.reset = row.appendChild(button(words.back_to_step, "quiet", () => view.reset()));
    this.example = row.appendChild(button(words.take_example, "go", () => view.reset(false)));
    const room = add(this.body, "div", "acts room");
    this.asks = room.appendChild(button(words.ask_room, "quiet", () => classroom.ask(), words.ask_room_help));
    this.unasked = add(room, "span", "said"); // why a class cannot be asked
    this.answer = add(this.body, "div", "answer");
    this.answer.id = "answer";
    const on = add(this.body, "div", "acts");
    this.next = on.appendChild(button("", "go", () => (view.isLast ? this.toggle(true) : view.turn(1, true))));
    this.next.setAttribute("aria-describedby", "answer"); // it has the focus after a look
    this.again = on.appendChild(button(words.again, "quiet", () => view.again()));

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
    this.view.lists = open;
    this.view.drawNow();
    if (open) /** @type {HTMLElement | null} */ (this.lessons.querySelector("button"))?.focus();
  }

  focus() {
    if (this.view.seen) this.next.focus();
    else if (this.view.asking) this.view.asking.focus();
    else this.look.focus(); // what can be answered comes with the run
  }

  draw() {
    const { step, lists } = this.view;
    const [lesson, at] = step.split(".");
    const names = NAMES.filter((name) => name.startsWith(`${lesson}.`));
    this.title.textContent = lists
      ? words.all_title
      : fill(words.lesson_of, { n: lesson, title: LESSONS[Number(lesson) - 1] });
    this.where.textContent = fill(words.step_of, { at, of: names.length });
    this.all.textContent = lists ? words.all_close : words.all;
    this.all.setAttribute("aria-expanded", String(lists));
    this.list.hidden = lists;
    this.lessons.hidden = !lists;
    if (lists) this.drawAll();
    this.drawList(names);
    this.drawBody();
    this.note.textContent = this.view.note;
    this.note.hidden = !this.view.note;
    this.before.disabled = step === NAMES[0];
    this.after.disabled = this.view.isLast;
    this.save.hidden = !this.view.isFinished(lesson);
  }

  /** @param {string[]} names */
  drawList(names) {
    const { step } = this.view;
    const passed = done(NAMES.length);
    const of = `${names.join()}|${step}|${[...passed].sort().join()}`;
    if (of === this.list.dataset.of) return;
    this.list.dataset.of = of;
    this.list.replaceChildren(
      ...names.map((name) => {
        const line = el("li");
        const isDone = passed.has(NAMES.indexOf(name));
        line.className = `${isDone ? "done" : ""} ${name === step ? "now" : ""}`;
        const title = line.appendChild(
          button(STEPS[name].title, "title", () => name !== this.view.step && this.view.open(name, true)),
        );
        title.dataset.step = name;
        if (isDone) title.append(el("span", "unseen", ` (${words.passed})`));
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
    const passed = done(NAMES.length);
    this.lessons.replaceChildren(
      ...LESSONS.map((title, i) => {
        const box = el("section");
        const names = NAMES.filter((name) => name.startsWith(`${i + 1}.`));
        const many = names.filter((name) => passed.has(NAMES.indexOf(name))).length;
        const head = add(box, "h3");
        head.append(
          fill(words.lesson_of, { n: i + 1, title }),
          " ",
          el("small", "", fill(words.step_of, { at: many, of: names.length })),
        );
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
    this.text.replaceChildren(
      ...marked(at.text),
      " ",
      el("span", "source", fill(words.source, { lesson: at.source, room: data.rooms[at.room] ?? at.room })),
    );
    this.question.replaceChildren(
      ...marked(cannot ?? truth?.question ?? (at.question.includes("{") ? words.waiting : at.question)),
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
    this.answer.hidden = !seen || Boolean(cannot);
    if (!this.answer.hidden) {
      const lines = checked?.words ?? [words.waiting];
      this.answer.replaceChildren(...lines.map((line, i) => el(i && i === lines.length - 1 ? "small" : "p", "", line)));
    } else this.answer.replaceChildren();
    this.next.parentElement?.toggleAttribute("hidden", !seen && !cannot);
    this.again.hidden = !seen;
    this.next.textContent = view.isLast
      ? words.finish
      : NAMES[NAMES.indexOf(step) + 1].startsWith(step.split(".")[0])
        ? words.next
        : words.next_lesson;
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
