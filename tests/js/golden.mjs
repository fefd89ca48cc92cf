// What the tests start from: the modules as they are served, runs as they travel, and the numbers that Python made of them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const FOLDER = process.env.GOLDEN;
assert(FOLDER, "tests/js/test_browser_code.py writes what these tests need and names its folder in GOLDEN");

export const RUNS = ["grouped", "pair"];

/** @param {string} name of a module, such as attention/browser/lens.js */
export const served = (name) => import(pathToFileURL(join(FOLDER, "browser", name)).href);

/** @param {string} name of a file */
export const bytes = (name) => new Uint8Array(readFileSync(join(FOLDER, name)));

/** What Python makes of a run. @param {string} run */
export const expected = (run) => JSON.parse(readFileSync(join(FOLDER, `${run}.json`), "utf-8"));

const { unpack } = await served("kit/browser/messages.js");
const { Site } = await served("attention/browser/site.js");

/** A run as the browser holds it: its picture, its sites by their ids, and a server that has been asked for norms alone. */
export function arrived(run) {
  const [picture, body] = unpack(bytes(`${run}.bin`));
  const sites = Object.fromEntries(picture.sites.map((site) => [site.id, new Site(site, body)]));
  const remote = { get: (path, { site }, read) => (path === "norms" ? read(bytes(`${run}.${site}.norms.bin`)) : null) };
  return { picture, sites, remote };
}

/** Numbers as near to the golden ones as `within` says. */
export function near(found, wanted, within, what) {
  assert.equal(found.length, wanted.length, what);
  for (let i = 0; i < wanted.length; i++) {
    assert(Math.abs(found[i] - wanted[i]) <= within, `${what}, at ${i}: ${found[i]} instead of ${wanted[i]}`);
  }
}
