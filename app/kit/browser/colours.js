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

// 256 colours along a ramp of five stops, as [r, g, b] and as CSS.
/** @param {string[]} ramp */
export function colours(ramp) {
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
