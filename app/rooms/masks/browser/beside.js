// Beside the maps: one button with the next step, the next word before and after, the loss at each word or head by head; of an
// encoder how far its vector turns, on a ruler of words left out.

import { add, button, choice, el, fill } from "../../../kit/browser/dom.js";
import { unpack } from "../../../kit/browser/messages.js";
import { across, below, curve } from "../../../kit/browser/picture/axes.js";
import { draw, svg } from "../../../kit/browser/picture/svg.js";
import { BELOW, lossBars } from "./bars.js";
import { WORDS as words } from "./constants.js";
import { losses, share, shares, way } from "./numbers.js";
import { angle, rulerOf } from "../../../kit/browser/turns.js";
import { pair } from "./pairs.js";
import { standing, stopsOf } from "./stops.js";

const WORDS_SHOWN = 5;
const FEW = 3; // on a phone, and projected
const [LOWEST, HIGHEST] = [34, 150]; // units of a chart
const WIDEST = 90; // degrees of the ruler

const OF_ROW = { query: "", key: "", row: "", table: "", code: "" };

/** @param {import("./paint.js").Paint} paint @param {HTMLElement} place */
export function drawBeside(paint, place) {
  const { view, now } = paint;
  const { outcome: own, classes } = view.header;
  const { found, changed } = now;
  const outcome = changed ? (found?.header?.outcome ?? null) : own;
  const ladder = showsLadder(paint) ? climbed(paint) : null;
  const marks = own.words.length || own.numbers.length ? null : rulerOf(view);
  const stops = stopsOf(view);
  const at = standing(view, stops);
  const state = JSON.stringify([
    view.layout,
    { ...view.values, ...OF_ROW }, // another row alone changes none of it
    ladder && paint.onlyCell,
    found?.header?.key ?? null,
    Boolean(found),
    view.remote.failed,
    ladder?.chances.length,
    marks?.marks.length,
    stops.length,
    paint.tall,
    paint.told,
  ]);
  if (state === paint.aside) return;
  paint.aside = state;
  /** @type {HTMLElement[]} */
  const parts = [];
  const later = view.narrow ? [] : parts;
  const after = stops[at + 1];
  if (view.isProjected) paint.count.textContent = at < 0 ? "" : fill(words.of_stops, { i: at + 1, n: stops.length });
  else {
    const go = el("p", "onward");
    if (after)
      go.append(
        button(`${words.next_of[/** @type {keyof typeof words.next_of} */ (after.name)]} ›`, "primary", () =>
          view.turn(1),
        ),
      );
    const n = stops.filter((stop) => stop.lab === "paint").length;
    if (at >= 0) go.append(el("small", "mute", fill(words.of_stops, { i: at + 1, n })));
    parts.push(go);
  }
  if (own.words.length) {
    parts.push(
      classes
        ? heading(classes === "several" ? words.class_several : words.class_one, "")
        : heading(words.next_word, fill(words.next_how, { word: lastOf(view) })),
    );
    parts.push(wordsOf(own, changed ? outcome : null, changed, view.narrow || view.isProjected ? FEW : WORDS_SHOWN));
  } else if (own.numbers.length) {
    parts.push(heading(words.class_numbers, ""), ...numbersOf(own, outcome));
  } else
    parts.push(
      heading(words.turns_by, words.turns_how),
      ruler(marks, changed ? found?.header?.degrees : 0, view.isProjected ? FEW : 9),
    );
  if (changed && !found) parts.push(el("p", "mute small", view.remote.failed ? words.unreachable : words.running));
  const chart = el("div", "chart");
  /** @type {((width: number, height: number) => SVGElement) | null} */
  let drawn = null;
  if (!view.isProjected && ladder && own.words.length) {
    later.push(heading(fill(words.by_head, { word: own.words[0][1].trim() }), words.by_head_how), chart);
    drawn = (width, height) => ladderOf(paint, ladder, own.words[0], width, height);
  } else if (own.losses.length && !view.isProjected) {
    const same = !outcome || !changed || own.losses.every((x, i) => Math.abs(x - outcome.losses[i]) < 0.005);
    const mean = same || !outcome || outcome.loss === null || own.loss === null ? "" : losses(own.loss, outcome.loss);
    later.push(heading(words.loss_at, mean || (changed && outcome ? words.unchanged : "")), chart);
    const labels = view.labels(view.header.labels.target ? "target" : "source").slice(-own.losses.length);
    const isOwn = paint.site.query === (view.header.labels.target ? "target" : "source");
    const jump = view.header.isByRow && isOwn ? (/** @type {number} */ i) => view.chooseRow(i) : undefined;
    const shown = same ? null : (outcome?.losses ?? null);
    drawn = (width, height) => {
      const state = [view.layout, width, height].join(" "); // another row alone changes none of it
      if (paint.bars?.state !== state || paint.bars.losses !== shown)
        paint.bars = {
          state,
          losses: shown,
          node: lossBars(view.palette, labels, own.losses, shown, { width, height, jump }),
        };
      return paint.bars.node;
    };
  }
  if (!view.isProjected) later.push(options(paint));
  for (const host of new Set([place, paint.later]))
    for (const child of [...host.children]) if (child !== view.says && child !== view.reason) child.remove();
  place.append(...parts);
  if (view.narrow) paint.later.append(...later, paint.rest);
  if (drawn) {
    const { type } = view;
    const left = view.beside ? (paint.window - place.offsetHeight) / type - BELOW : HIGHEST;
    chart.append(drawn(chart.clientWidth / type, Math.max(LOWEST, Math.min(HIGHEST, left))));
  }
  const [first] = outcome?.words ?? [];
  Object.assign(place.dataset, {
    next: first ? first[1].trim() : "",
    chance: String(changed ? (outcome?.asked[0] ?? "") : (own.words[0]?.[2] ?? "")),
    loss: String(outcome?.loss ?? ""),
    degrees: String(found?.header?.degrees ?? ""),
    ladder: ladder ? ladder.chances.map((/** @type {number} */ x) => x.toFixed(4)).join(" ") : "",
    steps: ladder ? ladder.steps.join(" ") : "",
  });
}

