// The line: the stream runs straight, attention and MLP leave it as branches and come back. A station for every step; it is the scrubber.

import { add, clamp, fill, worded } from "../../../kit/browser/dom.js";
import { draw, set, svg as element } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Step} Step */
/** @typedef {{x: number, step?: Step, at?: number}} Point */
const SNAP = 0.22; // of the way between two stations, within which a hand means the station
const FOLD = 0.6; // of a station's room, for layers that are folded away
const MOST = 0.7; // of the names: where fewer have room, only the current one is shown
const TYPE = 0.84; // rem, of names

// The name of a step where there is room for it
/** @param {Step} step @param {any} header */
export function nameOf(step, header) {
  const { kind } = step;
  if (kind === "embed" && ["learned", "sinusoidal"].includes(header.position)) return words.names.embed_position;
  const site = siteOf(step, header);
  if (kind === "scale" && Math.abs(site.scale * Math.sqrt(header.d_head) - 1) > 1e-6) return words.names.scale_plain;
  return fill(worded(words.names, kind), { d: header.d_head });
}

// Its name on the line, as short as it can be
/** @param {Step} step @param {any} header */
function shortName(step, header) {
  const { kind } = step;
  if (kind === "embed" && ["learned", "sinusoidal"].includes(header.position)) return words.short.embed_position;
  if (kind === "scale" && Math.abs(siteOf(step, header).scale * Math.sqrt(header.d_head) - 1) > 1e-6)
    return words.short.scale_plain;
  if (kind === "act" || kind === "product") return worded(words.acts, header.activation) ?? words.short.act;
  return fill(worded(words.short, kind), { d: header.d_head });
}

/** @param {Step} step @param {any} header */
const siteOf = (step, header) =>
  header.sites.find((/** @type {any} */ s) => s.site === (step.id.startsWith("cross-") ? "cross_attn" : "attn"));

export class Line {
  /** @type {Point[]} */
  points = [];
  /** @type {HTMLElement[]} */
  stations = [];
  built = ""; // the steps that the stations are of, and their size
  /** @type {number[]} Of the names, in pixels; none where only the current one is shown */
  widths = [];
  at = ""; // where the visitor was when it was drawn
  /** @type {number} Pixels of a rem when it was built */
  rem = 16;
  /** @type {{circle: Element, plus: Element | null, is: string}[]} */
  knots = [];
  /** @type {(here: number) => string} The path of the thread as far as one of the points */
  threadTo = () => "";
  /** @type {(x: number) => number} How high the way is at a place, on the branch that leads there */
  heightAt = () => 0;

