// The findings of the room: sixteen steps through its four labs, which Page keys and chips walk; and the labs beside them.

import { add, button, described, el, fill, worded } from "../../../kit/browser/dom.js";
import { json } from "../../../kit/browser/messages.js";
import { way } from "../../../kit/browser/share.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Header} Header */
/** @typedef {{lab: string, id: string}} Finding */
/** @type {Record<string, string[]>} */
export const FINDINGS = {
  swap: ["word", "place", "drop", "free"],
  clocks: ["fast", "slow", "both"],
  beyond: ["turns", "rules", "cost", "gap"],
  kinds: ["sin", "lrn", "alibi", "t5", "none"],
};
/** @type {Finding[]} */
export const ALL = Object.entries(FINDINGS).flatMap(([lab, ids]) => ids.map((id) => ({ lab, id })));
/** @type {Record<string, string>} Labs that have no findings, and after which they come */
export const BESIDE = { order: "swap", clock: "clocks", two: "kinds", binary: "kinds" };

// The finding after or before one that is shown, over the ends; of a lab whose finding is none of them, from that lab on
/** @param {string} lab @param {string} shown @param {number} by @param {(finding: Finding) => boolean} lacks @returns {Finding | null} */
export function step(lab, shown, by, lacks) {
  const n = ALL.length;
  let at = ALL.findIndex(({ id }) => id === shown);
  if (at < 0) {
    const ids = FINDINGS[BESIDE[lab] ?? lab];
    const [first, last] = [ids[0], ids[ids.length - 1]].map((id) => ALL.findIndex((one) => one.id === id));
    if (lab in BESIDE) at = by > 0 ? last : last + 1;
    else at = by > 0 ? first - 1 : first;
  }
  for (let tries = 0; tries < n; tries++) {
    at = (at + by + n) % n;
    if (!lacks(ALL[at])) return ALL[at];
  }
  return null;
}

// A button for each finding of a lab
/** @param {HTMLElement} box @param {string[]} ids @param {string} shown @param {(id: string) => void} take @param {(id: string) => string} why */
export function chips(box, ids, shown, take, why) {
  described(box, "group", words.findings);
  box.replaceChildren(
    ...ids.map((id) => {
      const chip = button(worded(words.finding, id), "quiet", () => take(id), why(id));
      chip.setAttribute("aria-pressed", String(id === shown));
      return chip;
    }),
  );
}

// Run of a model whose positions are of a kind: the one on the screen, or one that is here for those that are of another kind
/** @param {Shown} view @param {string} kind @returns {(Header & {refused?: string}) | null} */
export function hostOf(view, kind) {
  if (view.header.position === kind) return view.header;
  return view.ask("positions/guest", { kind }, json);
}

// Whose run it is, where it is not the one on the screen, and the way to it
/** @param {Shown} view @param {Header} host @param {string} lab @param {string} find */
export function whose(view, host, lab, find) {
  if (host.key === view.header.key) return [];
  const own = worded(words.kinds, view.header.position).toLowerCase();
  const said = fill(words.guest, { model: host.model, own: view.header.model, kind: own });
  const text = host.tokens.source ? host.about.text : "";
  const link = way(fill(words.guest_open, { model: host.model }), {
    view: "positions",
    model: host.model,
    text,
    lab,
    find,
  });
  return [el("span", "", `${said} `), link];
}

// Pixels of the picture's column, where the numbers stand at its right
/** @param {Shown} view */
export const leftOf = (view) => view.width - ((view.isProjected ? 21 : 26) * 16 + 28) * view.unit;

// A lab whose every finding is one picture with its reason above, and its numbers at the right
export class FindingLab {
  hasHeads = false;

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
    this.main = add(view.labPlace, "div", "main findings");
    const left = add(this.main, "section");
    this.chips = add(left, "div", "chips");
    this.why = add(left, "p", "note why");
    this.picture = add(left, "div");
    this.right = add(this.main, "section", "side");
  }

  // Pixels that a picture has from side to side
  get wide() {
    const { view } = this;
    return view.narrow ? view.width : leftOf(view);
  }

  // And down, from the end of what is above it
  /** @param {Element} above */
  tall(above) {
    const { view } = this;
    return view.room === Infinity
      ? (view.narrow ? 300 : 350) * view.unit
      : Math.max(120 * view.unit, view.below(above) - 56 * view.unit);
  }

  /** @param {string} bold @param {string} [rest] */
  title(bold, rest = "") {
    const title = add(this.picture, "h2");
    title.append(el("b", "", bold), ` ${rest}`);
    return title;
  }
}

// A slider over whole numbers, which stays where it is while its value is drawn
export class Slider {
  /** @param {HTMLElement} host @param {string} label @param {number} most @param {(value: number) => void} move */
  constructor(host, label, most, move) {
    this.title = el("h2");
    this.field = el("input", "slider");
    Object.assign(this.field, { type: "range", min: "0", max: String(most), step: "1", ariaLabel: label });
    this.field.addEventListener("input", () => move(Number(this.field.value)));
    // Arrow keys move it as they move everything else here
    this.field.addEventListener("keydown", (event) => event.stopPropagation());
    host.append(this.title, this.field);
  }

  /** @param {number} value @param {string} text @param {(Node | string)[]} title */
  draw(value, text, title) {
    this.field.value = String(value);
    this.field.ariaValueText = text;
    this.title.replaceChildren(...title);
  }
}
