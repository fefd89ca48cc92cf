// Parts taken from the other sentence: one sentence, the map of all parts, the next word, the strongest of them, and where a head looks.

import { WORDS as words } from "./constants.js";
import { add, button, choice, el, fill, fixed, phrase, quoted, same, setText } from "../../../kit/browser/dom.js";
import { indexed } from "../../../kit/browser/labels.js";
import { Pen } from "../../../kit/browser/pen.js";
import { signs } from "../../../kit/browser/picture/scale.js";
import { draw } from "../../../kit/browser/picture/svg.js";
import { drawShapes } from "../../../kit/browser/scene.js";
import { scrolled } from "../../../streamlit_edge/browser/page.js";
import { Tip } from "../../../kit/browser/tip.js";
import { drawOutlined } from "./answer.js";
import { idOf, PartsFound, placeOf } from "./found.js";
import { Low } from "./low.js";
import { noteOf } from "./notes.js";
import { percent } from "./numbers.js";
import { Paths } from "./paths.js";
import { partAt, partBeside, planOf, shapesOf } from "./partsmap.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./found.js").Kind} Kind */
/** @typedef {import("./found.js").Measure} Measure */
/** @typedef {import("./types.js").Header} Header */
/** @typedef {import("./types.js").Side} Side */
/** @typedef {{data: Header, values: Record<string, string>, found: PartsFound, pick: string | null, seconds: number, side: Side | null, offers: import("./types.js").Offer[], palette: import("./types.js").Palette, type: import("./types.js").Type, isProjected: boolean, notes: import("./notes.js").Notes | null, tests: import("./low.js").Tests | null, paths: import("./paths.js").PathsFound | null}} Shown */

const TEMPLATES = {
  patch: [words.taken_falls, words.taken_rises, words.taken_stays],
  zero: [words.silent_falls, words.silent_rises, words.silent_stays],
  mean: [words.mean_falls, words.mean_rises, words.mean_stays],
};
const [LISTED, LISTED_LOW] = [7, 5]; // parts, and those of a low window
const [LEAST, FOOT] = [180, 50]; // pixels of the map, and below it
const SAID = 44; // of the lines below paths
const [RIGHT, ROW, LOOK] = [218, 21.4, 118]; // of the right column without list and looks, of a row of the list, and of a look
const NARROW = 560; // pixels, below which layers go down
const APART = 200; // ms between two orders of the list

export class Board {
  /** @type {Shown} */
  shown;
  /** @type {import("./partsmap.js").Plan | null} */
  plan = null;
  /** @type {string[]} The list as it stands */
  listed = [];
  sorted = { at: 0, of: /** @type {unknown[]} */ ([]) }; // when, and the list that it is
  isOver = false; // whether the pointer is on the list, which then keeps its order
  /** @type {unknown[]} Of the switches as they are */
  switched = [];
  /** @type {import("./types.js").Offer[]} */
  offered = [];

  /** @param {HTMLElement} box @param {(changes: Record<string, string>) => void} choose @param {(id: string) => void} take a part is taken by the visitor */
  constructor(box, choose, take) {
    this.box = box;
    this.choose = choose;
    this.take = take;
    this.left = add(box, "section", "left");
    this.fact = add(this.left, "h2", "fact");
    this.fact.setAttribute("aria-live", "polite");
    this.switches = add(this.left, "div", "switches");
    this.offers = add(this.left, "div", "offers");
    const line = add(this.left, "div", "legend");
    this.legend = add(line, "span", "mute");
    this.counts = add(line, "b", "counts");
    this.map = add(this.left, "div", "parts");
    this.map.tabIndex = 0;
    this.map.setAttribute("role", "group");
    this.svg = draw(this.map, "svg", { "aria-hidden": "true" });
    this.tip = new Tip(box);
    this.paths = new Paths(this.left, box, choose, take);
    const steps = add(this.left, "span", "steps");
    for (const [by, text] of /** @type {[number, string][]} */ ([
      [-1, words.stronger],
      [1, words.weaker],
    ]))
      steps.append(button(text, "quiet", () => this.next(by)));
    this.right = add(box, "section", "right");
    const over = add(this.right, "div", "line");
    add(over, "h2").textContent = words.next_word;
    add(over, "span", "mute note").textContent = words.next_word_note;
    this.bars = add(this.right, "div", "bars");
    const head = add(this.right, "div", "line");
    add(head, "h2").textContent = words.strongest;
    this.kinds = add(head, "span", "kinds");
    this.list = add(this.right, "div", "strongest");
    this.list.addEventListener("pointerenter", () => (this.isOver = true));
    this.list.addEventListener("pointerleave", () => {
      this.isOver = false;
      this.drawList();
    });
    this.low = new Low(this.right, choose, take);
    this.map.addEventListener("click", (e) => {
      const id = this.under(e);
      if (id) this.take(id);
    });
    this.map.addEventListener("pointermove", (e) => this.tip.follow(this.said(this.under(e)), e));
    this.map.addEventListener("pointerleave", () => this.tip.hide());
  }

