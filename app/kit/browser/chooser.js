// One head of many, chosen from a map of all of them: a button that says which, and what it opens. It fits 12 heads and 5,120.

import { fit } from "./colours.js";
import { add, arrow, choice, clamp, el, fill, number, phrase, setAll, setText } from "./dom.js";
import { headOf } from "./head_finder.js";
import { rising, rooted, signed } from "./picture/scale.js";
import { WORDS as words } from "./words.js";

/**
 * One number for each head, by which the map is coloured. `title` has parts in braces, [text, class] in `parts`. null while the
 * numbers are on their way; NaN is a head that has none.
 * @typedef {{id: string, name: string, title: string, parts?: Record<string, unknown>, note?: string, isSigned?: boolean, values: () => ArrayLike<number> | null, say: (x: number) => string}} Measure
 */
/** The heads, and which of them is chosen; null in its place where none is. `kv_heads`: how many keys and values they share.
 * @typedef {{layers: number, heads: number, kv_heads?: number, layer: number | null, head: number | null, measures?: Measure[]}} Heads */
/** @typedef {{layer: number, head: number}} Head */

const STRONGEST = 7; // heads of the list beside the map
const CELL = 26; // largest side of a cell, in units of 16 pixels of type
const [WIDE, TALL] = [590, 470]; // the most that the map takes, in those
const TOUCHED = [40, 22]; // width and height of a cell where the layers go downward
const FEW_PIXELS = 11; // a cell with a smaller side is enlarged under the pointer
const LENS = 4; // heads on either side of the one that is pointed at
const NARROW = 640; // pixels of a window, as the style sheets have it
const EDGE = 8; // pixels to the edge of the window
const GROUPS_NAMED = 4; // groups that share their keys which are named one by one

// The heads with the largest numbers, whatever their sign; those without one are left out.
/** @param {ArrayLike<number>} values @param {number} heads in a layer @param {number} count @returns {(Head & {value: number})[]} */
export function strongest(values, heads, count) {
  return Array.from(values, (value, at) => ({ layer: Math.floor(at / heads), head: at % heads, value }))
    .filter(({ value }) => !Number.isNaN(value))
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
    .slice(0, count);
}

// Where the cells of a map stand: layers to the right and heads downward, or turned. Between heads that share no keys is a gap.
/**
 * @param {Pick<Heads, "layers" | "heads" | "kv_heads">} of @param {number} wide @param {number} tall pixels for all cells
 * @param {boolean} turned @param {number} unit pixels of the type, for 1
 */
export function cellsOf({ layers, heads, kv_heads = heads }, wide, tall, turned, unit) {
  const group = kv_heads > 1 && kv_heads < heads ? heads / kv_heads : heads;
  const gaps = Math.ceil(heads / group) - 1;
  const gap = gaps && Math.min(7 * unit, ((turned ? wide : tall) * 0.15) / gaps);
  const w = turned
    ? Math.min(TOUCHED[0] * unit, (wide - gaps * gap) / heads)
    : Math.min(CELL * unit, wide / layers, ((tall - gaps * gap) / heads) * 2);
  const h = turned
    ? Math.min(TOUCHED[1] * unit, Math.max(w * 0.8, tall / layers))
    : Math.min(CELL * unit, w * 1.2, (tall - gaps * gap) / heads);
  const along = (/** @type {number} */ head) => Math.floor(head / group) * gap + head * (turned ? w : h);
  return {
    w,
    h,
    width: turned ? along(heads - 1) + w : layers * w,
    height: turned ? layers * h : along(heads - 1) + h,
    /** @param {Head} at @returns {[x: number, y: number]} */
    at: ({ layer, head }) => (turned ? [along(head), layer * h] : [layer * w, along(head)]),
    /** @param {number} x @param {number} y @returns {Head | null} the head there */
    of(x, y) {
      const [layer, place] = turned ? [Math.floor(y / h), x] : [Math.floor(x / w), y];
      if (place < 0 || layer < 0 || layer >= layers) return null;
      let head = heads - 1;
      while (head > 0 && along(head) > place) head--;
      return place < along(head) + (turned ? w : h) ? { layer, head } : null;
    },
  };
}

