// Findings of a run: the sentence that says one, a chip for each, and why it is shown. Page keys walk through them.

import { cover } from "../../kit/browser/cover.js";
import { add, el, fill, fixed, number, percent, phrase, quoted, setAll, setText } from "../../kit/browser/dom.js";
import { json } from "../../kit/browser/messages.js";
import { WORDS as words } from "./constants.js";
import { indexed } from "../../kit/browser/labels.js";
import { isGuess, writes } from "./next.js";
import { layersSoFar } from "./underway.js";

/**
 * A look of one head, as the server tells of it (app/attention/picture.py).
 * @typedef {{kind: string, site: string, layer: number, head: number, query: number, key: number, weight: number, word: string, addition?: number, habit?: number, mean?: number}} Finding
 */
const FAR = 20; // tokens, from which on the sentence says how many
const KNOWS = "headlight-knows-attention"; // kept by the browser of a visitor who has pointed at a word

// All that there are; the one that a picture opens on until the others are there
/** @param {import("./types.js").Shown} view @returns {Finding[]} */
export function findingsOf(view) {
  const { look } = view.picture;
  return answerOf(view)?.found ?? (look ? [look] : []);
}

/** @param {import("./types.js").Shown} view */
const answerOf = ({ picture, remote }) => (picture.look && !remote.offline ? remote.get("findings", {}, json) : null);

// The one that is on the screen: of this head, from this token
/** @param {import("./types.js").View} view @returns {Finding | null} */
export function findingOf(view) {
  const { place, options, chosen } = view;
  const isPlain =
    options.kind === "head" &&
    (!options.members.length || options.show === "beside") &&
    !options.hide.length &&
    !options.words;
  if (!isPlain || chosen.hover?.query != null || chosen.hover?.key != null) return null;
  return findingsOf(view).find((one) => isAt(one, place)) ?? null;
}

/** @param {Finding} one @param {import("./types.js").Place} place */
const isAt = (one, { site, layer, head, query }) =>
  one.site === site && one.layer === layer && one.head === head && one.query === query;

// The row of the table of words
/** @param {import("./types.js").View} view @param {Finding} one @returns {string[]} */
function formOf(view, one) {
  const { picture, site } = view;
  const table = /** @type {Record<string, string[]>} */ (words.findings);
  const isAhead = one.key > one.query && one.site !== "cross";
  const isSpecial = one.kind === "rests" && view.picture.kind !== "decoder";
  const variant =
    one.site === "cross" && (one.kind === "writes" || one.kind === "stands out")
      ? `${one.kind}_across`
      : one.kind === "writes" && one.query < (picture.tokens[site.query]?.length ?? 0) - 1
        ? "writes_within"
        : one.kind === "writes" && one.query - one.key > FAR
          ? "writes_far"
          : isSpecial
            ? "rests_special"
            : isAhead
              ? `${one.kind}_ahead`
              : one.kind;
  return table[variant] ?? table[one.kind];
}

// All that its words speak of; a pair is set off
/** @param {import("./types.js").View} view @param {Finding} one */
function partsOf(view, one) {
  const { site, picture } = view;
  const [queries, keys] = [picture.tokens[site.query] ?? [], picture.tokens[site.key] ?? []];
  const bold = (/** @type {string} */ form, /** @type {number} */ n) => [fill(form, { head: n, layer: n }), "b"];
  const of = view.sites.find(({ id }) => id === one.site) ?? site;
  return {
    word: [quoted(one.word), "w"],
    head: bold(words.finding_head, one.head),
    Head: bold(words.finding_Head, one.head),
    layer: bold(words.finding_layer, one.layer),
    query: [quoted(indexed(queries, one.query)), "q"],
    key: [quoted(indexed(keys, one.key)), "k"],
    share: [percent(one.weight), "b"],
    addition: [
      `${(one.addition ?? 0) < 0 ? "" : "+"}${fixed(one.addition ?? 0)}`,
      (one.addition ?? 0) < 0 ? "less" : "more",
    ],
    loss: [fixed(Math.abs(one.addition ?? 0)), "less"],
    habit: [percent(one.habit ?? 0), "b"],
    mean: [percent(one.mean ?? 0), "b"],
    n: number(Math.abs(one.query - one.key)),
    heads: number(of.layers * of.heads),
    earlier: number(Math.max(1, one.query - 1)),
  };
}

