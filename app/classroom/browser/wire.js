// A class's messages: what is sent to the server, and the stream of what it says, which comes again by itself when the connection is back.

import { ASKED } from "../../kit/browser/language.js";

const ROOT = "headlight/classroom/";
const WAITS = [1, 2, 4, 10]; // seconds before the next try
const SILENCE = 40; // seconds without a sign, of a server that gives one every 15

/** @param {string} path */
const at = (path) => new URL(ROOT + path, document.baseURI);

// What the server will not do, in its own words
export class Refused extends Error {
  /** @param {string} sentence @param {number} status */
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

// Where this browser finds Headlight's own page, whatever stands between here and the server
export const pageAddress = () => new URL(".", document.baseURI).href;

/** @param {string} path @param {{key?: string, body?: object, signal?: AbortSignal}} [more] @returns {Promise<Response>} */
export async function ask(path, { key, body, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = { ...ASKED, ...(key ? { "Headlight-Key": key } : {}) };
  if (body) headers["Content-Type"] = "application/json";
  const response = await fetch(at(path), {
    method: body ? "POST" : "GET",
    headers,
    body: body && JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw new Refused(await response.text(), response.status);
  return response;
}

/** Events of a text/event-stream as they come: [name, data]. @param {ReadableStream<Uint8Array>} stream @param {() => void} heard at every sign of life */
export async function* events(stream, heard) {
  const reader = stream
    .pipeThrough(/** @type {TransformStream<Uint8Array, string>} */ (/** @type {unknown} */ (new TextDecoderStream())))
    .getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const parts = (rest + value.replaceAll("\r", "")).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      /** @type {Record<string, string>} */
      const said = {};
      for (const line of part.split("\n")) {
        const [name] = line.split(":", 1);
        if (name) said[name] = (name in said ? `${said[name]}\n` : "") + line.slice(name.length + 1).replace(/^ /, "");
      }
      if (said.data !== undefined) yield/** @type {[string, any]} */ ([said.event ?? "message", JSON.parse(said.data)]);
    }
  }
}

// The stream of one class, for its teacher or a follower
export class Stream {
  /** @param {string} code @param {string} key @param {import("./types.js").Hear} hear */
  constructor(code, key, hear) {
    this.code = code;
    this.key = key;
    this.hear = hear;
    this.tries = 0;
    this.isLost = false;
    this.isOver = false;
    /** @type {AbortController | null} */
    this.now = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.waiting = undefined;
    this.offline = () => this.cut();
    this.online = () => this.again(0);
    addEventListener("offline", this.offline);
    addEventListener("online", this.online);
    this.open();
  }

  close() {
    this.isOver = true;
    clearTimeout(this.waiting);
    this.now?.abort();
    removeEventListener("offline", this.offline);
    removeEventListener("online", this.online);
  }

  async open() {
    if (this.isOver || this.now) return;
    const now = (this.now = new AbortController());
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => now.abort(), SILENCE * 1000);
    };
    try {
      heard();
      const { body } = await ask(`${this.code}/events`, { key: this.key, signal: now.signal });
      this.tries = 0;
      if (this.isLost) this.hear.back();
      this.isLost = false;
      for await (const [name, data] of events(/** @type {ReadableStream<Uint8Array>} */ (body), heard)) {
        if (this.isOver || this.now !== now) return;
        this.hear.event(name, data);
      }
    } catch (error) {
      if (error instanceof Refused && error.status === 404 && !this.isOver) {
        this.close();
        this.hear.gone();
      }
    } finally {
      clearTimeout(silence);
      if (this.now === now) this.now = null;
    }
    if (!this.now) this.fail();
  }

  // The browser says that it has no connection: what still seems open will bring nothing more.
  cut() {
    const { now } = this;
    this.now = null;
    now?.abort();
    this.fail();
  }

  fail() {
    if (this.isOver) return;
    if (!this.isLost) this.hear.lost();
    this.isLost = true;
    this.again(WAITS[Math.min(this.tries++, WAITS.length - 1)]);
  }

  /** @param {number} seconds */
  again(seconds) {
    clearTimeout(this.waiting);
    if (!this.isOver) this.waiting = setTimeout(() => this.open(), seconds * 1000);
  }
}
