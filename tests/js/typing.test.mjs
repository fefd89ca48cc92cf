// A field of a component: what is chosen goes in, and what a visitor is typing stays.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { setField } = await served("kit/browser/dom.js");

test("late news of what was chosen leave alone what is being typed; another choice does not", () => {
  const tree = { activeElement: null }; // the component's own: of the document only the component itself is active
  const field = { value: "", getRootNode: () => tree };
  globalThis.document = { activeElement: {} };
  setField(field, "12");
  assert.equal(field.value, "12");
  tree.activeElement = field;
  field.value = "bea"; // typed, not yet entered
  setField(field, "12");
  assert.equal(field.value, "bea");
  setField(field, "fade"); // by a link, or by Back
  assert.equal(field.value, "fade");
  field.value = "left behind";
  tree.activeElement = null;
  setField(field, "fade");
  assert.equal(field.value, "fade");
});
