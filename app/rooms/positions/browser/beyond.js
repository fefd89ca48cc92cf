// Longer texts: clocks that never finished a turn in the training, rules that slow them, what these cost, and a text pulled apart.

import {
  add,
  button,
  clamp,
  el,
  fill,
  fixed,
  number,
  percent,
  phrase,
  quotation,
  quoted,
  worded,
} from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { json } from "../../../kit/browser/messages.js";
import { across, below, curve } from "../../../kit/browser/picture/axes.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { Drags, picture } from "./draw.js";
import { chips, FindingLab, FINDINGS, hostOf, Slider, whose } from "./findings.js";
import { form } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {{n_ctx: number, base: number, d_head: number, rules: Record<string, {frequencies: number[], factor: number}>}} Stretches */
/** @typedef {{loss: number, last: number, of: number, refused?: string}} Loss */
/** @typedef {{after: number, word: string, gaps: number[], chances: number[], refused?: string}} Gap */
const RULES = ["none", "linear", "dynamic", "yarn", "llama3"];
const FACTORS = [1, 2, 4, 8, 16];
const GAPS = [0, ...Array.from({ length: 14 }, (_, i) => 2 ** (i + 4))];
/** @type {Record<string, string>} */
const COLOURS = {
  none: "var(--ink)",
  linear: "var(--bar-ahead)",
  dynamic: "var(--query)",
  yarn: "var(--bar)",
  llama3: "var(--proof)",
};
/** @type {Record<string, string | undefined>} */
const DASHES = { none: "6 5", dynamic: "2 4" };
const PULLED = ["none", "linear", "yarn", "llama3"]; // rules under which a text is pulled apart
const SERIOUS = 0.3; // nats more than as trained, from which a loss is drawn in purple

export class Beyond extends FindingLab {
  ownFindings = FINDINGS.beyond;
  isWaiting = false;
  /** @type {{left: number, wide: number, n: number} | null} */
  line = null;
  /** @type {Element | null} */
  box = null;

  /** @param {Shown} view */
  constructor(view) {
    super(view);
    this.parts = add(this.right, "div");
    this.factorBox = add(this.right, "div");
    this.factor = new Slider(this.factorBox, words.factor, FACTORS.length - 1, (i) =>
      view.choose({ find: this.shownFinding, factor: String(FACTORS[i]) }),
    );
    this.gapBox = add(this.right, "div");
    this.gap = new Slider(this.gapBox, words.empty_places, GAPS.length - 1, (i) => this.pull(i));
    new Drags(view, (_, event) => this.drag(event));
  }

  get shownFinding() {
    const find = this.view.value("find");
    return FINDINGS.beyond.includes(find) ? find : "turns";
  }

  get times() {
    return this.view.number("factor", 4);
  }

  get host() {
    const host = hostOf(this.view, "rotary");
    return host && !host.refused ? host : null;
  }

  /** @returns {(Stretches & {refused?: string}) | null} */
  get found() {
    const { host } = this;
    return host && this.view.ask("positions/stretches", { factor: this.times }, json, host.key);
  }

  get at() {
    return Math.max(0, GAPS.indexOf(this.view.number("gap", 1024)));
  }

  /** @param {string} find */
  take(find) {
    this.view.choose({ find });
  }

  /** @param {number} i */
  pull(i) {
    this.view.choose({ find: "gap", gap: String(GAPS[clamp(i, 0, GAPS.length - 1)]) });
  }

  // Each is asked for once the one before is there: a run of seconds for each
  /** @returns {{name: string, rule: string, loss: Loss | null}[]} */
  get losses() {
    const { host, view, times } = this;
    /** @type {[string, number][]} */
    const asked = [
      ["none", 1],
      ["dynamic", times],
      ["llama3", times],
      ["yarn", times],
    ];
    if (times > 2) asked.push(["linear", times / 2]);
    asked.push(["linear", times], ["drop", 1]);
    let isOpen = true;
    return asked.map(([rule, factor]) => {
      const loss = host && isOpen ? view.ask("positions/loss", { rule, factor }, json, host.key) : null;
      isOpen &&= loss !== null;
      return { rule, name: this.name(rule, factor), loss };
    });
  }

