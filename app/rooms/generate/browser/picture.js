// The picture: a text as a path through what it might have been. Arcs from the look that wrote the word; the text, one word a column;
// the other lines; surprise and entropy; and the columns, one of them open, with its list of words.

import { fill, fixed, number, percent, same } from "../../../kit/browser/dom.js";
import { Pen } from "../../../kit/browser/pen.js";
import { svg } from "../../../kit/browser/picture/svg.js";
import { bits } from "./chances.js";
import { WORDS as words } from "./constants.js";
import { layersOf } from "./layers.js";
import { lastWords, plan, SMALL, TYPE } from "./plan.js";
import { fitted, nameOf, ruler, short, size } from "./shapes.js";
import { trees } from "./trees.js";

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {import("./types.js").Acts} Acts */
/** @typedef {import("./types.js").Plan} Plan */
/** @typedef {import("./types.js").Column} Column */

const LISTED = 12; // words of the open column
const NAMED = 14; // words of a column that are drawn one by one
const THIN = 1.6; // pixels, below which a word has no piece of its own
const HEAD = 24; // above the list
const MOST_SHARED = 300; // pixels of words that a line shares, before its own
const MUTE = "var(--mute)";
const WRITTEN = "var(--proof)";

export class Picture {
  /** @type {ReturnType<typeof ruler> | undefined} */
  known;
  /** @type {Plan} Where everything stood at the last drawing */
  plan;

  /** @param {SVGSVGElement} svg @param {Acts} acts */
  constructor(svg, acts) {
    this.svg = svg;
    this.acts = acts;
    const pen = new Pen(svg);
    const hatch = new Pen(
      new Pen(pen.draw("defs", {})).draw("pattern", {
        id: "generate-hatch",
        width: 6,
        height: 6,
        patternTransform: "rotate(45)",
        patternUnits: "userSpaceOnUse",
      }),
    );
    hatch.draw("rect", { width: 1.1, height: 6, fill: "var(--hatch)" });
    this.groups = Array.from({ length: 8 }, () => pen.draw("g", {}));
    this.stacks = new Stacks(this.groups[4]);
  }

  get ruler() {
    return (this.known ??= ruler(getComputedStyle(this.svg).fontFamily));
  }

  /** @param {Scene} scene @param {{width: number, height: number, scale: number, narrow: boolean, projected: boolean}} room */
  draw(scene, { width, height, scale, narrow, projected }) {
    const at = (this.plan = plan(
      scene,
      { width: width / scale, height: height / scale, narrow, projected },
      this.ruler,
    ));
    for (const [name, value] of Object.entries({
      width,
      height,
      viewBox: `0 0 ${width / scale} ${height / scale}`,
    }))
      if (this.svg.getAttribute(name) !== String(value)) this.svg.setAttribute(name, String(value));
    /** @type {Of} */
    const of = { scene, at, acts: this.acts, ruler: this.ruler, stacks: this.stacks };
    const below = { columns, layers: layersOf, cache: kept, beams: trees }[scene.page];
    this.stacks.draw(of, scene.page === "columns");
    const stats = scene.page === "columns" && at.stated ? surprise : nothing;
    [whole, arcs, shown, below, null, text, lines, stats].forEach((part, i) => {
      if (!part) return;
      const pen = new Pen(this.groups[i]);
      part(pen, /** @type {any} */ (of));
      pen.end();
    });
  }
}

const nothing = () => {};
/** @typedef {{scene: Scene, at: Plan, acts: Acts, ruler: ReturnType<typeof ruler>, stacks: Stacks}} Of */

// Of a long text the surprise of each word, all of them: a map to click
/** @param {Pen} pen @param {Of} of */
function whole(pen, { scene, at, acts, ruler }) {
  if (!at.long) return;
  const all = scene.columns.slice(Math.max(0, at.begins));
  const [wide, high] = [at.width / all.length, 24];
  const jump = (/** @type {MouseEvent} */ event) => {
    const box = /** @type {Element} */ (event.currentTarget).getBoundingClientRect();
    acts.focus(at.begins + Math.floor(((event.clientX - box.left) / box.width) * all.length));
  };
  const box = pen.draw("rect", {
    class: "hit",
    x: 0,
    y: 1,
    width: at.width,
    height: high,
    rx: 3,
    fill: "var(--slice)",
  });
  box.onclick = jump;
  const d = all
    .map(({ known }, i) =>
      known
        ? `M${((i + 0.5) * wide).toFixed(1)} ${high + 1}v${(-Math.min(1, bits(known.prob) / 10) * high).toFixed(1)}`
        : "",
    )
    .join("");
  pen.draw("path", {
    d: d || "M0 0",
    stroke: WRITTEN,
    "stroke-opacity": 0.7,
    "stroke-width": Math.max(0.8, wide * 0.65),
    "pointer-events": "none",
    fill: "none",
  });
  const [a, b] = [Math.max(0, at.low - at.begins) * wide, (at.high - at.begins + 1) * wide];
  pen.draw("rect", {
    x: a,
    y: 0,
    width: Math.max(6, b - a),
    height: high + 2,
    rx: 3,
    fill: "none",
    stroke: "var(--query)",
    "stroke-width": 2,
    "pointer-events": "none",
  });
  const said = fill(words.whole_text, { n: number(all.length) });
  pen.write(
    at.width / 2,
    high + 15,
    fitted(said, at.width, (part) => ruler(part, SMALL)),
    { anchor: "middle", size: SMALL, fill: MUTE },
  );
}

