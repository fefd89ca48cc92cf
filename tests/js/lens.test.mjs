// lens.js and app/attention/transform.py are one definition written twice: heads put together, keys hidden, pieces merged to words.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RUNS, arrived, expected, near, served } from "./golden.mjs";

const { Lens } = await served("attention/browser/lens.js");
const WITHIN = 1e-4; // of weights that travelled as 16 bits; where keys are hidden, of what is left of a row

for (const run of RUNS) {
  const { picture, sites, remote } = arrived(run);
  for (const { choice, ...golden } of expected(run).lens) {
    const { site, layer, head, ...options } = choice;
    const name = `${run}: ${Object.values(choice)
      .map((x) => JSON.stringify(x))
      .join(" ")}`;
    const lens = () => new Lens({ picture, site: sites[site], place: { layer, head }, options, remote });

    test(`${name}: values`, () => {
      const view = lens();
      const top = Math.max(1, ...golden.values.flat());
      const { values } = view.tile([0, view.n_query, 0, view.n_key]);
      near(values, golden.values.flat(), WITHIN * top, "tile");
      for (const [q, row] of golden.values.entries()) near(view.row(q).weights, row, WITHIN * top, `row ${q}`);
      for (let k = 0; k < view.n_key; k++) {
        const column = golden.values.map((row) => row[k]);
        near(view.column(k).weights, column, WITHIN * top, `column ${k}`);
      }
    });

    test(`${name}: why a cell has no number`, () => {
      const view = lens();
      const codes = golden.codes.flat();
      const { masked } = view.tile([0, view.n_query, 0, view.n_key]);
      assert.deepEqual(Array.from(masked ?? codes.map(() => 0)), codes);
    });

    test(`${name}: what is left, and the sink`, () => {
      const view = lens();
      if (golden.left)
        near(
          golden.left.map((_, q) => view.row(q).left),
          golden.left,
          WITHIN,
          "left",
        );
      else assert.equal(view.row(0).left, null);
      assert.equal(view.sink(), golden.sink);
    });
  }
}
