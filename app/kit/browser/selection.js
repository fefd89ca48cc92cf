// The selection in a room, as texts of its link. The visitor changes it here, and the page's address says so in the same frame.
//
// A message says which texts of the address it answers. A choice that was made since then stays: of the same run the message
// brings only what the room is drawn from, and of another run it is asked for once more (stage.js).

import { classroom } from "./classroom.js";
import { HEAD, RULE, WAS } from "./constants.js";
import { NO_HOST } from "./mount.js";
import { remember, sameRun } from "./remembered.js";

/** @typedef {import("./types.js").Chosen} Chosen */
/** @typedef {import("./types.js").Follow} Follow */

/** The page's address, where it has one that a room may write. */
const addressOfPage = () => globalThis.window?.headlight?.address;

export class RoomSelection {
  /** @type {Record<string, string>} */
  values = {};
  of = ""; // the run that they were chosen on
  /** @type {Set<string>} The names that a rule chose, and no person */
  ruled = new Set();
  /** @type {import("./types.js").Addressed | undefined} How the page's address says them; of a page without one nothing */
  addressed;
  /** @type {{of: string, run: Record<string, string>} | null} The run that those in the address were chosen on */
  written = null;
  /** @type {import("./types.js").Host} */
  host = NO_HOST;
  number = 0; // of the last change by the visitor
  taken = 0; // how often a message or an address has changed them
  /** @type {(names: string[]) => void} Hears what the visitor has changed */
  changed = () => {};
  /** @type {Follow | undefined} What a class that follows is to see */
  follow;
  isTooLong = false; // whether it has to come with the room once more, to be seen by a class
  /** @type {Record<string, string>} What a class hears beside the link */
  beside = {};
  leave = addressOfPage()?.watch((_, __, isWay) => {
    if (isWay)
      this.written = null; // what another entry says is of its own run
    else this.settle();
  });

  /** The page's address, where it is this room's to write. */
  get page() {
    const page = addressOfPage();
    return page && this.addressed && page.read().get("view") === this.addressed.view ? page : null;
  }

  /** Whether the address still says what a message answers. @param {Chosen} sent */
  isAnswer({ values, address }) {
    const page = addressOfPage();
    if (!address || !page) return true;
    const here = page.read();
    const names = [...Object.keys(values), RULE, WAS];
    return here.get("view") === address.view && names.every((name) => here.get(name) === (address.asked[name] ?? null));
  }

  /** Whether a message can be shown: not where the visitor has chosen something since on another run. @param {Chosen} sent */
  canTake(sent) {
    const isLeft = !this.page;
    return isLeft || (sent.of ?? "") === this.of || this.isAnswer(sent);
  }

  /** Take a message. Returns whether anything is another choice than before. @param {Chosen} sent @returns {boolean} */
  take(sent) {
    const isAnswer = this.isAnswer(sent);
    const isKept = this.addressed !== undefined && !isAnswer && (sent.of ?? "") === this.of;
    this.of = sent.of ?? "";
    this.addressed = sent.address;
    this.follow = sent.follow;
    const before = this.values;
    if (!isKept) {
      this.values = { ...sent.values };
      this.ruled = new Set(sent.address?.rule);
      if (isAnswer && !sent.address?.going) this.write("rule");
    }
    return this.#shown(before);
  }

  /**
   * Take the address that the visitor went back to. False where it is not of the run on the screen, or something else than the
   * choices in this room is another, or one of `remade`, for which the room needs a message.
   * @param {URLSearchParams} now @param {URLSearchParams} before @param {readonly string[]} remade
   */
  goTo(now, before, remade) {
    const { addressed, values } = this;
    if (!addressed || addressed.going || addressed.view !== addressed.room || now.get("view") !== addressed.view)
      return false;
    if (now.has(WAS) || (this.of && !sameRun(now, addressed.run))) return false;
    const own = [...Object.keys(values), RULE, WAS, ...window.headlight.settings.names];
    const others = new Set([...now.keys(), ...before.keys()].filter((name) => now.get(name) !== before.get(name)));
    if ([...others].some((name) => !own.includes(name))) return false;
    const opens = (/** @type {string} */ name) => (addressed.silent.includes(name) ? "" : null);
    const said = Object.keys(values).map((name) => [name, now.get(name) ?? opens(name)]);
    if (said.some(([name, text]) => text === null || (text !== values[String(name)] && remade.includes(String(name)))))
      return false;
    this.values = Object.fromEntries(said);
    this.ruled = new Set((now.get(RULE) ?? "").split(",").filter(Boolean));
    this.written = { of: this.of, run: addressed.run };
    this.#shown(values);
    return true;
  }

  /** @param {Record<string, string>} before */
  #shown(before) {
    const isOther = JSON.stringify(this.values) !== JSON.stringify(before);
    if (isOther) this.taken += 1;
    remember(this);
    this.show();
    return isOther;
  }

  /** Have the address say it. @param {"choice" | "rule"} kind */
  write(kind) {
    const { page, addressed, values, of } = this;
    if (!page || !addressed) return;
    const said = Object.entries(values).map(([name, text]) => [
      name,
      text || !addressed.silent.includes(name) ? text : null,
    ]);
    const ruled = said.flatMap(([name, text]) => (text !== null && this.ruled.has(String(name)) ? [name] : []));
    page.write({ ...Object.fromEntries(said), [RULE]: ruled.sort().join(",") || null }, kind);
    this.written = { of, run: addressed.run };
    this.settle();
  }

  /** The address names another run than the one it was chosen on as long as that is on its way. */
  settle() {
    const { page, written } = this;
    if (page && written) page.write({ [WAS]: sameRun(page.read(), written.run) ? null : written.of || null }, "rule");
  }

  // A class that follows this screen sees the room as it came, and what is chosen otherwise.
  show() {
    if (!this.follow) return;
    const { room, drawn, base, most } = this.follow;
    const chosen = drawn
      ? Object.fromEntries(
          Object.entries({ ...this.values, ...this.beside }).filter(([name, text]) => text !== base[name]),
        )
      : {};
    const length = JSON.stringify(chosen).replace(/[^ -~]/g, "\\u0000").length; // as it travels; of more the class hears with the room
    this.isTooLong = length > most;
    if (!this.isTooLong) classroom.show({ view: room, run: drawn, text: "", with: chosen, labels: () => [] }, this);
  }

  /** The class that follows hears of something that no link says. @param {Record<string, string>} beside */
  tellClass(beside) {
    this.beside = beside;
    this.show();
  }

  /**
   * The visitor changes something; or with "rule", the room does by itself, which is no step of the browser's history.
   * @param {Record<string, string>} changes @param {"choice" | "rule"} [kind]
   */
  choose(changes, kind = "choice") {
    const other = Object.keys(changes).filter((name) => changes[name] !== this.values[name]);
    const hand = other.some((name) => HEAD.includes(name)) ? [...other, ...HEAD] : other;
    if (kind === "choice") for (const name of hand) this.ruled.delete(name);
    Object.assign(this.values, changes);
    this.number += 1;
    if (other.length) this.write(kind);
    remember(this);
    classroom.chose();
    this.show();
    this.host.choose({ number: this.number, said: { ...this.values }, of: this.of });
    this.changed(other);
  }

  destroy() {
    this.leave?.();
    classroom.leave(this);
  }
}

// A whole number that a text says, or the other one
/** @param {string | undefined} text @param {number} [otherwise] */
export const whole = (text, otherwise = 0) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : otherwise);