// Where arcs stand: on the words, from the one that was read
/** @param {Of} of */
function arch({ scene, at }) {
  const base = at.text;
  const from = at.anchor(scene.columns[scene.focus].node.position).x;
  const path = (/** @type {number} */ x, /** @type {number} */ high) =>
    `M${from} ${base}C${from} ${base - high * 1.32} ${x} ${base - high * 1.32} ${x} ${base}`;
  return { base, from, most: base - at.arcs - 8, path };
}

// Other looks that add much to the word, and the way from the word that was read to the one that came of it
/** @param {Pen} pen @param {Of} of */
function arcs(pen, of) {
  const { scene, at } = of;
  if (scene.page === "beams") return;
  const { look, looks, focus } = scene;
  const column = scene.columns[focus];
  const { base, from, most, path } = arch(of);
  const seen = new Set([look?.key]);
  for (const { key } of scene.header.source ? [] : looks) {
    if (seen.has(key)) continue;
    seen.add(key);
    const to = at.anchor(key);
    const far = Math.abs(to.x - from);
    if (to.isShown && far > 2)
      pen.draw("path", {
        d: path(to.x, Math.min(most * 0.62, 12 + far * 0.16)),
        fill: "none",
        stroke: "var(--hatch)",
        "stroke-width": 1.3,
      });
  }
  const place = at.places.get(focus);
  if (!place || (column.take === null && !scene.hides)) return;
  const x = place.word;
  pen.draw("path", {
    d: `M${from + 4} ${base}C${from + 6} ${base - 16} ${x - 8} ${base - 16} ${x - 2} ${base - 2}M${x - 7} ${base - 6}L${x - 1.5} ${base - 1}L${x + 2.5} ${base - 8}`,
    fill: "none",
    stroke: WRITTEN,
    "stroke-width": 1.8,
  });
}

// The look that is shown, from the word that was read to the one that it looks at
/** @param {Pen} pen @param {Of} of */
function shown(pen, of) {
  const { scene, at, ruler } = of;
  const { look, header } = scene;
  if (scene.page === "beams" || !look || header.source) return;
  if (look.key === scene.columns[scene.focus].node.position) return;
  const { base, from, most, path } = arch(of);
  const to = at.anchor(look.key);
  const far = Math.abs(to.x - from);
  const high = far < 90 ? Math.min(most * 0.5, 12 + far * 0.2) : Math.min(most, 18 + far * 0.2);
  pen.draw("path", {
    class: "flight",
    d: path(to.x, high),
    fill: "none",
    stroke: "var(--query)",
    "stroke-width": 1.5 + 5 * look.weight,
    "stroke-linecap": "round",
  });
  // Over a low arch, and in a high one that is wide enough
  const said = percent(look.weight);
  const wide = ruler(said, 16.6, 700);
  const y = base - high + (far > wide + 30 && high > 30 ? 6 : -6);
  pen.write(Math.max(wide / 2, (to.x + from) / 2), y, said, {
    anchor: "middle",
    size: 16.6,
    "font-weight": 700,
    fill: "var(--ink)",
    stroke: "var(--background)",
    "stroke-width": 4,
    "paint-order": "stroke",
  });
}

