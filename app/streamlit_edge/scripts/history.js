// Each thing that a visitor does is one step, which Back takes; and what an address says of the page itself is the browser's alone.
//
// Streamlit writes the value of a box over the history entry that is there, and puts what the server says of the address after it.
// So there was no way back from another sentence or model, and a head could take two steps. Without this script Back skips sentences.
//
// Of a visitor who goes back twice before the server has answered, the first answer comes when the second entry is there, and is written
// over it. The entry that they end in is put right by the last answer (history.py). One that they only passed gets what it said when they
// came there for the first time, as soon as they come again: without this script Forward would show what another entry says.
//
// A room that is chosen has its entry at once, and the server says the rest of its address when it has drawn it. Without that a room that is
// left again before then has no entry, and Back leads past it, or out of the page.
//
// Light or dark, the projector, the language, and whether another page shows it in a frame, are of the page whatever its room. They change here and nowhere else, at once, and no script on
// the server knows of them: an address that one writes gets them as they are now.
(() => {
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  /** @type {Record<string, RegExp>} */
  const VALUES = { theme: /^(light|dark)$/, projector: /^true$/, embed: /^true$/, lang: /^[a-z]{2,3}(-[A-Z]{2})?$/ };
  /** @type {Set<(settings: Record<string, string | null>) => void>} */
  const heard = new Set();
  let settings = read();
  let acted = false; // since the address was last written
  let entries = 0; // that this page has made
  const fresh = () => `${Math.round(performance.timeOrigin)}.${++entries}`;
  const entry = () => /** @type {string | undefined} */ (history.state?.entry);
  /** @type {string | undefined} The entry of a room that was chosen, until the server has said its address */
  let chosen;
  /** @type {string | undefined} The entry on the screen, where the visitor went back or forward to it and has done nothing since */
  let passing;
  /** @type {Map<string, string>} What such entries said when the visitor came */
  const passed = new Map();

  function read() {
    const said = new URLSearchParams(location.search);
    const value = (/** @type {string} */ name) => said.get(name) ?? "";
    return Object.fromEntries(
      Object.entries(VALUES).map(([name, known]) => [name, known.test(value(name)) ? value(name) : null]),
    );
  }

  /** @param {URL} url */
  function complete(url) {
    for (const [name, value] of Object.entries(settings)) {
      if (url.searchParams.get(name) === value) continue;
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    return url;
  }

  function tell() {
    const { dataset } = document.documentElement;
    if (settings.projector) dataset.projector = settings.projector;
    else delete dataset.projector;
    if (settings.embed) dataset.embed = settings.embed;
    for (const hear of heard) hear(settings);
  }

  const act = (/** @type {any} */ e) => {
    const isBrowsers = (e.altKey || e.metaKey) && e.key !== "Enter"; // such as Alt and an arrow, which go back
    if (!e.isTrusted || isBrowsers) return;
    acted = true;
    if (isDrawn()) chosen = undefined;
    leave();
  };
  // Whether no script runs any more, so that the server has said all of the address, be it the one that was there
  const isDrawn = () =>
    document.querySelector(`[data-testid="stApp"]`)?.getAttribute("data-test-script-state") === "notRunning";
  const leave = () => {
    passed.delete(passing ?? "");
    passing = undefined;
  };
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, act, true);
  addEventListener(
    "popstate",
    (e) => {
      acted = false;
      if (e.isTrusted)
        pass(); // else a room shows another address, and has written it
      else leave();
      settings = read();
      tell();
    },
    true,
  );
  const pass = () => {
    passing = entry();
    if (passing === undefined) return;
    const own = passed.get(passing) ?? location.href;
    if (own !== location.href) replace(history.state, "", own);
    passed.set(passing, own);
  };
  const viewOf = (/** @type {URL} */ url) => url.searchParams.get("view");
  const written = (/** @type {URL} */ url) => url.pathname + String(url.searchParams) + url.hash;
  /** @param {any} state @param {string} title @param {URL} url @param {boolean} isStep */
  function put(state, title, url, isStep) {
    (isStep ? push : replace)({ ...state, entry: isStep ? fresh() : entry() }, title, url);
  }
  history.pushState = history.replaceState = (state, title, address) => {
    const url = complete(new URL(address ?? location.href, location.href));
    const now = new URL(location.href);
    const isNew = written(url) !== written(now);
    const isRest = chosen !== undefined && chosen === entry() && viewOf(url) === viewOf(now);
    if (isRest && isNew) chosen = undefined;
    put(state, title, url, acted && isNew && !isRest);
    if (isNew && !isRest) acted = false; // what was done in the room since it was chosen is a step of its own
  };

  if (entry() === undefined) replace({ ...history.state, entry: fresh() }, "", location.href);

  // What the rest of the page may ask and say of them
  window.headlight = {
    settings: {
      names: Object.keys(VALUES),
      get: (name) => settings[name],
      set(name, value) {
        if (settings[name] === value) return;
        settings = { ...settings, [name]: value };
        put(history.state, "", complete(new URL(location.href)), acted); // never the rest of a room's address
        acted = false;
        tell();
      },
      watch(hear) {
        heard.add(hear);
        return () => heard.delete(hear);
      },
    },
    choose(address) {
      const url = complete(new URL(address, location.href));
      chosen = fresh();
      leave();
      push({ ...history.state, entry: chosen }, "", url);
      acted = false;
    },
  };
  tell();
})();
