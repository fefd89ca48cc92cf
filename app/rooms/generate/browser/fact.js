// The fact in words: what came after the word that was read, what could have come, and what wrote it.

import { add, el, fill, fixed, number, percent, phrase, quoted } from "../../../kit/browser/dom.js";
import { form } from "../../../kit/browser/language.js";
import { bits } from "./chances.js";
import { WORDS as words } from "./constants.js";
import { leads } from "./layers.js";
import { nameOf, size, time } from "./shapes.js";

/** @typedef {import("./types.js").Scene} Scene */
/** @typedef {[template: string, parts: Record<string, unknown>]} Said */

const CERTAIN = 0.9; // from which on a word is all but certain
const DECIDES = 0.4; // of a logit, from which on a single look says something

/** @type {Record<string, string>} */
const TOOK = { sample: words.took_sample, greedy: words.took_greedy, beam: words.took_beam };

/** @param {Scene} scene @returns {Said[]} */
export function fact(scene) {
  if (scene.page === "layers") return [ofLayers(scene)];
  if (scene.page === "cache") return ofCache(scene);
  const column = scene.columns[scene.focus];
  const { node, take, own, shown, known, given } = column;
  const read = [tokenAt(scene, node.position), "query"];
  if (scene.hides) return [[words.decide_first, { read }]];
  const best = [quoted(scene.named(node, node.ids[0])), "n"];
  const sampled = scene.how === "sample" && !given;
  if (take === null || !known) {
    const share = sampled && shown.probs[0] !== own.probs[0] ? shown.probs[0] : own.probs[0];
    return [[sampled ? words.fact_end_sample : words.fact_end, { read, word: best, share: [percent(share), "n"] }]];
  }
  const compared = scene.beams && beamsFact(scene);
  if (compared) return compared;
  const parts = {
    read,
    best,
    best_share: [percent(own.probs[0]), "n"],
    word: [quoted(scene.named(node, take)), "word"],
    share: [percent(known.prob), "n"],
    rank: number(known.rank),
    bits: [fill(words.n_bits, { n: fixed(bits(known.prob), 1) }), "n"],
  };
  if (given) return [[words.fact_given, parts]];
  if (scene.hand) {
    const after = scene.path.slice(column.at + 1, column.at + 8);
    const other = scene.others.find((path) => path.slice(0, column.at).every((id, i) => id === scene.path[i]));
    /** @type {Said[]} */
    const said = [[words.fact_hand, parts]];
    if (after.length) said.push([words.goes_on, { words: scene.flush(after) }]);
    if (other) said.push([words.both_lines, { this: scene.scoreOf(scene.path), other: scene.scoreOf(other) }]);
    return said;
  }
  const look = strongest(scene);
  /** @type {Said[]} */
  const said = [];
  if (scene.copy) {
    const { n, before } = scene.copy;
    said.push([words.it_repeats, { ...parts, n: [fill(words.n_tokens, { n }), "n"], before: percent(before) }]);
  } else if (known.rank > 1) {
    said.push([TOOK[scene.how] ?? words.took_sample, parts]);
  } else said.push([known.prob >= CERTAIN ? words.fact_certain : words.fact_best, parts]);
  if (look && known.rank === 1)
    said.push([
      words.by_look,
      {
        layer: look.layer,
        head: look.head,
        key: [keyOf(scene, look.key), "key"],
        weight: [percent(look.weight), "n"],
        adds: [signed(look.adds), look.adds < 0 ? "dn" : "up"],
      },
    ]);
  else if (scene.wrote && known.rank === 1) said.push([words.no_look, {}]);
  if (sampled && isSet(scene)) {
    const at = node.ids.indexOf(take);
    const set = at < 0 ? null : shown.probs[at];
    const left = shown.left;
    said.push([
      left === null ? words.with_set_more : left >= scene.header.vocab ? words.with_set_all : words.with_set,
      {
        set: [set === 0 ? words.no_chance : set === null ? "?" : percent(set), "n"],
        n: number(left ?? node.ids.length),
      },
    ]);
  } else if (known.rank > 1) said.push([words.click_it, { best }]);
  return said;
}

