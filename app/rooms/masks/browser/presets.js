// The masks to begin with, and how the chosen one is applied: every head or this one, before or after the softmax, −∞ or −1e9.

import { button, choice, clamp, described, el, fill } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { draw, svg as element } from "../../../kit/browser/picture/svg.js";

/** @type {Record<string, (q: number, k: number) => boolean>} */
const ICONS = {
  none: () => true,
  causal: (q, k) => k <= q,
  window: (q, k) => k <= q && q - k < 2,
  padding: (_, k) => k < 4,
  own: (q, k) => (q * 7 + k * 5) % 3 !== 0,
};

/**
 * The name and the line of the preset of a window. One of one word is that word in any model; a wider one reaches back, and in a
 * model that sees both sides ahead as well.
 * @param {number} size @param {boolean} causal @returns {string[]}
 */
export function windowSays(size, causal) {
  const [label, line] = words.preset[size === 1 ? "window_one" : causal ? "window" : "window_both"];
  return [label, fill(line, { n: size - 1 })];
}

/**
 * The row of presets and options, made again when one of them changes.
 * @param {import("./paint.js").Paint} paint @param {HTMLElement} place
 */
export function drawPresets(paint, place) {
  const { view } = paint;
  const { values } = view;
  const cross = paint.site.id === "cross";
  const own = paint.forbid.size + paint.allow.size > 0;
  const causal = (paint.site.mask(view.place.layer, view.place.head)?.[1] ?? 0) === 1;
  const modelIs = causal ? "causal" : "none";
  const preset = own ? "own" : values.mask === "model" ? modelIs : values.mask;
  const state = [preset, values.window, values.scope, values.when, values.fill, paint.how].join(" ");
  if (state === paint.options) return;
  paint.options = state;
  const presets = described(el("span", "presets"), "group", words.presets);
  /** @type {(keyof typeof words.preset)[]} */
  const names = cross ? ["none", "padding", "own"] : ["none", "causal", "window", "padding", "own"];
  for (const name of names) {
    const [label, line] = name === "window" ? windowSays(Number(values.window), causal) : words.preset[name];
    const one = button("", "preset", () => press(paint, name, modelIs));
    one.setAttribute("aria-pressed", String(preset === name));
    const says = name === modelIs ? words.model_own : name === "own" && own ? words.own_painted : line;
    const two = el("span");
    two.append(label, el("small", "", says));
    one.append(icon(paint, ICONS[name]), two);
    presets.append(one);
    if (name !== "window") continue;
    const sizes = el("span", "seg steps");
    for (const [by, sign, title] of /** @type {[number, string, string][]} */ ([
      [-1, "−", words.narrower],
      [1, "+", words.wider],
    ])) {
      const step = () =>
        view.choose({ mask: "window", whose: "yours", window: String(clamp(Number(values.window) + by, 1, 64)) });
      sizes.append(Object.assign(button(sign, "", step, title), { ariaLabel: title }));
    }
    presets.append(sizes);
  }
  const options = el("span", "options");
  /** @param {string} name @param {string} label @param {Record<string, string>} found @param {string} [help] */
  const option = (name, label, found, help) => {
    const box = el("span", "option");
    box.append(el("span", "", label));
    if (help) box.title = help;
    const row = choice(label, Object.entries(found), values[name], (id) => view.choose({ [name]: id, whose: "yours" }));
    box.append(row);
    options.append(box);
  };
  option("scope", words.scope, words.scopes);
  option("when", words.when, words.whens, values.scope === "one" ? words.when_one : undefined);
  if (values.when === "before") option("fill", words.fill, words.fills, words.fill_help);
  place.replaceChildren(presets, options);
}

/** @param {import("./paint.js").Paint} paint @param {string} name @param {string} modelIs */
function press(paint, name, modelIs) {
  if (name === "padding") return paint.view.choose({ lab: "padding" });
  if (name === "own") return paint.brush?.box.focus();
  paint.view.choose({ mask: name === modelIs ? "model" : name, forbid: "", allow: "", whose: "yours" });
}

/** @param {import("./paint.js").Paint} paint @param {(q: number, k: number) => boolean} may */
function icon(paint, may) {
  const svg = element("svg", { width: 28, height: 28, "aria-hidden": "true" });
  const { palette } = paint.view.tones;
  for (let q = 0; q < 6; q++)
    for (let k = 0; k < 6; k++)
      draw(svg, "rect", {
        x: k * 4.6,
        y: q * 4.6,
        width: 4,
        height: 4,
        rx: 0.6,
        fill: may(q, k) ? palette.ramp[3] : palette.line,
      });
  return svg;
}
