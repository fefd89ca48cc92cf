// Rotary positions: each pair of a query's and a key's numbers before and after their turns, and what the pair adds to the score.

import { fill, fixed, percent } from "../../../kit/browser/dom.js";
import { long, signed } from "../../../kit/browser/model_strip.js";
import { draw, svg as element, write } from "../../../kit/browser/picture/svg.js";
import { softmax } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { termsOf } from "./from.js";
import { eased } from "./motion.js";
import { asked, columnsOf, Sheet } from "./sheet.js";
import { peaksOf } from "./skyline.js";
import { length } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */
const MOST = 32; // dials
const [RINGED, LISTED] = [4, 4]; // pairs that add most to the score; keys whose weight is given without the turn

/** The weights of the row if neither query nor keys were turned, all else the same. @param {Shown} on */
export function withoutTurn({ walk, site, head, at }) {
  const s = /** @type {import("./types.js").Site} */ (site);
  const q = walk.row(`${s.site}.q`, head);
  const [, shared] = walk.places(s, head);
  const scores = at.scaled.map((score, k) => {
    const key = walk.row(walk.keysName(s), shared, k);
    let raw = 0;
    for (let j = 0; j < q.length; j++) raw += q[j] * key[j];
    return score + (raw - at.raw[k]) / at.divisor;
  });
  return softmax(scores, at.seen).weights;
}

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function turn(host, on) {
  const { walk, header, head, paint, site } = on;
  const s = /** @type {import("./types.js").Site} */ (site);
  const [, shared] = walk.places(s, head);
  const q = [walk.row(`${s.site}.q`, head), walk.row(`${s.site}.turned`, head)];
  const k = [walk.row(walk.keysName(s), shared, on.key), on.keyVector(on.key)];
  const sheet = new Sheet(host, on);
  const { r } = sheet;
  const dh = header.d_head;
  const pairs = dh / 2;
  const shown = Math.min(pairs, MOST);
  const per = sheet.width < 560 ? 4 : 8;
  const lines = Math.ceil(shown / per);
  const top = 20 * r;
  const [wide, tall] = [sheet.width / per, Math.max(70, (sheet.height - top) / lines - 2)];
  const adds = Array.from({ length: pairs }, (_, i) => q[1][i] * k[1][i] + q[1][i + pairs] * k[1][i + pairs]);
  const ringed = peaksOf(adds, RINGED);
  const svg = element("svg", { "aria-hidden": "true", width: sheet.width, height: top + tall * lines });
  svg.style.position = "absolute";
  const radius = Math.min(wide, tall) / 2 - 13 * r;
  const longest = (/** @type {Float32Array} */ x) =>
    Math.max(...Array.from({ length: pairs }, (_, i) => Math.hypot(x[i], x[i + pairs])), 1e-9);
  /** @type {{hand: Element, cx: number, cy: number, angle: number}[]} */
  const hands = [];
  const angles = [0, 1].map(() => /** @type {number[]} */ ([]));
  for (let i = 0; i < shown; i++) {
    const [cx, cy] = [(i % per) * wide + wide / 2, top + Math.floor(i / per) * tall + tall / 2 - 8 * r];
    const isRinged = ringed.includes(i);
    draw(svg, "circle", {
      cx,
      cy,
      r: radius,
      fill: "none",
      stroke: paint.css(isRinged ? "ink" : "line"),
      "stroke-width": isRinged ? 1.8 : 1.2,
    });
    [k, q].forEach(([before, after], which) => {
      // A long pair would hide the others: lengths are on a square-root scale.
      const size = (/** @type {Float32Array} */ x) =>
        (0.95 * radius * Math.sqrt(Math.hypot(x[i], x[i + pairs]) / longest(x))) /
        (Math.hypot(x[i], x[i + pairs]) || 1);
      const turned = Math.atan2(after[i + pairs], after[i]) - Math.atan2(before[i + pairs], before[i]);
      const angle = ((turned % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
      angles[which].push(angle);
      const colour = paint.css(which ? "query" : "key");
      const [b, a] = [size(before), size(after)];
      draw(svg, "path", {
        d: `M${cx} ${cy}l${before[i] * b} ${-before[i + pairs] * b}`,
        stroke: colour,
        "stroke-width": 1.2,
        "stroke-dasharray": "3 3",
        "stroke-opacity": 0.7,
      });
      const hand = draw(svg, "path", {
        d: `M${cx} ${cy}l${after[i] * a} ${-after[i + pairs] * a}`,
        stroke: colour,
        "stroke-width": 3,
        "stroke-linecap": "round",
      });
      hands.push({ hand, cx, cy, angle: (angle * 180) / Math.PI });
    });
    write(svg, cx, cy + radius + 12 * r, signed(adds[i]), {
      anchor: "middle",
      size: (isRinged ? 13.5 : 12.5) * r,
      fill: Math.abs(adds[i]) < 0.005 ? paint.css("mute") : paint.scale(adds[i] < 0 ? -0.75 : 0.75).fill,
      ...(isRinged ? { "font-weight": 700 } : {}),
    });
  }
  host.append(svg);
  const pairAt = (/** @type {PointerEvent | MouseEvent} */ event) => {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top - top];
    return Math.max(0, Math.min(shown - 1, Math.floor(Math.max(0, y) / tall) * per + Math.floor(x / wide)));
  };
  svg.addEventListener("pointermove", (event) => on.point([0, pairAt(event)]));
  svg.addEventListener("pointerleave", () => on.leave());
  svg.addEventListener("click", (event) => on.choose({ cell: `0.${pairAt(event)}` }));
  sheet.label(0, 0, "top q", fill(words.turn_query, { q: on.q[0] }));
  sheet.label(sheet.width * (per > 4 ? 0.2 : 0.5), 0, "top k", fill(words.turn_key, { k: on.k[0] }));
  if (per > 4) {
    sheet.label(sheet.width * 0.4, 0, "top", words.turn_dashed);
    sheet.label(sheet.width * 0.55, 0, "top r", words.turn_below, sheet.width * 0.45);
  }
  const unturned = withoutTurn(on);
  const listed = [...new Set([on.key, ...peaksOf(on.at.weights, 3), ...peaksOf(unturned, 3)])].slice(0, LISTED);
  return {
    rows: 1,
    columns: dh,
    opens: [0, -1],
    // Every hand turns from where it was, by its own angle
    at: (moment) => {
      for (const { hand, cx, cy, angle } of hands)
        if (moment < 1) hand.setAttribute("transform", `rotate(${angle * (1 - eased(moment))} ${cx} ${cy})`);
        else hand.removeAttribute("transform");
    },
    show: () => {},
    from: ([, j]) =>
      j < 0
        ? {
            title: words.turn_not,
            pieces: listed.map((i) => ({
              label: on.keyNames[i],
              kind: "k",
              value: percent(on.at.weights[i]),
              under: fill(words.turn_unturned, { w: percent(unturned[i]) }),
              strong: i === on.key,
            })),
            note: fill(words.turn_says, { a: long(length(q[0])), b: long(length(q[1])) }),
          }
        : asked(on, `${s.site}.turned`, [head, j], (answer) => ({
            title: fill(words.turn_title, { j, h: head }),
            name: `q′[${j}]`,
            digits: 3,
            ...termsOf(answer, (i) => `q[${i === 0 ? j : j < pairs ? j + pairs : j - pairs}]`),
            note: fill(words.turn_angles, {
              i: j % pairs,
              j: (j % pairs) + pairs,
              a: said(angles[1][j % pairs]),
              b: said(angles[0][j % pairs]),
              x: signed(adds[j % pairs]),
            }),
          })),
    numbers: () => columnsOf(["before", "after", "key before", "key after"], [...q, ...k]),
  };
}

/** An angle in radians; "…" of a pair that has no dial. @param {number | undefined} angle */
const said = (angle) => (angle === undefined ? "…" : fixed(angle, angle >= 0.1 ? 2 : 4));
