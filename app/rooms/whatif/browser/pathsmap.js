// Paths between heads as a picture: columns are layers, a card for each head, a line for each path. On a phone, layers go down.

import { signs } from "../../../kit/browser/picture/scale.js";
import { text } from "../../../kit/browser/scene.js";
import { pointed } from "../../../kit/browser/language.js";

/** @typedef {import("../../../kit/browser/types.js").Shape} Shape */
/** @typedef {import("../../../kit/browser/types.js").Point} Point */
/** @typedef {{from: string, to: string, input: string, change: number}} Edge Parts by their names; from ALL: everything before, to ANSWER: the answer */
/** @typedef {{id: string, x: number, y: number, w: number, h: number}} Card */
/** @typedef {{edge: Edge, points: [Point, Point, Point, Point], width: number, label: {x: number, y: number, w: number, h: number} | null}} Line */
/** @typedef {{cards: Card[], lines: Line[], columns: {layers: number[], x: number, y: number}[], width: number, height: number, turned: boolean, unit: number}} Plan unit: of the type */
/** @typedef {{along: number, across: number, id: string, column: number}} Place Where a card begins, in the direction of layers and across it */

export const [ALL, ANSWER] = ["all", "answer"];
const [LEAST, LEAST_OUT] = [0.2, 0.4]; // nats of a line, and of one to the answer: smaller ones are drawn only as a head's largest
const CARD = [92, 42]; // pixels, at the page's size of type
const TOGETHER = [3, 3]; // layers apart, and cards, that may share a column
const LABELLED = 0.12; // of the largest change
const TYPE = 13.5; // pixels, at the page's size of type
const WIDEST = 7; // pixels of a line
const BENDS = [0, 0.35, -0.35, 0.7, -0.7, 1.05, -1.05, 1.5, -1.5, 1.9, -1.9]; // of a card: how far a line may go round others
const STOPS = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82, 0.12, 0.88]; // where a number may stand on its line

/** @param {string} id */
const layerOf = (id) => Number(id.slice(1).split(".")[0]);

// The lines that are drawn: large ones, and of every head its largest. `isRead` says which inputs of a head come from the words that differ.
/** @param {Edge[]} edges @param {(edge: Edge) => boolean} isRead */
export function drawn(edges, isRead) {
  /** @type {Map<string, Edge>} */
  const largest = new Map();
  for (const edge of edges) {
    const best = largest.get(edge.from);
    if (edge.from !== ALL && (!best || Math.abs(edge.change) > Math.abs(best.change))) largest.set(edge.from, edge);
  }
  return edges.filter((edge) => {
    if (edge.from === ALL) return isRead(edge);
    return Math.abs(edge.change) >= (edge.to === ANSWER ? LEAST_OUT : LEAST) || largest.get(edge.from) === edge;
  });
}

// Of the paths into one head the n senders with the largest
/** @param {Edge[]} edges @param {number} n */
export function strongestInto(edges, n) {
  /** @type {Map<string, number>} */
  const sizes = new Map();
  for (const { from, change } of edges)
    if (from !== ALL) sizes.set(from, Math.max(sizes.get(from) ?? 0, Math.abs(change)));
  return [...sizes.keys()].sort((a, b) => (sizes.get(b) ?? 0) - (sizes.get(a) ?? 0)).slice(0, n);
}

// Heads in columns: layers that lie together share one where no line goes between them, and no column has more cards than fit
/** @param {string[]} heads @param {Edge[]} edges @param {number} fits */
function columnsOf(heads, edges, fits) {
  /** @type {string[][]} */
  const columns = [];
  for (const layer of [...new Set(heads.map(layerOf))].sort((a, b) => a - b)) {
    const own = heads.filter((id) => layerOf(id) === layer);
    const last = columns.at(-1);
    const isJoined =
      last &&
      layer - layerOf(last[last.length - 1]) <= TOGETHER[0] &&
      last.length + own.length <= Math.min(TOGETHER[1], fits) &&
      !edges.some(({ from, to }) => last.includes(from) && own.includes(to));
    if (isJoined) last.push(...own);
    else for (let at = 0; at < own.length; at += fits) columns.push(own.slice(at, at + fits));
  }
  return columns;
}

