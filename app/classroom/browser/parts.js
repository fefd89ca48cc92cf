// What the teacher's page and the follower's have in common: a button, a code, the square, and the colours of a page.

import { button, el, fill } from "../../kit/browser/dom.js";
import { PALETTES, WORDS as words } from "./constants.js";

/** A code in two groups of four. @param {string} code */
export const spaced = (code) => `${code.slice(0, 4)} ${code.slice(4)}`;

/** How wide a text in bold is at most, in its own size: a code of W and M needs a third more than others. @param {string} text */
export const widest = (text) =>
  [...text].reduce(
    (all, sign) => all + (/[MW]/.test(sign) ? 0.86 : /[DGHNQ]/.test(sign) ? 0.73 : sign === " " ? 0.26 : 0.66),
    0,
  );

/** @param {import("./types.js").Taught} taught */
export function square(taught) {
  const image = el("img", "square");
  image.src = `data:image/svg+xml,${encodeURIComponent(taught.square)}`;
  image.alt = fill(words.square_alt, { link: taught.link });
  return image;
}

// Large type, for a room that looks at a wall
export const projecting = () =>
  button(words.project, "quiet", () => window.headlight.settings.set("projector", "true"), words.project_help);

/** The colours of a page as variables of its style. @param {HTMLElement} node @param {Record<string, any>} palette */
export function paint(node, palette) {
  for (const [name, value] of Object.entries(palette))
    if (typeof value === "string") node.style.setProperty(`--${name}`, value);
  node.style.setProperty("--low", palette.ramp[0]);
  node.style.setProperty("--bar", palette.ramp[3]);
  node.style.colorScheme = palette === PALETTES.dark ? "dark" : "light";
}
