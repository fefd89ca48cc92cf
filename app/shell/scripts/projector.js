// Projector mode of the page: P enters and leaves it anywhere but where somebody writes, Escape leaves. A room may know more keys.
// B and the full stop, which a clicker sends, make a projected page black; so does nothing else, and every key or click brings it back.
(() => {
  const LETTERLESS = ["button", "checkbox", "radio", "range", "submit", "reset", "color", "file"]; // inputs that take no letters
  const { dataset } = document.documentElement;
  /** @param {EventTarget | undefined} node */
  const takesText = (node) => {
    if (!(node instanceof HTMLElement)) return false;
    if (node instanceof HTMLInputElement) return !LETTERLESS.includes(node.type);
    return ["TEXTAREA", "SELECT"].includes(node.tagName) || node.isContentEditable;
  };
  const isProjected = () => window.headlight.settings.get("projector") !== null;
  /** @param {KeyboardEvent} e */
  const isElsewhere = (e) => e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || e.repeat || takesText(e.composedPath()[0]);
  addEventListener("keydown", (e) => {
    if (!isProjected() || isElsewhere(e)) return;
    const isBlank = dataset.blank !== undefined;
    if (!isBlank && !["b", "."].includes(e.key.toLowerCase())) return;
    if (isBlank) delete dataset.blank;
    else dataset.blank = "true";
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true); // before what any room does with a key
  addEventListener("pointerdown", () => delete dataset.blank, true);
  window.headlight.settings.watch(() => delete dataset.blank);
  addEventListener("keydown", (e) => {
    if (isElsewhere(e)) return;
    const isOn = isProjected();
    if (e.key.toLowerCase() !== "p" && !(isOn && e.key === "Escape")) return;
    e.preventDefault();
    window.headlight.settings.set("projector", isOn ? null : "true");
  });
})();
