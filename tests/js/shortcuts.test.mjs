// Which keys may be a shortcut of the page: none that goes into a text, and no arrow that moves a slider.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

const { isFree, isOwn, takesArrows, takesText } = await served("kit/browser/shortcuts.js");

/** @param {string} tagName @param {object} [more] */
const node = (tagName, more = {}) => ({ tagName, isContentEditable: false, ...more });
/** @param {unknown} at @param {object} [more] */
const key = (at, more = {}) => ({
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  defaultPrevented: false,
  composedPath: () => [at],
  ...more,
});

test("letters go into fields of text, boxes, lists and what can be edited", () => {
  for (const type of ["text", "search", "number", "url", "email", "password"])
    assert.ok(takesText(node("INPUT", { type })), type);
  for (const tag of ["TEXTAREA", "SELECT"]) assert.ok(takesText(node(tag)), tag);
  assert.ok(takesText(node("DIV", { isContentEditable: true })));
});

test("buttons, sliders and the page itself take no letters", () => {
  for (const type of ["button", "checkbox", "radio", "range", "submit", "reset", "color", "file"])
    assert.ok(!takesText(node("INPUT", { type })), type);
  for (const tag of ["BODY", "BUTTON", "A", "CANVAS", "svg"]) assert.ok(!takesText(node(tag)), tag);
  assert.ok(!takesText(undefined));
  assert.ok(!takesText({})); // the window, which has no name of a tag
});

test("arrows belong to a slider, to choices in a row and to a text", () => {
  for (const type of ["range", "radio", "text"]) assert.ok(takesArrows(node("INPUT", { type })), type);
  assert.ok(!takesArrows(node("INPUT", { type: "checkbox" })));
  assert.ok(!takesArrows(node("BUTTON")));
  assert.ok(!takesArrows(undefined));
});

test("a shortcut is a key that nobody has taken, without Ctrl, outside of a text", () => {
  assert.ok(isFree(key(node("BODY"))));
  assert.ok(isFree(key(node("INPUT", { type: "range" }))));
  assert.ok(!isFree(key(node("INPUT", { type: "text" }))));
  for (const name of ["ctrlKey", "metaKey", "altKey", "defaultPrevented"])
    assert.ok(!isFree(key(node("BODY"), { [name]: true })), name);
});

test("a slider keeps the keys that move it, a button those that press it, and Shift what marks a text", () => {
  const slider = node("INPUT", { type: "range" });
  for (const name of ["ArrowLeft", "ArrowUp", "Home", "End", "PageUp", "PageDown"]) {
    assert.ok(isOwn(key(slider, { key: name })), name);
    assert.ok(!isOwn(key(node("BUTTON"), { key: name })), name);
    assert.ok(!isOwn(key(node("BODY"), { key: name })), name);
    assert.ok(isOwn(key(node("BODY"), { key: name, shiftKey: true })), name);
  }
  for (const name of [" ", "Enter"]) {
    for (const tag of ["BUTTON", "SUMMARY", "A"]) assert.ok(isOwn(key(node(tag), { key: name })), tag);
    assert.ok(isOwn(key(node("INPUT", { type: "checkbox" }), { key: name })));
    assert.ok(!isOwn(key(node("DIV"), { key: name })));
    assert.ok(!isOwn(key(node("BODY"), { key: name })));
  }
  for (const at of [slider, node("BUTTON")]) assert.ok(!isOwn(key(at, { key: "u" })));
  assert.ok(!isOwn(key(node("BODY"), { key: "?", shiftKey: true })));
});
