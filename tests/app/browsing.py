"""What the end-to-end tests share: a server started as users start it, and a page that is read through data attributes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Dialog, FloatRect, Locator, Page, Request, expect, sync_playwright

from app.attention import words
from app.shell import bar, registry
from tests import servers
from tests.servers import ROOT

# Chromium draws the list below its address bar as a page of its own, made anew for every window: three times the work of the
# window, and no test sees it. Of two such lists Chromium takes the last, so those that Playwright turns off are here again.
TURNED_OFF = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "AimEnabled",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",  # letters as wide as in a window of its own
    "--no-first-run",
    # All pages in one process, which has read Streamlit's scripts already: a link opens in half the time.
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    # Nothing but this machine is there: what a page asks of another host fails, and Screen.leave() names it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
    f"--disable-features={','.join(TURNED_OFF)}",
]
PATIENCE = 20_000  # ms for anything to appear; nothing waits this long unless it fails


def degrees(distance: float) -> float:
    """The angle between two vectors, as the screen tells it, of their cosine distance, as core does."""
    return math.degrees(math.acos(1 - distance))


@contextmanager
def serving(script: str, log: Path, *options: str) -> Iterator[str]:
    """Address of a server of a script's own, which tests need that set its environment, its options or its end."""
    with running(servers.command(script, *options), log, ROOT) as (address, _):
        yield address


