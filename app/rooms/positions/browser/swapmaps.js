// Two maps of one head: the one of the text as it was, carried along with two words that have changed places, and the one of the run
// on the swapped text. The first glides from where its words stood.

import { add, arrow, clamp, fill, isStill, percent, quoted, short } from "../../../kit/browser/dom.js";
import { paintOn } from "../../../kit/browser/picture/canvas.js";
import { rising } from "../../../kit/browser/picture/scale.js";
import { paintShapes, text } from "../../../kit/browser/scene.js";
import { greyScale, toneWithout } from "../../../kit/browser/sink.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Shown} Shown */
/** @typedef {import("../../../kit/browser/types.js").Shape} Shape */
/** @typedef {{places: number[], before: Float32Array, after: Float32Array, allowed: Uint8Array}} Pair */
/**
 * @typedef {{
 *   maps: Pair, pair: [number, number], names: string[], query: number, sink: number | null,
 *   lock: (query: number) => void, swap: (from: number, to: number) => void,
 * }} Drawn names of all places, after the words have changed theirs
 */
const WAIT = 500; // ms that the text stands as it was
const GLIDE = 900; // ms until its words have changed places
const FRAMED = 0.1; // of a row: a weight that differs by so much has a frame
const EXACT = 0.0001; // the largest change in a row that is none
const NEAR = 0.1; // and that is a small one
const TITLED = 275; // units of the design that a heading with its note takes
const SLANT = -42; // degrees
const LEAN = 1 / Math.tan((-SLANT * Math.PI) / 180); // pixels to the right for each one up

// Both maps, with the sign between them
export class SwapMaps {
  started = -Infinity; // when the words began to glide
  frame = 0;
  /** @type {Drawn | null} */
  drawn = null;
  moved = new Float32Array(); // its map as it was, carried along
  cell = 1; // pixels
  side = 0;
  top = 0; // pixels above the cells, for their names
  /** @type {{x: number, y: number}[]} Where each map begins */
  at = [];
  size = [0, 0];
  /** @type {number | null} The word that the pointer holds by its name */
  held = null;
  dragged = false; // until the click that ends a drag has come

  /** @param {Shown} view @param {HTMLElement} host */
  constructor(view, host) {
    this.view = view;
    this.box = add(host, "div", "swapmaps");
    Object.assign(this.box, { tabIndex: 0 });
    this.box.setAttribute("role", "img");
    this.canvas = add(this.box, "canvas");
    view.labLeaves.signal.addEventListener("abort", () => cancelAnimationFrame(this.frame));
  }

  // How far the words have come: 0 where they stood, 1 where they stand now
  get come() {
    const t = clamp((performance.now() - this.started - WAIT) / GLIDE, 0, 1);
    return t * t * (3 - 2 * t);
  }

  // The words go once more from where they stood
  play() {
    if (isStill()) return;
    this.started = performance.now();
    this.go();
  }