// The text: the last words that were given, and the word above each column
/** @param {Pen} pen @param {Of} of */
function text(pen, { scene, at, acts, ruler }) {
  const { focus, columns: all, look, unfolded } = scene;
  const y = at.text;
  const reader = all[focus].node.position;
  const key = look && !scene.header.source ? look.key : -1;
  const marked = (/** @type {number} */ position) =>
    position === reader ? "var(--query)" : position === key ? "var(--key)" : null;
  const box = pen.draw(
    "rect",
    { class: "hit", x: 0, y: y + 1, width: at.strip, height: 25, rx: 5, fill: "var(--slice)" },
    { title: unfolded ? words.fold : words.unfold, click: () => acts.unfold() },
  );
  box.setAttribute("data-fold", unfolded ? "out" : "in");
  if (unfolded) {
    const first = scene.nameAt(all[0].node.position);
    pen.write(
      at.strip / 2,
      y + 19,
      fitted(`‹ ${first}`, at.strip - 4, (part) => ruler(part, TYPE)),
      { anchor: "middle", size: TYPE, fill: marked(all[0].node.position) ?? MUTE, "pointer-events": "none" },
    );
  } else {
    const { found, rest } = lastWords(scene, at.strip, ruler);
    if (rest) pen.write(4, y + 19, "…", { size: TYPE, fill: MUTE, "pointer-events": "none" });
    for (const { position, first, text, mark, x, width } of found) {
      const within = (/** @type {number} */ one) => first <= one && one <= position;
      const colour = within(reader) ? "var(--query)" : within(key) ? "var(--key)" : null;
      pen.write(x, y + 19, text, {
        anchor: "middle",
        size: mark ? SMALL : TYPE,
        "font-weight": colour || mark ? 650 : 400,
        fill: colour ?? (mark ? WRITTEN : MUTE),
        "pointer-events": "none",
      });
      if (colour) pen.draw("rect", { x: x - width / 2 - 2, y: y + 25, width: width + 4, height: 2.4, fill: colour });
    }
  }
  if (scene.page === "beams") return;
  // The word that is looked at is never folded: it is drawn over the fold, whose number is left out there
  const said = key >= 0 && !at.anchor(key).isShown ? nameOf(scene, key) : "";
  const wide = ruler(said, TYPE, 650) + 10;
  const most = at.left ? at.left.x + at.left.width - wide : at.width - wide;
  const x = said ? Math.max(0, Math.min(at.anchor(key).x - wide / 2, most)) : 0;
  for (const fold of [at.left, at.right]) {
    if (!fold) continue;
    const to = fold === at.left ? at.low - 1 : at.high + 1;
    pen.draw(
      "rect",
      { class: "hit", x: fold.x, y: y + 1, width: fold.width, height: 25, rx: 5, fill: "var(--slice)" },
      { click: () => acts.focus(to) },
    );
    const [middle, folded] = [fold.x + fold.width / 2, `⋯${fold.n}`];
    const half = ruler(folded, SMALL) / 2;
    if (said && x < middle + half && middle - half < x + wide) continue;
    pen.write(middle, y + 19, folded, { anchor: "middle", size: SMALL, fill: MUTE, "pointer-events": "none" });
  }
  if (said) {
    pen.draw("rect", {
      x,
      y: y + 1,
      width: wide,
      height: 25,
      rx: 5,
      fill: "var(--background)",
      stroke: "var(--key)",
      "stroke-width": 1.8,
    });
    pen.write(x + wide / 2, y + 19, said, {
      anchor: "middle",
      size: TYPE,
      "font-weight": 650,
      fill: "var(--key)",
      "pointer-events": "none",
    });
  }
  for (const [i, place] of at.places) {
    const column = all[i];
    const position = column.node.position + 1;
    const on = i === focus;
    const colour = marked(position);
    const name = at.names[i];
    const wide = ruler(name, TYPE, 650) + 6 * at.nth[i].length + 6;
    const x = place.word - wide / 2;
    const frame = on ? WRITTEN : colour;
    pen.draw(
      "rect",
      {
        class: "hit",
        x,
        y: y + 1,
        width: wide,
        height: 25,
        rx: 5,
        fill: on ? `color-mix(in srgb, ${WRITTEN} 12%, var(--background))` : "var(--background)",
        stroke: frame ?? "none",
        "stroke-width": 1.8,
        "stroke-dasharray": on && column.take === null ? "4 3" : undefined,
      },
      { click: () => acts.focus(i), title: tip(scene, column) },
    );
    const said = pen.draw("text", {
      x: x + 3,
      y: y + 19,
      "font-size": TYPE,
      "font-weight": on || colour ? 650 : column.given ? 400 : 600,
      fill: on ? WRITTEN : (colour ?? (column.given ? MUTE : "var(--ink)")),
      "pointer-events": "none",
    });
    const line = new Pen(said);
    line.draw("tspan", {}, { text: name });
    if (at.nth[i]) line.draw("tspan", { "font-size": 10, dy: 3 }, { text: at.nth[i] });
    line.end();
    if (scene.loop.has(position))
      pen.draw("rect", {
        x: place.x,
        y: y + 26,
        width: place.width,
        height: 3,
        fill: "var(--query)",
        opacity: scene.loop.get(position),
      });
  }
}

