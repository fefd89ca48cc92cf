// A norm: what it is given and what comes out, row by row, or column by column as BatchNorm has it.

import { add, el, fill, fixed, pinned, quoted } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { eased, mix } from "./motion.js";
import { columnsOf, Sheet, x } from "./sheet.js";
import { limit, spread } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function norm(host, on) {
  const sheet = new Sheet(host, on);
  const { walk, header, step, paint, labels } = on;
  const { r } = sheet;
  const d = header.d_model;
  const name = step.value;
  const norm = walk.norms[name];
  const batch = on.chosen.norm === "batch";
  const rows = walk.array(`${name}.before`);
  const n = rows.length / d;
  const own = norm.of > 1 ? header.query - norm.first : 0;
  const means = walk.row(`${name}.columns`, 0);
  const deviations = walk.row(`${name}.columns`, 1);
  const stats = Array.from({ length: n }, (_, row) => spread(rows.subarray(row * d, (row + 1) * d)));
  const scales = stats.map(([mean, sd]) =>
    norm.mean ? [mean, Math.sqrt(sd * sd + norm.eps)] : [0, Math.sqrt(sd * sd + mean * mean + norm.eps)],
  );
  const normed = (/** @type {number} */ row, /** @type {number} */ j) => {
    const v = rows[row * d + j];
    return batch ? (v - means[j]) / Math.sqrt(deviations[j] ** 2 + 1e-5) : (v - scales[row][0]) / scales[row][1];
  };
  const narrow = sheet.width < 560;
  const left = narrow ? 0 : 84 * r;
  const right = narrow ? 0 : 150 * r;
  const below = narrow ? 108 * r : 0;
  const tall = Math.max(3, Math.min(12 * r, narrow ? 7 : (sheet.height - 52 * r) / 2 / n));
  const each = tall * n + 24 * r + below;
  if (narrow) host.style.minHeight = `${2 * each}px`;
  const title = batch ? words.norm_batch : norm.mean ? "LayerNorm" : "RMSNorm";
  const first =
    norm.of > n
      ? fill(words.norm_before_some, { a: norm.first, b: norm.first + n - 1, n: norm.of, d })
      : fill(words.norm_before, { n, d });
  /** @type {HTMLElement[]} */
  const facts = [];
  const before = (/** @type {number} */ row, /** @type {number} */ j) => rows[row * d + j];
  const pictures = [before, normed].map((value, i) => {
    const y = i * each;
    sheet.label(left, y, "top", i ? fill(words.norm_after, { name: title }) : first);
    const grid = sheet.grid(
      left,
      y + 17 * r,
      {
        rows: n,
        columns: d,
        width: (sheet.width - left - right) / d,
        height: tall,
        limit: i ? 2.6 : limit(rows.subarray(own * d, own * d + d)),
        paint,
        gap: 0,
        value,
        alpha: batch ? undefined : (row) => (row === own ? 1 : 0.38),
        frames: batch ? [] : [{ row: own, colour: paint.css("query") }],
      },
      (row, j) => [row, j],
    );
    if (!narrow && tall * n > 12)
      sheet.label(0, y + 17 * r + tall * (own + 0.5), "r q here", labels[header.query], left - 10 * r);
    const box = add(host, "div", "stats");
    pinned(box, { left: narrow ? 0 : sheet.width - right + 14 * r, top: y + 17 * r + (narrow ? tall * n : 6 * r) });
    facts.push(box);
    return grid;
  });
  const columnOf = (/** @type {number} */ j) => [means[j], deviations[j]];
  const columnAfter = (/** @type {number} */ j) =>
    batch
      ? [0, deviations[j] / Math.sqrt(deviations[j] ** 2 + 1e-5)]
      : spread(Array.from({ length: n }, (_, row) => normed(row, j)));
  const say = (/** @type {number} */ row, /** @type {number} */ j) => {
    facts.forEach((box, i) => {
      const values = i ? Array.from({ length: d }, (_, c) => normed(row, c)) : rows.subarray(row * d, row * d + d);
      const [m, s] = spread(values);
      const [cm, cs] = i ? columnAfter(j) : columnOf(j);
      const line = (
        /** @type {string} */ text,
        /** @type {number} */ a,
        /** @type {number} */ b,
        /** @type {boolean} */ fixedTo,
      ) => {
        box.append(
          el("div", "note", text),
          el("div", fixedTo ? "ok" : "", fill(words.mean_sd, { m: fixed(a), s: fixed(b) })),
        );
      };
      box.replaceChildren();
      line(fill(words.row_of, { q: labels[row + norm.first] ?? labels[header.query] }), m, s, i === 1 && !batch);
      if (norm.of > 1) line(fill(words.column_of, { j }), cm, cs, i === 1 && batch);
      if (!norm.mean && !batch)
        box.append(el("div", "note", fill(words.rms_of, { r: fixed(Math.sqrt(s * s + m * m)) })));
    });
  };
  const gamma = walk.array(`${name}.gamma`);
  const beta = walk.has(`${name}.beta`) ? walk.array(`${name}.beta`) : null;
  const most = limit(rows.subarray(own * d, own * d + d));
  return {
    rows: n,
    columns: d,
    opens: [own, Math.min(36, d - 1)],
    // The rows come down from those before, and are divided on their way
    at: (moment) => {
      const share = eased(moment);
      const { canvas, options } = pictures[1];
      options.value =
        moment < 1 ? (row, j) => mix((before(row, j) / most) * 2.6, normed(row, j), share) : (row, j) => normed(row, j);
      pictures[1].draw();
      canvas.style.transform = moment < 1 ? `translateY(${-each * (1 - share)}px)` : "";
    },
    show: ([row, j]) => {
      say(row, j);
      for (const grid of pictures)
        grid.mark(
          batch
            ? [{ column: Math.max(0, Math.min(d - 3, j - 1)), columns: Math.min(3, d), colour: paint.css("query") }]
            : [{ row, column: j, colour: paint.css("query") }],
        );
    },
    from: ([row, j]) => {
      const of = quoted(labels[row + norm.first] ?? labels[header.query]);
      const y = normed(row, j);
      const [mean, scale] = batch ? [means[j], Math.sqrt(deviations[j] ** 2 + 1e-5)] : scales[row];
      const takes = batch || norm.mean;
      return {
        title: fill(batch ? words.norm_note_batch : words.norm_note, { j, k: of, n: batch ? norm.of - 1 : d - 1 }),
        pieces: [
          { label: words.normed, value: fixed(y), strong: true },
          { op: "=" },
          ...(takes ? [{ op: "(" }] : []),
          { label: x(j), value: fixed(before(row, j), 3) },
          ...(takes
            ? [{ op: "−" }, { label: batch ? words.column_mean : words.row_mean, value: fixed(mean, 3) }, { op: ")" }]
            : []),
          { op: "÷" },
          { label: takes ? words.deviation : words.row_rms, value: fixed(scale, 3) },
          ...(batch
            ? []
            : [
                { op: words.then },
                { label: `γ[${j}]`, value: fixed(gamma[j], 3) },
                ...(beta ? [{ op: "+" }, { label: `β[${j}]`, value: fixed(beta[j], 3) }] : []),
                { op: "=" },
                { label: `out[${j}]`, value: fixed(y * gamma[j] + (beta ? beta[j] : 0)), strong: true },
              ]),
        ],
      };
    },
    numbers: () =>
      columnsOf(
        ["before", "normed"],
        [rows.subarray(own * d, own * d + d), Float32Array.from({ length: d }, (_, j) => normed(own, j))],
      ),
  };
}
