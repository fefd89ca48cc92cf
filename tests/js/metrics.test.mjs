// metrics.js has the numbers of core/read/measures.py, from weights that travelled as 16 bits, and torch's correlation of two maps.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RUNS, arrived, expected, near, served } from "./golden.mjs";

const { correlations, likest, measured, metricsOf } = await served("attention/browser/metrics.js");
const { WORDS } = await served("attention/browser/constants.js");

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
        assert.deepEqual(
          found.values.map(Number.isNaN),
          values.map((x) => x === null),
        ); // a head may have none
        near(
          known,
          values.filter((x) => x !== null),
          name === "distance" ? 1e-3 : 1e-4,
          name,
        );
        assert(
          known.every((x) => found.low <= x && x <= found.high),
          "the scale holds them all",
        );
      });
    }
  }

  for (const [id, { layer, head, map, row, apart, key }] of Object.entries(expected(run).alike)) {
    test(`${run}, ${id}: maps are alike by weights less the mean of their map, as the help says, and not of their rows`, () => {
      const { heads } = sites[id];
      const found = likest(sites[id], { layer, head }, Infinity, null);
      const known = map.flatMap((r, at) => (r === null ? [] : [{ r, at }])).sort((a, b) => b.r - a.r);
      near(
        found.map(({ r }) => r),
        known.map(({ r }) => r),
        1e-4,
        "from the most alike to the least",
      );
      const off = (means) => Math.max(...found.map(({ layer, head, r }) => Math.abs(r - means[layer * heads + head])));
      assert(off(map) < 1e-4, "each for its own head");
      // Where every row sees every key, the mean of each row is that of the map.
      if (sites[id].masked(layer, head)) assert(off(row) > 1e-2, "less the mean of its row it would be another number");
    });

    test(`${run}, ${id}: how like every head is, without the column of one key`, () => {
      const found = [...correlations(sites[id], { layer, head }, key)];
      const at = layer * sites[id].heads + head;
      assert(Math.abs(found[at] - 1) < 1e-6, "a head is like itself");
      found[at] = NaN;
      assert.deepEqual(
        found.map(Number.isNaN),
        apart.map((r) => r === null),
      );
      const known = (values) => values.filter((r) => r !== null && !Number.isNaN(r));
      near(known(found), known(apart), 1e-4, "likeness");
      assert(
        known(found).some((r, i) => Math.abs(r - known(map)[i]) > 1e-3),
        "another number than with it",
      );
    });
  }
}

test("the help says what is subtracted", () => {
  assert.match(WORDS.alike_help, /each weight less the mean of its map/);
});
