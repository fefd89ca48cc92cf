"""SIGTERM: what visitors wait for is finished first, then the server stops, whatever is still open.

Streamlit, or uvicorn where that serves, stops at once, by a handler that it sets before or just after the server has started. From
then on it waits for open answers without a limit. Without this module a new version that an operator puts in place takes their
answers from all who wait, and a training with a viewer keeps the old server alive for minutes, with its port closed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any

LOOK = 0.05  # seconds between two looks for the server's handler
GRACE = 1.0  # seconds for the server to close its connections: one whose reader has stalled never closes


async def first(finish: Callable[[], Awaitable[object]], longest: float) -> None:
    """Have this finished at SIGTERM before the server's own handler is called, `longest` seconds later at most.

    The process ends at most GRACE seconds after that, and at a second SIGTERM at once. Returns when the handler is found.
    """
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # a server inside of a test; signals are the main thread's
        return
    while not callable(theirs := signal.getsignal(signal.SIGTERM)):
        await asyncio.sleep(LOOK)
    stop: Callable[[int, Any], Any] = theirs
    loop = asyncio.get_running_loop()
    begun: list[asyncio.Task[None]] = []  # the loop alone would let go of it

    async def end() -> None:
        try:
            await finish()
        finally:
            exit_after(GRACE)
            stop(signal.SIGTERM, None)

    def begin(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        exit_after(longest + GRACE)
        loop.call_soon_threadsafe(lambda: begun.append(loop.create_task(end())))

    signal.signal(signal.SIGTERM, begin)


def exit_after(seconds: float) -> None:
    """End the process then if it has not ended, even where its event loop hangs. Processes that it started end by themselves."""
    timer = threading.Timer(seconds, os._exit, (0,))
    timer.daemon = True
    timer.start()