  /** @returns {Record<string, Gap | null>} */
  get gaps() {
    const { host, view, times } = this;
    let isOpen = true;
    return Object.fromEntries(
      PULLED.map((rule) => {
        const factor = rule === "none" ? 1 : times;
        const gap = host && isOpen ? view.ask("positions/gap", { rule, factor }, json, host.key) : null;
        isOpen &&= gap !== null;
        return [rule, gap];
      }),
    );
  }

  /** @param {string} rule @param {number} [factor] */
  name(rule, factor = this.times) {
    return rule === "none" || rule === "drop"
      ? worded(words.rule_name, rule)
      : fill(words.rule_times, { rule, factor });
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    const { view, found, host, shownFinding } = this;
    this.main.classList.toggle("narrow", view.narrow);
    const why = (/** @type {string} */ id) => worded(words.beyond_why, id);
    chips(this.chips, FINDINGS.beyond, shownFinding, (id) => this.take(id), why);
    this.picture.replaceChildren();
    this.parts.replaceChildren();
    this.box = this.line = null;
    const refused = hostOf(view, "rotary")?.refused ?? found?.refused;
    this.right.hidden = !found || Boolean(refused);
    if (refused) this.picture.append(el("p", "refused", refused));
    this.why.replaceChildren(...(host ? whose(view, host, "beyond", shownFinding) : []), ` ${why(shownFinding)}`);
    if (!found || refused || !host) return;
    this.factorBox.hidden = shownFinding === "turns";
    this.gapBox.hidden = shownFinding !== "gap";
    this.factor.draw(FACTORS.indexOf(this.times), fill(words.times, { n: this.times }), [
      el("b", "", words.factor),
      " ",
      el("b", "q", fill(words.times, { n: this.times })),
      ` ${fill(words.factor_reach, { n: number(this.times * found.n_ctx) })}`,
    ]);
    if (shownFinding === "turns") this.turns(found);
    else if (shownFinding === "rules") this.rules(found);
    else if (shownFinding === "cost") this.cost();
    else this.apart(found);
  }

  // Places of pairs, from fast to slow, and their numbers below
  /** @param {Element} svg @param {number} n @param {number} left @param {number} right @param {number} bottom */
  pairs(svg, n, left, right, bottom) {
    const { unit } = this.view;
    const x = (/** @type {number} */ j) => left + ((j + 0.5) / n) * (right - left);
    const every = n > 40 ? 10 : n > 12 ? 5 : 2;
    const some = Array.from({ length: n }, (_, j) => j).filter(
      (j) => (j % every === 0 && n - 1 - j > every / 2) || j === n - 1,
    );
    below(svg, some, { x, y: bottom + 18 * unit, size: 13 * unit });
    write(svg, (left + right) / 2, bottom + 36 * unit, words.pair_axis, {
      anchor: "middle",
      class: "mt",
      size: 13 * unit,
    });
    return x;
  }

