// The pictures of the steps that are no ledger: vectors as strips, heads as rows, norms, neurons, additions.

import { add, el, fill, number as whole, quoted } from "../../../kit/browser/dom.js";
import { ACTIVATIONS } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { termsOf } from "./from.js";
import { Grid } from "./grid.js";
import { count, fixed, largest, length, limit, spread } from "./sums.js";
import { drawing, shape } from "./svg.js";

/** @typedef {import("./step.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */
/** @typedef {import("./types.js").From} From */
/** @typedef {import("./types.js").Cell} Cell */

// What every picture needs: labels where they stand, strips of numbers, and the table behind it
export class Sheet {
  /** @type {{grid: Grid, row: number}[]} Strips, and which row of the picture each is */
  strips = [];

  /** @param {HTMLElement} host @param {Shown} on */
  constructor(host, on) {
    this.host = host;
    this.on = on;
    this.r = on.rem / 15.55;
    const box = host.getBoundingClientRect();
    this.width = box.width;
    this.height = Math.max(box.height, 18 * on.rem);
    this.left = (box.width < 560 ? 74 : 118) * this.r;
    this.paint = on.paint;
  }

  /** @param {number} x @param {number} y @param {string} className @param {string | Node[]} text @param {number} [width] */
  label(x, y, className, text, width) {
    const node = add(this.host, "div", `lab ${className}`);
    node.append(...(typeof text === "string" ? [text] : text));
    node.style.left = `${x}px`;
    node.style.top = `${y}px`;
    if (width !== undefined) node.style.width = `${width}px`;
    return node;
  }

  /** @param {number} x @param {number} y @param {ConstructorParameters<typeof Grid>[1]} options @param {(row: number, column: number) => Cell} [cellOf] */
  grid(x, y, options, cellOf) {
    const grid = new Grid(this.host, options);
    Object.assign(grid.canvas.style, { left: `${x}px`, top: `${y}px` });
    if (cellOf) {
      grid.listen(
        (row, column) => this.on.point(cellOf(row, column)),
        (row, column) => this.on.choose({ cell: cellOf(row, column).join(".") }),
        () => this.on.leave(),
      );
    }
    return grid;
  }

  // One vector as a row of the picture
  /** @param {number} row @param {number} y @param {string | Node[]} name @param {ArrayLike<number>} vector @param {{height?: number, note?: string, limit?: number, className?: string, right?: number}} [options] */
  strip(row, y, name, vector, { height = 24 * this.r, note = "", limit: lim = limit(/** @type {number[]} */ (vector)), className = "", right = 4 } = {}) {
    this.label(0, y + height / 2 - (note ? 7 * this.r : 0), `r ${className}`, name, this.left - 12 * this.r);
    if (note) this.label(0, y + height / 2 + 8 * this.r, "r note", note, this.left - 12 * this.r);
    const grid = this.grid(this.left, y, {
      rows: 1, columns: vector.length, width: (this.width - this.left - right) / vector.length, height, limit: lim, paint: this.paint, gap: 0, value: (_, j) => vector[j],
    }, (_, j) => [row, j]);
    this.strips.push({ grid, row });
    return grid;
  }

  // The chosen number in every strip of the picture
  /** @param {Cell} cell @param {boolean} [all] in every strip, not only in its own */
  mark([row, j], all = true) {
    for (const strip of this.strips) strip.grid.mark(all || strip.row === row ? [{ row: 0, column: j, colour: this.paint.css("query") }] : []);
  }
}

/** @param {Shown} on @param {string} step @param {number[]} index @param {(answer: import("./types.js").ServerTerms) => From} make @returns {From} */
function asked(on, step, index, make) {
  const answer = on.terms(step, index);
  if (answer === null) return { title: words.asking };
  return answer.refused ? { title: answer.refused } : make(answer);
}

const x = (/** @type {number} */ j) => `x[${j}]`;
/** @param {string} name @param {ArrayLike<number>} vector */
const column = (name, vector) => ({ columns: ["index", name], rows: Array.from(vector, (v, j) => [j, v]) });
/** @param {string[]} names @param {ArrayLike<number>[]} vectors */
const columnsOf = (names, vectors) => ({ columns: ["index", ...names], rows: Array.from(vectors[0], (_, j) => [j, ...vectors.map((v) => v[j])]) });

