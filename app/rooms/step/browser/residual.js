// The station "why add": a backward pass through fresh layers with the residual connection and without it, and how alike words become.

import { digits, fill, fixed, scientific } from "../../../kit/browser/dom.js";
import { curve } from "../../../kit/browser/picture/axes.js";
import { linear, logarithmic } from "../../../kit/browser/picture/scale.js";
import { draw, svg } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { Sheet } from "./sheet.js";

/** @typedef {{norm: "pre" | "post" | "none", residual: boolean, gradients: number[], alike: number[]}} Path */
/** @typedef {{paths: Path[], refused?: string}} Paths */

// A gradient in words: two digits, as a power of ten where it is far from 1
/** @param {number} g */
export const sized = (g) => (g >= 0.01 && g < 1000 ? digits(g, 2) : scientific(g));

/** @param {Path} path */
const nameOf = ({ norm, residual }) =>
  fill(residual ? words.why_with : words.why_without, { norm: words.why_norms[norm] });

/** @param {HTMLElement} host @param {import("./shown.js").Shown} on @returns {import("./types.js").Picture} */
export function residualPicture(host, on) {
  const found = on.residual;
  if (!found || found.refused)
    return {
      rows: 1,
      columns: 1,
      opens: [0, 0],
      show: () => {},
      from: () => ({ title: found?.refused ?? words.why_waiting }),
      numbers: () => ({ columns: ["layer"], rows: [] }),
    };
  const sheet = new Sheet(host, on);
  const { r, paint } = sheet;
  const { paths } = found;
  const last = paths[0].gradients.length - 1;
  const narrow = sheet.width < 560;
  const tones = { pre: paint.css("ink"), post: paint.css("mute"), none: "var(--less)" };
  const picture = svg("svg", { width: sheet.width, height: sheet.height, class: "over", "aria-hidden": "true" });
  host.append(picture);
  const all = paths.flatMap(({ gradients }) => gradients);
  const ends = [Math.min(...all), Math.max(...all)].map(Math.log10);
  const powers = [Math.floor(ends[0]), Math.ceil(ends[1])];
  const bottom = 26 * r;
  /** @type {{lines: SVGElement[][]}} */
  const drawn = { lines: paths.map(() => []) };
  /**
   * @param {number} x0 @param {number} wide @param {number} top @param {number} high @param {string} title
   * @param {(value: number) => number} y @param {[number, string][]} marks @param {(path: Path) => number[]} of
   */
  const chart = (x0, wide, top, high, title, y, marks, of) => {
    sheet.label(x0, top, "top", title, wide);
    const [from, to] = [x0 + 46 * r, x0 + wide - 10 * r];
    for (const [value, said] of marks) {
      draw(picture, "path", { d: `M${from} ${y(value)}H${to}`, stroke: paint.css("line") });
      sheet.label(x0, y(value), "mute r", said, 40 * r);
    }
    const x = linear(0, last, from, to);
    for (const layer of [0, Math.round(last / 4), Math.round(last / 2), Math.round((3 * last) / 4), last])
      sheet.label(x(layer) - 20 * r, top + high - 8 * r, "mute c", String(layer), 40 * r);
    paths.forEach((path, i) => {
      const points = of(path).map((value, layer) => /** @type {[number, number]} */ ([x(layer), y(value)]));
      drawn.lines[i].push(curve(picture, points, tones[path.norm], 2.2, path.residual ? undefined : "6 4"));
    });
  };
  const [wide, high] = narrow ? [sheet.width, sheet.height / 2] : [sheet.width * 0.5, sheet.height];
  const [x2, y2] = narrow ? [0, high] : [wide + 10 * r, 0];
  const up = logarithmic(10 ** powers[0], 10 ** powers[1], high - bottom, 24 * r);
  const every = Math.max(1, Math.ceil((powers[1] - powers[0]) / 6));
  const marks = [];
  for (let power = powers[0]; power <= powers[1]; power += every)
    marks.push(
      /** @type {[number, string]} */ ([10 ** power, power ? scientific(10 ** power).replace("1·", "") : "1"]),
    );
  chart(0, wide - 10 * r, 0, high, words.why_gradient, up, marks, ({ gradients }) => gradients);
  const alike = linear(0, 1, y2 + high - bottom, y2 + 24 * r);
  chart(
    x2,
    sheet.width - x2,
    y2,
    high,
    words.why_alike,
    alike,
    [
      [0, "0"],
      [0.5, digits(0.5, 1)],
      [1, "1"],
    ],
    (path) => path.alike,
  ); // prettier-ignore
  return {
    rows: paths.length,
    columns: last + 1,
    opens: [paths.findIndex(({ norm, residual }) => norm === "none" && !residual), 0],
    show: ([row]) =>
      drawn.lines.forEach((lines, i) => {
        for (const line of lines) line.setAttribute("stroke-width", i === row ? "4" : "2.2");
      }),
    from: ([row, layer]) => {
      const path = paths[Math.max(0, Math.min(paths.length - 1, row))];
      const at = Math.max(0, Math.min(last, layer));
      return {
        title: fill(words.why_says, {
          name: nameOf(path),
          l: at,
          g: sized(path.gradients[at]),
          a: fixed(path.alike[at], 3),
        }),
        pieces: paths.map((one) => ({ label: nameOf(one), value: sized(one.gradients[0]), strong: one === path })),
        note: words.why_note,
      };
    },
    numbers: () => ({
      columns: ["layer", ...paths.flatMap((path) => [`gradient, ${nameOf(path)}`, `cosine, ${nameOf(path)}`])],
      rows: Array.from({ length: last + 1 }, (_, l) => [
        l,
        ...paths.flatMap(({ gradients, alike: a }) => [gradients[l], a[l]]),
      ]),
    }),
  };
}

/** @param {import("./shown.js").Shown} on @returns {[says: string, parts: Record<string, unknown>, equation: string, more: Record<string, unknown>]} */
export function residualSays({ residual: found }) {
  const alone = found?.paths?.find(({ norm, residual }) => norm === "none" && !residual);
  return alone ? ["why", { g: [sized(alone.gradients[0]), ""] }, "why", {}] : ["why_waiting", {}, "why", {}];
}
