// How many websockets in a row came to nothing: "headlight-handshakes" says it each time, and 0 once one is open. "headlight-lost"
// says that an open one has ended, with its code.
//
// Where no websocket comes through, Streamlit keeps trying and says nothing. Without this script a visitor of such a network
// sees grey bars, and never why. Once a server has gone, Streamlit asks in a dialog about the internet connection or a terminal,
// so its dialogs about errors are off: app/shell/browser/away.js has the words instead.
(() => {
  window.__streamlit = { HOST_CONFIG: { blockErrorDialogs: true } };
  const STREAM = /\/_stcore\/stream$/;
  let refused = 0;
  const tell = (/** @type {number} */ now) => {
    refused = now;
    dispatchEvent(new CustomEvent("headlight-handshakes", { detail: refused }));
  };
  window.WebSocket = class extends WebSocket {
    /** @param {string | URL} url @param {string | string[]} [protocols] */
    constructor(url, protocols) {
      super(url, protocols);
      if (!STREAM.test(new URL(url, location.href).pathname)) return;
      let isOpen = false;
      this.addEventListener("open", () => {
        isOpen = true;
        tell(0);
      });
      this.addEventListener("close", ({ code }) => {
        if (isOpen) dispatchEvent(new CustomEvent("headlight-lost", { detail: code }));
        else tell(refused + 1);
      });
    }
  };
})();
