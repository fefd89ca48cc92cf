// The rail: every step of the layer with a barcode of the followed token's vector there. It is the scrubber.

import { add, fill, number, worded } from "../../../kit/browser/dom.js";
import { WORDS as words } from "./constants.js";
import { barcode } from "./grid.js";
import { limit } from "./sums.js";
import { draw, set, svg as element } from "../../../kit/browser/picture/svg.js";

/** @typedef {import("./types.js").Step} Step */
/** @typedef {{y: number, step?: Step, at?: number}} Point */
const OF_A_HEAD = ["qkv", "turn", "scores", "scale", "mask", "softmax", "z"];
const [STREAM, BRANCH] = [18, 44]; // pixels from the left

/** @param {import("./types.js").Step} step @param {any} header */
export function nameOf(step, header) {
  const { kind } = step;
  if (kind === "embed" && ["learned", "sinusoidal"].includes(header.position)) return words.names.embed_position;
  const site = header.sites.find(
    (/** @type {any} */ s) => s.site === (step.id.startsWith("cross-") ? "cross_attn" : "attn"),
  );
  if (kind === "scale" && Math.abs(site.scale * Math.sqrt(header.d_head) - 1) > 1e-6) return words.names.scale_plain;
  return fill(worded(words.names, kind), { d: header.d_head });
}

export class Rail {
  /** @type {Point[]} */
  points = [];
  /** @type {HTMLElement[]} */
  rows = [];
  /** @type {HTMLCanvasElement[]} */
  canvases = [];
  tall = 0; // pixels of a row
  shown = ""; // what the rows are of
  barred = ""; // and their barcodes
  at = ""; // where the visitor was when the lines were drawn
  /** @type {Element | undefined} */
  thread;
  /** @type {(here: number) => string} The path of the thread as far as one of the points */
  threadTo = () => "";
  /** @type {({circle: Element, plus: Element | null, is: string} | null)[]} A circle for every step */
  knots = [];

  /** @param {HTMLElement} host @param {(at: number) => void} go */
  constructor(host, go) {
    this.host = host;
    let down = false;
    const to = (/** @type {PointerEvent} */ event) => {
      const y = event.clientY - host.getBoundingClientRect().top;
      const steps = this.points.filter((point) => point.at !== undefined);
      if (steps.length)
        go(
          /** @type {number} */ (
            steps.reduce((best, point) => (Math.abs(point.y - y) < Math.abs(best.y - y) ? point : best)).at
          ),
        );
    };
    host.addEventListener("pointerdown", (event) => {
      if (!this.rows[0]?.isConnected) return; // a page of small numbers has its own buttons here
      down = true;
      host.setPointerCapture(event.pointerId);
      to(event);
    });
    host.addEventListener("pointermove", (event) => down && to(event));
    host.addEventListener("pointerup", () => (down = false));
    host.addEventListener("pointercancel", () => (down = false));
  }

  // Rows and barcodes, where they are not there yet; then where the visitor is
  /**
   * @param {import("./walk.js").Walk} walk
   * @param {{id: string, head: number, edit: import("./types.js").Edit, paint: import("./grid.js").Paint, sizes: import("./types.js").Sizes}} view
   * @param {number} current
   */
  draw(walk, { id, head, edit, paint, sizes }, current) {
    const {
      rem,
      rail: [width, height],
    } = sizes;
    if (!height) return; // a phone has a slider instead
    const what = `${id}/${height}/${width}`;
    const own = `${what}/${head}/${edit.divide}/${edit.hide}`;
    if (what !== this.shown) this.build(walk, paint, rem, height);
    if (own !== this.barred) this.bars(walk, head, edit, paint, rem, width, what !== this.shown);
    this.shown = what;
    this.barred = own;
    const at = `${what}/${current}`;
    if (at === this.at) return;
    this.at = at;
    this.rows.forEach((row, i) => {
      row.classList.toggle("on", i === current);
      row.classList.toggle("todo", i > current);
    });
    this.lines(paint, rem, current);
    const name = fill(words.rail_value, {
      i: current + 1,
      n: this.rows.length,
      name: nameOf(walk.steps[current], walk.header),
    });
    const said = {
      role: "slider",
      tabindex: "0",
      "aria-label": words.rail,
      "aria-valuemin": "1",
      "aria-valuemax": this.rows.length,
      "aria-valuenow": current + 1,
      "aria-valuetext": name,
    };
    for (const [attribute, text] of Object.entries(said)) this.host.setAttribute(attribute, String(text));
  }

