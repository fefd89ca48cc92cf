// Of each row the fewest keys that reach a share of it are drawn.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RUNS, arrived, expected, served } from "./golden.mjs";

const { Lens } = await served("attention/browser/lens.js");
const { everyLine, kept, linesOf } = await served("attention/browser/edges.js");

for (const run of RUNS) {
  const { picture, remote, sites } = arrived(run);
  const site = sites[picture.sites[0].id];
  for (const { layer, head, keep, keys } of expected(run).lines) {
    const options = { kind: "head", members: [], hide: [], words: false };
    const lens = new Lens({ picture, site, place: { layer, head }, options, remote });

    test(`${run}: the keys of each query at ${keep} %`, () => {
      for (const [q, wanted] of keys.entries())
        assert.deepEqual(
          kept(lens, q, keep).map(([k]) => k),
          wanted,
        );
    });

    test(`${run}: all lines at ${keep} %, faintest first`, () => {
      const { lines, total } = everyLine([lens], keep, Infinity);
      assert.equal(total, keys.flat().length);
      assert.deepEqual(
        new Set(lines.map(({ q, k }) => `${q} ${k}`)),
        new Set(keys.flatMap((row, q) => row.map((k) => `${q} ${k}`))),
      );
      assert(lines.every(({ w }, i) => i === 0 || lines[i - 1].w <= w));
      const few = everyLine([lens], keep, 7);
      assert.deepEqual([few.lines.length, few.total], [7, total]);
      assert(few.lines[0].w >= lines.at(-7).w);
    });

    test(`${run}: the lines into a key at ${keep} %`, () => {
      for (let key = 0; key < site.n_key; key++) {
        const wanted = keys.flatMap((row, q) => (row.includes(key) ? [q] : []));
        const { lines } = linesOf({ query: null, key }, [lens], keep, Infinity);
        assert.deepEqual(
          lines.map(({ q }) => q).sort((a, b) => a - b),
          wanted,
        );
      }
    });
  }
}