// The best line of a beam search, beside greedy
/** @param {Scene} scene @returns {Said[] | null} */
function beamsFact({ beams }) {
  if (!beams) return null;
  const { best, n, greedy, same, shared, lines } = beams;
  const parts = { n: lines, best: [fixed(best), "n"], m: n, greedy: [fixed(greedy), "n"], shared };
  return [
    [same ? words.beams_same : words.beams_compared, parts],
    ...(shared ? [/** @type {Said} */ ([words.beams_share, parts])] : []),
  ];
}

// A token of the text, and which of those with the same name it is
/** @param {Scene} scene @param {number} position */
const tokenAt = (scene, position) => quoted(nameOf(scene, position));

// The loss on the text that was given, where it has a second token
/** @param {{losses: number[], prompt: number[]}} scene */
export function lossOf({ losses, prompt }) {
  const given = losses.slice(0, prompt.length - 1);
  if (!given.length) return "";
  const nats = given.reduce((a, b) => a + b, 0) / given.length;
  return fill(words.loss_given, { nats: fixed(nats), bits: fixed(nats / Math.LN2) });
}

/** @param {number} x */
export const signed = (x) => `${x < 0 ? "" : "+"}${fixed(x)}`;

/** @param {Scene} scene @param {number} key */
export const keyOf = (scene, key) => (scene.header.source ? quoted(scene.header.source[key]) : nameOf(scene, key));

/** Whether anything but a temperature cuts what is drawn from. @param {Scene} scene */
const isSet = ({ settings: { temperature, topK, topP, minP } }) =>
  temperature !== 1 && Boolean(topK || topP < 1 || minP);

// The single look that decides: it adds much, and goes further back than one word
/** @param {Scene} scene */
function strongest({ wrote, columns, focus, header, looks }) {
  const look = looks[0];
  if (!wrote || !look || look.adds < DECIDES) return null;
  return header.source || columns[focus].node.position - look.key > 1 ? look : null;
}

/** @param {Scene} scene @returns {Said} */
function ofLayers(scene) {
  const { layers, columns, focus } = scene;
  const column = layers?.get(columns[focus].node.position);
  if (!layers || !column) return [words.layers_wait, {}];
  const last = scene.header.layers - 1;
  const from = Math.max(0, last - 3); // the last four layers
  const word = [quoted(scene.named(columns[focus].node, column.token)), "word"];
  const all = columns.filter(({ given }) => !given).flatMap(({ node }) => layers.get(node.position) ?? []);
  const first = leads(column);
  const parts = {
    word,
    n: number(all.length),
    late: number(all.filter((one) => (leads(one) ?? 0) > from).length),
    from,
    never: number(all.filter((one) => leads(one) === null).length),
    last,
    layer: first === null ? "" : first === 0 ? words.word_row : fill(words.layer_row, { n: first - 1 }),
    best: [quoted(scene.label(column.ids[last + 1])), "word"],
    rank: number(column.ranks[last + 1]),
  };
  return [first === null ? words.never_leads : words.first_leads, parts];
}

/** @param {Scene} scene @returns {Said[]} */
function ofCache(scene) {
  const { bytes, columns, focus, prompt, path, cost } = scene;
  const n = columns[focus].node.position + 1;
  const after = Math.max(0, n - prompt.length);
  let again = 0;
  for (let i = 0; i <= after; i++) again += prompt.length + i;
  /** @type {Said[]} */
  const said = [[words.cache_fact, { size: [size(bytes.token), "n"] }]];
  if (after)
    said.push([
      form([words.cache_read_one, words.cache_read], after),
      { kept: [number(n), "n"], n: number(after), again: [number(again), "n"] },
    ]);
  if (cost)
    said.push([
      words.timed,
      { n: cost.n, with: time(cost.with_seconds * 1000), without: time(cost.without_seconds * 1000) },
    ]);
  return path.length || said.length ? said : said.slice(0, 1);
}

/** @param {HTMLElement} box @param {Scene} scene */
export function sayFact(box, scene) {
  const line = el("p", "big");
  fact(scene).forEach(([template, parts], i) => {
    if (i) line.append(" ");
    const sentence =
      i && (template === words.click_it || template === words.both_lines) ? add(line, "span", "mute") : line;
    sentence.append(...phrase(template, parts));
  });
  box.replaceChildren(line);
}

/** @param {Scene} scene */
export const saidFact = (scene) =>
  fact(scene)
    .map(([template, parts]) =>
      fill(
        template,
        Object.fromEntries(Object.entries(parts).map(([key, value]) => [key, Array.isArray(value) ? value[0] : value])),
      ),
    )
    .join(" ");