/**
 * The heads around one of a map, large enough to be told apart, beside it; of cells that are, the frame alone.
 * @param {HTMLCanvasElement} lens @param {HTMLCanvasElement} map
 * @param {{cells: ReturnType<typeof cellsOf>, origin: number[], at: Head, heads: {layers: number, heads: number}, turned: boolean, unit: number, isSmall: boolean, palette: {panel: string, ink: string}}} of
 * @param {(at: Head) => string} tone
 */
export function drawLens(lens, map, { cells, origin, at, heads, turned, unit, isSmall, palette }, tone) {
  const [x, y] = cells.at(at).map((start, i) => start + origin[i]);
  const around = isSmall ? LENS : 0;
  const [w, h] = isSmall ? [15 * unit, 15 * unit] : [cells.w, cells.h];
  const size = 2 * around + 1;
  const edge = 3 * unit;
  const context = fit(lens, size * w + 2 * edge, size * h + 2 * edge);
  if (isSmall) {
    context.fillStyle = palette.panel;
    context.fillRect(0, 0, size * w + 2 * edge, size * h + 2 * edge);
  }
  for (let i = -around; i <= around; i++)
    for (let j = -around; j <= around; j++) {
      const [layer, head] = turned ? [at.layer + j, at.head + i] : [at.layer + i, at.head + j];
      if (layer < 0 || head < 0 || layer >= heads.layers || head >= heads.heads) continue;
      context.fillStyle = tone({ layer, head });
      context.fillRect(edge + (i + around) * w, edge + (j + around) * h, w - 2 * unit, h - 2 * unit);
    }
  context.strokeStyle = palette.ink;
  context.lineWidth = 2 * unit;
  context.strokeRect(edge + around * w - unit, edge + around * h - unit, w, h);
  const beyond = isSmall && y > map.clientHeight / 2 ? -(size * h) - cells.h - 4 * edge : 0; // not over the cell itself
  const [left, top] = isSmall
    ? [clamp(x - (size * w) / 2, 0, Math.max(0, map.clientWidth - size * w)), y + cells.h + 2 * edge + beyond]
    : [x - edge, y - edge];
  lens.style.translate = `${left}px ${top}px`;
  lens.classList.toggle("raised", isSmall);
}

export class HeadChooser {
  /** @type {Head} Where the arrows are in the map */
  cursor = { layer: 0, head: 0 };
  isShort = false; // whether its button says only the numbers
  by = ""; // the measure that the map is coloured by; "" is the first
  drawn = "";
  /** @type {ArrayLike<number> | null} The numbers of its colours now */
  values = null;
  top = 1; // the largest of them, which has the strongest colour
  /** @type {import("./picture/scale.js").Scale | null} */
  scale = null;
  /** @type {ReturnType<typeof cellsOf> | null} */
  cells = null;
  origin = [0, 0]; // of the first cell on the canvas

