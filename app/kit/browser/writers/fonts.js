// The fonts that every reader of PDF has, as far as a drawing needs them: how wide their letters are (Adobe's metrics, in thousandths of
// the size), and at which code a sign stands.

// Codes 32 to 255 of WinAnsi
// biome-ignore format: a table
const HELVETICA = [
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278,
  584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944,
  667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
  278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584, 350, 556, 350, 222, 556, 333, 1000, 556, 556, 333, 1000, 667, 333, 1000, 350, 611, 350,
  350, 222, 222, 333, 333, 350, 556, 1000, 333, 1000, 500, 333, 944, 350, 500, 667, 278, 333, 556, 556, 556, 556, 260, 556, 333, 737, 370, 556,
  584, 333, 737, 333, 400, 584, 333, 333, 333, 556, 537, 278, 333, 333, 365, 556, 834, 834, 834, 611, 667, 667, 667, 667, 667, 667, 1000, 722,
  667, 667, 667, 667, 278, 278, 278, 278, 722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722, 667, 667, 611, 556, 556, 556, 556,
  556, 556, 889, 500, 556, 556, 556, 556, 278, 278, 278, 278, 556, 556, 556, 556, 556, 556, 556, 584, 611, 556, 556, 556, 556, 500, 556, 500,
];
// biome-ignore format: a table
const BOLD = [
  278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333,
  584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944,
  667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556,
  333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584, 350, 556, 350, 278, 556, 500, 1000, 556, 556, 333, 1000, 667, 333, 1000, 350, 611, 350,
  350, 278, 278, 500, 500, 350, 556, 1000, 333, 1000, 556, 333, 944, 350, 500, 667, 278, 333, 556, 556, 556, 556, 280, 556, 333, 737, 370, 556,
  584, 333, 737, 333, 400, 584, 333, 333, 333, 611, 556, 278, 333, 333, 365, 556, 834, 834, 834, 611, 722, 722, 722, 722, 722, 722, 1000, 722,
  667, 667, 667, 667, 278, 278, 278, 278, 722, 722, 778, 778, 778, 778, 778, 584, 778, 722, 722, 722, 722, 667, 667, 611, 556, 556, 556, 556,
  556, 556, 889, 556, 556, 556, 556, 556, 278, 278, 278, 278, 611, 611, 611, 611, 611, 611, 611, 584, 611, 611, 611, 611, 611, 556, 611, 556,
];
const MONO = 600; // every letter of Courier
// WinAnsi where it is not Latin-1, from code 128 on; a space where it has nothing
const UPPER = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ";

// Signs of Symbol and of Zapf Dingbats: the signs, their codes, their widths
// biome-ignore format: a table
const SIGNS = {
  Symbol: [
    "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρςστυφχψωϑϒϕϖ′″⁄ℑ℘ℜΩℵ←↑→↓↔↵⇐⇑⇒⇓⇔∀∂∃∅∆∇∈∉∋∏∑−∗√∝∞∠∧∨∩∪∫∴∼≅≈≠≡≤≥⊂⊃⊄⊆⊇⊕⊗⊥⋅⌠⌡〈〉◊♠♣♥♦",
    [65, 66, 71, 68, 69, 90, 72, 81, 73, 75, 76, 77, 78, 88, 79, 80, 82, 83, 84, 85, 70, 67, 89, 87, 97, 98, 103, 100,
    101, 122, 104, 113, 105, 107, 108, 109, 110, 120, 111, 112, 114, 86, 115, 116, 117, 102, 99, 121, 119, 74, 161, 106, 118, 162, 178, 164,
    193, 195, 194, 87, 192, 172, 173, 174, 175, 171, 191, 220, 221, 222, 223, 219, 34, 182, 36, 198, 68, 209, 206, 207, 39, 213, 229, 45,
    42, 214, 181, 165, 208, 217, 218, 199, 200, 242, 92, 126, 64, 187, 185, 186, 163, 179, 204, 201, 203, 205, 202, 197, 196, 94, 215, 243,
    245, 225, 241, 224, 170, 167, 169, 168],
    [722, 667, 603, 612, 611, 611, 722, 741, 333, 722, 686, 889, 722, 645, 722, 768, 556, 592, 611, 690, 763, 722, 795, 768, 631, 549, 411, 494,
    439, 494, 603, 521, 329, 549, 549, 576, 521, 493, 549, 549, 549, 439, 603, 439, 576, 521, 549, 686, 686, 631, 620, 603, 713, 247, 411, 167,
    686, 987, 795, 768, 823, 987, 603, 987, 603, 1042, 658, 987, 603, 987, 603, 1042, 713, 494, 549, 823, 612, 713, 713, 713, 439, 823, 713, 549,
    500, 549, 713, 713, 768, 603, 603, 768, 768, 274, 863, 549, 549, 549, 549, 549, 549, 549, 713, 713, 713, 713, 713, 768, 768, 658, 250, 686,
    686, 329, 329, 494, 753, 753, 753, 753],
  ],
  ZapfDingbats: [
    "■▲▼◆●★✓✔✕✗",
    [110, 115, 116, 117, 108, 72, 51, 52, 53, 55],
    [761, 892, 892, 788, 791, 816, 755, 846, 762, 571],
  ],
};

