// A message is read as it was written, header and numbers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RUNS, arrived, bytes, expected, served } from "./golden.mjs";

const { unpack } = await served("kit/browser/messages.js");

for (const run of RUNS) {
  test(`the header of ${run} is what Python packed`, () => {
    const [header] = unpack(bytes(`${run}.bin`));
    assert.deepEqual(header, expected(run).header);
  });

  test(`${run} is read wherever it lies in a larger buffer`, () => {
    const message = bytes(`${run}.bin`);
    const [header, body] = unpack(message);
    for (const offset of [1, 2, 3, 4]) {
      const larger = new Uint8Array(message.length + offset + 5).fill(9);
      larger.set(message, offset);
      const [again, same] = unpack(larger.subarray(offset, offset + message.length));
      assert.deepEqual(again, header);
      assert.deepEqual(new Uint8Array(same), new Uint8Array(body));
    }
  });

  test(`every row of ${run} adds up to 1, and no weight stands where a cell is masked`, () => {
    for (const site of Object.values(arrived(run).sites)) {
      for (let layer = 0; layer < site.layers; layer++) {
        for (let head = 0; head < site.heads; head++) {
          const weights = site.weights(layer, head);
          const masked = site.masked(layer, head);
          for (let q = 0; q < site.n_query; q++) {
            const row = weights.subarray(q * site.n_key, (q + 1) * site.n_key);
            const sum = row.reduce((all, w) => all + w, 0) / 65535;
            assert(Math.abs(sum - 1) < (site.n_key * 0.5) / 65535 + 1e-9, `${site.id} ${layer} ${head} ${q}: ${sum}`);
          }
          if (masked) weights.forEach((w, at) => assert(!(masked[at] && w), `${site.id} ${layer} ${head} ${at}`));
        }
      }
    }
  });
}
