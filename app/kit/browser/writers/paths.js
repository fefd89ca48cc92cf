// Lines as SVG writes them, as lines and cubic curves.

/** @typedef {{op: "M" | "L", to: number[]} | {op: "C", to: number[]} | {op: "Z", to: number[]}} Part */

/** @param {string} d @returns {Part[]} */
export function partsOf(d) {
  /** @type {Part[]} */
  const found = [];
  let [x, y, left, top] = [0, 0, 0, 0];
  let [cx, cy] = [0, 0]; // of the last curve's end
  let before = "";
  for (const [, command, rest] of d.matchAll(/([MLHVCSQTAZmlhvcsqtaz])([^MLHVCSQTAZmlhvcsqtaz]*)/g)) {
    const upper = command.toUpperCase();
    const isArc = upper === "A";
    const numbers = isArc ? arcNumbers(rest) : numbersOf(rest);
    const count = { M: 2, L: 2, H: 1, V: 1, C: 6, S: 4, Q: 4, T: 2, A: 7, Z: 0 }[/** @type {"M"} */ (upper)];
    const isRelative = command !== upper;
    if (upper === "Z") {
      found.push({ op: "Z", to: [] });
      [x, y, before] = [left, top, "Z"];
      continue;
    }
    for (let i = 0; i + count <= numbers.length; i += count) {
      const all = numbers.slice(i, i + count);
      const [dx, dy] = isRelative ? [x, y] : [0, 0];
      const at = (/** @type {number} */ k) => [all[k] + dx, all[k + 1] + dy];
      const curve = (/** @type {number[]} */ a, /** @type {number[]} */ b, /** @type {number[]} */ end) => {
        found.push({ op: "C", to: [...a, ...b, ...end] });
        [cx, cy] = b;
        [x, y] = end;
      };
      const isFirst = i === 0;
      if (upper === "M" || upper === "L") {
        [x, y] = at(0);
        const isMove = upper === "M" && isFirst;
        if (isMove) [left, top] = [x, y];
        found.push({ op: isMove ? "M" : "L", to: [x, y] });
      } else if (upper === "H" || upper === "V") {
        if (upper === "H") x = all[0] + dx;
        else y = all[0] + dy;
        found.push({ op: "L", to: [x, y] });
      } else if (upper === "C") curve(at(0), at(2), at(4));
      else if (upper === "S") {
        const first = "CS".includes(before) ? [2 * x - cx, 2 * y - cy] : [x, y];
        curve(first, at(0), at(2));
      } else if (upper === "Q" || upper === "T") {
        const middle = upper === "Q" ? at(0) : "QT".includes(before) ? [2 * x - cx, 2 * y - cy] : [x, y];
        const end = at(upper === "Q" ? 2 : 0);
        const third = (/** @type {number} */ a, /** @type {number} */ b) => a + (2 / 3) * (b - a);
        curve([third(x, middle[0]), third(y, middle[1])], [third(end[0], middle[0]), third(end[1], middle[1])], end);
        [cx, cy] = middle;
      } else {
        const [rx, ry, turn, large, sweep] = all;
        const end = at(5);
        for (const piece of arc([x, y], end, [rx, ry], turn, Boolean(large), Boolean(sweep)))
          found.push({ op: piece.length === 2 ? "L" : "C", to: piece });
        [x, y] = end;
      }
      before = upper;
    }
  }
  return found;
}

/** @param {string} text */
const numbersOf = (text) => (text.match(/[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?/gi) ?? []).map(Number);

// Flags of an arc may stand together, as in "01".
/** @param {string} text */
function arcNumbers(text) {
  /** @type {number[]} */
  const found = [];
  let rest = text;
  for (;;) {
    const isFlag = found.length % 7 === 3 || found.length % 7 === 4;
    const next = (isFlag ? /^[\s,]*([01])/ : /^[\s,]*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)/i).exec(rest);
    if (!next) return found;
    found.push(Number(next[1]));
    rest = rest.slice(next[0].length);
  }
}

/**
 * An arc of an ellipse as cubic curves, each of a quarter at most; a line where it has no radius.
 * @param {number[]} from @param {number[]} to @param {number[]} radii @param {number} turn degrees @param {boolean} large @param {boolean} sweep @returns {number[][]}
 */
