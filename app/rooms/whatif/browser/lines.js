// Both sentences, as it is and changed, each ending in its likeliest next word; tokens are shaded by where a head looks, or by how far they turned.

import { WORDS as words } from "./constants.js";
import { add, el, fill, quoted } from "../../../kit/browser/dom.js";
import { percent } from "./numbers.js";
import { scales } from "./sweepmap.js";

/** @param {HTMLElement} box @param {import("./types.js").Shown} shown @param {(changes: Record<string, string>) => void} choose */
export function drawLines(box, { data, side, values, palette }, choose) {
  const labels = data.target ?? data.source;
  const at = values.at === "" ? labels.length - 1 : Number(values.at);
  const answers = data.kind !== "encoder" && data.writes;
  const oneQuery = data.long && values.sweep === "looks"; // of a text that writes on, that of the token asked about, unless a link names another
  const map = side?.maps.find((m) => `${m.site}.${m.layer}.${m.head}` === values.moved) ?? side?.maps[0];
  /** @param {"before" | "after"} which */
  const row = (which) => {
    const found = map?.[which];
    if (!found || !side || found.shape[1] !== labels.length) return null;
    const all = new Float32Array(side.body, found.at, found.shape[0] * found.shape[1]);
    if (answers) return all.subarray(Math.min(at, found.shape[0] - 1) * found.shape[1]).subarray(0, found.shape[1]);
    return Float32Array.from(labels, (_, j) => labels.reduce((sum, __, i) => sum + (all[i * labels.length + j] ?? 0), 0) / labels.length);
  };
  const scale = scales(palette);
  /** @param {string} name @param {string[]} tokens @param {ArrayLike<number> | null} shade @param {boolean} turned @param {[string, number | null] | null} answer @param {number[]} changed @param {boolean} choosable */
  const line = (name, tokens, shade, turned, answer, changed, choosable) => {
    const box = el("div", "sentence");
    add(box, "span", "mute name").textContent = name;
    const words_ = add(box, "span", "tokens");
    tokens.forEach((token, i) => {
      const node = add(words_, choosable ? "button" : "span", i === at && answers && (choosable || !changed.length) ? "token asked" : "token");
      if (choosable) Object.assign(node, { type: "button", title: fill(answers ? words.ask_after : words.cut_of, { token: quoted(token) }) });
      if (choosable) node.addEventListener("click", () => choose(answers ? { at: i === labels.length - 1 ? "" : String(i), ...(oneQuery ? { query: "", key: "" } : {}) } : { query: String(i), key: "" }));
      node.textContent = token;
      if (changed.includes(i)) node.classList.add("other");
      if (shade) node.classList.add("chosen"); // with its ground in a file
      if (shade && i < shade.length) {
        const x = turned ? scale.of(shade[i] * 8, 1) : scale.even(shade[i]);
        node.style.background = x.fill;
        node.style.color = x.ink;
      }
    });
    if (answer) {
      const said = add(box, "span", "says");
      said.append(el("b", "", answer[0]), ` ${percent(answer[1])}`);
    }
    return box;
  };
  const pair = side?.likeliest;
  const before = pair ? /** @type {[string, number | null]} */ ([pair[0][1], pair[0][2]]) : null;
  const after = pair ? /** @type {[string, number | null]} */ ([pair[1][1], pair[1][3]]) : null;
  const both = [line(answers ? words.as_it_is : words.looked_at, labels, row("before"), false, before, [], answers || oneQuery)];
  const turned = answers ? null : (side?.turned ?? null);
  const theirs = side ? (side.target ?? side.source) : labels;
  both.push(line(answers ? words.changed : words.moved_row, theirs, answers ? row("after") : turned, !answers, after, side?.changed ?? [], false));
  box.replaceChildren(...both);
}