/** @type {Record<string, (host: HTMLElement, on: Shown) => Picture>} */
export const PICTURES = {
  token(host, on) {
    const sheet = new Sheet(host, on);
    const { r } = sheet;
    const e = on.walk.array("start.token");
    sheet.strip(0, 10 * r, fill(words.row_id, { id: count(on.id) }), e, { height: 34 * r, note: words.of_table });
    const per = e.length % 32 ? 16 : 32;
    const rows = Math.min(Math.ceil(e.length / per), 32);
    const cell = (sheet.width - sheet.left - 4) / per;
    const tall = Math.min(21 * r, (sheet.height - 70 * r) / rows);
    sheet.label(0, 66 * r + tall, "r note", fill(words.all_numbers, { d: rows * per < e.length ? rows * per : e.length, per }), sheet.left - 12 * r);
    const table = sheet.grid(sheet.left, 64 * r, { rows, columns: per, width: cell, height: tall, limit: limit(e), paint: sheet.paint, size: cell > 24 * r && tall > 11 * r ? Math.min(10 * r, tall * 0.72) : 0, value: (row, j) => e[row * per + j] }, (row, j) => [0, row * per + j]);
    return {
      rows: 1, columns: e.length, opens: [0, -1],
      show: ([, j]) => {
        sheet.mark([0, j]);
        table.mark(j < 0 || j >= rows * per ? [] : [{ row: Math.floor(j / per), column: j % per, colour: sheet.paint.css("query") }]);
      },
      from: ([, j]) => ({ title: j < 0 ? fill(words.token_says, { q: on.q[0], id: count(on.id), d: e.length, x: fixed(length(e)) }) : fill(words.table_number, { j, x: fixed(e[j], 4) }) }),
      numbers: () => column("e", e),
    };
  },

  embed(host, on) {
    const sheet = new Sheet(host, on);
    const { r } = sheet;
    const { walk } = on;
    /** @type {[name: string, vector: Float32Array][]} */
    const parts = [];
    for (const [name, label] of /** @type {const} */ ([["token", words.word], ["type", words.type], ["position", fill(words.position, { p: on.header.query })]])) if (walk.has(`start.${name}`)) parts.push([label, walk.array(`start.${name}`)]);
    const embed = walk.array("embed");
    const all = [...parts, /** @type {[string, Float32Array]} */ ([parts.length === 1 ? words.stream : on.header.embed_normed ? words.summed_normed : words.summed, embed])];
    all.forEach(([name, vector], i) => sheet.strip(i, (8 + i * 74) * r, name, vector, { height: 46 * r, note: fill(words.length, { x: fixed(length(vector)) }) }));
    return {
      rows: all.length, columns: embed.length, opens: [0, largest(embed)],
      show: (cell) => sheet.mark(cell),
      from: ([, j]) => ({
        title: fill(on.header.embed_normed ? words.embed_title : words.embed_title_plain, { j, n: parts.length }), name: `x₀[${j}]`,
        total: parts.reduce((sum, [, vector]) => sum + vector[j], 0), terms: parts.map(([label, vector]) => ({ label, product: vector[j] })), digits: 3,
        right: on.header.embed_normed ? fill(words.embed_after, { x: fixed(embed[j], 3) }) : "",
      }),
      numbers: () => columnsOf(all.map(([name]) => name), all.map(([, vector]) => vector)),
    };
  },

  x(host, on) {
    const sheet = new Sheet(host, on);
    const vector = on.walk.array("x");
    sheet.strip(0, 8 * sheet.r, words.names.x, vector, { height: 34 * sheet.r, note: fill(words.length, { x: fixed(length(vector)) }) });
    const map = heat(sheet, 62 * sheet.r, on.header.layer * on.perLayer - 1);
    return withHeat(map, sheet, {
      rows: 1, columns: vector.length, opens: [0, -1],
      from: ([, j]) => ({ title: j < 0 ? fill(words.x_says, { q: on.q[0] }) : fill(words.x_from, { j, x: fixed(vector[j], 4), n: on.header.layer * on.perLayer }) }),
      numbers: () => column("x", vector),
    });
  },

  result(host, on) {
    const sheet = new Sheet(host, on);
    const vector = on.walk.array(on.step.value);
    sheet.strip(0, 8 * sheet.r, fill(words.leaves, { l: on.header.layer }), vector, { height: 34 * sheet.r, note: fill(words.length, { x: fixed(length(vector)) }) });
    const map = heat(sheet, 62 * sheet.r, -1);
    return withHeat(map, sheet, {
      rows: 1, columns: vector.length, opens: [0, -1],
      from: ([, j]) => ({ title: j < 0 ? words.result_says : fill(words.leaves_number, { j, x: fixed(vector[j], 4) }) }),
      numbers: () => column("x", vector),
    });
  },

  add(host, on) {
    const sheet = new Sheet(host, on);
    const part = /** @type {"attn"} */ (on.step.value.split(".")[0]);
    const [before, added, together] = on.additionOf(part);
    const what = words[`what_${part}`];
    const lim = limit(together);
    const rows = /** @type {[string, Float32Array][]} */ ([[words.stream, before], [fill(words.adds, { what }), added], [words.together, together]]);
    rows.forEach(([name, vector], i) => sheet.strip(i, (2 + i * 36) * sheet.r, name, vector, { height: 27 * sheet.r, limit: lim, note: fill(words.length, { x: fixed(length(vector)) }) }));
    const at = on.header.layer * on.perLayer + on.sublayers.indexOf(part);
    const map = heat(sheet, 114 * sheet.r, at);
    const angle = (Math.acos(Math.max(-1, Math.min(1, before.reduce((sum, v, i) => sum + v * added[i], 0) / (length(before) * length(added) || 1)))) * 180) / Math.PI;
    return withHeat(map, sheet, {
      rows: 3, columns: together.length, opens: [1, largest(added)],
      from: ([, j]) => ({
        title: fill(words.add_title, { j, q: on.q[0] }), name: x(j), total: together[j], digits: 3, right: fill(words.add_right, { a: fixed(angle, 0) }),
        terms: [{ label: words.stream, product: before[j] }, { label: what, product: added[j] }],
      }),
      numbers: () => columnsOf(rows.map(([name]) => name), rows.map(([, vector]) => vector)),
    });
  },

  qkv(host, on) {
    const sheet = new Sheet(host, on);
    const { walk, head, header, site, keyLabels, paint, r } = Object.assign({ r: sheet.r }, on);
    const s = /** @type {import("./types.js").Site} */ (site);
    const dh = header.d_head;
    const [, shared] = walk.places(s, head);
    const q = walk.row(`${s.site}.q`, head);
    const keysName = walk.keysName(s);
    const rows = on.ledgerRows.rows;
    const narrow = sheet.width < 560;
    const left = sheet.left * (narrow ? 1 : 0.72);
    const gap = 22 * r;
    const wide = (sheet.width - left - gap) / 2;
    const tall = Math.max(8, Math.min(19 * r, (sheet.height - 76 * r) / rows.length));
    sheet.label(left, 0, "top", [el("em", "q", fill(words.queries, { h: head }))]);
    sheet.label(0, 30 * r, "r", [el("em", "q", on.labels[header.query])], left - 10 * r);
    const top = sheet.grid(left, 18 * r, { rows: 1, columns: dh, width: (sheet.width - left) / dh, height: 25 * r, limit: limit(q), paint, gap: 0.6, value: (_, j) => q[j], frames: [{ row: 0, colour: paint.css("query") }], size: (sheet.width - left) / dh > 24 * r ? 10.5 * r : 0, digits: 1 }, (_, j) => [0, j]);
    const y = 70 * r;
    const shares = s.group > 1;
    sheet.label(left, y - 18 * r, "top", [el("em", "k", fill(shares ? words.keys_shared : words.keys, { h: head, g: Math.floor(head / s.group), d: dh }))]);
    sheet.label(left + wide + gap, y - 18 * r, "top", [el("em", "dh", words.values)]);
    const keyAt = (/** @type {number} */ k) => walk.row(keysName, shared, k);
    const grids = [keyAt, (/** @type {number} */ k) => on.value(k)].map((of, i) =>
      sheet.grid(left + i * (wide + gap), y, { rows: rows.length, columns: dh, width: wide / dh, height: tall, limit: limit(rows.flatMap((k) => Array.from(of(k)))), paint, gap: 0.6, value: (row, j) => of(rows[row])[j] }, (row, j) => [1 + rows[row], i * dh + j]),
    );
    rows.forEach((k, i) => sheet.label(0, y + tall * (i + 0.5), `r${k === header.query && s.site === "attn" ? " q here" : ""}`, keyLabels[k], left - 10 * r));
    return {
      rows: 1 + keyLabels.length, columns: 2 * dh, opens: [0, 0],
      show: ([row, j]) => {
        top.mark(row ? [] : [{ row: 0, column: j % dh, colour: paint.css("query"), width: 3 }]);
        const shown = rows.indexOf(row - 1);
        grids.forEach((grid, i) => grid.mark(row && shown >= 0 && Math.floor(j / dh) === i ? [{ row: shown, column: j % dh, colour: paint.css("query") }] : []));
      },
      from: ([row, j]) => {
        const a = row === 0 ? "q" : j < dh ? "k" : "v";
        const number = j % dh;
        const group = Math.floor(head / s.group);
        const index = row === 0 ? [head, number] : [group, row - 1, number];
        const of = row === 0 ? on.labels[header.query] : keyLabels[row - 1];
        return asked(on, `${s.site}.${a}`, index, (answer) => ({
          title: fill(words.made, { a, j: number, k: quoted(of), d: header.d_model, row: (row === 0 ? head : group) * dh + number }), name: `${a}[${number}]`, digits: 3, ...termsOf(answer, x),
        }));
      },
      numbers: () => ({
        columns: ["key", "token", ...Array.from({ length: dh }, (_, j) => `k[${j}]`), ...Array.from({ length: dh }, (_, j) => `v[${j}]`)],
        rows: keyLabels.map((text, k) => [k, text, ...keyAt(k), ...on.value(k)]),
      }),
    };
  },

  heads(host, on) {
    const flat = on.walk.array(`${on.site?.site}.q`);
    const { header } = on;
    const dh = header.d_head;
    return headRows(host, on, flat, fill(words.q_of, { q: on.labels[header.query] }), true, (j) => {
      const [a, b] = [Math.floor(j / dh), j % dh];
      const wide = header.heads * dh;
      const q = header.query;
      return {
        title: fill(words.heads_same, { x: fixed(flat[j], 3) }),
        pieces: [
          { label: words.projection, value: `q[0, ${q}, ${j}]`, kind: "code" }, { op: "→" },
          { label: fill(words.unflatten, { j, a, d: dh, b }), value: `q[0, ${q}, ${a}, ${b}]` }, { op: "→" },
          { label: words.transpose, value: `q[0, ${a}, ${q}, ${b}]` }, { op: ":" },
          { label: words.memory, value: `${q} × ${wide} + ${j} = ${whole(q * wide + j)}` },
        ],
      };
    });
  },

  join(host, on) {
    const { walk, header, site } = on;
    const dh = header.d_head;
    const flat = walk.array(`${site?.site}.z`);
    return headRows(host, on, flat, fill(words.z_of, { q: on.labels[header.query] }), false, (j) => ({
      title: fill(words.join_says, { x: fixed(flat[j], 3), b: j % dh, a: Math.floor(j / dh), d: dh, j, wide: flat.length }), note: words.join_note,
    }));
  },

  wo(host, on) {
    const sheet = new Sheet(host, on);
    const { walk, header, head, paint, site } = on;
    const { r } = sheet;
    const name = `${site?.site}`;
    const [H, d] = [header.heads, header.d_model];
    const by = walk.array(`${name}.by_head`);
    const lengths = walk.array(`${name}.lengths`);
    const total = walk.array(`${name}.written`);
    const tall = Math.max(6, Math.min(21 * r, (sheet.height - 52 * r) / H));
    const right = 62 * r;
    const grid = sheet.grid(sheet.left, 0, { rows: H, columns: d, width: (sheet.width - sheet.left - right) / d, height: tall, limit: limit(by) * 1.4, paint, gap: 0, value: (h, j) => by[h * d + j], frames: [{ row: head, colour: paint.css("head") }] }, (h, j) => [h, j]);
    for (let h = 0; h < H; h++) {
      sheet.label(0, tall * (h + 0.5), `r hd${h === head ? " here" : ""}`, fill(words.head_n, { h }), sheet.left - 12 * r);
      sheet.label(sheet.width - right + 6 * r, tall * (h + 0.5), h === head ? "here r" : "r mute", fixed(lengths[h]), right - 10 * r);
    }
    const y = H * tall + 12 * r;
    sheet.strip(H, y, words.all_attention, total, { height: 28 * r, className: "here", right });
    sheet.label(sheet.width - right + 6 * r, y + 14 * r, "here r", fixed(length(total)), right - 10 * r);
    return {
      rows: H + 1, columns: d, opens: [H, largest(total)],
      show: ([h, j]) => {
        sheet.mark([h, j]);
        grid.mark([{ column: j, colour: paint.css("query"), width: 1 }]);
      },
      from: ([, j]) => asked(on, `${name}.written`, [j], (answer) => ({ title: fill(words.wo_title, { j }), name: `a[${j}]`, digits: 3, ...factorless(termsOf(answer, (h) => fill(words.head_n, { h }), "hd")) })),
      numbers: () => ({ columns: ["index", ...Array.from({ length: H }, (_, h) => `head ${h}`), "together"], rows: Array.from(total, (v, j) => [j, ...Array.from({ length: H }, (_, h) => by[h * d + j]), v]) }),
    };
  },

  down(host, on) {
    const sheet = new Sheet(host, on);
    const { walk, header } = on;
    const { r } = sheet;
    const wrote = walk.array("mlp.written");
    const act = walk.array("mlp.act");
    sheet.strip(0, 6 * r, fill(words.adds, { what: words.what_mlp }), wrote, { height: 32 * r, note: fill(words.length, { x: fixed(length(wrote)) }) });
    sheet.label(sheet.left, 56 * r, "top here", words.neurons_ten);
    const ten = /** @type {[number, number][]} */ (header.neurons);
    const most = Math.max(...ten.map(([i, w]) => Math.abs(act[i]) * w), 1e-9);
    const room = sheet.width < 560 ? 0 : 300 * r;
    ten.forEach(([i, w], at) => {
      const y = 88 * r + at * Math.min(25 * r, (sheet.height - 104 * r) / 9);
      sheet.label(0, y, "r", fill(words.neuron, { j: i }), sheet.left - 12 * r);
      const bar = add(host, "div", "bar ff");
      Object.assign(bar.style, { left: `${sheet.left}px`, top: `${y}px`, width: `${((sheet.width - sheet.left - room - 60 * r) * Math.abs(act[i]) * w) / most}px` });
      const value = fixed(Math.abs(act[i]) * w);
      sheet.label(sheet.width - room - 54 * r, y, "", room ? `${value} ${fill(words.neuron_is, { h: fixed(act[i]), j: i, w: fixed(w) })}` : value);
    });
    return {
      rows: 1, columns: wrote.length, opens: [0, largest(wrote)],
      show: (cell) => sheet.mark(cell),
      from: ([, j]) => asked(on, "mlp.written", [j], (answer) => ({ title: fill(words.down_title, { j, f: count(header.d_ff) }), name: `m[${j}]`, digits: 3, ...termsOf(answer, (i) => fill(words.neuron, { j: i })) })),
      numbers: () => column("m", wrote),
    };
  },

  up: (host, on) => neurons(host, on, "up"),
  gate: (host, on) => neurons(host, on, "gate"),

  norm(host, on) {
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
    const scales = stats.map(([mean, sd]) => (norm.mean ? [mean, Math.sqrt(sd * sd + norm.eps)] : [0, Math.sqrt(sd * sd + mean * mean + norm.eps)]));
    const normed = (/** @type {number} */ row, /** @type {number} */ j) => {
      const v = rows[row * d + j];
      return batch ? (v - means[j]) / Math.sqrt(deviations[j] ** 2 + 1e-5) : (v - scales[row][0]) / scales[row][1];
    };
    const narrow = sheet.width < 560;
    const left = narrow ? 0 : 84 * r;
    const right = narrow ? 0 : 150 * r;
    const tall = Math.max(2, Math.min(12 * r, ((sheet.height - 52 * r) / 2 - (narrow ? 44 * r : 0)) / n));
    const each = tall * n + 24 * r + (narrow ? 44 * r : 0);
    const title = batch ? words.norm_batch : norm.mean ? "LayerNorm" : "RMSNorm";
    const first = norm.of > n ? fill(words.norm_before_some, { a: norm.first, b: norm.first + n - 1, n: norm.of, d }) : fill(words.norm_before, { n, d });
    /** @type {HTMLElement[]} */
    const facts = [];
    const before = (/** @type {number} */ row, /** @type {number} */ j) => rows[row * d + j];
    const pictures = [before, normed].map((value, i) => {
      const y = i * each;
      sheet.label(left, y, "top", i ? fill(words.norm_after, { name: title }) : first);
      const grid = sheet.grid(left, y + 17 * r, {
        rows: n, columns: d, width: (sheet.width - left - right) / d, height: tall, limit: i ? 2.6 : limit(rows.subarray(own * d, own * d + d)), paint, gap: 0, value,
        alpha: batch ? undefined : (row) => (row === own ? 1 : 0.38), frames: batch ? [] : [{ row: own, colour: paint.css("query") }],
      }, (row, j) => [row, j]);
      if (!narrow && tall * n > 12) sheet.label(0, y + 17 * r + tall * (own + 0.5), "r q here", labels[header.query], left - 10 * r);
      const box = add(host, "div", "stats");
      Object.assign(box.style, { left: `${narrow ? 0 : sheet.width - right + 14 * r}px`, top: `${y + 17 * r + (narrow ? tall * n : 6 * r)}px` });
      facts.push(box);
      return grid;
    });
    const columnOf = (/** @type {number} */ j) => [means[j], deviations[j]];
    const columnAfter = (/** @type {number} */ j) => (batch ? [0, deviations[j] / Math.sqrt(deviations[j] ** 2 + 1e-5)] : spread(Array.from({ length: n }, (_, row) => normed(row, j))));
    const say = (/** @type {number} */ row, /** @type {number} */ j) => {
      facts.forEach((box, i) => {
        const values = i ? Array.from({ length: d }, (_, c) => normed(row, c)) : rows.subarray(row * d, row * d + d);
        const [m, s] = spread(values);
        const [cm, cs] = i ? columnAfter(j) : columnOf(j);
        const line = (/** @type {string} */ text, /** @type {number} */ a, /** @type {number} */ b, /** @type {boolean} */ fixedTo) => {
          box.append(el("div", "note", text), el("div", fixedTo ? "ok" : "", fill(words.mean_sd, { m: fixed(a), s: fixed(b) })));
        };
        box.replaceChildren();
        line(fill(words.row_of, { q: labels[row + norm.first] ?? labels[header.query] }), m, s, i === 1 && !batch);
        if (norm.of > 1) line(fill(words.column_of, { j }), cm, cs, i === 1 && batch);
        if (!norm.mean && !batch) box.append(el("div", "note", fill(words.rms_of, { r: fixed(Math.sqrt(s * s + m * m)) })));
      });
    };
    const gamma = walk.array(`${name}.gamma`);
    const beta = walk.has(`${name}.beta`) ? walk.array(`${name}.beta`) : null;
    return {
      rows: n, columns: d, opens: [own, Math.min(36, d - 1)],
      show: ([row, j]) => {
        say(row, j);
        for (const grid of pictures) grid.mark(batch ? [{ column: Math.max(0, Math.min(d - 3, j - 1)), columns: Math.min(3, d), colour: paint.css("query") }] : [{ row, column: j, colour: paint.css("query") }]);
      },
      from: ([row, j]) => {
        const of = quoted(labels[row + norm.first] ?? labels[header.query]);
        const y = normed(row, j);
        const [mean, scale] = batch ? [means[j], Math.sqrt(deviations[j] ** 2 + 1e-5)] : scales[row];
        const takes = batch || norm.mean;
        return {
          title: fill(batch ? words.norm_note_batch : words.norm_note, { j, k: of, n: batch ? norm.of - 1 : d - 1 }),
          pieces: [
            { label: words.normed, value: fixed(y), strong: true }, { op: "=" },
            ...(takes ? [{ op: "(" }] : []), { label: x(j), value: fixed(before(row, j), 3) },
            ...(takes ? [{ op: "−" }, { label: batch ? words.column_mean : words.row_mean, value: fixed(mean, 3) }, { op: ")" }] : []),
            { op: "÷" }, { label: takes ? words.deviation : words.row_rms, value: fixed(scale, 3) },
            ...(batch ? [] : [
              { op: words.then }, { label: `γ[${j}]`, value: fixed(gamma[j], 3) },
              ...(beta ? [{ op: "+" }, { label: `β[${j}]`, value: fixed(beta[j], 3) }] : []),
              { op: "=" }, { label: `out[${j}]`, value: fixed(y * gamma[j] + (beta ? beta[j] : 0)), strong: true },
            ]),
          ],
        };
      },
      numbers: () => columnsOf(["before", "normed"], [rows.subarray(own * d, own * d + d), Float32Array.from({ length: d }, (_, j) => normed(own, j))]),
    };
  },

  act: activation,
  product: activation,

  turn(host, on) {
    const { walk, header, head, paint, site } = on;
    const name = `${site?.site}`;
    const before = walk.row(`${name}.q`, head);
    const after = walk.row(`${name}.turned`, head);
    const sheet = new Sheet(host, on);
    const dh = header.d_head;
    const pairs = dh / 2;
    const shown = Math.min(pairs, 32);
    const per = sheet.width < 560 ? 4 : 8;
    const [wide, tall] = [sheet.width / per, Math.max(70, sheet.height / Math.ceil(shown / per) - 4)];
    const longest = Math.max(...after.map(Math.abs), 1e-9);
    const svg = drawing({ width: sheet.width, height: tall * Math.ceil(shown / per) });
    const radius = Math.min(wide, tall) / 2 - 14 * sheet.r;
    for (let i = 0; i < shown; i++) {
      const [cx, cy] = [(i % per) * wide + wide / 2, Math.floor(i / per) * tall + tall / 2 - 6];
      const s = (radius / longest) * 0.95;
      const turn = Math.atan2(after[i + pairs], after[i]) - Math.atan2(before[i + pairs], before[i]);
      const angle = ((turn % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
      shape(svg, "circle", { cx, cy, r: radius, fill: "none", stroke: paint.css("line"), "stroke-width": 1.5 });
      shape(svg, "path", { d: `M${cx} ${cy}l${before[i] * s} ${-before[i + pairs] * s}`, stroke: paint.css("mute"), "stroke-width": 2 });
      shape(svg, "path", { d: `M${cx} ${cy}l${after[i] * s} ${-after[i + pairs] * s}`, stroke: paint.css("query"), "stroke-width": 3.5 });
      shape(svg, "text", { x: cx, y: cy + radius + 12 * sheet.r, "text-anchor": "middle", "font-size": 11 * sheet.r, fill: paint.css("mute") }, fill(words.turn_pair, { i, j: i + pairs, r: fixed(angle, angle >= 0.1 ? 2 : 4) }));
    }
    host.append(svg);
    return {
      rows: 1, columns: dh, opens: [0, -1],
      show: () => {},
      from: ([, j]) => j < 0
        ? { title: fill(words.turn_says, { a: fixed(length(before), 3), b: fixed(length(after), 3) }) }
        : asked(on, `${name}.turned`, [head, j], (answer) => ({ title: fill(words.turn_title, { j, h: head }), name: `q′[${j}]`, digits: 3, ...termsOf(answer, (i) => `q[${i === 0 ? j : j < pairs ? j + pairs : j - pairs}]`) })),
      numbers: () => columnsOf(["before", "after"], [before, after]),
    };
  },
};

/** @param {{terms: import("./types.js").Term[]}} found */
function factorless(found) {
  return { ...found, terms: found.terms.map(({ label, kind, product }) => ({ label, kind, product })) };
}

// d numbers as heads, and the same numbers side by side
/** @param {HTMLElement} host @param {Shown} on @param {Float32Array} flat @param {string} name @param {boolean} wholeFirst @param {(j: number) => From} from @returns {Picture} */
function headRows(host, on, flat, name, wholeFirst, from) {
  const sheet = new Sheet(host, on);
  const { header, head, paint } = on;
  const { r } = sheet;
  const [H, dh] = [header.heads, header.d_head];
  const lim = limit(flat);
  const top = wholeFirst ? 56 * r : 0;
  const tall = Math.max(7, Math.min(21 * r, (sheet.height - 64 * r) / H));
  const line = wholeFirst ? 8 * r : H * tall + 16 * r;
  const strip = sheet.strip(-1, line, name, flat, { height: 28 * r, limit: lim });
  strip.fixedFrames = [{ column: head * dh, columns: dh, colour: paint.css("head") }];
  const cell = (sheet.width - sheet.left - 4) / dh;
  const grid = sheet.grid(sheet.left, top, { rows: H, columns: dh, width: cell, height: tall, limit: lim, paint, value: (h, j) => flat[h * dh + j], frames: [{ row: head, colour: paint.css("head") }], size: tall > 15 * r && cell > 22 * r ? 10.5 * r : 0, digits: 1 }, (h, j) => [h, j]);
  for (let h = 0; h < H; h++) sheet.label(0, top + tall * (h + 0.5), `r hd${h === head ? " here" : ""}`, fill(words.head_n, { h }), sheet.left - 12 * r);
  const place = (/** @type {Cell} */ [h, j]) => (h < 0 ? j : h * dh + j);
  return {
    rows: H, columns: dh, opens: [head, Math.min(5, dh - 1)],
    show: (cell) => {
      const j = place(cell);
      grid.mark([{ row: Math.floor(j / dh), column: j % dh, colour: paint.css("query"), width: 2.5 }]);
      strip.mark([{ column: j, colour: paint.css("query") }]);
    },
    from: (cell) => from(place(cell)),
    numbers: () => ({ columns: ["index", "head", "number", "value"], rows: Array.from(flat, (v, j) => [j, Math.floor(j / dh), j % dh, v]) }),
  };
}

/** @param {HTMLElement} host @param {Shown} on @param {"up" | "gate"} what @returns {Picture} */
function neurons(host, on, what) {
  const sheet = new Sheet(host, on);
  const values = on.walk.array(`mlp.${what}`);
  const per = sheet.width < 560 ? 48 : 128;
  const rows = Math.ceil(values.length / per);
  const tall = Math.max(3, Math.min(25 * sheet.r, (sheet.height - 24 * sheet.r) / rows));
  sheet.label(0, 0, "top", fill(words.neurons, { n: count(values.length), what: words.neurons_before, per }));
  const grid = sheet.grid(0, 20 * sheet.r, { rows, columns: per, width: sheet.width / per, height: tall, limit: limit(values), paint: sheet.paint, value: (row, j) => values[row * per + j] ?? NaN }, (row, j) => [0, Math.min(values.length - 1, row * per + j)]);
  return {
    rows: 1, columns: values.length, opens: [0, values.indexOf(Math.max(...values))],
    show: ([, j]) => grid.mark([{ row: Math.floor(j / per), column: j % per, colour: sheet.paint.css("query") }]),
    from: ([, j]) => asked(on, `mlp.${what}`, [j], (answer) => ({ title: fill(words.neuron_title, { j, d: on.header.d_model, what }), name: `${what === "up" ? "h" : "g"}[${j}]`, digits: 3, ...termsOf(answer, x) })),
    numbers: () => column(what, values),
  };
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
function activation(host, on) {
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
  curves(canvas, wide, tall, before, act, on);
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
    return sheet.grid(gx, y + 18 * r, { rows, columns: per, width: room / per, height: cell, limit: i && gated ? limit(after) : lim, paint, gap: 0, value: (row, j) => values[row * per + j] ?? NaN }, (row, j) => [0, Math.min(before.length - 1, row * per + j)]);
  });
  sheet.label(0, tall + 8 * r, "note", words.act_curve);
  return {
    rows: 1, columns: before.length, opens: [0, before.indexOf(Math.max(...before))],
    show: ([, j]) => { for (const grid of grids) grid.mark([{ row: Math.floor(j / per), column: j % per, colour: paint.css("query") }]); },
    from: ([, j]) => {
      if (gated) {
        const [g, up] = [ACTIVATIONS[act](before[j]), walk.array("mlp.up")[j]];
        return { title: fill(words.product_title, { j }), pieces: [{ label: `h[${j}]`, value: fixed(after[j], 3), strong: true }, { op: "=" }, { label: `${words.acts[act]}(${fixed(before[j], 3)})`, value: fixed(g, 3) }, { op: "×" }, { label: words.names.up, value: fixed(up, 3) }] };
      }
      return {
        title: fill(words.neuron, { j }), note: words.act_note,
        pieces: [{ label: "h", value: fixed(before[j], 3) }, { op: "→" }, ...["relu", own.startsWith("gelu") ? own : "gelu", "silu"].map((name) => ({ label: words.acts[name], value: fixed(name === own ? walk.array("mlp.act")[j] : ACTIVATIONS[name](before[j]), 3), strong: name === act }))],
      };
    },
    numbers: () => columnsOf(["before", "after"], [before, after]),
  };
}

// The three curves, and where this token's neurons lie on the chosen one
/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height @param {Float32Array} values @param {string} act @param {Shown} on */
function curves(canvas, width, height, values, act, { paint, rem, header }) {
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
    context.arc(across(v), up(ACTIVATIONS[act](v)), 2.1 * r, 0, 7);
    context.fill();
  }
  context.globalAlpha = 1;
}

