// Following a training: its news as they come, and an example as each of its frames sees it.

import { ASKED } from "../../../kit/browser/language.js";
import { EXAMPLES } from "./constants.js";
import { unpack } from "../../../kit/browser/messages.js";

/** @typedef {import("./types.js").News} News */
/** @typedef {import("./types.js").Look} Look */

const AGAIN = 400; // ms before looks that could not be had are asked for again
const BUSY = [429, 503]; // what a server says that may do better in a moment

// A run of the server that this page watches, until it ends or close() is called.
export class Following {
  /** @type {import("./types.js").Point[]} */
  points = [];
  /** @type {import("./types.js").FrameFacts[]} */
  frames = [];
  /** @type {import("./types.js").Moment[]} */
  moments = [];
  /** @type {import("./types.js").Seed[]} */
  seeds = []; // one run says nothing of how far seeds differ
  /** @type {import("./types.js").Lead[]} */
  leads = [];
  /** @type {Map<number, Look>} */
  looks = new Map();
  /** @type {import("./types.js").Seen | null} */
  seen = null;
  /** @type {News["state"] | "lost" | "stopped"} */
  state = "waiting";
  place = 0;
  seconds = 0;
  why = "";
  refused = ""; // why the example cannot be looked at
  isNew = false; // whether another example than the one shown was typed, and nothing of it has come yet
  looking = false;
  closed = false;
  heard = false; // whether the server has said anything
  glances = false; // it only looks at what there is, and watches nothing

  /** @param {Record<string, string>} spec task, twin, seed, from @param {string} example @param {() => void} changed */
  constructor(spec, example, changed) {
    this.spec = spec;
    this.example = example; // what is to be looked at
    this.shown = example; // what the looks are of
    this.changed = changed;
    this.cancel = new AbortController();
  }

  /** @param {string} path @param {Record<string, string>} [more] */
  address(path, more = {}) {
    return addressOf(this.spec, path, more);
  }

  async begin() {
    try {
      const response = await fetch(this.address("run"), { headers: ASKED, signal: this.cancel.signal });
      if (!response.ok || !response.body) return this.end("failed", await response.text());
      for await (const line of linesOf(response.body)) this.take(JSON.parse(line));
      if (this.state === "waiting" || this.state === "running") this.end("lost", "");
    } catch {
      if (!this.closed) this.end("lost", "");
    }
  }

  // Snapshot of a paused run; watching it would resume it. Late messages arrive shortly after.
  async glance() {
    this.glances = true;
    try {
      const response = await fetch(this.address("now"), { headers: ASKED, signal: this.cancel.signal });
      if (!response.ok) return this.end("paused", "");
      const news = /** @type {News} */ (JSON.parse(await response.text()));
      const waits = news.state === "running" || news.state === "waiting";
      const [points, frames] = [news.points.slice(this.points.length), news.frames.slice(this.frames.length)];
      this.take({ ...news, state: waits ? "paused" : news.state, points, frames });
      if (waits) setTimeout(() => !this.closed && this.glance(), AGAIN);
    } catch {
      if (!this.closed) this.end("lost", "");
    }
  }

  /** @param {News} news */
  take(news) {
    this.heard = true;
    Object.assign(this, { state: news.state, place: news.place, seconds: news.seconds, why: news.why });
    this.points.push(...news.points);
    this.frames.push(...news.frames);
    if (news.moments) this.moments = news.moments;
    if (news.frames.length) this.look();
    this.changed();
  }

  /** @param {"failed" | "lost" | "stopped" | "paused"} state @param {string} why */
  end(state, why) {
    this.state = state;
    this.why = why;
    this.changed();
  }

  // Stops watching and keeps all that arrived; the server ends a run that no one watches.
  close() {
    if (this.closed) return;
    this.closed = true;
    this.cancel.abort();
    if (this.state === "waiting" || this.state === "running") this.state = "stopped";
  }

