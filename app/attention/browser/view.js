// What the parts of a picture of attention know of it: the run, what is chosen in it, its numbers and colours, and the room for it.

import { Chosen } from "./chosen.js";
import { Readings } from "./readings.js";
import { Shading } from "./shading.js";
import { Tip } from "../../kit/browser/tip.js";

/** @typedef {import("./types.js").View} Known */

/** @implements {Known} */
export class View {
  /** @type {import("./types.js").Picture} Its header */
  picture;
  /** @type {import("./types.js").Site[]} */
  sites = [];
  /** @type {import("./types.js").Palette} */
  palette;
  /** @type {import("./types.js").Room} What the last layout found */
  room = {
    em: 0,
    headsWidth: 0,
    sideHeight: 0,
    headsHeight: 0,
    mapWidth: 0,
    mapHeight: 0,
    height: 0,
    family: "",
    narrow: false,
    isLong: false,
  };

  /** @param {import("../../kit/browser/stage.js").Stage<any, any, any> & {forget(what?: string): void, say(): void}} room */
  constructor(room) {
    this.numbers = new Readings(this);
    this.shading = new Shading(this);
    this.chosen = new Chosen(this, room.selection, room);
    this.tip = new Tip(room.root);
    this.answers = () => room.remote;
    this.invalidate = (/** @type {string[]} */ ...what) => room.invalidate(...what);
    this.announce = (/** @type {string} */ text) => room.announce(text);
  }

  get remote() {
    return this.answers();
  }

  get site() {
    return this.sites.find((site) => site.id === this.place.site) ?? this.sites[0];
  }

  // The head that is shown: the one under the pointer in the map of all heads, or else the chosen one
  get place() {
    const { place, peeked } = this.chosen;
    return peeked ? { ...place, ...peeked } : place;
  }

  get options() {
    return this.chosen.options;
  }

  lens() {
    return this.numbers.lens();
  }
}
