// The selection in a room: owned by the browser, written into the address at once, and changed by messages only as allowed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { served } from "./golden.mjs";

/** An address that rooms write, without a history. @param {string} search */
function addressed(search) {
  const said = new URLSearchParams(search);
  const watching = new Set();
  const kinds = [];
  const write = (changes) => {
    for (const [name, text] of Object.entries(changes)) {
      if (text === null) said.delete(name);
      else said.set(name, text);
    }
  };
  globalThis.window = {
    headlight: {
      settings: { names: ["theme"] },
      address: {
        read: () => new URLSearchParams(said),
        write(changes, kind) {
          kinds.push(kind);
          write(changes);
        },
        watch(hears) {
          watching.add(hears);
          return () => watching.delete(hears);
        },
      },
    },
  };
  return {
    kinds,
    get: (name) => said.get(name),
    all: () => Object.fromEntries([...said].sort()),
    /** The address as the server writes it. */
    says(changes) {
      write(changes);
      for (const hears of watching) hears(said, said, false);
    },
    /** Where the visitor goes back to. */
    goes(to) {
      for (const name of [...said.keys()]) said.delete(name);
      write(Object.fromEntries(new URLSearchParams(to)));
      for (const hears of watching) hears(said, said, true);
    },
  };
}

const { RoomSelection, whole } = await served("kit/browser/selection.js");
const { wayTo } = await served("kit/browser/remembered.js");
const { classroom } = await served("kit/browser/classroom.js");

const RUN = { model: "Small", text: "cat" };
const PLACE = ["layer", "head", "query", "key"];

/** A message of a room, which answers what the address says now. */
function message(page, values, more = {}) {
  const names = [...Object.keys(values), "rule", "was"];
  const asked = Object.fromEntries(names.flatMap((name) => (page.get(name) === null ? [] : [[name, page.get(name)]])));
  const address = {
    view: "one",
    room: "one",
    run: RUN,
    rule: [],
    silent: ["key"],
    shared: PLACE,
    of_text: ["zoom"],
    asked,
  };
  return { values, of: "run of cat", address: { ...address, going: false, ...more } };
}

const VALUES = { layer: "0", head: "1", query: "2", key: "", show: "map" };

/** A room on the screen, whose first message is there. */
function begun(more) {
  const page = addressed("view=one&model=Small&text=cat&layer=0");
  const selection = new RoomSelection();
  assert.equal(selection.take(message(page, VALUES, { rule: ["head", "query"], ...more })), true);
  return [selection, page];
}

test("what a message says of a link that leaves something out stands in the address, with what a rule chose", () => {
  const [, page] = begun();
  assert.deepEqual(page.all(), {
    view: "one",
    ...RUN,
    layer: "0",
    head: "1",
    query: "2",
    show: "map",
    rule: "head,query",
  });
  assert.deepEqual([...new Set(page.kinds)], ["rule"]);
});

test("a choice stands in the address at once, and the whole head is then a person's", () => {
  const [selection, page] = begun();
  selection.choose({ head: "3" });
  assert.deepEqual([page.get("head"), page.get("rule"), page.kinds.at(-2)], ["3", "query", "choice"]);
  selection.choose({ key: "4" });
  assert.equal(page.get("key"), "4");
  selection.choose({ key: "" });
  assert.equal(page.get("key"), null, "empty as it opens everywhere");
  const written = page.kinds.length;
  selection.choose({ key: "" });
  assert.equal(page.kinds.length, written, "what is chosen already is nothing new");
});

test("a message that left before a choice takes nothing back", () => {
  const [selection, page] = begun();
  const late = message(page, { ...VALUES, show: "lines" });
  selection.choose({ head: "3" });
  assert.equal(selection.canTake(late), true, "its picture is of the same run");
  assert.equal(selection.take(late), false);
  assert.deepEqual([selection.values.head, selection.values.show, page.get("head")], ["3", "map", "3"]);
});

test("another sentence: until its run is there the address says which run the choice is of", () => {
  const [selection, page] = begun();
  page.says({ text: "dog" });
  assert.equal(page.get("was"), "run of cat");
  const answer = { ...message(page, { ...VALUES, query: "5" }, { run: { ...RUN, text: "dog" } }), of: "run of dog" };
  assert.equal(selection.take(answer), true);
  assert.deepEqual([page.get("query"), page.get("was")], ["5", null]);
});

test("what is chosen while another run is on its way is no answer's to take, and is of the run on the screen", () => {
  const [selection, page] = begun();
  page.says({ text: "dog" });
  const answer = { ...message(page, { ...VALUES, query: "5" }, { run: { ...RUN, text: "dog" } }), of: "run of dog" };
  selection.choose({ query: "3" });
  assert.deepEqual([page.get("query"), page.get("was")], ["3", "run of cat"]);
  assert.equal(selection.canTake(answer), false);
});

test("a run that still goes on is not said in the address until the visitor chooses in it", () => {
  const [selection, page] = begun();
  page.says({ text: "dog" });
  const run = { ...RUN, text: "dog" };
  const going = { ...message(page, { ...VALUES, head: "9" }, { run, going: true }), of: "run of dog" };
  const ended = { ...message(page, { ...VALUES, head: "8" }, { run }), of: "run of dog" };
  selection.take(going);
  assert.deepEqual([selection.values.head, page.get("head"), page.get("was")], ["9", "1", "run of cat"]);
  selection.take(ended);
  assert.deepEqual([selection.values.head, page.get("head"), page.get("was")], ["8", "8", null]);
});