  /** @param {Stretches} found */
  turns({ rules, n_ctx }) {
    const { view } = this;
    const { unit } = view;
    const periods = rules.none.frequencies.map((theta) => (2 * Math.PI) / theta);
    const title = this.title(words.one_turn);
    const [wide, tall] = [this.wide, this.tall(title)];
    const svg = picture(this.picture, wide, tall + 44 * unit, this.said());
    svg.setAttribute("role", "img");
    const [left, right, top] = [70 * unit, wide - 8 * unit, 8 * unit];
    const last = Math.ceil(Math.log10(Math.max(...periods, n_ctx)));
    const y = (/** @type {number} */ value) => top + tall * (1 - (Math.log10(value) - 0.5) / (last - 0.5));
    const limit = y(n_ctx);
    draw(svg, "rect", {
      x: left,
      y: top,
      width: right - left,
      height: limit - top,
      fill: "var(--mute)",
      opacity: 0.08,
    });
    across(
      svg,
      Array.from({ length: last }, (_, i) => 10 ** (i + 1)),
      { y, from: left, to: right, size: 13 * unit, say: number },
    );
    const x = this.pairs(svg, periods.length, left, right, top + tall);
    curve(
      svg,
      [
        [left, limit],
        [right, limit],
      ],
      "var(--query)",
      2,
      "6 4",
    );
    write(svg, left + 8 * unit, limit - 8 * unit, fill(words.trained_on, { n: number(n_ctx) }), {
      class: "qt b",
      size: 13.5 * unit,
    });
    periods.forEach((period, j) => {
      const isOpen = period > n_ctx;
      draw(svg, "path", {
        d: `M${x(j)} ${top + tall}V${y(period)}`,
        stroke: isOpen ? "var(--hatch)" : "var(--line)",
        "stroke-width": 2,
      });
      draw(svg, "circle", {
        cx: x(j),
        cy: y(period),
        r: 6.5 * unit,
        fill: isOpen ? "var(--background)" : "var(--bar)",
        stroke: isOpen ? "var(--bar-ahead)" : "var(--bar)",
        "stroke-width": 2.6 * unit,
      });
    });
    const box = el("div", "numbers bars");
    const slow = periods.findIndex((period) => period > n_ctx);
    const edge = slow > 0 ? slow : periods.length;
    const n = periods.length;
    const some = [...new Set([0, Math.round(edge / 2), edge - 1, edge, Math.round((edge + n) / 2) - 1, n - 1])];
    for (const j of some.filter((j) => j >= 0 && j < n)) {
      const turned = n_ctx / periods[j];
      this.bar(
        box,
        fill(words.pair, { j }),
        Math.min(1, turned),
        turned < 1 ? "less" : "adds",
        fill(words.turned, { n: turnedSo(turned) }),
      );
    }
    this.parts.replaceChildren(
      heading(fill(words.how_far, { n: number(n_ctx) })),
      box,
      el("p", "mute", words.turns_mean),
    );
  }

  /** @param {Element} box @param {string} name @param {number} part @param {string} look @param {string} value @param {string} [colour] */
  bar(box, name, part, look, value, colour) {
    const bar = el("i", look);
    bar.style.width = `${Math.max(0.5, 100 * part)}%`;
    if (colour) bar.style.background = colour;
    const track = el("span", "track");
    track.append(bar);
    box.append(el("span", "name", name), track, el("b", "", value));
  }

