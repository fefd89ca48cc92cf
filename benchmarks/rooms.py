"""What a visitor of Step through, Masks, Positions, Generate and What if waits for: a part of benchmarks/page.py.

Times are taken as there, inside the page, from the event to the frame after the one that drew. The p95 is of 50 interactions, the goal
of each is 33 ms, and the run is the first example of its model: 14 tokens × 270 heads of the language model that opens, 12 × 48 of the
storyteller where the room is about writing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import cycle
from typing import NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page

import core
from app.shell import words
from core.edits import EditMask
from core.write.writer import cache_cost

KING = "The old king loved the golden bird, and the old"
PAUSE = 700  # ms between two interactions, in which the server hears of the first and answers
GOALS = {"interaction": 33, "opening": 300, "let go": 150, "sent": 300_000, "first": 100, "token": 50}  # ms and bytes
ROOMS = {"step": "Step through", "masks": "Masks", "positions": "Positions"}
STORY = {"model": "Storyteller", "text": KING, "layer": 3, "head": 6, "query": 11}
OPENS_WITH = "SmolLM2-135M"
ONCE = "Once upon a time there was a"
SWEPT = {  # model: its title, a text of as many tokens each time, and the ms until every head is painted
    "minilm": ("MiniLM-L6", "The animal didn't cross street {i} because it was too tired.", 300),
    "storyteller": ("Storyteller", "Dorothy ran home over the prairie to Uncle {name} and Aunt", 200),
}
NAMES = ("Henry", "Jack", "Tom", "Peter", "Sam", "John", "Fred", "George")
TOKENS = 40  # that are written
# ms from the next click until the first column more than there was, then between one and the next
COLUMNS = """(n) => { bench.waiting = new Promise((resolve) => addEventListener("click", ({ timeStamp }) => {
  const root = bench.root(), times = [timeStamp], since = Number(root.dataset.columns);
  let before = since;
  new MutationObserver((_, watch) => {
    const now = Number(root.dataset.columns);
    if (now <= before) return;
    before = now;
    requestAnimationFrame(() => setTimeout(() => {
      times.push(performance.now());
      if (times.length <= n) return;
      watch.disconnect();
      resolve(times.slice(1).map((at, i) => at - times[i]));
    }));
  }).observe(root, { attributes: true });
}, { capture: true, once: true })); }"""

# ms from the next click until a room has drawn itself and whatever it asked for has come
OPENS = """(room) => { bench.opens = new Promise((resolve) => addEventListener("click", (event) => {
  const look = () => {
    const root = bench.root();
    const there = root?.classList.contains(room) && root.dataset.painted && root.dataset.pending !== "true" && !bench.asked;
    if (!there) return requestAnimationFrame(look);
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - event.timeStamp)));
  };
  evaluate_example();
}, { capture: true, once: true })); }"""
NEXT_FRAME = """(name) => { bench.waiting = new Promise((resolve) => addEventListener(name, ({ timeStamp }) =>
  requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - timeStamp))), { capture: true, once: true })); }"""
WAITED = """(name) => Promise.race([bench.waiting,
  new Promise((_, no) => setTimeout(() => no(`nothing was drawn after ${name}`), 20_000))])"""
SENT = """(since) => performance.getEntriesByType("resource")
  .filter(({ name, startTime }) => startTime >= since && /[/]headlight[/](step|masks|positions|proof|tile)/.test(name))
  .reduce((sum, { transferSize }) => sum + transferSize, 0)"""


class Timed(NamedTuple):
    """Interactions of one kind, ms each."""

    room: str
    what: str
    ms: list[float]

    @property
    def p95(self) -> float:
        return p95(self.ms)


def p95(ms: Sequence[float]) -> float:
    return sorted(ms)[max(0, -(-len(ms) * 95 // 100) - 1)]


def timed(page: Page, event: str, done: str, act: Callable[[], object]) -> float:
    """ms from the next such event until what `done` says of the room's root holds and is on the screen.

    Without `done`, until the frame after whatever the event's own listeners did.
    """
    page.evaluate(f"() => {{ bench.until('{event}', (root, before) => {done}); }}" if done else NEXT_FRAME, event)
    act()
    return page.evaluate(WAITED, event)


def many(page: Page, event: str, done: str, acts: Iterator[Callable[[], object]], n: int) -> list[float]:
    found = []
    for act, _ in zip(acts, range(n + 1), strict=False):
        found.append(timed(page, event, done, act))
        page.wait_for_timeout(PAUSE)
    return found[1:]


def presses(page: Page, *keys: str) -> Iterator[Callable[[], object]]:
    return ((lambda key=key: page.keyboard.press(key)) for key in cycle(keys))


def clicks(places: Sequence[Locator]) -> Iterator[Callable[[], object]]:
    """Clicks on each in turn, by the mouse alone: Playwright's own click looks first, for many frames."""
    return ((lambda place=place: _click(place)) for place in cycle(places))


