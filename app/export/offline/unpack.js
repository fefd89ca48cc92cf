// Unpacks what a packed page holds, its script and its data, and runs the script. The page's policy knows both by their hash.

/** @param {string} id of the element whose text is base64 of gzip @returns {Promise<Uint8Array>} */
async function unpacked(id) {
  const text = document.getElementById(id)?.textContent?.trim() ?? "";
  const packed = new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]);
  return new Uint8Array(await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

Promise.all(["program", "data"].map(unpacked)).then(([code, data]) => {
  /** @type {any} */ (window).headlightData = data;
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(code);
  document.body.append(script);
});
