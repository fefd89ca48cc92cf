// A still picture of what the room beside the rail shows, for the page of a finished lesson: its largest canvas, where it has one.

const SMALLEST = 60 * 60; // pixels
const LARGEST = 1200; // pixels across

/** @returns {string | undefined} a PNG as a data address */
export function pictureOf() {
  const found = canvases(document.querySelector(".st-key-lessons_view"))
    .filter((canvas) => canvas.offsetParent !== null && canvas.width * canvas.height > SMALLEST)
    .sort((a, b) => b.width * b.height - a.width * a.height)[0];
  if (!found) return undefined;
  const part = Math.min(1, LARGEST / found.width);
  const small = document.createElement("canvas");
  Object.assign(small, { width: Math.round(found.width * part), height: Math.round(found.height * part) });
  const ink = small.getContext("2d");
  if (!ink) return undefined;
  for (const layer of [found, ...canvases(found.parentElement).filter((one) => one !== found && one.width === found.width)]) ink.drawImage(layer, 0, 0, small.width, small.height);
  return small.toDataURL("image/png");
}

// Those below an element, also in the components that stand there
/** @param {ParentNode | null} from @returns {HTMLCanvasElement[]} */
function canvases(from) {
  if (!from) return [];
  const own = /** @type {HTMLCanvasElement[]} */ ([...from.querySelectorAll("canvas")]);
  const inner = [...from.querySelectorAll("*")].flatMap(({ shadowRoot }) => canvases(shadowRoot));
  return [...own, ...inner];
}
