// The address of the page, which is written here and nowhere else: by the room on the screen, by the bar, by a lesson, and for what
// Streamlit draws by the server (history.py). Each thing that a visitor does is one entry of the history, which Back takes.
//
// Streamlit would write over the entry that is there, and sends an address that it was told earlier. Without this script there is no way
// back from another sentence, and the server reads what the visitor has left.
//
// Light or dark, the projector with its Freeze and Spotlight, the language, and whether another page shows it in a frame, are of the page whatever its room. No
// script on the server knows of them: whatever is written keeps them as they are now.
(() => {
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  const ON = /^true$/;
  /** @type {Record<string, RegExp>} */
  const VALUES = {
    theme: /^(light|dark)$/,
    projector: ON,
    frozen: ON,
    spotlight: ON,
    embed: ON,
    lang: /^[a-z]{2,3}(-[A-Z]{2})?$/,
  };
  const TOGETHER = 200; // ms: choices of the same thing this close together are one step, as while an arrow key is held
  const MOST = 10; // writes within SPAN ms; a browser refuses more than some hundred in ten seconds
  const SPAN = 1000;
  const SAID = "headlight"; // in what the server has Streamlit write (history.py): {view, changes, arrived} as JSON
  const ARRIVED = "arrived"; // in what Streamlit reads: the number of an arrival (history.py)
  /** @type {Set<(settings: Record<string, string | null>) => void>} */
  const heard = new Set();
  /** @type {Set<HearAddress>} */
  const watching = new Set();
  /** @type {Set<TakeAddress>} */
  const taking = new Set();
  let settings = read();
  let acted = false; // whether the visitor has done something since the last step
  let chosen = -Infinity; // when something was chosen last
  /** @type {string[]} Names that the last choice changed */
  let touched = [];
  let arrivals = 0;
  let isAnswered = true; // whether the server has noted the last of them
  let isForStreamlit = false; // whether the event that goes round is ours
  let last = new URL(location.href); // what the address says, or is about to say
  /** @type {number[]} When the last writes were */
  let writes = [];
  /** @type {number | undefined} A timer, while the address is yet to say what it is about to */
  let waiting;

  function read() {
    const said = new URLSearchParams(location.search);
    const value = (/** @type {string} */ name) => said.get(name) ?? "";
    return Object.fromEntries(
      Object.entries(VALUES).map(([name, known]) => [name, known.test(value(name)) ? value(name) : null]),
    );
  }

  /** @param {URL} url @param {Record<string, string | null>} changes */
  function change(url, changes) {
    for (const [name, text] of Object.entries(changes)) {
      if (text === null) url.searchParams.delete(name);
      else if (url.searchParams.get(name) !== text) url.searchParams.set(name, text);
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

  /** @param {URL} before @param {URL} after */
  function changed({ searchParams: before }, { searchParams: after }) {
    const names = new Set([...before.keys(), ...after.keys()]);
    return [...names].filter((name) => before.get(name) !== after.get(name));
  }

  const written = (/** @type {URL} */ url) => url.pathname + String(url.searchParams) + url.hash;

  function flush() {
    clearTimeout(waiting);
    waiting = undefined;
    if (last.href !== location.href) put(false);
  }

  /** @param {boolean} isStep */
  function put(isStep) {
    (isStep ? push : replace)(history.state, "", last);
    writes = [...writes.slice(1 - MOST), performance.now()];
  }

  // Now, or as soon as the browser lets us write again
  function soon() {
    clearTimeout(waiting);
    const rest = writes.length < MOST ? 0 : writes[0] + SPAN - performance.now();
    if (rest <= 0) flush();
    else waiting = setTimeout(flush, rest);
  }

  /** @param {URL} url @param {"choice" | "step" | "rule"} kind */
  function say(url, kind) {
    change(url, settings);
    const now = performance.now();
    const names = changed(last, url);
    const isTogether = kind === "choice" && now - chosen < TOGETHER && names.some((name) => touched.includes(name));
    if (kind === "choice") [chosen, touched] = [now, names.length ? names : touched];
    if (written(url) === written(last)) return;
    if (kind === "rule" || isTogether) {
      last = url;
      soon();
    } else {
      flush();
      last = url;
      put(true);
    }
    if (kind === "rule") return;
    acted = false;
    if (kind === "step") chosen = -Infinity; // what is chosen next is a step of its own
  }

  const copy = () => new URL(last);

  // The server's part of the address, for elements that Streamlit draws; nothing for a view that was left in the meantime
  /** @param {{view: string | null, changes: Record<string, string | null>, arrived: string}} said */
  function hear({ view, changes, arrived }) {
    if (arrived === String(arrivals)) isAnswered = true;
    if (last.searchParams.get("view") !== view) return;
    const before = copy().searchParams;
    say(change(copy(), changes), acted ? "step" : "rule");
    for (const hears of watching) hears(copy().searchParams, before, false);
  }

  // Let Streamlit run its script for the address that is there, which then decides what is on the screen.
  /** @param {URLSearchParams} before */
  function arrive(before) {
    const { href } = last;
    isAnswered = false;
    replace(history.state, "", change(copy(), { [ARRIVED]: String(++arrivals) }));
    isForStreamlit = true;
    try {
      dispatchEvent(new PopStateEvent("popstate", { state: history.state }));
    } finally {
      isForStreamlit = false;
    }
    replace(history.state, "", href);
    for (const hears of watching) hears(copy().searchParams, before, true);
  }

  const act = (/** @type {any} */ e) => {
    const isBrowsers = (e.altKey || e.metaKey) && e.key !== "Enter"; // such as Alt and an arrow, which go back
    if (!e.isTrusted || isBrowsers) return;
    acted = true;
    if (!e.repeat && waiting !== undefined) flush(); // what Streamlit sends next has all of it
  };
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, act, true);
  addEventListener(
    "popstate",
    (e) => {
      if (isForStreamlit) return;
      e.stopImmediatePropagation();
      clearTimeout(waiting);
      waiting = undefined;
      const before = last.searchParams;
      last = new URL(location.href);
      acted = false;
      chosen = -Infinity;
      settings = read();
      tell();
      const isTaken = isAnswered && [...taking].some((take) => take(copy().searchParams, before));
      if (!isTaken) arrive(before);
    },
    true,
  );
  history.pushState = history.replaceState = (_, __, address) => {
    const url = new URL(address ?? location.href, location.href);
    const said = url.searchParams.get(SAID);
    const isNothing = !url.search && url.pathname === location.pathname; // by which Streamlit is to forget what it was told
    if (said) hear(JSON.parse(said));
    else if (!isNothing) say(url, acted ? "step" : "rule");
  };

  // What the rest of the page may ask and say of them
  window.headlight = {
    settings: {
      names: Object.keys(VALUES),
      get: (name) => settings[name],
      set(name, value) {
        if (settings[name] === value) return;
        settings = { ...settings, [name]: value };
        say(copy(), acted ? "step" : "rule");
        tell();
      },
      watch(hear) {
        heard.add(hear);
        return () => heard.delete(hear);
      },
    },
    address: {
      read: () => copy().searchParams,
      write(changes, kind) {
        say(change(copy(), changes), kind);
      },
      choose(search) {
        const before = copy().searchParams;
        say(new URL(search, location.href), "step");
        for (const hears of watching) hears(copy().searchParams, before, true);
      },
      go(search, isReplaced) {
        const before = copy().searchParams;
        say(new URL(search, location.href), isReplaced ? "rule" : "step");
        flush();
        acted = false;
        chosen = -Infinity;
        arrive(before);
      },
      watch(hears) {
        watching.add(hears);
        return () => watching.delete(hears);
      },
      take(hears) {
        taking.add(hears);
        return () => taking.delete(hears);
      },
    },
  };
  tell();
})();
