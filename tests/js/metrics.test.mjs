// metrics.js has the numbers of core/measures.py, from weights that travelled as 16 bits.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RUNS, arrived, expected, near, served } from "./golden.mjs";

const { measured, metricsOf } = await served("attention/browser/metrics.js");

for (const run of RUNS) {
  const { picture, sites, remote } = arrived(run);
  for (const [id, golden] of Object.entries(expected(run).metrics)) {
    test(`${run}, ${id}: the same metrics`, () => {
      assert.deepEqual(new Set(metricsOf(sites[id])), new Set(Object.keys(golden)));
    });

    for (const [name, values] of Object.entries(golden)) {
      test(`${run}, ${id}: ${name}`, () => {
        const found = measured({ picture, remote }, sites[id], name);
        const known = found.values.filter((x) => !Number.isNaN(x));
        assert.deepEqual(found.values.map(Number.isNaN), values.map((x) => x === null)); // a head may have none
        near(known, values.filter((x) => x !== null), name === "distance" ? 1e-3 : 1e-4, name);
        assert(known.every((x) => found.low <= x && x <= found.high), "the scale holds them all");
      });
    }
  }
}