  /** @param {Stretches} found */
  rules({ rules, n_ctx }) {
    const { view, times } = this;
    const { unit } = view;
    const own = rules.none.frequencies;
    const title = this.title(words.slower_by);
    const [wide, tall] = [this.wide, this.tall(title)];
    const svg = picture(this.picture, wide, tall + 44 * unit, this.said());
    svg.setAttribute("role", "img");
    const [left, right, top] = [46 * unit, wide - 8 * unit, 8 * unit];
    const most = Math.ceil(
      Math.log2(Math.max(2, ...RULES.flatMap((rule) => rules[rule].frequencies.map((theta, j) => own[j] / theta)))),
    );
    const y = (/** @type {number} */ value) => top + tall * (1 - (Math.log2(value) + 0.35) / (most + 0.6));
    across(
      svg,
      Array.from({ length: most + 1 }, (_, i) => 2 ** i),
      { y, from: left, to: right, size: 13 * unit, say: (n) => fill(words.times, { n }) },
    );
    const x = this.pairs(svg, own.length, left, right, top + tall);
    const open = own.findIndex((theta) => (2 * Math.PI) / theta > n_ctx);
    if (open > 0) {
      const at = (x(open) + x(open - 1)) / 2;
      curve(
        svg,
        [
          [at, top],
          [at, top + tall],
        ],
        "var(--query)",
        1.5,
        "5 4",
      );
      write(svg, at + 6 * unit, top + tall - 8 * unit, words.never, { class: "qt", size: 13 * unit });
    }
    const shown = this.view.value("scaling");
    for (const rule of RULES) {
      const line = curve(
        svg,
        rules[rule].frequencies.map((theta, j) => [x(j), y(own[j] / theta)]),
        COLOURS[rule],
        3.2 * unit,
        DASHES[rule],
      );
      if (shown !== "none" && shown !== rule) line.setAttribute("opacity", "0.3");
    }
    // Names on the lines: each where it is alone
    const pairs = own.length;
    for (const [rule, part, anchor] of /** @type {[string, number, string][]} */ ([
      ["linear", 0.02, "start"],
      ["dynamic", 0.93, "end"],
      ["yarn", 0.47, "end"],
      ["llama3", 0.66, "start"],
      ["none", 0.98, "end"],
    ])) {
      const j = Math.min(pairs - 1, Math.round(part * (pairs - 1)));
      const value = own[j] / rules[rule].frequencies[j];
      const up = rule === "llama3" ? 22 : rule === "yarn" ? -6 : -10;
      if (times > 1 || rule === "none")
        write(svg, x(j), y(value) + up * unit, this.name(rule), {
          anchor,
          size: 13.5 * unit,
          class: "b",
          style: `fill: ${COLOURS[rule]}`,
        });
    }
    const list = el("div", "rules");
    for (const rule of RULES) {
      const take = () => this.view.choose({ find: "rules", scaling: shown === rule ? "none" : rule });
      const made = button("", "rule", take);
      made.setAttribute("aria-pressed", String(shown === rule && rule !== "none"));
      const mark = el("i");
      mark.style.borderTop = `3px ${rule === "none" ? "dashed" : rule === "dynamic" ? "dotted" : "solid"} ${COLOURS[rule]}`;
      const parts = { n: number(n_ctx), times: this.times, grows: fixed(rules.yarn.factor) };
      made.append(mark, el("b", "", this.name(rule)), el("small", "", fill(worded(words.rule_why, rule), parts)));
      list.append(made);
    }
    const n = n_ctx * times;
    const table = el("div", "turned");
    const columns = ["none", "linear", "yarn", "llama3"];
    table.append(
      el("span", "mute", words.pair_head),
      ...columns.map((rule) => el("span", "mute", rule === "none" ? words.as_is : rule)),
    );
    const edge = open > 0 ? open : pairs - 1;
    for (const j of [...new Set([0, Math.round(edge / 2), edge, pairs - 1])]) {
      const seen = fill(words.seen, { n: turnedSo((n_ctx * own[j]) / (2 * Math.PI)) });
      const head = el("span", "", `${j} `);
      head.append(el("small", "", seen));
      table.append(
        head,
        ...columns.map((rule) => el("b", "", turnedSo((n * rules[rule].frequencies[j]) / (2 * Math.PI)))),
      );
    }
    this.parts.replaceChildren(heading(words.the_rules), list, heading(fill(words.turns_at, { n: number(n) })), table);
  }

