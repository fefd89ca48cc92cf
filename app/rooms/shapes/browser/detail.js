// The chosen tensor: its shape spelled out, what made it, who reads it, its values where a run has them; and what
// PyTorch says when one thing in the line that makes it is changed.

import { ASKED, pointed } from "../../../kit/browser/language.js";
import { WORDS as words } from "./constants.js";
import { add, button, clamp, described, el, fill, minus, number, scientific } from "../../../kit/browser/dom.js";
import { paintOn } from "../../../kit/browser/picture/canvas.js";
import { shapesOf } from "../../../kit/browser/picture/heatmap.js";
import { signed } from "../../../kit/browser/picture/scale.js";
import { paintShapes } from "../../../kit/browser/scene.js";
import { axis, binary, decimal, flops, meaning } from "./format.js";
import { way } from "../../../kit/browser/share.js";

const LONG = 4096; // tokens, for the sentence on growth
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").Part} Part */
/** @typedef {import("./types.js").Values} Values */
const VERDICTS = { right: words.break_right, error: words.break_error, wrong: words.break_silent };

/** @param {string} text @param {() => void} act */
const link = (text, act) => button(text, "link", act);

export class Detail {
  /** @param {import("./types.js").View} view @param {HTMLElement} box */
  constructor(view, box) {
    this.view = view;
    this.box = box;
    /** @type {Map<string, Values>} */
    this.kept = new Map(); // thumbnails by address
  }

  draw() {
    const { view, box } = this;
    const { row, part } = view.chosen;
    box.replaceChildren();
    box.style.setProperty("--edge", `var(--${axis(row.axes.at(-1) ?? "").slice(3) || "mute"})`);
    const text = add(box, "div", "words");
    if (view.place.break && row.tries) return this.drawTries(text, row);
    const line = add(text, "p", "big");
    line.append(el("b", "", row.title), " ", ...meaning(row, view.sizes(row)));
    this.origin(add(text, "p", "note"), row, part);
    this.costs(add(text, "p", "note costs"), row);
    this.thumbnail(row, part);
  }

  /** @param {string} id */
  goto(id) {
    const { row } = /** @type {{row: Row}} */ (this.view.byId.get(id));
    return link(row.title, () => this.view.choosePlace({ tensor: id }, true));
  }

  /** @param {HTMLElement} line @param {Row} row @param {Part} part */
  origin(line, row, part) {
    const { view } = this;
    /** @param {HTMLElement[]} nodes @returns {(string | HTMLElement)[]} */
    const separate = (nodes) => nodes.flatMap((node, i) => (i ? [", ", node] : [node]));
    line.append(`${words.made_by} `);
    if (row.reads.length) {
      line.append(
        el("code", "", row.code),
        " ← ",
        ...separate(row.reads.filter((id) => view.byId.has(id)).map((id) => this.goto(id))),
      );
    } else line.append(row.kind === "tokens" ? words.given : "", row.kind === "tokens" ? "" : el("code", "", row.code));
    const readers = [...view.byId.values()]
      .filter((other) => other.row.reads.includes(row.id))
      .map((other) => other.row.id);
    line.append("  ·  ", `${words.read_by} `);
    const found = readers.map((id) => this.goto(id));
    if (row.kind === "resid_post" && part.times > 1)
      found.unshift(
        link(words.next_layer, () =>
          view.choosePlace(
            { tensor: `${part.stack}.resid_pre`, at: clamp(view.place.at + 1, 0, part.times - 1) },
            true,
          ),
        ),
      );
    line.append(...(found.length ? separate(found) : [words.read_by_none]));
  }

  /** @param {HTMLElement} line @param {Row} row */
  costs(line, row) {
    const { view } = this;
    /** @type {string[]} */
    const parts = [];
    const copies = row.count > 1 ? ` (${fill(words.copies, { n: row.count })})` : "";
    parts.push(
      row.view ? `${words.view}: ${words.view_help}` : `${binary(row.bytes)} = ${decimal(row.bytes)}${copies}`,
    );
    if (row.flops) parts.push(flops(row.flops));
    if (row.fused) parts.push(words.fused_long);
    const query = row.axes.indexOf("query");
    const key = row.axes.indexOf("key");
    if (query >= 0 && key >= 0 && !row.view) {
      const isRow = row.shape[query] === 1 && row.shape[key] > 1; // for every query the same
      const grown = (row.bytes / row.shape[query] / row.shape[key]) * LONG * (isRow ? 1 : LONG);
      parts.push(fill(isRow ? words.grows_linear : words.grows, { size: binary(grown) }));
    }
    line.append(parts.join("  ·  "));
    if (row.tries)
      line.append(
        "  ·  ",
        link(words.break, () => view.choosePlace({ break: "1" })),
      );
    if (view.header.run && row.kind === "weights") line.append("  ·  ", this.explore(row));
  }