export function arc([x0, y0], [x1, y1], radii, turn, large, sweep) {
  let [rx, ry] = radii.map(Math.abs);
  if (!rx || !ry) return [[x1, y1]];
  if (x0 === x1 && y0 === y1) return [];
  const [cos, sin] = [Math.cos((turn * Math.PI) / 180), Math.sin((turn * Math.PI) / 180)];
  const [hx, hy] = [(x0 - x1) / 2, (y0 - y1) / 2];
  const [px, py] = [cos * hx + sin * hy, cos * hy - sin * hx];
  const over = (px / rx) ** 2 + (py / ry) ** 2;
  if (over > 1) [rx, ry] = [rx * Math.sqrt(over), ry * Math.sqrt(over)];
  const below = (rx * py) ** 2 + (ry * px) ** 2;
  const share = (large === sweep ? -1 : 1) * Math.sqrt(Math.max(0, ((rx * ry) ** 2 - below) / below));
  const [mx, my] = [(share * rx * py) / ry, (-share * ry * px) / rx];
  const [cx, cy] = [cos * mx - sin * my + (x0 + x1) / 2, sin * mx + cos * my + (y0 + y1) / 2];
  const begin = Math.atan2((py - my) / ry, (px - mx) / rx);
  let way = Math.atan2((-py - my) / ry, (-px - mx) / rx) - begin;
  if (sweep && way < 0) way += 2 * Math.PI;
  if (!sweep && way > 0) way -= 2 * Math.PI;
  const n = Math.max(1, Math.ceil(Math.abs(way) / (Math.PI / 2) - 1e-9));
  const k = (4 / 3) * Math.tan(way / n / 4);
  const at = (/** @type {number} */ a, /** @type {number} */ b) => [
    cx + rx * a * cos - ry * b * sin,
    cy + rx * a * sin + ry * b * cos,
  ];
  return Array.from({ length: n }, (_, i) => {
    const [a, b] = [begin + (way * i) / n, begin + (way * (i + 1)) / n];
    return [
      ...at(Math.cos(a) - k * Math.sin(a), Math.sin(a) + k * Math.cos(a)),
      ...at(Math.cos(b) + k * Math.sin(b), Math.sin(b) - k * Math.cos(b)),
      ...at(Math.cos(b), Math.sin(b)),
    ];
  });
}

/** A box with round corners. @param {number} x @param {number} y @param {number} w @param {number} h @param {number} rx @param {number} ry @returns {Part[]} */
export function boxed(x, y, w, h, rx, ry) {
  const [a, b] = [Math.min(rx, w / 2), Math.min(ry, h / 2)];
  return partsOf(
    a && b
      ? `M${x + a} ${y}H${x + w - a}A${a} ${b} 0 0 1 ${x + w} ${y + b}V${y + h - b}A${a} ${b} 0 0 1 ${x + w - a} ${y + h}H${x + a}A${a} ${b} 0 0 1 ${x} ${y + h - b}V${y + b}A${a} ${b} 0 0 1 ${x + a} ${y}Z`
      : `M${x} ${y}H${x + w}V${y + h}H${x}Z`,
  );
}

/** A round. @param {number} cx @param {number} cy @param {number} rx @param {number} ry @returns {Part[]} */
export const round = (cx, cy, rx, ry) =>
  partsOf(`M${cx - rx} ${cy}A${rx} ${ry} 0 0 1 ${cx + rx} ${cy}A${rx} ${ry} 0 0 1 ${cx - rx} ${cy}Z`);

/**
 * The areas of one colour that an image is made of, as boxes; null where they are more than `most`, as in a photograph.
 * @param {{width: number, height: number, data: ArrayLike<number>}} image four numbers for each pixel @param {number} most
 * @returns {{x: number, y: number, w: number, h: number, colour: number[]}[] | null}
 */
export function areas({ width, height, data }, most) {
  /** @type {{x: number, y: number, w: number, h: number, colour: number[]}[]} */
  const found = [];
  /** @type {Map<string, {x: number, y: number, w: number, h: number, colour: number[]}>} Areas that end at the row above */
  let above = new Map();
  for (let y = 0; y < height; y++) {
    const now = new Map();
    for (let x = 0; x < width; ) {
      const at = 4 * (y * width + x);
      let end = x + 1;
      const isSame = (/** @type {number} */ to) =>
        [0, 1, 2, 3].every((k) => data[4 * (y * width + to) + k] === data[at + k]);
      while (end < width && isSame(end)) end++;
      if (data[at + 3]) {
        const key = `${x} ${end} ${data[at]} ${data[at + 1]} ${data[at + 2]} ${data[at + 3]}`;
        let area = above.get(key);
        if (area) area.h++;
        else {
          area = { x, y, w: end - x, h: 1, colour: [0, 1, 2, 3].map((k) => data[at + k]) };
          if (found.push(area) > most) return null;
        }
        now.set(key, area);
      }
      x = end;
    }
    above = now;
  }
  return found;
}