/** @param {Scene} scene @param {Column} column */
function tip(scene, { known, take, node }) {
  if (!known || take === null) return undefined;
  return fill(words.tip, { word: scene.named(node, take), share: percent(known.prob), rank: number(known.rank) });
}

// Other lines: from where each leaves the one that stands on the columns. One with little room ends at the right, after some of the
// words that it shares.
/** @param {Pen} pen @param {Of} of */
function lines(pen, { scene, at, acts, ruler }) {
  const beam = scene.how === "beam";
  at.lines.forEach(({ path, at: fork, end, short }, row) => {
    const y = at.line(row);
    const index = scene.columns.findIndex((column) => !column.given && column.at === fork);
    const place = at.places.get(index);
    const score = scene.scoreOf(path);
    const right = at.width - (beam ? 4 : 24);
    const from = place ? place.x + 8 : at.strip + 10;
    const said = scene.flush(path.slice(fork));
    const wide = (/** @type {string} */ part) => ruler(part, TYPE, 500);
    let x = from + 18;
    if (short) {
      const shown = fitted(said, end - at.strip, wide);
      const before = scene.flush(path.slice(0, fork));
      const shared = lastOf(before, Math.min(MOST_SHARED, end - at.strip - wide(shown) - 20), (part) =>
        ruler(part, TYPE),
      );
      x = end - wide(shown);
      if (shared) pen.write(x - 4, y + 17, shared, { anchor: "end", size: TYPE, fill: MUTE, "pointer-events": "none" });
    } else
      pen.draw("path", {
        d: `M${from} ${at.text + 27}V${y + 13}H${x - 4}`,
        fill: "none",
        stroke: "var(--hatch)",
        "stroke-width": 1.6,
      });
    pen.draw(
      "rect",
      { class: "hit line", x: x - 3, y, width: right - x, height: 24, rx: 4, fill: "transparent" },
      { click: () => acts.go(path, fork), title: words.line_help },
    );
    const line = pen.draw("text", {
      class: "line-words",
      x,
      y: y + 17,
      "font-size": TYPE,
      "font-weight": 500,
      fill: "var(--ink)",
      "pointer-events": "none",
    });
    const text = fitted(said, end - x + 0.5, wide);
    const first = scene.flush(path.slice(fork, fork + 1));
    const parts = new Pen(line);
    const n = text.startsWith(first) ? first.length : 0;
    parts.draw("tspan", { fill: WRITTEN, "font-weight": 700 }, { text: text.slice(0, n) });
    parts.draw("tspan", {}, { text: text.slice(n) });
    parts.end();
    pen.write(right - 4, y + 17, score, { anchor: "end", size: SMALL, fill: MUTE, "pointer-events": "none" });
    if (beam) return;
    pen.draw(
      "rect",
      { class: "hit drop", x: right, y, width: 24, height: 24, fill: "transparent" },
      { click: () => acts.drop(path), title: words.drop },
    );
    pen.write(right + 12, y + 17, "×", { anchor: "middle", size: TYPE, fill: MUTE, "pointer-events": "none" });
  });
}

// The last words of a text that fit into a width
/** @param {string} text @param {number} width @param {(text: string) => number} wide */
function lastOf(text, width, wide) {
  const all = text.split(" ");
  let shown = "";
  for (let i = all.length - 1; i >= 0; i--) {
    const more = `${i ? "… " : ""}${all.slice(i).join(" ")}`;
    if (wide(more) > width) break;
    shown = more;
  }
  return shown;
}

