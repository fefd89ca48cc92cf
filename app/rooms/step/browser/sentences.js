// What stands above a picture: one sentence, one equation, one line of PyTorch; of numbers that are on the screen.

import { LANGUAGE } from "../../../kit/browser/language.js";
import { el, fill, fixed, number, percent, phrase, quoted, worded } from "../../../kit/browser/dom.js";
import { long, signed } from "../../../kit/browser/model_strip.js";
import { LOWEST, softmax } from "./compute.js";
import { WORDS as words } from "./constants.js";
import { endingSays } from "./ending.js";
import { residualSays } from "./residual.js";
import { length, spread } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./types.js").Step} Step */

// "*x*_0_ = e^s^" as nodes: italics, below and above the line
/** @param {string} text */
export function math(text) {
  return text
    .split(/(\*[^*]+\*|_[^_]+_|\^[^^]+\^)/)
    .filter(Boolean)
    .map((piece) => {
      const tag = /** @type {const} */ ({ "*": "i", _: "sub", "^": "sup" })[piece[0]];
      return tag && piece.length > 2 && piece.at(-1) === piece[0]
        ? el(tag, "", piece.slice(1, -1))
        : document.createTextNode(piece);
    });
}

// "measures each *row*" as nodes, with its parts filled in
/** @param {string} template @param {Record<string, unknown>} parts */
export const sentence = (template, parts) =>
  template
    .split(/(\*[^*]+\*)/)
    .filter(Boolean)
    .flatMap((piece) => {
      if (piece[0] !== "*") return phrase(piece, parts);
      const set = el("em");
      set.append(...phrase(piece.slice(1, -1), parts));
      return [set];
    });

const strong = (/** @type {string} */ text) => [text, ""];
const [RESTS, SHORT] = [0.9, 0.5]; // of a weight, and of the median length of a value: as core.read.key_steps has it
const NAMED = 4; // words that come later, which are named one by one

// {sentence, equation, code} of a step
/** @param {Shown} on @returns {{sentence: Node[], equation: Node[], code: string}} */
export function above(on) {
  const [key, parts, equation, more] = saysOf(on);
  const d = on.header.d_head;
  const places = { q: on.q, k: on.k, ...parts };
  return {
    sentence: sentence(worded(words.says, key), places),
    equation: math(fill(worded(words.equations, equation), { d, ...more })),
    code: fill(worded(words.codes, codeOf(on)), {
      d: on.step.kind === "norm" ? on.header.d_model : d,
      H: on.header.heads,
      ...codeParts(on),
    }),
  };
}

/** @param {Shown} on */
function codeOf({ step, header, site, chosen }) {
  const { kind } = step;
  const cross = site?.site === "cross_attn";
  if (kind === "embed")
    return header.embed_normed
      ? "embed_normed"
      : header.position === "learned" || header.position === "sinusoidal"
        ? "embed_position"
        : "embed";
  if (kind === "norm")
    return chosen.norm === "batch" ? "norm_batch" : header.order === "post" ? "norm_post" : "norm_pre";
  if (kind === "qkv" && cross) return "qkv_cross";
  if (kind === "scale" && site && header.arrays[`${site.site}.bias`]) return "scale_bias";
  return kind;
}

/** @param {Shown} on */
function codeParts({ step, header, chosen }) {
  const part = step.value.split(".")[0];
  const short = { attn: "attn", cross_attn: "cross", mlp: "mlp" }[part] ?? "attn";
  const act = chosen.act === "own" ? header.activation : chosen.act;
  const name = step.value.endsWith("out_norm") ? `${short}_out_norm` : `${short}_norm`;
  return { name, added: `${short}_out`, act: act === "gelu_tanh" ? "gelu" : act };
}

