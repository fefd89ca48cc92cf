// A step of a lesson on a follower's phone: its options or a keypad, and what is said to the own answer once it is shown.

import { add, button, described, el, fill, finely, phrase } from "../../kit/browser/dom.js";
import { grouped } from "../../kit/browser/language.js";
import { map } from "./phonemap.js";
import { others } from "./votes.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").StepBody} StepBody */
/** @typedef {{body: StepBody, mine: number | null, typed: string, of: number, said: number}} Answering mine: the own answer */

const KEYS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", ".", "0", "⌫"];
const NUMBER = /^-?\d{1,12}([.]\d{0,9})?$/;
const SHORT = 12; // letters of options that share a line
const SHOWN = 5; // options that get most
const DIGITS = 6; // that are said of a number that was typed

/** The number that was typed; null where it is none. @param {string} text */
export function numberOf(text) {
  const plain = text
    .trim()
    .replace(/−/g, "-")
    .replace(",", ".")
    .replace(/^(-?)\./, "$10.");
  return NUMBER.test(plain) ? Number(plain) : null;
}

/** A part with words of the step, which may be in a language of their own. @template {HTMLElement} T @param {T} part @param {StepBody} body @returns {T} */
export function spoken(part, { language }) {
  if (language) return Object.assign(part, { lang: language, dir: "auto" });
  for (const name of ["lang", "dir"]) part.removeAttribute(name);
  return part;
}

/** An answer as people say it. @param {StepBody} body @param {number} answer */
export function named({ options, unit }, answer) {
  if (options.length) return options[answer] ?? "";
  const text = grouped(answer, Math.min(DIGITS, (String(answer).split(".")[1] ?? "").length)).replace("-", "−");
  return unit ? `${text} ${unit}` : text;
}

/** @param {HTMLElement} box @param {Answering} now @param {(answer: number) => void} say @param {(text: string) => void} types */
export function ask(box, now, say, types) {
  const { body, mine } = now;
  const title = spoken(el("h1", "question", body.question), body);
  const note = el("p", "note");
  if (mine !== null) note.append(...phrase(words.step_said, { said: [named(body, mine), "k"] }));
  else note.textContent = body.options.length ? words.step_choose : words.step_type;
  const count = el("p", "note count", fill(words.have_said, { n: now.said, of: now.of }));
  const meter = el("div", "meter");
  add(meter, "i").style.width = `${(100 * now.said) / Math.max(1, now.of)}%`;
  const answers = body.options.length ? options(now, say) : keypad(now, say, types);
  const evidence = body.picture ? [map(body.picture, mine === null ? null : (body.tokens?.[mine] ?? null))] : [];
  box.replaceChildren(title, note, ...(mine === null ? [] : [count, meter]), ...evidence, answers);
}

/** @param {Answering} now @param {(answer: number) => void} say */
function options({ body, mine }, say) {
  const isShort = body.options.every((text) => text.length <= SHORT);
  const list = described(el("div", isShort ? "options short" : "options"), "group", words.step_answers);
  body.options.forEach((text, i) => {
    const node = spoken(
      button(text, "", () => say(i)),
      body,
    );
    node.setAttribute("aria-pressed", String(i === mine));
    list.append(node);
  });
  return list;
}

/** @param {Answering} now @param {(answer: number) => void} say @param {(text: string) => void} types */
function keypad({ body, mine, typed }, say, types) {
  const form = el("form", "keypad");
  const line = add(form, "label", "line");
  const field = add(line, "input");
  Object.assign(field, { type: "text", autocomplete: "off", value: typed });
  field.inputMode = "none"; // the keys below are larger than a phone's own
  field.setAttribute("aria-label", words.step_number);
  if (!typed && mine !== null) field.placeholder = String(mine).replace("-", "−");
  add(line, "span").textContent = body.unit;
  const send = button(words.step_send, "primary", () => {});
  send.type = "submit";
  const changed = () => {
    types(field.value);
    send.disabled = numberOf(field.value) === null;
  };
  const keys = add(form, "div", "keys");
  const press = (/** @type {string} */ key) => {
    const { value } = field;
    if (key === "⌫") field.value = value.slice(0, -1);
    else if (key === "±") field.value = /^[-−]/.test(value) ? value.slice(1) : `−${value}`;
    else field.value = value + key;
    changed();
  };
  for (const key of KEYS) {
    const node = button(key, "key", () => press(key));
    if (key === "⌫") node.setAttribute("aria-label", words.step_erase);
    keys.append(node);
  }
  const sign = button("±", "key", () => press("±"));
  sign.setAttribute("aria-label", words.step_sign);
  const row = add(form, "div", "send");
  row.append(sign, send);
  field.addEventListener("input", changed);
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const answer = numberOf(field.value);
    if (answer !== null) say(answer);
  });
  changed();
  return form;
}

/** Voting is closed, and the wall has the votes. @param {HTMLElement} box @param {Answering} now */
export function wait(box, { body, mine }) {
  const said = el("h1", "result");
  if (mine === null) said.textContent = words.said_nothing;
  else said.append(...phrase(words.step_you_said, { said: [named(body, mine), "k"] }));
  box.replaceChildren(said, el("p", "note", words.step_wait), spoken(el("p", "note asked", body.question), body));
}

/** The answer, and the reply to the own one. @param {HTMLElement} box @param {Answering} now */
export function answered(box, { body, mine }) {
  const parts = [spoken(el("p", "note asked", body.question), body)];
  const title = el("h1", "result");
  const reply = body.replies?.find(([answer]) => answer === mine);
  if (mine === null) title.textContent = words.said_nothing;
  else title.append(...phrase(words.step_you_said, { said: [named(body, mine), reply?.[2] ? "h" : "k"] }));
  parts.push(title);
  if (reply) {
    const own = el("div", "reply");
    if (reply[4]) add(own, "p", "b").textContent = reply[4];
    own.append(...reply[3].map((line) => el("p", "", line)));
    parts.push(spoken(own, body));
  }
  const is = el("div", "reply true");
  add(is, "p", "b").textContent = fill(words.step_true, { true: body.true ?? "" });
  is.append(...(body.words ?? []).map((line) => el("p", "", line)));
  parts.push(spoken(is, body));
  if (body.values?.length) parts.push(spoken(bars(body, mine), body));
  if (reply) parts.push(el("p", "note", others(Math.max(0, reply[1] - 1))));
  box.replaceChildren(...parts);
}

// The shares of the run: those of the options that get most, and of the own one
/** @param {StepBody} body @param {number | null} mine */
function bars({ options, values = [], right = [] }, mine) {
  const order = options.map((_, i) => i).sort((a, b) => values[b] - values[a]);
  const which = [...new Set([...order.slice(0, SHOWN), ...(mine === null ? [] : [mine])])];
  const list = el("div", "shares");
  for (const i of which) {
    const line = add(list, "p", i === mine && !right.includes(i) ? "you" : "");
    add(line, "span").textContent = options[i];
    add(add(line, "u"), "i").style.width = `${(100 * values[i]) / Math.max(...values, 0.01)}%`;
    add(line, "b").textContent = finely(values[i]);
  }
  return list;
}