  cost() {
    const { view, losses } = this;
    const { unit } = view;
    const first = losses[0].loss;
    const title = this.title(
      words.loss_of,
      first && !first.refused ? fill(words.loss_mean, { last: first.last, of: first.of }) : "",
    );
    const refused = losses.find(({ loss }) => loss?.refused)?.loss?.refused;
    if (refused) {
      this.picture.append(el("p", "refused", refused));
      return;
    }
    const [wide, tall] = [this.wide, this.tall(title)];
    const svg = picture(this.picture, wide, tall + 10 * unit, this.said());
    svg.setAttribute("role", "img");
    const left = 100 * unit;
    const each = tall / losses.length;
    const most = Math.max(6.6, ...losses.map(({ loss }) => loss?.loss ?? 0)) * 1.02;
    const x = (/** @type {number} */ value) => left + (value / most) * (wide - left - 60 * unit);
    losses.forEach(({ rule, name, loss }, i) => {
      const y = i * each;
      write(svg, left - 9 * unit, y + each / 2 + 5 * unit, name, { anchor: "end", class: "b", size: 13.5 * unit });
      if (!loss) {
        write(svg, left + 4 * unit, y + each / 2 + 5 * unit, words.measuring, { class: "mt", size: 13 * unit });
        return;
      }
      const isWorse = first && loss.loss - first.loss > SERIOUS;
      draw(svg, "rect", {
        x: left,
        y: y + each * 0.2,
        width: x(loss.loss) - left,
        height: each * 0.6,
        rx: 3,
        fill: isWorse ? "var(--bar-ahead)" : "var(--hatch)",
      });
      write(svg, x(loss.loss) + 7 * unit, y + each / 2 + 5 * unit, fixed(loss.loss), {
        class: "b",
        size: 14 * unit,
      });
      if (rule === "dynamic" && first && Math.abs(loss.loss - first.loss) < 1e-4 && !view.narrow)
        write(svg, x(loss.loss) + 48 * unit, y + each / 2 + 5 * unit, words.waits, { class: "mt", size: 13 * unit });
    });
    if (first)
      curve(
        svg,
        [
          [x(first.loss), 0],
          [x(first.loss), tall],
        ],
        "var(--ink)",
        1.5,
        "4 4",
      );
    const part = el("p", "", fill(words.cost_linear, { n: this.times }));
    const kept = this.losses.filter(({ rule, loss }) => loss && first && (rule === "llama3" || rule === "yarn"));
    this.parts.replaceChildren(heading(words.why_cost), part);
    if (kept.length === 2 && first)
      this.parts.append(
        el(
          "p",
          "",
          fill(words.cost_kept, {
            a: fixed((kept[0].loss?.loss ?? 0) - first.loss, 2),
            b: fixed((kept[1].loss?.loss ?? 0) - first.loss, 2),
          }),
        ),
      );
    this.parts.append(el("p", "", words.cost_dynamic), el("p", "mute", words.cost_untrained));
  }

