// The script that keeps a step of the visitor one entry of the browser's history, in a page that is made of little else.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const SCRIPT = readFileSync(new URL("../../app/streamlit_edge/scripts/history.js", import.meta.url), "utf-8");

// A page whose history() are the addresses of its entries. do() is a click, go() the browser's own Back and Forward, and says() what the
// server has to say of the address: Streamlit writes it over the entry that is there.
function page() {
  const entries = [{ state: null, href: "https://school.test/" }];
  let at = 0;
  /** @type {Record<string, ((e: object) => void)[]>} */
  const heard = {};
  const tell = (name, e) => heard[name].forEach((hear) => hear({ isTrusted: true, ...e }));
  const history = {
    get state() {
      return entries[at].state;
    },
    pushState: (state, _, url) => {
      entries.splice(++at);
      entries.push({ state, href: String(url) });
    },
    replaceState: (state, _, url) => void (entries[at] = { state, href: String(url) }),
  };
  const location = {
    get href() {
      return entries[at].href;
    },
    get search() {
      return new URL(entries[at].href).search;
    },
  };
  let runs = false; // a script on the server
  const app = { getAttribute: () => (runs ? "running" : "notRunning") };
  const document = { documentElement: { dataset: {} }, querySelector: () => app };
  const window = {};
  const addEventListener = (name, hear) => (heard[name] ??= []).push(hear);
  vm.runInNewContext(SCRIPT, {
    history,
    location,
    document,
    window,
    addEventListener,
    performance,
    URL,
    URLSearchParams,
  });
  return {
    history: () => entries.map(({ href }) => new URL(href).search),
    do: (e = {}) => tell("pointerdown", e),
    press: (e) => tell("keydown", e),
    choose(search) {
      tell("pointerdown", {});
      window.headlight.choose(search);
      runs = true;
    },
    set(name, value) {
      tell("keydown", {});
      window.headlight.settings.set(name, value);
    },
    ends: () => void (runs = false),
    says: (search) => history.replaceState({}, "", `/${search}`),
    go(by) {
      at += by;
      tell("popstate", {});
    },
    at: () => location.search,
  };
}

function walked() {
  const one = page();
  for (const search of ["?at=1", "?at=2", "?at=3"]) {
    one.do();
    one.says(search);
    one.says(`${search}&more=yes`); // what is said behind it is of the same step
  }
  return one;
}

const STEPS = ["", "?at=1&more=yes", "?at=2&more=yes", "?at=3&more=yes"];

test("each thing that is done is one step", () => assert.deepEqual(walked().history(), STEPS));

test("an answer to the step before does not stay in an entry that was only passed", () => {
  const one = walked();
  one.go(-1);
  one.press({ key: "ArrowLeft", altKey: true });
  one.go(-1);
  one.says("?at=2&more=yes"); // of the entry that was left
  assert.equal(one.history()[1], "?at=2&more=yes");
  one.go(-1);
  one.says("?at=1&more=yes");
  one.says("");
  one.go(1);
  assert.deepEqual(one.history(), STEPS);
  one.go(1);
  assert.equal(one.at(), "?at=2&more=yes");
});

test("what is done in an entry that somebody went back to stays", () => {
  const one = walked();
  one.go(-2);
  one.do();
  one.says("?at=4");
  assert.deepEqual(one.history(), ["", "?at=1&more=yes", "?at=4"]);
  one.go(-1);
  one.do();
  one.says("?at=5");
  one.go(-1);
  one.go(-1);
  one.go(1);
  assert.equal(one.at(), "?at=1&more=yes");
});

test("each room that is chosen is one step, also before the server has drawn it", () => {
  const one = page();
  one.choose("?view=masks");
  one.choose("?view=step");
  one.says("?view=masks&late=yes"); // of the room that was left: the next answer puts it right
  one.says("?view=step&layer=1");
  assert.deepEqual(one.history(), ["", "?view=masks", "?view=step&layer=1"]);
  one.choose("?view=masks");
  one.do(); // in the room, whose address is still to come
  one.says("?view=masks&layer=1");
  assert.deepEqual(one.history().slice(2), ["?view=step&layer=1", "?view=masks&layer=1"]);
  one.says("?view=masks&layer=2");
  assert.deepEqual(one.history().slice(3), ["?view=masks&layer=1", "?view=masks&layer=2"]);
  one.go(-1);
  one.says("?view=masks&layer=1");
  one.go(-1);
  assert.equal(one.at(), "?view=step&layer=1");
});

test("what is done in a room whose link said all of its address is a step", () => {
  const one = page();
  one.choose("?view=shapes&text=dog");
  one.says("?view=shapes&text=dog");
  one.ends();
  one.do();
  one.says("?view=shapes&text=cat");
  assert.deepEqual(one.history().slice(1), ["?view=shapes&text=dog", "?view=shapes&text=cat"]);
});

test("what is chosen for the page is a step, also before the room is drawn", () => {
  const one = page();
  one.set("lang", "de");
  one.choose("?view=masks");
  one.set("lang", "en");
  one.says("?view=masks&layer=1");
  const steps = ["", "?lang=de", "?view=masks&lang=de", "?view=masks&layer=1&lang=en"];
  assert.deepEqual(one.history(), steps);
  one.ends();
  one.set("theme", "dark");
  assert.deepEqual(one.history(), [...steps, "?view=masks&layer=1&lang=en&theme=dark"]);
  one.go(-2);
  one.says("?view=masks&layer=1");
  assert.equal(one.at(), "?view=masks&layer=1&lang=de");
});
