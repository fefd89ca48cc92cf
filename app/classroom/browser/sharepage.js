// The page with the square and the code: how a class comes in.

import { add, button, el, focusedIn, phrase } from "../../kit/browser/dom.js";
import { projecting, spaced, square, widest } from "./parts.js";
import { classroom } from "../../kit/browser/classroom.js";
import { copy } from "../../kit/browser/save.js";
import { WORDS as words } from "./constants.js";
import { form } from "../../kit/browser/language.js";

const LONG = 40; // signs of an address that takes several lines

// An address in several lines ends each after a part of it, and not within a word
/** @param {Element} node */
function breakable(node) {
  const parts = (node.textContent ?? "").split(/(?<=[/.@_-])/);
  node.replaceChildren(...parts.flatMap((part) => [part, el("wbr")]));
}

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
    this.how.classList.toggle("long", taught.address.length > LONG);
    for (const address of this.how.querySelectorAll(".address")) breakable(address);
    this.code = add(side, "p", "code");
    this.follow = add(side, "p", "followers");
    this.acts = add(side, "p", "acts");
    const small = add(side, "p", "small");
    small.textContent = taught.only_here;
    small.className = taught.only_here ? "small warn" : "small";
    this.door = add(side, "p", "small door");
    this.byHand = add(side, "label", "small by-hand");
    this.byHand.hidden = true;
    this.foot = add(root, "div", "foot");
    const link = button(words.copy_link, "quiet", () => this.copy());
    link.title = words.copy_link_help;
    this.foot.append(
      el("span", "mute", words.private),
      el("span", "space"),
      link,
      projecting(),
      button(words.end, "quiet", () => teacher.end()),
    );
    this.drawn = ""; // which buttons
    this.draw();
  }

  // The link for those who are not in the room; where a page may not copy, it stands there to be copied by hand.
  async copy() {
    const { link } = /** @type {import("./types.js").Taught} */ (this.teacher.taught);
    const { href } = new URL(link); // in small letters, as people know links
    if (await copy(href)) return this.teacher.tell(words.link_copied);
    this.byHand.replaceChildren(words.copy_by_hand);
    const field = add(this.byHand, "input");
    Object.assign(field, { type: "text", readOnly: true, value: href });
    this.byHand.hidden = false;
    field.focus();
    field.select();
  }

  draw() {
    const { teacher } = this;
    const { of, door } = teacher.now;
    const { code } = /** @type {import("./types.js").Taught} */ (teacher.taught);
    this.box.classList.toggle("closed", !door);
    this.code.textContent = door ? spaced(code) : words.door_closed;
    this.code.style.setProperty("--wide", widest(this.code.textContent).toFixed(2));
    this.follow.replaceChildren(
      ...(of
        ? [el("b", "", String(of)), el("span", "", form(words.follow, of))]
        : [el("span", "mute", words.nobody_yet)]),
    );
    this.door.textContent = door ? words.door_help : words.door_closed_help;
    // Made again only where they are others: news of a class come several times a second, and a button that is made again under a finger
    // hears no click.
    const acts = [teacher.asking, this.begins, door].join();
    if (acts === this.drawn) return;
    this.drawn = acts;
    this.drawActs(door);
  }

  // The kind of question that the screen has for a class: a step of a lesson, or a row of a head
  get begins() {
    const { teacher } = this;
    return teacher.room === "lessons" ? (classroom.step?.offer ? "step" : "") : teacher.canAsk ? "row" : "";
  }

  /** @param {boolean} door whether it is open */
  drawActs(door) {
    const { teacher } = this;
    const acts = [
      teacher.asking
        ? button(words.back_to_question, "primary", () => teacher.show(teacher.asking))
        : this.begins &&
          button(words.begin, "primary", () => (this.begins === "step" ? teacher.askStep() : teacher.pick())),
      button(words.show_sentence, "quiet big", () => teacher.show("")),
      button(door ? words.close_door : words.open_door, "quiet big", () => teacher.teach({ do: "door", open: !door })),
    ].filter((node) => node instanceof HTMLElement);
    const at = [...this.acts.children].indexOf(/** @type {Element} */ (focusedIn(this.acts)));
    this.acts.replaceChildren(...acts);
    if (at >= 0) acts[Math.min(at, acts.length - 1)].focus();
  }
}