// The surprise of each word, and the one that could be expected, in bits
/** @param {Pen} pen @param {Of} of */
function surprise(pen, { scene, at, ruler }) {
  const [y, high] = [at.stats + 2, 40];
  const shown = [...at.places].map(([i, place]) => {
    const { known, node } = scene.columns[i];
    return { i, place, bits: known ? bits(known.prob) : null, expected: node.entropy };
  });
  const most = Math.max(6, ...shown.map(({ bits, expected }) => Math.max(bits ?? 0, expected)));
  const to = (/** @type {number} */ value) => y + high - (value / most) * high;
  if (!at.narrow) {
    const name = (/** @type {string} */ said, /** @type {number} */ dy, /** @type {string} */ colour) =>
      pen.write(
        0,
        y + dy,
        fitted(said, at.strip, (part) => ruler(part, SMALL)),
        { size: SMALL, fill: colour },
      );
    name(`● ${words.surprise}`, 12, WRITTEN);
    name(`▬ ${words.entropy}`, 26, MUTE);
    name(words.in_bits, 40, MUTE);
  }
  pen.draw("path", { d: `M${at.strip} ${y + high}H${at.width}`, stroke: "var(--line)", fill: "none" });
  for (const { i, place, bits, expected } of shown) {
    const open = i === scene.focus && at.open;
    const x = open ? place.x + 18 : place.x + place.width / 2;
    const wide = open ? 36 : place.width;
    const dash = to(expected);
    pen.draw("path", {
      d: `M${x - wide / 2} ${dash}h${wide}`,
      stroke: "var(--mute)",
      "stroke-opacity": 0.7,
      "stroke-width": 2.6,
      fill: "none",
    });
    if (bits !== null) {
      pen.draw("path", { d: `M${x} ${y + high}V${to(bits)}`, stroke: WRITTEN, "stroke-width": 2, fill: "none" });
      pen.draw("circle", { cx: x, cy: to(bits), r: open ? 4.5 : 3.4, fill: WRITTEN });
    }
    if (open && !at.narrow && bits !== null) {
      const room = (/** @type {string} */ said) => fitted(said, place.width - 40, (part) => ruler(part, SMALL));
      pen.write(place.x + 42, y + 14, room(fill(words.bits_of, { n: fixed(bits, 1) })), {
        size: SMALL,
        "font-weight": 650,
        fill: WRITTEN,
      });
      pen.write(place.x + 42, y + 30, room(fill(words.bits_expected, { n: fixed(expected, 1) })), {
        size: SMALL,
        fill: MUTE,
      });
    }
  }
}

// The columns; left of them how well the given text was foreseen, and the words that are folded as bars
/** @param {Pen} pen @param {Of} of */
function columns(pen, of) {
  const { scene, at, ruler } = of;
  const { top, bottom } = at;
  const bars = (
    /** @type {number} */ x,
    /** @type {number} */ width,
    /** @type {(number | null)[]} */ shares,
    /** @type {string} */ colour,
    high = bottom - top,
  ) => {
    const wide = width / Math.max(1, shares.length);
    const d = shares
      .map((share, i) =>
        share
          ? `M${(x + i * wide).toFixed(1)} ${bottom}h${Math.max(0.6, wide * 0.86).toFixed(2)}v${(-share * high).toFixed(1)}h${(-Math.max(0.6, wide * 0.86)).toFixed(2)}Z`
          : "",
      )
      .join("");
    pen.draw("path", { d: d || "M0 0", fill: colour });
  };
  const turns = scene.header.turns ?? [];
  pen.draw("rect", { x: 0, y: top, width: at.strip, height: bottom - top, rx: 3, fill: "var(--slice)" });
  if (!scene.unfolded) {
    bars(
      4,
      at.strip - 8,
      scene.losses.slice(0, scene.prompt.length - 1).map((loss) => Math.exp(-loss)),
      "var(--slice3)",
      bottom - top - (turns.length ? 66 : 42),
    );
    // The turns of a conversation: marks over the bars
    const wide = (at.strip - 8) / Math.max(1, scene.prompt.length - 1);
    turns.forEach(([from, role], i) => {
      const [a, b] = [from, turns[i + 1]?.[0] ?? scene.prompt.length].map((one) => 4 + Math.max(0, one - 1) * wide);
      const line = { d: `M${a + 1} ${top + 60}H${b - 2}`, stroke: WRITTEN, "stroke-width": 2, fill: "none" };
      pen.draw("path", line, { title: role });
      if (ruler(role, SMALL, 650) < b - a)
        pen.write((a + b) / 2, top + 54, role, {
          anchor: "middle",
          size: SMALL,
          "font-weight": 650,
          fill: WRITTEN,
        });
    });
    const room = (/** @type {string} */ said) => fitted(said, at.strip - 10, (part) => ruler(part, SMALL));
    pen.write(6, top + 17, room(words.given), { size: SMALL, fill: MUTE });
    pen.write(6, top + 32, room(fill(words.n_tokens, { n: number(scene.prompt.length) })), { size: SMALL, fill: MUTE });
  }
  for (const fold of [at.left, at.right]) {
    if (!fold) continue;
    const some = fold === at.left ? scene.columns.slice(at.begins, at.low) : scene.columns.slice(at.high + 1);
    pen.draw("rect", { x: fold.x, y: top, width: fold.width, height: bottom - top, rx: 3, fill: "var(--slice)" });
    bars(
      fold.x,
      fold.width,
      some.map(({ known }) => known?.prob ?? null),
      `color-mix(in srgb, ${WRITTEN} 50%, var(--background))`,
    );
  }
  for (const [i, place] of at.places) {
    const next = at.places.get(i + 1);
    const taken = of.stacks.takenAt(scene.columns[i].node.position);
    if (taken && next) {
      const right = place.x + place.width;
      pen.draw("path", {
        d: `M${right} ${taken[0]}L${next.x} ${top}L${next.x} ${bottom}L${right} ${taken[1]}Z`,
        fill: WRITTEN,
        opacity: 0.14,
        "pointer-events": "none",
      });
    }
  }
}

