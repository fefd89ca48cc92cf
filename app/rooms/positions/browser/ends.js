// Where a table of positions ends: what is said of a longer text, and what each kind of positions trades.

import { add, fill, fixed, number, phrase } from "../../../kit/browser/dom.js";
import { plainTable } from "../../../kit/browser/table.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("./types.js").Stack} Stack */

/** @param {HTMLElement} host @param {Stack} stack */
export function ends(host, stack) {
  const n = stack.n_ctx;
  add(host, "p").append(
    ...phrase(stack.kind === "learned" ? words.end_learned : words.end_sinusoidal, {
      n: [number(n), ""],
      last: number(n - 1),
    }),
  );
  if (stack.too_long) {
    const box = add(host, "div", "box refusal");
    add(box, "p").append(...phrase(words.end_try, { n: [fill(words.tokens, { n: number(n + 90) }), "q"] }));
    add(box, "p", "said").textContent = stack.too_long;
  }
  if (stack.kind === "sinusoidal") add(host, "p", "mute").textContent = words.end_formula;
  if (stack.closest) {
    const [i, j, distance] = stack.closest;
    add(host, "p", "mute").textContent = fill(stack.compared < n ? words.closest_of : words.closest, {
      i,
      j,
      distance: fixed(distance, 3),
      n: number(stack.compared),
    });
  }
}

/** @param {Shown} view @param {HTMLElement} host @param {Stack} stack @param {boolean} isOpen @param {(isOpen: boolean) => void} toggled */
export function trade(view, host, stack, isOpen, toggled) {
  const box = add(host, "details", "trade");
  box.open = isOpen;
  box.addEventListener("toggle", () => toggled(box.open));
  add(box, "summary").textContent = words.trade;
  const own = {
    n: number(stack.n_ctx),
    d: number(view.header.d_model),
    product: number(stack.n_ctx * view.header.d_model),
    model: view.header.model,
  };
  const isOwn = (/** @type {string} */ kind) => kind === stack.kind;
  const rows = words.trade_rows.map(([kind, title, learnt, longer]) => [
    isOwn(kind) ? fill(words.kind_own, { kind: title, model: view.header.model }) : title,
    fill((isOwn(kind) && /** @type {Record<string, string>} */ (words.trade_own)[kind]) || learnt, own),
    fill(longer, own),
  ]);
  box.append(plainTable(words.trade, words.trade_columns, rows, (i) => (isOwn(words.trade_rows[i][0]) ? "own" : "")));
}