  /** @param {Row} row */
  explore(row) {
    const site = row.id.includes(".cross.") ? "cross" : row.id.split(".")[0];
    const { place, header: data } = this.view;
    const there = { view: "explore", site, layer: String(place.at), head: String(place.with_head) };
    const { of: _, ...link } = data.link ?? {}; // of this room
    return way(words.explore, { ...link, ...there }, "link");
  }

  // ------------------------------------------------------------------ the shape debugger

  /** @param {HTMLElement} text @param {Row} row */
  drawTries(text, row) {
    const { view } = this;
    const tries = row.tries ?? [];
    const at = clamp(Number(view.place.break) || 0, 0, tries.length - 1);
    const one = tries[at];
    const head = add(text, "p", "note");
    head.append(
      el("b", "", words.break_title),
      "  ",
      link(words.break_close, () => view.choosePlace({ break: "" })),
    );
    const grid = add(text, "div", "tries");
    const list = described(add(grid, "div", "lines"), "group", words.break_title);
    tries.forEach((tried, i) => {
      const choose = () => view.choosePlace({ break: String(i) });
      const line = list.appendChild(button("", tried.verdict, choose, VERDICTS[tried.verdict]));
      line.setAttribute("aria-pressed", String(i === at));
      line.append(el("i", "", { right: "✓", error: "✗", wrong: "!" }[tried.verdict]), el("code", "", tried.code));
    });
    const result = add(grid, "div", `result ${one.verdict}`);
    result.setAttribute("role", "status");
    add(result, "p", "verdict").textContent = VERDICTS[one.verdict];
    const said = add(result, "p", "said");
    said.textContent = one.error || `torch.Size([${one.shape.join(", ")}])`;
    if (one.why) add(result, "p", "why").textContent = one.why;
    if (row.kind === "qkv") this.drawCompared(result, row);
    view.root.dataset.verdict = one.verdict;
  }

  // One product for q, k and v against three, on this machine
  /** @param {HTMLElement} box @param {Row} row */
  drawCompared(box, row) {
    const [batch, n, q] = row.shape;
    const width = /** @type {{row: Row}} */ (this.view.byId.get(row.reads[0])).row.shape.at(-1) ?? q;
    const line = add(box, "p", "why compared");
    const compare = link(words.compare, async () => {
      line.textContent = words.compare_busy;
      const url = new URL("headlight/shapes/projections", document.baseURI);
      url.search = String(
        new URLSearchParams(
          Object.entries({ width, q, rows: batch * n }).map(([name, value]) => [name, String(value)]),
        ),
      );
      const response = await fetch(url, { headers: ASKED }).catch(() => null);
      if (!response?.ok)
        return void (line.textContent = response?.status === 400 ? await response.text() : words.compare_failed);
      const found = await response.json();
      const ms = (/** @type {number} */ value) => pointed(value.toPrecision(value < 10 ? 2 : 3));
      const told = {
        fused: ms(found.fused),
        separate: ms(found.separate),
        difference: scientific(found.difference),
        rows: number(found.rows),
        of: number(found.of),
        width: number(width),
        device: found.device,
      };
      line.textContent = [words.compared, ...(found.rows < found.of ? [words.compared_fewer] : [])]
        .map((text) => fill(text, told))
        .join(" ");
      Object.assign(line.dataset, {
        fused: String(found.fused),
        separate: String(found.separate),
        difference: String(found.difference),
      });
    });
    line.append(compare);
  }

  // ------------------------------------------------------------------ values

