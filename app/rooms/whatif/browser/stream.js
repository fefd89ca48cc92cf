// Messages as they come: of a sweep, or the runs of all parts.

import { ASKED } from "../../../kit/browser/language.js";
import { messages, unpack } from "../../../kit/browser/messages.js";

export class Full extends Error {} // too many wait: the server's own sentence
export class Refusal extends Error {} // it cannot be had: the server's own sentence

// Fetch a sweep; take(part) is called for every message. The promise ends with the sweep; abort the signal to stop it.
/** @param {Record<string, string>} params @param {(part: import("./types.js").Part) => void} take @param {AbortSignal} signal */
export const sweep = (params, take, signal) =>
  stream("sweep", params, (message) => take(unpack(message)[0]), signal).catch((error) => {
    if (!(error instanceof Refusal)) throw error;
    take(/** @type {any} */ ({ refused: error.message }));
  });

// The same of any route of the room, with messages as they are. Rejects with Refusal or Full.
/** @param {string} route @param {Record<string, string>} params @param {(message: Uint8Array) => void} take @param {AbortSignal} signal @param {Record<string, string>} [body] sent along, where it is in no address */
export async function stream(route, params, take, signal, body) {
  const response = await fetch(new URL(`headlight/whatif/${route}?${new URLSearchParams(params)}`, document.baseURI), {
    headers: ASKED,
    signal,
    ...(body ? { method: "POST", body: JSON.stringify(body) } : {}),
  });
  if (response.status < 500 && !response.ok) throw new Refusal(await response.text());
  if (response.status === 503) throw new Full(await response.text());
  if (!response.ok || !response.body) throw new Error(await response.text());
  for await (const message of messages(response.body)) take(message);
}
