// Rotary positions: each pair of a query's numbers before and after its turn.

import { fill, fixed } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { WORDS as words } from "./constants.js";
import { termsOf } from "./from.js";
import { eased } from "./motion.js";
import { asked, columnsOf, Sheet } from "./sheet.js";
import { length } from "./sums.js";
import { draw, svg as element, write } from "../../../kit/browser/picture/svg.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Picture} Picture */

/** @param {HTMLElement} host @param {Shown} on @returns {Picture} */
export function turn(host, on) {
  const { walk, header, head, paint, site } = on;
  const name = `${site?.site}`;
  const before = walk.row(`${name}.q`, head);
  const after = walk.row(`${name}.turned`, head);
  const sheet = new Sheet(host, on);
  const dh = header.d_head;
  const pairs = dh / 2;
  const shown = Math.min(pairs, 32);
  const per = sheet.width < 560 ? 4 : 8;
  const [wide, tall] = [sheet.width / per, Math.max(70, sheet.height / Math.ceil(shown / per) - 4)];
  const longs = Array.from({ length: pairs }, (_, i) => Math.hypot(after[i], after[i + pairs]));
  const longest = Math.max(...longs, 1e-9);
  const svg = element("svg", { "aria-hidden": "true", width: sheet.width, height: tall * Math.ceil(shown / per) });
  const radius = Math.min(wide, tall) / 2 - 14 * sheet.r;
  /** @type {{hand: Element, cx: number, cy: number, angle: number}[]} */
  const hands = [];
  for (let i = 0; i < shown; i++) {
    const [cx, cy] = [(i % per) * wide + wide / 2, Math.floor(i / per) * tall + tall / 2 - 6];
    const s = (0.95 * radius * Math.sqrt(longs[i] / longest)) / (longs[i] || 1); // a long pair would hide the others
    const turn = Math.atan2(after[i + pairs], after[i]) - Math.atan2(before[i + pairs], before[i]);
    const angle = ((turn % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI);
    draw(svg, "circle", { cx, cy, r: radius, fill: "none", stroke: paint.css("line"), "stroke-width": 1.5 });
    draw(svg, "path", {
      d: `M${cx} ${cy}l${before[i] * s} ${-before[i + pairs] * s}`,
      stroke: paint.css("mute"),
      "stroke-width": 2,
    });
    const hand = draw(svg, "path", {
      d: `M${cx} ${cy}l${after[i] * s} ${-after[i + pairs] * s}`,
      stroke: paint.css("query"),
      "stroke-width": 3.5,
    });
    hands.push({ hand, cx, cy, angle: (angle * 180) / Math.PI });
    write(
      svg,
      cx,
      cy + radius + 12 * sheet.r,
      fill(words.turn_pair, { i, j: i + pairs, r: fixed(angle, angle >= 0.1 ? 2 : 4) }),
      { anchor: "middle", size: 11 * sheet.r, fill: paint.css("mute") },
    );
  }
  host.append(svg);
  return {
    rows: 1,
    columns: dh,
    opens: [0, -1],
    // Every hand turns from where it was, by its own angle
    at: (moment) => {
      for (const { hand, cx, cy, angle } of hands)
        if (moment < 1) hand.setAttribute("transform", `rotate(${angle * (1 - eased(moment))} ${cx} ${cy})`);
        else hand.removeAttribute("transform");
    },
    show: () => {},
    from: ([, j]) =>
      j < 0
        ? { title: fill(words.turn_says, { a: long(length(before)), b: long(length(after)) }) }
        : asked(on, `${name}.turned`, [head, j], (answer) => ({
            title: fill(words.turn_title, { j, h: head }),
            name: `q′[${j}]`,
            digits: 3,
            ...termsOf(answer, (i) => `q[${i === 0 ? j : j < pairs ? j + pairs : j - pairs}]`),
          })),
    numbers: () => columnsOf(["before", "after"], [before, after]),
  };
}
