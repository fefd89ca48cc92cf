// The rack of changes: what is swept, switches, the temperature, another sentence, another model or step, and Undo.

import { WORDS as words } from "./constants.js";
import { add, button, described, el, fill, setField } from "../../../kit/browser/dom.js";
import { edited, temperature, withEdit, without } from "./numbers.js";
import { pointed } from "../../../kit/browser/language.js";

const TEMPERATURES = [0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8, 4];
const PLAIN = { edits: "", against: "", other: "", pick: "off", layer: "", head: "", query: "", key: "", moved: "" };

export class Rack {
  /** @param {HTMLElement} box @param {(changes: Record<string, string>) => void} choose */
  constructor(box, choose) {
    this.box = box;
    this.choose = choose;
    const line = add(box, "div", "rack");
    add(line, "b").textContent = words.change;
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    for (const [sweep, text, help] of [
      ["parts", words.each_part, words.each_part_help],
      ["heads", words.silence, words.silence_help],
      ["looks", words.cut, words.cut_help],
      ["patch", words.patch, words.patch_help],
    ]) {
      this.buttons[sweep] = line.appendChild(button(text, "quiet", () => this.turn(sweep), help));
    }
    const open = () => this.more.setAttribute("aria-expanded", String(box.classList.toggle("open")));
    this.more = line.appendChild(button(words.whole_run, "quiet whole", open, words.whole_run_help));
    this.more.setAttribute("aria-expanded", "false");
    for (const [word, [text, help]] of Object.entries(words.toggles)) {
      this.buttons[word] = line.appendChild(button(text, "quiet toggle", () => this.toggle(word), help));
    }
    const label = add(line, "label", "temperature");
    label.append(words.temperature);
    label.title = words.temperature_help;
    this.slider = add(label, "input");
    Object.assign(this.slider, { type: "range", min: "0", max: String(TEMPERATURES.length - 1), step: "1" });
    this.slider.addEventListener("input", () => this.warm());
    this.degrees = add(label, "span", "degrees");
    const other = add(box, "div", "rack");
    const sentence = add(other, "label", "other");
    sentence.append(words.other_text);
    sentence.title = words.other_text_help;
    this.text = add(sentence, "input");
    Object.assign(this.text, { type: "text", ariaLabel: words.other_text_label });
    this.text.addEventListener("change", () => this.take(this.text.value.trim()));
    this.model = this.select(other, words.other_model);
    this.step = this.select(other, words.step);
    this.undo = other.appendChild(button(words.undo, "quiet", () => this.choose(PLAIN), words.undo_help));
    this.chips = described(add(other, "span", "chips"), "group", words.kept);
    /** @type {Record<string, string>} */
    this.values = {};
  }

  /** @param {HTMLElement} line @param {string} name */
  select(line, name) {
    const label = add(line, "label", "other");
    label.append(name);
    const select = add(label, "select");
    const take = () => this.choose({ other: select.value, against: "", pick: "off", moved: "" }); // one change at a time
    select.addEventListener("change", take);
    return select;
  }

  // Another sentence: parts are then taken from it; a link is compared as a whole
  /** @param {string} against */
  take(against) {
    const { sweep } = this.values;
    const isTaken = sweep === "patch" || (sweep === "parts" && !/^(https?:|\?)/.test(against));
    this.choose({ against, ...(against ? { other: "" } : {}), pick: isTaken ? "on" : "off", moved: "" });
    if (sweep === "parts" && against && isTaken) this.choose({ how: "patch", measure: "ld" });
  }

  /** @param {string} sweep */
  turn(sweep) {
    if (sweep === "parts") return this.choose({ sweep, group: "off", other: "", pick: "on", moved: "" });
    const on = this.values.sweep === sweep && this.values.pick !== "off";
    this.choose({ sweep, pick: on ? "off" : "on", moved: "" });
  }

  /** @param {string} word */
  toggle(word) {
    const on = edited(this.values.edits, word) !== undefined;
    this.choose({ edits: withEdit(this.values.edits, word, on ? "" : word), pick: "off", moved: "" });
  }

  warm() {
    const value = TEMPERATURES[Number(this.slider.value)];
    this.degrees.textContent = pointed(String(value));
    this.choose({
      edits: withEdit(this.values.edits, "temperature", value === 1 ? "" : `temperature_${value}`),
      pick: "off",
      moved: "",
    });
  }

  /** @param {import("./types.js").Header} data */
  fit(data) {
    for (const sweep of ["heads", "patch"]) this.buttons[sweep].hidden = data.parts;
    this.buttons.parts.hidden = !data.parts;
    for (const [word, [, says]] of Object.entries(words.toggles)) {
      const why = data.cannot[word];
      this.buttons[word].disabled = Boolean(why);
      this.buttons[word].title = why ?? says;
    }
    this.fill(this.model, data.models);
    this.fill(this.step, data.steps);
    const label = /** @type {HTMLElement} */ (this.step.parentElement);
    label.hidden = data.steps.length === 0;
  }

  /** @param {HTMLSelectElement} select @param {[string, string][]} options */
  fill(select, options) {
    select.replaceChildren(
      ...[["", words.none], ...options].map(([value, text]) => Object.assign(el("option", "", text), { value })),
    );
  }

  /** @param {Record<string, string>} values @param {[text: string, said: string][]} edits what the server says of them */
  draw(values, edits) {
    this.values = values;
    for (const sweep of ["parts", "heads", "looks", "patch"])
      this.buttons[sweep].setAttribute("aria-pressed", String(values.sweep === sweep && values.pick !== "off"));
    for (const word of Object.keys(words.toggles))
      this.buttons[word].setAttribute("aria-pressed", String(edited(values.edits, word) !== undefined));
    const degrees = temperature(values.edits);
    const nearest = TEMPERATURES.reduce(
      (best, t, i) => (Math.abs(Math.log(t / degrees)) < Math.abs(Math.log(TEMPERATURES[best] / degrees)) ? i : best),
      4,
    );
    this.slider.value = String(nearest);
    this.slider.setAttribute("aria-valuetext", pointed(String(degrees)));
    this.degrees.textContent = pointed(String(degrees));
    setField(this.text, values.against);
    for (const select of [this.model, this.step])
      select.value = [...select.options].some((o) => o.value === values.other) ? values.other : "";
    const known = new Map(edits);
    const kept = values.edits
      .split("~")
      .filter((edit) => edit && !Object.hasOwn(words.toggles, edit) && !edit.startsWith("temperature_"));
    this.chips.replaceChildren(
      ...kept.map((edit) => {
        const said = known.get(edit) ?? edit;
        const drop = () => this.choose({ edits: without(values.edits, edit), moved: "" });
        return Object.assign(button(`${said} ×`, "quiet chip", drop), {
          ariaLabel: fill(words.drop, { change: said }),
        });
      }),
    );
  }
}