  /** @param {HTMLElement} host @param {(at: number, moment: number) => void} go */
  constructor(host, go) {
    this.host = host;
    let down = false;
    const to = (/** @type {PointerEvent} */ event) => {
      const [at, moment] = this.placeOf(event.clientX - host.getBoundingClientRect().left);
      if (this.stations.length) go(at, moment);
    };
    host.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      down = true;
      host.setPointerCapture(event.pointerId);
      to(event);
    });
    host.addEventListener("pointermove", (event) => down && to(event));
    host.addEventListener("pointerup", () => (down = false));
    host.addEventListener("pointercancel", () => (down = false));
  }

  get steps() {
    return /** @type {Required<Point>[]} */ (this.points.filter((point) => point.step));
  }

  // The step that leads to a place on the line, and how much of its motion lies before the place
  /** @param {number} x @returns {[at: number, moment: number]} */
  placeOf(x) {
    const { steps } = this;
    const next = steps.findIndex((point) => point.x >= x);
    if (next <= 0) return [next < 0 ? steps.length - 1 : 0, 1];
    const share = (x - steps[next - 1].x) / (steps[next].x - steps[next - 1].x);
    if (share < SNAP) return [next - 1, 1];
    return [next, share > 1 - SNAP ? 1 : share];
  }

  /** @param {import("./walk.js").Walk} walk @param {{id: string, paint: import("./grid.js").Paint, sizes: import("./types.js").Sizes}} view @param {number} current */
  draw(walk, { id, paint, sizes }, current) {
    const { rem, line } = sizes;
    const [width, height] = line;
    const built = `${id}/${width}/${height}/${rem}`;
    if (built !== this.built) this.build(walk, paint, rem, width, height);
    const at = `${built}/${current}`;
    if (built === this.built && at === this.at) return;
    this.built = built;
    this.at = at;
    this.stations.forEach((station, i) => station.classList.toggle("on", i === current));
    this.name(current);
    this.mark(paint, rem, current);
    const name = fill(words.rail_value, {
      i: current + 1,
      n: this.stations.length,
      name: nameOf(walk.steps[current], walk.header),
    });
    const said = {
      role: "slider",
      tabindex: "0",
      "aria-label": words.rail,
      "aria-valuemin": "1",
      "aria-valuemax": this.stations.length,
      "aria-valuenow": current + 1,
      "aria-valuetext": name,
    };
    for (const [attribute, text] of Object.entries(said)) this.host.setAttribute(attribute, String(text));
  }

  // The dot between two stations while the numbers move
  /** @param {number} at @param {number} moment */
  move(at, moment) {
    const { steps } = this;
    if (!this.dot || !steps[at]) return;
    const from = steps[Math.max(0, at - 1)];
    const x = from.x + (steps[at].x - from.x) * moment;
    set(this.dot, { cx: x, cy: this.heightAt(x) });
  }

  /** @param {import("./walk.js").Walk} walk @param {import("./grid.js").Paint} paint @param {number} rem @param {number} width @param {number} height */
  build(walk, paint, rem, width, height) {
    const { header } = walk;
    const r = rem / 15.55;
    const narrow = height < 3 * rem;
    const [main, side] = narrow ? [0.3 * height, 0.72 * height] : [9 * r, 32 * r];
    this.host.replaceChildren();
    this.points = [];
    this.stations = [];
    this.rem = rem;
    const margin = Math.min(26 * r, width / 16);
    const folds = header.steps.filter((/** @type {any} */ step) => step.fold).length;
    const each = (width - 2 * margin) / Math.max(1, header.steps.length - folds - 1 + folds * FOLD);
    let x = margin;
    for (const step of header.steps) {
      if (step.fold) {
        const [a, b] = step.fold;
        const folded = add(this.host, "div", "folded");
        folded.title = fill((step.same ? words.fold : words.fold_other)[a === b ? 1 : 0], { a, b });
        Object.assign(folded.style, { left: `${x - each * (0.9 - FOLD / 2)}px`, width: `${each * FOLD}px` });
        this.points.push({ x: x - each * (1 - FOLD / 2 - 0.1) });
        x += each * FOLD;
        continue;
      }
      const station = add(this.host, "div", "station");
      station.dataset.step = step.id;
      Object.assign(station.style, { left: `${x - each / 2}px`, width: `${each}px` });
      add(station, "b").textContent = shortName(step, header);
      station.title = `${step.id.startsWith("cross-") ? `${words.cross}: ` : ""}${nameOf(step, header)}`;
      station.classList.toggle("cross", step.id.startsWith("cross-"));
      this.points.push({ x, step, at: this.stations.length });
      this.stations.push(station);
      x += each;
    }
    this.widths = narrow ? [] : this.measured(rem);
    const svg = element("svg", { "aria-hidden": "true", width, height });
    this.host.prepend(svg);
    this.weave(svg, paint, r, main, side, width);
  }

  // How wide the names are
  /** @param {number} rem */
  measured(rem) {
    const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    context.font = `${TYPE * rem}px "Source Sans", sans-serif`;
    return this.stations.map((station) => context.measureText(station.textContent ?? "").width + 0.3 * rem);
  }

  // The name of the current station, and the others where most have room next to each other
  /** @param {number} current */
  name(current) {
    const { steps, widths } = this;
    const isFree = (/** @type {number} */ i, /** @type {number} */ j) =>
      Math.abs(steps[i].x - steps[j].x) >= (widths[i] + widths[j]) / 2;
    /** @type {number[]} */
    const named = [];
    for (let i = 0; i < widths.length; i++)
      if (i === current || (isFree(i, current) && (!named.length || isFree(i, named[named.length - 1])))) named.push(i);
    const areMost = named.length >= MOST * steps.length;
    this.stations.forEach((station, i) => station.classList.toggle("named", areMost && named.includes(i)));
  }

  // The stream and its branches, a circle for every step, and the thread of the followed token: made once, and then moved along
  /** @param {SVGSVGElement} svg @param {import("./grid.js").Paint} paint @param {number} r @param {number} main @param {number} side @param {number} width */
  weave(svg, paint, r, main, side, width) {
    const { points } = this;
    const x = (/** @type {number} */ i) => points[clamp(i, 0, points.length - 1)].x;
    /** @param {string} d @param {string} stroke @param {number} wide @param {Record<string, string | number>} [more] */
    const path = (d, stroke, wide, more = {}) =>
      draw(svg, "path", { d, stroke, "stroke-width": wide * r, fill: "none", ...more });
    const stream = paint.css("d_model");
    path(`M0 ${main}H${width}`, stream, 4, { "stroke-opacity": 0.35 });
    this.passed = path("", stream, 4);
    for (const point of points)
      if (!point.step)
        path(`M${point.x - 7 * r} ${main}H${point.x + 7 * r}`, paint.css("background"), 4.4, {
          "stroke-dasharray": `${3 * r} ${3 * r}`,
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
    const [leave, join] = [
      (/** @type {number} */ a) => [x(a), x(a + 1)],
      (/** @type {number} */ b) => [x(b - 1), x(b)],
    ];
    const curve = (/** @type {number[]} */ [from, to], /** @type {number} */ y0, /** @type {number} */ y1) =>
      `C${(from + to) / 2} ${y0} ${(from + to) / 2} ${y1} ${to} ${y1}`;
    const way = (/** @type {number} */ a, /** @type {number} */ end) =>
      `M${x(a)} ${main}${curve(leave(a), main, side)}H${end}`;
    for (const [a, b] of branches)
      path(way(a, x(b - 1)) + curve(join(b), side, main), paint.css("mute"), 2.4, { "stroke-opacity": 0.5 });
    this.heightAt = (at) => {
      const found = branches.find(([a, b]) => at > x(a) && at < x(b));
      if (!found) return main;
      const [a, b] = found;
      const share =
        at < x(a + 1) ? (at - x(a)) / (x(a + 1) - x(a)) : at > x(b - 1) ? (x(b) - at) / (x(b) - x(b - 1)) : 1;
      return main + (side - main) * share * share * (3 - 2 * share);
    };
    this.thread = path("", paint.css("query"), 2.6);
    this.threadTo = (here) => {
      const passed = branches
        .filter(([, b]) => b <= here)
        .map(([a, b]) => way(a, x(b - 1)) + curve(join(b), side, main));
      const within = branches.find(([a, b]) => a < here && here < b);
      return [...passed, within ? way(within[0], x(here)) : ""].join("");
    };
    this.knots = this.steps.map(({ step, x: cx }) => {
      const cy = step.lane === "branch" ? side : main;
      const circle = draw(svg, "circle", { cx, cy, "stroke-width": 2 * r });
      const plus =
        step.lane === "add" ? path(`M${cx - 4 * r} ${cy}h${8 * r}M${cx} ${cy - 4 * r}v${8 * r}`, stream, 1.8) : null;
      return { circle, plus, is: "" };
    });
    this.dot = draw(svg, "circle", { r: 7.5 * r, fill: paint.css("query") });
    this.scale = Math.min(1, Math.max(0.45, (x(1) - x(0)) / (24 * r)));
  }

  // The place of the visitor: the thread ends there, and what changed since changes
  /** @param {import("./grid.js").Paint} paint @param {number} rem @param {number} current */
  mark(paint, rem, current) {
    const r = (rem / 15.55) * (this.scale ?? 1);
    const here = this.points.findIndex((point) => point.at === current);
    const [stream, orange, ground] = ["d_model", "query", "background"].map(paint.css);
    this.thread?.setAttribute("d", this.threadTo(here));
    this.passed?.setAttribute("d", `M0 ${this.heightAt(0)}H${this.points[here].x}`);
    this.knots.forEach((knot, i) => {
      const is = i < current ? "done" : i === current ? "on" : "todo";
      if (knot.is === is) return;
      knot.is = is;
      const { step } = this.steps[i];
      const own = step.lane === "branch" ? paint.css("mute") : stream;
      set(knot.circle, {
        r: (knot.plus ? 7.5 : 4.6) * r,
        fill: ground,
        stroke: is === "todo" || (knot.plus && is !== "on") ? own : orange,
      });
      if (knot.plus) set(knot.plus, { stroke: own });
    });
    if (this.dot) set(this.dot, { r: 7.5 * Math.max(0.8, r) });
    this.move(current, 1);
  }
}