/** @param {Shown} on @returns {[says: string, parts: Record<string, unknown>, equation: string, more: Record<string, unknown>]} */
function saysOf(on) {
  const { step, header, walk, site, head, at } = on;
  const [H, dh, d] = [header.heads, header.d_head, header.d_model];
  const wide = H * dh;
  switch (step.kind) {
    case "token":
      return [
        "token",
        { id: strong(number(on.id)), vocab: number(header.vocab), d: strong(String(d)) },
        "token",
        { id: on.id },
      ];
    case "embed": {
      if (!walk.has("start.position")) {
        const how =
          { rotary: words.says.embed_rotary, alibi: words.says.embed_bias, relative: words.says.embed_bias }[
            /** @type {"rotary"} */ (header.position)
          ] ?? words.says.embed_none;
        return ["embed", { how }, "embed", {}];
      }
      const at = { p: strong(String(header.query)), n: number(header.n_ctx), kind: header.position };
      if (header.embed_scale !== 1 && Math.abs(header.embed_scale ** 2 - d) < 1e-6 * d)
        return [
          "embed_scaled",
          { ...at, s: strong(fixed(header.embed_scale, 1)), d },
          "embed_scaled",
          { s: "√" + d, id: on.id },
        ];
      return ["embed_position", at, header.embed_normed ? "embed_normed" : "embed_position", {}];
    }
    case "x":
      return [header.layer ? "x" : "x_first", { x: strong(long(length(walk.array("x")))) }, "x", { d }];
    case "norm": {
      if (on.chosen.norm === "batch") return ["norm_batch", {}, "norm_batch", {}];
      const norm = walk.norms[step.value];
      if (norm.mean) return ["norm_layer", { d }, "norm_layer", {}];
      const row = on.normRow(step.value);
      const said = { d, x: strong(long(length(row))), r: strong(fixed(length(row) / Math.sqrt(row.length))) };
      const isOut = step.value.endsWith("out_norm");
      return [
        isOut ? "norm_rms_out" : step.value === "attn.norm" ? "norm_rms" : "norm_rms_again",
        said,
        "norm_rms",
        {},
      ];
    }
    case "qkv": {
      if (site?.site === "cross_attn") return ["qkv_cross", { d: dh }, "qkv_cross", {}];
      if (site && site.group > 1) {
        const g = Math.floor(head / site.group);
        return ["qkv_shared", { h: head, g, first: g * site.group, last: (g + 1) * site.group - 1 }, "qkv", {}];
      }
      return ["qkv", { d: dh }, "qkv", {}];
    }
    case "heads":
      return [
        "heads",
        { wide, H: [String(H), "hd"], d: [String(dh), "dh"] },
        "heads",
        { n: on.labels.length, wide, H },
      ];
    case "turn":
      return [
        on.key === header.query ? "turn_self" : "turn",
        { p: header.query, j: on.key, n: strong(number(Math.abs(header.query - on.key))) },
        "turn",
        { p: header.query, base: header.rotary_base.toLocaleString(LANGUAGE, { useGrouping: false }) },
      ];
    case "scores": {
      const seen = at.raw.filter((_, k) => !at.reason[k]);
      const isMost = seen.length > 1 && at.raw[on.key] >= Math.max(...seen) && !at.reason[on.key];
      const said = { d: dh, s: strong(fixed(at.raw[on.key])), n: seen.length };
      return [isMost ? "scores_most" : "scores", said, "scores", {}];
    }
    case "scale": {
      const [, deviation] = spread(at.raw.filter((_, k) => at.seen[k]));
      const plain = softmax(at.raw, at.seen).weights;
      const best = plain.indexOf(Math.max(...plain));
      const own = site && Math.abs(site.scale * Math.sqrt(dh) - 1) < 1e-6;
      const biased = site && walk.has(`${site.site}.bias`);
      const equation = biased ? "scale_bias" : own ? "scale" : "scale_plain";
      const parts = {
        sd: fixed(deviation, 1),
        k: [quoted(on.keyNames[best]), "k"],
        p: strong(percent(plain[best])),
        c: fixed(at.divisor),
        w: strong(percent(at.weights[best])),
      };
      const divides = Math.abs(at.divisor - 1) > 1e-9;
      return [
        divides ? "scale" : "scale_plain",
        parts,
        equation,
        { c: fixed(at.divisor, 3), scale: fixed(site?.scale ?? 1, 4) },
      ];
    }
    case "mask":
      return [...maskSays(on), "mask", {}];
    case "softmax":
      return ["softmax", { w: strong(percent(at.weights[on.key])), n: at.seen.filter(Boolean).length }, "softmax", {}];
    case "z": {
      const lengths = on.keyLabels.map((_, k) => length(on.value(k)));
      const w = at.weights[on.key];
      if (w > RESTS && lengths[on.key] < SHORT * median(lengths))
        return ["z_rests", { w: strong(percent(w)), x: strong(long(lengths[on.key])) }, "z", {}];
      return ["z", { h: head, x: strong(fill(words.long, { x: long(w * lengths[on.key]) })) }, "z", {}];
    }
    case "join":
      return [
        "join",
        { H, d: dh, wide: strong(String(wide)), h: head, first: head * dh, last: head * dh + dh - 1 },
        "join",
        { last: H - 1 },
      ];
    case "wo": {
      const lengths = Array.from(walk.array(`${site?.site}.lengths`));
      const rank = lengths.filter((x) => x > lengths[head]).length + 1;
      const added = on.logits;
      if (added) {
        const own = added.heads[head];
        const moves = [
          fill(own < 0 ? words.says.wo_takes : words.says.wo_adds, { x: fixed(Math.abs(own)) }),
          own < 0 ? "less" : "more",
        ];
        const all = [signed(added.all), added.all < 0 ? "less" : "more"];
        const x = long(length(walk.array(`${site?.site}.out`)));
        return ["wo_logit", { h: head, H, x: strong(x), moves, w: [wordOf(added.word), "vo"], all }, "wo", {}];
      }
      return ["wo", { h: head, H, a: strong(long(lengths[head])), rank }, "wo", {}];
    }
    case "add": {
      const part = /** @type {"attn"} */ (step.value.split(".")[0]);
      const [before, added, together] = on.additionOf(part);
      const said = {
        a: strong(long(length(added))),
        x: strong(long(length(before))),
        s: strong(long(length(together))),
      };
      const [form, read] = readOff(on, part);
      return [`add_${part}${form}`, { ...said, ...read }, "add", { what: words[`what_${part}`] }];
    }
    case "gate":
      return ["gate", { d, f: [number(header.d_ff), "ff"] }, "gate", {}];
    case "up": {
      if (header.gated) return ["up_gated", { d, f: [number(header.d_ff), "ff"] }, "up_gated", {}];
      return [
        "up",
        { d, f: [number(header.d_ff), "ff"], n: strong(number(walk.array("mlp.up").filter((x) => x > 0).length)) },
        "up",
        {},
      ];
    }
    case "act":
    case "product": {
      const act = /** @type {"gelu"} */ (on.chosen.act === "own" ? header.activation : on.chosen.act);
      const before = walk.array(step.kind === "product" ? "mlp.gate" : "mlp.up");
      const n = before.filter((x) => x > 0).length;
      const f = words.acts[act];
      if (step.kind === "product")
        return [
          LOWEST[act] ? "product" : "product_relu",
          { f, n: strong(number(n)), all: number(before.length), min: fixed(LOWEST[act] ?? 0) },
          "product",
          { act: f },
        ];
      return [
        LOWEST[act] ? "act_soft" : "act_relu",
        { f, n: strong(number(n)), m: number(before.length - n), min: fixed(LOWEST[act] ?? 0) },
        act,
        {},
      ];
    }
    case "router":
      return [
        "router",
        {
          n: number(walk.array("mlp.router").length),
          k: strong(String(header.chosen.filter((/** @type {number} */ e) => e >= 0).length)),
          list: header.chosen
            .filter((/** @type {number} */ e) => e >= 0)
            .slice(0, 4)
            .join(", ")
            .concat(header.chosen.length > 5 ? " …" : ""),
        },
        "router",
        {},
      ];
    case "mix":
      return ["mix", { x: strong(long(length(walk.array("mlp.out")))) }, "mix", {}];
    case "down": {
      const [j, w] = /** @type {[number, number]} */ (header.neurons[0]);
      const x = strong(long(length(walk.array("mlp.out"))));
      const y = strong(long(Math.abs(walk.array("mlp.act")[j]) * w));
      return ["down", { f: [number(header.d_ff), "ff"], d: strong(String(d)), x, j: number(j), y }, "down", {}];
    }
    case "next": {
      const found = on.guesses;
      const scored = header.tied ? "next_tied" : "next";
      if (!found || found.refused) return ["next_waiting", {}, scored, {}];
      const [word, p] = found.words[0];
      const parts = { w: [wordOf(word), "vo"], p: strong(percent(p)) };
      const since = sinceWhen(found.guesses);
      return since
        ? ["next_since", { ...parts, l: since.layer, sublayer: worded(words.sublayers, since.sublayer) }, scored, {}]
        : ["next", parts, scored, {}];
    }
    case "lastnorm":
    case "words":
    case "loss":
      return endingSays(on);
    case "why":
      return residualSays(on);
    case "classes":
      return classesSay(on);
    default:
      return header.kind === "encoder-decoder"
        ? ["result_encoder", { n: on.labels.length }, "result", {}]
        : ["result", { n: on.labels.length, model: on.model }, "result", {}];
  }
}