@contextmanager
def running(command: Sequence[str | Path], log: Path, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A command that serves at the port that is its last argument: its address, once it answers, and its process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    address, process = servers.start(command, log, folder, environment)
    try:
        servers.wait_until_ready(address, process.pid, log)
        yield address, process
    finally:
        servers.stop(process.pid)


@contextmanager
def browsing(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


def bar_hears(page: Page) -> None:
    """Wait until the bar follows its links itself, and hears keys: before, a link loads the page anew, and a key is lost."""
    page.locator("nav a[aria-current]").first.wait_for(state="attached")


def go_to(page: Page, room: str) -> None:
    """Choose a room in the bar of a wide window."""
    bar_hears(page)
    page.get_by_role("navigation").get_by_role("link", name=room, exact=True).click()


def digit(room: str) -> str:
    """The key that chooses a room: its place in the bar, or the first letter of one at its end."""
    return bar.keys([bar.Entry(one.id, one.title, one.group, one.line) for one in registry.rooms()])[room]


def box_of(locator: Locator) -> FloatRect:
    """Where an element is on the page, once it is seen there: one that is made anew after it was found has no place."""
    deadline = time.monotonic() + PATIENCE / 1000
    while (box := locator.bounding_box()) is None:
        if time.monotonic() > deadline:
            raise AssertionError(f"never to be seen: {locator}")
        locator.page.wait_for_timeout(30)
    return box


def eventually(page: Page, check: Callable[[], None]) -> None:
    """Until nothing that is asserted fails any more."""
    deadline = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < deadline:
        try:
            return check()
        except AssertionError:
            page.wait_for_timeout(50)
    check()


def stays(page: Page, read: Callable[[], Any]) -> None:
    """Wait until something of a page has been the same for a second and a half; fails where it never is."""

    def is_the_same() -> None:
        before = read()
        page.wait_for_timeout(1500)
        assert read() == before, "something of the page never comes to rest"

    eventually(page, is_the_same)


def idle(page: Page) -> None:
    """Wait until the script that a change started has ended, and so all that it says is there, in its own type.

    And until it is laid out: what looks at sizes hears of new ones behind one frame, and draws in the next. Between a script
    that is broken off and the next one there is a moment without any, after which this waits on.
    """
    ended = '[data-testid="stApp"][data-test-script-state="notRunning"]'
    is_over = f"""document.fonts.ready
        .then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))
        .then(() => document.querySelector('{ended}') !== null)"""
    deadline = time.monotonic() + PATIENCE / 1000
    page.locator(ended).wait_for()
    while not page.evaluate(is_over):
        if time.monotonic() > deadline:
            raise AssertionError("scripts never end")
        page.locator(ended).wait_for()


def once(page: Page, condition: str, *, arg: Any = None, timeout: float = PATIENCE) -> Any:
    """What a JavaScript expression, or function of `arg`, gives once that counts as true.

    Playwright's own way evaluates a text in the page, which the page's Content-Security-Policy forbids.
    """
    deadline = time.monotonic() + timeout / 1000
    while not (found := page.evaluate(condition, arg)):
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {condition}")
        page.wait_for_timeout(30)
    return found


class Screen:
    """One visitor's page on the Explore view."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.foreign: list[str] = []
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(PATIENCE)
        self._listeners: dict[str, Callable[[Any], None]] = {
            "requestfailed": self._has_failed,
            "websocket": lambda socket: self._watch_socket(socket.url.replace("ws", "http", 1)),
            "pageerror": lambda error: self.errors.append(str(error.stack or error)),
            "dialog": self._dismiss,
        }
        self.listen()

    def listen(self) -> None:
        """From now on hear what goes wrong on the page."""
        for event, hear in self._listeners.items():
            self.page.on(event, hear)  # type: ignore[call-overload]

    def leave(self) -> None:
        """The visit ends: it asked no other host for anything and nothing in it failed. Its page may be somebody else's next."""
        wrong = (self.foreign, self.errors, self.dialogs)
        assert wrong == ([], [], []), wrong
        for event, hear in self._listeners.items():
            self.page.remove_listener(event, hear)
        self._listeners.pop("request", None)
        self.requests.clear()

    def record(self) -> Screen:
        """Keep in `requests` whatever the page asks for from now on. Not of every page: to tell of 170 requests takes a third
        of a second of this process and the driver's, each time that a page opens."""
        self._listeners["request"] = self._asked
        self.page.on("request", self._asked)
        return self

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    def _has_failed(self, request: Request) -> None:
        self._watch_url(request.url)

    def _watch_socket(self, url: str) -> None:
        self.requests.append(url)
        self._watch_url(url)

    def _watch_url(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.foreign.append(url)

    def open(self, query: str = "") -> Screen:
        """Open a link; ready when its picture is there, whole, and nothing is still to be said or laid out."""
        self.arrive(query)
        self.until("!root.dataset.underway")
        self.idle()
        return self

    def arrive(self, query: str = "") -> None:
        """Open a link; ready when there is something of its picture, whose run may still go on."""
        self.page.goto(f"{self.address}/{query}")
        self.painted()

    def painted(self) -> None:
        """Wait until there is something of a picture, and of one room: both are there while one takes the place of another."""
        shown = self.root.and_(self.page.locator("[data-painted]"))
        expect(shown).to_have_count(1)
        shown.wait_for()

    def idle(self) -> None:
        """Wait until the script that a change started has ended, and so all that it says is there, in its own type."""
        idle(self.page)

    @property
    def root(self) -> Locator:
        return self.page.locator(".hl")

    def data(self) -> dict[str, str]:
        return json.loads(self.root.evaluate("root => JSON.stringify(root.dataset)"))

    def wait(self, **attributes: str) -> None:
        """Until the component's data attributes are these."""
        self.page.locator(".hl" + "".join(f'[data-{name}="{value}"]' for name, value in attributes.items())).wait_for()

    def until(self, condition: str) -> None:
        """Until a JavaScript condition on the component's root holds."""
        deadline = time.monotonic() + PATIENCE / 1000
        while not self.root.evaluate(f"root => Boolean({condition})"):
            if time.monotonic() > deadline:
                raise AssertionError(f"never: {condition}; {self.data()}")
            self.page.wait_for_timeout(30)

    def type(self, text: str) -> None:
        box = self.page.get_by_role("textbox", name="Sentence", exact=True)
        box.fill(text)
        box.press("Enter")

    def run_text(self, text: str) -> None:
        """Type a sentence and wait for its picture, all of it."""
        before = self.data()["run"]
        self.type(text)
        self.until(f"root.dataset.run !== '{before}' && !root.dataset.underway")
        self.idle()

    def shapes(self) -> Locator:
        """What opens the table of the run's tensors."""
        return self.root.get_by_role("button", name=words.RUN_SHAPES)

    def files(self) -> Locator:
        """The Export menu."""
        return self.root.get_by_role("dialog", name=words.COMPONENT["export"], include_hidden=True)

    def tokens(self, axis: str = "query") -> list[str]:
        return self.root.locator(f".strip [data-axis={axis}]").all_text_contents()

    def facts(self) -> str:
        return self.root.locator(".big").inner_text()

    def sentences(self) -> str:
        return self.page.locator(".st-key-sentences").inner_text()

    def cell(self, query: int, key: int) -> tuple[float, float]:
        """Where on the page the middle of a cell is, by the labels: found by pointing until the component names it."""
        box = box_of(self.root.locator(".matrix"))
        n_query, n_key = int(self.data()["tokens"]), len(self.tokens("key") or self.tokens())
        size, left, top = (float(self.root.get_attribute(f"data-{name}") or 0) for name in ("size", "left", "top"))
        assert size > 0 and query < n_query and key < n_key
        xs = [
            float(x) for x in (self.root.get_attribute("data-columns") or "").split()
        ]  # where words stand over columns
        across = (xs[key] + xs[key + 1]) / 2 if xs else left + (key + 0.5) * size
        if folded := self.root.get_attribute(
            "data-folded"
        ):  # key:left:right of each column, and which row is the first
            columns = [[float(x) for x in part.split(":")] for part in folded.split()]
            across = next((start + end) / 2 for of, start, end in columns if of == key)
            query -= int(self.root.get_attribute("data-row") or 0)
        return box["x"] + across, box["y"] + top + (query + 0.5) * size

    def head(self, layer: int, head: int) -> tuple[float, float]:
        """Where on the page the small picture of a head is: in a group of heads, or in a grid whose heads share no keys."""
        grid = self.root.locator(".overview")
        box = box_of(grid)
        if places := (grid.get_attribute("data-places") or "").split():
            named = dict(place.split(":") for place in places)
            x, y = map(float, named[f"{layer}.{head}"].split(","))
            return box["x"] + x + 4, box["y"] + y - grid.evaluate("grid => grid.scrollTop") + 4
        left, top, pitch = (float(grid.get_attribute(f"data-{name}") or 0) for name in ("left", "top", "pitch"))
        return box["x"] + left + (head + 0.45) * pitch, box["y"] + top + (layer + 0.45) * pitch


Another = Callable[..., Screen]  # the fixture `another`
