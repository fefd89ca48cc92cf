// What Streamlit's page gets of ours, before any other script.

// Light or dark by the URL: theme=dark in a link wins over the browser's own preference.
//
// Streamlit follows the browser's preference while it runs, through matchMedia, and has no setting that a link could make. So
// these lines answer that one question with what the link says.
(() => {
  const real = window.matchMedia.bind(window);
  const heard = new Set();
  let chosen = new URLSearchParams(location.search).get("theme");
  const answer = (query, list) => {
    const asked = /^\(prefers-color-scheme: *(dark|light)\)$/.exec(query)?.[1];
    if (!asked) return list;
    return new Proxy(list, {
      get(target, name) {
        if (name === "matches" && (chosen === "dark" || chosen === "light")) return chosen === asked;
        if (name === "addEventListener") return (type, hear) => (heard.add(hear), target.addEventListener(type, hear));
        if (name === "removeEventListener") return (type, hear) => (heard.delete(hear), target.removeEventListener(type, hear));
        const value = target[name];
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
  window.matchMedia = (query) => answer(query, real(query));
  window.headlightTheme = (theme) => {
    if (theme === chosen || (theme === "auto" && chosen === null)) return;
    chosen = theme === "auto" ? null : theme;
    for (const hear of heard) hear(new Event("change"));
  };
})();

// Each thing that a visitor does is one step, which Back takes.
//
// Streamlit writes the value of a box over the entry that is there, and puts what the server says of the link behind it. So
// there was no way back from another sentence or model, and a head could take two steps.
(() => {
  const push = history.pushState.bind(history);
  const replace = history.replaceState.bind(history);
  let acted = false; // since the link was last written
  const act = (e) => {
    if (e.isTrusted) acted = true;
  };
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, act, true);
  addEventListener("popstate", () => (acted = false), true);
  history.pushState = history.replaceState = (state, title, url) => {
    const isNew = url !== undefined && url !== null && new URL(url, location.href).href !== location.href;
    (acted && isNew ? push : replace)(state, title, url);
    if (isNew) acted = false;
  };
})();

// Enter in a box of text shows the text, and Shift+Enter begins a line.
//
// Streamlit sends its box with lines by Ctrl+Enter. The box is as high as its text while somebody writes in it, and one line
// high once the text is sent (theme.PAGE_STYLE).
(() => {
  const boxes = ".st-key-text textarea, .st-key-target textarea";
  const hear = (e) => {
    const box = e.target;
    if (!box.matches?.(boxes)) return;
    if (e.type === "blur") box.scrollTop = 0;
    if (e.key !== "Enter") {
      if (e.type !== "keydown" || !["Tab", "Shift", "Control", "Alt", "Meta"].includes(e.key)) delete box.dataset.sent;
      return;
    }
    if (e.shiftKey || e.isComposing || !e.isTrusted) return;
    e.preventDefault();
    box.dataset.sent = "";
    box.scrollTop = 0;
    if (e.ctrlKey || e.metaKey) return;
    box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true }));
  };
  for (const name of ["keydown", "input", "pointerdown", "blur"]) addEventListener(name, hear, true);
})();

// Keys that open the examples go on into them.
//
// Streamlit's menu takes the focus when it is opened for the first time, and not again once something was chosen from it.
(() => {
  const enter = (button, frames) => {
    const menu = [...document.querySelectorAll('[role="menu"]')].at(-1);
    if (button.getAttribute("aria-expanded") !== "true" || menu?.contains(document.activeElement)) return;
    menu?.focus();
    if (frames) requestAnimationFrame(() => enter(button, frames - 1));
  };
  addEventListener("click", (e) => {
    const button = e.target.closest?.(".st-key-examples button");
    if (button && !e.detail) requestAnimationFrame(() => enter(button, 30)); // detail: clicks of a pointer
  });
})();
