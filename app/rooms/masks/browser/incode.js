// The mask that is on the screen, as code for four libraries: what True means in each, and one click to copy it.

import { add, choice, el, fill } from "../../../kit/browser/dom.js";
import { copy } from "../../../kit/browser/save.js";
import { WORDS as words } from "./constants.js";
import { Paint } from "./paint.js";

/** @typedef {{name: string, says: string, code: string}} Snippet */

/** @param {import("./masks.js").Masks} view @param {HTMLElement} place */
export function drawCode(view, place) {
  const { layer, head } = view.place;
  const own = { site: view.site.id };
  const paint = /** @type {unknown} */ (view.lab);
  const said = view.values.whose === "yours" && paint instanceof Paint ? paint.masked() : own;
  const found = view.answer("code", { ...said, layer, head });
  const snippets = /** @type {Snippet[] | undefined} */ (found?.header?.snippets);
  const chosen = snippets?.find((one) => one.name === view.values.code) ?? snippets?.[0];
  const state = [chosen?.name, chosen?.code, found?.refused].join();
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  place.ariaLabel = words.code;
  if (!chosen || !snippets) {
    place.replaceChildren(el("p", "mute small", found?.refused ?? words.loading));
    return;
  }
  const line = el("p", "line");
  line.append(
    choice(
      words.code,
      snippets.map(({ name }) => /** @type {[string, string]} */ ([name, name])),
      chosen.name,
      (name) => view.choose({ code: name }),
    ),
    el("span", "small", chosen.says),
  );
  view.button(line, words.code_copy, async () => {
    const done = await copy(chosen.code);
    view.announce(done ? fill(words.code_copied, { name: chosen.name }) : words.code_not);
  });
  const box = el("pre", "code");
  box.tabIndex = 0;
  add(box, "code").textContent = chosen.code;
  place.replaceChildren(line, box);
}
