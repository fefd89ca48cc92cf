"""What a visitor waits for and what is sent, in headless Chromium: Explore here, other rooms in rooms.py and racing.py; and bertviz's head view.

    python -m benchmarks.page --lengths 16 128 --only sentences

The server is started as users start it, with one more model (benchmarks/gallery.py). Times are taken inside the page: from
the time stamp of the event, or from the start of the navigation, until the frame after the one that drew the result, which
is a frame, some 17 ms, at the least. Bytes are what the page's sockets received and what its
/headlight/ routes sent, headers included, from Enter until nothing more came for a second; nothing compressed them.
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError

import core
from app.session import service
from app.shell import words
from benchmarks import gallery, racing, rooms
from benchmarks.capture import cost_of, machine
from benchmarks.head_view import PATIENCE, print_bertviz
from core.checkpoints import Loaded
from core.read.findings import opening_finding
from core.service.facts import run_sites
from core.service.pictures import whole_of
from scripts import browser as browsers
from tests.app.browsing import browsing, serving

LENGTHS = (16, 64, 128, 512, 1024, 4096)
MEGABITS, ROUND_TRIP = 10, 40  # of the slow line: Mbit/s and ms
GOALS = {
    "frame": 33,
    "enter": 150,
    "rest": 0.5,
    "visit": 4000,
    "128": 300_000,
    "4096": 1_500_000,
}  # ms, passes and bytes
PARTS = ("visits", "default", "pointer", "sentences", "rooms", "racing", "bertviz")
SENTENCE = "The animal did not cross street {i} because it was too tired."
MOST_BERTVIZ = 128  # tokens; the page of 512 would be sixteen times as large

# Every step is to a head that was not on the screen before.
SNAKE = [*["ArrowRight"] * 11, "ArrowDown", *["ArrowLeft"] * 11, "ArrowDown"]

PROBE = """
const bench = (window.bench = { received: 0, asked: 0, first: 0, trees: [] });
const ask = window.fetch;
window.fetch = async (...given) => {
  bench.asked += 1;
  try {
    return await ask(...given);
  } finally {
    bench.asked -= 1;
  }
};
performance.setResourceTimingBufferSize(20000);
const frames = (then) => requestAnimationFrame(() => then());
bench.root = () => bench.trees.map((tree) => tree.querySelector(".hl")).find((root) => root?.isConnected);
bench.shown = () => { const { run, painted } = bench.root().dataset; return [run, painted]; };

window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => { bench.received += data.byteLength ?? data.size ?? data.length; });
  }
};
const attach = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (...given) {
  const tree = attach.apply(this, given);
  bench.trees.push(tree);
  return tree;
};
const opening = () => (bench.root()?.dataset.painted ? frames(() => (bench.first = performance.now())) : frames(opening));
opening();

// Resolves to ms from the next such event until the frame after `done(root, before)` holds. What it looks at are the
// component's attributes, when they change: to ask at every frame would make frames for the whole of a long run.
bench.until = (name, done) => {
  const root = bench.root();
  const before = { ...root.dataset };
  return (bench.waiting = new Promise((resolve) => {
    addEventListener(name, (event) => {
      const watch = new MutationObserver(() => {
        if (!done(root, before)) return;
        watch.disconnect();
        frames(() => setTimeout(() => resolve(performance.now() - event.timeStamp))); // once that frame is on the screen
      });
      watch.observe(root, { attributes: true });
    }, { capture: true, once: true });
  }));
};
bench.routes = (since) => performance.getEntriesByType("resource")
  .filter(({ name, startTime }) => /[/]headlight[/](tile|row|proof|layers)/.test(name) && startTime >= since);
"""


class Visit(NamedTuple):
    """A sentence typed: how long its pass took, how long its picture, and what was sent for it."""

    forward: float  # ms
    painted: float  # ms
    socket: int  # bytes
    routes: int  # bytes


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def address_of(address: str, **query: str | int) -> str:
    return f"{address}/?" + "&".join(f"{name}={value}" for name, value in query.items())


@contextmanager
def visiting(browser: Browser) -> Iterator[BrowserContext]:
    """A visitor who has never been here."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, bypass_csp=True
    )  # what waits in the page is evaluated there
    context.add_init_script(PROBE)
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


