// The part of the page that holds the room is its main part.
//
// Streamlit draws it as a section with no role. Without this script nothing of a room is in a landmark, and who uses a screen
// reader cannot go there at once.
(() => {
  const look = () => {
    const main = document.querySelector('[data-testid="stMain"]');
    main?.setAttribute("role", "main");
    if (main) watching.disconnect();
  };
  const watching = new MutationObserver(look);
  watching.observe(document, { childList: true, subtree: true });
})();
