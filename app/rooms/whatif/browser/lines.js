// Both sentences, as it is and changed, each ending in its likeliest next word; tokens are shaded by where a head looks, or by how far they turned.

import { isRightToLeft } from "../../../kit/browser/direction.js";
import { WORDS as words } from "./constants.js";
import { add, el, fill, quoted } from "../../../kit/browser/dom.js";
import { isOther } from "./lead.js";
import { rising, rooted, signed } from "../../../kit/browser/picture/scale.js";
import { answered, sorts } from "./numbers.js";

/** @param {HTMLElement} box @param {import("./types.js").Shown} shown @param {(changes: Record<string, string>) => void} choose */
export function drawLines(box, { data, side: newest, fresh, values, palette }, choose) {
  const side = fresh ? newest : null; // nothing of the previous change is shown
  const labels = data.target ?? data.source;
  const writes = data.kind !== "encoder" && data.writes;
  const last = data.classes?.at ?? labels.length - 1;
  const at = values.at === "" || !writes ? last : Number(values.at);
  const answers = writes || sorts(data);
  const oneQuery = data.long && values.sweep === "looks"; // of a text that writes on, that of the token asked about, unless a link names another
  const map = side?.maps.find((m) => `${m.site}.${m.layer}.${m.head}` === values.moved) ?? side?.maps[0];
  const place = data.places.find(({ id }) => id === map?.site);
  // Where the token that is asked about looks, in the text that predicts or (`source`) in the one that it translates
  /** @param {"before" | "after"} which @param {boolean} [source] */
  const row = (which, source = false) => {
    const found = map?.[which];
    if (!found || !side || !place || (data.target && (place.query === "source" || (place.key === "source") !== source)))
      return null;
    if (source)
      return new Float32Array(side.body, found.at, found.shape[0] * found.shape[1])
        .subarray(Math.min(at, found.shape[0] - 1) * found.shape[1])
        .subarray(0, found.shape[1]);
    if (found.shape[1] !== labels.length) return null;
    const all = new Float32Array(side.body, found.at, found.shape[0] * found.shape[1]);
    if (writes || (answers && data.classes?.at !== null))
      return all.subarray(Math.min(at, found.shape[0] - 1) * found.shape[1]).subarray(0, found.shape[1]);
    return Float32Array.from(
      labels,
      (_, j) => labels.reduce((sum, __, i) => sum + (all[i * labels.length + j] ?? 0), 0) / labels.length,
    );
  };
  const [share, change] = [rising(palette), signed(palette)];
  /**
   * @typedef {{name: string, tokens: string[], shade: ArrayLike<number> | null, turned: boolean, answer: [string, number | null] | null,
   *   changed: number[], choosable: boolean, asked: boolean}} Line asked: whether it is read up to the token that is asked about
   */
  /** @param {HTMLElement} parent @param {Line} line @param {number} i */
  const token = (parent, { tokens, shade, turned, changed, choosable, asked }, i) => {
    const node = add(parent, choosable ? "button" : "span", i === at && asked ? "token asked" : "token");
    if (choosable) {
      node.setAttribute("aria-pressed", String(i === at && asked));
      node.title = fill(writes ? words.ask_after : words.cut_of, { token: quoted(tokens[i]) });
      node.addEventListener("click", () =>
        choose(
          writes
            ? { at: i === labels.length - 1 ? "" : String(i), ...(oneQuery ? { query: "", key: "" } : {}) }
            : { query: String(i), key: "" },
        ),
      );
    }
    node.textContent = tokens[i];
    if (changed.includes(i)) node.classList.add("other");
    if (shade && i < shade.length) {
      const x = turned ? change(rooted(shade[i] * 8)) : share(shade[i]);
      node.style.background = x.fill;
      node.style.color = x.ink;
    }
  };
  const turns = new Map(data.turns);
  // The name of a turn of a conversation, before its first token
  /** @param {HTMLElement} parent @param {number} i */
  const turn = (parent, i) => {
    if (turns.get(i)) add(parent, "small", "turn").textContent = turns.get(i) ?? "";
  };
  /** @param {HTMLElement} parent @param {Line} line */
  const says = (parent, { answer }) => {
    const said = add(parent, "span", "says former");
    if (answer) said.append(el("b", "", answer[0]), ` ${answered(data, answer[1])}`);
  };
  /** @param {Line} line */
  const alone = (line) => {
    const box = el("div", "sentence");
    add(box, "span", "mute name").textContent = line.name;
    const words_ = add(box, "span", "tokens");
    if (isRightToLeft(line.tokens)) words_.dir = "rtl";
    line.tokens.forEach((_, i) => {
      if (line.tokens === data.source) turn(words_, i);
      token(words_, line, i);
    });
    if (line.answer) says(box, line);
    return box;
  };
  // Two sentences, a column for each pair of words: they wrap together.
  /** @param {Line} above @param {Line} below @param {[number | null, number | null][]} columns */
  const together = (above, below, columns) => {
    const box = el("div", "aligned");
    if (isRightToLeft(above.tokens)) box.dir = "rtl";
    const column = () => add(box, "span", "column");
    const names = column();
    for (const { name } of [above, below]) add(names, "span", "mute name").textContent = name;
    for (const [i, j] of columns) {
      if (above.tokens === data.source && i !== null) turn(box, i);
      const pair = column();
      for (const [line, at] of /** @type {[Line, number | null][]} */ ([
        [above, i],
        [below, j],
      ]))
        if (at === null) add(pair, "span", "token none").textContent = "–";
        else token(pair, line, at);
    }
    const ends = column();
    for (const line of [above, below]) says(ends, line);
    return box;
  };
  const pair = side?.likeliest;
  const before = pair ? /** @type {[string, number | null]} */ ([pair[0][1], pair[0][2]]) : null;
  const after = pair ? /** @type {[string, number | null]} */ ([pair[1][1], pair[1][3]]) : null;
  const turned = answers ? null : (side?.turned ?? null);
  /** @type {Line} */
  const above = {
    name: answers ? words.as_it_is : words.looked_at,
    tokens: labels,
    shade: row("before"),
    turned: false,
    answer: before,
    changed: [],
    choosable: writes || oneQuery,
    asked: writes,
  };
  const theirs = side ? (side.target ?? side.source) : isOther(values) ? ["…"] : labels;
  /** @type {Line} */
  const below = {
    name: answers ? (isOther(values) ? words.other_row : words.changed) : words.moved_row,
    tokens: theirs,
    shade: answers ? row("after") : turned,
    turned: !answers,
    answer: after,
    changed: side?.changed ?? [],
    choosable: false,
    asked: writes && !side?.changed.length,
  };
  const columns = side?.columns ?? [];
  /** @type {HTMLElement[]} */
  const sources = [];
  if (data.target) {
    const differs = side && (side.source_changed.length || side.source.length !== data.source.length);
    /** @type {(name: string, tokens: string[], which: "before" | "after", changed: number[]) => Line} */
    const source = (name, tokens, which, changed) => ({
      name,
      tokens,
      shade: row(which, true),
      turned: false,
      answer: null,
      changed,
      choosable: false,
      asked: false,
    });
    const own = source(words.source_row, data.source, "before", []);
    sources.push(
      differs
        ? together(own, source(words.other_source, side.source, "after", side.source_changed), side.source_columns)
        : alone(own),
    );
  }
  box.replaceChildren(
    ...sources,
    ...(values.sweep === "parts" && !values.against
      ? [alone(above)] // nothing stands beside it
      : columns.length
        ? [together(above, below, columns)]
        : [alone(above), alone(below)]),
  );
}
