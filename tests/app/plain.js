// A host of rooms for tests: it asks the product's route for the message of a link, mounts the room, and writes the address itself.
// Streamlit is nowhere. What the page has of it are the names by which the product and its tests find the room and its sentences.

/** @typedef {{room: string, root: HTMLElement, message: Uint8Array, mount: any, Room: any, host: any, chosen: any}} Shown */

/** @type {Shown | null} */
let shown = null;
const PATIENCE = 20_000; // ms, as tests/app/browsing.py has it
let stamp = 0; // of the last message: a link decides over what is chosen
const app = document.querySelector('[data-testid="stApp"]');
const sentences = document.querySelector(".st-key-sentences");
const place = document.querySelector("#place");

const state = {
  opened: "", // the name of what was opened last, and its address
  touched: false, // whether somebody has done something since the room was opened
  asked: [], // what the room told beside what is chosen: [name, value]
  open,
  read,
};
window.plain = state;
for (const name of ["pointerdown", "keydown", "input", "change", "wheel", "popstate"])
  addEventListener(name, () => (state.touched = true), { capture: true, passive: true });

const scheme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
function paint() {
  document.documentElement.dataset.scheme = scheme();
  if (shown) shown.mount(shown.root, shown.Room, shown.message, shown.host); // as Streamlit does with the same data
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
paint();

// Without the host that is there: history.js adds what is of the page to an address, and here the link says all of it.
function write(url) {
  History.prototype.replaceState.call(history, { ...history.state }, "", url);
  dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
}

// A link, as ?view=<room>&…: its room in a shadow root, or in the document. `isWhole`: until all of its picture is there.
async function open(link, isInDocument, name, isWhole) {
  leave();
  write(link);
  await show(link, isInDocument);
  state.touched = false;
  if (!isWhole) return;
  await settled();
  state.opened = `${name} ${location.href}`;
}

// Another link for the room that is there, as one that was pasted, or another run: the room gets its next message.
async function read(link) {
  write(link);
  await show(link, shown.root.getRootNode() === document);
  await settled();
}

// `reported` is the number of the last choice that the link says; a link that decides over what is chosen says none.
async function show(link, isInDocument, reported = 0) {
  app.dataset.testScriptState = "running";
  const said = new URLSearchParams(new URL(link, document.baseURI).search);
  const room = said.get("view");
  said.delete("view");
  const { Room, mount, unmount, pack, unpack } = await modules(room);
  const answer = await fetch(new URL(`headlight/room/${room}?${said}`, document.baseURI), { headers });
  if (answer.ok) {
    const [header, body] = unpack(new Uint8Array(await answer.arrayBuffer()));
    if (!reported) stamp += 1;
    Object.assign(header.chosen, { stamp, reported });
    tell(header.notes);
    const message = pack(header, new Uint8Array(body));
    const root = shown?.room === room ? shown.root : made(room, isInDocument);
    shown = { room, root, message, mount, unmount, Room, host, chosen: header.chosen };
    put(header.chosen.values, header.link ?? {}, header.chosen.ruled, false);
    mount(root, Room, message, host);
  } else tell([await answer.text()]);
  app.dataset.testScriptState = "notRunning";
}

// Until all of the picture is there, in its own type, and laid out: what looks at sizes hears of new ones behind one frame.
async function settled() {
  const { root } = shown ?? {};
  const isThere = () => !root || (root.dataset.painted && !root.dataset.underway);
  const until = performance.now() + PATIENCE;
  while (!isThere()) {
    if (performance.now() > until) throw new Error(`never drawn: ${JSON.stringify(root.dataset)}`);
    await new Promise((done) => setTimeout(done, 10));
  }
  await document.fonts.ready;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}

const known = {}; // the modules of each room
const headers = { "Accept-Language": document.documentElement.lang };
const host = {
  choose,
  tell: (name, value) => state.asked.push([name, value]),
  trigger: (name, value) => state.asked.push([name, value]),
};

async function modules(room) {
  return (known[room] ??= await imported(room));
}

async function imported(room) {
  const found = await fetch(new URL(`plain/modules/${room}`, document.baseURI), { headers });
  const { entry, mount, messages } = await found.json();
  const [one, ...others] = await Promise.all(
    [entry, mount, messages].map((name) => import(new URL(`headlight/m/${name}`, document.baseURI).href)),
  );
  return Object.assign({ Room: one.default }, ...others);
}

function tell(notes) {
  sentences.replaceChildren(...notes.map((note) => Object.assign(document.createElement("p"), { textContent: note })));
}

function made(room, isInDocument) {
  const box = document.createElement("div");
  place.replaceChildren(box);
  const root = document.createElement("div");
  root.className = `hl ${room}`;
  (isInDocument ? box : box.attachShadow({ mode: "open" })).append(root);
  return root;
}

function leave() {
  if (!shown) return;
  place.replaceChildren();
  shown.unmount(shown.root);
  shown = null;
}

const HEAD = ["site", "layer", "head"]; // are one choice
function choose({ said, number }) {
  if (!shown) return;
  const { chosen, root } = shown;
  const changed = Object.keys(said).filter((name) => said[name] !== chosen.values[name]);
  const hand = changed.some((name) => HEAD.includes(name)) ? [...changed, ...HEAD] : changed;
  const ruled = chosen.ruled.filter((name) => !hand.includes(name));
  Object.assign(chosen, { values: said, ruled });
  put(said, {}, ruled, true);
  tell([]); // they were about a link
  if (chosen.remade.some((name) => changed.includes(name))) void show(location.href, root.getRootNode() === document, number);
}

// The address says all that is chosen, and the run.
function put(values, link, ruled, isStep) {
  const url = new URL(location.href);
  for (const [name, text] of Object.entries({ ...link, ...values })) {
    if (text === "" && shown.chosen.silent.includes(name)) url.searchParams.delete(name);
    else url.searchParams.set(name, text);
  }
  if (ruled.length) url.searchParams.set("rule", [...ruled].sort().join());
  else url.searchParams.delete("rule");
  url.searchParams.delete("was");
  history[isStep ? "pushState" : "replaceState"](history.state, "", url);
}

addEventListener("popstate", ({ isTrusted }) => isTrusted && void read(location.href));
if (new URLSearchParams(location.search).has("view")) await open(location.href, false, "", false);
else app.dataset.testScriptState = "notRunning";
