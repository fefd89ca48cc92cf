// Projector mode of the page: P enters and leaves it anywhere but where somebody writes, Escape leaves. A room may know more keys.
(() => {
  const LETTERLESS = ["button", "checkbox", "radio", "range", "submit", "reset", "color", "file"]; // inputs that take no letters
  /** @param {EventTarget | undefined} node */
  const takesText = (node) => {
    if (!(node instanceof HTMLElement)) return false;
    if (node instanceof HTMLInputElement) return !LETTERLESS.includes(node.type);
    return ["TEXTAREA", "SELECT"].includes(node.tagName) || node.isContentEditable;
  };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || e.repeat || takesText(e.composedPath()[0])) return;
    const { settings } = window.headlight;
    const isOn = settings.get("projector") !== null;
    if (e.key.toLowerCase() !== "p" && !(isOn && e.key === "Escape")) return;
    e.preventDefault();
    settings.set("projector", isOn ? null : "true");
  });
})();
