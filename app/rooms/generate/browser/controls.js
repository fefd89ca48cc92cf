// The line of controls: writing on, how the next word is chosen, what it is chosen from, and the pages of the picture.

import { add, button, choice, fixed, selectBox, setAll, setField, setText } from "../../../kit/browser/dom.js";
import { BEAMS, WORDS as words } from "./constants.js";

const HOW = /** @type {const} */ (["sample", "greedy", "beam"]);
const PAGES = /** @type {const} */ (["columns", "beams", "layers", "cache"]);
// Choices of the lists; a link may say any other, which is then in its list
const TOP_K = ["0", "1", "2", "3", "5", "10", "20", "40", "100"];
const TOP_P = ["1", "0.95", "0.9", "0.8", "0.7", "0.5", "0.3"];
const MIN_P = ["0", "0.02", "0.05", "0.1", "0.2", "0.5"];

/** @typedef {{choose: (changes: Record<string, string>) => void, set: (changes: Record<string, string>) => void, how: (how: string) => void, step: (by: number) => void, play: () => void, again: () => void, begin: () => void, page: (page: string) => void}} Acts */
/** @typedef {{label: HTMLElement, input: HTMLInputElement, output: HTMLElement}} Slider */
/** @typedef {{label: HTMLElement, box: HTMLSelectElement}} List */

export class Controls {
  /** @param {HTMLElement} parent @param {Acts} acts */
  constructor(parent, acts) {
    this.acts = acts;
    this.box = add(parent, "div", "controls");
    const plays = add(this.box, "span", "plays");
    /** @param {string} text @param {string} help @param {() => void} act @param {string} [look] */
    const play = (text, help, act, look = "quiet") =>
      Object.assign(plays.appendChild(button(text, look, act, help)), { ariaLabel: help });
    this.go = play("", words.play_help, acts.play, "go");
    play("◀", words.back, () => acts.step(-1));
    play("▶", words.on, () => acts.step(1));
    this.again = this.box.appendChild(button(words.again, "quiet", acts.again, words.again_help));
    this.begin = this.box.appendChild(button(words.begin_again, "quiet", acts.begin, words.begin_again_help));
    this.how = choice(
      words.how,
      [
        ["sample", words.sample, words.sample_help],
        ["greedy", words.greedy, words.greedy_help],
        ["beam", words.beam, words.beam_help],
      ],
      "sample",
      (how) => acts.how(how),
    );
    this.box.append(this.how);
    this.temperature = this.slider(words.temperature, { min: 0.1, max: 3, step: 0.1 }, (value) => ({
      t: String(value),
    }));
    this.topK = this.list(words.top_k, TOP_K, "k");
    this.topP = this.list(words.top_p, TOP_P, "p");
    this.minP = this.list(words.min_p, MIN_P, "minp");
    this.seed = this.number(words.seed, words.seed_help, 0, 999_999, (value) => ({ seed: value }));
    this.beams = this.number(words.beams, words.beam_help, BEAMS[0], BEAMS[1], (value) => ({ beams: value }));
    this.pages = choice(
      words.pages,
      [
        ["columns", words.columns, words.columns_help],
        ["beams", words.tree, words.tree_help],
        ["layers", words.layers_page, words.layers_help],
        ["cache", words.cache, words.cache_help],
      ],
      "columns",
      (page) => acts.page(page),
    );
    this.pages.classList.add("pages");
    this.box.append(this.pages);
  }

  /** @param {string} name @param {string[]} values @param {"k" | "p" | "minp"} param @returns {List} */
  list(name, values, param) {
    const label = add(this.box, "label", "list");
    label.append(`${name} `);
    const box = selectBox(
      name,
      values.map((value) => [value, offered(param, value)]),
      values[0],
      (value) => this.acts.set({ [param]: value }),
    );
    label.append(box);
    return { label, box };
  }

  /** @param {string} name @param {{min: number, max: number, step: number}} range @param {(value: number) => Record<string, string>} say @returns {Slider} */
  slider(name, range, say) {
    const label = add(this.box, "label", "range");
    label.append(`${name} `);
    const input = add(label, "input");
    Object.assign(input, {
      type: "range",
      ...Object.fromEntries(Object.entries(range).map(([key, value]) => [key, String(value)])),
    });
    const output = add(label, "output");
    input.addEventListener("input", () => this.acts.set(say(Math.round(Number(input.value) * 100) / 100)));
    return { label, input, output };
  }

  /** @param {string} name @param {string} help @param {number} min @param {number} max @param {(value: string) => Record<string, string>} say */
  number(name, help, min, max, say) {
    const label = add(this.box, "label", "whole");
    label.title = help;
    label.append(`${name} `);
    const input = add(label, "input");
    Object.assign(input, { type: "number", min: String(min), max: String(max), step: "1" });
    input.addEventListener("change", () => {
      const value = Math.max(min, Math.min(max, Math.round(Number(input.value)) || min));
      input.value = String(value);
      this.acts.choose(say(String(value)));
    });
    return { label, input };
  }

  /** @param {Record<string, string>} values @param {boolean} playing @param {boolean} isWritten */
  draw(values, playing, isWritten) {
    setText(this.go, playing ? `❙❙ ${words.stop}` : `▶ ${words.play}`);
    const help = playing ? words.stop_help : words.play_help; // begins with what the button says
    setAll(this.go, { "aria-pressed": String(playing), "aria-label": help, title: help });
    HOW.forEach((name, i) => setAll(this.how.children[i], { "aria-pressed": String(values.how === name) }));
    PAGES.forEach((name, i) => setAll(this.pages.children[i], { "aria-pressed": String(values.page === name) }));
    /** @type {HTMLElement} */ (this.pages.children[1]).hidden = values.how !== "beam";
    const { label, input, output } = this.temperature;
    const temperature = Number(values.t);
    if (Number(input.value) !== temperature) input.value = String(temperature);
    setText(output, fixed(temperature, 1));
    setAll(input, { "aria-valuetext": fixed(temperature, 1) });
    label.classList.toggle("idle", values.how !== "sample");
    label.hidden = values.how === "beam";
    /** @param {List} list @param {"k" | "p" | "minp"} param */
    const set = ({ label, box }, param) => {
      const value = values[param];
      if (![...box.options].some((option) => option.value === value)) box.add(new Option(offered(param, value), value));
      if (box.value !== value) box.value = value;
      label.classList.toggle("idle", values.how !== "sample");
      label.hidden = values.how === "beam";
    };
    set(this.topK, "k");
    set(this.topP, "p");
    set(this.minP, "minp");
    this.again.hidden = values.how === "beam";
    this.begin.hidden = !isWritten;
    this.seed.label.hidden = values.how !== "sample";
    this.beams.label.hidden = values.how !== "beam";
    setField(this.seed.input, values.seed);
    setField(this.beams.input, values.beams);
  }
}

/** @param {"k" | "p" | "minp"} param @param {string} value */
function offered(param, value) {
  if (value === (param === "p" ? "1" : "0")) return words.off;
  return param === "k" ? value : fixed(Number(value), String(value).split(".")[1]?.length ?? 0);
}
