// Unpacks a packed page, its script and its data, and runs the script, which the page's policy knows by its hash. Of the data the bytes
// at even places come first: the high bytes of weights are much alike, and pack better side by side.

/** @param {string} id of the element whose text is base64 of gzip @returns {Promise<Uint8Array>} */
async function unpacked(id) {
  const text = document.getElementById(id)?.textContent?.trim() ?? "";
  const packed = new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]);
  return new Uint8Array(await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

Promise.all(["program", "data"].map(unpacked)).then(([code, data]) => {
  const half = data.length / 2;
  const message = new Uint8Array(data.length);
  for (let at = 0; at < half; at++) {
    message[2 * at] = data[at];
    message[2 * at + 1] = data[half + at];
  }
  /** @type {any} */ (window).headlightData = message;
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(code);
  document.body.append(script);
});
