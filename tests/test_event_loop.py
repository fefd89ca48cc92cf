"""A test starts an event loop although another one counts as running, as Playwright's does, unless the test uses the browser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests.event_loop import own_event_loop


async def answer() -> int:
    return 7


@contextmanager
def marked() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that is marked as running in this thread."""
    loop, before = asyncio.new_event_loop(), asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield loop
    finally:
        asyncio._set_running_loop(before)
        loop.close()


def item(*fixtures: str) -> Any:
    return SimpleNamespace(fixturenames=[*fixtures])


def test_a_test_without_the_browser_starts_a_loop() -> None:
    with marked() as playwrights:
        with own_event_loop(item("tmp_path")):
            assert asyncio.run(answer()) == 7
        assert asyncio._get_running_loop() is playwrights
        with pytest.raises(ZeroDivisionError), own_event_loop(item()):
            raise ZeroDivisionError
        assert asyncio._get_running_loop() is playwrights


def test_a_test_with_the_browser_keeps_playwrights() -> None:
    with marked() as playwrights, own_event_loop(item("browser", "tmp_path")):
        assert asyncio._get_running_loop() is playwrights
