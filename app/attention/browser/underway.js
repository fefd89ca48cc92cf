// A run that still goes on: its picture fills layer by layer, as the server's messages come.

import { ASKED } from "../../kit/browser/language.js";
import { numbersOf } from "./lens.js";
import { Site } from "./site.js";
import { messages, unpack } from "../../kit/browser/messages.js";

// How many layers the pass has left, of how many; null of a run that has ended
/** @param {Site[]} sites @returns {{here: number, of: number} | null} */
export function layersSoFar(sites) {
  if (!sites.some((site) => site.left)) return null;
  const sum = (/** @type {(site: Site) => number} */ count) => sites.reduce((all, site) => all + count(site), 0);
  return { here: sum((site) => site.left?.size ?? 0), of: sum((site) => site.layers) };
}

export class Underway {
  // header: of the picture. opened: the head whose map is to come first. changed(run, site, layer): called at everything that comes
  /**
   * @param {import("./types.js").Picture} header
   * @param {import("./types.js").Place} opened
   * @param {(run: Underway, site: Site | undefined, layer: number) => void} changed
   */
  constructor(header, opened, changed) {
    this.header = header;
    this.opened = opened;
    this.changed = changed;
    this.key = header.key;
    this.sites = header.sites.map((site) =>
      Object.assign(new Site(site, new ArrayBuffer(0)), { left: /** @type {Set<number>} */ (new Set()) }),
    );
    /** @type {[path: string, params: import("../../kit/browser/types.js").Params, numbers: import("./types.js").Numbers][]} */
    this.answers = []; // [path, params, numbers]: the head that is opened
    this.isShown = false; // in the place of the picture before
    /** @type {number | null} */
    this.ms = null; // that the pass took, once it has ended and everything is here
    this.stopped = new AbortController();
    this.listen().catch(() => {}); // without it the picture comes all the same, when it is whole
  }

  async listen() {
    const { opened } = this;
    const { key, sites } = this.header;
    const site = /** @type {import("./types.js").SiteHeader} */ (sites.find(({ id }) => id === opened.site));
    /** @type {Record<string, string | number>} */
    const params = { run: key, record: site.records[opened.layer], head: opened.head };
    if (opened.query !== null) params.query = opened.query;
    const address = new URL(
      `headlight/layers?${new URLSearchParams(/** @type {Record<string, string>} */ (params))}`,
      document.baseURI,
    );
    const response = await fetch(address, { headers: ASKED, signal: this.stopped.signal });
    if (response.status !== 200 || !response.body) return;
    for await (const message of messages(response.body)) this.take(...unpack(message));
  }

  /** @param {any} header @param {ArrayBuffer} body */
  take({ site: id, layer, how, path, params, ms }, body) {
    const site = this.sites.find((site) => site.id === id);
    if (site) {
      site.take(layer, body, how);
      site.left.add(layer);
    } else if (path) this.answers.push([path, params, numbersOf(new Uint8Array(body))]);
    else this.ms = ms;
    this.changed(this, site, layer);
  }

  // Whether the head that is opened is here, and the row of its locked query
  get canBeShown() {
    return this.answers.length === (this.opened.query === null ? 1 : 2);
  }

  stop() {
    this.stopped.abort();
  }
}