// The word of the stream before and after an addition, read off there: no form where that is not read, or not yet
/** @param {Shown} on @param {string} part @returns {[form: string, parts: Record<string, unknown>]} */
function readOff({ guesses: found, header }, part) {
  if (!found || found.refused) return ["", {}];
  const { guesses } = found;
  const name = /** @type {Record<string, string>} */ ({ attn: "attention", cross_attn: "cross-attention", mlp: "MLP" })[
    part
  ];
  const at = guesses.findIndex((one) => one.layer === header.layer && one.sublayer === name);
  if (at < 1) return ["", {}];
  const [before, after, last] = [guesses[at - 1], guesses[at], guesses[guesses.length - 1]];
  const w = [wordOf(last.word), "vo"];
  if (part !== "mlp") return ["_read", { w, from: strong(number(before.rank)), to: strong(number(after.rank)) }];
  if (at === guesses.length - 1 && before.rank > 1)
    return [
      "_last",
      {
        w,
        v: [wordOf(before.word), "vo"],
        p: percent(before.p),
        was: percent(before.final),
        now: strong(percent(after.p)),
      },
    ];
  if (after.rank === 1) return ["_says", { w, p: strong(percent(after.p)) }];
  return ["_read", { w, v: [wordOf(after.word), "vo"], p: percent(after.p), to: strong(number(after.rank)) }];
}

