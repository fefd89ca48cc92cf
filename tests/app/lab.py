"""A visitor's page on a room of labs, Masks or Positions: what the tests of both do there."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.app.axe import faults
from tests.app.browsing import PATIENCE, Screen, eventually, once
from tests.app.pages import lend

# A new size is heard of when the page is laid out, behind the callbacks of that frame; what it asks for is drawn in the next one.
DRAWN = "(async () => { for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame); return true; })()"
HEARD = "?heard"  # of a request that asks whether those of its route are held


class Lab:
    """A page on one room, by its id: on the plain page, or in the application."""

    ROOM: str

    def __init__(self, screen: Screen) -> None:
        self.screen, self.page, self.address = screen, screen.page, screen.address

    @property
    def root(self) -> Locator:
        return self.page.locator(f".hl.{self.ROOM}")

    def open(self, **said: str) -> Self:
        self.screen.open(f"?{urlencode({'view': self.ROOM, **said})}")
        self.page.evaluate("document.fonts.ready.then(() => true)")  # no size is read in another type
        return self

    def follow(self, link: str) -> None:
        """Open the link that an address or a button gave."""
        self.screen.open(f"?{urlsplit(link).query}")

    def says(self, *texts: str) -> None:
        for text in texts:
            expect(self.root.locator(".fact")).to_contain_text(text, timeout=PATIENCE)

    def has(self, name: str, value: str | re.Pattern[str]) -> None:
        expect(self.root).to_have_attribute(f"data-{name}", value, timeout=PATIENCE)

    def number(self, name: str) -> float:
        """A number that the room shows, once it is there."""
        self.has(name, re.compile("[0-9]"))
        return float(self.root.get_attribute(f"data-{name}") or "nan")

    def press(self, name: str) -> None:
        self.root.get_by_role("button", name=name, exact=True).click()

    def link(self, *parts: str) -> str:
        """The address, once it says all of these."""
        self.page.wait_for_url(lambda url: all(part in url for part in parts))
        return self.page.url

    @contextlib.contextmanager
    def late(self, path: str) -> Iterator[None]:
        """What is asked of this route in the block, where it has to be asked, is answered once the block has ended."""
        held: list[Route] = []
        answers = False

        def keep(route: Route) -> None:
            if route.request.url.endswith(HEARD):
                route.fulfill(status=204)
            else:
                route.continue_() if answers else held.append(route)

        def asked() -> None:
            assert held, path

        self.page.route(f"**/headlight/{path}*", keep)
        # A page hears a moment later that its requests are held, and a key or a click may be quicker: until then they pass by.
        once(
            self.page, "async (url) => (await fetch(url)).status === 204", arg=f"{self.address}/headlight/{path}{HEARD}"
        )
        yield
        eventually(self.page, asked)
        answers = True
        for route in held:
            route.continue_()
        self.page.unroute(f"**/headlight/{path}*", keep)

    def saved(self, name: str) -> Path:
        """A file of the Export menu, by its button."""
        self.press("Export")
        with self.page.expect_download() as waiting:
            self.root.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()
        self.page.keyboard.press("Escape")
        return waiting.value.path()

    def axe(self) -> list[str]:
        """What axe finds on the page once no answer is on its way: what loads is faded, which axe counts as pale."""
        expect(self.page.locator(".hl[data-waiting], .hl .late")).to_have_count(0, timeout=PATIENCE)
        return faults(self.page)


def sized(page: Page, width: int, height: int) -> None:
    """Give the window a size, and wait until what follows from it is drawn."""
    page.set_viewport_size({"width": width, "height": height})
    once(page, "([width, height]) => innerWidth === width && innerHeight === height", arg=[width, height])
    page.evaluate(DRAWN)


def everywhere(root: Locator, check: Callable[[], object]) -> None:
    """Have `check` read the room in the dark, then on a phone, then projected, and leave it as it was."""
    page, size = root.page, root.page.viewport_size
    assert size is not None
    page.emulate_media(color_scheme="dark")
    expect(root).to_have_attribute("data-theme", "dark", timeout=PATIENCE)
    check()
    sized(page, 390, 844)
    check()
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.evaluate("headlight.settings.set('projector', 'true')")
    for name, value in (("projector", "true"), ("theme", "light")):
        expect(root).to_have_attribute(f"data-{name}", value, timeout=PATIENCE)
    page.evaluate(DRAWN)
    check()
    page.evaluate("headlight.settings.set('projector', null)")
    for name, value in (("projector", "false"), ("theme", "light")):
        expect(root).to_have_attribute(f"data-{name}", value, timeout=PATIENCE)
    sized(page, size["width"], size["height"])


@contextlib.contextmanager
def visiting(kind: type[Lab], browser: Browser, address: str, window: tuple[int, int]) -> Iterator[Any]:
    """A visitor's page on that room of the application, on which no script fails."""
    with lend(browser, viewport={"width": window[0], "height": window[1]}, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        yield kind(screen)
        screen.leave()


@contextlib.contextmanager
def away(browser: Browser, saved: Path, folder: Path) -> Iterator[Page]:
    """The page of an Export menu opened as a file where there is no network: it asks for nothing, and nothing in it fails."""
    path, wrong = folder / "saved.html", list[str]()
    path.write_bytes(saved.read_bytes())
    context = browser.new_context(viewport={"width": 1280, "height": 720}, offline=True)
    page = context.new_page()
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else wrong.append(r.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(path.as_uri())
    yield page
    assert wrong == []
    context.close()


def printed(code: str) -> str:
    """What the code of a file prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "snippet", "exec"), {})
    return out.getvalue()
