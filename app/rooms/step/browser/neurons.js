// The MLP: its neurons before and after the activation, the curve that they lie on, and those that write most.

import { add, fill, fixed, number, pinned, worded } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { ACTIVATIONS } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { termsOf } from "./from.js";
import { eased, mix, part } from "./motion.js";
import { asked, column, columnsOf, Sheet, x } from "./sheet.js";
import { largest, length, limit } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */

/** @param {HTMLElement} host @param {Shown} on @param {"up" | "gate"} what @returns {Picture} */
export function neurons(host, on, what) {
  const sheet = new Sheet(host, on);
  const values = on.walk.array(`mlp.${what}`);
  const per = sheet.width < 560 ? 48 : 128;
  const rows = Math.ceil(values.length / per);
  const tall = Math.max(3, Math.min(25 * sheet.r, (sheet.height - 24 * sheet.r) / rows));
  sheet.label(0, 0, "top", fill(words.neurons, { n: number(values.length), what: words.neurons_before, per }));
  const grid = sheet.grid(
    0,
    20 * sheet.r,
    {
      rows,
      columns: per,
      width: sheet.width / per,
      height: tall,
      limit: limit(values),
      paint: sheet.paint,
      value: (row, j) => values[row * per + j] ?? NaN,
    },
    (row, j) => [0, Math.min(values.length - 1, row * per + j)],
  );
  return {
    rows: 1,
    columns: values.length,
    opens: [0, values.indexOf(Math.max(...values))],
    // Neuron after neuron grows from 0
    at: (moment) => {
      const last = values.length - 1 || 1;
      grid.options.value = (row, j) => {
        const i = row * per + j;
        return moment < 1
          ? values[i] * eased(part(moment, (i / last) * 0.6, 0.4 + (i / last) * 0.6))
          : (values[i] ?? NaN);
      };
      grid.draw();
    },
    show: ([, j]) => grid.mark([{ row: Math.floor(j / per), column: j % per, colour: sheet.paint.css("query") }]),
    from: ([, j]) =>
      asked(on, `mlp.${what}`, [j], (answer) => ({
        title: fill(words.neuron_title, { j, d: on.header.d_model, what }),
        name: `${what === "up" ? "h" : "g"}[${j}]`,
        digits: 3,
        ...termsOf(answer, x),
      })),
    numbers: () => column(what, values),
  };
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function activation(host, on) {
  const sheet = new Sheet(host, on);
  const { walk, header, paint } = on;
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
  const per = 48;
  const rows = Math.ceil(before.length / per);
  const cell = Math.max(2, ((narrow ? 300 : sheet.height) - 44 * r) / 2 / rows);
  const lim = limit(before);
  const grids = [before, after].map((values, i) => {
    const y = gy + i * (cell * rows + 24 * r);
    sheet.label(gx, y, "top", i ? words.act_after : words.act_before);
    return sheet.grid(
      gx,
      y + 18 * r,
      {
        rows,
        columns: per,
        width: room / per,
        height: cell,
        limit: i && gated ? limit(after) : lim,
        paint,
        gap: 0,
        value: (row, j) => values[row * per + j] ?? NaN,
      },
      (row, j) => [0, Math.min(before.length - 1, row * per + j)],
    );
  });
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
      grids[1].options.value = (row, j) => {
        const i = row * per + j;
        return moment < 1 ? mix(gated ? 0 : before[i], after[i], share) : (after[i] ?? NaN);
      };
      grids[1].draw();
    },
    show: ([, j]) => {
      for (const grid of grids) grid.mark([{ row: Math.floor(j / per), column: j % per, colour: paint.css("query") }]);
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

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function down(host, on) {
  const sheet = new Sheet(host, on);
  const { walk, header } = on;
  const { r } = sheet;
  const wrote = walk.array("mlp.out");
  const act = walk.array("mlp.act");
  const strip = sheet.strip(0, 6 * r, fill(words.adds, { what: words.what_mlp }), wrote, {
    height: 32 * r,
    note: fill(words.length, { x: long(length(wrote)) }),
  });
  sheet.label(sheet.left, 56 * r, "top here", words.neurons_ten);
  const ten = /** @type {[number, number][]} */ (header.neurons);
  const most = Math.max(...ten.map(([i, w]) => Math.abs(act[i]) * w), 1e-9);
  const room = sheet.width < 560 ? 0 : 300 * r;
  /** @type {{bar: HTMLElement, width: number}[]} */
  const bars = [];
  ten.forEach(([i, w], at) => {
    const y = 88 * r + at * Math.min(25 * r, (sheet.height - 104 * r) / 9);
    sheet.label(0, y, "r", fill(words.neuron, { j: i }), sheet.left - 12 * r);
    const bar = add(host, "div", "bar chosen ff");
    const width = ((sheet.width - sheet.left - room - 60 * r) * Math.abs(act[i]) * w) / most;
    pinned(bar, { left: sheet.left, top: y, width });
    bars.push({ bar, width });
    const value = fixed(Math.abs(act[i]) * w);
    sheet.label(
      sheet.width - room - 54 * r,
      y,
      "",
      room ? `${value} ${fill(words.neuron_is, { h: fixed(act[i]), j: i, w: fixed(w) })}` : value,
    );
  });
  return {
    rows: 1,
    columns: wrote.length,
    opens: [0, largest(wrote)],
    // The neurons write one after the other
    at: (moment) => {
      bars.forEach(({ bar, width }, i) => {
        bar.style.width = `${width * eased(part(moment, i * 0.05, 0.5 + i * 0.05))}px`;
      });
      strip.options.value = (_, j) => (moment < 1 ? eased(moment) * wrote[j] : wrote[j]);
      strip.draw();
    },
    show: (cell) => sheet.mark(cell),
    from: ([, j]) =>
      asked(on, "mlp.out", [j], (answer) => ({
        title: fill(words.down_title, { j, f: number(header.d_ff) }),
        name: `m[${j}]`,
        digits: 3,
        ...termsOf(answer, (i) => fill(words.neuron, { j: i })),
      })),
    numbers: () => column("m", wrote),
  };
}