/** @param {import("./types.js").View} view @param {Finding} one */
export const sentenceOf = (view, one) => phrase(formOf(view, one)[1], partsOf(view, one));

export class Findings {
  drawn = "";
  knows = knows();

  /** @param {import("./types.js").View} view @param {HTMLElement} parent */
  constructor(view, parent) {
    this.view = view;
    this.box = add(parent, "div", "findings");
    this.chips = add(this.box, "div", "chips");
    setAll(this.chips, { role: "group", "aria-label": words.findings_label });
    this.at = add(this.box, "span", "at mute");
    this.why = add(parent, "p", "why mute");
  }

  // Whether there is anything of them on the screen now: a lesson, or a visitor who guesses first, is not to be told
  get isShown() {
    return !cover.now && !isGuess(this.view) && findingsOf(this.view).length > 0;
  }

  draw() {
    const { view } = this;
    const found = this.isShown ? findingsOf(view) : [];
    const now = found.findIndex((one) => isAt(one, view.place)); // the finding of the head under the pointer
    const so = layersSoFar(view.sites);
    this.box.hidden = !found.length;
    this.why.hidden = this.box.hidden && !so;
    if (so || this.box.hidden) return setText(this.why, so ? soFar(view, so) : "");
    const said = found.map((one) => fill(formOf(view, one)[0], plain(partsOf(view, one))));
    if (this.drawn !== `${view.picture.key} ${said}`) {
      this.drawn = `${view.picture.key} ${said}`;
      this.chips.replaceChildren(
        ...found.map((one, i) => {
          const chip = el("button", "chip", said[i]);
          chip.title = fill(formOf(view, one)[2], plain(partsOf(view, one)));
          chip.addEventListener("click", (event) => this.show(one, event));
          return chip;
        }),
      );
    }
    [...this.chips.children].forEach((chip, i) => {
      setAll(chip, { "aria-pressed": String(i === now) });
    });
    const at = { i: now + 1, n: found.length };
    const place = view.options.projector ? `${fill(words.place, view.chosen.place)} · ` : "";
    const which = fill(now < 0 ? words.findings_count : words.findings_at, at);
    setText(this.at, place ? place + which.split(" · ")[0] : which);
    const { layers, heads } = view.site;
    const opening = fill(writes(view) ? words.newcomer_writes : words.newcomer, { n: number(layers * heads) });
    const why = now < 0 ? "" : fill(formOf(view, found[now])[2], plain(partsOf(view, found[now])));
    setText(this.why, this.knows ? (why ? fill(words.finding_why, { why }) : "\u00a0") : opening);
  }

  // A visitor has pointed at a word or a head: they need not be told what that does.
  learn() {
    if (this.knows) return;
    this.knows = true;
    try {
      localStorage.setItem(KNOWS, "true");
    } catch {
      // a browser that keeps nothing says it again
    }
    this.view.invalidate("findings");
  }

  /** @param {Finding} one @param {Event} [event] */
  show(one, event) {
    const { site, layer, head, query } = one;
    this.view.chosen.pointed = null;
    this.view.chosen.go({ site, layer, head, query }, event);
  }

  // Whether all but the first are still on their way
  get isComing() {
    return this.isShown && !this.view.remote.offline && !answerOf(this.view);
  }

  // To the next of them, and from the last to the first; from a head that is none of them to the first
  /** @param {number} by @returns {boolean} whether there is any */
  turn(by) {
    if (!this.isShown) return false;
    const found = findingsOf(this.view);
    const now = found.findIndex((one) => isAt(one, this.view.chosen.place));
    const next = now < 0 ? (by > 0 ? 0 : found.length - 1) : (now + by + found.length) % found.length;
    this.show(found[next]);
    return true;
  }
}

// Of a run before its end: how far it is, the head on the screen, and the part that comes last
/** @param {import("./types.js").View} view @param {{here: number, of: number}} so */
function soFar(view, { here, of }) {
  const parts = { here: number(here), of: number(of), ...view.chosen.place };
  return fill(writes(view) ? words.so_far_writes : words.so_far, parts);
}

// The same without what sets them off, for a title
/** @param {Record<string, unknown>} parts */
const plain = (parts) => Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, [part].flat()[0]]));

function knows() {
  try {
    return localStorage.getItem(KNOWS) === "true";
  } catch {
    return false;
  }
}
