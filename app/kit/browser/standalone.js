// Makes the file of a page that works offline: the server's page without data, the message that a room was drawn from, and the
// answers that it had by then, asked for once more as bytes.

import { ASKED } from "./language.js";
import { base64, pack } from "./messages.js";
import { WORDS as words } from "./words.js";

const MOST = 4_000_000; // bytes of answers: the newest first, and beyond them the page says that it has no more

/** @param {string} path */
async function bytesOf(path) {
  const response = await fetch(new URL(`headlight/${path}`, document.baseURI), { headers: ASKED });
  if (!response.ok) throw new Error(path);
  return new Uint8Array(await response.arrayBuffer());
}

/** @param {Omit<import("./types.js").About, "name">} about @param {import("./types.js").OfflinePage} room @returns {Promise<Blob>} */
export async function standalone(about, { path, theme, message, remotes }) {
  const data = pack(...message);
  const parts = [data, new Uint8Array(-data.length & 3)];
  /** @type {[id: string, at: number, length: number][]} */
  const answers = [];
  let at = parts[0].length + parts[1].length;
  for (const id of remotes.flatMap((remote) => remote.ids)) {
    if (at > MOST) break;
    const bytes = await bytesOf(id).catch(() => null); // the server may have let a run go that no one looks at
    if (!bytes) continue;
    answers.push([id, at, bytes.length]);
    parts.push(bytes, new Uint8Array(-bytes.length & 3));
    at += bytes.length + (-bytes.length & 3);
  }
  const { title, alt, caption, snippet } = about;
  const told = {
    about: { title, alt, caption, snippet, note: words.offline_page, code: words.offline_code },
    theme,
    data: [0, data.length],
    answers,
  };
  const [page, body] = await Promise.all([bytesOf(path), new Blob(parts).arrayBuffer()]);
  const text = await base64(pack(told, body));
  return new Blob([new TextDecoder().decode(page).replace("{{DATA}}", () => text)], { type: "text/html" });
}
