// Keys that open the examples go on into them; and the page's own menu goes with the bar when the page is scrolled.
//
// Streamlit's menu takes the focus when it is opened for the first time, and not again once something was chosen from it. Without
// this script the arrow keys then stay outside of it. And its menu stays where it is, over what comes to be below it.
(() => {
  /** @param {Element} button @param {number} frames */
  const enter = (button, frames) => {
    const menu = /** @type {HTMLElement | undefined} */ ([...document.querySelectorAll('[role="menu"]')].at(-1));
    if (button.getAttribute("aria-expanded") !== "true" || menu?.contains(document.activeElement)) return;
    menu?.focus();
    if (frames) requestAnimationFrame(() => enter(button, frames - 1));
  };
  addEventListener("click", (e) => {
    const button = /** @type {Element} */ (e.target).closest?.(".st-key-examples button");
    if (button && !e.detail) requestAnimationFrame(() => enter(button, 30)); // detail: clicks of a pointer
  });
  const BAR = 12; // pixels of a page that is scrolled and still shows its bar
  addEventListener(
    "scroll",
    (e) => {
      const page = /** @type {HTMLElement} */ (e.target);
      if (page.dataset?.testid === "stMain")
        document.documentElement.toggleAttribute("data-scrolled", page.scrollTop > BAR);
    },
    { capture: true, passive: true },
  );
})();
