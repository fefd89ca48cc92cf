// How a sentence about a change begins: what was silenced, cut or taken over, and what was changed beside it.

import { WORDS as words } from "./constants.js";
import { placed } from "./numbers.js";
import { fill, phrase, quoted } from "../../../kit/browser/dom.js";

// How many heads are silent at once: one, or those that share keys and values
/** @param {import("./types.js").Header} data @param {Record<string, string>} values @param {string} site */
export function together(data, values, site) {
  const place = data.places.find(({ id }) => id === site);
  return place && values.sweep === "heads" && values.group === "on" ? place.heads / place.kv_heads : 1;
}

// "L5 H3" or "layer 5 head 3", of several heads "L5 H0–3"; of a model with several kinds of attention, with its kind
/** @param {import("./types.js").Header} data @param {string} site @param {number} layer @param {number} head @param {boolean} [long] @param {number} [n] */
export function headName(data, site, layer, head, long = false, n = 1) {
  const name = fill(long ? (n > 1 ? words.heads_long : words.head_long) : words.head_name, {
    layer,
    head: n > 1 ? `${head}–${head + n - 1}` : head,
  });
  const place = data.places.find(({ id }) => id === site);
  return data.places.length > 1 && place ? fill(words.site_name, { site: place.title, head: name }) : name;
}

// The labels of the queries and the keys of a kind of attention
/** @param {import("./types.js").Header} data @param {string} site @returns {[string[], string[]]} */
export function labelsOf(data, site) {
  const place = data.places.find(({ id }) => id === site) ?? data.places[data.places.length - 1];
  /** @param {string} side */
  const of = (side) => (side === "target" && data.target ? data.target : data.source);
  return [of(place.query), of(place.key)];
}

// Whether what stands beside is another sentence, model or step, and not the same run with a change
/** @param {Record<string, string>} values */
export const isOther = (values) => Boolean(values.against || values.other);

// What is changed, without the pick, in words
/** @param {import("./types.js").Header} data @param {Record<string, string>} values @param {import("./types.js").Side | null} side */
export function beside(data, values, side) {
  const said = side ? side.edits.map(([, text]) => text) : [];
  if (values.against && values.sweep !== "patch") said.push(side?.linked ? words.of_link : words.of_text);
  const models = [...data.models, ...data.steps.map(([id, step]) => [id, `${words.step} ${step}`])];
  const other = models.find(([id]) => id === values.other);
  if (other) said.push(other[1]); // a link may name the model above as the other one, which changes nothing
  return said.length > 1 ? `${said.slice(0, -1).join(", ")}${words.with_and}${said[said.length - 1]}` : (said[0] ?? "");
}

/** @param {import("./types.js").Header} data @param {Record<string, string>} values @param {import("./types.js").Row | null} pick @param {string} changes @returns {Node[]} */
export function lead(data, values, pick, changes) {
  const nodes = changes ? phrase(words.with, { changes: [changes, "number"] }) : [];
  if (!pick) return nodes;
  /** @type {(template: string, parts: Record<string, unknown>) => void} */
  const say = (template, parts) => {
    const text = changes ? template[0].toLowerCase() + template.slice(1) : template;
    nodes.push(...phrase(text, parts));
  };
  if (pick.length === 2) {
    const [queries, keys] = labelsOf(data, values.site);
    const place = data.places.find(({ id }) => id === values.site) ?? data.places[data.places.length - 1];
    const one = values.only === "one" && values.layer !== "" && values.head !== "";
    const where = one
      ? fill(words.in_one, { head: headName(data, place.id, Number(values.layer), Number(values.head), true) })
      : "";
    say(words.cut_look, {
      query: [quoted(queries[pick[0]] ?? String(pick[0])), "query"],
      key: [
        pick[0] === pick[1] && place.query === place.key ? words.itself_key : quoted(keys[pick[1]] ?? String(pick[1])),
        "key",
      ],
      where,
    });
  } else
    say(values.sweep === "patch" ? words.patched : words.silent, {
      head: [headName(data, ...pick, true, together(data, values, pick[0])), "number"],
    });
  return nodes;
}

// A row of a sweep in a few letters
/** @param {import("./types.js").Header} data @param {Record<string, string>} values @param {import("./types.js").Row | undefined} row */
export function rowName(data, values, row) {
  if (!row) return "";
  if (row.length === 3) return headName(data, ...row, false, together(data, values, row[0]));
  const [queries, keys] = labelsOf(data, values.site);
  return `${placed(queries, row[0])} → ${placed(keys, row[1])}`;
}
