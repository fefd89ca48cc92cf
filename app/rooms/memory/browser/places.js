// Where things stand: the length that is nearest, and labels beside a column that do not overlap. Pure.

/** The index of the place that is nearest to so many tokens. @param {{n: number}[]} places rising @param {number} n */
export function nearest(places, n) {
  let low = 0;
  let high = places.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle].n <= n) low = middle;
    else high = middle;
  }
  return high > 0 && places[high].n - n < n - places[low].n ? high : Math.max(0, low);
}

/**
 * Where the middles of labels stand, each as near as it can be to what it is of: `tall` pixels from one to the next, and none above
 * `top`, or below `bottom` as long as there is room for all.
 * @param {number[]} middles from the bottom up: y falls @param {number} tall @param {number} top @param {number} bottom
 */
export function spread(middles, tall, top, bottom) {
  const found = [...middles];
  let last = bottom + tall / 2;
  for (let i = 0; i < found.length; i++) last = found[i] = Math.min(found[i], last - tall);
  let first = top - tall / 2;
  for (let i = found.length - 1; i >= 0 && found[i] < first + tall; i--) first = found[i] = first + tall;
  return found;
}

/** The numbers of an axis that are said: none where something else stands. @param {{x: number, width: number}[]} ticks @param {{x: number, width: number}[]} taken @param {number} apart */
export function free(ticks, taken, apart) {
  const said = [...taken];
  return ticks.map((tick) => {
    const isFree = said.every(({ x, width }) => Math.abs(x - tick.x) >= (width + tick.width) / 2 + apart);
    if (isFree) said.push(tick);
    return isFree;
  });
}
