// Scores to weighted sum as one ledger: a row for every key, whose columns fill step by step.

import { add, counted, el, fill, fixed, percent, pinned, quoted, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { softmax } from "./compute.js";
import { paintOn } from "../../../kit/browser/picture/canvas.js";
import { Grid } from "./grid.js";
import { eased, mix, part } from "./motion.js";
import { math } from "./sentences.js";
import { label as labelled } from "./sheet.js";
import { largest, limit } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
const ORDER = ["scores", "scale", "mask", "softmax", "z"];
// The divisor as a root: of d_head, or for DeBERTa of d_head for each of its terms
/** @param {number} divisor @param {number} dh */
function rootOf(divisor, dh) {
  const square = Math.round(divisor ** 2);
  return `√${Math.abs(square - divisor ** 2) < 1e-3 ? square : dh}`;
}

export const HEAVIEST = 15; // keys that a long text has rows for, beside the followed token and the others together

// Which keys have a row, in their order, and which are summed up in the last one
/**
 * @param {ArrayLike<number>} weights
 * @param {number | null} own the followed token among the keys
 * @param {number} key the one that is looked at
 * @param {number} [room] rows that there is room for
 * @returns {{rows: number[], others: number[]}}
 */
export function ledgerRows(weights, own, key, room = 20) {
  const n = weights.length;
  const all = Array.from({ length: n }, (_, k) => k);
  if (n <= Math.min(20, room)) return { rows: all, others: [] };
  const chosen = new Set(
    [...all].sort((a, b) => weights[b] - weights[a] || a - b).slice(0, Math.max(3, Math.min(HEAVIEST, room - 3))),
  );
  if (own !== null) chosen.add(own);
  chosen.add(key);
  return { rows: all.filter((k) => chosen.has(k)), others: all.filter((k) => !chosen.has(k)) };
}

/** @param {HTMLElement} host @param {Shown} on @returns {import("./types.js").Picture} */
export function ledger(host, on) {
  const { step, site, header, paint, rem, labels, keyLabels, keyNames } = on;
  let { at, head } = on;
  const { kind } = step;
  const isZ = kind === "z";
  const isBars = kind === "scale" || kind === "softmax"; // whose numbers are lengths
  const hasBelow = isZ || kind === "softmax"; // a sum below the rows
  const now = ORDER.indexOf(kind);
  const r = rem / 15.55;
  const dh = header.d_head;
  const own = site?.site === "attn" ? header.query : null;
  const box = on.box ?? host.getBoundingClientRect();
  const phone = box.width < 560;
  const narrow = box.width < 40 * rem;
  const extra = 26 * r;
  const top = (isZ || isBars ? 0 : extra) + 18 * r;
  const room = phone ? 20 : Math.floor((box.height - top - (hasBelow ? extra + 6 * r : 4)) / (0.94 * rem));
  const { rows, others } = ledgerRows(at.weights, own, on.key, room);
  const nRows = rows.length + (others.length ? 1 : 0);
  const biased = at.bias !== null;
  /** @type {[label: string, key: "raw" | "scaled" | "mask" | "exp" | "weights", width: number][]} */
  const columns = [
    [words.col_raw, "raw", 54],
    [
      at.divisor < 0.995
        ? fill(words.col_scaled_plain, { c: fixed(1 / at.divisor) })
        : fill(words.col_scaled, { c: fixed(at.divisor) }) + (biased ? ` ${words.col_bias}` : ""),
      "scaled",
      biased ? 84 : 56,
    ],
    [words.col_mask, "mask", 54],
    [words.col_exp, "exp", 54],
    [words.col_weight, "weights", 58],
  ];
  const shownColumns = narrow
    ? columns.filter(
        ([, key]) =>
          key === { scores: "raw", scale: "scaled", mask: "mask", softmax: "exp", z: "weights" }[kind] ||
          key === "weights",
      )
    : columns;
  const labelWidth = (narrow ? 72 : 84) * r;
  const barWidth = (phone ? 30 : 70) * r;
  const numbersWidth = shownColumns.reduce((sum, [, , width]) => sum + width * r, 0);
  const matrix = Math.max(40, box.width - labelWidth - numbersWidth - barWidth - 24 * r);
  const cell = matrix / dh;
  const tall = Math.max(
    phone ? (kind === "mask" ? 44 : 24) : 9,
    Math.min(28 * r, (box.height - top - (hasBelow ? extra + 6 * r : 4)) / nRows),
  );
  host.style.minHeight = phone ? `${top + tall * nRows + extra + 10}px` : "";
  const vectorTop = isZ ? top + tall * nRows + 6 * r : 0;
  const products = isZ
    ? (/** @type {number} */ k, /** @type {number} */ j) => at.weights[k] * on.value(k)[j]
    : (/** @type {number} */ k, /** @type {number} */ j) => at.q[j] * on.keyVector(k)[j];
  const rest = (/** @type {number} */ j) => others.reduce((sum, k) => sum + products(k, j), 0);
  const number = (/** @type {number} */ row, /** @type {number} */ j) =>
    row < rows.length ? products(rows[row], j) : isZ ? rest(j) : NaN;
  const limitOf = () => {
    const every = [];
    for (const k of rows) for (let j = 0; j < dh; j++) every.push(products(k, j));
    return isZ ? limit(every.concat(...at.z)) * 1.15 : limit(every);
  };
  const vector = () => (isZ ? at.z : at.q);
  const framesOf = () => (isZ ? [] : [{ row: rows.indexOf(on.key), colour: paint.css("key"), width: 1.6 }]);

  /** @param {number} x @param {number} y @param {string} className @param {Node[] | string} text @param {number} [width] */
  const label = (x, y, className, text, width) => labelled(host, x, y, className, text, width);
  const place = (/** @type {Grid} */ grid, /** @type {number} */ x, /** @type {number} */ y) =>
    pinned(grid.canvas, { left: x, top: y });

  // columns
  const current =
    { scores: ["raw"], scale: ["scaled"], mask: ["mask"], softmax: ["exp", "weights"], z: ["weights"] }[kind] ?? [];
  const reached = { raw: 0, scaled: 1, mask: 2, exp: 3, weights: 3 };
  let x = labelWidth + matrix + 12 * r;
  /** @type {{node: HTMLElement, key: string, i: number, there: boolean}[]} */
  const cells = [];
  for (const [text, key, width] of shownColumns) {
    const isNow = current.includes(key);
    const there = now >= reached[key] || (key === "weights" && now >= 1);
    if (isNow) {
      const tint = add(host, "div", "tint chosen");
      pinned(tint, {
        left: x + 3 * r,
        top: top - 19 * r,
        width: width * r + (key === "weights" ? barWidth + 4 * r : 0),
        height: tall * nRows + 21 * r,
      });
    }
    label(x, top - 15 * r, `top r ${isNow ? "now" : there ? "" : "todo"}`, math(text), width * r);
    for (let i = 0; i < nRows; i++) {
      const text = there ? cellText(key, i < rows.length ? rows[i] : -1) : "·";
      const node = label(
        x,
        top + tall * (i + 0.5),
        `r num ${isNow ? "now" : there ? "" : "todo"}${rows[i] === on.key ? " here" : ""}`,
        text,
        width * r,
      );
      cells.push({ node, key, i, there });
    }
    x += width * r;
  }
  /** @param {string} key @param {number} k */
  function cellText(key, k) {
    if (k < 0) {
      const sum = (/** @type {number[]} */ of) => others.reduce((total, i) => total + of[i], 0);
      return key === "weights" ? percent(sum(at.weights)) : key === "exp" ? fixed(sum(at.exp), 3) : "";
    }
    if (key === "raw") return fixed(at.raw[k]);
    if (key === "scaled") return fixed(at.scaled[k]);
    if (key === "mask") return at.seen[k] ? fixed(at.scaled[k]) : "−∞";
    return key === "exp" ? fixed(at.exp[k], 3) : percent(at.weights[k]);
  }
  const barOf = (/** @type {number} */ i) => {
    const weight = i < rows.length ? at.weights[rows[i]] : others.reduce((sum, k) => sum + at.weights[k], 0);
    return `${Math.max(1, (barWidth - 12 * r) * Math.min(1, weight / Math.max(...at.weights, 1e-9)))}px`;
  };
  /** @type {HTMLElement[]} */
  const bars = [];
  if (now >= 1) {
    for (let i = 0; i < nRows; i++) {
      const bar = add(host, "div", "bar chosen");
      Object.assign(bar.style, { left: `${x + 4 * r}px`, top: `${top + tall * (i + 0.5)}px`, width: barOf(i) });
      bars.push(bar);
    }
  }

  // rows: a key each
  /** @type {HTMLElement[]} */
  const hits = [];
  /** @type {HTMLElement[]} */
  const names = [];
  rows.forEach((k, i) => {
    const hit = add(host, "button", "rowhit");
    hit.tabIndex = kind === "mask" ? 0 : -1;
    pinned(hit, { top: top + tall * i, height: phone ? tall : tall - 1 });
    hit.classList.toggle("on", k === on.key);
    hit.classList.toggle("padding", site?.padding.includes(k) ?? false);
    const hidden = on.edit.hide.includes(k);
    hit.setAttribute(
      "aria-label",
      kind === "mask" ? fill(hidden ? words.show : words.hide, { k: keyNames[k] }) : keyNames[k],
    );
    if (kind === "mask") hit.setAttribute("aria-pressed", String(hidden));
    hit.dataset.key = String(k);
    hit.addEventListener("pointerenter", () => on.point([i, -1]));
    hit.addEventListener("pointerleave", () => on.leave());
    hit.addEventListener("click", () =>
      kind === "mask" ? on.toggle(k) : on.choose({ key: String(k), cell: `${i}.${on.cell[1]}` }),
    );
    hits.push(hit);
    const name = label(
      0,
      top + tall * (i + 0.5),
      `r k${k === on.key ? " here" : ""}${at.seen[k] ? "" : " gone"}`,
      keyNames[k],
      labelWidth - 8 * r,
    );
    name.title = keyNames[k];
    names.push(name);
  });
  if (others.length)
    label(0, top + tall * (rows.length + 0.5), "r mute", counted(words.other_keys, others.length), labelWidth - 8 * r);
  const belowTop = top + tall * nRows + 6 * r;
  const vectorName = label(
    0,
    (hasBelow ? belowTop : vectorTop) + (extra - 6 * r) / 2,
    "r here",
    isZ
      ? fill(words.head_z, { h: head })
      : isBars
        ? kind === "softmax"
          ? "1"
          : ""
        : [el("em", "q", fill(narrow ? words.q_bare : words.q_of, { q: labels[header.query] }))],
    labelWidth - 8 * r,
  );
  const line = new Grid(host, {
    rows: 1,
    columns: dh,
    width: cell,
    height: extra - 6 * r,
    limit: limit(vector()),
    paint,
    gap: 0.8,
    value: (_, j) => vector()[j],
    frames: [{ row: 0, colour: paint.css("query") }],
  });
  place(line, labelWidth, vectorTop);
  const grid = new Grid(host, {
    rows: nRows,
    columns: dh,
    width: cell,
    height: tall,
    limit: limitOf(),
    paint,
    gap: 0.8,
    value: number,
    alpha: (row) => (row >= rows.length || at.seen[rows[row]] ? 1 : 0.25),
    frames: framesOf(),
  });
  place(grid, labelWidth, top);
  const click = (/** @type {number} */ row, /** @type {number} */ j) => {
    const k = rows[Math.min(row, rows.length - 1)];
    if (kind === "mask") on.toggle(k);
    else on.choose({ key: String(k), cell: `${row}.${j}` });
  };
  grid.listen(
    (row, j) => on.point([row, j]),
    click,
    () => on.leave(),
  );
  line.listen(
    (_, j) => on.point([isZ ? -1 : rows.indexOf(on.key), j]),
    (_, j) => on.choose({ cell: `${Math.max(0, rows.indexOf(on.key))}.${j}` }),
    () => on.leave(),
  );
  const heading = isZ ? words.z_down : isBars ? words[`bars_${kind}`] : words.scores_along;
  label(labelWidth, top - 14 * r, "top", heading, matrix);
  if (isBars) {
    line.canvas.style.display = grid.canvas.style.display = "none";
  }

  // Lengths for numbers: the scores shrink in their outlines, or their exponentials are laid end to end
  const bar = isBars ? host.appendChild(el("canvas", "bars")) : null;
  bar?.setAttribute("aria-hidden", "true");
  const of = (/** @type {number[]} */ values, /** @type {number} */ i) =>
    i < rows.length ? values[rows[i]] : others.reduce((sum, k) => sum + values[k], 0);
  /** @param {number} moment */
  const drawBars = (moment) => {
    if (!bar) return;
    pinned(bar, { left: labelWidth, top });
    paintOn(bar, matrix, belowTop - top + extra, (context) =>
      kind === "scale" ? scaleBars(context, moment) : softmaxBars(context, moment),
    );
  };
  /** @param {CanvasRenderingContext2D} context @param {number} moment */
  function scaleBars(context, moment) {
    const shown = rows.flatMap((k) => [at.raw[k], at.scaled[k]]);
    const [low, high] = [Math.min(0, ...shown), Math.max(0, ...shown)];
    const unit = (matrix - 4) / (high - low || 1);
    const zero = -low * unit + 1;
    const share = eased(moment);
    rows.forEach((k, i) => {
      const [y, high] = [tall * (i + 0.2), tall * 0.6];
      const outline = at.raw[k] * unit;
      const value = mix(at.raw[k], at.scaled[k], share) * unit;
      context.strokeStyle = paint.css("hatch");
      context.lineWidth = 1.2;
      context.strokeRect(zero + Math.min(0, outline), y, Math.abs(outline), high);
      context.fillStyle = at.seen[k] ? paint.scale(value < 0 ? -0.75 : 0.75).fill : paint.css("hatch");
      context.fillRect(zero + Math.min(0, value), y, Math.max(1, Math.abs(value)), high);
    });
  }
  /** @param {CanvasRenderingContext2D} context @param {number} moment */
  function softmaxBars(context, moment) {
    const [grows, flies] = [eased(part(moment, 0, 0.45)), part(moment, 0.4, 1)];
    const [y1, high1] = [belowTop - top, extra - 6 * r];
    context.strokeStyle = paint.css("hatch");
    context.strokeRect(0.5, y1 + 0.5, matrix - 1, high1 - 1);
    context.font = `600 ${12.5 * r}px "Source Sans", sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const light = paint.scale(0.3);
    let before = 0;
    for (let i = 0; i < nRows; i++) {
      const [e, weight] = [of(at.exp, i), of(at.weights, i)];
      const here = rows[i] === on.key;
      const [y, high, wide] = [tall * (i + 0.2), tall * 0.6, Math.max(1, Math.min(1, e) * matrix * grows)];
      context.fillStyle = light.fill;
      context.fillRect(0, y, wide, high);
      const share = eased(part(flies, (i / nRows) * 0.25, 0.75 + (i / nRows) * 0.25));
      const tone = paint.scale(here ? 0.8 : 0.45);
      if (share > 0) {
        context.fillStyle = tone.fill;
        const width = Math.max(0.5, mix(wide, weight * matrix, share) - (share === 1 && weight * matrix > 3 ? 1.5 : 0));
        context.fillRect(mix(0, before * matrix, share), mix(y, y1, share), width, mix(high, high1, share));
      }
      const name = i < rows.length ? keyNames[rows[i]] : counted(words.other_keys, others.length);
      if (share === 1 && context.measureText(name).width + 8 < weight * matrix) {
        context.fillStyle = tone.ink;
        context.fillText(name, (before + weight / 2) * matrix, y1 + high1 / 2);
      }
      before += weight;
    }
  }
  drawBars(1);

  /** @param {string} key @param {(i: number) => string} text */
  const write = (key, text) => {
    for (const one of cells) if (one.key === key && one.there) one.node.textContent = text(one.i);
  };
  const keyOf = (/** @type {number} */ i) => (i < rows.length ? rows[i] : -1);
  const settled = { value: grid.options.value, alpha: grid.options.alpha, vector: line.options.value };
  /** @type {HTMLElement[]} */
  let fallen = [];
  // The picture in the middle of its step
  const move = (/** @type {number} */ moment) => {
    const isThere = moment >= 1;
    if (kind === "scores") {
      const place = isThere ? nRows : moment * nRows; // the query slides over the keys
      const done = (/** @type {number} */ i) => Math.floor(Math.max(0, Math.min(1, place - i)) * dh);
      const scaled = grid.options.limit / (limit(rows.flatMap((k) => Array.from(on.keyVector(k)))) || 1);
      grid.options.value = isThere
        ? settled.value
        : (i, j) => (j < done(i) || i >= rows.length ? number(i, j) : on.keyVector(rows[i])[j] * scaled);
      write("raw", (i) => {
        if (isThere || i >= rows.length) return cellText("raw", keyOf(i));
        let sum = 0;
        for (let j = 0; j < done(i); j++) sum += products(rows[i], j);
        return done(i) ? fixed(sum) : "";
      });
      line.canvas.style.zIndex = isThere ? "" : "1";
      line.canvas.style.transform = isThere
        ? ""
        : `translateY(${top + tall * Math.min(nRows - 1, Math.floor(place))}px)`;
      grid.draw();
    } else if (kind === "scale") {
      const share = eased(moment);
      write("scaled", (i) =>
        isThere || i >= rows.length
          ? cellText("scaled", keyOf(i))
          : fixed(mix(at.raw[rows[i]], at.scaled[rows[i]], share)),
      );
      drawBars(moment);
    } else if (kind === "softmax") {
      const share = eased(part(moment, 0, 0.45));
      write("exp", (i) => (isThere ? cellText("exp", keyOf(i)) : fixed(of(at.exp, i) * share, 3)));
      write("weights", (i) => (moment > 0.4 ? cellText("weights", keyOf(i)) : ""));
      drawBars(moment);
    } else if (kind === "mask") {
      for (const node of fallen) node.remove();
      fallen = [];
      const all = rows.map((_, i) => i).filter((i) => !at.seen[rows[i]]);
      const share = (/** @type {number} */ i) => {
        const from = 0.45 * (1 - (all.indexOf(i) + 1) / all.length); // the last first
        return eased(part(moment, from, from + 0.55));
      };
      if (!isThere)
        for (const i of all) {
          const node = add(host, "div", "fallen");
          pinned(node, {
            left: labelWidth,
            top: mix(-0.3 * box.height, top + tall * i, share(i)),
            width: matrix,
            height: tall - 1,
          });
          node.style.opacity = String(Math.min(1, share(i) * 2));
          fallen.push(node);
        }
      grid.options.alpha = isThere
        ? settled.alpha
        : (i) => (i >= rows.length || at.seen[rows[i]] ? 1 : mix(1, 0.25, share(i)));
      write("mask", (i) =>
        !isThere && i < rows.length && !at.seen[rows[i]] && share(i) < 1
          ? fixed(at.scaled[rows[i]], 1)
          : cellText("mask", keyOf(i)),
      );
      grid.draw();
    } else if (isZ) {
      const [fades, falls] = [eased(part(moment, 0, 0.4)), eased(part(moment, 0.4, 1))];
      const most = limit(rows.flatMap((k) => Array.from(on.value(k)))) || 1;
      grid.options.value = isThere
        ? settled.value
        : (i, j) =>
            i < rows.length
              ? mix((on.value(rows[i])[j] / most) * grid.options.limit, products(rows[i], j), fades)
              : rest(j);
      // The sum so far: value by value, each as much as its weight says
      const sofar = new Float64Array(dh);
      const n = at.weights.length;
      for (let k = 0; k < n && falls * n > k; k++)
        for (let j = 0; j < dh; j++) sofar[j] += Math.min(1, falls * n - k) * at.weights[k] * on.value(k)[j];
      line.options.value = isThere ? settled.vector : (_, j) => sofar[j];
      grid.draw();
      line.draw();
    }
  };

  // Another key or another head in what is there: what was measured and placed stays.
  /** @param {Shown} next */
  const again = (next) => {
    const moved = next.at !== at;
    if (
      next.walk !== on.walk ||
      next.step !== step ||
      next.paint !== paint ||
      next.rem !== rem ||
      phone ||
      others.length
    )
      return false;
    if (next.at.divisor !== at.divisor || String(next.edit.hide) !== String(on.edit.hide)) return false;
    const found = ledgerRows(next.at.weights, own, next.key, room);
    if (found.others.length || found.rows.length !== rows.length) return false;
    on = next;
    ({ at, head } = next);
    for (const { node, key, i, there } of cells) {
      node.classList.toggle("here", rows[i] === on.key);
      if (moved && there) node.textContent = cellText(key, rows[i]);
    }
    rows.forEach((k, i) => {
      hits[i].classList.toggle("on", k === on.key);
      names[i].classList.toggle("here", k === on.key);
      names[i].classList.toggle("gone", !at.seen[k]);
    });
    grid.fixedFrames = framesOf();
    grid.drawn = false; // drawn when it is marked
    if (!moved) drawBars(1);
    if (!moved) return true;
    bars.forEach((bar, i) => (bar.style.width = barOf(i)));
    drawBars(1);
    if (isZ) vectorName.textContent = fill(words.head_z, { h: head });
    grid.options.limit = limitOf();
    line.options.limit = limit(vector());
    line.drawn = false;
    return true;
  };

  return {
    rows: nRows,
    columns: dh,
    again,
    at: move,
    get opens() {
      return /** @type {import("./types.js").Cell} */ ([Math.max(0, rows.indexOf(on.key)), isZ ? largest(at.z) : -1]);
    },
    show([row, j], pointed) {
      const orange = paint.css("query");
      const blue = paint.css("key");
      grid.mark([
        ...(isZ ? [{ column: j, colour: orange }] : pointed ? [{ row, colour: blue, width: 1.6 }] : []),
        ...(isZ || j < 0 ? [] : [{ row, column: j, colour: orange }]),
      ]);
      line.mark(j < 0 ? [] : [{ row: 0, column: j, colour: orange, width: 3 }]);
      hits.forEach((hit, i) => hit.classList.toggle("at", pointed && i === row));
    },
    from([row, j]) {
      const k = row >= 0 && row < rows.length ? rows[row] : on.key;
      const name = [quoted(keyNames[k])];
      const who = [el("em", "q", quoted(labels[header.query])), " → ", el("em", "k", name[0])];
      if (isZ) {
        const column = j < 0 ? largest(at.z) : j;
        const terms = Array.from(at.weights, (w, i) => ({
          label: keyNames[i],
          kind: "k",
          a: w,
          b: on.value(i)[column],
          product: w * on.value(i)[column],
        }))
          .filter((_, i) => at.weights[i] > 0)
          .sort((a, b) => Math.abs(b.product) - Math.abs(a.product));
        const shown = terms.slice(0, 5);
        return {
          title: fill(words.z_title, { j: column, h: head, n: terms.length }),
          right: words.z_right,
          name: `z[${column}]`,
          total: at.z[column],
          terms: shown,
          nRest: terms.length - shown.length,
          factorDigits: 3,
          digits: 3,
        };
      }
      if (kind === "scores") {
        const key = on.keyVector(k);
        const list = Array.from(at.q, (q, i) => ({
          label: fill(words.term_j, { j: i }),
          a: q,
          b: key[i],
          product: q * key[i],
        }));
        const first = j >= 0 ? list.splice(j, 1) : [];
        list.sort((a, b) => Math.abs(b.product) - Math.abs(a.product));
        const terms = [...first, ...list].slice(0, 6);
        return {
          title: fill(words.scores_title, { q: quoted(labels[header.query]), k: name[0], d: dh }),
          right: words.scores_right,
          name: "q · k",
          total: at.raw[k],
          terms,
          nRest: dh - terms.length,
        };
      }
      if (kind === "scale") {
        const plain = softmax(at.raw, at.seen).weights;
        const added = (/** @type {ArrayLike<number>} */ term) => term[k] / ((site?.scale ?? 1) * at.divisor);
        const bias = at.bias && added(at.bias);
        /** @type {[string, number][]} */
        const more =
          bias === null
            ? []
            : at.terms.length
              ? at.terms.map(([name, term]) => [worded(words.score_terms, name), added(term)])
              : [[words.bias, bias]];
        return {
          title: fill(bias === null ? words.scale_title : words.scale_bias_title, {
            q: quoted(labels[header.query]),
            k: name[0],
            d: dh,
          }),
          pieces: [
            { label: words.scaled, value: fixed(at.scaled[k]), strong: true },
            { op: "=" },
            { label: words.col_raw, value: fixed(at.raw[k]) },
            { op: "÷" },
            { label: on.edit.divide === null ? rootOf(at.divisor, dh) : words.yours, value: fixed(at.divisor, 3) },
            ...more.flatMap(([label, term]) => [{ op: term < 0 ? "−" : "+" }, { label, value: fixed(Math.abs(term)) }]),
            { op: " " },
            { label: words.undivided, value: percent(plain[k]) },
            { label: words.divided, value: percent(at.weights[k]), strong: true },
          ],
        };
      }
      if (kind === "mask") {
        const parts = {
          k: name[0],
          q: quoted(labels[header.query]),
          w: percent(at.weights[k]),
          s: fixed(at.scaled[k]),
          why: at.reason[k] ? on.reasons[at.reason[k]] : words.mask_yours,
        };
        return { title: fill(at.seen[k] ? words.mask_seen : words.mask_unseen, parts), note: words.mask_convention };
      }
      return {
        title: who,
        right: fill(words.largest, { x: fixed(at.largest) }),
        pieces: [
          {
            label: keyNames[k],
            kind: "k",
            value: fixed(at.weights[k], 4),
            under: percent(at.weights[k]),
            strong: true,
          },
          { op: "=" },
          { label: `e^(${fixed(at.masked[k])} − ${fixed(at.largest)})`, value: fixed(at.exp[k], 4) },
          { op: "÷" },
          { label: fill(words.sum_of, { n: at.seen.filter(Boolean).length }), value: fixed(at.total, 4) },
          { op: " " },
          {
            label: words.sum_weights,
            kind: "ok",
            value: fixed(
              at.weights.reduce((a, b) => a + b, 0),
              6,
            ),
          },
        ],
      };
    },
    numbers() {
      return {
        columns: ["key", "token", "q · k", "scaled", "masked", "e^(s − max)", "weight"],
        rows: keyLabels.map((text, k) => [k, text, at.raw[k], at.scaled[k], at.masked[k], at.exp[k], at.weights[k]]),
      };
    },
  };
}
