// The line: the stream runs straight, attention and MLP leave it as branches and come back. A station for every step; it is the scrubber.

import { add, clamp, fill, worded } from "../../../kit/browser/dom.js";
import { draw, set, svg as element } from "../../../kit/browser/picture/svg.js";
import { WORDS as words } from "./constants.js";

/** @typedef {import("./types.js").Step} Step */
/** `isClosed`: of a branch that is folded. @typedef {{x: number, step?: Step, at?: number, isClosed?: boolean}} Point */
const SNAP = 0.22; // of the way between two stations, within which a hand means the station
const FOLD = 0.6; // of a station's room, for layers that are folded away
const CLOSED = 0.28; // of it, for each station of a branch that is folded
const NAMED = 33; // pixels of a rem of 15.55: a station with less has no room for its name
const CROWDED = 11; // as well: without names there is no room for a finger
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
export function shortName(step, header) {
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

// Of each step the branch that it is on, counted from 0; −1 on the stream
/** @param {Step[]} steps */
function branchesOf(steps) {
  let branch = -1;
  return steps.map(({ lane }, i) => {
    if (lane !== "branch") return -1;
    if (steps[i - 1]?.lane !== "branch") branch++;
    return branch;
  });
}

// The branch of a step; on the stream the one that comes next, and after all of them the last
/** @param {Step[]} steps @param {number} at */
function openAt(steps, at) {
  const branches = branchesOf(steps);
  return branches.slice(at).find((branch) => branch >= 0) ?? Math.max(...branches);
}

export class Line {
  /** @type {Point[]} */
  points = [];
  /** @type {HTMLElement[]} */
  stations = [];
  built = ""; // the steps that the stations are of, and their size
  /** @type {number[]} Of the names, in pixels; none where only the current one is shown */
  widths = [];
  at = ""; // where the visitor was when it was drawn
  open = 0; // the branch that is not folded, where the others are
  isHeld = false; // while it is dragged, nothing moves below the hand
  each = 0; // pixels of a station
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
    const to = (/** @type {PointerEvent} */ event) => {
      const [at, moment] = this.placeOf(event.clientX - host.getBoundingClientRect().left);
      if (this.stations.length) go(at, moment);
    };
    host.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.isHeld = true;
      host.setPointerCapture(event.pointerId);
      to(event);
    });
    host.addEventListener("pointermove", (event) => this.isHeld && to(event));
    const leave = () => {
      this.isHeld = false;
      this.again();
    };
    host.addEventListener("pointerup", leave);
    host.addEventListener("pointercancel", leave);
  }

  // Draws it as it was asked for last: it was held
  again = () => {};

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
    this.again = () => this.draw(walk, { id, paint, sizes }, current);
    const size = `${id}/${width}/${height}/${rem}`;
    if (!this.isHeld || !this.built.startsWith(`${size}/`)) this.open = openAt(walk.steps, current);
    const built = `${size}/${this.open}`;
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
    const branches = branchesOf(walk.steps);
    this.lay(header.steps, width, margin, () => false);
    this.widths = narrow ? [] : this.measured(walk, rem);
    const isCrowded = narrow
      ? this.each < CROWDED * r
      : this.each < NAMED * r || this.freeNames(0).length < MOST * this.steps.length;
    if (isCrowded && branches.length > 1)
      this.lay(header.steps, width, margin, (at) => branches[at] !== this.open && branches[at] >= 0);
    for (const [i, step] of header.steps.entries()) {
      const { x, at, isClosed } = this.points[i];
      const wide = this.each * (step.fold ? FOLD : isClosed ? CLOSED : 1);
      const box = add(this.host, "div", step.fold ? "folded" : "station");
      Object.assign(box.style, { left: `${x - wide / 2}px`, width: `${wide}px` });
      if (step.fold) {
        const [a, b] = step.fold;
        box.title = fill((step.same ? words.fold : words.fold_other)[a === b ? 1 : 0], { a, b });
        continue;
      }
      box.dataset.step = step.id;
      add(box, "b").textContent = shortName(step, header);
      box.title = `${step.id.startsWith("cross-") ? `${words.cross}: ` : ""}${nameOf(step, header)}`;
      box.classList.toggle("cross", step.id.startsWith("cross-"));
      box.classList.toggle("closed", Boolean(isClosed));
      this.stations[/** @type {number} */ (at)] = box;
    }
    if (!narrow) this.nameClosed(branches);
    const svg = element("svg", { "aria-hidden": "true", width, height });
    this.host.prepend(svg);
    this.weave(svg, paint, r, main, side, width);
  }

  // The places of the stations and of folded layers: those of a closed branch have little room
  /** @param {(Step | import("./types.js").Folded)[]} all @param {number} width @param {number} margin @param {(at: number) => boolean} isClosed */
  lay(all, width, margin, isClosed) {
    let at = 0;
    const rooms = all.map((step) => (step.fold ? FOLD : isClosed(at++) ? CLOSED : 1));
    const total = rooms.reduce((sum, room) => sum + room, 0);
    this.each = (width - 2 * margin) / Math.max(1, total - (rooms[0] + rooms[rooms.length - 1]) / 2);
    let x = margin - (this.each * rooms[0]) / 2;
    at = 0;
    this.points = all.map((step, i) => {
      const middle = x + (this.each * rooms[i]) / 2;
      x += this.each * rooms[i];
      if (step.fold) return { x: middle };
      return { x: middle, step, at, isClosed: isClosed(at++) };
    });
  }

  // The name of each closed branch, in the place of its stations' names
  /** @param {number[]} branches of each step */
  nameClosed(branches) {
    const { steps } = this;
    for (const branch of new Set(branches)) {
      const own = steps.filter((point) => point.isClosed && branches[point.at] === branch);
      if (!own.length) continue;
      const [from, to] = [own[0].x, own[own.length - 1].x];
      const box = add(this.host, "div", "branch");
      const wide = to - from + 2.2 * this.each;
      Object.assign(box.style, { left: `${(from + to - wide) / 2}px`, width: `${wide}px` });
      const last = own[own.length - 1].step;
      box.textContent = words.branches[last.id.startsWith("cross-") ? 1 : ["wo", "out1"].includes(last.id) ? 0 : 2];
    }
  }

  // How wide the names are
  /** @param {import("./walk.js").Walk} walk @param {number} rem */
  measured(walk, rem) {
    const context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    context.font = `${TYPE * rem}px "Source Sans", sans-serif`;
    return walk.steps.map((step) => context.measureText(shortName(step, walk.header)).width + 0.3 * rem);
  }

  // The stations whose names have room next to each other, and the current one in any case
  /** @param {number} current */
  freeNames(current) {
    const { steps, widths } = this;
    const isFree = (/** @type {number} */ i, /** @type {number} */ j) =>
      Math.abs(steps[i].x - steps[j].x) >= (widths[i] + widths[j]) / 2;
    /** @type {number[]} */
    const named = [];
    for (let i = 0; i < widths.length; i++) {
      const isNamed = i === current || (!steps[i].isClosed && isFree(i, current));
      if (isNamed && (i === current || !named.length || isFree(i, named[named.length - 1]))) named.push(i);
    }
    return named;
  }

  // The name of the current station, and the others where most have room
  /** @param {number} current */
  name(current) {
    const named = this.freeNames(current);
    const areMost = named.length >= MOST * this.steps.filter((point) => !point.isClosed).length;
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
    this.scale = Math.min(1, Math.max(0.45, this.each / (24 * r)));
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
      const { step, isClosed } = this.steps[i];
      const own = step.lane === "branch" ? paint.css("mute") : stream;
      set(knot.circle, {
        r: (knot.plus ? 7.5 : isClosed && is !== "on" ? 1.6 : 4.6) * r,
        fill: ground,
        stroke: is === "todo" || (knot.plus && is !== "on") ? own : orange,
      });
      if (knot.plus) set(knot.plus, { stroke: own });
    });
    if (this.dot) set(this.dot, { r: 7.5 * Math.max(0.8, r) });
    this.move(current, 1);
  }
}
