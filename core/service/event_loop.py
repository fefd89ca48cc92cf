"""Results of threads in an event loop: waiting for futures, calls into the loop, and a cache of answers that loops and threads share."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar, TypeVarTuple

from .queue import Askers, asked_by, current_askers

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def into_loop(call: Callable[[*Ts], object]) -> Callable[[*Ts], None]:
    """Wrap a callback so that any thread may call it: it runs in the current event loop, and is ignored once that loop is closed."""
    loop = asyncio.get_running_loop()

    def from_thread(*args: *Ts) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call, *args)

    return from_thread


async def wait_in_loop(future: Future[T]) -> T:
    """The result of another thread's future. Unlike asyncio.wrap_future, cancelling this wait does not cancel the future."""
    if not future.done():
        done = asyncio.Event()
        notify = into_loop(done.set)
        future.add_done_callback(lambda _: notify())
        await done.wait()
    return future.result()


async def wait_or_cancel(future: Future[T]) -> T:
    """Like wait_in_loop(), for a future without other waiters: it is cancelled with the caller, unless its task has started."""
    try:
        return await wait_in_loop(future)
    finally:
        future.cancel()


class AnswerCache:
    """Computed answers by key, up to `max_bytes`; the least recently used are dropped first. Thread-safe, for any number of loops.

    `size` returns the bytes of a value. `version` returns whatever else the value of a key depends on: a value of another version is
    computed again. Concurrent requests for the same key share one computation.
    """

    def __init__(
        self,
        max_bytes: int,
        size: Callable[[Any], int],
        version: Callable[[Hashable], Hashable] = lambda _: None,
    ) -> None:
        self.max_bytes, self.size, self.version, self.nbytes = max_bytes, size, version, 0
        self._values: OrderedDict[Hashable, tuple[Any, int, Hashable]] = OrderedDict()  # (value, bytes, version)
        self._computing: dict[Hashable, tuple[Future[Any], Askers]] = {}
        self._lock = threading.Lock()

    async def get(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The cached value, or a new one from make(). Errors of make() are raised by all waiting calls, and are not cached."""
        while True:
            version = self.version(key)
            with self._lock:
                if key in self._values and self._values[key][2] == version:
                    self._values.move_to_end(key)
                    return self._values[key][0]
                is_mine = (key, version) not in self._computing
                if is_mine:
                    self._computing[key, version] = Future(), Askers(parent=current_askers())
                future, askers = self._computing[key, version]
                if not is_mine:
                    askers.join(current_askers())
            if is_mine:
                with asked_by(askers):
                    return await self._compute(key, version, future, make)
            with suppress(_Abandoned):
                return await wait_in_loop(future)

    def known(self, key: Hashable) -> Any:
        """The cached value, or None."""
        version = self.version(key)
        with self._lock:
            return self._values[key][0] if key in self._values and self._values[key][2] == version else None

    def put(self, key: Hashable, value: object) -> None:
        """Store a value that was computed elsewhere."""
        self._put(key, value, self.version(key))

    def _put(self, key: Hashable, value: object, version: Hashable) -> None:
        size = self.size(value)
        with self._lock:
            if key in self._values:
                self.nbytes -= self._values.pop(key)[1]
            self._values[key] = (value, size, version)
            self.nbytes += size
            while self.nbytes > self.max_bytes:
                self.nbytes -= self._values.popitem(last=False)[1][1]

    async def _compute(
        self, key: Hashable, version: Hashable, future: Future[Any], make: Callable[[], Awaitable[T]]
    ) -> T:
        try:
            value = await make()
            self._put(key, value, version)
        except BaseException as error:
            with self._lock:
                del self._computing[key, version]
            # If only this caller was cancelled, one of the other waiters starts the computation again.
            future.set_exception(_Abandoned() if isinstance(error, asyncio.CancelledError) else error)
            raise
        with self._lock:
            del self._computing[key, version]
        future.set_result(value)
        return value


class _Abandoned(Exception):
    """The caller that computed this value was cancelled."""