  /** The part under the pointer. @param {MouseEvent} event */
  under(event) {
    const box = this.svg.getBoundingClientRect();
    return this.plan ? partAt(this.plan, event.clientX - box.left, event.clientY - box.top) : null;
  }

  // "L23 H3", "MLP 21", "to₂ after layer 23"
  /** @param {string} id */
  name(id) {
    const [kind, layer, at] = placeOf(id);
    if (kind === "z") return fill(words.head_name, { layer, head: at });
    if (kind === "m") return fill(words.mlp_name, { layer });
    return fill(words.word_name, { word: quoted(indexed(this.shown.data.source, at)), layer });
  }

  // Pixels that the right column may have, at the page's size of type
  get free() {
    const { unit } = this.shown.type;
    return (innerHeight - this.right.getBoundingClientRect().top - scrolled()) / unit - FOOT;
  }

  // Whether paths are shown, which carry what is different in another sentence
  get hasPaths() {
    const { values, found } = this.shown;
    return values.draw === "paths" && values.how === "patch" && found.known !== null;
  }

  // The kind of parts that are listed: without another sentence words have none
  get kind() {
    const { list, how } = this.shown.values;
    return /** @type {Kind} */ (list === "r" && how !== "patch" ? "z" : list);
  }

  get measure() {
    return /** @type {Measure} */ (this.shown.values.measure);
  }

  // A change in the words of the measure: nats, or points of a per cent
  /** @param {number} x */
  amount(x) {
    const scaled = this.measure === "p" ? 100 * x : x;
    const text = Math.abs(scaled).toFixed(1);
    return pointed(Number(text) === 0 ? text : `${scaled < 0 ? "−" : "+"}${text}`);
  }

  // A part and its number, for the pointer
  /** @param {string | null} id @returns {(Node | string)[]} */
  said(id) {
    if (!id || !this.shown.found.known) return [];
    const { found } = this.shown;
    const change = found.change(id, this.measure);
    if (change !== undefined) return [fill(words.part_exact, { part: this.name(id), change: this.amount(change) })];
    const guess = found.estimate(id, this.measure);
    return [
      guess === undefined
        ? fill(words.part_waits, { part: this.name(id) })
        : fill(words.part_estimate, { part: this.name(id), change: this.amount(guess) }),
    ];
  }

  /** @param {Shown} shown @param {number} width of the map @param {number} height of it at most */
  draw(shown, width, height) {
    this.shown = shown;
    const { data, found, pick, palette, type, seconds } = shown;
    this.fact.replaceChildren(...this.sentence());
    this.drawSwitches();
    this.drawOffers();
    const [exact, estimates, left] = found.counts(this.measure);
    const said = seconds < 0.05 ? "" : fill(words.in_seconds, { s: fixed(seconds, 1) }); // what is known already took none
    setText(
      this.counts,
      !found.known
        ? ""
        : found.done
          ? fill(words.all_exact, { n: exact, s: said })
          : fill(estimates ? words.counts : words.counts_left, { n: exact, estimates, left, s: said }),
    );
    const isMap = !this.hasPaths;
    this.map.hidden = !isMap;
    this.paths.box.hidden = isMap;
    const { unit } = type;
    // A projected sentence may take four lines: the map has what is left, so that no word's row is beyond the window
    const top = (isMap ? this.map : this.paths.map).getBoundingClientRect().top;
    const room = innerHeight - top - scrolled() - FOOT * unit;
    const tall = Math.min(height, Math.max(LEAST * unit, room));
    if (!isMap) {
      this.paths.draw(shown, width, Math.max(LEAST * unit, tall - SAID * unit), (id) => this.name(id), this.pair);
    }
    if (found.known && isMap) {
      const names = found.known.tokens.map((token) => indexed(data.source, token));
      this.plan = planOf(found, names, { width, height: tall, unit, turned: width < NARROW });
      this.svg.setAttribute("width", String(this.plan.width));
      this.svg.setAttribute("height", String(Math.ceil(this.plan.height)));
      const look = { palette, unit: type.unit };
      drawShapes(new Pen(this.svg), shapesOf(this.plan, found, this.measure, pick, look));
    }
    this.map.setAttribute("aria-label", fill(words.parts_label, { part: pick ? this.name(pick) : words.no_part }));
    this.drawBars();
    this.drawList();
    const high = this.free - RIGHT - this.listed.length * ROW;
    this.low.draw(shown, (id) => this.name(id), this.pair, Math.min(LOOK, Math.max(LOOK / 2, high)));
  }