test("back to another choice on the same run is the room's, and to anything else is not", () => {
  const [selection, page] = begun();
  const before = new URLSearchParams(page.all());
  const to = (changes) => {
    const now = new URLSearchParams(before);
    for (const [name, text] of Object.entries(changes)) text === null ? now.delete(name) : now.set(name, text);
    return selection.goTo(now, before, ["edits"]);
  };
  assert.equal(to({ text: "dog" }), false, "another run");
  assert.equal(to({ other: "1" }), false, "a control that Streamlit draws");
  assert.equal(to({ show: null }), false, "a link that leaves it to the room");
  assert.equal(to({ was: "run of dog" }), false, "of another run");
  assert.equal(to({ view: "two" }), false, "another room");
  assert.equal(to({ head: "2", rule: "query", theme: "dark" }), true);
  assert.deepEqual([selection.values.head, [...selection.ruled], selection.values.key], ["2", ["query"], ""]);
});

test("a room that has left the screen writes nothing", () => {
  const [selection, page] = begun();
  page.goes("view=two&model=Small&text=cat");
  selection.choose({ head: "3" });
  assert.deepEqual(page.all(), { view: "two", ...RUN });
  const late = message(page, VALUES);
  assert.equal(selection.canTake(late), true);
  selection.take(late);
  assert.deepEqual(page.all(), { view: "two", ...RUN });
});

test("the way to another room has the run and the place, and back what was chosen in the first", () => {
  const [selection, page] = begun();
  selection.choose({ show: "lines", layer: "2" });
  const here = () => new URLSearchParams(page.all());
  const two = wayTo("two", here());
  assert.equal(String(two), "view=two&model=Small&text=cat&layer=2&head=1&query=2&rule=query");
  page.goes(String(two));
  const other = new RoomSelection();
  const place = { layer: "2", head: "1", query: "2", key: "", path: "5.7" };
  other.take(message(page, place, { view: "two", room: "two", of_text: ["path"] }));
  assert.equal(wayTo("one", here()).get("show"), "lines");
  page.says({ text: "dog" });
  assert.equal(wayTo("one", here()).get("was"), "run of cat", "its run is not there yet");
  const run = { ...RUN, text: "dog" };
  const dog = message(page, { ...place, path: "1.1" }, { view: "two", room: "two", of_text: ["path"], run });
  other.take({ ...dog, of: "run of dog" });
  page.goes("view=one&model=Small&text=cat");
  selection.take(message(page, VALUES));
  assert.equal(wayTo("two", here()).get("path"), null, "what is of another text stays with it");
});

test("a name of the run that a room uses for a choice of its own is no part of the run", () => {
  const as = (link) => wayTo("three", new URLSearchParams(`view=shapes&model=Small&text=cat&as=${link}`)).get("as");
  assert.deepEqual([as("table"), as("chat")], [null, "chat"]);
});

test("a page without an address shows what it is given", () => {
  delete globalThis.window;
  const selection = new RoomSelection();
  const heard = [];
  selection.host = { choose: ({ said, of }) => heard.push([said.layer, of]) };
  assert.equal(selection.take({ values: { layer: "1" } }), true);
  selection.choose({ layer: "2" });
  assert.deepEqual(heard, [["2", ""]]);
  assert.equal(selection.take({ values: { layer: "3" } }), true);
  assert.equal(selection.values.layer, "3");
});

test("a text that is no whole number gives way", () => {
  assert.deepEqual(
    ["3", "", undefined, "x", "-1"].map((text) => whole(text, 7)),
    [3, 7, 7, 7, 7],
  );
});

test("a class is told what is chosen otherwise than in the room that it has, at once, and nothing of a room that has gone", () => {
  delete globalThis.window;
  const shown = () => classroom.shown && [classroom.shown.view, classroom.shown.run, classroom.shown.with];
  const room = (name, drawn, base = {}) => {
    const selection = new RoomSelection();
    selection.take({ values: { ...base }, follow: { room: name, drawn, base, most: 700 } });
    return selection;
  };
  const chosen = room("masks", "d1", { layer: "0", forbid: "" });
  assert.deepEqual(shown(), ["masks", "d1", {}]);
  let heard = 0;
  classroom.chose = () => (heard += 1);
  chosen.choose({ layer: "2" });
  assert.deepEqual([shown(), heard], [["masks", "d1", { layer: "2" }], 1]);
  chosen.choose({ forbid: "1-2,".repeat(300) });
  assert.deepEqual(shown(), ["masks", "d1", { layer: "2" }], "too much for a message: it comes with the room");
  assert.equal(chosen.isTooLong, true);
  const base = { ...chosen.values };
  chosen.take({ values: base, follow: { room: "masks", drawn: "d2", base, most: 700 } });
  assert.deepEqual([shown(), chosen.isTooLong], [["masks", "d2", {}], false]);
  const other = room("step", "d3");
  chosen.destroy();
  const again = room("step", "d3");
  other.destroy();
  assert.deepEqual(shown(), ["step", "d3", {}], "the same room drawn anew, before the first hears that it has gone");
  const next = room("masks", "d4");
  again.choose({ layer: "4" });
  assert.deepEqual(shown(), ["masks", "d4", {}], "a room that is drawn once more while the next one is there");
  next.destroy();
  assert.deepEqual(shown(), ["step", "d3", { layer: "4" }]);
  again.destroy();
  assert.equal(shown(), null);
});