// The columns, each in a group of its own: while words come all of them move, and one that only moves is not drawn again.
class Stacks {
  /** @type {Map<number, {group: SVGGElement, of: unknown[], taken: [number, number] | null}>} By the position that was read */
  drawn = new Map();

  /** @param {SVGGElement} parent */
  constructor(parent) {
    this.parent = parent;
  }

  /** @param {Of} of @param {boolean} isShown */
  draw(of, isShown) {
    const { scene, at } = of;
    const gone = new Map(this.drawn);
    for (const [i, { x, width }] of isShown ? at.places : []) {
      const column = scene.columns[i];
      const { position } = column.node;
      let stack = this.drawn.get(position);
      if (!stack) {
        stack = { group: this.parent.appendChild(svg("g")), of: [], taken: null };
        this.drawn.set(position, stack);
      }
      gone.delete(position);
      const moved = `translate(${Math.round(x * 10) / 10} 0)`;
      if (stack.group.getAttribute("transform") !== moved) stack.group.setAttribute("transform", moved);
      const isOpen = i === scene.focus && at.open;
      const { node, take, own, given } = column;
      const said = [i, node, take, scene.own ? own : column.shown, given, Math.round(width * 10), at.top, at.bottom];
      if (!isOpen && same(said, stack.of)) continue;
      const pen = new Pen(stack.group);
      const box = { x: 0, width, top: at.top, bottom: at.bottom };
      stack.taken = isOpen
        ? opened(pen, of, column, box)
        : slices(pen, of, column, box, { own: scene.own, named: true });
      stack.of = isOpen ? [] : said;
      pen.end();
    }
    for (const [position, { group }] of gone) {
      group.remove();
      this.drawn.delete(position);
    }
  }

  // From where to where the word that was taken stands
  /** @param {number} position */
  takenAt(position) {
    return this.drawn.get(position)?.taken ?? null;
  }
}

// One stack of words, as high as each is likely. Where the one that was taken is: [from, to]
/**
 * @param {Pen} pen @param {Of} of @param {Column} column @param {{x: number, width: number, top: number, bottom: number}} box
 * @param {{own: boolean, named: boolean}} how own: as the model has it, else as it is drawn from
 * @returns {[number, number] | null}
 */
function slices(pen, { scene, acts, ruler }, column, { x, width, top, bottom }, { own, named }) {
  const { node, take, given } = column;
  const { probs } = own ? column.own : column.shown;
  const high = bottom - top;
  const colour = given ? "var(--given)" : WRITTEN;
  const at = scene.columns.indexOf(column);
  let y = top;
  /** @type {[number, number] | null} */
  let taken = null;
  const n = Math.min(NAMED, node.ids.length);
  for (let j = 0; j < n; j++) {
    const id = node.ids[j];
    const tall = probs[j] * high;
    const isTaken = id === take;
    if (isTaken) taken = [y, y + Math.max(3, tall)];
    if (tall >= THIN || isTaken) {
      const label = scene.named(node, id);
      pen.draw(
        "rect",
        {
          class: "hit",
          x,
          y,
          width,
          height: Math.max(isTaken ? 3 : 0.5, tall - (tall > 3 ? 1 : 0)),
          rx: isTaken ? 1.5 : 0,
          fill: isTaken ? colour : j % 2 ? "var(--slice)" : "var(--slice2)",
        },
        { title: fill(words.slice, { word: label, share: percent(probs[j]) }), click: () => acts.take(at, id) },
      );
      if (named && tall >= (isTaken ? 12.5 : 16) && ruler(label, SMALL, 650) < width - 2)
        pen.write(x + width / 2, y + tall / 2 + 4.5, label, {
          anchor: "middle",
          size: SMALL,
          "font-weight": isTaken || !j ? 650 : 400,
          fill: isTaken ? (given ? "var(--given-ink)" : "var(--on)") : j ? MUTE : "var(--ink)",
          "pointer-events": "none",
        });
    }
    y += tall;
  }
  if (bottom - y > 1) pen.draw("rect", { x, y, width, height: bottom - y, fill: "url(#generate-hatch)", opacity: 0.8 });
  if (take !== null && !taken) {
    const j = node.ids.indexOf(take);
    const prob = j < 0 ? (own ? (column.known?.prob ?? 0) : 0) : probs[j];
    // Beyond those that are drawn one by one: where it stands among the others is not known, that it is one of them is.
    const from = Math.min(bottom - 3.2, y + (bottom - y) * 0.4);
    if (prob > 0 || own) {
      taken = [from, from + Math.max(3.2, prob * high)];
      pen.draw("rect", { x, y: from, width, height: taken[1] - from, rx: 1.5, fill: colour });
    }
  }
  return taken;
}

