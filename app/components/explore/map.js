// One head, large: query down, key across, masked cells hatched, exact values on hover; or the same numbers as a table.

import { fit } from "./colours.js";
import { WORDS as words } from "./constants.js";
import { add, arrow, choice, clamp, el, said, short } from "./dom.js";
import { unpack } from "./run.js";
import { Table } from "./table.js";

const LONG = 128; // keys; above, the map opens on a logarithmic scale
const MANY_CELLS = 6000; // above, cells are drawn as one picture instead of one by one
const ZOOM_FROM = 24; // tokens; below, every cell is large enough as it is

export class HeadMap {
  constructor(view, parent) {
    this.view = view;
    this.area = null; // [q0, q1, k0, k1): the part of the map on the screen
    this.scale = null; // until somebody chooses: see scaleShown
    this.tab = "map";
    this.head = add(parent, "div", "head");
    this.title = add(this.head, "h2");
    this.tools = add(this.head, "div", "tools");
    this.box = add(parent, "div", "matrix");
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "application");
    this.box.setAttribute("aria-label", words.map_label);
    this.base = add(this.box, "canvas");
    this.over = add(this.box, "canvas", "over");
    this.table = new Table(view, parent);
    this.note = add(parent, "p", "note");
    this.box.addEventListener("pointermove", (e) => this.move(e));
    this.box.addEventListener("pointerleave", () => !this.dragging && view.point(null));
    this.box.addEventListener("pointerdown", (e) => this.down(e));
    this.box.addEventListener("pointerup", (e) => this.up(e));
    this.box.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.box.addEventListener("keydown", (e) => this.key(e));
    this.box.addEventListener("blur", () => view.point(null));
  }

  // Colours have changed.
  forget() {
    this.hatch = null;
  }

  build() {
    const { view } = this;
    const { site, sites } = view;
    const tools = [];
    if (sites.length > 1) {
      const options = sites.map(({ id }) => [id, words.tabs[id] ?? id, words.sites[id]?.[1]]);
      tools.push(choice(words.kind, options, site.id, (id) => view.choose({ site: id })));
    }
    if (Math.max(site.n_query, site.n_key) > ZOOM_FROM) tools.push(this.zoomButtons());
    const tabs = [["map", words.map], ["table", words.table]];
    const show = (tab) => {
      this.tab = tab;
      view.redraw("map", "over", "facts");
    };
    tools.push(choice(words.shown_as, tabs, this.tab, show));
    this.tools.replaceChildren(...tools);
    this.area ??= [0, site.n_query, 0, site.n_key];
  }

  zoomButtons() {
    const box = el("span", "seg");
    const buttons = [["−", words.zoom_out, 2], ["+", words.zoom_in, 0.5], ["⤢", words.zoom_fit, Infinity]];
    for (const [text, title, factor] of buttons) {
      const button = box.appendChild(Object.assign(el("button", "", text), { type: "button", title }));
      button.setAttribute("aria-label", title);
      button.addEventListener("click", () => this.zoom(factor));
    }
    return box;
  }

  measure(width, height, em) {
    const [q0, q1, k0, k1] = this.area;
    const context = this.over.getContext("2d");
    const rows = q1 - q0;
    const columns = k1 - k0;
    const guess = Math.min(width / (columns + 3), height / (rows + 3));
    const font = clamp(guess * 0.55, 0.66 * em, em);
    context.font = `600 ${font}px ${this.view.font()}`;
    const longest = (labels, from, to) => {
      const step = Math.max(1, Math.floor((to - from) / 300)); // enough of them to be sure of the room
      let most = 0;
      for (let i = from; i < to; i += step) most = Math.max(most, context.measureText(short(labels[i])).width);
      return most;
    };
    const left = Math.max(4.4 * em, longest(this.view.labels("query"), q0, q1) + 0.9 * em);
    const tall = longest(this.view.labels("key"), k0, k1);
    const top = tall * 0.87 + font * 0.6 + 0.6 * em;
    const lean = tall * 0.5; // room for the last label, which leans to the right
    const across = Math.min((width - left - 2) / columns, (width - left - lean - 0.4 * em) / (columns - 0.5));
    const cell = Math.min(across, (height - top - 2) / rows, 4 * em);
    return { left, top, cell, font, width: left + Math.max(cell * columns + 2, cell * (columns - 0.5) + lean + 0.4 * em) };
  }

  // What to draw for the part on the screen: {rows, columns, values, masked, exact, how, area}, or null while it is fetched
  tile() {
    const { site, place } = this.view;
    const { area } = this;
    const [q0, q1, k0, k1] = area;
    if (this.view.picture.whole) {
      const all = site.weights(place.layer, place.head);
      const why = site.masked(place.layer, place.head);
      const [rows, columns] = [q1 - q0, k1 - k0];
      if (rows === site.n_query && columns === site.n_key) return { rows, columns, values: all, masked: why, exact: true, area };
      const values = new Uint16Array(rows * columns);
      const masked = why && new Uint8Array(rows * columns);
      for (let r = 0; r < rows; r++) {
        const at = (q0 + r) * site.n_key + k0;
        values.set(all.subarray(at, at + columns), r * columns);
        masked?.set(why.subarray(at, at + columns), r * columns);
      }
      return { rows, columns, values, masked, exact: true, area };
    }
    const params = { record: site.records[place.layer], head: place.head, q0, q1, k0, k1 };
    const of = this.view.headName;
    return this.view.remote.get("tile", params, (bytes) => {
      const [header, body] = unpack(bytes);
      const cells = header.rows * header.columns;
      const masked = new Uint8Array(body, Math.ceil((cells * 2) / 4) * 4, cells);
      return { ...header, values: new Uint16Array(body, 0, cells), masked: masked.some(Boolean) ? masked : null, area, of };
    });
  }

  // Until the tile is there: the one before, if it shows a part of this head, or else the small picture
  standIn() {
    const { site, place } = this.view;
    const last = this.lastTile;
    const [q0, q1, k0, k1] = this.area;
    const [a0, a1, b0, b1] = last?.area ?? [0, 0, 0, 0];
    if (last?.of === this.view.headName && a0 < q1 && a1 > q0 && b0 < k1 && b1 > k0) return { ...last, exact: false, how: words.loading };
    const small = site.thumbnail(place.layer, place.head);
    const values = Uint16Array.from(small.values, (v) => (v / 255) ** 2 * 65535);
    const area = [0, site.n_query, 0, site.n_key];
    return { ...small, values, masked: null, exact: false, how: words.loading, area, of: this.view.headName };
  }

  // The weights of a long row are all small: unless somebody chose otherwise, it is drawn on the scale that shows them.
  get scaleShown() {
    return this.scale ?? (this.view.site.n_key > LONG ? "log" : "linear");
  }

  // weight 0..65535 -> 0..255, by the scale
  levels(tile) {
    const { rows, columns, values } = tile;
    const out = new Uint8Array(rows * columns);
    const scale = this.scaleShown;
    if (scale === "linear") return out.map((_, i) => Math.round((values[i] * 255) / 65535));
    if (scale === "log") {
      return out.map((_, i) => (values[i] ? clamp(Math.round(255 * (1 + Math.log10(values[i] / 65535) / 4)), 0, 255) : 0));
    }
    for (let r = 0; r < rows; r++) {
      let most = 1;
      for (let c = 0; c < columns; c++) most = Math.max(most, values[r * columns + c]);
      for (let c = 0; c < columns; c++) out[r * columns + c] = Math.round((values[r * columns + c] * 255) / most);
    }
    return out;
  }

  draw() {
    const { place } = this.view;
    const titles = words.sites[this.view.site.id];
    this.title.replaceChildren(el("b", "", said(words.place, place)), " ");
    if (this.view.sites.length === 1) this.title.append(el("span", "", titles?.[0] ?? this.view.site.id)); // else its tab says so
    this.title.title = `${titles?.[1] ?? ""} ${words.axes_help}`;
    this.box.hidden = this.tab !== "map";
    this.table.box.hidden = this.tab !== "table";
    if (this.tab !== "map") return;
    const g = (this.geometry = this.measure(this.view.room.mapWidth, this.view.room.mapHeight, this.view.room.em));
    const context = fit(this.base, this.view.room.mapWidth, this.view.room.mapHeight);
    const tile = this.tile() ?? this.standIn();
    this.lastTile = tile;
    this.note.textContent = tile.exact ? "" : tile.how === words.loading ? words.loading : said(words.sampled, { how: tile.how });
    if (this.view.remote.failed) this.note.textContent = words.offline;
    Object.assign(this.view.root.dataset, { exact: tile.exact, size: g.cell, left: g.left, top: g.top });
    const [q0, q1, k0, k1] = this.area;
    const [a0, a1, b0, b1] = tile.area;
    const across = (g.cell * (b1 - b0)) / tile.columns; // on the screen, one cell of the tile
    const down = (g.cell * (a1 - a0)) / tile.rows;
    const x0 = g.left + (b0 - k0) * g.cell;
    const y0 = g.top + (a0 - q0) * g.cell;
    const levels = this.levels(tile);
    context.save();
    context.beginPath();
    context.rect(g.left, g.top, g.cell * (k1 - k0), g.cell * (q1 - q0));
    context.clip();
    if (tile.rows * tile.columns > MANY_CELLS || across < 5) {
      const canvas = document.createElement("canvas");
      canvas.width = tile.columns;
      canvas.height = tile.rows;
      const inner = canvas.getContext("2d");
      const image = inner.createImageData(tile.columns, tile.rows);
      const pixels = new Uint32Array(image.data.buffer);
      for (let i = 0; i < levels.length; i++) pixels[i] = tile.masked?.[i] ? 0 : this.view.colour.packed[levels[i]];
      inner.putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(canvas, x0, y0, across * tile.columns, down * tile.rows);
    } else {
      const gap = across > 12 ? 1 : 0.5;
      for (let r = 0; r < tile.rows; r++) {
        for (let c = 0; c < tile.columns; c++) {
          if (tile.masked?.[r * tile.columns + c]) continue;
          context.fillStyle = this.view.colour.css[levels[r * tile.columns + c]];
          context.fillRect(x0 + c * across, y0 + r * down, across - gap, down - gap);
        }
      }
    }
    if (tile.masked) {
      context.fillStyle = this.hatching(context);
      for (let r = 0; r < tile.rows; r++) {
        for (let c = 0; c < tile.columns; c++) {
          const from = c;
          while (c < tile.columns && tile.masked[r * tile.columns + c]) c++;
          if (c > from) context.fillRect(x0 + from * across, y0 + r * down, (c - from) * across, down);
        }
      }
    }
    context.restore();
  }

  hatching(context) {
    const ratio = devicePixelRatio || 1;
    if (this.hatch?.ratio === ratio) return this.hatch.pattern;
    const size = Math.round(6 * ratio);
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = size;
    const inner = canvas.getContext("2d");
    inner.strokeStyle = this.view.palette.hatch;
    inner.lineWidth = ratio;
    inner.beginPath();
    for (const shift of [-size, 0, size]) {
      inner.moveTo(shift - 1, size + 1);
      inner.lineTo(shift + size + 1, -1);
    }
    inner.stroke();
    const pattern = context.createPattern(canvas, "repeat");
    pattern.setTransform(new DOMMatrix().scale(1 / ratio));
    this.hatch = { ratio, pattern };
    return pattern;
  }

  drawOver() {
    if (this.tab !== "map") return;
    const g = this.geometry;
    const { em } = this.view.room;
    const context = fit(this.over, this.view.room.mapWidth, this.view.room.mapHeight);
    const [q0, q1, k0, k1] = this.area;
    const { query } = this.view;
    const key = this.view.hover?.key ?? (query === null ? null : (this.view.ranking(query)?.order[0] ?? null));
    const family = this.view.font();
    context.textBaseline = "middle";
    context.fillStyle = this.view.palette.mute;
    context.font = `${0.75 * em}px ${family}`;
    context.textAlign = "left";
    context.fillText(words.axes, 0, 0.5 * em);
    const every = Math.max(1, Math.ceil((g.font * 1.05) / g.cell));
    const near = (i, chosen) => chosen !== null && i !== chosen && Math.abs(i - chosen) < every; // leave room for the chosen one
    const rows = this.view.labels("query");
    context.textAlign = "right";
    for (let q = q0; q < q1; q++) {
      if (q !== query && ((q - q0) % every || near(q, query))) continue;
      context.font = `${q === query ? "700 " : ""}${g.font}px ${family}`;
      context.fillStyle = q === query ? this.view.palette.query : this.view.palette.ink;
      context.fillText(short(rows[q]), g.left - 0.5 * em, g.top + (q - q0 + 0.5) * g.cell);
    }
    const columns = this.view.labels("key");
    context.textAlign = "left";
    for (let k = k0; k < k1; k++) {
      if (k !== key && ((k - k0) % every || near(k, key))) continue;
      context.save();
      context.translate(g.left + (k - k0 + 0.5) * g.cell, g.top - 0.45 * em);
      context.rotate(-Math.PI / 3);
      context.font = `${k === key ? "700 " : ""}${g.font}px ${family}`;
      context.fillStyle = k === key ? this.view.palette.key : this.view.palette.ink;
      context.fillText(short(columns[k]), 0, 0);
      context.restore();
    }
    if (query !== null && query >= q0 && query < q1) {
      context.strokeStyle = this.view.palette.query;
      context.lineWidth = g.cell < 6 ? 1 : 2;
      context.strokeRect(g.left - 1.5, g.top + (query - q0) * g.cell - 1.5, (k1 - k0) * g.cell + 2, g.cell + 2);
    }
    if (this.view.hover?.key != null && this.view.hover.key >= k0 && this.view.hover.key < k1) {
      context.strokeStyle = this.view.palette.key;
      context.lineWidth = g.cell < 6 ? 1 : 2;
      context.strokeRect(g.left + (this.view.hover.key - k0) * g.cell - 1.5, g.top - 1.5, g.cell + 2, (q1 - q0) * g.cell + 2);
    }
  }

  cellAt(e) {
    const g = this.geometry;
    if (!g) return null;
    const box = this.base.getBoundingClientRect();
    const [q0, q1, k0, k1] = this.area;
    const q = q0 + Math.floor((e.clientY - box.top - g.top) / g.cell);
    const k = k0 + Math.floor((e.clientX - box.left - g.left) / g.cell);
    if (q < q0 || q >= q1 || k >= k1) return null;
    return k < k0 ? { query: q, key: null } : { query: q, key: k }; // left of the map is the query's label
  }

  showTip({ query, key }, x, y) {
    this.tipAt = [x, y];
    const ranking = this.view.ranking(query);
    const name = (axis, i) => [el("em", axis === "query" ? "q" : "k", this.view.labels(axis)[i]), el("small", "", ` ${said(words.position, { i })}`)];
    const first = el("div", "");
    first.append(...name("query", query), " → ", ...name("key", key));
    const second = el("div", "");
    if (!ranking) {
      second.textContent = words.loading;
    } else if (ranking.masked?.[key]) {
      second.textContent = said(words.tip_masked, { reason: this.view.reason(ranking.masked[key]) });
    } else {
      const p = ranking.weights[key] / 65535;
      const parts = { value: p.toFixed(4), share: `${(p * 100).toFixed(2)} %`, rank: ranking.rank.get(key), n: ranking.order.length };
      second.textContent = said(words.tip_value, parts);
    }
    this.view.tip.replaceChildren(first, second);
    if (x === undefined) {
      const g = this.geometry;
      const box = this.base.getBoundingClientRect();
      x = box.left + g.left + (key - this.area[2] + 0.5) * g.cell;
      y = box.top + g.top + (query - this.area[0] + 0.5) * g.cell;
    }
    this.view.putTip(x, y);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { site } = this.view;
    const step = arrow(e);
    if (step) {
      e.preventDefault();
      const from = this.view.hover ?? { query: this.view.place.query ?? 0, key: null };
      const key = from.key ?? this.view.ranking(from.query)?.order[0] ?? 0;
      const first = this.view.hover?.key == null;
      const at = {
        query: clamp(from.query + (first ? 0 : step[0]), 0, site.n_query - 1),
        key: clamp(key + (first ? 0 : step[1]), 0, site.n_key - 1),
      };
      this.reveal(at);
      this.view.point(at, e);
      this.showTip(at);
      this.view.say();
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      if (this.view.query !== null) this.view.lock(this.view.query);
    } else if (e.key === "Escape") {
      this.view.release();
    } else if (e.key === "+" || e.key === "=") {
      this.zoom(0.5);
    } else if (e.key === "-") {
      this.zoom(2);
    } else if (e.key === "0") {
      this.zoom(Infinity);
    }
  }

  move(e) {
    if (this.dragging) {
      const { x, y, area, cell } = this.dragging;
      const q = Math.round((y - e.clientY) / cell);
      const k = Math.round((x - e.clientX) / cell);
      if (q || k) this.dragging.moved = true;
      this.show([area[0] + q, area[1] + q, area[2] + k, area[3] + k]);
      return;
    }
    const at = this.cellAt(e);
    this.view.point(at, e);
    if (at && at.key !== null) this.showTip(at, e.clientX, e.clientY);
  }

  down(e) {
    if (e.button === 0 && this.zoomed() && this.cellAt(e)) {
      this.dragging = { x: e.clientX, y: e.clientY, area: this.area, cell: this.geometry.cell, moved: false };
      this.box.setPointerCapture(e.pointerId);
    }
  }

  up(e) {
    const dragged = this.dragging?.moved;
    this.dragging = null;
    const at = dragged ? null : this.cellAt(e);
    if (at) this.view.lock(at.query);
  }

  wheel(e) {
    if (!e.ctrlKey && !e.metaKey) return; // the plain wheel scrolls the page
    e.preventDefault();
    this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.cellAt(e));
  }

  zoomed() {
    const { site } = this.view;
    const { area } = this;
    return area && (area[1] - area[0] < site.n_query || area[3] - area[2] < site.n_key);
  }

  // Keep the size, stay inside the map.
  show([q0, q1, k0, k1]) {
    const { site } = this.view;
    const rows = clamp(q1 - q0, 1, site.n_query);
    const columns = clamp(k1 - k0, 1, site.n_key);
    const top = clamp(q0, 0, site.n_query - rows);
    const left = clamp(k0, 0, site.n_key - columns);
    this.area = [top, top + rows, left, left + columns];
    this.view.redraw("map", "over");
  }

  zoom(factor, at) {
    const { site } = this.view;
    const { area } = this;
    const middle = { query: (area[0] + area[1]) / 2, key: (area[2] + area[3]) / 2 };
    const { query } = this.view;
    const inside = at ?? (query === null ? middle : { query, key: this.view.ranking(query)?.order[0] ?? middle.key });
    const centre = { query: clamp(inside.query, area[0], area[1]), key: clamp(inside.key ?? middle.key, area[2], area[3]) };
    const size = (from, to, most) => clamp(Math.round((to - from) * factor), Math.min(8, most), most);
    const rows = size(area[0], area[1], site.n_query);
    const columns = size(area[2], area[3], site.n_key);
    const q0 = Math.round(centre.query - (rows * (centre.query - area[0])) / (area[1] - area[0]));
    const k0 = Math.round(centre.key - (columns * (centre.key - area[2])) / (area[3] - area[2]));
    this.show([q0, q0 + rows, k0, k0 + columns]);
  }

  // Move the part on the screen so that a cell reached by keyboard is in it.
  reveal({ query, key }) {
    const [q0, q1, k0, k1] = this.area;
    const q = query < q0 ? query - q0 : query >= q1 ? query - q1 + 1 : 0;
    const k = key < k0 ? key - k0 : key >= k1 ? key - k1 + 1 : 0;
    if (q || k) this.show([q0 + q, q1 + q, k0 + k, k1 + k]);
  }
}
