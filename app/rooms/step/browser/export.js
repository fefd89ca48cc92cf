// The code that gives the numbers on the page again.

// Which of a walk's values a step shows, and which part of it
const ENDED = { lastnorm: "end.after", words: "end.logits", loss: "end.losses" };
const HEADS = ["qkv", "turn", "scores", "mask", "softmax", "z"];

// Python that gives the numbers of a page of small numbers: with x as it was dragged, and the way of the number that is followed
/** @param {string} page @param {number[][] | null | undefined} x @param {number[]} followed */
export function smallSnippet(page, x, followed) {
  const lines = ["from headlight.labs import worked_examples as small", ""];
  if (page === "one")
    lines.push(
      ...(x ? [`x = torch.tensor(${JSON.stringify(x)})`] : []),
      `one = small.one_head(${x ? "x" : ""})`,
      "print(one.weights, one.output)",
    );
  else if (page === "batch") lines.push("batch = small.batch()", "print(batch.scores, batch.error, batch.wrong_by)");
  else
    lines.push("print(small.reshape().qkv)", `print(small.follow((2, 4, 24), 2, (${followed.join(", ")}), parts=3))`);
  return [...(x && page === "one" ? ["import torch", ""] : []), ...lines, ""].join("\n");
}

// Python that gives the numbers on the screen, as `numbers`, and the number that is looked at as a sum
/** @param {string[]} lines @param {import("./shown.js").Shown} on @param {[number, number]} [cell] */
export function snippet(lines, on, cell) {
  const { step, header, site, head, edit } = on;
  const code = [...lines, `found = walk(run, "${header.stack}", ${header.layer}, ${header.query})`];
  const name = site?.site ?? "attn";
  const { kind, value } = step;
  if (kind === "classes") return [...code, "numbers = run.classes()", ""].join("\n");
  if (kind in ENDED)
    return [
      "from headlight.read.next_token_loss import ending",
      "",
      ...code.slice(0, -1),
      `end = ending(run, ${header.query})`,
      `numbers = ${ENDED[/** @type {"loss"} */ (kind)]}`,
      "",
    ].join("\n");
  if (kind === "why")
    return [
      "from headlight.labs.worked_examples import residual_gradients",
      "",
      "numbers = [path.gradients for path in residual_gradients()]  # with the residual: pre, post, no norm; then without",
      "",
    ].join("\n");
  if (kind === "next")
    return [
      ...code,
      `numbers = guesses(run, ${header.query})  # after every addition; only the last is the model's own`,
      "",
    ].join("\n");
  if (["scale", "mask", "softmax", "z"].includes(kind)) {
    const changed = edit.divide !== null || edit.hide.length > 0;
    if (kind === "scale" || changed) {
      const own = `found.record("${name}").scores(queries=[${header.query}])[${head}, 0]`;
      code.push(
        `scores = ${edit.divide === null ? own : `found.values["${name}.raw"][${head}] / ${edit.divide}`}  # head ${head}`,
      );
    }
    if (changed && kind !== "scale") {
      code.push(`scores[found.values["${name}.scores"][${head}].isneginf()] = float("-inf")`);
      if (edit.hide.length) code.push(`scores[${JSON.stringify(edit.hide)}] = float("-inf")  # hidden by hand`);
      if (kind !== "mask") code.push("numbers = scores.softmax(-1)");
      else code.push("numbers = scores");
      if (kind === "z")
        code.push(`numbers = numbers @ found.values["${name}.v"][${Math.floor(head / (site?.group ?? 1))}]`);
      return [...code, ""].join("\n");
    }
    if (kind === "scale") return [...code, "numbers = scores", ""].join("\n");
  }
  if (kind === "token")
    return [
      ...code,
      "from headlight.read.layer_walk import start",
      `numbers = start(run, "${header.stack}", ${header.query})[0]["token"]`,
      "",
    ].join("\n");
  if (kind === "embed")
    return [
      ...code,
      "from headlight.read.layer_walk import start",
      `numbers = start(run, "${header.stack}", ${header.query})[1]`,
      "",
    ].join("\n");
  code.push(`numbers = found.values["${value}"]${HEADS.includes(kind) ? `[${head}]  # head ${head}` : ""}`);
  const index = indexOf(on, cell);
  if (index) code.push(`print(terms(found, "${value}", ${index}))  # where this number came from`);
  return [...code, ""].join("\n");
}

/** @param {import("./shown.js").Shown} on @param {[number, number]} [cell] */
function indexOf({ step, head, header }, cell) {
  if (!cell || cell[1] < 0) return "";
  if (step.kind === "mix") return cell[0] >= header.chosen.length ? `(${cell[1]},)` : "";
  if (["wo", "down", "up", "gate", "add", "router"].includes(step.kind)) return `(${cell[1]},)`;
  return step.kind === "z" ? `(${head}, ${cell[1]})` : "";
}
