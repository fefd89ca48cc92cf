"""What a visitor of Train waits for: the first point of a run that nobody has run yet, and the curve as a slider. A part of page.py."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import AbstractContextManager

from playwright.sync_api import Page

from benchmarks.rooms import Timed, many, moves, p95, ready, timed

GOALS = {"first point": 300, "drag": 33}  # ms
TURNING = 14  # places of the curve that the pointer is dragged over, there and back
RACE = {"task": "copy", "twin": "nomask"}  # whose finished runs are kept: both curves, with all their heads and letters


def first_points(page: Page, address: str, rounds: int) -> list[float]:
    """ms from Train to the first point on the screen, of another seed each time; the first round starts the training process."""
    found = []
    for seed in range(1000, 1001 + rounds):
        root = ready(page, address, "train", seed=seed)
        button = root.locator(".go").bounding_box()
        assert button is not None
        x, y = button["x"] + button["width"] / 2, button["y"] + button["height"] / 2
        act = lambda x=x, y=y: page.mouse.click(x, y)  # noqa: E731
        found.append(timed(page, "click", "Number(root.dataset.last) > 0", act))
        root.locator(".go").click()  # Pause: it takes no time from the next one
        page.locator(".train[data-state='paused']").wait_for()
    return found[1:]


def dragged(page: Page, address: str, n: int) -> Timed:
    """The pointer moves over the curve of a race, and heads, letters and sentence follow."""
    root = ready(page, address, "train", **RACE)
    page.locator(".train[data-kept='2']").wait_for()
    box = root.locator(".curve").bounding_box()
    assert box is not None
    y, left, width = box["y"] + box["height"] / 2, box["x"] + 0.15 * box["width"], 0.7 * box["width"]
    there = [left + width * i / TURNING for i in range(TURNING)]
    places = [(x, y) for x in [*there, *reversed(there[1:-1])]]
    page.mouse.move(*places[-1])
    page.mouse.down()
    found = many(page, "pointermove", "root.dataset.at !== before.at", moves(page, places), n)
    page.mouse.up()
    return Timed("train", "drag", found)


def print_races(visiting: Callable[[], AbstractContextManager], address: str, rounds: int, n: int = 50) -> None:
    """The table of Train. `visiting` gives a context of somebody who was never here, with the probe in it."""
    print("\n| Train | median, ms | p95, ms | goal, ms | met |\n|---|---|---|---|---|")
    with visiting() as context:
        first = first_points(context.new_page(), address, rounds)
    median, goal = statistics.median(first), GOALS["first point"]
    print(f"| pressed → first point | {median:.0f} | {p95(first):.0f} | {goal} | {met(median, goal)} |", flush=True)
    with visiting() as context:
        drag = dragged(context.new_page(), address, n)
    median, goal = statistics.median(drag.ms), GOALS["drag"]
    print(f"| the curve dragged | {median:.1f} | {drag.p95:.1f} | {goal} | {met(drag.p95, goal)} |", flush=True)


def met(ms: float, goal: float) -> str:
    return "yes" if ms <= goal else "no"
