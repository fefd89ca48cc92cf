"""Rooms whose answers are on their way: all that is on the screen by then is for everybody, and page keys count."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.app.axe import faults
from tests.app.browsing import bar_hears, idle
from tests.app.every_room import DRAWN, MODEL, ROOMS, WRONG, measured, see
from tests.app.pages import lend

pytestmark = pytest.mark.thorough

APP = "app/main.py"
BEGUN = {room: f".hl.{room}" for room in ("step", "generate")}  # rooms that have no picture before an answer is there


class Held:
    """All that a page fetches, held back until it is let go."""

    def __init__(self, page: Page) -> None:
        self.routes: list[Route] = []
        self._lets_go = False
        page.route("**/headlight/**", self._hear)

    def _hear(self, route: Route) -> None:
        is_held = route.request.resource_type == "fetch" and not self._lets_go
        self.routes.append(route) if is_held else route.continue_()

    def let_go(self) -> None:
        self._lets_go = True
        for route in self.routes:
            route.continue_()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with lend(browser, viewport={"width": 1280, "height": 720}, reduced_motion="reduce") as page:
        yield page


def begin(page: Page, address: str, room: str, model: str) -> None:
    """Open a room that has no answer yet; ready when its script has ended."""
    page.goto(f"{address}/?{urlencode({'view': room, 'model': model})}")
    page.locator(BEGUN.get(room, DRAWN[room])).first.wait_for()
    bar_hears(page)
    idle(page)


@pytest.mark.parametrize("room", ROOMS)
def test_axe_finds_nothing_and_nothing_is_out_of_the_window(page: Page, address: str, room: str) -> None:
    held = Held(page)
    begin(page, address, room, MODEL)
    assert faults(page) == [] and measured(page, WRONG) == []
    assert held.routes or room in ("memory", "compute")
    held.let_go()


def said(url: str) -> dict[str, str]:
    """All that an address says, but for what of it a rule has chosen: two changes that are told at once may end where it began."""
    return {name: text for name, text in parse_qsl(urlsplit(url).query, keep_blank_values=True) if name != "rule"}


@pytest.mark.parametrize(
    ("room", "model"),
    [
        ("explore", MODEL),
        ("step", MODEL),
        ("masks", MODEL),
        ("positions", MODEL),
        ("whatif", MODEL),
        ("whatif", "MiniLM-L6"),
        ("train", MODEL),
        ("shapes", MODEL),
    ],
)
def test_page_keys_count_once_the_answers_are_there(page: Page, address: str, room: str, model: str) -> None:
    """Two of them lead where two lead that are pressed later."""
    see(page, address, room, model=model)
    led = [said(page.url)]
    for _ in range(2):
        page.keyboard.press("PageDown")
        page.wait_for_url(lambda url: said(url) not in led)
        led.append(said(page.url))
        idle(page)
    held = Held(page)
    begin(page, address, room, model)
    page.keyboard.press("PageDown")
    page.keyboard.press("PageDown")
    idle(page)
    assert held.routes
    held.let_go()
    page.wait_for_url(lambda url: said(url) == led[-1])
