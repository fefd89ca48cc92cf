// The masks to begin with, and whether they are of this head or of every one.

import { button, choice, clamp, counted, described, el, fill } from "../../../kit/browser/dom.js";
import { draw, svg as element } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";

/** @type {Record<string, (q: number, k: number) => boolean>} */
const ICONS = {
  none: () => true,
  causal: (q, k) => k <= q,
  window: (q, k) => k <= q && q - k < 3,
  window_both: (q, k) => Math.abs(q - k) < 3,
  padding: (_, k) => k < 4,
  own: (q, k) => (q * 7 + k * 3) % 5 > 1,
};
const WIDEST = 64;

/** @param {number} size @param {boolean} causal @returns {string[]} */
export function windowSays(size, causal) {
  const [label, line] = words.card[size === 1 ? "window_one" : causal ? "window" : "window_both"];
  return [label, fill(line, { n: size - 1 })];
}

/** @param {import("./paint.js").Paint} paint @param {HTMLElement} place */
export function drawCards(paint, place) {
  const { view } = paint;
  const { values } = view;
  const causal = view.isCausal(paint.site.id);
  const modelIs = causal ? "causal" : "none";
  const painted = paint.forbid.size + paint.allow.size;
  const on = painted ? "own" : values.mask === "model" ? modelIs : values.mask;
  const state = [on, painted, values.window, values.first, values.scope, view.layout].join(" ");
  if (state === paint.cards) return;
  paint.cards = state;
  const plain = { forbid: "", allow: "", whose: "yours", stop: "0", first: "off", when: "before", fill: "inf" };
  const press = (/** @type {string} */ name) => {
    if (name === "padding") return view.choose({ lab: "padding", ...(view.opens("padding") ?? {}) });
    if (name === "own") return paint.brush?.box.focus();
    view.choose({ ...plain, mask: name === modelIs ? "model" : name, ...(name === modelIs ? {} : { scope: "all" }) });
  };
  const row = described(el("span", "presets"), "group", words.presets);
  /** @type {("none" | "causal" | "window" | "padding" | "own")[]} */
  const names = paint.site.id === "cross" ? ["none", "padding", "own"] : ["none", "causal", "window", "padding", "own"];
  for (const name of names) {
    const [label, line] =
      name === "window"
        ? windowSays(Number(values.window), causal)
        : words.card[name === "none" && causal ? "none_causal" : name];
    const one = button("", "preset", () => press(name));
    one.setAttribute("aria-pressed", String(on === name));
    const two = el("span", "", label);
    two.append(
      el(
        "small",
        "",
        name === modelIs ? words.model_own : name === "own" && painted ? counted(words.cells, painted) : line,
      ),
    );
    one.append(icon(paint, ICONS[name === "window" && !causal ? "window_both" : name]), two);
    if (name !== "window") {
      row.append(one);
      continue;
    }
    const box = el("span", "joined");
    box.append(one);
    for (const [by, sign, title] of /** @type {[number, string, string][]} */ ([
      [-1, "−", words.narrower],
      [1, "+", words.wider],
    ])) {
      const step = () =>
        view.choose({
          ...plain,
          first: values.first,
          scope: values.mask === "window" ? values.scope : "all",
          mask: "window",
          window: String(clamp(Number(values.window) + by, 1, WIDEST)),
        });
      box.append(Object.assign(button(sign, "preset", step, title), { ariaLabel: title }));
    }
    if (on === "window") {
      const first = button(
        words.with_first,
        "preset",
        () => view.choose({ first: values.first === "on" ? "off" : "on", stop: "0" }),
        words.with_first_help,
      );
      first.setAttribute("aria-pressed", String(values.first === "on"));
      box.append(first);
    }
    row.append(box);
  }
  const scope = choice(
    words.scope,
    [
      ["one", words.scopes.one],
      ["all", words.scopes.all],
    ],
    values.scope,
    (id) => {
      const stop = { 1: "2", 2: "1", 3: "2" }[values.stop];
      view.choose({ scope: id, whose: "yours", ...(stop && id !== values.scope ? { stop } : {}) });
    },
  );
  scope.classList.add("scope");
  paint.scope.replaceChildren(scope);
  place.replaceChildren(row);
  if (!view.narrow) return place.append(paint.scope);
  const chosen = row.querySelector('[aria-pressed="true"]')?.getBoundingClientRect();
  if (chosen) row.scrollLeft += chosen.right - row.getBoundingClientRect().right + 1;
}

/** @param {import("./paint.js").Paint} paint @param {(q: number, k: number) => boolean} may */
function icon(paint, may) {
  const svg = element("svg", { width: 25, height: 25, "aria-hidden": "true" });
  const { palette } = paint.view;
  for (let q = 0; q < 6; q++)
    for (let k = 0; k < 6; k++)
      draw(svg, "rect", {
        x: k * 4.2,
        y: q * 4.2,
        width: 3.5,
        height: 3.5,
        rx: 0.6,
        fill: may(q, k) ? palette.ramp[3] : palette.line,
      });
  return svg;
}
