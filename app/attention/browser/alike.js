// The heads whose map is most like that of the chosen one.

import { fit } from "../../kit/browser/colours.js";
import { WORDS as words } from "./constants.js";
import { add, button, el, fill } from "../../kit/browser/dom.js";
import { likest } from "./metrics.js";
import { drawSmall } from "./smallmaps.js";
import { areSeveral, isPerHead } from "./values.js";
import { pointed } from "../../kit/browser/language.js";

const SHOWN = 4;

export class Alike {
  isInCorner = false; // in a place that groups of heads leave free, or below the heads

  /** @param {import("./types.js").View} view @param {HTMLElement} parent @param {import("./overview.js").Overview} overview */
  constructor(view, parent, overview) {
    this.view = view;
    this.overview = overview;
    this.parent = parent;
    this.box = add(parent, "div", "alike");
    for (const name of ["click", "pointermove", "keydown"])
      this.box.addEventListener(name, (e) => this.isInCorner && e.stopPropagation()); // of no small map
  }

  // Whether this place counts: heads to compare, and their weights here
  get isWanted() {
    const { site, options, picture } = this.view;
    if (areSeveral(options)) return false; // "this one" would be one that no one sees
    return (
      site.layers * site.heads > SHOWN &&
      site.n_query * site.n_key > 8 &&
      isPerHead(options.kind) &&
      (picture.whole || picture.follows)
    );
  }

  // Among groups of heads, from the top of their box; null: below them
  /** @param {{y: number, height: number} | null} place */
  stand(place) {
    this.isInCorner = Boolean(place);
    this.box.classList.toggle("corner", this.isInCorner);
    const parent = place ? this.overview.box : this.parent;
    if (this.box.parentElement !== parent) parent.append(this.box);
    this.box.style.top = place ? `${place.y}px` : "";
    this.box.style.maxHeight = place ? `${place.height}px` : "";
  }

  // Whether there are heads to compare: the grid leaves room for them
  get isPossible() {
    const { site } = this.view;
    const { em, headsHeight } = this.view.room;
    const isRoom = headsHeight > (7.7 + 0.95 * Math.min(site.layers, 8)) * em; // beside the grid
    return this.isWanted && isRoom;
  }

  // Beside a wide map they are named and not drawn, so that the maps of all heads may be larger.
  get areNamed() {
    return !this.view.room.narrow;
  }

  // Room to leave for them, in em
  get tall() {
    return this.isPossible ? (this.areNamed ? 3.8 : 7) : 0;
  }

  hide() {
    this.box.hidden = true;
  }

  /** @param {() => number} free px that are left for it: not asked, since the page is laid out for it, where there is nothing to show */
  draw(free) {
    const { view } = this;
    this.box.hidden = !(this.isInCorner ? this.isWanted : this.isPossible) || !view.picture.whole;
    if (this.box.hidden) return;
    const { em } = view.room;
    const { site, place } = view;
    const space = this.isInCorner ? Infinity : free();
    this.box.hidden = space < (this.areNamed ? 3.2 : 8) * em;
    if (this.box.hidden) return;
    const best = likest(site, place, SHOWN, view.shading.rests?.key ?? null);
    this.box.replaceChildren(Object.assign(el("h2", "", words.alike), { title: words.alike_help }));
    const row = this.box.appendChild(el("div", "row"));
    const size = Math.floor(Math.min((view.room.headsWidth - 3 * 0.6 * em) / SHOWN, space - 4.4 * em));
    for (const { layer, head, r } of best) {
      const one = row.appendChild(button("", "", (e) => view.chosen.go({ layer, head }, e)));
      one.ariaLabel = `${fill(words.place, { layer, head })}, ${pointed(r.toFixed(2))}`;
      if (!this.areNamed)
        drawSmall(
          fit(one.appendChild(el("canvas", "")), size, size),
          this.overview.atlas(site),
          { layer, head },
          0,
          0,
          size,
        );
      const line = one.appendChild(el("span", ""));
      line.append(el("b", "", fill(words.head_short, { layer, head })), el("i", "", pointed(r.toFixed(2))));
    }
    this.overview.said.alike = best.map(({ layer, head, r }) => `${layer}.${head}:${r.toFixed(4)}`).join(" ");
  }
}
