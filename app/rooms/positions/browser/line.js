// Two words on a line: rotary positions turn each pair of features of a query and a key like two hands; only the angle between them counts.

import {
  add,
  apart,
  clamp,
  el,
  fill,
  isStill,
  fixed,
  minus,
  number,
  phrase,
  quoted,
  scientific,
  selectBox,
  worded,
} from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { ticks, signed } from "../../../kit/browser/picture/scale.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { Drags, elsewhere, grip, handle, picture } from "./draw.js";
import { handRows, highest, pairs, score, shares, straight } from "./numbers.js";
import { json } from "../../../kit/browser/messages.js";
import { across, below, curve, drop } from "../../../kit/browser/picture/axes.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Clock} Clock */
const [BEHIND, AHEAD] = [10, 30]; // distances on the curve: into the future, and back
const BY = 20; // places that "Move both" moves
const LASTS = 900; // ms of that move

export class Line {
  /** @type {{step: number} | null} Pixels a place on the line */
  line = null;
  /** @type {{m: number, n: number}} Where the words stood when a drag began */
  began = { m: 0, n: 0 };
  /** @type {{m: number, n: number} | null} Where they are while they move by themselves */
  moving = null;
  /** @type {HTMLElement | null} */
  chooserLine = null;
  chooserOf = ""; // what it says

  /** @param {Shown} view */
  constructor(view) {
    this.view = view;
    this.host = view.labPlace;
    new Drags(
      view,
      (name, event, start) => this.drag(name, event.clientX - start.clientX),
      () => (this.began = this.stands),
    );
  }

  get hasHeads() {
    return this.isRotary;
  }

  get shownHead() {
    return this.at;
  }

  get isRotary() {
    return this.view.header.position === "rotary";
  }

  get at() {
    const { view } = this;
    const site =
      view.site().id === "cross"
        ? /** @type {import("./types.js").Site} */ (view.header.sites.find((one) => one.id !== "cross"))
        : view.site();
    const layer = Math.min(view.number("layer", view.header.opening.layer), site.records.length - 1);
    const head = Math.min(view.number("head", view.header.opening.head), site.heads - 1);
    const labels = view.side(site.query).labels;
    const [query, key] = [view.number("q"), view.number("k")].map((at) => Math.min(at, labels.length - 1));
    return { site, layer, head, query, key, labels };
  }

  /** @returns {Clock & {refused?: string} | null} */
  get clock() {
    const { site, layer, head, query, key } = this.at;
    return this.isRotary
      ? this.view.ask("positions/clock", { record: site.records[layer], head, query, key }, json)
      : null;
  }

  // Where the two words stand on the line
  get stands() {
    const { view } = this;
    if (this.moving) return this.moving;
    const own = this.clock?.places ?? [0, 0];
    return { m: view.number("m", own[0]), n: view.number("n", own[1]) };
  }

  // ------------------------------------------------------------------ drawing

  draw() {
    const { view, host } = this;
    const clock = this.clock;
    const kept = this.isRotary && this.chooserOf === this.choices ? this.chooserLine : null;
    host.replaceChildren(...(kept ? [kept] : []));
    if (!this.isRotary) return elsewhere(view, words.no_clocks, "rotary");
    if (!kept) this.chooser();
    if (!clock) return;
    if (clock.refused) {
      add(host, "p", "refused").textContent = clock.refused;
      return;
    }
    this.lineOf();
    const main = add(host, "div", "main clocks");
    main.classList.toggle("narrow", view.narrow);
    this.faces(add(main, "section", "faces"), clock);
    this.curveOf(add(main, "section", "score"), clock);
  }

  // The choices that the line says
  get choices() {
    const { site, layer, head, query, key } = this.at;
    return JSON.stringify([this.view.header.key, site.id, layer, head, query, key]);
  }