// Where everything stands
/** @param {string[]} heads in the order of their columns' cards @param {Edge[]} edges that are drawn @param {{width: number, height: number, unit: number, turned: boolean, hasAnswer: boolean}} room @returns {Plan} */
export function planOf(heads, edges, { width, height, unit: typed, turned, hasAnswer }) {
  const ends = hasAnswer ? 2 : 1;
  const top = turned ? 0 : 24 * typed;
  const most = (turned ? width : height - top) - 4;
  const roomy = turned ? Math.min(CARD[0] * typed, (most / Math.min(4, heads.length)) * 0.93) : CARD[1] * typed;
  const fits = Math.max(1, Math.floor(most / (roomy * 1.1)));
  const columns = columnsOf(heads, edges, fits);
  const w = turned ? roomy : Math.min(CARD[0] * typed, (width / (columns.length + ends)) * 0.78);
  const unit = turned ? typed : Math.min(typed, Math.max(1, w / 84)); // a head and what it reads must stand on a card
  const h = CARD[1] * unit;
  const [long, wide] = turned ? [h, w] : [w, h]; // of a card along the layers, and across them
  const steps = Math.max(1, columns.length + ends - 1);
  const step = turned ? 96 * unit : (width - w - 2) / steps;
  const middle = top + most / 2;
  /** @type {Place[]} */
  const places = [];
  const place = (/** @type {string} */ id, /** @type {number} */ column, /** @type {number} */ centre) =>
    places.push({ id, column, along: 1 + column * step, across: centre - wide / 2 });
  place(ALL, 0, middle);
  columns.forEach((ids, i) => {
    const n = ids.length;
    const apart = Math.min((most - wide) / Math.max(1, n - 1), wide * (turned ? 1.12 : n > 3 ? 1.5 : 2.7));
    const aside =
      n === 1 && i > 0 && (columns.length > 1 || !hasAnswer) ? Math.min(wide * 1.15, most / 2 - wide / 2) : 0; // lines pass in the middle
    ids.forEach((id, j) => place(id, i + 1, middle + aside + (j - (n - 1) / 2) * apart));
  });
  if (hasAnswer) place(ANSWER, columns.length + 1, middle);
  const by = new Map(places.map((one) => [one.id, one]));
  const lines = linesOf(edges, by, { long, wide, step, middle, from: top, to: top + most });
  const largest = Math.max(...edges.map(({ change }) => Math.abs(change)), 1e-9);
  /** @type {(along: number, across: number) => Point} */
  const at = (along, across) => (turned ? [across, along] : [along, across]);
  const cards = places.map(({ id, along, across }) => {
    const [x, y] = at(along, across);
    return { id, x, y, w, h };
  });
  const planned = lines.map(({ edge, points }) => ({
    edge,
    points: /** @type {Line["points"]} */ (points.map((point) => at(...point))),
    width: Math.max(1.3, Math.sqrt(Math.abs(edge.change) / largest) * WIDEST * unit),
    label: null,
  }));
  return {
    cards,
    lines: labelled(planned, cards, TYPE * unit, width),
    columns: columns.map((ids, i) => {
      const [x, y] = at((i + 1) * step + long / 2, turned ? 0 : 8 * unit);
      return { layers: [...new Set(ids.map(layerOf))], x, y };
    }),
    width,
    height: turned ? steps * step + h + 2 : height,
    turned,
    unit,
  };
}

// A point of a curve
/** @param {Point[]} points @param {number} t @returns {Point} */
export function pointAt([a, b, c, d], t) {
  const u = 1 - t;
  const mix = (/** @type {0 | 1} */ i) =>
    u * u * u * a[i] + 3 * u * u * t * b[i] + 3 * u * t * t * c[i] + t * t * t * d[i];
  return [mix(0), mix(1)];
}

