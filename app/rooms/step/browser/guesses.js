// The end of a decoder: the guess after every addition, which is a reading, and the next word's probabilities.

import { add, fill, fixed, focusable, number, percent, pinned, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { wordOf } from "./sentences.js";
import { label, Sheet } from "./sheet.js";

const LEAST = 19; // height of a readable row, in units of the picture

/** @param {HTMLElement} host @param {import("./shown.js").Shown} on @returns {import("./types.js").Picture} */
export function guessPicture(host, on) {
  const found = on.guesses;
  const empty = {
    rows: 1,
    columns: 1,
    opens: /** @type {[number, number]} */ ([0, 0]),
    show: () => {},
    numbers: () => ({ columns: ["word"], rows: [] }),
  };
  if (!found || found.refused) return { ...empty, from: () => ({ title: found?.refused ?? words.guess_waiting }) };
  const sheet = new Sheet(host, on);
  const { r } = sheet;
  const { header, walk } = on;
  const { guesses, words: likely } = found;
  const final = wordOf(likely[0][0]);
  const narrow = sheet.width < 560;
  const middle = narrow ? sheet.width : sheet.width * 0.66;
  const top = 22 * r;
  const room = sheet.height - top - 2 * r;
  const tall = Math.min(30 * r, Math.max(narrow ? 24 : LEAST * r, room / guesses.length));
  const [left, guess] = narrow ? [150 * r, 152 * r] : [152 * r, 300 * r];
  sheet.label(0, 0, "top here", words.added);
  if (!narrow) sheet.label(left, 0, "top", words.its_length);
  sheet.label(guess, 0, "top here", words.guess_here);
  const lengths = walk.array("added");
  const n = walk.shape("added")[1];
  const own = Math.floor(header.query / header.added_every);
  const most = Math.max(
    ...header.added.map((/** @type {unknown} */ _, /** @type {number} */ i) => lengths[i * n + own]),
    1e-9,
  );
  // The list scrolls if its rows do not fit. On a phone the page grows instead.
  const list = focusable(add(host, "div", "guesses"), "group", words.guess_here);
  pinned(list, { left: 0, top, width: middle, height: narrow ? tall * guesses.length : room });
  /** @type {HTMLElement[]} */
  const rows = [];
  const bar = (
    /** @type {number} */ x,
    /** @type {number} */ y,
    /** @type {number} */ width,
    /** @type {string} */ className,
  ) => {
    const node = add(list, "div", `bar chosen ${className}`);
    pinned(node, { left: x, top: y, width: Math.max(1, width) });
  };
  guesses.forEach((one, i) => {
    const y = tall * (i + 0.5);
    const hit = add(list, "div", "rowhit");
    pinned(hit, { top: y - tall / 2, height: tall - 1, right: 0 });
    hit.addEventListener("pointerenter", () => on.point([i, 0]));
    hit.addEventListener("pointerleave", () => on.leave());
    hit.addEventListener("click", () => on.choose({ cell: `${i}.0` }));
    rows.push(hit);
    const what = worded(words.sublayers, one.sublayer);
    label(list, 0, y, "", one.layer === null ? what : fill(words.heat_row, { l: one.layer, what }));
    const at = header.added.findIndex(
      (/** @type {[number, string]} */ [l, sub]) => l === one.layer && sub === one.sublayer,
    );
    if (at >= 0 && !narrow) {
      const a = lengths[at * n + own];
      bar(left, y, (86 * r * a) / most, "stream");
      label(list, left + 92 * r, y, "mute", fixed(a, 1));
    }
    const is = one.rank === 1;
    label(list, guess, y, is ? "vo here" : "", wordOf(one.word), 74 * r);
    const widest = narrow ? sheet.width - guess - 140 * r : 108 * r;
    bar(guess + 78 * r, y, widest * one.p, is ? "vo" : "other");
    label(list, guess + 84 * r + Math.max(1, widest * one.p), y, "mute", percent(one.p));
  });
  list.scrollTop = list.scrollHeight; // the last layers
  const x = narrow ? 0 : middle + 20 * r;
  const y0 = narrow ? top + tall * guesses.length + 24 * r : 0;
  sheet.label(x, y0, "top here", words.next_probabilities);
  const each = narrow ? 26 : Math.min(30 * r, (sheet.height - 90 * r) / likely.length);
  likely.forEach(([word, p], i) => {
    const y = y0 + top + 8 * r + each * (i + 0.5);
    sheet.label(x, y, "vo", wordOf(word), 76 * r);
    bar(x + 80 * r, y, ((sheet.width - x - 146 * r) * p) / likely[0][1], "vo");
    sheet.label(sheet.width - 64 * r, y, "mute r", percent(p), 60 * r);
  });
  const rest = 1 - likely.reduce((sum, [, p]) => sum + p, 0);
  sheet.label(
    x,
    y0 + top + 22 * r + each * likely.length,
    "note wrap",
    fill(words.word_rest, { n: number(header.vocab - likely.length), p: percent(Math.max(0, rest)) }),
    sheet.width - x,
  );
  if (narrow) host.style.minHeight = `${y0 + top + each * likely.length + 60 * r}px`;
  const jump = guesses.reduce(
    (best, one, i) =>
      i && one.final - guesses[i - 1].final > (best ? guesses[best].final - guesses[best - 1].final : 0) ? i : best,
    0,
  );
  return {
    rows: guesses.length,
    columns: 1,
    opens: [jump, 0],
    show: ([row]) => {
      rows.forEach((hit, i) => hit.classList.toggle("on", i === row));
      const [from, to] = [list.scrollTop, list.scrollTop + list.clientHeight];
      if (row * tall < from) list.scrollTop = row * tall;
      else if ((row + 1) * tall > to) list.scrollTop = (row + 1) * tall - list.clientHeight;
    },
    from: ([row]) => {
      const one = guesses[Math.max(0, Math.min(guesses.length - 1, row))];
      const parts = {
        w: wordOf(one.word),
        p: percent(one.p),
        final,
        f: percent(one.final),
        r: one.rank,
        vocab: number(header.vocab),
        l: one.layer,
        what: worded(words.sublayers, one.sublayer),
      };
      return {
        title: fill(one.layer === null ? words.guess_start : words.guess_after, parts),
        note: words.guess_reading,
      };
    },
    numbers: () => ({
      columns: ["layer", "added by", "best guess", "probability", `probability of ${final}`, "rank"],
      rows: guesses.map((one) => [one.layer ?? "", one.sublayer, wordOf(one.word), one.p, one.final, one.rank]),
    }),
  };
}