// What every sublayer adds to every token: layers down, tokens across
/** @param {Sheet} sheet @param {number} top @param {number} here the row that the step is about */
function heat(sheet, top, here) {
  const { on, r, paint } = sheet;
  const { walk, header, labels } = on;
  const values = walk.array("added");
  const [rows, n] = walk.shape("added");
  const room = sheet.height - top - 44 * r;
  const tall = Math.max(5, Math.min(19 * r, room / rows));
  const wide = (sheet.width - sheet.left - 4) / n;
  const most = Math.sqrt(values.reduce((a, b) => Math.max(a, b), 1e-9));
  const every = header.added_every;
  sheet.label(sheet.left, top, "top", `${words.heat_title}${every > 1 ? `. ${fill(words.heat_pooled, { n: every })}` : ""}`, sheet.width - sheet.left);
  const y = top + 20 * r;
  const own = Math.floor(header.query / every);
  const grid = sheet.grid(sheet.left, y, {
    rows, columns: n, width: wide, height: tall, limit: most, paint, value: (row, j) => Math.sqrt(values[row * n + j]),
    frames: [{ column: own, colour: paint.css("query") }, ...(here >= 0 ? [{ row: here, colour: paint.css("ink"), width: 1.3 }] : [])],
  });
  for (let row = 0; row < rows; row++) {
    const [l, what] = header.added[row];
    if (tall < 11 && row % Math.ceil(11 / tall)) continue;
    sheet.label(0, y + tall * (row + 0.5), `r small${l === header.layer ? " here" : ""}`, fill(words.heat_row, { l, what: words.sublayers[what] }), sheet.left - 12 * r);
  }
  if (wide > 20 && every === 1) labels.forEach((text, i) => sheet.label(sheet.left + wide * i, y + tall * rows + 10 * r, `c small${i === header.query ? " q here" : ""}`, text, wide - 2));
  return { grid, rows, n, values, every };
}

