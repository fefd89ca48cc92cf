"""A visitor walks through the real app: after each move screen, address and a fresh browser at that address say the same.

WALK=300 walks further, and WALK_SEED=7 the same way again; tests/app/test_chosen.py does it twenty thousand times without a browser.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.app.browsing import PATIENCE, Screen, go_to, idle, once

APP = "app/main.py"
MOVES = int(os.environ.get("WALK", "24"))
SEED = int(os.environ.get("WALK_SEED", str(random.SystemRandom().randrange(10**6))))
TEXTS = (
    "Birds sing at dawn because they are happy.",
    "The dog chased the cat because it was angry.",
    "Mary gave the book to John.",
)
ROOMS = {"explore": "Explore", "step": "Step through", "masks": "Masks", "positions": "Positions", "whatif": "What if"}
# Of what a room says of itself: what is chosen in it, and not how large it is or how long it took
SAYS = (
    "run",
    "site",
    "layer",
    "head",
    "query",
    "locked",
    "pin",
    "show",
    "scale",
    "kind",
    "hide",
    "words",
    "lab",
    "at",
    "stack",
)
SAYS += ("sweep", "pick", "moved", "page", "members", "cell", "show")
QUIET = 450  # ms: what is chosen is told after 200 of them


def settled(page: Page) -> None:
    """Until all that was done is drawn, told, and written into the address."""
    idle(page)
    page.wait_for_timeout(QUIET)
    idle(page)
    room = page.locator(".hl[data-painted]").first
    for _ in range(PATIENCE // 100):
        if room.evaluate(
            "({ dataset }) => !dataset.underway && (dataset.pending ?? 'false') === 'false' && (dataset.settled ?? 'true') === 'true'"
        ):
            break
        page.wait_for_timeout(100)
    idle(page)


def screen_of(page: Page) -> dict[str, str]:
    """The screen: its room, text and model, and the choices in it."""
    said = json.loads(page.locator(".hl[data-painted]").first.evaluate("root => JSON.stringify(root.dataset)"))
    found = {name: said[name] for name in SAYS if name in said}
    found["text"] = page.get_by_role("textbox", name="Sentence", exact=True).input_value()
    found["model"] = page.locator("[class*=st-key-box_model_] input").first.input_value()
    found["room"] = page.locator("nav a[aria-current]").first.get_attribute("data-room") or ""
    return found


def address_of(page: Page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.evaluate("location.href")).query, keep_blank_values=True))


class Walk:
    def __init__(self, screen: Screen, browser: Browser) -> None:
        self.page, self.browser, self.base = screen.page, browser, screen.address
        self.random = random.Random(SEED)
        self.moves: list[str] = []
        settled(self.page)
        self.history, self.place = [address_of(self.page)], 0

    @property
    def room(self) -> str:
        return address_of(self.page)["view"]

    def step(self) -> None:
        moves: list[tuple[str, Callable[[], None]]] = [
            (f"type {text[:12]}", lambda text=text: self.type(text)) for text in TEXTS
        ]
        moves += [(f"enter {room}", lambda room=room: self.enter(room)) for room in ROOMS if room != self.room]
        moves += [("choose", self.choose)] * 6 + [("back", self.back)] * 3 + [("forward", self.forward)]
        moves += [("reload", self.reload)]
        name, move = self.random.choice(moves)
        self.moves.append(f"{self.room}: {name}")
        move()
        settled(self.page)
        if name not in ("back", "forward", "reload"):
            self.moved()
        self.check()

    def type(self, text: str) -> None:
        box = self.page.get_by_role("textbox", name="Sentence", exact=True)
        box.fill(text)
        box.press("Enter")
        run = self.page.locator(".hl[data-painted]").first
        run.wait_for()

    def enter(self, room: str) -> None:
        go_to(self.page, ROOMS[room])
        self.page.locator(f".hl.{room}[data-painted], .hl[data-painted]").first.wait_for()
        once(self.page, f"new URLSearchParams(location.search).get('view') === '{room}'")

    def choose(self) -> None:
        """Something in the room, by the mouse or the keys."""
        page, pick = self.page, self.random.choice
        if self.room == "explore":
            screen = Screen.__new__(Screen)
            screen.page = page
            if self.random.random() < 0.5:
                page.mouse.click(*screen.head(self.random.randrange(6), self.random.randrange(12)))
            else:
                n = int(screen.data()["tokens"])
                page.mouse.click(*screen.cell(self.random.randrange(n), self.random.randrange(n)))
            page.mouse.move(1, 1)
        elif self.room == "masks":
            page.locator(".hl .steps button").nth(pick((0, 1))).click()
        elif self.room == "positions":
            page.locator(".hl .labs button").nth(pick((0, 1))).click()
        else:
            page.locator("h1").first.evaluate("() => document.activeElement?.blur()")
            page.keyboard.press(pick(("ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft")))

    def back(self) -> None:
        if self.place:
            self.place -= 1
            self.page.go_back()
            self.arrives()

    def forward(self) -> None:
        if self.place + 1 < len(self.history):
            self.place += 1
            self.page.go_forward()
            self.arrives()

    def arrives(self) -> None:
        settled(self.page)
        now, wanted = address_of(self.page), self.history[self.place]
        assert now == wanted, f"{self.said()}: back or forward is one move: {unlike(now, wanted)}"

    def reload(self) -> None:
        before = screen_of(self.page)
        self.page.reload()
        self.page.locator(".hl[data-painted]").first.wait_for()
        settled(self.page)
        assert screen_of(self.page) == before, f"{self.said()}: {unlike(screen_of(self.page), before)}"

    def moved(self) -> None:
        now = address_of(self.page)
        if now != self.history[self.place]:
            del self.history[self.place + 1 :]
            self.history.append(now)
            self.place += 1

    def check(self) -> None:
        screen, address = screen_of(self.page), address_of(self.page)
        for name in ("text", "model"):
            assert address[name] == screen[name], (
                f"{self.said()}: {name} {address[name]!r}, on the screen {screen[name]!r}"
            )
        assert address["view"] == screen["room"], self.said()
        fresh = self.browser.new_page(viewport=self.page.viewport_size)
        fresh.set_default_timeout(PATIENCE)
        try:
            fresh.goto(self.page.evaluate("location.href"))
            fresh.locator(".hl[data-painted]").first.wait_for()
            settled(fresh)
            there, said = screen_of(fresh), address_of(fresh)
        finally:
            fresh.context.close()
        assert there == screen, f"{self.said()}: a fresh browser shows {unlike(there, screen)}"
        assert said == address, f"{self.said()}: its address says {unlike(said, address)}"

    def said(self) -> str:
        return f"WALK_SEED={SEED}, after {len(self.moves)} moves: {'; '.join(self.moves[-8:])}"


def unlike(now: dict[str, str], wanted: dict[str, str]) -> str:
    return ", ".join(
        f"{name} {now.get(name)!r} and not {wanted.get(name)!r}"
        for name in sorted(now.keys() | wanted.keys())
        if now.get(name) != wanted.get(name)
    )


@pytest.mark.timeout(120 + 12 * MOVES)
def test_screen_address_and_a_fresh_browser_say_the_same_after_every_move(screen: Screen, browser: Browser):
    screen.open()
    walk = Walk(screen, browser)
    for _ in range(MOVES):
        walk.step()
    assert len(walk.moves) == MOVES
