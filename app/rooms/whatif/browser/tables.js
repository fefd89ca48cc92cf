// What is on the pictures, as tables.

import { WORDS as words } from "./constants.js";
import { fill } from "../../../kit/browser/dom.js";
import { tableBox } from "../../../kit/browser/table.js";
import { headName, labelsOf, rowName } from "./lead.js";
import { answered, finer, placed, ranked, tenth } from "./numbers.js";
import { angle, degreesOf } from "../../../kit/browser/turns.js";

/** @param {HTMLElement} box @param {import("./types.js").Shown} shown @param {[query: number, key: number, change: number][]} moved */
export function drawTables(box, { data, values, swept, side }, moved) {
  box.replaceChildren();
  /** @param {string} title @param {string[]} head @param {string[][]} lines */
  const table = (title, head, lines) => box.append(tableBox(title, head, lines));
  const looks = values.sweep === "looks";
  table(
    words.table_sweep,
    [looks ? words.column_look : words.column_head, words.column_change],
    ranked(swept.changes).map((i) => [
      rowName(data, values, swept.rows[i]),
      swept.turns ? angle(swept.changes[i] ?? 0) : finer(swept.changes[i] ?? 0),
    ]),
  );
  if (side?.words?.length)
    table(
      words.table_words,
      [words.column_word, words.column_before, words.column_after],
      side.words.map(([, label, a, b]) => [label, answered(data, a, tenth), answered(data, b, tenth)]),
    );
  if (side?.turned)
    table(
      words.turned,
      [words.column_token, words.column_change],
      (data.target ?? data.source).map((_, i, all) => [placed(all, i), angle(degreesOf(side.turned?.[i] ?? 0))]),
    );
  if (side?.ranked?.length)
    table(
      words.table_ranked,
      [words.column_head, words.column_moved],
      side.ranked.map(([site, layer, head, share]) => [headName(data, site, layer, head), tenth(share)]),
    );
  if (moved.length && side?.maps.length) {
    const map = side.maps.find((m) => `${m.site}.${m.layer}.${m.head}` === values.moved) ?? side.maps[0];
    const [queries, keys] = labelsOf(data, map.site);
    table(
      fill(words.table_moved, { head: headName(data, map.site, map.layer, map.head) }),
      [words.column_look, words.column_change],
      moved.map(([q, k, by]) => [`${placed(queries, q)} → ${placed(keys, k)}`, finer(by)]),
    );
  }
}
