// The page of a question: the row of one word as wide as the page, the votes on it, and once it is uncovered what the head does.

import { ASKED, form } from "../../kit/browser/language.js";
import { add, button, described, el, fill, focusable, keepingFocus, percent, phrase } from "../../kit/browser/dom.js";
import { agreed, csv, largest, moved, mostLike, overlap, shares, sumOf, table as tableOf, verdict } from "./votes.js";
import { projecting, square } from "./parts.js";
import { Chart, drawAnswered } from "./chart.js";
import { figure } from "./figure.js";
import { Files } from "../../kit/browser/files.js";
import { table } from "../../kit/browser/table.js";
import { swapped } from "./again.js";
import { WORDS as words } from "./constants.js";

const SPELLED = 0.3; // the agreement whose part of the bar has room for its number
const ALIKE = 0.7; // the agreement that has the full colour

export class AskPage {
  // What is drawn again while votes come
  /** @type {HTMLElement | undefined} */
  said;
  /** @type {HTMLElement | undefined} */
  dots;
  /** @type {HTMLElement | undefined} */
  code;
  /** @type {HTMLElement | undefined} */
  late;
  /** @type {Record<"title" | "caption" | "snippet" | "name", string> | undefined} What a file says of the head */
  described;

  /** @param {import("./teacher.js").Teacher} teacher @param {HTMLElement} root */
  constructor(teacher, root) {
    this.teacher = teacher;
    this.box = add(root, "section", "asking");
    this.line = add(this.box, "div", "line");
    this.title = add(this.line, "h2", "title");
    this.title.tabIndex = -1;
    this.of = add(this.line, "span", "of");
    this.acts = add(this.line, "span", "acts");
    this.form = add(this.box, "form", "again");
    this.form.hidden = true;
    this.chart = new Chart(this.box, teacher);
    this.under = add(this.box, "div", "under");
    this.table = add(this.box, "div", "tablebox");
    this.table.hidden = true;
    this.foot = add(this.box, "footer", "foot");
    this.files = new Files(
      () => this.drawn(),
      () => this.about(),
      () => teacher.palette,
    );
    this.state = "";
    this.fact = ""; // the sentence below the votes
    this.last = ""; // the votes that are drawn
    this.draw();
  }

  destroy() {
    this.files.destroy();
  }

  get isRevealed() {
    return !this.teacher.asked?.open;
  }

  // The weights that stand beside the votes; null as long as they are covered or on their way
  get weights() {
    const { question, head } = this.teacher;
    return this.isRevealed && question ? (question.row(...head)?.weights ?? null) : null;
  }

  draw() {
    const { teacher } = this;
    const { asked, question } = teacher;
    if (!asked || !question) return void (this.title.textContent = words.asking);
    const counts = question.counts(teacher.votes);
    const { weights } = this;
    const before = weights ? teacher.before() : null;
    const state = [
      asked.q,
      asked.open,
      asked.hidden,
      teacher.pending?.text ?? "",
      question.word,
      Boolean(weights),
      teacher.head,
    ].join();
    const isNew = state !== this.state;
    this.state = state;
    if (isNew) this.build();
    this.chart.draw(question, { of: teacher.now.of, counts, hidden: asked.open && asked.hidden, weights, before });
    if (asked.open) this.count();
    else if (isNew || this.last !== String(counts)) this.underReveal(counts, weights);
    this.last = String(counts);
  }

