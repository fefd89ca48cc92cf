// A text that is being written: what the server has told of it so far, and the words that come while a visitor waits for them.

import { ASKED } from "../../../kit/browser/language.js";
import { messages, unpack } from "../../../kit/browser/messages.js";
import { WORDS as words } from "./constants.js";
import { written } from "./paths.js";

/** @typedef {import("./types.js").Node} Node */

// A piece of a word begins with a letter right after one; not where words have no spaces between them.
const OPENS =
  /^(?!\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar})[\p{L}\p{N}]/u;
const ENDS = /[\p{L}\p{M}\p{N}]$/u;
const MOST_KEPT = 1500; // columns beside those of the text; the oldest go first

export class Writing {
  /** @param {string} key of the run */
  constructor(key) {
    this.key = key;
    /** @type {Node[]} */
    this.given = [];
    /** @type {number[]} */
    this.prompt = [];
    /** @type {string[]} */
    this.names = [];
    /** @type {number[]} */
    this.losses = [];
    /** @type {import("./types.js").Bytes} */
    this.bytes = { token: 0, mha: 0, mqa: 0, memory: 0 };
    /** @type {Map<string, Node>} */
    this.nodes = new Map(); // by the path behind which they were read
    /** @type {Map<number, string>} */
    this.labels = new Map();
    /** @type {Set<number>} */
    this.glued = new Set(); // tokens that bring no space with them
    /** @type {Set<number>} */
    this.ends = new Set(); // tokens that end a text
    /** @type {Map<string, string>} */
    this.over = new Map(); // why nothing can follow a path
    /** @type {Map<string, import("./types.js").BeamStep[]>} */
    this.searches = new Map(); // by their number of beams and their length
  }

  get isOpen() {
    return this.given.length > 0;
  }

  // The column after a path, if it is known
  /** @param {number[]} path */
  node(path) {
    return path.length ? this.nodes.get(written(path)) : this.given.at(-1);
  }

  // The columns of a path, one for each of its tokens, as far as they are known
  /** @param {number[]} path */
  along(path) {
    if (this.walked?.path === path && this.walked.version === this.version) return this.walked.found;
    /** @type {(Node | undefined)[]} */
    const found = [];
    let name = "";
    for (const id of path) {
      name = name ? `${name}.${id}` : String(id);
      found.push(this.nodes.get(name));
    }
    this.walked = { path, version: this.version, found };
    return found;
  }

  version = 0; // counts the columns that were learned
  /** @type {{path: number[], version: number, found: (Node | undefined)[]} | null} The path that was asked for last */
  walked = null;

  // Whether every column of a path is known
  /** @param {number[]} path @param {{layer: number, head: number} | null} by */
  knows(path, by) {
    const fits = (/** @type {Node | undefined} */ node) =>
      node && (node.whole || !by || (node.head?.[0] === by.layer && node.head?.[1] === by.head));
    if (!this.isOpen || !this.given.every(fits)) return false;
    const ends = this.over.get(written(path)) === "end"; // its last token was never read
    return this.along(path).every((node, i) => fits(node) || (ends && i === path.length - 1));
  }

  /** @param {number} id */
  label(id) {
    return this.labels.get(id) ?? String(id);
  }

  // A token as it is read with the label of the one before it, if that is part of the text: a piece of a word begins with a hyphen.
  /** @param {number} id @param {string | null} before @param {string} [label] */
  named(id, before, label = this.label(id)) {
    if (this.ends.has(id)) return words.end_mark;
    return before !== null && this.glued.has(id) && OPENS.test(label) && ENDS.test(before) ? `-${label}` : label;
  }

  // Tokens as a line of text
  /** @param {number[]} ids */
  flush(ids) {
    return ids
      .filter((id) => !this.ends.has(id))
      .map((id, i) => (i && !this.glued.has(id) ? ` ${this.label(id)}` : this.label(id)))
      .join("");
  }

  // Labels as messages bring them: with the space that the token brings
  /** @param {Record<string, string>} labels */
  learn(labels) {
    for (const [id, label] of Object.entries(labels)) {
      this.labels.set(Number(id), label.trimStart());
      if (!label.startsWith(" ")) this.glued.add(Number(id));
    }
  }

