"""Fixtures of the tests of the screen: the servers of the run, and a visitor's page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from app.transport import modules
from tests import servers
from tests.app import plain as plain_page
from tests.app.browsing import PATIENCE, Another, Screen
from tests.app.course_page import course_page
from tests.app.far import away
from tests.app.pages import lend
from tests.app.plain import AnotherPlain, Plain

expect.set_options(timeout=PATIENCE)  # its own five seconds are short for a machine that does something else as well
LAPTOP: ViewportSize = {"width": 1280, "height": 720}


@pytest.fixture
def own_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser's modules that a test adds are there for that test alone."""
    for name in ("_sources", "_addresses", "_served", "_folders", "_constants"):
        monkeypatch.setattr(modules, name, dict(getattr(modules, name)))


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """A page of another site, and what stands in it."""
    with course_page() as page:
        yield page


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Callable[[str], servers.Server]]:
    """server(script) -> address and log of that application, which the whole run shares (tests/servers.py)."""
    reached: dict[str, servers.Server] = {}
    with ExitStack() as stack:

        def reach(script: str) -> servers.Server:
            if script not in reached:
                address, log = servers.shared(script, request.config)
                reached[script] = servers.Server(stack.enter_context(away(address)), log)
            return reached[script]

        yield reach


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest, server: Callable[[str], servers.Server]) -> Iterator[str]:
    """Address of the application that a module names as its APP."""
    address, log = server(request.module.APP)
    with servers.noted(log, request.module.__name__):
        yield address


@pytest.fixture
def screen(browser: Browser, address: str) -> Iterator[Screen]:
    """The page of a visitor with a laptop who wants no motion. It asks no other host for anything and nothing in it fails."""
    with lend(browser, viewport=LAPTOP, reduced_motion="reduce") as page:
        screen = Screen(page, address)
        yield screen
        screen.leave()


@pytest.fixture
def own_screen(browser: Browser, address: str) -> Iterator[Screen]:
    """The same on a page that nobody gets afterwards: for a test that puts a script into it."""
    context = browser.new_context(viewport=LAPTOP, reduced_motion="reduce")
    screen = Screen(context.new_page(), address)
    yield screen
    screen.leave()
    context.close()


@pytest.fixture
def another(browser: Browser, address: str) -> Iterator[Another]:
    """another(size=(390, 844), scheme="dark") -> the page of one more visitor, who knows nothing of the others."""
    with ExitStack() as visits:

        def visit(size: tuple[int, int] = (1280, 720), scheme: str = "light", **options: Any) -> Screen:
            window = {"width": size[0], "height": size[1]}
            page = visits.enter_context(lend(browser, viewport=window, color_scheme=scheme, **options))
            screen = Screen(page, address)
            visits.callback(screen.leave)
            return screen

        yield visit


@pytest.fixture(scope="session")
def plain_address() -> Iterator[str]:
    """Where this process serves rooms on a plain page (tests/app/plain.py)."""
    with plain_page.serving() as address:
        yield address


@pytest.fixture
def plain_models(request: pytest.FixtureRequest) -> Iterator[None]:
    """The models of the script that a module names as its APP."""
    with plain_page.offered(getattr(request.module, "APP", "")):
        yield


@pytest.fixture
def plain(browser: Browser, plain_address: str, plain_models: None) -> Iterator[Plain]:
    """A visitor's page as `screen` is one, on which a room stands without Streamlit. plain.open("?view=step&at=mask")"""
    with plain_page.visiting(browser, plain_address, viewport=LAPTOP, reduced_motion="reduce") as screen:
        yield screen


@pytest.fixture
def plain_another(browser: Browser, plain_address: str, plain_models: None) -> Iterator[AnotherPlain]:
    """plain_another(size=(390, 844), scheme="dark") -> the same for one more visitor."""
    with ExitStack() as visits:

        def visit(size: tuple[int, int] = (1280, 720), scheme: str = "light", **options: Any) -> Plain:
            window = {"width": size[0], "height": size[1]}
            found = plain_page.visiting(browser, plain_address, viewport=window, color_scheme=scheme, **options)
            return visits.enter_context(found)

        yield visit


@pytest.fixture
def own_plain(browser: Browser, plain_address: str, plain_models: None) -> Iterator[Plain]:
    """The same on a page that no test gets afterwards: for one that changes the page's own functions."""
    context = browser.new_context(viewport=LAPTOP, reduced_motion="reduce")
    screen = Plain(context.new_page(), plain_address)
    screen.page.goto(f"{plain_address}/")
    plain_page.once_there(screen.page)
    yield screen
    screen.leave()
    context.close()


@pytest.fixture
def plain_phone(plain_another: AnotherPlain) -> Plain:
    """The same on a phone, in the dark."""
    return plain_another(size=(390, 844), scheme="dark", has_touch=True, reduced_motion="reduce")