// The lines, each from its place at the end of one card to its place at the beginning of another, round the cards between
/** @param {Edge[]} edges @param {Map<string, Place>} places @param {{long: number, wide: number, step: number, middle: number, from: number, to: number}} room @returns {{edge: Edge, points: Point[]}[]} */
function linesOf(edges, places, { long, wide, step, middle, from, to }) {
  const ends = edges.flatMap((edge) => {
    const [a, b] = [places.get(edge.from), places.get(edge.to)];
    return a && b ? [{ edge, a, b, leaves: 0, arrives: 0 }] : [];
  });
  const port = (/** @type {number} */ across, /** @type {number} */ i, /** @type {number} */ n) =>
    across + wide * (0.14 + (0.72 * (i + 0.5)) / n);
  for (const one of places.values()) {
    const out = ends.filter(({ a }) => a === one).sort((x, y) => x.b.across - y.b.across || x.b.along - y.b.along);
    const arriving = ends.filter(({ b }) => b === one).sort((x, y) => x.a.across - y.a.across || y.a.along - x.a.along);
    out.forEach((end, i) => {
      end.leaves = port(one.across, i, out.length);
    });
    arriving.forEach((end, i) => {
      end.arrives = port(one.across, i, arriving.length);
    });
  }
  const cards = [...places.values()];
  return ends.map(({ edge, a, b, leaves, arrives }) => {
    const [start, end] = [a.along + long, b.along];
    const reach = Math.max(20, (end - start) * 0.42);
    const half = (leaves + arrives) / 2;
    const up = half < middle - 2 || (Math.abs(half - middle) < 3 && edge.change < 0) ? -1 : 1;
    let best = { cost: Number.POSITIVE_INFINITY, points: /** @type {Point[]} */ ([]) };
    for (const bend of end - start > step ? BENDS : [0]) {
      const by = bend * wide * 1.6 * up;
      /** @type {Point[]} */
      const points = [
        [start, leaves],
        [start + reach, leaves + by],
        [end - reach, arrives + by],
        [end, arrives],
      ];
      let cost = 0.6 * Math.abs(bend);
      for (let t = 0.06; t < 0.95; t += 0.04) {
        const [along, across] = pointAt(points, t);
        const isInside = cards.some(
          (card) =>
            card !== a &&
            card !== b &&
            along > card.along - 4 &&
            along < card.along + long + 4 &&
            across > card.across - 5 &&
            across < card.across + wide + 5,
        );
        if (isInside) cost += 1;
        if (across < from || across > to) cost += 2;
      }
      if (cost < best.cost - 0.01) best = { cost, points };
    }
    return { edge, points: best.points };
  });
}

// The largest lines have their number where it covers no card and no other number
/** @param {Line[]} lines @param {Card[]} cards @param {number} size @param {number} width */
function labelled(lines, cards, size, width) {
  const taken = cards.map(({ x, y, w, h }) => ({ x: x - 2, y: y - 2, w: w + 4, h: h + 4 }));
  const largest = Math.max(...lines.map(({ edge }) => Math.abs(edge.change)), 1e-9);
  const order = [...lines].sort((a, b) => Math.abs(b.edge.change) - Math.abs(a.edge.change));
  for (const line of order) {
    if (Math.abs(line.edge.change) < LABELLED * largest) break;
    const [w, h] = [size * 0.56 * (1 + Math.abs(line.edge.change).toFixed(1).length), size * 1.2];
    for (const t of STOPS) {
      const [x, y] = pointAt(line.points, t);
      const box = { x: Math.max(0, Math.min(width - w, x - w / 2)), y: y - h / 2, w, h };
      if (taken.some((b) => box.x < b.x + b.w && b.x < box.x + w && box.y < b.y + b.h && b.y < box.y + h)) continue;
      taken.push(box);
      line.label = box;
      break;
    }
  }
  return order.reverse(); // the largest last, over the others
}

// The card at a point; null beside them
/** @param {Plan} plan @param {number} px @param {number} py */
export const cardAt = ({ cards }, px, py) =>
  cards.find(({ x, y, w, h }) => px >= x && px <= x + w && py >= y && py <= y + h)?.id ?? null;

// The line at a point; null where none is near
/** @param {Plan} plan @param {number} px @param {number} py */
export function lineAt({ lines }, px, py) {
  let best = { away: 7, edge: /** @type {Edge | null} */ (null) };
  for (const { edge, points, width } of lines)
    for (let t = 0; t <= 1; t += 0.02) {
      const [x, y] = pointAt(points, t);
      const away = Math.hypot(px - x, py - y) - width / 2;
      if (away < best.away) best = { away, edge };
    }
  return best.edge;
}

