// Numbers that a class has typed, on a line: where each stands, which stand together, and which lie beyond its ends. Pure.

/** @typedef {[value: number, count: number]} Vote */
/** @typedef {{at: number, value: number, count: number}} Pile at: from 0 at the left end to 1 at the right */

const WIDE = 4; // the largest over the smallest: from here on the line is of powers
const REACH = 32; // times the middle answer: what is farther stands at the end of the line, with its number
const MARGIN = 0.08; // of the line, free at each end
const PLACES = 34; // of piles beside each other

/** The answer in the middle, of all votes. @param {Vote[]} votes */
function middle(votes) {
  const order = [...votes].sort(([a], [b]) => a - b);
  let left = order.reduce((all, [, n]) => all + n, 0) / 2;
  for (const [value, n] of order) {
    left -= n;
    if (left <= 0) return value;
  }
  return 0;
}

/** @param {Vote[]} votes @param {number | null} truth null as long as no one may see it */
export function numberLine(votes, truth) {
  const values = [...votes.map(([value]) => value), ...(truth === null ? [] : [truth])];
  const centre = middle(votes);
  const isLog = values.length > 0 && values.every((x) => x > 0) && Math.max(...values) / Math.min(...values) >= WIDE;
  const within = isLog
    ? values.filter((x) => x === truth || (x <= centre * REACH && x >= centre / REACH))
    : values.filter((x) => x === truth || Math.abs(x - centre) <= REACH * spread(votes, centre));
  const to = isLog ? Math.log : (/** @type {number} */ x) => x;
  let [low, high] = within.length ? [to(Math.min(...within)), to(Math.max(...within))] : [0, 1];
  if (high - low < 1e-12) {
    const room = Math.abs(low) / 2 || 1;
    [low, high] = [low - room, high + room];
  }
  const at = (/** @type {number} */ x) => MARGIN + (1 - 2 * MARGIN) * ((to(x) - low) / (high - low));
  /** @type {Map<number, Pile>} */
  const piles = new Map();
  /** @type {{below: Vote[], above: Vote[]}} */
  const beyond = { below: [], above: [] };
  for (const [value, count] of votes) {
    const place = at(value);
    if (!within.includes(value)) beyond[value > centre ? "above" : "below"].push([value, count]);
    else {
      const slot = Math.round(place * PLACES);
      const pile = piles.get(slot);
      // Those that lie too close for a place of their own form one pile, where most of them are
      if (!pile) piles.set(slot, { at: place, value, count });
      else
        piles.set(slot, {
          ...(count > pile.count ? { at: place, value } : pile),
          count: pile.count + count,
        });
    }
  }
  const back = isLog ? Math.exp : (/** @type {number} */ x) => x;
  const ticks = isLog ? powers(back(low), back(high)) : steps(low, high);
  return { isLog, at, piles: [...piles.values()].sort((a, b) => a.at - b.at), beyond, ticks };
}

/** How far answers are from the middle one, by the middle of the distances that there are. @param {Vote[]} votes @param {number} centre */
function spread(votes, centre) {
  const far = votes.filter(([x]) => x !== centre).map(([x, n]) => /** @type {Vote} */ ([Math.abs(x - centre), n]));
  return far.length ? middle(far) : 1;
}

/** Whole powers of 10, 4 or 2 between two numbers, as many as have room. @param {number} low @param {number} high */
function powers(low, high) {
  const base = [2, 4, 10, 100, 1000].find((b) => Math.log(high / low) / Math.log(b) <= 6) ?? 1e4;
  const found = [];
  for (let i = Math.ceil(Math.log(low) / Math.log(base) - 1e-9); base ** i <= high * (1 + 1e-9); i++)
    found.push(base ** i);
  return found;
}

/** Round numbers between two. @param {number} low @param {number} high */
function steps(low, high) {
  const rough = (high - low) / 4;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * ([1, 2, 5, 10].find((k) => k * ten >= rough) ?? 10);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
    found.push(Number((i * step).toPrecision(12)));
  return found;
}
