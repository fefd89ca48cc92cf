// Another language is another page: it is loaded again, with its address, as soon as that says another language than it did at first.
//
// Of an entry that this page has made or came from, Back changes the address alone. That may be before anything of Headlight is drawn.
// Without this script a page would stay in a language that its address does not name.
(() => {
  const { settings } = window.headlight;
  const spoken = settings.get("lang");
  settings.watch(({ lang }) => {
    if (lang !== spoken) location.reload();
  });
})();
