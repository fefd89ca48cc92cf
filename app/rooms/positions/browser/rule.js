// ALiBi and T5's buckets as a rule over distance: the model's own numbers where it has them, and else the rule alone.

import { add, el, fill, fixed, minus } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { ticks, rising } from "../../../kit/browser/picture/scale.js";
import { draw, write } from "../../../kit/browser/picture/svg.js";
import { picture } from "./draw.js";
import { across, below, curve } from "../../../kit/browser/picture/axes.js";

/** @typedef {import("./types.js").Shown} Shown */

/**
 * @param {Shown} view
 * @param {HTMLElement} host
 * @param {import("./types.js").Stack | null} own
 * @param {import("./types.js").Known["rules"]} rules
 * @param {string} kind
 */
export function rule(view, host, own, rules, kind) {
  const bias = own?.bias ?? (kind === "alibi" ? rules.bias : null);
  const buckets = own?.buckets ?? (kind === "relative" ? rules.buckets : null);
  const two = bias && buckets ? 2 : 1; // pictures; the first leaves half of a projected page's height
  if (bias) lines(view, host, bias, kind, own !== null, two);
  if (buckets) steps(view, host, buckets);
}

/** @param {Shown} view @param {HTMLElement} host @param {number} reach @param {number} low @param {number} high @param {string} label @param {number} [of] */
function axes(view, host, reach, low, high, label, of = 1) {
  const { unit } = view;
  const room = view.below(/** @type {Element} */ (host.lastElementChild)) / of - 64 * unit;
  const [width, height, left] = [
    Math.min(view.width, 1180 * unit),
    Math.max(60 * unit, Math.min(300 * unit, room)),
    54 * unit,
  ];
  const right = view.narrow ? 20 * unit : 150 * unit;
  const x = (/** @type {number} */ distance) => left + ((distance + reach) * (width - left - right)) / (2 * reach);
  const y = (/** @type {number} */ value) => 16 * unit + height * (1 - (value - low) / (high - low || 1));
  const svg = picture(host, width, height + 60 * unit, label);
  across(svg, ticks(low, high), { y, from: left, to: width - right, size: 13 * unit });
  below(svg, [-reach, -reach / 2, 0, reach / 2, reach], {
    x,
    y: height + 40 * unit,
    size: 13 * unit,
    say: (value) => (value ? minus(value) : words.key_query),
  });
  return { svg, x, y, width, right };
}

// A line for each head
/** @param {Shown} view @param {HTMLElement} host @param {number[][]} bias @param {string} kind @param {boolean} isOwn @param {number} of */
function lines(view, host, bias, kind, isOwn, of) {
  const { unit } = view;
  const reach = (bias[0].length - 1) / 2;
  const title = add(host, "h2");
  title.append(el("b", "", words.rule), ` ${kind === "alibi" ? words.rule_alibi : words.rule_relative}`);
  const every = bias.flat();
  const [low, high] = [Math.min(...every, 0), Math.max(...every, 0)];
  const label = fill(words.rule_label, {
    n: bias.length,
    low: fixed(low),
    high: fixed(high),
    whose: isOwn ? view.header.model : words.rule_nobody,
  });
  const { svg, x, y, width, right } = axes(view, host, reach, low, high, label, of);
  let below = -Infinity;
  bias.forEach((row, head) => {
    const { fill: colour } = rising(view.palette)(0.95 - (0.6 * head) / bias.length);
    /** @type {[x: number, y: number][]} */
    const points = row.map((value, i) => [x(i - reach), y(value)]);
    curve(svg, points, colour, 2.2, head % 2 ? "6 3" : undefined);
    const at = y(row[row.length - 1]);
    if (view.narrow || Math.abs(at - below) < 14 * unit) return;
    below = at;
    write(
      svg,
      width - right + 8 * unit,
      at + 5 * unit,
      kind === "alibi"
        ? fill(words.slope, { head, slope: Math.round(-reach / row[row.length - 1]) })
        : fill(words.head_n, { head }),
      { class: "mt", size: 13 * unit },
    );
  });
}

// A mark for the bucket of each distance
/** @param {Shown} view @param {HTMLElement} host @param {number[]} buckets */
function steps(view, host, buckets) {
  const { unit } = view;
  const reach = (buckets.length - 1) / 2;
  const title = add(host, "h2");
  title.append(el("b", "", words.buckets), ` ${words.buckets_note}`);
  const most = Math.max(...buckets);
  const { svg, x, y } = axes(view, host, reach, 0, most, fill(words.buckets_label, { n: most + 1, reach }));
  buckets.forEach((bucket, i) =>
    draw(svg, "rect", {
      x: x(i - reach) - 4 * unit,
      y: y(bucket) - 2.5 * unit,
      width: 8 * unit,
      height: 5 * unit,
      rx: 1,
      fill: "var(--bar)",
    }),
  );
}
