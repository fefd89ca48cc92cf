"""Event loops of tests next to an open browser.

Playwright marks its own loop as running in the thread of the tests while the browser is open, and asyncio.run() refuses to
start a second one. It needs that mark only where a test uses the browser: all others run without it. tests/conftest.py registers
this module as a plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def own_event_loop(item: pytest.Item) -> Iterator[None]:
    """Let a test that does not use the fixture `browser` start an event loop."""
    playwrights = asyncio._get_running_loop()
    if playwrights is None or "browser" in getattr(item, "fixturenames", ()):
        yield
        return
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(playwrights)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with own_event_loop(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with own_event_loop(item):
        return (yield)
