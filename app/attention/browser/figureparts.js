// Common parts of every picture for taking away: title and fact on top, the scale of its colours, and its caption below.

import { WORDS as words } from "./constants.js";
import { fill, worded } from "../../kit/browser/dom.js";
import { HIDDEN } from "./lens.js";
import { text, widthOf, wrapped } from "../../kit/browser/scene.js";

/** @typedef {import("./types.js").View} View */
/** @typedef {import("../../kit/browser/types.js").Shape} Shape */
/** @typedef {import("../../kit/browser/types.js").TextPart} TextPart */
/** @typedef {import("../../kit/browser/types.js").Scene} Scene */
/** @typedef {[text: string, name: string][]} Fact */
/**
 * What is on the screen, kept as it was when a file of it was asked for: also its parts, and what to draw on what ground.
 * @typedef {View & {
 *   map: import("./map.js").HeadMap, overview: import("./overview.js").Overview, lines: import("./tokenlines.js").TokenLines,
 *   fact: Fact, of: string, paper: boolean, link: string, message: [header: any, body: ArrayBuffer],
 * }} Still
 */
/** @typedef {{title: string, caption: string, fact: Fact, said: string[]}} About */
/** @typedef {{palette: import("./types.js").Palette, colour: import("./types.js").Colours, font: string}} Style */
export const MARGIN = 28; // px
export const SMALL = 12; // px of type
const TITLE = 20;
const FACT = 16;

// Title and fact on top; returns where they end.
/** @param {Shape[]} shapes @param {number} width @param {Style} style @param {About} about */
export function heading(shapes, width, style, about) {
  const { palette, font } = style;
  let y = MARGIN + TITLE / 2;
  for (const line of wrapped(about.title, width - 2 * MARGIN, TITLE, font, 650)) {
    shapes.push(text(MARGIN, y, [[line, palette.ink, 650]], TITLE));
    y += TITLE * 1.3;
  }
  y += (FACT - TITLE) / 2 + 4;
  for (const parts of coloured(about.fact, width - 2 * MARGIN, style)) {
    shapes.push(text(MARGIN, y, parts, FACT));
    y += FACT * 1.4;
  }
  return y + 4;
}

// The fact [[text, class]], query and key in their colours, in lines of at most `width`
/** @param {Fact} fact @param {number} width @param {Style} style */
function coloured(fact, width, { palette, font }) {
  /** @type {TextPart[][]} */
  const lines = [[]];
  let used = 0;
  for (const [string, name] of fact) {
    const strong = name !== "" && name !== "mute";
    const signs = { more: palette.ramp[3], less: palette.ahead[3] };
    const tone = { q: palette.query, k: palette.key, w: palette.proof, ...signs }[name] ?? palette.ink;
    for (const piece of string.split(/(?<= )/)) {
      const room = widthOf(piece.trimEnd(), FACT, font, strong ? 650 : 400);
      if (used && used + room > width) {
        lines.push([]);
        used = 0;
      }
      used += widthOf(piece, FACT, font, strong ? 650 : 400);
      const line = /** @type {TextPart[]} */ (lines.at(-1));
      const last = line.at(-1);
      if (last && last[1] === tone && last[2] === (strong ? 650 : 0)) last[0] += piece;
      else line.push([piece, tone, strong ? 650 : 0]);
    }
  }
  return lines;
}

// The scale of the colours, and what hatching means; returns where it ends.
/**
 * @param {Shape[]} shapes
 * @param {number} y
 * @param {number} width
 * @param {View} view
 * @param {import("./types.js").Lens} lens
 * @param {{masked: Uint8Array | null, top?: number}} tile
 * @param {Style} style
 */
export function legend(shapes, y, width, view, lens, tile, { palette, font }) {
  const scale = view.shading.scale;
  const { low, high } =
    scale === "row" ? { low: "0", high: words.per_row_top } : view.shading.ticks(view.shading.topOf(tile.top), 3);
  let x = MARGIN;
  /** @param {string} string @param {string} tone */
  const put = (string, tone) => {
    shapes.push(text(x, y, [[string, tone, 0]], SMALL));
    x += widthOf(string, SMALL, font) + 8;
  };
  put(
    `${worded(words.export_units, lens.unit)} (${{ linear: words.linear, log: words.log, row: words.per_row }[scale]})`,
    palette.ink,
  );
  put(low, palette.mute);
  shapes.push({ shape: "ramp", x, y: y - 6, w: 140, h: 12, stops: palette.ramp });
  shapes.push({ shape: "frame", x, y: y - 6, w: 140, h: 12, stroke: palette.line, width: 1 });
  x += 148;
  put(high, palette.mute);
  const codes = [...new Set(tile.masked ?? [])].filter(Boolean);
  if (!codes.length) return y;
  const why = codes
    .filter((code) => code !== HIDDEN)
    .map((code) => view.numbers.reason(code))
    .join(", ");
  const string = [why && fill(words.tip_masked, { reason: why }), codes.includes(HIDDEN) && words.export_hidden]
    .filter(Boolean)
    .join("; ");
  x += 16;
  if (x + 26 + widthOf(string, SMALL, font) > width - MARGIN) {
    x = MARGIN;
    y += SMALL * 1.8;
  }
  shapes.push({ shape: "hatch", x, y: y - 7, w: 20, h: 14 });
  shapes.push({ shape: "frame", x, y: y - 7, w: 20, h: 14, stroke: palette.line, width: 1 });
  x += 26;
  put(string, palette.ink);
  return y;
}

// Scale, caption and the height that all of it takes
/**
 * @param {Shape[]} shapes
 * @param {number} width
 * @param {number} bottom
 * @param {Style} style
 * @param {string[]} notes
 * @returns {Scene}
 */
export function finish(shapes, width, bottom, { palette, font }, notes) {
  let y = bottom + 24;
  for (const note of notes) {
    for (const line of wrapped(note, width - 2 * MARGIN, SMALL, font)) {
      shapes.push(text(MARGIN, y, [[line, palette.mute, 0]], SMALL));
      y += SMALL * 1.4;
    }
  }
  return {
    width: Math.ceil(width),
    height: Math.ceil(y + MARGIN - SMALL),
    background: palette.background,
    hatch: palette.hatch,
    font,
    shapes,
  };
}
