// The lower part of the right column: where the chosen head looks, three tests of it, or how good the estimates were.

import { WORDS as words } from "./constants.js";
import { add, apart, choice, el, fill, phrase, quoted, same, setText } from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { Pen } from "../../../kit/browser/pen.js";
import { HeatmapView } from "../../../kit/browser/picture/heatmap.js";
import { rising, rooted, signs } from "../../../kit/browser/picture/scale.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { drawShapes, text } from "../../../kit/browser/scene.js";
import { checkOf, FEWEST, TOP } from "./check.js";
import { placeOf } from "./found.js";
import { percent } from "./numbers.js";
import { matrix } from "./pair.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./board.js").Shown} Shown */
/** @typedef {{tests: [to: string, change: number, p: number][], lead: number, verdict: string, caption: string, snippet: string, table: [label: string, name: string, text: string], refused?: string}} Tests */

const [LOOKED, LINE] = [4, 19]; // words that a head looks at, and pixels of each
const [WIDTH, HEIGHT] = [176, 104]; // of the scatter, at the page's size of type

export class Low {
  /** @type {unknown[]} Of the switch as it is */
  switched = [];

  /** @param {HTMLElement} parent @param {(changes: Record<string, string>) => void} choose @param {(id: string) => void} take */
  constructor(parent, choose, take) {
    this.choose = choose;
    this.take = take;
    this.box = add(parent, "div", "looks");
    const line = add(this.box, "div", "line");
    this.heading = add(line, "h2");
    this.kinds = add(line, "span");
    this.pairs = add(this.box, "div", "pairs");
    this.views = [words.this_sentence, words.the_other].map((title) => {
      const figure = add(this.pairs, "figure");
      const view = new HeatmapView(figure);
      const said = add(figure, "figcaption", "mute");
      return { figure, view, said, title };
    });
    this.tests = add(this.box, "div", "tests");
    this.check = add(this.box, "div", "check");
    this.svg = draw(this.check, "svg", { role: "img" });
    this.checked = add(this.check, "div", "said");
    this.said = add(this.box, "p", "mute said");
  }

  /** @param {Shown} shown @param {(id: string) => string} name @param {[answer: string, rival: string]} pair @param {number} side of a map, at the page's size of type */
  draw(shown, name, [answer, rival], side) {
    const { pick, found, values } = shown;
    const kind = pick?.[0];
    this.box.hidden = !found.known || !pick;
    if (!found.known || !pick) return;
    const low = kind === "r" && values.low === "tests" ? "maps" : values.low; // a word is only taken from the other
    this.drawSwitch(low, kind === "r", found.known.there !== null);
    setText(this.said, "");
    for (const [part, id] of /** @type {const} */ ([
      [this.pairs, "maps"],
      [this.tests, "tests"],
      [this.check, "check"],
    ]))
      part.hidden = id !== low;
    if (low === "maps") this.drawLooks(shown, name, side);
    if (low === "tests") this.drawTests(shown, name, [answer, rival]);
    if (low === "check") this.drawCheck(shown, name, [answer, rival]);
    this.said.hidden = !this.said.textContent;
  }

  /** @param {string} low @param {boolean} isWord @param {boolean} hasOther */
  drawSwitch(low, isWord, hasOther) {
    const of = [low, isWord, hasOther];
    if (same(of, this.switched)) return;
    this.switched = of;
    const made = choice(
      words.low,
      [
        ["maps", words.low_maps, words.low_maps_help],
        ["tests", hasOther ? words.low_tests : words.low_two_tests, isWord ? words.no_tests : words.low_tests_help],
        ["check", words.low_check, words.low_check_help],
      ],
      low,
      (chosen) => this.choose({ low: chosen }),
    );
    /** @type {HTMLButtonElement} */ (made.children[1]).disabled = isWord;
    this.kinds.replaceChildren(made);
  }