  // Which layer, head and words
  chooser() {
    const { view } = this;
    const { query, key, labels } = this.at;
    const line = (this.chooserLine = add(this.host, "div", "chooser"));
    this.chooserOf = this.choices;
    /** @param {string} label @param {string} kind @param {number} value @param {(value: string) => void} act */
    const select = (label, kind, value, act) =>
      add(line, "label", kind).append(label, selectBox(label, tokens, String(value), act));
    /** @type {[string, string][]} */
    const tokens = labels.map((label, i) => [String(i), `${apart(label)} · ${i}`]);
    line.append(view.chooser?.element ?? "");
    select(words.query, "q", query, (q) => view.choose({ q, m: "", n: "" }));
    select(words.key, "k", key, (k) => view.choose({ k, m: "", n: "" }));
  }

  lineOf() {
    const { view } = this;
    const { unit } = view;
    const { labels, query, key } = this.at;
    const { m, n } = this.stands;
    const last = view.header.line;
    const [width, left, right] = [view.width, 24 * unit, 24 * unit];
    const step = (width - left - right) / last;
    this.line = { step };
    const x = (/** @type {number} */ place) => left + place * step;
    const svg = picture(this.host, width, 70 * unit, words.line);
    svg.classList.add("touch");
    draw(svg, "path", {
      d: `M${x(0)} ${34 * unit}H${x(last)}`,
      stroke: "var(--line)",
      "stroke-width": 4,
      "stroke-linecap": "round",
    });
    below(svg, ticks(0, last, view.narrow ? 4 : 8), { x, y: 64 * unit, size: 13 * unit });
    const bar = handle(svg, {
      name: "both",
      label: words.both,
      value: Math.round(Math.min(m, n)),
      low: 0,
      high: last - Math.round(Math.abs(m - n)),
      move: (to) => this.move(to - Math.min(m, n)),
    });
    draw(bar, "path", { d: `M${x(n)} ${34 * unit}H${x(m)}`, stroke: "var(--proof)", "stroke-width": 8 * unit });
    draw(bar, "rect", {
      x: Math.min(x(m), x(n)),
      y: 34 * unit - 22,
      width: Math.max(2, Math.abs(x(m) - x(n))),
      height: 44,
      fill: "transparent",
    });
    const close = Math.abs(x(m) - x(n)) < 90 * unit;
    const ends = /** @type {[string, number, string, string, string][]} */ ([
      ["n", n, "var(--key)", labels[key], "kt b"],
      ["m", m, "var(--query)", labels[query], "qt b"],
    ]);
    for (const [name, place, colour, label, kind] of ends) {
      const other = name === "n" ? m : n;
      const group = handle(svg, {
        name,
        label: fill(words.word_handle, { word: quoted(label) }),
        value: Math.round(place),
        low: 0,
        high: last,
        move: (to) => view.choose({ [name]: String(to) }),
      });
      grip(group, x(place), 34 * unit, 44);
      draw(group, "circle", { cx: x(place), cy: 34 * unit, r: 11 * unit, fill: colour });
      const isLeft = place < other || (place === other && name === "n");
      const anchor = !close ? "middle" : isLeft ? "end" : "start";
      write(
        group,
        clamp(x(place) + (close ? (isLeft ? -4 : 4) * unit : 0), anchor === "end" ? 60 * unit : 0, width),
        13 * unit,
        fill(words.word_at, { word: label, place: Number.isInteger(place) ? place : pointed(place.toFixed(1)) }),
        { anchor, class: kind, size: 13.5 * unit },
      );
    }
  }

