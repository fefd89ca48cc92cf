// Beside the maps: the next word before and after, the loss, or of an encoder the sentence's vector; and cells worth trying.

import { el, fill, fixed, percent } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { cosineText } from "./facts.js";
import { weigh } from "./rules.js";

/** @param {import("./paint.js").Paint} paint @param {HTMLElement} place */
export function drawAside(paint, place) {
  const { view, now } = paint;
  const { outcome: own, title: model, writes, classes } = view.header;
  const { found, changed } = now;
  const outcome = changed ? (found?.header?.outcome ?? null) : own;
  const state = JSON.stringify([
    view.layout,
    changed,
    view.values.forbid,
    found?.header?.key ?? null,
    Boolean(found),
    now.early,
    view.remote.failed,
    view.place.query,
  ]);
  if (state === paint.aside) return;
  paint.aside = state;
  const parts = [];
  if (own.words.length) {
    const last = queriesLast(paint);
    const heading = el("h3");
    if (classes) heading.append(classes === "several" ? words.class_several : words.class_one);
    else heading.append(...fillNodes(words.next_after, "word", el("em", "q", last)));
    parts.push(heading, listOf(own, outcome, changed), ...(classes ? [] : hidden(paint, own, outcome)));
    const loss = el("p", "loss");
    const [a, b] = [outcome?.loss, own.loss];
    if (b !== null)
      loss.append(
        words.loss,
        el("br"),
        el("b", "", a === undefined || a === null ? "…" : a.toFixed(2)),
        ` ${fill(words.loss_says, { loss: "", own: b.toFixed(2) }).trim()}`,
      );
    if (!classes) parts.push(loss);
  } else if (own.numbers.length) {
    parts.push(el("h3", "", words.class_numbers), ...numbersOf(own, outcome));
  } else {
    parts.push(el("h3", "", words.vector));
    const cosine = !changed ? 1 : (found?.header?.cosine ?? null);
    parts.push(el("p", "cosine", fill(words.vector_says, { cosine: cosine === null ? "…" : cosineText(cosine) })));
    if (!writes) parts.push(el("p", "mute", fill(words.no_words, { title: model })));
  }
  if (changed && !found)
    parts.push(
      el(
        "p",
        "mute",
        `${view.remote.failed ? words.unreachable : words.running} ${now.early ? words.early_here : classes ? words.exact_here_class : words.exact_here}`,
      ),
    );
  const { forbid, allow } = view.values;
  if (changed && forbid && forbid === view.header.first_look && !allow)
    parts.push(el("p", "mute", fill(words.first_look, { q: paint.queries[Number(forbid.split("-")[0])] })));
  for (const child of [...place.children]) if (child !== paint.tries) child.remove();
  place.prepend(...parts);
  drawTries(paint, place);
  const [first] = outcome?.words ?? [];
  Object.assign(place.dataset, {
    next: first ? first[1].trim() : "",
    chance: String(changed ? (outcome?.asked[0] ?? "") : (own.words[0]?.[2] ?? "")),
    loss: String(outcome?.loss ?? ""),
    cosine: String(found?.header?.cosine ?? ""),
  });
}

// The numbers of a regression, under this mask and under the model's own
/** @param {import("./types.js").Outcome} own @param {import("./types.js").Outcome | null} outcome */
function numbersOf(own, outcome) {
  return own.numbers.map(([name, before], i) => {
    const now = outcome?.numbers[i]?.[1];
    const line = el("p", "loss", name);
    const said = ` ${fill(words.class_number, { own: fixed(before, 3) })}`;
    line.append(el("br"), el("b", "", now === undefined ? "…" : fixed(now, 3)), said);
    return line;
  });
}

/** @param {import("./paint.js").Paint} paint */
function queriesLast(paint) {
  const labels = paint.view.labels(paint.view.header.labels.target ? "target" : "source");
  return labels[labels.length - 1];
}

