"""Calls: a Service for threads that cannot await, such as a page's script."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from ..errors import RunCancelled
from ..run.request import Progress, Request
from .protocol import Service

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

    def submit(self, request: Request) -> Following:
        """Begin a run, or join one, and follow it. Raises Busy."""
        return Following(self, request)


class Following:
    """What a thread holds that waits for a run: how far it is, and the way to wait no longer."""

    def __init__(self, calls: Calls, request: Request) -> None:
        self.request, self.calls, self.cancelled = request, calls, False
        self.key, self._changes, self.progress = calls.result(self._begin())
        self._ended = calls.begin(self._follow())

    async def _begin(self) -> tuple[str, AsyncGenerator[Progress], Progress]:
        """With the first change this thread counts as one that waits."""
        key = await self.calls.service.submit(self.request)
        changes = self.calls.service.follow(key)
        return key, changes, await anext(changes)

    async def _follow(self) -> None:
        async for now in self._changes:
            self.progress = now

    async def _close(self) -> None:
        with suppress(RuntimeError):  # it is just being closed
            await self._changes.aclose()

    def wait(self, seconds: float) -> bool:
        """Whether the run has ended, after at most this long."""
        return bool(wait([self._ended], seconds).done)

    def done(self) -> bool:
        return self._ended.done()

    def check(self) -> None:
        """Wait for the end. Raises Refused in its kinds where the run was refused, cancelled by all, or failed."""
        try:
            self._ended.result()
        except CancelledError:
            raise RunCancelled("This run was cancelled.") from None

    def cancel(self) -> None:
        """Wait no longer. When nobody does, the run ends at its next layer."""
        self.cancelled = True
        self._ended.cancel()
        self.calls.begin(self._close())