  /** @param {HTMLElement} host @param {Clock} clock */
  faces(host, clock) {
    const { view } = this;
    const { unit } = view;
    const { m, n } = this.stands;
    const hands = pairs(clock);
    const title = add(host, "h2");
    title.append(
      el("b", "", fill(words.clocks, { n: hands.length })),
      " ",
      ...phrase(words.clocks_note, { q: ["q", "q"], k: ["k", "k"] }),
    );
    const across = view.narrow
      ? Math.max(3, Math.min(8, Math.floor(view.width / (84 * unit))))
      : hands.length > 16
        ? 11
        : 8;
    const wide = view.narrow ? view.width : view.width - (404 + 28) * unit;
    const gap = Math.min(98 * unit, wide / across);
    const under = (view.room < Infinity ? 44 : view.isProjected ? 74 : 66) * unit; // two numbers, and the space to the next row
    const radius = Math.max(
      12 * unit,
      Math.min(41 * unit, gap * 0.42, (view.below(title) / Math.ceil(hands.length / across) - under) / 2),
    );
    const tall = 2 * radius + under;
    const size = clamp(gap * 0.14, 9 * unit, 13.5 * unit);
    const added = shares(clock, m - n);
    const most = Math.max(...hands.map((hand) => hand.q * hand.k)) || 1;
    const svg = picture(
      host,
      across * gap,
      Math.ceil(hands.length / across) * tall,
      fill(words.clocks_label, { n: hands.length }),
    );
    svg.setAttribute("role", "img");
    const diverging = signed(view.palette);
    hands.forEach((hand, i) => {
      const [x, y] = [(i % across) * gap + gap / 2, Math.floor(i / across) * tall + radius + 4 * unit];
      const [q, k] = [-(hand.angleQ + m * hand.theta), -(hand.angleK + n * hand.theta)];
      const end = (/** @type {number} */ angle, /** @type {number} */ r) =>
        `${(x + r * Math.cos(angle)).toFixed(1)} ${(y + r * Math.sin(angle)).toFixed(1)}`;
      const between = ((((q - k + Math.PI) % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI)) - Math.PI;
      const weight = Math.sqrt((hand.q * hand.k) / most);
      const { fill: colour } = diverging(added[i] >= 0 ? 0.12 + 0.5 * weight : -0.12 - 0.5 * weight);
      draw(svg, "circle", {
        cx: x,
        cy: y,
        r: radius,
        fill: "var(--panel)",
        stroke: "var(--line)",
        "stroke-width": 1.5,
      });
      draw(svg, "path", {
        d: `M${x} ${y}L${end(k, radius)}A${radius} ${radius} 0 0 ${between > 0 ? 1 : 0} ${end(q, radius)}Z`,
        fill: colour,
        opacity: 0.75,
      });
      draw(svg, "path", {
        d: `M${x} ${y}L${end(k, radius - 3)}`,
        fill: "none",
        stroke: "var(--key)",
        "stroke-width": 3,
        "stroke-linecap": "round",
      });
      draw(svg, "path", {
        d: `M${x} ${y}L${end(q, radius - 3)}`,
        fill: "none",
        stroke: "var(--query)",
        "stroke-width": 3,
        "stroke-linecap": "round",
      });
      draw(svg, "circle", { cx: x, cy: y, r: 2.5, fill: "var(--ink)" });
      write(svg, x, y + radius + 18 * unit, `${added[i] >= 0 ? "+" : "−"}${fixed(Math.abs(added[i]))}`, {
        anchor: "middle",
        class: added[i] >= 0 ? "b plus" : "b minus",
        size,
      });
      const period = (2 * Math.PI) / hand.theta;
      write(svg, x, y + radius + 34 * unit, period < 20 ? fixed(period, 1) : number(period), {
        anchor: "middle",
        class: "mt",
        size: size * 0.9,
      });
    });
    const rest = clock.q.length - 2 * hands.length;
    add(host, "p", "note").textContent =
      words.clocks_legend + (rest ? ` ${fill(words.clocks_rest, { n: rest, share: fixed(straight(clock)) })}` : "");
  }

  /** @param {HTMLElement} host @param {Clock} clock */
  curveOf(host, clock) {
    const { view } = this;
    const { unit } = view;
    const { labels, query, key, site } = this.at;
    const { m, n } = this.stands;
    const distance = m - n;
    const now = score(clock, distance);
    const title = add(host, "h2");
    title.append(
      el("b", "", words.score_by),
      " ",
      ...phrase("{q} − {k}", { q: [quoted(labels[query]), "q"], k: [quoted(labels[key]), "k"] }),
    );
    const [low, high] = [Math.min(-BEHIND, distance), Math.max(AHEAD, distance)];
    const points = Array.from({ length: 161 }, (_, i) => low + ((high - low) * i) / 160);
    const scores = points.map((at) => score(clock, at));
    const [least, most] = [Math.min(...scores, now), Math.max(...scores, now)];
    const [width, height, left] = [
      view.narrow ? Math.min(view.width, 480 * unit) : 404 * unit,
      Math.max(80 * unit, Math.min(216 * unit, view.below(title) - 80 * unit)),
      40 * unit,
    ];
    const x = (/** @type {number} */ at) => left + ((at - low) * (width - left - 8 * unit)) / (high - low);
    const y = (/** @type {number} */ value) => 12 * unit + (height * (most - value)) / (most - least || 1);
    const isCausal = site.stack === "decoder";
    const svg = picture(
      host,
      width + 6,
      height + 40 * unit,
      fill(words.score_label, { distance: minus(Math.round(distance)), score: fixed(now, 3) }),
    );
    svg.setAttribute("role", "img");
    if (isCausal) {
      const hatch = draw(draw(svg, "defs"), "pattern", {
        id: "future",
        width: 5,
        height: 5,
        patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)",
      });
      draw(hatch, "rect", { width: 1.1, height: 5, fill: "var(--hatch)" });
    }
    across(svg, ticks(least, most), { y, from: left, to: width, size: 13 * unit });
    if (isCausal) {
      draw(svg, "rect", {
        x: left,
        y: 8 * unit,
        width: Math.max(0, x(0) - left),
        height: height + 8 * unit,
        fill: "url(#future)",
        opacity: 0.5,
      });
      write(svg, (left + x(0)) / 2, 28 * unit, words.future, { anchor: "middle", class: "mt", size: 12.5 * unit });
    }
    /** @type {[x: number, y: number][]} */
    const line = points.map((at, i) => [x(at), y(scores[i])]);
    curve(svg, line, "var(--bar)", 2.4);
    drop(svg, [x(distance), y(now)], height + 14 * unit, "var(--proof)");
    draw(svg, "circle", { cx: x(distance), cy: y(now), r: 7 * unit, fill: "var(--proof)" });
    below(svg, ticks(low, high), { x, y: height + 32 * unit, size: 13 * unit });
    const says = add(host, "p", "now");
    says.append(
      el("span", "a", fill(words.distance_is, { distance: minus(Number(distance.toFixed(1))) })),
      " ",
      ...phrase(words.score_is, { score: [fixed(now, 3), "score"] }),
    );
    const best = highest(clock, AHEAD);
    add(host, "p", "note").append(...phrase(words.highest, { distance: [String(best), ""] }));
  }