def _click(place: Locator) -> None:
    box = place.bounding_box()
    assert box is not None
    place.page.mouse.click(box["x"] + min(12, box["width"] / 2), box["y"] + box["height"] / 2)


def moves(page: Page, places: Sequence[tuple[float, float]]) -> Iterator[Callable[[], object]]:
    return ((lambda at=at: page.mouse.move(*at)) for at in cycle(places))


def ready(page: Page, address: str, room: str, **said: object) -> Locator:
    page.goto(f"{address}/?{urlencode({'view': room, 'model': OPENS_WITH, **said})}")
    root = page.locator(f".hl.{room}[data-painted]")
    root.wait_for()
    settled(page)
    return root


def settled(page: Page) -> None:
    page.wait_for_function("!bench.asked")
    page.wait_for_timeout(1000)


def of_step(page: Page, address: str, n: int) -> Iterator[Timed]:
    root = ready(page, address, "step")
    there = "root.dataset.at !== before.at"
    keys = [*["ArrowRight"] * 7, *["ArrowLeft"] * 14, *["ArrowRight"] * 7]
    yield Timed("step", "step", many(page, "keydown", there, presses(page, *keys), n))
    root = ready(page, address, "step")
    rows = [root.locator(f".rowhit[data-key='{key}']") for key in (6, 9, 4, 12, 2)]
    yield Timed("step", "row", many(page, "click", "root.dataset.key !== before.key", clicks(rows), n))
    head = "root.dataset.head !== before.head"
    yield Timed("step", "head", many(page, "keydown", head, presses(page, "ArrowDown"), n))
    root = ready(page, address, "step", at="scale")
    root.locator("input[type=range]").first.focus()
    keys = [*["ArrowRight"] * 25, *["ArrowLeft"] * 25]
    yield Timed("step", "divisor", many(page, "keydown", "true", presses(page, *keys), n))


def of_masks(page: Page, address: str, n: int) -> Iterator[Timed]:
    root = ready(page, address, "masks")
    box = root.locator(".map.after svg").bounding_box()
    assert box is not None
    rows = [(box["x"] + 0.6 * box["width"], box["y"] + box["height"] * (i + 0.5) / 16) for i in (5, 9, 7, 12, 10)]
    there = "root.dataset.query !== before.query"
    yield Timed(
        "masks", "row", many(page, "click", there, ((lambda at=at: page.mouse.click(*at)) for at in cycle(rows)), n)
    )
    root.locator(".row").focus()
    head = "root.dataset.head !== before.head || root.dataset.layer !== before.layer"
    yield Timed("masks", "head", many(page, "keydown", head, presses(page, "ArrowRight"), n))
    yield Timed("masks", "paint", many(page, "pointermove", "true", painting(page, root), n))
    page.mouse.up()


def painting(page: Page, root: Locator) -> Iterator[Callable[[], object]]:
    """A stroke over the whole map, a cell at a time."""
    box = root.locator(".brush").bounding_box()
    assert box is not None
    size = box["width"] / 14
    at = [(box["x"] + (k + 0.5) * size, box["y"] + (q + 0.5) * size) for q in range(4, 12) for k in range(1, 9)]
    page.mouse.move(*at[-1])
    page.mouse.down()
    return moves(page, at)