  /**
   * @param {import("./stage.js").Stage<any, any, any>} room @param {() => Heads | null} of
   * @param {(layer: number, head: number) => void} [take] what choosing does; else what "/" does in this room
   */
  constructor(room, of, take) {
    this.room = room;
    this.of = of;
    this.take = take ?? ((layer, head) => room.chooseHead(layer, head));
    this.element = el("span", "head-choice");
    this.button = room.button(this.element, "", () => this.toggle(), "");
    this.button.classList.add("head-button");
    setAll(this.button, { "aria-haspopup": "dialog", "aria-expanded": "false" });
    this.pin = room.button(
      this.element,
      "",
      () => room.choose({ pinned: this.isPinned ? "" : "true" }),
      words.pin_help,
    );
    this.pin.classList.add("pin");
    this.box = el("div", "all-heads");
    setAll(this.box, { popover: "auto", role: "dialog", "aria-label": words.heads_choose });
    const top = add(this.box, "div", "heads-top");
    this.title = add(top, "p", "heads-title");
    this.kinds = add(top, "span", "heads-by");
    const middle = add(this.box, "div", "heads-middle");
    this.grid = add(middle, "div", "heads-map");
    this.grid.tabIndex = 0;
    this.grid.setAttribute("role", "slider"); // a place among all heads that arrows move: every screen reader says its text
    this.canvas = add(this.grid, "canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.lens = add(this.grid, "canvas", "heads-lens");
    setAll(this.lens, { "aria-hidden": "true", hidden: "" });
    this.list = add(middle, "ol", "heads-strongest");
    this.list.setAttribute("aria-label", words.heads_strongest);
    const low = add(this.box, "div", "heads-low");
    this.show = room.button(low, "", () => this.taken(this.cursor), words.heads_show_help);
    const form = add(low, "form");
    const label = add(form, "label");
    label.append(`${words.heads_go} `);
    this.field = add(label, "input");
    Object.assign(this.field, { type: "text", autocomplete: "off", spellcheck: false, maxLength: 24 });
    this.shared = add(low, "span", "mute");
    this.said = add(low, "span", "mute");
    this.said.setAttribute("role", "status");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.asked();
    });
    this.listen();
    room.root.append(this.box);
  }

  listen() {
    const { box, grid, room } = this;
    box.addEventListener("toggle", (event) => {
      const isOpen = /** @type {ToggleEvent} */ (event).newState === "open";
      this.button.setAttribute("aria-expanded", String(isOpen));
      if (!isOpen) this.lens.hidden = true;
    });
    grid.addEventListener("keydown", (event) => this.key(event));
    grid.addEventListener("pointermove", (event) => {
      const at = this.pointed(event);
      if (at && event.pointerType !== "touch") this.move(at);
    });
    grid.addEventListener("pointerleave", () => (this.lens.hidden = true));
    grid.addEventListener("click", (event) => {
      const at = this.pointed(event);
      if (!at) return;
      const isSame = at.layer === this.cursor.layer && at.head === this.cursor.head;
      if (/** @type {PointerEvent} */ (event).pointerType === "touch" && !isSame)
        this.move(at); // a finger is broader than a cell
      else this.taken(at);
    });
    room.leaving.addEventListener("abort", () => box.remove());
  }

  /** Whether the head stays when the text changes. */
  get isPinned() {
    return this.room.values.pinned === "true";
  }

  get isOpen() {
    return this.box.matches(":popover-open");
  }

  /** @returns {boolean} whether there are heads to choose from */
  toggle() {
    const heads = this.of();
    if (!heads) return false;
    if (this.isOpen) {
      this.box.hidePopover();
      return true;
    }
    this.cursor = { layer: heads.layer ?? 0, head: heads.head ?? 0 };
    this.drawn = "";
    this.field.value = "";
    setText(this.said, "");
    this.box.showPopover();
    this.drawBox(heads);
    this.place();
    this.grid.focus({ preventScroll: true });
    return true;
  }

  /** With every drawing of the room: the button, and what is open. */
  draw() {
    const heads = this.of();
    this.element.hidden = !heads;
    const { pinned, layer: chosen } = this.room.values;
    const hasHead = heads ? heads.layer !== null : Boolean(chosen);
    this.pin.hidden = pinned === undefined || this.room.isOffline || !hasHead;
    this.pin.setAttribute("aria-pressed", String(this.isPinned));
    setText(this.pin, this.isPinned ? words.pinned : words.pin);
    if (!heads) {
      if (this.isOpen) this.box.hidePopover();
      return;
    }
    const { layer, head } = heads;
    const place = this.isShort ? words.head_short : words.head_place;
    setText(this.button, layer === null || head === null ? words.heads_one : fill(place, { layer, head }));
    setAll(this.button, {
      title: fill(words.head_button_help, { n: number(heads.layers * heads.heads) }),
    });
    if (!this.isOpen) return;
    this.drawBox(heads);
    this.place(); // new numbers may have made it wider
  }

  // ------------------------------------------------------------------ what is open

  /** @param {Heads} heads @returns {Measure | undefined} */
  measure({ measures = [] }) {
    return measures.find(({ id }) => id === this.by) ?? measures[0];
  }

  /** @param {Heads} heads */
  drawBox(heads) {
    const measure = this.measure(heads);
    const values = measure?.values() ?? null;
    const { palette, scheme } = this.room;
    const turned = innerWidth <= NARROW;
    const unit = this.room.typeUnit;
    const state = JSON.stringify([heads, measure?.id, measure?.parts, turned, unit, scheme, innerWidth, innerHeight]);
    if (state === this.drawn && values === this.values) return;
    this.drawn = state;
    this.values = values;
    this.isRooted = measure?.isSigned ?? false; // what is added or taken is small but for a few; shares are shown as they are
    this.scale = measure?.isSigned ? signed(palette) : rising(palette);
    const known = values ? Array.from(values, (x) => (Number.isNaN(x) ? 0 : Math.abs(x))) : [0];
    this.top = known.reduce((most, x) => Math.max(most, x), 0) || 1;
    this.title.replaceChildren(
      ...(measure ? phrase(measure.title, measure.parts ?? {}) : [document.createTextNode(words.heads_choose)]),
      ...(measure?.note ? [" ", el("small", "mute", measure.note)] : []),
    );
    const measures = heads.measures ?? [];
    const kinds = measures.map(({ id, name }) => /** @type {import("./types.js").Choice<string>} */ ([id, name]));
    const seg =
      kinds.length > 1
        ? [
            choice(words.heads_measure, kinds, measure?.id ?? "", (id) => {
              this.by = id;
              this.draw();
            }),
          ]
        : [];
    const focused = [...this.kinds.querySelectorAll("button")].findIndex((node) => node.matches(":focus"));
    this.kinds.replaceChildren(...seg);
    if (focused >= 0) this.kinds.querySelectorAll("button")[focused]?.focus();
    const wide = turned ? innerWidth - 2 * EDGE - 94 * unit : Math.min(WIDE * unit, innerWidth - 330 * unit);
    const tall = Math.min(TALL * unit, innerHeight - 190 * unit);
    this.cells = cellsOf(heads, wide, tall, turned, unit);
    this.paint(heads, turned, unit);
    this.drawList(heads, measure, values);
    setText(this.shared, sharing(heads));
    this.move(this.cursor, true);
  }

  /** @param {Heads} heads @param {boolean} turned @param {number} unit */
  paint(heads, turned, unit) {
    const cells = /** @type {ReturnType<typeof cellsOf>} */ (this.cells);
    const { palette } = this.room;
    const size = 12.5 * unit;
    const [left, above, below] = [52 * unit, turned ? 20 * unit : 3 * unit, turned ? 4 * unit : 22 * unit];
    this.origin = [left, above];
    const context = fit(this.canvas, left + cells.width + 3 * unit, above + cells.height + below);
    context.font = `${size}px ${getComputedStyle(this.grid).fontFamily}`;
    const gap = Math.min(2 * unit, Math.min(cells.w, cells.h) / 6);
    for (let layer = 0; layer < heads.layers; layer++)
      for (let head = 0; head < heads.heads; head++) {
        const [x, y] = cells.at({ layer, head });
        context.fillStyle = this.tone(layer * heads.heads + head);
        context.fillRect(left + x, above + y, cells.w - gap, cells.h - gap);
      }
    context.fillStyle = palette.mute;
    context.textBaseline = "middle";
    /** @param {string} text @param {number} x @param {number} y @param {CanvasTextAlign} align */
    const write = (text, x, y, align) => {
      context.textAlign = align;
      context.fillText(text, x, y);
    };
    const middle = (/** @type {Head} */ at) => cells.at(at).map((x, i) => x + (i ? cells.h : cells.w) / 2);
    const last = heads.heads - 1;
    const step = [1, 2, 5, 10, 20, 50].find((n) => n * (turned ? cells.h : cells.w) >= 30 * unit) ?? 100;
    if (turned) {
      write(fill(words.heads_head, { head: 0 }), left, above - 11 * unit, "left");
      if (last > 3) write(String(last), left + middle({ layer: 0, head: last })[0], above - 11 * unit, "center");
    } else {
      write(fill(words.heads_head, { head: 0 }), left - 6 * unit, above + middle({ layer: 0, head: 0 })[1], "right");
      if (last) write(String(last), left - 6 * unit, above + middle({ layer: 0, head: last })[1], "right");
      write(words.heads_layer, left - 6 * unit, above + cells.height + 12 * unit, "right");
    }
    for (let layer = 0; layer < heads.layers; layer += step) {
      const [x, y] = middle({ layer, head: 0 });
      if (turned)
        write(layer ? String(layer) : fill(words.heads_layer_n, { layer }), left - 6 * unit, above + y, "right");
      else write(String(layer), left + x, above + cells.height + 12 * unit, "center");
    }
    const { layer, head } = heads;
    if (layer !== null && head !== null) this.frame(context, { layer, head }, palette.query, 2.5 * unit);
  }

  /** @param {number} at */
  tone(at) {
    const value = this.values?.[at];
    const { palette } = this.room;
    if (value === undefined || Number.isNaN(value)) return palette.line;
    return this.scale?.(this.isRooted ? rooted(value / this.top) : value / this.top).fill ?? palette.line;
  }

  /** @param {CanvasRenderingContext2D} context @param {Head} at @param {string} colour @param {number} width */
  frame(context, at, colour, width) {
    const cells = /** @type {ReturnType<typeof cellsOf>} */ (this.cells);
    const [x, y] = cells.at(at);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(
      this.origin[0] + x - width / 2,
      this.origin[1] + y - width / 2,
      cells.w + width / 2,
      cells.h + width / 2,
    );
  }

  /** @param {Heads} heads @param {Measure | undefined} measure @param {ArrayLike<number> | null} values */
  drawList(heads, measure, values) {
    const found = values ? strongest(values, heads.heads, STRONGEST) : [];
    this.list.hidden = !measure;
    this.list.replaceChildren(
      ...found.map(({ layer, head, value }) => {
        const item = el("li");
        const button = this.room.button(item, "", () => this.taken({ layer, head }));
        button.append(
          el("span", "", fill(words.head_place, { layer, head })),
          el("b", measure?.isSigned ? (value < 0 ? "less" : "more") : "", measure?.say(value) ?? ""),
        );
        button.setAttribute("aria-current", String(layer === heads.layer && head === heads.head));
        return item;
      }),
    );
    if (measure && !values) this.list.append(el("li", "mute", words.heads_wait));
  }

  // Below its button, and wholly in the window
  place() {
    const { box, button } = this;
    const from = button.getBoundingClientRect();
    const { width, height } = box.getBoundingClientRect();
    const left = from.width ? from.right - width : (innerWidth - width) / 2;
    box.style.left = `${clamp(left, EDGE, Math.max(EDGE, innerWidth - width - EDGE))}px`;
    const top = from.width ? from.bottom + EDGE : innerHeight / 5;
    box.style.top = `${clamp(top, EDGE, Math.max(EDGE, innerHeight - height - EDGE))}px`;
  }

  // ------------------------------------------------------------------ moving and taking

  /** @param {MouseEvent} event @returns {Head | null} */
  pointed(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.cells?.of(event.clientX - box.left - this.origin[0], event.clientY - box.top - this.origin[1]) ?? null;
  }

  // Another head is looked at in the map, and not chosen yet
  /** @param {Head} at @param {boolean} [quiet] */
  move(at, quiet = false) {
    const heads = this.of();
    if (!heads || !this.cells) return;
    this.cursor = { layer: clamp(at.layer, 0, heads.layers - 1), head: clamp(at.head, 0, heads.heads - 1) };
    const { layer, head } = this.cursor;
    const index = layer * heads.heads + head;
    const value = this.values?.[index];
    const measure = this.measure(heads);
    const known = measure && value !== undefined && !Number.isNaN(value) ? measure.say(value) : "";
    const name = fill(words.head_place, this.cursor);
    setText(this.show, known ? fill(words.heads_at, { name, value: known }) : name);
    setAll(this.grid, {
      "aria-label": fill(words.heads_grid, { n: heads.layers * heads.heads }),
      "aria-valuemin": "0",
      "aria-valuemax": String(heads.layers * heads.heads - 1),
      "aria-valuenow": String(index),
      "aria-valuetext": this.show.textContent ?? "",
    });
    this.enlarge(heads, quiet);
  }

  // The heads around the cursor, large enough to be told apart; of cells that are, the frame alone
  /** @param {Heads} heads @param {boolean} quiet */
  enlarge(heads, quiet) {
    const cells = /** @type {ReturnType<typeof cellsOf>} */ (this.cells);
    const unit = this.room.typeUnit;
    const isSmall = Math.min(cells.w, cells.h) < FEW_PIXELS * unit;
    this.lens.hidden = quiet && isSmall;
    if (this.lens.hidden) return;
    const { cursor, origin } = this;
    const of = {
      cells,
      origin,
      at: cursor,
      heads,
      turned: innerWidth <= NARROW,
      unit,
      isSmall,
      palette: this.room.palette,
    };
    drawLens(this.lens, this.canvas, of, ({ layer, head }) => this.tone(layer * heads.heads + head));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const heads = this.of();
    if (!heads || event.ctrlKey || event.metaKey || event.altKey) return;
    const turned = innerWidth <= NARROW;
    const step = arrow(event);
    const { layer, head } = this.cursor;
    /** @type {Record<string, Head>} */
    const ends = { Home: { layer: 0, head }, End: { layer: heads.layers - 1, head } };
    if (step) {
      const [down, right] = turned ? [step[1], step[0]] : step;
      this.move({ layer: layer + right, head: head + down });
    } else if (ends[event.key]) this.move(ends[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.taken(this.cursor);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The numbers in the field, such as 24.4
  asked() {
    const heads = this.of();
    const found = headOf(this.field.value);
    if (!heads || !found || found[0] >= heads.layers || found[1] >= heads.heads) {
      const allowed = { layers: (heads?.layers ?? 1) - 1, heads: (heads?.heads ?? 1) - 1 };
      setText(this.said, fill(words.find_head_unknown, { asked: this.field.value.trim(), ...allowed }));
      this.field.select();
      return;
    }
    this.taken({ layer: found[0], head: found[1] });
  }

  /** @param {Head} at */
  taken({ layer, head }) {
    this.box.hidePopover();
    this.button.focus({ preventScroll: true });
    this.take(layer, head);
  }
}

// The first and the last of the heads that have the same keys and values, group by group; none where each has its own
/** @param {Pick<Heads, "heads" | "kv_heads">} heads @returns {[first: number, last: number][]} */
export function groupsOf({ heads, kv_heads = heads }) {
  const size = heads / kv_heads;
  return size === 1 ? [] : Array.from({ length: kv_heads }, (_, i) => [i * size, (i + 1) * size - 1]);
}

/** @param {Heads} heads */
function sharing(heads) {
  const groups = groupsOf(heads);
  if (!groups.length) return "";
  if (groups.length > GROUPS_NAMED) return fill(words.heads_shared_each, { n: groups[0][1] + 1 });
  const names = groups.map(([first, last]) => `${first}–${last}`);
  const last = names.pop();
  return fill(words.heads_shared, { groups: names.length ? `${names.join(", ")} ${words.heads_and} ${last}` : last });
}