  // ------------------------------------------------------------------ by hand

  /** @param {string} name @param {number} pixels */
  drag(name, pixels) {
    if (!this.line) return;
    const by = Math.round(pixels / this.line.step);
    const last = this.view.header.line;
    const { m, n } = this.began;
    if (name === "both") {
      const most = clamp(by, -Math.min(m, n), last - Math.max(m, n));
      this.view.choose({ m: String(m + most), n: String(n + most) });
    } else this.view.choose({ [name]: String(clamp((name === "m" ? m : n) + by, 0, last)) });
  }

  /** @param {number} by */
  move(by) {
    const { m, n } = this.stands;
    this.view.choose({ m: String(Math.round(m + by)), n: String(Math.round(n + by)) });
  }

  // Left and right move the query's word, up and down the key's
  /** @param {number} down @param {number} right */
  arrow(down, right) {
    if (!this.clock) return false;
    const { m, n } = this.stands;
    const [name, at] = right ? ["m", m + right] : ["n", n - down];
    this.view.choose({ [name]: String(clamp(Math.round(at), 0, this.view.header.line)) });
    return true;
  }

  // Both words move on, and every hand with them
  moveBoth() {
    if (this.moving || !this.clock) return;
    const { m, n } = this.stands;
    const by = Math.max(m, n) + BY <= this.view.header.line ? BY : -Math.min(m, n, BY);
    if (!by) return;
    if (isStill()) return this.move(by);
    const start = performance.now();
    const go = (/** @type {number} */ now) => {
      if (this.view.labLeaves.signal.aborted) return;
      const part = Math.min(1, Math.max(0, (now - start) / LASTS));
      const eased = part * part * (3 - 2 * part);
      this.moving = part < 1 ? { m: m + by * eased, n: n + by * eased } : null;
      if (part < 1) {
        requestAnimationFrame(go);
        this.view.invalidate("answer");
      } else this.move(by);
    };
    requestAnimationFrame(go);
  }