// The open column: the model's own stack, what the settings make of it, and the words with both numbers. Any of them is a way out.
/** @param {Pen} pen @param {Of} of @param {Column} column @param {{x: number, width: number, top: number, bottom: number}} box */
function opened(pen, of, column, { x, width, top, bottom }) {
  const { scene, at, acts, ruler } = of;
  const { node, take, own, shown } = column;
  [x, width] = [x + 2, width - 4];
  const index = scene.columns.indexOf(column);
  const sampled = scene.how === "sample" && !column.given;
  pen.draw("rect", {
    x: x - 3,
    y: top - 4,
    width: width + 6,
    height: bottom - top + 7,
    rx: 6,
    fill: "var(--background)",
    stroke: WRITTEN,
    "stroke-width": 2,
    "stroke-dasharray": scene.hides ? "5 4" : undefined,
  });
  if (scene.hides) {
    const [middle, y] = [x + width / 2, (top + bottom) / 2];
    const wide = Math.min(width, ruler(words.show_it, TYPE, 650) + 28);
    pen.write(middle, y - 24, words.decide, { anchor: "middle", size: TYPE, fill: MUTE });
    pen.draw(
      "rect",
      { class: "hit show", x: middle - wide / 2, y, width: wide, height: 32, rx: 5, fill: WRITTEN },
      { click: () => acts.reveal() },
    );
    const fits = fitted(words.show_it, wide - 8, (part) => ruler(part, TYPE, 650));
    pen.write(middle, y + 21, fits, {
      anchor: "middle",
      size: TYPE,
      "font-weight": 650,
      fill: "var(--on)",
      "pointer-events": "none",
    });
    return null;
  }
  // Without a list, as on a phone, one stack has all of the room.
  if (at.narrow) return slices(pen, of, column, { x, width, top, bottom }, { own: scene.own, named: true });
  const [narrow, gap, wide] = [18, 16, 32];
  const [a, b] = [x + 2, x + 2 + narrow + gap];
  const first = slices(pen, of, column, { x: a, width: narrow, top, bottom }, { own: true, named: false });
  const second = slices(pen, of, column, { x: b, width: wide, top, bottom }, { own: !sampled, named: false });
  if (first && second)
    pen.draw("path", {
      d: `M${a + narrow} ${first[0]}C${a + narrow + gap / 2} ${first[0]} ${b - gap / 2} ${second[0]} ${b} ${second[0]}V${second[1]}C${b - gap / 2} ${second[1]} ${a + narrow + gap / 2} ${first[1]} ${a + narrow} ${first[1]}Z`,
      fill: WRITTEN,
      opacity: 0.3,
    });
  const from = b + wide + 10;
  const right = x + width - 4;
  const [one, two] = [right - 46, right];
  const n = Math.min(LISTED, node.ids.length, Math.floor((bottom - top - HEAD - 18) / 19.5));
  const list = Array.from(node.ids.subarray(0, n), (id, j) => ({ id, own: own.probs[j], set: shown.probs[j] }));
  if (take !== null && !list.some(({ id }) => id === take)) {
    const j = node.ids.indexOf(take);
    list[n - 1] = {
      id: take,
      own: j < 0 ? (column.known?.prob ?? 0) : own.probs[j],
      set: j < 0 ? NaN : shown.probs[j],
    };
  }
  pen.write(one, top + 15, words.model, { anchor: "end", size: SMALL, fill: MUTE });
  const as = sampled ? fill(words.as_t, { t: fixed(scene.settings.temperature, 1) }) : "";
  pen.write(two, top + 15, as, { anchor: "end", size: SMALL, "font-weight": 650, fill: "var(--ink)" });
  const step = (bottom - top - HEAD - 18) / Math.max(1, n);
  const share = (/** @type {number} */ p) => (Number.isNaN(p) ? "?" : percent(p).replace(" %", ""));
  const others = scene.takenElsewhere(column);
  list.forEach(({ id, own: p, set }, j) => {
    const y = top + HEAD + j * step;
    const on = id === take;
    const cut = sampled && set === 0;
    const under = j === scene.candidate;
    pen.draw(
      "rect",
      {
        class: "hit word",
        x: from - 4,
        y,
        width: right - from + 8,
        height: step - 1,
        rx: 3,
        fill: on ? `color-mix(in srgb, ${WRITTEN} 14%, var(--background))` : under ? "var(--slice2)" : "transparent",
      },
      { title: fill(words.take, { word: scene.named(node, id) }), click: () => acts.take(index, id) },
    );
    const middle = y + step / 2 + 5;
    const colour = on ? WRITTEN : cut ? MUTE : "var(--ink)";
    const label = fitted(scene.named(node, id), one - 34 - from, (part) => ruler(part, TYPE, 650));
    pen.write(from, middle, label, {
      class: "candidate",
      size: TYPE,
      "font-weight": on ? 700 : 600,
      fill: colour,
      "text-decoration": cut ? "line-through" : undefined,
      "pointer-events": "none",
    });
    if (others.has(id))
      pen.draw("circle", { cx: from + ruler(label, TYPE, 650) + 11, cy: middle - 5, r: 5, fill: WRITTEN });
    pen.write(one, middle, share(p), {
      class: "own",
      anchor: "end",
      size: TYPE,
      fill: sampled ? MUTE : colour,
      "font-weight": sampled ? 400 : 650,
      "pointer-events": "none",
    });
    if (sampled)
      pen.write(two, middle, cut ? words.cut : share(set), {
        class: "set",
        anchor: "end",
        size: TYPE,
        "font-weight": 650,
        fill: colour,
        "pointer-events": "none",
      });
  });
  const rest = (/** @type {"own" | "set"} */ name) =>
    Math.max(0, 1 - list.reduce((sum, word) => sum + (word[name] || 0), 0));
  const y = bottom - 5;
  const all = fill(words.others, { n: number(scene.header.vocab - list.length) });
  pen.write(
    from,
    y,
    fitted(all, one - 22 - from, (part) => ruler(part, SMALL)),
    { size: SMALL, fill: MUTE },
  );
  pen.write(one, y, share(rest("own")), { anchor: "end", size: SMALL, fill: MUTE });
  if (sampled)
    pen.write(two, y, rest("set") < 1e-9 ? "0" : share(rest("set")), { anchor: "end", size: SMALL, fill: MUTE });
  return second ?? first;
}

