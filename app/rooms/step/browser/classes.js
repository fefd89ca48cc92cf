// The end of a classifier: what its head makes of the text, a bar for each class, and where a probability came from.

import { add, counted, fill, fixed, number, percent, pinned, short } from "../../../kit/browser/dom.js";
import { long } from "../../../kit/browser/model_strip.js";
import { WORDS as words } from "./constants.js";
import { Sheet } from "./sheet.js";
import { length } from "./sums.js";

const MOST = 12; // classes that have a bar

/** @param {HTMLElement} host @param {import("./shown.js").Shown} on @returns {import("./types.js").Picture} */
export function classPicture(host, on) {
  const sheet = new Sheet(host, on);
  const { r } = sheet;
  const own = on.walk.array("end");
  // The followed token, as it leaves the last layer
  sheet.strip(0, 8 * r, fill(words.ends, { q: on.q[0] }), own, {
    height: 34 * r,
    note: fill(words.length, { x: long(length(own)) }),
  });
  const { classes: found } = on;
  if (!found || found.refused)
    return {
      rows: 1,
      columns: 1,
      opens: [0, 0],
      show: () => {},
      from: () => ({ title: found?.refused ?? words.guess_waiting }),
      numbers: () => ({ columns: words.classes_columns, rows: [] }),
    };
  const { names, logits, chances, kind } = found;
  const values = chances ?? logits;
  const order = names.map((_, i) => i).sort((a, b) => values[b] - values[a]);
  const shown = order.slice(0, MOST);
  const top = 66 * r;
  sheet.label(0, top, "top here", counted(words.classes_title, names.length));
  const tall = Math.max(20, Math.min(30 * r, (sheet.height - top - 50 * r) / shown.length));
  const left = Math.min(sheet.width * 0.4, 220 * r);
  const most = Math.max(...values.map(Math.abs), 1e-9);
  const room = Math.min(sheet.width - left - 90 * r, 460 * r);
  /** @type {HTMLElement[]} */
  const rows = [];
  shown.forEach((i, at) => {
    const y = top + 22 * r + tall * (at + 0.5);
    const hit = add(host, "div", "rowhit");
    pinned(hit, { top: y - tall / 2, height: tall - 1, right: Math.max(0, sheet.width - left - room - 90 * r) });
    hit.addEventListener("pointerenter", () => on.point([at, 0]));
    hit.addEventListener("pointerleave", () => on.leave());
    hit.addEventListener("click", () => on.choose({ cell: `${at}.0` }));
    rows.push(hit);
    sheet.label(0, y, at ? "" : "vo here", short(names[i]), left - 12 * r);
    const width = Math.max(1, (room * Math.abs(values[i])) / most);
    const bar = add(host, "div", `bar chosen ${at ? "other" : "vo"}`);
    pinned(bar, { left, top: y, width });
    sheet.label(left + width + 8 * r, y, "mute", chances ? percent(values[i]) : fixed(values[i], 3));
  });
  const y = top + 22 * r + tall * shown.length;
  if (order.length > MOST)
    sheet.label(0, y + 12 * r, "note", fill(words.classes_more, { n: number(order.length - MOST) }), sheet.width);
  host.style.minHeight = `${y + 30 * r}px`;
  const largest = logits[order[0]];
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0);
  return {
    rows: shown.length,
    columns: 1,
    opens: [0, 0],
    show: ([row]) => rows.forEach((hit, i) => hit.classList.toggle("on", i === row)),
    from: ([row]) => {
      const i = shown[Math.max(0, Math.min(shown.length - 1, row))];
      const [w, logit] = [short(names[i]), fixed(logits[i], 3)];
      if (!chances)
        return { title: fill(words.classes_number, { w }), pieces: [{ label: w, value: logit, strong: true }] };
      const p = { label: w, value: fixed(chances[i], 4), strong: true };
      if (kind === "several")
        return {
          title: fill(words.classes_sigmoid, { w, logit }),
          pieces: [p, { op: "=" }, { label: "1 / (1 + e^−logit)", value: fixed(1 / (1 + Math.exp(-logits[i])), 4) }],
        };
      return {
        title: fill(words.classes_share, { w, logit, n: number(names.length) }),
        pieces: [
          p,
          { op: "=" },
          { label: `e^(${logit} − ${fixed(largest, 3)})`, value: fixed(Math.exp(logits[i] - largest), 4) },
          { op: "÷" },
          { label: "Σ", value: fixed(total, 4) },
        ],
      };
    },
    numbers: () => ({
      columns: chances ? words.classes_columns : words.classes_columns.slice(0, 2),
      rows: order.map((i) => [names[i], logits[i], ...(chances ? [chances[i]] : [])]),
    }),
  };
}