  build() {
    const { teacher } = this;
    const { asked, question } = teacher;
    if (!asked || !question) return;
    const open = asked.open;
    const [layer, head] = teacher.head;
    this.title.replaceChildren(...phrase(open ? words.will_look : words.looks, { q: [question.word, "q"] }));
    this.of.textContent = question.place(layer, head);
    const { pending } = teacher;
    if (pending) {
      this.acts.replaceChildren(
        el("span", "mute", words.reading),
        button(words.back_to_sentence, "quiet big", () => teacher.leave()),
      );
    } else if (open) {
      const hide = button(asked.hidden ? words.show_votes : words.hide_votes, "quiet big", () => teacher.hide());
      hide.title = words.hide_key;
      const reveal = button(words.reveal, "primary", () => teacher.reveal());
      reveal.title = words.reveal_key;
      this.acts.replaceChildren(hide, reveal);
    } else {
      const swap = swapped(teacher.text);
      const another = button(swap ? words.another : words.ask_again, swap ? "quiet big" : "primary", () => this.open());
      this.acts.replaceChildren(
        button(words.back_to_sentence, "quiet big", () => teacher.leave()),
        another,
      );
      if (swap)
        this.acts.append(
          button(fill(words.ask_again_with, { w: swap.word }), "primary", () => teacher.again(swap.text)),
        );
    }
    this.form.hidden = true;
    this.foot.replaceChildren(
      el("span", "mute", words.counts_only),
      el("span", "space"),
      ...(open ? [] : [button(words.as_table, "quiet", () => this.toggleTable()), this.files.box]),
      button(words.code_key, "quiet", () => teacher.show("share")),
      projecting(),
      button(words.end, "quiet", () => teacher.end()),
    );
    this.table.hidden = true;
    this.table.replaceChildren();
    if (open) this.underVote();
    else this.describe();
  }

  // ------------------------------------------------------------------ while they say

  underVote() {
    const { teacher } = this;
    const { question } = teacher;
    if (!question || !teacher.taught) return;
    this.under.className = "under vote";
    const mini = el("div", "mini");
    const map = add(mini, "div", "small-map");
    const canvas = add(map, "canvas");
    canvas.setAttribute("aria-hidden", "true");
    const { top, height } = question.draw(canvas, teacher.ramp);
    const row = add(map, "i");
    row.style.cssText = `top: ${100 * top}%; height: max(6px, ${100 * height}%);`;
    const what = add(mini, "p");
    what.append(...phrase(words.covered_row, { q: [question.word, "q"] }));
    const middle = el("div", "middle");
    this.said = add(middle, "p", "said");
    this.dots = add(middle, "div", "dots");
    this.dots.setAttribute("aria-hidden", "true");
    add(middle, "p", "small").textContent = words.tap;
    const join = el("div", "join");
    join.append(square(teacher.taught));
    const side = add(join, "div");
    add(side, "p").textContent = teacher.taught.address;
    this.code = add(side, "p", "code");
    this.late = add(side, "p");
    this.under.replaceChildren(mini, middle, join);
    this.count();
  }

  count() {
    const { now, votes, taught } = this.teacher;
    if (!this.said || !this.dots || !taught || !this.code || !this.late) return;
    const { said, dots, code } = this;
    drawAnswered({ said, dots, code }, votes?.said ?? 0, now, taught.code);
    this.late.textContent = now.door ? words.late_join : "";
  }

  // ------------------------------------------------------------------ when it is uncovered

  /** @param {number[]} counts @param {ArrayLike<number> | null} weights */
  underReveal(counts, weights) {
    const { teacher } = this;
    const { question, asked } = teacher;
    this.under.className = "under revealed";
    if (!question || !asked || !weights) return void this.under.replaceChildren(el("p", "mute", words.weights_coming));
    const votes = shares(counts);
    const fact = el("div");
    const said = add(fact, "p", "fact");
    said.append(...phrase(...verdict(question.labels, votes, weights)));
    const change = teacher.change(votes, weights);
    if (change) add(fact, "p", "moved").append(...phrase(...moved(change)));
    const far = el("div");
    add(far, "h3").textContent = words.how_far;
    const all = counts.some(Boolean);
    if (all) {
      far.append(this.venn(overlap(votes, weights)));
      add(far, "p", "sum").append(...phrase(...sumOf(question.labels, votes, weights)));
    } else add(far, "p", "mute").textContent = words.no_votes;
    keepingFocus(this.under, () => this.under.replaceChildren(fact, far, this.alike(votes, all)));
    this.fact = said.textContent ?? "";
    if (!this.table.hidden) this.drawTable();
  }

