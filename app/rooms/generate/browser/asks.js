// Questions to the server: the columns of a path, words as they are written, beams as they grow, and costs that are measured.

import { classroom } from "../../../kit/browser/classroom.js";
import { counted, fill, fixed, number, quotation, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { goesOn, grown, readAll, written, writtenAll } from "./paths.js";
import { Writing } from "./writing.js";

/** @typedef {import("./types.js").View} View */

const AT_A_TIME = 256; // words that Play writes before it stops by itself
const BEAM_STEPS = 8; // tokens that a search begins with, and goes on by
const OVER = { end: words.over_end, positions: words.over_positions, most: words.over_most };
const PACE = 420; // ms for each column that Play steps over
const LENS_AFTER = 80; // ms that the ring rests before the layers are read
const MOST_LENSES = 400;
const EACH = 500; // ms between two readings of a follower, whose path grows as fast as its teacher's model writes
const LAYERED = 40; // columns whose layers are read together
const TIMED = 240; // tokens at which the cache is timed

export class Asks {
  /** @type {Writing} */
  writing;
  /** @type {AbortController | null} While words are written */
  playing = null;
  /** @type {AbortController | null} While a path is read */
  loading = null;
  /** @type {AbortController | null} While beams grow */
  searching = null;
  /** @type {ReturnType<typeof setInterval> | undefined} While Play steps over columns */
  pacing;
  /** @type {ReturnType<typeof setTimeout> | undefined} While the ring has not rested long enough */
  resting;
  asked = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} Until a follower may ask again */
  waiting;
  askedAt = -EACH;
  searched = "";
  landing = ""; // a search that has ended, until the text is there too
  /** @type {Map<string, import("./types.js").LensRow[]>} */
  lenses = new Map();
  /** @type {Map<string, import("./types.js").Wrote[] | null>} By the path; null while it is on its way */
  written = new Map();
  isTold = false; // whether what wrote the words of the path on the screen is known, or cannot be
  /** @type {Map<string, Map<number, import("./types.js").LensColumn>>} By the path */
  layered = new Map();
  layering = "";
  speed = ""; // tokens a second, of the last words that were written
  begun = false; // whether the words that open the room were asked for
  /** @type {import("./types.js").Cost | null} */
  cost = null;
  timing = false;
  /** @type {Map<number, number[] | null>} Greedy's words, by how many; null while they are on their way */
  greedy = new Map();
  /** @type {AbortController | null} While they are */
  comparing = null;
  /** @type {Promise<void> | null} While what wrote the words of a path is on its way */
  telling = null;
  doing = ""; // what is being written: words, beams, or nothing

  /** @param {View} view */
  constructor(view) {
    this.view = view;
  }

  // Another text
  /** @param {string} key */
  begin(key) {
    this.loading?.abort();
    this.searching?.abort();
    clearTimeout(this.resting);
    this.writing = new Writing(key);
    [this.asked, this.searched, this.landing, this.cost, this.begun, this.layering] = ["", "", "", null, false, ""];
    this.comparing?.abort();
    for (const known of [this.lenses, this.written, this.layered, this.greedy]) known.clear();
  }

  destroy() {
    this.stop();
    clearTimeout(this.waiting);
    this.loading?.abort();
    this.searching?.abort();
    this.comparing?.abort();
    clearTimeout(this.resting);
  }

  /** @param {string} doing */
  state(doing) {
    this.doing = doing;
    this.view.invalidate("answer");
  }

  get isPlaying() {
    return Boolean(this.playing || this.pacing);
  }

  get values() {
    return this.view.values;
  }

  get path() {
    return this.view.path;
  }

  get params() {
    const { layer, head, how, t, k, p, minp, seed, other } = this.values;
    return {
      how,
      t,
      k,
      p,
      minp,
      seed,
      ...(other ? { also: other } : {}),
      ...(layer !== "" && head !== "" ? { layer, head } : {}),
    };
  }

  // Bring what is known in line with what is chosen.
  follow() {
    if (!this.writing.knows(this.path, this.view.by)) this.open();
    if (this.values.how === "beam") this.search();
    else this.writeFirst();
  }

  // Where a link says no words, some are written.
  async writeFirst() {
    const n = Number(this.values.n);
    if (this.begun || !n || this.path.length || this.playing || classroom.follows || this.view.isShown) return;
    if (!this.writing.isOpen) return;
    this.begun = true;
    await this.write(n, "", null, "rule");
    if (this.path.length && !this.playing) this.view.opened();
  }

  // So many words more; the place that is looked at stays.
  /** @param {number} n @param {boolean} [restsOnBoldest] */
  async goOn(n, restsOnBoldest = false, first = /** @type {number | null} */ (null)) {
    const { f } = this.values;
    await this.write(n, f, first);
    if (restsOnBoldest && !this.playing) this.view.opened();
  }

  async open() {
    const { view, path } = this;
    const wanted = `${this.writing.key} ${this.values.path} ${this.values.layer}.${this.values.head}`;
    if (this.asked === wanted || this.playing) return;
    clearTimeout(this.waiting);
    const rest = classroom.follows ? this.askedAt + EACH - performance.now() : 0;
    if (rest > 0) return void (this.waiting = setTimeout(() => this.follow(), rest));
    this.askedAt = performance.now();
    this.asked = wanted;
    this.loading?.abort();
    const stopped = (this.loading = new AbortController());
    if (!this.writing.isOpen) view.say(words.loading);
    const refused = await this.told(stopped, () =>
      this.writing.write(path, this.params, stopped.signal, () => view.invalidate("answer")),
    );
    if (stopped.signal.aborted) return;
    this.loading = null;
    if (!refused) view.say(view.sentence === words.loading ? "" : view.sentence);
    else if (path.length && refused !== words.failed) view.choose({ path: "", f: "" }); // the text itself can be shown
    this.asked = refused ? wanted : ""; // what was refused will not do better
    if (!refused && this.values.how !== "beam") this.writeFirst();
    if (!refused) this.land();
    view.invalidate("answer");
  }

  // Words that were refused, or did not come, are asked for again.
  again() {
    this.asked = "";
    this.follow();
  }

  // How many tokens the search is to have that is on the screen
  get length() {
    return Math.max(Number(this.values.n) || BEAM_STEPS, this.path.length);
  }

  /** @param {number} n */
  nameOf(n) {
    return `${this.values.beams} ${n}`;
  }

  steps() {
    const { searches } = this.writing;
    const growing = this.playing ? searches.get(this.nameOf(this.length + BEAM_STEPS)) : undefined;
    return growing ?? searches.get(this.nameOf(this.length)) ?? [];
  }

  async search() {
    const name = this.nameOf(this.length);
    if (this.writing.searches.has(name) || this.searched === name || this.playing) return;
    if (!(await this.searchFor(this.length, (this.searching = new AbortController())))) return;
    this.landing = name;
    this.land();
  }

  // Once a search and its text are there, whichever came first: the best line, where it leaves the others, and greedy beside it
  land() {
    const { landing } = this;
    if (!landing || !this.writing.isOpen) return;
    this.landing = "";
    if (this.values.how !== "beam" || landing !== this.nameOf(this.length)) return;
    const path = this.extended(this.path);
    const isOpening = !this.path.length && this.values.f === "";
    if (written(path) !== this.values.path) this.view.choose({ path: written(path) }, "rule");
    if (isOpening) this.view.forked();
    this.compare(this.length);
  }

  // Greedy's words, as many as the beams have: what a search is compared with
  /** @param {number} n */
  async compare(n) {
    const { writing } = this;
    if (this.greedy.has(n) || !writing.isOpen) return;
    this.greedy.set(n, null);
    const stopped = (this.comparing = new AbortController());
    /** @type {number[]} */
    let found = [];
    try {
      const asked = { how: "greedy", n: String(n), opened: "1" };
      await writing.write([], asked, stopped.signal, (path) => {
        found = path;
      });
      if (writing === this.writing) this.greedy.set(n, found);
    } catch (error) {
      this.greedy.delete(n);
      if (!stopped.signal.aborted) console.info(error); // the beams are there all the same
    }
    this.view.invalidate("answer");
  }

  /** @param {number} n */
  greedyFor(n) {
    return this.greedy.get(n) ?? null;
  }

  // A path as far as the beams on the screen go on from it; the best text where none does.
  /** @param {number[]} path */
  extended(path) {
    const steps = this.steps();
    const best = steps.at(-1)?.finished.map(([ids]) => ids) ?? [];
    const live =
      grown(steps)
        .at(-1)
        ?.kept.map((beam) => beam.path) ?? [];
    const dropped = grown(steps).flatMap(({ dropped }) => dropped.map((beam) => beam.path));
    if (!path.length) return best[0] ?? path;
    return [...best, ...live, ...dropped].find((other) => goesOn(other, path)) ?? best[0] ?? path;
  }

  // Whether a search of n tokens came to its end
  /** @param {number} n @param {AbortController} stopped */
  async searchFor(n, stopped) {
    const name = (this.searched = this.nameOf(n));
    const { beams } = this.values;
    this.state("beams");
    const refused = await this.told(stopped, () =>
      this.writing.search(name, { beams, n: String(n) }, stopped.signal, () => this.view.invalidate("answer")),
    );
    if (this.searched === name) this.searched = "";
    if (stopped.signal.aborted) return false;
    this.state("");
    return !refused && this.values.how === "beam";
  }

  // Play: step to the last column, then write on until it is stopped.
  play() {
    if (this.isPlaying) return this.stop();
    const { view } = this;
    if (view.isLast) return void this.write(AT_A_TIME);
    let kind = /** @type {"choice" | "rule"} */ ("choice"); // all that it shows is one step of the browser's history
    this.pacing = setInterval(() => {
      if (view.isLast) {
        this.stop();
        this.write(AT_A_TIME, "", null, kind);
      } else view.move(1, kind);
      kind = "rule";
    }, PACE);
    view.invalidate("answer");
  }

  /** @param {number} by */
  step(by) {
    if (this.isPlaying) return this.stop();
    if (by > 0 && this.view.isLast) this.write(1);
    else this.view.move(by);
  }

  /**
   * @param {number} n @param {string} [f] the column that stays open while words are written; by default the newest
   * @param {number | null} [first] the word that was taken by hand
   * @param {"choice" | "rule"} [kind] of the first word; later ones are no step of the browser's history
   */
  async write(n, f = "", first = null, kind = "choice") {
    const { view } = this;
    // A word that was taken by hand is the first that is written after those before it, which are known.
    const before = first === null ? this.path : this.path.slice(0, -1);
    const over = this.writing.over.get(written(before));
    if (over) return this.sayOver(over);
    if (!this.writing.isOpen) return this.loading ? undefined : this.again();
    if (this.values.how === "beam") return this.grow();
    this.loading?.abort();
    this.asked = "";
    const stopped = (this.playing = new AbortController());
    this.state("words");
    view.say(words.writing);
    let now = before;
    const start = performance.now();
    const refused = await this.told(stopped, () =>
      this.writing.write(
        before,
        {
          ...this.params,
          n: String(n),
          ...(first === null ? {} : { first: String(first) }),
          ...(this.writing.knows(before, this.view.by) ? { opened: "1" } : {}),
        },
        stopped.signal,
        (path) => {
          if (stopped.signal.aborted || path.length === now.length) return;
          now = path;
          const each = (1000 * (now.length - before.length)) / Math.max(1, performance.now() - start);
          this.speed = fill(words.speed, { n: each < 10 ? fixed(each, 1) : number(each) });
          const others = readAll(this.values.other).filter((other) => !goesOn(now, other));
          view.put({ path: written(now), other: writtenAll(others), f }, kind);
          kind = "rule";
        },
      ),
    );
    if (stopped.signal.aborted) return;
    this.playing = null;
    this.state("");
    const why = this.writing.over.get(written(now));
    if (why) this.sayOver(why);
    else if (!refused) view.say(n > 1 ? counted([words.wrote_one, words.wrote], now.length - before.length) : "");
  }

  // A beam search that goes further, and its best text on the screen
  async grow() {
    const n = this.length + BEAM_STEPS;
    this.searching?.abort();
    const stopped = (this.playing = this.searching = new AbortController());
    const ended = await this.searchFor(n, stopped);
    if (stopped.signal.aborted) return;
    this.playing = null;
    const best = this.writing.searches.get(this.nameOf(n))?.at(-1)?.finished[0]?.[0];
    if (ended && best) this.view.choose({ path: written(best), f: "" });
    if (ended) this.compare(n);
    this.view.invalidate("answer");
  }

  stop() {
    clearInterval(this.pacing);
    this.pacing = undefined;
    if (this.playing) {
      this.playing.abort();
      this.playing = null;
      this.state("");
      this.view.say(counted([words.stopped_one, words.stopped], this.path.length));
    }
    this.view.invalidate("answer");
  }

  // Says a refusal of the server, or that it does not answer; nothing of a request that was stopped.
  /** @param {AbortController} stopped @param {() => Promise<string>} work */
  async told(stopped, work) {
    try {
      const refused = await work();
      if (refused && !stopped.signal.aborted) this.view.say(refused);
      return refused;
    } catch (error) {
      if (!stopped.signal.aborted) {
        console.info(error);
        this.view.say(words.failed);
      }
      return words.failed;
    }
  }

  /** @param {string} over */
  sayOver(over) {
    const last = this.path.at(-1);
    this.view.say(fill(worded(OVER, over), { word: last === undefined ? "" : quotation(this.writing.label(last)) }));
  }

  async time() {
    if (this.timing) return;
    this.timing = true;
    this.view.invalidate("answer");
    const { writing } = this;
    try {
      const response = await writing.fetch("cost", { path: this.values.path, n: String(TIMED) });
      if (!response.ok) this.view.say(await response.text());
      else if (writing === this.writing) this.cost = await response.json();
    } catch {
      this.view.say(words.failed);
    }
    this.timing = false;
    this.view.invalidate("answer");
  }

  // Link parameters of the text with the words written after it; null where the server does not answer
  /** @returns {Promise<Record<string, string> | null>} */
  async text() {
    try {
      const response = await this.writing.fetch("text", { path: this.values.path });
      if (response.ok) return await response.json();
      this.view.say(await response.text());
    } catch {
      this.view.say(words.failed);
    }
    return null;
  }

  // The heads that wrote the word of a column; null while it is not known
  /** @param {import("./types.js").Column} column */
  wrote(column) {
    const path = written(this.path);
    const known = this.written.get(path);
    this.isTold = known !== undefined && known !== null;
    if (known)
      return known.find(({ position, token }) => position === column.node.position && token === column.take) ?? null;
    if (known === undefined) this.telling = this.askWrote(path);
    return null;
  }

  // The same of all words of a path
  /** @param {string} path */
  async toldOf(path) {
    if (this.written.get(path) === undefined) this.telling = this.askWrote(path);
    await this.telling;
    return this.written.get(path) ?? [];
  }

  /** @param {string} path */
  async askWrote(path) {
    const { writing } = this;
    this.written.set(path, null);
    if (this.written.size > MOST_LENSES) this.written.delete(String(this.written.keys().next().value));
    try {
      const response = await writing.fetch("wrote", { path });
      if (writing !== this.writing) return;
      this.written.set(path, response.ok ? await response.json() : []);
    } catch (error) {
      console.info(error); // the columns are there all the same
      this.written.set(path, []);
    }
    this.view.invalidate("answer");
  }

  // The words of each layer after the columns around one; null while it is not known
  /** @param {import("./types.js").Column[]} all @param {number} focus */
  layersFor(all, focus) {
    const path = written(this.path);
    let known = this.layered.get(path);
    if (!known) this.layered.set(path, (known = new Map()));
    const followed = all.filter(({ take }) => take !== null);
    const from = Math.max(0, Math.min(focus - LAYERED / 2, followed.length - LAYERED));
    const missing = followed.slice(from, from + LAYERED).filter(({ node }) => !known.has(node.position));
    if (missing.length && !this.isPlaying)
      this.askLayers(path, missing[0].node.position, missing[missing.length - 1].node.position);
    return known.size ? known : null;
  }

  /** @param {string} path @param {number} first @param {number} last */
  async askLayers(path, first, last) {
    const name = `${path} ${first} ${last}`;
    if (this.layering) return;
    this.layering = name;
    const { writing } = this;
    try {
      const response = await writing.fetch("layers", { path, first: String(first), last: String(last) });
      if (writing !== this.writing) return;
      if (!response.ok) return this.view.say(await response.text());
      const { columns, labels } = await response.json();
      for (const [id, label] of Object.entries(labels)) writing.labels.set(Number(id), label);
      for (const column of columns) this.layered.get(path)?.set(column.position, column);
      this.layering = "";
    } catch (error) {
      console.info(error);
    }
    this.view.invalidate("answer");
  }

  // The layers after a column, once the ring rests there
  /** @param {import("./types.js").Column} column */
  lens(column) {
    clearTimeout(this.resting);
    if (this.playing) return null;
    const path = written(this.path.slice(0, Math.max(0, column.at)));
    const token = column.take ?? column.node.ids[0];
    const name = `${path}|${column.node.position}|${token}`;
    const found = this.lenses.get(name);
    if (found) return found;
    const { writing } = this;
    this.resting = setTimeout(async () => {
      try {
        const response = await writing.fetch("lens", {
          path,
          position: String(column.node.position),
          token: String(token),
        });
        if (writing !== this.writing) return;
        if (!response.ok) return this.view.say(await response.text());
        this.lenses.set(name, await response.json());
        if (this.lenses.size > MOST_LENSES) this.lenses.delete(String(this.lenses.keys().next().value));
        this.view.invalidate("answer");
      } catch (error) {
        console.info(error); // the columns are there all the same
      }
    }, LENS_AFTER);
    return null;
  }
}
