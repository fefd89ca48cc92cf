"""Arrival: how what other threads do reaches those who await it in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def into_loop(call: Callable[[*Ts], object]) -> Callable[[*Ts], None]:
    """The same call for any thread: it is made in the event loop that runs now, and not at all once that has been closed."""
    loop = asyncio.get_running_loop()

    def from_thread(*args: *Ts) -> None:
        with suppress(RuntimeError):  # that loop has been closed
            loop.call_soon_threadsafe(call, *args)

    return from_thread


async def arrival(future: Future[T]) -> T:
    """The result of a future of another thread. Unlike asyncio.wrap_future, to wait no longer does not cancel it for the others."""
    if not future.done():
        there = asyncio.Event()
        tell = into_loop(there.set)
        future.add_done_callback(lambda _: tell())
        await there.wait()
    return future.result()


async def only_arrival(future: Future[T]) -> T:
    """The same for a future that nothing else waits for: a caller who leaves cancels it. A task that has begun still ends."""
    try:
        return await arrival(future)
    finally:
        future.cancel()
