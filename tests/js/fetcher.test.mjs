// What is fetched: an answer that could not be had is asked for again, later, if somebody still wants it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { Fetcher } = await served("kit/browser/fetcher.js");

test("after a failure there is one more word, behind the pause in which nothing is asked", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.document = { baseURI: "http://here/" };
  let asked = 0;
  globalThis.fetch = () => Promise.reject(new Error(`no server, ${++asked}`));
  let heard = 0;
  const remote = new Fetcher("key", () => heard++);
  assert.equal(
    remote.get("rows", {}, (bytes) => bytes),
    null,
  );
  for (let i = 0; i < 5; i++) await Promise.resolve(); // until the failure is known
  assert.deepEqual([asked, heard, remote.failed], [1, 1, true]);
  assert.equal(
    remote.get("rows", {}, (bytes) => bytes),
    null,
  );
  assert.equal(asked, 1);
  context.mock.timers.tick(3100);
  assert.equal(heard, 2);
});
