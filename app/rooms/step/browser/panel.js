// What stands above the line at a step: where it is, what can be changed there, sentence, equation, code, and the picture.

import { arrow, choice, el, fill, fixed, focusable, number, worded } from "../../../kit/browser/dom.js";
import { tableBox } from "../../../kit/browser/table.js";
import { DIVISOR, WORDS as words } from "./constants.js";
import { ATTENTION } from "./foot.js";
import { guessPicture } from "./guesses.js";
import { ledger } from "./ledger.js";
import { PICTURES } from "./pictures.js";
import { nameOf } from "./line.js";
import { above } from "./sentences.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./step.js").StepThrough} View */
const LEDGER = ["scores", "scale", "mask", "softmax", "z"];
const NEAR = 0.02; // of the model's own divisor: a hand that comes as near as this means that one
const BY_KEY = 0.05; // of it, that an arrow key moves: a hundredth would never leave its neighbourhood
const MLP = ["gate", "up", "act", "product", "down", "router", "mix"];

/** @param {View} view @param {Shown} on @param {number} at */
export function drawPanel(view, on, at) {
  const { step } = on;
  tell(view, on, at);
  const name = nameOf(step, on.header);
  view.pic.replaceChildren();
  view.pic.style.minHeight = "";
  focusable(view.pic, "group", fill(words.picture, { name }));
  view.pointed = null;
  const table = view.values.show === "table";
  view.pic.classList.toggle("tabled", table);
  view.box = on.box = table ? undefined : view.pic.getBoundingClientRect();
  view.stepPicture = (LEDGER.includes(step.kind) ? ledger : step.kind === "next" ? guessPicture : PICTURES[step.kind])(
    table ? el("div") : view.pic,
    on,
  );
  if (!table) return;
  const { columns, rows } = view.stepPicture.numbers();
  view.pic.append(tableBox(name, columns, rows));
}

// What stands above the picture: where it is and what can be changed there, and the sentence, equation and code
/** @param {View} view @param {Shown} on @param {number} at */
export function tell(view, on, at) {
  const { step, header, head } = on;
  const { kind } = step;
  const steps = on.walk.steps;
  const where = ["token", "embed"].includes(kind)
    ? words.where_before
    : ["next", "result", "classes", "lastnorm", "words", "loss"].includes(kind)
      ? words.where_after
      : ATTENTION.includes(kind)
        ? fill(step.id.startsWith("cross-") ? words.where_cross : words.where_head, { layer: header.layer, head })
        : MLP.includes(kind)
          ? fill(words.where_mlp, { layer: header.layer })
          : kind === "why"
            ? words.where_fresh
            : fill(words.where_layer, { layer: header.layer });
  // A slider that is held must stay the element that it is.
  // Where a row of weights is shown, the token that most heads rest on is named
  const rests = ["softmax", "z"].includes(step.kind) && on.site?.site === "attn" && !view.isProjected;
  if (rests) view.sink.draw(header.stack, on.labels);
  const asks = JSON.stringify([
    view.key,
    header.stack,
    header.layer,
    header.query,
    step.id,
    view.values.show,
    view.values.act,
    view.values.norm,
    view.isProjected,
    rests,
  ]);
  if (asks !== view.asks) {
    view.where = el("b", "", where);
    view.meta.replaceChildren(
      view.where,
      el("span", "", fill(words.step_of, { i: at + 1, n: steps.length, name: nameOf(step, header) })),
      controls(view, on),
      ...(rests ? [view.sink.line] : []),
    );
  } else {
    if (view.where.textContent !== where) view.where.textContent = where;
    view.slide?.(on.at.divisor);
  }
  view.asks = asks;
  const said = above(on);
  view.big.replaceChildren(...said.sentence);
  const m = el("span", "m");
  m.append(...said.equation);
  const sizes = el("span", "sh");
  step.axes.forEach(([axis, n], i) =>
    sizes.append(i ? ", " : "[", `${worded(words.shape, axis)} `, el("b", "", number(n))),
  );
  sizes.append("]");
  if (view.eq.textContent !== `${sizes.textContent}${m.textContent}${said.code}`)
    view.eq.replaceChildren(sizes, m, el("code", "", said.code));
}

// What can be changed at this step
/** @param {View} view @param {Shown} on */
function controls(view, { step, header, at, site, walk }) {
  const box = el("span", "ctl");
  view.slide = undefined;
  if (step.kind === "scale" && site) {
    const base = site.temperature / site.scale;
    const input = el("input");
    const most = Math.max(16, Math.ceil(base * 2));
    Object.assign(input, {
      type: "range",
      min: "0.5",
      max: String(Math.min(DIVISOR[1], most)),
      step: "0.01",
      value: String(at.divisor),
    });
    input.setAttribute("aria-label", words.divide_by);
    const value = el("b", "", fixed(at.divisor));
    let now = at.divisor;
    view.slide = (divisor) => {
      now = divisor;
      value.textContent = fixed(divisor);
      if (Math.abs(Number(input.value) / divisor - 1) > 0.02) input.value = String(divisor);
    };
    const take = () => {
      const isOwn = Math.abs(Number(input.value) / base - 1) < NEAR;
      now = isOwn ? base : Number(input.value); // two keys may come before it is drawn
      view.choose({ divide: isOwn ? "" : input.value });
    };
    input.addEventListener("input", take);
    input.addEventListener("keydown", (event) => {
      const [down, right] = arrow(event) ?? [0, 0];
      if (!down && !right) return;
      event.preventDefault();
      input.value = String(now + (right - down) * base * BY_KEY);
      take();
    });
    const label = el("label", "", words.divide_by);
    label.append(input, value);
    box.append(label);
  }
  if (step.kind === "act" || step.kind === "product") {
    const own = header.activation;
    /** @type {[string, string][]} */
    const options = ["relu", own.startsWith("gelu") ? own : "gelu", "silu"].map((name) => [
      name === own ? "own" : name.replace("_tanh", ""),
      name === own ? fill(words.norm_own, { name: worded(words.acts, name) }) : worded(words.acts, name),
    ]);
    box.append(
      choice(words.act_switch, options, view.values.act === own ? "own" : view.values.act, (act) =>
        view.choose({ act }),
      ),
    );
  }
  if (step.kind === "norm" && walk.norms[step.value].of > 1) {
    const name = walk.norms[step.value].mean ? "LayerNorm" : "RMSNorm";
    box.append(
      choice(
        words.norm_switch,
        [
          ["own", fill(words.norm_own, { name })],
          ["batch", words.norm_batch],
        ],
        view.values.norm,
        (norm) => view.choose({ norm }),
      ),
    );
  }
  if (view.isProjected) return box;
  box.append(
    view.player,
    choice(
      words.as,
      [
        ["picture", words.as_picture],
        ["table", words.as_table],
      ],
      view.values.show,
      (show) => view.choose({ show }),
    ),
  );
  return box;
}