  // Where the chosen head looks from the word that is asked about, in both sentences
  /** @param {Shown} shown @param {(id: string) => string} name @param {number} high */
  drawLooks({ data, side, pick, palette, type, found, values }, name, high) {
    const [kind, layer, at] = placeOf(pick ?? "");
    const map = kind === "z" ? side?.maps.find((m) => m.layer === layer && m.head === at) : undefined;
    setText(this.heading, kind === "z" ? fill(words.where_looks, { part: name(pick ?? "") }) : name(pick ?? ""));
    this.pairs.hidden = !map || !side;
    if (kind !== "z") setText(this.said, kind === "m" ? words.mlp_looks : words.word_looks);
    if (!map || !side) return;
    const asked = found.known?.position ?? data.source.length - 1;
    const size = Math.round(high * type.unit);
    const tone = rising(palette);
    for (const [i, { figure, view, said, title }] of this.views.entries()) {
      const weights = matrix(i ? map.after : map.before, side.body);
      const labels = i ? side.source : data.source;
      const isShown = weights !== null && !(i && !values.against);
      figure.hidden = !isShown;
      if (!isShown) continue;
      const { rows, columns, values: numbers } = weights;
      const w = size / Math.max(rows, columns);
      view.draw(
        {
          rows,
          columns,
          x: 1,
          y: 1,
          w,
          h: w,
          gap: w > 6 ? 0.7 : 0,
          tone: (row, column) => (column > row ? null : tone(numbers[row * columns + column])),
          frames: [{ row: asked, colour: palette.query, width: 1.5 }],
        },
        size + 2,
        w * rows + 2,
        { hatch: palette.hatch, font: type.family },
      );
      const row = Array.from(numbers.subarray(asked * columns, (asked + 1) * columns));
      const best = row
        .map((_, key) => key)
        .sort((a, b) => row[b] - row[a])
        .slice(0, Math.min(LOOKED, Math.max(1, Math.floor(high / LINE) - 2)));
      said.replaceChildren(
        title,
        el("b", "query", `${apart(quoted(indexed(labels, asked)))} →`),
        ...best.map((key) => {
          const line = el("span");
          line.append(el("b", "key", quoted(indexed(labels, key))), ` ${percent(row[key])}`);
          return line;
        }),
      );
    }
  }

  // The same part silent, at its mean, and taken from the other sentence
  /** @param {Shown} shown @param {(id: string) => string} name @param {[answer: string, rival: string]} pair */
  drawTests({ pick, tests, palette }, name, [answer, rival]) {
    setText(this.heading, name(pick ?? ""));
    this.tests.hidden = !tests || tests.refused !== undefined;
    if (!tests || tests.refused !== undefined) return setText(this.said, tests?.refused ?? words.tests_come);
    const most = Math.max(1, ...tests.tests.map(([, change]) => Math.abs(change)));
    while (this.tests.children.length > tests.tests.length) this.tests.lastElementChild?.remove();
    while (this.tests.children.length < tests.tests.length) {
      const row = add(this.tests, "div", "test");
      const svg = draw(row, "svg", { viewBox: "-60 0 120 10", preserveAspectRatio: "none", "aria-hidden": "true" });
      row.append(el("span"), svg, el("span", "mute"), el("b", "value"));
    }
    const { more, less } = signs(palette);
    /** @type {Record<string, string>} */
    const names = { other: words.how_patch, zero: words.how_zero, mean: words.how_mean };
    tests.tests.forEach(([to, change, p], i) => {
      const row = this.tests.children[i];
      const svg = /** @type {Element} */ (row.querySelector("svg"));
      const [title, after, value] = [...row.children].filter((one) => one !== svg);
      setText(title, names[to]);
      const width = (58 * Math.abs(change)) / most;
      const pen = new Pen(svg);
      pen.draw("rect", { x: change < 0 ? -width : 0, y: 1, width, height: 8, fill: change < 0 ? less : more });
      pen.draw("rect", { x: -0.3, y: 0, width: 0.6, height: 10, fill: palette.mute });
      pen.end();
      setText(after, fill(words.answer_after, { answer, p: percent(p) }));
      setText(value, signed(change));
      value.className = `value${Math.abs(change).toFixed(1) === "0.0" ? "" : change < 0 ? " less" : " more"}`;
    });
    const n = tests.tests.length;
    /** @type {Record<string, string>} */
    const verdicts = {
      none: words.verdict_none,
      same: n === 3 ? words.verdict_same : words.verdict_same_two,
      disagree: words.verdict_disagree,
      silence: words.verdict_silence,
      other: words.verdict_other,
      some: words.verdict_some,
    };
    this.said.replaceChildren(
      el("b", "", verdicts[tests.verdict]),
      ` ${fill(words.tests_of, { answer, rival, lead: pointed(tests.lead.toFixed(1).replace("-", "−")) })}`,
    );
  }

