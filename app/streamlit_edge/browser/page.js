// What Streamlit draws around a component, as far as ours look at it: where the page stands, sliders, choices and Plotly's charts.

const MAIN = '[data-testid="stMain"]';
const BLOCK = '[data-testid="stMainBlockContainer"]';
const VALUE = "aria-valuetext"; // of a slider, and as its numbers are written on the page

// What grows and shrinks with all that is on the page
export const mainBlock = () => document.querySelector(BLOCK);

// Whether no script runs any more. Without it a page tells its height before its room is there.
export const isDrawn = () =>
  document.querySelector(`[data-testid="stApp"]`)?.getAttribute("data-test-script-state") === "notRunning";

// How far the page is scrolled. Without it a picture is sized as if it stood elsewhere.
export const scrolled = () => document.querySelector(MAIN)?.scrollTop ?? 0;

/**
 * The sliders below an element of this key whose own keys begin so: [the rest of its key but for the number, what it says]. Streamlit tells the server
 * when a slider is let go; this is where it stands while it is held. Without it the sentence above a chart follows late.
 * @param {string} key @param {string} prefix @returns {[string, string][]}
 */
export function sliders(key, prefix) {
  const name = new RegExp(`(?:^|\\s)st-key-${prefix}(\\w+)_\\d+`);
  return [...document.querySelectorAll(`.st-key-${key} [${VALUE}]`)].map((slider) => {
    const found = name.exec(slider.closest(`[class*=st-key-${prefix}]`)?.className ?? "");
    return [found?.[1] ?? "", slider.getAttribute(VALUE) ?? ""];
  });
}

/**
 * Have `observer` told when one of these sliders moves, or is made again elsewhere, as one is that a link or a text fills.
 * @param {MutationObserver} observer @param {Element | null} before what it watches already
 * @param {string} key @returns {Element | null} what it watches now
 */
export function watchSliders(observer, before, key) {
  const box = document.querySelector(`.st-key-${key}`);
  if (!box || box === before) return before;
  observer.disconnect();
  observer.observe(box, { subtree: true, childList: true, attributes: true, attributeFilter: [VALUE] });
  return box;
}

/**
 * To another of the choices that stand in a row. Without it a clicker does not turn the parts of a room.
 * @param {string} key how their key begins @param {number} by
 */
export function turn(key, by) {
  const choices = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(`[class*="st-key-${key}"] button`)]);
  const at = choices.findIndex((choice) => choice.getAttribute("aria-checked") === "true");
  choices[Math.max(0, Math.min(choices.length - 1, at + by))]?.click();
}

/** Plotly's chart in the element of this key. @param {string} key */
export const chartOf = (key) => document.querySelector(`.st-key-${key} .js-plotly-plot`);

// What of a chart only listens to the pointer, or is there for it
export const FOR_POINTERS = ".draglayer, .hoverlayer, .zoomlayer, .modebar-container, .legendtoggle, .scrollbar";

/** The layers of SVG that Plotly has drawn. Without them a chart cannot be saved. @param {Element | null} chart @returns {SVGElement[]} */
export const layersOf = (chart) => [
  .../** @type {NodeListOf<SVGElement>} */ (chart?.querySelectorAll(".svg-container > svg.main-svg") ?? []),
];

/**
 * What stands as text in the element of this key, once the script is done with the page; null until then. Without it a class hears
 * of a text that was refused only that there is no picture. @param {string} key
 */
export function texts(key) {
  if (!isDrawn()) return null;
  return [...document.querySelectorAll(`.st-key-${key} [data-testid="stText"]`)]
    .map(({ textContent }) => textContent?.trim() ?? "")
    .filter(Boolean);
}

/** What the address says. */
export const here = () => window.headlight.address?.read() ?? new URLSearchParams(location.search);

/**
 * Show what another address asks for, without loading the page: as the browser's own Back and Forward do, which Streamlit follows with
 * every widget. Without it a step of a lesson would have to know how each widget of each room is set.
 * @param {string} address @param {boolean} replace whether Back is not to lead here
 */
export const goTo = (address, replace) => window.headlight.address?.go(address, replace);