// The head whose card lies nearest in a direction: in the next column along the layers, in its own across them; null where none does
/** @param {Plan} plan @param {string} id @param {number} down @param {number} right */
export function headBeside({ cards, turned }, id, down, right) {
  const here = cards.find((card) => card.id === id);
  if (!here) return null;
  const isAlong = Boolean(turned ? down : right);
  const far = (/** @type {Card} */ { x, y }) => {
    const [dx, dy] = [x - here.x, y - here.y];
    const [forward, aside] = right ? [dx * right, dy] : [dy * down, dx];
    if (forward <= 2) return Number.POSITIVE_INFINITY;
    return isAlong ? 3 * forward + Math.abs(aside) : forward + 3 * Math.abs(aside);
  };
  const others = cards.filter((card) => card !== here && card.id !== ALL && card.id !== ANSWER);
  const best = others.reduce((a, b) => (far(b) < far(a) ? b : a), others[0]);
  return best && Number.isFinite(far(best)) ? best.id : null;
}

/**
 * @param {Plan} plan @param {(id: string) => [title: string, note: string, shorter?: string]} said of a card @param {(layers: number[]) => string} layerName
 * @param {string | null} pick @param {import("./types.js").Palette} palette @returns {Shape[]}
 */
export function shapesOf(plan, said, layerName, pick, palette) {
  const { cards, lines, columns, turned, unit } = plan;
  const size = TYPE * unit;
  const { more, less } = signs(palette);
  const largest = Math.max(...lines.map(({ edge }) => Math.abs(edge.change)), 1e-9);
  /** @type {Shape[]} */
  const shapes = [];
  if (!turned)
    for (const { layers, x, y } of columns)
      shapes.push(text(x, y, [[layerName(layers), palette.mute]], 13 * unit, { anchor: "middle" }));
  for (const { edge, points, width } of lines) {
    const isChosen = edge.from === pick || edge.to === pick;
    shapes.push({
      shape: "curve",
      points: /** @type {Point[]} */ (points),
      stroke: edge.change < 0 ? less : more,
      width,
      opacity: isChosen ? 0.9 : Math.abs(edge.change) >= LABELLED * largest ? 0.55 : 0.35,
      dash: isDashed(edge) ? [width + 4, width * 0.4 + 3] : undefined,
    });
  }
  for (const { id, x, y, w, h } of cards) {
    const [title, note, shorter = note] = said(id);
    const told = lettersIn(w, 13 * unit) < Array.from(note).length ? shorter : note;
    const isEnd = id === ALL || id === ANSWER;
    shapes.push(
      { shape: "rect", x, y, w, h, fill: palette.panel, rx: 6 },
      {
        shape: "frame",
        x,
        y,
        w,
        h,
        stroke: id === pick ? palette.query : palette.mute,
        width: id === pick ? 2.6 : 1,
        rx: 6,
      },
      text(x + w / 2, y + 0.31 * h, [[cut(title, w, size), id === ANSWER ? palette.proof : palette.ink, 650]], size, {
        anchor: "middle",
        most: w - 4,
      }),
      text(x + w / 2, y + 0.71 * h, [[cut(told, w, 13 * unit), isEnd ? palette.ink : palette.mute]], 13 * unit, {
        anchor: "middle",
        most: w - 4,
      }),
    );
  }
  for (const { edge, label } of lines)
    if (label)
      shapes.push(
        { shape: "rect", ...label, fill: palette.background, opacity: 0.92, rx: 3 },
        text(label.x + label.w / 2, label.y + label.h / 2, [[changeOf(edge.change), palette.ink, 650]], size, {
          anchor: "middle",
        }),
      );
  return shapes;
}

// Whether a path changes where a head looks, and not what it reads there
/** @param {Edge} edge */
export const isDashed = ({ input }) => input === "q" || input === "k";

/** @param {number} x */
const changeOf = (x) => pointed(`${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(1)}`);

// About how many letters a card has room for
/** @param {number} width @param {number} size */
const lettersIn = (width, size) => Math.floor((width - 4) / (size * 0.49));

// As much of a text as a card has room for
/** @param {string} string @param {number} width @param {number} size */
function cut(string, width, size) {
  const letters = Array.from(string);
  const fits = lettersIn(width, size);
  return letters.length <= fits ? string : `${letters.slice(0, Math.max(1, fits - 1)).join("")}…`;
}