def of_positions(page: Page, address: str, n: int) -> Iterator[Timed]:
    root = ready(page, address, "positions")
    grid = root.locator(".grid")
    grid.focus()
    head = "root.dataset.head !== before.head"
    yield Timed("positions", "head", many(page, "keydown", head, presses(page, "ArrowRight"), n))
    root = ready(page, address, "positions", lab="order")
    slots = root.locator(".slot")
    first, last = slots.nth(2).bounding_box(), slots.nth(9).bounding_box()
    assert first is not None and last is not None
    y = first["y"] + first["height"] / 2
    across = [first["x"] + first["width"] / 2 + (last["x"] - first["x"]) * i / 25 for i in range(1, 26)]
    page.mouse.move(first["x"] + first["width"] / 2, y)
    page.mouse.down()
    yield Timed("positions", "drag", many(page, "pointermove", "", moves(page, [(x, y) for x in across]), n))
    page.mouse.move(2, 2)
    page.mouse.up()
    root = ready(page, address, "positions", lab="clock", **STORY)
    hand = root.locator("[role=slider]").first
    hand.focus()
    keys = [*["ArrowLeft"] * 10, *["ArrowRight"] * 10]
    yield Timed("positions", "clock", many(page, "keydown", "true", presses(page, *keys), n))


def of_whatif(page: Page, address: str, n: int) -> Iterator[Timed]:
    root = ready(page, address, "whatif")
    page.locator(".hl.whatif[data-settled='true']").wait_for()
    root.locator(".grid").focus()
    keys = [*["ArrowLeft"] * 11, "ArrowUp", *["ArrowRight"] * 11, "ArrowUp"]
    yield Timed("whatif", "head", many(page, "keydown", "root.dataset.pick !== before.pick", presses(page, *keys), n))


def of_generate(page: Page, address: str, n: int) -> Iterator[Timed]:
    root = ready(
        page, address, "generate", model="Storyteller", text=ONCE, path="641.415", other="641.342", how="sample", n="0"
    )
    page.locator(".hl.generate[data-lens='ready']").wait_for()
    root.locator(".figure").focus()
    keys = [*["ArrowLeft"] * 6, *["ArrowRight"] * 6]
    there = "root.dataset.focus !== before.focus"
    yield Timed("generate", "column", many(page, "keydown", there, presses(page, *keys), n))
    root.locator("input[type=range]").first.focus()
    yield Timed("generate", "temperature", many(page, "keydown", "", presses(page, *keys), n))
    branch = clicks([root.locator("svg rect.line").first])
    yield Timed("generate", "branch", many(page, "click", "root.dataset.path !== before.path", branch, n))


def swept(page: Page, address: str, model: str, rounds: int) -> list[float]:
    """ms from Enter behind a text that nobody typed before until every head is swept and painted."""
    title, text, _ = SWEPT[model]
    ready(page, address, "whatif", model=title)
    page.locator(".hl.whatif[data-settled='true']").wait_for()
    box, found = page.get_by_role("textbox", name=words.TEXT, exact=True), []
    for i in range(rounds + 1):
        box.fill(text.format(i=i, name=NAMES[i % len(NAMES)]))
        done = "root.dataset.run !== before.run && root.dataset.swept === 'true'"
        found.append(timed(page, "keydown", done, lambda: box.press("Enter")))
        settled(page)
    return found[1:]


def written(page: Page, address: str) -> list[float]:
    """ms from Play to the first token's column on the screen, and from each to the next."""
    root = ready(page, address, "generate", model="Storyteller", text=ONCE, n="0", how="greedy")
    page.locator(".hl.generate[data-lens='ready']").wait_for()
    page.evaluate(COLUMNS, TOKENS)
    root.locator(".go").click()
    found = page.evaluate("bench.waiting")
    root.locator(".go").click()
    return found


def opening(page: Page, address: str, room: str) -> tuple[float, float]:
    """ms from the click in the bar to the room with all it asked for, and the bytes that came for it."""
    page.goto(address)
    page.locator(".hl[data-painted]").wait_for()
    settled(page)
    link = page.get_by_role("navigation").get_by_role("link", name=ROOMS[room], exact=True)
    since, before = page.evaluate("[performance.now(), bench.received]")
    page.evaluate(OPENS, room)
    link.click()
    ms = page.evaluate("bench.opens")
    settled(page)
    received, routes = page.evaluate("bench.received") - before, page.evaluate(SENT, since)
    return ms, received + routes


