// The MLP: its neurons before and after the activation, the curve that they lie on, and those that write most.

import { add, fill, fixed, number, worded } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { draw, svg as element } from "../../../kit/browser/picture/svg.js";
import { ACTIVATIONS } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { termsOf } from "./from.js";
import { eased, mix, part } from "./motion.js";
import { asked, column, columnsOf, Sheet, x } from "./sheet.js";
import { flow, highest, Skyline } from "./skyline.js";
import { largest } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */
const FANS = 5; // neurons that fan out: of more none can be told from another

// The normed stream above, the neurons below it, and the matrix between: each neuron is one sum over all that is above
/** @param {HTMLElement} host @param {Shown} on @param {"up" | "gate"} what @returns {Picture} */
export function neurons(host, on, what) {
  const sheet = new Sheet(host, on);
  const { r, width, paint } = sheet;
  const values = on.walk.array(`mlp.${what}`);
  const read =
    on.walk.has("mlp.norm") && on.header.order !== "post" ? on.walk.array("mlp.norm") : on.additionOf("mlp")[0];
  const n = read.length;
  const gap = 20 * r;
  const tall = Math.max(36, sheet.height * 0.22);
  const y1 = gap + tall + sheet.height * 0.13 + gap;
  const high = Math.max(60, sheet.height - y1);
  sheet.label(0, 0, "top", fill(words.read_by, { n: number(n) }));
  if (width >= 560) sheet.label(width - 220 * r, 0, "top r", words.sky_scale, 220 * r);
  const svg = element("svg", { class: "over", "aria-hidden": "true", width, height: sheet.height });
  host.append(svg);
  const [from, to] = [gap + tall + 3, y1 - gap - 3];
  const inset = n < values.length ? (width * (1 - n / values.length)) / 8 : 0; // fewer numbers become more
  draw(svg, "path", {
    d: `M${inset} ${from}H${width - inset}L${width} ${to}H0Z`,
    fill: paint.css("mute"),
    "fill-opacity": 0.08,
  });
  sheet.label(0, (from + to) / 2, "c mute", fill(words.times, { what, n: number(n), f: number(values.length) }), width);
  const above = new Skyline(sheet, { x: inset, y: gap, width: width - 2 * inset, height: tall, values: read }, (j) => [
    0,
    j,
  ]);
  const grown = new Skyline(sheet, { x: 0, y: y1, width, height: high, values }, (j) => [1, j]);
  sheet.label(0, y1 - 17 * r, "top here", fill(words.neurons, { what, n: number(values.length) }));
  grown.peaks(width < 560 ? 2 : 3);
  const peaks = /** @type {HTMLElement[]} */ ([...host.querySelectorAll(".peak")]);
  return {
    rows: 2,
    columns: Math.max(n, values.length),
    opens: [1, largest(values)],
    // Neuron after neuron grows from 0
    at: (moment) => {
      const last = values.length - 1 || 1;
      const share = (/** @type {number} */ i) => eased(part(moment, (i / last) * 0.6, 0.4 + (i / last) * 0.6));
      grown.values = moment < 1 ? values.map((v, i) => v * share(i)) : values;
      grown.draw();
      for (const peak of peaks) peak.style.opacity = moment < 1 ? "0" : "";
    },
    show: ([row, j]) => {
      above.mark(row ? -1 : j);
      grown.mark(row ? j : -1);
    },
    from: ([row, j]) =>
      row
        ? asked(on, `mlp.${what}`, [Math.min(j, values.length - 1)], (answer) => ({
            title: fill(words.neuron_title, { j, d: on.header.d_model, what }),
            name: `${what === "up" ? "h" : "g"}[${j}]`,
            digits: 3,
            ...termsOf(answer, x),
          }))
        : {
            title: fill(words.read_number, {
              j: Math.min(j, n - 1),
              x: fixed(read[Math.min(j, n - 1)], 3),
              f: number(values.length),
            }),
          },
    numbers: () => column(what, values),
  };
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function activation(host, on) {
  const sheet = new Sheet(host, on);
  const { walk, header } = on;
  const { r } = sheet;
  const gated = walk.has("mlp.gate");
  const before = walk.array(gated ? "mlp.gate" : "mlp.up");
  const own = /** @type {"gelu"} */ (header.activation);
  const act = on.chosen.act === "own" ? own : on.chosen.act;
  const after = on.chosen.act === "own" || act === own ? walk.array("mlp.act") : walk.activated(act);
  const narrow = sheet.width < 560;
  const wide = narrow ? sheet.width : sheet.width * 0.4;
  const tall = narrow ? 190 : sheet.height - 24 * r;
  const canvas = add(host, "canvas", "grid");
  canvas.setAttribute("aria-hidden", "true");
  curves(canvas, wide, tall, before, act, on, 1);
  const gx = narrow ? 0 : wide + 26 * r;
  const gy = narrow ? tall + 20 : 0;
  const room = sheet.width - gx;
  const opened = gated ? Float32Array.from(before, ACTIVATIONS[act]) : null;
  const vectors = /** @type {[string, ArrayLike<number>, boolean][]} */ (
    opened
      ? [
          [fill(words.sky_opened, { f: worded(words.acts, act) }), opened, false],
          [words.sky_up, walk.array("mlp.up"), true],
          [fill(words.sky_products, { n: number(after.length) }), after, false],
        ]
      : [
          [words.act_before, before, false],
          [words.act_after, after, false],
        ]
  );
  const gap = 20 * r;
  const each = Math.max(30, ((narrow ? 330 : sheet.height) - gap * vectors.length) / vectors.length);
  const lim = highest(before);
  const lines = vectors.map(([title, values, isQuiet], i) => {
    const y = gy + i * (each + gap);
    sheet.label(gx, y, `top${i === vectors.length - 1 ? " here" : ""}`, title);
    const own = opened && i ? undefined : lim; // before and after on one scale
    return new Skyline(sheet, { x: gx, y: y + gap, width: room, height: each, values, limit: own, isQuiet }, (j) => [
      0,
      j,
    ]);
  });
  const last = lines[lines.length - 1];
  last.peaks(2);
  if (!narrow) sheet.label(gx + room - 220 * r, gy, "top r", words.sky_scale, 220 * r);
  const peaks = /** @type {HTMLElement[]} */ ([...host.querySelectorAll(".peak")]);
  sheet.label(0, tall + 8 * r, "note", words.act_curve);
  return {
    rows: 1,
    columns: before.length,
    opens: [0, before.indexOf(Math.max(...before))],
    // The dots drop from the diagonal onto the curve; then each is taken times up, where there is a gate
    at: (moment) => {
      const dropped = eased(part(moment, 0, 0.6));
      const share = eased(part(moment, gated ? 0.5 : 0, 1));
      curves(canvas, wide, tall, before, act, on, moment < 1 ? dropped : 1);
      if (opened) {
        lines[0].values = moment < 1 ? opened.map((v, i) => mix(before[i], v, dropped)) : opened;
        lines[0].draw();
      }
      last.values = moment < 1 ? after.map((v, i) => mix(gated ? 0 : before[i], v, share)) : after;
      last.draw();
      for (const peak of peaks) peak.style.opacity = moment < 1 ? "0" : "";
    },
    show: ([, j]) => {
      for (const line of lines) line.mark(j);
    },
    from: ([, j]) => {
      if (gated) {
        const [g, up] = [ACTIVATIONS[act](before[j]), walk.array("mlp.up")[j]];
        return {
          title: fill(words.product_title, { j }),
          pieces: [
            { label: `h[${j}]`, value: fixed(after[j], 3), strong: true },
            { op: "=" },
            { label: `${worded(words.acts, act)}(${fixed(before[j], 3)})`, value: fixed(g, 3) },
            { op: "×" },
            { label: words.names.up, value: fixed(up, 3) },
          ],
        };
      }
      return {
        title: fill(words.neuron, { j }),
        note: words.act_note,
        pieces: [
          { label: "h", value: fixed(before[j], 3) },
          { op: "→" },
          ...["relu", own.startsWith("gelu") ? own : "gelu", "silu"].map((name) => ({
            label: worded(words.acts, name),
            value: fixed(name === own ? walk.array("mlp.act")[j] : ACTIVATIONS[name](before[j]), 3),
            strong: name === act,
          })),
        ],
      };
    },
    numbers: () => columnsOf(["before", "after"], [before, after]),
  };
}

// The three curves, and where this token's neurons lie on the chosen one
/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height @param {Float32Array} values @param {string} act @param {Shown} on @param {number} dropped how far the dots have come from the diagonal */
function curves(canvas, width, height, values, act, { paint, rem, header }, dropped) {
  const r = rem / 15.55;
  const ratio = devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px`, left: "0", top: "0" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  const [left, bottom] = [26 * r, height - 22 * r];
  const across = (/** @type {number} */ v) => left + ((v + 5) / 9) * (width - left - 6 * r);
  const up = (/** @type {number} */ v) => bottom - ((v + 0.6) / 4.6) * (bottom - 6 * r);
  context.font = `${12 * r}px "Source Sans", sans-serif`;
  context.strokeStyle = paint.css("line");
  context.fillStyle = paint.css("mute");
  for (let v = -4; v <= 4; v += 2) {
    context.beginPath();
    context.moveTo(across(v), up(4));
    context.lineTo(across(v), up(-0.6));
    context.stroke();
    context.textAlign = "center";
    context.fillText(fixed(v, 0), across(v), height - 6 * r);
  }
  for (let v = 0; v <= 4; v += 2) {
    context.beginPath();
    context.moveTo(left, up(v));
    context.lineTo(width, up(v));
    context.stroke();
    context.textAlign = "right";
    context.fillText(String(v), left - 5 * r, up(v) + 4);
  }
  const names = ["relu", header.activation.startsWith("gelu") ? header.activation : "gelu", "silu"];
  for (const name of [...names.filter((other) => other !== act), act]) {
    context.beginPath();
    context.strokeStyle = name === act ? paint.css("ink") : paint.css("hatch");
    context.lineWidth = (name === act ? 2.5 : 1.5) * r;
    for (let v = -5; v <= 4; v += 0.05) context.lineTo(across(v), up(ACTIVATIONS[name](v)));
    context.stroke();
  }
  context.fillStyle = paint.css("query");
  context.globalAlpha = 0.55;
  for (const v of values) {
    if (v <= -5 || v >= 4) continue;
    context.beginPath();
    context.arc(across(v), up(mix(v, ACTIVATIONS[act](v), dropped)), 2.1 * r, 0, 7);
    context.fill();
  }
  context.globalAlpha = 1;
}

// The neurons that write the longest vectors fan out to all of the stream
/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function down(host, on) {
  const sheet = new Sheet(host, on);
  const { walk, header } = on;
  const [act, wrote] = [walk.array("mlp.act"), walk.array("mlp.out")];
  const ten = /** @type {[number, number][]} */ (header.neurons);
  const shown = ten.slice(0, sheet.width < 560 ? 3 : FANS);
  const picture = flow(sheet, {
    from: act,
    to: wrote,
    above: fill(words.neurons_all, { n: number(act.length) }),
    below: fill(words.down_below, { n: number(wrote.length) }),
    fans: shown.map(([j, w], i) => ({
      at: (j + 0.5) / act.length,
      wide: 0.02,
      length: Math.abs(act[j]) * w,
      name: fill(words.neuron, { j: number(j) }),
      isOn: i === 0,
    })),
  });
  return {
    ...picture,
    rows: 2,
    columns: Math.max(act.length, wrote.length),
    opens: [1, largest(wrote)],
    from: ([row, at]) => {
      const j = Math.min(at, (row ? wrote : act).length - 1);
      if (!row) {
        const known = ten.find(([i]) => i === j);
        const title = fill(words.down_neuron, { j: number(j), h: fixed(act[j]) });
        return {
          title,
          note: known && fill(words.down_brings, { x: long(Math.abs(act[j]) * known[1]), w: fixed(known[1]) }),
        };
      }
      return asked(on, "mlp.out", [j], (answer) => ({
        title: fill(words.down_title, { j, f: number(header.d_ff) }),
        name: `m[${j}]`,
        digits: 3,
        ...termsOf(answer, (i) => fill(words.neuron, { j: i })),
      }));
    },
    numbers: () => column("m", wrote),
  };
}
