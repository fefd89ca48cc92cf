// Clocks: the pairs of numbers of one query and one key as hands of clocks, and their score at every distance. Rotary positions turn
// each pair at its own speed; of a score only the angle between two hands counts.

import {
  add,
  clamp,
  described,
  el,
  fill,
  fixed,
  minus,
  number,
  phrase,
  quoted,
  scientific,
  selectBox,
  worded,
} from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { json } from "../../../kit/browser/messages.js";
import { across, below, curve } from "../../../kit/browser/picture/axes.js";
import { signed, ticks } from "../../../kit/browser/picture/scale.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";
import { Drags, handle, picture } from "./draw.js";
import { chips, FINDINGS, hostOf, leftOf, Slider, whose } from "./findings.js";
import { handRows, pairs, score, shares, straight } from "./numbers.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Clock} Clock */
/** @typedef {import("./types.js").Follower} Follower */
/** @typedef {{low: number[], high: number[], mean: number[]}} Far */
export const NEAR = 64; // words apart that are drawn one by one
const [FIRST, LAST, BIN, SAMPLES] = [6, 16, 0.2, 24]; // from 2 ** 6 to 2 ** 16 words apart: bins of a doubling, and scores in each
const SPREAD = 6; // how much a score changes within 32 words where fast clocks make it
const TOP = 7; // pairs that are named
const BY = 100; // places by which both words are moved on

