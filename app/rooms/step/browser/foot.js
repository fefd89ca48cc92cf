// What stands below the picture: where to go, what is proven of the numbers, what was changed, and the change as a run of its own.

import { el, fill, fixed, quoted, scientific, setText } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { json } from "../../../kit/browser/messages.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./step.js").StepThrough} View */
/** @typedef {import("./types.js").Run} Run */
export const ATTENTION = ["qkv", "heads", "turn", "scores", "scale", "mask", "softmax", "z", "join", "wo"];

/** @param {View} view @param {Shown} on @param {number} at */
export function drawFoot(view, on, at) {
  const run = /** @type {Run} */ (view.run);
  const steps = on.walk.steps;
  const kind = on.step.kind;
  const changed = on.edit.divide !== null || on.edit.hide.length > 0;
  const live = changed && ["scale", "mask", "softmax", "z"].includes(kind);
  const after = changed && !live && at > steps.findIndex((step) => step.kind === "z");
  const act = view.values.act !== "own" && (kind === "act" || kind === "product");
  /** @type {string[]} */
  const proofs = [];
  const facts = el("span", "facts");
  /** @param {string} className @param {string} text */
  const say = (className, text) => facts.append(el("span", className, text));
  if (ATTENTION.includes(kind) && Math.abs(on.at.weights.reduce((a, b) => a + b, 0) - 1) < 1e-5)
    proofs.push(words.ok_rows);
  if (live || act) {
    say("changed", act ? words.changed_act : words.changed);
    if (live && !view.isOffline)
      view
        .button(
          facts,
          words.run_it,
          () => runIt(view, view.shown ?? on),
          fill(words.run_it_help, { what: editWords(on) }),
        )
        .classList.add("run");
    view.button(facts, words.put_back, () => view.choose(act ? { act: "own" } : { divide: "", hide: "", key: "" }));
  } else {
    if (ATTENTION.includes(kind) && on.site) {
      const proof = view.ask("proof", { record: on.site.record }, json);
      if (proof && !proof.refused) {
        if (proof.fused_error === null) say("mute", words.not_fused);
        else proofs.push(fill(words.ok_fused, { error: scientific(proof.fused_error) }));
      }
    }
    if (view.values.edits) {
      say("changed", words.run_done);
      if (!view.isOffline) view.button(facts, words.run_leave, () => view.choose({ edits: "" }));
    }
    if (after) say("changed", words.from_here);
    else if (!run.edits.length)
      say(
        "mute",
        fill(words.run_facts, { n: on.labels.length, ms: fixed(run.ms, 0), device: run.device, dtype: run.dtype }),
      );
  }
  feet(view, proofs, facts, at, steps.length);
}

// Back and Next, what is proven, and what else there is to say
/** @param {View} view @param {string[]} proofs @param {HTMLElement} facts @param {number} at @param {number} n */
export function feet(view, proofs, facts, at, n) {
  view.ends.back.disabled = at <= 0;
  view.ends.next.disabled = at >= n - 1;
  setText(view.proof, proofs.join("   "));
  if (!view.facts.isEqualNode(facts)) view.facts.replaceChildren(...facts.childNodes);
}

// The change as a run of its own, from this layer to the end
/** @param {View} view @param {Shown} on */
function runIt(view, on) {
  const { header, site, head, edit } = on;
  const cross = site?.site === "cross_attn";
  const parts = view.values.edits ? [view.values.edits] : [];
  if (edit.divide !== null && site) {
    const value = Number((edit.divide * (site.scale / site.temperature)).toPrecision(6));
    parts.push(`temperature_${value}_${header.stack}_L${header.layer}_${cross ? "cross" : "self"}`);
  }
  if (edit.hide.length)
    parts.push(
      `mask_${header.stack}_L${header.layer}_q${header.query}_k${edit.hide.join(".")}_H${head}${cross ? "_cross" : ""}`,
    );
  view.choose({ edits: parts.join("~"), divide: "", hide: "", key: "" });
}

/** @param {Shown} on */
function editWords({ edit, head, keyLabels }) {
  const parts = [];
  if (edit.divide !== null) parts.push(fill(words.run_divide, { c: fixed(edit.divide) }));
  if (edit.hide.length)
    parts.push(fill(words.run_hide, { h: head, k: edit.hide.map((k) => quoted(keyLabels[k])).join(", ") }));
  return parts.join("; ");
}
