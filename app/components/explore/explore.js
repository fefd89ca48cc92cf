// The Explore component: sentence strip, overview of all heads, the chosen head large, facts about the chosen query.
//
// Streamlit calls the default export again whenever the data or the theme changes, always with the same parentElement.
// So state lives in a WeakMap, listeners are attached once, and later calls only redraw. Everything a visitor does here
// is drawn here; Python is told once, debounced. Text of visitors goes in through textContent and fillText only.
//
// explore.py puts three constants in front: WORDS, PALETTES and STYLE, from words.py, theme.py and explore.css.

const VIEWS = new WeakMap();
const TELL_AFTER = 250; // ms without a change before Python is told
const TOP = 5; // keys with a bar of their own
const STRIP_TOKENS = 600; // tokens in the strip at once
const TABLE_ROWS = 500;
const LINE_TOKENS = 64; // above, lines between tokens are a blur
const LONG = 128; // keys; above, the map opens on a logarithmic scale
const KEEP = 0.8; // of each row that its lines carry
const MANY_CELLS = 6000; // above, cells are drawn as one picture instead of one by one

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".hl");
  let view = VIEWS.get(parentElement);
  if (!view || view.root !== root) {
    view?.destroy();
    view = new View(root);
    root.before(el("style", "", STYLE));
    VIEWS.set(parentElement, view);
  }
  view.update(data, setStateValue);
  return () => {
    view.destroy();
    VIEWS.delete(parentElement);
  };
}

// ------------------------------------------------------------------------------------------------ small helpers

const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