  drawSwitches() {
    const { values, found, palette } = this.shown;
    const [answer, rival] = this.pair;
    const { how } = values;
    const falls = found.whole[1] < 0;
    const of = [
      values.measure,
      values.list,
      how,
      answer,
      rival,
      palette,
      falls,
      values.draw,
      this.hasPaths,
      values.against,
    ];
    if (same(of, this.switched)) return;
    this.switched = of;
    const lead = answer ? fill(words.lead_of, { answer, rival }) : words.lead;
    const { kv_heads: kv, heads } = this.shown.data.places[0];
    const modes = choice(
      words.how_set,
      [
        ["patch", words.how_patch, values.against ? words.how_patch_help : words.how_patch_needs],
        ["zero", words.how_zero, words.how_zero_help],
        ["mean", words.how_mean, words.how_mean_help],
      ],
      how,
      (chosen) => this.choose({ how: chosen }),
    );
    /** @type {HTMLButtonElement} */ (modes.firstElementChild).disabled = !values.against;
    this.switches.replaceChildren(
      modes,
      choice(
        words.measure,
        [
          ["ld", lead, words.lead_help],
          ["lp", words.log_p, words.log_p_help],
          ["p", words.points, words.points_help],
        ],
        values.measure,
        (measure) => this.choose({ measure }),
      ),
      this.drawChoice(),
      ...(how !== "patch" && kv < heads
        ? [button(words.group_on, "quiet", () => this.choose({ group: "on", by: how }), words.group_on_help)]
        : []),
    );
    this.kinds.replaceChildren(
      choice(
        words.list,
        [
          ["z", words.heads],
          ["m", words.mlps],
          .../** @type {[string, string][]} */ (how === "patch" ? [["r", words.at_words]] : []),
        ],
        this.kind,
        (list) => this.choose({ list }),
      ),
    );
    const measured = { ld: lead, lp: fill(words.log_p_of, { answer }), p: fill(words.points_of, { answer }) };
    this.legend.replaceChildren(
      el("i", "less"),
      how !== "patch" ? words.falls_leans : falls ? words.falls_carries : words.falls_pulls,
      el("i", "more"),
      how !== "patch" ? words.rises_holds : falls ? words.rises_pulls : words.rises_carries,
      " · ",
      answer ? fill(words.change_of, { measure: this.hasPaths ? lead : measured[this.measure] }) : "",
    );
  }

  // All parts on a map, or paths between the strongest heads
  drawChoice() {
    const { how, draw } = this.shown.values;
    const isFree = how === "patch";
    const made = choice(
      words.draw,
      [
        ["map", words.draw_map, words.draw_map_help],
        ["paths", words.draw_paths, isFree ? words.draw_paths_help : words.paths_need_text],
      ],
      isFree ? draw : "map",
      (chosen) => this.choose({ draw: chosen }),
    );
    /** @type {HTMLButtonElement} */ (made.children[1]).disabled = !isFree;
    return made;
  }

  // Other sentences, where there is none; none is chosen for anyone
  drawOffers() {
    const { offers } = this.shown;
    this.offers.hidden = !offers.length;
    if (same(offers, this.offered)) return;
    this.offered = offers;
    this.offers.replaceChildren(
      el("span", "mute", words.swap_offers),
      ...offers.map(([word, other, text, next, p]) =>
        button(
          fill(words.swap_offer, { word: quoted(word), other: quoted(other) }),
          "quiet",
          () => this.choose({ against: text, how: "patch", measure: "ld", pick: "on" }),
          fill(words.swap_offer_help, { word: quoted(next), p: percent(p) }),
        ),
      ),
    );
  }

