// The heads that add most to the logit of the open column's word, and where each of them looks. A chip shows its look.

import { add, el, fill, percent, quoted, setAll } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { keyOf, signed } from "./fact.js";
import { nameOf } from "./shapes.js";

/** @typedef {import("./types.js").Scene} Scene */

const MOST = 4;
const RESTS = 0.5; // of a head's weight, on the first token: it has nothing to look at

/** @param {HTMLElement} box @param {Scene} scene @param {(by: {layer: number, head: number} | null) => void} show */
export function chips(box, scene, show) {
  const column = scene.columns[scene.focus];
  box.replaceChildren();
  if (scene.hides) return;
  const { wrote } = scene;
  if (column.take === null)
    return void (box.textContent = fill(words.wrote_nothing, { word: quoted(nameOf(scene, column.node.position)) }));
  add(box, "span", "name").append(
    `${words.wrote_by} `,
    el("em", "word", quoted(scene.named(column.node, column.take))),
    ":",
  );
  if (!wrote) return;
  for (const { adds, most } of wrote.heads.slice(0, MOST)) {
    const { layer, head, key, weight } = most;
    const on = scene.by?.layer === layer && scene.by?.head === head;
    const chip = add(box, "button", "chip");
    setAll(chip, { "aria-pressed": String(on), title: words.chip_help });
    chip.onclick = () => show(on ? null : { layer, head });
    add(chip, "b").textContent = fill(words.head, { layer, head });
    const isRest = !scene.header.source && key === scene.sink && weight >= RESTS;
    if (isRest) add(chip, "span").textContent = words.rests;
    else if (!scene.header.source && key === column.node.position)
      add(chip, "span").textContent = fill(words.on_itself, { share: percent(weight) });
    else {
      const at = add(chip, "span");
      at.append(
        `${words.at} `,
        el("em", !scene.header.source && scene.marks.has(key) ? "mute" : "key", keyOf(scene, key)),
        ` ${percent(weight)}`,
      );
    }
    add(chip, "em", adds < 0 ? "dn" : "up").textContent = signed(adds);
  }
}