  /** @param {Stretches} found */
  apart({ n_ctx }) {
    const { view, gaps, host } = this;
    const { unit } = view;
    const one = gaps.none;
    if (one?.refused) {
      this.picture.append(el("p", "refused", one.refused));
      return;
    }
    const labels = host?.tokens.source?.labels ?? [];
    const between = one
      ? fill(words.by_gap, { a: quoted(indexed(labels, one.after)), b: quoted(indexed(labels, one.after + 1)) })
      : "";
    const title = this.title(one ? one.word.trim() || quoted(one.word) : words.measuring, between);
    const [wide, tall] = [this.wide, this.tall(title)];
    const svg = picture(this.picture, wide, tall + 44 * unit, this.said());
    svg.classList.add("touch");
    svg.dataset.drag = "gap";
    const [left, top] = [40 * unit, 8 * unit];
    const right = wide - 24 * unit;
    const n = GAPS.length;
    const x = (/** @type {number} */ i) => left + (i / (n - 1)) * (right - left);
    const y = (/** @type {number} */ chance) => top + tall * (1 - chance);
    draw(svg, "rect", { x: 0, y: top, width: wide, height: tall, fill: "transparent" });
    across(svg, [0, 0.25, 0.5, 0.75, 1], {
      y,
      from: left,
      to: right,
      size: 13 * unit,
      say: (value) => String(100 * value),
    });
    const limit = GAPS.findIndex((gap) => gap >= n_ctx);
    if (limit > 0) {
      curve(
        svg,
        [
          [x(limit), top],
          [x(limit), top + tall],
        ],
        "var(--query)",
        1.6,
        "5 4",
      );
      write(
        svg,
        x(limit) + 6 * unit,
        top + 14 * unit,
        view.narrow ? number(n_ctx) : fill(words.trained_here, { n: number(n_ctx) }),
        { class: "qt", size: 13 * unit },
      );
    }
    const every = view.narrow ? 3 : 2;
    below(
      svg,
      Array.from({ length: n }, (_, i) => i).filter((i) => i % every === 0),
      {
        x,
        y: top + tall + 18 * unit,
        size: 13 * unit,
        say: (i) => (GAPS[i] >= 1e4 ? `${Math.round(GAPS[i] / 1024)}k` : number(GAPS[i])),
      },
    );
    write(svg, (left + right) / 2, top + tall + 36 * unit, words.empty_axis, {
      anchor: "middle",
      class: "mt",
      size: 13 * unit,
    });
    const at = this.at;
    draw(svg, "path", { d: `M${x(at)} ${top}V${top + tall}`, stroke: "var(--query)", "stroke-width": 2 * unit });
    const box = el("div", "numbers bars");
    for (const rule of PULLED) {
      const gap = gaps[rule];
      if (!gap || gap.refused) {
        this.bar(box, this.name(rule), 0, "", "…");
        continue;
      }
      curve(
        svg,
        gap.chances.map((chance, i) => [x(i), y(chance)]),
        COLOURS[rule],
        3 * unit,
      );
      draw(svg, "circle", {
        cx: x(at),
        cy: y(gap.chances[at]),
        r: 6 * unit,
        fill: COLOURS[rule],
        stroke: "var(--background)",
        "stroke-width": 2,
      });
      this.bar(box, this.name(rule), gap.chances[at], "", percent(gap.chances[at]), COLOURS[rule]);
    }
    this.box = svg;
    this.line = { left, wide: right - left, n };
    const name = one ? one.word.trim() || quoted(one.word) : "";
    const head = heading(name);
    head.append(` ${fill(words.places_empty, { n: number(GAPS[at]) })}`);
    this.parts.replaceChildren(head, box, el("p", "mute", fill(words.gap_note, { n: this.times })));
    this.gap.draw(at, fill(words.places_empty, { n: number(GAPS[at]) }), [
      el("b", "", words.empty_places),
      " ",
      el("b", "q", number(GAPS[at])),
      ` ${view.narrow ? "" : words.distance_hint}`,
    ]);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.box || !this.line) return;
    const { left, wide, n } = this.line;
    const x = event.clientX - this.box.getBoundingClientRect().left;
    this.pull(Math.round(((x - left) / wide) * (n - 1)));
  }

  /** @param {number} _ @param {number} right */
  arrow(_, right) {
    if (!right || this.shownFinding === "turns") return false;
    if (this.shownFinding === "gap") this.pull(this.at + right);
    else {
      const i = clamp(FACTORS.indexOf(this.times) + right, 0, FACTORS.length - 1);
      this.view.choose({ find: this.shownFinding, factor: String(FACTORS[i]) });
    }
    return true;
  }

  tools() {
    return [];
  }

  // ------------------------------------------------------------------ words

  said() {
    return this.fact()
      .map((node) => node.textContent)
      .join("");
  }

  status() {
    const { shownFinding } = this;
    const isMeasured = shownFinding === "cost" || shownFinding === "gap";
    const answers =
      shownFinding === "cost"
        ? this.losses.map(({ loss }) => loss)
        : shownFinding === "gap"
          ? Object.values(this.gaps)
          : [];
    const linear =
      shownFinding === "cost"
        ? this.losses.find(({ rule, name }) => rule === "linear" && name === this.name("linear"))?.loss?.loss
        : undefined;
    return {
      finding: shownFinding,
      pending: !this.found || (isMeasured && answers.some((answer) => answer === null)),
      loss: linear ?? "",
      chance: shownFinding === "gap" ? (this.gaps.none?.chances?.[this.at] ?? "") : "",
    };
  }

  /** @returns {Node[]} */
  fact() {
    const { found, shownFinding, times, host } = this;
    if (!found || found.refused) return [];
    if (shownFinding === "turns") {
      const own = found.rules.none.frequencies;
      const open = own.filter((theta) => (2 * Math.PI) / theta > found.n_ctx).length;
      const template = open ? words.fact_turns : words.fact_turns_none;
      return phrase(template, { a: [String(open), ""], n: [String(own.length), ""], length: number(found.n_ctx) });
    }
    if (shownFinding === "rules") return phrase(form([words.fact_rules_one, words.fact_rules], times), { n: times });
    if (shownFinding === "cost") {
      const { losses } = this;
      const of = (/** @type {string} */ rule) => losses.filter((one) => one.rule === rule).at(-1)?.loss;
      const [own, linear, llama] = [of("none"), of("linear"), of("llama3")];
      if (!own || !linear || !llama || own.refused) return phrase(words.fact_cost_waits, {});
      const parts = {
        n: times,
        x: [fixed(own.loss), ""],
        y: [fixed(linear.loss), ""],
        z: [fixed(llama.loss), ""],
      };
      return phrase(words.fact_cost, parts);
    }
    const { gaps, at } = this;
    const one = gaps.none;
    if (!one || one.refused)
      return one?.refused ? [document.createTextNode(one.refused)] : phrase(words.fact_gap_waits, {});
    const labels = host?.tokens.source?.labels ?? [];
    const some =
      one.after > 0 && /^[\p{P}]$/u.test(labels[one.after].trim())
        ? `${labels[one.after - 1]}${labels[one.after].trim()}`
        : indexed(labels, one.after);
    const parts = {
      n: [number(GAPS[at]), ""],
      place: quotation(some.trim()),
      w: [one.word.trim() || quoted(one.word), "w"],
      x: [percent(one.chances[0]), ""],
      y: [percent(one.chances[at]), ""],
    };
    const said = phrase(words.fact_gap, parts);
    const llama = gaps.llama3;
    if (llama && !llama.refused && times > 1)
      said.push(...phrase(words.fact_gap_llama, { z: [percent(llama.chances[at]), ""] }));
    return said;
  }

  foot() {
    const { found } = this;
    if (!found || found.refused) return { proof: "", facts: "" };
    const parts = { base: number(found.base), d: found.d_head, n: number(found.n_ctx) };
    return { proof: "", facts: fill(words.foot_beyond, parts) };
  }

  tables() {
    const { found } = this;
    if (!found || found.refused) return [];
    /** @type {import("./types.js").Table[]} */
    const tables = [
      {
        title: words.table_rules,
        name: "rules",
        columns: [words.pair_head, ...RULES.map((rule) => this.name(rule))],
        rows: found.rules.none.frequencies.map((_, j) => [
          j,
          ...RULES.map((rule) => (2 * Math.PI) / found.rules[rule].frequencies[j]),
        ]),
      },
    ];
    if (this.shownFinding === "cost")
      tables.push({
        title: words.loss_of,
        name: "losses",
        columns: words.table_losses_columns,
        rows: this.losses.filter(({ loss }) => loss && !loss.refused).map(({ name, loss }) => [name, loss?.loss ?? ""]),
      });
    if (this.shownFinding === "gap") {
      const { gaps } = this;
      const some = PULLED.filter((rule) => gaps[rule] && !gaps[rule]?.refused);
      tables.push({
        title: words.table_gap,
        name: "gap",
        columns: [words.empty_places, ...some.map((rule) => this.name(rule))],
        rows: GAPS.map((gap, i) => [gap, ...some.map((rule) => gaps[rule]?.chances[i] ?? "")]),
      });
    }
    return tables;
  }

  snippet() {
    const header = this.host ?? this.view.header;
    const rule = this.view.value("scaling") === "none" ? "llama3" : this.view.value("scaling");
    return fill(this.shownFinding === "gap" ? words.snippet_gap : words.snippet_stretch, {
      ...header.about,
      rule,
      factor: this.times,
      gap: GAPS[this.at],
    });
  }
}

/** @param {string} text */
function heading(text) {
  const title = el("h2");
  title.append(el("b", "", text));
  return title;
}

/** @param {number} turns */
const turnedSo = (turns) => (turns >= 100 ? number(turns) : fixed(turns, turns >= 10 ? 0 : 2));