  go() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.paint();
      if (this.come < 1) this.go();
    });
  }

  clear() {
    this.box.dataset.empty = "true";
  }

  /** @param {Drawn} drawn */
  draw(drawn) {
    this.drawn = drawn;
    this.moved = carried(drawn.maps, drawn.pair);
    const { view, box } = this;
    const { maps, names, query } = drawn;
    box.dataset.empty = "false";
    this.lay();
    this.paint();
    const row = maps.places.indexOf(query);
    const [was, now] = [this.moved, maps.after].map((map) => strongest(map, row, maps.places.length));
    box.setAttribute(
      "aria-label",
      fill(words.swap_maps_label, {
        n: maps.places.length,
        query: quoted(names[query]),
        a: quoted(names[maps.places[was.at]]),
        p: percent(was.value),
        b: quoted(names[maps.places[now.at]]),
        q: percent(now.value),
      }),
    );
    Object.assign(box.dataset, {
      cells: [this.at[0].x, this.at[0].y, this.cell].join(" "),
      value: String(now.value),
      before: String(was.value),
      sign: this.sign(row),
    });
    this.listen();
    view.tip.hide();
  }

  // Where everything stands: two maps beside each other, or below each other where it is narrow
  lay() {
    const { view } = this;
    const { unit } = view;
    const n = /** @type {Drawn} */ (this.drawn).maps.places.length;
    const wide = this.box.clientWidth;
    const left = 74 * unit;
    const between = 40 * unit;
    const top = 78 * unit;
    const right = 30 * unit; // that the last names lean over
    const each = view.narrow ? wide - left - right : (wide - left - between - right) / 2;
    const tall = this.room - top - 4;
    const cell = clamp(Math.min(each / n, tall / n), 7 * unit, (view.isProjected ? 40 : 27) * unit);
    const side = cell * n;
    this.at = view.narrow
      ? [
          { x: left, y: top },
          { x: left, y: 2 * top + side + 14 * unit },
        ]
      : [
          { x: left, y: top },
          { x: left + side + between, y: top },
        ];
    Object.assign(this, { cell, side, top });
    this.size = view.narrow
      ? [left + side + right, 2 * (top + side) + 20 * unit]
      : [2 * side + left + between + right, top + side + 6];
  }

  // Pixels of height for the maps: what is left of the window, or of a projected page
  get room() {
    const { view } = this;
    const above = this.box.getBoundingClientRect().top;
    if (view.room < Infinity)
      return Math.max(200, view.room - (above - view.labPlace.getBoundingClientRect().top) - 30 * view.unit);
    return view.narrow ? Infinity : Math.max(240 * view.unit, innerHeight - above - 94 * view.unit);
  }

  paint() {
    const { view } = this;
    const [width, height] = this.size;
    const font = getComputedStyle(this.box).fontFamily;
    const shapes = this.shapes();
    paintOn(this.canvas, width, height, (context) => {
      context.fillStyle = view.palette.background;
      context.fillRect(0, 0, width, height);
      paintShapes(context, shapes, { hatch: view.palette.mute, font });
    });
  }

  /** @returns {Shape[]} */
  shapes() {
    const { view, at, cell, side, top } = this;
    const { maps, names, pair, query, sink } = /** @type {Drawn} */ (this.drawn);
    const { unit, palette } = view;
    const { places } = maps;
    const n = places.length;
    const other = places.map((place) =>
      places.indexOf(place === pair[0] ? pair[1] : place === pair[1] ? pair[0] : place),
    );
    const t = this.come;
    const from = (/** @type {number} */ i) => other[i] + (i - other[i]) * t; // of what stands at i now
    const { moved } = this;
    const rest = sink === null ? -1 : places.indexOf(sink);
    const most = Math.max(...[moved, maps.after].flatMap((map) => Array.from(map, (x, i) => (i % n === rest ? 0 : x))));
    const without = rest < 0 ? null : toneWithout(palette, rest, most);
    const scale = rising(palette);
    const tone = (/** @type {number} */ x, /** @type {number} */ column) => without?.(x, column) ?? scale(x);
    /** @type {Shape[]} */
    const shapes = [];
    const size = Math.min(13.5 * unit, Math.max(10 * unit, cell * 0.82));
    const hasNotes = (view.narrow ? this.size[0] - at[0].x : at[1].x - at[0].x) > TITLED * unit;
    [moved, maps.after].forEach((map, which) => {
      const { x: x0, y: y0 } = at[which];
      const place = which ? (/** @type {number} */ i) => i : from;
      const bold = which ? words.swap_again : words.swap_moved;
      /** @type {import("../../../kit/browser/types.js").TextPart} */
      const noted = [which ? words.swap_again_note : words.swap_moved_note, palette.mute];
      shapes.push(
        text(x0, y0 - top + 8 * unit, [[`${bold} `, palette.ink, 650], ...(hasNotes ? [noted] : [])], 13.5 * unit),
      );
      const order = Array.from({ length: n }, (_, i) => i).sort(
        (a, b) => Number(other[a] !== a) - Number(other[b] !== b),
      );
      for (const r of order) {
        for (const c of order) {
          const value = map[r * n + c];
          const isAllowed = maps.allowed[r * n + c];
          if (!isAllowed && (which || value === 0)) continue;
          const box = { x: x0 + place(c) * cell + 0.5, y: y0 + place(r) * cell + 0.5, w: cell - 1, h: cell - 1 };
          if (c === rest) {
            shapes.push({ shape: "rect", ...box, fill: palette.ramp[0], rx: 2 });
            shapes.push({
              shape: "rect",
              ...box,
              w: Math.max(1, box.w * value),
              fill: greyScale(palette)(0.7).fill,
              rx: 2,
            });
          } else shapes.push({ shape: "rect", ...box, fill: tone(value, c).fill, rx: 2 });
          if (!isAllowed && t === 1)
            shapes.push({ shape: "hatch", ...box }, { shape: "frame", ...box, stroke: palette.mute, width: 1, rx: 2 });
        }
      }
      if (which)
        for (let i = 0; i < n * n; i++) {
          const change = map[i] - moved[i];
          if (Math.abs(change) < FRAMED || !maps.allowed[i] || t < 1) continue;
          const [r, c] = [Math.floor(i / n), i % n];
          const stroke = change > 0 ? palette.ramp[3] : palette.ahead[3];
          shapes.push({
            shape: "frame",
            x: x0 + c * cell + 1,
            y: y0 + r * cell + 1,
            w: cell - 2,
            h: cell - 2,
            stroke,
            width: 2.2,
            rx: 3,
          });
        }
      places.forEach((p, i) => {
        const swapped = other[i] !== i;
        const name = short(cut(names[p]));
        const above = text(
          x0 + (place(i) + 0.55) * cell,
          y0 - 7 * unit,
          [[name, swapped ? palette.proof : palette.key, swapped ? 650 : 400]],
          Math.min(size, 13 * unit),
          { angle: SLANT },
        );
        shapes.push(above);
        if (which && !view.narrow) return;
        const colour = p === query ? palette.query : swapped ? palette.proof : palette.ink;
        shapes.push(
          text(
            x0 - 7 * unit,
            y0 + (place(i) + 0.5) * cell,
            [[name, colour, swapped || p === query ? 650 : 400]],
            size,
            { anchor: "end" },
          ),
        );
      });
      const row = places.indexOf(query);
      if (row < 0) return;
      const best = strongest(map, row, n, rest);
      if (cell > 17 * unit && best.at >= 0)
        shapes.push(
          text(
            x0 + (place(best.at) + 0.5) * cell,
            y0 + (place(row) + 0.5) * cell,
            [[String(Math.round(100 * best.value)), tone(best.value, best.at).ink, 650]],
            Math.min(12.5 * unit, cell * 0.5),
            { anchor: "middle" },
          ),
        );
      shapes.push({
        shape: "frame",
        x: x0 - 1.5,
        y: y0 + place(row) * cell - 1,
        w: side + 2,
        h: cell + 2,
        stroke: palette.query,
        width: 2,
        rx: 3,
      });
      if (!which && !view.narrow && t === 1)
        shapes.push(
          text(x0 + side + 20 * unit, y0 + (row + 0.5) * cell, [[this.sign(row), palette.proof, 650]], 24 * unit, {
            anchor: "middle",
          }),
        );
    });
    return shapes;
  }

  // Of a row: whether it is the same as carried along, nearly, or another
  /** @param {number} row */
  sign(row) {
    const { maps } = /** @type {Drawn} */ (this.drawn);
    const n = maps.places.length;
    const { moved } = this;
    let most = 0;
    for (let c = 0; c < n; c++) most = Math.max(most, Math.abs(maps.after[row * n + c] - moved[row * n + c]));
    return most < EXACT ? "=" : most < NEAR ? "≈" : "≠";
  }

  // The part of a map at a point: a cell, or the name of a row (column −1) or of a column (row −1)
  /** @param {MouseEvent} event */
  under(event) {
    const frame = this.canvas.getBoundingClientRect();
    const n = /** @type {Drawn} */ (this.drawn).maps.places.length;
    const inside = (/** @type {number} */ i) => i >= 0 && i < n;
    for (const [which, { x, y }] of this.at.entries()) {
      const [left, down] = [event.clientX - frame.left - x, event.clientY - frame.top - y];
      const [row, column] = [Math.floor(down / this.cell), Math.floor(left / this.cell)];
      if (inside(row) && inside(column)) return { which, row, column };
      if (inside(row) && left < 0 && left > -80 * this.view.unit && (which === 0 || this.view.narrow))
        return { which, row, column: -1 };
      // The names above lean to the right
      const leaning = Math.floor((left + down * LEAN) / this.cell);
      if (down < 0 && down > -this.top + 20 * this.view.unit && inside(leaning))
        return { which, row: -1, column: leaning };
    }
    return null;
  }

  listen() {
    const { view, box } = this;
    const { maps, names, query, lock, swap } = /** @type {Drawn} */ (this.drawn);
    const { places } = maps;
    const n = places.length;
    const { moved } = this;
    // The word whose name is at a point, as its place among those that are drawn
    const named = (/** @type {MouseEvent} */ event) => {
      const at = this.under(event);
      return !at ? null : at.column < 0 ? at.row : at.row < 0 ? at.column : null;
    };
    box.onpointerdown = (event) => {
      this.held = event.button ? null : named(event);
      if (this.held !== null) box.setPointerCapture(event.pointerId);
    };
    box.onpointerup = (event) => {
      const to = named(event);
      if (this.held !== null && to !== null && to !== this.held) {
        swap(places[this.held], places[to]);
        this.dragged = true;
      }
      this.held = null;
    };
    box.onpointermove = (event) => {
      const at = this.under(event);
      box.classList.toggle("grab", at !== null && (at.row < 0 || at.column < 0));
      if (this.held !== null)
        return view.tip.follow([fill(words.swap_drag, { a: quoted(names[places[this.held]]) })], event);
      if (!at || at.column < 0 || at.row < 0) return view.tip.hide();
      const i = at.row * n + at.column;
      if (!maps.allowed[i] && (at.which || moved[i] === 0)) return view.tip.follow([words.swap_hidden], event);
      const said = maps.allowed[i] ? words.swap_cell : words.swap_cell_hidden;
      const [q, k] = [at.row, at.column].map((place) => quoted(names[places[place]]));
      view.tip.follow([fill(said, { q, k, a: percent(moved[i], 1), b: percent(maps.after[i], 1) })], event);
    };
    box.onpointerleave = () => view.tip.hide();
    box.onclick = (event) => {
      const at = this.under(event);
      if (at && at.row >= 0 && !this.dragged) lock(places[at.row]);
      this.dragged = false;
    };
    box.onkeydown = (event) => {
      const step = arrow(event);
      if (!step?.[0]) return;
      event.preventDefault();
      event.stopPropagation();
      lock(places[clamp(places.indexOf(query) + step[0], 0, n - 1)]);
    };
  }
}

// The map as it was, its rows and columns carried along with both words
/** @param {Pair} maps @param {[number, number]} pair */
export function carried({ places, before }, [a, b]) {
  const n = places.length;
  const other = places.map((place) => places.indexOf(place === a ? b : place === b ? a : place));
  return Float32Array.from(before, (_, i) => before[other[Math.floor(i / n)] * n + other[i % n]]);
}

/** @param {Float32Array} map @param {number} row @param {number} n @param {number} [but] */
function strongest(map, row, n, but = -1) {
  let at = -1;
  for (let c = 0; c < n; c++) if (c !== but && (at < 0 || map[row * n + c] > map[row * n + at])) at = c;
  return { at, value: at < 0 || row < 0 ? 0 : map[row * n + at] };
}

const LONGEST = 10; // letters of a name

/** @param {string} name */
const cut = (name) => {
  const letters = Array.from(name);
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : name;
};
