"""What is chosen while something is on its way counts: what the server says is held back, and let go when the visitor has acted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, WebSocketRoute

from app.attention import words
from tests.app.browsing import PATIENCE, Screen

APP = "app/main.py"
WORDS = words.COMPONENT


class Line:
    """The messages between a page and the server, of which those of the server can be held back."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.sent: list[bytes] = []
        self.held: list[bytes] = []
        self.holds = False
        screen.page.route_web_socket(re.compile("_stcore/stream"), self._connect)

    def _connect(self, page: WebSocketRoute) -> None:
        server = page.connect_to_server()
        self.page = page

        def to_server(message: str | bytes) -> None:
            self.sent.append(_bytes(message))
            server.send(message)

        def to_page(message: str | bytes) -> None:
            self.held.append(_bytes(message)) if self.holds else page.send(message)

        page.on_message(to_server)
        server.on_message(to_page)

    def hold(self) -> None:
        self.sent.clear()
        self.holds = True

    def let_go(self) -> None:
        while self.held:
            self.page.send(self.held.pop(0))
        self.holds = False

    def until_sent(self, *words: str) -> None:
        """Until one message of the page has these words in it."""
        self._until(self.sent, *words)

    def until_held(self, *words: str) -> None:
        """Until one message of the server has these words in it."""
        self._until(self.held, *words)

    def _until(self, messages: list[bytes], *words: str) -> None:
        for _ in range(PATIENCE // 20):
            if any(all(word.encode() in message for word in words) for message in messages):
                return
            self.screen.page.wait_for_timeout(20)
        raise AssertionError(f"never: {words}")


def _bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message


@pytest.fixture
def screen(browser: Browser, address: str) -> Iterator[Screen]:
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    screen = Screen(context.new_page(), address)
    yield screen
    assert (screen.foreign, screen.errors) == ([], [])
    context.close()


def press(screen: Screen, name: str) -> None:
    screen.root.get_by_role("button", name=name, exact=True).click()


def test_nothing_that_is_chosen_while_something_is_on_its_way_is_lost(screen: Screen):
    line = Line(screen)
    screen.open()
    # Something is chosen right before a sentence leaves the browser, which tells no one of it.
    line.hold()
    press(screen, "hide [CLS]")
    assert line.sent == [], "no script runs for it"
    screen.type("At once another one.")
    line.until_sent("At once another one.", "hide=0")
    line.let_go()
    screen.until("root.dataset.tokens === '7' && root.dataset.hide === '[0]'")
    screen.page.wait_for_url(re.compile("text=At\\+once.*hide=0|hide=0.*text=At\\+once"))
    # The picture of a sentence is on its way when something is chosen.
    line.hold()
    screen.type("Another one.")
    line.until_held("Another", '"whole"')
    press(screen, WORDS["unhide_all_short"])
    press(screen, WORDS["lines_tab"])
    line.let_go()
    screen.until("root.dataset.tokens === '5' && root.dataset.hide === '[]' && root.dataset.show === 'lines'")
    screen.page.wait_for_url(lambda url: "hide" not in url and "show=lines" in url and "text=Another" in url)
    assert "was=" not in screen.page.url
