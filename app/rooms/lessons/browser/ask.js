// The five ways to answer: places and options as buttons, a number in a box, sizes that go into slots, a change in the room.

import { grouped, numberOf, pointed } from "../../../kit/browser/language.js";
import { WORDS as words } from "./constants.js";
import { add, arrow, described, el, fill, focusedIn } from "../../../kit/browser/dom.js";

/** @typedef {import("./types.js").Truth} Truth */
/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Asking} Asking */
/** @typedef {(answer: Answer | null, done: boolean) => void} Say what is said, and whether with that all is said */

/** @param {Truth} truth @param {Say} say @returns {Asking} */
export function asking(truth, say) {
  return { point, drag, shape, choose, do: change }[truth.kind](truth, say);
}

// A word for what was said, as it stands beside Look
/** @param {Truth} truth @param {Answer | null} answer */
export function named(truth, answer) {
  if (answer === null) return "";
  if (truth.kind === "drag") return number(truth, Number(answer));
  if (!Array.isArray(answer)) return "";
  if (truth.kind === "shape") return `[${answer.join(", ")}]`;
  if (truth.kind === "choose") return answer.map((i) => truth.options[Number(i)]).join("; ");
  const labels = /** @type {number[][]} */ (answer).map(
    (place) => truth.candidates.find((one) => String(one.place) === String(place))?.label ?? "?",
  );
  return labels.length > 3 ? fill(words.places, { n: labels.length }) : labels.join(", ");
}

/** @param {Truth} truth @param {number} value */
export function number({ digits, unit }, value) {
  const text = grouped(value, digits);
  return unit ? `${text} ${unit}` : text;
}

// What would be right, for a visitor who looks without having said anything
/** @param {Truth} truth @returns {Answer} */
export function rightOf(truth) {
  if (truth.kind === "point") return truth.candidates.slice(0, truth.all_of ? truth.best : 1).map(({ place }) => place);
  if (truth.kind === "drag") return truth.number;
  if (truth.kind === "shape") return truth.axes;
  if (truth.kind === "choose") return truth.all_of ? truth.right : truth.right.slice(0, 1);
  return truth.values ?? {};
}

// Buttons, one of them with the focus; the arrow keys move it and Enter answers.
/**
 * @param {string[]} labels @param {string} className @param {string} label
 * @param {(at: number, done: boolean) => void} act @param {boolean} several
 */
function buttons(labels, className, label, act, several) {
  const node = described(el("div", className), "group", label);
  const made = labels.map((text, i) => {
    const button = add(node, "button");
    Object.assign(button, { textContent: text, tabIndex: i ? -1 : 0 });
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", (e) => act(i, !several && !e.detail)); // detail: clicks of a pointer
    return button;
  });
  /** @param {number} at */
  const reach = (at) => made.forEach((button, i) => (button.tabIndex = i === at ? 0 : -1));
  node.addEventListener("keydown", (e) => {
    const by = arrow(e);
    const at = made.indexOf(/** @type {HTMLButtonElement} */ (e.target));
    if (!by || at < 0) return;
    e.preventDefault();
    e.stopPropagation();
    const to = (at + by[0] + by[1] + made.length) % made.length;
    reach(to);
    made[to].focus();
  });
  /** @param {(i: number) => boolean} is */
  const mark = (is) => {
    made.forEach((button, i) => button.setAttribute("aria-pressed", String(is(i))));
    const first = made.findIndex((_, i) => is(i));
    if (first >= 0 && !made.includes(/** @type {HTMLButtonElement} */ (focusedIn(node)))) reach(first);
  };
  return { node, mark, focus: () => made.find(({ tabIndex }) => tabIndex === 0)?.focus() };
}

/** @param {Truth} truth @param {Say} say */
function point(truth, say) {
  const places = truth.candidates.map(({ place, label }) => ({ place, label, id: String(place) })); // not in the order of what is right:
  places.sort((a, b) => compare(a.place, b.place));
  /** @type {Set<string>} */
  let said = new Set();
  const made = buttons(
    places.map(({ label }) => label),
    "chips",
    words.answer,
    (i, done) => {
      const { id } = places[i];
      if (truth.all_of) said.has(id) ? said.delete(id) : said.add(id);
      else said = new Set([id]);
      say(
        places.filter((one) => said.has(one.id)).map(({ place }) => place),
        done,
      );
    },
    truth.all_of,
  );
  /** @param {Answer | null} answer */
  const mark = (answer) => {
    said = new Set(Array.isArray(answer) ? answer.map(String) : []);
    made.mark((i) => said.has(places[i].id));
  };
  return { ...made, mark };
}

