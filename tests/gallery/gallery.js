// The page of the gallery: every story on one page, or the one that ?story= names, light or dark, projected or not.

import { PALETTES } from "../../app/attention/browser/constants.js";
import { paletteOf, rampsOf } from "../../app/kit/browser/colours.js";
import { add, el } from "../../app/kit/browser/dom.js";

/** @typedef {import("./story.js").Story} Story */

const NARROW = 640; // pixels of a window, as the style sheets have it
const asked = new URLSearchParams(location.search);
const theme = asked.get("theme") === "dark" ? "dark" : "light";
const isProjected = asked.has("projector");
const main = /** @type {HTMLElement} */ (document.querySelector("main"));

window.headlight = {
  settings: {
    names: [],
    get: (name) => asked.get(name),
    set: () => {},
    watch: () => () => {},
  },
};

/** @param {Record<string, string>} more */
const link = (more) => `?${new URLSearchParams({ ...Object.fromEntries(asked), ...more })}`;

/** @param {string} name @param {Story} story */
async function show(name, { title, style, root: kind = "hl", width, mount }) {
  const heading = add(main, "h2");
  const anchor = add(heading, "a");
  Object.assign(anchor, { href: link({ story: name }), textContent: `${name}: ${title}` });
  anchor.style.color = "inherit";
  const box = add(main, "div", "story");
  box.id = name;
  if (width) box.style.maxWidth = width;
  const shadow = add(box, "div").attachShadow({ mode: "open" });
  const root = el("div", kind);
  shadow.append(el("style", "", style), root);
  const palette = paletteOf(root, PALETTES);
  rampsOf(root, palette);
  if (isProjected) root.classList.add("projector", "projected");
  const isNarrow = innerWidth <= NARROW;
  if (isNarrow) root.classList.add("narrow");
  await mount(root, { palette, theme, isProjected, isNarrow });
  for (const part of [heading, box]) whole(part);
}

// As high as whole pixels: the picture of a story is the same whatever stands above it
/** @param {HTMLElement} part */
function whole(part) {
  part.style.margin = "0 0 10px";
  part.style.height = `${Math.ceil(part.getBoundingClientRect().height - 0.01)}px`;
}

function page() {
  const { style, dataset } = document.documentElement;
  style.colorScheme = theme;
  style.setProperty("--st-background-color", PALETTES[theme].background);
  document.body.style.background = PALETTES[theme].background;
  document.body.style.color = PALETTES[theme].ink;
  if (isProjected) dataset.projector = "true";
}

// For whoever looks through it: how else it can be seen
function ways() {
  const nav = add(main, "nav");
  /** @type {[text: string, address: string][]} */
  const links = [["light", "?"], ["dark", "?theme=dark"], ["projected", "?projector=true"], ["phone", "?phone"]];
  for (const [text, href] of links) Object.assign(add(nav, "a"), { textContent: text, href });
  add(nav, "span").textContent = "forced colours: emulate the media feature forced-colors in the browser's developer tools";
}

page();
if (asked.has("phone")) {
  ways();
  Object.assign(add(main, "iframe"), { src: "?", title: "As wide as a phone" });
} else {
  /** @type {string[]} */
  const names = await (await fetch("/stories")).json();
  if (!asked.has("bare")) ways();
  const failed = [];
  for (const name of names.filter((one) => !asked.has("story") || one === asked.get("story"))) {
    try {
      await show(name, (await import(`./stories/${name}.js`)).default);
    } catch (error) {
      failed.push(`${name}: ${/** @type {Error} */ (error).stack}`);
    }
  }
  await document.fonts.ready;
  document.documentElement.dataset.ready = names.join();
  if (failed.length) throw new Error(failed.join("\n"));
}
