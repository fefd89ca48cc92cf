// What stands below the picture: where to go, what is proven of the numbers, what was changed, and the change as a run of its own.

import { el, fill, quoted, scientific } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { fixed } from "./sums.js";

/** @typedef {import("./shown.js").Shown} Shown */
/** @typedef {import("./step.js").View} View */
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
  const facts = el("span", "facts");
  /** @param {string} className @param {string} text */
  const say = (className, text) => facts.append(el("span", className, text));
  /** @param {string} text @param {() => void} work @param {string} [title] */
  const button = (text, work, title = "") => {
    const node = el("button", "quiet", text);
    Object.assign(node, { type: "button", title });
    node.addEventListener("click", work);
    facts.append(node);
    return node;
  };
  if (ATTENTION.includes(kind) && Math.abs(on.at.weights.reduce((a, b) => a + b, 0) - 1) < 1e-5)
    say("ok", words.ok_rows);
  if (live || act) {
    say("changed", act ? words.changed_act : words.changed);
    if (live && !view.offline)
      button(
        words.run_it,
        () => runIt(view, view.shown ?? on),
        fill(words.run_it_help, { what: editWords(on) }),
      ).classList.add("run");
    button(words.put_back, () => view.choose(act ? { act: "own" } : { divide: "", hide: "", key: "" }));
  } else {
    if (ATTENTION.includes(kind) && on.site) {
      const proof = view.remote.get("proof", { record: on.site.record }, read);
      if (proof && !proof.refused)
        say(
          proof.fused_error === null ? "mute" : "ok",
          proof.fused_error === null ? words.not_fused : fill(words.ok_fused, { error: scientific(proof.fused_error) }),
        );
    }
    if (view.values.edits) {
      say("changed", words.run_done);
      if (!view.offline) button(words.run_leave, () => view.choose({ edits: "" }));
    }
    if (after) say("changed", words.from_here);
    else if (!run.edits.length)
      say(
        "mute",
        fill(words.run_facts, { n: on.labels.length, ms: fixed(run.ms, 0), device: run.device, dtype: run.dtype }),
      );
  }
  feet(view, facts, at, steps.length);
}

// Back and Next, what there is to say, and the files
/** @param {View} view @param {HTMLElement} facts @param {number} at @param {number} n */
export function feet(view, facts, at, n) {
  const feet = FEET.get(view.footer) ?? makeFeet(view);
  feet.back.disabled = at <= 0;
  feet.next.disabled = at >= n - 1;
  // Facts that are the same stay: an answer that comes meanwhile takes no button away from under a click.
  if (feet.facts.isEqualNode(facts)) return;
  feet.facts.replaceWith(facts);
  feet.facts = facts;
}

/** @typedef {{back: HTMLButtonElement, next: HTMLButtonElement, facts: HTMLElement}} Feet */
/** @type {WeakMap<HTMLElement, Feet>} */
const FEET = new WeakMap();

/** @param {View} view @returns {Feet} */
function makeFeet(view) {
  const [back, next] = [el("button", "go", words.back), el("button", "go next", words.next)];
  back.type = next.type = "button";
  back.addEventListener("click", () => view.turn(-1));
  next.addEventListener("click", () => view.turn(1));
  const right = el("span", "right");
  const ramp = el("span", "ramp");
  ramp.title = words.legend;
  right.append("−", ramp, "+", ...view.share.actions(), view.files.box, view.projector.button);
  view.share.isOffline = view.offline;
  const facts = el("span", "facts");
  view.footer.replaceChildren(back, next, facts, right);
  const feet = { back, next, facts };
  FEET.set(view.footer, feet);
  return feet;
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

/** @param {Uint8Array} bytes */
export const read = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