  // The answer and what stands against it
  /** @returns {[answer: string, rival: string]} */
  get pair() {
    const { known, labels } = this.shown.found;
    if (!known) return ["", ""];
    const [answer, rival] = known.watched;
    return [quoted(labels[answer]), quoted(labels[rival])];
  }

  /** @returns {Node[]} */
  sentence() {
    const { found, pick } = this.shown;
    if (!found.known) return phrase(words.coming, {});
    if (!pick && this.shown.values.pick === "off")
      return phrase(words.plain, {
        word: [this.pair[0], "word"],
        p: [percent(Math.exp(found.known.before[0])), "number"],
      });
    if (!pick) return phrase(words.first_runs, {});
    const run = found.exact.get(pick);
    const part = [this.name(pick), "number"];
    if (!run) return phrase(words.run_waits, { part });
    const { known, labels } = found;
    const [answer, rival] = this.pair;
    const [p, q] = [Math.exp(known.before[0]), Math.exp(run.logP[0])];
    const [before, after] = [percent(p), percent(q)];
    const way = before === after ? 2 : q < p ? 0 : 1;
    const how = /** @type {keyof typeof TEMPLATES} */ (this.shown.values.how);
    const template = TEMPLATES[how][way];
    const nodes = phrase(template, {
      part,
      answer: [answer, "word"],
      p: before,
      q: [after, q < p ? "less" : "more"],
    });
    const against = Math.exp(run.logP[1]);
    const likeliest = labels[run.top];
    if (run.top !== known.watched[0])
      nodes.push(
        ...phrase(run.top === known.watched[1] ? words.taken_rival : words.taken_top, {
          word: [quoted(likeliest ?? ""), "number"],
          p: percent(run.topP),
        }),
      );
    else if (against > q) nodes.push(...phrase(words.taken_rival, { word: [rival, "number"], p: percent(against) }));
    nodes.push(...phrase(".", {}));
    if (how !== "patch") return [...nodes, ...this.leadSentence(pick)];
    const share = found.share(pick);
    if (found.staysThere) nodes.push(...phrase(words.answer_stays, { answer: [answer, "word"] }));
    else if (share !== null) {
      const told = { carries: words.share_carries, other: words.share_other, nothing: words.share_nothing };
      const percents = `${Math.round(100 * Math.abs(share))} %`;
      nodes.push(...phrase(told[PartsFound.way(share)], { share: [percents, "number"] }));
    }
    return nodes;
  }

  // How the lead changes with a part silent or at its mean
  /** @param {string} pick @returns {Node[]} */
  leadSentence(pick) {
    const { found, values } = this.shown;
    const [own] = found.whole;
    const say = (/** @type {number} */ x) => pointed(x.toFixed(1).replace("-", "−"));
    const [a, b] = [say(own), say(own + (found.change(pick, "ld") ?? 0))];
    return [
      ...(a === b ? [] : phrase(words.lead_goes, { rival: this.pair[1], a, b })),
      ...(values.how === "zero" ? phrase(words.silent_honest, {}) : []),
    ];
  }

  // The next word, outlined as it is and filled as it becomes; a click takes a word as what stands against the answer
  drawBars() {
    const { found, pick, palette } = this.shown;
    const { known, labels } = found;
    const run = pick ? found.exact.get(pick) : undefined;
    const watched = known?.watched ?? [];
    while (this.bars.children.length > watched.length) this.bars.lastElementChild?.remove();
    while (this.bars.children.length < watched.length) {
      const at = this.bars.children.length;
      const row = add(this.bars, "button", "bar");
      row.title = words.bar_help;
      row.addEventListener("click", () => this.against(at));
      add(row, "span", "label");
      const svg = new Pen(row).draw("svg", {
        viewBox: "0 0 160 14",
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      });
      row.append(svg, el("span", "value"), el("span", "tag"));
    }
    const most = Math.max(
      ...watched.flatMap((_, i) => [known?.before[i] ?? -99, run?.logP[i] ?? -99]).map(Math.exp),
      0.01,
    );
    watched.forEach((token, i) => {
      const [label, svg, value, tag] = this.bars.children[i].children;
      this.bars.children[i].classList.toggle("first", i === 0);
      this.bars.children[i].ariaDisabled = String(i === 0); // the answer itself: the others are measured against it
      setText(label, labels[token]);
      const before = Math.exp(known?.before[i] ?? -99);
      const after = run ? Math.exp(run.logP[i]) : null;
      const width = (/** @type {number} */ p) => Math.max(1, (p / most) * 156);
      drawOutlined(svg, {
        before: width(before),
        after: after === null ? null : width(after),
        fill: palette.proof,
        ink: palette.ink,
      });
      if (!value.childElementCount) value.replaceChildren("", el("b"));
      value.childNodes[0].nodeValue = after === null ? percent(before) : `${percent(before).replace(/\s?%/, "")} → `;
      setText(value.children[0], after === null ? "" : percent(after));
      setText(tag, i === 0 ? words.tag_answer : i === 1 ? words.tag_against : "");
    });
  }