  tools() {
    const { view } = this;
    if (!this.isRotary) return [];
    return [
      el("span", "mute note", words.clock_hint),
      view.button(null, words.move_both, () => this.moveBoth()),
      view.button(null, words.reset, () => view.choose({ m: "", n: "" })),
    ];
  }

  // ------------------------------------------------------------------ words

  status() {
    const { clock } = this;
    if (!clock || clock.refused) return {};
    const { m, n } = this.stands;
    return { score: score(clock, m - n), distance: m - n, shift: this.shift?.scores ?? "" };
  }

  get shift() {
    const found = this.view.ask("positions/shift", {}, json);
    return found?.refused ? null : found;
  }

  fact() {
    const { view } = this;
    const clock = this.clock;
    if (!this.isRotary)
      return phrase(words.fact_elsewhere, {
        model: view.header.model,
        own: worded(words.kinds, view.header.position).toLowerCase(),
      });
    if (!clock || clock.refused) return [];
    const { m, n } = this.stands;
    const [query, key] = clock.places;
    const by = m - query;
    if (Math.abs(m - n - (query - key)) < 1e-6 && by) {
      return phrase(words.fact_both, { n: minus(Number(by.toFixed(0))), score: [fixed(score(clock, m - n), 3), "a"] });
    }
    const said = phrase(words.fact_clock, {
      q: ["q", "q"],
      k: ["k", "k"],
      distance: [minus(Number((m - n).toFixed(1))), "a"],
      score: [fixed(score(clock, m - n), 2), "a"],
    });
    if (m < n && this.at.site.stack === "decoder") said.push(...phrase(words.fact_future, {}));
    return said;
  }

  foot() {
    if (!this.isRotary) return { proof: "", facts: "" };
    const { shift } = this;
    const clock = this.clock;
    const { layer, head } = this.at;
    const pairsOf =
      clock && !clock.refused
        ? ` · ${fill(words.foot_pairs, { features: clock.q.length, n: clock.frequencies.length })}`
        : "";
    return {
      proof: shift
        ? fill(words.foot_shift, {
            by: shift.by,
            scores: scientific(shift.scores),
            weights: scientific(shift.weights),
          })
        : "",
      facts: fill(words.head, { layer, head }) + pairsOf,
    };
  }

  tables() {
    const clock = this.clock;
    if (!clock || clock.refused) return [];
    const { m, n } = this.stands;
    return [
      {
        title: words.table_clocks,
        name: "clocks",
        columns: words.table_clocks_columns,
        rows: handRows(clock, m, n, shares(clock, m - n)),
      },
      {
        title: words.score_by,
        name: "scores",
        columns: words.table_scores_columns,
        rows: Array.from({ length: BEHIND + AHEAD + 1 }, (_, i) => [i - BEHIND, score(clock, i - BEHIND)]),
      },
    ];
  }

  snippet() {
    const { view } = this;
    const { site, layer, head, query, key } = this.at;
    const { m, n } = this.stands;
    const windowed = view.header.windowed?.[layer] ? "True" : "False";
    if (!this.isRotary) return fill(words.snippet_rotary, view.header.about);
    return fill(words.snippet_clock, {
      ...view.header.about,
      record: site.records[layer],
      head,
      query,
      key,
      windowed,
      distance: Math.round(m - n),
    });
  }
}
