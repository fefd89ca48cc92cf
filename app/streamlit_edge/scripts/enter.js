// Enter in a box of text shows the text, and Shift+Enter begins a line.
//
// Streamlit sends its box with lines by Ctrl+Enter. The box is as high as its text while a visitor writes in it, and one line
// high once the text is sent (page.css). Without this script Enter begins a line, and most people never send their text.
(() => {
  const boxes = "[class*='st-key-box_text_'] textarea, [class*='st-key-box_target_'] textarea";
  // Streamlit sends what has changed by a timeout of zero, which Chromium keeps back until the next frame is drawn: of what an
  // event sets off, the first such timeout runs as soon as the event is over.
  const atOnce = () => {
    const later = window.setTimeout;
    const asBefore = () => {
      if (window.setTimeout === soon) window.setTimeout = later;
    };
    const soon = /** @type {typeof later} */ (
      (/** @type {TimerHandler} */ run, /** @type {number | undefined} */ ms, /** @type {any[]} */ ...rest) => {
        if (ms !== 0 || typeof run !== "function") return later(run, ms, ...rest);
        asBefore();
        queueMicrotask(() => run(...rest));
        return 0;
      }
    );
    window.setTimeout = soon;
    later(asBefore, 0);
  };
  /** @param {any} e */
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
    atOnce();
    box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true }));
  };
  for (const name of ["keydown", "input", "pointerdown", "blur"]) addEventListener(name, hear, true);
})();
