// The script that writes the address, in a page that is made of little else.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";

const SCRIPT = readFileSync(new URL("../../app/streamlit_edge/scripts/history.js", import.meta.url), "utf-8");

/**
 * A page whose history() are the addresses of its entries. chooses() is a choice in a room, go() the browser's own Back and Forward, and
 * says() what the server wants said. `streamlit` are the addresses that Streamlit has read to run its script for them.
 */
function page(search = "?view=explore") {
  const entries = [{ state: null, href: `https://school.test/${search}` }];
  let at = 0;
  let now = 1000;
  /** @type {[at: number, run: () => void][]} */
  let timers = [];
  /** @type {((e: object) => void)[]} */
  const heard = [];
  /** @type {string[]} */
  const streamlit = [];
  const writes = { n: 0 };
  const put = (state, url) => {
    writes.n += 1;
    return { state, href: String(url) };
  };
  const history = {
    get state() {
      return entries[at].state;
    },
    pushState(state, _, url) {
      entries.splice(++at);
      entries.push(put(state, url));
    },
    replaceState(state, _, url) {
      entries[at] = put(state, url);
    },
  };
  const location = {
    get href() {
      return entries[at].href;
    },
    get search() {
      return new URL(entries[at].href).search;
    },
    get pathname() {
      return new URL(entries[at].href).pathname;
    },
  };
  /** @type {Record<string, ((e: object) => void)[]>} */
  const acts = { pointerdown: [], keydown: [], popstate: heard };
  const pop = (e) => {
    let stopped = false;
    for (const hear of heard) {
      hear({ ...e, stopImmediatePropagation: () => (stopped = true) });
      if (stopped) return;
    }
    streamlit.push(location.search); // as Streamlit does, whose own listener comes after ours
  };
  const window = {};
  vm.runInNewContext(SCRIPT, {
    history,
    location,
    window,
    document: { documentElement: { dataset: {} } },
    addEventListener: (name, hear) => acts[name].push(hear),
    dispatchEvent: pop,
    PopStateEvent: class {},
    performance: { now: () => now },
    setTimeout: (run, ms) => timers.push([now + ms, run]),
    clearTimeout: () => (timers = []),
    URL,
    URLSearchParams,
  });
  const { address, settings } = window.headlight;
  return {
    address,
    settings,
    streamlit,
    writes,
    history: () => entries.map(({ href }) => new URL(href).search),
    at: () => location.search,
    act: (e = {}) => [...acts.pointerdown].forEach((hear) => hear({ isTrusted: true, ...e })),
    chooses: (changes) => address.write(changes, "choice"),
    says: (changes, more = {}) =>
      history.pushState(
        {},
        "",
        `/?headlight=${encodeURIComponent(JSON.stringify({ view: "explore", changes, ...more }))}`,
      ),
    forgets: () => history.pushState({}, "", "/"),
    waits(ms) {
      now += ms;
      const due = timers.filter(([when]) => when <= now);
      timers = timers.filter(([when]) => when > now);
      for (const [, run] of due) run();
    },
    go(by) {
      at += by;
      pop({});
    },
  };
}

test("a choice is an entry of its own, at once, and of choices right after each other there is one", () => {
  const one = page();
  one.chooses({ head: "1" });
  assert.equal(one.at(), "?view=explore&head=1");
  for (const head of ["2", "3", "4"]) {
    one.waits(150);
    one.chooses({ head });
  }
  one.waits(250);
  one.chooses({ head: "5", layer: null });
  assert.deepEqual(one.history(), ["?view=explore", "?view=explore&head=4", "?view=explore&head=5"]);
});

test("what a rule chose, and what is said already, is no entry", () => {
  const one = page();
  one.chooses({ head: "1" });
  one.address.write({ layer: "0" }, "rule");
  one.waits(1000);
  one.chooses({ head: "1" });
  assert.deepEqual(one.history(), ["?view=explore", "?view=explore&head=1&layer=0"]);
});