// Keys and values in the cache once each word was read; without one, all that is read again
/** @param {Pen} pen @param {Of} of */
function kept(pen, { scene, at, acts, ruler }) {
  const { top, bottom } = at;
  const beams = scene.how === "beam" ? scene.nBeams : 1;
  const tallest = Math.max(15, ...[...at.places.keys()].map((i) => scene.columns[i].node.position + 1));
  const high = (bottom - top - 18) / tallest;
  pen.write(
    0,
    top + 14,
    fitted(words.line_is, at.strip, (part) => ruler(part, SMALL)),
    { size: SMALL, fill: MUTE },
  );
  pen.write(
    0,
    top + 30,
    fitted(size(scene.bytes.token), at.strip, (part) => ruler(part, SMALL)),
    { size: SMALL, fill: MUTE },
  );
  for (const [i, { x, width }] of at.places) {
    const { node } = scene.columns[i];
    const n = node.position + 1;
    const wide = Math.min(width, 60);
    const colour = scene.cached ? "var(--slice3)" : WRITTEN;
    pen.draw(
      "rect",
      { class: "hit", x, y: bottom - n * high, width: wide, height: n * high, fill: colour },
      { click: () => acts.focus(i) },
    );
    if (high >= 3) {
      const d = Array.from({ length: n - 1 }, (_, r) => `M${x} ${(bottom - (r + 1) * high).toFixed(1)}h${wide}`).join(
        "",
      );
      pen.draw("path", { d: d || "M0 0", stroke: "var(--background)", "stroke-width": 1, fill: "none" });
    }
    pen.draw("rect", { x, y: bottom - n * high, width: wide, height: Math.max(2.2, high - 1), fill: WRITTEN });
    if (width > 30 || i === scene.focus)
      pen.write(x + wide / 2, bottom - n * high - 5, short(Math.round((node.cache * beams) / 1024)), {
        anchor: "middle",
        size: SMALL,
        fill: i === scene.focus ? "var(--ink)" : MUTE,
      });
  }
}