export class Clocks {
  ownFindings = FINDINGS.clocks;
  /** @type {{left: number, wide: number, from: number, far: number}} Where the curve lies, in pixels */
  line = { left: 0, wide: 1, from: 0, far: 1 };
  /** @type {Clock | null} The clock of `far` */
  farOf = null;
  /** @type {Far} */
  far = { low: [], high: [], mean: [] };

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
    this.main = add(view.labPlace, "div", "main findings");
    const left = add(this.main, "section");
    this.chips = add(left, "div", "chips");
    this.why = add(left, "p", "note why");
    this.picture = add(left, "div", "touch");
    this.legend = add(left, "p", "legend");
    this.right = add(this.main, "section", "side");
    this.parts = add(this.right, "div");
    this.shiftBox = add(this.right, "div", "line");
    this.slider = new Slider(this.right, words.apart, NEAR, (d) => this.go({ d: String(d) }));
    new Drags(view, (_, event) => this.drag(event));
  }

  // ------------------------------------------------------------------ what is chosen

  /** Of the run on the screen, or of a model that has clocks. */
  get host() {
    const host = hostOf(this.view, "rotary");
    return host && !host.refused ? host : null;
  }

  get isGuest() {
    return this.view.header.position !== "rotary";
  }

  get hasHeads() {
    return !this.isGuest;
  }

  /** @returns {Record<string, Follower | null> | null} */
  get openings() {
    const { host, view } = this;
    if (!host) return null;
    const found = view.ask("positions/dials", {}, json, host.key);
    return found?.refused ? { fast: null, slow: null } : found;
  }

  /** The finding that is on the screen; "" for a head that was chosen by hand. */
  get shownFinding() {
    const find = this.view.value("find");
    if (FINDINGS.clocks.includes(find)) return find;
    return this.isGuest || this.view.value("layer") === "" ? "fast" : "";
  }

  // The query and the key, and their head
  get at() {
    const { view, host, shownFinding } = this;
    const header = host ?? view.header;
    const own = header.sites.filter((site) => site.id !== "cross");
    const site = (shownFinding ? null : own.find((one) => one.id === view.value("site"))) ?? own[0];
    const labels = (header.tokens[site.query] ?? header.tokens.source)?.labels ?? [];
    const found = shownFinding ? this.openings?.[shownFinding === "fast" ? "fast" : "slow"] : null;
    if (found) return { site, labels, layer: found.layer, head: found.head, query: found.query, key: found.key };
    const number = (/** @type {string} */ name, /** @type {number} */ otherwise) =>
      shownFinding ? otherwise : view.number(name, otherwise);
    const layer = Math.min(number("layer", header.opening.layer), site.records.length - 1);
    const head = Math.min(number("head", header.opening.head), site.heads - 1);
    const query = Math.min(number("query", labels.length - 1), labels.length - 1);
    const last = site.stack === "decoder" ? query : labels.length - 1;
    const key = clamp(shownFinding || view.value("key") === "" ? query - 1 : view.number("key"), 0, last);
    return { site, labels, layer, head, query, key };
  }

  get shownHead() {
    return this.at;
  }

  // Everything on the screen that no one has chosen: the next choice is made beside it
  held() {
    const { layer, head, query, key } = this.at;
    return { layer: String(layer), head: String(head), query: String(query), key: String(key) };
  }

  /** @param {Record<string, string>} changes */
  go(changes) {
    this.view.choose({ find: this.shownFinding, ...changes });
  }

  /** @param {string} find */
  take(find) {
    const found = this.openings?.[find === "fast" ? "fast" : "slow"];
    const place =
      found && !this.isGuest ? { layer: found.layer, head: found.head, query: found.query, key: found.key } : {};
    const said = Object.fromEntries(Object.entries(place).map(([name, value]) => [name, String(value)]));
    this.view.choose({ ...said, find, d: "", shift: find === "both" ? String(BY) : "0" });
  }

  /** @returns {(Clock & {refused?: string}) | null} */
  get clock() {
    const { host } = this;
    if (!host || (this.shownFinding && !this.openings)) return null;
    const { site, layer, head, query, key } = this.at;
    return this.view.ask("positions/clock", { record: site.records[layer], head, query, key }, json, host.key);
  }

  get shift() {
    const { host } = this;
    const found = host && this.view.ask("positions/shift", {}, json, host.key);
    return found?.refused ? null : found;
  }

  /** @param {Clock} clock */
  distance(clock) {
    return this.view.number("d", clock.places[0] - clock.places[1]);
  }

  get by() {
    // A link may say the finding alone
    return (
      this.view.number("shift") || (this.view.value("find") === "both" && this.view.value("shift") === "" ? BY : 0)
    );
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    const { view } = this;
    this.main.classList.toggle("narrow", view.narrow);
    chips(
      this.chips,
      FINDINGS.clocks,
      this.shownFinding,
      (id) => this.take(id),
      (id) => worded(words.why, id),
    );
    const refused = hostOf(view, "rotary")?.refused ?? this.clock?.refused;
    const { host, clock } = this;
    this.right.hidden = !clock || Boolean(refused);
    if (refused || !clock || !host) {
      this.picture.replaceChildren(...(refused ? [el("p", "refused", refused)] : []));
      this.why.replaceChildren();
      this.legend.replaceChildren();
      return;
    }
    const guest = whose(view, host, "clocks", this.shownFinding || "fast");
    this.why.replaceChildren(...(guest.length ? guest : [worded(words.why, this.shownFinding)]));
    this.picture.replaceChildren();
    this.faces(clock);
    this.curve(clock, host.n_ctx);
    this.legend.replaceChildren(
      words.clocks_turn,
      " · ",
      el("b", "plus", words.adds),
      " ",
      el("b", "minus", words.takes),
    );
    this.side(clock, host.n_ctx);
  }

  /** @param {Clock} clock */
  faces(clock) {
    const { view, by } = this;
    const { unit } = view;
    const hands = pairs(clock);
    const n = hands.length;
    const wide = view.narrow ? view.width : leftOf(view);
    const columns = Math.min(n, view.narrow ? 8 : 16);
    const lines = Math.ceil(n / columns);
    const cell = Math.min(wide / columns, 74 * unit);
    const room = view.below(this.why) === Infinity ? Infinity : (view.below(this.why) * 0.46) / lines;
    const tall = Math.max(34 * unit, Math.min(cell * 1.42, room));
    const radius = Math.min(cell * 0.42, tall * 0.36);
    const size = clamp(cell * 0.27, 9.5 * unit, 13.5 * unit);
    const title = add(this.picture, "h2");
    title.append(
      ...phrase(words.clocks_of, { n: [String(n), ""], q: [words.clocks_q, "q"], k: [words.clocks_k, "k"] }),
    );
    const svg = picture(this.picture, columns * cell, lines * tall, fill(words.clocks_label, { n }));
    svg.setAttribute("role", "img");
    const tone = signed(view.palette);
    const distance = this.distance(clock);
    const added = shares(clock, distance);
    const strength = hands.map((hand) => hand.q * hand.k * clock.scale * clock.factor ** 2);
    const most = Math.max(...strength) || 1;
    const [n0, m0] = [clock.places[1] + by, clock.places[1] + by + distance];
    hands.forEach((hand, j) => {
      const [x, y] = [((j % columns) + 0.5) * cell, Math.floor(j / columns) * tall + radius + 3];
      const share = Math.sqrt(Math.abs(added[j]) / most) * 0.8;
      draw(svg, "circle", {
        cx: x,
        cy: y,
        r: radius,
        fill: tone(added[j] < 0 ? -share : share).fill,
        stroke: "var(--line)",
        "data-pair": j,
      });
      const length = radius * (0.42 + 0.54 * Math.sqrt(strength[j] / most));
      for (const [angle, colour] of /** @type {[number, string][]} */ ([
        [hand.angleK + n0 * hand.theta, "var(--key)"],
        [hand.angleQ + m0 * hand.theta, "var(--query)"],
      ])) {
        const d = `M${x.toFixed(1)} ${y.toFixed(1)}L${(x + Math.cos(angle) * length).toFixed(1)} ${(y - Math.sin(angle) * length).toFixed(1)}`;
        draw(svg, "path", { d, stroke: "var(--background)", "stroke-width": 4.6 * unit, "stroke-linecap": "round" });
        draw(svg, "path", { d, stroke: colour, "stroke-width": 2.7 * unit, "stroke-linecap": "round" });
      }
      write(svg, x, y + radius + size * 1.05, turn((2 * Math.PI) / hand.theta), {
        anchor: "middle",
        class: "mt",
        size,
      });
    });
  }

  /** @param {Clock} clock */
  bins(clock) {
    if (this.farOf === clock) return this.far;
    /** @type {Far} */
    const far = { low: [], high: [], mean: [] };
    for (let e = FIRST; e < LAST - BIN / 2; e += BIN) {
      const scores = Array.from({ length: SAMPLES }, (_, i) =>
        score(clock, Math.round(2 ** (e + (BIN * i) / SAMPLES))),
      );
      far.low.push(Math.min(...scores));
      far.high.push(Math.max(...scores));
      far.mean.push(scores.reduce((sum, one) => sum + one, 0) / SAMPLES);
    }
    this.farOf = clock;
    this.far = far;
    return far;
  }

  /** @param {Clock} clock @param {number} trained */
  curve(clock, trained) {
    const { view } = this;
    const { unit } = view;
    const size = 13 * unit;
    const distance = this.distance(clock);
    const now = score(clock, distance);
    const own = clock.places[0] - clock.places[1];
    const near = Array.from({ length: NEAR + 1 }, (_, d) => score(clock, d));
    const far = this.bins(clock);
    let [low, high] = [Math.min(...near, ...far.low, now), Math.max(...near, ...far.high, now)];
    const pad = Math.max((high - low) * 0.06, (12 - (high - low)) / 2);
    [low, high] = [low - pad, high + pad];
    const title = add(this.picture, "h2", "titled");
    const said = distance === own ? words.apart_own : words.apart_now;
    title.append(
      el("span", "", words.score_apart),
      el("b", "q", fill(said, { d: number(distance), score: fixed(now, 1) })),
    );
    const wide = view.narrow ? view.width : leftOf(view);
    const tall = view.room === Infinity ? 206 * unit : Math.max(90 * unit, view.below(title) - 62 * unit);
    const left = 38 * unit;
    const x0 = view.narrow ? wide - left - 8 * unit : (wide - left) * 0.62;
    const from = left + x0 + 30 * unit;
    const xf = view.narrow ? 0 : wide - from - 14 * unit;
    const y = (/** @type {number} */ value) => 6 * unit + (tall * (high - value)) / (high - low);
    const x = (/** @type {number} */ d) => left + (d / NEAR) * x0;
    const xl = (/** @type {number} */ e) => from + ((e - FIRST) / (LAST - FIRST)) * xf;
    this.line = { left, wide: x0, from, far: xf };
    const label = fill(words.score_label, { distance: number(distance), score: fixed(now, 3) });
    const svg = picture(this.picture, wide, tall + 44 * unit, label);
    this.box = svg;
    if (xf > 0 && trained < 2 ** LAST) {
      const at = xl(Math.log2(trained));
      draw(svg, "rect", {
        x: at,
        y: 6 * unit,
        width: xl(LAST) - at,
        height: tall,
        fill: "var(--mute)",
        opacity: 0.08,
      });
    }
    across(svg, ticks(low, high, 5), { y, from: left, to: xf > 0 ? xl(LAST) : x(NEAR), size });
    curve(
      svg,
      near.map((value, d) => [x(d), y(value)]),
      "var(--hatch)",
      1.4,
    );
    near.forEach((value, d) => draw(svg, "circle", { cx: x(d), cy: y(value), r: 3 * unit, fill: "var(--bar)" }));
    below(svg, [0, 8, 16, 32, 48, 64], { x, y: tall + 22 * unit, size });
    write(svg, x(NEAR / 2), tall + 39 * unit, words.words_apart, { anchor: "middle", class: "mt", size });
    if (xf > 0) {
      const middle = (/** @type {number} */ i) => xl(FIRST + (i + 0.5) * BIN);
      const points = [
        ...far.high.map((v, i) => [middle(i), y(v)]),
        ...far.low.map((v, i) => [middle(i), y(v)]).reverse(),
      ];
      draw(svg, "path", {
        d: `M${points.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L")}Z`,
        fill: "var(--bar)",
        opacity: 0.25,
      });
      curve(
        svg,
        far.mean.map((value, i) => [middle(i), y(value)]),
        "var(--bar)",
        2.4,
      );
      const reach = Math.log2(trained);
      const some = (xf > 200 * unit ? [6, 8, 10, 13, 16] : [6, 16]).filter((e) => Math.abs(e - reach) > 0.9);
      for (const e of some)
        write(svg, xl(e), tall + 22 * unit, e > 15 ? "65k" : number(2 ** e), { anchor: "middle", class: "mt", size });
      if (reach <= LAST) {
        curve(
          svg,
          [
            [xl(reach), 6 * unit],
            [xl(reach), 6 * unit + tall],
          ],
          "var(--query)",
          1.6,
          "5 4",
        );
        write(svg, xl(reach), tall + 22 * unit, number(trained), { anchor: "middle", class: "qt b", size });
      }
      write(svg, xl(11), tall + 39 * unit, fill(words.trained_to, { n: number(trained) }), {
        anchor: "middle",
        class: "mt",
        size,
      });
    }
    const isFar = distance > NEAR;
    if (isFar && xf <= 0) return;
    const at = isFar ? xl(Math.log2(distance)) : x(distance);
    const grip = handle(svg, {
      name: "d",
      label: words.apart,
      value: distance,
      low: 0,
      high: 2 ** LAST,
      text: fill(words.apart_now, { d: number(distance), score: fixed(now, 1) }),
      move: (d) => this.go({ d: String(d) }),
    });
    draw(grip, "rect", { x: at - 14, y: 6 * unit, width: 28, height: tall, fill: "transparent" });
    draw(grip, "path", {
      d: `M${at} ${6 * unit}V${6 * unit + tall}`,
      stroke: "var(--query)",
      "stroke-width": 2 * unit,
    });
    draw(grip, "circle", {
      cx: at,
      cy: y(now),
      r: 6.5 * unit,
      fill: "var(--query)",
      stroke: "var(--background)",
      "stroke-width": 2,
    });
  }

  /** @param {Clock} clock @param {number} trained */
  side(clock, trained) {
    const { view, by } = this;
    const distance = this.distance(clock);
    const added = shares(clock, distance);
    const periods = clock.frequencies.map((theta) => (2 * Math.PI) / theta);
    const order = added.map((_, j) => j).sort((a, b) => Math.abs(added[b]) - Math.abs(added[a]));
    const named = order.slice(0, TOP);
    const rest = straight(clock) + order.slice(TOP).reduce((sum, j) => sum + added[j], 0);
    const most = Math.max(...added.map(Math.abs), Math.abs(rest)) || 1;
    const box = el("div", "shares");
    const line = (/** @type {(Node | string)[]} */ name, /** @type {number} */ value) => {
      const bar = el("i", value < 0 ? "less" : "adds");
      bar.style.width = `${(50 * Math.abs(value)) / most}%`;
      const track = el("span", "track");
      track.append(bar);
      const label = el("span");
      label.append(...name);
      box.append(label, track, el("b", value < 0 ? "minus" : "plus", plus(value)));
    };
    for (const j of named) {
      const period = el("small", "", fill(words.pair_turn, { n: turn(periods[j]) }));
      line([`${fill(words.pair, { j })} `, period], added[j]);
    }
    if (order.length > TOP || clock.q.length > 2 * added.length)
      line([fill(words.others, { n: order.length - named.length })], rest);
    box.append(el("b", "sum", words.score_sum), el("span", "sum"), el("b", "sum", fixed(score(clock, distance), 1)));
    const title = el("h2");
    title.append(el("b", "", words.makes), ` ${fill(words.makes_apart, { d: number(distance) })}`);
    // Fast, middle and slow pairs: slow are those that finished no turn in the training, where there are any
    const n = periods.length;
    const found = periods.findIndex((period) => period > trained);
    const slow = found > 0 ? found : Math.ceil((2 * n) / 3);
    const half = Math.ceil(slow / 2);
    const [one, four] = [shares(clock, 1), shares(clock, 4)];
    const does = el("div", "does");
    const said = el("h2");
    said.append(el("b", "", words.from_to));
    for (const [first, end, template] of /** @type {[number, number, string][]} */ ([
      [0, half, words.pairs_turn],
      [half, slow, words.pairs_turn],
      [slow, n, found > 0 ? words.pairs_slow : words.pairs_turn],
    ])) {
      if (first >= end) continue;
      const by = four.slice(first, end).reduce((sum, value, i) => sum + value - one[first + i], 0);
      const parts = { a: first, b: end - 1, low: turn(periods[first]), high: turn(periods[end - 1]) };
      does.append(
        el("span", "", fill(template, parts)),
        el("b", Math.abs(by) < 0.05 ? "" : by < 0 ? "minus" : "plus", Math.abs(by) < 0.05 ? fixed(0, 1) : plus(by)),
      );
    }
    this.parts.replaceChildren(title, box, said, does);
    const both = described(el("span", "seg"), "group", words.both);
    for (const [value, text] of /** @type {[string, string][]} */ ([
      ["0", words.shift_none],
      [String(BY), fill(words.shift_by, { n: BY })],
    ])) {
      const button = el("button", "", text);
      button.setAttribute("aria-pressed", String(by === Number(value)));
      button.addEventListener("click", () =>
        this.view.choose(
          value === "0" && this.shownFinding === "both"
            ? { find: "slow", shift: "0" }
            : { find: this.shownFinding, shift: value },
        ),
      );
      both.append(button);
    }
    this.shiftBox.replaceChildren(both);
    this.slider.draw(
      Math.min(distance, NEAR),
      fill(words.apart_now, { d: number(distance), score: fixed(score(clock, distance), 1) }),
      [
        el("b", "", words.distance_title),
        " ",
        el("b", "q", number(distance)),
        ` ${view.narrow ? "" : words.distance_hint}`,
      ],
    );
  }

  // ------------------------------------------------------------------ by hand

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.box) return;
    const x = event.clientX - this.box.getBoundingClientRect().left;
    const { left, wide, from, far } = this.line;
    const isFar = far > 0 && x > (left + wide + from) / 2;
    const d = isFar
      ? 2 ** (FIRST + clamp((x - from) / far, 0, 1) * (LAST - FIRST))
      : clamp(((x - left) / wide) * NEAR, 0, NEAR);
    this.go({ d: String(Math.round(d)) });
  }

  /** @param {number} _ @param {number} right */
  arrow(_, right) {
    const { clock } = this;
    if (!clock || clock.refused || !right) return false;
    this.go({ d: String(clamp(this.distance(clock) + right, 0, 2 ** LAST)) });
    return true;
  }

  tools() {
    const { view } = this;
    if (this.isGuest || !this.clock) return [];
    const { labels, query, key, site } = this.at;
    const last = site.stack === "decoder" ? query : labels.length - 1;
    const select = (
      /** @type {string} */ label,
      /** @type {string} */ name,
      /** @type {number} */ value,
      /** @type {number} */ most,
    ) => {
      /** @type {[string, string][]} */
      const options = labels.slice(0, most + 1).map((_, i) => [String(i), indexed(labels, i)]);
      return selectBox(label, options, String(value), (at) => view.choose({ d: "", [name]: at }));
    };
    return [
      select(words.query, "query", query, labels.length - 1),
      select(words.key, "key", key, last),
      ...(view.chooser ? [view.chooser.element] : []),
    ];
  }

  // ------------------------------------------------------------------ words

  status() {
    const { clock } = this;
    if (!clock || clock.refused)
      return { finding: this.shownFinding, pending: !clock && !hostOf(this.view, "rotary")?.refused };
    const { layer, head } = this.at;
    const distance = this.distance(clock);
    return {
      finding: this.shownFinding,
      head: `${layer}.${head}`,
      score: score(clock, distance),
      distance,
      shift: this.shift?.scores ?? "",
    };
  }

  fact() {
    const { clock, by } = this;
    if (!clock && !hostOf(this.view, "rotary")?.refused) return phrase(words.clocks_wait, {});
    if (!clock || clock.refused) return [];
    const { labels, layer, head, query, key } = this.at;
    const distance = this.distance(clock);
    const own = clock.places[0] - clock.places[1];
    const at = (/** @type {number} */ d) => /** @type {[string, string]} */ ([fixed(score(clock, d), 1), ""]);
    const parts = { q: [quoted(indexed(labels, query)), "q"], k: [quoted(indexed(labels, key)), "k"], layer, head };
    if (by) return phrase(words.fact_shift, { n: by, x: at(distance) });
    if (distance !== own)
      return phrase(words.fact_apart, {
        ...parts,
        d: [number(distance), ""],
        x: at(distance),
        own: minus(own),
        y: at(own),
      });
    const near = Array.from({ length: 32 }, (_, i) => score(clock, i + 1));
    const [low, high] = [Math.min(...near), Math.max(...near)];
    if (high - low > SPREAD) return phrase(words.fact_fast, { ...parts, x: at(1), y: at(4) });
    return phrase(words.fact_slow, { ...parts, x: [fixed(low, 1), ""], y: [fixed(high, 1), ""] });
  }

  foot() {
    const { clock, shift } = this;
    if (!clock || clock.refused) return { proof: "", facts: "" };
    const own = score(clock, clock.places[0] - clock.places[1]);
    const adds = Math.abs(own - clock.score) < 1e-3 * Math.max(1, Math.abs(clock.score));
    return {
      proof: adds ? fill(words.foot_sum, { n: clock.frequencies.length }) : "",
      facts: shift ? fill(words.foot_moved_on, { by: shift.by, weights: scientific(shift.weights) }) : "",
    };
  }

  tables() {
    const { clock } = this;
    if (!clock || clock.refused) return [];
    const distance = this.distance(clock);
    const [n0, m0] = [clock.places[1] + this.by, clock.places[1] + this.by + distance];
    return [
      {
        title: words.table_clocks,
        name: "clocks",
        columns: words.table_clocks_columns,
        rows: handRows(clock, m0, n0, shares(clock, distance)),
      },
      {
        title: words.score_by,
        name: "scores",
        columns: words.table_scores_columns,
        rows: Array.from({ length: NEAR + 1 }, (_, d) => [d, score(clock, d)]),
      },
    ];
  }

  snippet() {
    const { view, host, clock } = this;
    const { site, layer, head, query, key } = this.at;
    const header = host ?? view.header;
    const windowed = header.windowed?.[layer] ? "True" : "False";
    return fill(words.snippet_clock, {
      ...header.about,
      record: site.records[layer],
      head,
      query,
      key,
      windowed,
      distance: clock && !clock.refused ? this.distance(clock) : 0,
    });
  }
}

// Words for one turn, as short as a clock has room for
/** @param {number} period */
export function turn(period) {
  if (period < 10) return fixed(period, 1);
  if (period < 1000) return String(Math.round(period));
  return period < 1e6 ? `${Math.round(period / 1000)}k` : `${Math.round(period / 1e6)}M`;
}

/** @param {number} value */
const plus = (value) => pointed(`${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`);
