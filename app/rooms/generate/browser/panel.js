// Below the picture: on a phone the ten likeliest words; of the open column what each layer would say; and what the cache keeps.

import {
  add,
  button,
  el,
  fill,
  hint,
  number,
  percent,
  phrase,
  same,
  setAll,
  setText,
} from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { size, time } from "./shapes.js";
import { form } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Acts} Acts */
/** @typedef {import("./types.js").Column} Column */

export const BARS = 10;
const [MOST, FEW] = [9, 7]; // rows of the lens: more than MOST are FEW until all are asked for
const REST = 0.0005; // below this a bar of the lens has the lightest colour

/** @param {HTMLElement} box @param {Scene} scene @param {Acts} acts */
export function bars(box, scene, acts) {
  const column = scene.columns[scene.focus];
  const { node, own, shown, take } = column;
  const sampled = scene.how === "sample" && !column.given;
  const n = Math.min(BARS, node.ids.length);
  const most = Math.max(0.02, ...own.probs.slice(0, n), ...shown.probs.slice(0, n));
  // The same buttons at every drawing: one that was made again while it is pressed would lose the click.
  const rows = [...box.querySelectorAll("button")]; // a lesson may have laid its cover among them
  while (rows.length > n) rows.pop()?.remove();
  while (rows.length < n) {
    const [row, track] = [add(box, "button"), el("b")];
    track.append(el("i"), el("s"));
    row.append(el("span"), track, el("u"));
    rows.push(row);
  }
  for (let j = 0; j < n; j++) {
    const [id, label] = [node.ids[j], scene.named(node, node.ids[j])];
    const row = rows[j];
    const [name, track, value] = row.children;
    const text = sampled
      ? `${percent(own.probs[j], 1).replace(" %", "")} → ${shown.probs[j] > 0 ? percent(shown.probs[j], 1) : words.cut}`
      : percent(own.probs[j], 1);
    setAll(row, {
      class: `bar${id === take ? " on" : ""}${shown.probs[j] <= 0 ? " cut" : ""}`,
      title: fill(words.take, { word: label }),
      "aria-label": fill(sampled ? words.bar_set : words.bar, {
        word: label,
        own: percent(own.probs[j], 1),
        set: percent(shown.probs[j], 1),
      }),
      "aria-pressed": String(id === take),
    });
    setText(name, label);
    const [filled, outline] = /** @type {HTMLCollectionOf<HTMLElement>} */ (track.children);
    filled.style.width = `${(shown.probs[j] / most) * 100}%`;
    outline.style.width = `${(own.probs[j] / most) * 100}%`;
    outline.hidden = !sampled;
    setText(value, text);
    row.onclick = () => acts.take(scene.focus, id);
  }
}

// Which rows of a lens are in sight: all of few, else FEW of them, evenly apart, the first and the last among them
/** @template T @param {T[]} rows @param {boolean} isWhole @returns {T[]} */
export function someLayers(rows, isWhole) {
  if (isWhole || rows.length <= MOST) return rows;
  return Array.from({ length: FEW }, (_, i) => rows[Math.round((i * (rows.length - 1)) / (FEW - 1))]);
}

/**
 * @param {HTMLElement} box @param {Scene} scene @param {(v: number) => [background: string, ink: string]} shade
 * @param {{isWhole: boolean, toggle: () => void}} fold whether every layer has its row
 */