/** @param {number[]} values */
function median(values) {
  const sorted = Float64Array.from(values).sort();
  return sorted[(sorted.length - 1) >> 1];
}

/** @param {Shown} on @returns {[key: string, parts: Record<string, unknown>, equation: string, more: Record<string, unknown>]} */
function classesSay({ classes: found }) {
  if (!found || found.refused) return ["classes_waiting", {}, "classes_one", {}];
  const numbers = found.chances ?? found.logits;
  const best = numbers.indexOf(Math.max(...numbers));
  const p = strong(found.chances ? percent(numbers[best]) : fixed(numbers[best], 3));
  const parts = { reads: worded(words.classes_reads, found.reads), w: [found.names[best], "vo"], p };
  const key = found.kind === "one" ? "classes" : `classes_${found.kind}`;
  return [key, parts, `classes_${found.kind}`, {}];
}

/** @param {Shown} on @returns {[says: string, parts: Record<string, unknown>]} */
function maskSays(on) {
  const { at, edit, header, site } = on;
  const hidden = edit.hide.filter((k) => !at.reason[k] && k < at.raw.length);
  if (hidden.length) {
    const was = on.plain.weights;
    const names =
      hidden
        .slice(0, 3)
        .map((k) => quoted(on.keyNames[k]))
        .join(", ") + (hidden.length > 3 ? " …" : "");
    return ["mask_hidden", { k: [names, "k"], w: strong(percent(hidden.reduce((sum, k) => sum + was[k], 0))) }];
  }
  const blocked = at.reason.filter(Boolean).length;
  const future = at.reason.filter((why) => on.reasons[why] === "future").length;
  if (!blocked) {
    if (header.causal && site?.site === "attn") return ["mask_last", { p: header.query }];
    return [site?.site === "cross_attn" ? "mask_cross" : "mask_both", {}];
  }
  if (future === blocked) {
    const lost = at.reason.flatMap((code, k) => (code ? [quoted(on.keyNames[k])] : []));
    const list = blocked > NAMED ? fill(words.says.mask_all, { n: number(blocked) }) : lost.join(", ");
    return ["mask_causal", { list: strong(list) }];
  }
  const why = [...new Set(at.reason.filter(Boolean).map((code) => on.reasons[code]))].join(", ");
  return ["mask_some", { n: strong(number(blocked)), why }];
}

// Since which addition the model's word has been the best guess; null where it always was, or came last
/** @param {import("./types.js").Guess[]} guesses */
function sinceWhen(guesses) {
  let first = guesses.length - 1;
  while (first > 0 && guesses[first - 1].rank === 1) first--;
  return first > 0 && first < guesses.length ? guesses[first] : null;
}

// A token of the vocabulary as it is read
/** @param {string} word */
export const wordOf = (word) => word.replace(/^[Ġ▁ ]/, "").replace(/^##/, "") || "␣";
