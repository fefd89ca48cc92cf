// A room takes its colours from the page: its palette by the background that Streamlit gives, and the ramps of that palette.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { paletteOf, rampsOf, themeOf } = await served("kit/browser/colours.js");

const PALETTES = {
  light: {
    background: "#fcfcfa",
    ramp: ["#ffffff", "#cccccc", "#999999", "#666666", "#333333"],
    ahead: ["#ffffff", "#ffcccc", "#ff9999", "#ff6666", "#ff3333"],
  },
  dark: {
    background: "#0f1216",
    ramp: ["#000000", "#333333", "#666666", "#999999", "#cccccc"],
    ahead: ["#000000", "#330000", "#660000", "#990000", "#cc0000"],
  },
};

/** An element on a page with this background @param {string} background */
function on(background) {
  globalThis.getComputedStyle = () => ({
    getPropertyValue: (name) => (name === "--st-background-color" ? background : ""),
  });
  const set = {};
  return { dataset: {}, set, style: { setProperty: (name, value) => (set[name] = value) } };
}

test("a page is dark where its background is", () => {
  for (const [background, theme] of [
    ["#0f1216", "dark"],
    [" #0F1216 ", "dark"],
    ["#000000", "dark"],
    ["#fcfcfa", "light"],
    ["#ffffff", "light"],
    ["", "light"],
    ["rgb(0, 0, 0)", "light"],
  ]) {
    assert.equal(themeOf(on(background)), theme, background);
  }
});

test("its palette becomes variables of its style", () => {
  const node = on("#0f1216");
  assert.equal(paletteOf(node, PALETTES), PALETTES.dark);
  assert.equal(node.set["--background"], "#0f1216");
  assert.equal(node.set["--bar"], "#999999");
  assert.equal(node.dataset.theme, "dark");
});

test("its ramps become two scales and two tones", () => {
  const node = on("#fcfcfa");
  const { ramp, ahead } = rampsOf(node, PALETTES.light);
  assert.equal(node.set["--bar"], "#666666");
  assert.equal(node.set["--bar-ahead"], "#ff6666");
  assert.match(node.set["--ramp"], /^linear-gradient\(90deg, #ffffff, .*#333333\)$/);
  assert.deepEqual(
    [ramp.rgb[0], ramp.rgb[255], ahead.rgb[255]],
    [
      [255, 255, 255],
      [51, 51, 51],
      [255, 51, 51],
    ],
  );
});