  // The server lets the run wait where it is, once no one watches it.
  async pause() {
    if (this.closed) return;
    this.closed = true;
    const ended = () => this.state !== "waiting" && this.state !== "running";
    try {
      await fetch(this.address("pause"), { method: "POST" });
    } catch {
      // a server that cannot be reached has lost the line of news too
    }
    this.cancel.abort();
    if (!ended()) this.state = "paused";
    this.changed();
  }

  // The run waits where it is, as another page has told the server: watched on, it would not.
  rest() {
    if (this.glances) return;
    this.close();
    if (this.state === "stopped") this.state = "paused";
  }

  // The same run from where it waits: its news come from the beginning, and what was seen of the example stays.
  again() {
    this.close();
    const one = new Following(this.spec, this.example, this.changed);
    Object.assign(one, { looks: this.looks, seen: this.seen, shown: this.shown, refused: this.refused });
    one.begin();
    return one;
  }

  /** @param {string} example */
  watch(example) {
    if (example === this.example) return;
    this.example = example;
    this.isNew = example !== this.shown;
    this.refused = "";
    this.look();
  }

  // The example at every frame that there is, a few frames at a time. One that is refused leaves what is drawn of the last one.
  async look() {
    if (this.looking) return;
    this.looking = true;
    try {
      while (this.frames.length && (this.isNew || this.looks.size < this.frames.length)) {
        const { isNew } = this;
        const example = isNew ? this.example : this.shown;
        const last = isNew ? -1 : Math.max(-1, ...this.looks.keys());
        const response = await fetch(this.address("looks", { example, after: String(last + 1) }), { headers: ASKED });
        const [why, bytes] = response.ok ? ["", await response.arrayBuffer()] : [await response.text(), null];
        if (isNew !== this.isNew || example !== (isNew ? this.example : this.shown)) continue; // another was typed meanwhile: this says nothing of it
        if (BUSY.includes(response.status)) throw new Error(why);
        if (response.status === 400) {
          this.refused = why;
          const own = EXAMPLES[this.spec.task]; // where none was drawn before it, as in a link
          if (!isNew && (this.seen || this.shown === own)) break;
          if (!this.seen) this.shown = own;
          this.isNew = false;
          continue;
        }
        if (!bytes) break; // refused, or a run that was dropped meanwhile: what there is stays
        const found = looksOf(new Uint8Array(bytes));
        if (isNew) Object.assign(this, { looks: new Map(), shown: example, isNew: false });
        this.seen = found.seen;
        for (const one of found.looks) this.looks.set(one.step, one);
        this.changed();
        if (!found.looks.length) break;
      }
    } catch {
      setTimeout(() => !this.closed && this.look(), AGAIN);
    } finally {
      this.looking = false;
    }
    this.changed();
  }
}

// Where the server has something of a run
/** @param {Record<string, string>} spec @param {string} path @param {Record<string, string>} [more] */
export const addressOf = (spec, path, more = {}) =>
  new URL(`headlight/train/${path}?${new URLSearchParams({ ...spec, ...more })}`, document.baseURI);

/** @param {ReadableStream<Uint8Array>} stream */
export async function* linesOf(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter(Boolean);
    if (done) return;
  }
}

/** @param {Uint8Array} bytes @returns {{seen: import("./types.js").Seen, looks: Look[]}} */
export function looksOf(bytes) {
  const [header, body] = unpack(bytes);
  let at = 0;
  const looks = header.looks.map((/** @type {Look} */ frame) => {
    const size = frame.shape.reduce((all, n) => all * n, 1);
    const maps = new Uint8Array(body, at, size);
    at += size + ((4 - (size % 4)) % 4); // each array begins at a multiple of 4 bytes
    return { ...frame, maps };
  });
  const { tokens, answer, first, unseen, model, edits } = header;
  return { seen: { tokens, answer, first, unseen, model, edits }, looks };
}