  // Each head by its estimate and its run
  /** @param {Shown} shown @param {(id: string) => string} name @param {[answer: string, rival: string]} pair */
  drawCheck({ found, pick, palette, type }, name, [answer, rival]) {
    const check = checkOf(found);
    this.check.hidden = !check;
    setText(
      this.heading,
      check && check.ids.length < check.all ? fill(words.check_so_far, { n: check.ids.length }) : words.check,
    );
    if (!check)
      return setText(this.said, found.known && found.known.heads.length < FEWEST ? words.check_few : words.check_waits);
    const { unit } = type;
    const [w, h] = [WIDTH * unit, HEIGHT * unit];
    const most = 1.3 * Math.max(...check.exact.map(Math.abs), ...check.estimates.map(Math.abs), 1e-9);
    const across = (/** @type {number} */ x) => w / 2 + (rooted(x / most) * w) / 2;
    const up = (/** @type {number} */ x) => h / 2 - (rooted(x / most) * h) / 2;
    const { more, less } = signs(palette);
    /** @type {import("../../../kit/browser/types.js").Shape[]} */
    const shapes = [
      { shape: "rect", x: 0, y: 0, w, h, fill: palette.panel, rx: 4 },
      line([0, h / 2], [w, h / 2], palette.line),
      line([w / 2, 0], [w / 2, h], palette.line),
      line([0, h], [w, 0], palette.mute, [3, 3]),
    ];
    check.ids.forEach((id, i) => {
      const at = { x: across(check.estimates[i]), y: up(check.exact[i]) };
      const isNamed = check.off.includes(i) || id === pick;
      if (isNamed) shapes.push({ shape: "dot", ...at, r: 5.5, fill: palette.query });
      shapes.push({
        shape: "dot",
        ...at,
        r: isNamed ? 3.6 : 2.4,
        fill: check.exact[i] < 0 ? less : more,
        opacity: isNamed ? 1 : 0.62,
      });
    });
    const size = 13 * unit;
    shapes.push(
      text(w - 5, h / 2 - 9 * unit, [[words.axis_estimate, palette.mute]], size, { anchor: "end" }),
      text(w / 2 + 5, 9 * unit, [[words.axis_exact, palette.mute]], size),
    );
    this.svg.setAttribute("width", String(w));
    this.svg.setAttribute("height", String(h));
    drawShapes(new Pen(this.svg), shapes);
    const said = [
      phrase(words.check_rank, { rho: [pointed(check.rho.toFixed(2)), "number"] }),
      phrase(words.check_top, {
        n: Math.min(TOP, check.ids.length),
        both: [String(check.both), "number"],
        wrong: [String(check.wrong), "number"],
      }),
    ];
    this.svg.setAttribute(
      "aria-label",
      said
        .flat()
        .map((node) => node.textContent)
        .join(" "),
    );
    this.checked.replaceChildren(
      ...said.map((nodes) => {
        const row = el("div");
        row.append(...nodes);
        return row;
      }),
      el("div", "mute", fill(words.check_of, { answer, rival })),
      ...check.off.map((i) => {
        const row = el("button", "off");
        row.addEventListener("click", () => this.take(check.ids[i]));
        row.append(
          el("b", "", name(check.ids[i])),
          ` ${fill(words.check_off, { guess: signed(check.estimates[i]), exact: signed(check.exact[i]) })}`,
        );
        return row;
      }),
    );
  }
}

// A straight line
/** @param {[x: number, y: number]} from @param {[x: number, y: number]} to @param {string} stroke @param {number[]} [dash] @returns {import("../../../kit/browser/types.js").Shape} */
const line = (from, to, stroke, dash) => ({
  shape: "curve",
  points: [from, from, to, to],
  stroke,
  width: 1,
  opacity: 1,
  dash,
});

// "+1.8", "−0.2", "0.0"
/** @param {number} x */
export function signed(x) {
  const said = Math.abs(x).toFixed(1);
  return pointed(Number(said) === 0 ? said : `${x < 0 ? "−" : "+"}${said}`);
}
