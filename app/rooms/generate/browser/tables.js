// The same as tables: on the page for readers who see no picture, and as CSV.

import { csv } from "../../../kit/browser/csv.js";
import { fill, fixed, worded } from "../../../kit/browser/dom.js";
import { tableBox } from "../../../kit/browser/table.js";
import { bits, look, most } from "./chances.js";
import { WORDS as words } from "./constants.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("./types.js").Scene} Scene */

const WORDS_A_COLUMN = 10;
const HOW = { greedy: words.greedy, beam: words.beam };

/** @param {Scene} scene @returns {(string | number)[][]} */
function rows(scene) {
  return scene.columns.map(({ node, read, take, known }) => {
    const row = look(node, scene.by, scene.header.heads);
    const at = row ? most(row, scene.sink) : -1;
    const seen = at < 0 ? "" : scene.header.source ? scene.header.source[at] : scene.nameAt(at);
    return [
      node.position,
      read,
      take === null ? "" : scene.label(take),
      known ? pointed(known.prob.toPrecision(4)) : "",
      known ? known.rank : "",
      known ? fixed(bits(known.prob)) : "",
      seen,
      Math.round(node.cache / 102.4) / 10,
      node.ms === null ? "" : fixed(node.ms, 1),
    ];
  });
}

// The heads of these columns: that of what is looked at says which token it leaves out
/** @param {Scene} scene */
const heads = (scene) =>
  words.table_heads.map((head) =>
    head === words.looks && scene.sink !== null
      ? fill(words.table_looks_but, { token: scene.nameAt(scene.sink) })
      : head,
  );

/** @param {Scene} scene @param {(logProb: number) => string | number} said @returns {(string | number)[][]} */
function beamRows(scene, said) {
  return scene.grown.flatMap(({ kept, dropped }, step) =>
    [...kept, ...dropped].map((beam, i) => [
      step + 1,
      i + 1,
      beam.path.map(scene.label).join(" "),
      scene.label(beam.id),
      said(beam.logProb),
      beam.ends ? words.ended : i < kept.length ? words.kept : words.dropped,
    ]),
  );
}

/** @param {HTMLElement} box @param {Scene} scene */
export function drawTables(box, scene) {
  box.replaceChildren(
    tableBox(words.table_caption, heads(scene), rows(scene)),
    ...(scene.grown.length
      ? [
          tableBox(
            words.beam_caption,
            words.beam_heads,
            beamRows(scene, (x) => pointed(x.toFixed(4))),
          ),
        ]
      : []),
  );
}

// Every column's ten likeliest words; what is drawn for a sample stands beside the model's own
/** @param {Scene} scene @param {string[]} about */
export function wordsCsv(scene, about) {
  const head = ["position", "reads", "rank", "id", "word", "probability", "as_set", "taken"];
  const lines = scene.columns.flatMap((column) =>
    Array.from(column.node.ids.subarray(0, WORDS_A_COLUMN), (id, i) => [
      column.node.position,
      column.read,
      i + 1,
      id,
      scene.label(id),
      column.own.probs[i],
      column.shown.probs[i],
      id === column.take ? 1 : 0,
    ]),
  );
  return csv(head, lines, about);
}

/** @param {Scene} scene @param {string[]} about */
export function beamsCsv(scene, about) {
  return csv(
    ["step", "beam", "text", "word", "log_probability", "state"],
    beamRows(scene, (x) => Number(x.toFixed(4))),
    about,
  );
}

/** @param {Scene} scene @param {string[]} about */
export function branchesCsv(scene, about) {
  const all = [scene.path, ...scene.others].filter((path) => path.length);
  return csv(
    ["branch", "tokens", "text"],
    all.map((path, i) => [i + 1, path.join(" "), path.map(scene.label).join(" ")]),
    about,
  );
}

/** @param {Scene} scene */
export function aboutOf(scene) {
  const { t, k, p, m, seed } = {
    t: scene.settings.temperature,
    k: scene.settings.topK || words.off,
    p: scene.settings.topP,
    m: scene.settings.minP || words.off,
    seed: scene.seed,
  };
  const how = scene.how === "sample" ? fill(words.file_how, { t, k, p, m, seed }) : worded(HOW, scene.how);
  const caption = [scene.header.about.caption, how, fill(words.file_path, { path: scene.path.join(" ") || "0" })].join(
    " · ",
  );
  return { caption, snippet: scene.header.about.snippet.replace("PATH", scene.path.join(", ")) };
}