def slow_line(page: Page) -> None:
    line = {"offline": False, "latency": ROUND_TRIP, "downloadThroughput": MEGABITS * 125_000}
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", {**line, "uploadThroughput": MEGABITS * 125_000})


def opened(page: Page, url: str) -> float:
    """ms from the start of the navigation to the painted result."""
    page.goto(url)
    page.wait_for_function("window.bench.first > 0")
    return page.evaluate("bench.first")


def visits(browser: Browser, address: str, rounds: int, slow: bool) -> tuple[list[float], list[float]]:
    """ms of first visits, and of second ones that find the scripts in the browser's cache."""
    first, again = [], []
    for _ in range(rounds):
        with visiting(browser) as context:
            for times in (first, again):
                page = context.new_page()
                if slow:
                    slow_line(page)
                times.append(opened(page, address))
                page.wait_for_timeout(300)
                page.close()
    return first, again


def settle(page: Page) -> None:
    """Until the run is over, everything that was asked for has come, and nothing more for a second."""
    page.wait_for_function("!bench.root().dataset.underway")
    state = None
    while (now := page.evaluate("[bench.asked, bench.received, ...bench.shown()]")) != state or now[0]:
        state = now
        page.wait_for_timeout(1000)


def arm(page: Page, event: str, done: str) -> None:
    page.evaluate(f"() => {{ bench.until('{event}', (root, before) => {done}); }}")


def entered(page: Page, text: str) -> tuple[float, int, float]:
    """Type a sentence, press Enter, wait for whatever follows it: when that was, the bytes received before, and ms to the picture."""
    box = page.get_by_role("textbox", name=words.TEXT, exact=True)
    box.fill(text)
    settle(page)
    since, received = page.evaluate("[performance.now(), bench.received]")
    arm(page, "keydown", "root.dataset.run !== before.run && !root.dataset.underway")
    box.press("Enter")
    painted = page.evaluate("bench.waiting")
    settle(page)
    return since, received, painted


def typed(page: Page, text: str) -> Visit:
    """The picture of a sentence that is typed, and whatever follows it."""
    since, received, painted = entered(page, text)
    socket, routes = page.evaluate(
        "(since) => [bench.received, bench.routes(since).reduce((sum, { transferSize }) => sum + transferSize, 0)]",
        since,
    )
    return Visit(forward(page), painted, socket - received, routes)


def forward(page: Page) -> float:
    """ms that the pass of the run on the screen took, as the page says it."""
    told = re.search(r"([\d,.]+) (ms|s)\b", page.locator(".hl footer").inner_text())
    assert told is not None
    return float(told[1].replace(",", "")) * (1 if told[2] == "ms" else 1000)


def by_itself(page: Page, act: Callable[[], object]) -> float:
    """ms that the component says it took: its data-ms."""
    page.evaluate("() => { bench.root().dataset.ms = ''; }")
    act()
    try:
        page.wait_for_function("bench.root().dataset.ms !== ''", timeout=PATIENCE / 6)
    except TimeoutError as error:
        raise RuntimeError(f"nothing was drawn: {page.evaluate('({ ...bench.root().dataset })')}") from error
    return float(page.evaluate("bench.root().dataset.ms"))


def stepped(page: Page, rounds: int) -> tuple[list[float], list[float]]:
    """ms of steps from head to head with the arrow keys, by the component's own clock; and until the map's own numbers are there."""
    page.locator(".hl .overview").focus()
    drawn, exact = [], []
    keys = itertools.cycle(SNAKE)
    for key in itertools.islice(keys, rounds + 1):
        arm(page, "keydown", "root.dataset.painted !== before.painted && root.dataset.fetching === 'false'")
        drawn.append(by_itself(page, lambda key=key: page.keyboard.press(key)))
        exact.append(page.evaluate("bench.waiting"))
        settle(page)
    return drawn[1:], exact[1:]