/** @param {import("./types.js").Outcome} own @param {import("./types.js").Outcome | null} outcome @param {boolean} changed */
function listOf(own, outcome, changed) {
  /** @type {[string, number | null, number | null][]} */
  const lines = own.words.map(([, label, p], i) => [label.trim(), p, !outcome ? null : changed ? outcome.asked[i] : p]);
  const leader = changed ? outcome?.words[0] : undefined;
  if (leader && !own.words.some(([id]) => id === leader[0])) {
    lines.pop();
    lines.unshift([leader[1].trim(), null, leader[2]]);
  }
  const top = Math.max(0.05, ...lines.map(([, a, b]) => Math.max(a ?? 0, b ?? 0)));
  const box = el("div", "words");
  const first = Math.max(...lines.map(([, , b]) => b ?? 0));
  for (const [label, before, now] of lines) {
    const line = el("div");
    const bars = el("i");
    const ghost = el("u", "ghost");
    ghost.style.width = `${(100 * (before ?? 0)) / top}%`;
    bars.append(ghost);
    if (now !== null) {
      const bar = el("u");
      bar.style.width = `${(100 * now) / top}%`;
      bars.append(bar);
    }
    line.append(
      el("span", now !== null && now === first ? "b" : "", label),
      bars,
      el("s", "", now === null ? "…" : percent(now)),
      el("s", "mute", before === null ? words.new_word : percent(before)),
    );
    box.append(line);
  }
  const legend = el("p", "mute small");
  legend.append(el("i", "sw"), words.with_mask, el("i", "sw ghost"), words.models_own);
  const both = el("div");
  both.append(box, legend);
  return both;
}

// A word that the last row may not see: does the model still say it?
/** @param {import("./paint.js").Paint} paint @param {import("./types.js").Outcome} own @param {import("./types.js").Outcome | null} outcome */
function hidden(paint, own, outcome) {
  const { n_key, n_query } = paint.site;
  const { mask, ownMask, changed } = paint.now;
  if (!outcome || !changed || paint.site.id !== "decoder") return [];
  const at = (n_query - 1) * n_key;
  const i = own.words.findIndex(
    ([, label], j) => j > 0 && paint.keys.some((key, k) => key === label.trim() && mask[at + k] && !ownMask[at + k]),
  );
  if (i < 0) return [];
  const [a, b] = [own.words[i][2], outcome.asked[i]];
  const said = fill(b < a ? words.hidden_word : words.hidden_word_more, {
    word: own.words[i][1].trim(),
    a: percent(a, 1),
    b: percent(b, 1),
  });
  return [el("p", "small", said)];
}

// Cells that are worth trying: what the locked row looks at most, and everything but itself. The buttons stay as they are while an answer
// comes: a visitor may just be pressing one.
/** @param {import("./paint.js").Paint} paint @param {HTMLElement} place */
function drawTries(paint, place) {
  const { n_key, n_query } = paint.site;
  paint.tries.hidden = paint.site.id === "cross";
  if (paint.tries.parentElement !== place) place.append(paint.tries);
  if (paint.tries.hidden) return;
  const row = paint.view.header.writes ? n_query - 1 : paint.view.place.query;
  const { own, ownMask } = paint.now;
  const { weights } = weigh(
    own.subarray(row * n_key, (row + 1) * n_key),
    ownMask.subarray(row * n_key, (row + 1) * n_key),
    n_key,
  );
  const order = Array.from({ length: n_key }, (_, k) => k)
    .filter((k) => k !== row && weights[k] > 0)
    .sort((a, b) => weights[b] - weights[a])
    .slice(0, 2);
  const query = String(row);
  /** @type {[text: string, chosen: Record<string, string>][]} */
  const wanted = [
    ...order.map(
      (k) =>
        /** @type {[string, Record<string, string>]} */ ([
          fill(words.try_pair, { q: paint.queries[row], k: paint.keys[k] }),
          { mask: "model", forbid: `${row}-${k}`, allow: "", query, whose: "yours" },
        ]),
    ),
    [words.try_self, { mask: "window", window: "1", forbid: "", allow: "", query, whose: "yours" }],
  ];
  if (!paint.tries.childElementCount) paint.tries.append(el("span", "mute", words.try));
  const buttons = /** @type {HTMLButtonElement[]} */ ([...paint.tries.children].slice(1));
  while (buttons.length < wanted.length) buttons.push(paint.tries.appendChild(el("button", "quiet")));
  for (const more of buttons.splice(wanted.length)) more.remove();
  wanted.forEach(([text, chosen], i) => {
    if (buttons[i].textContent !== text) buttons[i].textContent = text;
    buttons[i].onclick = () => paint.view.choose(chosen);
  });
}

/** @param {string} template @param {string} name @param {Node} node */
function fillNodes(template, name, node) {
  const [before, after] = template.split(`{${name}}`);
  return [document.createTextNode(before), node, document.createTextNode(after)];
}