/** @typedef {"Helvetica" | "Helvetica-Bold" | "Helvetica-Oblique" | "Helvetica-BoldOblique" | "Courier" | "Courier-Bold" | "Symbol" | "ZapfDingbats"} Font */
/** A stretch of one font: its codes, and how wide it is at size 1. No font: a reader of PDF has none for this text. @typedef {{text: string, font: Font | null, codes: number[], width: number}} Piece */

/** @type {Map<string, [font: Font, code: number, width: number]>} */
const SIGN = new Map(
  Object.entries(SIGNS).flatMap(([font, [signs, codes, widths]]) =>
    Array.from(/** @type {string} */ (signs), (sign, i) => [
      sign,
      /** @type {[Font, number, number]} */ ([font, Number(codes[i]), Number(widths[i])]),
    ]),
  ),
);

/** The code of a letter in WinAnsi; -1 where it has none. @param {string} letter */
export function winAnsi(letter) {
  const code = /** @type {number} */ (letter.codePointAt(0));
  if ((code >= 32 && code < 127) || (code >= 160 && code < 256)) return code;
  const at = letter === " " ? -1 : UPPER.indexOf(letter);
  return at < 0 ? -1 : 128 + at;
}

/** @param {{bold?: boolean, italic?: boolean, mono?: boolean}} style @returns {Font} */
const fontOf = ({ bold, italic, mono }) =>
  mono
    ? bold
      ? "Courier-Bold"
      : "Courier"
    : /** @type {Font} */ (bold || italic ? `Helvetica-${bold ? "Bold" : ""}${italic ? "Oblique" : ""}` : "Helvetica");

/**
 * A text by the fonts that have its letters. Where writing from right to left or joined letters are in it, it stays in one piece: only who draws it whole draws it right.
 * @param {string} text @param {{bold?: boolean, italic?: boolean, mono?: boolean}} style @returns {Piece[]}
 */
export function pieces(text, style) {
  if (JOINED.test(text)) return [{ text, font: null, codes: [], width: 0 }];
  const own = fontOf(style);
  const widths = style.bold ? BOLD : HELVETICA;
  /** @type {Piece[]} */
  const found = [];
  for (const { segment } of CLUSTERS.segment(text)) {
    const isOne = segment.length === /** @type {string} */ (String.fromCodePoint(segment.codePointAt(0) ?? 32)).length;
    const letter = isOne && SPACES.test(segment) ? " " : segment;
    const code = isOne ? winAnsi(letter) : -1;
    const sign = isOne && code < 0 ? SIGN.get(letter) : undefined;
    const [font, at, wide] = sign ?? [code < 0 ? null : own, code, style.mono ? MONO : (widths[code - 32] ?? 0)];
    const last = found.at(-1);
    if (last && font && last.font === font) {
      last.text += segment;
      last.codes.push(at);
      last.width += wide / 1000;
    } else found.push({ text: segment, font, codes: font ? [at] : [], width: font ? wide / 1000 : 0 });
  }
  return found;
}

// From right to left, or with letters whose form depends on their neighbours
const JOINED =
  /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Gujarati}\p{Script=Gurmukhi}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Script=Mongolian}]/u;
const SPACES = /^[\t\n\u00a0\u2000-\u200a\u202f\u205f\u3000]$/;
const CLUSTERS = new Intl.Segmenter("en", { granularity: "grapheme" });

/** The signs of Symbol or of Zapf Dingbats by their codes, for those who copy the text. @param {"Symbol" | "ZapfDingbats"} font @returns {[code: number, text: string][]} */
export const meanings = (font) => [...SIGN].flatMap(([sign, [of, code]]) => (of === font ? [[code, sign]] : []));