  // Two bars of 100 % that lie over each other by what they share
  /** @param {number} both */
  venn(both) {
    const box = el("div", "venn");
    const of = 2 - both;
    const apart = `${(100 * (1 - both)) / of}%`;
    const parts = /** @type {const} */ ([
      ["room", apart, words.room_small],
      ["both", `${(100 * both) / of}%`, words.both],
      ["head", apart, words.head_small],
    ]);
    for (const [name, width, label] of parts) {
      const part = add(box, "div", name);
      part.style.width = width;
      const isWide = name !== "both" || both >= SPELLED; // the sentence beside it says the number as well
      add(part, "span").textContent = isWide ? label : "\u00a0"; // as high as its neighbours
      add(part, "b").textContent = name === "both" && isWide ? agreed(both) : "";
      add(part, "small").textContent = name === "both" ? "" : fill(words.elsewhere, { p: agreed(1 - both) });
    }
    described(box, "img", fill(words.venn_alt, { p: agreed(both) }));
    return box;
  }

  // The class as one more head: every head shaded by how much of its row the class shares
  /** @param {number[]} votes @param {boolean} all */
  alike(votes, all) {
    const { teacher } = this;
    const box = el("div");
    const likes = all ? teacher.likes(votes) : null;
    const n = teacher.question ? teacher.question.site.layers * teacher.question.site.heads : 0;
    add(box, "h3").append(...phrase(words.room_as_head, { k: [fill(words.head_number, { k: n + 1 }), "b"], n }));
    if (!likes || !teacher.question) {
      add(box, "p", "mute").textContent = all ? words.weights_coming : words.no_votes_to_compare;
      return box;
    }
    const [layer, head] = teacher.head;
    const { layers, heads } = teacher.question.site;
    const best = likes.reduce((a, b) => (b.agreement > a.agreement ? b : a));
    const like = add(box, "div", "like");
    const grid = add(like, "div", "grid");
    grid.style.setProperty("--cell", `${Math.min(1.13, 8.2 / layers, 15 / heads).toFixed(3)}rem`);
    grid.style.gridTemplateColumns = `1rem repeat(${heads}, var(--cell))`;
    focusable(grid, "listbox", words.heads_label);
    const number = (/** @type {string} */ text) =>
      Object.assign(add(grid, "small"), { textContent: text, ariaHidden: "true" });
    number("");
    for (let h = 0; h < heads; h++) number(String(h));
    for (const one of likes) {
      if (one.head === 0) number(String(one.layer));
      const node = add(grid, "i");
      const isNow = one.layer === layer && one.head === head;
      node.className = [isNow ? "now" : "", one === best ? "best" : ""].filter(Boolean).join(" ");
      node.style.background = `color-mix(in srgb, var(--proof) ${Math.round(100 * Math.min(1, one.agreement / ALIKE))}%, var(--low))`;
      node.setAttribute("role", "option");
      node.setAttribute("aria-selected", String(isNow));
      node.id = `head-${one.layer}-${one.head}`;
      node.title = fill(words.head_agrees, { layer: one.layer, head: one.head, p: agreed(one.agreement) });
      node.setAttribute("aria-label", node.title);
      node.addEventListener("click", () => teacher.look(one.layer, one.head));
    }
    grid.setAttribute("aria-activedescendant", `head-${layer}-${head}`);
    add(like, "p").append(...phrase(...mostLike(likes, { layer, head })));
    return box;
  }

  // ------------------------------------------------------------------ another sentence