function el(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

// "{query} gives {share}" and {query: ["it", "q"], share: "68 %"} as nodes; a pair is set off, and names its class.
function phrase(template, parts) {
  return template.split(/(\{\w+\})/).filter(Boolean).map((piece) => {
    if (piece[0] !== "{") return document.createTextNode(piece);
    const part = parts[piece.slice(1, -1)];
    return Array.isArray(part) ? el("em", part[1], part[0]) : document.createTextNode(part);
  });
}

const said = (template, parts) => phrase(template, parts).map((node) => node.textContent).join("");

function share(p) {
  const percent = p * 100;
  if (percent === 0) return "0 %";
  if (percent < 0.1) return "under 0.1 %";
  return `${percent < 1 ? percent.toFixed(1) : Math.round(percent)} %`;
}

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
function scientific(x) {
  if (!x) return "0";
  const [digits, exponent] = x.toExponential(0).split("e");
  return `${digits}·10${[...String(Number(exponent))].map((c) => SUPERSCRIPT[c]).join("")}`;
}

// "0–3, 5" from sorted numbers
function ranges(numbers) {
  const runs = [];
  for (const i of numbers) {
    const last = runs.at(-1);
    if (last && last[1] === i - 1) last[1] = i;
    else runs.push([i, i]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

const number = (n) => Math.round(n).toLocaleString("en");
const counted = (forms, n) => said(forms[n === 1 ? 0 : 1], { n });

// In a sentence, a token that is only signs would be taken for the sentence's own.
const quoted = (label) => (/^[\p{P}\p{S}\s]+$/u.test(label) ? `“${label}”` : label);

function short(label) {
  const letters = Array.from(label);
  return letters.length > 13 ? letters.slice(0, 12).join("") + "…" : label;
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
// Relative luminance and contrast as WCAG 2.2 defines them.
function luminance(colour) {
  const [r, g, b] = colour.map((c) => (c <= 10 ? c / 3295 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);

// 256 colours along a ramp of five stops, as [r, g, b] and as CSS.
function colours(ramp) {
  const stops = ramp.map(rgb);
  const table = Array.from({ length: 256 }, (_, i) => {
    const x = (i / 255) * (stops.length - 1);
    const at = Math.min(stops.length - 2, Math.floor(x));
    return stops[at].map((a, c) => Math.round(a + (stops[at + 1][c] - a) * (x - at)));
  });
  return {
    rgb: table,
    css: table.map((c) => `rgb(${c})`),
    ink: table.map((c) => (contrast(luminance(c), 0) > contrast(luminance(c), 1) ? "#000000" : "#ffffff")),
    packed: Uint32Array.from(table, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0),
  };
}

function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const at = bytes.byteOffset + 4 + length;
  return [header, bytes.buffer.slice(at, bytes.byteOffset + bytes.byteLength)]; // a copy, so that numbers are aligned
}

// A canvas as large as its box on the screen, sharp on any display; returns its context in CSS pixels.
function fit(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const w = Math.round(width * ratio);
  const h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// ------------------------------------------------------------------------------------------------ what arrived

// One kind of attention of the run: its maps by layer and head.
class Site {
  constructor(header, body) {
    Object.assign(this, header);
    this.body = body;
    this.layers = header.records.length;
    this.pictures = new Map();
  }

  // uint16 [query, key]
  weights(layer, head) {
    const cells = this.n_query * this.n_key;
    return new Uint16Array(this.body, nth(this.weights_at, layer * this.heads + head, cells, 2), cells);
  }

  // bits [query]
  entropies(layer, head) {
    const at = nth(this.entropy_at, layer * this.heads + head, this.n_query, 4);
    return new Float32Array(this.body, at, this.n_query);
  }

  // uint8 [query, key], 0 where it may look; null where nothing is masked
  masked(layer, head) {
    const of = this.mask_of[layer];
    const which = of.length > 1 ? of[head] : of[0];
    return which < 0 ? null : new Uint8Array(this.body, this.masks_at[which], this.n_query * this.n_key);
  }

  // uint8 [row, column] on a square-root scale, at most 32 × 32
  thumbnail(layer, head, size = 32) {
    if (this.thumbnails_at !== undefined) {
      const cells = this.rows * this.columns;
      const values = new Uint8Array(this.body, this.thumbnails_at + (layer * this.heads + head) * cells, cells);
      return { rows: this.rows, columns: this.columns, values };
    }
    const all = this.weights(layer, head);
    const rows = Math.min(size, this.n_query);
    const columns = Math.min(size, this.n_key);
    const largest = new Uint16Array(rows * columns);
    for (let q = 0; q < this.n_query; q++) {
      const row = Math.floor((q * rows) / this.n_query) * columns;
      for (let k = 0; k < this.n_key; k++) {
        const at = row + Math.floor((k * columns) / this.n_key);
        const value = all[q * this.n_key + k];
        if (value > largest[at]) largest[at] = value;
      }
    }
    return { rows, columns, values: Uint8Array.from(largest, (w) => Math.round(255 * Math.sqrt(w / 65535))) };
  }

  // query heads that share the key head of this one
  group(head) {
    const size = this.heads / this.kv_heads;
    const first = Math.floor(head / size) * size;
    return Array.from({ length: size }, (_, i) => first + i);
  }
}

const nth = (start, index, cells, width) => start + index * cells * width;

// Bytes of a large run, fetched once and kept for a while.
class Remote {
  constructor(key, arrived) {
    this.key = key;
    this.arrived = arrived;
    this.kept = new Map();
    this.underway = new Set(); // one request a path: a pointer that crosses a hundred rows asks for the last of them
    this.failed = false;
  }

  // What the address gives, or null while it is on its way; arrived() is called when it is there.
  get(path, params, read) {
    const url = new URL(`headlight/${path}`, document.baseURI);
    url.search = new URLSearchParams({ run: this.key, ...params });
    const id = `${path}?${url.searchParams}`;
    if (this.kept.has(id)) {
      const value = this.kept.get(id);
      this.kept.delete(id);
      this.kept.set(id, value); // newest last
      return value;
    }
    if (this.failed && performance.now() < this.again) return null; // no storm of requests at a server that is down
    if (this.underway.has(path)) return null; // arrived() makes the caller ask again, for what it wants by then
    this.underway.add(path);
    if (this.kept.size > 64) this.kept.delete(this.kept.keys().next().value);
    fetch(url)
      .then(async (response) => {
        if (!response.ok) throw new Error(await response.text());
        this.kept.set(id, read(new Uint8Array(await response.arrayBuffer())));
        this.failed = false;
      })
      .catch(() => {
        this.failed = true;
        this.again = performance.now() + 3000;
      })
      .finally(() => {
        this.underway.delete(path);
        this.arrived();
      });
    return null;
  }
}

// ------------------------------------------------------------------------------------------------ the view

class View {
  constructor(root) {
    this.root = root;
    this.words = WORDS;
    this.place = null; // {site, layer, head, query}: what is chosen; query null when none is locked
    this.hover = null; // {query, key}: what the pointer or the keyboard is on; key may be null
    this.area = null; // [q0, q1, k0, k1): the part of the map on the screen
    this.scale = null; // until somebody chooses: see scaleShown
    this.tab = "map";
    this.told = 0;
    this.stale = new Set();
    this.painted = 0;
    this.frame = 0;
    this.ranks = new Map();
    this.build();
    this.watch = new ResizeObserver(() => {
      const now = `${this.root.clientWidth},${this.top()}`; // our own growth is no reason to draw again
      if (now !== this.room?.seen) this.redraw("layout");
    });
    this.watch.observe(root);
    const page = document.querySelector('[data-testid="stMainBlockContainer"]');
    if (page) this.watch.observe(page); // a sentence above moves the picture down, which then has less room
    this.resized = () => this.redraw("layout");
    addEventListener("resize", this.resized);
    document.fonts.ready.then(this.resized); // a canvas drawn before its font came has the wrong letters for good
  }

  destroy() {
    this.watch.disconnect();
    removeEventListener("resize", this.resized);
    cancelAnimationFrame(this.frame);
    clearTimeout(this.telling);
    clearTimeout(this.saying);
  }

  // ------------------------------------------------------------------ skeleton and listeners, once

  build() {
    const make = (parent, tag, className) => parent.appendChild(el(tag, className));
    this.root.replaceChildren();
    this.strips = make(this.root, "div", "strips");
    const main = make(this.root, "div", "main");
    this.main = main;

    const heads = make(main, "section", "heads");
    this.headsTitle = make(heads, "h2", "");
    this.overview = make(heads, "div", "overview");
    this.overview.tabIndex = 0;
    this.overview.setAttribute("role", "application");
    this.overviewBase = make(this.overview, "canvas", "");
    this.overviewOver = make(this.overview, "canvas", "over");
    this.shared = make(heads, "p", "note");
    this.alike = make(heads, "div", "alike");
    this.hint = make(heads, "p", "note hint");

    const map = make(main, "section", "map");
    this.mapHead = make(map, "div", "head");
    this.mapTitle = make(this.mapHead, "h2", "");
    this.mapTools = make(this.mapHead, "div", "tools");
    this.matrix = make(map, "div", "matrix");
    this.matrix.tabIndex = 0;
    this.matrix.setAttribute("role", "application");
    this.mapBase = make(this.matrix, "canvas", "");
    this.mapOver = make(this.matrix, "canvas", "over");
    this.tableBox = make(map, "div", "tablebox");
    this.tableBox.tabIndex = 0;
    this.tableBox.setAttribute("role", "region");
    this.mapNote = make(map, "p", "note");

    this.facts = make(main, "section", "facts");
    this.factsTitle = make(this.facts, "h2", "");
    this.big = make(this.facts, "p", "big");
    this.bars = make(this.facts, "div", "bars");
    this.entropyLine = make(this.facts, "p", "");
    this.maskLine = make(this.facts, "p", "mute");
    this.groupLine = make(this.facts, "p", "mute");
    this.linesBox = make(this.facts, "div", "lines");
    this.linesTitle = make(this.linesBox, "h2", "");
    this.linesCanvas = make(this.linesBox, "canvas", "");

    this.footer = make(this.root, "footer", "");
    this.proofs = make(this.footer, "span", "proofs");
    this.runLine = make(this.footer, "span", "");
    this.legend = make(this.footer, "span", "legend");
    this.tip = make(this.root, "div", "tip");
    this.tip.hidden = true;
    this.live = make(this.root, "div", "unseen");
    this.live.setAttribute("aria-live", "polite");

    this.overview.addEventListener("click", (e) => {
      const at = this.headAt(e);
      if (at) this.choose(at, e);
    });
    this.overview.addEventListener("pointermove", (e) => this.peek(this.headAt(e), e));
    this.overview.addEventListener("pointerleave", () => this.peek(null));
    this.overview.addEventListener("keydown", (e) => this.overviewKey(e));
    this.matrix.addEventListener("pointermove", (e) => this.mapMove(e));
    this.matrix.addEventListener("pointerleave", () => !this.dragging && this.point(null));
    this.matrix.addEventListener("pointerdown", (e) => this.mapDown(e));
    this.matrix.addEventListener("pointerup", (e) => this.mapUp(e));
    this.matrix.addEventListener("wheel", (e) => this.mapWheel(e), { passive: false });
    this.matrix.addEventListener("keydown", (e) => this.mapKey(e));
    this.matrix.addEventListener("blur", () => this.point(null));
    this.strips.addEventListener("pointerover", (e) => this.stripHover(e));
    this.strips.addEventListener("pointerenter", () => (this.onStrip = true));
    this.strips.addEventListener("pointerleave", () => {
      this.onStrip = false;
      this.point(null);
    });
    this.strips.addEventListener("click", (e) => this.stripClick(e));
    this.strips.addEventListener("keydown", (e) => this.stripKey(e));
    this.strips.addEventListener("focusin", (e) => this.stripHover(e));
    this.strips.addEventListener("focusout", () => this.point(null));
  }

  // ------------------------------------------------------------------ data in, place out

  update(data, setStateValue) {
    this.set = setStateValue;
    if (data !== this.data) {
      this.data = data;
      const [header, body] = unpack(data);
      const same = this.picture?.key === header.key;
      this.picture = header;
      this.sites = header.sites.map((site) => new Site(site, body));
      if (!same) this.remote = new Remote(header.key, () => this.arrived());
      this.ranks.clear();
      this.atlas = null;
      this.lineCache = null;
      if (header.stamp !== this.stamp) {
        this.stamp = header.stamp;
        this.place = { ...header.opened };
        this.area = null;
      }
      this.hover = null;
      this.tip.hidden = true;
    }
    this.theme();
    this.redraw("layout");
  }

  theme() {
    const page = getComputedStyle(this.root).getPropertyValue("--st-background-color").trim();
    const name = /^#[0-9a-f]{6}$/i.test(page) && luminance(rgb(page)) < 0.2 ? "dark" : "light";
    if (name !== this.themeName) this.atlas = this.lineCache = this.hatch = null;
    this.themeName = name;
    this.palette = PALETTES[name];
    this.colour = colours(this.palette.ramp);
    for (const [key, value] of Object.entries(this.palette)) {
      if (typeof value === "string") this.root.style.setProperty(`--${key}`, value);
    }
    this.root.style.setProperty("--ramp", `linear-gradient(90deg, ${this.palette.ramp.join(", ")})`);
    this.root.style.setProperty("--bar", this.palette.ramp[3]);
    this.root.dataset.theme = name;
  }

  arrived() {
    this.redraw("proofs", ...(this.picture.whole ? [] : ["map", "over", "facts", "strip"]));
    if (!this.tip.hidden && this.hover?.key != null) this.showTip(this.hover, ...this.tipAt);
  }

  tell() {
    clearTimeout(this.telling);
    this.told += 1; // so that a place told before, and left by the browser's own Back, is news again
    const place = { key: this.picture.key, told: this.told, ...this.place };
    this.telling = setTimeout(() => this.set("place", place), TELL_AFTER);
  }

  get site() {
    return this.sites.find((site) => site.id === this.place.site) ?? this.sites[0];
  }

  labels(axis) {
    return this.picture.tokens[this.site[axis]];
  }

  get query() {
    return this.hover ? this.hover.query : this.place.query;
  }

  // {weights, masked, bits} of one query, or null while it is being fetched
  row(query) {
    const { site, place } = this;
    const n = site.n_key;
    if (this.picture.whole) {
      const masked = site.masked(place.layer, place.head);
      return {
        weights: site.weights(place.layer, place.head).subarray(query * n, query * n + n),
        masked: masked?.subarray(query * n, query * n + n) ?? null,
        bits: site.entropies(place.layer, place.head)[query],
      };
    }
    const params = { record: site.records[place.layer], head: place.head, query };
    return this.remote.get("row", params, (bytes) => {
      const [header, body] = unpack(bytes);
      const masked = new Uint8Array(body, Math.ceil((n * 2) / 4) * 4, n);
      return { weights: new Uint16Array(body, 0, n), masked: masked.some(Boolean) ? masked : null, bits: header.entropy };
    });
  }

  // The keys a query may look at, most weight first, and each one's rank; cached for the head on the screen.
  ranking(query) {
    const id = `${this.headName},${query}`;
    if (this.ranks.has(id)) return this.ranks.get(id);
    const row = this.row(query);
    if (!row) return null;
    const order = [];
    for (let k = 0; k < row.weights.length; k++) if (!row.masked?.[k]) order.push(k);
    order.sort((a, b) => row.weights[b] - row.weights[a] || a - b);
    const rank = new Map();
    order.forEach((k, i) => {
      const above = order[i - 1];
      rank.set(k, above !== undefined && row.weights[above] === row.weights[k] ? rank.get(above) : i + 1);
    });
    if (this.ranks.size > 256) this.ranks.clear();
    const ranking = { ...row, order, rank };
    this.ranks.set(id, ranking);
    return ranking;
  }

  // What each key gets on average over queries, 0..1; null for a large run
  averages() {
    if (!this.picture.whole) return null;
    const { site } = this;
    const all = site.weights(this.place.layer, this.place.head);
    const mean = new Float64Array(site.n_key);
    for (let at = 0; at < all.length; at++) mean[at % site.n_key] += all[at];
    return mean.map((sum) => sum / (65535 * site.n_query));
  }

  // ------------------------------------------------------------------ what a visitor does

  choose(at, event) {
    const before = this.site;
    this.place = { ...this.place, ...at };
    if (this.site !== before) {
      const { site } = this;
      this.place.layer = Math.min(this.place.layer, site.layers - 1);
      this.place.head = Math.min(this.place.head, site.heads - 1);
      if (this.place.query !== null) this.place.query = Math.min(this.place.query, site.n_query - 1);
      this.area = null;
      this.hover = null;
      this.redraw("layout");
    }
    this.since = event?.timeStamp;
    this.tell();
    this.redraw("overview", "map", "over", "strip", "facts", "proofs", "alike");
    this.say();
  }

  lock(query) {
    this.place = { ...this.place, query: query === this.place.query ? null : query };
    this.tell();
    this.redraw("over", "strip", "facts");
    this.say();
  }

  release() {
    this.place = { ...this.place, query: null };
    this.hover = null;
    this.tip.hidden = true;
    this.tell();
    this.redraw("over", "strip", "facts");
    this.say();
  }

  point(at, event) {
    const same = at?.query === this.hover?.query && at?.key === this.hover?.key;
    if (!same) {
      this.hover = at;
      this.since = event?.timeStamp;
      this.redraw("over", "strip", "facts");
    }
    if (!at || at.key === null) this.tip.hidden = true;
  }

  // the small picture under the pointer, named
  peek(at, event) {
    const same = at?.layer === this.peeked?.layer && at?.head === this.peeked?.head;
    this.peeked = at;
    if (!same) this.redraw("overviewOver");
    if (!at) {
      this.tip.hidden = true;
      return;
    }
    const lines = [el("div", "", said(this.words.place, at))];
    if (this.site.kv_heads < this.site.heads) {
      lines.push(el("div", "mute", said(this.words.shared, { heads: ranges(this.site.group(at.head)) })));
    }
    this.tip.replaceChildren(...lines);
    this.putTip(event.clientX, event.clientY);
  }

  overviewKey(e) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    if (!step || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    const { site, place } = this;
    const layer = clamp(place.layer + step[0], 0, site.layers - 1);
    const head = clamp(place.head + step[1], 0, site.heads - 1);
    if (layer !== place.layer || head !== place.head) this.choose({ layer, head }, e);
  }

  mapKey(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { site } = this;
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
    if (step) {
      e.preventDefault();
      const from = this.hover ?? { query: this.place.query ?? 0, key: null };
      const key = from.key ?? this.ranking(from.query)?.order[0] ?? 0;
      const first = this.hover?.key == null;
      const at = {
        query: clamp(from.query + (first ? 0 : step[0]), 0, site.n_query - 1),
        key: clamp(key + (first ? 0 : step[1]), 0, site.n_key - 1),
      };
      this.reveal(at);
      this.point(at, e);
      this.showTip(at);
      this.say();
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      if (this.query !== null) this.lock(this.query);
    } else if (e.key === "Escape") {
      this.release();
    } else if (e.key === "+" || e.key === "=") {
      this.zoom(0.5);
    } else if (e.key === "-") {
      this.zoom(2);
    } else if (e.key === "0") {
      this.zoom(Infinity);
    }
  }

  mapMove(e) {
    if (this.dragging) {
      const { x, y, area, cell } = this.dragging;
      const q = Math.round((y - e.clientY) / cell);
      const k = Math.round((x - e.clientX) / cell);
      if (q || k) this.dragging.moved = true;
      this.show([area[0] + q, area[1] + q, area[2] + k, area[3] + k]);
      return;
    }
    const at = this.cellAt(e);
    this.point(at, e);
    if (at && at.key !== null) this.showTip(at, e.clientX, e.clientY);
  }

  mapDown(e) {
    if (e.button === 0 && this.zoomed() && this.cellAt(e)) {
      this.dragging = { x: e.clientX, y: e.clientY, area: this.area, cell: this.geometry.cell, moved: false };
      this.matrix.setPointerCapture(e.pointerId);
    }
  }

  mapUp(e) {
    const dragged = this.dragging?.moved;
    this.dragging = null;
    const at = dragged ? null : this.cellAt(e);
    if (at) this.lock(at.query);
  }

  mapWheel(e) {
    if (!e.ctrlKey && !e.metaKey) return; // the plain wheel scrolls the page
    e.preventDefault();
    this.zoom(e.deltaY > 0 ? 1.25 : 0.8, this.cellAt(e));
  }

  stripHover(e) {
    const token = e.composedPath()[0];
    if (token.dataset?.axis === "query") this.point({ query: Number(token.dataset.i), key: null }, e);
  }

  stripClick(e) {
    const token = e.composedPath()[0];
    if (token.dataset?.axis === "query") this.lock(Number(token.dataset.i));
  }

  stripKey(e) {
    const token = e.composedPath()[0];
    if (token.dataset?.axis !== "query") return;
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[e.key];
    if (step) {
      e.preventDefault();
      const all = [...token.parentElement.querySelectorAll("[data-axis=query]")];
      const next = all[clamp(all.indexOf(token) + step, 0, all.length - 1)];
      token.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      this.say();
    } else if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      this.lock(Number(token.dataset.i));
    } else if (e.key === "Escape") {
      this.release();
    }
  }

  // ------------------------------------------------------------------ which part of the map

  zoomed() {
    const { site, area } = this;
    return area && (area[1] - area[0] < site.n_query || area[3] - area[2] < site.n_key);
  }

  // Keep the size, stay inside the map.
  show([q0, q1, k0, k1]) {
    const { site } = this;
    const rows = clamp(q1 - q0, 1, site.n_query);
    const columns = clamp(k1 - k0, 1, site.n_key);
    const top = clamp(q0, 0, site.n_query - rows);
    const left = clamp(k0, 0, site.n_key - columns);
    this.area = [top, top + rows, left, left + columns];
    this.redraw("map", "over");
  }

  zoom(factor, at) {
    const { site, area } = this;
    const middle = { query: (area[0] + area[1]) / 2, key: (area[2] + area[3]) / 2 };
    const { query } = this;
    const inside = at ?? (query === null ? middle : { query, key: this.ranking(query)?.order[0] ?? middle.key });
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

  // ------------------------------------------------------------------ drawing, at most once a frame

  redraw(...what) {
    for (const part of what) this.stale.add(part);
    if (!this.frame && this.picture) this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.frame = 0;
    const stale = new Set(this.stale);
    this.stale.clear();
    if (!this.root.isConnected) return;
    if (stale.has("layout")) {
      if (!this.layout()) return;
      for (const part of ["overview", "map", "over", "strip", "facts", "proofs", "alike"]) stale.add(part);
    }
    if (stale.has("overview")) this.drawOverview();
    if (stale.has("overview") || stale.has("overviewOver")) this.drawChosen();
    if (stale.has("map")) this.drawMap();
    if (stale.has("map") || stale.has("over")) this.drawOver();
    if (stale.has("strip")) this.shadeStrip();
    if (stale.has("facts")) this.drawFacts();
    if (stale.has("alike")) this.drawAlike();
    if (stale.has("proofs")) this.drawProofs();
    const { dataset } = this.root;
    dataset.run = this.picture.key;
    dataset.site = this.site.id;
    dataset.layer = this.place.layer;
    dataset.head = this.place.head;
    dataset.query = this.query ?? "";
    dataset.locked = this.place.query ?? "";
    dataset.tokens = this.site.n_query;
    dataset.cell = this.hover?.key != null ? `${this.hover.query},${this.hover.key}` : "";
    const row = this.hover?.key != null ? this.row(this.hover.query) : null;
    dataset.value = row ? (row.weights[this.hover.key] / 65535).toFixed(6) : "";
    dataset.painted = ++this.painted;
    const since = this.since;
    this.since = undefined;
    if (since !== undefined) requestAnimationFrame(() => (dataset.ms = (performance.now() - since).toFixed(1)));
  }

  // Where the component begins on the page, however far that is scrolled.
  top() {
    const scrolled = document.querySelector('[data-testid="stMain"]')?.scrollTop ?? 0;
    return Math.round(this.root.getBoundingClientRect().top + scrolled);
  }

  // Sizes from the window: the picture fills the screen without scrolling. False while there is no room yet.
  layout() {
    const width = this.root.clientWidth;
    if (!width) return false;
    this.buildStrip();
    this.buildTexts();
    this.buildTools();
    const top = this.top();
    const em = parseFloat(getComputedStyle(this.root).fontSize);
    const below = 3.4 * em; // the closed box of shapes under the component, which Streamlit draws in its own size
    const around = this.strips.offsetHeight + this.footer.offsetHeight + 1.6 * em;
    const height = clamp(innerHeight - top - below - around, 20 * em, 64 * em);
    const wide = width > 56 * em;
    this.root.classList.toggle("narrow", !wide);
    const gap = 1.7 * em;
    const { site } = this;
    this.headsWidth = wide ? 20.5 * em : width;
    const factsWidth = 19 * em;
    const note = this.picture.whole ? 0.3 * em : 2.9 * em; // room to say how a tile was found
    const mapHeight = wide ? height - this.mapHead.offsetHeight - note : Math.max(20 * em, width);
    const room = wide ? width - this.headsWidth - factsWidth - 2 * gap : width;
    if (!this.area) this.area = [0, site.n_query, 0, site.n_key];
    this.geometry = this.mapGeometry(room, mapHeight, em);
    const mapWidth = wide ? clamp(this.geometry.width, 24 * em, room) : room;
    this.main.style.gridTemplateColumns = wide ? `${this.headsWidth}px ${mapWidth}px minmax(0, 1fr)` : "minmax(0, 1fr)";
    this.main.style.minHeight = wide ? `${height}px` : "";
    this.room = { width: mapWidth, height: mapHeight, em, heads: wide ? height : Infinity, seen: `${width},${top}` };
    this.matrix.style.height = `${mapHeight}px`;
    this.tableBox.style.height = `${mapHeight}px`;
    return true;
  }

  mapGeometry(width, height, em) {
    const [q0, q1, k0, k1] = this.area;
    const context = this.mapOver.getContext("2d");
    const rows = q1 - q0;
    const columns = k1 - k0;
    const guess = Math.min(width / (columns + 3), height / (rows + 3));
    const font = clamp(guess * 0.55, 0.66 * em, em);
    context.font = `600 ${font}px ${this.font()}`;
    const longest = (labels, from, to) => {
      const step = Math.max(1, Math.floor((to - from) / 300)); // enough of them to be sure of the room
      let most = 0;
      for (let i = from; i < to; i += step) most = Math.max(most, context.measureText(short(labels[i])).width);
      return most;
    };
    const left = Math.max(4.4 * em, longest(this.labels("query"), q0, q1) + 0.9 * em);
    const tall = longest(this.labels("key"), k0, k1);
    const top = tall * 0.87 + font * 0.6 + 0.6 * em;
    const lean = tall * 0.5; // room for the last label, which leans to the right
    const across = Math.min((width - left - 2) / columns, (width - left - lean - 0.4 * em) / (columns - 0.5));
    const cell = Math.min(across, (height - top - 2) / rows, 4 * em);
    return { left, top, cell, font, width: left + Math.max(cell * columns + 2, cell * (columns - 0.5) + lean + 0.4 * em) };
  }

  font() {
    return getComputedStyle(this.root).fontFamily;
  }

  buildTexts() {
    const { words, picture, site } = this;
    const size = said(words.heads_size, {
      kind: picture.kind,
      layers: counted(words.layers, site.layers),
      heads: counted(words.heads_count, site.heads),
    });
    this.headsTitle.replaceChildren(el("b", "", words.heads), " ", el("span", "", size));
    this.headsTitle.title = words.heads_help;
    this.overview.setAttribute("aria-label", words.heads_label);
    this.matrix.setAttribute("aria-label", words.map_label);
    this.hint.textContent = words.hint;
    const sharing = site.kv_heads < site.heads;
    this.shared.hidden = !sharing;
    this.shared.textContent = sharing ? said(words.shared_all, { n: site.heads / site.kv_heads }) : "";
    this.linesTitle.replaceChildren(el("b", "", words.lines), el("span", "", words.lines_note));
    this.linesTitle.title = words.lines_help;
    const { source, target } = picture.tokens;
    const parts = { n: number(source.length), m: number(target?.length), ms: Math.round(picture.ms), device: picture.device, dtype: picture.dtype };
    this.runLine.textContent = said(target ? words.run_pair : words.run, parts);
  }

  buildTools() {
    const { words } = this;
    const group = (label, options, chosen, act) => {
      const box = el("span", "seg");
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", label);
      for (const [value, text, title] of options) {
        const button = el("button", "", text);
        button.type = "button";
        if (title) button.title = title;
        button.dataset.value = value;
        button.setAttribute("aria-pressed", value === chosen);
        button.addEventListener("click", () => {
          for (const other of box.children) other.setAttribute("aria-pressed", other === button);
          act(value);
        });
        box.append(button);
      }
      return box;
    };
    const tools = [];
    if (this.sites.length > 1) {
      const options = this.sites.map((site) => [site.id, words.tabs[site.id] ?? site.id, words.sites[site.id]?.[1]]);
      tools.push(group("attention", options, this.site.id, (site) => this.choose({ site })));
    }
    if (Math.max(this.site.n_query, this.site.n_key) > 24) {
      const box = el("span", "seg");
      for (const [text, title, factor] of [["−", words.zoom_out, 2], ["+", words.zoom_in, 0.5], ["⤢", words.zoom_fit, Infinity]]) {
        const button = el("button", "", text);
        button.type = "button";
        button.title = title;
        button.setAttribute("aria-label", title);
        button.addEventListener("click", () => this.zoom(factor));
        box.append(button);
      }
      tools.push(box);
    }
    const tabs = [["map", words.map], ["table", words.table]];
    tools.push(group("view", tabs, this.tab, (tab) => {
      this.tab = tab;
      this.redraw("map", "over", "facts");
    }));
    this.mapTools.replaceChildren(...tools);
    const low = el("span", "", "0");
    const bar = el("i", "ramp");
    this.legendTop = el("span", "", "1");
    this.legendLow = low;
    const scales = [["linear", words.linear], ["log", words.log], ["per row", words.per_row]];
    const choice = group(words.colour, scales, this.scaleShown, (scale) => {
      this.scale = scale;
      this.redraw("map");
    });
    choice.title = words.colour_help;
    this.legend.replaceChildren(low, bar, this.legendTop, el("span", "gap", words.colour), choice);
  }

  // ------------------------------------------------------------------ the sentence

  buildStrip() {
    const { site, words, picture } = this;
    const two = site.query !== site.key;
    const axes = two ? ["query", "key"] : ["query"];
    const centre = this.place.query ?? 0;
    const strips = axes.map((axis) => {
      const labels = this.labels(axis);
      const from = clamp(Math.round(centre - STRIP_TOKENS / 2), 0, Math.max(0, labels.length - STRIP_TOKENS));
      const to = Math.min(labels.length, from + STRIP_TOKENS);
      const strip = el("div", `strip ${axis}`);
      strip.classList.toggle("long", labels.length > 48);
      strip.setAttribute("role", axis === "query" ? "listbox" : "list");
      strip.setAttribute("aria-label", axis === "query" ? words.strip_label : words.strip_keys_label);
      if (picture.tokens.target) strip.append(el("small", "", words[site[axis]]));
      if (from) strip.append(el("small", "", "…"));
      for (let i = from; i < to; i++) {
        const token = el("span", "", labels[i]);
        token.dataset.i = i;
        token.dataset.axis = axis;
        token.setAttribute("role", axis === "query" ? "option" : "listitem");
        if (axis === "query") token.tabIndex = i === (this.place.query ?? 0) ? 0 : -1;
        strip.append(token);
      }
      if (to < labels.length) strip.append(el("small", "", "…"));
      return strip;
    });
    const focused = this.root.getRootNode().activeElement?.dataset?.i;
    this.strips.replaceChildren(...strips);
    if (focused !== undefined) strips[0].querySelector(`[data-i="${focused}"]`)?.focus();
  }

  shadeStrip() {
    const { query, site } = this;
    if (!this.onStrip) for (const strip of this.strips.children) this.bringIntoView(strip);
    const row = query === null ? null : this.row(query);
    const mean = query === null ? this.averages() : null;
    const weight = (k) => (row ? row.weights[k] / 65535 : (mean?.[k] ?? 0));
    const shaded = this.strips.lastElementChild;
    for (const token of this.strips.querySelectorAll("[data-i]")) {
      const i = Number(token.dataset.i);
      if (token.parentElement === shaded) {
        const hidden = Boolean(row?.masked?.[i]);
        const level = Math.round(255 * Math.sqrt(weight(i)));
        token.style.backgroundColor = hidden ? "" : this.colour.css[level];
        token.style.color = hidden ? "" : this.colour.ink[level];
        token.classList.toggle("masked", hidden);
      }
      if (token.dataset.axis === "query") {
        token.classList.toggle("q", i === query);
        token.setAttribute("aria-selected", i === this.place.query);
      }
      if (token.dataset.axis === "key" || site.query === site.key) token.classList.toggle("k", i === this.hover?.key && i !== query);
    }
  }

  // A long sentence scrolls inside its strip, never the page.
  bringIntoView(strip) {
    const i = strip.classList.contains("query") ? this.query : this.hover?.key;
    const token = i == null || strip.scrollHeight <= strip.clientHeight ? null : strip.querySelector(`[data-i="${i}"]`);
    if (!token) return;
    const [top, bottom] = [token.offsetTop, token.offsetTop + token.offsetHeight];
    if (top < strip.scrollTop || bottom > strip.scrollTop + strip.clientHeight) {
      strip.scrollTop = (top + bottom - strip.clientHeight) / 2;
    }
  }

  // ------------------------------------------------------------------ all heads

  overviewGeometry() {
    const { site } = this;
    const { em } = this.room;
    const left = 1.5 * em;
    const bracket = site.kv_heads < site.heads ? 0.35 * em : 0;
    const top = 1.15 * em + bracket;
    const tallest = Math.max(1.6 * em, (0.5 * this.room.heads) / site.layers); // leave half of the column to the rest
    const pitch = clamp((this.headsWidth - left) / site.heads, 6, Math.min(4.8 * em, tallest));
    const gap = pitch > 18 ? 3 : pitch > 10 ? 2 : 1;
    return { left, top, bracket, pitch, gap, size: pitch - gap };
  }

  drawOverview() {
    const { site } = this;
    const { em } = this.room;
    const g = (this.grid = this.overviewGeometry());
    const width = g.left + g.pitch * site.heads + 2;
    const height = g.top + g.pitch * site.layers + 2;
    this.overview.style.height = `${height}px`;
    this.overview.style.maxHeight = `${this.room.heads - 3 * em - this.hint.offsetHeight - this.shared.offsetHeight}px`;
    if (this.atlas?.site !== site) this.atlas = this.drawAtlas(site);
    const context = fit(this.overviewBase, width, height);
    context.imageSmoothingEnabled = g.size < this.atlas.columns;
    context.fillStyle = this.palette.mute;
    context.font = `${0.72 * em}px ${this.font()}`;
    context.textBaseline = "middle";
    const every = Math.max(1, Math.ceil((1.15 * em) / g.pitch));
    context.textAlign = "center";
    for (let h = 0; h < site.heads; h += every) context.fillText(h, g.left + h * g.pitch + g.size / 2, 0.5 * em);
    context.textAlign = "right";
    for (let l = 0; l < site.layers; l += every) context.fillText(l, g.left - 0.45 * em, g.top + l * g.pitch + g.size / 2);
    if (g.bracket) {
      context.fillStyle = this.palette.key;
      const group = site.heads / site.kv_heads;
      for (let first = 0; first < site.heads; first += group) {
        context.fillRect(g.left + first * g.pitch, g.top - 4, group * g.pitch - g.gap, 2);
      }
    }
    const { canvas, rows, columns } = this.atlas;
    for (let l = 0; l < site.layers; l++) {
      for (let h = 0; h < site.heads; h++) {
        const [x, y] = [g.left + h * g.pitch, g.top + l * g.pitch];
        context.drawImage(canvas, h * columns, l * rows, columns, rows, x, y, g.size, g.size);
      }
    }
  }

  drawAtlas(site) {
    const first = site.thumbnail(0, 0);
    const { rows, columns } = first;
    const canvas = document.createElement("canvas");
    canvas.width = columns * site.heads;
    canvas.height = rows * site.layers;
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let l = 0; l < site.layers; l++) {
      for (let h = 0; h < site.heads; h++) {
        const { values } = site.thumbnail(l, h);
        for (let r = 0; r < rows; r++) {
          const at = (l * rows + r) * canvas.width + h * columns;
          for (let c = 0; c < columns; c++) pixels[at + c] = this.colour.packed[values[r * columns + c]];
        }
      }
    }
    context.putImageData(image, 0, 0);
    return { site, canvas, rows, columns };
  }

  drawChosen() {
    const { grid: g, place, site } = this;
    const context = fit(this.overviewOver, g.left + g.pitch * site.heads + 2, g.top + g.pitch * site.layers + 2);
    const box = ({ layer, head }, colour, width) => {
      context.strokeStyle = colour;
      context.lineWidth = width;
      const [x, y] = [g.left + head * g.pitch, g.top + layer * g.pitch];
      context.strokeRect(x - width / 2, y - width / 2, g.size + width, g.size + width);
    };
    if (this.peeked) box(this.peeked, this.palette.mute, 1.5);
    box(place, this.palette.query, g.pitch > 14 ? 2.5 : 2);
    const { overview } = this;
    const y = g.top + place.layer * g.pitch;
    if (overview.scrollHeight > overview.clientHeight && (y < overview.scrollTop + g.top || y + g.pitch > overview.scrollTop + overview.clientHeight)) {
      overview.scrollTop = y - overview.clientHeight / 2;
    }
  }

  headAt(e) {
    const { grid: g, site } = this;
    if (!g) return null;
    const box = this.overviewBase.getBoundingClientRect();
    const head = Math.floor((e.clientX - box.left - g.left) / g.pitch);
    const layer = Math.floor((e.clientY - box.top - g.top) / g.pitch);
    return head >= 0 && layer >= 0 && head < site.heads && layer < site.layers ? { layer, head } : null;
  }

  // ------------------------------------------------------------------ heads with a similar map

  drawAlike() {
    const { em } = this.room;
    const { site, place, words } = this;
    const space = this.room.heads - 2 * em - this.overview.offsetHeight - this.hint.offsetHeight - (this.shared.hidden ? 0 : 2 * em);
    this.alike.hidden = !this.picture.whole || space < 8 * em || site.layers * site.heads < 5 || site.n_query * site.n_key < 9;
    if (this.alike.hidden) return;
    const best = this.likest(4);
    this.alike.replaceChildren(Object.assign(el("h2", "", words.alike), { title: words.alike_help }));
    const rowOf = this.alike.appendChild(el("div", "row"));
    const size = Math.floor(Math.min((this.headsWidth - 3 * 0.6 * em) / 4, space - 4.4 * em));
    for (const { layer, head, r } of best) {
      const button = rowOf.appendChild(el("button", ""));
      button.type = "button";
      button.setAttribute("aria-label", `${said(words.place, { layer, head })}, ${r.toFixed(2)}`);
      button.addEventListener("click", (e) => this.choose({ layer, head }, e));
      const context = fit(button.appendChild(el("canvas", "")), size, size);
      context.imageSmoothingEnabled = false;
      const { canvas, rows, columns } = this.atlas;
      context.drawImage(canvas, head * columns, layer * rows, columns, rows, 0, 0, size, size);
      const line = button.appendChild(el("span", ""));
      line.append(el("b", "", `L${layer} H${head}`), el("i", "", r.toFixed(2)));
    }
    this.root.dataset.alike = best.map(({ layer, head, r }) => `${layer}.${head}:${r.toFixed(4)}`).join(" ");
  }

  // Pearson correlation with every other head's map over the cells that may be seen, largest first
  likest(count) {
    const { site, place } = this;
    const masked = site.masked(place.layer, place.head);
    const cells = [];
    for (let at = 0; at < site.n_query * site.n_key; at++) if (!masked?.[at]) cells.push(at);
    const centred = (layer, head) => {
      const all = site.weights(layer, head);
      let sum = 0;
      for (const at of cells) sum += all[at];
      return [all, sum / cells.length];
    };
    const product = ([a, ma], [b, mb]) => {
      let sum = 0;
      for (const at of cells) sum += (a[at] - ma) * (b[at] - mb);
      return sum;
    };
    const mine = centred(place.layer, place.head);
    const length = Math.sqrt(product(mine, mine));
    const found = [];
    for (let layer = 0; layer < site.layers; layer++) {
      for (let head = 0; head < site.heads; head++) {
        if (layer === place.layer && head === place.head) continue;
        const other = centred(layer, head);
        const scale = length * Math.sqrt(product(other, other));
        if (scale > 0) found.push({ layer, head, r: product(mine, other) / scale });
      }
    }
    return found.sort((a, b) => b.r - a.r).slice(0, count);
  }

  // ------------------------------------------------------------------ one head, large

  // What to draw for the part on the screen: {rows, columns, values, masked, exact, how, area}, or null while it is fetched
  tile() {
    const { site, place, area } = this;
    const [q0, q1, k0, k1] = area;
    if (this.picture.whole) {
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
    const of = this.headName;
    return this.remote.get("tile", params, (bytes) => {
      const [header, body] = unpack(bytes);
      const cells = header.rows * header.columns;
      const masked = new Uint8Array(body, Math.ceil((cells * 2) / 4) * 4, cells);
      return { ...header, values: new Uint16Array(body, 0, cells), masked: masked.some(Boolean) ? masked : null, area, of };
    });
  }

  // Until the tile is there: the one before, if it shows a part of this head, or else the small picture
  standIn() {
    const { site, place, lastTile: last } = this;
    const [q0, q1, k0, k1] = this.area;
    const same = last && last.of === this.headName && last.area[0] < q1 && last.area[1] > q0 && last.area[2] < k1 && last.area[3] > k0;
    if (same) return { ...last, exact: false, how: this.words.loading };
    const { rows, columns, values } = site.thumbnail(place.layer, place.head);
    const area = [0, site.n_query, 0, site.n_key];
    return { rows, columns, values: Uint16Array.from(values, (v) => (v / 255) ** 2 * 65535), masked: null, exact: false, how: this.words.loading, area, of: this.headName };
  }

  get headName() {
    return [this.picture.key, this.site.id, this.place.layer, this.place.head].join();
  }

  // The weights of a long row are all small: unless somebody chose otherwise, it is drawn on the scale that shows them.
  get scaleShown() {
    return this.scale ?? (this.site.n_key > LONG ? "log" : "linear");
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

  drawMap() {
    const { words, place } = this;
    const titles = words.sites[this.site.id];
    this.mapTitle.replaceChildren(el("b", "", said(words.place, place)), " ");
    if (this.sites.length === 1) this.mapTitle.append(el("span", "", titles?.[0] ?? this.site.id)); // else its tab says so
    this.mapTitle.title = titles?.[1] ?? "";
    this.matrix.hidden = this.tab !== "map";
    this.tableBox.hidden = this.tab !== "table";
    if (this.legendLow) {
      this.legendLow.textContent = this.scaleShown === "log" ? "0.0001" : "0";
      this.legendTop.textContent = this.scaleShown === "per row" ? this.words.per_row_top : "1";
    }
    if (this.tab !== "map") return;
    const g = (this.geometry = this.mapGeometry(this.room.width, this.room.height, this.room.em));
    const context = fit(this.mapBase, this.room.width, this.room.height);
    const tile = this.tile() ?? this.standIn();
    this.lastTile = tile;
    this.mapNote.textContent = tile.exact ? "" : tile.how === words.loading ? words.loading : said(words.sampled, { how: tile.how });
    if (this.remote.failed) this.mapNote.textContent = words.offline;
    Object.assign(this.root.dataset, { exact: tile.exact, size: g.cell, left: g.left, top: g.top });
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
      for (let i = 0; i < levels.length; i++) pixels[i] = tile.masked?.[i] ? 0 : this.colour.packed[levels[i]];
      inner.putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(canvas, x0, y0, across * tile.columns, down * tile.rows);
    } else {
      const gap = across > 12 ? 1 : 0.5;
      for (let r = 0; r < tile.rows; r++) {
        for (let c = 0; c < tile.columns; c++) {
          if (tile.masked?.[r * tile.columns + c]) continue;
          context.fillStyle = this.colour.css[levels[r * tile.columns + c]];
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
    inner.strokeStyle = this.palette.hatch;
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
    const { em } = this.room;
    const context = fit(this.mapOver, this.room.width, this.room.height);
    const [q0, q1, k0, k1] = this.area;
    const { query } = this;
    const key = this.hover?.key ?? (query === null ? null : (this.ranking(query)?.order[0] ?? null));
    const family = this.font();
    context.textBaseline = "middle";
    context.fillStyle = this.palette.mute;
    context.font = `${0.75 * em}px ${family}`;
    context.textAlign = "left";
    context.fillText(this.words.axes, 0, 0.5 * em);
    const every = Math.max(1, Math.ceil((g.font * 1.05) / g.cell));
    const near = (i, chosen) => chosen !== null && i !== chosen && Math.abs(i - chosen) < every; // leave room for the chosen one
    const rows = this.labels("query");
    context.textAlign = "right";
    for (let q = q0; q < q1; q++) {
      if (q !== query && ((q - q0) % every || near(q, query))) continue;
      context.font = `${q === query ? "700 " : ""}${g.font}px ${family}`;
      context.fillStyle = q === query ? this.palette.query : this.palette.ink;
      context.fillText(short(rows[q]), g.left - 0.5 * em, g.top + (q - q0 + 0.5) * g.cell);
    }
    const columns = this.labels("key");
    context.textAlign = "left";
    for (let k = k0; k < k1; k++) {
      if (k !== key && ((k - k0) % every || near(k, key))) continue;
      context.save();
      context.translate(g.left + (k - k0 + 0.5) * g.cell, g.top - 0.45 * em);
      context.rotate(-Math.PI / 3);
      context.font = `${k === key ? "700 " : ""}${g.font}px ${family}`;
      context.fillStyle = k === key ? this.palette.key : this.palette.ink;
      context.fillText(short(columns[k]), 0, 0);
      context.restore();
    }
    if (query !== null && query >= q0 && query < q1) {
      context.strokeStyle = this.palette.query;
      context.lineWidth = g.cell < 6 ? 1 : 2;
      context.strokeRect(g.left - 1.5, g.top + (query - q0) * g.cell - 1.5, (k1 - k0) * g.cell + 2, g.cell + 2);
    }
    if (this.hover?.key != null && this.hover.key >= k0 && this.hover.key < k1) {
      context.strokeStyle = this.palette.key;
      context.lineWidth = g.cell < 6 ? 1 : 2;
      context.strokeRect(g.left + (this.hover.key - k0) * g.cell - 1.5, g.top - 1.5, g.cell + 2, (q1 - q0) * g.cell + 2);
    }
  }

  cellAt(e) {
    const g = this.geometry;
    if (!g) return null;
    const box = this.mapBase.getBoundingClientRect();
    const [q0, q1, k0, k1] = this.area;
    const q = q0 + Math.floor((e.clientY - box.top - g.top) / g.cell);
    const k = k0 + Math.floor((e.clientX - box.left - g.left) / g.cell);
    if (q < q0 || q >= q1 || k >= k1) return null;
    return k < k0 ? { query: q, key: null } : { query: q, key: k }; // left of the map is the query's label
  }

  showTip({ query, key }, x, y) {
    this.tipAt = [x, y];
    const ranking = this.ranking(query);
    const { words } = this;
    const name = (axis, i) => [el("em", axis === "query" ? "q" : "k", this.labels(axis)[i]), el("small", "", ` ${said(words.position, { i })}`)];
    const first = el("div", "");
    first.append(...name("query", query), " → ", ...name("key", key));
    const second = el("div", "");
    if (!ranking) {
      second.textContent = words.loading;
    } else if (ranking.masked?.[key]) {
      second.textContent = said(words.tip_masked, { reason: this.reason(ranking.masked[key]) });
    } else {
      const p = ranking.weights[key] / 65535;
      const parts = { value: p.toFixed(4), share: `${(p * 100).toFixed(2)} %`, rank: ranking.rank.get(key), n: ranking.order.length };
      second.textContent = said(words.tip_value, parts);
    }
    this.tip.replaceChildren(first, second);
    if (x === undefined) {
      const g = this.geometry;
      const box = this.mapBase.getBoundingClientRect();
      x = box.left + g.left + (key - this.area[2] + 0.5) * g.cell;
      y = box.top + g.top + (query - this.area[0] + 0.5) * g.cell;
    }
    this.putTip(x, y);
  }

  putTip(x, y) {
    const box = this.root.getBoundingClientRect();
    this.tip.hidden = false;
    const left = Math.min(x - box.left + 14, box.width - this.tip.offsetWidth - 4);
    const above = y + 18 + this.tip.offsetHeight > innerHeight;
    const top = above ? y - box.top - this.tip.offsetHeight - 12 : y - box.top + 16;
    this.tip.style.transform = `translate(${Math.max(0, left)}px, ${top}px)`;
  }

  reason(code) {
    const name = this.picture.reasons[code];
    return this.words.reasons[name] ?? name;
  }

  // ------------------------------------------------------------------ facts

  drawFacts() {
    const { words, query, site, place } = this;
    const queries = this.labels("query");
    const keys = this.labels("key");
    const ranking = query === null ? null : this.ranking(query);
    const q = query === null ? null : [quoted(queries[query]), "q"];
    this.factsTitle.replaceChildren(...(q ? phrase(words.looks, { query: q }) : [words.looks_all]));
    const mean = query === null ? this.averages() : null;
    let order = [];
    let weight = () => 0;
    if (ranking) {
      order = ranking.order;
      weight = (k) => ranking.weights[k] / 65535;
      const key = this.hover?.key ?? order[0];
      const reason = ranking.masked?.[key];
      if (!order.length) this.big.replaceChildren(...phrase(words.gives_nothing, { query: q }));
      else if (reason) this.big.replaceChildren(...phrase(words.gives_masked, { query: q, key: [quoted(keys[key]), "k"], reason: this.reason(reason) }));
      else {
        const parts = { query: q, share: [share(weight(key)), ""], key: [quoted(keys[key]), "k"], rank: number(ranking.rank.get(key)), n: number(order.length) };
        this.big.replaceChildren(...phrase(words.gives, parts));
      }
    } else if (mean) {
      order = [...mean.keys()].sort((a, b) => mean[b] - mean[a] || a - b);
      weight = (k) => mean[k];
      this.big.replaceChildren(...phrase(words.gives_all, { share: [share(mean[order[0]]), ""], key: [quoted(keys[order[0]]), "k"] }));
    } else {
      this.big.textContent = query === null ? words.choose : words.loading;
    }
    this.drawBars(order, weight, keys);
    this.drawEntropy(ranking);
    this.drawMask(ranking);
    const sharing = site.group(place.head).filter((head) => head !== place.head);
    this.groupLine.hidden = !sharing.length;
    this.groupLine.textContent = sharing.length
      ? said(words.shares, { heads: said(words.head_numbers[sharing.length > 1 ? 1 : 0], { n: ranges(sharing) }) })
      : "";
    if (this.tab === "table") this.drawTable(order, weight, ranking, q);
    this.drawLines();
  }

  drawBars(order, weight, keys) {
    const top = order.slice(0, TOP);
    const most = weight(top[0]) || 1;
    while (this.bars.children.length > top.length) this.bars.lastChild.remove();
    while (this.bars.children.length < top.length) {
      const bar = this.bars.appendChild(el("div", "bar"));
      bar.append(el("span", ""), el("div", ""), el("u", ""));
      bar.children[1].append(el("i", ""));
    }
    top.forEach((k, i) => {
      const [label, box, value] = this.bars.children[i].children;
      label.textContent = keys[k];
      label.title = `${keys[k]}, ${said(this.words.position, { i: k })}`;
      box.firstChild.style.width = `${Math.max(0.8, (100 * weight(k)) / most)}%`;
      value.textContent = `${(weight(k) * 100).toFixed(1)} %`;
    });
  }

  drawEntropy(ranking) {
    const { words, place, site } = this;
    const line = [];
    if (ranking?.order.length) {
      const parts = { bits: [`${ranking.bits.toFixed(2)} bits`, ""], tokens: ranking.bits < 4 ? (2 ** ranking.bits).toFixed(1) : number(2 ** ranking.bits) };
      line.push(...phrase(words.entropy, parts), " ");
    }
    if (this.picture.whole) {
      const all = site.entropies(place.layer, place.head);
      const mean = all.reduce((sum, bits) => sum + bits, 0) / all.length;
      line.push(said(words.entropy_mean, { bits: mean.toFixed(2) + (line.length ? "" : " bits") }));
    }
    this.entropyLine.replaceChildren(...line);
    this.entropyLine.title = words.entropy_help;
  }

  drawMask(ranking) {
    const { words, place, site } = this;
    if (!ranking) {
      const free = this.picture.whole && !site.masked(place.layer, place.head);
      this.maskLine.textContent = free ? words.free_all : "";
      return;
    }
    if (!ranking.masked) {
      this.maskLine.textContent = site.id === "cross" ? words.free_cross : words.free;
      return;
    }
    const count = new Map();
    for (const code of ranking.masked) if (code) count.set(code, (count.get(code) ?? 0) + 1);
    const reasons = [...count].map(([code, n]) => (count.size > 1 ? `${number(n)} ${this.reason(code)}` : this.reason(code))).join(", ");
    const hidden = [...count.values()].reduce((a, b) => a + b, 0);
    this.maskLine.textContent = hidden
      ? said(words.hidden, { hidden: number(hidden), n: number(ranking.weights.length), reasons })
      : words.free_last;
  }

  drawTable(order, weight, ranking, q) {
    const { words, place } = this;
    const keys = this.labels("key");
    const table = el("table", "");
    table.append(el("caption", "", said(q ? words.table_caption : words.table_caption_all, { ...place, query: q })));
    const head = table.createTHead().insertRow();
    for (const name of [words.col_rank, words.col_key, words.col_position, words.col_weight]) {
      head.append(Object.assign(el("th", "", name), { scope: "col" }));
    }
    const body = table.createTBody();
    const line = (...cells) => {
      const tr = body.insertRow();
      for (const cell of cells) tr.append(el("td", "", String(cell)));
      tr.cells[1].className = "k";
    };
    for (const [i, k] of order.slice(0, TABLE_ROWS).entries()) line(ranking?.rank.get(k) ?? i + 1, keys[k], k, weight(k).toFixed(4));
    if (ranking?.masked) {
      for (let k = 0; k < keys.length && body.rows.length < TABLE_ROWS; k++) {
        const code = ranking.masked[k];
        if (code) line("", keys[k], k, said(words.masked_word, { reason: this.reason(code) }));
      }
    }
    this.tableBox.setAttribute("aria-label", table.caption.textContent);
    const shown = body.rows.length;
    this.tableBox.replaceChildren(table);
    if (shown < keys.length) this.tableBox.append(el("p", "note", said(words.more, { shown, n: keys.length })));
  }

  // The fewest lines that carry 80 % of each row
  edges(query) {
    const ranking = this.ranking(query);
    const out = [];
    let sum = 0;
    for (const k of ranking?.order ?? []) {
      const p = ranking.weights[k] / 65535;
      if (sum >= KEEP || p < 0.001) break;
      sum += p;
      out.push([k, p]);
    }
    return out;
  }

  drawLines() {
    const { site, query } = this;
    const { em } = this.room;
    this.linesBox.hidden = false;
    const used = this.linesBox.offsetTop;
    const many = Math.max(site.n_query, site.n_key);
    this.linesBox.hidden = !this.picture.whole || many > LINE_TOKENS || many < 2 || this.room.heads - used < 6 * em;
    if (this.linesBox.hidden) return;
    const width = this.facts.clientWidth;
    const height = clamp(this.room.heads - used - 1.8 * em, 4 * em, 9 * em);
    const context = fit(this.linesCanvas, width, height);
    const x = (i, n) => 8 + (i * (width - 16)) / Math.max(1, n - 1);
    const [top, bottom] = [0.6 * em, height - 0.7 * em];
    const line = (c, q, k) => {
      c.beginPath();
      c.moveTo(x(q, site.n_query), top);
      c.bezierCurveTo(x(q, site.n_query), height / 2, x(k, site.n_key), height / 2, x(k, site.n_key), bottom);
      c.stroke();
    };
    const id = [this.headName, width, height, this.themeName].join();
    if (this.lineCache?.id !== id) {
      const canvas = document.createElement("canvas");
      const c = fit(canvas, width, height);
      c.strokeStyle = this.palette.mute;
      for (let q = 0; q < site.n_query; q++) {
        for (const [k, p] of this.edges(q)) {
          c.globalAlpha = 0.06 + 0.22 * p;
          c.lineWidth = 1 + 2 * p;
          line(c, q, k);
        }
      }
      this.lineCache = { id, canvas };
    }
    context.drawImage(this.lineCache.canvas, 0, 0, width, height);
    const weights = query === null ? this.averages() : this.row(query).weights;
    const unit = query === null ? 1 : 65535;
    if (query !== null) {
      context.strokeStyle = this.palette.query;
      for (const [k, p] of this.edges(query)) {
        context.globalAlpha = 0.35 + 0.65 * p;
        context.lineWidth = 1 + 4 * p;
        line(context, query, k);
      }
    }
    context.globalAlpha = 1;
    const dot = (px, py, radius, colour) => {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(px, py, radius, 0, 7);
      context.fill();
    };
    const scale = many > 32 ? 0.6 : 1;
    for (let q = 0; q < site.n_query; q++) dot(x(q, site.n_query), top, (q === query ? 4 : 2.4) * scale, q === query ? this.palette.query : this.palette.mute);
    for (let k = 0; k < site.n_key; k++) {
      const p = weights[k] / unit;
      context.globalAlpha = 0.4 + 0.6 * Math.min(1, p * 1.6);
      dot(x(k, site.n_key), bottom, (2 + 4 * Math.sqrt(p)) * scale, this.palette.key);
    }
    context.globalAlpha = 1;
  }

  // ------------------------------------------------------------------ proofs

  drawProofs() {
    const { words, site, place } = this;
    // Worked out when somebody looks: for every layer of every sentence it would cost more than the sentence itself.
    const params = { record: site.records[place.layer] };
    const receipt = this.remote.get("proof", params, (bytes) => JSON.parse(new TextDecoder().decode(bytes)));
    if (!receipt && this.proofs.dataset.run === this.picture.key) return; // those of the layer before, for a moment
    this.proofs.dataset.run = this.picture.key;
    this.proofs.replaceChildren();
    if (!receipt) return;
    const proof = (holds, text, help) => {
      const item = el("span", holds ? "holds" : "fails", `${holds ? "✓" : "✗"} ${text}`);
      if (help) item.title = help;
      this.proofs.append(item);
    };
    const sums = receipt.sums < 1e-4;
    proof(sums, sums ? words.sums : said(words.sums_off, { error: scientific(receipt.sums) }), said(words.sums_help, { error: scientific(receipt.sums) }));
    const hides = this.picture.whole ? site.masked(place.layer, place.head) : this.query !== null && this.row(this.query)?.masked;
    if (hides) proof(receipt.masked === 0, words.masked_zero);
    if (receipt.fused === null) this.proofs.append(el("span", "mute", words.fused_none));
    else {
      const error = scientific(receipt.fused);
      proof(receipt.fused < 1e-3, said(words.fused, { error }), said(words.fused_help, { error }));
    }
  }

  // ------------------------------------------------------------------ for a screen reader

  say() {
    clearTimeout(this.saying);
    this.saying = setTimeout(() => {
      const place = said(this.words.place, this.place);
      this.live.textContent = `${place}. ${this.big.textContent}`;
    }, 200);
  }
}