  // It is no slider where a page of small numbers has its own buttons
  leave() {
    this.host.replaceChildren();
    this.shown = this.barred = this.at = "";
    for (const attribute of this.host.getAttributeNames())
      if (attribute !== "class") this.host.removeAttribute(attribute);
  }

  // The vectors as barcodes; where only the head or its scores changed, those alone that are of it
  /** @param {import("./walk.js").Walk} walk @param {number} head @param {import("./types.js").Edit} edit @param {import("./grid.js").Paint} paint @param {number} rem @param {number} width @param {boolean} all */
  bars(walk, head, edit, paint, rem, width, all) {
    walk.steps.forEach((step, i) => {
      if (!all && !OF_A_HEAD.includes(step.kind)) return;
      const vector = walk.vector(step, head, edit);
      this.canvases[i].hidden = !vector.length;
      barcode(
        this.canvases[i],
        vector,
        (width < 17 * rem ? 4 : 6.7) * rem,
        Math.max(2, Math.min(0.78 * rem, this.tall - 3)),
        paint,
        limit(vector),
      );
    });
  }

  /** @param {import("./walk.js").Walk} walk @param {import("./grid.js").Paint} paint @param {number} rem @param {number} height */
  build(walk, paint, rem, height) {
    const { header } = walk;
    const folds = header.steps.filter((/** @type {any} */ step) => step.fold).length;
    const fold = 0.97 * rem;
    const row = Math.min(1.8 * rem, (height - folds * fold - 4) / (header.steps.length - folds));
    this.host.replaceChildren();
    this.points = [];
    this.rows = [];
    this.canvases = [];
    this.tall = row;
    let y = 0;
    let cross = false;
    for (const step of header.steps) {
      const tall = step.fold ? fold : row;
      const node = add(this.host, "div", step.fold ? "rs fold" : "rs");
      node.style.top = `${y}px`;
      node.style.height = `${tall}px`;
      if (step.fold) {
        const [a, b] = step.fold;
        add(node, "b").textContent = fill((step.same ? words.fold : words.fold_other)[a === b ? 1 : 0], { a, b });
        this.points.push({ y: y + tall / 2 });
      } else {
        const label = add(node, "b");
        label.textContent = nameOf(step, header);
        if (step.id.startsWith("cross-") && !cross) label.title = words.cross;
        cross = step.id.startsWith("cross-");
        node.classList.toggle("cross", cross);
        const canvas = add(node, "canvas");
        canvas.setAttribute("aria-hidden", "true");
        this.canvases.push(canvas);
        add(node, "small").textContent = number(walk.size(step));
        node.dataset.step = step.id;
        this.points.push({ y: y + tall / 2, step, at: this.rows.length });
        this.rows.push(node);
      }
      y += tall;
    }
    this.svg = element("svg", { "aria-hidden": "true", width: 62 * (rem / 15.55), height: y + 2 });
    this.host.append(this.svg);
    this.bottom = y - 2;
    this.weave(paint, rem);
  }

