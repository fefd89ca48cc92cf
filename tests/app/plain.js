// A host of rooms for tests: it asks the product's route for the message of a link, and mounts the room, which writes the address.
// Streamlit is nowhere. What the page has of it are the names by which the product and its tests find the room and its sentences.

/** @typedef {{room: string, root: HTMLElement, message: Uint8Array, mount: any, unmount: any, Room: any}} Shown */

/** @type {Shown | null} */
let shown = null;
const PATIENCE = 20_000; // ms, as tests/app/browsing.py has it
let arrived = ""; // the number of the last address that was gone to
let isRead = false; // whether an address is shown already that is just being written
const app = document.querySelector('[data-testid="stApp"]');
const sentences = document.querySelector(".st-key-sentences");
const place = document.querySelector("#place");

const state = {
  opened: "", // the name of what was opened last, and its address
  touched: false, // whether there was input since the room was opened
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
  if (shown) shown.mount(shown.root, shown.Room, shown.message, host); // as Streamlit does with the same data
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
paint();

// Without the room that is there: history.js adds what is of the page to an address, and here the link says all of it.
function write(url) {
  History.prototype.replaceState.call(history, { ...history.state }, "", url);
  isRead = true; // who writes it shows it
  dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
  isRead = false;
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

async function show(link, isInDocument) {
  app.dataset.testScriptState = "running";
  const said = new URLSearchParams(new URL(link, document.baseURI).search);
  const room = said.get("view");
  const { Room, mount, unmount, unpack } = await modules(room);
  const answer = await fetch(new URL(`headlight/room/${room}?${said}`, document.baseURI), { headers });
  noted(room);
  if (answer.ok) {
    const message = new Uint8Array(await answer.arrayBuffer());
    tell(unpack(message)[0].notes);
    const root = shown?.room === room ? shown.root : made(room, isInDocument);
    shown = { room, root, message, mount, unmount, Room };
    mount(root, Room, message, host);
  } else tell([await answer.text()]);
  app.dataset.testScriptState = "notRunning";
}

// As the server reports that it has shown the address of a step back (app/streamlit_edge/history.py)
function noted(view) {
  const said = JSON.stringify({ view, changes: {}, arrived });
  history.replaceState(history.state, "", `?${new URLSearchParams({ headlight: said })}`);
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
  choose: () => tell([]), // they were about a link
  message: async (room, link) => {
    const answer = await fetch(new URL(`headlight/room/${room}?${link}`, document.baseURI), { headers });
    return answer.ok ? new Uint8Array(await answer.arrayBuffer()) : null;
  },
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

// The event that history.js passes on to Streamlit, with the number that a script notes
addEventListener("popstate", () => {
  const link = new URL(location.href);
  arrived = link.searchParams.get("arrived") ?? "";
  link.searchParams.delete("arrived");
  if (!isRead) void show(link.href, shown?.root.getRootNode() === document);
});
if (new URLSearchParams(location.search).has("view")) await open(location.href, false, "", false);
else app.dataset.testScriptState = "notRunning";
