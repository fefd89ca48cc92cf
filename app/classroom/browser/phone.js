// What a follower reads and taps while the class is asked, and when the row is uncovered.

import { add, button, described, el, fill, finely, percent, phrase } from "../../kit/browser/dom.js";
import { isRightToLeft } from "../../kit/browser/direction.js";
import { agreed, headOf, largest, others, overlap, ownHead, rank, said, shares, verdict } from "./votes.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./question.js").Question} Question */
/** @typedef {{question: Question, mine: number | null, late: boolean, votes: import("./types.js").Votes | null, of: number}} Voting */

const SHOWN = 7; // words with bars
const SPELLED = 0.3; // the agreement whose part of the bar has room for its number

/** The words to tap. @param {HTMLElement} box @param {Voting} now @param {(token: number) => void} tap */
export function vote(box, { question, mine, late, votes, of }, tap) {
  const { labels, joins } = question;
  const title = el("h1");
  title.append(...phrase(words.will_look, { q: [question.word, "q"] }));
  const note = el("p", "note");
  if (mine === null) note.append([words.tap_word, late ? words.late : ""].filter(Boolean).join(" "));
  else note.append(...phrase(words.you_say, { w: [labels[mine] ?? "", "k"] }));
  const list = described(el("div", "words"), "group", words.words_label);
  const direction = isRightToLeft(labels) ? "rtl" : "ltr";
  list.dir = direction;
  /** @type {HTMLElement | null} */
  let group = null;
  for (const { at, isHidden } of question.choices()) {
    if (!group || !joins.has(at)) group = add(list, "span", "pieces");
    const node = button(
      labels[at],
      [at === question.at ? "me" : "", /^[[<].+[\]>]$/.test(labels[at]) ? "special" : ""].filter(Boolean).join(" "),
      () => tap(at),
    );
    node.disabled = isHidden;
    if (isHidden) node.title = words.hidden_word;
    node.dataset.token = String(at);
    node.setAttribute("aria-pressed", String(at === mine));
    group.append(node);
  }
  const which = el("h2");
  which.append(...phrase(words.row_covered, { place: [question.shortPlace, "b"], q: [question.word, "q"] }));
  const row = el("div", "row");
  row.setAttribute("aria-hidden", "true");
  row.dir = direction;
  labels.forEach((_, i) => add(row, "i", i === mine ? "mine" : "").append(i === mine ? "?" : ""));
  const parts = [title, note, list, which, row];
  if (mine === null) parts.push(el("p", "note", words.only_place));
  else {
    const n = votes?.said ?? 0;
    const count = el("p", "big count");
    count.textContent = fill(words.have_said, { n, of: Math.max(of, n) });
    const meter = el("div", "meter");
    add(meter, "i").style.width = `${(100 * n) / Math.max(1, of, n)}%`;
    parts.push(count, meter, el("p", "note", words.uncovers_all));
  }
  box.replaceChildren(...parts);
}

/** What came of it. @param {HTMLElement} box @param {Voting} now @param {((layer: number, head: number) => void) | null} look null where this page does not show the heads */
export function revealed(box, { question, mine, votes }, look) {
  const { asked, labels } = question;
  const found = question.row(asked.layer, asked.head);
  if (!found) return box.replaceChildren(el("p", "note", words.weights_coming));
  const { weights, masked } = found;
  const of = masked ? Array.from(masked).filter((code) => code === 0).length : weights.length;
  const counts = question.counts(votes);
  const room = shares(counts);
  const order = labels.map((_, i) => i).sort((a, b) => weights[b] - weights[a] || a - b);
  const big = el("h1", "result");
  const note = el("p", "note");
  if (mine !== null) {
    big.append(...phrase(...said(labels, mine, weights, of)));
    note.textContent = others(Math.max(0, counts[mine] - 1));
  } else {
    big.append(
      ...phrase(words.gives, {
        q: [question.word, "q"],
        p: [percent(weights[order[0]]), "b whole"],
        w: [labels[order[0]], "k"],
      }),
    );
    note.textContent = words.said_nothing;
  }
  const kept = [...new Set([mine ?? -1, largest(room)[0] ?? -1, ...order].filter((i) => i >= 0 && !masked?.[i]))]
    .slice(0, SHOWN)
    .sort((a, b) => weights[b] - weights[a] || a - b);
  const most = Math.max(...room, ...Array.from(weights));
  const bars = el("div", "pairs"); // a table, to a screen reader
  described(bars, "table", words.table_label);
  for (const i of kept) {
    const pair = add(bars, "div", i === mine ? "pair you" : "pair");
    pair.setAttribute("role", "row");
    const label = add(pair, "span");
    label.setAttribute("role", "rowheader");
    label.append(labels[i], ...(i === mine ? [el("small", "", words.you)] : []));
    const two = add(pair, "div");
    two.setAttribute("role", "presentation");
    for (const [name, value, text] of /** @type {const} */ ([
      ["room", room[i], percent(room[i])],
      ["head", weights[i], finely(weights[i])],
    ])) {
      const line = add(two, "p");
      line.setAttribute("role", "cell");
      add(line, "i", name).style.width = `${(76 * value) / most}%`;
      add(line, "u").append(el("span", "unseen", name === "room" ? words.room : words.head), ` ${text}`);
    }
  }
  const fact = el("p", "fact");
  fact.append(...phrase(...verdict(labels, room, weights)));
  const parts = [big, note, bars, fact];
  if (room.some(Boolean)) parts.push(agree(overlap(room, weights)));
  const rows = question.rows();
  if (mine !== null && rank(weights, mine) > 1 && rows) {
    const card = el("p", "own");
    const { layer, head } = headOf(rows, mine);
    card.append(...phrase(...ownHead(rows, mine)));
    if (look)
      card.append(
        " ",
        button(words.look, "link", () => look(layer, head)),
      );
    parts.push(card);
  }
  box.replaceChildren(...parts);
}

/** @param {number} both */
function agree(both) {
  const bar = el("div", "agree");
  for (const [name, part] of /** @type {const} */ ([
    ["room", 1 - both],
    ["both", both],
    ["head", 1 - both],
  ])) {
    const piece = add(bar, "i", name);
    piece.style.width = `${(100 * part) / (2 - both)}%`;
    if (name === "both" && both >= SPELLED) piece.textContent = agreed(both);
  }
  described(bar, "img", fill(words.venn_alt, { p: agreed(both) }));
  return bar;
}
