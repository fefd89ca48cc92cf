// Colours as numbers, and canvases that are sharp on any display.

/** @param {string} hex */
export const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
// Relative luminance and contrast as WCAG 2.2 defines them.
/** @param {number[]} colour */
export function luminance(colour) {
  const [r, g, b] = colour.map((c) => (c <= 10 ? c / 3295 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
/** @param {number} a @param {number} b */
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);

/** @typedef {{rgb: number[][], css: string[], ink: string[], packed: Uint32Array}} Colours */
/** @type {WeakMap<string[], Colours>} */
const MADE = new WeakMap(); // of each ramp of the palettes

// 256 colours along a ramp of five stops, as [r, g, b] and as CSS. No one changes them: the next to ask gets the same.
/** @param {string[]} ramp @returns {Colours} */
export function colours(ramp) {
  const known = MADE.get(ramp) ?? worked(ramp);
  MADE.set(ramp, known);
  return known;
}

/** @param {string[]} ramp @returns {Colours} */
function worked(ramp) {
  const stops = ramp.map(rgb);
  const table = Array.from({ length: 256 }, (_, i) => {
    const x = (i / 255) * (stops.length - 1);
    const at = Math.min(stops.length - 2, Math.floor(x));
    return stops[at].map((a, c) => Math.round(a + (stops[at + 1][c] - a) * (x - at)));
  });
  return {
    rgb: table,
    css: table.map((c) => `rgb(${c})`),
    ink: table.map((c) => (contrast(luminance(c), 0) > contrast(luminance(c), 1) ? "#000000" : "#ffffff")),
    packed: Uint32Array.from(table, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0),
  };
}

// Light or dark, as the page is: Streamlit gives every component the colour of its background
/** @param {Element} node @returns {"light" | "dark"} */
export function themeOf(node) {
  const page = getComputedStyle(node).getPropertyValue("--st-background-color").trim();
  return /^#[0-9a-f]{6}$/i.test(page) && luminance(rgb(page)) < 0.2 ? "dark" : "light";
}

// The palette of the page; each of its colours becomes a variable of this element's style, and so do its ramps.
/** @template {object} Palette @param {HTMLElement} node @param {Record<"light" | "dark", Palette>} palettes @returns {Palette} */
export function paletteOf(node, palettes) {
  const theme = themeOf(node);
  for (const [name, colour] of Object.entries(palettes[theme]))
    if (typeof colour === "string") node.style.setProperty(`--${name}`, colour);
  if ("ramp" in palettes[theme] && "ahead" in palettes[theme])
    rampsOf(node, /** @type {{ramp: string[], ahead: string[]}} */ (palettes[theme]));
  node.dataset.theme = theme;
  return palettes[theme];
}

// The two ramps of a palette, as colours to draw with and as variables of this element's style: a scale each, and a tone for bars
/** @param {HTMLElement} node @param {{ramp: string[], ahead: string[]}} palette */
export function rampsOf({ style }, { ramp, ahead }) {
  style.setProperty("--ramp", `linear-gradient(90deg, ${ramp.join(", ")})`);
  style.setProperty("--ahead", `linear-gradient(270deg, ${ahead.join(", ")})`);
  style.setProperty("--bar", ramp[3]);
  style.setProperty("--bar-ahead", ahead[3]);
  return { ramp: colours(ramp), ahead: colours(ahead) };
}

// A canvas as large as its box on the screen, sharp on any display; returns its context in CSS pixels.
/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function fit(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const w = Math.round(width * ratio);
  const h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
