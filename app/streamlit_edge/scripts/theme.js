// Light or dark by the address: theme=dark in a link wins over the browser's own preference.
//
// Streamlit follows the browser's preference while it runs, through matchMedia, and has no setting that a link could make. So this
// script answers that one question with what the address says. Without it a link shows the page as the browser likes it.
(() => {
  const real = window.matchMedia.bind(window);
  /** @type {Set<(e: Event) => void>} */
  const heard = new Set();
  /** @param {string} query @param {MediaQueryList} list */
  const answer = (query, list) => {
    const asked = /^\(prefers-color-scheme: *(dark|light)\)$/.exec(query)?.[1];
    if (!asked) return list;
    return new Proxy(list, {
      get(target, name) {
        const chosen = window.headlight.settings.get("theme");
        if (name === "matches" && chosen !== null) return chosen === asked;
        if (name === "addEventListener")
          return (/** @type {string} */ type, /** @type {(e: Event) => void} */ hear) => {
            heard.add(hear);
            target.addEventListener(type, hear);
          };
        if (name === "removeEventListener")
          return (/** @type {string} */ type, /** @type {(e: Event) => void} */ hear) => {
            heard.delete(hear);
            target.removeEventListener(type, hear);
          };
        const value = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  window.matchMedia = (query) => answer(query, real(query));
  let shown = window.headlight.settings.get("theme");
  window.headlight.settings.watch(({ theme }) => {
    if (theme === shown) return;
    shown = theme;
    for (const hear of heard) hear(new Event("change"));
  });
})();
