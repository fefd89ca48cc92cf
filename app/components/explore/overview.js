// All heads of a site, a small picture each: rows are layers, columns are heads. Below, the heads with a similar map.

import { fit } from "./colours.js";
import { WORDS as words } from "./constants.js";
import { add, arrow, clamp, counted, el, ranges, said } from "./dom.js";

export class Overview {
  constructor(view, parent) {
    this.view = view;
    this.title = add(parent, "h2");
    this.title.title = words.heads_help;
    this.box = add(parent, "div", "overview");
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "application");
    this.box.setAttribute("aria-label", words.heads_label);
    this.base = add(this.box, "canvas");
    this.over = add(this.box, "canvas", "over");
    this.shared = add(parent, "p", "note");
    this.alike = add(parent, "div", "alike");
    this.hint = add(parent, "p", "note");
    this.hint.textContent = words.hint;
    this.box.addEventListener("click", (e) => {
      const at = this.headAt(e);
      if (at) view.choose(at, e);
    });
    this.box.addEventListener("pointermove", (e) => this.peek(this.headAt(e), e));
    this.box.addEventListener("pointerleave", () => this.peek(null));
    this.box.addEventListener("keydown", (e) => this.key(e));
  }

  // Colours or maps have changed.
  forget() {
    this.atlas = null;
  }

  // Whether numbers of it are on their way
  isWaiting() {
    return false;
  }

  build() {
    const { site, picture } = this.view;
    const size = said(words.heads_size, {
      kind: picture.kind,
      layers: counted(words.layers, site.layers),
      heads: counted(words.heads_count, site.heads),
    });
    this.title.replaceChildren(el("b", "", words.heads), " ", el("span", "", size));
    this.shared.hidden = site.kv_heads === site.heads;
    this.shared.textContent = this.shared.hidden ? "" : said(words.shared_all, { n: site.heads / site.kv_heads });
  }

  geometry() {
    const { site } = this.view;
    const { em } = this.view.room;
    const left = 1.5 * em;
    const bracket = site.kv_heads < site.heads ? 0.35 * em : 0;
    const top = 1.15 * em + bracket;
    const tallest = Math.max(1.6 * em, (0.5 * this.view.room.height) / site.layers); // leave half of the column to the rest
    const pitch = clamp((this.view.room.headsWidth - left) / site.heads, 6, Math.min(4.8 * em, tallest));
    const gap = pitch > 18 ? 3 : pitch > 10 ? 2 : 1;
    return { left, top, bracket, pitch, gap, size: pitch - gap };
  }

  draw() {
    const { site } = this.view;
    const { em } = this.view.room;
    const g = (this.grid = this.geometry());
    const width = g.left + g.pitch * site.heads + 2;
    const height = g.top + g.pitch * site.layers + 2;
    this.box.style.height = `${height}px`;
    this.box.style.maxHeight = `${this.view.room.height - 3 * em - this.hint.offsetHeight - this.shared.offsetHeight}px`;
    if (this.atlas?.site !== site) this.atlas = this.drawAtlas(site);
    const context = fit(this.base, width, height);
    context.imageSmoothingEnabled = g.size < this.atlas.columns;
    context.fillStyle = this.view.palette.mute;
    context.font = `${0.72 * em}px ${this.view.font()}`;
    context.textBaseline = "middle";
    const every = Math.max(1, Math.ceil((1.15 * em) / g.pitch));
    context.textAlign = "center";
    for (let h = 0; h < site.heads; h += every) context.fillText(h, g.left + h * g.pitch + g.size / 2, 0.5 * em);
    context.textAlign = "right";
    for (let l = 0; l < site.layers; l += every) context.fillText(l, g.left - 0.45 * em, g.top + l * g.pitch + g.size / 2);
    if (g.bracket) {
      context.fillStyle = this.view.palette.key;
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
          for (let c = 0; c < columns; c++) pixels[at + c] = this.view.colour.packed[values[r * columns + c]];
        }
      }
    }
    context.putImageData(image, 0, 0);
    return { site, canvas, rows, columns };
  }

  drawChosen() {
    const { place, site } = this.view;
    const { grid: g } = this;
    const context = fit(this.over, g.left + g.pitch * site.heads + 2, g.top + g.pitch * site.layers + 2);
    const box = ({ layer, head }, colour, width) => {
      context.strokeStyle = colour;
      context.lineWidth = width;
      const [x, y] = [g.left + head * g.pitch, g.top + layer * g.pitch];
      context.strokeRect(x - width / 2, y - width / 2, g.size + width, g.size + width);
    };
    if (this.peeked) box(this.peeked, this.view.palette.mute, 1.5);
    box(place, this.view.palette.query, g.pitch > 14 ? 2.5 : 2);
    const y = g.top + place.layer * g.pitch;
    const { scrollTop, clientHeight } = this.box;
    const hidden = y < scrollTop + g.top || y + g.pitch > scrollTop + clientHeight;
    if (this.box.scrollHeight > clientHeight && hidden) this.box.scrollTop = y - clientHeight / 2;
  }

  headAt(e) {
    const { site } = this.view;
    const { grid: g } = this;
    if (!g) return null;
    const box = this.base.getBoundingClientRect();
    const head = Math.floor((e.clientX - box.left - g.left) / g.pitch);
    const layer = Math.floor((e.clientY - box.top - g.top) / g.pitch);
    return head >= 0 && layer >= 0 && head < site.heads && layer < site.layers ? { layer, head } : null;
  }

  // Name the small picture under the pointer.
  peek(at, event) {
    const same = at?.layer === this.peeked?.layer && at?.head === this.peeked?.head;
    this.peeked = at;
    if (!same) this.view.redraw("chosen");
    if (!at) {
      this.view.tip.hidden = true;
      return;
    }
    const lines = [el("div", "", said(words.place, at))];
    if (this.view.site.kv_heads < this.view.site.heads) {
      lines.push(el("div", "mute", said(words.shared, { heads: ranges(this.view.site.group(at.head)) })));
    }
    this.view.tip.replaceChildren(...lines);
    this.view.putTip(event.clientX, event.clientY);
  }

  key(e) {
    const step = arrow(e);
    if (!step) return;
    e.preventDefault();
    const { site, place } = this.view;
    const layer = clamp(place.layer + step[0], 0, site.layers - 1);
    const head = clamp(place.head + step[1], 0, site.heads - 1);
    if (layer !== place.layer || head !== place.head) this.view.choose({ layer, head }, e);
  }

  drawAlike() {
    const { em } = this.view.room;
    const { site, place } = this.view;
    const space = this.view.room.height - 2 * em - this.box.offsetHeight - this.hint.offsetHeight - (this.shared.hidden ? 0 : 2 * em);
    this.alike.hidden = !this.view.picture.whole || space < 8 * em || site.layers * site.heads < 5 || site.n_query * site.n_key < 9;
    if (this.alike.hidden) return;
    const best = this.likest(4);
    this.alike.replaceChildren(Object.assign(el("h2", "", words.alike), { title: words.alike_help }));
    const rowOf = this.alike.appendChild(el("div", "row"));
    const size = Math.floor(Math.min((this.view.room.headsWidth - 3 * 0.6 * em) / 4, space - 4.4 * em));
    for (const { layer, head, r } of best) {
      const button = rowOf.appendChild(el("button", ""));
      button.type = "button";
      button.setAttribute("aria-label", `${said(words.place, { layer, head })}, ${r.toFixed(2)}`);
      button.addEventListener("click", (e) => this.view.choose({ layer, head }, e));
      const context = fit(button.appendChild(el("canvas", "")), size, size);
      context.imageSmoothingEnabled = false;
      const { canvas, rows, columns } = this.atlas;
      context.drawImage(canvas, head * columns, layer * rows, columns, rows, 0, 0, size, size);
      const line = button.appendChild(el("span", ""));
      line.append(el("b", "", `L${layer} H${head}`), el("i", "", r.toFixed(2)));
    }
    this.view.root.dataset.alike = best.map(({ layer, head, r }) => `${layer}.${head}:${r.toFixed(4)}`).join(" ");
  }

  // Pearson correlation with every other head's map over the cells that may be seen, largest first
  likest(count) {
    const { site, place } = this.view;
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
}
