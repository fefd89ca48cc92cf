// The two pictures of a mixture of experts: the router's scores, and what the chosen experts add up to.

import { fill, fixed } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { WORDS as words } from "./constants.js";
import { termsOf } from "./from.js";
import { asked, Sheet, x } from "./sheet.js";
import { largest, length, limit } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */
const PER_ROW = 16; // experts

// An expert and its weight in words, by its place among those that were taken
/** @param {Shown} on @param {number} place @param {boolean} [isShort] */
function nameOf({ walk, header }, place, isShort) {
  const e = header.chosen[place];
  if (isShort) return e < 0 ? words.mix_shared_short : fill(words.mix_expert_short, { e });
  const w = fixed(walk.array("mlp.taken")[place], 3);
  return e < 0 ? fill(words.mix_shared, { w }) : fill(words.mix_expert, { e, w });
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function router(host, on) {
  const sheet = new Sheet(host, on);
  const { walk, header, paint } = on;
  const { r } = sheet;
  const scores = walk.array("mlp.router");
  /** @type {number[]} */
  const chosen = header.chosen;
  const columns = Math.min(PER_ROW, scores.length);
  const rows = Math.ceil(scores.length / columns);
  const tall = Math.max(7, Math.min(30 * r, (sheet.height - 30 * r) / rows));
  const width = Math.min(64 * r, (sheet.width - sheet.left - 4) / columns);
  const grid = sheet.grid(
    sheet.left,
    10 * r,
    {
      rows,
      columns,
      width,
      height: tall,
      limit: limit(scores),
      paint,
      size: width > 30 * r && tall > 14 * r ? 10.5 * r : 0,
      value: (row, j) => scores[row * columns + j],
    },
    (row, j) => [0, Math.min(row * columns + j, scores.length - 1)],
  );
  sheet.label(0, 10 * r + tall / 2, "r", words.router_of, sheet.left - 12 * r);
  const marked = (/** @type {number} */ j, /** @type {string} */ name) => ({
    row: Math.floor(j / columns),
    column: j % columns,
    colour: paint.css(name),
    width: 2,
  });
  return {
    rows: 1,
    columns: scores.length,
    opens: [0, Math.max(0, chosen[0] ?? 0)],
    show: ([, j]) =>
      grid.mark([...chosen.filter((e) => e >= 0).map((e) => marked(e, "head")), { ...marked(j, "query"), width: 3 }]),
    from: ([, j]) =>
      asked(on, "mlp.router", [j], (answer) => {
        const place = chosen.indexOf(j);
        const took = place < 0 ? words.router_left : words.router_taken;
        return {
          title: fill(words.router_title, { j, d: header.d_model }),
          name: `r[${j}]`,
          digits: 3,
          note: fill(took, { e: j, w: fixed(walk.array("mlp.taken")[Math.max(0, place)], 3) }),
          ...termsOf(answer, x),
        };
      }),
    numbers: () => ({
      columns: ["expert", "score", "weight"],
      rows: Array.from(scores, (v, e) => [e, v, chosen.includes(e) ? walk.array("mlp.taken")[chosen.indexOf(e)] : 0]),
    }),
  };
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function mix(host, on) {
  const sheet = new Sheet(host, on);
  const { walk, header, paint } = on;
  const { r } = sheet;
  const d = header.d_model;
  const taken = walk.array("mlp.taken");
  const made = walk.array("mlp.experts");
  const total = walk.array("mlp.out");
  const n = taken.length;
  const tall = Math.max(6, Math.min(26 * r, (sheet.height - 60 * r) / n));
  const right = 62 * r;
  const part = (/** @type {number} */ e, /** @type {number} */ j) => taken[e] * made[e * d + j];
  const parts = Array.from({ length: n }, (_, e) => Float32Array.from({ length: d }, (__, j) => part(e, j)));
  const grid = sheet.grid(
    sheet.left,
    0,
    {
      rows: n,
      columns: d,
      width: (sheet.width - sheet.left - right) / d,
      height: tall,
      limit: Math.max(limit(total), ...parts.map((row) => limit(row))),
      paint,
      gap: 0,
      value: part,
    },
    (e, j) => [e, j],
  );
  parts.forEach((row, e) => {
    sheet.label(0, tall * (e + 0.5), "r", nameOf(on, e, sheet.width < 560), sheet.left - 12 * r);
    sheet.label(sheet.width - right + 6 * r, tall * (e + 0.5), "r mute", long(length(row)), right - 10 * r);
  });
  const y = n * tall + 12 * r;
  sheet.strip(n, y, words.mix_all, total, { height: 28 * r, className: "here", right });
  sheet.label(sheet.width - right + 6 * r, y + 14 * r, "here r", long(length(total)), right - 10 * r);
  return {
    rows: n + 1,
    columns: d,
    opens: [n, largest(total)],
    show: ([e, j]) => {
      sheet.mark([e, j]);
      grid.mark([{ ...(e < n ? { row: e } : {}), column: j, colour: paint.css("query"), width: 1 }]);
    },
    from: ([e, j]) =>
      e < n
        ? asked(on, "mlp.experts", [e, j], (answer) => ({
            title: fill(header.chosen[e] < 0 ? words.mix_one_shared : words.mix_one, { e: header.chosen[e], j }),
            name: `m[${j}]`,
            digits: 3,
            ...termsOf(answer, (i) => fill(words.neuron, { j: i })),
          }))
        : asked(on, "mlp.out", [j], (answer) => ({
            title: fill(words.mix_title, { j, q: on.labels[header.query] }),
            name: `m[${j}]`,
            digits: 3,
            ...termsOf(answer, (place) => nameOf(on, place)),
          })),
    numbers: () => ({
      columns: ["index", ...Array.from({ length: n }, (_, e) => nameOf(on, e)), "together"],
      rows: Array.from(total, (v, j) => [j, ...parts.map((row) => row[j]), v]),
    }),
  };
}