  // Ask for the text with a path after it, and for n words more; taken(path) is called at each of them. Returns the sentence of
  // a refusal, or "". Throws where the server does not answer, and where `signal` has stopped it.
  /**
   * @param {number[]} path
   * @param {Record<string, string>} params
   * @param {AbortSignal} signal
   * @param {(path: number[]) => void} taken
   */
  async write(path, params, signal, taken) {
    let now = path;
    return this.each("write", { ...params, path: written(path) }, signal, (header, body) => {
      this.learn(header.labels);
      if (header.kind === "begun") this.begin(header, body, path);
      else now = this.add(header, body, now);
      taken(now);
    });
  }

  // A beam search, step by step. Returns as write() does.
  /** @param {string} name @param {Record<string, string>} params @param {AbortSignal} signal @param {() => void} grew */
  async search(name, params, signal, grew) {
    /** @type {import("./types.js").BeamStep[]} */
    const steps = [];
    return this.each("beams", params, signal, ({ labels, index, candidates, finished }) => {
      this.learn(labels);
      steps.push({ index, candidates, finished });
      this.searches.set(name, steps);
      grew();
    });
  }

  /** @param {string} what @param {Record<string, string>} params @param {AbortSignal} signal @param {(header: any, body: ArrayBuffer) => void} take */
  async each(what, params, signal, take) {
    const response = await this.fetch(what, params, signal);
    if (!response.ok) return response.text();
    let refused = "";
    for await (const message of messages(/** @type {ReadableStream<Uint8Array>} */ (response.body))) {
      const [header, body] = unpack(message);
      if (header.kind === "refused") refused = header.sentence;
      else take(header, body);
    }
    return refused;
  }

  /** @param {string} what @param {Record<string, string>} params @param {AbortSignal} [signal] */
  async fetch(what, params, signal) {
    const response = await fetch(
      new URL(`headlight/generate/${what}?${new URLSearchParams({ run: this.key, ...params })}`, document.baseURI),
      { headers: ASKED, signal },
    );
    if (response.status >= 500) throw new Error(await response.text());
    return response;
  }

  /** @param {any} header @param {ArrayBuffer} body @param {number[]} path */
  begin({ prompt, names, losses, bytes, over, glued, ends, readings }, body, path) {
    Object.assign(this, { prompt, names, losses, bytes, ends: new Set(ends) });
    for (const id of glued) this.glued.add(id);
    this.given = [];
    for (const told of readings) {
      const node = nodeOf(told, body);
      const behind = node.position - (prompt.length - 1);
      if (behind <= 0) this.given.push(node);
      else this.keep(path.slice(0, behind), node);
    }
    if (over) this.over.set(written(path), over);
  }

  /** @param {any} header @param {ArrayBuffer} body @param {number[]} before */
  add({ taken: [id, prob, rank], reading, over }, body, before) {
    this.node(before)?.told.set(id, { prob, rank });
    const path = [...before, id];
    if (reading) this.keep(path, nodeOf(reading, body));
    if (over) this.over.set(written(path), over);
    return path;
  }

  /** @param {number[]} path @param {Node} node */
  keep(path, node) {
    const name = written(path);
    for (const [id, told] of this.nodes.get(name)?.told ?? []) if (!node.told.has(id)) node.told.set(id, told);
    this.version++;
    this.nodes.delete(name);
    this.nodes.set(name, node);
    if (this.nodes.size > MOST_KEPT) this.nodes.delete(String(this.nodes.keys().next().value));
  }
}

/** @param {any} told @param {ArrayBuffer} body @returns {Node} */
function nodeOf(
  { position, id, listed, keys, rows: n, whole, head, taken, entropy, cache, ms, at: [ids, logits, rest, rows] },
  body,
) {
  const temperatures = (rows - rest) / 4;
  return {
    position,
    id,
    ids: new Int32Array(body, ids, listed),
    logits: new Float32Array(body, logits, listed),
    rest: new Float32Array(body, rest, temperatures),
    rows: new Uint16Array(body, rows, n * keys),
    keys,
    whole,
    head,
    entropy,
    cache,
    ms,
    told: new Map(taken ? [[taken[0], { prob: taken[1], rank: taken[2] }]] : []),
  };
}