def hovered(page: Page, rounds: int) -> tuple[list[float], list[float]]:
    """ms until rows and columns of the map are marked, by the component's own clock; and until the value is there."""
    box = page.locator(".hl .matrix").bounding_box()
    data = page.evaluate("({ ...bench.root().dataset })")
    assert box is not None
    left, top, size, n = float(data["left"]), float(data["top"]), float(data["size"]), int(data["tokens"])
    marked, valued = [], []
    stride = max(1, n // 100)  # of a long text many cells lie under one pixel
    for i in range(rounds + 1):
        query = (
            n - 2 - (i * 5 * stride) % max(1, n // 2)
        )  # the lower half: under a causal mask these see every key on the left
        key = (i * 3 * stride) % max(1, n // 2)
        at = box["x"] + left + (key + 0.5) * size, box["y"] + top + (query + 0.5) * size
        arm(page, "pointermove", "root.dataset.cell !== before.cell && root.dataset.value !== ''")
        marked.append(by_itself(page, lambda at=at: page.mouse.move(*at)))
        valued.append(page.evaluate("bench.waiting"))
        settle(page)
    return marked[1:], valued[1:]


def hovered_lines(page: Page, rounds: int) -> list[float]:
    """ms until the lines of a token are alone on the screen, by the component's own clock."""
    box = page.locator(".hl .tokenlines .scroller").bounding_box()
    assert box is not None
    times = []
    for i in range(rounds + 1):
        y = box["y"] + box["height"] * (0.25 + 0.6 * (i * 5 % 12) / 12)  # other tokens than the one before
        times.append(by_itself(page, lambda y=y: page.mouse.move(box["x"] + 12, y)))
        settle(page)
    return times[1:]


# ------------------------------------------------------------------ tables


def verdict(value: float, goal: float) -> str:
    return "yes" if value <= goal else "no"


def kB(n: float) -> str:
    return f"{n / 1000:,.1f}"


def print_visits(browser: Browser, address: str, rounds: int) -> None:
    print("\n| visit | first, ms | again, ms | goal for the first, ms | met |\n|---|---|---|---|---|")
    for name, slow in (("this machine", False), (f"{MEGABITS} Mbit/s, {ROUND_TRIP} ms round trip", True)):
        first, again = visits(browser, address, rounds, slow)
        goal = f"{GOALS['visit']:,} | {verdict(median(first), GOALS['visit'])}" if slow else "| "
        print(f"| {name} | {median(first):,.0f} | {median(again):,.0f} | {goal} |", flush=True)


def analysis_share(loaded: Loaded, texts: Sequence[str]) -> float:
    """The analysis of a run that its picture needs, in passes of the model: the median over texts."""
    found = []
    for text in texts:
        runs: list[core.Trace] = []
        forward = cost_of(lambda text=text, runs=runs: runs.append(core.trace(loaded, text))).wall
        analysis = cost_of(lambda run=runs[0]: (whole_of(run, run_sites(run)), opening_finding(run))).wall
        found.append(analysis / forward)
    return median(found)


def print_default(browser: Browser, address: str, rounds: int) -> None:
    """The model that opens first, in passes of its own: what a visitor waits for who types a sentence."""
    with visiting(browser) as context:
        page = context.new_page()
        opened(page, address)
        found = [typed(page, SENTENCE.format(i=i)) for i in range(rounds + 1)][1:]
    forward, painted = median([v.forward for v in found]), median([v.painted / v.forward for v in found])
    loaded = core.load(service.DEFAULT_REQUEST.model_id)
    analysis = analysis_share(loaded, [SENTENCE.format(i=i) for i in range(rounds + 1)])
    rest = painted - 1 - analysis
    print(
        "\n| model that opens first | pass, ms | Enter → painted, passes | analysis, passes | all the rest, passes ",
        end="",
    )
    print("| met (≤ 0.5) |\n|---|---|---|---|---|---|")
    print(
        f"| {loaded.spec.title if loaded.spec else ''} | {forward:,.0f} | {painted:.2f} | {analysis:.2f} | {rest:.2f} "
        f"| {verdict(rest, GOALS['rest'])} |",
        flush=True,
    )


def print_pointer(browser: Browser, address: str, rounds: int) -> None:
    """Head switch and hover, on the example, and on 128 and 4,096 tokens × 144 heads."""
    print("\n| what | picture | drawn, ms | met (≤ 33) | its own numbers there, ms |\n|---|---|---|---|---|")
    first = {"layer": 0, "head": 0}
    places = {"the example of the model that opens first": address_of(address, **first)}
    for n in (128, 4096):
        text = gallery.sentence(n).replace(" ", "+")
        # All of the map: of the part that is unfolded the pointer would have to know the place of every column.
        places[f"{n:,} tokens × 144 heads"] = address_of(address, model=gallery.NAME, text=text, whole="true", **first)
    for name, url in places.items():
        with visiting(browser) as context:
            page = context.new_page()
            opened(page, url)
            settle(page)
            steps, exact = stepped(page, rounds)
            marked, valued = hovered(page, rounds)
        for what, times, there in (("head switch", steps, exact), ("hover", marked, valued)):
            met = verdict(median(times), GOALS["frame"])
            print(f"| {what} | {name} | {median(times):.1f} | {met} | {median(there):.1f} |", flush=True)
    heads = ",".join(f"0.{head}" for head in range(12))
    text = gallery.sentence(63).replace(" ", "+")
    url = address_of(address, model=gallery.NAME, text=text, show="lines", heads=heads, **first)
    with visiting(browser) as context:
        page = context.new_page()
        opened(page, url)
        settle(page)
        times = hovered_lines(page, rounds)
    met = verdict(median(times), GOALS["frame"])
    print(f"| hover | lines of 63 tokens × 12 heads | {median(times):.1f} | {met} | |", flush=True)


def print_sentences(browser: Browser, address: str, lengths: Sequence[int], rounds: int) -> None:
    print("\n| tokens | forward, ms | Enter → painted, ms | beyond the forward, ms | met (≤ 150) ", end="")
    print("| socket, kB | routes, kB | together, kB | met |\n|---|---|---|---|---|---|---|---|---|")
    goals = {128: GOALS["128"], 4096: GOALS["4096"]}
    for n in lengths:
        with visiting(browser) as context:
            page = context.new_page()
            opened(page, address_of(address, model=gallery.NAME, text="word1+word2"))
            found = [typed(page, gallery.sentence(n, i)) for i in range(1, rounds + 1)]
        forward, painted = median([v.forward for v in found]), median([v.painted for v in found])
        beyond = median([v.painted - v.forward for v in found])
        socket, routes = median([v.socket for v in found]), median([v.routes for v in found])
        small = f"{verdict(socket + routes, goals[n])} (≤ {goals[n] // 1000:,})" if n in goals else ""
        print(
            f"| {n:,} | {forward:,.0f} | {painted:,.0f} | {beyond:,.0f} | {verdict(beyond, GOALS['enter'])} "
            f"| {kB(socket)} | {kB(routes)} | {kB(socket + routes)} | {small} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, metavar="N", help="tokens")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=PARTS)
    options = parser.parse_args()
    parts = options.only or PARTS
    path = browsers.find()
    if path is None:
        raise SystemExit("This needs Chromium or Chrome: `make browser` says how to install one.")
    with tempfile.TemporaryDirectory() as folder, browsing(path) as browser:
        print(f"{machine()}, Chromium {browser.version} without a GPU; medians of {options.rounds}")
        with serving("benchmarks/gallery.py", Path(folder) / "log") as address:
            if "visits" in parts:
                print_visits(browser, address, options.rounds)
            if "default" in parts:
                print_default(browser, address, options.rounds)
            if "pointer" in parts:
                print_pointer(browser, address, 3 * options.rounds)
            if "sentences" in parts:
                print_sentences(browser, address, options.lengths, options.rounds)
            if "rooms" in parts:
                rooms.print_rooms(partial(visiting, browser), address, options.rounds)
            if "racing" in parts:
                racing.print_races(partial(visiting, browser), address, options.rounds)
        if "bertviz" in parts:
            try:
                print_bertviz(browser, [n for n in options.lengths if n <= MOST_BERTVIZ], options.rounds)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"\nbertviz was not measured: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