  /** @param {Row} row @param {Part} part */
  async thumbnail(row, part) {
    const { view, box } = this;
    const { run } = view.header;
    if (!run || !row.source) return;
    const layer = part.section === "layer" ? view.layerOf(row) : 0;
    const stream = !["q", "k", "scores", "mask", "weights", "z", "position"].includes(row.source);
    const headed = !stream && row.source !== "position";
    const head = headed ? view.place.with_head : 0;
    const asked = new URLSearchParams({
      run,
      stack: part.stack,
      layer: String(layer),
      site: row.id.includes(".cross.") ? "cross" : "attn",
      what: row.source,
      head: String(head),
    });
    const address = new URL(`headlight/shapes/values?${asked}`, document.baseURI).href;
    const figure = add(box, "figure");
    const caption = add(figure, "figcaption");
    const canvas = add(figure, "canvas");
    let found = this.kept.get(address);
    if (!found) {
      try {
        const answer = await fetch(address, { headers: ASKED });
        if (!answer.ok) throw new Error(await answer.text());
        found = /** @type {Values} */ (await answer.json());
      } catch {
        caption.textContent = words.values_none;
        return;
      }
      if (this.kept.size > 200) this.kept.clear();
      this.kept.set(address, found);
    }
    if (!figure.isConnected) return; // another tensor was chosen meanwhile
    this.paint(canvas, found, stream);
    const names = add(caption, "span");
    names.textContent =
      stream && part.section !== "layer"
        ? words.values_stream.split(",")[0]
        : fill(stream ? words.values_stream : headed ? words.values : "", {
            head,
            layer,
            what: row.source === "z" ? row.title : row.source,
          });
    if (headed) {
      /** @param {number} by @param {string} text @param {string} label */
      const step = (by, text, label) => {
        const to = (head + by + view.header.heads) % view.header.heads;
        const made = button(text, "link", () => view.choosePlace({ with_head: to }), label);
        made.ariaLabel = label;
        return made;
      };
      view.chooser?.draw();
      caption.append(
        " ",
        view.chooser?.element ?? "",
        " ",
        step(-1, "‹", words.values_head_before),
        " ",
        step(1, "›", words.values_head_next),
      );
    }
    const digits = (/** @type {number} */ x) => minus(Number(x.toPrecision(3)));
    add(caption, "small").textContent = fill(words.values_range, { low: digits(found.low), high: digits(found.high) });
    if (found.low < 0) {
      // 0 is in the middle, and as faint as the page
      const scale = add(caption, "small", "scale");
      scale.append("−", add(scale, "i"), "0", add(scale, "i"), "+");
      const [below, above] = scale.querySelectorAll("i");
      below.style.background = "var(--ahead)";
      above.style.background = "var(--ramp)";
    }
    if (found.rows < found.all_rows || found.columns < found.all_columns) {
      add(caption, "small").textContent = fill(words.values_part, {
        rows: found.rows,
        columns: number(found.columns),
        all_rows: number(found.all_rows),
        all_columns: number(found.all_columns),
      });
    }
    described(canvas, "img", caption.textContent ?? "");
    Object.assign(view.root.dataset, { thumbnail: `${row.id},${layer},${head}`, low: found.low, high: found.high });
  }

  /** @param {HTMLCanvasElement} canvas @param {Values} found @param {boolean} stream */
  paint(canvas, { rows, columns, low, high, values }, stream) {
    const em = parseFloat(getComputedStyle(this.box).fontSize);
    const size = Math.min(((stream ? 12 : 5.6) * em) / columns, ((stream ? 1.6 : 5.6) * em) / rows);
    const [w, h] = [Math.max(1, size * columns), Math.max(stream ? 1.6 * em : 1, size * rows)];
    // From 0, the page's own tone, as on Explore; numbers with a sign go two ways from there, as far as the larger of both
    const { palette } = this.view;
    const scale = signed(palette);
    const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
    this.view.root.dataset.signed = String(low < 0);
    const shapes = shapesOf({
      rows,
      columns,
      x: 0,
      y: 0,
      w: w / columns,
      h: h / rows,
      tone: (row, column) => scale((values[row * columns + column] ?? 0) / most),
      masked: (row, column) => values[row * columns + column] === null,
    });
    paintOn(canvas, w, h, (context) => paintShapes(context, shapes, { hatch: palette.hatch, font: "" }));
  }
}
