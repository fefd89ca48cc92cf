// What is fetched later: answers of the routes, asked for once and kept for a while.

import { ASKED } from "./language.js";

/** @typedef {import("./types.js").Params} Params */

const AGAIN = 3000; // ms after an answer that could not be had

// Whether a visitor asks to save data: then nothing is fetched that is only beside what is looked at
export const isSparing = () =>
  matchMedia("(prefers-reduced-data: reduce)").matches ||
  Boolean(/** @type {{connection?: {saveData?: boolean}}} */ (navigator).connection?.saveData);

// Bytes of a large run, fetched once and kept for a while.
export class Fetcher {
  /** @type {Map<string, Uint8Array> | null} On a page that works offline: all the answers that there are, by path and parameters */
  static answers = null;
  static missing = ""; // what such a page says where it has none
  /** @param {string} key @param {(path: string) => void} arrived */
  constructor(key, arrived) {
    this.key = key;
    this.arrived = arrived;
    /** @type {Map<string, any>} */
    this.kept = new Map();
    /** @type {Set<string>} */
    this.underway = new Set(); // one request a path: a pointer that crosses a hundred rows asks for the last of them
    this.failed = false;
    this.again = 0; // no request before this, by performance.now()
    this.held = false; // while the run goes on, whose end every answer would wait for
  }

  // Whether the page works offline, with the answers that it has
  get offline() {
    return Fetcher.answers !== null;
  }

  /** @param {string} path @param {Params} params */
  idOf(path, params) {
    return `${path}?${new URLSearchParams(/** @type {Record<string, string>} */ ({ run: this.key, ...params }))}`;
  }

  // The addresses of what it has, newest first
  get ids() {
    return [...this.kept]
      .filter(([, value]) => !value?.refused)
      .map(([id]) => id)
      .reverse();
  }

  // An answer that came unasked
  /** @param {string} path @param {Params} params @param {unknown} value */
  keep(path, params, value) {
    this.kept.set(this.idOf(path, params), value);
  }

  // What the address gives, or null while it is on its way; arrived(path) is called when it is there.
  /**
   * @template Answer
   * @param {string} path
   * @param {Params} params
   * @param {(bytes: Uint8Array) => Answer} read
   * @param {{isLast?: boolean}} [how] isLast: it costs much, and is asked for when nothing else is on its way
   * @returns {(Answer & {refused?: string}) | null}
   */
  get(path, params, read, { isLast = false } = {}) {
    const id = this.idOf(path, params);
    if (this.kept.has(id)) {
      const value = this.kept.get(id);
      this.kept.delete(id);
      this.kept.set(id, value); // newest last
      return value;
    }
    if (Fetcher.answers) {
      const bytes = Fetcher.answers.get(id);
      this.kept.set(id, bytes ? read(bytes) : { refused: Fetcher.missing });
      return this.kept.get(id);
    }
    if (this.held) return null;
    if (this.failed && performance.now() < this.again) return null; // no storm of requests at a server that is down
    if (this.underway.has(path) || (isLast && this.underway.size)) return null; // arrived() makes the caller ask again, for what it wants by then
    this.underway.add(path);
    if (this.kept.size > 64) this.kept.delete(String(this.kept.keys().next().value));
    fetch(new URL(`headlight/${id}`, document.baseURI), { headers: ASKED })
      .then(async (response) => {
        if (response.status === 400) return void this.kept.set(id, { refused: await response.text() }); // it will not do better
        if (!response.ok) throw new Error(await response.text());
        this.kept.set(id, read(new Uint8Array(await response.arrayBuffer())));
        this.failed = false;
      })
      .catch(() => {
        this.failed = true;
        this.again = performance.now() + AGAIN;
        setTimeout(() => this.arrived(path), AGAIN + 50); // who still wants it asks once more
      })
      .finally(() => {
        this.underway.delete(path);
        this.arrived(path);
      });
    return null;
  }
}
