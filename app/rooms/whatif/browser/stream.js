// A sweep as it comes: its rows, message by message.

import { messages, unpack } from "../../../kit/browser/messages.js";

export class Full extends Error {} // too many wait: the server's own sentence

// Fetch a sweep; take(part) is called for every message. The promise ends with the sweep; abort the signal to stop it.
/** @param {Record<string, string>} params @param {(part: import("./types.js").Part) => void} take @param {AbortSignal} signal */
export async function sweep(params, take, signal) {
  const response = await fetch(new URL(`headlight/whatif/sweep?${new URLSearchParams(params)}`, document.baseURI), {
    signal,
  });
  if (response.status < 500 && !response.ok) return take(/** @type {any} */ ({ refused: await response.text() }));
  if (response.status === 503) throw new Full(await response.text());
  if (!response.ok || !response.body) throw new Error(await response.text());
  for await (const message of messages(response.body)) take(unpack(message)[0]);
}