/** @param {string} name @param {string} how */
function heading(name, how) {
  const made = el("h3", "", name);
  if (how) made.append(" ", el("small", "", how));
  return made;
}

/** @param {import("./masks.js").Masks} view */
function lastOf(view) {
  const labels = view.labels(view.header.labels.target ? "target" : "source");
  return labels[labels.length - 1];
}

/** @param {import("./types.js").Outcome} own @param {import("./types.js").Outcome | null} outcome @param {boolean} changed @param {number} most */
function wordsOf(own, outcome, changed, most) {
  const before = new Map(own.words.map(([id, , p]) => [id, p]));
  /** @type {[string, number, number | null][]} */
  const lines = [[own.words[0][1], own.words[0][2], outcome ? outcome.asked[0] : changed ? null : own.words[0][2]]];
  for (const [id, label, p] of (outcome ?? own).words) {
    if (lines.length === most) break;
    if (id === own.words[0][0]) continue;
    const i = outcome?.newcomers?.findIndex(([other]) => other === id) ?? -1;
    lines.push([label, before.get(id) ?? outcome?.newcomers?.[i]?.[1] ?? NaN, outcome ? p : changed ? null : p]);
  }
  const box = el("div", "guesses");
  for (const [label, a, b] of lines) {
    const line = add(box, "div");
    const said = Number.isNaN(a) ? share(b ?? 0) : b === a ? share(a) : shares(a, b);
    const at = said.lastIndexOf("→");
    const number = el("s");
    number.append(said.slice(0, at + 1), el("b", "", said.slice(at + 1)));
    line.append(el("span", "", label.trim() || "␣"), pair(Number.isNaN(a) ? 0 : a, b ?? a), number);
  }
  return box;
}

/** @param {import("./types.js").Outcome} own @param {import("./types.js").Outcome | null} outcome */
function numbersOf(own, outcome) {
  return own.numbers.map(([name, a], i) => {
    const line = el("p", "", `${name} `);
    const b = outcome?.numbers[i]?.[1];
    line.append(el("b", "", b === undefined ? "…" : losses(a, b)));
    return line;
  });
}

/** @param {{marks: [string, number][], other: number} | null} found @param {number | undefined} degrees @param {number} marks how many are shown, at most */
function ruler(found, degrees, marks) {
  const box = el("div", "guesses ruler");
  if (!found) return box;
  const most = [...found.marks].sort((a, b) => a[1] - b[1]);
  const some =
    most.length > marks
      ? most.filter((_, i) => i % Math.ceil(most.length / marks) === 0 || i === most.length - 1)
      : most;
  /** @type {[string, number, string][]} */
  const lines = some.map(([word, d]) => [fill(words.without, { word }), d, "same"]);
  lines.push([words.another, found.other, "same"]);
  if (degrees !== undefined) lines.push([words.this_mask, degrees, "more"]);
  for (const [label, d, tone] of lines.sort((a, b) => a[1] - b[1])) {
    const line = add(box, "div", tone === "more" ? "ours" : "");
    const bar = el("i", "twin");
    add(bar, "u", tone).style.width = `${(100 * d) / WIDEST}%`;
    const name = el("span", "", label);
    name.title = label;
    line.append(name, bar, el("s", "", angle(d)));
  }
  return box;
}