test("an arrow key that is held writes ten times a second, the last of it too", () => {
  const one = page();
  for (let head = 0; head < 60; head++) {
    one.chooses({ head: String(head) });
    one.waits(30);
  }
  assert(one.writes.n <= 2 * 10, `${one.writes.n} in 1.8 seconds`);
  assert.equal(one.address.read().get("head"), "59", "who reads the address has it before it is written");
  one.waits(1000);
  assert.equal(one.at(), "?view=explore&head=59");
  assert.equal(one.history().length, 2);
});

test("before the next key what waits is written, since a message may go with it", () => {
  const one = page();
  for (let head = 0; head < 20; head++) one.chooses({ head: String(head) });
  one.act();
  assert.equal(one.at(), "?view=explore&head=19");
});

test("the server writes into the address of the view that it means, as a step where somebody did something", () => {
  const one = page();
  one.says({ text: "cat" });
  assert.deepEqual(one.history(), ["?view=explore&text=cat"], "a link is completed");
  one.act();
  one.says({ text: "dog" });
  one.forgets();
  one.says({ model: "small" });
  assert.deepEqual(one.history(), ["?view=explore&text=cat", "?view=explore&text=dog&model=small"]);
  one.act();
  one.address.choose("?view=masks&text=dog");
  one.says({ text: "late" });
  assert.deepEqual(one.history().slice(2), ["?view=masks&text=dog"], "the room that was left says nothing any more");
});

test("each room that is chosen is an entry, also one that is left at once", () => {
  const one = page();
  one.address.choose("?view=masks");
  one.address.choose("?view=step");
  one.go(-1);
  assert.equal(one.at(), "?view=masks");
});

test("who goes back to another choice in the room is shown it by the room, and Streamlit is told of all else", () => {
  const one = page();
  const shown = [];
  one.address.take((now, before) => {
    shown.push([now.get("head"), before.get("head")]);
    return now.get("text") === before.get("text");
  });
  one.chooses({ head: "1" });
  one.waits(300);
  one.chooses({ head: "2" });
  one.go(-1);
  assert.deepEqual([shown, one.streamlit], [[["1", "2"]], []]);
  one.act();
  one.says({ text: "dog" });
  one.go(-1);
  assert.deepEqual(one.streamlit, ["?view=explore&head=1&arrived=1"], "with a number, which the script notes");
  assert.equal(one.at(), "?view=explore&head=1", "and which no link has");
  one.go(1);
  assert.equal(shown.length, 2, "until the script has noted it the room is not asked");
  assert.equal(one.streamlit.length, 2);
  one.says({}, { arrived: "2" });
  one.waits(300);
  one.chooses({ head: "3" });
  one.go(-1);
  assert.equal(one.streamlit.length, 2);
});

test("a step of a lesson is an arrival, by a new entry or by the one that is there", () => {
  const one = page("?view=lessons");
  const ways = [];
  one.address.watch((now, before, isWay) => ways.push([before.get("lesson"), now.get("lesson"), isWay]));
  one.address.go("?view=lessons&lesson=1.2", true);
  one.address.go("?view=lessons&lesson=1.3", false);
  assert.deepEqual(one.history(), ["?view=lessons&lesson=1.2", "?view=lessons&lesson=1.3"]);
  assert.deepEqual(one.streamlit, ["?view=lessons&lesson=1.2&arrived=1", "?view=lessons&lesson=1.3&arrived=2"]);
  assert.deepEqual(ways, [
    [null, "1.2", true],
    ["1.2", "1.3", true],
  ]);
});

test("what is of the page stays whatever is written, and is a step where somebody chose it", () => {
  const one = page("?view=explore&theme=purple");
  one.act();
  one.settings.set("lang", "de");
  one.act();
  one.address.choose("?view=masks");
  one.chooses({ layer: "1" });
  const steps = ["?view=explore&lang=de", "?view=masks&lang=de", "?view=masks&lang=de&layer=1"];
  assert.deepEqual(one.history(), ["?view=explore&theme=purple", ...steps]);
  one.go(-3);
  assert.equal(one.settings.get("lang"), null);
});
