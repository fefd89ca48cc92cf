// The residual stream as a rail that sublayers leave and rejoin, and small pictures of shapes: SVG, from where the rows are.

import { draw, svg } from "../../../kit/browser/picture/svg.js";

/** @typedef {[axis: string, size: number]} Named */
/** @typedef {{left: number, right: number, top: number, height: number}} Box */
// A tensor as a sheet, its last two axes along the edges, and more sheets behind it for heads or texts
/** @param {import("./types.js").Row} row */
export function glyph(row) {
  const picture = svg("svg", { class: "glyph", viewBox: "0 0 112 32", "aria-hidden": "true" });
  /** @param {string} name */
  const colour = (name) =>
    `var(--${/^(batch|pos|head|kv_head|query|key|d_model|d_head|d_ff|vocab)$/.test(name) ? name : name.includes("head") ? "d_head" : "mute"})`;
  /** @param {number} n */
  const size = (n) => 6 + Math.log2(Math.max(1, n)) * 5.2;
  const named = row.shape.map((n, i) => /** @type {Named} */ ([row.axes[i], n]));
  /** @type {Named[]} */
  const [down, across] = named.length > 1 ? named.slice(-2) : [["", 1], named[0]];
  const w = Math.min(82, size(across[1]) * 1.12);
  const h = Math.min(23, Math.max(5, size(down[1]) * 0.5));
  const stacked = named
    .slice(0, -2)
    .filter(([, n]) => n > 1)
    .at(-1);
  const top = 18 - h / 2;
  if (stacked) {
    for (let i = Math.min(3, stacked[1] - 1); i > 0; i--) {
      draw(picture, "rect", {
        x: 4 + i * 4.4,
        y: top - i * 2.6,
        width: w,
        height: h,
        rx: 2,
        fill: "var(--background)",
        stroke: colour(stacked[0]),
        "stroke-width": 1.3,
      });
    }
  }
  draw(picture, "rect", { x: 4, y: top, width: w, height: h, rx: 1.5, fill: "var(--background)" });
  draw(picture, "rect", { x: 4, y: top, width: w, height: h, rx: 1.5, fill: colour(across[0]), "fill-opacity": 0.18 });
  draw(picture, "line", { x1: 4, x2: 4 + w, y1: top + h, y2: top + h, stroke: colour(across[0]), "stroke-width": 2.6 });
  draw(picture, "line", { x1: 4, x2: 4, y1: top, y2: top + h + 1.3, stroke: colour(down[0]), "stroke-width": 2.6 });
  return picture;
}

// One column of rows: `items` are {node, lane, joins, fold, chosen} from top to bottom
/** @param {SVGSVGElement} picture @param {import("./types.js").Item[]} items @param {number} unit */
export function rail(picture, items, unit) {
  picture.replaceChildren();
  if (!items.length) return;
  const lanes = [unit * 1.2, unit * 3.6, unit * 5.1];
  const at = items.map(({ node }) => node.offsetTop + node.offsetHeight / 2);
  const ending = items[items.length - 1].node;
  picture.setAttribute("height", String(ending.offsetTop + ending.offsetHeight));
  picture.setAttribute("width", String(unit * 6));
  const first = items.findIndex((item) => item.lane === 0);
  if (first >= 0)
    draw(picture, "path", {
      d: `M${lanes[0]} ${at[first]}V${at.at(-1)}`,
      stroke: "var(--d_model)",
      "stroke-width": unit * 0.3,
      fill: "none",
    });

  // Branches: each leaves at the last place of the stream and comes back where something is added.
  /** @type {number | null} */
  let left = null;
  /** @type {Map<number, {first: number, last: number, from: number | null}>} */
  let open = new Map();
  /** @param {string} d */
  const line = (d) => draw(picture, "path", { d, stroke: "var(--branch)", "stroke-width": unit * 0.17, fill: "none" });
  items.forEach((item, i) => {
    if (item.lane) {
      const seen = open.get(item.lane);
      if (seen) seen.last = i;
      else open.set(item.lane, { first: i, last: i, from: left });
      return;
    }
    if (item.joins) {
      for (const [lane, { first: top, last, from }] of open) {
        const x = lanes[lane];
        const down = `V${at[last]}C${x} ${(at[last] + at[i]) / 2} ${lanes[0]} ${(at[last] + at[i]) / 2} ${lanes[0]} ${at[i]}`;
        if (from === null) line(`M${x} ${at[top]}${down}`);
        else
          line(
            `M${lanes[0]} ${at[from]}C${lanes[0]} ${(at[from] + at[top]) / 2} ${x} ${(at[from] + at[top]) / 2} ${x} ${at[top]}${down}`,
          );
      }
      open = new Map();
    }
    left = i;
  });

  items.forEach((item, i) => {
    const x = lanes[item.lane];
    const stroke = item.lane ? "var(--branch)" : "var(--d_model)";
    if (item.fold) {
      for (const d of [-1, 0, 1])
        draw(picture, "circle", { cx: x, cy: at[i] + d * unit * 0.42, r: unit * 0.13, fill: "var(--background)" });
      return;
    }
    const sum = item.joins;
    draw(picture, "circle", {
      cx: x,
      cy: at[i],
      r: unit * (sum ? 0.55 : 0.35),
      fill: item.chosen ? "var(--query)" : "var(--background)",
      stroke,
      "stroke-width": unit * 0.18,
    });
    if (sum) {
      const r = unit * 0.3;
      draw(picture, "path", {
        d: `M${x - r} ${at[i]}h${2 * r}M${x} ${at[i] - r}v${2 * r}`,
        stroke: item.chosen ? "var(--background)" : stroke,
        "stroke-width": unit * 0.15,
      });
    }
  });
}

// From the end of the encoder to every place that reads it: `from` and `to` are boxes in the picture's own coordinates
/** @param {SVGSVGElement} picture @param {Box} from @param {Box[]} to @param {number} unit @param {string} text */
export function cross(picture, from, to, unit, text) {
  picture.replaceChildren();
  const trunk = to[0].left - unit * 0.9;
  for (const box of to) {
    const [y0, y1] = [from.top + from.height / 2, box.top + box.height / 2];
    const bend = Math.sign(y1 - y0) * Math.min(unit, Math.abs(y1 - y0) / 2);
    draw(picture, "path", {
      d: `M${from.right} ${y0}H${trunk - unit}Q${trunk} ${y0} ${trunk} ${y0 + bend}V${y1 - bend}Q${trunk} ${y1} ${trunk + unit * 0.5} ${y1}H${box.left}`,
      stroke: "var(--key)",
      "stroke-width": unit * 0.17,
      fill: "none",
      class: "cross",
    });
    draw(picture, "path", {
      d: `M${box.left - unit * 0.1} ${y1 - unit * 0.35}l${unit * 0.55} ${unit * 0.35}l${-unit * 0.55} ${unit * 0.35}z`,
      fill: "var(--key)",
    });
  }
  draw(picture, "title", {}, text);
}
