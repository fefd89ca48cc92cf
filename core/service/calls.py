"""Calls: a Service for threads that cannot await, such as a page's script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from ..run.request import Progress, Request
from .local import Service
from .waiting import Waiting

T = TypeVar("T")


class Calls:
    """An event loop in a thread of its own, in which other threads have a service answer."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="calls", daemon=True).start()

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """The future of a call of the service."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def result(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The answer of a call of the service, awaited."""
        return self.begin(coroutine).result()

    def submit(self, request: Request) -> Waiting[None]:
        """Begin a run, or join one, and wait for it: its numbers come with other calls. Raises Busy."""
        changes, now = self.result(self._joined(request))

        async def follow() -> None:
            nonlocal now
            async for change in changes:
                now = change

        ended = self.begin(follow())

        def leave() -> None:
            ended.cancel()
            self.begin(_closed(changes))

        return Waiting(request, ended, lambda: now, leave)

    async def _joined(self, request: Request) -> tuple[AsyncGenerator[Progress], Progress]:
        """How far a run is from now on, and the first of it: with that this thread counts as one that waits."""
        changes = self.service.follow(await self.service.submit(request))
        return changes, await anext(changes)


async def _closed(changes: AsyncGenerator[Progress]) -> None:
    with suppress(RuntimeError):  # it is just being closed
        await changes.aclose()