  /** @param {number} at of a bar: the rival changes places with the answer */
  against(at) {
    const watched = this.shown.found.known?.watched;
    if (!watched || at === 0) return;
    if (at === 1) this.choose({ answer: String(watched[1]), rival: String(watched[0]) });
    else this.choose({ answer: String(watched[0]), rival: String(watched[at]) });
  }

  // How a head of the list reads and pushes
  /** @param {string} id */
  does(id) {
    const { notes, found, data } = this.shown;
    if (id[0] !== "z" || !notes || notes.refused || !found.known) return "";
    return noteOf(notes, id, data.source, found.known.position, this.pair);
  }

  drawList() {
    const { found, pick, values, palette } = this.shown;
    const { kind } = this;
    const listed = this.free < RIGHT + LISTED * ROW + LOOK ? LISTED_LOW : LISTED;
    const of = [kind, values.measure, found.known, listed];
    const now = performance.now();
    if (!same(of, this.sorted.of) || (!this.isOver && (found.done || now - this.sorted.at > APART))) {
      this.listed = found.ranked(kind, this.measure).slice(0, listed);
      this.sorted = { at: now, of };
    }
    const number = (/** @type {string} */ id) =>
      found.change(id, this.measure) ?? found.estimate(id, this.measure) ?? 0;
    const most = Math.max(
      ...found
        .ranked(kind, this.measure)
        .slice(0, 1)
        .map((id) => Math.abs(number(id))),
      1e-9,
    );
    while (this.list.children.length > this.listed.length) this.list.lastElementChild?.remove();
    while (this.list.children.length < this.listed.length) {
      const at = this.list.children.length;
      const row = add(this.list, "button", "one");
      row.addEventListener("click", () => this.take(this.listed[at]));
      add(row, "b");
      add(row, "span", "does");
      const svg = new Pen(row).draw("svg", {
        viewBox: "-60 0 120 10",
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      });
      row.append(svg, el("span", "value"));
    }
    const { more, less } = signs(palette);
    this.listed.forEach((id, i) => {
      const row = this.list.children[i];
      const [name, does, svg, value] = /** @type {HTMLElement[]} */ ([...row.children]);
      const [x, isExact] = [number(id), found.exact.has(id)];
      row.setAttribute("aria-pressed", String(id === pick));
      setText(name, this.name(id));
      setText(does, this.does(id));
      does.title = does.textContent ? fill(words.does_help, { text: does.textContent }) : "";
      const width = (58 * Math.abs(x)) / most;
      const pen = new Pen(svg);
      pen.draw("rect", {
        x: x < 0 ? -width : 0,
        y: 1,
        width,
        height: 8,
        fill: x < 0 ? less : more,
        "fill-opacity": isExact ? 1 : 0.4,
      });
      pen.draw("rect", { x: -0.3, y: 0, width: 0.6, height: 10, fill: palette.mute });
      pen.end();
      setText(value, isExact ? this.amount(x) : `≈ ${this.amount(x)}`);
      value.className = isExact ? (x < 0 ? "value less" : "value more") : "value mute";
    });
  }

  // The next of the list that is shown, in order of strength
  /** @param {number} by */
  next(by) {
    const { found, pick } = this.shown;
    const kind = /** @type {Kind} */ (pick ? pick[0] : this.kind);
    const order = found.ranked(kind, this.measure);
    const at = pick ? order.indexOf(pick) : -1;
    const to = order[Math.max(0, Math.min(order.length - 1, at + by))];
    if (to) this.take(to);
  }

  /** @param {number} down @param {number} right */
  move(down, right) {
    if (this.hasPaths) {
      const to = this.paths.beside(down, right);
      if (to) this.take(to);
      return to !== null;
    }
    if (!this.plan) return false;
    const to = partBeside(this.plan, this.shown.pick ?? idOf("z", 0, 0), down, right);
    if (!to) return false;
    this.take(to);
    return true;
  }
}
