// A question with the numbers that it is about: the run as it travels, and in it one word's row in every head.

import { across, areLetters, isMirrored } from "../../kit/browser/direction.js";
import { numbersOf } from "../../attention/browser/lens.js";
import { Fetcher } from "../../kit/browser/fetcher.js";
import { Site } from "../../attention/browser/site.js";
import { fill } from "../../kit/browser/dom.js";
import { unpack } from "../../kit/browser/messages.js";
import { WORDS as SEEN } from "../../attention/browser/constants.js";
import { WORDS as words } from "./constants.js";
import { tally } from "./votes.js";

/** @typedef {import("./types.js").Asked} Asked */
/** @typedef {{weights: ArrayLike<number>, masked: ArrayLike<number> | null}} HeadRow */

export class Question {
  /** @param {Asked} asked @param {Uint8Array} bytes the picture that it is about @param {() => void} arrived when more of its numbers has come */
  constructor(asked, bytes, arrived) {
    const [header, body] = unpack(bytes);
    /** @type {import("../../attention/browser/types.js").Picture} */
    this.picture = header;
    this.asked = asked;
    const sites = this.picture.sites.map((site) => new Site(site, body));
    this.site = sites.find(({ id }) => id === asked.site) ?? sites[0];
    this.remote = new Fetcher(this.picture.key, arrived);
    this.kind = sites.length > 1 ? (SEEN.sites[this.site.id]?.[0] ?? "") : "";
    this.labels = this.picture.tokens[this.site.key] ?? [];
    this.joins = new Set(areLetters(this.labels) ? [] : this.picture.joins[this.site.key]);
    /** @type {Map<string, HeadRow>} */
    this.known = new Map();
    this.row(asked.layer, asked.head); // what is uncovered later is there by then
  }

  get n() {
    return this.labels.length;
  }

  get word() {
    return this.picture.tokens[this.site.query]?.[this.asked.query] ?? "";
  }

  // The head in words: with its kind of attention, where the model has several.
  /** @param {number} layer @param {number} head */
  place(layer, head) {
    const model = this.picture.link?.model ?? "";
    return fill(this.kind ? words.place_of : words.place, { site: this.kind, layer, head, model });
  }

  get shortPlace() {
    const { layer, head } = this.asked;
    return fill(this.kind ? words.place_short_of : words.place_short, { site: this.kind, layer, head });
  }

  // Where the word that looks stands among those that can be looked at; null in cross-attention, where it is of the other text
  get at() {
    return this.site.query === this.site.key ? this.asked.query : null;
  }

  get isWhole() {
    if (!this.picture.whole && this.picture.follows) {
      const heads = this.remote.get("heads", {}, unpack);
      const site = heads?.[0]?.sites?.find((/** @type {{id: string}} */ { id }) => id === this.site.id);
      if (heads && site) {
        this.site.fill(site, heads[1]);
        this.picture.whole = true;
      }
    }
    return this.picture.whole;
  }

  /** One head's weights of the word, and why it may not look at some; null as long as they are on their way. @param {number} layer @param {number} head @returns {HeadRow | null} */
  row(layer, head) {
    const id = `${layer}.${head}`;
    const known = this.known.get(id);
    if (known) return known;
    const {
      site,
      asked: { query },
    } = this;
    const [from, to] = [query * site.n_key, (query + 1) * site.n_key];
    let found;
    if (this.isWhole) {
      const weights = Array.from(site.weights(layer, head).subarray(from, to), (x) => x / 65535);
      found = { weights, masked: site.masked(layer, head)?.subarray(from, to) ?? null };
    } else {
      const came = this.remote.get("row", { record: site.records[layer], head, query }, numbersOf);
      if (!came || came.refused) return null;
      found = { weights: came.weights, masked: came.masked };
    }
    this.known.set(id, found);
    return found;
  }

  /** By layer and head the weights of the word; null where the browser has not all of them. @returns {ArrayLike<number>[][] | null} */
  rows() {
    if (!this.isWhole) return null;
    const { layers, heads } = this.site;
    return Array.from({ length: layers }, (_, layer) =>
      Array.from({ length: heads }, (_, head) => /** @type {HeadRow} */ (this.row(layer, head)).weights),
    );
  }

  /** What may be said: a word that the mask hides stands there in grey, padding not at all. @returns {{at: number, isHidden: boolean}[]} */
  choices() {
    const masked = this.row(this.asked.layer, this.asked.head)?.masked;
    const padding = this.picture.reasons.indexOf("padding");
    const all = this.labels.map((_, at) => ({ at, code: masked?.[at] ?? 0 }));
    return all.filter(({ code }) => code !== padding).map(({ at, code }) => ({ at, isHidden: code !== 0 }));
  }

  /** @param {import("./types.js").Votes | null} votes */
  counts(votes) {
    return tally(Object.fromEntries(votes?.votes ?? []), this.n);
  }

  /** A small picture of the head, without the row that is covered. @param {HTMLCanvasElement} canvas @param {{css: string[]}} colours */
  draw(canvas, colours) {
    this.site.covered = [this.asked.query];
    const { rows, columns, values } = this.site.thumbnail(this.asked.layer, this.asked.head);
    Object.assign(canvas, { width: columns, height: rows });
    const isBack = isMirrored(this.picture, this.site);
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    values.forEach((value, at) => {
      pen.fillStyle = colours.css[Math.round(255 * (value / 255) ** 2)];
      pen.fillRect(across(at % columns, columns, isBack), Math.floor(at / columns), 1, 1);
    });
    return { top: Math.floor((this.asked.query * rows) / this.site.n_query) / rows, height: 1 / rows };
  }
}