// The numbers of a picture, and below them those of the additions: row −1 − i is row i of these
/** @param {ReturnType<typeof heat>} map @param {Sheet} sheet @param {Omit<Picture, "show">} picture @returns {Picture} */
function withHeat(map, sheet, picture) {
  const { on } = sheet;
  /** @type {(row: number, j: number) => Cell} */
  const cell = (row, j) => [picture.rows + row, j];
  map.grid.listen((row, j) => on.point(cell(row, j)), (row, j) => on.choose({ cell: cell(row, j).join(".") }), () => on.leave());
  return {
    ...picture,
    rows: picture.rows + map.rows,
    show: ([row, j]) => {
      const inside = row >= picture.rows;
      sheet.mark([row, inside ? -1 : j]);
      map.grid.mark(inside ? [{ row: row - picture.rows, column: Math.min(j, map.n - 1), colour: sheet.paint.css("query") }] : []);
    },
    from: ([row, j]) => {
      if (row < picture.rows) return picture.from([row, j]);
      const at = Math.min(j, map.n - 1);
      const [l, what] = on.header.added[row - picture.rows];
      return { title: fill(words.heat_says, { l, what: words.sublayers[what], k: quoted(on.labels[Math.min(on.labels.length - 1, at * map.every)]), a: fixed(map.values[(row - picture.rows) * map.n + at]) }) };
    },
  };
}
