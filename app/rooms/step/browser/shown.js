// What a picture is of: a step of a walk, the head and the key that are looked at, and what the visitor changed.

import { clamp, quoted } from "../../../kit/browser/dom.js";
import { whole } from "../../../kit/browser/selection.js";
import { ENDINGS, readEnding } from "./ending.js";
import { ledgerRows } from "./ledger.js";
import { added } from "../../../kit/browser/head_measures.js";
import { indexed } from "../../../kit/browser/labels.js";
import { json } from "../../../kit/browser/messages.js";

/** @typedef {import("./step.js").StepThrough} View */
/** @typedef {import("./types.js").Step} Step */
/** @typedef {import("./types.js").Run} Run */
/** @typedef {import("./types.js").Cell} Cell */
/** @typedef {import("./walk.js").Walk} Walk */
/** What each head of an attention adds to the logit of the likeliest next word, and all of it. @typedef {{word: string, heads: Float32Array, all: number}} Logits */
/**
 * What a picture is of.
 * @typedef {{
 *   step: Step, header: any, walk: Walk, site: import("./types.js").Site | undefined, head: number, at: import("./types.js").Attended,
 *   plain: import("./types.js").Attended, edit: import("./types.js").Edit, key: number, cell: Cell, chosen: Record<string, string>,
 *   labels: string[], keyLabels: string[], keyNames: string[], id: number, q: [string, string], k: [string, string], model: string, reasons: string[],
 *   guesses: import("./types.js").Guesses | null, classes: import("./types.js").Classes | null,
 *   ending: import("./ending.js").Ending | null, logits: Logits | null, layersAfter: number, residual: import("./residual.js").Paths | null, paint: import("./grid.js").Paint, rem: number, perLayer: number, sublayers: string[],
 *   ledgerRows: {rows: number[], others: number[]}, normRow: (value: string) => Float32Array, additionOf: (part: string) => Float32Array[], box?: {width: number, height: number},
 *   keyVector: (key: number) => Float32Array, value: (key: number) => Float32Array, point: (cell: Cell) => void, leave: () => void,
 *   choose: (changes: Record<string, string>) => void, toggle: (key: number) => void,
 *   terms: (step: string, index: number[]) => import("./types.js").ServerTerms | null,
 * }} Shown
 */
// What the picture of a step is of, with what the visitor changed and looks at
/** @param {View} view @param {Walk} walk @param {Step} step @returns {Shown} */
export function shownOf(view, walk, step) {
  const run = /** @type {Run} */ (view.run);
  const { header } = walk;
  const { head } = view.place;
  const site = walk.site(step);
  const labels = run.tokens[header.stack].labels;
  const keyLabels = site.labels;
  const hide = view.edit.hide.filter((k) => k < keyLabels.length);
  const edit = { divide: view.edit.divide, hide: hide.length < keyLabels.length ? hide : [] };
  const at = walk.attended(site, head, edit);
  const heaviest = at.weights.indexOf(Math.max(...at.weights));
  const key = view.values.key === "" ? heaviest : clamp(whole(view.values.key), 0, keyLabels.length - 1);
  const [, shared] = walk.places(site, head);
  const sublayers = walk.sites.map(({ site: name }) => name).concat("mlp");
  const query = quoted(indexed(labels, header.query));
  return {
    step,
    header,
    walk,
    site,
    head,
    at,
    plain: walk.attended(site, head),
    edit,
    key,
    cell: [0, 0],
    chosen: view.values,
    labels,
    keyLabels,
    keyNames: namesOf(keyLabels),
    id: run.tokens[header.stack].ids[header.query],
    q: [query, "q"],
    k: [quoted(indexed(keyLabels, key)), "k"],
    model: run.model,
    reasons: header.reasons,
    guesses:
      step.kind === "next" || (step.kind === "add" && header.guesses && !view.isOffline)
        ? view.ask("step/guesses", { query: header.query }, json)
        : null,
    ending: step.kind in ENDINGS ? view.ask("step/ending", { query: header.query }, readEnding) : null,
    logits: step.kind === "wo" ? logitsOf(view, walk, site.site) : null,
    layersAfter: run.layers[header.stack] - 1 - header.layer,
    residual: step.kind === "why" ? view.ask("step/residual", {}, json) : null,
    classes: step.kind === "classes" ? view.ask("step/classes", {}, json) : null,
    paint: view.paint,
    rem: view.rem,
    perLayer: sublayers.length,
    sublayers,
    ledgerRows: ledgerRows(at.weights, site.site === "attn" ? header.query : null, key),
    normRow: (value) => {
      const norm = walk.norms[value];
      return walk.row(`${value}.before`, norm.of > 1 ? header.query - norm.first : 0);
    },
    additionOf: (part) => additionOf(walk, part),
    keyVector: (k) => walk.row(`${site.site}.keys`, shared, k),
    value: (k) => walk.row(`${site.site}.v`, shared, k),
    point: (cell) => view.point(cell),
    leave: () => view.point(null),
    choose: (changes) => view.choose(changes),
    toggle: (k) => view.toggle(k, keyLabels),
    terms: (name, index) =>
      view.ask(
        "step/terms",
        { stack: header.stack, layer: header.layer, query: header.query, step: name, index: index.join(".") },
        json,
      ),
  };
}

/** @type {WeakMap<string[], string[]>} */
const named = new WeakMap();
// Of tokens that the text has more than once, which of them each is
/** @param {string[]} labels */
function namesOf(labels) {
  const names = named.get(labels) ?? labels.map((_, i) => indexed(labels, i));
  named.set(labels, names);
  return names;
}

// Direct additions, which only the attention of a stack that guesses words has
/** @param {View} view @param {Walk} walk @param {string} site @returns {Logits | null} */
function logitsOf(view, walk, site) {
  const { header } = walk;
  if (!header.guesses) return null;
  const { stack, layer, query } = header;
  const whole = view.askLast("strip", { stack, query }, json);
  const kind = site === "cross_attn" ? "cross" : stack;
  const found = view.ask("additions", { site: kind, query, candidate: 0 }, added);
  const name = site === "cross_attn" ? "cross-attention" : "attention";
  const all = whole?.parts?.find((/** @type {{name: string}} */ part) => part.name === name)?.adds?.[layer];
  const { heads } = header;
  if (!found || found.refused || all === undefined) return null;
  return { word: found.word, heads: found.values.subarray(layer * heads, (layer + 1) * heads), all };
}

// The stream before an addition, what is added, and both together
/** @param {Walk} walk @param {string} part */
function additionOf(walk, part) {
  const { header } = walk;
  const together = walk.array(`${part}.add`);
  const added = walk.array(walk.has(`${part}.out_norm`) ? `${part}.out_norm` : `${part}.out`);
  let before = walk.array("x");
  const above = part === "attn" ? null : part === "cross_attn" || !walk.has("cross_attn.add") ? "attn" : "cross_attn";
  if (above) before = walk.array(header.order === "post" ? `${above}.norm` : `${above}.add`);
  return [before, added, together];
}
