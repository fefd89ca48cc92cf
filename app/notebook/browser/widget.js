// What a notebook with a kernel has below its page: a box for another text, and what passes between the page and Python.
//
// The page gets a port, by which it tells what is chosen, and is told choices and other runs. Nothing here has an id, and the box
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
  const box = document.createElement("div");
  const status = boxed(model, box);
  el.append(box);

  /** @type {Map<HTMLIFrameElement, {port: MessagePort, shown: string, isBehind: boolean}>} what each page shows */
  const pages = new Map();
  let isWaiting = false;

  const tell = () => {
    isWaiting = false;
    const chosen = textsOf(model);
    const now = JSON.stringify(chosen);
    for (const page of pages.values()) {
      if (now === page.shown && !page.isBehind) continue;
      page.port.postMessage(page.isBehind ? { picture: bytesOf(model.get("picture")), chosen } : { chosen });
      Object.assign(page, { shown: now, isBehind: false });
    }
  };
  // Of several changes at once a page hears when all of them are there.
  const changed = () => {
    if (!isWaiting) queueMicrotask(tell);
    isWaiting = true;
  };
  const received = () => {
    for (const page of pages.values()) page.isBehind = true;
    changed();
  };
  /** @param {HTMLIFrameElement} frame */
  const connect = (frame) => {
    pages.get(frame)?.port.close();
    const { port1: port, port2 } = new MessageChannel();
    const page = { port, shown: "", isBehind: bytesOf(model.get("picture")).length > 0 };
    pages.set(frame, page);
    port.onmessage = ({ data: said }) => {
      if (!said.chosen) return;
      const place = placeOf(said.chosen.said);
      page.shown = JSON.stringify(textsOf({ get: (name) => /** @type {any} */ (place)[name] }));
      for (const [name, value] of Object.entries(place)) model.set(name, value);
      model.save_changes();
    };
    frame.contentWindow?.postMessage({ headlight: "connect" }, "*", [port2]);
    changed();
  };
  const frames = () =>
    /** @type {HTMLIFrameElement[]} */ ([...document.querySelectorAll("iframe[data-headlight]")]).filter(
      (frame) => frame.dataset.headlight === model.get("name"),
    );
  // A page that is there already hears at once, and one that is still being unpacked says when it is ready.
  /** @param {MessageEvent} event */
  const ready = ({ source, data }) => {
    if (data?.headlight !== "ready") return;
    const frame = frames().find(({ contentWindow }) => contentWindow === source);
    if (frame) connect(frame);
  };
  /** @param {any} said */
  const heard = (said) => {
    if (typeof said?.sentence === "string") status(said.sentence && `${said.sentence} ${model.get("words").kept}`);
  };
  addEventListener("message", ready);
  for (const name of PLACE) model.on(`change:${name}`, changed);
  model.on("change:picture", received);
  model.on("msg:custom", heard);
  for (const frame of frames()) connect(frame);
  return () => {
    removeEventListener("message", ready);
    for (const name of PLACE) model.off(`change:${name}`, changed);
    model.off("change:picture", received);
    model.off("msg:custom", heard);
    for (const { port } of pages.values()) port.close();
  };
}

/**
 * The box for another text, where the kernel can run one; returns what says a sentence below it.
 * @param {any} model @param {HTMLElement} box
 */
function boxed(model, box) {
  const words = model.get("words");
  const tree = box.attachShadow({ mode: "open" });
  const form = document.createElement("form");
  const field = Object.assign(document.createElement("input"), { value: model.get("text"), ariaLabel: words.text });
  const run = Object.assign(document.createElement("button"), { textContent: words.run });
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  const style = Object.assign(document.createElement("style"), { textContent: STYLE });
  form.append(field, run);
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