/** Whether one look is forbidden in every head, and nothing else. @param {import("./paint.js").Paint} paint */
function showsLadder(paint) {
  const { values } = paint.view;
  return (
    paint.onlyCell !== null &&
    !paint.view.header.isByRow && // each step is a run
    values.mask === "model" &&
    values.when === "before" &&
    values.scope === "all" &&
    paint.now.changed &&
    paint.site.id !== "encoder" &&
    paint.view.header.writes &&
    paint.site.layers * paint.site.heads > 1
  );
}

/** As many steps as are there: each answer asks for the next. @param {import("./paint.js").Paint} paint */
function climbed(paint) {
  const [query, key] = /** @type {[number, number]} */ (paint.onlyCell);
  /** @type {{steps: number[], chances: number[]}} */
  const all = { steps: [], chances: [] };
  if (!paint.now.found) return all; // the run on the screen comes first
  for (let from = 0; ; from = all.chances.length) {
    const found = paint.view.ask(
      "masks/ladder",
      { site: paint.site.id, query, key, from },
      (/** @type {Uint8Array} */ bytes) => unpack(bytes)[0],
    );
    if (!found?.chances) return all;
    all.steps = found.steps;
    all.chances.push(...found.chances);
    if (all.chances.length >= found.steps.length) return all;
  }
}

/** @param {import("./paint.js").Paint} paint @param {{steps: number[], chances: number[]}} found @param {[number, string, number]} word @param {number} width @param {number} height */
function ladderOf(paint, { steps, chances }, [, label], width, height) {
  const { palette } = paint.view;
  const made = svg("svg", { viewBox: `0 0 ${width} ${height + BELOW}`, role: "img" });
  const last = chances[chances.length - 1];
  made.setAttribute("aria-label", fill(words.by_head, { word: label.trim() }));
  if (last === undefined) return made;
  made.setAttribute(
    "aria-label",
    fill(words.by_head_alt, { word: label.trim(), a: share(chances[0]), b: share(last) }),
  );
  const x = (/** @type {number} */ i) => 40 + ((width - 56) * i) / Math.max(1, steps.length - 1);
  const y = (/** @type {number} */ p) => 14 + height * (1 - p);
  across(made, [0, 0.5, 1], { y, from: 32, to: width, size: 13, say: (p) => String(100 * p) });
  curve(
    made,
    chances.map((p, i) => [x(i), y(p)]),
    palette.mute,
    1.6,
  );
  const tones = { more: palette.ramp[3], less: palette.ahead[3], same: palette.mute };
  chances.forEach((p, i) => {
    draw(made, "circle", { cx: x(i), cy: y(p), r: 3.4, fill: tones[way(chances[0], p)] }).append(
      svg("title", {}, `${steps[i]}: ${share(p)}`),
    );
  });
  const shown = steps.flatMap((n, i) => ([0, 3, 8, 20, 50].includes(n) || i === steps.length - 1 ? [i] : []));
  below(made, shown, { x, y: height + 32, size: 13, say: (i) => String(steps[i]) });
  if (chances.length === steps.length)
    draw(
      made,
      "text",
      {
        x: x(steps.length - 1) + 4,
        y: y(last) - 9,
        "text-anchor": "end",
        "font-size": 13,
        "font-weight": 650,
        fill: palette.ink,
      },
      share(last),
    );
  return made;
}

/** Order and fill, below everything. @param {import("./paint.js").Paint} paint */
function options({ view }) {
  const { values } = view;
  const box = el("div", "options");
  const when = choice(words.when, Object.entries(words.whens), values.when, (id) =>
    view.choose({ when: id, whose: "yours" }),
  );
  if (values.scope === "one") when.title = words.when_one;
  box.append(when);
  if (values.when === "before") {
    const made = choice(words.fill, Object.entries(words.fills), values.fill, (id) =>
      view.choose({ fill: id, whose: "yours" }),
    );
    made.title = words.fill_help;
    box.append(made);
  }
  return box;
}
