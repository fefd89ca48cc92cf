// The pictures of the steps that are no ledger: vectors as strips, heads as rows, additions; norms and neurons beside it.

import { cover } from "../../../kit/browser/cover.js";
import { el, fill, fixed, number, quoted } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { WORDS as words } from "./constants.js";
import { termsOf } from "./from.js";
import { mix as mixture, router } from "./mixture.js";
import { activation, down, neurons } from "./neurons.js";
import { eased, mix, part } from "./motion.js";
import { norm } from "./norm.js";
import { classPicture } from "./classes.js";
import { ENDINGS } from "./ending.js";
import { residualPicture } from "./residual.js";
import { asked, column, columnsOf, heat, Sheet, withHeat, x } from "./sheet.js";
import { flow, peaksOf } from "./skyline.js";
import { largest, length, limit } from "./sums.js";
import { angleOf, triangle } from "./triangle.js";
import { turn } from "./turn.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */
/** @typedef {import("./types.js").From} From */
/** @typedef {import("./types.js").Cell} Cell */

/** @type {Record<string, (host: HTMLElement, on: Shown) => Picture>} */
export const PICTURES = {
  token(host, on) {
    const sheet = new Sheet(host, on);
    const { r } = sheet;
    const e = on.walk.array("start.token");
    sheet.strip(0, 10 * r, fill(words.row_id, { id: number(on.id) }), e, { height: 34 * r, note: words.of_table });
    const per = e.length % 32 ? 16 : 32;
    const rows = Math.min(Math.ceil(e.length / per), 32);
    const cell = (sheet.width - sheet.left - 4) / per;
    const tall = Math.min(21 * r, (sheet.height - 70 * r) / rows);
    sheet.label(
      0,
      66 * r + tall,
      "r note",
      fill(words.all_numbers, { d: Math.min(rows * per, e.length), per }),
      sheet.left - 12 * r,
    );
    const table = sheet.grid(
      sheet.left,
      64 * r,
      {
        rows,
        columns: per,
        width: cell,
        height: tall,
        limit: limit(e),
        paint: sheet.paint,
        size: cell > 24 * r && tall > 11 * r ? Math.min(10 * r, tall * 0.72) : 0,
        value: (row, j) => e[row * per + j],
      },
      (row, j) => [0, row * per + j],
    );
    return {
      rows: 1,
      columns: e.length,
      opens: [0, -1],
      show: ([, j]) => {
        sheet.mark([0, j]);
        table.mark(
          j < 0 || j >= rows * per
            ? []
            : [{ row: Math.floor(j / per), column: j % per, colour: sheet.paint.css("query") }],
        );
      },
      from: ([, j]) => ({
        title:
          j < 0
            ? fill(words.token_says, { q: on.q[0], id: number(on.id), d: e.length, x: long(length(e)) })
            : fill(words.table_number, { j, x: fixed(e[j], 4) }),
      }),
      numbers: () => column("e", e),
    };
  },

  embed(host, on) {
    const sheet = new Sheet(host, on);
    const { r } = sheet;
    const { walk } = on;
    /** @type {[name: string, vector: Float32Array][]} */
    const parts = [];
    for (const [name, label] of /** @type {const} */ ([
      ["token", words.word],
      ["type", words.type],
      ["position", fill(words.position, { p: on.header.query })],
    ]))
      if (walk.has(`start.${name}`)) parts.push([label, walk.array(`start.${name}`)]);
    const embed = walk.array("embed");
    const all = [
      ...parts,
      /** @type {[string, Float32Array]} */ ([
        parts.length === 1 ? words.stream : on.header.embed_normed ? words.summed_normed : words.summed,
        embed,
      ]),
    ];
    all.forEach(([name, vector], i) =>
      sheet.strip(i, (8 + i * 74) * r, name, vector, {
        height: 46 * r,
        note: fill(words.length, { x: long(length(vector)) }),
      }),
    );
    return {
      rows: all.length,
      columns: embed.length,
      opens: [0, largest(embed)],
      show: (cell) => sheet.mark(cell),
      from: ([, j]) => ({
        title: fill(on.header.embed_normed ? words.embed_title : words.embed_title_plain, { j, n: parts.length }),
        name: `x₀[${j}]`,
        total: parts.reduce((sum, [, vector]) => sum + vector[j], 0),
        terms: parts.map(([label, vector]) => ({ label, product: vector[j] })),
        digits: 3,
        right: on.header.embed_normed ? fill(words.embed_after, { x: fixed(embed[j], 3) }) : "",
      }),
      numbers: () =>
        columnsOf(
          all.map(([name]) => name),
          all.map(([, vector]) => vector),
        ),
    };
  },

  x(host, on) {
    const sheet = new Sheet(host, on);
    const vector = on.walk.array("x");
    sheet.strip(0, 8 * sheet.r, words.names.x, vector, {
      height: 34 * sheet.r,
      note: fill(words.length, { x: long(length(vector)) }),
    });
    const map = heat(sheet, 62 * sheet.r, on.header.layer * on.perLayer - 1);
    return withHeat(map, sheet, {
      rows: 1,
      columns: vector.length,
      opens: [0, -1],
      from: ([, j]) => ({
        title:
          j < 0
            ? fill(words.x_says, { q: on.q[0] })
            : fill(words.x_from, { j, x: fixed(vector[j], 4), n: on.header.layer * on.perLayer }),
      }),
      numbers: () => column("x", vector),
    });
  },

  classes: classPicture,
  ...ENDINGS,
  why: residualPicture,

  result(host, on) {
    const sheet = new Sheet(host, on);
    // Whatever layer is looked at: what leaves the last one, of this token and, where nothing reads on, of the whole text.
    const own = on.walk.array("end");
    const vectors = [own, ...(on.header.kind === "encoder-decoder" ? [] : [on.walk.array("end.mean")])];
    const names = [fill(words.ends, { q: on.q[0] }), fill(words.ends_mean, { n: on.labels.length })];
    vectors.forEach((vector, i) =>
      sheet.strip(i, (8 + i * 46) * sheet.r, names[i], vector, {
        height: 34 * sheet.r,
        note: fill(words.length, { x: long(length(vector)) }),
      }),
    );
    const map = heat(sheet, (16 + vectors.length * 46) * sheet.r, -1);
    return withHeat(map, sheet, {
      rows: vectors.length,
      columns: own.length,
      opens: [0, -1],
      from: ([i, j]) => ({
        title:
          j < 0
            ? words.result_says
            : fill(i ? words.ends_mean_number : words.ends_number, { j, x: fixed(vectors[i][j], 4), q: on.q[0] }),
      }),
      numbers: () => columnsOf(["x", "mean"].slice(0, vectors.length), vectors),
    });
  },

  add(host, on) {
    const sheet = new Sheet(host, on);
    const part = /** @type {"attn"} */ (on.step.value.split(".")[0]);
    const [before, added, together] = on.additionOf(part);
    const what = words[`what_${part}`];
    const lim = limit(together);
    const rows = /** @type {[string, Float32Array][]} */ ([
      [words.stream, before],
      [fill(words.adds, { what }), added],
      [words.together, together],
    ]);
    rows.forEach(([name, vector], i) =>
      sheet.strip(i, (2 + i * 36) * sheet.r, name, vector, {
        height: 27 * sheet.r,
        limit: lim,
        note: fill(words.length, { x: i === 2 && cover.hides("bar") ? "?" : long(length(vector)) }),
      }),
    );
    const vectors = triangle(sheet, 116 * sheet.r, before, added, what);
    vectors(1);
    const angle = (angleOf(before, added) * 180) / Math.PI;
    const sum = sheet.strips[2].grid;
    return {
      rows: 3,
      columns: together.length,
      opens: [1, largest(added)],
      show: (cell) => sheet.mark(cell),
      // The added vector grows from the end of the stream; the numbers in the middle are the stream with a share of it
      at: (moment) => {
        const share = eased(moment);
        vectors(share);
        sum.options.value = (_, j) => (moment < 1 ? before[j] + share * added[j] : together[j]);
        sum.draw();
      },
      from: ([, j]) => ({
        title: fill(words.add_title, { j, q: on.q[0] }),
        name: x(j),
        total: together[j],
        digits: 3,
        right: fill(words.add_right, { a: fixed(angle, 0) }),
        terms: [
          { label: words.stream, product: before[j] },
          { label: what, product: added[j] },
        ],
      }),
      numbers: () =>
        columnsOf(
          rows.map(([name]) => name),
          rows.map(([, vector]) => vector),
        ),
    };
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
    const top = sheet.grid(
      left,
      18 * r,
      {
        rows: 1,
        columns: dh,
        width: (sheet.width - left) / dh,
        height: 25 * r,
        limit: limit(q),
        paint,
        gap: 0.6,
        value: (_, j) => q[j],
        frames: [{ row: 0, colour: paint.css("query") }],
        size: (sheet.width - left) / dh > 24 * r ? 10.5 * r : 0,
        digits: 1,
      },
      (_, j) => [0, j],
    );
    const y = 70 * r;
    const shares = s.group > 1;
    const name = narrow
      ? shares
        ? words.keys_shared_narrow
        : words.keys_narrow
      : shares
        ? words.keys_shared
        : words.keys; // the sentence says how many numbers
    sheet.label(left, y - 18 * r, "top", [
      el("em", "k", fill(name, { h: head, g: Math.floor(head / s.group), d: dh })),
    ]);
    sheet.label(left + wide + gap, y - 18 * r, "top", [el("em", "dh", words.values)]);
    const keyAt = (/** @type {number} */ k) => walk.row(keysName, shared, k);
    const grids = [keyAt, (/** @type {number} */ k) => on.value(k)].map((of, i) =>
      sheet.grid(
        left + i * (wide + gap),
        y,
        {
          rows: rows.length,
          columns: dh,
          width: wide / dh,
          height: tall,
          limit: limit(rows.flatMap((k) => Array.from(of(k)))),
          paint,
          gap: 0.6,
          value: (row, j) => of(rows[row])[j],
        },
        (row, j) => [1 + rows[row], i * dh + j],
      ),
    );
    rows.forEach((k, i) =>
      sheet.label(
        0,
        y + tall * (i + 0.5),
        `r${k === header.query && s.site === "attn" ? " q here" : ""}`,
        on.keyNames[k],
        left - 10 * r,
      ),
    );
    return {
      rows: 1 + keyLabels.length,
      columns: 2 * dh,
      opens: [0, 0],
      // The query falls first, then keys and values
      at: (moment) =>
        [top, ...grids].forEach((grid, i) => {
          const share = eased(part(moment, i * 0.15, 0.7 + i * 0.15));
          Object.assign(grid.canvas.style, {
            transform: share < 1 ? `translateY(${-60 * r * (1 - share)}px)` : "",
            opacity: share < 1 ? String(share) : "",
          });
        }),
      show: ([row, j]) => {
        top.mark(row ? [] : [{ row: 0, column: j % dh, colour: paint.css("query"), width: 3 }]);
        const shown = rows.indexOf(row - 1);
        grids.forEach((grid, i) =>
          grid.mark(
            row && shown >= 0 && Math.floor(j / dh) === i
              ? [{ row: shown, column: j % dh, colour: paint.css("query") }]
              : [],
          ),
        );
      },
      from: ([row, j]) => {
        const a = row === 0 ? "q" : j < dh ? "k" : "v";
        const number = j % dh;
        const group = Math.floor(head / s.group);
        const index = row === 0 ? [head, number] : [group, row - 1, number];
        const of = row === 0 ? on.labels[header.query] : keyLabels[row - 1];
        return asked(on, `${s.site}.${a}`, index, (answer) => ({
          title: fill(words.made, {
            a,
            j: number,
            k: quoted(of),
            d: header.d_model,
            row: (row === 0 ? head : group) * dh + number,
          }),
          name: `${a}[${number}]`,
          digits: 3,
          ...termsOf(answer, x),
        }));
      },
      numbers: () => ({
        columns: [
          "key",
          "token",
          ...Array.from({ length: dh }, (_, j) => `k[${j}]`),
          ...Array.from({ length: dh }, (_, j) => `v[${j}]`),
        ],
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
          { label: words.projection, value: `q[0, ${q}, ${j}]`, kind: "code" },
          { op: "→" },
          { label: fill(words.unflatten, { j, a, d: dh, b }), value: `q[0, ${q}, ${a}, ${b}]` },
          { op: "→" },
          { label: words.transpose, value: `q[0, ${a}, ${q}, ${b}]` },
          { op: ":" },
          { label: words.memory, value: `${q} × ${wide} + ${j} = ${number(q * wide + j)}` },
        ],
      };
    });
  },

  join(host, on) {
    const { walk, header, site } = on;
    const dh = header.d_head;
    const flat = walk.array(`${site?.site}.z`);
    return headRows(host, on, flat, fill(words.z_of, { q: on.labels[header.query] }), false, (j) => ({
      title: fill(words.join_says, {
        x: fixed(flat[j], 3),
        b: j % dh,
        a: Math.floor(j / dh),
        d: dh,
        j,
        wide: flat.length,
      }),
      note: words.join_note,
    }));
  },

  // Each head fans out to all of the stream: as wide as what it writes is long, in the colour of what it adds to the next word
  wo(host, on) {
    const sheet = new Sheet(host, on);
    const { walk, header, head, site, logits } = on;
    const name = `${site?.site}`;
    const [H, dh, d] = [header.heads, header.d_head, header.d_model];
    const by = walk.array(`${name}.by_head`);
    const lengths = walk.array(`${name}.lengths`);
    const [z, total] = [walk.array(`${name}.z`), walk.array(`${name}.out`)];
    const picture = flow(sheet, {
      from: z,
      to: total,
      above: fill(words.wo_above, { H, n: number(z.length) }),
      below: fill(words.wo_below, { n: number(d) }),
      bands: H,
      fans: Array.from(lengths, (length, h) => ({
        at: (h + 0.5) / H,
        wide: 0.4 / H,
        length,
        adds: logits?.heads[h],
        name: fill(words.head_n, { h }),
        isOn: h === head,
      })),
    });
    return {
      ...picture,
      rows: 2,
      columns: Math.max(z.length, d),
      opens: [1, largest(total)],
      from: ([row, j]) => (row ? written(Math.min(j, d - 1)) : ofHead(Math.min(H - 1, Math.floor(j / dh)), j)),
      numbers: () => ({
        columns: ["index", ...Array.from({ length: H }, (_, h) => `head ${h}`), "together"],
        rows: Array.from(total, (v, j) => [j, ...Array.from({ length: H }, (_, h) => by[h * d + j]), v]),
      }),
    };

    /** @param {number} j @returns {From} */
    function written(j) {
      return asked(on, `${name}.out`, [j], (answer) => ({
        title: fill(words.wo_title, { j }),
        name: `a[${j}]`,
        digits: 3,
        ...factorless(termsOf(answer, (h) => fill(words.head_n, { h }), "hd")),
      }));
    }

    /** @param {number} h @param {number} j @returns {From} */
    function ofHead(h, j) {
      const title = fill(words.wo_head, {
        h,
        j: j % dh,
        x: fixed(z[Math.min(j, z.length - 1)], 3),
        a: long(lengths[h]),
      });
      if (!logits) return { title };
      const shown = peaksOf(logits.heads, 5);
      return {
        title,
        right: fill(words.wo_logits, { w: logits.word }),
        name: words.what_attn,
        total: logits.all,
        terms: shown.map((i) => ({ label: fill(words.head_n, { h: i }), kind: "hd", product: logits.heads[i] })),
        nRest: Math.max(0, H - shown.length),
        note: words.direct_only,
      };
    }
  },

  up: (host, on) => neurons(host, on, "up"),
  gate: (host, on) => neurons(host, on, "gate"),

  act: activation,
  product: activation,
  down,
  mix: mixture,
  router,
  norm,
  turn,
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
  const grid = sheet.grid(
    sheet.left,
    top,
    {
      rows: H,
      columns: dh,
      width: cell,
      height: tall,
      limit: lim,
      paint,
      value: (h, j) => flat[h * dh + j],
      frames: [{ row: head, colour: paint.css("head") }],
      size: tall > 15 * r && cell > 22 * r ? 10.5 * r : 0,
      digits: 1,
    },
    (h, j) => [h, j],
  );
  for (let h = 0; h < H; h++)
    sheet.label(
      0,
      top + tall * (h + 0.5),
      `r hd${h === head ? " here" : ""}`,
      fill(words.head_n, { h }),
      sheet.left - 12 * r,
    );
  const place = (/** @type {Cell} */ [h, j]) => (h < 0 ? j : h * dh + j);
  const flight = sheet.flight();
  const into = wholeFirst ? grid : strip;
  return {
    rows: H,
    columns: dh,
    opens: [head, Math.min(5, dh - 1)],
    // Each head flies from its place in one to its place in the other
    at: (moment) => {
      into.canvas.style.opacity = moment < 1 ? "0" : "";
      flight(moment, (put) => {
        for (let h = 0; h < H; h++) {
          const share = eased(part(moment, (h / H) * 0.4, 0.6 + (h / H) * 0.4));
          const s = wholeFirst ? 1 - share : share;
          if (!wholeFirst && !share) continue;
          put(grid, h, h + 1, [
            mix(sheet.left, sheet.left + (h * strip.width) / H, s),
            mix(top + h * tall, line, s),
            mix(grid.width, strip.width / H, s),
            mix(tall, 28 * r, s),
          ]);
        }
      });
    },
    show: (cell) => {
      const j = place(cell);
      grid.mark([{ row: Math.floor(j / dh), column: j % dh, colour: paint.css("query"), width: 2.5 }]);
      strip.mark([{ column: j, colour: paint.css("query") }]);
    },
    from: (cell) => from(place(cell)),
    numbers: () => ({
      columns: ["index", "head", "number", "value"],
      rows: Array.from(flat, (v, j) => [j, Math.floor(j / dh), j % dh, v]),
    }),
  };
}