export function layers(box, scene, shade, { isWhole, toggle }) {
  const column = scene.columns[scene.focus];
  const asked = scene.label(column.take ?? column.node.ids[0]);
  box.replaceChildren();
  const heading = add(box, "h2");
  add(heading, "b").textContent = words.layers;
  heading.append(" ");
  const note = add(heading, "span");
  note.textContent = fill(words.layers_note, { word: asked });
  heading.append(" ", hint(words.layers_help));
  if (!scene.lens) {
    add(box, "p", "mute").textContent = words.layers_wait;
    return;
  }
  if (scene.lens.length > MOST) {
    const all = heading.appendChild(button(fill(words.layers_all, { n: scene.header.layers }), "quiet", toggle));
    all.setAttribute("aria-pressed", String(isWhole));
    heading.insertBefore(document.createTextNode(" "), all);
  }
  const table = add(box, "table", "lens");
  add(table, "caption", "unseen").textContent = fill(words.layers_caption, { word: asked });
  for (const { layer, ids, labels, probs, rank } of someLayers(scene.lens, isWhole)) {
    const row = add(table, "tr");
    const name = add(row, "th");
    name.scope = "row";
    name.textContent = layer === null ? words.word_row : fill(words.layer_row, { n: layer });
    ids.forEach((id, j) => {
      const cell = add(row, "td", id === (column.take ?? column.node.ids[0]) ? "is" : "");
      const label = add(cell, "span");
      label.textContent = labels[j];
      const [background, ink] = shade(Math.sqrt(Math.max(REST, probs[j])));
      Object.assign(cell.style, { background, color: ink });
      cell.title = percent(probs[j]);
    });
    add(row, "td", "rank").textContent = number(rank);
  }
}

// What the cache keeps; its two buttons stay the same at every drawing.
export class Cache {
  /** @param {HTMLElement} box @param {{choose: (changes: Record<string, string>) => void, time: () => void}} acts */
  constructor(box, acts) {
    this.box = box;
    const heading = add(box, "h2");
    this.sum = add(heading, "span");
    heading.append(" ");
    const toggle = () =>
      acts.choose({ cache: this.without.getAttribute("aria-pressed") === "true" ? "with" : "without" });
    this.without = heading.appendChild(button(words.without, "quiet", toggle));
    const line = add(box, "p", "kv");
    this.said = add(line, "span");
    line.append(" ");
    this.ask = line.appendChild(button("", "quiet", () => acts.time()));
    line.append(" ");
    this.shared = add(line, "span", "mute");
    this.memory = add(box, "p", "kv mute");
  }

  /** @type {unknown[] | undefined} What it was drawn of */
  of;

  /** @param {Scene} scene */
  draw(scene) {
    const { bytes, header, cost, cached } = scene;
    const { node } = scene.columns[scene.focus];
    const n = node.position + 1;
    const beams = scene.how === "beam" ? scene.nBeams : 1;
    const of = [header.key, bytes, node, cost, cached, beams, scene.timing];
    if (same(of, this.of)) return;
    this.of = of;
    this.sum.replaceChildren(
      el("b", "", words.kv),
      " ",
      ...phrase(beams > 1 ? words.kv_beams : form([words.kv_sum_one, words.kv_sum], n), {
        n,
        per: size(bytes.token),
        beams,
        total: [size(node.cache * beams), "n"],
      }),
    );
    this.without.setAttribute("aria-pressed", String(!cached));
    this.said.replaceChildren(
      ...phrase(cached ? words.read_now : words.read_again, { n: [cached ? "1" : String(n), "word"] }),
    );
    if (cost) {
      const parts = { n: cost.n, with: time(cost.with_seconds * 1000), without: time(cost.without_seconds * 1000) };
      this.said.append(" ", fill(cached ? words.timed : words.timed_without, parts));
    } else if (node.ms !== null && cached) this.said.append(" ", fill(words.newest, { ms: time(node.ms) }));
    this.ask.hidden = Boolean(cost);
    this.ask.textContent = scene.timing ? words.timing : words.time;
    const per = (/** @type {number} */ heads) => size(bytes.mqa * heads * n * beams);
    const few = Array.from({ length: header.heads }, (_, i) => i + 2).find((count) => header.heads % count === 0);
    const others = [...new Set([header.heads, few ?? 1, 1])].filter((count) => count !== header.kv_heads);
    this.shared.textContent = others
      .map((count) =>
        fill(count === 1 ? words.sharing_one : count === header.heads ? words.sharing_all : words.sharing, {
          n: count,
          size: per(count),
        }),
      )
      .join(" ");
    this.memory.hidden = !bytes.memory;
    this.memory.textContent = fill(words.memory, { size: size(bytes.memory) });
  }
}
