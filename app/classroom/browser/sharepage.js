// The page with the square and the code: how a class comes in.

import { add, el, phrase } from "../../kit/browser/dom.js";
import { button, spaced, square } from "./parts.js";
import { WORDS as words } from "./constants.js";

export class SharePage {
  /** @param {import("./teacher.js").Teacher} teacher @param {HTMLElement} root */
  constructor(teacher, root) {
    this.teacher = teacher;
    const taught = /** @type {import("./types.js").Taught} */ (teacher.taught);
    this.box = add(root, "section", "share");
    this.box.append(square(taught));
    const side = add(this.box, "div", "side");
    this.title = add(side, "h2", "title");
    this.title.textContent = words.share_title;
    this.title.tabIndex = -1;
    this.how = add(side, "p", "how");
    this.how.append(...phrase(words.share_how, { address: [taught.address, "address"] }));
    this.code = add(side, "p", "code");
    this.follow = add(side, "p", "followers");
    this.acts = add(side, "p", "acts");
    const small = add(side, "p", "small");
    small.textContent = taught.only_here;
    small.className = taught.only_here ? "small warn" : "small";
    this.door = add(side, "p", "small");
    this.drawn = ""; // which buttons
    this.draw();
  }

  draw() {
    const { teacher } = this;
    const { of, door } = teacher.now;
    const { code } = /** @type {import("./types.js").Taught} */ (teacher.taught);
    this.code.textContent = door ? spaced(code) : words.door_closed;
    this.follow.replaceChildren(...(of ? [el("b", "", String(of)), el("span", "", words.follow[of === 1 ? 0 : 1])] : [el("span", "mute", words.nobody_yet)]));
    this.door.textContent = door ? words.door_help : words.door_closed_help;
    // Made anew only where they are others: news of a class come several times a second, and a button that is made anew under a finger
    // hears no click.
    const acts = [Boolean(teacher.asked), teacher.canAsk, door].join();
    if (acts === this.drawn) return;
    this.drawn = acts;
    this.drawActs(door);
  }

  /** @param {boolean} door whether it is open */
  drawActs(door) {
    const { teacher } = this;
    const acts = [
      teacher.asked
        ? button(words.back_to_question, "primary", () => teacher.show("ask"))
        : teacher.canAsk && button(words.begin, "primary", () => teacher.pick()),
      button(words.show_sentence, "quiet big", () => teacher.show("")),
      button(door ? words.close_door : words.open_door, "quiet big", () => teacher.teach({ do: "door", open: !door })),
      button(words.end, "quiet big", () => teacher.end()),
    ].filter((node) => node instanceof HTMLElement);
    const at = [...this.acts.children].indexOf(/** @type {Element} */ (/** @type {ShadowRoot} */ (this.acts.getRootNode()).activeElement));
    this.acts.replaceChildren(...acts);
    if (at >= 0) acts[Math.min(at, acts.length - 1)].focus();
  }
}
