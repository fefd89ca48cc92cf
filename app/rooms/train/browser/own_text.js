// A visitor's own text: a small model learns it before one's eyes. What there is of it comes as lines of news, and is this visitor's alone.

import {
  add,
  button,
  choice,
  clamp,
  described,
  el,
  fill,
  fixed,
  number,
  percent,
  phrase,
} from "../../../kit/browser/dom.js";
import { ASKED, form } from "../../../kit/browser/language.js";
import { Chart } from "./chart.js";
import { WORDS as words } from "./constants.js";
import { linesOf } from "./following.js";
import { large } from "./head_drawing.js";
import { largest, lossText, upTo } from "./numbers.js";

/** @typedef {import("./types.js").TextFrame} TextFrame */

const LEAST = 2000; // characters
const MOST = 1_000_000; // bytes
const STEPS = 300;
const SECONDS = 60;
const HERE = 300_000; // ms between two words to the server that this page is still open
const NOTHING = 204; // what a server says that has no text of this visitor
const FIRST = 48; // signs of its own writing with which its model opens elsewhere
const HALF = 0.5; // of a head's attention: it looks one back, or continues after a repeat

export class OwnText {
  /** @type {import("./types.js").TextNews["state"] | "none"} */
  state = "none";
  place = 0;
  seconds = 0;
  why = "";
  model = ""; // its name among models, while it rests and other rooms can open it
  refused = "";
  /** @type {File | string | null} A text that is too long, whose first part may be learnt */
  long = null;
  /** @type {import("./types.js").TextBegun | null} */
  begun = null;
  /** @type {[step: number, loss: number, seconds: number][]} */
  points = [];
  /** @type {TextFrame[]} */
  frames = [];
  /** @type {number | null} The step that is looked at; null at the newest */
  chosen = null;
  /** @type {[layer: number, head: number] | null} */
  head = null;
  unit = "letters";
  /** @type {AbortController | null} */
  watching = null;

  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.box = el("div", "main own-text");
    this.left = add(this.box, "section");
    this.fact = add(this.left, "h2", "fact");
    this.refusal = add(this.left, "p", "refused");
    this.refusal.setAttribute("role", "alert");
    this.chips = described(add(this.left, "div", "chips only-here"), "group", words.moments);
    this.drop = add(this.left, "div", "drop");
    this.field = el("textarea");
    this.makeDrop();
    this.here = setInterval(() => this.frames.length && !this.isGoing && this.tell("keep"), HERE);
    this.chart = new Chart(this.left, (step) => this.goTo(step));
    this.samples = add(this.left, "div", "samples");
    this.right = add(this.box, "section");
    this.title = add(this.right, "h3", "head-title");
    this.about = add(this.right, "p", "note");
    this.map = add(this.right, "div", "map");
    this.list = add(this.right, "dl", "facts");
    for (const [name, text] of words.own_rows) this.list.append(el("dt", "", name), el("dd", "", text));
  }

  makeDrop() {
    const { drop } = this;
    drop.append(el("b", "", words.own_title), el("span", "", words.own_sizes));
    drop.append(this.field);
    Object.assign(this.field, { placeholder: words.own_placeholder, ariaLabel: words.own_placeholder, rows: 4 });
    const acts = add(drop, "span", "acts");
    const file = add(acts, "input");
    Object.assign(file, { type: "file", accept: ".txt,.md,text/*", hidden: true });
    file.addEventListener("change", () => file.files?.[0] && this.take(file.files[0]));
    acts.append(
      button(words.own_file, "quiet", () => file.click()),
      choice(
        words.own_unit,
        [
          ["letters", words.own_letters],
          ["pieces", words.own_pieces],
        ],
        this.unit,
        (unit) => {
          this.unit = unit;
        },
      ),
    );
    drop.append(el("span", "note", words.own_private));
    drop.addEventListener("dragover", (e) => e.preventDefault());
    drop.addEventListener("drop", (e) => {
      e.preventDefault();
      const dropped = e.dataTransfer?.files[0];
      if (dropped) this.take(dropped);
    });
  }

  get isGoing() {
    return this.state === "waiting" || this.state === "running";
  }

  get last() {
    return this.frames.at(-1)?.step ?? 0;
  }

  get at() {
    return clamp(this.chosen ?? this.last, 0, this.last);
  }

  // The label and the act of the room's one button
  get label() {
    return this.isGoing ? words.cancel : this.state === "stopped" ? words.go_on : words.own_learn;
  }

  act() {
    if (this.isGoing) return this.tell("stop");
    if (this.state === "stopped") return this.tell("on").then(() => this.watch());
    if (this.state === "none") return this.take(this.field.value);
    this.another();
  }

  another() {
    this.reset();
    this.tell("forget");
    this.changed();
  }

  reset() {
    this.watching?.abort();
    Object.assign(this, {
      state: "none",
      begun: null,
      points: [],
      frames: [],
      chosen: null,
      head: null,
      why: "",
      model: "",
    });
    Object.assign(this, { refused: "", long: null });
  }

  /** @param {number} step */
  goTo(step) {
    if (!this.frames.length) return;
    this.chosen = clamp(step, 0, this.last);
    this.changed();
  }

  /** @param {File | string} text */
  async take(text) {
    const said = typeof text === "string" ? new Blob([text]) : text;
    this.refused = "";
    this.long = null;
    if (said.size > MOST) {
      this.long = text;
      this.refused = fill(words.own_too_long, { size: fixed(said.size / 1e6, 1) });
    } else if (said.size < LEAST)
      this.refused = fill(words.own_too_short, { n: number(said.size), least: number(LEAST) });
    if (this.refused) return this.changed();
    await this.send(await said.text());
  }

  async firstPart() {
    const { long } = this;
    if (!long) return;
    const blob = typeof long === "string" ? new Blob([long]) : long;
    const text = await blob.slice(0, MOST).text();
    await this.send(text.replace(/\ufffd+$/u, ""));
  }

  /** @param {string} text */
  async send(text) {
    const response = await fetch(addressOf(`text?unit=${this.unit}`), { method: "POST", headers: ASKED, body: text });
    if (!response.ok) {
      this.refused = await response.text();
      return this.changed();
    }
    this.reset();
    this.state = "waiting";
    this.field.value = "";
    this.changed();
    await this.watch();
  }

  /** @param {"stop" | "on" | "forget" | "keep"} what */
  async tell(what) {
    const asked = { method: "POST", headers: ASKED, keepalive: true }; // who leaves at once has said it as well
    const response = await fetch(addressOf(`text/${what}`), asked);
    if (!response.ok) {
      this.refused = await response.text();
      this.changed();
    }
  }

  // News of this visitor's text from its beginning; nothing where there is none
  async watch(isQuiet = false) {
    this.watching?.abort();
    const watching = new AbortController();
    this.watching = watching;
    try {
      const response = await fetch(addressOf("text"), { headers: ASKED, signal: watching.signal });
      if (response.status === NOTHING || !response.ok || !response.body) {
        if (!isQuiet) Object.assign(this, { state: "failed", why: await response.text() });
        return this.changed();
      }
      Object.assign(this, { points: [], frames: [] });
      for await (const line of linesOf(response.body)) this.hear(JSON.parse(line));
    } catch {
      if (!watching.signal.aborted) Object.assign(this, { state: "failed", why: words.lost });
      this.changed();
    }
  }

  /** @param {import("./types.js").TextNews} news */
  hear(news) {
    Object.assign(this, {
      state: news.state,
      place: news.place,
      seconds: news.seconds,
      why: news.why,
      model: news.model,
    });
    if (news.begun) this.begun = news.begun;
    this.points.push(...news.points);
    for (const frame of news.frames) {
      const text = atob(frame.map);
      this.frames.push({ ...frame, maps: Uint8Array.from(text, (sign) => sign.charCodeAt(0)) });
    }
    if (news.state === "stopped") this.points = this.points.filter(([step]) => step <= this.last);
    this.changed();
  }

  // Steps at which it turns, each by a rule: noise, better than counts, better than pairs, a head looks back, the end
  get moments() {
    const { frames, begun } = this;
    const [first, last] = [frames[0], frames.at(-1)];
    if (!begun || !first || !last || this.isGoing) return [];
    const [l, h] = largest(last.back);
    const found = [
      ["noise", first],
      ["counts", frames.find((frame) => frame.loss < begun.counts)],
      ["pairs", frames.find((frame) => frame.loss < begun.pairs)],
      ["back", frames.find((frame) => frame.back[l][h] >= HALF)],
      ["done", last],
    ];
    return /** @type {[keyof typeof words.own_moment, TextFrame][]} */ (found.filter(([, frame]) => frame)).sort(
      (a, b) => a[1].step - b[1].step,
    );
  }

  /** @param {number} by */
  turn(by) {
    const { moments, at } = this;
    if (!moments.length) return false;
    const now = moments.findLastIndex(([, frame]) => frame.step <= at);
    this.goTo(moments[(now + by + moments.length) % moments.length][1].step);
    return true;
  }

  /** @returns {Node[]} */
  sentence() {
    const { begun, frames, state } = this;
    if (state === "none") return phrase(words.own_ask, {});
    if (state === "failed") return phrase(words.own_failed, { why: this.why });
    const frame = upTo(frames, this.at);
    if (!frame || !begun)
      return this.place
        ? phrase(form(words.own_waiting, this.place), { n: this.place, s: this.seconds })
        : phrase(words.own_begins, {});
    const s = String(frame.step);
    const t = number(frame.seconds);
    const a = /** @type {[string, string]} */ ([lossText(frame.loss), "word"]);
    const [l, h] = this.head ?? largest((frames.at(-1) ?? frame).back);
    const w = /** @type {[string, string]} */ ([percent(frame.back[l][h]), "A"]);
    const of = { s, t, a, l: String(l), h: [String(h), "A"], w };
    const said = (/** @type {string} */ text, more = {}) => phrase(text, /** @type {any} */ ({ ...of, ...more }));
    if (state === "stopped" && this.at === this.last) return said(words.own_stopped);
    const [kind] = this.moments.findLast(([, one]) => one.step === frame.step) ?? [];
    if (kind === "noise") return said(words.own_noise, { n: number(begun.signs), g: lossText(begun.blind) });
    if (kind === "counts") return said(words.own_counts, { b: lossText(begun.counts) });
    if (kind === "pairs") return said(words.own_pairs, { b: lossText(begun.pairs) });
    if (kind === "back") return said(words.own_back, { v: percent(frames[0].back[l][h]) });
    if (kind === "done") {
      const [layer, head, value] = largest(frame.repeat);
      const found =
        value >= HALF
          ? fill(words.own_induction, { l: layer, h: head, w: percent(value) })
          : fill(words.own_no_induction, { w: percent(value) });
      return said(words.own_done, { b: lossText(begun.pairs), found });
    }
    return said(words.own_at, { b: lossText(begun.pairs) });
  }

  /** @param {Record<string, any>} palette @param {number} em @param {boolean} isProjected */
  draw(palette, em, isProjected) {
    const isEmpty = this.state === "none" || !this.frames.length;
    this.fact.replaceChildren(...this.sentence());
    this.refusal.hidden = !this.refused;
    this.refusal.replaceChildren(this.refused);
    if (this.long)
      this.refusal.append(
        " ",
        button(words.own_first_part, "link", () => this.firstPart()),
      );
    this.drop.hidden = this.state !== "none";
    this.list.hidden = !isEmpty;
    for (const part of [this.chart.box, this.samples, this.about, this.map]) part.hidden = isEmpty;
    this.drawChips();
    if (isEmpty) {
      this.title.replaceChildren(el("b", "", words.own_what));
      return;
    }
    this.drawChart(palette, isProjected);
    this.drawSamples();
    this.drawHead(palette, em);
  }

  drawChips() {
    if (this.isGoing && this.points.length) {
      const [step, , spent] = this.points.at(-1) ?? [0, 0, 0];
      const left = Math.max(0, Math.min(SECONDS - spent, (spent / Math.max(1, step)) * (STEPS - step)));
      const bar = el("progress");
      Object.assign(bar, { max: STEPS, value: step });
      this.chips.replaceChildren(bar, el("span", "note", fill(words.own_left, { s: step, n: STEPS, t: number(left) })));
      return;
    }
    const { moments, at } = this;
    const now = moments.findLastIndex(([, frame]) => frame.step === at);
    this.chips.replaceChildren(
      ...moments.map(([kind, frame], i) => {
        const chip = button(words.own_moment[kind], "chip", () => this.goTo(frame.step));
        chip.setAttribute("aria-pressed", String(i === now));
        return chip;
      }),
      ...(this.state === "none" ? [] : [button(words.own_another, "quiet another", () => this.another())]),
    );
    this.chips.hidden = !this.chips.childElementCount;
    this.chips.classList.add("moments");
  }

  /** @param {Record<string, any>} palette @param {boolean} isProjected */
  drawChart(palette, isProjected) {
    const { begun, frames, at, last } = this;
    if (!begun) return;
    this.chart.measure(isProjected);
    const steps = this.isGoing ? STEPS : Math.max(1, last);
    const end = /** @type {TextFrame} */ (frames.at(-1));
    const [bl, bh] = largest(end.back);
    const [rl, rh] = largest(end.repeat);
    this.chart.draw(
      {
        steps,
        now: at,
        seen: last,
        last,
        guess: { n: begun.signs, loss: begun.blind },
        lossHelp: words.own_loss_help,
        levels: [
          { value: begun.counts, name: words.own_line_counts },
          { value: begun.pairs, name: words.own_line_pairs },
        ],
        losses: [
          { values: this.points.map(([step, loss]) => [step, loss]), colour: palette.hatch, wide: 0.4 },
          {
            values: frames.map((frame) => [frame.step, frame.loss]),
            colour: palette.proof,
            name: words.own_model,
            say: lossText,
          },
        ],
        shares: [
          {
            values: frames.map((frame) => [frame.step, frame.repeat[rl][rh]]),
            colour: palette.key,
            dash: "7 4",
            name: fill(words.own_line_repeat, { l: rl, h: rh }),
            say: percent,
          },
          {
            values: frames.map((frame) => [frame.step, frame.back[bl][bh]]),
            colour: palette.query,
            name: fill(words.own_line_back, { l: bl, h: bh }),
            say: percent,
          },
        ],
        lossBands: [],
        shareBands: [],
        about: words.own_percent,
        marks: this.moments.map(([, frame]) => ({ step: frame.step, isOn: frame.step === at })),
        leads: [],
        posts: [],
        cover: "",
        says: this.fact.textContent ?? "",
      },
      palette,
    );
  }

  drawSamples() {
    const { frames, at, begun } = this;
    const written = frames.filter((frame) => frame.sample);
    const now = written.findLastIndex((frame) => frame.step <= at);
    const title = el("h3");
    title.append(el("b", "", fill(words.own_samples, { text: begun?.prompt ?? "" })), words.own_samples_note);
    this.samples.replaceChildren(
      title,
      ...written.map((frame, i) => {
        const line = button("", "sample", () => this.goTo(frame.step));
        line.append(
          el(
            "small",
            "",
            frame.step ? fill(words.own_sample_at, { s: frame.step, t: number(frame.seconds) }) : words.own_untrained,
          ),
          el("span", "", spelt(frame.sample)),
        );
        line.setAttribute("aria-pressed", String(i === now));
        return line;
      }),
    );
  }

  /** @param {Record<string, any>} palette @param {number} em */
  drawHead(palette, em) {
    const frame = upTo(this.frames, this.at);
    const end = this.frames.at(-1);
    if (!frame || !end) return;
    const back = largest(end.back).slice(0, 2);
    const repeat = largest(end.repeat).slice(0, 2);
    const [layer, head] = this.head ?? /** @type {[number, number]} */ (back);
    this.title.replaceChildren(
      el("b", "", fill(words.large, { l: layer, h: head })),
      ` ${fill(words.at_step, { s: frame.step })} `,
      choice(
        words.by,
        [
          ["back", words.own_by_back],
          ["repeat", words.own_by_repeat],
        ],
        String([layer, head]) === String(repeat) && String(back) !== String(repeat) ? "repeat" : "back",
        (what) => {
          this.head = /** @type {[number, number]} */ (what === "back" ? back : repeat);
          this.changed();
        },
      ),
    );
    this.about.replaceChildren(
      ...phrase(words.own_head, {
        w: [percent(frame.back[layer][head]), "strong"],
        v: percent(frame.repeat[layer][head]),
      }),
    );
    const tokens = frame.tokens.map((token) => token.trim() || (token.includes("\n") ? "⏎" : "␣"));
    large(
      this.map,
      /** @type {any} */ ({ tokens, answer: "", first: tokens.length }),
      /** @type {any} */ ({ ...frame, finds: frame.back, best: [], p: [] }),
      { layer, head, row: tokens.length - 1, arc: false, em: 0.9 * em, act: () => {} },
      palette,
    );
  }

  // Whether the weights of the step that is looked at are kept: those of the last one, while no more are learnt
  get hasModel() {
    return (this.state === "ended" || this.state === "stopped") && this.at === this.last && this.frames.length > 0;
  }

  // Where Explore shows its model, on what that wrote itself: nothing of the text is in an address
  get explored() {
    const written = this.frames.findLast((frame) => frame.sample);
    if (!this.hasModel || !this.model || !written) return null;
    const text = `${this.begun?.prompt ?? ""}${written.sample}`.slice(0, FIRST).trim();
    return `?${new URLSearchParams({ view: "explore", model: this.model, text })}`;
  }

  // Columns and lines of its numbers: what is measured at each frame, with every head in a column of its own where all are asked for
  /** @param {boolean} isWhole @returns {[columns: string[], lines: (string | number)[][]]} */
  numbers(isWhole) {
    const { frames } = this;
    const heads = (frames[0]?.back ?? []).flatMap((row, l) => row.map((_, h) => ({ l, h })));
    const [back, repeat] = /** @type {const} */ (["back", "repeat"]).map((what) => {
      const [l, h] = largest(frames.at(-1)?.[what] ?? []);
      return isWhole ? heads : heads.filter((head) => head.l === l && head.h === h);
    });
    return [
      [
        ...words.own_columns,
        ...back.map((head) => fill(words.own_line_back, head)),
        ...repeat.map((head) => fill(words.own_line_repeat, head)),
        words.own_column_sample,
      ],
      frames.map((frame) => [
        frame.step,
        frame.seconds,
        frame.loss,
        ...back.map(({ l, h }) => frame.back[l][h]),
        ...repeat.map(({ l, h }) => frame.repeat[l][h]),
        frame.sample,
      ]),
    ];
  }

  // The same as the page's table says it
  /** @returns {[columns: string[], lines: (string | number)[][]]} */
  shown() {
    const [columns, lines] = this.numbers(false);
    return [columns, lines.map((line) => line.map((cell) => (typeof cell === "string" ? spelt(cell) : cell)))];
  }

  // Its code, which learns the same text again
  get snippet() {
    return [
      "from itertools import takewhile",
      "from pathlib import Path",
      "from headlight.learn.text_training import Text, TextPoint, text_run",
      "",
      'text = Path("path/to/your-text.txt").read_text("utf-8-sig")',
      `run = takewhile(lambda x: x.step <= ${this.last}, text_run(Text(text, ${JSON.stringify(this.begun?.unit ?? "letters")}), seconds=1e9))`,
      "points = [x for x in run if isinstance(x, TextPoint)]",
      "print(points[-1].step, points[-1].loss)",
      "",
    ].join("\n");
  }

  close() {
    clearInterval(this.here);
    this.watching?.abort();
  }
}

// A text in one line
/** @param {string} text */
const spelt = (text) => text.replace(/\n/g, " ⏎ ");

/** @param {string} path */
export const addressOf = (path) => new URL(`headlight/train/${path}`, document.baseURI);
