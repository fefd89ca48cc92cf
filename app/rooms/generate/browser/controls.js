// The line of controls: play, how the next word is chosen, and what is chosen from.

import { add, button, choice, described, fixed, setAll, setField, setText } from "../../../kit/browser/dom.js";
import { BEAMS, WORDS as words } from "./constants.js";

const SLIDER_K = 101; // one place behind the largest top-k of the slider: off

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {{choose: (changes: Record<string, string>) => void, first: () => void, step: (by: number) => void, play: () => void}} Acts */
/** @typedef {{label: HTMLElement, input: HTMLInputElement, output: HTMLElement}} Slider */

export class Controls {
  /** @param {HTMLElement} parent @param {Acts} acts @param {import("../../../kit/browser/chooser.js").HeadChooser} chooser */
  constructor(parent, acts, chooser) {
    this.acts = acts;
    this.box = add(parent, "div", "controls");
    const plays = add(this.box, "span", "plays");
    /** @param {string} text @param {string} help @param {() => void} act @param {string} [look] */
    const play = (text, help, act, look = "quiet") =>
      Object.assign(plays.appendChild(button(text, look, act, help)), { ariaLabel: help });
    play("|◀", words.first, acts.first);
    play("◀", words.back, () => acts.step(-1));
    this.go = play("", words.play_help, acts.play, "go");
    play("▶", words.on, () => acts.step(1));
    this.how = choice(
      words.how,
      [
        ["greedy", words.greedy, words.greedy_help],
        ["sample", words.sample, words.sample_help],
        ["beam", words.beam, words.beam_help],
      ],
      "greedy",
      (how) => acts.choose({ how }),
    );
    this.box.append(this.how);
    this.temperature = this.slider(words.temperature, { min: 0.1, max: 3, step: 0.1 }, (value) => ({
      t: String(value),
    }));
    this.topK = this.slider(words.top_k, { min: 1, max: SLIDER_K, step: 1 }, (value) => ({
      k: String(value === SLIDER_K ? 0 : value),
    }));
    this.topP = this.slider(words.top_p, { min: 0.05, max: 1, step: 0.05 }, (value) => ({ p: String(value) }));
    this.seed = this.number(words.seed, words.seed_help, 0, 999_999, (value) => ({ seed: value }));
    this.beams = this.number(words.beams, words.beam_help, BEAMS[0], BEAMS[1], (value) => ({ beams: value }));
    const looking = described(add(this.box, "span", "looking"), "group", words.looking);
    looking.append(`${words.looking} `);
    this.chooser = chooser;
    this.mean = button(words.mean, "quiet", () => acts.choose({ layer: "", head: "" }));
    looking.append(this.mean, chooser.button);
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
    input.addEventListener("input", () =>
      this.acts.choose({ how: "sample", ...say(Math.round(Number(input.value) * 100) / 100) }),
    );
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

  /** @param {Record<string, string>} values @param {boolean} playing */
  draw(values, playing) {
    setText(this.go, playing ? `❙❙ ${words.stop}` : `▶ ${words.play}`);
    const help = playing ? words.stop_help : words.play_help; // begins with what the button says
    setAll(this.go, { "aria-pressed": String(playing), "aria-label": help, title: help });
    const names = ["greedy", "sample", "beam"];
    names.forEach((name, i) => setAll(this.how.children[i], { "aria-pressed": String(values.how === name) }));
    /** @param {Slider} slider @param {number} value @param {string} text */
    const set = ({ label, input, output }, value, text) => {
      if (Number(input.value) !== value) input.value = String(value);
      setText(output, text);
      setAll(input, { "aria-valuetext": text });
      label.classList.toggle("idle", values.how !== "sample");
      label.hidden = values.how === "beam";
    };
    set(this.temperature, Number(values.t), fixed(Number(values.t), 1));
    set(this.topK, Number(values.k) || SLIDER_K, Number(values.k) ? values.k : words.off);
    set(this.topP, Number(values.p), Number(values.p) < 1 ? fixed(Number(values.p)) : words.off);
    this.seed.label.hidden = values.how !== "sample";
    this.beams.label.hidden = values.how !== "beam";
    setField(this.seed.input, values.seed);
    setField(this.beams.input, values.beams);
    setAll(this.mean, { "aria-pressed": String(values.layer === "" || values.head === "") });
    this.chooser.draw();
  }
}
