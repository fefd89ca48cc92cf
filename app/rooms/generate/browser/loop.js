// A text that repeats itself.

const LEAST = 6; // tokens that come twice

// The longest run of tokens that is there a second time, by where both begin; null where there is none
/** @param {number[]} path @returns {{first: number, second: number, length: number} | null} */
export function repeats(path) {
  let found = null;
  for (let second = 1; second < path.length; second++)
    for (let first = 0; first < second; first++) {
      if (path[first] !== path[second] || (first && path[first - 1] === path[second - 1])) continue;
      let length = 0;
      while (second + length < path.length && first + length < second && path[first + length] === path[second + length])
        length++;
      if (length >= LEAST && length > (found?.length ?? 0)) found = { first, second, length };
    }
  return found;
}
