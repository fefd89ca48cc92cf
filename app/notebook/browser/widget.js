// The cell of a notebook with a kernel: the page in a frame, and around it what passes between that and Python.
//
// The page asks for a port, by which it tells what is chosen, and is told choices and other runs. Nothing here has an id, and the box
// has a tree of its own, so that no cell's style or state is another's.

const PLACE = ["site", "layer", "head", "query"];
const STYLE = `
form { display: flex; gap: 0.5rem; align-items: center; margin: 0 0 0.4rem; font: inherit; }
input { flex: 1; min-width: 8rem; font: inherit; padding: 0.3rem 0.5rem; }
button { font: inherit; padding: 0.3rem 0.8rem; }
p { margin: 0 0 0.4rem; }
p:empty { display: none; }
`;

/**
 * Bytes as hosts give them: a DataView, an ArrayBuffer, an array of numbers, or base64 of them.
 * @param {unknown} given @returns {Uint8Array}
 */
export function bytesOf(given) {
  if (given instanceof ArrayBuffer) return new Uint8Array(given);
  if (ArrayBuffer.isView(given)) return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
  if (Array.isArray(given)) return Uint8Array.from(given);
  if (typeof given === "string") return Uint8Array.from(atob(given), (letter) => letter.charCodeAt(0));
  return new Uint8Array(0);
}

/** The place that a page tells, as its traits are. @param {Record<string, string>} said */
export const placeOf = ({ site, layer, head, query }) => ({
  site,
  layer: Number(layer),
  head: Number(head),
  query: /^[0-9]+$/.test(query) ? Number(query) : null,
});

/** The same from the traits, as a page is told it. @param {{get(name: string): any}} model @returns {Record<string, string>} */
export const textsOf = (model) => Object.fromEntries(PLACE.map((name) => [name, String(model.get(name) ?? "none")]));

/** @param {{model: any, el: HTMLElement}} given */
function render({ model, el }) {
  const { attributes, words } = model.get("frame");
  const frame = document.createElement("iframe");
  for (const [name, value] of Object.entries(attributes)) frame.setAttribute(name, String(value));
  frame.srcdoc = model.get("page");
  const box = document.createElement("div");
  const status = boxed(model, box, words);
  el.append(box, frame);

  /** @type {MessagePort | null} */
  let port = null;
  let shown = ""; // the place on the page
  let isOther = bytesOf(model.get("picture")).length > 0; // whether the page has another run than the model
  let isWaiting = false;

  const tell = () => {
    isWaiting = false;
    const chosen = textsOf(model);
    const now = JSON.stringify(chosen);
    if (!port || (now === shown && !isOther)) return;
    port.postMessage(isOther ? { picture: bytesOf(model.get("picture")), chosen } : { chosen });
    shown = now;
    isOther = false;
  };
  // Of several changes at once the page hears when all of them are there.
  const changed = () => {
    if (!isWaiting) queueMicrotask(tell);
    isWaiting = true;
  };
  const received = () => {
    isOther = true;
    changed();
  };
  /** @param {MessageEvent} event */
  const connect = ({ source, data }) => {
    if (source !== frame.contentWindow || data?.headlight !== "ready") return;
    const channel = new MessageChannel();
    port = channel.port1;
    port.onmessage = ({ data: said }) => {
      if (!said.chosen) return;
      const place = placeOf(said.chosen.said);
      for (const [name, value] of Object.entries(place)) model.set(name, value);
      shown = JSON.stringify(textsOf(model));
      model.save_changes();
    };
    frame.contentWindow?.postMessage({ headlight: "connect" }, "*", [channel.port2]);
    shown = "";
    changed();
  };
  /** @param {any} said */
  const heard = (said) => {
    if (typeof said?.sentence === "string") status(said.sentence && `${said.sentence} ${words.kept}`);
  };
  addEventListener("message", connect);
  for (const name of PLACE) model.on(`change:${name}`, changed);
  model.on("change:picture", received);
  model.on("msg:custom", heard);
  return () => {
    removeEventListener("message", connect);
    for (const name of PLACE) model.off(`change:${name}`, changed);
    model.off("change:picture", received);
    model.off("msg:custom", heard);
    port?.close();
  };
}

/**
 * The box for another text, where the kernel can run one; returns what says a sentence below it.
 * @param {any} model @param {HTMLElement} box @param {Record<string, string>} words
 */
function boxed(model, box, words) {
  const tree = box.attachShadow({ mode: "open" });
  const form = document.createElement("form");
  const field = Object.assign(document.createElement("input"), { value: model.get("text"), ariaLabel: words.text });
  const run = Object.assign(document.createElement("button"), { textContent: words.run });
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  const style = Object.assign(document.createElement("style"), { textContent: STYLE });
  form.append(field, run);
  form.hidden = !model.get("can_run");
  tree.append(style, ...(model.get("can_run") ? [form, status] : []));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    status.textContent = words.running;
    model.send({ run: field.value });
  });
  for (const name of ["keydown", "keyup", "keypress"]) form.addEventListener(name, (event) => event.stopPropagation()); // keys of the notebook
  return (/** @type {string} */ text) => {
    status.textContent = text;
  };
}

export default { render };
