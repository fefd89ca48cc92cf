// The end of the pass at one word: the last norm, a logit for every token of the vocabulary, and the loss of the word that follows.

import { add, apart, fill, fixed, number, percent, pinned, quoted } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { unpack } from "../../../kit/browser/messages.js";
import { draw, svg } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { columnsOf, Sheet } from "./sheet.js";
import { largest, length, limit } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */
/** @typedef {[word: string, logit: number, p: number]} Word */
/** @typedef {{norm: [centre: number, scale: number] | null, words: Word[], log_sum_exp: number, mean: number, deviation: number, lowest: number, losses: (number | null)[], before: Float32Array, after: Float32Array, gain: Float32Array | null, shift: Float32Array | null, refused?: string}} Ending */

const MOST = 10; // of the curve: a loss above it is drawn at its top

/** @param {Uint8Array} bytes @returns {Ending} */
export function readEnding(bytes) {
  const [header, body] = unpack(bytes);
  const array = (/** @type {string} */ name) => {
    const [at, [n]] = header.arrays[name] ?? [0, [0]];
    return header.arrays[name] ? new Float32Array(body, at, n) : null;
  };
  return { ...header, before: array("before"), after: array("after"), gain: array("gain"), shift: array("shift") };
}

/** @param {Shown} on @returns {Picture} */
const nothing = ({ ending }) => ({
  rows: 1,
  columns: 1,
  opens: [0, 0],
  show: () => {},
  from: () => ({ title: ending?.refused ?? words.guess_waiting }),
  numbers: () => ({ columns: ["x"], rows: [] }),
});

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
function lastNorm(host, on) {
  const { ending: found } = on;
  if (!found?.norm || found.refused) return nothing(on);
  const sheet = new Sheet(host, on);
  const { before, after, gain, shift, norm } = found;
  const [centre, scale] = norm;
  const divided = before.map((x) => (x - centre) / scale);
  const rows = /** @type {[string, Float32Array][]} */ ([
    [words.stream, before],
    [fill(words.ending_divided, { r: fixed(scale) }), divided],
    [words.ending_head_reads, after],
  ]);
  const tall = Math.min(64 * sheet.r, sheet.height / 3 - 30 * sheet.r);
  rows.forEach(([name, vector], i) =>
    sheet.strip(i, (8 + i * 28) * sheet.r + i * tall, name, vector, {
      height: tall,
      limit: limit(vector),
      note: fill(words.length, { x: long(length(vector)) }),
    }),
  );
  return {
    rows: 3,
    columns: before.length,
    opens: [2, largest(after)],
    show: (cell) => sheet.mark(cell),
    from: ([, j]) => ({
      title: fill(words.ending_norm_title, { j, q: on.q[0] }),
      pieces: [
        { label: `h[${j}]`, value: fixed(after[j], 3), strong: true },
        { op: "=" },
        { label: `x[${j}]`, value: fixed(before[j], 3) },
        ...(shift ? [{ op: "−" }, { label: words.ending_mean, value: fixed(centre, 3) }] : []),
        { op: "÷" },
        { label: shift ? words.deviation : words.row_rms, value: fixed(scale, 3) },
        { op: "×" },
        { label: "γ", value: fixed(gain?.[j] ?? 1, 3) },
        ...(shift ? [{ op: "+" }, { label: "β", value: fixed(shift[j], 3) }] : []),
      ],
    }),
    numbers: () => columnsOf(["x", "divided", "h"], [before, divided, after]),
  };
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
function wordBars(host, on) {
  const { ending: found } = on;
  if (!found || found.refused) return nothing(on);
  const sheet = new Sheet(host, on);
  const { r } = sheet;
  const narrow = sheet.width < 560;
  const name = (narrow ? 84 : 118) * r;
  const logits = (sheet.width - name) * (narrow ? 0.3 : 0.24);
  const middle = name + logits + 74 * r;
  const chances = sheet.width - middle - 76 * r;
  const top = 26 * r;
  const tall = Math.min(38 * r, (sheet.height - top) / found.words.length);
  const most = Math.max(...found.words.map(([, logit]) => Math.abs(logit)), 1e-9);
  sheet.label(name, 0, "top", words.ending_logit);
  sheet.label(
    middle,
    0,
    "top",
    fill(chances < 380 * r ? words.ending_chance : words.ending_chance_of, { n: number(on.header.vocab) }),
  );
  /** @type {HTMLElement[]} */
  const hits = [];
  found.words.forEach(([word, logit, p], i) => {
    const y = top + tall * (i + 0.5);
    const hit = add(host, "div", "rowhit");
    pinned(hit, { top: y - tall / 2, height: tall - 1, right: 0 });
    hit.addEventListener("pointerenter", () => on.point([i, 0]));
    hit.addEventListener("pointerleave", () => on.leave());
    hit.addEventListener("click", () => on.choose({ cell: `${i}.0` }));
    hits.push(hit);
    sheet.label(0, y, i ? "r" : "r vo here", word.trim() || quoted(word), name - 12 * r);
    const bar = (/** @type {number} */ left, /** @type {number} */ width, /** @type {string} */ look) =>
      pinned(add(host, "div", `bar chosen ${look}`), { left, top: y, width: Math.max(1, width) });
    bar(name, (logits * Math.abs(logit)) / most, logit < 0 ? "less" : "other");
    sheet.label(name + logits + 6 * r, y, "mute", fixed(logit));
    bar(middle, chances * p, "vo");
    sheet.label(middle + chances * p + 8 * r, y, i ? "mute" : "here", percent(p));
  });
  const rest = Math.max(0, 1 - found.words.reduce((sum, [, , p]) => sum + p, 0));
  return {
    rows: found.words.length,
    columns: 1,
    opens: [0, 0],
    show: ([row]) => hits.forEach((hit, i) => hit.classList.toggle("on", i === row)),
    from: ([row]) => {
      const [word, logit, p] = found.words[Math.max(0, Math.min(found.words.length - 1, row))];
      return {
        title: fill(words.ending_share, { w: word.trim(), n: number(on.header.vocab) }),
        pieces: [
          { label: word.trim() || "␣", value: percent(p), strong: true },
          { op: "=" },
          { label: `e^(${fixed(logit)} − ${fixed(found.log_sum_exp)})`, value: fixed(p, 4) },
        ],
        note: fill(words.ending_spread, {
          n: number(on.header.vocab),
          m: fixed(found.mean),
          sd: fixed(found.deviation),
          low: fixed(found.lowest),
          k: found.words.length,
          rest: percent(rest),
        }),
      };
    },
    numbers: () => ({ columns: ["word", "logit", "probability"], rows: found.words }),
  };
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
function lossCurve(host, on) {
  const { ending: found } = on;
  if (!found || found.refused) return nothing(on);
  const sheet = new Sheet(host, on);
  const { r, paint } = sheet;
  const own = on.header.query;
  const narrow = sheet.width < 560;
  // Left −ln p, right the loss of every word of the text: the orange one is of the followed place.
  const [left, wide] = [34 * r, (narrow ? sheet.width : sheet.width * 0.44) - 50 * r];
  const high = (narrow ? sheet.height * 0.45 : sheet.height) - 56 * r;
  const top = 26 * r;
  const x = (/** @type {number} */ p) => left + p * wide;
  const y = (/** @type {number} */ loss) => top + high - (Math.min(loss, MOST) / MOST) * high;
  const picture = svg("svg", { width: sheet.width, height: sheet.height, class: "over", "aria-hidden": "true" });
  host.append(picture);
  sheet.label(0, 0, "top", words.ending_curve);
  for (const loss of [0, 5, MOST]) {
    draw(picture, "path", { d: `M${left} ${y(loss)}H${left + wide}`, stroke: paint.css("line") });
    sheet.label(0, y(loss), "mute r", String(loss), left - 6 * r);
  }
  for (const p of [0, 0.5, 1]) sheet.label(x(p) - 20 * r, top + high + 14 * r, "mute c", percent(p), 40 * r);
  const steps = Array.from({ length: 121 }, (_, i) => Math.exp((-MOST * (120 - i)) / 120));
  draw(picture, "path", {
    d: steps.map((p, i) => `${i ? "L" : "M"}${x(p).toFixed(1)} ${y(-Math.log(p)).toFixed(1)}`).join(""),
    stroke: paint.css("ink"),
    "stroke-width": 2,
    fill: "none",
  });
  const loss = found.losses[own];
  const [best, , p] = found.words[0];
  const dots = /** @type {[string, number, number, string][]} */ ([
    ...(loss === null ? [] : [[on.labels[own + 1] ?? "", Math.exp(-loss), loss, paint.css("query")]]),
    ...(loss !== null && on.labels[own + 1]?.trim() === best.trim()
      ? []
      : [[best, p, -Math.log(p), paint.css("vocab")]]),
  ]);
  for (const [word, chance, height, fillOf] of dots) {
    draw(picture, "circle", { cx: x(chance), cy: y(height), r: 6 * r, fill: fillOf });
    const onLeft = chance > 0.5;
    sheet.label(
      onLeft ? x(chance) - 150 * r : x(chance) + 12 * r,
      y(height) - 14 * r,
      `here${onLeft ? " r" : ""}`,
      `${apart(quoted(word.trim()))} ${fixed(height)}`,
      140 * r,
    );
  }
  const known = found.losses
    .map((one, i) => /** @type {[number, number | null]} */ ([i, one]))
    .filter(([, one]) => one !== null);
  const [x0, y0] = narrow ? [0, top + high + 40 * r] : [sheet.width * 0.48, 0];
  sheet.label(x0, y0, "top", words.ending_each);
  const shown =
    known.length <= 24 ? known : known.slice(Math.max(0, Math.min(known.length - 24, own - 12))).slice(0, 24);
  const tall = Math.min(26 * r, (sheet.height - y0 - 26 * r) / Math.max(1, shown.length));
  const most = Math.max(...shown.map(([, one]) => one ?? 0), 1e-9);
  const name = 96 * r;
  /** @type {HTMLElement[]} */
  const hits = [];
  shown.forEach(([i, one], at) => {
    const middle = y0 + 22 * r + tall * (at + 0.5);
    const hit = add(host, "div", "rowhit");
    pinned(hit, { left: x0, top: middle - tall / 2, height: tall - 1, right: 0 });
    hit.addEventListener("pointerenter", () => on.point([at, 0]));
    hit.addEventListener("pointerleave", () => on.leave());
    hit.addEventListener("click", () => on.choose({ query: String(i), cell: "", key: "" }));
    hits.push(hit);
    sheet.label(x0, middle, `r${i === own ? " q here" : ""}`, on.labels[i + 1] ?? "", name - 10 * r);
    pinned(add(host, "div", `bar chosen ${i === own ? "q" : "other"}`), {
      left: x0 + name,
      top: middle,
      width: Math.max(1, ((sheet.width - x0 - name - 60 * r) * (one ?? 0)) / most),
    });
    sheet.label(sheet.width - 50 * r, middle, i === own ? "here r" : "mute r", fixed(one ?? 0), 46 * r);
  });
  return {
    rows: Math.max(1, shown.length),
    columns: 1,
    opens: [
      Math.max(
        0,
        shown.findIndex(([i]) => i === own),
      ),
      0,
    ],
    show: ([row]) => hits.forEach((hit, i) => hit.classList.toggle("on", i === row)),
    from: ([row]) => {
      const [i, one] = shown[row] ?? [own, null];
      if (one === null) return { title: words.ending_no_loss };
      return {
        title: fill(words.ending_loss_title, { q: quoted(on.labels[i]), w: quoted(on.labels[i + 1] ?? "") }),
        pieces: [
          { label: words.ending_loss, value: fixed(one), strong: true },
          { op: "=" },
          { label: "−ln p", value: `−ln ${percent(Math.exp(-one))}` },
        ],
      };
    },
    numbers: () => ({
      columns: ["position", "token", "next", "loss"],
      rows: known.map(([i, one]) => [i, on.labels[i], on.labels[i + 1] ?? "", one ?? 0]),
    }),
  };
}

/** @type {Record<string, (host: HTMLElement, on: Shown) => Picture>} */
export const ENDINGS = { lastnorm: lastNorm, words: wordBars, loss: lossCurve };

const strong = (/** @type {string} */ text) => [text, ""];

/**
 * The sentence of one of these stations. @param {Shown} on
 * @returns {[says: string, parts: Record<string, unknown>, equation: string, more: Record<string, unknown>]}
 */
export function endingSays(on) {
  const { ending: found, header, step, labels } = on;
  const { kind } = step;
  const scored = header.tied ? "words_tied" : "words";
  const equation =
    kind === "lastnorm" ? (found?.shift ? "norm_layer" : "norm_rms") : kind === "words" ? scored : "loss";
  if (!found || found.refused) return ["ending_waiting", {}, equation, {}];
  if (kind === "lastnorm") {
    const n = on.layersAfter;
    const said = { x: strong(long(length(found.before))), r: strong(fixed(found.norm?.[1] ?? 1)) };
    return [n > 1 ? "lastnorm_more" : n ? "lastnorm_one" : "lastnorm", { ...said, n }, equation, {}];
  }
  const [word, , p] = found.words[0];
  if (kind === "words")
    return [
      "words",
      { n: strong(number(header.vocab)), d: header.d_model, w: [quoted(word.trim()), "vo"], p: strong(percent(p)) },
      equation,
      {},
    ];
  const loss = found.losses[header.query];
  const [best, more] = [fixed(-Math.log(p)), found.words[1]];
  if (loss === null)
    return more
      ? [
          "loss_open",
          {
            w: [quoted(word.trim()), "vo"],
            a: strong(best),
            v: [quoted(more[0].trim()), "vo"],
            b: strong(fixed(-Math.log(more[2]))),
          },
          equation,
          {},
        ]
      : ["loss_one", { w: [quoted(word.trim()), "vo"], a: strong(best) }, equation, {}];
  return [
    "loss",
    {
      w: [quoted(labels[header.query + 1] ?? ""), "vo"],
      a: strong(fixed(loss)),
      p: strong(percent(Math.exp(-loss))),
      v: [quoted(word.trim()), "vo"],
      b: strong(best),
    },
    equation,
    {},
  ];
}