  open() {
    const { teacher } = this;
    const label = el("label", "", words.again_label);
    const field = add(label, "input");
    Object.assign(field, { type: "text", value: teacher.text, autocomplete: "off", spellcheck: false });
    const go = button(words.ask_it, "primary", () => {});
    go.type = "submit";
    this.form.replaceChildren(
      label,
      go,
      button(words.cancel, "quiet big", () => (this.form.hidden = true)),
    );
    this.form.hidden = false;
    this.form.onsubmit = (e) => {
      e.preventDefault();
      const text = field.value.trim();
      if (text && text !== teacher.text) teacher.again(text);
      else field.focus();
    };
    field.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.form.hidden = true;
    });
    field.focus();
    const last = /([\p{L}\p{N}]+)[^\p{L}\p{N}]*$/u.exec(teacher.text);
    if (last) field.setSelectionRange(last.index, last.index + last[1].length);
  }

  // ------------------------------------------------------------------ as a table and as files

  toggleTable() {
    this.table.hidden = !this.table.hidden;
    if (!this.table.hidden) this.drawTable();
  }

  drawTable() {
    const { question, votes } = this.teacher;
    const { weights } = this;
    if (!question || !weights) return;
    const rows = tableOf(question.labels, question.counts(votes), weights).map(([word, count, p, weight]) => [
      word,
      count,
      percent(p),
      percent(weight),
    ]);
    this.table.replaceChildren(
      table(this.fact ?? "", [words.table_word, words.table_votes, words.table_share, words.table_weight], rows),
      button(words.close, "quiet big", () => this.toggleTable()),
    );
    this.table.tabIndex = 0;
  }

  // What files say of themselves: asked for once the row is uncovered
  async describe() {
    const {
      question,
      head: [layer, head],
    } = this.teacher;
    if (!question) return;
    const {
      site,
      picture,
      asked: { query },
    } = question;
    const at = { format: "about", run: picture.key, site: site.id, layer, head, q0: query, q1: query + 1, alt: "" };
    try {
      const response = await fetch(
        new URL(`headlight/export?${new URLSearchParams(/** @type {any} */ (at))}`, document.baseURI),
        { headers: ASKED },
      );
      if (response.ok) this.described = await response.json();
    } catch {
      // the file then says what it shows, and not the code
    }
  }

  about() {
    const { question, votes } = this.teacher;
    const { weights } = this;
    const labels = question?.labels ?? [];
    const counts = question?.counts(votes) ?? [];
    const { caption = "", snippet = "", name = "vote", title = "" } = this.described ?? {};
    const all = counts.reduce((a, b) => a + b, 0);
    const said = [fill(form(words.caption, all), { q: question?.word ?? "", n: all }), this.fact ?? "", caption]
      .filter(Boolean)
      .join(" ");
    const text = csv([said, ...(snippet ? snippet.split("\n") : [])], labels, counts, weights ?? []);
    const order = labels.map((word, i) => /** @type {(string | number)[]} */ ([i, word, counts[i], weights?.[i] ?? 0]));
    return {
      title: [fill(words.file_title, { q: question?.word ?? "" }), title].filter(Boolean).join(". "),
      alt: question ? this.chart.alt(question, { of: 0, counts, hidden: false, weights, before: null }) : "",
      caption: said,
      snippet,
      name: `${name}-vote`,
      tables: /** @type {import("../../kit/browser/types.js").AboutFiles["tables"]} */ ([
        [
          words.file_votes,
          `${name}-vote`,
          text,
          { of: "votes", columns: ["position", "word", "votes", "weight"], rows: order },
        ],
      ]),
    };
  }

  drawn() {
    const { question, votes, palette } = this.teacher;
    const colours = { ink: palette.ink, mute: palette.mute, room: palette.query, head: palette.ramp[3] };
    return figure(
      {
        labels: question?.labels ?? [],
        counts: question?.counts(votes) ?? [],
        weights: this.weights ?? [],
        at: question?.at ?? null,
        fact: this.fact ?? "",
      },
      colours,
    );
  }

  // For a screen reader, every few seconds
  summary() {
    const { asked, votes, now, question } = this.teacher;
    if (!asked || !question) return "";
    if (!asked.open) return this.fact ?? "";
    const counts = question.counts(votes);
    const most = asked.hidden ? [] : largest(counts);
    const said = fill(words.have_said, { n: votes?.said ?? 0, of: Math.max(now.of, votes?.said ?? 0) });
    return most.length === 1
      ? `${said} ${fill(words.most_for, { w: question.labels[most[0]], n: counts[most[0]] })}`
      : said;
  }
}
