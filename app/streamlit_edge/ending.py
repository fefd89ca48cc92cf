"""SIGTERM: what runs is answered first, then the server stops.

Streamlit, or uvicorn where that serves, stops the server at once, by a handler that it sets before or just after the server has
begun. Without this anyone who waits for a run when an operator puts a new version in place gets nothing.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any

LOOK = 0.05  # seconds between two looks at whether there is a handler


async def first(finish: Callable[[], Awaitable[object]]) -> None:
    """Have this finished at SIGTERM, before the server's own handler is called. Ends when that handler is found."""
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # a server inside of a test; signals are the main thread's
        return
    while not callable(theirs := signal.getsignal(signal.SIGTERM)):
        await asyncio.sleep(LOOK)
    loop = asyncio.get_running_loop()
    begun: list[asyncio.Task[None]] = []

    async def end(stop: Callable[[int, Any], Any], number: int) -> None:
        try:
            await finish()
        finally:
            stop(number, None)

    def begin(stop: Callable[[int, Any], Any], number: int) -> None:
        if begun:  # asked twice: at once
            stop(number, None)
        else:
            begun.append(asyncio.ensure_future(end(stop, number)))

    signal.signal(signal.SIGTERM, lambda number, _: loop.call_soon_threadsafe(begin, theirs, number))