  // The stream and its branches, a circle for every step, and the thread of the followed token: made once, and then moved along
  /** @param {import("./grid.js").Paint} paint @param {number} rem */
  weave(paint, rem) {
    const r = rem / 15.55;
    const [main, side] = [STREAM * r, BRANCH * r];
    const { points } = this;
    const y = (/** @type {number} */ i) => points[i].y;
    const svg = /** @type {SVGSVGElement} */ (this.svg);
    /** @param {string} d @param {string} stroke @param {number} width @param {Record<string, string | number>} [more] */
    const path = (d, stroke, width, more = {}) =>
      draw(svg, "path", { d, stroke, "stroke-width": width * r, fill: "none", ...more });
    const stream = paint.css("d_model");
    path(`M${main} 4V${this.bottom}`, stream, 4.6);
    for (const point of points)
      if (!point.step)
        path(`M${main} ${point.y - 6 * r}V${point.y + 6 * r}`, paint.css("background"), 3, {
          "stroke-dasharray": `${2.4 * r} ${2.4 * r}`,
        });
    /** @type {[from: number, to: number][]} */
    const branches = [];
    for (let a = 0; a < points.length; a++) {
      if (points[a].step?.lane !== "branch") continue;
      let b = a;
      while (points[b + 1]?.step?.lane === "branch") b++;
      branches.push([a - 1, b + 1]);
      a = b;
    }
    /** @param {number} a @param {number} end */
    const out1 = (a, end) =>
      `M${main} ${y(a)}C${main} ${(y(a) + y(a + 1)) / 2 + 2} ${side} ${(y(a) + y(a + 1)) / 2 - 2} ${side} ${y(a + 1)}V${end}`;
    /** @param {number} b */
    const back = (b) => `C${side} ${(y(b - 1) + y(b)) / 2 + 2} ${main} ${(y(b - 1) + y(b)) / 2 - 2} ${main} ${y(b)}`;
    for (const [a, b] of branches)
      path(out1(a, y(b - 1)) + back(b), paint.css("mute"), 2.6, { "stroke-opacity": 0.55 });
    this.thread = path("", paint.css("query"), 2);
    this.threadTo = (/** @type {number} */ here) => {
      const within = branches.find(([a, b]) => a < here && here < b);
      const passed = branches.filter(([, b]) => b <= here).map(([a, b]) => out1(a, y(b - 1)) + back(b));
      return [`M${main} 4V${within ? y(within[0]) : y(here)}`, ...passed, within ? out1(within[0], y(here)) : ""].join(
        "",
      );
    };
    this.knots = points.map(({ step, y: cy }) => {
      if (!step) return null;
      const cx = step.lane === "branch" ? side : main;
      const circle = draw(svg, "circle", { cx, cy, "stroke-width": (step.lane === "add" ? 2.4 : 2.3) * r });
      const plus =
        step.lane === "add"
          ? path(`M${main - 4.4 * r} ${cy}h${8.8 * r}M${main} ${cy - 4.4 * r}v${8.8 * r}`, stream, 2)
          : null;
      return { circle, plus, is: "" };
    });
  }

  // Where the visitor is: the thread ends there, and what changed since changes
  /** @param {import("./grid.js").Paint} paint @param {number} rem @param {number} current */
  lines(paint, rem, current) {
    const r = rem / 15.55;
    const here = this.points.findIndex((point) => point.at === current);
    const [stream, orange, ground] = ["d_model", "query", "background"].map(paint.css);
    this.thread?.setAttribute("d", this.threadTo(here));
    this.knots.forEach((knot, i) => {
      const is = i === here ? "on" : i < here ? "done" : "todo";
      if (!knot || knot.is === is) return;
      knot.is = is;
      const own = this.points[i].step?.lane === "branch" ? paint.css("mute") : stream;
      const fill = is === "on" ? orange : ground;
      if (knot.plus) {
        set(knot.circle, { r: 8 * r, fill, stroke: is === "on" ? orange : own });
        set(knot.plus, { stroke: is === "on" ? ground : own });
      } else set(knot.circle, { r: (is === "on" ? 7 : 4.6) * r, fill, stroke: is === "todo" ? own : orange });
    });
  }
}

// Other words for a slider on a phone, where the rail has no room
/** @param {HTMLElement} host @param {(at: number) => void} go */
export function slider(host, go) {
  const input = add(host, "input");
  Object.assign(input, { type: "range", min: "0", step: "1" });
  input.setAttribute("aria-label", words.rail);
  input.addEventListener("input", () => go(Number(input.value)));
  return input;
}
