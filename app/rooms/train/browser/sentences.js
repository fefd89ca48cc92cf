// Sentences of Train about a run at one of its moments, and of a race by its seeds.

import { fill, fixed, percent, phrase } from "../../../kit/browser/dom.js";
import { form, listed, number } from "../../../kit/browser/language.js";
import { WORDS as words } from "./constants.js";
import { indexAt, lossText, mean, smooth, upTo } from "./numbers.js";

/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").Moment} Moment */
/** @typedef {import("./types.js").Seed} Seed */

const WHOLE = 0.9;

// The loss of a run at a step: of its unseen problems before the first step, and then the mean of five
/** @param {Run} run @param {number} step */
export function lossAt(run, step) {
  const i = indexAt(run.points, step);
  return i < 0 ? (run.frames[0]?.loss ?? null) : smooth(run.points)[i];
}

// How many unseen problems a run writes whole at a step, by the last frame that was let write
/** @param {Run} run @param {number} step */
export const wholeAt = (run, step) =>
  run.frames.findLast((frame) => frame.step <= step && frame.whole >= 0)?.whole ?? 0;

/** @param {Run} run @param {number} step */
const rightAt = (run, step) => mean(upTo(run.frames, step)?.given ?? []);

/**
 * @param {Moment} moment @param {Run} run @param {{symbols: number, best: [layer: number, head: number, value: number]}} more
 * symbols: of the task; best: the head that finds most at the end
 */
export function momentSaid({ kind, step, since, before, after, layer, head }, run, { symbols, best }) {
  const [loss, right] = [lossText(lossAt(run, step)), percent(rightAt(run, step))];
  const of = { s: String(step), k: String(since), l: String(layer), h: [String(head), "A"], p: [right, "word"] };
  const rise = { a: percent(before), b: [percent(after), "A"] };
  if (kind === "start") {
    const answer = [run.seen?.answer ?? "", "word"];
    const text = run.seen ? run.seen.tokens.slice(1, run.seen.first + 1).join("") : "";
    const parts = { a: [loss, "A"], n: String(symbols), g: fixed(Math.log(symbols)), answer, text };
    return phrase(words.at_start, /** @type {any} */ (parts));
  }
  if (kind === "plateau")
    return phrase(words.at_plateau, /** @type {any} */ ({ ...of, a: lossText(before), b: [lossText(after), "A"] }));
  if (kind === "finds") return phrase(words.at_finds, /** @type {any} */ ({ ...of, ...rise, n: String(step - since) }));
  if (kind === "right") return phrase(words.at_right, /** @type {any} */ ({ ...of, a: percent(before) }));
  if (kind === "back") return phrase(words.at_back, /** @type {any} */ ({ ...of, ...rise }));
  const [l, h, w] = best;
  return phrase(words.at_done, {
    n: [String(wholeAt(run, step)), "word"],
    a: loss,
    l: String(l),
    h: [String(h), "A"],
    w: [percent(w), "A"],
  });
}

// The first step from which on a seed's share of right symbols stays so high; null where it never does
/** @param {Seed["frames"]} frames @param {number} least */
export function reached(frames, least = WHOLE) {
  let found = null;
  for (const [step, share] of [...frames].reverse()) {
    if (share < least) break;
    found = step;
  }
  return found;
}

/** @param {Seed[]} seeds @param {number} steps When its seeds come to 90 %, in words */
function when(seeds, steps) {
  const found = seeds.map(({ frames }) => reached(frames)).filter((step) => step !== null);
  if (!found.length) return fill(words.seeds_never, { n: steps });
  const said = together(found.map((step) => number(step)));
  return found.length === seeds.length
    ? fill(words.seeds_steps, { steps: said })
    : fill(words.seeds_some, { k: found.length, n: seeds.length, steps: said });
}

// Numbers of each seed, in words: of seeds that all have the same, that number once
/** @param {number[]} numbers */
function ofSeeds(numbers) {
  const [first, ...rest] = numbers.map((n) => number(n));
  if (rest.every((one) => one === first)) return rest.length ? fill(words.seeds_each, { n: first }) : first;
  return together([first, ...rest]);
}

/** @param {string[]} all */
const together = (all) =>
  all.length > 1 ? fill(words.seeds_list, { most: listed(all.slice(0, -1)), last: all[all.length - 1] }) : all[0];

/** @param {Seed[]} seeds */
const wholes = (seeds) => ofSeeds(seeds.map(({ frames }) => frames.at(-1)?.[2] ?? 0));

/**
 * A race that is kept with three seeds.
 * @param {Run} run @param {Run} twin @param {{at: number, steps: number, name: string}} of name: of the twin
 */
export function seedsSaid(run, twin, { at, steps, name }) {
  const called = /** @type {[string, string]} */ ([name, "B"]);
  if (at < 20) return phrase(words.seeds_begin, { twin: called });
  const lead = twin.leads.find(({ first, last }) => first <= at && at <= last);
  if (at < steps) {
    const shares = { p: [percent(rightAt(run, at)), "A"], q: [percent(rightAt(twin, at)), "B"] };
    const told = phrase(words.seeds_race, /** @type {any} */ ({ s: String(at), ...shares, twin: called }));
    const leader = lead?.side ? called : /** @type {[string, string]} */ ([words.as_it_is, "A"]);
    const tail = lead
      ? phrase(` ${words.seeds_lead}`, { leader, k: String(lead.first) })
      : phrase(` ${words.seeds_level}`, {});
    return [...told, ...tail];
  }
  const counts = { n: [wholes(run.seeds), "A"], m: [wholes(twin.seeds), "B"] };
  if (twin.spec.twin === "nomask")
    return phrase(words.seeds_nomask, /** @type {any} */ ({ ...counts, b: lossText(lossAt(twin, at)) }));
  const [longest] = [...twin.leads].sort((a, b) => b.last - b.first - (a.last - a.first));
  const times = { x: when(run.seeds, steps), y: when(twin.seeds, steps), twin: called };
  return [
    ...phrase(words.seeds_when, times),
    ...phrase(` ${words.seeds_whole}`, /** @type {any} */ ({ ...counts, twin: called })),
    ...(longest
      ? phrase(` ${words.seeds_span}`, {
          leader: longest.side ? called : /** @type {[string, string]} */ ([words.as_it_is, "A"]),
          k: String(longest.first),
          s: String(longest.last),
        })
      : phrase(` ${words.seeds_level_end}`, {})),
  ];
}

// A guess of when 90 % are right, beside what happened
/** @param {Run} run @param {number} guess @param {number} steps */
export function guessSaid(run, guess, steps) {
  const frames = run.frames.map(
    (frame) => /** @type {[number, number, number]} */ ([frame.step, mean(frame.given), 0]),
  );
  const [half, most] = [reached(frames, 0.5), reached(frames)];
  const s = /** @type {[string, string]} */ ([String(guess), "A"]);
  if (most === null || half === null) return phrase(words.predict_never, { s, n: String(steps) });
  const off = Math.abs(most - guess);
  const forms = guess < most ? words.predict_later : words.predict_earlier;
  return phrase(words.predict_told, {
    s,
    t: [String(most), "word"],
    n: off < 8 ? words.predict_just : fill(form(forms, off), { n: off }),
    m: String(most - half),
  });
}