def let_go(page: Page, address: str, rounds: int) -> list[float]:
    """ms from letting go of the pointer to the numbers of the run under that mask, another mask each time."""
    root = ready(page, address, "masks", **STORY)
    box = root.locator(".brush").bounding_box()
    assert box is not None
    size, found = box["width"] / 12, []
    for i in range(rounds):
        page.mouse.move(box["x"] + (i % 8 + 0.5) * size, box["y"] + (11 - i // 8 + 0.5) * size)
        page.mouse.down()
        done = "root.dataset.fresh === 'true' && root.dataset.edited && root.dataset.edited !== before.edited"
        found.append(timed(page, "pointerup", done, page.mouse.up))
        settled(page)
    return found


def forward(rounds: int) -> float:
    """ms of the run itself, under such a mask."""
    loaded = core.load("storyteller")
    seconds = [core.trace(loaded, KING, interventions=[EditMask(cells=[(11, i % 8)])]).seconds for i in range(rounds)]
    return 1000 * statistics.median(seconds[1:])


def print_written(visiting: Callable[[], AbstractContextManager], address: str, rounds: int) -> None:
    """What Generate and What if ask the server for."""
    print("\n| Enter → every head swept and painted | median, ms | goal, ms | met |\n|---|---|---|---|")
    for model, (title, _, goal) in SWEPT.items():
        with visiting() as context:
            ms = statistics.median(swept(context.new_page(), address, model, rounds))
            print(f"| {title} | {ms:.0f} | {goal} | {'yes' if ms <= goal else 'no'} |", flush=True)
    run = core.trace(core.load("storyteller"), ONCE)
    token = 1000 * cache_cost(run.loaded, run.forward.prompt, (), 32).with_seconds
    with visiting() as context:
        first, *others = written(context.new_page(), address)
    print("\n| a token is written | ms | its forward, ms | goal beyond it | met |\n|---|---|---|---|---|")
    for what, ms, goal in (("first", first, "first"), ("then, p95", p95(others), "token")):
        print(f"| {what} | {ms:.0f} | {token:.1f} | {GOALS[goal]} | {'yes' if ms <= token + GOALS[goal] else 'no'} |")


def print_rooms(visiting: Callable[[], AbstractContextManager], address: str, rounds: int, n: int = 50) -> None:
    """The tables of these rooms. `visiting` gives a context of somebody who was never here, with the probe in it."""
    print("\n| room | what | median, ms | p95, ms | met (≤ 33) |\n|---|---|---|---|---|")
    with visiting() as context:
        page = context.new_page()
        for measure in (of_step, of_masks, of_positions, of_whatif, of_generate):
            for found in measure(page, address, n):
                met = "yes" if found.p95 <= GOALS["interaction"] else "no"
                print(
                    f"| {found.room} | {found.what} | {statistics.median(found.ms):.1f} | {found.p95:.1f} | {met} |",
                    flush=True,
                )
    print("\n| room | opened, ms | again, ms | met (≤ 300) | sent, kB | met (≤ 300) |\n|---|---|---|---|---|---|")
    for room in ROOMS:
        with visiting() as context:
            page = context.new_page()
            first, *others = [opening(page, address, room) for _ in range(rounds + 1)]
            again = statistics.median(ms for ms, _ in others)
            met = ["yes" if value <= GOALS[goal] else "no" for value, goal in ((again, "opening"), (first[1], "sent"))]
            print(
                f"| {room} | {first[0]:.0f} | {again:.0f} | {met[0]} | {first[1] / 1000:.1f} | {met[1]} |", flush=True
            )
    print_written(visiting, address, rounds)
    with visiting() as context:
        ms, run = statistics.median(let_go(context.new_page(), address, 2 * rounds)), forward(2 * rounds)
    met = "yes" if ms <= run + GOALS["let go"] else "no"
    print("\n| a mask let go → painted, ms | forward, ms | met (≤ forward + 150) |\n|---|---|---|")
    print(f"| {ms:.0f} | {run:.0f} | {met} |", flush=True)
