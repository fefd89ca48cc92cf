// A lesson of the visitor's own, from a file: opened here or dropped onto the page, read and run once by the server. Its faults are
// told with their lines; without one it is listed and opens.

import { add, button, el, fill } from "../../../kit/browser/dom.js";
import { form, number } from "../../../kit/browser/language.js";
import { goTo } from "../../../streamlit_edge/browser/page.js";
import { WORDS } from "./constants.js";
import { BROUGHT, droppedFile, MOST_BYTES, replaceDraft, sent, textOf } from "./draft.js";
import { lessonOf } from "./table.js";

const words = WORDS.own;

export class Own {
  /** @type {{file: File, text: string} | null} With faults */
  faulty = null;

  /** @param {{opens: () => boolean, show: () => void}} of what it asks of the page */
  constructor(of) {
    this.of = of;
    this.box = el("section", "own");
    add(this.box, "h3").textContent = words.title;
    add(this.box, "p", "hint").textContent = words.about;
    const acts = add(this.box, "div", "acts");
    this.input = add(acts, "input");
    Object.assign(this.input, { type: "file", hidden: true, accept: ".md,.txt,.yaml,.yml" });
    this.input.addEventListener("change", () => {
      const file = this.input.files?.[0];
      this.input.value = ""; // the same file, once it is mended, is another choice
      if (file) void this.bring(file);
    });
    acts.append(
      button(words.open, "quiet", () => this.input.click()),
      button(words.write, "quiet", () => goTo("?view=lessons&write=1", false)),
    );
    this.state = add(this.box, "p", "state");
    this.state.setAttribute("role", "status");
    this.faults = add(this.box, "ol", "faults");
    this.mend = button(words.mend, "quiet", () => this.mends());
    this.box.append(this.mend);
    this.says("");
  }

  /** @param {AbortSignal} signal */
  listens(signal) {
    // Before the page itself, which takes any file for a model's config
    const drops = (/** @type {DragEvent} */ e) => {
      const file = droppedFile(e);
      if (!file) return;
      e.preventDefault();
      this.of.show();
      void this.bring(file);
    };
    addEventListener("drop", drops, { capture: true, signal });
  }

  /** @param {string} sentence @param {import("./types.js").Fault[]} [faults] */
  says(sentence, faults = []) {
    this.state.textContent = sentence;
    this.faults.replaceChildren(
      ...faults.map(({ line, said }) => {
        const item = el("li");
        item.append(el("b", "", fill(words.line, { line })), ` ${said}`);
        return item;
      }),
    );
    this.faults.hidden = !faults.length;
    this.mend.hidden = !faults.length;
  }

  /** @param {File} file */
  async bring(file) {
    this.faulty = null;
    if (!this.of.opens()) return this.says(words.elsewhere);
    const most = number(MOST_BYTES);
    if (file.size > MOST_BYTES) return this.says(fill(words.large, { n: number(file.size), most }));
    this.says(fill(words.reading, { name: file.name }));
    const found = await sent(`own?${new URLSearchParams({ name: file.name })}`, file, words.unreachable);
    if (found.refused !== undefined) return this.says(found.refused);
    if (found.step) {
      this.says("");
      BROUGHT.add(lessonOf(found.step));
      goTo(`?${new URLSearchParams({ view: "lessons", lesson: found.step })}`, false);
      return;
    }
    const { faults = [] } = found;
    this.faulty = { file, text: (await textOf(file)) ?? "" };
    const n = faults.length;
    this.says(fill(form(words.faults, n), { n, name: file.name }), faults);
    this.mend.focus();
  }

  mends() {
    if (!this.faulty) return;
    replaceDraft({ name: this.faulty.file.name, text: this.faulty.text });
    goTo("?view=lessons&write=1", false);
  }
}
