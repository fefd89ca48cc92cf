// Each thing that a visitor does is one step, which Back takes; and what an address says of the page itself is the browser's alone.
//
// Streamlit writes the value of a box over the history entry that is there, and puts what the server says of the address behind it.
// So there was no way back from another sentence or model, and a head could take two steps. Without this script Back skips sentences.
//
// Light or dark, and the projector, are of the page whatever its room. They change here and nowhere else, at once, and no script on
// the server knows of them: an address that one writes gets them as they are now.
(() => {
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  /** @type {Record<string, string[]>} */
  const VALUES = { theme: ["light", "dark"], projector: ["true"] };
  /** @type {Set<(settings: Record<string, string | null>) => void>} */
  const heard = new Set();
  let settings = read();
  let acted = false; // since the address was last written

  function read() {
    const said = new URLSearchParams(location.search);
    const value = (/** @type {string} */ name) => said.get(name) ?? "";
    return Object.fromEntries(Object.entries(VALUES).map(([name, known]) => [name, known.includes(value(name)) ? value(name) : null]));
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
    for (const hear of heard) hear(settings);
  }

  const act = (/** @type {Event} */ e) => {
    if (e.isTrusted) acted = true;
  };
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, act, true);
  addEventListener("popstate", () => {
    acted = false;
    settings = read();
    tell();
  }, true);
  const written = (/** @type {URL} */ url) => url.pathname + String(url.searchParams) + url.hash;
  history.pushState = history.replaceState = (state, title, address) => {
    const url = complete(new URL(address ?? location.href, location.href));
    const isNew = written(url) !== written(new URL(location.href));
    (acted && isNew ? push : replace)(state, title, url);
    if (isNew) acted = false;
  };

  // What the rest of the page may ask and say of them
  window.headlight = {
    settings: {
      get: (name) => settings[name],
      set(name, value) {
        if (settings[name] === value) return;
        settings = { ...settings, [name]: value };
        history.pushState(history.state, "", location.href);
        tell();
      },
      watch(hear) {
        heard.add(hear);
        return () => heard.delete(hear);
      },
    },
  };
  tell();
})();
