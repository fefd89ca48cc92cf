"""Rules and fixtures of the tests of the screen: the servers and the browser, each started once, and a visitor's page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.app.browsing import Screen, browsing, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Callable[[str], tuple[str, Path]]]:
    """server(script) -> address and log of that application, which is started when it is first asked for."""
    started: dict[str, tuple[str, Path]] = {}
    with ExitStack() as stack:

        def start(script: str) -> tuple[str, Path]:
            if script not in started:
                log = tmp_path_factory.mktemp("server") / "log"
                started[script] = stack.enter_context(serving(script, log)), log
            return started[script]

        yield start


@pytest.fixture(scope="module")
def address(request, server: Callable[[str], tuple[str, Path]]) -> Iterator[str]:
    """Where the application answers that a module names as its APP; whatever the module did, the log has no traceback of it."""
    address, log = server(request.module.APP)
    before = log.stat().st_size
    yield address
    assert "Traceback" not in log.read_bytes()[before:].decode()


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with browsing(chromium) as browser:
        yield browser


@pytest.fixture
def screen(browser: Browser, address: str) -> Iterator[Screen]:
    """The page of a visitor with a laptop who wants no motion. It asks no other host for anything and nothing in it fails."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    screen = Screen(context.new_page(), address)
    yield screen
    screen.leave()
    context.close()
