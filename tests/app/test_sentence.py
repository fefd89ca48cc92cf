"""The box of text: Enter shows it, Shift+Enter begins a line, and however long it is, nothing below it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator

import core
from app.session.models import TITLES
from app.shell import words
from tests.app.browsing import Another, Screen, box_of, eventually
from tests.app.pages import lend
from tests.app.plain import Plain

APP = "app/main.py"
LINES = 'One day Tom ran.\n\n"Stop!" said Anna.'
LONG = "The old keeper watched the ships for a while in the evening, and he wrote down all of their names. " * 4


WIDE = pytest.param((1280, 720, "light"), id="wide")
PHONE = pytest.param((390, 844, "dark"), id="phone", marks=pytest.mark.thorough)


@pytest.fixture(params=[WIDE, PHONE])
def screen(request, browser: Browser, address: str) -> Iterator[Screen]:
    width, height, scheme = request.param
    size = {"width": width, "height": height}
    with lend(browser, viewport=size, color_scheme=scheme, reduced_motion="reduce") as page:
        screen = Screen(page, address).open()
        yield screen
        screen.leave()


def text_box(screen: Screen) -> Locator:
    return screen.page.get_by_role("textbox", name=words.TEXT, exact=True)


def height(locator: Locator) -> float:
    return box_of(locator)["height"]


def same(one: float, other: float) -> bool:
    return abs(one - other) < 1  # px: a fraction of one goes where a border is rounded


def becomes(screen: Screen, check: Callable[[], bool]) -> None:
    """Until it holds: the box is laid out anew a moment after it was written in or left."""

    def holds() -> None:
        assert check()

    eventually(screen.page, holds)


def top(screen: Screen) -> float:
    return box_of(screen.root)["y"]


SENT = """() => {
  const later = window.setTimeout, send = WebSocket.prototype.send, order = window.order = [];
  addEventListener("keydown", () => requestAnimationFrame(() => order.push("frame")), { once: true, capture: true });
  WebSocket.prototype.send = function (...what) { order.push("sent"); return send.apply(this, what); };
  window.asBefore = () => { WebSocket.prototype.send = send; return window.setTimeout === later; };
}"""


@pytest.mark.thorough
def test_what_enter_shows_is_sent_before_the_next_frame(screen: Screen):
    """Streamlit's own timeout would wait for that frame: some 10 ms of a picture that takes 100."""
    before = screen.data()["run"]
    text_box(screen).fill("One bird sang.")
    screen.page.evaluate(SENT)
    screen.page.keyboard.press("Enter")
    screen.until(f"root.dataset.run !== '{before}'")
    assert screen.page.evaluate("order.slice(0, 2)") == ["sent", "frame"]
    assert screen.page.evaluate("asBefore()")


def test_lines_are_of_the_text_in_the_picture_and_in_a_link_to_it(plain: Plain):
    plain.open(f"?view=explore&model={TITLES['storyteller']}")
    plain.run_text(LINES)
    labels = list(core.trace(core.load("storyteller"), LINES).source.labels)
    assert plain.tokens() == labels and "↵" in "".join(labels)
    assert parse_qs(urlsplit(plain.page.url).query)["text"] == [LINES]
    plain.open(plain.page.url.removeprefix(f"{plain.address}/"))
    assert plain.tokens() == labels


@pytest.mark.thorough
def test_lines_are_of_the_text_in_the_box_that_a_link_fills(screen: Screen, another: Another):
    screen.open(f"?model={TITLES['storyteller']}")
    screen.run_text(LINES)
    labels = list(core.trace(core.load("storyteller"), LINES).source.labels)
    assert screen.tokens() == labels and "↵" in "".join(labels)
    screen.page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("text") == [LINES])
    link = screen.page.url
    other = another()
    other.open(link.removeprefix(screen.address + "/"))
    assert text_box(other).input_value() == LINES and other.tokens() == labels


def test_the_box_is_as_high_as_its_text_while_somebody_writes_and_enter_shows_what_shift_enter_broke_into_lines(
    screen: Screen,
):
    box = text_box(screen)
    one, below = height(box), top(screen)
    box.fill("A line.")
    becomes(screen, lambda: same(height(box), one))
    box.fill(LONG)
    becomes(screen, lambda: height(box) > 2.5 * one and top(screen) == below)
    keys = screen.page.locator("[class*=st-key-box_text_] [data-testid=InputInstructions]")
    becomes(screen, lambda: words.TEXT_KEYS in keys.evaluate("keys => getComputedStyle(keys, '::after').content"))
    before = screen.data()["run"]
    screen.page.keyboard.press("Enter")
    screen.until(f"root.dataset.run !== '{before}' && !root.dataset.underway")
    becomes(screen, lambda: same(height(box), one))
    assert box.evaluate("box => box === document.activeElement && box.scrollTop === 0")
    screen.page.keyboard.press("End")
    becomes(screen, lambda: height(box) > 2.5 * one)
    screen.page.keyboard.press("Shift+Tab")
    becomes(screen, lambda: same(height(box), one))
    box.click()
    becomes(screen, lambda: height(box) > 2.5 * one)

    keyboard = screen.page.keyboard
    before = screen.data()["run"]
    box.fill("One bird sang.")
    keyboard.press("Shift+Enter")
    keyboard.type("Two birds sang.")
    assert screen.data()["run"] == before
    keyboard.press("Enter")
    screen.until(f"root.dataset.run !== '{before}'")
    assert box.input_value() == "One bird sang.\nTwo birds sang."
    assert screen.tokens()[1:-1] == ["One", "bird", "sang", ".", "Two", "birds", "sang", "."]
    keyboard.press("End")
    keyboard.type(" Three")
    keyboard.press("Control+Enter")  # as in Streamlit's own boxes
    screen.until("root.dataset.tokens === '11'")