/** @param {number[]} a @param {number[]} b */
function compare(a, b) {
  const at = a.findIndex((x, i) => x !== b[i]);
  return at < 0 ? 0 : a[at] - b[at];
}

// A number is typed: a slider would have to rest somewhere, and that is an answer.
/** @param {Truth} truth @param {Say} say */
function drag(truth, say) {
  const node = el("div", "typed");
  const line = add(node, "label");
  const input = add(line, "input");
  Object.assign(input, { type: "text", inputMode: "decimal", autocomplete: "off", maxLength: 24 });
  input.setAttribute("aria-label", truth.question);
  if (truth.unit) add(line, "span").textContent = truth.unit;
  const fault = add(node, "p", "fault");
  fault.setAttribute("role", "status");
  const read = (isEntered = false) => {
    fault.textContent = "";
    const value = numberOf(input.value, truth.unit);
    if (isEntered) complain(value);
    say(value, isEntered && value !== null);
  };
  // A minus or a point is the beginning of a number: what is wrong is said once all is typed.
  /** @param {number | null} value */
  const complain = (value) => {
    const typed = input.value.trim();
    fault.textContent = value === null && typed ? fill(words.no_number, { typed }) : "";
  };
  input.addEventListener("input", () => read());
  input.addEventListener("change", () => complain(numberOf(input.value, truth.unit)));
  input.addEventListener("keydown", (e) => {
    if (e.key !== "Enter") return;
    e.preventDefault();
    read(true);
  });
  /** @param {Answer | null} answer */
  const mark = (answer) => {
    if (typeof answer === "number" && numberOf(input.value, truth.unit) !== answer)
      input.value = pointed(String(answer));
    else if (answer === null && numberOf(input.value, truth.unit) !== null) input.value = "";
    node.classList.toggle("said", answer !== null);
  };
  return { node, mark, focus: () => input.focus() };
}

/** @param {Truth} truth @param {Say} say */
function shape(truth, say) {
  const node = el("div", "shape");
  const slots = described(add(node, "div", "slots"), "group", words.slots);
  /** @type {string[]} */
  let said = [];
  const of = truth.axes.length;
  const boxes = truth.axes.map((_, i) => {
    const box = add(slots, "button", "slot");
    box.addEventListener("click", () => put(said.filter((_, k) => k !== i)));
    box.addEventListener("dragover", (e) => e.preventDefault());
    box.addEventListener("drop", (e) => {
      e.preventDefault();
      const size = e.dataTransfer?.getData("text/plain") ?? "";
      if (truth.options.includes(size)) put(i < said.length ? said.with(i, size) : [...said, size]);
    });
    return box;
  });
  const tiles = buttons(
    truth.options,
    "tiles",
    words.tiles,
    (i) => said.length < of && put([...said, truth.options[i]], true),
    true,
  );
  for (const tile of /** @type {HTMLElement[]} */ ([...tiles.node.children])) {
    tile.removeAttribute("aria-pressed"); // it goes into the next slot
    tile.draggable = true;
    tile.addEventListener("dragstart", (e) => e.dataTransfer?.setData("text/plain", tile.textContent ?? ""));
  }
  tiles.node.addEventListener("keydown", (e) => {
    if (e.key !== "Backspace") return;
    e.preventDefault();
    put(said.slice(0, -1));
  });
  node.append(tiles.node);
  /** @param {string[]} sizes */
  const put = (sizes, byTile = false) => {
    mark(sizes);
    say([...said], byTile && said.length === of);
  };
  /** @param {Answer | null} answer */
  const mark = (answer) => {
    said = Array.isArray(answer) ? answer.map(String).slice(0, of) : [];
    boxes.forEach((box, i) => {
      box.textContent = said[i] ?? "";
      box.setAttribute("aria-label", fill(said[i] ? words.slot_full : words.slot_empty, { i: i + 1, size: said[i] }));
    });
  };
  mark(null);
  return { node, mark, focus: tiles.focus };
}

/** @param {Truth} truth @param {Say} say */
function choose(truth, say) {
  /** @type {number[]} */
  let said = [];
  const made = buttons(
    truth.options,
    "options",
    words.answer,
    (i, done) => {
      if (!truth.all_of) said = [i];
      else said = said.includes(i) ? said.filter((k) => k !== i) : [...said, i].sort((a, b) => a - b);
      say(said, done);
    },
    truth.all_of,
  );
  /** @param {Answer | null} answer */
  const mark = (answer) => {
    said = Array.isArray(answer) ? answer.map(Number) : [];
    made.mark((i) => said.includes(i));
  };
  return { ...made, mark };
}

/** @returns {Asking} */
function change() {
  return { node: el("p", "hint", words.hint_do), mark: () => {}, focus: () => {} };
}
