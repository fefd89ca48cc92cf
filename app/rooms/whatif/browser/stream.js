// A sweep as it comes: its rows, message by message.

import { unpack } from "../../../kit/browser/messages.js";

// Fetch a sweep; take(part) is called for every message. The promise ends with the sweep; abort the signal to stop it.
/** @param {Record<string, string>} params @param {(part: import("./types.js").Part) => void} take @param {AbortSignal} signal */
export async function sweep(params, take, signal) {
  const response = await fetch(new URL(`headlight/whatif/sweep?${new URLSearchParams(params)}`, document.baseURI), { signal });
  if (response.status === 400) return take(/** @type {any} */ ({ refused: await response.text() }));
  if (!response.ok || !response.body) throw new Error(await response.text());
  for await (const message of framed(response.body)) take(unpack(message)[0]);
}

// Messages of bytes, each behind its length as a u32
/** @param {ReadableStream<Uint8Array>} stream */
export async function* framed(stream) {
  const reader = stream.getReader();
  let rest = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const all = new Uint8Array(rest.length + value.length);
    all.set(rest);
    all.set(value, rest.length);
    rest = all;
    while (rest.length >= 4) {
      const end = 4 + new DataView(rest.buffer, rest.byteOffset, 4).getUint32(0, true);
      if (rest.length < end) break;
      yield rest.slice(4, end);
      rest = rest.subarray(end);
    }
  }
}
